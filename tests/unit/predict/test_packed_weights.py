"""Packed weights against plain matrices and definitions written out."""

import numpy as np
import pytest
from scipy import sparse

from taxofit import Taxonomy
from taxofit.predict.dense_weights import DenseWeights
from taxofit.predict.packer import Packer, Sightings
from taxofit.predict.pruning import LIMITS, N_CHANGED, Trial, safe_limit, without_own_part
from taxofit.predict.search import GREEDY, Search, find_in_scores, log_sigmoid, path_scores
from taxofit.predict.walk import walk_scores

PATHS = [
    ("a", "a1", "a11"),
    ("a", "a1", "a12"),
    ("a", "a2"),
    ("a", "a3"),
    ("b", "b1", "b11", "b111"),
    ("c", "c1"),
    ("c", "c2"),
]


@pytest.fixture
def taxonomy():
    return Taxonomy.from_paths(PATHS)


@pytest.fixture
def model(taxonomy):
    """Weights of all nodes, those of single children repeating their parent's, and intercepts."""
    rng = np.random.default_rng(1)
    weights = rng.normal(size=(taxonomy.n_nodes, 40)) * (rng.random((taxonomy.n_nodes, 40)) < 0.6)
    intercept = rng.normal(size=taxonomy.n_nodes)
    weights[0] = intercept[0] = 0
    for node in range(1, taxonomy.n_nodes):
        parent = taxonomy.parent[node]
        if parent > 0 and len(taxonomy.children(parent)) == 1:
            weights[node], intercept[node] = weights[parent], intercept[parent]
    return weights, intercept


@pytest.fixture
def X():  # noqa: N802  (the name the field uses)
    rng = np.random.default_rng(2)
    return sparse.csr_array(rng.normal(size=(300, 40)) * (rng.random((300, 40)) < 0.3))


def packer(model, taxonomy, **known):
    weights, intercept = model
    return Packer(sparse.csc_array(weights.T), intercept, taxonomy, **known)


def packed(model, taxonomy):
    return packer(model, taxonomy).pack()


def test_packed_scores_are_the_products(model, taxonomy, X):
    weights, intercept = model
    expected = X @ weights.T + intercept
    expected[:, 0] = 0
    scores = packed(model, taxonomy).node_scores(X, taxonomy)
    assert np.allclose(scores, expected, atol=1e-5)


def test_greedy_walk_goes_where_the_matrix_goes(model, taxonomy, X):
    weights, intercept = model
    scores = (X @ weights.T + intercept).astype(np.float32)
    reached, totals = packed(model, taxonomy).find(X, taxonomy, Search("greedy", 0.5))
    assert np.array_equal(reached[:, 0], walk_scores(scores, taxonomy))
    whole = path_scores(log_sigmoid(scores), taxonomy, 0.5)
    assert np.allclose(totals[:, 0], whole[np.arange(300), reached[:, 0]], atol=1e-4)


