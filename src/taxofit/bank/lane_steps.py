"""What every lane does next: Newton's method with conjugate gradients, as a small state machine.

A lane evaluates its problem at a point, solves the Newton system from there by preconditioned
conjugate gradients (one product with the Hessian per pass), tries the step, and so on until the
gradient is small enough. Lanes go through this each at its own pace; :func:`run_lanes` makes the
passes that serve all of them, and comes back when a lane has finished and wants another problem.
"""

from __future__ import annotations

import math

import numba

from taxofit.bank import lane_heavy_rows as heavy_rows
from taxofit.bank import lane_loops as loops
from taxofit.bank import lane_state as state
from taxofit.bank import lane_step_end as step_end
from taxofit.bank.lane_state import AT_BASE, FINISHED, TO_CURVE, TO_EVALUATE
from taxofit.bank.simd import LANES, any_true, load
from taxofit.compiling import part

__all__ = ["run_lanes"]

LOOSEST_FORCING = 0.2
TIGHTEST_FORCING = 2e-3
# From a start that is no base, if the end of the step is not foreseen. When none was, NAICS at
# C = 10 took 4.19 evaluations and 6.89 products a node, and 4.25 and 6.75 with 0.2.
NEAR_FORCING = 0.1
LAST_FORCING = 0.2  # where the gradient is small enough already, and the gain is not
MAX_CONJUGATE_STEPS = 30
MAX_TRIALS = 12
# How far the next step may go, times the last: after one that had to be shortened, and otherwise.
WIDENED_AFTER_TRIALS, WIDENED = 2.0, 4.0
MAX_GROWTH = 60.0
LENGTH_ACCURACY = 0.02
NO_SLOPE, ALLOWED_SLOPE = 1e-3, 0.4  # at the end of a step, of that at its beginning
# Two evaluations of an objective in float32 differ by about this much without meaning anything.
OBJECTIVE_ROUNDING = 3e-7
# Below this share of the objective there is nothing left to gain: the float32 weights that are
# returned are no more exact than that.
RELATIVE_DECREASE = 1e-13
# Below this share a step that has to be shortened is shortened by rounding.
ROUNDED_DECREASE = 1e-8


@numba.njit(inline="always")
def run_lanes(
    lanes,
    rows,
    columns,
    row_lanes,
    near,
    vectors,
    heavy,
    base,
    masks,
    coefficients,
    totals,
    max_iter,
    evaluation_share,
    stop,
):
    """Make passes until a lane has finished or all are idle, or until told to stop.

    Parameters
    ----------
    lanes : record array of LANE, shape (16,)
    rows : SharedRows
    columns : SharedColumns
    row_lanes : RowLanes
    near : NearRows
    vectors : FeatureLanes
    heavy : HeavyRows
    base : Base
    masks : ndarray of float32, shape (N_MASKS, 16)
    coefficients : ndarray of float32, shape (N_COEFFICIENTS, 16)
    totals : ndarray of float64, shape (N_TOTALS, 16)
    max_iter : int
        Newton steps after which a lane finishes unconverged.
    evaluation_share : float
        Of the lanes that are not idle, that have to wait for an evaluation before one is made.
    stop : ndarray of int64, shape (1,)
        Another thread sets it to have this one leave off.
    """
    entries, light = rows.entries, base.light
    direction, residual = vectors.direction, vectors.residual
    while True:
        _schedule(lanes, masks, evaluation_share)
        if any_true(load(masks, state.EVALUATING)):
            loops.evaluation_pass(
                rows, columns, row_lanes, near, base.rows, direction, masks, totals
            )
        elif any_true(load(masks, state.CURVING)):
            loops.curvature_pass(entries, columns, row_lanes, direction, totals)
        _note_masses(lanes, masks, totals)
        _find_step_lengths(lanes, masks, coefficients, totals)
        loops.feature_pass(
            entries,
            columns,
            row_lanes.pull,
            base.gradient,
            base.weights,
            light,
            vectors,
            masks,
            coefficients,
            totals,
        )
        coefficients[state.MEAN_SHARE] = 0
        curving, starting = masks[state.CURVING], masks[state.STARTING]
        heavy_rows.solve_heavy(heavy, entries, light, residual, curving, coefficients, totals)
        any_begin = _decide(lanes, light.mean_square, masks, coefficients, totals, max_iter)
        if any_true(load(masks, state.EVALUATED)):
            heavy_rows.find_heavy_rows(heavy, row_lanes.curvature, lanes, masks)
            step_end.note_bending(
                heavy, row_lanes.pull, base.rows.slope, rows.cost, rows.private_square, masks
            )
            heavy_rows.start_heavy(heavy, entries, light, lanes, masks)
            heavy_rows.solve_heavy(heavy, entries, light, residual, starting, coefficients, totals)
        step_end.end_steps(heavy, entries, vectors.step, lanes, masks, coefficients, totals)
        if any_begin:
            loops.begin_directions(vectors, light, masks, coefficients, totals)
        else:
            loops.next_directions(vectors, light, masks, coefficients, totals)
        heavy_rows.correct_directions(heavy, entries, light, direction, masks, totals)
        any_finished = _note_directions(lanes, masks, totals)
        if any_finished or stop[0] != 0:
            break


