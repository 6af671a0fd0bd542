"""How the cost of a bank grows with nodes and with rows, and how near it is to the memory's speed.

    python benchmarks/scaling.py --out runs/scaling

Four sizes each, doubling; every size is solved several times, sizes taking turns, and the best
counts. Growth of at most 2 for each doubling is linear. The last lines compare the bytes that the
products with X must move with what a plain copy moves per second on the same cores.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import problems

from taxofit.bank.harvest import Harvest, pick_nothing
from taxofit.bank.private_features import SplitFeatures
from taxofit.bank.simd import LANES

N_SIZES = 4


def seconds_of(problem, nodes, C):
    bank = problem.bank()
    start = time.perf_counter()
    bank.solve([C], Harvest(pick_nothing, lambda *_: None), nodes=nodes)
    return time.perf_counter() - start


def with_rows(problem, rows):
    rows = np.sort(rows)
    return problems.Problem(problem.name, problem.X[rows], problem.taxonomy, problem.row_leaf[rows])


def by_nodes(problem, C, rounds, rng):
    """Random sets of distinct nodes that each hold the ones before."""
    nodes = rng.permutation(problem.nodes())
    sizes = [len(nodes) // 2**k for k in range(N_SIZES)][::-1]
    best = dict.fromkeys(sizes, np.inf)
    for _ in range(rounds):
        for size in sizes:
            best[size] = min(best[size], seconds_of(problem, np.sort(nodes[:size]), C))
    return best


def by_rows(problem, C, rounds, rng):
    """Solve the same problems over an eighth, a quarter, half and all of the rows.

    Nodes with the same rows are one problem; those that are one over the fewest rows count once.
    """
    sizes = [problem.X.shape[0] // 2**k for k in range(N_SIZES)][::-1]
    shuffled = rng.permutation(problem.X.shape[0])  # each size holds the rows of the one before
    parts = {size: with_rows(problem, shuffled[:size]) for size in sizes}
    smallest = parts[sizes[0]]
    distinct = {smallest.positives(node).tobytes(): node for node in smallest.nodes()}
    nodes = np.sort(np.fromiter(distinct.values(), dtype=np.int32))
    best = dict.fromkeys(sizes, np.inf)
    for _ in range(rounds):
        for size in sizes:
            best[size] = min(best[size], seconds_of(parts[size], nodes, C))
    return best


def copy_bandwidth(n_threads):
    """Bytes per second, read and written, of copying 64 MB arrays on this many threads."""
    pairs = [(np.ones(8_000_000), np.empty(8_000_000)) for _ in range(n_threads)]
    best = np.inf
    with ThreadPoolExecutor(n_threads) as pool:
        for _ in range(5):
            start = time.perf_counter()
            list(pool.map(lambda pair: np.copyto(pair[1], pair[0]), pairs))
            best = min(best, time.perf_counter() - start)
    return n_threads * 2 * 64e6 / best


def product_traffic(problem, C):
    """Bytes per second that the products of a bank move, counting each shared entry of X once.

    For sixteen problems an entry is 8 bytes of X and a line of 64 bytes read for X v, and the same
    again for the product with its transpose.
    """
    bank = problem.bank()
    n_shared = SplitFeatures.of(bank.rows).shared.nnz
    n_products = []

    def pick(_nodes, _C, solution):
        n_products.append(solution.n_products)
        return {}

    start = time.perf_counter()
    bank.solve([C], Harvest(pick, lambda *_: None))
    seconds = time.perf_counter() - start
    return sum(n_products) / 2 / LANES * n_shared * 2 * (8 + 64) / seconds


def growth(best):
    values = list(best.values())
    return [later / earlier for earlier, later in pairwise(values)]


def figure(found):
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    figure = make_subplots(cols=2, subplot_titles=["nodes", "rows"])
    for column, what in enumerate(("nodes", "rows"), start=1):
        sizes = [int(size) for size in found[what]]
        seconds = list(found[what].values())
        figure.add_scatter(x=sizes, y=seconds, name="measured", row=1, col=column)
        linear = [seconds[-1] * size / sizes[-1] for size in sizes]
        figure.add_scatter(x=sizes, y=linear, name="linear", line_dash="dot", row=1, col=column)
    figure.update_xaxes(type="log").update_yaxes(type="log", title="seconds")
    return go.Figure(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problem", default="naics", choices=["naics", "dmoz-small"])
    parser.add_argument("--C", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    problem = problems.load(arguments.problem)
    seconds_of(problem, problem.nodes()[:2], arguments.C)  # compile
    found = {
        "problem": problem.name,
        "C": arguments.C,
        "nodes": by_nodes(problem, arguments.C, arguments.rounds, rng),
        "rows": by_rows(problem, arguments.C, arguments.rounds, rng),
        "copy_bytes_per_second": copy_bandwidth(problem.bank().n_threads),
        "product_bytes_per_second": product_traffic(problem, arguments.C),
    }
    for what in ("nodes", "rows"):
        shown = ", ".join(f"{size:,}: {s:.2f} s" for size, s in found[what].items())
        ratios = ", ".join(f"{ratio:.2f}" for ratio in growth(found[what]))
        print(f"{what}: {shown}; each doubling costs {ratios} times as much")
    copy, products = found["copy_bytes_per_second"], found["product_bytes_per_second"]
    print(
        f"products with X move {products / 1e9:.1f} GB/s, all other work included in the time; "
        f"a plain copy moves {copy / 1e9:.1f} GB/s: {products / copy:.0%}"
    )
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / "scaling.json").write_text(json.dumps(found, indent=2))
        figure(found).write_html(arguments.out / "scaling.html")


if __name__ == "__main__":
    main()
