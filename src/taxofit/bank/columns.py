"""Weights of solved blocks, pruned and kept column by column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from taxofit.bank import column_loops

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

__all__ = ["ColumnStore", "columns_from_arrays", "columns_to_arrays", "prune_columns"]


def prune_columns(weights: Array, share: float) -> sparse.csc_array:
    """Return weights without the entries that are too small to matter.

    Of a column θ with d entries, those below ``share`` · ‖θ‖ / √d are dropped. Together they have a
    norm of at most ``share`` · ‖θ‖, so no score θ·x changes by more than ``share`` · ‖θ‖ · ‖x‖.

    Parameters
    ----------
    weights : ndarray, shape (n_features, width)
    share : float
        0 drops nothing but zeros.

    Examples
    --------
    >>> prune_columns(np.array([[3.0], [0.1], [4.0]]), share=0.05).toarray().ravel().tolist()
    [3.0, 0.0, 4.0]
    """
    by_column = np.ascontiguousarray(weights.T)
    cutoff, n_kept = np.empty(len(by_column)), np.empty(len(by_column), dtype=np.int64)
    column_loops.count_kept(by_column, float(share), cutoff, n_kept)
    indptr = np.append(0, np.cumsum(n_kept))
    indices = np.empty(indptr[-1], dtype=np.int32)
    values = np.empty(indptr[-1], dtype=by_column.dtype)
    column_loops.take_kept(by_column, cutoff, indices, values)
    return sparse.csc_array((values, indices, indptr), shape=weights.shape)


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

    def to_csr(self) -> sparse.csr_array:
        """Return all weights feature by feature, and keep nothing: there may be many."""
        indptr = np.zeros(self._shape[0] + 1, dtype=np.int64)
        for _, block in self._blocks.values():
            indptr[1:] += np.bincount(block.indices, minlength=self._shape[0])
        indptr = np.cumsum(indptr)
        indices = np.empty(indptr[-1], dtype=np.int32)
        data = np.empty(indptr[-1], dtype=np.float32)
        places = indptr[:-1].copy()
        in_order = sorted(
            (int(column), k, key)
            for key, (columns, _) in self._blocks.items()
            for k, column in enumerate(columns)
        )
        for column, k, key in in_order:
            block = self._blocks[key][1]
            mine = slice(block.indptr[k], block.indptr[k + 1])
            column_loops.place_column(
                column, block.indices[mine], block.data[mine], places, indices, data
            )
        self._blocks = {}
        rows = sparse.csr_array(self._shape, dtype=np.float32)
        rows.indptr, rows.indices, rows.data = indptr, indices, data  # as they are: no wider copies
        return rows

    def to_csc(self) -> sparse.csc_array:
        """Return all columns in their places; those never put are zero."""
        indptr = np.zeros(self._shape[1] + 1, dtype=np.int64)
        for columns, block in self._blocks.values():
            indptr[columns + 1] = np.diff(block.indptr)
        indptr = np.cumsum(indptr)
        indices = np.empty(indptr[-1], dtype=np.int32)
        data = np.empty(indptr[-1], dtype=np.float32)
        for columns, block in self._blocks.values():
            for k, column in enumerate(columns):
                mine = slice(block.indptr[k], block.indptr[k + 1])
                indices[indptr[column] : indptr[column + 1]] = block.indices[mine]
                data[indptr[column] : indptr[column + 1]] = block.data[mine]
        return sparse.csc_array((data, indices, indptr), shape=self._shape)
