"""Problems into lanes and results out of them.

A lane is one number in sixteen of every cache line: a sweep reads and writes far apart.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from taxofit.bank.lane_margins import TINY
from taxofit.bank.lane_state import FRESH, STRETCH
from taxofit.bank.simd import LANES, from_bits, lanes_of, load, pick, splat, store
from taxofit.compiling import compiled, part

__all__ = [
    "begin_at_base",
    "begin_residuals",
    "gradient_norms_at_zero",
    "load_labels",
    "load_starts",
    "take_weights",
]

WEIGHTS_AT_HAND = 8192  # whose origins, 64 KiB, stay in a cache for all lanes that finish together
ROOT_ACCURACY = 1e-9
MAX_ROOT_STEPS = 100


@part
def load_labels(positive, classes, tables, lanes, masks):
    """Set the labels of fresh lanes to those of their problems.

    classes : RowsOfClasses; tables : int8 (n_problems, n_classes).
    """
    others = np.uint16(0xFFFF)
    for k in range(LANES):
        if masks[FRESH, k] > 0:
            others &= ~np.uint16(1 << k)
    for i in range(positive.size):
        positive[i] &= others
    for k in range(LANES):
        if masks[FRESH, k] > 0:
            table = tables[lanes[k].problem]
            for group in range(table.size):
                if table[group] > 0:
                    for a in range(classes.indptr[group], classes.indptr[group + 1]):
                        positive[classes.rows[a]] |= np.uint16(1 << k)


@part
def begin_residuals(R, gradient, masks):
    """Set the residual of fresh lanes to minus the gradient of the base."""
    fresh = load(masks, FRESH)
    for j in range(R.shape[0]):
        store(R, j, pick(fresh, -splat(gradient[j]), load(R, j)))


@part
def begin_at_base(D, rows, base, loss, classes, tables, residual, lanes, masks):
    """Evaluate fresh lanes at the base, where only positive rows are not known yet.

    All others are as in the all-negative problem. The residual is minus the base's gradient in
    these lanes and becomes minus theirs, lanes get their loss.

    D : float32 (n, 16), curvatures; base : BaseRows.
    """
    fresh = load(masks, FRESH)
    for i in range(D.shape[0]):
        store(D, i, pick(fresh, splat(base.curvature[i]), load(D, i)))
    for k in range(LANES):
        if masks[FRESH, k] > 0:
            lanes[k].loss = loss
            table = tables[lanes[k].problem]
            for group in range(table.size):
                if table[group] > 0:
                    for a in range(classes.indptr[group], classes.indptr[group + 1]):
                        i = classes.rows[a]
                        lanes[k].loss += _begin_positive(D, rows, base, residual, i, k)


@numba.njit(inline="always")
def _begin_positive(D, rows, base, residual, i, k):
    """Have a row be positive in lane k at the base; return how the loss changes."""
    last, entries = residual.shape[0] - 1, rows.entries
    u, c, s2 = base.linear[i], rows.cost[i], rows.private_square[i]
    loss, error, curvature = _row_at(u, 1.0, c, s2)
    D[i, k] = curvature
    change = np.float32(error) - base.slope[i]
    for q in range(entries.indptr[i], entries.indptr[i + 1]):
        residual[entries.indices[q], k] -= change * entries.values[q]
    residual[last, k] -= change * entries.constant[0]
    return loss - _row_at(u, 0.0, c, s2)[0]


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


@part
def load_starts(direction, weights, starts, lanes, masks):
    """Have fresh lanes begin at their starts, where they have one; only others stay fresh.

    Directions say where that is.

    weights : of the base; starts : Starts.
    """
    columns = starts.columns
    if columns.size < weights.size:
        _load_rest(direction, weights, starts, lanes, masks)
    for first in range(0, columns.size, STRETCH):  # whose lines stay at hand for all lanes
        stop = min(columns.size, first + STRETCH)
        for k in range(LANES):
            if masks[FRESH, k] > 0 and lanes[k].start >= 0:
                start = starts.weights[lanes[k].start]
                for q in range(first, stop):
                    j = columns[q]
                    direction[j, k] = start[q] - weights[j]
    for k in range(LANES):
        if lanes[k].start >= 0:
            masks[FRESH, k] = 0


@numba.njit(inline="always")
def _load_rest(direction, weights, starts, lanes, masks):
    """Set directions of fresh lanes as if their starts were multiples of the base."""
    zero = lanes_of(0)
    started, more, any_started = zero, zero, False
    for k in range(LANES):
        if masks[FRESH, k] > 0 and lanes[k].start >= 0:
            any_started = True
            this = from_bits(np.uint16(1 << k))
            started = started + this
            more = more + this * splat(starts.rest[lanes[k].start] - np.float32(1))
    if any_started:
        for j in range(direction.shape[0]):
            moved = more * splat(weights[j])
            store(direction, j, pick(started, moved, load(direction, j)))


@part
def take_weights(
    lanes,
    finished,
    point,
    pull,
    positive,
    cost,
    private_square,
    base_weights,
    base,
    origins,
    work,
    weights,
):
    """Write the weights of some lanes, which were just evaluated or never, to those of problems.

    Those of shared features are w₀ + δ, private ones -c (σ(z) - t) p. A lane's numbers are first
    brought together in a row of ``work``, so that weights are written one after the other. A
    problem's weights lie together: side by side, every entry would be a cache line of its own,
    which took a fifth of all time on NAICS. Lanes that finish together are read together, since
    their numbers are in the same lines.

    finished : int64, which lanes, at most as many as ``work`` has rows; base : BaseRows; origins :
    Origins; work : float32 (k, m + n); weights : float32 (n_problems, n_features).
    """
    m, n = point.shape[0], pull.shape[0]
    for first in range(0, m, STRETCH):
        stop = min(m, first + STRETCH)
        for a in range(finished.size):
            _take_lane(point[first:stop], finished[a], base_weights[first:stop], work[a, first:])
    for first in range(0, n, STRETCH):
        stop = min(n, first + STRETCH)
        for a in range(finished.size):
            _take_lane(pull[first:stop], finished[a], base.slope[first:stop], work[a, m + first :])
    for a in range(finished.size):
        k = finished[a]
        if lanes[k].n_passes == 0:
            _errors_at_base(positive, cost, private_square, base, k, work[a, m:])
    for first in range(0, origins.place.size, WEIGHTS_AT_HAND):
        mine = slice(first, min(origins.place.size, first + WEIGHTS_AT_HAND))
        for a in range(finished.size):
            found = weights[lanes[finished[a]].problem]
            _put_weights(found[mine], origins.place[mine], origins.factor[mine], work[a])


@numba.njit(inline="always")
def _take_lane(numbers, k, base, found):
    """Set what lane k has in some rows or features: what it adds to the base."""
    for j in range(base.size):
        found[j] = base[j] + numbers[j, k]


@numba.njit(inline="always")
def _put_weights(found, place, factor, known):
    """Set some weights to what their origins say."""
    for j in range(found.size):
        found[j] = factor[j] * known[place[j]]


@numba.njit(inline="always")
def _errors_at_base(positive, cost, private_square, base, k, errors):
    """Set c (σ(z) - t) of lane k, which has never left the base."""
    for i in range(errors.size):
        errors[i] = base.slope[i]
        if positive[i] & np.uint16(1 << k):
            errors[i] = _row_at(base.linear[i], 1.0, cost[i], private_square[i])[1]


@compiled
def gradient_norms_at_zero(
    indptr, indices, values, constant, of_private, weight, total, classes, tables
):
    """Return ½ ‖Xᵀ (weight y)‖ for every row of tables: the gradient at 0 for C = 1.

    With a = Σ_positive weight x and s = Σ weight x this is ½ ‖2a - s‖, and only the features of
    positive rows need a look: ‖2a - s‖² = ‖s‖² + 4 Σ_j a_j (a_j - s_j). A private feature has the
    same square whatever the label of its row.

    indptr, indices, values : of shared features; of_private : Σ (weight p)² of private ones;
    total : float64 (m,), s of shared features and of the constant one.
    """
    n_shared, whole = total.size - 1, of_private
    for j in range(n_shared + 1):
        whole += total[j] * total[j]
    norms, positive = np.empty(tables.shape[0]), np.zeros(n_shared)
    found = np.empty(classes.rows.size, dtype=np.int64)
    for b in range(tables.shape[0]):
        mine = found[: _find_positive_rows(classes, tables[b], found)]
        on_constant = 0.0
        for i in mine:
            on_constant += constant * weight[i]
            for q in range(indptr[i], indptr[i + 1]):
                positive[indices[q]] += weight[i] * values[q]
        square = whole + 4 * on_constant * (on_constant - total[n_shared])
        for i in mine:
            for q in range(indptr[i], indptr[i + 1]):
                j = indices[q]
                square += 4 * positive[j] * (positive[j] - total[j])
                positive[j] = 0
        norms[b] = 0.5 * math.sqrt(max(square, 0.0))
    return norms


@part
def _find_positive_rows(classes, table, found):
    """Write down the rows of the classes that a table has above 0; return how many they are."""
    n_found = 0
    for group in range(table.size):
        if table[group] > 0:
            for a in range(classes.indptr[group], classes.indptr[group + 1]):
                found[n_found] = classes.rows[a]
                n_found += 1
    return n_found
