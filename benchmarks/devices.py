"""Whether a GPU and the CPU find the same models: objectives of all nodes, and predictions.

    PYTHONPATH=src python3 benchmarks/devices.py --device cuda
    python benchmarks/devices.py naics --C 1 --device torch-cpu   # the GPU's code on the CPU

Every node with rows is solved on both at the classifier's settings; objectives are computed anew
from the weights, in float64. Predictions are those of the classifier for rows held out.
"""

from __future__ import annotations

import argparse

import numpy as np
import problems

from taxofit import TaxonomyClassifier
from taxofit.bank.harvest import Harvest
from taxofit.bank.objective import log_loss
from taxofit.bank.split import split_rows
from taxofit.datasets import ColumnScaler, data_folder, load_benchmark

TEXT = ("naics", "dmoz-small")
IMAGES = ("clef", "diatoms")


def load(name):
    if name in TEXT:
        return problems.load(name)
    train, _ = load_benchmark(name, data_folder() or problems.DEFAULT_DATA)
    X = train.X if name == "clef" else ColumnScaler().fit_transform(train.X)
    return problems.Problem(name, X, train.taxonomy, train.taxonomy.nodes_of(train.y))


def objectives(problem, device, C):
    """Return f of every node with rows, 0 for others, and how many did not converge."""
    bank, found = problem.bank(device=device), np.zeros(problem.taxonomy.n_nodes)
    X = bank.rows.X.astype(np.float64)

    def pick(nodes, C, solution):
        weights = solution.weights.astype(np.float64)
        values = 0.5 * np.einsum("ij,ij->j", weights, weights)
        margins = -(X @ weights)
        for k, node in enumerate(nodes):
            margins[problem.positives(node), k] *= -1
            values[k] += C * log_loss(margins[:, k]).sum()
        return {"values": values}

    def receive(nodes, _C, arrays):
        found[nodes] = arrays["values"]

    report = bank.solve([C], Harvest(pick, receive), nodes=problem.nodes())
    return found, len(report.unconverged)


def predictions(problem, device, C):
    """Return what the classifier says of a tenth of the rows, trained on the others."""
    y = np.array([problem.taxonomy.labels[leaf] for leaf in problem.row_leaf], dtype=object)
    kept, held_out = split_rows(problem.X, problem.row_leaf, np.ones(y.size), fraction=0.1, seed=0)
    model = TaxonomyClassifier(problem.taxonomy, flattening="td-lr", C=C, device=device)
    return model.fit(problem.X[kept], y[kept]).predict(problem.X[held_out])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", default=[*TEXT, *IMAGES])
    parser.add_argument("--C", type=float, nargs="+", default=[10.0**k for k in range(-3, 4)])
    parser.add_argument("--device", default="cuda", choices=["cuda", "torch-cpu"])
    arguments = parser.parse_args()
    for name in arguments.problems:
        problem = load(name)
        nodes = problem.nodes()
        for C in arguments.C:
            (here, left_here), (there, left_there) = (
                objectives(problem, device, C) for device in ("cpu", arguments.device)
            )
            apart = there[nodes] / here[nodes] - 1
            worst = nodes[np.argmax(np.abs(apart))]
            same = predictions(problem, "cpu", C) == predictions(problem, arguments.device, C)
            print(
                f"{name}, C = {C:g}: {nodes.size} objectives differ by {apart.min():.1e} to "
                f"{apart.max():.1e}, most for a node of {problem.positives(worst).size} rows; "
                f"{np.sum(np.abs(apart) > 1e-5)} by more than 1e-5; not converged: {left_here} and "
                f"{left_there}; predictions the same: {same.mean():.2%} of {same.size}",
                flush=True,
            )


if __name__ == "__main__":
    main()
