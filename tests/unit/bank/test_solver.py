import numpy as np
import pytest
from scipy import sparse

from taxofit.bank import kernels
from taxofit.bank.block_solver import solver_for
from taxofit.bank.objective import gradient, objective, stopping_threshold
from taxofit.bank.rows import Rows, Targets
from taxofit.bank.solver import SolverSettings
from taxofit.bank.trend import Trend
from taxofit.errors import DeviceError

TOL = 1e-4


def small_problem(*, is_sparse, n_features=60, width=7, seed=0):
    """Rows of which some are rich in private features, and problems from rare to even."""
    rng = np.random.default_rng(seed)
    n_rows, n_classes = 200, 12
    X = sparse.random_array((n_rows, n_features), density=0.08, rng=rng).tocsr()
    if is_sparse:
        own = sparse.csr_array(np.diag(rng.random(n_rows)))[:, ::3]
        X = sparse.hstack([X, own]).tocsr()
    else:
        X = X.toarray()
    rows = Rows.prepare(X, sample_weight=rng.integers(1, 3, n_rows).astype(float))
    table = np.where(rng.random((n_classes, width)) < np.linspace(0.1, 0.5, width), 1, -1)
    table[0] = 1
    return rows, Targets(rng.integers(n_classes, size=n_rows), table.astype(np.int8))


def assert_solved(rows, targets, C, solution, tol=TOL):
    signs = targets.signs()
    weights = solution.weights.astype(np.float64)
    assert solution.converged.all()
    for column, n_positive in enumerate(targets.n_positive()):
        y = signs[:, column]
        at_zero = gradient(np.zeros(rows.n_features), rows.X, y, C, rows.weight)
        norm = np.linalg.norm(gradient(weights[:, column], rows.X, y, C, rows.weight))
        goal = stopping_threshold(np.linalg.norm(at_zero), n_positive, rows.n_rows, tol)
        assert norm <= 1.5 * goal
        value = objective(weights[:, column], rows.X, y, C, rows.weight)
        assert value == pytest.approx(solution.objective[column], rel=1e-5)


@pytest.mark.parametrize("is_sparse", [True, False])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_minimisers_have_the_gradient_that_the_stopping_rule_asks_for(is_sparse, C):
    rows, targets = small_problem(is_sparse=is_sparse)
    solution = solver_for(rows, SolverSettings(tol=TOL)).solve(targets, C)
    assert_solved(rows, targets, C, solution)


def test_wide_dense_rows_are_solved_in_their_eigenbasis():
    rows, targets = small_problem(is_sparse=False, n_features=150)
    solution = solver_for(rows, SolverSettings(tol=TOL)).solve(targets, 10.0)
    assert_solved(rows, targets, 10.0, solution)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_products_in_float32_lead_to_the_same_minimum_in_units_far_apart(monkeypatch, C):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 150)) * 10.0 ** rng.uniform(-4, 4, 150)
    table = np.where(rng.random((12, 5)) < 0.2, 1, -1).astype(np.int8)
    rows, targets = Rows.prepare(X), Targets(rng.integers(12, size=300), table)
    assert kernels.DenseKernels(rows)._rough.dtype == np.float32
    found = solver_for(rows, SolverSettings(tol=TOL)).solve(targets, C)
    monkeypatch.setattr(kernels, "LARGEST_ROUGH", 0)
    assert kernels.DenseKernels(rows)._rough.dtype == np.float64
    least = solver_for(rows, SolverSettings(tol=1e-8)).solve(targets, C)
    assert found.converged.all()
    np.testing.assert_allclose(found.objective, least.objective, rtol=1e-6)


@pytest.mark.parametrize("n_features", [60, 150])
def test_rows_may_be_evaluated_in_parts(monkeypatch, n_features):
    rows, targets = small_problem(is_sparse=False, n_features=n_features)
    monkeypatch.setattr(kernels, "PART_CELLS", 9 * targets.n_problems)
    solution = solver_for(rows, SolverSettings(tol=TOL)).solve(targets, 10.0)
    assert_solved(rows, targets, 10.0, solution)


@pytest.mark.parametrize(("scale", "accuracy"), [(1.0, 1e-6), (1e20, 1e-14)])
def test_hessian_products_of_wide_rows_are_as_exact_as_numbers_of_their_size_allow(scale, accuracy):
    """Squares of the large ones are beyond float32."""
    rng = np.random.default_rng(0)
    rows = Rows.prepare(scale * rng.normal(size=(50, 150)))
    V, curvature = rng.normal(size=(151, 3)), rng.random((50, 3)).astype(np.float32)
    found = kernels.DenseKernels(rows).hessian_product(V, curvature)
    expected = V + rows.X.T @ (curvature * (rows.X @ V))
    np.testing.assert_allclose(found, expected, rtol=0, atol=accuracy * np.abs(expected).max())


