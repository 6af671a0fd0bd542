"""The bank: every node's model over the same rows, solved block by block.

A bank never holds all weights. From each solved block a harvest takes what it needs (validation
scores, pruned weights) and the rest goes; so memory is bounded by the block. Nodes with the same
rows under them (chains of single children, nodes without rows) are one problem and are solved once.
"""

from __future__ import annotations

import math
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from taxofit.bank.block_solver import solver_for
from taxofit.bank.block_work import (
    BlockTask,
    BlockWork,
    block_size_for,
    chains_of,
    pack_blocks,
    unpack_blocks,
)
from taxofit.bank.distribution import solve_on_workers, workers_backend
from taxofit.bank.kernels import find_device
from taxofit.bank.rows import LeafRanges
from taxofit.bank.solver import SolverSettings
from taxofit.bank.stopping import StopFlag, Stopped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from taxofit.bank.block_solver import BlockSolver
    from taxofit.bank.block_work import SolvedBlock
    from taxofit.bank.harvest import Harvest
    from taxofit.bank.kernels import Device
    from taxofit.bank.rows import Rows
    from taxofit.bank.work_dir import WorkDir
    from taxofit.taxonomy import Taxonomy

    IntArray = NDArray[np.int32]
    Progress = Callable[[int, int], None]
    Start = Callable[[IntArray], Any]

__all__ = ["BankReport", "NodeBank"]

N_NAMES_SHOWN = 5


@dataclass(frozen=True)
class BankReport:
    """What it took to solve a bank.

    Attributes
    ----------
    n_problems : int
        Binary problems solved: nodes with different rows times values of C.
    n_iterations : int
        Newton steps over all of them.
    unconverged : tuple of (label, C)
    """

    n_problems: int
    n_iterations: int
    unconverged: tuple[tuple[Any, float], ...]


@dataclass(frozen=True, eq=False)
class _Block:
    """Problems solved side by side: those of ``solved``; node k's is column ``column[k]``."""

    solved: IntArray
    nodes: IntArray
    column: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Plan:
    """A task whose start is not looked up before its turn has come."""

    block: _Block
    Cs: tuple[float, ...]
    start: Start | None

    def task(self) -> BlockTask:
        block = self.block
        start = None if self.start is None else self.start(block.solved)
        return BlockTask(block.solved, block.nodes, block.column, self.Cs, start)


class _Results:
    """What tasks give: solved, or found in the work folder."""

    def __init__(self, work: BlockWork, work_dir: WorkDir | None) -> None:
        self.work, self._work_dir = work, work_dir

    @property
    def are_kept(self) -> bool:
        return self._work_dir is not None

    def find(self, task: BlockTask) -> list[SolvedBlock] | None:
        if self._work_dir is None:
            return None
        kept = self._work_dir.find(self.work.key_of(task))
        return None if kept is None else unpack_blocks(task.Cs, kept)

    def keep(self, task: BlockTask, solved: Sequence[SolvedBlock]) -> None:
        if self._work_dir is not None:
            self._work_dir.put(self.work.key_of(task), pack_blocks(solved))

    def found_or_made(
        self, task: BlockTask, solver: BlockSolver, stop: StopFlag
    ) -> Iterator[SolvedBlock]:
        """Yield a task's results one C after the other; what had to be solved is then kept."""
        if not self.are_kept:
            yield from self.work.solve(task, solver, stop)
            return
        solved = self.find(task)
        if solved is None:
            solved = list(self.work.solve(task, solver, stop))
            self.keep(task, solved)
        yield from solved


def _solve_on_workers(
    results: _Results, plans: Sequence[_Plan], ledger: _Ledger, backend: Any
) -> None:
    """Have the workers of a joblib backend solve what is not yet in the work folder."""
    missing = {number: plan.task for number, plan in enumerate(plans)}
    for number, make in list(missing.items()) if results.are_kept else ():
        task = make()
        if (solved := results.find(task)) is not None:
            del missing[number]
            for block in solved:
                ledger.enter(task, block)
    with closing(solve_on_workers(results.work, missing, backend)) as arriving:
        for number, solved in arriving:
            task = plans[number].task()
            results.keep(task, solved)
            for block in solved:
                ledger.enter(task, block)


