"""Rows and targets as the solver takes them."""

import numpy as np
import pytest
from scipy import sparse

from taxofit import DataError, Taxonomy
from taxofit.bank.rows import Rows, node_targets
from taxofit.datasets.mapped import is_mapped, scratch_array


def test_constant_feature_is_the_last_entry_of_every_row():
    X = sparse.csr_array(np.array([[0.0, 2.0], [0.0, 0.0], [1.0, 3.0]]))
    expected = [[0, 2, 1], [0, 0, 1], [1, 3, 1]]
    np.testing.assert_array_equal(Rows.prepare(X).X.toarray(), expected)
    np.testing.assert_array_equal(Rows.prepare(X.toarray()).X, expected)
    assert Rows.prepare(X, fit_intercept=False).n_features == 2


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("in_file", [True, False])
def test_rows_come_back_as_they_were_given(tmp_path, fit_intercept, in_file):
    X = sparse.csr_array(np.array([[0.0, 2.0], [0.0, 0.0], [1.0, 3.0]], dtype=np.float32))
    data = scratch_array(X.nnz, np.float32, tmp_path) if in_file else np.empty(X.nnz, np.float32)
    data[:] = X.data
    given = sparse.csr_array((data, X.indices, X.indptr), shape=X.shape)
    found = Rows.prepare(given, fit_intercept=fit_intercept).given(np.array([2, 1]))
    np.testing.assert_array_equal(found.toarray(), X.toarray()[[2, 1]])
    assert is_mapped(found) == in_file


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_values_too_large_to_compute_with_are_refused(convert):
    with pytest.raises(DataError, match="too large to compute with; scale the columns"):
        Rows.prepare(convert(np.array([[1e300, 1.0], [1.0, 2.0]])))


def test_targets_are_positive_exactly_under_the_node():
    taxonomy = Taxonomy.from_paths([("a", "b", "x"), ("a", "y"), ("c", "z")])
    row_leaf = taxonomy.nodes_of(["x", "y", "z", "x"])
    nodes = taxonomy.nodes_of(["a", "b", "z"])
    targets = node_targets(taxonomy, row_leaf, nodes)
    expected = [[1, 1, -1], [1, -1, -1], [-1, -1, 1], [1, 1, -1]]
    np.testing.assert_array_equal(targets.signs(), expected)
    np.testing.assert_array_equal(targets.n_positive(), [3, 2, 1])
    np.testing.assert_array_equal(targets.take(np.array([2])).signs().ravel(), [-1, -1, 1, -1])
