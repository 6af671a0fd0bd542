"""Numba loops over the weights of a solved node."""

from __future__ import annotations

import math

import numpy as np

from taxofit.bank.rank_loops import place_of, value_of_rank
from taxofit.compiling import compiled, part

__all__ = ["measure_rows", "norms_of_rows", "place_columns", "take_rows"]


@compiled
def norms_of_rows(rows):
    """Return the norm of every row of a matrix."""
    norms = np.empty(rows.shape[0])
    for k in range(rows.shape[0]):
        norms[k] = math.sqrt(_square(rows[k]))
    return norms


@part
def _square(values):
    """Return Σ v², in four sums that need not wait for each other."""
    first = second = third = fourth = 0.0
    whole = values.size - values.size % 4
    for j in range(0, whole, 4):
        first += np.float64(values[j]) * values[j]
        second += np.float64(values[j + 1]) * values[j + 1]
        third += np.float64(values[j + 2]) * values[j + 2]
        fourth += np.float64(values[j + 3]) * values[j + 3]
    for j in range(whole, values.size):
        first += np.float64(values[j]) * values[j]
    return (first + second) + (third + fourth)


@compiled
def measure_rows(rows, trend, places, care, share):
    """Return of every row, a node's weights, what it keeps: slopes, cutoffs and how many weights.

    The slope is that along the trend, or 0 where that would leave more. The cutoff is ``share`` of
    the root mean square of the weights; of each feature's it is the part that ``care`` says.
    Weights beyond the trend's features do not count.
    """
    n_rows, n_features = rows.shape[0], trend.size
    slopes, cutoffs = np.zeros(n_rows, dtype=np.float32), np.empty(n_rows, dtype=np.float32)
    counts, ratios = np.empty(n_rows, dtype=np.int64), np.empty(places.size, dtype=np.float32)
    for k in range(n_rows):
        weights = rows[k, :n_features]
        cutoff = np.float32(share * math.sqrt(_square(weights) / max(1, n_features)))
        counts[k] = _count_beside(weights, trend, care, slopes[k], cutoff)
        if places.size:
            slope = _slope_along(weights, trend, places, ratios)
            n_left = _count_beside(weights, trend, care, slope, cutoff)
            if n_left < counts[k]:
                slopes[k], counts[k] = slope, n_left
        cutoffs[k] = cutoff
    return slopes, cutoffs, counts


@part
def _slope_along(weights, trend, places, ratios):
    """Return the median of weight by trend over these places; ``ratios`` is room for them."""
    for k in range(places.size):
        ratios[k] = weights[places[k]] / trend[places[k]]
    return value_of_rank(ratios, places.size, places.size // 2)


@part
def _count_beside(weights, trend, care, slope, cutoff):
    """Return how many weights exceed the cutoff beside slope times trend."""
    n_left = np.int32(0)  # as wide as a weight, so that several are counted at once
    for j in range(weights.size):
        n_left += np.int32(abs(weights[j] - slope * trend[j]) > cutoff * care[j])
    return n_left


@compiled
def take_rows(rows, trend, care, slopes, cutoffs, indices, values):
    """Write what rows keep, one after the other, and where it stands.

    There is room for one more than that: every weight is written, and most are written over. To ask
    first whether it stays takes three times as long where 5,000 of 39,000 do, in no order that can
    be foreseen, and as long where 800 do.
    """
    place = 0
    for k in range(rows.shape[0]):
        slope, cutoff = slopes[k], cutoffs[k]
        for j in range(trend.size):
            left = rows[k, j] - slope * trend[j]
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
