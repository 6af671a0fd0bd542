"""What weights have in common, against sums and medians written out."""

import numpy as np
import pytest
from scipy import sparse

from taxofit.bank import trend as trends
from taxofit.bank.columns import prune_along, prune_columns
from taxofit.bank.rows import Rows
from taxofit.bank.trend import Trend
from taxofit.datasets import mapped


@pytest.fixture
def X():  # noqa: N802  (the name the field uses)
    return sparse.random_array((90, 60), density=0.2, rng=np.random.default_rng(0), format="csr")


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_steps_are_weighted_column_sums(monkeypatch, X, fit_intercept):
    monkeypatch.setattr(mapped, "CHUNK_ENTRIES", 100)
    weight = np.random.default_rng(1).random(90)
    rows = Rows.prepare(X, fit_intercept=fit_intercept, sample_weight=weight)
    found = Trend.of(rows)
    sums = weight @ X.toarray()
    np.testing.assert_allclose(found.steps, sums * 32767 / sums.max(), atol=0.51)
    assert found.steps.dtype == np.int16


def test_slopes_are_measured_where_sums_are_large(monkeypatch, X):
    steps = Trend.of(Rows.prepare(X)).steps
    median = np.median(np.abs(steps[steps != 0]))
    np.testing.assert_array_equal(Trend.of(Rows.prepare(X)).places, np.flatnonzero(steps >= median))
    monkeypatch.setattr(trends, "N_RATIOS", 7)
    few = Trend.of(Rows.prepare(X)).places
    assert few.size == 7
    assert (steps[few] >= median).all()


def test_rows_without_anything_have_no_trend():
    found = Trend.of(Rows.prepare(sparse.csr_array((3, 4))))
    assert found.steps.tolist() == [0, 0, 0, 0]
    assert found.places.size == 0


@pytest.mark.parametrize("n_threads", [1, 3])
def test_what_is_left_and_the_slope_make_the_weights(n_threads):
    rng = np.random.default_rng(2)
    steps = rng.integers(1, 30000, 500).astype(np.int16)
    trend = Trend(steps, np.arange(0, 500, 3), np.ones(500, dtype=np.float32))
    slope = -rng.random(9).astype(np.float32)
    weights = np.outer(trend.steps, slope) * (1 + rng.normal(0, 1e-3, (500, 9)))
    weights[:20] += rng.normal(0, 1e5, (20, 9))
    weights = weights.astype(np.float32)
    left, found = prune_along(weights, 0.01, trend, n_threads)
    ratios = weights[trend.places] / trend.steps[trend.places, None]
    np.testing.assert_allclose(found, np.median(ratios, axis=0), rtol=1e-5)
    cutoff = 0.01 * np.sqrt(np.mean(weights.astype(np.float64) ** 2, axis=0))
    lost = np.abs(left.toarray() + np.outer(trend.steps, found) - weights)
    assert (lost <= cutoff * (1 + 1e-5)).all()
    assert (np.abs(left.toarray()[left.toarray() != 0]) > cutoff.min()).all()
    assert left.nnz < 0.2 * prune_columns(weights, 0.01).nnz


def test_where_the_trend_leaves_more_the_weights_stay_as_they_are():
    rng = np.random.default_rng(3)
    weights = np.zeros((400, 1), dtype=np.float32)
    weights[rng.permutation(400)[:150], 0] = rng.normal(5, 1, 150)
    weights[rng.permutation(400)[:120], 0] += 0.3
    steps, care = np.full(400, 100, dtype=np.int16), np.ones(400, dtype=np.float32)
    left, slope = prune_along(weights, 0.01, Trend(steps, np.flatnonzero(weights), care))
    assert slope.tolist() == [0.0]
    np.testing.assert_array_equal(left.toarray(), prune_columns(weights, 0.01).toarray())


def test_small_weights_of_large_values_stay():
    X = np.random.default_rng(4).random((50, 40)) * np.where(np.arange(40) < 5, 1000.0, 1.0)
    trend = Trend.of(Rows.prepare(sparse.csr_array(X)))
    length = np.sqrt(np.mean(X**2, axis=0))
    expected = np.minimum(1, 8 * np.median(length) / length)
    np.testing.assert_allclose(trend.care, expected, rtol=1e-6)
    assert (trend.care[:5] < 0.02).all()
    assert (trend.care[5:] == 1).all()
    weights = np.ones((40, 1), dtype=np.float32)
    weights[[0, 10], 0] = 0.009  # below a hundredth of the others
    whole = Trend.of_nothing(40)
    cautious = Trend(whole.steps, whole.places, trend.care)
    assert prune_along(weights, 0.01, whole)[0].toarray()[[0, 10], 0].tolist() == [0, 0]
    kept = prune_along(weights, 0.01, cautious)[0].toarray()[[0, 10], 0]
    np.testing.assert_array_equal(kept, [np.float32(0.009), 0])
