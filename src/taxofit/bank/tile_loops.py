"""Numba loops that put the entries of columns into tiles of rows."""

from __future__ import annotations

from taxofit.compiling import compiled

__all__ = ["count_in_tiles", "put_in_tiles"]


@compiled
def count_in_tiles(stops, rows, n_rows, sizes):
    """Count the entries of every column in each tile of some rows, one tile after the other."""
    n_columns = stops.size - 1
    for j in range(n_columns):
        for k in range(stops[j], stops[j + 1]):
            sizes[rows[k] // n_rows * n_columns + j] += 1


@compiled
def put_in_tiles(stops, rows, values, n_rows, places, tiled_rows, tiled_values):
    """Put the entries of every column where its next one goes in their tile."""
    n_columns = stops.size - 1
    for j in range(n_columns):
        for k in range(stops[j], stops[j + 1]):
            tile = rows[k] // n_rows * n_columns + j
            tiled_rows[places[tile]], tiled_values[places[tile]] = rows[k], values[k]
            places[tile] += 1
