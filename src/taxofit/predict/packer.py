"""From the weights of single nodes to packed ones.

Every node has a slope times a trend that all have in common (:mod:`taxofit.bank.trend`). Of what is
left beside it, among the children of a node only differences decide where a walk goes. So what
siblings share for a feature, the median, is kept once, and of each child its difference to it.
Differences up to a limit are left out; up to twice as much where no training row under the parent
has the feature, since few rows that get there will. Shared weights, which decide nothing among
siblings and matter for path scores and probabilities, go up to three times the limit. What stays is
rounded to a quarter of the limit. A limit of 0 keeps every weight as it is.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit.datasets.mapped import chunk_bounds, continued, empty_beside, row_chunks
from taxofit.predict import pack_loops
from taxofit.predict.pack_loops import MOST_DIGITS
from taxofit.predict.packed_weights import PackedWeights, first_codes

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy import sparse

    from taxofit.taxonomy import Taxonomy

    Array = NDArray[Any]

__all__ = ["Packer", "Sightings"]

UNSEEN_FACTOR = 2.0
SHARED_FACTOR = 3.0  # what siblings share decides nothing among them, only in path scores
STEP = 0.25  # of the limit
MOST_STEPS = 1 << 18  # of a weight
ENTRIES_OF_A_CHUNK = 1 << 20


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
            places = continued(filled, by_feature.indptr)
            positions[places] = position[mine][by_feature.indices]
        return cls(start, np.asarray(positions))


class Packer:
    """Packs the weights of a taxonomy's nodes.

    Parameters
    ----------
    columns : sparse matrix, shape (n_features, n_nodes)
        What weights have beside the trend. CSR is not copied. The root has no weights.
    intercept : ndarray, shape (n_nodes,)
        -inf at nodes without a model.
    taxonomy : Taxonomy
    trend : (ndarray of int16, shape (n_features,); ndarray of float32, shape (n_nodes,)), optional
        The trend in steps, and the slope of every node, which is a step's worth; 0 by default.
    sightings : Sightings, optional
        Of the training rows; without them no feature counts as seen.
    n_threads : int
        What is packed does not depend on it.
    """

    def __init__(
        self,
        columns: sparse.csr_array | sparse.csc_array,
        intercept: Array,
        taxonomy: Taxonomy,
        *,
        trend: tuple[NDArray[np.int16], NDArray[np.float32]] | None = None,
        sightings: Sightings | None = None,
        n_threads: int = 1,
    ) -> None:
        self.taxonomy, self._intercept, self.n_threads = taxonomy, intercept, n_threads
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
        self._trend = trend or (
            np.zeros(self._n_features, dtype=np.int16),
            np.zeros(taxonomy.n_nodes, dtype=np.float32),
        )
        nowhere = (np.empty(0, dtype=np.int32), np.zeros(self._n_features + 1, dtype=np.int64))
        self._seen = nowhere if sightings is None else (sightings.positions, sightings.start)

    @cached_property
    def _largest(self) -> float:
        values = self._columns[2]
        return float(max(values.max(initial=0), -values.min(initial=0)))

    def pack(self, limit: float = 0.0, wanted: NDArray[np.bool_] | None = None) -> PackedWeights:
        """Return the packed weights, without differences up to a limit.

        Parameters
        ----------
        limit : float
            0 keeps all weights as they are.
        wanted : ndarray of bool, shape (n_features,), optional
            Features that rows to be scored have; all by default.
        """
        limits = tuple(np.float32(limit * factor) for factor in (1.0, UNSEEN_FACTOR, SHARED_FACTOR))
        wanted = np.ones(self._n_features, dtype=bool) if wanted is None else wanted
        scale = np.float32(0.0)  # weights as they are
        if limit > 0:
            scale = np.float32(max(STEP * limit, self._largest / MOST_STEPS))
        codes = first_codes(self.taxonomy)
        types = _unsigned(int(codes[-1])), np.int8 if limit > 0 else np.float32
        n_digits = np.zeros(self._n_features, dtype=np.int64)
        common = (self._columns, self._tree, self._seen, limits, wanted, scale, codes)

        def pack_some(features: tuple[int, int]) -> list[tuple[Array, Array]]:
            return self._pack_some(common, features, types, n_digits)

        with ThreadPoolExecutor(self.n_threads) as pool:
            parts = [part for some in pool.map(pack_some, self._chunks()) for part in some]
        start = np.append(0, np.cumsum(n_digits))
        return PackedWeights(
            intercept=self._intercept.astype(np.float32),
            slope=self._trend[1],
            trend=self._trend[0],
            scale=np.full(1, scale if limit > 0 else 1.0, dtype=np.float32),
            start=start.astype(np.uint32) if start[-1] <= np.iinfo(np.uint32).max else start,
            code=np.concatenate([np.empty(0, types[0]), *(code for code, _ in parts)]),
            value=np.concatenate([np.empty(0, types[1]), *(value for _, value in parts)]),
        )

    def _chunks(self) -> list[tuple[int, int]]:
        """Return ranges of features with about as many weights each."""
        return list(chunk_bounds(self._columns[0], ENTRIES_OF_A_CHUNK))

    def _pack_some(
        self,
        common: tuple[Any, ...],
        features: tuple[int, int],
        types: tuple[type, type],
        n_digits: NDArray[np.int64],
    ) -> list[tuple[Array, Array]]:
        """Return codes and values of a range of features, in one or more pieces."""
        widest = int(np.diff(self.taxonomy.first_child).max(initial=0)) + 1
        room = max(ENTRIES_OF_A_CHUNK, 2 * MOST_DIGITS * widest)
        spare = np.empty((2, widest), dtype=np.float32)
        pieces, (first, stop) = [], features
        while first < stop:
            code: Array = np.empty(room, types[0])
            value: Array = np.empty(room, types[1])
            packed = (code, value, n_digits)
            arguments = (*common, (first, stop), packed, spare)
            reached = pack_loops.fill_digits(*arguments)
            n_written = int(n_digits[first:reached].sum())
            pieces.append((code[:n_written].copy(), value[:n_written].copy()))
            room = room if reached > first else 2 * room
            first = reached
        return pieces


def _unsigned(largest: int) -> type:
    """Return the smallest unsigned type that holds a number."""
    return next(t for t in (np.uint8, np.uint16, np.uint32) if largest <= np.iinfo(t).max)
