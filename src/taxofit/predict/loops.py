"""Numba loops that walk rows down a taxonomy; free functions over plain arrays."""

from __future__ import annotations

import numba
import numpy as np

__all__ = ["walk_dense", "walk_packed", "walk_scores"]

_compiled = numba.njit(cache=True, nogil=True)
_compiled_reordering = numba.njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})


@_compiled
def walk_scores(scores, first_child, column, reached):
    """Follow the highest score from the root; of equal ones the first child wins."""
    for i in range(scores.shape[0]):
        node = 0
        while first_child[node] < first_child[node + 1]:
            best = first_child[node]
            highest = scores[i, column[best]]
            for child in range(first_child[node] + 1, first_child[node + 1]):
                if scores[i, column[child]] > highest:
                    highest = scores[i, column[child]]
                    best = child
            node = best
        reached[i] = node


@_compiled_reordering
def _dot(a, b):
    total = 0.0
    for k in range(a.size):
        total += a[k] * b[k]
    return total


@_compiled
def walk_dense(X, matrix, intercept, first_child, reached, score):
    """As above, with scores computed on the way from dense weights, shape (n_nodes, n_features)."""
    for i in range(X.shape[0]):
        node = 0
        highest = -np.inf
        while first_child[node] < first_child[node + 1]:
            best = first_child[node]
            highest = -np.inf
            for child in range(first_child[node], first_child[node + 1]):
                if intercept[child] > -np.inf:
                    value = _dot(X[i], matrix[child]) + intercept[child]
                    if value > highest:
                        highest = value
                        best = child
            node = best
        reached[i] = node
        score[i] = highest


@_compiled
def walk_packed(rows, packed, intercept, first_child, reached, score):
    """As above, with packed weights; see :class:`taxofit.predict.weights.PackedWeights`."""
    indptr, indices, data = rows
    block_start, feature, entry_start, child_offset, value = packed
    totals = np.empty(np.max(first_child[1:] - first_child[:-1]), dtype=np.float32)
    for i in range(reached.size):
        node = 0
        highest = np.float32(-np.inf)
        while first_child[node] < first_child[node + 1]:
            first, stop = first_child[node], first_child[node + 1]
            totals[: stop - first] = intercept[first:stop]
            listed = feature[block_start[node] : block_start[node + 1]]
            for k in range(indptr[i], indptr[i + 1]):
                place = np.searchsorted(listed, indices[k])
                if place < listed.size and listed[place] == indices[k]:
                    entry = block_start[node] + place
                    for e in range(entry_start[entry], entry_start[entry + 1]):
                        totals[child_offset[e]] += data[k] * value[e]
            best = 0
            for c in range(1, stop - first):
                if totals[c] > totals[best]:
                    best = c
            highest = totals[best]
            node = first + best
        reached[i] = node
        score[i] = highest
