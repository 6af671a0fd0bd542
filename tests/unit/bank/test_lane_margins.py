"""Margins of rows with private features, their loss and its derivatives, against float64."""

import numba
import numpy as np
import pytest
from scipy.special import expit

from taxofit.bank import lane_margins, simd
from taxofit.bank.private_features import solve_margin

COSTS = [1e-3, 0.3, 4.0, 60.0, 1e3]


@numba.njit
def find(u, positive, cost, wanted, out):
    t, lanes = simd.from_bits(positive), simd.load(u, 0)
    k, log_k = simd.splat(cost), simd.splat(np.float32(np.log(cost)))
    z = lane_margins.settled_root(lanes, t, k, log_k, simd.load(wanted, 0))
    c, s2 = simd.splat(np.float32(2) * cost), simd.splat(np.float32(0.5))
    loss, sigma, curvature, rest = lane_margins.loss_at(z, lanes, t, c, s2)
    wide = lane_margins.wide_curvature(z, t, sigma, curvature, c, s2)
    simd.store(out, 0, z)
    simd.store(out, 1, loss)
    simd.store(out, 2, simd.fma(curvature, rest, c * (sigma - t)))
    simd.store(out, 3, curvature)
    simd.store(out, 4, wide)


def found(u, positive, cost, wanted=1.0):
    """Margin, loss, slope, curvature and wide curvature of 16 rows with s² = 1/2 and c = 2 cost."""
    rows = simd.line_aligned(3, 5)
    rows[0, 0], rows[1, 0] = u, wanted
    find(rows[0], np.uint16(0xFFFF * positive), np.float32(cost), rows[1], rows[2])
    return rows[2].astype(np.float64)


def loss_of(u, positive, cost):
    z = solve_margin(u, 0.5, 2 * cost, float(positive))
    error = 2 * cost * (expit(z) - positive)
    return 2 * cost * (np.logaddexp(0, z) - positive * z) + 0.25 * error**2


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("positive", [0, 1])
def test_the_root_and_what_hangs_on_it_are_those_of_float64(cost, positive):
    everywhere = np.linspace(-40 - cost, 40 + cost, 50 * simd.LANES).astype(np.float32)
    for u in everywhere.reshape(-1, simd.LANES).astype(np.float64):
        z, loss, slope, curvature, _ = found(u, positive, cost)
        exact = solve_margin(u, 0.5, 2 * cost, float(positive))
        rounding = 1e-6 * (np.abs(u) + cost)
        assert (np.abs(z - exact) <= 5e-3 + rounding).all()
        # What is known to first or second order is far closer than the root itself.
        np.testing.assert_allclose(loss, loss_of(u, positive, cost), rtol=3e-6, atol=1e-6 * cost)
        sigma = expit(exact)
        exact_slope = 2 * cost * (sigma - positive)
        np.testing.assert_allclose(slope, exact_slope, rtol=1e-3, atol=3e-6 * cost)
        sharp = 2 * cost * sigma * (1 - sigma)
        np.testing.assert_allclose(curvature, sharp / (1 + 0.5 * sharp), rtol=2e-2, atol=1e-6)


@numba.njit
def find_far_below(u, k, c, s2, out):
    loss, slope, curvature = lane_margins.loss_far_below(
        simd.load(u, 0), simd.splat(k), simd.splat(c), simd.splat(s2)
    )
    simd.store(out, 0, loss)
    simd.store(out, 1, slope)
    simd.store(out, 2, curvature)


@pytest.mark.parametrize("private_square", [0.0, 1e-3, 0.5, 1.0])
@pytest.mark.parametrize("cost", COSTS)
def test_far_below_zero_a_negative_row_is_as_in_float64(cost, private_square):
    k = cost * private_square
    highest = lane_margins.FAR_BELOW
    if k > 0:
        highest = min(highest, lane_margins.LEAST_PULL - np.log(k))
    u, out = simd.line_aligned(2, 3)
    for top in (highest, highest - 1, highest - 12):
        u[0] = np.linspace(top - 1, top, simd.LANES)
        find_far_below(u, *np.array([k, cost, private_square], dtype=np.float32), out)
        z = solve_margin(u[0].astype(np.float64), private_square, cost, label=0.0)
        sigma = expit(z)
        slope, sharp = cost * sigma, cost * sigma * (1 - sigma)
        loss = cost * np.logaddexp(0, z) + 0.5 * private_square * slope**2
        np.testing.assert_allclose(out[0], loss, rtol=1e-6)
        np.testing.assert_allclose(out[1], slope, rtol=1e-6)
        np.testing.assert_allclose(out[2], sharp / (1 + private_square * sharp), rtol=1e-3)


def test_a_lane_that_has_settled_ignores_its_neighbours():
    u = np.linspace(-60, 60, simd.LANES)
    together = found(u, 1, 60.0)
    for lane in range(simd.LANES):
        alone = found(u, 1, 60.0, wanted=np.arange(simd.LANES) == lane)
        np.testing.assert_array_equal(alone[:, lane], together[:, lane])


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("positive", [0, 1])
def test_the_wide_curvature_is_never_met_by_more_than_it_says(cost, positive):
    """On the wrong side, the parabola of the wide curvature lies above the loss everywhere."""
    wrong = -1.0 if positive else 1.0
    u = wrong * (cost + np.linspace(0.5, 30, simd.LANES))
    _, loss, slope, curvature, wide = found(u, positive, cost)
    assert (wide >= curvature).all()
    for step in np.linspace(0, 2 * (30 + cost), 60):
        moved = u - wrong * step
        parabola = loss - wrong * step * slope + 0.5 * wide * step**2
        assert (loss_of(moved, positive, cost) <= parabola * (1 + 1e-4) + 1e-3 + 1e-6 * loss).all()
