r"""What the diagonal misses of a lane's Hessian: its heaviest rows, by Woodbury's identity.

Of a rare node's rows only its own and those that look like them have a curvature to speak of; all
others are nearly as they were at the all-negative solution, whose diagonal 1 / M serves every lane.
With the heaviest rows S of a lane, of curvatures D, the preconditioner is

.. math:: (M^{-1} + S^T D S)^{-1} = M - M S^T (D^{-1} + S M S^T)^{-1} S M,

a system of at most :data:`MOST` unknowns, in float64: what is left of r after S is taken out may be
a thousandth of it. Its work is that of these rows alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from taxofit.bank.lane_state import STARTING
from taxofit.bank.rank_loops import value_of_rank
from taxofit.bank.simd import LANES, any_true, load, store

__all__ = ["HeavyRows", "correct_direction", "find_heavy_rows", "solve_heavy", "start_heavy"]

MOST = 32
LEAST = 0.05  # curvature; rows have a norm of about 1, and the regulariser a curvature of 1
CANDIDATES = 4 * MOST
# The next Newton step looks at rows from this share of the lightest that was taken in this one.
FORESIGHT = 0.5

_compiled = numba.njit(cache=True, nogil=True, error_model="numpy")
# Sums over heavy rows may run in any order: it is the same order every time.
_summing = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})


class HeavyRows(NamedTuple):
    """The heaviest rows of every lane that started from the all-negative solution."""

    n_rows: np.ndarray  # int64 (16,); 0 in lanes that have none
    threshold: np.ndarray  # float32 (1, 16): curvature from which rows are looked at
    rows: np.ndarray  # int64 (16, CANDIDATES)
    curvature: np.ndarray  # float32 (16, CANDIDATES)
    factor: np.ndarray  # float64 (16, MOST, MOST): U of UᵀU = D⁻¹ + S M Sᵀ, inverse on its diagonal
    answer: np.ndarray  # float64 (16, MOST): of the small system
    dense: np.ndarray  # float64 (m,): zeros, to spread a row out
    ranked: np.ndarray  # float32 (CANDIDATES,): to rank curvatures in

    @classmethod
    def empty(cls, n_features: int) -> HeavyRows:
        """Return no rows for any lane."""
        return cls(
            np.zeros(LANES, dtype=np.int64),
            np.zeros((1, LANES), dtype=np.float32),
            np.zeros((LANES, CANDIDATES), dtype=np.int64),
            np.zeros((LANES, CANDIDATES), dtype=np.float32),
            np.zeros((LANES, MOST, MOST)),
            np.zeros((LANES, MOST)),
            np.zeros(n_features),
            np.zeros(CANDIDATES, dtype=np.float32),
        )


@_compiled
def find_heavy_rows(heavy, curvature, lanes, masks):
    """Take the rows of greatest curvature in lanes that start a Newton system from the first base.

    curvature : float32 (n, 16).
    """
    wanted = _forget_rows(heavy, lanes, masks)
    mask, excess = load(wanted, 0), np.zeros((1, LANES), dtype=np.float32)
    if not any_true(mask):
        return
    for i in range(curvature.shape[0]):
        above = (load(curvature, i) - load(heavy.threshold, 0)) * mask
        if any_true(above):
            store(excess, 0, above)
            for k in range(LANES):
                if excess[0, k] > 0:
                    _add_candidate(heavy, k, i, curvature[i, k])
    for k in range(LANES):
        if wanted[0, k] > 0:
            _keep_heaviest(heavy, k)
            heavy.threshold[0, k] = max(FORESIGHT * heavy.threshold[0, k], LEAST)


@_compiled
def _forget_rows(heavy, lanes, masks):
    """Drop the rows of lanes that start; return which of them want new ones, float32 (1, 16)."""
    wanted = np.zeros((1, LANES), dtype=np.float32)
    for k in range(LANES):
        if masks[STARTING, k] > 0:
            heavy.n_rows[k] = 0
            wanted[0, k] = lanes[k].base == 0
            if lanes[k].n_newton == 0:
                heavy.threshold[0, k] = LEAST
    return wanted


@_compiled
def _add_candidate(heavy, k, row, curvature):
    heavy.rows[k, heavy.n_rows[k]] = row
    heavy.curvature[k, heavy.n_rows[k]] = curvature
    heavy.n_rows[k] += 1
    if heavy.n_rows[k] == CANDIDATES:
        _keep_heaviest(heavy, k)


@_compiled
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


@_summing
def start_heavy(heavy, rows, scale, k):
    """Factorise the small system of lane k; scale : float32 (m,), M."""
    n, dense, U = heavy.n_rows[k], heavy.dense, heavy.factor[k]
    on_constant = np.float64(rows.constant[0] * rows.constant[0] * scale[-1])
    for a in range(n):
        i = heavy.rows[k, a]
        for q in range(rows.indptr[i], rows.indptr[i + 1]):
            dense[rows.indices[q]] = rows.values[q] * scale[rows.indices[q]]
        for b in range(a, n):
            total = on_constant
            other = heavy.rows[k, b]
            for q in range(rows.indptr[other], rows.indptr[other + 1]):
                total += rows.values[q] * dense[rows.indices[q]]
            U[a, b] = total
        U[a, a] += 1.0 / heavy.curvature[k, a]
        for q in range(rows.indptr[i], rows.indptr[i + 1]):
            dense[rows.indices[q]] = 0
    for a in range(n):
        inverse = 1.0 / np.sqrt(U[a, a])
        for b in range(a + 1, n):
            U[a, b] *= inverse
        U[a, a] = inverse
        for b in range(a + 1, n):
            for c in range(b, n):
                U[b, c] -= U[a, b] * U[a, c]


@_summing
def solve_heavy(heavy, rows, residual, scale, k):
    """Solve the small system of lane k for S M r; return by how much r·M r has to come down."""
    n, y, U = heavy.n_rows[k], heavy.answer[k], heavy.factor[k]
    last = scale.size - 1
    on_constant = np.float64(rows.constant[0]) * scale[last] * residual[last, k]
    for a in range(n):
        i = heavy.rows[k, a]
        total = on_constant
        for q in range(rows.indptr[i], rows.indptr[i + 1]):
            j = rows.indices[q]
            total += np.float64(rows.values[q]) * scale[j] * residual[j, k]
        y[a] = total
    energy = 0.0
    for a in range(n):
        y[a] *= U[a, a]
        energy += y[a] * y[a]
        for b in range(a + 1, n):
            y[b] -= U[a, b] * y[a]
    for a in range(n - 1, -1, -1):
        total = y[a]
        for b in range(a + 1, n):
            total -= U[a, b] * y[b]
        y[a] = total * U[a, a]
    return energy


@_compiled
def correct_direction(heavy, rows, direction, scale, k):
    """Take M Sᵀ y from the direction of lane k; return by how much that changes v·v."""
    y = heavy.answer[k]
    last = scale.size - 1
    change, total = 0.0, 0.0
    for a in range(heavy.n_rows[k]):
        i = heavy.rows[k, a]
        total += y[a]
        for q in range(rows.indptr[i], rows.indptr[i + 1]):
            j = rows.indices[q]
            change += _lower(direction, j, k, scale[j] * rows.values[q] * y[a])
    return change + _lower(direction, last, k, scale[last] * rows.constant[0] * total)


@_compiled
def _lower(direction, j, k, difference):
    """Take a difference from one weight; return how its square changes."""
    old = direction[j, k]
    new = np.float32(old - difference)
    direction[j, k] = new
    return np.float64(new) * new - np.float64(old) * old
