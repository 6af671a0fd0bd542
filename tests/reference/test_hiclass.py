"""Top-down and flat predictions against hiclass and scikit-learn."""

import warnings

import numpy as np
import pytest
from hiclass import LocalClassifierPerNode
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from taxofit import TaxonomyClassifier
from taxofit.datasets import make_taxonomy_classification


@pytest.fixture(scope="module")
def problem():
    return make_taxonomy_classification(
        900, depth=3, fan_out=3, n_features=60, sparse=False, n_inconsistent=2, random_state=3
    )


@pytest.fixture
def liblinear():
    # Its intercept is the weight of a constant feature 1, regularised: the same problem as ours.
    return LogisticRegression(C=2.0, solver="liblinear", tol=1e-8)


def test_top_down_predictions_are_those_of_hiclass(problem, liblinear):
    train, test = np.arange(600), np.arange(600, 900)
    paths = np.array([problem.taxonomy.path_of(label) for label in problem.y])
    theirs = LocalClassifierPerNode(liblinear, binary_policy="less_inclusive")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # hiclass builds on what its dependencies deprecate
        theirs.fit(problem.X[train], paths[train])
        expected = theirs.predict(problem.X[test])[:, -1]
    ours = TaxonomyClassifier(problem.taxonomy, flattening="td-lr", C=2.0, tol=1e-6)
    ours.fit(problem.X[train], problem.y[train])
    assert (ours.predict(problem.X[test]) == expected).all()


def test_flattening_everything_is_flat_logistic_regression(problem, liblinear):
    train, test = np.arange(600), np.arange(600, 900)
    expected = (
        OneVsRestClassifier(liblinear)
        .fit(problem.X[train], problem.y[train])
        .predict(problem.X[test])
    )
    ours = TaxonomyClassifier(problem.taxonomy, flattening="lr", C=2.0, tol=1e-6)
    ours.fit(problem.X[train], problem.y[train])
    assert (ours.predict(problem.X[test]) == expected).all()


def test_node_weights_are_those_of_liblinear(problem, liblinear):
    ours = TaxonomyClassifier(problem.taxonomy, flattening="td-lr", C=2.0, tol=1e-8)
    ours.fit(problem.X, problem.y)
    for label in [*problem.taxonomy.internal_nodes[:4], *problem.taxonomy.leaves[:4]]:
        under = np.isin(problem.y, problem.taxonomy.leaves_under(label))
        liblinear.fit(problem.X, under)
        weights, intercept = ours.node_coef(label)
        np.testing.assert_allclose(weights, liblinear.coef_[0], rtol=1e-4, atol=1e-5)
        assert intercept == pytest.approx(liblinear.intercept_[0], rel=1e-4, abs=1e-5)
