"""Probabilities, best labels, caution and explanations of a fitted classifier."""

import numpy as np
import pytest
from scipy import sparse

from taxofit import TaxonomyClassifier, load_model
from taxofit.datasets import make_shop_catalogue
from taxofit.errors import DataError


@pytest.fixture(scope="module")
def shop():
    data = make_shop_catalogue(2000, random_state=0).dataset
    n = len(data.y) // 2
    clf = TaxonomyClassifier(data.taxonomy, C=10.0, search="beam", encoder="words")
    return clf.fit(data.X[:n], data.y[:n]), data.X[n:], data.y[n:]


def test_probabilities_sum_to_one_and_their_best_is_the_prediction(shop):
    clf, texts, _ = shop
    proba = clf.predict_proba(texts)
    assert np.allclose(proba.sum(axis=1), 1)
    best = clf.classes_[proba.argmax(axis=1)]
    assert np.mean(best == clf.predict(texts)) >= 0.999  # the beam may miss one in a thousand
    assert np.array_equal(clf.decision_function(texts).argmax(axis=1), proba.argmax(axis=1))


def test_probabilities_do_not_depend_on_the_batch(shop):
    clf, texts, _ = shop
    alone = np.concatenate([clf.predict_proba(texts[i : i + 1]) for i in range(5)])
    assert np.array_equal(alone, clf.predict_proba(texts[:5]))


def test_probabilities_are_as_right_as_they_say(shop):
    clf, texts, y = shop
    proba = clf.predict_proba(texts)
    right = clf.classes_[proba.argmax(axis=1)] == np.asarray(y)
    assert abs(proba.max(axis=1).mean() - right.mean()) < 0.08
    _, confidence = clf.predict_with_score(texts)
    assert abs(confidence.mean() - right.mean()) < 0.08


def test_top_labels_are_the_most_probable_with_their_paths(shop):
    clf, texts, _ = shop
    proba, top = clf.predict_proba(texts[:20]), clf.predict_topk(texts[:20], k=3)
    order = np.argsort(-proba, axis=1, kind="stable")[:, :3]
    assert np.array_equal(top.labels, clf.classes_[order])
    assert np.allclose(top.probabilities, np.take_along_axis(proba, order, axis=1))
    for label, path in zip(top.labels.ravel(), top.paths.ravel(), strict=True):
        assert clf.original_taxonomy_.node_of(path) == clf.original_taxonomy_.node_of(label)


def test_more_labels_than_there_are_gives_all(shop):
    clf, texts, _ = shop
    assert clf.predict_topk(texts[:2], k=10**6).labels.shape == (2, clf.classes_.size)


def test_unsure_rows_stop_above_the_leaf(shop):
    clf, texts, _ = shop
    taxonomy, proba = clf.taxonomy_, clf.predict_proba(texts)
    of_class = {label: k for k, label in enumerate(clf.classes_)}
    sure, leaves = clf.predict(texts, min_confidence=0.9), clf.predict(texts)
    labels, scores = clf.predict_with_score(texts, min_confidence=0.9)
    assert np.array_equal(sure, labels)
    assert 0 < np.mean(sure != leaves) < 1
    for row, (label, leaf) in enumerate(zip(sure, leaves, strict=True)):
        node, end = taxonomy.node_of(leaf), taxonomy.node_of(label)
        below = [of_class[x] for x in _leaves_under(taxonomy, end) if x in of_class]
        assert scores[row] == pytest.approx(proba[row, below].sum())
        assert scores[row] >= 0.9
        while node != end:  # what was passed on the way up was too improbable
            below = [of_class[x] for x in _leaves_under(taxonomy, node) if x in of_class]
            assert proba[row, below].sum() < 0.9 + 1e-9
            node = taxonomy.parent[node]


def test_no_confidence_asked_for_gives_leaves(shop):
    clf, texts, _ = shop
    assert np.array_equal(clf.predict(texts, min_confidence=0.0), clf.predict(texts))


def test_explanation_adds_up(shop):
    clf, texts, _ = shop
    told = clf.explain(texts[0], n_candidates=100, n_features=1000)
    assert told.label == clf.predict(texts[:1])[0]
    assert told.steps[-1].label == told.label
    assert told.path == clf.original_taxonomy_.path_of(told.label)
    X = clf.encoder_.transform(texts[:1])
    for step in told.steps:
        best, second = step.candidates[0], step.candidates[1]
        weights, constant = clf.node_coef(best.label)
        assert best.score == pytest.approx((X @ weights)[0] + constant, abs=1e-4)
        gap = sum(share.contribution for share in best.features)
        gap += constant - clf.node_coef(second.label)[1]
        assert gap == pytest.approx(best.score - second.score, abs=1e-3)
    assert told.to_json()["steps"][0]["candidates"][0]["features"][0]["name"]


def test_explain_takes_one_row(shop):
    clf, texts, _ = shop
    with pytest.raises(DataError, match="one row, but got 2"):
        clf.explain(list(texts[:2]))


def test_saved_models_tell_the_same(shop, tmp_path):
    clf, texts, _ = shop
    clf.save(tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert np.array_equal(loaded.predict_proba(texts), clf.predict_proba(texts))
    assert loaded.search_ == clf.search_
    assert loaded.explain(texts[0]).to_json() == clf.explain(texts[0]).to_json()


def test_arrays_of_a_loaded_model_stay_in_the_file(shop, tmp_path):
    shop[0].save(tmp_path / "m")
    base = load_model(tmp_path / "m").weights_.value
    while base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)


def test_auto_search_is_never_worse_on_the_validation_rows():
    data = make_shop_catalogue(2000, random_state=1).dataset
    scores = {
        search: TaxonomyClassifier(data.taxonomy, C=10.0, search=search, encoder="words")
        .fit(data.X, data.y)
        .validation_score_
        for search in ("greedy", "beam", "auto")
    }
    assert scores["auto"] == max(scores.values())


def test_flat_path_score_is_flat_classification():
    data = make_shop_catalogue(2000, random_state=0).dataset
    flat = TaxonomyClassifier(data.taxonomy, flattening="lr", C=10.0, encoder="words")
    path = TaxonomyClassifier(
        data.taxonomy,
        flattening="td-lr",
        C=10.0,
        search="beam",
        gamma=0.0,
        beam_width=0,
        encoder="words",
        prune="none",
    )
    flat.set_params(prune="none")
    ours, theirs = path.fit(data.X, data.y), flat.fit(data.X, data.y)
    assert np.array_equal(ours.predict(data.X), theirs.predict(data.X))


def test_rows_that_are_not_numbers_are_refused():
    data = np.array([[1.0, np.nan], [0.0, 1.0]])
    clf = TaxonomyClassifier(flattening="lr", C=1.0).fit(sparse.csr_array(np.eye(2)), ["a", "b"])
    with pytest.raises(ValueError, match="NaN"):
        clf.predict(sparse.csr_array(data))


def _leaves_under(taxonomy, node):
    if taxonomy.is_leaf[node]:
        return [taxonomy.labels[node]]
    return [leaf for child in taxonomy.children(node) for leaf in _leaves_under(taxonomy, child)]
