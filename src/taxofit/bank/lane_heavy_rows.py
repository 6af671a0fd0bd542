r"""The preconditioner of a lane that starts from the all-negative solution, by Woodbury's identity.

Of a rare node's rows only its own and those that look like them have a curvature to speak of. All
others are light, and what they have in common hardly changes from lane to lane but for their mass,
the sum of their curvatures: a mean row, and the spread of each feature about it, both taken once
from the all-negative solution. The spread makes a scale M that all lanes share (see
:data:`taxofit.bank.lanes.SCALE_MASS`). With the heaviest rows of a lane and then the mean row as S,
of curvatures D and mass, the preconditioner is

.. math:: (M^{-1} + S^T D S)^{-1} = M - M S^T (D^{-1} + S M S^T)^{-1} S M,

a system of at most :data:`MOST` + 1 unknowns, in float64: what is left of r after S is taken out
may be a thousandth of it. The work is that of the heaviest rows; the mean row's is done in
:mod:`taxofit.bank.lane_loops` for all lanes together.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from taxofit.bank.lane_state import STARTING
from taxofit.bank.rank_loops import value_of_rank
from taxofit.bank.simd import (
    LANES,
    bits_above,
    fma,
    load,
    lowest_bit,
    splat,
    store,
    sum_of,
    widen,
)
from taxofit.compiling import part

__all__ = ["HeavyRows", "correct_direction", "find_heavy_rows", "solve_heavy", "start_heavy"]

# Passes that only multiply, for some nodes of NAICS at C = 10: 985 with 31 rows, 914 with 47,
# and 889 with 63, whose systems cost more than that saves.
MOST = 47
N_BLOCKS = (MOST + LANES) // LANES  # of 16 unknowns, the mean row's included
LEAST = 0.05  # curvature; rows have a norm of about 1, and the regulariser a curvature of 1
CANDIDATES = 4 * MOST
# The next Newton step looks at rows from this share of the lightest that was taken in this one.
FORESIGHT = 0.5
ONE = np.uint16(1)


class HeavyRows(NamedTuple):
    """The heaviest rows of every lane that started from the all-negative solution."""

    n_rows: np.ndarray  # int64 (16,); 0 in lanes that have none
    threshold: np.ndarray  # float32 (1, 16): curvature from which rows are looked at
    rows: np.ndarray  # int64 (16, CANDIDATES)
    curvature: np.ndarray  # float32 (16, CANDIDATES)
    factor: np.ndarray  # float64 (16, N_BLOCKS, MOST + 1, 16): see `start_heavy`
    answer: np.ndarray  # float64 (16, N_BLOCKS, 16): of the small system
    table: np.ndarray  # float32 (m, 16): zeros, to spread rows out
    ranked: np.ndarray  # float32 (CANDIDATES,): to rank curvatures in

    @classmethod
    def empty(cls, n_features: int) -> HeavyRows:
        """Return no rows for any lane."""
        return cls(
            np.zeros(LANES, dtype=np.int64),
            np.zeros((1, LANES), dtype=np.float32),
            np.zeros((LANES, CANDIDATES), dtype=np.int64),
            np.zeros((LANES, CANDIDATES), dtype=np.float32),
            np.zeros((LANES, N_BLOCKS, MOST + 1, LANES)),
            np.zeros((LANES, N_BLOCKS, LANES)),
            np.zeros((n_features, LANES), dtype=np.float32),
            np.zeros(CANDIDATES, dtype=np.float32),
        )


@part
def find_heavy_rows(heavy, curvature, lanes, masks):
    """Take the rows of greatest curvature in lanes that start a Newton system from the first base.

    curvature : float32 (n, 16).
    """
    wanted = _forget_rows(heavy, lanes, masks)
    if wanted == 0:
        return
    for i in range(curvature.shape[0]):
        above = bits_above(load(curvature, i), load(heavy.threshold, 0)) & wanted
        while above != 0:
            k = lowest_bit(above)
            _add_candidate(heavy, k, i, curvature[i, k])
            above &= above - ONE
    for k in range(LANES):
        if masks[STARTING, k] > 0:
            _keep_heaviest(heavy, k)
            heavy.threshold[0, k] = max(FORESIGHT * heavy.threshold[0, k], LEAST)


@part
def _forget_rows(heavy, lanes, masks):
    """Drop the rows of lanes that start; return the bits of these lanes."""
    for k in range(LANES):
        if masks[STARTING, k] > 0:
            heavy.n_rows[k] = 0
            if lanes[k].n_newton == 0:
                heavy.threshold[0, k] = LEAST
    return bits_above(load(masks, STARTING), splat(np.float32(0)))


@part
def _add_candidate(heavy, k, row, curvature):
    heavy.rows[k, heavy.n_rows[k]] = row
    heavy.curvature[k, heavy.n_rows[k]] = curvature
    heavy.n_rows[k] += 1
    if heavy.n_rows[k] == CANDIDATES:
        _keep_heaviest(heavy, k)


@part
def _keep_heaviest(heavy, k):
    """Leave the heaviest candidates of a lane, and raise its threshold to the lightest of them."""
    n = heavy.n_rows[k]
    if n <= MOST:
        return
    for a in range(n):
        heavy.ranked[a] = heavy.curvature[k, a]
    least = value_of_rank(heavy.ranked, n, n - MOST)
    heavy.threshold[0, k] = least
    n_kept = 0
    for a in range(n):
        if heavy.curvature[k, a] >= least and n_kept < MOST:
            heavy.rows[k, n_kept] = heavy.rows[k, a]
            heavy.curvature[k, n_kept] = heavy.curvature[k, a]
            n_kept += 1
    heavy.n_rows[k] = n_kept


@part
def start_heavy(heavy, rows, base, mass, k):
    """Factorise the small system of lane k: UᵀU = D⁻¹ + S M Sᵀ.

    Row a of U and its columns from 16 c on are ``factor[k, c, a]``; the diagonal is inverted, and
    what is left of it is 0.

    mass : of its light rows.
    """
    n, U = heavy.n_rows[k], heavy.factor[k]
    for c in range((n >> 4) + 1):
        _multiply_rows(heavy, rows, base, k, c)
    for a in range(n):
        U[n >> 4, a, n & 15] = heavy.answer[k, a >> 4, a & 15]
    store(U[n >> 4], n, splat(0.0))  # what is left there would grow from system to system
    U[n >> 4, n, n & 15] = base.mean_square + 1.0 / mass
    for b in range(n + 1):
        c, lane = b >> 4, b & 15
        column = U[c]
        least = 1.0 / (heavy.curvature[k, b] if b < n else mass)
        if b < n:
            column[b, lane] += least
        for d in range(c, (n >> 4) + 1):
            total, other = load(U[d], b), splat(0.0)  # two sums that need not wait for each other
            for a in range(0, b - 1, 2):
                total = fma(splat(-column[a, lane]), load(U[d], a), total)
                other = fma(splat(-column[a + 1, lane]), load(U[d], a + 1), other)
            if b & 1:
                total = fma(splat(-column[b - 1, lane]), load(U[d], b - 1), total)
            store(U[d], b, total + other)
        inverse = 1.0 / math.sqrt(max(column[b, lane], least))  # less it can be by rounding only
        for d in range(c, (n >> 4) + 1):
            store(U[d], b, load(U[d], b) * splat(inverse))
        for left in range(lane):
            column[b, left] = 0
        column[b, lane] = inverse


@part
def _multiply_rows(heavy, rows, base, k, c):
    """Set S M Sᵀ in block c of columns, down to the diagonal; the answer becomes S M μ there."""
    n, table, mean, column = heavy.n_rows[k], heavy.table, base.mean, heavy.factor[k, c]
    constant, last = rows.constant[0], mean.size - 1
    scaled_constant = constant * base.scale[last]
    stop = min(n, LANES * (c + 1))
    for b in range(LANES * c, stop):
        i = heavy.rows[k, b]
        for q in range(rows.indptr[i], rows.indptr[i + 1]):
            j = rows.indices[q]
            table[j, b & 15] = rows.values[q] * base.scale[j]
    for a in range(stop):
        i = heavy.rows[k, a]
        total = splat(np.float64(constant * scaled_constant))
        for q in range(rows.indptr[i], rows.indptr[i + 1]):
            x = splat(np.float64(rows.values[q]))
            total = fma(x, widen(load(table, rows.indices[q])), total)
        store(column, a, total)
    for b in range(LANES * c, stop):
        i = heavy.rows[k, b]
        total_on_mean = mean[last] * scaled_constant
        for q in range(rows.indptr[i], rows.indptr[i + 1]):
            j = rows.indices[q]
            total_on_mean += mean[j] * table[j, b & 15]
            table[j, b & 15] = 0
        heavy.answer[k, c, b & 15] = total_on_mean


@part
def solve_heavy(heavy, rows, base, on_mean, residual, k):
    """Solve the small system of lane k for S M r; return by how much r·M r has to come down.

    on_mean : μ·M r of the mean row.
    """
    n, y, U = heavy.n_rows[k], heavy.answer[k], heavy.factor[k]
    last = residual.shape[0] - 1
    on_constant = np.float64(rows.constant[0] * base.scale[last]) * residual[last, k]
    for a in range(n):
        i = heavy.rows[k, a]
        total = on_constant
        for q in range(rows.indptr[i], rows.indptr[i + 1]):
            j = rows.indices[q]
            total += np.float64(rows.values[q] * base.scale[j]) * residual[j, k]
        y[a >> 4, a & 15] = total
    y[n >> 4, n & 15] = on_mean
    energy = 0.0
    for a in range(n + 1):
        c, lane = a >> 4, a & 15
        found = y[c, lane] * U[c, a, lane]
        energy += found * found
        for d in range(c, (n >> 4) + 1):
            store(y, d, load(y, d) - load(U[d], a) * splat(found))
        y[c, lane] = found
    for a in range(n + 1, LANES * ((n >> 4) + 1)):
        y[a >> 4, a & 15] = 0
    for a in range(n, -1, -1):
        c, lane = a >> 4, a & 15
        total = splat(0.0)
        for d in range(c, (n >> 4) + 1):
            total = fma(load(U[d], a), load(y, d), total)
        inverse, found = U[c, a, lane], y[c, lane]
        y[c, lane] = (found - (sum_of(total) - inverse * found)) * inverse
    return energy


@part
def correct_direction(heavy, rows, base, direction, k):
    """Take M Sᵀ y of heavy rows from the direction of lane k; return how that changes v·v."""
    y = heavy.answer[k]
    last = direction.shape[0] - 1
    change, total = 0.0, 0.0
    for a in range(heavy.n_rows[k]):
        i, share = heavy.rows[k, a], y[a >> 4, a & 15]
        total += share
        for q in range(rows.indptr[i], rows.indptr[i + 1]):
            j = rows.indices[q]
            change += _lower(direction, j, k, rows.values[q] * base.scale[j] * share)
    total *= rows.constant[0] * base.scale[last]
    return change + _lower(direction, last, k, total)


@part
def _lower(direction, j, k, difference):
    """Take a difference from one weight; return how its square changes."""
    old = direction[j, k]
    new = np.float32(old - difference)
    direction[j, k] = new
    return np.float64(new) * new - np.float64(old) * old
