"""Train a peer on a saved problem and save its weights and seconds; runs in the peers' environment.

    python train.py PROBLEM.npz OUT.npz --peer libmultilabel --C 100 [--nodes 0,5,9] [--threads 1]

The problem holds CSR rows without the constant feature, and each node's positive rows in CSR form.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse


def libmultilabel(X, positives, C, threads):
    """Train one-vs-rest liblinear over a pool of threads, the fastest peer that we know of."""
    from libmultilabel.linear.linear import train_1vsrest

    start = time.perf_counter()
    options = f"-s 0 -B 1 -e 1e-4 -c {C} -m {threads} -q"
    model = train_1vsrest(positives.T.tocsr(), X, options=options, verbose=False)
    seconds = time.perf_counter() - start
    return seconds, np.asarray(model.weights)


def liblinear(X, positives, C, threads):  # noqa: ARG001  (it has none)
    """Solve one node after the other with scikit-learn's liblinear, as people do by hand."""
    from sklearn.linear_model import LogisticRegression

    n_rows = X.shape[0]
    columns = []
    start = time.perf_counter()
    for node in range(positives.shape[0]):
        y = np.zeros(n_rows, dtype=bool)
        y[positives.indices[positives.indptr[node] : positives.indptr[node + 1]]] = True
        model = LogisticRegression(C=C, solver="liblinear", tol=1e-4).fit(X, y)
        columns.append(np.append(model.coef_[0], model.intercept_[0]))
    return time.perf_counter() - start, np.stack(columns, axis=1)


def hiclass(X, levels, C):
    """Train all nodes with hiclass under the paper's policy, on as many cores as there are."""
    import os

    from hiclass import LocalClassifierPerNode
    from sklearn.linear_model import LogisticRegression

    model = LocalClassifierPerNode(
        LogisticRegression(C=C, solver="liblinear", tol=1e-4),
        binary_policy="less_inclusive",
        n_jobs=os.cpu_count(),
    )
    start = time.perf_counter()
    model.fit(X, levels)
    return time.perf_counter() - start


def peak_mb():
    """Peak memory of this process alone: ru_maxrss starts from that of the process that forked."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


PEERS = {"libmultilabel": libmultilabel, "liblinear": liblinear, "hiclass": None}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem")
    parser.add_argument("out")
    parser.add_argument("--peer", choices=PEERS, required=True)
    parser.add_argument("--C", type=float, required=True)
    parser.add_argument("--nodes", default="")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    with np.load(arguments.problem) as saved:
        X = sparse.csr_matrix(
            (saved["data"].astype(np.float64), saved["indices"], saved["indptr"].astype(np.int32)),
            shape=tuple(saved["shape"]),
        )
        levels = saved["levels"]
        shape = (len(saved["positive_indptr"]) - 1, X.shape[0])
        positives = sparse.csr_matrix(
            (
                np.ones(len(saved["positive_indices"])),
                saved["positive_indices"],
                saved["positive_indptr"],
            ),
            shape=shape,
        )
    if arguments.nodes:
        positives = positives[[int(node) for node in arguments.nodes.split(",")]]
    warnings.simplefilter("ignore")
    if arguments.peer == "hiclass":
        seconds, weights = hiclass(X, levels, arguments.C), np.zeros((0, 0))
    else:
        train = PEERS[arguments.peer]
        seconds, weights = train(X, positives, arguments.C, arguments.threads)
    np.savez(arguments.out, seconds=seconds, weights=weights, peak_mb=peak_mb())


if __name__ == "__main__":
    main()
