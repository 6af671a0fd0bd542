"""Numba loops that walk rows down a taxonomy; free functions over plain arrays.

Every row is worked on by itself and in an order of its own, so that a prediction never depends on
the rows beside it or on the number of threads. A *path score* adds up log σ(score) from the top,
what came before being multiplied by γ at every step; see :mod:`taxofit.predict.search`.

Weights arrive as the tuple that :meth:`taxofit.predict.packed_weights.PackedWeights.tables` gives.
They may come from a file, so whatever is used as a place in an array is held against its size.
"""

from __future__ import annotations

import math

import numpy as np

from taxofit.bank.rank_loops import place_of
from taxofit.compiling import compiled, part

__all__ = [
    "beam_packed",
    "beam_scores",
    "log_sigmoids",
    "path_scores",
    "score_packed",
    "walk_packed",
    "walk_scores",
]

COARSE = 256.0  # steps of a coarse digit; see packed_weights


@part
def _log_sigmoid(score):
    """Return log σ(score) without overflow."""
    if score >= 0:
        return -math.log1p(math.exp(-score))
    return score - math.log1p(math.exp(score))


@part
def _enter(nodes, totals, n_listed, node, total):
    """Put a node into a list of the best, highest first; return how many there are now."""
    place = n_listed
    while place > 0 and total > totals[place - 1]:
        place -= 1
    if place == nodes.size or total == -np.inf:
        return n_listed
    last = min(n_listed, nodes.size - 1)
    for k in range(last, place, -1):
        nodes[k] = nodes[k - 1]
        totals[k] = totals[k - 1]
    nodes[place] = node
    totals[place] = total
    return last + 1


# ---------------------------------------------------------------------- scores in a matrix


@compiled
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


@compiled
def log_sigmoids(scores, logs):
    """Fill ``logs`` with log σ of every score."""
    for i in range(scores.shape[0]):
        for k in range(scores.shape[1]):
            logs[i, k] = _log_sigmoid(scores[i, k])


@compiled
def path_scores(logs, parent, column, gamma, totals):
    """Fill ``totals``, shape (n_rows, n_nodes), with the path score of every node."""
    for i in range(logs.shape[0]):
        totals[i, 0] = 0.0
        for node in range(1, parent.size):
            total = logs[i, column[node]]
            if total > -np.inf:  # 0 · -inf is not a number; nodes with a model have no such parent
                total += gamma * totals[i, parent[node]]
            totals[i, node] = total


@compiled
def beam_scores(logs, first_child, column, gamma, width, reached, totals):
    """Fill in the leaves of highest path score, best first, with log σ from a matrix.

    At every depth the ``width`` best internal nodes are opened.
    """
    nodes, next_nodes = np.empty(width, np.int32), np.empty(width, np.int32)
    sums, next_sums = np.empty(width), np.empty(width)
    for i in range(logs.shape[0]):
        for k in range(reached.shape[1]):
            reached[i, k], totals[i, k] = -1, -np.inf
        n_found = 0
        nodes[0], sums[0], n_open = 0, 0.0, 1
        while n_open > 0:
            n_next = 0
            for k in range(n_open):
                for child in range(first_child[nodes[k]], first_child[nodes[k] + 1]):
                    total = logs[i, column[child]] + gamma * sums[k]
                    if first_child[child] == first_child[child + 1]:
                        n_found = _enter(reached[i], totals[i], n_found, child, total)
                    else:
                        n_next = _enter(next_nodes, next_sums, n_next, child, total)
            nodes, next_nodes = next_nodes, nodes
            sums, next_sums = next_sums, sums
            n_open = n_next


# ---------------------------------------------------------------------- packed weights


@part
def _along_trend(rows, i, trend):
    """Return how far row i goes along the trend."""
    indptr, indices, data = rows
    total = 0.0
    for k in range(indptr[i], indptr[i + 1]):
        total += data[k] * trend[indices[k]]
    return total


@part
def _score_children(rows, i, along, tables, node, own_score, scores):
    """Fill ``scores`` with those of a node's children for row i; return how many there are."""
    indptr, indices, data = rows
    start, code, value, _, slope, scale, intercept, first_child = tables[:8]
    first_code, is_repeated = tables[8:]
    first = first_child[node]
    n_children = first_child[node + 1] - first
    if is_repeated[node]:
        for c in range(n_children):
            scores[c] = own_score if intercept[first + c] > -np.inf else -np.inf
        return n_children
    own_code = first_code[node]
    n_codes = first_code[node + 1] - own_code
    n_unsigned = np.uint64(n_codes)
    for c in range(n_codes):
        scores[c] = 0.0
    for k in range(indptr[i], indptr[i + 1]):
        feature = indices[k]
        stop = np.int64(start[feature + 1])
        e = np.int64(start[feature])
        if e < stop and code[e] < own_code:  # the root's are the first
            e = place_of(code, e + 1, stop, own_code)
        while e < stop:
            place = np.uint64(np.int64(code[e]) - own_code)
            if place >= n_unsigned:  # below zero is far above
                break
            scores[place] += data[k] * value[e]
            e += 1
    shared = scores[n_codes - 2] + COARSE * scores[n_codes - 1]
    for c in range(n_children):
        digits = scores[2 * c] + COARSE * scores[2 * c + 1]
        scores[c] = (digits + shared) * scale[0] + (along * slope[first + c] + intercept[first + c])
    return n_children


