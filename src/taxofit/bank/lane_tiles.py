"""In which order passes read the entries of X, so that what they read at random stays in a cache.

Every entry of a row reads a cache line of lanes at its feature, and every entry of a column one at
its row: 64 bytes, for features or rows in any order. A core's own cache holds some tens of
thousands of such lines. With more, the two products have to be laid out for it:

- The product with X goes row by row through the *frequent* features, a few thousand that make up
  most entries and whose lines stay in the cache. What the *rare* ones add comes first, feature by
  feature: its line is read once and added to those of the rows that use it.
- The product with Xᵀ goes through the most frequent features a *tile* of rows at a time, whose
  lines stay in the cache; others have few rows in any tile, and are read one after the other.

Time of the two products for 16 problems, on two cores at once, without lines fetched ahead: for
129,000 rows of 80 entries 42 and 48 ms became 30 and 33 ms, for 383,000 rows of 96 entries 157 and
354 ms became 127 and 136 ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit.bank import tile_loops
from taxofit.bank.lane_state import SharedColumns
from taxofit.datasets.mapped import empty_beside, row_chunks

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["arrange_columns", "stops_of_frequent"]

# Whose lines stay in a cache of 1 MiB; all are frequent then.
MOST_FEATURES = 16_384
# With these a bank of 24,000 features takes 6 % less than with all of them where a core's cache has
# 1 MiB, and 4 % less where it has 2 MiB; one of 50,000 features 13 and 9 % less. With 4096 or 2048
# it is up to 12 % worse or 8 % better, with 16,384 worse.
LEAST_FREQUENT = 8192
# A rare entry costs more where there are many rows: the best numbers of frequent features were 8192
# to 16,384 for 129,000 rows and 32,768 or more for 383,000.
ROWS_PER_FREQUENT = 8
ROWS_OF_A_TILE = 8192
LEAST_PER_TILE = 4  # entries of a column: with fewer, bounds take more space than is saved in time
MOST_ROWS = 2 * ROWS_OF_A_TILE  # without tiles; of 16,299 short ones two tiles were no faster


def arrange_columns(X: Any) -> SharedColumns:
    """Return the entries of columns, the most frequent first, as passes read them.

    Parameters
    ----------
    X : csc_array of float32, shape (n_rows, n_shared)
        Rows in order within every column.
    """
    (n_rows, n_columns), stops = X.shape, X.indptr.astype(np.int64)
    n_frequent = n_columns
    if n_columns > MOST_FEATURES:
        n_frequent = min(n_columns, max(LEAST_FREQUENT, n_rows // ROWS_PER_FREQUENT))
    n_tiles, n_tiled, indices, data = 1, 0, X.indices, X.data
    if n_rows > MOST_ROWS:
        n_tiles = -(-n_rows // ROWS_OF_A_TILE)
        n_tiled = int(np.sum(np.diff(stops[: n_frequent + 1]) >= LEAST_PER_TILE * n_tiles))
        stops, indices, data = _in_tiles(X, stops, n_tiled, n_tiles)
    stops = np.append(stops, stops[-1])  # the constant's
    return SharedColumns(stops.astype(np.uint64), indices, data, n_frequent, n_tiles, n_tiled)


def _in_tiles(
    X: Any, stops: NDArray[np.int64], n_tiled: int, n_tiles: int
) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[Any]]:
    """Return stops, rows and values: the tiled columns of every tile, then the other columns."""
    sizes, columns = np.zeros(n_tiles * n_tiled, dtype=np.int64), stops[: n_tiled + 1]
    tile_loops.count_in_tiles(columns, X.indices, ROWS_OF_A_TILE, sizes)
    tiles = np.append(0, np.cumsum(sizes))
    indices, data = empty_beside(X, X.nnz, X.indices.dtype), empty_beside(X, X.nnz, X.data.dtype)
    tile_loops.put_in_tiles(
        columns, X.indices, X.data, ROWS_OF_A_TILE, tiles[:-1].copy(), indices, data
    )
    others = slice(stops[n_tiled], None)
    indices[others], data[others] = X.indices[others], X.data[others]
    return np.concatenate([tiles, stops[n_tiled + 1 :]]), indices, data


def stops_of_frequent(X: Any, n_frequent: int) -> NDArray[np.uint64]:
    """Return where the entries of the first columns stop in every row of a CSR matrix.

    Examples
    --------
    >>> from scipy import sparse
    >>> X = sparse.csr_array([[1, 0, 2], [3, 4, 0]])
    >>> stops_of_frequent(X, n_frequent=1)
    array([1, 3], dtype=uint64)
    """
    if n_frequent == X.shape[1]:
        return X.indptr[1:].astype(np.uint64)
    starts = X.indptr[:-1].astype(np.uint64)
    for start, stop, rows in row_chunks(X):
        n_before = np.append(0, np.cumsum(rows.indices < n_frequent))
        starts[start:stop] += np.diff(n_before[rows.indptr]).astype(np.uint64)
    return starts
