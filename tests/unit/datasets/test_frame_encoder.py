from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from taxofit import DataError, ModelError, TaxonomyClassifier, load_model
from taxofit.datasets import FrameEncoder, TextEncoder, encoder_from_state, from_frame

FRAME = pd.DataFrame(
    {
        "title": ["steel kettle", "blue mug", None, "red mug"],
        "notes": ["with lid", "", "large", "lid"],
        "cm": [20.0, 9.0, np.nan, 11.0],
        "price": ["12,5", "3", "4.5", "1000"],
        "brand": ["Acme", None, "Zeta ", "Acme"],
    }
)
COLUMNS = {"text": ["title", "notes"], "numeric": ["cm", "price"], "category": ["brand"]}


def as_array(frame):
    return frame[[*COLUMNS["text"], *COLUMNS["numeric"], *COLUMNS["category"]]].to_numpy(object)


def test_texts_are_joined_numbers_scaled_and_categories_given_a_column_each():
    encoder = FrameEncoder(**COLUMNS)
    rows = encoder.fit_transform(FRAME).toarray()
    joined = ["steel kettle with lid", "blue mug", "large", "red mug lid"]
    words = TextEncoder().fit(joined)
    names = words.get_feature_names_out().tolist()
    names += ["cm", "price", "missing:cm", "brand=Acme", "brand=Zeta"]
    assert encoder.get_feature_names_out().tolist() == names
    n = len(names) - 5
    np.testing.assert_allclose(rows[:, :n], words.transform(joined).toarray())
    for column, values in ((n, [20.0, 9.0, np.nan, 11.0]), (n + 1, [12.5, 3.0, 4.5, 1000.0])):
        known = np.array([v for v in values if not np.isnan(v)])
        reach = max(abs(np.percentile(known, share) - np.median(known)) for share in (5, 95))
        expected = [
            0.0 if np.isnan(v) else max(-1.0, min(1.0, (v - np.median(known)) / reach))
            for v in values
        ]
        np.testing.assert_allclose(rows[:, column], expected, rtol=1e-6)
    assert rows[:, n + 2].tolist() == [0, 0, 1, 0]
    assert rows[:, n + 3 :].tolist() == [[1, 0], [0, 0], [0, 1], [1, 0]]


@pytest.mark.parametrize("make", [pl.from_pandas, as_array], ids=["polars", "array"])
def test_frames_of_any_kind_and_arrays_give_the_same_rows(make):
    encoder = FrameEncoder(**COLUMNS, texts="apart").fit(FRAME)
    assert (encoder.transform(make(FRAME)) != encoder.transform(FRAME)).nnz == 0


@pytest.mark.parametrize("texts", ["joined", "apart"])
def test_a_row_alone_is_what_it_is_among_others(texts):
    encoder = FrameEncoder(**COLUMNS, texts=texts).fit(FRAME)
    together = encoder.transform(FRAME).toarray()
    for row in range(len(FRAME)):
        alone = encoder.transform(FRAME.iloc[[row]]).toarray()
        np.testing.assert_array_equal(alone[0], together[row])


def test_texts_apart_have_length_one_together():
    encoder = FrameEncoder(text=["title", "notes"], texts="apart").fit(FRAME)
    assert "notes:lid" in encoder.get_feature_names_out()
    lengths = np.linalg.norm(encoder.transform(FRAME).toarray(), axis=1)
    np.testing.assert_allclose(lengths, [1, 0.5**0.5, 0.5**0.5, 1], rtol=1e-6)


def test_unseen_categories_and_a_constant_column_say_nothing():
    frame = pd.DataFrame({"cm": [5, 5], "brand": ["a", "b"]})
    encoder = FrameEncoder(numeric=["cm"], category=["brand"]).fit(frame)
    new = pd.DataFrame({"cm": [5], "brand": ["c"]})
    assert encoder.transform(new).toarray().tolist() == [[0.0, 0.0, 0.0]]


def test_the_round_trip_is_exact():
    encoder = FrameEncoder(**COLUMNS, features="chars", texts="apart").fit(FRAME)
    state, arrays = encoder.to_state()
    again = encoder_from_state(json.loads(json.dumps(state)), arrays)
    assert (again.transform(FRAME) != encoder.transform(FRAME)).nnz == 0
    with pytest.raises(ModelError, match="do not fit its columns"):
        encoder_from_state({**state, "categories": []}, arrays)
    with pytest.raises(ModelError, match="incomplete"):
        encoder_from_state(state, {})


def test_a_model_on_mixed_columns_is_saved_and_loaded(tmp_path):
    rng = np.random.default_rng(0)
    kinds = [("Home", "Mugs"), ("Home", "Pans"), ("Pets", "Cats")]
    truth = [kinds[k] for k in rng.integers(0, 3, 60)]
    frame = pd.DataFrame(
        {
            "title": ["thing"] * 60,
            "cm": [10 * kinds.index(t) + rng.normal() for t in truth],
            "brand": ["home" if t[0] == "Home" else "pets" for t in truth],
            "path": [" > ".join(t) for t in truth],
        }
    )
    data = from_frame(
        frame, text="title", numeric="cm", category="brand", label_path="path", name="shop"
    )
    encoder = FrameEncoder(text=["title"], numeric=["cm"], category=["brand"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = TaxonomyClassifier(data.taxonomy, encoder=encoder, C=100.0).fit(data.X, data.y)
    fitted.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.predict(data.X).tolist() == fitted.predict(frame).tolist()
    assert np.mean(again.predict(frame) == data.y) > 0.9


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "name at least one column"),
        ({"text": ["title"], "category": ["title"]}, "'title' is named twice"),
        ({"text": ["name"]}, "no column 'name'"),
        ({"numeric": ["title"]}, "row 0: column 'title' is not a number: 'steel kettle'"),
        ({"text": ["title"], "texts": "mixed"}, "texts must be 'joined' or 'apart'"),
    ],
)
def test_what_cannot_be_encoded_is_named(settings, message):
    with pytest.raises(DataError, match=message):
        FrameEncoder(**settings).fit(FRAME)


def test_what_is_no_table_is_refused():
    with pytest.raises(DataError, match="expected a pandas, polars or pyarrow table"):
        FrameEncoder(text=["title"]).fit("steel kettle")
    with pytest.raises(DataError, match="an array with 1 columns"):
        FrameEncoder(text=["title"]).fit([["a", "b"]])
