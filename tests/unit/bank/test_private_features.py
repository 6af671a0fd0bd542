"""Columns of one row, taken out and put back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from taxofit.bank import private_features
from taxofit.bank.private_features import SplitFeatures, solve_margin
from taxofit.bank.rows import Rows


def rows_of(X, **options):
    return Rows.prepare(sparse.csr_array(np.asarray(X, dtype=np.float64)), **options)


def test_shared_private_and_constant_columns_are_told_apart():
    features = SplitFeatures.of(rows_of([[1, 0, 3, 0, 1], [0, 0, 4, 2, 1], [0, 5, 0, 6, 1]]))
    assert features.columns.tolist() == [4, 2, 3, 5]  # falling frequency, then the constant
    assert features.order.tolist() == [0, 2, 1]  # the longest row last
    assert features.origins.place.tolist() == [4, 5, 1, 2, 0, 3]  # of four weights, three errors
    assert features.origins.factor.tolist() == [-1, -5, 1, 1, 1, 1]
    assert features.private_square.tolist() == [1, 25, 0]
    assert features.shared.toarray().tolist() == [[1, 3, 0], [1, 0, 6], [1, 4, 2]]
    assert features.constant == 1


def test_without_a_constant_its_place_is_nowhere():
    features = SplitFeatures.of(rows_of([[1.0, 2.0], [1.0, 0.0]], fit_intercept=False))
    assert features.columns.tolist() == [0, -1]
    assert features.constant == 0
    weights = np.array([[3.0], [4.0]])
    assert features.restrict(weights).tolist() == [[3.0, 0.0]]


def test_equally_frequent_columns_come_in_the_order_of_their_rows():
    X = [[0, 0, 1, 0], [0, 1, 1, 0], [0, 1, 0, 1], [1, 0, 0, 2], [2, 0, 0, 0]]
    features = SplitFeatures.of(rows_of(X, fit_intercept=False))
    assert features.columns[:-1].tolist() == [2, 1, 3, 0]


def test_equal_columns_are_one():
    X = [[1, 5, 1, 0, 1], [2, 0, 2, 3, 2], [0, 6, 0, 4, 0]]
    features = SplitFeatures.of(rows_of(X))
    assert features.columns.tolist() == [0, 1, 3, 5]
    assert features.n_equals.tolist() == [3, 1, 1, 1]
    root = np.sqrt(3)
    expected = [[root, 5, 0], [2 * root, 0, 3], [0, 6, 4]]  # rows are all as long as each other
    np.testing.assert_allclose(features.shared.toarray(), expected, rtol=1e-6)
    stops, rows, values = features.by_column[:3]
    by_column = sparse.csc_array((values, rows, stops.astype(np.int64)), shape=(3, 4)).toarray()
    np.testing.assert_array_equal(by_column[:, :-1], features.shared.toarray())
    assert features.origins.place.tolist() == [0, 1, 0, 2, 0, 3]
    np.testing.assert_allclose(features.origins.factor, [1 / root, 1, 1 / root, 1, 1 / root, 1])

    weights = np.array([[1.0], [2.0], [1.0], [3.0], [1.0], [4.0]])
    restricted = features.restrict(weights)
    np.testing.assert_allclose(restricted, [[root, 2, 3, 4]], rtol=1e-6)
    again = features.origins.factor * restricted[0, features.origins.place]
    np.testing.assert_allclose(again, weights[:, 0], rtol=1e-6)


def test_rows_of_a_group_are_ordered_by_shared_entries(monkeypatch):
    monkeypatch.setattr(private_features, "ROWS_OF_A_GROUP", 3)
    rng = np.random.default_rng(0)
    X = np.where(rng.random((8, 12)) < 0.4, rng.random((8, 12)), 0)
    X = np.hstack([X, np.eye(8)])  # private ones do not count
    rows = rows_of(X)
    features = SplitFeatures.of(rows)
    length = (X[:, (X > 0).sum(axis=0) > 1] > 0).sum(axis=1)
    expected = np.concatenate(
        [first + np.argsort(length[first : first + 3], kind="stable") for first in (0, 3, 6)]
    )
    assert (expected != np.arange(8)).any()
    np.testing.assert_array_equal(features.order, expected)
    in_order = rows.X.toarray()[expected]
    shared, factor = features.columns[:-1], np.sqrt(features.n_equals[:-1])
    np.testing.assert_allclose(features.shared.toarray(), in_order[:, shared] * factor, rtol=1e-6)
    sums = features.column_sums(np.arange(8.0))
    expected = np.append(np.arange(8) @ features.shared.toarray(), np.arange(8).sum())
    np.testing.assert_allclose(sums, expected, rtol=1e-6)
    np.testing.assert_allclose(
        features.row_squares(), (in_order[:, :-1] ** 2).sum(axis=1), rtol=1e-6
    )


def test_an_explicit_zero_makes_no_user_of_a_column():
    X = sparse.csr_array((np.array([1.0, 0.0]), np.array([0, 0]), np.array([0, 1, 2])), (2, 1))
    features = SplitFeatures.of(Rows.prepare(X))
    assert features.origins.factor.tolist() == [-1, 1]
    assert features.shared.shape == (2, 0)


@given(
    linear=st.floats(-1e4, 1e4),
    stiffness=st.floats(0, 1e6),
    label=st.sampled_from([0.0, 1.0]),
)
def test_margin_solves_its_equation(linear, stiffness, label):
    z = solve_margin(np.array([linear]), np.array([stiffness]), np.array([1.0]), label)
    sigma = np.exp(-np.logaddexp(0, -z))
    scale = 1 + abs(linear) + stiffness
    assert (z + stiffness * (sigma - label))[0] == pytest.approx(linear, abs=1e-9 * scale)
