"""Both tests against scipy fed with counts and F1 scores that scikit-learn worked out."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import f1_score

from taxofit.significance import sign_test, wilcoxon_test


@pytest.fixture(params=range(4))
def systems(request):
    """Return the truth and two predictions of unlike accuracy, for few or many classes."""
    rng = np.random.default_rng(request.param)
    n_classes = (6, 12, 40, 90)[request.param]
    truth = rng.integers(n_classes, size=30 * n_classes)
    guesses = rng.integers(n_classes, size=(2, truth.size))
    is_known = rng.random((2, truth.size)) < np.array([[0.7], [0.65]])
    a, b = np.where(is_known, truth, guesses)
    return truth, a, b


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_sign_test_is_the_exact_binomial_test(systems, alternative):
    truth, a, b = systems
    n_a = int(np.sum((a == truth) & (b != truth)))
    n_b = int(np.sum((b == truth) & (a != truth)))
    expected = stats.binomtest(n_a, n_a + n_b, alternative=alternative).pvalue
    assert sign_test(truth, a, b, alternative=alternative).p_value == pytest.approx(expected)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_wilcoxon_test_is_that_of_per_class_f1(systems, alternative):
    truth, a, b = systems
    difference = f1_score(truth, a, average=None) - f1_score(truth, b, average=None)
    expected = stats.wilcoxon(difference, zero_method="wilcox", alternative=alternative)
    found = wilcoxon_test(truth, a, b, alternative=alternative)
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.p_value == pytest.approx(expected.pvalue)
    assert (found.n_a_better, found.n_b_better) == ((difference > 0).sum(), (difference < 0).sum())
