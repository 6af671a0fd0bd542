"""Path score against flat LR and greedy Global-INF, on the five data sets of docs/prediction.md.

    python benchmarks/path_score.py --data ../shared/data --runs 5 --out runs/bench

Each run has its own validation rows; C and what goes with it (flattening, γ, width of the beam) are
chosen on them by macro-F1, then all nodes are fitted on all training rows and scored on test rows.
CLEF is there twice: with its features as they are, and standardised as `taxofit reproduce` has it.
The interval says what the difference in macro-F1 to flat LR would be on other test rows like these:
the middle 95 % of 1,000 samples of them with replacement.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
from pathlib import Path

import numpy as np

from taxofit.bank.evidence import gather_evidence
from taxofit.bank.node_bank import NodeBank
from taxofit.experiment.cache import PieceCache
from taxofit.experiment.problem import Encoding, load_problem
from taxofit.experiment.protocol import Protocol
from taxofit.experiment.refits import refit
from taxofit.experiment.splits import split_problem
from taxofit.flattening import FlattenAll, GlobalINF, KeepAll
from taxofit.metrics import macro_f1_nodes, micro_f1_nodes
from taxofit.predict.search import find_in_scores, log_sigmoid
from taxofit.predict.walk import walk_scores
from taxofit.selection import Selector

DATA_SETS = ("clef", "clef-standardised", "diatoms", "naics", "20news", "dmoz-small")


def load(name, data):
    if name.startswith("clef"):
        return load_problem("clef", data, encoding=Encoding() if name == "clef" else None)
    return load_problem(name, data)


def choose(problem, protocol, seed):
    """Return what each method chooses on one split."""
    rows, kept, held_out = split_problem(problem, protocol, seed)
    leaf = problem.row_leaf
    bank = NodeBank(
        rows.take(kept),
        problem.taxonomy,
        leaf[kept],
        settings=protocol.solver,
        n_threads=protocol.n_jobs,
    )
    evidence = gather_evidence(bank, rows.take(held_out), leaf[held_out], protocol.Cs)
    selector = Selector(bank, evidence)
    return {
        "flat LR": selector.select(FlattenAll()),
        "Global-INF, greedy": selector.select(GlobalINF()),
        "path score": selector.select_beam(KeepAll()),
    }


def predict(problem, selection, scores):
    """Return the leaves to which a selection takes the test rows."""
    flattened, kept = problem.taxonomy.without(selection.choice.removed)
    if selection.search.kind == "greedy":
        reached = walk_scores(scores, flattened, kept)
    else:
        logs = log_sigmoid(scores)
        reached = find_in_scores(logs, flattened, selection.search, column=kept)[0][:, 0]
    return kept[reached]


def macro_f1(problem, predicted, rows=slice(None)):
    true, is_leaf = problem.test_leaf[rows], problem.taxonomy.is_leaf
    return 100 * macro_f1_nodes(true, predicted[rows], is_leaf, problem.classes)


def interval_of_difference(problem, ours, theirs, n_samples=1000):
    """Return the middle 95 % of the mean difference in macro-F1 over samples of the test rows."""
    rng, n_rows = np.random.default_rng(0), problem.test_leaf.size
    differences = [
        np.mean([macro_f1(problem, a, rows) - macro_f1(problem, b, rows)
                 for a, b in zip(ours, theirs, strict=True)])
        for rows in (rng.integers(n_rows, size=n_rows) for _ in range(n_samples))
    ]  # fmt: skip
    return np.percentile(differences, [2.5, 97.5]).round(2).tolist()


def compare(name, data, n_runs, n_threads):
    problem = load(name, data)
    protocol = Protocol(n_jobs=n_threads)
    runs = [choose(problem, protocol, seed) for seed in range(n_runs)]
    Cs = {selection.C for run in runs for selection in run.values()}
    pieces = refit(problem, protocol, Cs, PieceCache(None, {}))
    found, predicted = {}, {}
    for method in runs[0]:
        predicted[method] = [
            predict(problem, run[method], pieces[run[method].C]["scores"]) for run in runs
        ]
        found[method] = {
            "micro_f1": [
                round(100 * micro_f1_nodes(problem.test_leaf, leaves), 2)
                for leaves in predicted[method]
            ],
            "macro_f1": [round(macro_f1(problem, leaves), 2) for leaves in predicted[method]],
            "chosen": [
                f"C={run[method].C:g} γ={run[method].search.gamma:g} w={run[method].search.width}"
                for run in runs
            ],
        }
    found["interval"] = interval_of_difference(
        problem, predicted["path score"], predicted["flat LR"]
    )
    return name, found


def line(name, found):
    """Return a row of the table: means over runs."""
    cells = [
        f"{np.mean(found[method]['micro_f1']):.2f} / {np.mean(found[method]['macro_f1']):.2f}"
        for method in ("flat LR", "Global-INF, greedy", "path score")
    ]
    low, high = found["interval"]
    return f"| {name} | " + " | ".join(cells) + f" | {low:+.2f} to {high:+.2f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=DATA_SETS)
    parser.add_argument("--data", default=os.environ.get("TAXOFIT_DATA", "../shared/data"))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--out", type=Path, default=Path("runs/bench"))
    given = parser.parse_args()
    work = [(name, given.data, given.runs, given.threads) for name in given.names]
    if given.processes > 1:
        with multiprocessing.get_context("spawn").Pool(given.processes) as pool:
            results = dict(pool.starmap(compare, work))
    else:
        results = dict(compare(*one) for one in work)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "path_score.json").write_text(json.dumps(results, indent=1, ensure_ascii=False))
    print(
        "| µF1 / MF1, mean of runs | flat LR | Global-INF, greedy | path score "
        "| path score - flat LR, MF1 |"
    )
    print("|---|---|---|---|---|")
    for name, found in results.items():
        print(line(name, found))


if __name__ == "__main__":
    main()
