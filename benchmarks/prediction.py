"""Prediction: time, size and memory of a model, beside PECOS and napkinXC.

    python benchmarks/prediction.py naics --pecos .pecos/bin/python --out runs/bench
    python benchmarks/prediction.py large --device cuda          # a model of DMOZ-2010's size
    python benchmarks/prediction.py kept                         # predictions that pruning keeps

Times are CPU seconds of one thread, the best of several rounds, ours and the peer's by turns.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy import sparse

from taxofit import TaxonomyClassifier, load_model
from taxofit.datasets.web_directory import make_web_directory
from taxofit.experiment.problem import load_problem
from taxofit.predict.search import Search

PEER = Path(__file__).parent / "peers" / "predict.py"
ROUNDS = 5


def best_seconds(work, repeats=7):
    """Return the fewest CPU seconds that some work took."""
    best = float("inf")
    for _ in range(repeats):
        began = time.process_time()
        work()
        best = min(best, time.process_time() - began)
    return best


def folder_megabytes(folder):
    return sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file()) / 1e6


def labels_of(problem, leaves):
    return [problem.taxonomy.labels[leaf] for leaf in leaves]


def fit(problem, **settings):
    clf = TaxonomyClassifier(problem.taxonomy, n_jobs=None, **settings)
    return clf.fit(problem.X, labels_of(problem, problem.row_leaf))


# ---------------------------------------------------------------------- beside peers


def save_for_peers(problem, file):
    np.savez(
        file,
        parent=problem.taxonomy.parent,
        level=problem.taxonomy.level,
        row_leaf=problem.row_leaf,
        test_leaf=problem.test_leaf,
        shape=problem.X.shape,
        **{f"train_{name}": getattr(problem.X, name) for name in ("data", "indices", "indptr")},
        **{f"test_{name}": getattr(problem.X_test, name) for name in ("data", "indices", "indptr")},
    )


def run_peer(python, peer, problem_file, model_folder):
    command = [python, str(PEER), peer, str(problem_file), str(model_folder)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(told.splitlines()[-1])


def time_ours(clf, X, row):
    """Return seconds for all rows, greedy and beam 10, and for a single row, in microseconds."""
    clf.set_params(n_jobs=1)
    found = {}
    for name, search in (("greedy", Search()), ("beam 10", Search("beam", 1.0, 10))):
        found[name] = best_seconds(lambda s=search: clf.weights_.find(X, clf.taxonomy_, s))
    clf.predict(row)
    found["one row"] = best_seconds(lambda: [clf.predict(row) for _ in range(100)]) / 100
    return found


def naics(given):
    """Compare on NAICS2022: ours at C=100 with the whole taxonomy, PECOS at C=4 likewise."""
    problem = load_problem("naics", given.data)
    X, row = problem.X_test, problem.X_test[[0]]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        save_for_peers(problem, folder / "problem.npz")
        clf = fit(problem, flattening="td-lr", C=100.0, prune=given.prune)
        clf.save(folder / "ours")
        ours = load_model(folder / "ours")
        peers = {"pecos": given.pecos, "napkinxc": given.napkinxc}
        times = {"taxofit": []}
        for _ in range(ROUNDS):
            times["taxofit"].append(time_ours(ours, X, row))
            for peer, python in peers.items():
                if python:
                    found = run_peer(python, peer, folder / "problem.npz", folder / peer)
                    times.setdefault(peer, []).append(found)
        report = {
            name: {key: min(r[key] for r in rounds) for key in rounds[0]}
            for name, rounds in times.items()
        }
        report["taxofit"]["folder_megabytes"] = folder_megabytes(folder / "ours")
        for name, search in (("greedy", Search()), ("beam 10", Search("beam", 1.0, 10))):
            reached = ours.weights_.find(X, ours.taxonomy_, search)[0][:, 0]
            report["taxofit"][f"accuracy {name}"] = float(np.mean(reached == problem.test_leaf))
        loading = best_seconds(lambda: load_model(folder / "ours"))
        report["taxofit"]["load_milliseconds"] = 1e3 * loading
    return report


# ---------------------------------------------------------------------- pruning


def right_kept(problem, pruned, whole):
    """Return the shares of rows that are predicted right with some weights, and with all."""
    true = np.asarray(labels_of(problem, problem.test_leaf), dtype=object)
    return [float(np.mean(clf.predict(problem.X_test) == true)) for clf in (pruned, whole)]


def kept(given):
    """Return the share of test predictions that pruning leaves alone, and what it saves."""
    report = {}
    for name in ("naics", "20news", "dmoz-small"):
        problem = load_problem(name, given.data)
        for method, search in (("td-lr", "greedy"), ("global-inf", "greedy"), ("td-lr", "beam")):
            settings = {"flattening": method, "search": search, "C": given.C}
            pruned = fit(problem, **settings)
            whole = fit(problem, **settings, prune="none")
            same = pruned.predict(problem.X_test) == whole.predict(problem.X_test)
            report[f"{name}, {method}, {search}"] = {
                "kept": float(np.mean(same)),
                "weights": pruned.weights_.code.size,
                "all_weights": whole.weights_.code.size,
                "scores_kept": right_kept(problem, pruned, whole),
            }
            print(name, method, search, report[f"{name}, {method}, {search}"], flush=True)
    return report


# ---------------------------------------------------------------------- a large model


def large(given):
    """Time a model of DMOZ-2010's size, memory-mapped, in a process of its own."""
    train, test = make_web_directory(given.size)
    folder = given.out / f"model-{given.size}"
    began = time.perf_counter()
    clf = TaxonomyClassifier(train.taxonomy, flattening="td-lr", C=1.0, device=given.device)
    clf.fit(train.X, train.y).save(folder)
    report = {
        "fit_and_save_seconds": time.perf_counter() - began,
        "weights": clf.weights_.code.size,
        "model_megabytes": folder_megabytes(folder),
    }
    rows = given.out / "rows.npz"
    sparse.save_npz(rows, sparse.csr_matrix(test.X[: given.rows]), compressed=False)
    command = [sys.executable, __file__, "serve-large", "--out", str(given.out)]
    command += ["--size", given.size]
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return report | json.loads(told.splitlines()[-1])


