"""The bank: every node's model over the same rows, solved block by block.

A bank never holds all weights. Each solved block is handed to a consumer, which takes from it what
it needs (validation scores, pruned weights) and lets the rest go; so memory is bounded by the
block. Nodes with the same rows under them (chains of single children, nodes without rows) are one
problem and are solved once.
"""

from __future__ import annotations

import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from taxofit.bank.block_solver import solver_for
from taxofit.bank.rows import node_targets
from taxofit.bank.solver import SolverSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from taxofit.bank.kernels import Device
    from taxofit.bank.rows import Rows
    from taxofit.bank.solver import BlockSolution
    from taxofit.taxonomy import Taxonomy

    IntArray = NDArray[np.int32]
    Progress = Callable[[int, int], None]

__all__ = ["BankReport", "Consumer", "NodeBank"]

N_NAMES_SHOWN = 5


class Consumer(Protocol):
    """Takes what it needs from a solved block; called from several threads, for disjoint nodes."""

    def __call__(self, nodes: IntArray, C: float, solution: BlockSolution) -> None:
        """Take the models of ``nodes`` at ``C``."""


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


class _Ledger:
    """What has been solved so far, entered from several threads."""

    def __init__(self, n_problems: int, progress: Progress | None) -> None:
        self._n_problems, self._progress = n_problems, progress
        self._n_done = self._n_iterations = 0
        self._unconverged: list[tuple[Any, float]] = []
        self._lock = Lock()
        self.is_stopped = False

    def enter(self, solution: BlockSolution, unconverged: list[tuple[Any, float]]) -> None:
        with self._lock:
            self._n_done += solution.converged.size
            self._n_iterations += int(solution.n_iterations.sum())
            self._unconverged += unconverged
            if self._progress is not None:
                self._progress(self._n_done, self._n_problems)

    @contextmanager
    def stopping_on_error(self) -> Iterator[None]:
        """Keep other blocks from going on for minutes after an error or Ctrl-C."""
        try:
            yield
        except BaseException:
            self.is_stopped = True
            raise

    def report(self) -> BankReport:
        in_order = sorted(self._unconverged, key=lambda failed: (failed[1], str(failed[0])))
        return BankReport(self._n_problems, self._n_iterations, tuple(in_order))


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
    ) -> None:
        self.rows = rows
        self.taxonomy = taxonomy
        self.row_leaf = row_leaf
        self.settings = SolverSettings() if settings is None else settings
        self.device = device
        self._solver = solver_for(rows, self.settings, device)
        self.n_threads = (n_threads or os.cpu_count() or 1) if self._solver.is_threaded else 1

    def take(self, rows: NDArray[np.integer[Any]]) -> NodeBank:
        """Return the bank over some of the rows."""
        return NodeBank(
            self.rows.take(rows),
            self.taxonomy,
            self.row_leaf[rows],
            settings=self.settings,
            n_threads=self.n_threads,
            device=self.device,
        )

    def solve(
        self,
        Cs: Sequence[float],
        consume: Consumer,
        *,
        nodes: IntArray | None = None,
        start: Callable[[IntArray], NDArray[Any] | None] | None = None,
        progress: Progress | None = None,
    ) -> BankReport:
        """Solve nodes for every C, smallest first, each starting from the one before.

        Parameters
        ----------
        Cs : sequence of float
        consume : Consumer
            Called once for each block and C.
        nodes : ndarray of int32, optional
            All but the root by default.
        start : callable, optional
            Gives the weights to begin from at the smallest C, shape (n_features, len(nodes)).
        progress : callable, optional
            Called with (problems done, problems in all) after each block and C.
        """
        nodes = np.arange(1, self.taxonomy.n_nodes, dtype=np.int32) if nodes is None else nodes
        blocks = self._blocks(nodes)

        ledger = _Ledger(sum(block.solved.size for block in blocks) * len(Cs), progress)

        def solve_one(block: _Block) -> None:
            with ledger.stopping_on_error():
                self._solve_block(block, sorted(Cs), consume, start, ledger)

        with ThreadPoolExecutor(self.n_threads) as pool, ledger.stopping_on_error():
            list(pool.map(solve_one, blocks))
        report = ledger.report()
        if report.unconverged:
            self._warn(report.unconverged)
        return report

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
        ranges[0] -= ranges[1]  # negative sizes first: problems alike in size share a block
        _, first, problem = np.unique(ranges, axis=1, return_index=True, return_inverse=True)
        size = self._solver.block_size
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

    def _solve_block(
        self,
        block: _Block,
        Cs: Sequence[float],
        consume: Consumer,
        start: Callable[[IntArray], NDArray[Any] | None] | None,
        ledger: _Ledger,
    ) -> None:
        targets = node_targets(self.taxonomy, self.row_leaf, block.solved)
        weights = None if start is None else start(block.solved)
        for k, C in enumerate(Cs):
            if ledger.is_stopped:
                return
            if k > 0 and self._solver.warm_from > C:
                weights = None
            solution = self._solver.solve(targets, C, weights)
            consume(block.nodes, C, solution.take(block.column))
            weights = solution.device_weights
            failed = [self.taxonomy.labels[node] for node in block.solved[~solution.converged]]
            ledger.enter(solution, [(label, C) for label in failed])

    def _warn(self, unconverged: Sequence[tuple[Any, float]]) -> None:
        shown = ", ".join(f"{label!r} (C={C:g})" for label, C in unconverged[:N_NAMES_SHOWN])
        more = f" and {len(unconverged) - N_NAMES_SHOWN} more" * (len(unconverged) > N_NAMES_SHOWN)
        warnings.warn(
            f"{len(unconverged)} node models did not converge in {self.settings.max_iter} steps: "
            f"{shown}{more}; raise max_iter, scale the features or lower C",
            ConvergenceWarning,
            stacklevel=4,
        )
