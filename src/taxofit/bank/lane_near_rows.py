"""Rows near zero, evaluated sixteen at a time whichever lanes they belong to.

Far below zero a row is a short polynomial, and all sixteen lanes are done at once. Near zero it is
the root of an equation, four times the work, and of NAICS's rows that are near in any lane most are
in one or two: 2,700 rows of an evaluation at C = 1 and 4,400 pairs of row and lane. So pairs are
written down on the way and packed; a pair's numbers do not depend on those beside it.

A row that is near at the base already, as nearly all are at C = 0.01, is near in most lanes and is
evaluated in all of them at once. That depends on the row alone: no lane's sums on its neighbours.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from taxofit.bank.lane_margins import loss_nearby
from taxofit.bank.lane_state import CAUTIOUS, LIGHT, LIGHT_MASS, LOSS, ON_CONSTANT, STRETCH
from taxofit.bank.simd import (
    LANES,
    accumulate,
    from_bits,
    lanes_of,
    line_aligned,
    load,
    lowest_bit,
    minimum,
    pick,
    splat,
    store,
)
from taxofit.compiling import part

__all__ = ["NearRows", "evaluate_near", "note_pairs", "note_row"]

# Rows of the arrays that hold what sixteen pairs are, and what comes out.
LINEAR, LABEL, PRIVATE_COST, LOG_PRIVATE_COST, COST, PRIVATE_SQUARE, IS_CAUTIOUS = range(7)
FOUND, ERROR, BEND = range(7, 10)
N_NUMBERS = 10
ONE = np.uint16(1)


class NearRows(NamedTuple):
    """Whole rows, and pairs of row and lane, of one stretch that are still to be evaluated."""

    whole: np.ndarray  # int64 (STRETCH,)
    whole_lanes: np.ndarray  # uint16 (STRETCH,): a bit for each lane in which the row is near
    whole_linear: np.ndarray  # float32 (STRETCH, 16): x·w
    row: np.ndarray  # int64 (STRETCH * 16,)
    lane: np.ndarray  # int64 (STRETCH * 16,)
    linear: np.ndarray  # float32 (STRETCH * 16,): x·w
    numbers: np.ndarray  # float32 (N_NUMBERS, 16)

    @classmethod
    def empty(cls) -> NearRows:
        """Return room for all rows and all pairs of a stretch."""
        whole = np.zeros(STRETCH, dtype=np.int64)
        bits = np.zeros(STRETCH, dtype=np.uint16)
        row, lane = np.zeros((2, STRETCH * LANES), dtype=np.int64)
        linear = np.zeros(STRETCH * LANES, dtype=np.float32)
        whole_linear, numbers = line_aligned(1, STRETCH)[0], line_aligned(1, N_NUMBERS)[0]
        return cls(whole, bits, whole_linear, row, lane, linear, numbers)


@numba.njit(inline="always")
def note_row(near, n, bits, i, linear):
    """Write down row i, x·w and the lanes of these bits; return how many rows there are then."""
    near.whole[n], near.whole_lanes[n] = i, bits
    store(near.whole_linear, n, linear)
    return n + 1


@numba.njit(inline="always")
def note_pairs(near, n, bits, i, pull, linear):
    """Write down row i in each lane of these bits; return how many pairs there are then.

    pull : float32 (n, 16), x·v; linear : x·w of the row at the base.
    """
    while bits != 0:
        k = lowest_bit(bits)
        near.row[n], near.lane[n], near.linear[n] = i, k, pull[i, k] + linear
        n += 1
        bits &= bits - ONE
    return n


@part
def evaluate_near(near, n_whole, n_pairs, rows, lanes, slope, masks, totals):
    """Set curvature and pull of what was written down; totals get what that adds to them.

    As in :func:`taxofit.bank.lane_loops.evaluation_pass`.

    slope : float32 (n,), of rows at the base.
    """
    numbers = near.numbers
    for group in range(n_whole + (n_pairs + LANES - 1) // LANES):
        first = LANES * (group - n_whole)
        if first < 0:
            bits = _put_row(near, group, rows, lanes, masks)
        else:
            bits = _put_pairs(near, first, n_pairs, rows, lanes, masks)
        loss, error, bend = loss_nearby(
            load(numbers, LINEAR),
            load(numbers, LABEL),
            load(numbers, PRIVATE_COST),
            load(numbers, LOG_PRIVATE_COST),
            load(numbers, COST),
            load(numbers, PRIVATE_SQUARE),
            from_bits(bits),
            load(numbers, IS_CAUTIOUS),
        )
        store(numbers, FOUND, loss)
        store(numbers, ERROR, error)
        store(numbers, BEND, bend)
        if first < 0:
            _take_row(near, group, rows, lanes, slope, totals)
        else:
            _take_pairs(near, first, n_pairs, rows, lanes, slope, totals)


@numba.njit(inline="always")
def _put_row(near, position, rows, lanes, masks):
    """Write the numbers of a row; return a bit for each lane that is wanted."""
    numbers, i = near.numbers, near.whole[position]
    store(numbers, LINEAR, load(near.whole_linear, position))
    store(numbers, LABEL, from_bits(lanes.positive[i]))
    store(numbers, PRIVATE_COST, splat(rows.private_cost[i]))
    store(numbers, LOG_PRIVATE_COST, splat(rows.log_private_cost[i]))
    store(numbers, COST, splat(rows.cost[i]))
    store(numbers, PRIVATE_SQUARE, splat(rows.private_square[i]))
    store(numbers, IS_CAUTIOUS, load(masks, CAUTIOUS))
    return near.whole_lanes[position]


@numba.njit(inline="always")
def _put_pairs(near, first, n_pairs, rows, lanes, masks):
    """Write the numbers of up to sixteen pairs; return a bit for each."""
    numbers, n = near.numbers, min(LANES, n_pairs - first)
    for a in range(n):
        i, k = near.row[first + a], near.lane[first + a]
        numbers[LINEAR, a] = near.linear[first + a]
        numbers[LABEL, a] = (lanes.positive[i] >> np.uint16(k)) & ONE
        numbers[PRIVATE_COST, a] = rows.private_cost[i]
        numbers[LOG_PRIVATE_COST, a] = rows.log_private_cost[i]
        numbers[COST, a] = rows.cost[i]
        numbers[PRIVATE_SQUARE, a] = rows.private_square[i]
        numbers[IS_CAUTIOUS, a] = masks[CAUTIOUS, k]
    return np.uint16((1 << n) - 1)


@numba.njit(inline="always")
def _take_row(near, position, rows, lanes, slope, totals):
    """Set what came out for the lanes of a row in which it is near."""
    numbers, i = near.numbers, near.whole[position]
    is_near, zero = from_bits(near.whole_lanes[position]), lanes_of(0)
    pull, bend = load(numbers, ERROR) - splat(slope[i]), load(numbers, BEND)
    store(lanes.pull, i, pick(is_near, pull, load(lanes.pull, i)))
    store(lanes.curvature, i, pick(is_near, bend, load(lanes.curvature, i)))
    accumulate(totals, LOSS, pick(is_near, load(numbers, FOUND), zero))
    accumulate(totals, LIGHT_MASS, pick(is_near, minimum(bend, lanes_of(LIGHT)), zero))
    constant = splat(rows.entries.constant[0])
    accumulate(totals, ON_CONSTANT, pick(is_near, constant * pull, zero))


@numba.njit(inline="always")
def _take_pairs(near, first, n_pairs, rows, lanes, slope, totals):
    """Set what came out for up to sixteen pairs."""
    numbers, constant = near.numbers, rows.entries.constant[0]
    for a in range(min(LANES, n_pairs - first)):
        i, k = near.row[first + a], near.lane[first + a]
        pull = numbers[ERROR, a] - slope[i]
        lanes.pull[i, k], lanes.curvature[i, k] = pull, numbers[BEND, a]
        totals[LOSS, k] += numbers[FOUND, a]
        totals[LIGHT_MASS, k] += min(numbers[BEND, a], np.float32(LIGHT))
        totals[ON_CONSTANT, k] += constant * pull