def serve_large(given):
    """Load and time the model that :func:`large` saved; print what it took."""
    X = sparse.csr_array(sparse.load_npz(given.out / "rows.npz"))
    tiny = TaxonomyClassifier(flattening="lr", C=1.0, device="cpu")
    tiny.fit(sparse.csr_array(np.eye(3)), list("abc"))
    tiny.predict(sparse.csr_array(np.eye(3)))  # compiled before memory is looked at
    before = resident_megabytes()
    began = time.perf_counter()
    clf = load_model(given.out / f"model-{given.size}", verify=False)
    loading = time.perf_counter() - began
    loaded = resident_megabytes()
    clf.set_params(n_jobs=1)
    one = X[[0]]
    clf.weights_.find(one, clf.taxonomy_, Search())
    clf.weights_.node_scores(one, clf.taxonomy_)
    greedy = best_seconds(lambda: clf.weights_.find(X, clf.taxonomy_, Search()), 5)
    after_greedy = resident_megabytes()
    leaves = clf.taxonomy_.leaf_order

    def flat():
        for first in range(0, X.shape[0], 100):
            scores = clf.weights_.node_scores(X[first : first + 100], clf.taxonomy_)
            scores[:, leaves].argmax(axis=1)

    print(
        json.dumps(
            {
                "rows": X.shape[0],
                "load_milliseconds": 1e3 * loading,
                "resident_megabytes_before": before,
                "resident_megabytes_loaded": loaded,
                "resident_megabytes_after_greedy": after_greedy,
                "greedy_seconds": greedy,
                "flat_seconds": best_seconds(flat, 3),
            }
        )
    )


def resident_megabytes():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["naics", "kept", "large", "serve-large"])
    parser.add_argument("--data", default=os.environ.get("TAXOFIT_DATA", "../shared/data"))
    parser.add_argument("--pecos", help="a Python that has libpecos")
    parser.add_argument("--napkinxc", help="a Python that has napkinxc")
    parser.add_argument("--prune", type=float, default=0.017, help="of the model beside peers")
    parser.add_argument("--C", type=float, default=100.0)
    parser.add_argument("--size", default="dmoz-2010")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, default=Path("runs/bench"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.what == "serve-large":
        serve_large(given)
        return
    report = {"naics": naics, "kept": kept, "large": large}[given.what](given)
    text = json.dumps(report, indent=1)
    (given.out / f"prediction_{given.what}.json").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
