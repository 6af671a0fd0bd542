"""What the paper's protocol on CLEF costs with shared banks, against liblinear per node and method.

Ours is measured in full: five splits, seven C, every flattening method, refits and tests, from rows
in memory (ECOC, which shares nothing, is left out on both sides). The other way solves every node
of every method's taxonomy with scikit-learn's liblinear, once for each split and C, and once more
on all rows at the chosen C. Its time is extrapolated from a sample of nodes, C and splits, as
printed. Thresholds are tried for free there as well, so the ratio is a lower bound.

    python benchmarks/reproduction_cost.py DATA_FOLDER [--nodes 8] [--quick]
"""

import argparse
import os
import platform
import time
import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from taxofit.bank.rows import Rows, node_targets
from taxofit.experiment.problem import load_problem
from taxofit.experiment.protocol import METHODS, Protocol
from taxofit.experiment.run import run_protocol
from taxofit.experiment.splits import split_problem
from taxofit.taxonomy import Taxonomy


def seconds_of_liblinear(
    taxonomy: Taxonomy, rows: Rows, row_leaf: NDArray[np.int32], node: int, C: float, tol: float
) -> float:
    signs = node_targets(taxonomy, row_leaf, np.array([node])).signs()[:, 0]
    model = LogisticRegression(
        solver="liblinear", C=C, tol=tol, fit_intercept=False, max_iter=1000
    )  # rows have the constant column already
    began = time.perf_counter()
    model.fit(rows.X, signs)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", help="the folder that holds CLEF")
    parser.add_argument("--nodes", type=int, default=8, help="nodes in liblinear's sample")
    parser.add_argument("--quick", action="store_true", help="two splits and three C")
    options = parser.parse_args()
    methods = tuple(method for method in METHODS if method != "ecoc")
    protocol = Protocol(methods=methods, measures_time=False)
    if options.quick:
        protocol = Protocol(n_runs=2, Cs=(0.1, 1.0, 10.0), methods=methods, measures_time=False)
    problem = load_problem("clef", options.data)
    taxonomy = problem.taxonomy
    run_protocol(problem, Protocol(n_runs=1, Cs=(0.001,), methods=methods, measures_time=False))

    print(
        f"CLEF, {problem.encoding}; {protocol.n_runs} splits, {len(protocol.Cs)} C; "
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    )
    began = time.perf_counter()
    results = run_protocol(problem, protocol)
    ours = time.perf_counter() - began
    print(f"taxofit, all of it measured: {ours:.1f} s")

    rng = np.random.default_rng(0)
    sample = np.sort(rng.choice(np.arange(1, taxonomy.n_nodes), options.nodes, replace=False))
    rows, kept, _ = split_problem(problem, protocol, protocol.seed)
    split, leaves = rows.take(kept), problem.row_leaf[kept]
    per_C = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for C in protocol.Cs:
            times = [
                seconds_of_liblinear(taxonomy, split, leaves, int(node), C, protocol.tol)
                for node in sample
            ]
            per_C[C] = float(np.mean(times))
            print(f"  liblinear, C={C:g}: {1000 * per_C[C]:.1f} ms a node")
    grid = sum(per_C.values())
    n_models, theirs = 0, 0.0
    for result in results["results"]:
        # INF methods and MTA need every node to judge; the others train the nodes they keep
        n_kept = taxonomy.n_nodes - 1 - result["n_removed"]
        judges_all = result["method"] in {"mta", "level-inf", "global-inf"}
        n_validated = taxonomy.n_nodes - 1 if judges_all else n_kept
        n_models += n_validated * len(protocol.Cs) + n_kept
        theirs += n_validated * grid + n_kept * per_C[result["C"]] / (1 - 0.1)
    print(
        f"liblinear per node and method: {theirs:.1f} s on one core, {n_models} models, "
        f"extrapolated from {options.nodes} of {taxonomy.n_nodes - 1} nodes x "
        f"{len(protocol.Cs)} C x 1 split"
    )
    print(f"ratio: {theirs / ours:.1f} (at least 5 is asked for)")
    if (os.cpu_count() or 1) > 1:
        halved = theirs / (os.cpu_count() or 1)
        print(f"ratio if liblinear were spread over all cores without loss: {halved / ours:.1f}")

    choosing = [r for r in results["timing"] if r["method"] == "global-inf"]
    bank = float(np.mean([r["bank_seconds"] for r in choosing]))
    psi = float(np.mean([r["choice_seconds"] for r in choosing]))
    print(
        f"choosing among 31 psi at {len(protocol.Cs)} C: {1000 * psi:.0f} ms, "
        f"{100 * psi / bank:.2f} % of the {bank:.1f} s of the split's bank (below 5 is asked for)"
    )


if __name__ == "__main__":
    main()
