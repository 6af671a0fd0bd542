"""The whole automatic fit (seven C, evidence, ψ, refit) against one bank of LibMultiLabel at one C.

    python benchmarks/whole_fit.py --peers .peers/bin/python

Also how much of the fit goes into choosing among the 31 ψ, which walks scores and solves nothing.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import problems
from bank import solve_peer

from taxofit import TaxonomyClassifier
from taxofit.bank.harvest import Harvest, pick_nothing
from taxofit.flattening import GlobalINF


def fit(problem):
    labels = np.asarray([problem.taxonomy.labels[leaf] for leaf in problem.row_leaf], dtype=object)
    spent = {"choosing": 0.0}
    choose = GlobalINF.choose

    def timed(self, case):
        start = time.perf_counter()
        choice = choose(self, case)
        spent["choosing"] += time.perf_counter() - start
        return choice

    GlobalINF.choose = timed
    try:
        start = time.perf_counter()
        classifier = TaxonomyClassifier(problem.taxonomy).fit(problem.X, labels)
        spent["fit"] = time.perf_counter() - start
    finally:
        GlobalINF.choose = choose
    return spent, classifier


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problem", default="naics", choices=["naics", "dmoz-small"])
    parser.add_argument("--peers", default="python")
    parser.add_argument("--C", type=float, default=100.0, help="of the peer's bank")
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    problem = problems.load(arguments.problem)
    nodes = problem.nodes()
    problem.bank().solve([1.0], Harvest(pick_nothing, lambda *_: None), nodes=nodes[:2])  # compile
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "problem.npz"
        problem.save_for_peers(file)
        for repeat in range(arguments.rounds):
            spent, classifier = fit(problem)
            ours.append(spent)
            threads = 1 + repeat % 2
            timing, _ = solve_peer(
                arguments.peers, file, "libmultilabel", arguments.C, nodes, len(nodes), threads
            )
            theirs.append(timing["seconds"])
            print(f"fit {spent['fit']:.1f} s, LibMultiLabel {timing['seconds']:.1f} s", flush=True)
    best = min(ours, key=lambda spent: spent["fit"])
    print(
        f"whole fit {best['fit']:.1f} s (C={classifier.C_:g}, psi={classifier.psi_}, "
        f"{len(classifier.removed_)} removed); choosing psi at seven C {best['choosing']:.2f} s = "
        f"{100 * best['choosing'] / best['fit']:.1f} %; one LibMultiLabel bank at "
        f"C={arguments.C:g} {min(theirs):.1f} s; ratio {min(theirs) / best['fit']:.2f}"
    )


if __name__ == "__main__":
    main()
