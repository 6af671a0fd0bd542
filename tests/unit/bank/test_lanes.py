"""The solver for sparse rows, against plain definitions and on odd shapes."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from tests.compiled_parts import called

from taxofit.bank import lane_heavy_rows as heavy_rows
from taxofit.bank import lane_loops as loops
from taxofit.bank import lane_state as state
from taxofit.bank import lane_steps as steps
from taxofit.bank import lane_tiles, lanes, simd
from taxofit.bank import lane_transfer as transfer
from taxofit.bank.lane_block import LaneBlock
from taxofit.bank.objective import gradient, objective, stopping_threshold
from taxofit.bank.private_features import solve_margin
from taxofit.bank.rows import Rows, Targets
from taxofit.bank.solver import SolverSettings

TOL = 1e-4
C_GRID = [10.0**k for k in range(-3, 4)]
# Float32 weights cannot always meet the gradient rule; then the objective must be this near.
OBJECTIVE_FLOOR = 1e-9


def random_rows(rng, n=60, d=40, density=0.1, *, n_private=25, **options):
    X = sparse.random_array((n, d), density=density, rng=rng).tocsr()
    X.data -= 0.3
    own = sparse.csr_array(
        (rng.random(n_private) + 0.1, (rng.integers(n, size=n_private), np.arange(n_private))),
        shape=(n, n_private),
    )
    return Rows.prepare(sparse.hstack([X, own]).tocsr(), **options)


def random_targets(rng, n, width, share=None):
    share = rng.random(width) * 0.5 if share is None else share
    table = np.where(rng.random((n, width)) < share, 1, -1).astype(np.int8)
    return Targets(np.arange(n, dtype=np.int32), table)


def solve(rows, targets, C, start=None, **options):
    return lanes.LaneSolver(rows, SolverSettings(**options)).solve(targets, C, start)


def assert_solved(rows, targets, C, solution, tol=TOL):
    signs, weights = targets.signs(), solution.weights.astype(np.float64)
    assert weights.shape == (rows.n_features, targets.n_problems)
    assert solution.converged.all()
    for column, n_positive in enumerate(targets.n_positive()):
        y, theta = signs[:, column], weights[:, column]
        value = objective(theta, rows.X, y, C, rows.weight)
        assert solution.objective[column] == pytest.approx(value, rel=1e-5, abs=1e-9)
        at_zero = gradient(np.zeros(rows.n_features), rows.X, y, C, rows.weight)
        goal = stopping_threshold(np.linalg.norm(at_zero), n_positive, rows.n_rows, tol)
        norm = np.linalg.norm(gradient(theta, rows.X, y, C, rows.weight))
        # f is 1-strongly convex: ½‖g‖² bounds the distance to its minimum.
        assert norm <= goal or 0.5 * norm**2 <= OBJECTIVE_FLOOR * value


@pytest.mark.parametrize("C", C_GRID)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_random_problems_are_solved_to_the_rule(C, fit_intercept):
    rng = np.random.default_rng(int(1e3 * C) + fit_intercept)
    weight = rng.random(60) * 2
    rows = random_rows(rng, fit_intercept=fit_intercept, sample_weight=weight)
    targets = random_targets(rng, 60, 21)
    assert_solved(rows, targets, C, solve(rows, targets, C))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_rule_is_that_of_the_gradient_at_zero(fit_intercept):
    rng = np.random.default_rng(1)
    rows = random_rows(rng, fit_intercept=fit_intercept, sample_weight=rng.random(60) * 2)
    twice = Rows(sparse.hstack([rows.X[:, :7], rows.X]).tocsr(), rows.weight, rows.has_constant)
    targets = random_targets(rng, 60, 9)
    solver = lanes.LaneSolver(twice, SolverSettings())
    in_order = Targets(targets.row_class[solver._features.order], targets.table)
    found = solver._problems(in_order, 5.0).gradient / lanes.TARGET_SHARE
    zero, n_positive = np.zeros(twice.n_features), targets.n_positive()
    for k, y in enumerate(targets.signs().T):
        norm = np.linalg.norm(gradient(zero, twice.X, y, 5.0, twice.weight))
        expected = stopping_threshold(norm, n_positive[k], 60, TOL)
        np.testing.assert_allclose(found[k], expected, rtol=1e-5)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    n=st.integers(1, 30),
    d=st.integers(1, 12),
    width=st.integers(1, 20),
    density=st.sampled_from([0.0, 0.1, 0.5]),
    n_private=st.sampled_from([0, 8]),
    C=st.sampled_from(C_GRID),
)
def test_any_shape_is_solved(seed, n, d, width, density, n_private, C):
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, n, d, density, n_private=n_private)
    targets = random_targets(rng, n, width)
    assert_solved(rows, targets, C, solve(rows, targets, C))


@pytest.mark.parametrize("C", C_GRID)
def test_rows_of_one_class_are_solved(C):
    rng = np.random.default_rng(3)
    rows = random_rows(rng)
    table = np.array([[1, -1]], dtype=np.int8)
    targets = Targets(np.zeros(60, dtype=np.int32), table)
    solution = solve(rows, targets, C)
    assert_solved(rows, targets, C, solution)
    np.testing.assert_allclose(solution.objective[0], solution.objective[1], rtol=1e-5)


@pytest.mark.parametrize("C", C_GRID)
def test_rows_without_shared_features_are_solved(C):
    rows = Rows.prepare(sparse.csr_array(np.diag(np.linspace(-2, 2, 9))), fit_intercept=False)
    targets = random_targets(np.random.default_rng(0), 9, 3)
    assert_solved(rows, targets, C, solve(rows, targets, C))


def test_rare_problems_are_solved_from_the_all_negative_solution():
    rng = np.random.default_rng(5)
    rows = random_rows(rng, n=400, d=80, n_private=100)
    table = -np.ones((400, 30), dtype=np.int8)
    table[rng.integers(400, size=30), np.arange(30)] = 1
    targets = Targets(np.arange(400, dtype=np.int32), table)
    for C in C_GRID:
        assert_solved(rows, targets, C, solve(rows, targets, C))


def test_from_the_base_a_problem_is_solved_to_the_same_bits_whatever_its_neighbours():
    rng = np.random.default_rng(7)
    rows = random_rows(rng, n=300, d=60)
    targets = random_targets(rng, 300, 40, share=np.linspace(0.003, 0.5, 40))
    for C in (0.01, 1.0, 1000.0):
        solver = lanes.LaneSolver(rows, SolverSettings())
        together = solver.solve(targets, C).weights
        shuffled = rng.permutation(40)
        again = solver.solve(targets.take(shuffled), C).weights
        np.testing.assert_array_equal(again, together[:, shuffled])
        for column in range(0, 40, 5):
            alone = solve(rows, targets.take(np.array([column])), C).weights
            np.testing.assert_array_equal(alone[:, 0], together[:, column])


def test_threads_that_share_a_solver_find_the_same_bits():
    rng = np.random.default_rng(8)
    rows = random_rows(rng, n=300, d=60)
    targets = random_targets(rng, 300, 48, share=np.linspace(0.003, 0.5, 48))
    expected = solve(rows, targets, 10.0).weights
    solver = lanes.LaneSolver(rows, SolverSettings())
    blocks = [np.arange(start, 48, 4) for start in range(4)]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda block: solver.solve(targets.take(block), 10.0), blocks))
    for block, solution in zip(blocks, found, strict=True):
        np.testing.assert_array_equal(solution.weights, expected[:, block])


def test_a_solution_given_as_the_start_is_kept():
    rng = np.random.default_rng(9)
    rows = random_rows(rng)
    targets = random_targets(rng, 60, 20)
    first = solve(rows, targets, 10.0)
    again = solve(rows, targets, 10.0, first.weights)
    assert_solved(rows, targets, 10.0, again)
    assert again.n_iterations.sum() < 0.3 * first.n_iterations.sum()


def test_a_start_from_far_away_does_not_matter():
    rng = np.random.default_rng(10)
    rows = random_rows(rng)
    targets = random_targets(rng, 60, 5)
    start = rng.standard_normal((rows.n_features, 5)) * 50
    assert_solved(rows, targets, 1.0, solve(rows, targets, 1.0, start))


def test_problems_that_run_out_of_steps_are_reported():
    rng = np.random.default_rng(11)
    rows = random_rows(rng)
    solution = solve(rows, random_targets(rng, 60, 20), 1000.0, max_iter=2, tol=1e-6)
    assert not solution.converged.any()
    assert (solution.n_iterations == 2).all()


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_equal_columns_have_equal_weights(C):
    rng = np.random.default_rng(17)
    X = sparse.random_array((80, 20), density=0.1, rng=rng).tocsr()
    rows = Rows.prepare(sparse.hstack([X, X[:, :10], X[:, 5:15]]).tocsr())
    targets = random_targets(rng, 80, 18)
    solution = solve(rows, targets, C)
    assert_solved(rows, targets, C, solution)
    weights = solution.weights
    is_shared = (X != 0).sum(axis=0) > 1
    np.testing.assert_array_equal(weights[:10], weights[20:30])
    np.testing.assert_array_equal(weights[5:15][is_shared[5:15]], weights[30:40][is_shared[5:15]])
    again = solve(rows, targets, C, start=weights)
    assert again.n_iterations.max() <= 1
    assert_solved(rows, targets, C, again)


def test_many_rows_or_columns_change_nothing(monkeypatch):
    rng = np.random.default_rng(19)
    rows, targets = random_rows(rng), random_targets(rng, 60, 20)
    short = solve(rows, targets, 1.0)
    monkeypatch.setattr(lanes, "SHORT_PLACES", 59)
    np.testing.assert_array_equal(solve(rows, targets, 1.0).weights, short.weights)


def test_columns_that_no_row_uses_have_no_weight():
    X = sparse.csr_array(np.array([[1.0, 0, 2.0, 0], [1.0, 0, 0, 0], [0, 0, 1.0, 0]]))
    rows = Rows.prepare(X)
    solution = solve(rows, random_targets(np.random.default_rng(0), 3, 4), 1.0)
    assert (solution.weights[[1, 3]] == 0).all()


@pytest.fixture(params=["in cache", "rare features", "tiles", "rare features and tiles"])
def block(request, monkeypatch):
    """Vectors and rows filled with numbers, as if in the middle of a solution."""
    monkeypatch.setattr(lane_tiles, "LEAST_FREQUENT", 7)
    if "rare" in request.param:
        monkeypatch.setattr(lane_tiles, "MOST_FEATURES", 10)
    if "tiles" in request.param:
        monkeypatch.setattr(lane_tiles, "MOST_ROWS", 32)
        monkeypatch.setattr(lane_tiles, "ROWS_OF_A_TILE", 16)
        monkeypatch.setattr(lane_tiles, "LEAST_PER_TILE", 1)
    rng = np.random.default_rng(13)
    rows = random_rows(rng, n=50, d=30)
    solver = lanes.LaneSolver(rows, SolverSettings())
    problems = solver._problems(random_targets(rng, 50, 1), 2.0)
    shared, base = solver._at(2.0)
    block = LaneBlock(solver._features.origins, shared, solver._columns, base, problems)
    for array in block.vectors:
        array[:] = rng.standard_normal(array.shape)
    block.row_lanes.curvature[:] = rng.random(block.row_lanes.curvature.shape)
    block.row_lanes.positive[:] = rng.integers(2**16, size=50)
    block.X = np.hstack([solver._features.shared.toarray(), np.ones((50, 1))])
    block.totals = np.zeros((state.N_TOTALS, simd.LANES))
    return block


def give_common(block):
    """Have the first rows have something in common beside their entries."""
    n_common, base = 20, block.base
    common = np.random.default_rng(2).standard_normal(block.X.shape[1]).astype(np.float32)
    common[-1] = np.abs(common[-1])
    block.X[:n_common] += common
    entries = block.rows.entries._replace(common=common, n_common=n_common)
    block.rows = block.rows._replace(entries=entries)
    linear = (block.X @ base.weights).astype(np.float32)
    gradient = (base.weights + block.X.T @ base.rows.slope).astype(np.float32)
    block.base = base._replace(gradient=gradient, rows=base.rows._replace(linear=linear))


def have_near_at_base(block, n_near):
    """Have these first rows be near zero at the base, all others far below it.

    Of the first all lanes are evaluated at once, of the others pairs.
    """
    weights, base = block.base.weights.copy(), block.base
    weights[-1] -= 8
    linear = (block.X @ weights).astype(np.float32)
    gradient = (weights + block.X.T @ base.rows.slope).astype(np.float32)
    rows = base.rows._replace(linear=linear)
    block.base = base._replace(weights=weights, gradient=gradient, rows=rows)
    far_below = block.rows.far_below.copy()
    far_below[:n_near] = np.minimum(far_below[:n_near], linear[:n_near] - 1)
    block.rows = block.rows._replace(far_below=far_below)


def pass_over_features(block):
    """Go over the features after a pass over rows; return what was multiplied, and by what."""
    block.coefficients[state.CONSTANT_PRODUCT] = block.totals[state.ON_CONSTANT]
    called(
        loops.feature_pass,
        block.rows.entries,
        block.columns,
        block.row_lanes.pull,
        block.base.gradient,
        block.base.weights,
        block.base.light,
        block.vectors,
        block.masks,
        block.coefficients,
        block.totals,
    )


def test_frequent_features_are_told_from_rare_ones_and_rows_come_in_tiles(block, request):
    mode = request.node.callspec.params["block"]
    n_columns = block.X.shape[1] - 1
    assert n_columns > 10
    columns = block.columns
    assert columns.n_frequent == (7 if "rare" in mode else n_columns)
    is_tiled = (block.X[:, : columns.n_frequent] != 0).sum(axis=0) >= 4
    assert 1 < is_tiled.sum() < n_columns
    assert columns.n_tiles == (4 if "tiles" in mode else 1)
    assert columns.n_tiled == (is_tiled.sum() if "tiles" in mode else 0)
    n_entries = np.diff(columns.indptr.astype(np.int64))
    assert n_entries.size == columns.n_tiles * columns.n_tiled + n_columns - columns.n_tiled + 1
    by_tile = n_entries[: columns.n_tiles * columns.n_tiled].reshape(columns.n_tiles, -1)
    n_users = (block.X[:, : columns.n_tiled] != 0).sum(axis=0)
    np.testing.assert_array_equal(by_tile.sum(axis=0), n_users)


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_more_rows_and_features_than_a_cache_holds_are_solved(monkeypatch, C):
    monkeypatch.setattr(lane_tiles, "MOST_FEATURES", 10)
    monkeypatch.setattr(lane_tiles, "LEAST_FREQUENT", 8)
    monkeypatch.setattr(lane_tiles, "MOST_ROWS", 64)
    monkeypatch.setattr(lane_tiles, "ROWS_OF_A_TILE", 32)
    monkeypatch.setattr(lane_tiles, "LEAST_PER_TILE", 2)
    rng = np.random.default_rng(24)
    rows, targets = random_rows(rng, n=300, d=60), random_targets(rng, 300, 20)
    assert_solved(rows, targets, C, solve(rows, targets, C))


@pytest.mark.parametrize("has_common", [False, True])
def test_curving_lanes_take_a_step_of_conjugate_gradients(block, has_common):
    if has_common:
        give_common(block)
    block.masks[state.CURVING, :10] = 1
    block.coefficients[state.ALPHA, :10] = alpha = np.linspace(0.1, 1, 10)
    X, D, V = block.X, block.row_lanes.curvature, block.vectors.direction
    called(
        loops.curvature_pass, block.rows.entries, block.columns, block.row_lanes, V, block.totals
    )
    energy = (D * (X @ V) ** 2).sum(axis=0)
    np.testing.assert_allclose(block.totals[state.ENERGY], energy, rtol=1e-4)
    step, residual = (
        array.astype(np.float64) for array in (block.vectors.step, block.vectors.residual)
    )
    pass_over_features(block)
    step[:, :10] += alpha * V[:, :10]
    residual[:, :10] -= alpha * (V + X.T @ (D * (X @ V)))[:, :10]
    np.testing.assert_allclose(block.vectors.step, step, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(block.vectors.residual, residual, rtol=1e-4, atol=1e-4)
    mean, spread, scale, _ = block.base.light
    for row, expected in {
        state.RESIDUAL: (residual**2).sum(axis=0),
        state.SCALED_RESIDUAL: scale @ residual**2,
        state.ON_MEAN: (mean * scale) @ residual,
        state.STEP: (step**2).sum(axis=0),
        state.STEP_ON_MEAN: mean @ step,
        state.STEP_SPREAD: spread @ step**2,
    }.items():
        np.testing.assert_allclose(block.totals[row], expected, rtol=1e-3, atol=1e-4)


def evaluated_by_definition(block, w):
    """Return loss, errors and curvatures of rows, and gradients, of all lanes at w in float64."""
    bits = block.row_lanes.positive[:, None] >> np.arange(simd.LANES) & 1
    c, s2 = (
        np.broadcast_to(column[:, None].astype(np.float64), bits.shape)
        for column in (block.rows.cost, block.rows.private_square)
    )
    u = block.X @ w
    z = np.where(bits, solve_margin(u, s2, c, label=1.0), solve_margin(u, s2, c, label=0.0))
    sigma = 1 / (1 + np.exp(-z))
    error = c * (sigma - bits)
    curvature = c * sigma * (1 - sigma)
    loss = c * (np.logaddexp(0, z) - bits * z) + 0.5 * s2 * error**2
    return loss.sum(axis=0), error, curvature / (1 + curvature * s2), w + block.X.T @ error


@pytest.mark.parametrize("has_common", [False, True])
@pytest.mark.parametrize("n_whole", [0, 25, 50])
def test_evaluation_pass_finds_errors_curvature_and_gradient(block, has_common, n_whole):
    if has_common:
        give_common(block)
    have_near_at_base(block, n_whole)
    assert np.count_nonzero(block.base.rows.linear > block.rows.far_below) == n_whole
    use = np.arange(simd.LANES) < 9
    block.masks[[state.EVALUATING, state.EVALUATED]] = use
    way = block.vectors.direction.astype(np.float64) - block.vectors.point
    kept = block.row_lanes.curvature.copy()
    called(
        loops.evaluation_pass,
        block.rows,
        block.columns,
        block.row_lanes,
        block.near,
        block.base.rows,
        block.vectors.direction,
        block.masks,
        block.totals,
    )
    pull = block.row_lanes.pull.copy()
    pass_over_features(block)
    w = block.base.weights[:, None].astype(np.float64) + block.vectors.direction
    loss, error, D, g = evaluated_by_definition(block, w)
    error -= block.base.rows.slope[:, None]
    np.testing.assert_allclose(pull[:, use], error[:, use], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(block.row_lanes.curvature[:, use], D[:, use], rtol=1e-3, atol=1e-6)
    np.testing.assert_array_equal(block.row_lanes.curvature[:, ~use], kept[:, ~use])
    np.testing.assert_allclose(block.vectors.residual[:, use], -g[:, use], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(block.totals[state.LOSS, use], loss[use], rtol=1e-4)
    slope = (g * way).sum(axis=0)
    np.testing.assert_allclose(block.totals[state.SLOPE, use], slope[use], rtol=1e-3, atol=1e-3)
    square = (g**2).sum(axis=0)
    np.testing.assert_allclose(block.totals[state.GRADIENT, use], square[use], rtol=1e-3)
    np.testing.assert_allclose(block.totals[state.NORM, use], (w**2).sum(axis=0)[use], rtol=1e-4)
    light = np.minimum(D, state.LIGHT).sum(axis=0)
    np.testing.assert_allclose(block.totals[state.LIGHT_MASS, use], light[use], rtol=1e-4)


def test_the_mean_row_and_the_spread_stand_for_all_rows_of_the_base(block):
    base, light, X = block.base, block.base.light, block.X
    D = base.rows.curvature.astype(np.float64)
    total, square = base.mass * light.mean, base.mass * (light.spread + light.mean**2)
    assert base.mass == pytest.approx(D.sum(), rel=1e-6)
    np.testing.assert_allclose(total, X.T @ D, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(square, (X**2).T @ D, rtol=1e-5, atol=1e-7)
    assert light.mean_square == pytest.approx(light.mean**2 @ light.scale, rel=1e-5)


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_rows_that_a_few_hold_negative_are_solved_from_the_constant_alone(C):
    rng = np.random.default_rng(20)
    rows = Rows.prepare(sparse.csr_array(np.exp(2 * rng.standard_normal((1000, 12)))))
    targets = random_targets(rng, 1000, 5, share=0.1)
    solver = lanes.LaneSolver(rows, SolverSettings())
    assert_solved(rows, targets, C, solver.solve(targets, C))
    weights = solver._at(C)[1].weights
    assert weights[-1] < 0
    assert not weights[:-1].any()


def test_every_row_is_negative_at_the_base(block):
    base, X, w = block.base, block.X, block.base.weights.astype(np.float64)
    c, s2 = block.rows.cost.astype(np.float64), block.rows.private_square.astype(np.float64)
    np.testing.assert_allclose(base.rows.linear, X @ w, rtol=1e-5)
    sigma = 1 / (1 + np.exp(-solve_margin(X @ w, s2, c, label=0.0)))
    np.testing.assert_allclose(base.rows.slope, c * sigma, rtol=1e-4)
    assert np.linalg.norm(w + X.T @ (c * sigma)) < 1e-3 * np.linalg.norm(X.T @ c)
    np.testing.assert_allclose(base.gradient, w + X.T @ (c * sigma), atol=1e-5)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_rows_of_very_different_length_are_solved(C):
    """The all-negative solution is found in several goes, with a preconditioner each."""
    rng = np.random.default_rng(18)
    X = sparse.random_array((300, 40), density=0.2, rng=rng).tocsr()
    X.data = rng.geometric(0.3, size=X.nnz).astype(np.float64)
    X = sparse.diags_array(np.exp(1.5 * rng.standard_normal(300))) @ X
    rows, targets = Rows.prepare(sparse.csr_array(X)), random_targets(rng, 300, 5)
    assert_solved(rows, targets, C, solve(rows, targets, C))


def test_lanes_get_the_labels_of_their_problems_and_others_keep_theirs():
    rng = np.random.default_rng(22)
    row_class, tables = rng.integers(5, size=40), rng.choice([-1, 1], size=(6, 5)).astype(np.int8)
    classes = state.RowsOfClasses.of(row_class, 5)
    before = rng.integers(2**16, size=40).astype(np.uint16)
    positive = before.copy()
    problem = rng.integers(6, size=simd.LANES)
    of_lanes = np.zeros(simd.LANES, dtype=state.LANE)
    of_lanes["problem"] = problem
    masks = np.zeros((state.N_MASKS, simd.LANES), dtype=np.float32)
    masks[state.FRESH, [0, 7, 15]] = 1
    called(transfer.load_labels, positive, classes, tables, of_lanes, masks)
    for lane in range(simd.LANES):
        bits = positive >> lane & 1
        expected = before >> lane & 1
        if lane in (0, 7, 15):
            expected = tables[problem[lane], row_class] > 0
        np.testing.assert_array_equal(bits, expected)


@pytest.mark.parametrize("is_whole", [False, True])
def test_fresh_lanes_begin_at_their_starts(block, is_whole):
    rng, m = np.random.default_rng(3), block.vectors.direction.shape[0]
    columns = rng.permutation(m)[: m if is_whole else m // 3]
    weights, rest = rng.random((4, columns.size)), rng.random(4)
    place = np.zeros(0, dtype=np.int64)
    starts = state.Starts(weights.astype(np.float32), columns, rest.astype(np.float32), place)
    block.lanes["start"] = -1
    block.lanes["start"][[1, 5, 6]] = 3, 0, 2
    block.masks[state.FRESH, [1, 5, 9]] = 1
    expected = block.vectors.direction.astype(np.float64)
    for lane, start in ((1, 3), (5, 0)):
        expected[:, lane] = (rest[start] - 1) * block.base.weights
        expected[columns, lane] = weights[start] - block.base.weights[columns]
    direction = block.vectors.direction
    called(transfer.load_starts, direction, block.base.weights, starts, block.lanes, block.masks)
    np.testing.assert_allclose(direction, expected, rtol=1e-5, atol=1e-6)
    assert block.masks[state.FRESH].nonzero()[0].tolist() == [9]


def test_lanes_that_finish_leave_a_direction_of_zero(block):
    block.masks[state.ACCEPTING, :4] = block.masks[state.STARTING, :2] = 1
    vectors, others = block.vectors, (block.base.light, block.masks, block.coefficients)
    point, kept = vectors.direction[:, :4].copy(), vectors.direction[:, 4:].copy()
    called(loops.begin_directions, vectors, *others, block.totals)
    np.testing.assert_array_equal(vectors.point[:, :4], point)
    started = block.base.light.scale[:, None] * vectors.residual[:, :2]
    np.testing.assert_allclose(vectors.direction[:, :2], started, rtol=1e-6)
    assert not vectors.direction[:, 2:4].any()
    np.testing.assert_array_equal(vectors.direction[:, 4:], kept)


def test_the_base_is_evaluated_by_positive_rows_alone(block):
    which, n = np.array([2, 3, 11]), block.X.shape[0]
    is_positive = (block.row_lanes.positive[:, None] >> np.arange(simd.LANES) & 1) > 0
    block.lanes["problem"] = np.arange(simd.LANES)
    others = np.setdiff1d(np.arange(simd.LANES), which)
    before = [array[:, others].copy() for array in (*block.vectors, block.row_lanes.curvature)]
    block.masks[state.FRESH, which] = 1
    residual = block.vectors.residual
    called(transfer.begin_residuals, residual, block.base.gradient, block.masks)
    block.vectors.direction[:, which] = 0
    called(
        transfer.begin_at_base,
        block.row_lanes.curvature,
        block.rows,
        block.base.rows,
        block.base.loss,
        state.RowsOfClasses(np.arange(n + 1), np.arange(n)),
        np.where(is_positive, 1, -1).astype(np.int8).T.copy(),
        residual,
        block.lanes,
        block.masks,
    )
    for array, kept in zip((*block.vectors, block.row_lanes.curvature), before, strict=True):
        np.testing.assert_array_equal(array[:, others], kept)
    w = np.repeat(block.base.weights.astype(np.float64)[:, None], simd.LANES, axis=1)
    loss, error, D, g = evaluated_by_definition(block, w)
    np.testing.assert_allclose(block.lanes["loss"][which], loss[which], rtol=1e-5)
    residual = block.vectors.residual[:, which]
    np.testing.assert_allclose(residual, -g[:, which], rtol=1e-4, atol=1e-4)
    negative = ~is_positive[:, which]
    curvature = block.row_lanes.curvature[:, which]
    np.testing.assert_allclose(curvature[negative], D[:, which][negative], rtol=1e-4)
    assert (curvature >= D[:, which] * (1 - 1e-5)).all()  # long steps meet at least that

    # Known lanes only: the residual is what it was, and totals are those of the gradient.
    block.masks[state.EVALUATED] = block.masks[state.FRESH]
    pass_over_features(block)
    np.testing.assert_allclose(block.vectors.residual[:, which], residual, rtol=1e-6)
    square = (g[:, which] ** 2).sum(axis=0)
    np.testing.assert_allclose(block.totals[state.GRADIENT, which], square, rtol=1e-3)

    # Lanes that finish without a pass have their private weights from there, others from pulls.
    origins, m = block.origins, block.vectors.point.shape[0]
    block.lanes["n_passes"][which[1]] = 1
    error[:, which[1]] = block.base.rows.slope + block.row_lanes.pull[:, which[1]]
    weights = np.full((simd.LANES, origins.place.size), np.nan, dtype=np.float32)
    called(
        transfer.take_weights,
        block.lanes,
        which,
        block.vectors.point,
        block.row_lanes.pull,
        block.row_lanes.positive,
        block.rows.cost,
        block.rows.private_square,
        block.base.weights,
        block.base.rows,
        origins,
        block.work,
        weights,
    )
    assert (origins.place >= m).sum() > 10
    known = np.vstack([block.base.weights[:, None] + block.vectors.point, error])
    expected = origins.factor[:, None] * known[origins.place]
    np.testing.assert_allclose(weights[which], expected.T[which], rtol=1e-4, atol=1e-6)
    assert np.isnan(weights[others]).all()


@pytest.mark.parametrize("n_heavy", [0, 1, 15, 16, 17, 32, 47, 50])
def test_heavy_rows_and_the_mean_row_precondition_as_the_dense_inverse_would(block, n_heavy):
    heavy, entries, light, mass, k = block.heavy, block.rows.entries, block.base.light, 7.5, 3
    masks, totals = block.masks, block.totals
    masks[state.STARTING, k], block.lanes["mass"] = 1, mass
    block.row_lanes.curvature[:] = 0.1 + block.row_lanes.curvature * 4
    block.row_lanes.curvature[n_heavy:] = 0
    D = block.row_lanes.curvature[:, k].astype(np.float64)
    called(heavy_rows.find_heavy_rows, heavy, block.row_lanes.curvature, block.lanes, masks)
    n = heavy.n_rows[k]
    assert n == min(n_heavy, heavy_rows.MOST)
    found = np.sort(heavy.rows[k, :n])
    np.testing.assert_array_equal(found, np.sort(np.argsort(-D)[:n]))

    mean, M = light.mean.astype(np.float64), light.scale.astype(np.float64)
    S = np.vstack([block.X[found], mean])
    inverse = np.linalg.inv(np.diag(1 / M) + S.T @ (np.append(D[found], mass)[:, None] * S))
    residual, direction = block.vectors.residual, block.vectors.direction
    r = residual[:, k].astype(np.float64)
    heavy.factor[k] = np.nan  # whatever an earlier system left
    called(heavy_rows.start_heavy, heavy, entries, light, block.lanes, masks)
    totals[state.ON_MEAN, k], totals[state.SCALED_RESIDUAL, k] = mean @ (M * r), r @ (M * r)
    starting, coefficients = masks[state.STARTING], block.coefficients
    called(heavy_rows.solve_heavy, heavy, entries, light, residual, starting, coefficients, totals)
    np.testing.assert_allclose(totals[state.SCALED_RESIDUAL, k], r @ inverse @ r, rtol=1e-3)
    assert not totals[state.SCALED_RESIDUAL, k + 1 :].any()
    direction[:, k] = before = M * (r + coefficients[state.MEAN_SHARE, k] * mean)
    called(heavy_rows.correct_directions, heavy, entries, light, direction, masks, totals)
    v = direction[:, k].astype(np.float64)
    np.testing.assert_allclose(v, inverse @ r, rtol=1e-3, atol=1e-4)
    change = v @ v - before @ before
    np.testing.assert_allclose(totals[state.DIRECTION, k], change, rtol=1e-3, atol=1e-5)
    assert not heavy.table.any()


@pytest.mark.parametrize(("on_mean", "spread"), [(4.0, 0.5), (0.0, 9.0), (-1.0, 0.1), (0.01, 0.01)])
def test_a_first_step_ends_where_light_rows_outweigh_its_gain(on_mean, spread):
    lane = np.zeros(1, dtype=state.LANE)[0]
    lane["gain"], lane["mass"] = 100.0, 5.0
    t = np.linspace(0, 1, 10_001)
    light = (
        np.exp(t * on_mean + t**2 * spread / 2) - 1 - t * on_mean - t**2 * (on_mean**2 + spread) / 2
    )
    along = (
        -100.0 * t + 100.0 * t**2 / 2 + 5.0 * light
    )  # at 0 the Newton model, and light rows grow
    found = called(steps._length_for_light_rows, lane, on_mean, spread)
    assert found == pytest.approx(t[np.argmin(along)], abs=steps.LENGTH_ACCURACY)


@pytest.mark.parametrize("most", [15, heavy_rows.MOST])
def test_only_the_heaviest_of_many_rows_are_taken(most):
    rng = np.random.default_rng(14)
    n = 20 * heavy_rows.CANDIDATES
    curvature = simd.line_aligned(1, n)[0]
    curvature[:] = rng.random(curvature.shape) * 10
    heavy, lanes_of = heavy_rows.HeavyRows.empty(5, most), np.zeros(simd.LANES, dtype=state.LANE)
    masks = np.zeros((state.N_MASKS, simd.LANES), dtype=np.float32)
    masks[state.STARTING, ::2] = 1
    for _ in range(2):  # the second time from the threshold of the first
        called(heavy_rows.find_heavy_rows, heavy, curvature, lanes_of, masks)
        lanes_of["n_newton"] += 1
        for k in range(0, simd.LANES, 2):
            heaviest = np.argsort(-curvature[:, k])[:most]
            assert set(heavy.rows[k, : heavy.n_rows[k]]) == set(heaviest)
        assert (heavy.n_rows[1::2] == 0).all()
