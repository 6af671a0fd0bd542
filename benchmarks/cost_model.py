"""What blocks of nodes cost, a model of it by least squares, and runs that the model foretells.

    python benchmarks/cost_model.py

Made-up web directories of several shapes are solved as a fit solves them, 256 nodes at all seven C
on one thread; CPU time and passes at each C are noted and the form that `taxofit.bank.cost` states
is fitted to them. The last lines are runs that were not used to fit it:
nodes of a directory three times as large as any measured, and whole fits, each in a process of its
own, whose CPU time and peak memory stand beside what the model says.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

from taxofit import TaxonomyClassifier
from taxofit.bank import cost
from taxofit.bank.columns import prune_columns
from taxofit.bank.harvest import Harvest
from taxofit.bank.node_bank import NodeBank
from taxofit.bank.rows import Rows, node_targets
from taxofit.bank.split import split_rows
from taxofit.datasets.web_directory import DIRECTORY_SIZES, make_web_directory
from taxofit.selection import C_GRID, VALIDATION_FRACTION

SMALL, LARGE = DIRECTORY_SIZES["dmoz-small"], DIRECTORY_SIZES["dmoz-2010"]
MEASURED = {
    "small / 2": SMALL.scaled(0.5),
    "small": SMALL,
    "2010 / 20": LARGE.scaled(0.05),
    "2010 / 10": LARGE.scaled(0.1),
    "2010 / 5": LARGE.scaled(0.2),
    "long rows": replace(SMALL.scaled(0.5), words_per_row=600.0),
    "short rows": replace(LARGE.scaled(0.15), words_per_row=12.0, n_features=20_000),
    "wide": replace(SMALL, n_features=150_000),
}
FORETOLD_BLOCK = ("2010 / 1.6", LARGE.scaled(0.6), (1.0, 10.0))
FORETOLD_FITS = {
    "2012 / 40": DIRECTORY_SIZES["dmoz-2012"].scaled(0.025),
    "small / 1.6": SMALL.scaled(0.6),
}
WARM_SHARE = 0.3  # as a fit prunes what the refit starts from
COLUMNS = "{:12} {:>8} {:>10} {:>8} {:>6} {:>7} {:>9} {:>9} {:>6}"


@dataclass(frozen=True)
class Block:
    """Some nodes, solved and judged at one C."""

    name: str
    n_rows: int
    n_entries: int
    n_features: int
    n_nodes: int
    C: float
    passes: float
    cpu_seconds: float

    def work(self, passes=None):
        passes = self.passes if passes is None else passes
        work = cost.work_of(self.n_rows, self.n_entries, self.n_features, passes)
        return self.n_nodes * np.array(work)


def measure(name, size, Cs=C_GRID):
    """Solve random nodes at every C and return what each C took."""
    train, _ = make_web_directory(size)
    taxonomy, leaf = train.taxonomy, train.taxonomy.nodes_of(train.y)
    rows = Rows.prepare(train.X)
    training, held_out = split_rows(rows.X, leaf, rows.weight, fraction=VALIDATION_FRACTION, seed=0)
    judged, bank = rows.take(held_out), NodeBank(rows.take(training), taxonomy, leaf[training],
                                                 n_threads=1)  # fmt: skip
    chosen = np.random.default_rng(0).permutation(np.arange(1, taxonomy.n_nodes))
    nodes = np.sort(chosen[: cost.BLOCK]).astype(np.int32)
    blocks = []
    for C in Cs:
        solved = []

        def note(nodes, _, solution, solved=solved):
            solution.judge(judged, node_targets(taxonomy, leaf[held_out], nodes))
            if bank.wants_starts:
                prune_columns(solution.weights, WARM_SHARE)
            solved.append((solution.converged.size, solution.n_products / 2))
            return {}

        for _ in range(2):  # once to compile, and to find where all begin
            solved.clear()
            start = time.process_time()
            bank.solve([C], Harvest(note, lambda *_: None), nodes=nodes)
            seconds = time.process_time() - start
        n_solved, n_passes = np.sum(solved, axis=0)
        blocks.append(
            Block(
                name,
                n_rows=len(training),
                n_entries=int(bank.rows.X.nnz) - len(training),
                n_features=size.n_features,
                n_nodes=int(n_solved),
                C=C,
                passes=n_passes / n_solved,
                cpu_seconds=seconds,
            )
        )
    return blocks


def fit_passes(blocks):
    """Return p of every C, the mean in logarithms, and the residual's size."""
    logarithms = {C: [np.log(block.passes) for block in blocks if block.C == C] for C in C_GRID}
    passes = {C: round(float(np.exp(np.mean(of_C))), 1) for C, of_C in logarithms.items()}
    residuals = [np.log(passes[block.C] / block.passes) for block in blocks]
    return passes, float(np.std(residuals))


