"""How the cost of a bank grows with nodes and with rows, and how near it is to the memory's speed.

    python benchmarks/scaling.py --out runs/scaling
    python benchmarks/scaling.py --problem dmoz-2010 --C 1 --nodes 1024

Four sizes each, doubling; every size is solved several times, sizes taking turns, and the best
counts. Growth of at most 2 for each doubling is linear, and so is a power of 1 over all sizes. Rows
are doubled in two ways: as a sample of all, in which every node gets twice the rows, and leaf by
leaf, where nodes keep theirs and others come to stand against them. Whole fits, with C, flattening
and pruning chosen, are timed over such samples as well, each with the features that occur in it.
The last lines compare the bytes that the products with X must move with what a plain copy moves per
second on the same cores.
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

from taxofit import TaxonomyClassifier
from taxofit.bank.harvest import Harvest, pick_nothing
from taxofit.bank.private_features import SplitFeatures
from taxofit.bank.simd import LANES

N_SIZES = 4
WAYS = ("nodes", "rows", "rows with their leaves", "rows of whole fits")


def seconds_of(problem, nodes, C):
    """Return what a bank takes, the preparation of its rows included."""
    start = time.perf_counter()
    bank = problem.bank()
    bank.solve([C], Harvest(pick_nothing, lambda *_: None), nodes=nodes)
    return time.perf_counter() - start


def with_rows(problem, rows):
    rows = np.sort(rows)
    return problems.Problem(problem.name, problem.X[rows], problem.taxonomy, problem.row_leaf[rows])


def some_of(nodes, most, rng):
    """Return all nodes, or that many of them at random, in order."""
    return np.sort(rng.permutation(nodes)[:most])


def by_nodes(problem, C, rounds, most, rng):
    """Random sets of distinct nodes that each hold the ones before."""
    nodes = rng.permutation(problem.nodes())[:most]
    sizes = [len(nodes) // 2**k for k in range(N_SIZES)][::-1]
    best = dict.fromkeys(sizes, np.inf)
    for _ in range(rounds):
        for size in sizes:
            best[size] = min(best[size], seconds_of(problem, np.sort(nodes[:size]), C))
    return best


def by_rows(problem, C, rounds, most, rng):
    """Solve the same problems over an eighth, a quarter, half and all of the rows.

    Nodes with the same rows are one problem; those that are one over the fewest rows count once.
    """
    parts = nested_parts(problem, rng.permutation(problem.X.shape[0]))
    smallest = next(iter(parts.values()))
    distinct = {smallest.positives(node).tobytes(): node for node in smallest.nodes()}
    nodes = np.fromiter(distinct.values(), dtype=np.int32)
    return best_of_parts(parts, some_of(nodes, most, rng), C, rounds)


def by_leaves(problem, C, rounds, most, rng):
    """Solve the same leaves, with all their rows, against those of more and more other leaves."""
    shuffled = rng.permutation(problem.taxonomy.n_nodes)[problem.row_leaf]
    order = np.argsort(shuffled, kind="stable")
    parts = nested_parts(problem, order)
    n_rows = next(iter(parts))
    leaves = np.setdiff1d(problem.row_leaf[order[:n_rows]], problem.row_leaf[order[n_rows:]])
    return best_of_parts(parts, some_of(leaves.astype(np.int32), most, rng), C, rounds)


def by_whole_fits(problem, rounds, rng):
    """Fit the classifier as it is by default over samples like those of :func:`by_rows`."""
    parts = nested_parts(problem, rng.permutation(problem.X.shape[0]))
    best = dict.fromkeys(parts, np.inf)
    for _ in range(rounds):
        for size, part in parts.items():
            occurs = np.bincount(part.X.indices, minlength=part.X.shape[1]) > 0
            X, y = part.X[:, occurs], [part.taxonomy.labels[leaf] for leaf in part.row_leaf]
            start = time.perf_counter()
            TaxonomyClassifier(part.taxonomy, device="cpu").fit(X, y)
            best[size] = min(best[size], time.perf_counter() - start)
    return best


def nested_parts(problem, order):
    """Return problems over an eighth, a quarter, half and all of the rows, by their number."""
    sizes = [len(order) // 2**k for k in range(N_SIZES)][::-1]
    return {size: with_rows(problem, order[:size]) for size in sizes}


def best_of_parts(parts, nodes, C, rounds):
    best = dict.fromkeys(parts, np.inf)
    for _ in range(rounds):
        for size, part in parts.items():
            best[size] = min(best[size], seconds_of(part, nodes, C))
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


def product_traffic(problem, nodes, C):
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
    bank.solve([C], Harvest(pick, lambda *_: None), nodes=nodes)
    seconds = time.perf_counter() - start
    return sum(n_products) / 2 / LANES * n_shared * 2 * (8 + 64) / seconds


def ways_in(found):
    return [what for what in WAYS if what in found]


def growth(best):
    values = list(best.values())
    return [later / earlier for earlier, later in pairwise(values)]


def exponent(best):
    """Return the power of the size that seconds grow with, by least squares over all sizes."""
    sizes, seconds = np.log([float(size) for size in best]), np.log(list(best.values()))
    return float(np.polyfit(sizes, seconds, 1)[0])


def figure(found):
    """Draw seconds by size: growth in proportion is dotted, from the smallest size on."""
    from plotly.subplots import make_subplots

    ways = ways_in(found)
    figure = make_subplots(
        rows=2,
        cols=2,
        subplot_titles=[
            f"{what}: like size<sup>{exponent(found[what]):.2f}</sup>" for what in ways
        ],
        horizontal_spacing=0.16,
        vertical_spacing=0.14,
    )
    for place, what in enumerate(ways):
        sizes = [int(size) for size in found[what]]
        seconds = list(found[what].values())
        at = {"row": 1 + place // 2, "col": 1 + place % 2}
        linear = [seconds[0] * size / sizes[0] for size in sizes]
        figure.add_scatter(
            x=sizes,
            y=linear,
            name="in proportion",
            line={"dash": "dot", "color": "#888"},
            showlegend=place == 0,
            **at,
        )
        labels = ["", *(f"× {ratio:.2f}" for ratio in growth(found[what]))]
        figure.add_scatter(
            x=sizes,
            y=seconds,
            name="measured",
            line_color="#1f5fa8",
            mode="lines+markers+text",
            text=labels,
            textposition="bottom right",
            cliponaxis=False,
            showlegend=place == 0,
            **at,
        )
        figure.update_xaxes(
            type="log", tickvals=sizes, ticktext=[f"{size:,}" for size in sizes], **at
        )
    ticks = [digit * 10.0**power for power in range(-3, 4) for digit in (1, 2, 5)]
    labels = [f"{tick:g}" for tick in ticks]
    figure.update_yaxes(type="log", tickvals=ticks, ticktext=labels, title="seconds")
    title = f"{found['problem']}, C = {found['C']:g}: what each doubling costs"
    return figure.update_layout(title=title, template="plotly_white", width=1000, height=800)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problem", default="naics", choices=["naics", "dmoz-small", "dmoz-2010"])
    parser.add_argument("--C", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--nodes", type=int, help="that many at random, and no whole fits")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    problem = problems.load(arguments.problem)
    how = (arguments.C, arguments.rounds, arguments.nodes, rng)
    nodes = some_of(problem.nodes(), arguments.nodes, rng)
    for part in nested_parts(problem, np.arange(problem.X.shape[0])).values():
        seconds_of(part, nodes[:2], arguments.C)  # compile
    found = {
        "problem": problem.name,
        "C": arguments.C,
        "nodes": by_nodes(problem, *how),
        "rows": by_rows(problem, *how),
        "rows with their leaves": by_leaves(problem, *how),
        "copy_bytes_per_second": copy_bandwidth(problem.bank().n_threads),
        "product_bytes_per_second": product_traffic(problem, nodes, arguments.C),
    }
    if arguments.nodes is None:
        found["rows of whole fits"] = by_whole_fits(problem, arguments.rounds, rng)
    for what in ways_in(found):
        shown = ", ".join(f"{size:,}: {s:.2f} s" for size, s in found[what].items())
        ratios = ", ".join(f"{ratio:.2f}" for ratio in growth(found[what]))
        print(
            f"{what}: {shown}; each doubling costs {ratios} times as much; in all it grows like "
            f"size^{exponent(found[what]):.2f}"
        )
    copy, products = found["copy_bytes_per_second"], found["product_bytes_per_second"]
    print(
        f"products with X move {products / 1e9:.1f} GB/s, all other work included in the time; "
        f"a plain copy moves {copy / 1e9:.1f} GB/s: {products / copy:.0%}"
    )
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        name = f"scaling-{problem.name}-C{arguments.C:g}"
        (arguments.out / f"{name}.json").write_text(json.dumps(found, indent=2))
        figure(found).write_html(arguments.out / f"{name}.html")


if __name__ == "__main__":
    main()
