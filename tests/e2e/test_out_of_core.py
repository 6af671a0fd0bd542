"""A fit whose rows are larger than the memory that it may have.

The cap is ``ulimit -d`` (RLIMIT_DATA): all private memory of the process, the interpreter and its
libraries included, everything but pages of files. Nothing can get round it: beyond it malloc fails.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from tests.e2e.conftest import SOURCE

from taxofit import load_model
from taxofit.datasets import open_store

resource = pytest.importorskip("resource", reason="the cap is Unix's")

N_LEAVES, N_FEATURES, POOL = 12, 20_000, 256
MIB = 2**20
pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux caps data by this limit"
)


def write_rows(folder, n_rows, entries_per_row):
    """Write a taxonomy and many rows, each one of some long ones with a feature of its own."""
    rng = np.random.default_rng(0)
    leaf = rng.integers(0, N_LEAVES, size=POOL)
    texts = []
    for k in range(POOL):
        ids = np.unique(rng.integers(100, N_FEATURES, size=entries_per_row))
        telling = np.arange(5) + 5 * leaf[k] + 1
        counts = rng.integers(1, 9, size=ids.size + 5)
        pairs = zip(np.append(telling, ids), counts, strict=True)
        texts.append(" ".join(f"{i}:{n}" for i, n in pairs))
    file, hierarchy = folder / "rows.svm", folder / "hierarchy.txt"
    with file.open("w", encoding="ascii") as handle:
        for _ in range(n_rows // POOL):
            handle.writelines(
                f"{leaf[k]} {texts[k]} {N_FEATURES + rng.integers(5000)}:1\n"
                for k in rng.permutation(POOL)
            )
    edges = [f"{100 + k % 4} {k}\n" for k in range(N_LEAVES)]
    hierarchy.write_text("".join(edges), encoding="ascii")
    return file, hierarchy


def fit(file, hierarchy, model, *options, cap=None):
    """Train as a person would; return the finished process."""
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "OPENBLAS_NUM_THREADS": "1"}
    limit = resource.RLIM_INFINITY if cap is None else cap
    command = ["fit", file, "--hierarchy", hierarchy, "--C", 1, "--json", "--model", model]
    return subprocess.run(
        [sys.executable, "-m", "taxofit", *map(str, (*command, *options))],
        env=environment,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)),
        capture_output=True,
        text=True,
        check=False,
    )


def compile_loops(folder, n_rows=POOL, entries_per_row=20):
    """Fit a few rows without a cap: compiling is cached, and takes memory of its own."""
    folder.mkdir()
    file, hierarchy = write_rows(folder, n_rows, entries_per_row)
    done = fit(file, hierarchy, folder / "model", "--store", folder / "store")
    assert done.returncode == 0, done.stderr


def weights_of(model):
    return (model / "weights.safetensors").read_bytes()


def test_fit_that_memory_cannot_hold_completes_through_a_store(tmp_path):
    compile_loops(tmp_path / "small")
    file, hierarchy = write_rows(tmp_path, n_rows=12_800, entries_per_row=500)
    cap = 440 * MIB
    refused = fit(file, hierarchy, tmp_path / "refused", cap=cap)
    assert refused.returncode == 2
    assert "of memory but" in refused.stderr
    assert "--store" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert not (tmp_path / "refused").exists()

    store = tmp_path / "store"
    done = fit(file, hierarchy, tmp_path / "stored", "--store", store, cap=cap)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["estimate"]["memory_bytes"] < cap
    in_memory = fit(file, hierarchy, tmp_path / "in-memory")
    assert in_memory.returncode == 0, in_memory.stderr
    assert weights_of(tmp_path / "stored") == weights_of(tmp_path / "in-memory")


@pytest.mark.slow
def test_rows_of_four_times_the_cap_are_fitted(tmp_path):
    compile_loops(tmp_path / "long", entries_per_row=2080)
    compile_loops(tmp_path / "many", n_rows=257 * POOL)  # their places take more than 16 bits
    file, hierarchy = write_rows(tmp_path, n_rows=128_768, entries_per_row=2080)
    cap, store = 480 * MIB, tmp_path / "store"
    model = tmp_path / "model"
    done = fit(file, hierarchy, model, "--method", "td-lr", "--store", store, cap=cap)
    assert done.returncode == 0, done.stderr
    rows = open_store(store)
    X = rows.X
    assert X.data.nbytes + X.indices.nbytes + X.indptr.nbytes >= 4 * cap
    classifier = load_model(model)
    classifier.encoder_ = None  # the store's rows have been through it
    predicted = classifier.predict(X[:1000])
    assert predicted.tolist() == [rows.labels[code] for code in rows.codes[:1000]]
