"""β of highest likelihood, against a plain search for it in float64."""

import numpy as np
import pytest
from scipy import optimize, special

from taxofit import Taxonomy, search_choice
from taxofit.predict import calibration
from taxofit.predict.calibration import fit_temperature
from taxofit.predict.search import path_scores


def plain_temperature(totals, true, weight=None):
    totals, own = totals.astype(np.float64), totals[np.arange(true.size), true]

    def loss(log_beta):
        losses = special.logsumexp(np.exp(log_beta) * totals, axis=1) - np.exp(log_beta) * own
        return np.average(losses, weights=weight)

    best = optimize.minimize_scalar(
        loss, bounds=np.log(calibration.BETA_RANGE), method="bounded", options={"xatol": 1e-6}
    )
    return np.exp(best.x), best.fun


@pytest.fixture
def rows():
    """Path scores of which 0.6 times as much is true."""
    rng = np.random.default_rng(5)
    totals = special.log_softmax(rng.normal(scale=3, size=(600, 40)), axis=1).astype(np.float32)
    by_chance = special.softmax(0.6 * totals, axis=1).cumsum(axis=1)
    true = (by_chance > rng.random((600, 1)) * by_chance[:, -1:]).argmax(axis=1)
    return totals, true


@pytest.mark.parametrize("part_size", [2**18, 999])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_beta_is_the_one_of_highest_likelihood(rows, is_weighted, part_size, monkeypatch):
    monkeypatch.setattr(calibration, "PART_SIZE", part_size)
    weight = np.random.default_rng(6).random(600) if is_weighted else None
    beta, loss = fit_temperature(*rows, weight)
    expected, least = plain_temperature(*rows, weight)
    assert beta == pytest.approx(expected, rel=2e-3)
    assert loss == pytest.approx(least, rel=1e-5)
    assert beta == pytest.approx(0.6, abs=0.1)


def test_leaves_out_of_reach_and_rows_without_a_leaf_do_not_count(rows):
    totals, true = rows
    expected = fit_temperature(totals, true)
    unreached = np.full((600, 3), -np.inf, dtype=np.float32)
    more = np.hstack([totals, unreached])
    no_leaf = np.where(np.arange(605) < 600, np.append(true, np.zeros(5, dtype=int)), -1)
    assert fit_temperature(more, true) == pytest.approx(expected)
    assert fit_temperature(np.vstack([totals, totals[:5]]), no_leaf) == pytest.approx(expected)
    assert fit_temperature(totals, np.full(600, -1))[0] == 1.0


def test_rows_that_are_all_right_or_all_wrong_stay_in_range(rows):
    totals, _ = rows
    low, high = calibration.BETA_RANGE
    assert fit_temperature(totals, totals.argmax(axis=1))[0] == pytest.approx(high, rel=0.01)
    assert fit_temperature(totals, totals.argmin(axis=1))[0] == pytest.approx(low, rel=0.01)


def test_of_very_many_rows_some_decide_and_all_are_sure_of_their_leaf(monkeypatch):
    rng = np.random.default_rng(7)
    taxonomy = Taxonomy.from_paths([(a, a + b) for a in "xyz" for b in "12345"])
    leaves = taxonomy.leaf_order
    logs = np.log(rng.random((90, taxonomy.n_nodes))).astype(np.float32)
    true, reached = rng.choice(leaves, size=(2, 90)).astype(np.int32)
    judge = search_choice.PathJudge(taxonomy, logs, true, leaves)
    monkeypatch.setattr(search_choice, "LIKELIHOOD_SCORES", 30 * leaves.size)
    found = judge.calibrate(0.3, reached)
    totals = path_scores(logs, taxonomy, 0.3)
    column = np.searchsorted(np.sort(leaves), true[::3])
    beta, _ = fit_temperature(totals[::3, np.sort(leaves)], column)
    assert found.beta == pytest.approx(beta)
    own, is_right = totals[np.arange(90), reached], reached == true
    expected = calibration.fit_calibration(beta, own, is_right)
    assert (found.slope, found.offset) == pytest.approx((expected.slope, expected.offset), rel=1e-3)