@pytest.mark.parametrize("gamma", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("width", [0, 50])
def test_wide_beam_finds_the_best_leaf_of_all(model, taxonomy, X, gamma, width):
    weights, intercept = model
    best = np.full(300, -np.inf)
    for leaf in np.flatnonzero(taxonomy.is_leaf):
        total, factor, node = np.zeros(300), 1.0, leaf
        while node > 0:
            score = X @ weights[node] + intercept[node]
            total += factor * -np.logaddexp(0, -score)
            factor, node = factor * gamma, taxonomy.parent[node]
        best = np.maximum(best, total)
    found = packed(model, taxonomy).find(X, taxonomy, Search("beam", gamma, width))
    assert np.allclose(found[1][:, 0], best, atol=1e-4)


@pytest.mark.parametrize("width", [1, 2, 3])
def test_narrow_beams_agree_between_packed_weights_and_matrix(model, taxonomy, X, width):
    weights, intercept = model
    search = Search("beam", 0.7, width)
    logs = log_sigmoid(X @ weights.T + intercept)
    found = packed(model, taxonomy).find(X, taxonomy, search, n_best=3)
    expected = find_in_scores(logs, taxonomy, search, n_best=3)
    assert np.array_equal(found[0], expected[0])


def test_beam_of_one_opens_one_node_at_every_depth(taxonomy):
    # The best child of the root has bad leaves; with one node open there is no way back.
    scores = np.full((1, taxonomy.n_nodes), -2.0)
    for label, score in {"a": 2.0, "c": 1.5, "c1": 5.0}.items():
        scores[0, taxonomy.node_of(label)] = score
    logs = log_sigmoid(scores)
    ends = [
        taxonomy.labels[find_in_scores(logs, taxonomy, Search("beam", 1.0, width))[0][0, 0]]
        for width in (1, 2)
    ]
    assert ends[0] in {"a2", "a3"}
    assert ends[1] == "c1"


def test_dense_weights_find_what_packed_ones_find(model, taxonomy, X):
    dense = DenseWeights(*model)
    for search in (GREEDY, Search("beam", 0.5, 2), Search("beam", 0.5)):
        ours = packed(model, taxonomy).find(X, taxonomy, search)
        theirs = dense.find(X.toarray(), taxonomy, search)
        assert np.array_equal(ours[0], theirs[0])
        assert np.allclose(ours[1], theirs[1], atol=1e-4)


def test_predictions_do_not_depend_on_the_batch_or_threads(model, taxonomy, X):
    dense, sparse_ = DenseWeights(*model), packed(model, taxonomy)
    many = sparse.vstack([X] * 12).tocsr()
    for search in (Search("greedy", 0.5), Search("beam", 0.5, 2)):
        for weights, rows in ((dense, X.toarray()), (sparse_, X)):
            together = weights.find(rows, taxonomy, search)
            alone = [weights.find(rows[[i]], taxonomy, search) for i in range(0, 300, 7)]
            assert np.array_equal(together[1][::7], np.concatenate([one[1] for one in alone]))
        threaded = sparse_.find(many, taxonomy, search, n_threads=3)
        assert np.array_equal(threaded[1], np.tile(sparse_.find(X, taxonomy, search)[1], (12, 1)))


def test_coefficients_come_back_as_they_went_in(model, taxonomy):
    weights, intercept = model
    for node in range(1, taxonomy.n_nodes):
        own, constant = packed(model, taxonomy).coefficients(node, taxonomy)
        assert np.allclose(own, weights[node], atol=1e-6)
        assert constant == pytest.approx(intercept[node])


def test_closed_nodes_are_never_entered(model, taxonomy, X):
    weights, intercept = model
    closed = taxonomy.node_of("c1")
    for node in (closed, *map(taxonomy.node_of, ("b", "b1", "b11", "b111"))):
        weights[node], intercept[node] = 0, -np.inf
    c2, c = taxonomy.node_of("c2"), taxonomy.node_of("c")
    weights[c2], intercept[c2] = weights[c], intercept[c]
    for search in (GREEDY, Search("beam", 1.0, 3), Search("beam", 1.0), Search("beam", 0.0)):
        reached, _ = packed(model, taxonomy).find(X, taxonomy, search)
        assert closed not in reached
        assert c2 in reached


def trained_packer(model, taxonomy, X):
    """Return a packer that has seen the rows of X at the leaves that the model gives them."""
    scores = (X @ model[0].T + model[1]).astype(np.float32)
    sightings = Sightings.gather(X, walk_scores(scores, taxonomy), taxonomy)
    return packer(model, taxonomy, sightings=sightings)


@pytest.mark.parametrize("limit", [1e-6, 0.01, 0.05, 0.2])
def test_scores_move_by_no_more_than_the_limit_allows(model, taxonomy, X, limit):
    ours = trained_packer(model, taxonomy, X)
    small, whole = ours.pack(limit), ours.pack(0.0)
    assert small.value.dtype == np.int8
    # A difference, what is shared, and the rounding of both.
    most = np.abs(X).sum(axis=1) * (2 + 3 + 2 * 0.25) * limit + 1e-3
    moved = small.node_scores(X, taxonomy) - whole.node_scores(X, taxonomy)
    assert (np.abs(moved[:, 1:]) <= most[:, None]).all()


def test_larger_limits_keep_less(model, taxonomy, X):
    ours = trained_packer(model, taxonomy, X)
    sizes = [ours.pack(limit).code.size for limit in (0.01, 0.1, 0.5, 1.0)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[0]


def test_trend_is_part_of_every_weight(model, taxonomy, X):
    weights, intercept = model
    rng = np.random.default_rng(3)
    trend = rng.integers(-30000, 30000, 40).astype(np.int16)
    slope = rng.normal(0, 1e-4, taxonomy.n_nodes).astype(np.float32)
    slope[0] = 0
    for node in filter(lambda node: _repeats(taxonomy, node), range(taxonomy.n_nodes)):
        slope[node] = slope[taxonomy.parent[node]]
    whole = (weights + np.outer(slope, trend), intercept)
    with_trend = packer(model, taxonomy, trend=(trend, slope))
    for limit in (0.0, 0.05):
        ours = with_trend.pack(limit)
        expected = packer(model, taxonomy).pack(limit).node_scores(X, taxonomy)
        expected = expected + X @ np.outer(trend, slope)
        assert np.allclose(ours.node_scores(X, taxonomy), expected, atol=1e-3)
    own, _ = with_trend.pack().coefficients(taxonomy.node_of("a2"), taxonomy)
    assert np.allclose(own, whole[0][taxonomy.node_of("a2")], atol=1e-5)


def test_very_large_weights_take_several_digits(taxonomy):
    weights = np.zeros((taxonomy.n_nodes, 3))
    a2, a3 = taxonomy.node_of("a2"), taxonomy.node_of("a3")
    weights[a2], weights[a3] = [90.0, -90.0, 0.01], [0.001, 5.0, 70.0]
    ours = packer((weights, np.zeros(taxonomy.n_nodes)), taxonomy).pack(0.004)
    difference = ours.coefficients(a2, taxonomy)[0] - ours.coefficients(a3, taxonomy)[0]
    assert np.allclose(difference, weights[a2] - weights[a3], atol=0.01)
    assert np.abs(ours.value.astype(int)).max() <= 128


def test_unseen_features_have_the_wider_limit(taxonomy):
    # Feature 0 is in rows under "a", feature 1 is not; both tell a2 from a3 by 0.16.
    a2, a3 = taxonomy.node_of("a2"), taxonomy.node_of("a3")
    weights = np.zeros((taxonomy.n_nodes, 2))
    weights[a2], weights[a3] = 0.08, -0.08
    X = sparse.csr_array(np.array([[1.0, 0.0], [0.0, 1.0]]))
    leaf = np.array([a2, taxonomy.node_of("c1")], dtype=np.int32)
    sightings = Sightings.gather(X, leaf, taxonomy)
    pruned = packer((weights, np.zeros(taxonomy.n_nodes)), taxonomy, sightings=sightings).pack(0.05)
    with_digits = [pruned.start[f + 1] > pruned.start[f] for f in (0, 1)]
    assert with_digits == [True, False]


def test_limit_is_the_largest_that_changes_few_trial_rows(model, taxonomy, X):
    scores = (X @ model[0].T + model[1]).astype(np.float32)
    leaf = walk_scores(scores, taxonomy)
    ours = trained_packer(model, taxonomy, X)
    chosen = safe_limit(ours, GREEDY, Trial(X, scores))
    magnified = N_CHANGED / -np.log(0.99)  # of 300 rows none may change
    whole = ours.pack(0.0).node_scores(X, taxonomy)

    def n_changed(limit):
        lost = magnified * (whole - ours.pack(limit).node_scores(X, taxonomy))
        return sum((walk_scores(scores + s * lost, taxonomy) != leaf).sum() for s in (-1, 1))

    assert chosen in LIMITS[1:-1]
    assert n_changed(chosen) <= 2 * N_CHANGED < n_changed(LIMITS[LIMITS.index(chosen) + 1])


def test_rows_without_their_own_part_score_as_if_left_out(taxonomy):
    # With orthogonal rows and no intercept, a row's score is its own part and nothing else.
    from scipy.optimize import brentq

    leaves = np.flatnonzero(taxonomy.is_leaf).astype(np.int32)
    X = sparse.csr_array(np.diag(np.linspace(0.5, 2.0, leaves.size)))
    is_above = np.array([[a in _path(taxonomy, leaf) for a in range(taxonomy.n_nodes)]
                         for leaf in leaves])  # fmt: skip
    C, squared = 10.0, np.square(X.diagonal())
    scores = np.zeros((leaves.size, taxonomy.n_nodes), dtype=np.float32)
    for i, node in np.ndindex(*scores.shape):
        sign = 1 if is_above[i, node] else -1
        score = brentq(lambda z, q=squared[i]: z - C * q / (1 + np.exp(z)), 0, 100)
        scores[i, node] = sign * score
    left = without_own_part(scores, X, leaves, taxonomy, np.full(leaves.size, C))
    assert np.allclose(left, 0, atol=1e-4)


def _path(taxonomy, node):
    path = {0}
    while node > 0:
        path.add(int(node))
        node = taxonomy.parent[node]
    return path


def _repeats(taxonomy, node):
    parent = taxonomy.parent[node]
    return parent > 0 and len(taxonomy.children(parent)) == 1
