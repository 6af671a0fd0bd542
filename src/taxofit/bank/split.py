"""Dividing rows into training and validation rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from taxofit.datasets.mapped import row_chunks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    UInt64Array = NDArray[np.uint64]

__all__ = ["split_rows"]

CHUNK_CELLS = 1 << 22  # dense cells hashed at a time
# Multipliers of splitmix64's finaliser, which spreads the bits of a number over all of it.
MIX_1, MIX_2, GOLDEN = (
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
    np.uint64(0x9E3779B97F4A7C15),
)


def split_rows(
    X: Any,
    row_class: NDArray[np.integer[Any]],
    weight: NDArray[np.float64],
    *,
    fraction: float,
    seed: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (training rows, validation rows); the latter hold about a fraction of the weight.

    Rows are drawn by a seeded hash of what they contain, not of where they stand: a repeated row
    lies on one side with all its copies and does not leak into the other, the order of rows does
    not matter, and a row of weight 2 is treated as two rows of weight 1.

    Parameters
    ----------
    X : ndarray or scipy sparse array, shape (n_rows, n_features)
    row_class : ndarray of int, shape (n_rows,)
    weight : ndarray of float64, shape (n_rows,)
    fraction : float
    seed : int
    """
    salt = np.uint64(seed * int(GOLDEN) % 2**64)  # numpy's scalars warn where they wrap around
    keys = _mixed(_row_keys(X) + _mixed(row_class.astype(np.uint64) + salt))
    distinct, group = np.unique(keys, return_inverse=True)
    mass = np.bincount(group, weights=weight, minlength=distinct.size)
    middle = np.cumsum(mass) - 0.5 * mass
    chosen = (middle <= fraction * mass.sum())[group]
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


def _row_keys(X: Any) -> UInt64Array:
    """Return a number for the content of each row, the same for dense and sparse X."""
    keys = np.zeros(X.shape[0], dtype=np.uint64)
    if sparse.issparse(X):
        for start, stop, part in row_chunks(X):
            cells = _cell_keys(part.indices, part.data)
            cells[part.data == 0] = 0
            np.add.at(keys, np.repeat(np.arange(start, stop), np.diff(part.indptr)), cells)
        return keys
    columns = np.arange(X.shape[1])
    step = max(1, CHUNK_CELLS // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        part = X[start : start + step]
        cells = np.where(part == 0, np.uint64(0), _cell_keys(columns, part))
        keys[start : start + step] = cells.sum(axis=1, dtype=np.uint64)
    return keys


def _cell_keys(column: NDArray[Any], value: NDArray[Any]) -> UInt64Array:
    bits = np.ascontiguousarray(value, dtype=np.float32).view(np.uint32).astype(np.uint64)
    return _mixed(_mixed(bits) + column.astype(np.uint64) * GOLDEN)


def _mixed(x: UInt64Array) -> UInt64Array:
    """Return splitmix64's finaliser of each number; it wraps around on purpose."""
    x = (x ^ (x >> np.uint64(30))) * MIX_1
    x = (x ^ (x >> np.uint64(27))) * MIX_2
    return x ^ (x >> np.uint64(31))
