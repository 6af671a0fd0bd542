"""A fitted model as nodes see it: where rows go, and how probable that is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit.predict.search import log_sigmoid, path_scores

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from taxofit.predict.calibration import Calibration
    from taxofit.predict.search import Search
    from taxofit.predict.weights import NodeWeights
    from taxofit.taxonomy import Taxonomy

    FloatArray = NDArray[np.float64]
    IntArray = NDArray[np.int32]

__all__ = ["Predictor"]

SCORES_AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class Predictor:
    """Weights, the taxonomy they are for, and how leaves are found and judged.

    Leaves without a model cannot be reached; ``leaves`` are the others, in the taxonomy's order.

    Attributes
    ----------
    weights : NodeWeights
    taxonomy : Taxonomy
    search : Search
    calibration : Calibration
    """

    weights: NodeWeights
    taxonomy: Taxonomy
    search: Search
    calibration: Calibration

    @cached_property
    def leaves(self) -> IntArray:
        """The leaves that rows can reach, as nodes."""
        leaves = self.taxonomy.leaf_order
        return leaves[np.isfinite(self.weights.intercept[leaves])]

    @cached_property
    def place_of(self) -> NDArray[np.int64]:
        """Where each node stands among ``leaves``; -1 for others."""
        place = np.full(self.taxonomy.n_nodes, -1)
        place[self.leaves] = np.arange(self.leaves.size)
        return place

    def find(self, X: Any, n_threads: int = 1) -> tuple[IntArray, FloatArray]:
        """Return the leaf that each row reaches, as a node, and its path score."""
        reached, totals = self.weights.find(X, self.taxonomy, self.search, n_threads=n_threads)
        return reached[:, 0], totals[:, 0]

    def totals(self, X: Any, n_threads: int = 1) -> FloatArray:
        """Return the path scores of all ``leaves``, shape (n_rows, n_leaves)."""
        parts = [
            path_scores(
                log_sigmoid(self.weights.node_scores(part, self.taxonomy, n_threads)),
                self.taxonomy,
                self.search.gamma,
            )[:, self.leaves]
            for part in self._parts(X)
        ]
        empty = np.empty((0, self.leaves.size), dtype=np.float32)
        return np.concatenate([empty, *parts]).astype(np.float64)

    def probabilities(self, X: Any, n_threads: int = 1) -> FloatArray:
        """Return the probabilities of all ``leaves``; every row sums to one."""
        return self.calibration.probabilities(self.totals(X, n_threads))

    def top(self, X: Any, k: int, n_threads: int = 1) -> tuple[NDArray[np.intp], FloatArray]:
        """Return the k most probable of ``leaves``, as their places, and probabilities."""
        best = np.empty((X.shape[0], k), dtype=np.intp)
        probability = np.empty((X.shape[0], k))
        first = 0
        for part in self._parts(X):
            here = self.probabilities(part, n_threads)
            rows = slice(first, first + here.shape[0])
            best[rows] = np.argsort(-here, axis=1, kind="stable")[:, :k]
            probability[rows] = np.take_along_axis(here, best[rows], axis=1)
            first = rows.stop
        return best, probability

    def node_probabilities(self, X: Any, n_threads: int = 1) -> FloatArray:
        """Return the probability of ending under every node, shape (n_rows, n_nodes)."""
        taxonomy = self.taxonomy
        in_order = np.zeros((X.shape[0], taxonomy.n_leaves + 1))
        in_order[:, taxonomy.leaf_start[self.leaves] + 1] = self.probabilities(X, n_threads)
        sums = np.cumsum(in_order, axis=1)
        return sums[:, taxonomy.leaf_stop] - sums[:, taxonomy.leaf_start]

    def find_sure(
        self, X: Any, min_confidence: float, n_threads: int = 1
    ) -> tuple[IntArray, FloatArray]:
        """Return the node that each row reaches, or the nearest above it that is sure enough.

        And how probable it is that the row ends under that node: 1 for the root, which always is.
        """
        ends = [np.empty(0, dtype=np.int32)]
        sure = [np.empty(0)]
        for part in self._parts(X):
            node = self.find(part, n_threads)[0]
            probability = self.node_probabilities(part, n_threads)
            probability[:, 0] = 1.0
            row = np.arange(node.size)
            while (unsure := probability[row, node] < min_confidence).any():
                node[unsure] = self.taxonomy.parent[node[unsure]]
            ends.append(node)
            sure.append(probability[row, node])
        return np.concatenate(ends), np.concatenate(sure)

    def _parts(self, X: Any) -> Iterator[Any]:
        """Yield some rows at a time, so that the scores of all nodes fit in memory."""
        size = max(1, SCORES_AT_ONCE // self.taxonomy.n_nodes)
        for first in range(0, X.shape[0], size):
            yield X[first : first + size]
