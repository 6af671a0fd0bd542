r"""The preconditioner of a lane that starts from the all-negative solution, by Woodbury's identity.

Of a rare node's rows only its own and those that look like them have a curvature to speak of. All
others are light, and what they have in common hardly changes from lane to lane but for their mass,
the sum of their curvatures: a mean row, and the spread of each feature about it, both taken once
from the all-negative solution. The spread makes a scale M that all lanes share (see
:data:`taxofit.bank.lane_state.SCALE_MASS`). With the heaviest rows of a lane and then the mean row
as S, of curvatures D and mass, the preconditioner is

.. math:: (M^{-1} + S^T D S)^{-1} = M - M S^T (D^{-1} + S M S^T)^{-1} S M,

a system of at most :data:`MOST` + 1 unknowns, in float64: what is left of r after S is taken out
may be a thousandth of it. The work is that of the heaviest rows; the mean row's is done in
:mod:`taxofit.bank.lane_loops` for all lanes together.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np

from taxofit.bank.lane_state import (
    CONJUGATING,
    DIRECTION,
    ENDING,
    MEAN_SHARE,
    ON_MEAN,
    SCALED_RESIDUAL,
    STARTING,
)
from taxofit.bank.rank_loops import value_of_rank
from taxofit.bank.simd import (
    LANES,
    bits_above,
    fma,
    lanes_of,
    load,
    lowest_bit,
    splat,
    store,
    sum_of,
    widen,
)
from taxofit.compiling import part

__all__ = [
    "HeavyRows",
    "correct_directions",
    "find_heavy_rows",
    "solve_heavy",
    "solve_small",
    "start_heavy",
]

# Passes that only multiply, for some nodes of NAICS at C = 10: 985 with 31 rows, 914 with 47,
# and 889 with 63, whose systems cost more than that saves.
MOST = 47
HEIGHT = MOST + 1  # unknowns, the mean row's included
N_BLOCKS = (HEIGHT + LANES - 1) // LANES  # of 16 unknowns
LEAST = 0.05  # curvature; rows have a norm of about 1, and the regulariser a curvature of 1
CANDIDATES = 4 * MOST
# The next Newton step looks at rows from this share of the lightest that was taken in this one.
FORESIGHT = 0.5
ONE = np.uint16(1)


class HeavyRows(NamedTuple):
    """The heaviest rows of every lane that started from the all-negative solution."""

    most: int  # rows of a lane, up to MOST
    n_rows: np.ndarray  # int64 (16,); 0 in lanes that have none
    threshold: np.ndarray  # float32 (1, 16): curvature from which rows are looked at
    rows: np.ndarray  # int64 (16, CANDIDATES)
    curvature: np.ndarray  # float32 (16, CANDIDATES)
    factor: np.ndarray  # float64 (16, N_BLOCKS * HEIGHT, 16): see `start_heavy`
    answer: np.ndarray  # float64 (16, N_BLOCKS * 16): of the small system
    table: np.ndarray  # float32 (m, 16): zeros, to spread rows out
    ranked: np.ndarray  # float32 (CANDIDATES,): to rank curvatures in
    bending: np.ndarray  # float32 (16, MOST): D' / D, see `lane_step_end`
    bend: np.ndarray  # float64 (N_BLOCKS * 16,): answer of the small system to that, of one lane

    @classmethod
    def empty(cls, n_features: int, most: int = MOST) -> HeavyRows:
        """Return no rows for any lane."""
        return cls(
            most,
            np.zeros(LANES, dtype=np.int64),
            np.zeros((1, LANES), dtype=np.float32),
            np.zeros((LANES, CANDIDATES), dtype=np.int64),
            np.zeros((LANES, CANDIDATES), dtype=np.float32),
            np.zeros((LANES, N_BLOCKS * HEIGHT, LANES)),
            np.zeros((LANES, N_BLOCKS * LANES)),
            np.zeros((n_features, LANES), dtype=np.float32),
            np.zeros(CANDIDATES, dtype=np.float32),
            np.zeros((LANES, MOST), dtype=np.float32),
            np.zeros(N_BLOCKS * LANES),
        )


@part
def find_heavy_rows(heavy, curvature, lanes, masks):
    """Take the rows of greatest curvature in lanes that start a Newton system from the first base.

    curvature : float32 (n, 16).
    """
    n_rows, threshold, ranked = heavy.n_rows, heavy.threshold, heavy.ranked
    rows, found = heavy.rows, heavy.curvature
    wanted = bits_above(load(masks, STARTING), lanes_of(0))
    if wanted == 0:
        return
    for k in range(LANES):
        if masks[STARTING, k] > 0:
            n_rows[k] = 0
            threshold[0, k] = LEAST if lanes[k].n_newton == 0 else threshold[0, k]
    for i in range(curvature.shape[0]):
        above = bits_above(load(curvature, i), load(threshold, 0)) & wanted
        while above != 0:
            k = lowest_bit(above)
            n = n_rows[k]
            rows[k, n], found[k, n] = i, curvature[i, k]
            n_rows[k] = n + 1
            if n + 1 == CANDIDATES:
                n_rows[k], threshold[0, k] = _keep_heaviest(
                    rows[k], found[k], n + 1, ranked, heavy.most
                )
            above &= above - ONE
    for k in range(LANES):
        if masks[STARTING, k] > 0 and n_rows[k] > heavy.most:
            n_rows[k], threshold[0, k] = _keep_heaviest(
                rows[k], found[k], n_rows[k], ranked, heavy.most
            )
        if masks[STARTING, k] > 0:
            threshold[0, k] = max(FORESIGHT * threshold[0, k], LEAST)


@part
def _keep_heaviest(rows, curvature, n, ranked, most):
    """Bring the heaviest of n candidates to the front.

    Return how many they are, and the curvature of the lightest.
    """
    for a in range(n):
        ranked[a] = curvature[a]
    least = value_of_rank(ranked, n, n - most)
    n_kept = 0
    for a in range(n):
        if curvature[a] >= least and n_kept < most:
            rows[n_kept], curvature[n_kept] = rows[a], curvature[a]
            n_kept += 1
    return n_kept, least


@part
def start_heavy(heavy, entries, light, lanes, masks):
    """Factorise the small systems of lanes that start conjugate gradients: UᵀU = D⁻¹ + S M Sᵀ.

    Row a of U and its columns from 16 c on are ``factor[k, c * HEIGHT + a]``; the diagonal is
    inverted, and what is left of it is 0.
    """
    for k in range(LANES):
        if masks[STARTING, k] > 0:
            n, U, mass = heavy.n_rows[k], heavy.factor[k], lanes[k].mass
            for c in range((n >> 4) + 1):
                _multiply_rows(heavy, entries, light, k, c)
            last = (n >> 4) * HEIGHT
            for a in range(n):
                U[last + a, n & 15] = heavy.answer[k, a]
            store(U, last + n, splat(0.0))  # what is left there would grow from system to system
            U[last + n, n & 15] = light.mean_square + 1.0 / mass
            _factorise(U, heavy.curvature[k], mass, n)


@numba.njit(inline="always")
def _factorise(U, curvature, mass, n):
    """Turn S M Sᵀ into the factor, D⁻¹ added; mass is that of light rows."""
    for b in range(n + 1):
        c, lane = b >> 4, b & 15
        column = c * HEIGHT
        least = 1.0 / (curvature[b] if b < n else mass)
        if b < n:
            U[column + b, lane] += least
        for d in range(c, (n >> 4) + 1):
            block = d * HEIGHT
            total, other = load(U, block + b), splat(0.0)  # two sums, not to wait for each other
            for a in range(0, b - 1, 2):
                total = fma(splat(-U[column + a, lane]), load(U, block + a), total)
                other = fma(splat(-U[column + a + 1, lane]), load(U, block + a + 1), other)
            if b & 1:
                total = fma(splat(-U[column + b - 1, lane]), load(U, block + b - 1), total)
            store(U, block + b, total + other)
        pivot = max(U[column + b, lane], least)  # less it can be by rounding only
        inverse = 1.0 / math.sqrt(pivot)
        for d in range(c, (n >> 4) + 1):
            store(U, d * HEIGHT + b, load(U, d * HEIGHT + b) * splat(inverse))
        for left in range(lane):
            U[column + b, left] = 0
        U[column + b, lane] = inverse


@numba.njit(inline="always")
def _multiply_rows(heavy, entries, light, k, c):
    """Set S M Sᵀ in block c of columns, down to the diagonal; the answer becomes S M μ there."""
    n, rows, table, mean, scale = heavy.n_rows[k], heavy.rows, heavy.table, light.mean, light.scale
    indptr, indices, values = entries.indptr, entries.indices, entries.values
    constant, last = entries.constant[0], mean.size - 1
    scaled_constant = constant * scale[last]
    stop = min(n, LANES * (c + 1))
    for b in range(LANES * c, stop):
        i = rows[k, b]
        for q in range(indptr[i], indptr[i + 1]):
            j = indices[q]
            table[j, b & 15] = values[q] * scale[j]
    for a in range(stop):
        i = rows[k, a]
        total = splat(np.float64(constant * scaled_constant))
        for q in range(indptr[i], indptr[i + 1]):
            total = fma(splat(np.float64(values[q])), widen(load(table, indices[q])), total)
        store(heavy.factor[k], c * HEIGHT + a, total)
    for b in range(LANES * c, stop):
        i = rows[k, b]
        total_on_mean = mean[last] * scaled_constant
        for q in range(indptr[i], indptr[i + 1]):
            j = indices[q]
            total_on_mean += mean[j] * table[j, b & 15]
            table[j, b & 15] = 0
        heavy.answer[k, b] = total_on_mean


@part
def solve_heavy(heavy, entries, light, residual, served, coefficients, totals):
    """Take what heavy rows and the mean row explain of r·M r; note the mean row's part.

    served : float32 (16,), above 0 in the lanes that this is done for.
    """
    for k in range(LANES):
        if served[k] > 0:
            n, y = heavy.n_rows[k], heavy.answer[k]
            _multiply_residual(heavy.rows[k], entries, light.scale, residual, n, y, k)
            y[n] = totals[ON_MEAN, k]
            totals[SCALED_RESIDUAL, k] -= solve_small(heavy.factor[k], n, y)
            coefficients[MEAN_SHARE, k] = -y[n]


@numba.njit(inline="always")
def _multiply_residual(rows, entries, scale, residual, n, y, k):
    """Set y to S M r in lane k."""
    indptr, indices, values = entries.indptr, entries.indices, entries.values
    last = residual.shape[0] - 1
    on_constant = np.float64(entries.constant[0] * scale[last]) * residual[last, k]
    for a in range(n):
        i = rows[a]
        total = on_constant
        for q in range(indptr[i], indptr[i + 1]):
            j = indices[q]
            total += np.float64(values[q] * scale[j]) * residual[j, k]
        y[a] = total


@numba.njit(inline="always")
def solve_small(U, n, y):
    """Solve the small system for y, in place; return by how much r·M r has to come down."""
    n_blocks, energy = (n >> 4) + 1, 0.0
    for a in range(n + 1):
        c = a >> 4
        found = y[a] * U[c * HEIGHT + a, a & 15]
        energy += found * found
        for d in range(c, n_blocks):
            store(y, d, load(y, d) - load(U, d * HEIGHT + a) * splat(found))
        y[a] = found
    for a in range(n + 1, LANES * n_blocks):
        y[a] = 0
    for a in range(n, -1, -1):
        c = a >> 4
        total = splat(0.0)
        for d in range(c, n_blocks):
            total = fma(load(U, d * HEIGHT + a), load(y, d), total)
        inverse, found = U[c * HEIGHT + a, a & 15], y[a]
        y[a] = (found - (sum_of(total) - inverse * found)) * inverse
    return energy


@part
def correct_directions(heavy, entries, light, direction, masks, totals):
    """Take M Sᵀ y of heavy rows from new directions; v·v changes with them."""
    last = direction.shape[0] - 1
    on_constant = entries.constant[0] * light.scale[last]
    for k in range(LANES):
        if masks[STARTING, k] + masks[CONJUGATING, k] + masks[ENDING, k] > 0:
            change, total = 0.0, 0.0
            for a in range(heavy.n_rows[k]):
                i, share = heavy.rows[k, a], heavy.answer[k, a]
                total += share
                for q in range(entries.indptr[i], entries.indptr[i + 1]):
                    j = entries.indices[q]
                    change += _lower(direction, j, k, entries.values[q] * light.scale[j] * share)
            change += _lower(direction, last, k, total * on_constant)
            totals[DIRECTION, k] += change


@numba.njit(inline="always")
def _lower(direction, j, k, difference):
    """Take a difference from one weight; return how its square changes."""
    old = direction[j, k]
    new = np.float32(old - difference)
    direction[j, k] = new
    return np.float64(new) * new - np.float64(old) * old
