"""Columns of a sparse matrix that are the same, bit by bit.

Text has many: a rare word and the pairs that it is part of occur in the same rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit.datasets.mapped import chunk_bounds, run_sums

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["first_equals"]

# Odd numbers without a pattern, to spread the bits of an entry.
ROW_FACTOR, VALUE_FACTOR, SPREAD_FACTOR = (
    np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93)
)
HALF = np.uint64(32)


def first_equals(X: Any) -> NDArray[np.int64]:
    """Return for every column of a CSC matrix in float32 the first column that equals it.

    Rows are in order within columns, and there are no explicit zeros.

    Examples
    --------
    >>> from scipy import sparse
    >>> X = sparse.csc_array(np.array([[1, 1, 1], [2, 2, 3]], dtype=np.float32))
    >>> first_equals(X)
    array([0, 0, 2])
    """
    length = np.diff(X.indptr).astype(np.int64)
    _, place, group = np.unique(_hashes(X), return_index=True, return_inverse=True)
    first = place[group]
    seconds = np.flatnonzero((first != np.arange(first.size)) & (length > 0))
    seconds = seconds[length[seconds] == length[first[seconds]]]
    found = np.arange(first.size)
    stops = np.append(0, np.cumsum(length[seconds]))
    for start, stop in chunk_bounds(stops):
        mine = seconds[start:stop]
        mine = mine[_are_equal(X, mine, first[mine], length[mine])]
        found[mine] = first[mine]
    return found


def _hashes(X: Any) -> NDArray[np.uint64]:
    """Return a number for every column that is the same for equal ones."""
    hashes = np.zeros(X.shape[1], dtype=np.uint64)
    for start, stop in chunk_bounds(X.indptr):
        entries = slice(X.indptr[start], X.indptr[stop])
        mixed = X.indices[entries].astype(np.uint64) * ROW_FACTOR
        mixed += np.asarray(X.data[entries]).view(np.uint32) * VALUE_FACTOR
        mixed ^= mixed >> HALF
        mixed *= SPREAD_FACTOR
        mixed ^= mixed >> HALF
        hashes[start:stop] = run_sums(mixed, X.indptr[start : stop + 1] - X.indptr[start])
    return hashes


def _are_equal(X: Any, left: Any, right: Any, length: Any) -> NDArray[np.bool_]:
    """Return which of these columns, of these lengths, equal those beside them."""
    stops = np.cumsum(length)
    within = np.arange(stops[-1] if stops.size else 0) - np.repeat(stops - length, length)
    a = np.repeat(X.indptr[left], length) + within
    b = np.repeat(X.indptr[right], length) + within
    differs = (X.indices[a] != X.indices[b]) | (X.data[a] != X.data[b])
    n_different = np.bincount(np.repeat(np.arange(left.size), length), differs, left.size)
    return n_different == 0
