"""Ends of Newton steps, against finite differences and dense algebra."""

from types import SimpleNamespace

import numpy as np
import pytest
from tests.compiled_parts import called

from taxofit.bank import lane_heavy_rows as heavy_rows
from taxofit.bank import lane_loops as loops
from taxofit.bank import lane_state as state
from taxofit.bank import lane_step_end as step_end
from taxofit.bank import lane_steps as steps
from taxofit.bank import simd
from taxofit.bank.private_features import solve_margin

LANE = 3


def slope_and_curvature(u, t, c, s2):
    """Return c (σ(z) - t) and its derivative by u, where z + c s² (σ(z) - t) = u."""
    z = np.where(t > 0, -solve_margin(-u, s2, c, 0.0), solve_margin(u, s2, c, 0.0))
    sigma = 1 / (1 + np.exp(-z))
    bend = c * sigma * (1 - sigma)
    return c * (sigma - t), bend / (1 + bend * s2)


def small_system(n_heavy):
    """Return lanes over 60 dense rows and 12 features, the last one constant, all numbers random.

    The first rows are the heavy ones of a lane.
    """
    rng = np.random.default_rng(n_heavy)
    n, m = 60, 12
    X = np.hstack([rng.standard_normal((n, m - 1)), np.ones((n, 1))]).astype(np.float32)
    indptr = np.arange(0, n * (m - 1) + 1, m - 1).astype(np.uint64)
    entries = state.RowEntries(
        indptr,
        np.tile(np.arange(m - 1), n).astype(np.uint16),
        X[:, :-1].ravel(),
        indptr[1:],
        np.ones(1, dtype=np.float32),
    )
    mean, spread = rng.standard_normal((2, m)).astype(np.float32)
    scale = rng.uniform(0.2, 1, m).astype(np.float32)
    light = state.LightRows(mean, spread**2, scale, float(np.sum(scale * mean.astype(float) ** 2)))
    vectors = state.FeatureLanes(*simd.line_aligned(4, m), simd.line_aligned(1, 0)[0])
    for array in vectors[:4]:
        array[:] = rng.standard_normal(array.shape)
    lanes = np.zeros(simd.LANES, dtype=state.LANE)
    lanes["mass"], lanes["length"], lanes["rate"], lanes["start"] = 200.0, 1.0, 0.1, -1
    curvature = simd.line_aligned(1, n)[0]
    curvature[:n_heavy] = rng.uniform(0.1, 1, (n_heavy, 1))
    return SimpleNamespace(
        rng=rng,
        X=X.astype(np.float64),
        entries=entries,
        light=light,
        vectors=vectors,
        lanes=lanes,
        curvature=curvature,
        heavy=heavy_rows.HeavyRows.empty(m),
        masks=np.zeros((state.N_MASKS, simd.LANES), dtype=np.float32),
        coefficients=np.zeros((state.N_COEFFICIENTS, simd.LANES), dtype=np.float32),
        totals=np.zeros((state.N_TOTALS, simd.LANES)),
    )


def end_steps(it):
    rest = (it.lanes, it.masks, it.coefficients, it.totals)
    called(step_end.end_steps, it.heavy, it.entries, it.vectors.step, *rest)


def test_bending_is_how_the_curvature_of_rows_changes():
    rng = np.random.default_rng(0)
    n, step = heavy_rows.MOST, 1e-4
    u, t = rng.uniform(-6, 6, n), rng.integers(2, size=n).astype(np.float64)
    c, s2 = rng.uniform(0.5, 20, n), rng.uniform(0, 2, n)
    error, D = slope_and_curvature(u, t, c, s2)
    higher, lower = (slope_and_curvature(u + h, t, c, s2)[1] for h in (step, -step))
    heavy = heavy_rows.HeavyRows.empty(1)
    heavy.n_rows[LANE], heavy.rows[LANE, :n], heavy.curvature[LANE, :n] = n, np.arange(n), D
    masks = np.zeros((state.N_MASKS, simd.LANES), dtype=np.float32)
    masks[state.STARTING, LANE] = 1
    slope = rng.random(n).astype(np.float32)
    pull = simd.line_aligned(1, n)[0]
    pull[:, LANE] = error - slope
    rows = (slope, c.astype(np.float32), s2.astype(np.float32))
    called(step_end.note_bending, heavy, pull, *rows, masks)
    expected = (higher - lower) / (2 * step) / D
    np.testing.assert_allclose(heavy.bending[LANE], expected, rtol=1e-3, atol=1e-4)
    assert expected.min() < -0.5
    assert expected.max() > 0.5
    assert not np.delete(heavy.bending, LANE, axis=0).any()


