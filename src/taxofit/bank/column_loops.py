"""Numba loops over the weights of solved nodes, a node's weights side by side."""

from __future__ import annotations

import math

import numpy as np

from taxofit.compiling import compiled

__all__ = ["count_kept", "place_column", "take_kept"]


@compiled
def count_kept(weights, share, cutoff, n_kept):
    """Set each row's cutoff, ``share`` of its root mean square, and how many weights exceed it.

    weights : float (width, n_features); cutoff : float64 (width,); n_kept : int64 (width,).
    """
    width, n_features = weights.shape
    for k in range(width):
        square = 0.0
        for j in range(n_features):
            square += np.float64(weights[k, j]) * weights[k, j]
        cutoff[k] = share * math.sqrt(square / max(1, n_features))
        n = 0
        for j in range(n_features):
            n += abs(weights[k, j]) > cutoff[k]
        n_kept[k] = n


@compiled
def take_kept(weights, cutoff, indices, values):
    """Write the weights above each row's cutoff, and where they stand, one row after the other."""
    width, n_features = weights.shape
    place = 0
    for k in range(width):
        for j in range(n_features):
            if abs(weights[k, j]) > cutoff[k]:
                indices[place], values[place] = j, weights[k, j]
                place += 1


@compiled
def place_column(column, features, weights, places, indices, data):
    """Append one column's weights to the rows of their features, whose next place moves on."""
    for k in range(features.size):
        place = places[features[k]]
        indices[place], data[place] = column, weights[k]
        places[features[k]] = place + 1
