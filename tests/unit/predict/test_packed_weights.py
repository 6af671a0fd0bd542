"""Packed weights against plain matrices and definitions written out."""

import numpy as np
import pytest
from scipy import sparse

from taxofit import Taxonomy
from taxofit.predict.dense_weights import DenseWeights
from taxofit.predict.packer import Packer, Sightings
from taxofit.predict.pruning import LIMITS, Trial, safe_limit
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


def packer(model, taxonomy, sightings=None):
    weights, intercept = model
    return Packer(sparse.csc_array(weights.T), intercept, taxonomy, sightings)


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


def test_limit_leaves_out_small_differences_and_keeps_scores_close(model, taxonomy, X):
    whole = packed(model, taxonomy)
    leaf = np.random.default_rng(0).choice(np.flatnonzero(taxonomy.is_leaf), 300).astype(np.int32)
    sightings = Sightings.gather(X, leaf, taxonomy)
    small = packer(model, taxonomy, sightings).pack(0.05)
    assert small.value.dtype == np.int16
    gone = np.abs(X).sum(axis=1).max() * (2 * 3 * 0.05 + 1e-3)
    difference = small.node_scores(X, taxonomy) - whole.node_scores(X, taxonomy)
    assert 0 < np.abs(difference[:, 1:]).max() < gone


def test_unseen_features_have_the_wider_limit(taxonomy):
    # Feature 0 is in rows under "a", feature 1 is not; both tell a2 from a3 by 0.2.
    a2, a3 = taxonomy.node_of("a2"), taxonomy.node_of("a3")
    weights = np.zeros((taxonomy.n_nodes, 2))
    weights[a2], weights[a3] = 0.1, -0.1
    X = sparse.csr_array(np.array([[1.0, 0.0], [0.0, 1.0]]))
    leaf = np.array([a2, taxonomy.node_of("c1")], dtype=np.int32)
    sightings = Sightings.gather(X, leaf, taxonomy)
    pruned = packer((weights, np.zeros(taxonomy.n_nodes)), taxonomy, sightings).pack(0.05)
    scores = pruned.node_scores(X, taxonomy)
    assert scores[0, a2] == pytest.approx(0.1, abs=1e-5)
    assert scores[1, a2] == 0


def test_limit_is_a_quarter_of_the_largest_that_keeps_the_leaves_of_trial_rows(model, taxonomy, X):
    scores = (X @ model[0].T + model[1]).astype(np.float32)
    leaf = walk_scores(scores, taxonomy)
    ours = packer(model, taxonomy, Sightings.gather(X, leaf, taxonomy))
    chosen = 4 * safe_limit(ours, GREEDY, Trial(X, scores))
    kept = {
        limit: np.mean(ours.pack(limit).find(X, taxonomy, GREEDY)[0][:, 0] == leaf)
        for limit in LIMITS
    }
    assert kept[chosen] >= 0.999
    assert all(kept[limit] < 0.999 for limit in LIMITS if limit > chosen)


def test_lost_scores_are_what_packing_takes_away(model, taxonomy, X):
    leaf = walk_scores((X @ model[0].T + model[1]).astype(np.float32), taxonomy)
    ours = packer(model, taxonomy, Sightings.gather(X, leaf, taxonomy))
    lost = ours.lost_scores(X, LIMITS).cumsum(axis=0)
    whole = ours.pack().node_scores(X, taxonomy)
    for k, limit in enumerate(LIMITS):
        # Only children repeat the node above them, which has no place in `lost`.
        own = [n for n in range(1, taxonomy.n_nodes) if not _repeats(taxonomy, n)]
        taken = whole[:, own] - ours.pack(limit).node_scores(X, taxonomy)[:, own]
        assert np.allclose(lost[k][:, own], taken, atol=5e-3)


def _repeats(taxonomy, node):
    parent = taxonomy.parent[node]
    return parent > 0 and len(taxonomy.children(parent)) == 1
