"""The solver on torch against the NumPy reference, the CPU's solvers and liblinear.

On a GPU where there is one, else on torch's CPU device.
"""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from tests.real_data import real_data
from tests.unit.bank.test_solver import TOL, assert_solved, small_problem

from taxofit.bank.block_solver import solver_for
from taxofit.bank.columns import prune_along
from taxofit.bank.kernels import find_device, kernels_for
from taxofit.bank.objective import objective
from taxofit.bank.rows import Rows, node_targets
from taxofit.bank.solver import SolverSettings, solve_all_negative, solve_block
from taxofit.bank.trend import Trend
from taxofit.datasets import ColumnScaler, TextEncoder, load_benchmark
from taxofit.errors import DeviceError

torch = pytest.importorskip("torch", reason="torch is not installed; the GPU's code is not tested")

DEVICE = "cuda" if torch.cuda.is_available() else "torch-cpu"


def solved_on(device, rows, targets, C, *, tol=TOL, start=None):
    return solver_for(rows, SolverSettings(tol=tol), device).solve(targets, C, start)


@pytest.mark.parametrize(("is_sparse", "n_features"), [(True, 60), (False, 60), (False, 150)])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_minimisers_have_the_gradient_that_the_stopping_rule_asks_for(is_sparse, n_features, C):
    rows, targets = small_problem(is_sparse=is_sparse, n_features=n_features)
    assert_solved(rows, targets, C, solved_on(DEVICE, rows, targets, C))


@pytest.mark.parametrize("is_sparse", [True, False])
def test_weights_agree_with_those_of_the_cpu(is_sparse):
    rows, targets = small_problem(is_sparse=is_sparse)
    here = solved_on("cpu", rows, targets, 10.0, tol=1e-6).weights
    there = solved_on(DEVICE, rows, targets, 10.0, tol=1e-6).weights
    np.testing.assert_allclose(there, here, rtol=2e-3, atol=2e-4)


def test_private_features_get_the_weights_that_they_would_have_had():
    """In the rows of the other tests a third of the rows have a feature of their own."""
    rows, targets = small_problem(is_sparse=True)
    frequency = np.bincount(rows.X.indices, minlength=rows.n_features)
    kernels = kernels_for(rows, DEVICE)
    assert (frequency == 1).sum() >= 60
    assert kernels.n_features == (frequency > 1).sum()
    here = solved_on("cpu", rows, targets, 10.0, tol=1e-6).weights[frequency == 1]
    there = solved_on(DEVICE, rows, targets, 10.0, tol=1e-6).weights[frequency == 1]
    assert np.abs(here).max() > 0.1
    np.testing.assert_allclose(there, here, atol=1e-3)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3])
@pytest.mark.parametrize("has_trend", [True, False])
def test_weights_are_pruned_on_the_device_as_on_the_host(monkeypatch, share, has_trend):
    from taxofit.bank import torch_kernels

    monkeypatch.setattr(torch_kernels, "CHUNK_CELLS", 200)  # three columns at a time
    rows, targets = small_problem(is_sparse=True)
    solution = solved_on(DEVICE, rows, targets, 1.0).take(np.array([2, 0, 0, 1]))
    trend = Trend.of(rows) if has_trend else Trend.of_nothing(rows.n_features - 1)
    left, slope = solution.pruned(share, trend)
    weights = solution.weights[: rows.n_features - 1]
    expected, expected_slope = prune_along(weights, share, trend)
    np.testing.assert_allclose(slope, expected_slope, rtol=1e-6)
    np.testing.assert_allclose(left.toarray(), expected.toarray(), atol=1e-6)
    assert left.nnz == expected.nnz
    assert left.has_sorted_indices
    np.testing.assert_array_equal(solution.weights_of(-1), solution.weights[-1])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("pull", [0.0, 1e-3, 1.0, 30.0, 1e3])
def test_best_margins_solve_their_equation(dtype, pull):
    from taxofit.bank.torch_kernels import best_margins

    a = torch.cat([torch.linspace(-10, 10, 401), torch.linspace(-1500, 1500, 401)])
    a = a.to(getattr(torch, dtype))[:, None]
    t = best_margins(a.clone(), torch.full((1, 1), pull, dtype=a.dtype)).double()
    wrong = torch.sigmoid(-t)
    error = (t - pull * wrong - a) / (1 + pull * wrong * (1 - wrong))
    rounding = 4 * torch.finfo(a.dtype).eps * (1 + a.abs() + pull)
    assert (error.abs() <= 1e-7 + rounding).all()


@pytest.mark.parametrize("is_sparse", [True, False])
def test_warm_starts_and_the_common_start_end_at_the_same_minimum(is_sparse):
    rows, targets = small_problem(is_sparse=is_sparse)
    kernels, settings = kernels_for(rows, DEVICE), SolverSettings(tol=TOL)
    common = solve_all_negative(kernels, rows.weight, settings)
    first = solve_block(kernels, targets, rows.weight, settings, common=common.device_weights)
    again = solve_block(kernels, targets, rows.weight, settings, first.device_weights)
    from_host = solve_block(kernels, targets, rows.weight, settings, first.weights)
    some = sparse.csc_array(first.weights)
    from_sparse = solve_block(kernels, targets, rows.weight, settings, some)
    for solution in (first, again, from_host, from_sparse):
        assert_solved(rows, targets, 1.0, solution)
    assert again.n_iterations.sum() == from_sparse.n_iterations.sum() == 0


