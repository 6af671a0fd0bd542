"""Numba loops that pack the weights of siblings, feature by feature."""

from __future__ import annotations

import numba
import numpy as np

__all__ = ["count_weights", "fill_weights", "lost_scores"]

_compiled = numba.njit(cache=True, nogil=True)


@_compiled
def _select(values, n_values, rank):
    """Return the value of this rank, 0 being the smallest; the values change places."""
    first, last = 0, n_values - 1
    while first < last:
        pivot = values[(first + last) >> 1]
        low, high = first, last
        while low <= high:
            while values[low] < pivot:
                low += 1
            while values[high] > pivot:
                high -= 1
            if low <= high:
                values[low], values[high] = values[high], values[low]
                low += 1
                high -= 1
        if rank <= high:
            last = high
        elif rank >= low:
            first = low
        else:
            break
    return values[rank]


@_compiled
def _median(values, first, stop, n_siblings, scratch):
    """Return the lower median of the siblings' weights, those not listed being zero.

    It is one of the weights, so at least one sibling needs none of its own.
    """
    n_negative = 0
    for k in range(first, stop):
        n_negative += values[k] < 0
    middle = (n_siblings - 1) // 2
    n_zero = n_siblings - (stop - first)
    if n_negative <= middle < n_negative + n_zero:
        return np.float32(0.0)
    for k in range(first, stop):
        scratch[k - first] = values[k]
    return _select(scratch, stop - first, middle if middle < n_negative else middle - n_zero)


@_compiled
def _is_seen(positions, first, stop, low, high):
    """Tell whether any of these ascending positions lies in low, …, high - 1."""
    end = stop
    while first < stop:
        middle = (first + stop) >> 1
        if positions[middle] < low:
            first = middle + 1
        else:
            stop = middle
    return first < end and positions[first] < high


@_compiled
def _settle(run, nodes, values, tree, seen, limits, weights):
    """Fill ``weights`` with what one parent keeps of one feature; return how many it keeps.

    ``weights[c]`` is child c's difference to the shared weight, ``weights[n_children]`` the shared
    weight; what is below the limit is zero.
    """
    first, stop, feature = run
    parent_of, first_child, leaf_start, leaf_stop, is_open, n_open = tree
    parent = parent_of[nodes[first]]
    n_children = first_child[parent + 1] - first_child[parent]
    shared = np.float32(0.0)
    limit = limits[0]
    if limits[1] > 0:
        shared = _median(values, first, stop, n_open[parent], weights)
        largest = abs(shared) if stop - first < n_open[parent] else np.float32(0.0)
        for k in range(first, stop):
            largest = max(largest, abs(values[k] - shared))
        keeps_shared = abs(shared) > limits[2]
        if largest <= limit and not keeps_shared:  # the most common case by far
            return 0
        if not _is_seen(
            seen[0], seen[1][feature], seen[1][feature + 1], leaf_start[parent], leaf_stop[parent]
        ):
            limit = limits[1]
            if largest <= limit and not keeps_shared:
                return 0
    for c in range(n_children):
        weights[c] = -shared if is_open[first_child[parent] + c] else np.float32(0.0)
    for k in range(first, stop):
        weights[nodes[k] - first_child[parent]] += values[k]
    n_kept = 0
    for c in range(n_children):
        if abs(weights[c]) > limit:
            n_kept += 1
        else:
            weights[c] = np.float32(0.0)
    weights[n_children] = np.float32(0.0)
    if abs(shared) > limits[2]:
        weights[n_children] = shared
        n_kept += 1
    return n_kept


@_compiled
def _run_stop(nodes, first, stop, parent_of):
    """Return where the siblings that begin at ``first`` end."""
    parent = parent_of[nodes[first]]
    last = first + 1
    while last < stop and parent_of[nodes[last]] == parent:
        last += 1
    return last


