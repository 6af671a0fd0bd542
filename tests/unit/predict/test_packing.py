"""What a fit leaves out of its weights must not change where rows go, whatever their scale."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from taxofit import TaxonomyClassifier
from taxofit.datasets.web_directory import make_web_directory
from taxofit.predict import packing


def predictions(train, test, prune, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf = TaxonomyClassifier(train.taxonomy, C=10.0, prune=prune, **settings)
        clf.fit(train.X, train.y)
    return clf.predict(test.X), clf.weights_.code.size


@pytest.fixture(scope="module")
def texts_and_numbers():
    """Texts, and beside them a few columns of numbers that nobody has scaled."""
    rng = np.random.default_rng(0)

    def with_numbers(data):
        numbers = sparse.csr_array(rng.normal(500, 300, (data.n_rows, 4)))
        return replace(data, X=sparse.hstack([data.X, numbers]).tocsr())

    return [with_numbers(data) for data in make_web_directory("dmoz-small", scale=0.15)]


@pytest.mark.parametrize("flattening", ["td-lr", "global-inf"])
def test_unscaled_numbers_beside_texts_change_no_predictions(texts_and_numbers, flattening):
    whole, n_weights = predictions(*texts_and_numbers, "none", flattening=flattening)
    pruned, n_kept = predictions(*texts_and_numbers, "auto", flattening=flattening)
    assert packing.FEW_WEIGHTS < n_kept < n_weights
    assert np.mean(pruned == whole) >= 0.999
