"""From the weights of single nodes to packed ones.

Among the children of a node only differences of weights decide where a walk goes. So what siblings
share for a feature, the median of their weights, is kept once, and of each child its difference to
it. Differences up to a limit are left out; up to three times as much where no training row under
the parent has the feature, since few rows that get there will. Shared weights, which decide nothing
among siblings and matter for path scores and probabilities, go up to three times the limit as well.
What stays is rounded to 1/32767 of the largest weight under the same parent. A limit of 0 keeps
every weight as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from taxofit.datasets.mapped import chunk_bounds, empty_beside, row_chunks
from taxofit.predict import pack_loops
from taxofit.predict.packed_weights import PackedWeights

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from taxofit.taxonomy import Taxonomy

    Array = NDArray[Any]

__all__ = ["Packer", "Sightings"]

UNSEEN_FACTOR = 3.0
SHARED_FACTOR = 3.0  # what siblings share decides nothing among them, only in path scores
LARGEST_QUANTUM = 32767


@dataclass(frozen=True, eq=False)
class Sightings:
    """Where in the tree each feature occurs.

    Attributes
    ----------
    start : ndarray of int64, shape (n_features + 1,)
    positions : ndarray of int32
        ``positions[start[f]:start[f + 1]]`` are the places, in the taxonomy's leaf order, of the
        leaves of the rows that have feature f, ascending.
    """

    start: NDArray[np.int64]
    positions: NDArray[np.int32]

    @classmethod
    def gather(cls, X: Any, row_leaf: NDArray[np.int32], taxonomy: Taxonomy) -> Sightings:
        """Return the sightings of the rows of X, shape (n_rows, n_features)."""
        position = taxonomy.leaf_start[row_leaf]
        order = np.argsort(position, kind="stable")
        stops = np.append(0, np.cumsum(np.diff(X.indptr)[order], dtype=np.int64))
        n_rows_with = np.zeros(X.shape[1], dtype=np.int64)
        for _, _, rows in row_chunks(X):
            n_rows_with += np.bincount(rows.indices, minlength=X.shape[1])
        start = np.append(0, np.cumsum(n_rows_with))
        positions, filled = empty_beside(X, int(start[-1]), np.int32), start[:-1].copy()
        for first, stop in chunk_bounds(stops):
            mine = order[first:stop]
            by_feature = X[mine].tocsc()
            places = np.repeat(filled - by_feature.indptr[:-1], np.diff(by_feature.indptr))
            places += np.arange(by_feature.nnz)
            positions[places] = position[mine][by_feature.indices]
            filled += np.diff(by_feature.indptr)
        return cls(start, np.asarray(positions))


class Packer:
    """Packs the weights of a taxonomy's nodes.

    Parameters
    ----------
    columns : CSC, shape (n_features, n_nodes)
        The root has none.
    intercept : ndarray, shape (n_nodes,)
        -inf at nodes without a model.
    taxonomy : Taxonomy
    sightings : Sightings, optional
        Of the training rows; without them no feature counts as seen.
    """

    def __init__(
        self,
        columns: sparse.csc_array,
        intercept: Array,
        taxonomy: Taxonomy,
        sightings: Sightings | None = None,
    ) -> None:
        self.taxonomy, self._intercept = taxonomy, intercept
        by_feature = columns.tocsr()
        self._columns = (
            by_feature.indptr,
            by_feature.indices,
            by_feature.data.astype(np.float32, copy=False),
        )
        is_open = np.isfinite(intercept)
        n_open = np.zeros(taxonomy.n_nodes, dtype=np.int64)
        np.add.at(n_open, taxonomy.parent[1:], is_open[1:])
        self._tree = (
            taxonomy.parent,
            taxonomy.first_child,
            taxonomy.leaf_start,
            taxonomy.leaf_stop,
            is_open,
            n_open,
        )
        self._n_features = columns.shape[0]
        nowhere = (np.empty(0, dtype=np.int32), np.zeros(self._n_features + 1, dtype=np.int64))
        self._seen = nowhere if sightings is None else (sightings.positions, sightings.start)

    def pack(self, limit: float = 0.0) -> PackedWeights:
        """Return the packed weights, without differences up to a limit."""
        limits = tuple(np.float32(limit * factor) for factor in (1.0, UNSEEN_FACTOR, SHARED_FACTOR))
        common = (self._columns, self._tree, self._seen, limits)
        n_nodes = self.taxonomy.n_nodes
        n_pairs, n_weights = np.zeros((2, self._n_features), dtype=np.int64)
        largest = np.zeros(n_nodes, dtype=np.float32)
        pack_loops.count_weights(*common, n_pairs, n_weights, largest)
        scale = np.ones(n_nodes, dtype=np.float32)
        if limit > 0:
            scale[largest > 0] = largest[largest > 0] / LARGEST_QUANTUM
        most_children = int(np.diff(self.taxonomy.first_child).max(initial=0))
        packed = PackedWeights(
            intercept=self._intercept.astype(np.float32),
            scale=scale,
            pair_start=_starts(n_pairs),
            weight_start=_starts(n_weights),
            pair_parent=np.empty(n_pairs.sum(), dtype=_unsigned(n_nodes)),
            pair_offset=np.empty(n_pairs.sum(), dtype=_unsigned(n_weights.max(initial=0))),
            child=np.empty(n_weights.sum(), dtype=_unsigned(most_children, np.uint8)),
            value=np.empty(n_weights.sum(), dtype=np.int16 if limit > 0 else np.float32),
        )
        pack_loops.fill_weights(*common, scale, packed.tables)
        return packed

    def lost_scores(self, X: Any, limits: Sequence[float]) -> NDArray[np.float32]:
        """Return what leaving differences out takes from the scores of rows.

        Parameters
        ----------
        X : CSR, shape (n_rows, n_features)
        limits : sequence of float
            Ascending.

        Returns
        -------
        ndarray, shape (n_limits, n_rows, n_nodes)
            At k, what limit k takes beyond what limit k - 1 takes.
        """
        by_feature = sparse.csr_array(X).tocsc()
        trial = (by_feature.indptr, by_feature.indices, by_feature.data.astype(np.float32))
        lost = np.zeros((len(limits), X.shape[0], self.taxonomy.n_nodes), dtype=np.float32)
        pack_loops.lost_scores(
            self._columns,
            self._tree,
            self._seen,
            np.asarray(limits, dtype=np.float32),
            (np.float32(UNSEEN_FACTOR), np.float32(SHARED_FACTOR)),
            trial,
            lost,
        )
        return lost


def _starts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(counts)])


def _unsigned(largest: int, smallest: type = np.uint16) -> type:
    """Return the smallest unsigned type, not below a given one, that holds a number."""
    if smallest is np.uint8 and largest <= np.iinfo(np.uint8).max:
        return np.uint8
    return np.uint16 if largest <= np.iinfo(np.uint16).max else np.uint32