@contextmanager
def _setting(stop: StopFlag) -> Iterator[None]:
    """Set the flag on an error or Ctrl-C: no other block may go on for minutes after it."""
    try:
        yield
    except BaseException:
        stop.set()
        raise


class _Ledger:
    """What has been solved so far, entered from several threads."""

    def __init__(
        self, labels: Sequence[Any], n_problems: int, harvest: Harvest, progress: Progress | None
    ) -> None:
        self._labels, self._n_problems = labels, n_problems
        self._harvest, self._progress = harvest, progress
        self._n_done = self._n_iterations = 0
        self._unconverged: list[tuple[Any, float]] = []
        self._lock = Lock()

    def enter(self, task: BlockTask, block: SolvedBlock) -> None:
        """Hand over what was picked from a block, and count it."""
        self._harvest.receive(task.nodes, block.C, block.arrays)
        failed = [(self._labels[node], block.C) for node in task.solved[~block.converged]]
        with self._lock:
            self._n_done += block.converged.size
            self._n_iterations += int(block.n_iterations.sum())
            self._unconverged += failed
            if self._progress is not None:
                self._progress(self._n_done, self._n_problems)

    def report(self) -> BankReport:
        in_order = sorted(self._unconverged, key=lambda failed: (failed[1], str(failed[0])))
        return BankReport(self._n_problems, self._n_iterations, tuple(in_order))


def _block_order(ranges: NDArray[np.int64], large: float) -> NDArray[np.int64]:
    """Return columns that sort as problems go into blocks, equal for those with the same rows.

    The large ones come first, the largest of all before the others; the rest follow the tree, a
    node before those below it.
    """
    start, stop = ranges
    n_rows = stop - start
    return np.stack([np.where(n_rows >= large, -n_rows, 0), start, -stop])