@part
def _most_children(first_child):
    most = 0
    for node in range(first_child.size - 1):
        most = max(most, first_child[node + 1] - first_child[node])
    return most


@compiled
def walk_packed(rows, tables, gamma, reached, totals):
    """Follow the highest score from the root; fill in the leaf and its path score."""
    trend, first_child = tables[3], tables[7]
    scores = np.empty(2 * _most_children(first_child) + 2)
    for i in range(reached.size):
        along = _along_trend(rows, i, trend)
        node, own_score, total = 0, 0.0, 0.0
        while first_child[node] < first_child[node + 1]:
            n_children = _score_children(rows, i, along, tables, node, own_score, scores)
            best = 0
            for c in range(1, n_children):
                if scores[c] > scores[best]:
                    best = c
            own_score = scores[best]
            total = _log_sigmoid(own_score) + gamma * total
            node = first_child[node] + best
        reached[i] = node
        totals[i] = total


@compiled
def beam_packed(rows, tables, gamma, width, reached, totals):
    """Fill in the leaves of highest path score, best first, as :func:`beam_scores` does."""
    trend, first_child = tables[3], tables[7]
    scores = np.empty(2 * _most_children(first_child) + 2)
    own_scores = np.zeros(first_child.size)
    n_best = reached.shape[1]
    nodes, next_nodes = np.empty(width, np.int32), np.empty(width, np.int32)
    sums, next_sums = np.empty(width), np.empty(width)
    for i in range(reached.shape[0]):
        for k in range(reached.shape[1]):
            reached[i, k], totals[i, k] = -1, -np.inf
        n_found = 0
        along = _along_trend(rows, i, trend)
        nodes[0], sums[0], n_open = 0, 0.0, 1
        while n_open > 0:
            n_next = 0
            for k in range(n_open):
                if gamma == 1.0 and n_found == n_best and sums[k] <= totals[i, n_best - 1]:
                    break  # nothing below can be better, nor below those that follow
                node = nodes[k]
                n_children = _score_children(rows, i, along, tables, node, own_scores[node], scores)
                above = gamma * sums[k]
                for c in range(n_children):
                    child = first_child[node] + c
                    # log σ(z) < min(z, 0): most children are out before a logarithm is taken.
                    most = above + min(scores[c], 0.0)
                    if first_child[child] == first_child[child + 1]:
                        if n_found < n_best or most > totals[i, n_best - 1]:
                            total = above + _log_sigmoid(scores[c])
                            n_found = _enter(reached[i], totals[i], n_found, child, total)
                    elif n_next < width or most > next_sums[width - 1]:
                        own_scores[child] = scores[c]
                        total = above + _log_sigmoid(scores[c])
                        n_next = _enter(next_nodes, next_sums, n_next, child, total)
            nodes, next_nodes = next_nodes, nodes
            sums, next_sums = next_sums, sums
            n_open = n_next


@compiled
def score_packed(rows, tables, parent_of, scores):
    """Fill ``scores``, shape (n_rows, n_nodes), with θ·x at every node; 0 at the root."""
    indptr, indices, data = rows
    start, code, value, _, slope, scale, intercept, first_child = tables[:8]
    first_code, is_repeated = tables[8:]
    sums = np.empty(first_code[-1])
    for i in range(scores.shape[0]):
        for place in range(sums.size):
            sums[place] = 0.0
        along = _along_trend(rows, i, tables[3])
        for k in range(indptr[i], indptr[i + 1]):
            feature = indices[k]
            for e in range(np.int64(start[feature]), np.int64(start[feature + 1])):
                if code[e] < sums.size:
                    sums[code[e]] += data[k] * value[e]
        scores[i, 0] = 0.0
        for node in range(1, parent_of.size):
            above = parent_of[node]
            if intercept[node] == -np.inf:
                scores[i, node] = -np.inf
            elif is_repeated[above]:
                scores[i, node] = scores[i, above]
            else:
                own = first_code[above] + 2 * (node - first_child[above])
                shared = first_code[above + 1] - 2
                digits = sums[own] + sums[shared]
                digits += COARSE * (sums[own + 1] + sums[shared + 1])
                scores[i, node] = digits * scale[0] + (along * slope[node] + intercept[node])
