"""A block of problems from the first to the last, in one call of compiled code.

A thread that solves does not need Python, so threads never wait for each other here.
"""

from __future__ import annotations

import numba
import numpy as np

from taxofit.bank import lane_transfer as transfer
from taxofit.bank.lane_state import AT_BASE, FINISHED, FRESH, IDLE, TO_EVALUATE
from taxofit.bank.lane_steps import run_lanes
from taxofit.bank.simd import LANES
from taxofit.compiling import compiled

__all__ = ["run_block"]

FIRST_STEP = 5.0  # longest first step, times the root of the number of positives


@compiled
def run_block(
    queue,
    problems,
    starts,
    rows,
    columns,
    row_lanes,
    vectors,
    heavy,
    base,
    lanes,
    masks,
    coefficients,
    totals,
    origins,
    work,
    solutions,
    stop,
):
    """Solve problems, those at the end of the queue first, until none is left or told to stop.

    Parameters
    ----------
    queue : ndarray of int64
    problems : Problems
    starts : Starts
    rows : SharedRows
    columns : SharedColumns
    row_lanes : RowLanes
    vectors : FeatureLanes
    heavy : HeavyRows
    base : Base
    lanes : record array of LANE, shape (16,)
    masks : ndarray of float32, shape (N_MASKS, 16)
    coefficients : ndarray of float32, shape (N_COEFFICIENTS, 16)
    totals : ndarray of float64, shape (N_TOTALS, 16)
    origins : Origins
    work : ndarray of float32, shape (m + n,)
    solutions : Solutions
        Get what is found.
    stop : ndarray of int64, shape (1,)
        Another thread sets it to have this one leave off.
    """
    n_left = queue.size
    while stop[0] == 0:
        _take_finished(
            lanes,
            vectors.point,
            row_lanes.pull,
            row_lanes.positive,
            rows.cost,
            rows.private_square,
            base.weights,
            base.rows,
            origins,
            work,
            solutions,
        )
        n_busy, n_before = 0, n_left
        for k in range(LANES):
            masks[FRESH, k] = lanes[k].mode == IDLE and n_left > 0
            if masks[FRESH, k] > 0:
                n_left -= 1
                _assign(lanes[k], queue[n_left], problems, starts.place, base.mass)
            n_busy += lanes[k].mode != IDLE
        if n_busy == 0:
            break
        if n_left < n_before:
            _load(problems, starts, rows, row_lanes, vectors, base, lanes, masks)
        run_lanes(
            lanes,
            rows,
            columns,
            row_lanes,
            vectors,
            heavy,
            base,
            masks,
            coefficients,
            totals,
            problems.max_iter,
            stop,
        )


@numba.njit(inline="always")
def _assign(lane, problem, problems, place, mass):
    """Give a lane its next problem."""
    lane.problem = problem
    lane.is_near = place[problem] >= 0
    lane.mode = TO_EVALUATE if lane.is_near else AT_BASE
    lane.target, lane.decrease = problems.gradient[problem], problems.decrease
    lane.radius = FIRST_STEP * np.sqrt(problems.n_positive[problem] + 1.0)
    lane.n_newton, lane.n_passes = -1, 0  # the first evaluation is no step
    lane.is_last, lane.n_trials, lane.length, lane.objective = 0, 0, 0.0, 0.0
    lane.mass = mass


@numba.njit(inline="always")
def _load(problems, starts, rows, row_lanes, vectors, base, lanes, masks):
    """Make fresh lanes ready for the first evaluation of their problems."""
    classes, tables = problems.classes, problems.tables
    transfer.load_labels(row_lanes.positive, classes, tables, lanes, masks)
    transfer.begin_problems(vectors.direction, vectors.residual, base.gradient, masks)
    any_at_base = False
    for k in range(LANES):
        if masks[FRESH, k] > 0 and lanes[k].is_near:
            found = starts.weights[starts.place[lanes[k].problem]]
            transfer.load_start(vectors.direction, base.weights, found, starts.columns, k)
            masks[FRESH, k] = 0
        any_at_base |= masks[FRESH, k] > 0
    if any_at_base:
        transfer.begin_at_base(
            row_lanes.curvature,
            rows,
            base.rows,
            base.loss,
            classes,
            tables,
            vectors.residual,
            lanes,
            masks,
        )


@numba.njit(inline="always")
def _take_finished(
    lanes,
    point,
    pull,
    positive,
    cost,
    private_square,
    base_weights,
    base,
    origins,
    work,
    solutions,
):
    """Write down the results of finished lanes, which are then idle."""
    for k in range(LANES):
        lane = lanes[k]
        if lane.mode == FINISHED:
            found = solutions.weights[lane.problem]
            transfer.take_weights(
                lane.n_passes,
                k,
                point,
                pull,
                positive,
                cost,
                private_square,
                base_weights,
                base,
                origins,
                work,
                found,
            )
            solutions.objective[lane.problem] = lane.objective
            solutions.converged[lane.problem] = lane.converged
            solutions.n_iterations[lane.problem] = lane.n_newton
            solutions.n_passes[lane.problem] = lane.n_passes
            lane.mode = IDLE
