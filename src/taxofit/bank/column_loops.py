"""Numba loops over the weights of a solved node."""

from __future__ import annotations

import math

import numpy as np

from taxofit.bank.rank_loops import place_of, value_of_rank
from taxofit.compiling import compiled

__all__ = ["count_kept", "place_columns", "slope_along", "take_kept"]


@compiled
def slope_along(weights, trend, places, ratios):
    """Return the median of weight by trend over these places; ``ratios`` is room for them."""
    for k in range(places.size):
        ratios[k] = weights[places[k]] / trend[places[k]]
    return value_of_rank(ratios, places.size, places.size // 2)


@compiled
def count_kept(weights, trend, care, slope, share):
    """Return a cutoff and how many weights exceed it: as they are, and less slope times trend.

    The cutoff is ``share`` of the root mean square of the weights; of each feature's it is the part
    that ``care`` says.
    """
    square = 0.0
    for j in range(weights.size):
        square += np.float64(weights[j]) * weights[j]
    cutoff = share * math.sqrt(square / max(1, weights.size))
    n_whole = n_left = 0
    for j in range(weights.size):
        n_whole += abs(weights[j]) > cutoff * care[j]
        n_left += abs(weights[j] - slope * trend[j]) > cutoff * care[j]
    return cutoff, n_whole, n_left


@compiled
def take_kept(weights, trend, care, slope, cutoff, indices, values):
    """Write what weights have above the cutoff beside slope times trend, and where it stands."""
    place = 0
    for j in range(weights.size):
        left = weights[j] - slope * trend[j]
        if abs(left) > cutoff * care[j]:
            indices[place], values[place] = j, left
            place += 1


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
