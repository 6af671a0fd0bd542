"""Numba loops over the weights of a solved node."""

from __future__ import annotations

import math

import numpy as np

from taxofit.bank.rank_loops import place_of
from taxofit.compiling import compiled

__all__ = ["count_kept", "place_column", "take_kept"]


@compiled
def count_kept(weights, share):
    """Return the cutoff, ``share`` of the root mean square, and how many weights exceed it."""
    square = 0.0
    for j in range(weights.size):
        square += np.float64(weights[j]) * weights[j]
    cutoff = share * math.sqrt(square / max(1, weights.size))
    n_kept = 0
    for j in range(weights.size):
        n_kept += abs(weights[j]) > cutoff
    return cutoff, n_kept


@compiled
def take_kept(weights, cutoff, indices, values):
    """Write the weights above the cutoff, and where they stand."""
    place = 0
    for j in range(weights.size):
        if abs(weights[j]) > cutoff:
            indices[place], values[place] = j, weights[j]
            place += 1


@compiled
def place_column(column, features, weights, first, stop, places, indices, data):
    """Append a column's weights to the rows of their features, whose next place moves on.

    Of the features, which ascend, only those from ``first`` to before ``stop`` count.
    """
    k = place_of(features, 0, features.size, first)
    while k < features.size and features[k] < stop:
        place = places[features[k]]
        indices[place], data[place] = column, weights[k]
        places[features[k]] = place + 1
        k += 1