@_compiled
def count_weights(columns, tree, seen, limits, n_pairs, n_weights, largest):
    """Count pairs and weights of every feature, and find the largest weight of every parent."""
    indptr, nodes, values = columns
    parent_of, first_child, n_open = tree[0], tree[1], tree[5]
    weights = np.empty(np.max(first_child[1:] - first_child[:-1]) + 1, np.float32)
    for feature in range(indptr.size - 1):
        first = indptr[feature]
        while first < indptr[feature + 1]:
            stop = _run_stop(nodes, first, indptr[feature + 1], parent_of)
            parent = parent_of[nodes[first]]
            if n_open[parent] > 1 or parent == 0:
                n_kept = _settle((first, stop, feature), nodes, values, tree, seen, limits, weights)
                if n_kept:
                    n_pairs[feature] += 1
                    n_weights[feature] += n_kept
                    for c in range(first_child[parent + 1] - first_child[parent] + 1):
                        largest[parent] = max(largest[parent], abs(weights[c]))
            first = stop


@_compiled
def fill_weights(columns, tree, seen, limits, scale, packed):
    """Write pairs and weights in the places that the counts gave them."""
    indptr, nodes, values = columns
    pair_start, weight_start, pair_parent, pair_offset, child, value = packed
    parent_of, first_child, n_open = tree[0], tree[1], tree[5]
    weights = np.empty(np.max(first_child[1:] - first_child[:-1]) + 1, np.float32)
    for feature in range(indptr.size - 1):
        first = indptr[feature]
        pair, entry = pair_start[feature], weight_start[feature]
        while first < indptr[feature + 1]:
            stop = _run_stop(nodes, first, indptr[feature + 1], parent_of)
            parent = parent_of[nodes[first]]
            if (n_open[parent] > 1 or parent == 0) and _settle(
                (first, stop, feature), nodes, values, tree, seen, limits, weights
            ):
                pair_parent[pair] = parent
                pair_offset[pair] = entry - weight_start[feature]
                pair += 1
                for c in range(first_child[parent + 1] - first_child[parent] + 1):
                    if weights[c] != 0:
                        child[entry] = c
                        if limits[1] > 0:
                            value[entry] = round(weights[c] / scale[parent])
                        else:
                            value[entry] = weights[c]
                        entry += 1
            first = stop


@_compiled
def lost_scores(columns, tree, seen, limits, factors, trial, lost):
    """Add up what leaving weights out takes from the scores of trial rows, for several limits.

    ``trial`` are the trial rows by feature (CSC); ``lost``, shape (n_limits, n_rows, n_nodes),
    gets at k what limit k takes beyond limit k - 1. Limits ascend.
    """
    indptr, nodes, values = columns
    row_start, row, amount = trial
    parent_of, first_child, leaf_start, leaf_stop, _, n_open = tree
    weights = np.empty(np.max(first_child[1:] - first_child[:-1]) + 1, np.float32)
    for feature in range(indptr.size - 1):
        if row_start[feature] == row_start[feature + 1]:
            continue
        first = indptr[feature]
        while first < indptr[feature + 1]:
            stop = _run_stop(nodes, first, indptr[feature + 1], parent_of)
            parent = parent_of[nodes[first]]
            if n_open[parent] > 1 or parent == 0:
                _settle(
                    (first, stop, feature),
                    nodes,
                    values,
                    tree,
                    seen,
                    (np.float32(0.0), np.float32(1e-30), np.float32(0.0)),
                    weights,
                )
                allowed, shared_factor = factors
                if _is_seen(
                    seen[0],
                    seen[1][feature],
                    seen[1][feature + 1],
                    leaf_start[parent],
                    leaf_stop[parent],
                ):
                    allowed = np.float32(1.0)
                child = first_child[parent]
                n_children = first_child[parent + 1] - child
                for c in range(n_children + 1):
                    if weights[c] == 0:
                        continue
                    if c == n_children:
                        allowed = shared_factor
                    level = 0
                    while level < limits.size and abs(weights[c]) > limits[level] * allowed:
                        level += 1
                    if level == limits.size:
                        continue
                    for e in range(row_start[feature], row_start[feature + 1]):
                        part = weights[c] * amount[e]
                        if c < n_children:
                            lost[level, row[e], child + c] += part
                        else:
                            for sibling in range(n_children):
                                lost[level, row[e], child + sibling] += part
            first = stop