@part
def _find_step_lengths(lanes, masks, coefficients, totals):
    """Set how far each curving lane goes along its direction."""
    for k in range(LANES):
        coefficients[state.CONSTANT_PRODUCT, k] = totals[state.ON_CONSTANT, k]
        lane = lanes[k]
        alpha = 0.0
        if masks[state.CURVING, k] > 0:
            alpha = lane.energy / (lane.direction + totals[state.ENERGY, k])
            lane.gain += alpha * lane.energy
        coefficients[state.ALPHA, k] = alpha


@part
def _note_directions(lanes, masks, totals):
    """Note what the new directions are; return whether any lane has finished."""
    any_finished = False
    for k in range(LANES):
        lane = lanes[k]
        lane.direction = totals[state.DIRECTION, k]
        if masks[state.STARTING, k] > 0:
            lane.first_energy = lane.energy = totals[state.SCALED_RESIDUAL, k]
        any_finished |= lane.mode == FINISHED
    return any_finished


@part
def _note_masses(lanes, masks, totals):
    """Note how much light rows weigh where lanes have been evaluated."""
    for k in range(LANES):
        if masks[state.EVALUATING, k] > 0:
            lanes[k].mass = totals[state.LIGHT_MASS, k]


@part
def _schedule(lanes, masks, evaluation_share):
    """Say which lanes the next pass serves."""
    n_waiting, n_others = 0, 0
    for k in range(LANES):
        mode = lanes[k].mode
        n_waiting += mode == TO_EVALUATE
        n_others += mode in (AT_BASE, TO_CURVE)
    evaluates = n_waiting >= evaluation_share * (n_waiting + n_others)
    for k in range(LANES):
        lane = lanes[k]
        masks[state.CURVING, k] = lane.mode == TO_CURVE
        masks[state.CAUTIOUS, k] = lane.start < 0 and lane.n_newton + 1 < state.N_CAUTIOUS
        masks[state.EVALUATING, k] = evaluates and lane.mode == TO_EVALUATE
        masks[state.EVALUATED, k] = masks[state.EVALUATING, k] > 0 or lane.mode == AT_BASE
        lane.n_passes += masks[state.CURVING, k] + masks[state.EVALUATING, k] > 0


