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
    trend = Trend(rng.integers(1, 30000, 500).astype(np.int16), np.arange(0, 500, 3))
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
    trend = Trend(np.full(400, 100, dtype=np.int16), np.arange(400))
    weights = np.zeros((400, 1), dtype=np.float32)
    weights[rng.permutation(400)[:150], 0] = rng.normal(5, 1, 150)
    weights[rng.permutation(400)[:120], 0] += 0.3
    left, slope = prune_along(weights, 0.01, Trend(trend.steps, np.flatnonzero(weights)))
    assert slope.tolist() == [0.0]
    np.testing.assert_array_equal(left.toarray(), prune_columns(weights, 0.01).toarray())
