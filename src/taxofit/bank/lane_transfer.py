"""Problems into lanes and results out of them, several lanes in one sweep.

A lane is one number in sixteen of every cache line, so that a sweep costs the same for one lane as
for all.
"""

from __future__ import annotations

import numba
import numpy as np

from taxofit.bank.simd import LANES, absolute, exp_of_negative, from_bits, load, pick, splat, store

__all__ = ["gradient_norms_at_zero", "load_labels", "load_starts", "take_private", "take_shared"]

_f32 = np.float32
_compiled = numba.njit(cache=True, nogil=True, error_model="numpy")


@_compiled
def load_labels(row_lanes, bases, row_class, tables, which, problem, base):
    """Set labels of the lanes ``which`` to those of their problems, margins to those of their base.

    tables : int8 (n_problems, n_classes); problem, base : int64 (16,).
    """
    for i in range(row_class.size):
        for k in which:
            bit = np.uint16(1 << k)
            row_lanes.positive[i] &= ~bit
            if tables[problem[k], row_class[i]] > 0:
                row_lanes.positive[i] |= bit
            row_lanes.margin[i, k] = bases.margin[base[k], i]


@_compiled
def load_starts(vectors, bases, starts, which, problem, base):
    """Set the direction of the lanes ``which`` so that they begin at starts, float32 (width, m)."""
    for j in range(starts.shape[1]):
        for k in which:
            vectors.direction[j, k] = starts[problem[k], j] - bases.weights[base[k], j]


@_compiled
def take_shared(vectors, bases, which, problem, base, columns, weights):
    """Write w₀ + δ of the lanes ``which`` to weights, float32 (width, n_features).

    A problem's weights lie together: side by side, every entry would be a cache line of its own,
    which took a fifth of all time on NAICS.

    columns : int64 (m,), where every shared feature and the constant stand; -1 for nowhere.
    """
    for j in range(columns.size):
        if columns[j] >= 0:
            for k in which:
                weights[problem[k], columns[j]] = bases.weights[base[k], j] + vectors.point[j, k]


@_compiled
def take_private(rows, private, row_lanes, which, problem, weights):
    """Write the weights of private features, -c (σ(z) - t) p, of the lanes ``which``.

    private : PrivateEntries; weights : float32 (width, n_features).
    """
    one = splat(_f32(1))
    error = np.empty((1, LANES), dtype=np.float32)
    for i in range(rows.cost.size):
        if rows.private_square[i] > 0:
            z = load(row_lanes.margin, i)
            e = exp_of_negative(absolute(z))
            sigma = pick(z, one, e) / (one + e)
            store(error, 0, splat(rows.cost[i]) * (sigma - from_bits(row_lanes.positive[i])))
            for q in range(private.indptr[i], private.indptr[i + 1]):
                for k in which:
                    weights[problem[k], private.columns[q]] = -private.values[q] * error[0, k]


@_compiled
def gradient_norms_at_zero(indptr, indices, data, weight, row_class, tables):
    """Return ½ ‖Xᵀ (weight y)‖ for every row of tables: the gradient at 0 for C = 1.

    With a = Σ_positive weight x and s = Σ weight x this is ½ ‖2a - s‖, and only the features of
    positive rows need a look: ‖2a - s‖² = ‖s‖² + 4 Σ_j a_j (a_j - s_j).
    """
    n_features = indices.max() + 1 if indices.size else 0
    total = np.zeros(n_features)
    for i in range(weight.size):
        for q in range(indptr[i], indptr[i + 1]):
            total[indices[q]] += weight[i] * data[q]
    norms = np.empty(tables.shape[0])
    positive = np.zeros(n_features)
    for b in range(tables.shape[0]):
        for i in range(weight.size):
            if tables[b, row_class[i]] > 0:
                for q in range(indptr[i], indptr[i + 1]):
                    positive[indices[q]] += weight[i] * data[q]
        square = np.sum(total * total)
        for i in range(weight.size):
            if tables[b, row_class[i]] > 0:
                for q in range(indptr[i], indptr[i + 1]):
                    j = indices[q]
                    square += 4 * positive[j] * (positive[j] - total[j])
                    positive[j] = 0
        norms[b] = 0.5 * np.sqrt(max(square, 0.0))
    return norms