@part
def _decide(lanes, mean_square, masks, coefficients, totals, max_iter):
    """Take every lane that was served to its next mode; return whether any begins something."""
    any_begin = False
    for k in range(LANES):
        for mask in range(state.CONJUGATING, state.FRESH + 1):
            masks[mask, k] = 0
        lane = lanes[k]
        if masks[state.CURVING, k] > 0:
            before = lane.residual if lane.n_conjugate > 0 else lane.gradient
            lane.n_conjugate += 1
            lane.residual = math.sqrt(totals[state.RESIDUAL, k])
            lane.rate = lane.residual / before
            coefficients[state.BETA, k] = totals[state.SCALED_RESIDUAL, k] / lane.energy
            if _is_solved(lane, totals, k):
                _try_step(lane, totals, k)
                masks[state.TRYING, k] = 1
            else:
                masks[state.CONJUGATING, k] = 1
                lane.energy = totals[state.SCALED_RESIDUAL, k]
        elif masks[state.EVALUATED, k] > 0:
            loss = lane.loss if lane.mode == AT_BASE else totals[state.LOSS, k]
            objective = loss + 0.5 * totals[state.NORM, k]
            slope = totals[state.SLOPE, k] / lane.length if lane.length > 0 else 0.0
            if _is_acceptable(lane, objective, slope):
                masks[state.ACCEPTING, k] = 1
                gradient = math.sqrt(totals[state.GRADIENT, k])
                _accept(
                    lane, objective, gradient, _decrement(lane, mean_square, totals, k), max_iter
                )
                masks[state.STARTING, k] = lane.mode == TO_CURVE
            else:
                _shorten(lane, slope)
                masks[state.TRYING, k] = 1
        else:
            continue
        coefficients[state.LENGTH, k] = lane.length
        any_begin |= masks[state.STARTING, k] + masks[state.ACCEPTING, k] > 0
    return any_begin


@part
def _decrement(lane, mean_square, totals, k):
    """Return about what a Newton step gains: ½ g·H⁻¹ g without the heavy rows."""
    explained = totals[state.ON_MEAN, k] ** 2 / (mean_square + 1 / lane.mass)
    return 0.5 * (totals[state.SCALED_RESIDUAL, k] - explained)


@part
def _is_solved(lane, totals, k):
    """Return whether conjugate gradients have done enough for this Newton step.

    Where its end is foreseen, enough is what leaves less of the residual than the bend will leave.
    Elsewhere the residual counts as the preconditioner measures it, r·M r, which is about what is
    still to be gained: stiff directions have large residuals that mean little.
    Where the gradient is small enough and the gain is not, the target says nothing about the step.
    """
    if lane.n_conjugate >= MAX_CONJUGATE_STEPS:
        return True
    energy = totals[state.SCALED_RESIDUAL, k]
    if lane.gradient <= lane.target:
        return energy <= LAST_FORCING**2 * lane.first_energy
    if step_end.is_exact(lane) and step_end.is_foreseen(lane, totals, k):
        residual, by_bend = step_end.left_at_end(lane, totals, k)
        return residual <= 0.5 * lane.target + by_bend
    return energy <= lane.forcing**2 * lane.first_energy or lane.residual <= 0.5 * lane.target


@part
def _try_step(lane, totals, k):
    """Ask for an evaluation at the end of the step, or before where it is too long to trust.

    An objective is above 0: no step can gain more than all of it. From the all-negative solution,
    where light rows weigh the least, half of the first steps would go too far.
    """
    lane.norm = math.sqrt(totals[state.STEP, k])
    lane.length = min(1.0, lane.radius / lane.norm) if lane.norm > 0 else 1.0
    if lane.gain > lane.objective:
        lane.length = min(lane.length, lane.objective / lane.gain)
    if lane.n_newton == 0 and lane.start < 0:
        on_mean, spread = totals[state.STEP_ON_MEAN, k], totals[state.STEP_SPREAD, k]
        lane.length = min(lane.length, _length_for_light_rows(lane, on_mean, spread))
    lane.n_trials = lane.is_bent = 0
    lane.is_last = 0.5 * lane.gain <= RELATIVE_DECREASE * lane.objective
    lane.mode = TO_EVALUATE


