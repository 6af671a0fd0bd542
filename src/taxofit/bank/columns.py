"""Weights of solved blocks, pruned and kept column by column."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from taxofit.bank import column_loops
from taxofit.bank.trend import Trend
from taxofit.datasets.mapped import chunk_bounds

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[Any]

__all__ = [
    "ColumnStore",
    "columns_from_arrays",
    "columns_to_arrays",
    "prune_along",
    "prune_columns",
]

RANGES_PER_THREAD = 4  # of features; some are done sooner than others


def prune_columns(weights: Array, share: float, n_threads: int = 1) -> sparse.csc_array:
    """Return weights without the entries that are too small to matter.

    Of a column θ with d entries, those below ``share`` · ‖θ‖ / √d are dropped. Together they have a
    norm of at most ``share`` · ‖θ‖, so no score θ·x changes by more than ``share`` · ‖θ‖ · ‖x‖.

    Parameters
    ----------
    weights : ndarray, shape (n_features, width)
    share : float
        0 drops nothing but zeros.
    n_threads : int
        The result does not depend on it.

    Examples
    --------
    >>> prune_columns(np.array([[3.0], [0.1], [4.0]]), share=0.05).toarray().ravel().tolist()
    [3.0, 0.0, 4.0]
    """
    return prune_along(weights, share, Trend.of_nothing(weights.shape[0]), n_threads)[0]


def prune_along(
    weights: Array, share: float, trend: Trend, n_threads: int = 1
) -> tuple[sparse.csc_array, NDArray[np.float32]]:
    """Return what weights are beside a slope times the trend, pruned, and the slope of each column.

    As :func:`prune_columns`, with the same bound or, of features with large values, a narrower one.
    A slope is 0 where it would leave more. Weights of features beyond the trend's are left out.

    Examples
    --------
    >>> trend = Trend(np.array([1, 2, 3], dtype=np.int16), np.arange(3), np.ones(3, np.float32))
    >>> left, slope = prune_along(np.array([[2.0], [4.0], [9.0]]), 0.01, trend)
    >>> left.toarray().ravel().tolist(), slope.tolist()
    ([0.0, 0.0, 3.0], [2.0])
    """
    steps, places, care = trend.steps, trend.places, trend.care
    rows = np.ascontiguousarray(weights.T)  # most lie together already

    def prune(mine: Array) -> tuple[Array, Array, Array, Array]:
        slopes, cutoffs, counts = column_loops.measure_rows(mine, steps, places, care, float(share))
        indices = np.empty(counts.sum() + 1, dtype=np.int32)
        values = np.empty(indices.size, dtype=weights.dtype)
        column_loops.take_rows(mine, steps, care, slopes, cutoffs, indices, values)
        return slopes, counts, indices[:-1], values[:-1]

    if n_threads == 1:
        slopes, counts, indices, values = prune(rows)
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            parts = list(pool.map(prune, np.array_split(rows, n_threads)))
        slopes, counts, indices, values = (
            np.concatenate(some) for some in zip(*parts, strict=True)
        )
    shape = steps.size, rows.shape[0]
    return sparse.csc_array((values, indices, _stops(counts)), shape=shape), slopes


def _stops(counts: ArrayLike) -> NDArray[np.integer[Any]]:
    """Return where counted entries begin, and where the last end, in 32 bits if they will do.

    SciPy would make indices as wide as that, by a copy.
    """
    stops = np.append(0, np.cumsum(counts, dtype=np.int64))
    return stops.astype(np.int32) if stops[-1] <= np.iinfo(np.int32).max else stops


def columns_to_arrays(columns: sparse.csc_array) -> dict[str, Array]:
    """Return sparse columns as plain arrays; :func:`columns_from_arrays` undoes it.

    Examples
    --------
    >>> columns = prune_columns(np.array([[3.0], [0.1], [4.0]]), share=0.05)
    >>> columns_from_arrays(columns_to_arrays(columns)).toarray().ravel().tolist()
    [3.0, 0.0, 4.0]
    """
    return {
        "n_features": np.array(columns.shape[0]),
        "indptr": columns.indptr,
        "indices": columns.indices,
        "values": columns.data,
    }


def columns_from_arrays(arrays: dict[str, Array]) -> sparse.csc_array:
    """Return the sparse columns that were made into plain arrays."""
    shape = (int(arrays["n_features"]), arrays["indptr"].size - 1)
    return sparse.csc_array((arrays["values"], arrays["indices"], arrays["indptr"]), shape=shape)


class ColumnStore:
    """A sparse matrix of weights, filled in block by block from several threads.

    Parameters
    ----------
    shape : (n_features, n_columns)

    Examples
    --------
    >>> store = ColumnStore((2, 3))
    >>> store.put(np.array([2, 0]), prune_columns(np.array([[1.0, 2.0], [3.0, 0.0]]), share=0.0))
    >>> store.to_csc().toarray().tolist()
    [[2.0, 0.0, 1.0], [0.0, 0.0, 3.0]]
    >>> store.to_csr().toarray().tolist()
    [[2.0, 0.0, 1.0], [0.0, 0.0, 3.0]]
    """

    def __init__(self, shape: tuple[int, int]) -> None:
        self._shape = shape
        self._blocks: dict[int, tuple[NDArray[np.int64], sparse.csc_array]] = {}

    def put(self, columns: NDArray[np.integer[Any]], weights: sparse.csc_array) -> None:
        """Keep the weights of these columns, shape (n_features, len(columns))."""
        if columns.size:
            self._blocks[int(columns[0])] = (columns.astype(np.int64), weights)

    def to_csr(self, n_threads: int = 1) -> sparse.csr_array:
        """Return all weights feature by feature, and keep nothing: there may be many."""
        columns, self._blocks = self.to_csc(), {}
        counts = np.bincount(columns.indices, minlength=self._shape[0])
        indptr = np.append(0, np.cumsum(counts, dtype=np.int64))
        indices = np.empty(columns.nnz, dtype=np.int32)
        data = np.empty(columns.nnz, dtype=np.float32)
        given, places = (columns.indptr, columns.indices, columns.data), indptr[:-1].copy()

        def place_features(bounds: tuple[int, int]) -> None:
            column_loops.place_columns(*given, *bounds, places, indices, data)

        n_entries = max(1, columns.nnz // (RANGES_PER_THREAD * n_threads))
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(place_features, chunk_bounds(indptr, n_entries)))
        rows = sparse.csr_array(self._shape, dtype=np.float32)
        rows.indptr, rows.indices, rows.data = indptr, indices, data  # as they are: no wider copies
        return rows

    def to_csc(self) -> sparse.csc_array:
        """Return all columns in their places; those never put are zero."""
        counts = np.zeros(self._shape[1], dtype=np.int64)
        for columns, block in self._blocks.values():
            counts[columns] = np.diff(block.indptr)
        indptr = _stops(counts)
        indices = np.empty(indptr[-1], dtype=np.int32)
        data = np.empty(indptr[-1], dtype=np.float32)
        for columns, block in self._blocks.values():
            for k, column in enumerate(columns):
                mine = slice(block.indptr[k], block.indptr[k + 1])
                indices[indptr[column] : indptr[column + 1]] = block.indices[mine]
                data[indptr[column] : indptr[column + 1]] = block.data[mine]
        return sparse.csc_array((data, indices, indptr), shape=self._shape)
