"""Train a peer on a saved problem with the taxonomy as its tree, and time its predictions.

    python predict.py pecos|napkinxc PROBLEM.npz MODEL_FOLDER

The last line printed is JSON: CPU seconds of one thread for all test rows and for one, folder size.
"""

from __future__ import annotations

import json
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy import sparse


def best_seconds(work, repeats=7):
    best = float("inf")
    for _ in range(repeats):
        began = time.process_time()
        work()
        best = min(best, time.process_time() - began)
    return best


def folder_megabytes(folder):
    return sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file()) / 1e6


def rows(saved, part):
    arrays = tuple(saved[f"{part}_{name}"] for name in ("data", "indices", "indptr"))
    n_rows = arrays[2].size - 1
    return sparse.csr_matrix(arrays, shape=(n_rows, int(saved["shape"][1])), dtype=np.float32)


def pecos(saved, folder):
    """Time PECOS; all leaves must be at the same level, as in NAICS."""
    from pecos.utils.cluster_util import ClusterChain
    from pecos.xmc.xlinear.model import XLinearModel

    parent, level = saved["parent"], saved["level"]
    nodes = [np.flatnonzero(level == k) for k in range(level.max() + 1)]
    place = np.zeros(parent.size, dtype=np.int64)
    for members in nodes:
        place[members] = np.arange(members.size)
    chain = [
        sparse.csc_matrix(
            (
                np.ones(below.size, dtype=np.float32),
                (np.arange(below.size), place[parent[below]]),
            ),
            shape=(below.size, above.size),
        )
        for above, below in pairwise(nodes)
    ]
    X, X_test = rows(saved, "train"), rows(saved, "test")
    Y = sparse.csr_matrix(
        (
            np.ones(X.shape[0], dtype=np.float32),
            (np.arange(X.shape[0]), place[saved["row_leaf"]]),
        ),
        shape=(X.shape[0], nodes[-1].size),
    )
    XLinearModel.train(X, Y, C=ClusterChain(chain), Cp=4.0, Cn=4.0, threads=1).save(str(folder))
    model = XLinearModel.load(str(folder), is_predict_only=True)
    one = X_test[:1]
    found = {"folder_megabytes": folder_megabytes(folder)}
    for name, beam in (("greedy", 1), ("beam 10", 10)):
        options = {"beam_size": beam, "only_topk": 1, "threads": 1}
        found[name] = best_seconds(lambda o=options: model.predict(X_test, **o))
        predicted = np.asarray(model.predict(X_test, **options).argmax(axis=1)).ravel()
        found[f"accuracy {name}"] = float(np.mean(predicted == place[saved["test_leaf"]]))
    options = {"beam_size": 1, "only_topk": 1, "threads": 1}
    many = best_seconds(lambda: [model.predict(one, **options) for _ in range(100)])
    return found | {"one row": many / 100}


def napkinxc(saved, folder):
    """Time napkinXC's label tree with the taxonomy as its structure."""
    from napkinxc.models import PLT

    parent = saved["parent"]
    is_leaf = np.bincount(parent[1:], minlength=parent.size) == 0
    label = np.cumsum(is_leaf) - 1
    tree = [(-1, 0, -1)] + [
        (int(parent[n]), n, int(label[n]) if is_leaf[n] else -1) for n in range(1, parent.size)
    ]
    X, X_test = rows(saved, "train"), rows(saved, "test")
    model = PLT(str(folder), tree_structure=tree, threads=1)
    model.fit(X, [[int(label[leaf])] for leaf in saved["row_leaf"]])
    predicted = model.predict(X_test, top_k=1)
    right = [p == [label[leaf]] for p, leaf in zip(predicted, saved["test_leaf"], strict=True)]
    return {
        "greedy": best_seconds(lambda: model.predict(X_test, top_k=1)),
        "accuracy greedy": float(np.mean(right)),
        "folder_megabytes": folder_megabytes(folder),
    }


if __name__ == "__main__":
    name, problem, model_folder = sys.argv[1:]
    with np.load(problem) as saved_problem:
        found = {"pecos": pecos, "napkinxc": napkinxc}[name](dict(saved_problem), model_folder)
    print(json.dumps(found))
