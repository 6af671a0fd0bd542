"""What the classifier promises beyond scikit-learn's rules."""

import pickle
import warnings
from dataclasses import astuple

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from taxofit import DataError, Taxonomy, TaxonomyClassifier, TaxonomyError
from taxofit.datasets import make_taxonomy_classification
from taxofit.flattening import FlattenLevels, GlobalINF, KeepAll, LevelINF

ANIMALS = Taxonomy.from_paths(
    [("land", "cat"), ("land", "dog"), ("sea", "fish", "cod"), ("sea", "fish", "eel")]
)


@pytest.fixture(scope="module")
def small():
    return make_taxonomy_classification(
        600, depth=2, fan_out=3, n_features=200, n_inconsistent=0, random_state=1
    )


@pytest.fixture
def pets():
    rng = np.random.default_rng(0)
    centres = {"cat": (0, 0), "dog": (0, 4), "cod": (6, 0), "eel": (6, 4)}
    y = np.repeat(list(centres), 15)
    X = np.array([centres[label] for label in y]) + rng.normal(scale=0.5, size=(60, 2))
    return X, y


def fitted(X, y, **settings):
    return TaxonomyClassifier(ANIMALS, **{"flattening": "td-lr", "C": 10.0, **settings}).fit(X, y)


def test_rows_find_their_leaves(pets):
    X, y = pets
    assert (fitted(X, y).predict(X) == y).all()
    assert fitted(X, y).score(X, y) == 1.0


@pytest.mark.parametrize("column", [list, np.array, pd.Series, pl.Series])
def test_texts_without_an_encoder_are_refused_with_the_remedy(pets, column):
    X, y = pets
    texts = column([f"a {label}" for label in y])
    with pytest.raises(DataError, match="encoder='words'"):
        fitted(texts, y)
    with pytest.raises(DataError, match="encoder='words'"):
        fitted(X, y).predict(texts)


def test_paths_make_the_taxonomy_when_none_is_given(pets):
    X, y = pets
    paths = [ANIMALS.path_of(label) for label in y]
    clf = TaxonomyClassifier(flattening="td-lr", C=10.0).fit(X, paths)
    assert clf.original_taxonomy_ == Taxonomy.from_paths(paths)
    assert (clf.predict(X) == y).all()
    assert clf.score(X, paths) == 1.0


def test_one_column_per_level_is_a_path(pets):
    X, y = pets
    columns = np.array([[*ANIMALS.path_of(label), ""][:3] for label in y], dtype=object)
    for given in (columns, pd.DataFrame(columns), pl.DataFrame(columns.tolist(), orient="row")):
        clf = TaxonomyClassifier(flattening="td-lr", C=10.0).fit(X, given)
        assert (clf.predict(X) == y).all()


def test_plain_labels_make_a_flat_taxonomy(pets):
    X, y = pets
    clf = TaxonomyClassifier(C=1.0).fit(X, y)
    assert clf.taxonomy_.depth == 1
    assert clf.classes_.tolist() == sorted(set(y))


def test_frames_give_feature_names(pets):
    X, y = pets
    for frame in (pd.DataFrame(X, columns=["a", "b"]), pl.DataFrame(X, schema=["a", "b"])):
        clf = fitted(frame, y)
        assert clf.feature_names_in_.tolist() == ["a", "b"]
        assert (clf.predict(frame) == y).all()


def test_texts_are_encoded_and_predicted_from():
    texts = ["small grey cat", "big brown dog", "salt cod fillet", "smoked eel"] * 5
    clf = TaxonomyClassifier(ANIMALS, flattening="td-lr", C=100.0, encoder="words")
    clf.fit(texts, ["cat", "dog", "cod", "eel"] * 5)
    assert clf.predict(["a cat", "an eel"]).tolist() == ["cat", "eel"]


def test_leaf_without_rows_is_never_predicted(pets):
    X, y = pets
    keep = y != "eel"
    clf = fitted(X[keep], y[keep])
    assert "eel" not in clf.predict(X)
    assert clf.classes_.tolist() == ["cat", "dog", "cod"]
    with pytest.raises(TaxonomyError, match="no training rows"):
        clf.node_coef("eel")


def test_branch_without_rows_is_never_entered(pets):
    X, y = pets
    keep = np.isin(y, ["cat", "dog"])
    for settings in ({}, {"flattening": "global-inf", "C": "auto"}):
        assert set(fitted(X[keep], y[keep], **settings).predict(X)) == {"cat", "dog"}