def test_minimisers_do_not_depend_on_the_neighbours_in_a_block():
    rows, targets = small_problem(is_sparse=True)
    solver = solver_for(rows, SolverSettings(tol=1e-6))
    together = solver.solve(targets, 1.0)
    for column in range(targets.n_problems):
        alone = solver.solve(targets.take(np.array([column])), 1.0)
        np.testing.assert_allclose(
            together.weights[:, column], alone.weights[:, 0], rtol=1e-3, atol=1e-5
        )


@pytest.mark.parametrize("is_sparse", [True, False])
def test_start_changes_the_way_but_not_the_end(is_sparse):
    rows, targets = small_problem(is_sparse=is_sparse)
    solver = solver_for(rows, SolverSettings(tol=TOL))
    cold = solver.solve(targets, 1.0)
    warm = solver.solve(targets, 1.0, cold.weights)
    assert_solved(rows, targets, 1.0, warm)
    assert warm.n_iterations.sum() < cold.n_iterations.sum()


def test_columns_that_run_out_of_steps_are_not_called_converged():
    rows, targets = small_problem(is_sparse=True)
    settings = SolverSettings(tol=1e-6, max_iter=1)
    solution = solver_for(rows, settings).solve(targets, 1e3)
    assert not solution.converged.any()
    assert (solution.n_iterations == 1).all()


def test_taken_columns_come_in_the_order_asked_for():
    rows, targets = small_problem(is_sparse=True)
    solution = solver_for(rows, SolverSettings()).solve(targets, 1.0)
    taken = solution.take(np.array([2, 0, 2]))
    np.testing.assert_array_equal(taken.weights, solution.weights[:, [2, 0, 2]])
    np.testing.assert_array_equal(taken.objective, solution.objective[[2, 0, 2]])


def test_solution_judges_other_rows():
    rows, targets = small_problem(is_sparse=True)
    solution = solver_for(rows, SolverSettings()).solve(targets, 1.0)
    scores, losses = solution.judge(rows, targets)
    np.testing.assert_allclose(scores, rows.X @ solution.weights, rtol=1e-5, atol=1e-6)
    expected = losses + 0.5 * solution.weight_norms() ** 2
    np.testing.assert_allclose(expected, solution.objective, rtol=1e-5)


@pytest.mark.parametrize("columns", [None, [2, 0, 2]])
def test_solution_prunes_the_columns_that_were_taken_and_no_constant(columns):
    rows, targets = small_problem(is_sparse=True)
    solution = solver_for(rows, SolverSettings()).solve(targets, 1.0)
    if columns is not None:
        solution = solution.take(np.array(columns))
    left, slopes = solution.pruned(0.3, Trend.of_nothing(rows.n_features - 1))
    weights = solution.weights[:-1]
    cutoff = 0.3 * np.sqrt(np.mean(weights.astype(np.float64) ** 2, axis=0))
    np.testing.assert_array_equal(
        left.toarray(), np.where(np.abs(weights) > cutoff, weights, np.float32(0))
    )
    assert slopes.tolist() == [0.0] * weights.shape[1]
    norms = np.linalg.norm(solution.weights.astype(np.float64), axis=0)
    np.testing.assert_allclose(solution.weight_norms(), norms, rtol=1e-12)


def test_unknown_device_is_refused():
    rows, _ = small_problem(is_sparse=True)
    with pytest.raises(DeviceError, match="device must be 'auto', 'cpu' or 'cuda', but is 'gpu'"):
        solver_for(rows, SolverSettings(), "gpu")


@pytest.mark.parametrize("n_features", [100, 200])
@pytest.mark.parametrize("C", [1.0, 1000.0])
def test_objectives_are_at_their_minimum_where_positive_rows_can_be_told_apart(n_features, C):
    """By liblinear's rule alone they would be up to 3e-3 above it at C = 1000."""
    rng = np.random.default_rng(0)
    X = rng.random((200, n_features))
    scores = X @ rng.normal(size=(n_features, 4))
    table = np.where(scores > np.quantile(scores, 0.9, axis=0), 1, -1).astype(np.int8)
    rows, targets = Rows.prepare(X), Targets(np.arange(200, dtype=np.int32), table)
    found, least = (
        solver_for(rows, SolverSettings(tol=tol)).solve(targets, C).objective for tol in (TOL, 1e-9)
    )
    np.testing.assert_allclose(found, least, rtol=2e-6)
