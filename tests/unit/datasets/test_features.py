from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize
from sklearn.utils.estimator_checks import parametrize_with_checks

from taxofit import DataError, ModelError
from taxofit.datasets import ColumnScaler, CountEncoder, TextEncoder, encoder_from_state

TEXTS = [
    "Steel kettle with a lid",
    "copper kettle, copper lid",
    "guppies and other fish",
    "Fish food for guppies",
]
COUNTS = sparse.csr_matrix(np.random.default_rng(0).poisson(0.7, (30, 12)).astype(float))


def rebuilt(encoder):
    state, arrays = encoder.to_state()
    return encoder_from_state(json.loads(json.dumps(state)), arrays)


@pytest.mark.parametrize(("features", "ngrams"), [("words", (1, 1)), ("pairs", (1, 2))])
@pytest.mark.parametrize("sublinear_tf", [False, True])
def test_words_and_pairs_equal_scikit_learns_tf_idf(features, ngrams, sublinear_tf):
    ours = TextEncoder(features=features, sublinear_tf=sublinear_tf)
    theirs = TfidfVectorizer(ngram_range=ngrams, sublinear_tf=sublinear_tf)
    rows = ours.fit_transform(TEXTS)
    np.testing.assert_allclose(rows.toarray(), theirs.fit_transform(TEXTS).toarray(), rtol=1e-6)
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    assert rows.format == "csr"
    assert rows.dtype == np.float32


def test_words_and_characters_share_one_row_length():
    words = TfidfVectorizer(norm=None, sublinear_tf=True)
    chars = TfidfVectorizer(norm=None, sublinear_tf=True, analyzer="char_wb", ngram_range=(2, 5))
    both = sparse.hstack([words.fit_transform(TEXTS), chars.fit_transform(TEXTS)]).tocsr()
    ours = TextEncoder(features="chars").fit_transform(TEXTS)
    np.testing.assert_allclose(ours.toarray(), normalize(both).toarray(), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("sublinear_tf", [False, True])
def test_counts_equal_scikit_learns_tf_idf(sublinear_tf):
    ours = CountEncoder(sublinear_tf=sublinear_tf).fit(COUNTS[:20])
    theirs = TfidfTransformer(sublinear_tf=sublinear_tf).fit(COUNTS[:20])
    np.testing.assert_allclose(
        ours.transform(COUNTS[20:]).toarray(),
        theirs.transform(COUNTS[20:]).toarray(),
        rtol=1e-5,
        atol=1e-7,
    )


def test_columns_are_divided_by_their_training_maximum():
    dense = np.array([[1.0, -4.0, 0.0], [2.0, 2.0, 0.0]])
    for X in (dense, sparse.csr_matrix(dense)):
        scaled = ColumnScaler().fit(X).transform(X)
        assert sparse.issparse(scaled) == sparse.issparse(X)
        np.testing.assert_array_equal(
            scaled.toarray() if sparse.issparse(scaled) else scaled,
            [[0.5, -1, 0], [1, 0.5, 0]],
        )
    assert dense[0, 0] == 1.0


@pytest.mark.parametrize("features", ["words", "pairs", "chars"])
def test_text_encoder_survives_the_round_trip_exactly(features):
    encoder = TextEncoder(features=features, min_df=2).fit(TEXTS)
    again = rebuilt(encoder)
    assert (again.transform(TEXTS) != encoder.transform(TEXTS)).nnz == 0
    assert again.get_params() == encoder.get_params()
    assert again.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()


@pytest.mark.parametrize("encoder", [CountEncoder(sublinear_tf=True), ColumnScaler()])
def test_number_encoders_survive_the_round_trip_exactly(encoder):
    again = rebuilt(encoder.fit(COUNTS))
    assert (again.transform(COUNTS) != encoder.transform(COUNTS)).nnz == 0


def test_rows_are_left_as_they_were():
    before = COUNTS.copy()
    CountEncoder(sublinear_tf=True).fit_transform(COUNTS)
    ColumnScaler().fit_transform(COUNTS)
    assert (before != COUNTS).nnz == 0


@parametrize_with_checks([CountEncoder(), CountEncoder(sublinear_tf=True), ColumnScaler()])
def test_scikit_learn_finds_nothing_to_object_to(estimator, check):
    check(estimator)


@pytest.mark.parametrize("encoder", [TextEncoder(min_df=2), CountEncoder(), ColumnScaler()])
def test_encoders_are_cloned_by_their_parameters(encoder):
    assert clone(encoder).get_params() == encoder.get_params()


def test_encoders_work_in_pipelines():
    model = make_pipeline(TextEncoder(), LogisticRegression()).fit(TEXTS, [0, 0, 1, 1])
    assert model.predict(["a kettle", "a fish"]).tolist() == [0, 1]
    assert len(model[:-1].get_feature_names_out()) == model[-1].coef_.shape[1]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("one text", "put it in a list"),
        (["a text", None], "row 1 is not a text but NoneType"),
        ([], "no texts"),
        (["", " "], "no words to learn from"),
    ],
)
def test_what_is_no_text_is_refused(texts, message):
    with pytest.raises(DataError, match=message):
        TextEncoder().fit(texts)


def test_unknown_features_are_refused():
    with pytest.raises(DataError, match="features must be one of 'words', 'pairs', 'chars'"):
        TextEncoder(features="letters").fit(TEXTS)


def test_wrong_width_and_negative_counts_are_refused():
    encoder = CountEncoder().fit(COUNTS)
    with pytest.raises(DataError, match="X has 5 features, but CountEncoder is expecting 12"):
        encoder.transform(COUNTS[:, :5])
    with pytest.raises(DataError, match="row 1 has a count below 0"):
        encoder.fit([[1.0], [-1.0]])


def test_damaged_or_foreign_states_are_model_errors():
    state, arrays = TextEncoder().fit(TEXTS).to_state()
    for bad_state, bad_arrays in [
        ({"kind": "quantum"}, arrays),
        ({"kind": "text"}, arrays),
        ({**state, "terms": [["fish"]]}, arrays),
        ({**state, "terms": []}, arrays),
        (state, {}),
        ({**state, "settings": {"colour": 1}}, arrays),
    ]:
        with pytest.raises(ModelError):
            encoder_from_state(bad_state, bad_arrays)