class NodeBank:
    """The one-vs-rest problems of a taxonomy's nodes over given rows.

    Parameters
    ----------
    rows : Rows
    taxonomy : Taxonomy
    row_leaf : ndarray of int32, shape (n_rows,)
        The leaf of every row, as a node.
    settings : SolverSettings, optional
    n_threads : int, optional
        Blocks of sparse data solved at the same time; all cores by default. The result does not
        depend on it.
    device : {"cpu", "cuda", "auto"}
        Where to solve; see :func:`~taxofit.bank.kernels.find_device`.
    work_dir : WorkDir, optional
        Keeps what is picked from solved blocks, and gives it back to a run that is started again.

    Notes
    -----
    Within ``joblib.parallel_config`` with a backend of processes or machines, blocks are solved
    there. Neither threads nor workers nor a work folder change a bit of the result, as long as all
    workers have the same kind of processor.
    """

    def __init__(
        self,
        rows: Rows,
        taxonomy: Taxonomy,
        row_leaf: IntArray,
        *,
        settings: SolverSettings | None = None,
        n_threads: int | None = None,
        device: Device = "cpu",
        work_dir: WorkDir | None = None,
    ) -> None:
        self.rows = rows
        self.taxonomy = taxonomy
        self.row_leaf = row_leaf
        self.settings = SolverSettings() if settings is None else settings
        self.device = find_device(device)  # here: other machines might find another
        self._solver = solver_for(rows, self.settings, self.device)
        self.work_dir = work_dir
        self.n_cores = n_threads or joblib.cpu_count()
        self.n_threads = self.n_cores if self._solver.is_threaded else 1

    @property
    def n_idle_cores(self) -> int:
        """Cores for other work while blocks are solved: one, or all where a device solves."""
        return 1 if self.n_threads > 1 else self.n_cores

    @property
    def wants_starts(self) -> bool:
        """Whether weights of nearly the same problems are better starts than those it finds."""
        return self._solver.warm_from < math.inf

    def take(self, rows: NDArray[np.integer[Any]]) -> NodeBank:
        """Return the bank over some of the rows."""
        return NodeBank(
            self.rows.take(rows),
            self.taxonomy,
            self.row_leaf[rows],
            settings=self.settings,
            n_threads=self.n_cores,
            device=self.device,
            work_dir=self.work_dir,
        )

    def solve(
        self,
        Cs: Sequence[float],
        harvest: Harvest,
        *,
        nodes: IntArray | None = None,
        start: Start | None = None,
        progress: Progress | None = None,
    ) -> BankReport:
        """Solve nodes for every C, smallest first, each starting from the one before.

        Parameters
        ----------
        Cs : sequence of float
        harvest : Harvest
            Gets every block once at each C.
        nodes : ndarray of int32, optional
            All but the root by default.
        start : callable, optional
            Gives the weights to begin from at the smallest C, dense or sparse, shape (n_features,
            len(nodes)).
        progress : callable, optional
            Called with (problems done, problems in all) after each block and C.
        """
        nodes = np.arange(1, self.taxonomy.n_nodes, dtype=np.int32) if nodes is None else nodes
        work = BlockWork(
            self.rows,
            self.row_leaf,
            LeafRanges.of(self.taxonomy),
            self.settings,
            self.device,
            harvest.pick,
        )
        blocks = self._blocks(nodes)
        n_problems = sum(block.solved.size for block in blocks) * len(Cs)
        ledger = _Ledger(self.taxonomy.labels, n_problems, harvest, progress)
        # Long chains first: what is left at the end is short.
        chains = sorted(chains_of(Cs, self._solver.warm_from), key=len, reverse=True)
        plans = [
            _Plan(block, chain, start if min(Cs) in chain else None)
            for chain in chains
            for block in blocks
        ]
        results = _Results(work, self.work_dir)
        backend = workers_backend()
        if backend is None:
            self._solve_in_threads(results, plans, ledger)
        else:
            _solve_on_workers(results, plans, ledger, backend)
        report = ledger.report()
        if report.unconverged:
            self._warn(report.unconverged)
        return report

    def _solve_in_threads(self, results: _Results, plans: Sequence[_Plan], ledger: _Ledger) -> None:
        """Solve blocks side by side; an error or Ctrl-C stops all of them."""
        stop = StopFlag()

        def solve_one(plan: _Plan) -> None:
            with _setting(stop), suppress(Stopped):
                stop.check()
                task = plan.task()
                for block in results.found_or_made(task, self._solver, stop):
                    ledger.enter(task, block)

        with ThreadPoolExecutor(self.n_threads) as pool, _setting(stop):
            list(pool.map(solve_one, plans))

    def _blocks(self, nodes: IntArray) -> list[_Block]:
        """Return the distinct problems of these nodes, some at a time, and who shares them."""
        position = np.sort(self.taxonomy.leaf_start[self.row_leaf])
        ranges = np.stack(
            [
                np.searchsorted(position, self.taxonomy.leaf_start[nodes]),
                np.searchsorted(position, self.taxonomy.leaf_stop[nodes]),
            ]
        )
        ranges[:, ranges[0] == ranges[1]] = 0
        _, first, problem = np.unique(
            _block_order(ranges, self._solver.by_size_from * position.size),
            axis=1,
            return_index=True,
            return_inverse=True,
        )
        solver = self._solver
        size = block_size_for(first.size, solver.least_block_size, solver.block_size)
        by_problem = np.argsort(problem, kind="stable")
        bounds = np.searchsorted(problem[by_problem], np.arange(0, first.size + size, size))
        return [
            _Block(
                nodes[first[k * size : (k + 1) * size]],
                nodes[by_problem[start:stop]],
                problem[by_problem[start:stop]] - k * size,
            )
            for k, (start, stop) in enumerate(pairwise(bounds))
        ]

    def _warn(self, unconverged: Sequence[tuple[Any, float]]) -> None:
        shown = ", ".join(f"{label!r} (C={C:g})" for label, C in unconverged[:N_NAMES_SHOWN])
        more = f" and {len(unconverged) - N_NAMES_SHOWN} more" * (len(unconverged) > N_NAMES_SHOWN)
        warnings.warn(
            f"{len(unconverged)} node models did not converge in {self.settings.max_iter} steps: "
            f"{shown}{more}; raise max_iter, scale the features or lower C",
            ConvergenceWarning,
            stacklevel=4,
        )