@pytest.mark.parametrize("is_sparse", [True, False])
def test_other_rows_are_judged_as_on_the_host(is_sparse):
    rows, targets = small_problem(is_sparse=is_sparse)
    solution = solved_on(DEVICE, rows, targets, 1.0)
    scores, losses = solution.judge(rows, targets)
    np.testing.assert_allclose(scores, rows.X @ solution.weights, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(scores, solution.scores(rows))
    margins = targets.signs() * (rows.X @ solution.weights).astype(np.float64)
    np.testing.assert_allclose(losses, rows.weight @ np.logaddexp(0, -margins), rtol=1e-5)
    norms = np.linalg.norm(solution.weights, axis=0)
    np.testing.assert_allclose(solution.weight_norms(), norms, rtol=1e-5)
    taken = solution.take(np.array([3, 3, 0]))
    np.testing.assert_array_equal(taken.weights, solution.weights[:, [3, 3, 0]])


def clef_rows():
    train, _ = load_benchmark("clef", real_data())
    return train, Rows.prepare(train.X)


def diatoms_rows():
    train, _ = load_benchmark("diatoms", real_data())
    return train, Rows.prepare(ColumnScaler().fit_transform(train.X))


def naics_rows():
    train, _ = load_benchmark("naics", real_data())
    return train, Rows.prepare(TextEncoder(features="pairs").fit_transform(train.X))


def liblinear_objective(rows, y, C):
    X = rows.X
    if rows.is_sparse:
        X = X.astype(np.float64)
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    # liblinear at this tolerance can run out of steps where float64 has nothing left to give.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(
            C=C, solver="liblinear", tol=1e-8, fit_intercept=False, max_iter=1000
        ).fit(X, y)
    return objective(model.coef_[0], rows.X, y, C)


@pytest.mark.parametrize("load", [clef_rows, diatoms_rows, naics_rows])
def test_objectives_of_a_few_nodes_are_those_of_liblinear(load):
    dataset, rows = load()
    taxonomy, row_leaf = dataset.taxonomy, dataset.taxonomy.nodes_of(dataset.y)
    rng = np.random.default_rng(0)
    seen = np.flatnonzero(taxonomy.totals(np.bincount(row_leaf, minlength=taxonomy.n_nodes)))
    nodes = rng.choice(seen[1:], size=4, replace=False)
    targets = node_targets(taxonomy, row_leaf, nodes)
    for C in (1e-2, 1.0, 100.0):
        solution = solved_on(DEVICE, rows, targets, C, tol=1e-5)
        for column, y in enumerate(targets.signs().T):
            ours = objective(solution.weights[:, column], rows.X, y, C)
            assert ours == pytest.approx(liblinear_objective(rows, y, C), rel=1e-5)


@pytest.mark.parametrize("load", [clef_rows, diatoms_rows, naics_rows])
@pytest.mark.parametrize("C", [1.0, 1000.0])
def test_objectives_are_those_of_the_cpu_as_it_solves_by_default(load, C):
    dataset, rows = load()
    taxonomy, row_leaf = dataset.taxonomy, dataset.taxonomy.nodes_of(dataset.y)
    seen = np.flatnonzero(taxonomy.totals(np.bincount(row_leaf, minlength=taxonomy.n_nodes)))
    nodes = np.random.default_rng(1).choice(seen[1:], size=20, replace=False)
    targets = node_targets(taxonomy, row_leaf, nodes)
    here, there = (
        [
            objective(w, rows.X, y, C)
            for w, y in zip(
                solved_on(device, rows, targets, C).weights.T, targets.signs().T, strict=True
            )
        ]
        for device in ("cpu", DEVICE)
    )
    np.testing.assert_allclose(there, here, rtol=1e-5)


def test_predictions_over_all_leaves_are_those_of_the_numpy_kernels():
    train, _ = load_benchmark("diatoms", real_data())
    rows = Rows.prepare(ColumnScaler().fit_transform(train.X))
    leaves = train.taxonomy.leaf_order
    targets = node_targets(train.taxonomy, train.taxonomy.nodes_of(train.y), leaves)
    here, there = (
        solved_on(device, rows, targets, 1.0).scores(rows).argmax(axis=1)
        for device in ("cpu", DEVICE)
    )
    assert (here == there).mean() >= 0.999


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_missing_gpu_is_an_error_if_asked_for_and_no_matter_if_not():
    with pytest.raises(DeviceError, match=r"device='cuda' cannot be used: torch .* sees no GPU"):
        find_device("cuda")
    assert find_device("auto") == "cpu"
