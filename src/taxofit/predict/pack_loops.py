"""Numba loops that pack the weights of siblings, feature by feature."""

from __future__ import annotations

import numba
import numpy as np

__all__ = [
    "COARSE",
    "add_along",
    "add_clipped",
    "count_digits",
    "fill_digits",
]

COARSE = 256  # steps of a coarse digit

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
def _settle(run, columns, tree, seen, limits, trend, weights, scratch):
    """Fill ``weights`` with what one parent keeps of one feature; return how many it keeps.

    ``weights[c]`` is child c's difference to the shared weight, ``weights[n_children]`` the shared
    weight, both without the trend; what is below the limit is zero.
    """
    first, stop, feature = run
    nodes, values = columns[1], columns[2]
    parent_of, first_child, leaf_start, leaf_stop, is_open, n_open = tree
    parent = parent_of[nodes[first]]
    child = first_child[parent]
    n_children = first_child[parent + 1] - child
    low, high = np.float32(np.inf), np.float32(-np.inf)
    if stop - first < n_open[parent]:
        low = high = np.float32(0.0)
    for k in range(first, stop):
        own = np.float32(values[k] - trend[0][feature] * trend[1][nodes[k]])
        low, high = min(low, own), max(high, own)
    if high - low <= limits[0] and max(high, -low) <= limits[2]:
        return 0  # most often by far
    for c in range(n_children):
        weights[c] = np.float32(0.0)
    for k in range(first, stop):
        weights[nodes[k] - child] = values[k] - trend[0][feature] * trend[1][nodes[k]]
    weights[n_children] = np.float32(0.0)
    shared = np.float32(0.0)
    if limits[0] > 0:
        n_listed = 0
        for c in range(n_children):
            if is_open[child + c]:
                scratch[n_listed] = weights[c]
                n_listed += 1
        # The lower median is one of the weights, so at least one child needs none of its own.
        shared = _select(scratch, n_open[parent], (n_open[parent] - 1) // 2)
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
    n_kept = 0
    for c in range(n_children):
        if abs(weights[c]) > limit:
            n_kept += 1
        else:
            weights[c] = np.float32(0.0)
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
def _digits(weight, scale):
    """Return a weight's coarse digits, as one number, and its fine digit, within -128, …, 127."""
    n_steps = int(np.rint(weight / scale))
    coarse = (n_steps + COARSE // 2) >> 8
    return coarse, n_steps - coarse * COARSE


@_compiled
def add_clipped(columns, most, sums):
    """Add up the weights of every feature, none counting for more than ``most``."""
    indptr, _, values = columns
    for feature in range(indptr.size - 1):
        for k in range(indptr[feature], indptr[feature + 1]):
            sums[feature] += min(max(values[k], -most), most)


@_compiled
def add_along(columns, most, trend, sums):
    """Add up the weights of every node times the trend, none counting for more than ``most``."""
    indptr, nodes, values = columns
    for feature in range(indptr.size - 1):
        for k in range(indptr[feature], indptr[feature + 1]):
            sums[nodes[k]] += min(max(values[k], -most), most) * trend[feature]


@_compiled
def count_digits(columns, tree, seen, limits, trend, wanted, scale, n_digits):
    """Count what every wanted feature keeps."""
    indptr, nodes, _ = columns
    parent_of, first_child, n_open = tree[0], tree[1], tree[5]
    weights, scratch = np.empty((2, np.max(first_child[1:] - first_child[:-1]) + 1), np.float32)
    for feature in range(indptr.size - 1):
        first = indptr[feature]
        while wanted[feature] and first < indptr[feature + 1]:
            stop = _run_stop(nodes, first, indptr[feature + 1], parent_of)
            parent = parent_of[nodes[first]]
            if n_open[parent] > 1 or parent == 0:
                run = (first, stop, feature)
                n_kept = _settle(run, columns, tree, seen, limits, trend, weights, scratch)
                if limits[0] == 0:
                    n_digits[feature] += n_kept
                elif n_kept:
                    for c in range(first_child[parent + 1] - first_child[parent] + 1):
                        coarse, fine = _digits(weights[c], scale)
                        n_digits[feature] += (fine != 0) + (abs(coarse) + 126) // 127
            first = stop


@_compiled
def fill_digits(columns, tree, seen, limits, trend, wanted, scale, first_code, packed):
    """Write codes and values in the places that the counts gave them."""
    indptr, nodes, _ = columns
    start, code, value = packed
    parent_of, first_child, n_open = tree[0], tree[1], tree[5]
    weights, scratch = np.empty((2, np.max(first_child[1:] - first_child[:-1]) + 1), np.float32)
    for feature in range(indptr.size - 1):
        first, place = indptr[feature], start[feature]
        while wanted[feature] and first < indptr[feature + 1]:
            stop = _run_stop(nodes, first, indptr[feature + 1], parent_of)
            parent = parent_of[nodes[first]]
            run = (first, stop, feature)
            if (n_open[parent] > 1 or parent == 0) and _settle(
                run, columns, tree, seen, limits, trend, weights, scratch
            ):
                for c in range(first_child[parent + 1] - first_child[parent] + 1):
                    fine_code = first_code[parent] + 2 * c
                    if limits[0] == 0:
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
            first = stop
