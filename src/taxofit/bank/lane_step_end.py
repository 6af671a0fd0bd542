r"""The end of a Newton step, as far as it can be foreseen without another product with X.

Where conjugate gradients stop, two things are known of what they leave.

*The residual.* The preconditioner P has been applied to it, and says where the next step of
conjugate gradients would go. How far is not known without a product, but it is about as far as the
last one went: the trial goes on by that.

*The bend.* Newton takes the curvature D of a row for constant. Where a step moves its x·w by q, the
slope changes by D q + ½ D' q² and more, so that Σ ½ D' q² x is left of the gradient at the end.
Light rows are far on the negative side, where D' = D, and what they leave lies along their mean
row. Σ D q² over all rows is s·H s - s·s of the step s; light rows have of it what heavy ones have
not. Of these D' is known. With S, M and K = D⁻¹ + S M Sᵀ of :mod:`taxofit.bank.lane_heavy_rows`,

.. math:: -P S^T (\tfrac12 D' q^2) = -M S^T K^{-1} (\tfrac12 q^2 D' / D)

takes that away. For nodes that start near their solutions, on NAICS at C = 1 and 10 and for a web
directory, an eighth to a fifth of all evaluations and three in ten products are saved.
"""

from __future__ import annotations

import numba
import numpy as np

from taxofit.bank.lane_heavy_rows import solve_small
from taxofit.bank.lane_state import (
    ALPHA,
    CURVING,
    ENDING,
    MEAN_SHARE,
    N_CAUTIOUS,
    ONWARD,
    STARTING,
    STEP,
    STEP_ON_MEAN,
    STEP_SPREAD,
    TRYING,
)
from taxofit.bank.simd import LANES
from taxofit.compiling import part

__all__ = ["end_steps", "is_exact", "is_foreseen", "left_at_end", "note_bending"]

# Mean of q² over light rows, beyond which half of it says too little of exp(q) - 1 - q. Of 0.5, 2
# and 8, 2 is best at C = 10 by 1 to 3 %; at 1 there is no difference.
LONGEST = 2.0
# Of Σ D q², what a bent step leaves of the gradient: within 1 % from 0.2 to 0.3.
LEFT_BY_BEND = 0.25
# How much more a guessed step of conjugate gradients leaves of the residual than the last has left.
# From 1.5 to 3 within 3 %.
LEFT_BY_GUESS = 2.0
# The heavy rows that are known need not be all. What is left to light ones of Σ D q² is at most so
# many times what they would have if they were as at the base.
MOST_LIGHT = 3.0


@part
def is_exact(lane):
    """Return whether curvatures are second derivatives: those of cautious evaluations are not."""
    return lane.start >= 0 or lane.n_newton >= N_CAUTIOUS


@part
def is_foreseen(lane, totals, k):
    """Return whether the end of the step of lane k is: light rows move little, the rate is good."""
    return _motion(totals, k) <= LONGEST and LEFT_BY_GUESS * lane.rate < 1


@part
def left_at_end(lane, totals, k):
    """Return about what is left at the end of a step of the residual, and of the bend."""
    energy = lane.gain - totals[STEP, k]
    return LEFT_BY_GUESS * lane.rate * lane.residual, LEFT_BY_BEND * energy


@part
def _motion(totals, k):
    """Return the mean of q² over light rows, if they were as at the base."""
    return totals[STEP_ON_MEAN, k] ** 2 + totals[STEP_SPREAD, k]


@part
def note_bending(heavy, pull, slope, cost, private_square, masks):
    """Note D' / D of the heavy rows of lanes that start conjugate gradients.

    It is (1 - 2 σ) (1 - D s²)², where the error c (σ - t) is below 0 in positive rows only.

    pull : float32 (n, 16), errors without those of the base, which are the slope, float32 (n,).
    """
    for k in range(LANES):
        if masks[STARTING, k] > 0:
            for a in range(heavy.n_rows[k]):
                i = heavy.rows[k, a]
                error = pull[i, k] + slope[i]
                sigma = error / cost[i] if error > 0 else 1 + error / cost[i]
                held = 1 - heavy.curvature[k, a] * private_square[i]
                heavy.bending[k, a] = (1 - 2 * sigma) * held * held


@part
def end_steps(heavy, entries, step, lanes, masks, coefficients, totals):
    """Say how to go on from steps that are about to be tried in full, where that is foreseen."""
    for k in range(LANES):
        lane = lanes[k]
        masks[ENDING, k] = 0
        if masks[TRYING, k] > 0:
            is_whole = masks[CURVING, k] > 0 and lane.length == 1  # and tried for the first time
            masks[ENDING, k] = is_whole and is_foreseen(lane, totals, k)
            coefficients[MEAN_SHARE, k] = coefficients[ONWARD, k] = 0
        if masks[ENDING, k] > 0:
            lane.is_bent = 1
            n, answer, bend = heavy.n_rows[k], heavy.answer[k], heavy.bend
            light = lane.gain - totals[STEP, k] - _bend_heavy(heavy, entries, step, k)
            light = min(max(light, 0.0) / lane.mass, MOST_LIGHT * _motion(totals, k))
            bend[n] = 0.5 * light
            if not is_exact(lane):
                bend[:n] = 0  # cautious curvatures are what heavy rows will meet
            solve_small(heavy.factor[k], n, bend)
            onward = coefficients[ALPHA, k]
            for a in range(n + 1):
                answer[a] = onward * answer[a] + bend[a]
            coefficients[ONWARD, k], coefficients[MEAN_SHARE, k] = onward, -answer[n]


@numba.njit(inline="always")
def _bend_heavy(heavy, entries, step, k):
    """Set ½ q² D' / D of the heavy rows of lane k; return their Σ D q²."""
    indptr, indices, values = entries.indptr, entries.indices, entries.values
    on_constant = np.float64(entries.constant[0]) * step[step.shape[0] - 1, k]
    energy = 0.0
    for a in range(heavy.n_rows[k]):
        i, q = heavy.rows[k, a], on_constant
        for p in range(indptr[i], indptr[i + 1]):
            q += np.float64(values[p]) * step[indices[p], k]
        energy += heavy.curvature[k, a] * q * q
        heavy.bend[a] = 0.5 * heavy.bending[k, a] * q * q
    return energy
