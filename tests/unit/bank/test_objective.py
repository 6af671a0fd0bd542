"""The reference objective against its definition and finite differences."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import approx_fprime

from taxofit.bank.objective import (
    gradient,
    hessian_product,
    log_loss,
    objective,
    stopping_threshold,
)


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 5))
    y = np.where(rng.random(30) < 0.4, 1, -1)
    return X, y, rng.normal(size=5), rng.random(30)


def test_objective_is_a_sum_over_rows_plus_half_the_squared_norm(problem):
    X, y, theta, weight = problem
    expected = sum(
        2.5 * w * np.log(1 + np.exp(-label * (theta @ x)))
        for x, label, w in zip(X, y, weight, strict=True)
    )
    expected += 0.5 * sum(t * t for t in theta)
    assert objective(theta, X, y, 2.5, weight) == pytest.approx(expected, rel=1e-14)


def test_gradient_is_that_of_finite_differences(problem):
    X, y, theta, weight = problem
    numeric = approx_fprime(theta, lambda t: objective(t, X, y, 2.5, weight), 1e-7)
    np.testing.assert_allclose(gradient(theta, X, y, 2.5, weight), numeric, rtol=1e-4, atol=1e-5)


def test_hessian_product_is_the_change_of_the_gradient(problem):
    X, y, theta, weight = problem
    v = np.arange(1.0, 6.0)
    step = 1e-6
    numeric = (
        gradient(theta + step * v, X, y, 2.5, weight)
        - gradient(theta - step * v, X, y, 2.5, weight)
    ) / (2 * step)
    product = hessian_product(theta, v, X, y, 2.5, weight)
    np.testing.assert_allclose(product, numeric, rtol=1e-6)


def test_sparse_rows_give_the_same_as_dense_ones(problem):
    X, y, theta, weight = problem
    X = np.where(np.abs(X) < 0.5, 0, X)
    rows = sparse.csr_array(X)
    assert objective(theta, rows, y, 1.0, weight) == pytest.approx(
        objective(theta, X, y, 1.0, weight)
    )
    np.testing.assert_allclose(gradient(theta, rows, y, 1.0), gradient(theta, X, y, 1.0))


def test_log_loss_of_huge_margins_is_finite():
    np.testing.assert_allclose(log_loss([-1e5, 1e5]), [1e5, 0.0])


def test_rarer_classes_are_solved_to_a_finer_tolerance():
    few, half, most = stopping_threshold([1.0, 1.0, 1.0], [10, 500, 990], 1000, 0.01)
    assert few == most == pytest.approx(1e-4)
    assert half == pytest.approx(5e-3)
