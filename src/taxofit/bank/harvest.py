"""What is taken from a solved block, and what becomes of it.

A block's weights are large (features times nodes) and what is wanted of them small: scores of some
rows, or weights without the entries that do not matter. So a harvest has two halves. ``pick`` runs
where the block was solved, which may be another process or machine, and returns small arrays;
``receive`` gets these at home. Arrays are also what is kept in a work folder, so that a harvest can
be received again without solving anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from taxofit.bank.solver import BlockSolution

    IntArray = NDArray[np.int32]
    Arrays = dict[str, NDArray[Any]]
    Pick = Callable[[IntArray, float, BlockSolution], Arrays]
    Receive = Callable[[IntArray, float, Arrays], None]

__all__ = ["Harvest", "join_harvests", "pick_nothing", "pick_weights"]


@dataclass(frozen=True, eq=False)
class Harvest:
    """What to take from solved blocks, and what to do with it.

    Attributes
    ----------
    pick : callable (nodes, C, solution) -> dict of arrays
        Called where a block was solved, from several threads. To go to other processes it must be
        picklable, and to be kept in a work folder have a content: a function of a module, or a
        frozen dataclass of arrays and numbers with a ``__call__``.
    receive : callable (nodes, C, arrays)
        Called at home for every block and C, from several threads, for disjoint nodes.
    """

    pick: Pick
    receive: Receive


@dataclass(frozen=True, eq=False)
class _PickAll:
    """Several picks, the arrays of the k-th under ``k.name``."""

    picks: tuple[Pick, ...]

    def __call__(self, nodes: IntArray, C: float, solution: BlockSolution) -> Arrays:
        return {
            f"{k}.{name}": array
            for k, pick in enumerate(self.picks)
            for name, array in pick(nodes, C, solution).items()
        }


def join_harvests(*harvests: Harvest) -> Harvest:
    """Return one harvest that takes what each of these does, and hands each its own.

    Examples
    --------
    >>> import numpy as np
    >>> seen = []
    >>> one = Harvest(lambda *_: {"x": np.ones(1)}, lambda *got: seen.append(got[2]))
    >>> both = join_harvests(one, one)
    >>> both.receive(np.arange(1), 1.0, both.pick(np.arange(1), 1.0, None))
    >>> seen
    [{'x': array([1.])}, {'x': array([1.])}]
    """
    if len(harvests) == 1:
        return harvests[0]

    def receive(nodes: IntArray, C: float, arrays: Arrays) -> None:
        for k, harvest in enumerate(harvests):
            mark = f"{k}."
            own = {n.removeprefix(mark): a for n, a in arrays.items() if n.startswith(mark)}
            harvest.receive(nodes, C, own)

    return Harvest(_PickAll(tuple(harvest.pick for harvest in harvests)), receive)


def pick_weights(nodes: IntArray, C: float, solution: BlockSolution) -> Arrays:  # noqa: ARG001  (a Pick)
    """Take all weights as they are, shape (n_features, len(nodes)): large, for tests and studies.

    Examples
    --------
    >>> import numpy as np
    >>> from taxofit.bank.solver import BlockSolution
    >>> solution = BlockSolution(np.ones((3, 1)), np.ones(1), np.ones(1, bool), np.ones(1, int))
    >>> pick_weights(np.array([7]), 1.0, solution)["weights"].shape
    (3, 1)
    """
    return {"weights": solution.weights}


def pick_nothing(nodes: IntArray, C: float, solution: BlockSolution) -> Arrays:  # noqa: ARG001  (a Pick)
    """Take nothing: where only the report of solving is wanted.

    Examples
    --------
    >>> pick_nothing([7], 1.0, None)
    {}
    """
    return {}
