"""Numba loops that pack the weights of siblings, feature by feature."""

from __future__ import annotations

import numpy as np

from taxofit.bank.rank_loops import place_of, value_of_rank
from taxofit.compiling import compiled, part

__all__ = [
    "COARSE",
    "MOST_DIGITS",
    "fill_digits",
]

COARSE = 256  # steps of a coarse digit
MOST_DIGITS = 10  # of a weight: a fine one, and coarse ones of up to 127 for 2**18 steps


@part
def _is_seen(positions, first, stop, low, high):
    """Tell whether any of these ascending positions lies in low, …, high - 1."""
    place = place_of(positions, first, stop, low)
    return place < stop and positions[place] < high


@part
def _span(columns, tree, feature, first):
    """Return where the siblings that begin at ``first`` end, and their extreme weights."""
    indptr, nodes, values = columns
    parent_of, n_open = tree[0], tree[5]
    parent = parent_of[nodes[first]]
    low, high = np.float32(np.inf), np.float32(-np.inf)
    k, end = first, indptr[feature + 1]
    while k < end and parent_of[nodes[k]] == parent:
        low, high = min(low, values[k]), max(high, values[k])
        k += 1
    if k - first < n_open[parent]:  # the others have 0
        low, high = min(low, np.float32(0.0)), max(high, np.float32(0.0))
    return k, low, high


@part
def _settle(run, columns, tree, seen, limits, weights, scratch):
    """Fill ``weights`` with what one parent keeps of one feature.

    ``weights[c]`` is child c's difference to the shared weight, ``weights[n_children]`` the shared
    weight; what is below the limit is zero.
    """
    first, stop, feature = run
    nodes, values = columns[1], columns[2]
    parent_of, first_child, leaf_start, leaf_stop, is_open, n_open = tree
    parent = parent_of[nodes[first]]
    child = first_child[parent]
    n_children = first_child[parent + 1] - child
    for c in range(n_children):
        weights[c] = np.float32(0.0)
    for k in range(first, stop):
        weights[nodes[k] - child] = values[k]
    weights[n_children] = np.float32(0.0)
    shared = np.float32(0.0)
    if limits[0] > 0:
        n_listed = 0
        for c in range(n_children):
            if is_open[child + c]:
                scratch[n_listed] = weights[c]
                n_listed += 1
        # The lower median is one of the weights, so at least one child needs none of its own.
        shared = value_of_rank(scratch, n_open[parent], (n_open[parent] - 1) // 2)
        for c in range(n_children):
            if is_open[child + c]:
                weights[c] -= shared
    largest = np.float32(0.0)
    for c in range(n_children):
        largest = max(largest, abs(weights[c]))
    limit = limits[0]
    if limit < largest and not _is_seen(
        seen[0], seen[1][feature], seen[1][feature + 1], leaf_start[parent], leaf_stop[parent]
    ):
        limit = limits[1]
    for c in range(n_children):
        if abs(weights[c]) <= limit:
            weights[c] = np.float32(0.0)
    if abs(shared) > limits[2]:
        weights[n_children] = shared


@part
def _digits(weight, scale):
    """Return a weight's coarse digits, as one number, and its fine digit, within -128, …, 127."""
    n_steps = int(np.rint(weight / scale))
    coarse = (n_steps + COARSE // 2) >> 8
    return coarse, n_steps - coarse * COARSE


@compiled
def fill_digits(columns, tree, seen, limits, wanted, scale, first_code, features, packed, spare):
    """Write the codes and values of features, as long as there is room for all of one.

    Parameters
    ----------
    columns, tree, seen, limits, wanted, scale, first_code
        See :class:`taxofit.predict.packer.Packer`.
    features : (int, int)
        The first, and the one after the last.
    packed : tuple of ndarray
        code, value, and n_digits of every feature.
    spare : ndarray of float32, shape (2, n)
        Room for a parent's children and what they share.

    Returns
    -------
    int
        The first feature that has not been written.
    """
    indptr, nodes = columns[0], columns[1]
    code, value, n_digits = packed
    parent_of, first_child, n_open = tree[0], tree[1], tree[5]
    weights, scratch = spare[0], spare[1]
    place = np.int64(0)  # not the type of a literal 0, for which `_write` would be compiled again
    for feature in range(features[0], features[1]):
        first, begun = indptr[feature], place
        while wanted[feature] and first < indptr[feature + 1]:
            parent = parent_of[nodes[first]]
            stop, low, high = _span(columns, tree, feature, first)
            is_small = high - low <= limits[0] and max(high, -low) <= limits[2]  # most are
            if not is_small and (n_open[parent] > 1 or parent == 0):
                n_weights = first_child[parent + 1] - first_child[parent] + 1
                if code.size - place < MOST_DIGITS * n_weights:
                    return feature
                run = (first, stop, feature)
                _settle(run, columns, tree, seen, limits, weights, scratch)
                place = _write(weights, n_weights, scale, first_code[parent], code, value, place)
            first = stop
        n_digits[feature] = place - begun
    return features[1]


@part
def _write(weights, n_weights, scale, first_code, code, value, place):
    """Write what is not 0, from ``place`` on, as digits or whole; return the place after it."""
    for c in range(n_weights):
        fine_code = first_code + 2 * c
        if scale == 0:
            if weights[c] != 0:
                code[place], value[place] = fine_code, weights[c]
                place += 1
            continue
        coarse, fine = _digits(weights[c], scale)
        if fine != 0:
            code[place], value[place] = fine_code, fine
            place += 1
        while coarse != 0:  # very large weights have several
            digit = max(-127, min(127, coarse))
            code[place], value[place] = fine_code + 1, digit
            coarse -= digit
            place += 1
    return place
