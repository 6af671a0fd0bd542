"""scikit-learn's own checks of what an estimator must do."""

import numpy as np
from sklearn.utils.estimator_checks import parametrize_with_checks

from taxofit import TaxonomyClassifier


# They hold probabilities to 1e-7, where nodes are solved to a tolerance of 1e-4; see below.
def to_solver_tolerance(estimator):
    kinds = ("dense", "sparse") if estimator.C == "auto" else ("sparse",)
    check = "check_sample_weight_equivalence_on_{}_data"
    return {check.format(kind): "probabilities differ by 1e-6" for kind in kinds}


@parametrize_with_checks(
    [
        TaxonomyClassifier(),
        TaxonomyClassifier(flattening="td-lr", C=1.0),
        TaxonomyClassifier(flattening="lr", C=1.0, prune="none"),
        TaxonomyClassifier(search="beam"),
    ],
    expected_failed_checks=to_solver_tolerance,
)
def test_estimator_keeps_the_rules_of_scikit_learn(estimator, check):
    check(estimator)


def test_weighted_rows_count_as_repeated_ones():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 5)), rng.integers(0, 3, 60)
    times = rng.integers(0, 3, 60)
    weighted = TaxonomyClassifier(flattening="td-lr", C=1.0, tol=1e-8).fit(X, y, times)
    repeated = TaxonomyClassifier(flattening="td-lr", C=1.0, tol=1e-8)
    repeated.fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert np.allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-6)