@pytest.mark.parametrize("any_begin", [False, True])
@pytest.mark.parametrize("is_cautious", [False, True])
@pytest.mark.parametrize("n_heavy", [0, 5, 20])
def test_a_step_goes_on_by_the_residual_and_against_its_bend(n_heavy, is_cautious, any_begin):
    it, k = small_system(n_heavy), LANE
    point, step, direction, residual = (a[:, k].astype(np.float64) for a in it.vectors[:4])
    mean, M = it.light.mean.astype(np.float64), it.light.scale.astype(np.float64)
    it.masks[state.STARTING, k] = 1
    called(heavy_rows.find_heavy_rows, it.heavy, it.curvature, it.lanes, it.masks)
    called(heavy_rows.start_heavy, it.heavy, it.entries, it.light, it.lanes, it.masks)
    it.totals[state.ON_MEAN, k] = mean @ (M * residual)
    called(
        heavy_rows.solve_heavy,
        it.heavy,
        it.entries,
        it.light,
        it.vectors.residual,
        it.masks[state.STARTING],
        it.coefficients,
        it.totals,
    )
    it.masks[state.STARTING] = 0
    bending = it.heavy.bending[k, :n_heavy] = it.rng.uniform(-1, 1, n_heavy).astype(np.float32)
    D, q = it.curvature[:n_heavy, k].astype(np.float64), it.X[:n_heavy] @ step
    light = 3.0  # Σ D q² of light rows
    it.lanes["gain"][k] = np.sum(D * q**2) + light + step @ step
    it.lanes["n_newton"][k] = state.N_CAUTIOUS - is_cautious
    it.totals[state.STEP, k], it.totals[state.STEP_SPREAD, k] = step @ step, 1.0
    it.coefficients[state.ALPHA, k], it.coefficients[state.BETA, k] = 0.8, 0.3
    it.coefficients[state.LENGTH, k] = it.masks[[state.CURVING, state.TRYING], k] = 1
    end_steps(it)
    assert it.lanes["is_bent"][k] == 1
    update = loops.begin_directions if any_begin else loops.next_directions
    called(update, it.vectors, it.light, it.masks, it.coefficients, it.totals)
    called(
        heavy_rows.correct_directions,
        it.heavy,
        it.entries,
        it.light,
        it.vectors.direction,
        it.masks,
        it.totals,
    )
    S = np.vstack([it.X[it.heavy.rows[k, :n_heavy]], mean])
    curvature = np.append(D, it.lanes["mass"][k])
    bending = np.zeros(n_heavy) if is_cautious else bending
    P = np.linalg.inv(np.diag(1 / M) + S.T @ (curvature[:, None] * S))
    bend = S.T @ (0.5 * curvature * np.append(bending * q**2, light / it.lanes["mass"][k]))
    expected = point + step + 0.8 * (P @ residual + 0.3 * direction) - P @ bend
    np.testing.assert_allclose(it.vectors.direction[:, k], expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(it.vectors.step[:, k], step.astype(np.float32))


@pytest.mark.parametrize(
    ("field", "value"), [("rate", 0.6), ("spread", 5.0), ("length", 0.5), ("curving", 0)]
)
def test_a_step_whose_end_is_not_foreseen_ends_as_it_is(field, value):
    it, k = small_system(5), LANE
    it.lanes["n_newton"][k], it.lanes["gain"][k] = state.N_CAUTIOUS, 1.0
    it.masks[state.CURVING, k] = 1
    if field == "spread":
        it.totals[state.STEP_SPREAD, k] = value
    elif field == "curving":
        it.masks[state.CURVING, k] = value
    else:
        it.lanes[field][k] = value
    it.coefficients[state.LENGTH, k], it.masks[state.TRYING, k] = it.lanes["length"][k], 1
    it.coefficients[[state.ONWARD, state.MEAN_SHARE], k] = 7.0  # whatever was there before
    point, step = it.vectors.point[:, k].copy(), it.vectors.step[:, k].copy()
    end_steps(it)
    called(loops.next_directions, it.vectors, it.light, it.masks, it.coefficients, it.totals)
    assert not it.masks[state.ENDING].any()
    expected = point + it.lanes["length"][k] * step
    np.testing.assert_allclose(it.vectors.direction[:, k], expected, rtol=1e-5)


def test_a_bent_step_that_gains_nothing_is_tried_straight_and_then_shortened():
    lane = np.zeros(1, dtype=state.LANE)[0]
    lane["objective"], lane["gain"], lane["length"], lane["is_bent"] = 10.0, 1.0, 1.0, 1
    assert not called(steps._is_acceptable, lane, 11.0, 0.1)
    called(steps._shorten, lane, 0.1)
    assert (lane["is_bent"], lane["length"], lane["n_trials"]) == (0, 1.0, 0)
    assert not called(steps._is_acceptable, lane, 11.0, 2.0)
    called(steps._shorten, lane, 2.0)
    assert 0 < lane["length"] < 1


def test_a_step_is_taken_where_rounding_hides_that_the_objective_falls():
    lane = np.zeros(1, dtype=state.LANE)[0]
    lane["objective"], lane["gain"], lane["length"] = 10.0, 1e-8, 1.0
    rounded = 10.0 * (1 + 5e-7)
    assert called(steps._is_acceptable, lane, rounded, 1e-13)
    assert not called(steps._is_acceptable, lane, rounded, 1e-9)
