"""Rows near zero, evaluated sixteen at a time whichever lanes they belong to.

Far below zero a row is a short polynomial, and all sixteen lanes are done at once. Near zero it is
the root of an equation, four times the work, and of NAICS's rows that are near in any lane most are
in one or two: 2,700 rows of an evaluation at C = 1 and 4,400 pairs of row and lane. So pairs are
written down on the way and packed; a pair's numbers do not depend on those beside it.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from taxofit.bank.lane_margins import loss_nearby
from taxofit.bank.lane_state import CAUTIOUS, LIGHT_MASS, LOSS, ON_CONSTANT, STRETCH
from taxofit.bank.simd import LANES, from_bits, line_aligned, load, lowest_bit, store
from taxofit.compiling import part

__all__ = ["NearRows", "evaluate_near", "note_near"]

# Rows of the arrays that hold what sixteen pairs are, and what comes out.
LINEAR, LABEL, PRIVATE_COST, LOG_PRIVATE_COST, COST, PRIVATE_SQUARE, IS_CAUTIOUS = range(7)
FOUND, ERROR, BEND = range(7, 10)
N_NUMBERS = 10
ONE = np.uint16(1)


class NearRows(NamedTuple):
    """Pairs of row and lane that are still to be evaluated, of one stretch of rows."""

    row: np.ndarray  # int64 (STRETCH * 16,)
    lane: np.ndarray  # int64 (STRETCH * 16,)
    linear: np.ndarray  # float32 (STRETCH * 16,): x·w
    numbers: np.ndarray  # float32 (N_NUMBERS, 16)

    @classmethod
    def empty(cls) -> NearRows:
        """Return room for all pairs of a stretch."""
        row, lane = np.zeros((2, STRETCH * LANES), dtype=np.int64)
        linear = np.zeros(STRETCH * LANES, dtype=np.float32)
        return cls(row, lane, linear, line_aligned(1, N_NUMBERS)[0])


@numba.njit(inline="always")
def note_near(near, n, bits, i, pull, linear):
    """Write down row i in the lanes of these bits; return how many pairs there are then.

    pull : float32 (n, 16), x·v; linear : x·w of the row at the base.
    """
    while bits != 0:
        k = lowest_bit(bits)
        near.row[n], near.lane[n], near.linear[n] = i, k, pull[i, k] + linear
        n += 1
        bits &= bits - ONE
    return n


@part
def evaluate_near(near, n_near, rows, lanes, slope, light, masks, totals):
    """Set curvature and pull of the pairs written down; totals get what these add to them.

    As in :func:`taxofit.bank.lane_loops.evaluation_pass`.

    slope : float32 (n,), of rows at the base; light : curvature that counts for light rows at most.
    """
    numbers, constant = near.numbers, rows.entries.constant[0]
    for first in range(0, n_near, LANES):
        n = min(LANES, n_near - first)
        for a in range(n):
            i, k = near.row[first + a], near.lane[first + a]
            numbers[LINEAR, a] = near.linear[first + a]
            numbers[LABEL, a] = (lanes.positive[i] >> np.uint16(k)) & ONE
            numbers[PRIVATE_COST, a] = rows.private_cost[i]
            numbers[LOG_PRIVATE_COST, a] = rows.log_private_cost[i]
            numbers[COST, a] = rows.cost[i]
            numbers[PRIVATE_SQUARE, a] = rows.private_square[i]
            numbers[IS_CAUTIOUS, a] = masks[CAUTIOUS, k]
        loss, error, bend = loss_nearby(
            load(numbers, LINEAR),
            load(numbers, LABEL),
            load(numbers, PRIVATE_COST),
            load(numbers, LOG_PRIVATE_COST),
            load(numbers, COST),
            load(numbers, PRIVATE_SQUARE),
            from_bits(np.uint16((1 << n) - 1)),
            load(numbers, IS_CAUTIOUS),
        )
        store(numbers, FOUND, loss)
        store(numbers, ERROR, error)
        store(numbers, BEND, bend)
        for a in range(n):
            i, k = near.row[first + a], near.lane[first + a]
            pull = numbers[ERROR, a] - slope[i]
            lanes.pull[i, k], lanes.curvature[i, k] = pull, numbers[BEND, a]
            totals[LOSS, k] += numbers[FOUND, a]
            totals[LIGHT_MASS, k] += min(numbers[BEND, a], light)
            totals[ON_CONSTANT, k] += constant * pull
