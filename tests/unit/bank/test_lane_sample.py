"""Starts from samples of rows, against the problems over all rows that they stand for."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from taxofit.bank import lane_sample
from taxofit.bank.lane_state import Problems, RowsOfClasses
from taxofit.bank.lanes import LaneSolver
from taxofit.bank.node_bank import NodeBank
from taxofit.bank.objective import gradient
from taxofit.bank.private_features import solve_margin
from taxofit.bank.rows import Rows, Targets
from taxofit.bank.sample_loops import mark_near
from taxofit.bank.solver import SolverSettings
from taxofit.bank.warm_starts import WarmStarts
from taxofit.taxonomy import Taxonomy

N_ROWS, N_CLASSES = 7500, 60


def topics(seed=0, *, n_rows=N_ROWS, n_neighbours=1):
    """Return rows of 60 classes with words of their own, common ones and private ones.

    Or with words that are those of some neighbours, too.
    """
    rng = np.random.default_rng(seed)
    row_class = rng.integers(N_CLASSES, size=n_rows).astype(np.int32)
    near = row_class - row_class % n_neighbours
    own = 5 * near[:, None] + rng.integers(5 * n_neighbours, size=(n_rows, 4))
    if n_neighbours > 1:
        own[:, 0] = 5 * row_class + rng.integers(5, size=n_rows)
    common = 5 * N_CLASSES + rng.integers(400, size=(n_rows, 6))
    private = 5 * N_CLASSES + 400 + np.arange(n_rows)[:, None]
    columns = np.hstack([own, common, private])
    rows = np.repeat(np.arange(n_rows), columns.shape[1])
    X = sparse.coo_array((np.ones(rows.size), (rows, columns.ravel()))).tocsr()
    X = sparse.diags_array(1 / sparse.linalg.norm(X, axis=1)) @ X
    return Rows.prepare(sparse.csr_array(X)), row_class


def one_vs_rest(row_class, n_problems):
    table = np.where(np.arange(N_CLASSES)[:, None] == np.arange(n_problems), 1, -1)
    return Targets(row_class, table.astype(np.int8))


def without_samples(monkeypatch):
    monkeypatch.setattr(lane_sample, "MOST_SAMPLED", 0.0)


@pytest.fixture
def seen(monkeypatch):
    """All starts that are asked for while a test runs."""
    starts, of = [], lane_sample.SampledStarts.of

    def noted(self, *arguments):
        starts.append(of(self, *arguments))
        return starts[-1]

    monkeypatch.setattr(lane_sample.SampledStarts, "of", noted)
    return starts


@pytest.mark.parametrize("C", [1.0, 10.0, 1000.0])
def test_problems_end_where_they_do_from_the_base_in_fewer_passes(C, seen, monkeypatch):
    rows, row_class = topics()
    targets = one_vs_rest(row_class, 6)
    found = LaneSolver(rows, SolverSettings()).solve(targets, C)
    assert (seen[0].place == np.arange(6)).all()
    without_samples(monkeypatch)
    expected = LaneSolver(rows, SolverSettings()).solve(targets, C)
    assert seen[1] is None
    assert found.converged.all()
    np.testing.assert_allclose(found.objective, expected.objective, rtol=1e-6)
    assert found.n_products < 0.9 * expected.n_products


def test_starts_are_near_the_solution(seen):
    rows, row_class = topics()
    targets = one_vs_rest(row_class, 6)
    solver = LaneSolver(rows, SolverSettings())
    solver.solve(targets, 1.0)
    base = solver._at(1.0)[1]
    shared = np.repeat(base.weights[None].astype(np.float64), 6, axis=0)
    at_base = gradient_norms(rows, solver, targets, shared)
    at_start = gradient_norms(rows, solver, targets, weights_at(seen[0], shared))
    assert (at_start < 0.03 * at_base).all()


def weights_at(starts, at_base):
    """Return the shared weights, shape (n_problems, n_shared + 1), that starts say."""
    weights = at_base * starts.rest[starts.place][:, None]
    weights[:, starts.columns] = starts.weights[starts.place]
    return weights


@pytest.mark.parametrize("what", ["rest", "common"])
def test_starts_are_nearer_with_the_mean_of_rows_and_with_weights_that_move_together(
    what, seen, monkeypatch
):
    rows, row_class = topics()
    targets = one_vs_rest(row_class, 6)
    solver = LaneSolver(rows, SolverSettings())
    solver.solve(targets, 1.0)
    draw = lane_sample.SampledStarts._draw

    def drawn_without(*arguments):
        sample = draw(*arguments)
        if what == "common":
            return replace(sample, common=0 * sample.common)
        entries = sample.entries.copy()
        entries.data[entries.indptr[1:] - 1] = 0
        return replace(sample, entries=entries)

    monkeypatch.setattr(lane_sample.SampledStarts, "_draw", drawn_without)
    solver.solve(targets, 1.0)
    shared = np.repeat(solver._at(1.0)[1].weights[None].astype(np.float64), 6, axis=0)
    with_it, without = (
        gradient_norms(rows, solver, targets, weights_at(starts, shared)) for starts in seen
    )
    assert np.median(with_it / without) < 0.8


def gradient_norms(rows, solver, targets, shared):
    """Return ‖∇f‖ at shared weights, private ones as they are best, by the definition at C = 1."""
    features, order = solver._features, solver._features.order
    X, weight, norms = rows.X[order], rows.weight[order], []
    for b, w in enumerate(shared):
        t = (targets.table[targets.row_class[order], b] > 0).astype(float)
        u = features.shared @ w[:-1] + features.constant * w[-1]
        z = np.empty_like(u)
        for label in (0.0, 1.0):
            mine = t == label
            z[mine] = solve_margin(u[mine], features.private_square[mine], weight[mine], label)
        error = weight * (1 / (1 + np.exp(-z)) - t)
        place = np.append(w, error)[features.origins.place]
        full = features.origins.factor * place
        norms.append(np.linalg.norm(gradient(full, X, 2 * t - 1, 1.0)))
    return np.array(norms)


def test_a_sample_of_all_rows_is_the_problem_itself(monkeypatch):
    """Then no row stands for others, and what is found is the solution but for the other words."""
    rows, row_class = topics(n_rows=600)
    targets = one_vs_rest(row_class, N_CLASSES - 1)  # nearly every row is positive somewhere
    monkeypatch.setattr(lane_sample, "LEAST_WORK", 1)
    monkeypatch.setattr(lane_sample, "MOST_SAMPLED", 2.0)
    monkeypatch.setattr(lane_sample, "TOLERANCE", 1.001e-4)
    solver = LaneSolver(rows, SolverSettings())
    shared, base = solver._at(10.0)
    in_order = Targets(targets.row_class[solver._features.order], targets.table)
    problems = solver._problems(in_order, 10.0)
    starts = solver._samples.of(shared, base, problems, in_order.row_class)
    without_samples(monkeypatch)
    expected = solver._features.restrict(solver.solve(targets, 10.0).weights)
    others = np.setdiff1d(np.arange(expected.shape[1]), starts.columns)
    assert 0 < others.size <= 5  # those of the last class
    np.testing.assert_allclose(starts.weights, expected[:, starts.columns], atol=5e-3)
    along = np.multiply.outer(starts.rest, base.weights[others])
    np.testing.assert_allclose(along, expected[:, others], atol=5e-2)


@pytest.mark.parametrize("most", [0, 7, 500])
def test_near_rows_are_those_with_most_in_common_with_own_ones(most):
    rng = np.random.default_rng(0)
    n, m = 300, 40
    dense = np.where(rng.random((n, m)) < 0.15, rng.normal(size=(n, m)), 0).astype(np.float32)
    dense[17] = 0
    X, is_used, sizes = sparse.csr_array(dense), dense != 0, np.abs(dense)
    is_own = is_used[:, :4].any(axis=1) & (rng.random(n) < 0.5)
    share = (is_used & is_own[:, None]).sum(axis=0) / is_used.sum(axis=0)
    in_common = sizes @ share / np.maximum(sizes.sum(axis=1), 1e-9)
    near = np.flatnonzero((in_common >= 1.3 * is_own.mean()) & ~is_own)
    assert 7 < near.size < 200
    expected = near[np.argsort(-in_common[near])][:most]
    found, work = is_own.copy(), (np.zeros(m, dtype=np.float32), np.zeros((2, n), dtype=np.float32))
    mark_near(X.indptr, X.indices, X.data, is_used.sum(axis=0), 1.3, most, found, *work)
    np.testing.assert_array_equal(np.flatnonzero(found & ~is_own), np.sort(expected))
    assert found[is_own].all()


def test_at_large_cost_rows_near_the_positive_ones_make_better_starts(monkeypatch):
    rows, row_class = topics(n_neighbours=2)
    table = np.where(np.arange(N_CLASSES)[:, None] == 2 * np.arange(6), 1, -1).astype(np.int8)
    targets = Targets(row_class, table)
    own, draw = [], lane_sample.SampledStarts._draw

    def noted(self, is_own, *arguments):
        own.append(is_own)
        return draw(self, is_own, *arguments)

    monkeypatch.setattr(lane_sample.SampledStarts, "_draw", noted)
    solver = LaneSolver(rows, SolverSettings())
    found = solver.solve(targets, 100.0)
    monkeypatch.setattr(lane_sample, "LEAST_COST_FOR_NEAR", np.inf)
    without = solver.solve(targets, 100.0)
    in_order = row_class[solver._features.order]
    is_positive = (in_order < 12) & (in_order % 2 == 0)
    np.testing.assert_array_equal(own[1], is_positive)
    near = own[0] & ~is_positive
    assert own[0][is_positive].all()
    assert 0 < near.sum() <= N_ROWS / 32
    assert (in_order[near] < 12).mean() > 0.95
    assert found.n_products < 0.9 * without.n_products
    np.testing.assert_allclose(found.objective, without.objective, rtol=1e-6)


def test_rows_that_stand_for_others_have_their_margins_and_their_derivatives():
    rows, row_class = topics()
    solver = LaneSolver(rows, SolverSettings())
    shared, base = solver._at(10.0)
    is_positive = row_class[solver._features.order] == 3
    sample = solver._samples._draw(is_positive, 256, base)
    np.testing.assert_array_equal(is_positive[sample.rows], np.arange(sample.rows.size) >= 256)
    assert sample.n_drawn == 256
    assert (sample.count[256:] == 1).all()
    np.testing.assert_allclose(sample.count.sum(), N_ROWS, rtol=0.05)
    slope = sample.count * base.rows.slope[sample.rows]
    np.testing.assert_allclose(slope.sum(), base.rows.slope.sum(), rtol=1e-5)
    problems = solver._problems(Targets(row_class, -np.ones((N_CLASSES, 1), dtype=np.int8)), 10.0)
    block = sample.block(shared, base, problems)
    of_sample = block.rows
    linear = block.base.rows.linear
    z = solve_margin(linear, of_sample.private_square, of_sample.cost, 0.0)
    of_all = solve_margin(
        base.rows.linear[sample.rows],
        shared.private_square[sample.rows],
        shared.cost[sample.rows],
        0.0,
    )
    np.testing.assert_allclose(z, of_all, rtol=1e-5)
    slope = of_sample.cost / (1 + np.exp(-z))
    np.testing.assert_allclose(block.base.rows.slope, slope, rtol=1e-4)
    loss = of_sample.cost * np.logaddexp(0, z) + 0.5 * of_sample.private_square * slope**2
    np.testing.assert_allclose(block.base.loss, loss.sum(), rtol=1e-5)
    np.testing.assert_allclose(block.base.loss, base.loss, rtol=0.1)
    np.testing.assert_allclose(block.base.rows.curvature.sum(), base.mass, rtol=0.1)


def test_drawn_rows_have_the_mean_of_those_that_they_stand_for():
    rows, row_class = topics()
    solver = LaneSolver(rows, SolverSettings())
    base = solver._at(10.0)[1]
    is_positive = row_class[solver._features.order] == 3
    sample = solver._samples._draw(is_positive, 256, base)
    X, slope, others = solver._features.shared.toarray(), base.rows.slope, ~is_positive
    expected = np.average(X[others], weights=slope[others], axis=0)
    expected = np.append(expected[sample.columns[:-1]], expected @ sample.along[:-1])
    drawn, weights = sample.entries.toarray()[:256], slope[sample.rows[:256]]
    found = np.average(drawn, weights=weights, axis=0) + sample.common[:-1]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert sample.common[-1] == 0  # all rows have the same constant


def test_a_sample_has_the_entries_of_its_rows_in_features_of_positive_ones():
    rows, row_class = topics()
    solver = LaneSolver(rows, SolverSettings())
    base = solver._at(10.0)[1]
    is_positive = row_class[solver._features.order] < 2
    sample = solver._samples._draw(is_positive, 60, base)
    X, positive = solver._features.shared[sample.rows].toarray(), is_positive[sample.rows]
    n_positive, n_users = (X[positive] > 0).sum(axis=0), (X > 0).sum(axis=0)
    is_private = (n_positive == 1) & (n_users <= 4)
    columns = np.flatnonzero((n_positive > 0) & ~is_private)
    np.testing.assert_array_equal(sample.columns, np.append(columns, X.shape[1]))
    np.testing.assert_array_equal(sample.entries.toarray()[:, :-1], X[:, columns])
    along = np.where(n_positive > 0, 0, base.weights[:-1])
    along /= np.linalg.norm(along)
    np.testing.assert_allclose(sample.along, np.append(along, 0), rtol=1e-5)
    np.testing.assert_allclose(sample.entries.toarray()[:, -1], X @ along, rtol=1e-4, atol=1e-6)
    alone = sparse.csr_array(np.where(positive[:, None] & is_private, X, 0)).tocoo()
    assert alone.nnz > 0
    for found, expected in zip(sample.private, (*alone.coords, alone.data), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_features_that_are_private_in_a_sample_have_the_weights_of_the_definition():
    rows, row_class = topics()
    solver = LaneSolver(rows, SolverSettings())
    shared, base = solver._at(10.0)
    is_positive = row_class[solver._features.order] == 3
    is_positive &= np.cumsum(is_positive) <= 5
    sample = solver._samples._draw(is_positive, 40, base)
    users = np.diff(solver._features.shared[sample.rows][:, sample.private.column].tocsc().indptr)
    assert {1, 2, 3} <= set(users) <= {1, 2, 3, 4}
    positives = Targets(is_positive.astype(np.int32), np.array([[-1], [1]], dtype=np.int8))
    problems = solver._problems(positives, 10.0)
    classes = RowsOfClasses.of(positives.row_class[sample.rows], 2)
    problems = problems._replace(classes=classes, gradient=np.array([1e-4]), decrease=1e-9)
    weights, columns, rest = sample.solve(shared, base, problems)
    expected, expected_rest = minimum_over(sample, solver, shared, base, is_positive)
    np.testing.assert_allclose(weights[0], expected, atol=1e-4)
    np.testing.assert_allclose(rest, expected_rest, atol=1e-4)
    np.testing.assert_array_equal(columns, np.append(sample.columns, sample.private.column))


def minimum_over(sample, solver, shared, base, is_positive):
    """Return the weights that are best for a sample, from its definition, and those of the rest.

    Every feature has a weight, those too that are private in all rows or in the sample, and the
    rest have one together. Drawn rows do without those that are private in the sample, and are
    moved to the mean of all that they stand for.
    """
    n, n_columns, private = sample.rows.size, sample.columns.size, sample.private.column
    columns, is_own = np.append(sample.columns, private), is_positive[sample.rows]
    constant = np.full((n, 1), solver._features.constant)
    X = np.hstack([solver._features.shared[sample.rows].toarray(), constant])
    X = np.hstack([X[:, columns], (X @ sample.along)[:, None]])
    X[np.ix_(~is_own, np.arange(n_columns, columns.size))] = 0
    at = [*range(n_columns - 1), columns.size]
    X[np.ix_(~is_own, at)] += sample.common[:-1]
    X = np.hstack([X, np.diag(np.sqrt(shared.private_square[sample.rows] / sample.count))])
    cost, t = sample.count * shared.cost[sample.rows], is_own
    own = -X[:, columns.size + 1 :].diagonal() * base.rows.slope[sample.rows] * sample.count
    w0 = np.concatenate([base.weights[columns], [sample.along @ base.weights], own])
    offset = base.rows.linear[sample.rows] - X[:, :-n] @ w0[:-n]
    slope = cost / (1 + np.exp(-(offset + X @ w0)))
    goal = np.concatenate([base.gradient[sample.columns], np.zeros(private.size + 1 + n)])
    goal[columns.size] = sample.along @ base.gradient
    linear = goal - w0 - X.T @ slope

    def objective(w):
        z = offset + X @ w
        loss = np.sum(cost * (np.logaddexp(0, z) - t * z)) + 0.5 * w @ w + linear @ (w - w0)
        return loss, w + X.T @ (cost * (1 / (1 + np.exp(-z)) - t)) + linear

    found = minimize(objective, w0, jac=True, method="BFGS", options={"gtol": 1e-7})
    assert np.linalg.norm(objective(found.x)[1]) < 1e-5
    return found.x[: columns.size], found.x[columns.size] / w0[columns.size]


def test_the_smallest_problems_that_have_room_together_fit():
    rng = np.random.default_rng(0)
    row_class = rng.integers(12, size=500)
    tables = np.where(rng.random((9, 12)) < 0.2, 1, -1).astype(np.int8)
    n_positive = (tables[:, row_class] > 0).sum(axis=1)
    classes = RowsOfClasses.of(row_class, 12)
    problems = Problems(classes, tables, n_positive, np.ones(9), 1.0, 1)
    for n_rows in range(0, 501, 20):
        fits, taken = np.zeros(9, dtype=bool), np.zeros(500, dtype=bool)
        for b in np.argsort(n_positive, kind="stable"):
            taken |= tables[b, row_class] > 0
            fits[b] = taken.sum() <= n_rows
        np.testing.assert_array_equal(lane_sample._which_fit(problems, n_rows), fits)


def test_problems_with_many_positive_rows_start_at_the_base(seen):
    rows, row_class = topics()
    table = np.where(np.arange(N_CLASSES)[:, None] < np.array([1, 30, 2]), 1, -1).astype(np.int8)
    solution = LaneSolver(rows, SolverSettings()).solve(Targets(row_class, table), 1.0)
    np.testing.assert_array_equal(seen[0].place, [0, -1, 1])
    assert solution.converged.all()


@pytest.mark.parametrize(
    ("why", "C", "tol", "n_rows", "n_problems"),
    [
        ("few steps from the base", 1e-4, 1e-4, N_ROWS, 6),
        ("nothing to be gained", 1.0, 0.5, N_ROWS, 6),
        ("too few rows", 1.0, 1e-4, 6000, 6),
        ("too many positive rows", 1.0, 1e-4, N_ROWS, 30),
    ],
)
def test_no_sample_is_drawn_where_it_does_not_pay(seen, why, C, tol, n_rows, n_problems):
    rows, row_class = topics(n_rows=n_rows)
    targets = one_vs_rest(row_class, n_problems)
    LaneSolver(rows, SolverSettings(tol=tol)).solve(targets, C)
    assert seen == [None], why


def test_the_same_block_starts_at_the_same_bits(seen):
    rows, row_class = topics()
    targets = one_vs_rest(row_class, 6)
    first = LaneSolver(rows, SolverSettings()).solve(targets, 10.0)
    again = LaneSolver(rows, SolverSettings()).solve(targets, 10.0)
    np.testing.assert_array_equal(seen[0].weights, seen[1].weights)
    np.testing.assert_array_equal(first.weights, again.weights)


@pytest.mark.parametrize(("n_rows", "wants_starts"), [(6000, True), (N_ROWS, False)])
def test_banks_with_samples_want_no_starts_of_earlier_solutions(n_rows, wants_starts):
    rows, row_class = topics(n_rows=n_rows)
    taxonomy = Taxonomy.from_edges([("all", f"class {c}") for c in range(N_CLASSES)])
    leaf = taxonomy.nodes_of([f"class {c}" for c in row_class])
    bank = NodeBank(rows, taxonomy, leaf, n_threads=1)
    starts = WarmStarts(bank)
    bank.solve([1.0], starts.harvest, nodes=leaf[:2])
    assert bank.wants_starts == wants_starts
    assert (starts.take(1.0) is not None) == wants_starts
