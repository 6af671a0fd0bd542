"""`taxofit reproduce` as a person types it, on a folder of their own."""

import json
import subprocess
import sys

import numpy as np

from taxofit.datasets import make_taxonomy_classification


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "taxofit", *arguments], capture_output=True, text=True, check=False
    )


def write_folder(folder):
    folder.mkdir()
    made = make_taxonomy_classification(
        240, depth=2, fan_out=3, n_features=60, n_inconsistent=0, random_state=0
    )
    lines = [
        f"{label} " + " ".join(f"{j + 1}:{v:.4f}" for j, v in zip(r.indices, r.data, strict=True))
        for label, r in zip(made.y, map(made.X.getrow, range(240)), strict=True)
    ]
    order = np.random.default_rng(0).permutation(240)
    (folder / "train.svm").write_text("\n".join(lines[i] for i in order[:180]) + "\n")
    (folder / "test.svm").write_text("\n".join(lines[i] for i in order[180:]) + "\n")
    edges = [f"{above} {below}" for above, below in made.taxonomy.to_edges()]
    (folder / "hierarchy.txt").write_text("\n".join(edges) + "\n")


def test_a_folder_of_ones_own_gives_results_tables_and_figures(tmp_path):
    write_folder(tmp_path / "mine")
    out = tmp_path / "out"
    done = run(
        "reproduce", str(tmp_path / "mine"), "--out", str(out), "--runs", "2",
        "--methods", "td-lr,lr,global-inf",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "global-inf" in done.stdout
    results = json.loads((out / "results.json").read_text())
    assert {r["method"] for r in results["results"]} == {"td-lr", "lr", "global-inf"}
    assert {r["seed"] for r in results["results"]} == {0, 1}
    assert "Global-INF" in (out / "tables.md").read_text()
    assert list((out / "figures").glob("*.html"))