def fit_seconds(blocks):
    """Return a, b, c and d, none negative, by least squares of relative errors."""
    design = np.array([block.work() / block.cpu_seconds for block in blocks])
    found, _ = nnls(design, np.ones(len(blocks)))
    return tuple(found.tolist()), design @ found


def fit_whole(size, answer):
    """Fit a directory as a user does, and tell what it took."""
    train, _ = make_web_directory(size)
    small, _ = make_web_directory(SMALL.scaled(0.02))
    TaxonomyClassifier(small.taxonomy, n_jobs=1, device="cpu").fit(small.X, small.y)  # compile
    before = _resident_bytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak starts anew
    start = time.process_time()
    model = TaxonomyClassifier(train.taxonomy, n_jobs=1, device="cpu").fit(train.X, train.y)
    answer.put(
        {
            "cpu_seconds": time.process_time() - start,
            "memory_bytes": _resident_bytes("VmHWM") - before,
            "model_bytes": sum(array.nbytes for array in model.weights_.to_arrays().values()),
            "C": model.C_,
            "n_entries": int(train.X.nnz),
        }
    )


def _resident_bytes(field):
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * int(status.split(f"{field}:")[1].split()[0])


def in_its_own_process(size):
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    process = context.Process(target=fit_whole, args=(size, answer))
    process.start()
    taken = answer.get()
    process.join()
    return taken


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for the figures as JSON")
    out = parser.parse_args().out
    print(COLUMNS.format("directory", "rows", "entries", "features", "C", "passes", "CPU s",
                         "model s", "ratio"))  # fmt: skip
    blocks = [block for name, size in MEASURED.items() for block in measure(name, size)]
    seconds, ratios = fit_seconds(blocks)
    passes, residual = fit_passes(blocks)
    for block, ratio in zip(blocks, ratios, strict=True):
        show(block, block.cpu_seconds * ratio)
    spread = float(np.sqrt(np.mean((ratios - 1) ** 2)))
    print(f"\nPASSES = {passes}  # residual {residual:.0%}")
    print(f"SECONDS = ({', '.join(f'{value:.2g}' for value in seconds)})  # residual {spread:.0%}")
    cost.PASSES, cost.SECONDS = passes, seconds

    print("\nnot used to fit the model, passes foretold too:")
    name, size, Cs = FORETOLD_BLOCK
    foretold = measure(name, size, Cs)
    for block in foretold:
        show(block, float(block.work(cost.passes_at(block.C)) @ seconds))
    fits = {name: foretell(name, size) for name, size in FORETOLD_FITS.items()}
    if out:
        out.mkdir(parents=True, exist_ok=True)
        figures = {"blocks": [asdict(block) for block in [*blocks, *foretold]], "fits": fits}
        (out / "cost_model.json").write_text(json.dumps(figures, indent=2), encoding="utf-8")


def show(block, modelled):
    print(
        COLUMNS.format(
            block.name, f"{block.n_rows:,}", f"{block.n_entries:,}", f"{block.n_features:,}",
            f"{block.C:g}", f"{block.passes:.1f}", f"{block.cpu_seconds:.2f}", f"{modelled:.2f}",
            f"{modelled / block.cpu_seconds:.2f}",
        ),
        flush=True,
    )  # fmt: skip


def foretell(name, size):
    taken = in_its_own_process(size)
    wanted = cost.estimate_fit(
        cost.FitSize(
            n_rows=size.n_train,
            n_entries=taken["n_entries"],
            n_features=size.n_features,
            n_nodes=size.n_nodes - 1,
            Cs=C_GRID,
            C=taken["C"],
        )
    )
    print(
        f"fit of {name}: {size.n_train:,} rows, {taken['n_entries']:,} entries, {size.n_nodes:,} "
        f"nodes, all C; CPU {taken['cpu_seconds']:.1f} s, foretold {wanted.cpu_seconds:.1f} s; "
        f"memory {taken['memory_bytes'] / 2**20:.0f} MiB, foretold "
        f"{wanted.memory_bytes / 2**20:.0f} MiB; model {taken['model_bytes'] / 2**20:.1f} MiB, "
        f"foretold at most {wanted.disk_bytes / 2**20:.1f} MiB",
        flush=True,
    )
    return taken | {"foretold": wanted.to_json()}


if __name__ == "__main__":
    main()
