"""Problems into lanes and results out of them.

A lane is one number in sixteen of every cache line: a sweep reads and writes far apart.
"""

from __future__ import annotations

import math

import numpy as np

from taxofit.bank.lane_margins import TINY
from taxofit.compiling import compiled, part

__all__ = [
    "begin_at_base",
    "gradient_norms_at_zero",
    "load_labels",
    "load_starts",
    "take_weights",
]

ROOT_ACCURACY = 1e-9
MAX_ROOT_STEPS = 100


@compiled
def load_labels(row_lanes, row_class, tables, which, problem):
    """Set the labels of the lanes ``which`` to those of their problems.

    tables : int8 (n_problems, n_classes); problem : int64 (16,).
    """
    for k in which:
        bit, positive = np.uint16(1 << k), tables[problem[k]]
        for i in range(row_class.size):
            if positive[row_class[i]] > 0:
                row_lanes.positive[i] |= bit
            else:
                row_lanes.positive[i] &= ~bit


@compiled
def begin_at_base(row_lanes, rows, base, residual, lanes, which):
    """Evaluate the lanes ``which`` at the base, where only positive rows are not known yet.

    All others are as in the all-negative problem. Labels are loaded; the residual is minus the
    base's gradient in these lanes and becomes minus theirs, lanes get their loss.
    """
    last = residual.shape[0] - 1
    for k in which:
        bit = np.uint16(1 << k)
        lanes[k].loss = base.loss
        for i in range(rows.cost.size):
            row_lanes.curvature[i, k] = base.curvature[i]
            if row_lanes.positive[i] & bit:
                u, c, s2 = base.linear[i], rows.cost[i], rows.private_square[i]
                loss, error, curvature = _row_at(u, 1.0, c, s2)
                lanes[k].loss += loss - _row_at(u, 0.0, c, s2)[0]
                row_lanes.curvature[i, k] = curvature
                change = np.float32(error) - base.slope[i]
                for q in range(rows.indptr[i], rows.indptr[i + 1]):
                    residual[rows.indices[q], k] -= change * rows.values[q]
                residual[last, k] -= change * rows.constant[0]


@part
def _row_at(u, t, c, s2):
    """Return loss, error and the curvature that a long step meets, of a row with x·w = u.

    As :mod:`taxofit.bank.lane_margins` has them, for one row and lane.
    """
    k = c * s2
    goal = u + k * t
    z = 0.0 if k > 0 else goal
    for _ in range(MAX_ROOT_STEPS):
        e = math.exp(-abs(z))
        sigma = (1.0 if z >= 0 else e) / (1 + e)
        step = (z + k * sigma - goal) / (1 + k * e / (1 + e) ** 2)
        z -= step
        if abs(step) < ROOT_ACCURACY * (1 + abs(z)):
            break
    e = math.exp(-abs(z))
    sigma = (1.0 if z >= 0 else e) / (1 + e)
    error = c * (sigma - t)
    loss = c * (math.log1p(e) + max(z, 0.0) - t * z) + 0.5 * s2 * error**2
    bend = c * e / (1 + e) ** 2
    if (z > 0) != (t > 0.5):  # on the wrong side
        bend = max(bend, c * abs(sigma - 0.5) / (abs(z) + TINY))
    return loss, error, bend / (1 + bend * s2)


@compiled
def load_starts(vectors, base, starts, which, problem):
    """Set the direction of the lanes ``which`` so that they begin at starts, float32 (width, m)."""
    for j in range(starts.shape[1]):
        for k in which:
            vectors.direction[j, k] = starts[problem[k], j] - base.weights[j]


@compiled
def take_weights(vectors, row_lanes, rows, base, lanes, which, origins, work, weights):
    """Write the weights of the lanes ``which``, just evaluated, float32 (width, n_features).

    Those of shared features are w₀ + δ, private ones -c (σ(z) - t) p. A lane's numbers are first
    brought together in ``work``, float32 (m + n,), so that weights are written one after the other.
    A problem's weights lie together: side by side, every entry would be a cache line of its own,
    which took a fifth of all time on NAICS.

    origins : Origins.
    """
    m, n = vectors.point.shape[0], row_lanes.pull.shape[0]
    for k in which:
        lane = lanes[k]
        found = weights[lane.problem]
        for j in range(m):
            work[j] = base.weights[j] + vectors.point[j, k]
        if lane.n_passes > 0:
            for i in range(n):
                work[m + i] = base.slope[i] + row_lanes.pull[i, k]
        else:
            _errors_at_base(row_lanes, rows, base, k, work[m:])
        for j in range(found.size):
            found[j] = origins.factor[j] * work[origins.place[j]]


@part
def _errors_at_base(row_lanes, rows, base, k, errors):
    """Set c (σ(z) - t) of lane k, which has never left the base."""
    for i in range(errors.size):
        errors[i] = base.slope[i]
        if row_lanes.positive[i] & np.uint16(1 << k):
            u, c, s2 = base.linear[i], rows.cost[i], rows.private_square[i]
            errors[i] = _row_at(u, 1.0, c, s2)[1]


@compiled
def gradient_norms_at_zero(indptr, indices, data, weight, row_class, tables):
    """Return ½ ‖Xᵀ (weight y)‖ for every row of tables: the gradient at 0 for C = 1.

    With a = Σ_positive weight x and s = Σ weight x this is ½ ‖2a - s‖, and only the features of
    positive rows need a look: ‖2a - s‖² = ‖s‖² + 4 Σ_j a_j (a_j - s_j).
    """
    total = _column_sums(indptr, indices, data, weight)
    n_features, whole = total.size, 0.0
    for j in range(n_features):
        whole += total[j] * total[j]
    norms = np.empty(tables.shape[0])
    positive = np.zeros(n_features)
    for b in range(tables.shape[0]):
        for i in range(weight.size):
            if tables[b, row_class[i]] > 0:
                for q in range(indptr[i], indptr[i + 1]):
                    positive[indices[q]] += weight[i] * data[q]
        square = whole
        for i in range(weight.size):
            if tables[b, row_class[i]] > 0:
                for q in range(indptr[i], indptr[i + 1]):
                    j = indices[q]
                    square += 4 * positive[j] * (positive[j] - total[j])
                    positive[j] = 0
        norms[b] = 0.5 * math.sqrt(max(square, 0.0))
    return norms


@part
def _column_sums(indptr, indices, data, weight):
    """Return Xᵀ weight, up to the last column that has entries."""
    n_features = 0
    for j in indices:
        n_features = max(n_features, j + 1)
    total = np.zeros(n_features)
    for i in range(weight.size):
        for q in range(indptr[i], indptr[i + 1]):
            total[indices[q]] += weight[i] * data[q]
    return total
