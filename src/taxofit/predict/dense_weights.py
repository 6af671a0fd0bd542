"""Weights for dense rows: one matrix, met by products of blocks of rows.

A product is always taken over the same number of rows, filled up with zeros, because a BLAS may
round a row differently in products of another shape: so a prediction never depends on other rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import sparse

from taxofit.predict.search import find_in_scores, log_sigmoid
from taxofit.predict.weights import SavedArrays, check_array, check_walkable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from taxofit.predict.search import Search
    from taxofit.predict.weights import Coefficients, Found
    from taxofit.taxonomy import Taxonomy

    Array = NDArray[Any]

__all__ = ["DenseWeights"]

ROWS_AT_ONCE = 32


@dataclass(frozen=True, eq=False)
class DenseWeights(SavedArrays):
    """One row of weights for every node, for dense data.

    Attributes
    ----------
    matrix : ndarray of float64, shape (n_nodes, n_features)
    intercept : ndarray of float64, shape (n_nodes,)
    """

    matrix: NDArray[np.float64]
    intercept: NDArray[np.float64]
    kind: ClassVar[str] = "dense"

    def find(
        self, X: Any, taxonomy: Taxonomy, search: Search, n_best: int = 1, n_threads: int = 1
    ) -> Found:
        if search.kind == "greedy" and n_best == 1:
            return self._walk(_dense(X), taxonomy, search.gamma)
        best = search if search.kind == "beam" else replace(search, kind="beam", width=n_best)
        logs = log_sigmoid(self.node_scores(X, taxonomy))
        return find_in_scores(logs, taxonomy, best, n_best)

    def node_scores(self, X: Any, taxonomy: Taxonomy, n_threads: int = 1) -> Array:
        X = _dense(X)
        scores = np.empty((X.shape[0], taxonomy.n_nodes))
        for first in range(0, X.shape[0], ROWS_AT_ONCE):
            rows = X[first : first + ROWS_AT_ONCE]
            scores[first : first + ROWS_AT_ONCE] = self._scores(rows, slice(None))
        return scores

    def _scores(self, rows: Array, nodes: slice) -> Array:
        """Return the scores of at most ROWS_AT_ONCE rows at some nodes."""
        block = np.zeros((ROWS_AT_ONCE, self.matrix.shape[1]))
        block[: len(rows)] = rows
        return (block @ self.matrix[nodes].T + self.intercept[nodes])[: len(rows)]

    def _walk(self, X: Array, taxonomy: Taxonomy, gamma: float) -> Found:
        """Walk all rows down together: at every step, the rows at one node are one product."""
        reached = np.zeros(X.shape[0], dtype=np.int32)
        total = np.zeros(X.shape[0])
        moving = np.arange(X.shape[0]) if taxonomy.n_nodes > 1 else np.empty(0, dtype=np.intp)
        while moving.size:
            moving = moving[np.argsort(reached[moving], kind="stable")]
            _, starts = np.unique(reached[moving], return_index=True)
            for group in np.split(moving, starts[1:]):
                node = int(reached[group[0]])
                children = slice(taxonomy.first_child[node], taxonomy.first_child[node + 1])
                for first in range(0, group.size, ROWS_AT_ONCE):
                    rows = group[first : first + ROWS_AT_ONCE]
                    scores = self._scores(X[rows], children)
                    best = scores.argmax(axis=1)
                    reached[rows] = children.start + best
                    own = scores[np.arange(rows.size), best]
                    total[rows] = -np.logaddexp(0.0, -own) + gamma * total[rows]
            moving = moving[~taxonomy.is_leaf[reached[moving]]]
        return reached[:, None], total[:, None]

    def coefficients(self, node: int, taxonomy: Taxonomy) -> Coefficients:
        return self.matrix[node].copy(), float(self.intercept[node])

    def child_weights(self, parent: int, features: Array, taxonomy: Taxonomy) -> Array:
        children = slice(taxonomy.first_child[parent], taxonomy.first_child[parent + 1])
        return self.matrix[children][:, features]

    def check(self, taxonomy: Taxonomy, n_features: int) -> None:
        check_array("matrix", self.matrix, (np.float64,), (taxonomy.n_nodes, n_features))
        check_array("intercept", self.intercept, (np.float64,), (taxonomy.n_nodes,))
        check_walkable(self.intercept, taxonomy)


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
