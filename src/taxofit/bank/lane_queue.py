"""A block of problems from the first to the last, in one call of compiled code.

A thread that solves does not need Python, so threads never wait for each other here.
"""

from __future__ import annotations

import numba

from taxofit.bank import lane_transfer as transfer
from taxofit.bank.lane_state import FINISHED, FRESH, IDLE
from taxofit.bank.lane_steps import run_lanes
from taxofit.bank.simd import LANES, any_true, load
from taxofit.compiling import compiled

__all__ = ["run_block"]


@compiled
def run_block(
    queue,
    waiting,
    classes,
    tables,
    max_iter,
    evaluation_share,
    starts,
    rows,
    columns,
    row_lanes,
    near,
    vectors,
    heavy,
    base,
    lanes,
    masks,
    coefficients,
    totals,
    origins,
    finished,
    work,
    weights,
    stop,
):
    """Solve problems, those at the end of the queue first, until none is left or told to stop.

    Parameters
    ----------
    queue : ndarray of int64
    waiting : record array of LANE, shape (width,)
        Lanes as problems want them to be at first; they become what lanes were at the end.
    classes : RowsOfClasses
    tables : ndarray of int8, shape (width, n_classes)
    max_iter : int
    evaluation_share : float
    starts : Starts
    rows : SharedRows
    columns : SharedColumns
    row_lanes : RowLanes
    near : NearRows
    vectors : FeatureLanes
    heavy : HeavyRows
    base : Base
    lanes : record array of LANE, shape (16,)
    masks : ndarray of float32, shape (N_MASKS, 16)
    coefficients : ndarray of float32, shape (N_COEFFICIENTS, 16)
    totals : ndarray of float64, shape (N_TOTALS, 16)
    origins : Origins
    finished : ndarray of int64, shape (16,)
    work : ndarray of float32, shape (k, m + n)
    weights : ndarray of float32, shape (width, n_features)
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
            finished,
            work,
            waiting,
            weights,
        )
        n_busy, n_before = 0, n_left
        for k in range(LANES):
            masks[FRESH, k] = lanes[k].mode == IDLE and n_left > 0
            if masks[FRESH, k] > 0:
                n_left -= 1
                lanes[k] = waiting[queue[n_left]]
            n_busy += lanes[k].mode != IDLE
        if n_busy == 0:
            break
        if n_left < n_before:
            _load(
                classes,
                tables,
                starts,
                rows,
                row_lanes,
                vectors,
                base,
                lanes,
                masks,
            )
        run_lanes(
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
        )


@numba.njit(inline="always")
def _load(classes, tables, starts, rows, row_lanes, vectors, base, lanes, masks):
    """Make fresh lanes ready for the first evaluation of their problems."""
    transfer.load_labels(row_lanes.positive, classes, tables, lanes, masks)
    transfer.load_starts(vectors.direction, base.weights, starts, lanes, masks)
    if any_true(load(masks, FRESH)):
        transfer.begin_residuals(vectors.residual, base.gradient, masks)
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
    finished,
    work,
    waiting,
    weights,
):
    """Write down the results of finished lanes, which are then idle."""
    n_finished = 0
    for k in range(LANES):
        if lanes[k].mode == FINISHED:
            finished[n_finished] = k
            n_finished += 1
    for first in range(0, n_finished, work.shape[0]):
        transfer.take_weights(
            lanes,
            finished[first : min(n_finished, first + work.shape[0])],
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
        )
    for a in range(n_finished):
        lane = lanes[finished[a]]
        waiting[lane.problem] = lane
        lane.mode = IDLE