@pytest.mark.parametrize("as_sparse", [False, True])
def test_prediction_of_a_row_does_not_depend_on_other_rows(small, as_sparse):
    X = small.X if as_sparse else small.X.toarray()
    clf = TaxonomyClassifier(small.taxonomy, flattening="td-lr", C=10.0).fit(X, small.y)
    labels, scores = clf.predict_with_score(X)
    for row in range(0, 600, 37):
        label, score = clf.predict_with_score(X[[row]])
        assert label[0] == labels[row]
        assert score[0] == scores[row]


def test_dense_and_sparse_rows_give_the_same_predictions(small):
    settings = {"flattening": "td-lr", "C": 1.0, "prune": "none"}
    from_sparse = TaxonomyClassifier(small.taxonomy, **settings).fit(small.X, small.y)
    from_dense = TaxonomyClassifier(small.taxonomy, **settings).fit(small.X.toarray(), small.y)
    agree = from_sparse.predict(small.X) == from_dense.predict(small.X.toarray())
    assert agree.mean() > 0.998
    label = small.taxonomy.leaves[0]
    np.testing.assert_allclose(
        from_sparse.node_coef(label)[0], from_dense.node_coef(label)[0], atol=2e-3
    )


def test_few_weights_are_all_kept_and_rounded_only_to_a_given_limit(small):
    settings = {"flattening": "td-lr", "C": 10.0}
    exact = TaxonomyClassifier(small.taxonomy, prune="none", **settings).fit(small.X, small.y)
    automatic = TaxonomyClassifier(small.taxonomy, **settings).fit(small.X, small.y)
    for name, array in exact.weights_.to_arrays().items():
        np.testing.assert_array_equal(array, automatic.weights_.to_arrays()[name])
    pruned = TaxonomyClassifier(small.taxonomy, prune=0.01, **settings).fit(small.X, small.y)
    assert pruned.weights_.value.dtype == np.int8
    assert (exact.predict(small.X) == pruned.predict(small.X)).mean() >= 0.99


def test_threads_do_not_change_the_model(small):
    one, two = (
        TaxonomyClassifier(small.taxonomy, flattening="td-lr", C=1.0, n_jobs=n).fit(
            small.X, small.y
        )
        for n in (1, 2)
    )
    for name, array in one.weights_.to_arrays().items():
        np.testing.assert_array_equal(array, two.weights_.to_arrays()[name])


def test_weight_two_is_the_row_twice(pets):
    X, y = pets
    weight = np.where(y == "cat", 2.0, 1.0)
    weighted = TaxonomyClassifier(ANIMALS, flattening="td-lr", C=1.0, tol=1e-8)
    weighted.fit(X, y, sample_weight=weight)
    twice = np.concatenate([np.arange(60), np.flatnonzero(y == "cat")])
    repeated = TaxonomyClassifier(ANIMALS, flattening="td-lr", C=1.0, tol=1e-8)
    repeated.fit(X[twice], y[twice])
    np.testing.assert_allclose(
        weighted.node_coef("land")[0], repeated.node_coef("land")[0], rtol=1e-5
    )


@pytest.mark.parametrize("search", ["greedy", "beam"])
def test_weighted_validation_rows_decide_like_repeated_ones(search):
    rng = np.random.default_rng(2)
    y = rng.choice(["cat", "dog", "cod", "eel"], 400)
    centres = {"cat": (0, 0), "dog": (1, 0), "cod": (0, 1), "eel": (1, 1)}
    X = np.array([centres[label] for label in y]) + 0.7 * rng.normal(size=(400, 2))
    # The weights change what the classes are worth: without them, other numbers come out.
    times = np.where(y == "cat", 6, np.where(y == "dog", 2, 1))
    model = TaxonomyClassifier(ANIMALS, flattening="global-inf", search=search, tol=1e-8)
    weighted = clone(model).fit(X, y, sample_weight=times)
    repeated = clone(model).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    plain = clone(model).fit(X, y)
    assert weighted.removed_ == repeated.removed_
    assert (weighted.C_, weighted.psi_) == (repeated.C_, repeated.psi_)
    assert weighted.search_ == repeated.search_
    assert weighted.validation_score_ == pytest.approx(repeated.validation_score_)
    assert weighted.validation_score_ != pytest.approx(plain.validation_score_)
    found, wanted = (astuple(m.calibration_) for m in (weighted, repeated))
    np.testing.assert_allclose(found, wanted, rtol=1e-3)
    assert not np.allclose(found, astuple(plain.calibration_), rtol=1e-2)


