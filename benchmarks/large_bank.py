"""One bank of a large problem on this machine's cores: its time and the memory it takes.

    python benchmarks/large_bank.py dmoz-2010 --C 1

Weights are pruned and kept as a fit keeps them, so the peak is that of a model in the making.
"""

from __future__ import annotations

import argparse
import time

import problems
from peers.train import peak_mb


def peak_gib():
    return peak_mb() / 2**10


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem", choices=["naics", "dmoz-small", "dmoz-2010", "dmoz-2012"])
    parser.add_argument("--C", type=float, default=1.0)
    arguments = parser.parse_args()
    start = time.perf_counter()
    problem = problems.load(arguments.problem)
    bank, nodes = problem.bank(), problem.nodes()
    print(
        f"{problem.name}: {problem.X.shape[0]:,} x {problem.X.shape[1]:,}, {len(nodes):,} nodes, "
        f"made in {time.perf_counter() - start:.0f} s, {peak_gib():.1f} GiB so far",
        flush=True,
    )
    start, last = time.perf_counter(), [0.0]

    def show(done, total):
        if time.perf_counter() - last[0] > 30:
            last[0] = time.perf_counter()
            print(f"{done:,} of {total:,} problems, {last[0] - start:.0f} s", flush=True)

    report, kept = problem.solve_and_keep(bank, arguments.C, show)
    seconds = time.perf_counter() - start
    print(
        f"C={arguments.C:g}: {report.n_problems:,} distinct problems in {seconds:.0f} s on "
        f"{bank.n_threads} threads, {len(report.unconverged)} not converged; {kept.nnz:,} weights "
        f"kept; peak memory {peak_gib():.1f} GiB"
    )


if __name__ == "__main__":
    main()
