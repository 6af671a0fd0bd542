"""Dense wide rows: a bank over made-up embeddings, ours against scikit-learn's LogisticRegression.

    python benchmarks/embeddings.py --out runs/bench

Rows are Gaussians around the sum of the directions along their class's path, of unit length as
sentence embeddings are. scikit-learn solves a random sample of nodes with liblinear (the same
stopping rule) and with lbfgs (its own, at the default tolerance) and is scaled to all; for equal
objectives the constant feature is a column of X for everybody. The seconds are of both cores, for
lbfgs too: NumPy's BLAS spreads its products. Several rounds, the best of each.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import problems
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from taxofit.bank.harvest import Harvest, pick_weights
from taxofit.bank.objective import objective
from taxofit.datasets import make_taxonomy_classification

SHAPE = (7, 7, 9)  # 497 nodes


def embeddings(n_rows, n_features):
    made = make_taxonomy_classification(
        n_rows, fan_out=SHAPE, n_features=n_features, sparse=False, n_inconsistent=0
    )
    X = made.X / np.linalg.norm(made.X, axis=1, keepdims=True)
    return problems.Problem("embeddings", X, made.taxonomy, made.taxonomy.nodes_of(made.y))


def solve_ours(problem, C):
    kept = {}

    def keep(nodes, _, arrays):
        kept.update(zip(nodes.tolist(), arrays["weights"].T.astype(np.float64), strict=True))

    start = time.perf_counter()
    bank = problem.bank()  # decomposes XᵀX
    report = bank.solve([C], Harvest(pick_weights, keep), nodes=problem.nodes())
    return time.perf_counter() - start, kept, report


def solve_theirs(problem, X, C, sample, solver):
    """Return seconds scaled to all nodes, and the weights of the sampled ones."""
    weights = {}
    start = time.perf_counter()
    for node in sample:
        y = np.zeros(X.shape[0], dtype=bool)
        y[problem.positives(node)] = True
        model = LogisticRegression(C=C, solver=solver, fit_intercept=False, max_iter=1000)
        weights[int(node)] = model.fit(X, y).coef_[0]
    scale = len(problem.nodes()) / len(sample)
    return (time.perf_counter() - start) * scale, weights


def objectives(problem, X, C, weights):
    found = []
    for node, w in weights.items():
        y = np.full(X.shape[0], -1.0)
        y[problem.positives(node)] = 1.0
        found.append(objective(w, X, y, C))
    return np.asarray(found)


def measure(problem, C, arguments):
    X = np.hstack([problem.X, np.ones((problem.X.shape[0], 1))])
    rng = np.random.default_rng(0)
    sample = np.sort(rng.choice(problem.nodes(), size=arguments.nodes, replace=False))
    seconds = {"ours": np.inf, "liblinear": np.inf, "lbfgs": np.inf}
    for _ in range(arguments.rounds):
        spent, ours, report = solve_ours(problem, C)
        seconds["ours"] = min(seconds["ours"], spent)
        theirs = {}
        for solver in ("liblinear", "lbfgs"):
            spent, theirs[solver] = solve_theirs(problem, X, C, sample, solver)
            seconds[solver] = min(seconds[solver], spent)
    reached = objectives(problem, X, C, {int(node): ours[int(node)] for node in sample})
    row = {"d": problem.X.shape[1], "C": C, "n_newton": report.n_iterations / report.n_problems}
    row |= {f"{name}_seconds": spent for name, spent in seconds.items()}
    for solver, weights in theirs.items():
        reference = objectives(problem, X, C, weights)
        row[f"times_faster_than_{solver}"] = seconds[solver] / seconds["ours"]
        row[f"worst_difference_to_{solver}"] = float(((reached - reference) / reference).max())
    return row


def table(results, n_rows, n_nodes, n_sampled):
    lines = [
        f"{n_rows:,} rows, {n_nodes} nodes; scikit-learn on {n_sampled} of them, scaled",
        "",
        (
            "| d | C | taxofit s | liblinear s | lbfgs s | × liblinear | × lbfgs | "
            "objective difference to liblinear, max | to lbfgs, max |"
        ),
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r['d']} | {r['C']:g} | {r['ours_seconds']:.1f} | {r['liblinear_seconds']:.0f} | "
        f"{r['lbfgs_seconds']:.0f} | {r['times_faster_than_liblinear']:.0f} | "
        f"{r['times_faster_than_lbfgs']:.1f} | {r['worst_difference_to_liblinear']:.1e} | "
        f"{r['worst_difference_to_lbfgs']:.1e} |"
        for r in results
    ]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--d", type=int, nargs="+", default=[384, 768, 1024])
    parser.add_argument("--C", type=float, nargs="+", default=[1.0, 100.0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=8, help="for scikit-learn")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    results = []
    for d in arguments.d:
        problem = embeddings(arguments.rows, d)
        for C in arguments.C:
            with warnings.catch_warnings():
                warnings.simplefilter("error", ConvergenceWarning)
                results.append(measure(problem, C, arguments))
            print(json.dumps(results[-1]), flush=True)
    found = table(results, arguments.rows, len(problem.nodes()), arguments.nodes)
    print(found)
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / "embeddings.md").write_text(found + "\n")


if __name__ == "__main__":
    main()