def test_pipeline_and_grid_search_work(small):
    texts = [" ".join(f"w{j}" for j in row.indices) for row in map(small.X.getrow, range(300))]
    search = GridSearchCV(
        make_pipeline(
            TfidfVectorizer(), TaxonomyClassifier(small.taxonomy, flattening="td-lr", C=1.0)
        ),
        {
            "taxonomyclassifier__C": [0.01, 10.0],
            "taxonomyclassifier__flattening": [KeepAll(), "lr"],
        },
        cv=2,
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        search.fit(texts, small.y[:300])
    assert search.best_params_["taxonomyclassifier__C"] == 10.0
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_fitted_model_pickles_and_clones(pets):
    X, y = pets
    clf = fitted(X, y, flattening=GlobalINF(psi=0.5))
    again = pickle.loads(pickle.dumps(clf))  # noqa: S301  (our own bytes)
    assert (again.predict(X) == clf.predict(X)).all()
    assert clone(clf).flattening == GlobalINF(psi=0.5)


def test_evidence_tells_what_became_of_every_node(small):
    clf = TaxonomyClassifier(small.taxonomy, flattening=GlobalINF(psi=0.0), C=1.0)
    clf.fit(small.X, small.y)
    table = clf.evidence_
    assert len(table) == small.taxonomy.n_nodes - 1
    assert set(table.label[table.removed]) == set(clf.removed_)
    internal = table[~table.is_leaf]
    assert (internal.removed == (internal.objective > internal.threshold)).all()
    top = table[table.level == 1]
    assert top.rows.sum() == 600
    assert np.isfinite(table.margin).all()
    mean = table.objective.mean()
    assert table.threshold.iloc[0] == pytest.approx(mean)


def test_removed_nodes_are_gone_from_the_taxonomy(small):
    clf = TaxonomyClassifier(small.taxonomy, flattening=FlattenLevels("top"), C=1.0)
    clf.fit(small.X, small.y)
    assert set(clf.removed_) == set(small.taxonomy.children_of(small.taxonomy.root))
    assert clf.taxonomy_ == small.taxonomy.flatten(clf.removed_)
    with pytest.raises(TaxonomyError, match="unknown label"):
        clf.node_coef(clf.removed_[0])


def test_level_inf_takes_one_psi_per_level(small):
    clf = TaxonomyClassifier(small.taxonomy, flattening=LevelINF(psi=[0.2]), C=1.0)
    assert clf.fit(small.X, small.y).psi_ == (0.2,)
    with pytest.raises(TaxonomyError, match="got 3 values of psi, but 1 levels"):
        TaxonomyClassifier(small.taxonomy, flattening=LevelINF(psi=[1, 2, 3]), C=1.0).fit(
            small.X, small.y
        )


def test_column_order_of_siblings_decides_ties():
    X = np.array([[0.0], [0.0], [0.0], [0.0]])
    clf = TaxonomyClassifier(Taxonomy.from_labels(["b", "a"]), flattening="lr", C=1.0)
    assert clf.fit(X, ["a", "b", "a", "b"]).predict([[0.0]]).tolist() == ["b"]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"C": -1.0}, "C must be a positive number or 'auto', but is -1.0"),
        ({"C": "best"}, "C must be a positive number"),
        ({"flattening": "inf"}, "unknown flattening 'inf'; choose from td-lr"),
        ({"prune": "some"}, "prune must be 'auto', 'none' or a number"),
        ({"flattening": GlobalINF(psi=-2)}, "psi must be a number not below 0"),
        ({"flattening": FlattenLevels("multiple")}, "level 3 cannot be flattened"),
    ],
)
def test_bad_settings_are_named(pets, settings, problem):
    X, y = pets
    with pytest.raises(ValueError, match=problem):
        fitted(X, y, **settings)


def test_bad_labels_are_named(pets):
    X, y = pets
    with pytest.raises(TaxonomyError, match="unknown label 'cow'"):
        fitted(X, np.where(y == "cat", "cow", y))
    with pytest.raises(DataError, match=r"15 rows are labelled with internal nodes, .* 'fish'"):
        fitted(X, np.where(y == "cod", "fish", y))
    with pytest.raises(DataError, match="X has 60 rows but y has 59"):
        fitted(X, y[:59])


def test_nodes_that_do_not_converge_are_named():
    rng = np.random.default_rng(0)
    X = sparse.random_array((200, 50), density=0.2, rng=rng).tocsr()
    y = rng.integers(0, 3, 200)
    with pytest.warns(ConvergenceWarning, match=r"3 node models did not converge in 1 steps: 0 "):
        TaxonomyClassifier(flattening="lr", C=1000.0, max_iter=1).fit(X, y)