@part
def _length_for_light_rows(lane, on_mean, spread):
    """Return how far to go, at most 1, until light rows outweigh what is still to be gained.

    If a step moves their margins by q with this mean and variance, they come to weigh
    mass · exp(λ q̄ + ½ λ² var); all else keeps its curvature. The slope is 0 at the length returned.
    """
    rest = max(lane.gain - lane.mass * (on_mean * on_mean + spread), 0.0)
    low, high, length = 0.0, 1.0, 1.0
    while high - low > LENGTH_ACCURACY:
        growth = min(length * on_mean + 0.5 * length * length * spread, MAX_GROWTH)
        light = lane.mass * ((on_mean + length * spread) * math.exp(growth) - on_mean)
        if length * rest + light <= lane.gain:
            low = length
        else:
            high = length
        length = 0.5 * (low + high)
    return max(low, LENGTH_ACCURACY)


@part
def _is_acceptable(lane, objective, slope):
    """Return whether the point tried is better than the one it was tried from.

    The objective is convex: if it still falls at the point tried, or as good as does, it has fallen
    all the way. Else its value decides, and the slope where rounding hides the difference.
    """
    is_falling = slope <= NO_SLOPE * lane.gain
    if lane.n_newton < 0 or lane.is_last or is_falling or lane.length == 0:
        return True
    not_higher = objective <= lane.objective * (1 + OBJECTIVE_ROUNDING)
    return not_higher and slope <= ALLOWED_SLOPE * lane.gain


@part
def _shorten(lane, slope):
    """Try again where the slope would be 0 if the curvature grew exponentially; at last, stay.

    Conjugate gradients say that the slope is -gain at 0 and grows by gain per unit there. If the
    growth itself grows by exp(κ) per unit, the slope is gain ((exp(κλ) - 1) / κ - 1) at λ: that
    gives κ, and κ the root. A bent step is first tried straight.
    """
    if lane.is_bent:
        lane.is_bent = 0
        return
    lane.n_trials += 1
    if lane.n_trials == MAX_TRIALS:
        lane.length = 0.0
    else:
        exponent = _exponent((1 + slope / lane.gain) / lane.length)  # κ times the length
        longest = 0.9 if lane.n_trials == 1 else 0.5
        lane.length *= min(max(math.log1p(exponent / lane.length) / exponent, 0.1), longest)


@part
def _exponent(ratio):
    """Return about x > 0 with (exp(x) - 1) / x = ratio, by Newton's method from above."""
    x = math.log1p(2 * max(ratio - 1, 1e-3))
    for _ in range(8):
        e = math.exp(x)
        x = min(max(x - (e - 1 - ratio * x) / (e - ratio), 1e-3), MAX_GROWTH)
    return x


@part
def _accept(lane, objective, gradient, decrement, max_iter):
    """Move to the point evaluated; finish there or set out for the next."""
    if lane.length == 1.0 and lane.n_newton >= 0:
        # Eisenstat and Walker: solve the next system as exactly as this one's model came true.
        mismatch = abs(gradient - lane.residual) / lane.gradient
        lane.forcing = min(max(2 * mismatch, TIGHTEST_FORCING), LOOSEST_FORCING)
    else:
        lane.forcing = NEAR_FORCING if lane.start >= 0 else LOOSEST_FORCING
    # Where a step changes nothing that can be seen, the gradient rule is all there is to go by.
    is_still = abs(objective - lane.objective) <= OBJECTIVE_ROUNDING * objective
    is_good = decrement <= lane.decrease * objective or (is_still and lane.n_newton >= 0)
    is_rounding = is_still and lane.n_trials > 0 and decrement <= ROUNDED_DECREASE * objective
    is_exhausted = lane.is_last == 1 or (is_rounding and lane.n_newton >= 0)
    lane.converged = (gradient <= lane.target and is_good) or is_exhausted
    is_stuck = lane.n_newton >= 0 and lane.length == 0
    if lane.n_newton >= 0:
        length = lane.length * lane.norm
        if lane.n_trials > 0:
            lane.radius = WIDENED_AFTER_TRIALS * length
        else:
            lane.radius = max(lane.radius, WIDENED * length)
    lane.n_newton += 1
    lane.n_conjugate = 0
    lane.gain = 0.0
    lane.objective = objective
    lane.gradient = gradient
    if lane.converged or is_stuck or lane.n_newton >= max_iter:
        lane.mode = FINISHED
    else:
        lane.mode = TO_CURVE
