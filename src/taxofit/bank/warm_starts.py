"""Weights of one bank as a start for another over nearly the same rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from taxofit.bank.columns import (
    ColumnStore,
    columns_from_arrays,
    columns_to_arrays,
)
from taxofit.bank.harvest import Harvest, pick_nothing
from taxofit.bank.trend import Trend

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from taxofit.bank.harvest import Arrays
    from taxofit.bank.node_bank import NodeBank
    from taxofit.bank.solver import BlockSolution

    IntArray = NDArray[np.int32]

__all__ = ["WarmStarts"]

# Starts need not be exact: of long weight vectors only the larger entries are kept.
WARM_SHARE = 0.3
MAX_KEPT_WHOLE = 2048


@dataclass(frozen=True, eq=False)
class _PickLarger:
    """Takes the weights that are worth starting from."""

    share: float = WARM_SHARE
    max_kept_whole: int = MAX_KEPT_WHOLE
    n_threads: int = field(default=1, compare=False)

    def __call__(self, nodes: IntArray, C: float, solution: BlockSolution) -> Arrays:  # noqa: ARG002  (a Pick)
        n_features = solution.device_weights.shape[0]
        share = self.share if n_features > self.max_kept_whole else 0.0
        no_trend = Trend.of_nothing(n_features)
        return columns_to_arrays(solution.pruned(share, no_trend, self.n_threads)[0])


class WarmStarts:
    """Pruned weights of solved nodes, by C, for a refit to start from.

    Parameters
    ----------
    bank : NodeBank
        That is to be solved from them. Where it finds starts as good by itself, none are kept.

    Attributes
    ----------
    harvest : Harvest
        Fills this in as a bank is solved.
    """

    def __init__(self, bank: NodeBank) -> None:
        self._n_nodes = bank.taxonomy.n_nodes
        self._stores: dict[float, ColumnStore] = {}
        self.harvest = Harvest(pick_nothing, lambda *_: None)
        if bank.wants_starts:
            self.harvest = Harvest(_PickLarger(n_threads=bank.n_idle_cores), self._receive)

    def _receive(self, nodes: IntArray, C: float, arrays: Arrays) -> None:
        weights = columns_from_arrays(arrays)
        store = self._stores.setdefault(C, ColumnStore((weights.shape[0], self._n_nodes)))
        store.put(nodes, weights)

    def take(self, C: float) -> Callable[[IntArray], Any] | None:
        """Return what gives the weights of nodes at this C, sparse, and keep none of any C.

        None where there are none.
        """
        stores, self._stores = self._stores, {}
        if C not in stores:
            return None
        columns = stores[C].to_csc()
        return lambda nodes: columns[:, nodes]
