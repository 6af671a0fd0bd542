"""Numba loops over the weights of a solved node."""

from __future__ import annotations

import math

import numpy as np

from taxofit.bank.rank_loops import place_of, value_of_rank
from taxofit.compiling import compiled, part

__all__ = ["count_kept", "norms_of_rows", "place_columns", "slope_along", "take_kept"]


@compiled
def slope_along(weights, trend, places, ratios):
    """Return the median of weight by trend over these places; ``ratios`` is room for them."""
    for k in range(places.size):
        ratios[k] = weights[places[k]] / trend[places[k]]
    return value_of_rank(ratios, places.size, places.size // 2)


@compiled
def norms_of_rows(rows):
    """Return the norm of every row of a matrix."""
    norms = np.empty(rows.shape[0])
    for k in range(rows.shape[0]):
        norms[k] = math.sqrt(_square(rows[k]))
    return norms


@part
def _square(values):
    """Return Σ v², in eight sums that need not wait for each other."""
    a = b = c = d = e = f = g = h = 0.0
    whole = values.size - values.size % 8
    for j in range(0, whole, 8):
        a += np.float64(values[j]) ** 2
        b += np.float64(values[j + 1]) ** 2
        c += np.float64(values[j + 2]) ** 2
        d += np.float64(values[j + 3]) ** 2
        e += np.float64(values[j + 4]) ** 2
        f += np.float64(values[j + 5]) ** 2
        g += np.float64(values[j + 6]) ** 2
        h += np.float64(values[j + 7]) ** 2
    for j in range(whole, values.size):
        a += np.float64(values[j]) ** 2
    return ((a + b) + (c + d)) + ((e + f) + (g + h))


@compiled
def count_kept(weights, trend, care, slope, share):
    """Return a cutoff and how many weights exceed it: as they are, and less slope times trend.

    The cutoff is ``share`` of the root mean square of the weights; of each feature's it is the part
    that ``care`` says.
    """
    cutoff = np.float32(share * math.sqrt(_square(weights) / max(1, weights.size)))
    n_whole = _count_beside(weights, trend, care, np.float32(0), cutoff)
    n_left = n_whole if slope == 0 else _count_beside(weights, trend, care, slope, cutoff)
    return cutoff, n_whole, n_left


@part
def _count_beside(weights, trend, care, slope, cutoff):
    """Return how many weights exceed the cutoff beside slope times trend."""
    n_left = np.int32(0)  # as wide as a weight, so that several are counted at once
    for j in range(weights.size):
        n_left += np.int32(abs(weights[j] - slope * trend[j]) > cutoff * care[j])
    return n_left


@compiled
def take_kept(weights, trend, care, slope, cutoff, indices, values):
    """Write what weights have above the cutoff beside slope times trend, and where it stands.

    There is room for one more than that: every weight is written, and most are written over. To ask
    first whether it stays would take three times as long, since there is no telling beforehand.
    """
    place = 0
    for j in range(weights.size):
        left = weights[j] - slope * trend[j]
        indices[place], values[place] = j, left
        place += abs(left) > cutoff * care[j]


@compiled
def place_columns(stops, features, weights, first, stop, places, indices, data):
    """Append the weights of every column to the rows of their features, whose next place moves on.

    Column k has ``features[stops[k]:stops[k + 1]]``, which ascend; of these only the ones from
    ``first`` to before ``stop`` count.
    """
    for column in range(stops.size - 1):
        k = place_of(features, stops[column], stops[column + 1], first)
        while k < stops[column + 1] and features[k] < stop:
            place = places[features[k]]
            indices[place], data[place] = column, weights[k]
            places[features[k]] = place + 1
            k += 1
