"""Blocks of a bank as pieces of work that any process can do.

:class:`BlockWork` is what all blocks have in common (rows, labels, settings, what to take from a
solution), :class:`BlockTask` is one block. Together they say all there is to say, so that the same
task gives the same bits in any thread, process or machine of the same kind.

A task is a block at a *chain* of values of C, each solved from the weights of the one before. Where
a solver rather starts afresh, a new chain begins; chains do not need each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from taxofit._version import __version__
from taxofit.bank.content import content_key
from taxofit.bank.rows import node_targets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from taxofit.bank.block_solver import BlockSolver
    from taxofit.bank.harvest import Arrays, Pick
    from taxofit.bank.kernels import Device
    from taxofit.bank.rows import LeafRanges, Rows
    from taxofit.bank.solver import SolverSettings
    from taxofit.bank.stopping import StopFlag

    IntArray = NDArray[np.int32]

__all__ = [
    "BlockTask",
    "BlockWork",
    "SolvedBlock",
    "block_size_for",
    "chains_of",
    "pack_blocks",
    "unpack_blocks",
]

N_BLOCKS = 32  # that a bank should have, for many cores to share
RESULT_VERSION = 14  # of what a task gives; another number, and kept results are not used any more


@dataclass(frozen=True, eq=False)
class BlockTask:
    """One block at one chain of C.

    Attributes
    ----------
    solved : ndarray of int32, shape (n_problems,)
        Nodes whose problems are solved side by side.
    nodes : ndarray of int32
        All nodes that these problems are the models of.
    column : ndarray of int64, shape (len(nodes),)
        The problem of every one of ``nodes``.
    Cs : tuple of float
        Ascending.
    start : ndarray or sparse array, shape (n_features, n_problems), optional
        Weights to begin from at the first C.
    """

    solved: IntArray
    nodes: IntArray
    column: NDArray[np.int64]
    Cs: tuple[float, ...]
    start: Any = None


@dataclass(frozen=True, eq=False)
class SolvedBlock:
    """What came of a block at one C.

    Attributes
    ----------
    C : float
    arrays : dict of ndarray
        What was picked from the solution.
    converged : ndarray of bool, shape (n_problems,)
    n_iterations : ndarray of int64, shape (n_problems,)
    """

    C: float
    arrays: Arrays
    converged: NDArray[np.bool_]
    n_iterations: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class BlockWork:
    """What the tasks of a bank have in common.

    Attributes
    ----------
    rows : Rows
    row_leaf : ndarray of int32, shape (n_rows,)
    ranges : LeafRanges
        Of the taxonomy's nodes.
    settings : SolverSettings
    device : str
    pick : callable
        See :class:`~taxofit.bank.harvest.Harvest`.
    """

    rows: Rows
    row_leaf: IntArray
    ranges: LeafRanges
    settings: SolverSettings
    device: Device
    pick: Pick

    @cached_property
    def key(self) -> str:
        """The name of all this content and of the version that computes with it."""
        return content_key(RESULT_VERSION, __version__, self)

    def key_of(self, task: BlockTask) -> str:
        """Return the name of a task's result."""
        return content_key(self.key, task)

    def solve(
        self, task: BlockTask, solver: BlockSolver, stop: StopFlag | None = None
    ) -> Iterator[SolvedBlock]:
        """Yield what comes of a task, one C after the other.

        Parameters
        ----------
        task : BlockTask
        solver : BlockSolver
            For these rows, settings and device.
        stop : StopFlag, optional
            Makes this raise :class:`~taxofit.bank.stopping.Stopped`.
        """
        targets = node_targets(self.ranges, self.row_leaf, task.solved)
        weights = task.start
        for C in task.Cs:
            solution = solver.solve(targets, C, weights, stop)
            weights = solution.device_weights
            arrays = self.pick(task.nodes, C, solution.take(task.column))
            yield SolvedBlock(C, arrays, solution.converged, solution.n_iterations)


def block_size_for(n_problems: int, least: int, most: int) -> int:
    """Return how many problems a block gets: few enough for all cores to have blocks to solve.

    It does not depend on how many cores there are, so that what one machine has kept in a work
    folder serves another.

    Parameters
    ----------
    n_problems : int
    least, most : int
        Of a block; where it may be, it is a multiple of the least.

    Examples
    --------
    >>> [block_size_for(n, 64, 256) for n in (10, 1400, 3000, 15_000)]
    [64, 64, 128, 256]
    """
    return min(most, least * max(1, -(-n_problems // (N_BLOCKS * least))))


def chains_of(Cs: Sequence[float], warm_from: float) -> list[tuple[float, ...]]:
    """Return values of C in ascending order, cut where a solver does not go on from the one before.

    Parameters
    ----------
    Cs : sequence of float
    warm_from : float
        From this C on, the solution at the C before is the start.

    Examples
    --------
    >>> chains_of([0.1, 1.0, 10.0, 100.0], warm_from=10.0)
    [(0.1,), (1.0, 10.0, 100.0)]
    """
    chains: list[tuple[float, ...]] = []
    for C in sorted(Cs):
        if chains and warm_from <= C:
            chains[-1] += (C,)
        else:
            chains.append((C,))
    return chains


def pack_blocks(solved: Iterable[SolvedBlock]) -> Arrays:
    """Return the results of a task as one dict of arrays; :func:`unpack_blocks` undoes it."""
    packed: Arrays = {}
    for k, block in enumerate(solved):
        packed |= {f"{k}/{name}": array for name, array in block.arrays.items()}
        packed |= {f"{k}.converged": block.converged, f"{k}.n_iterations": block.n_iterations}
    return packed


def unpack_blocks(Cs: Sequence[float], packed: Arrays) -> list[SolvedBlock]:
    """Return the results of a task, one for each C, from one dict of arrays."""
    return [
        SolvedBlock(
            C,
            {n.removeprefix(f"{k}/"): a for n, a in packed.items() if n.startswith(f"{k}/")},
            packed[f"{k}.converged"],
            packed[f"{k}.n_iterations"],
        )
        for k, C in enumerate(Cs)
    ]
