from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from taxofit import DataError
from taxofit.datasets import TextEncoder
from taxofit.datasets.text_terms import TermCounter

THEIRS = {
    "words": {},
    "pairs": {"ngram_range": (1, 2)},
    "chars": {"analyzer": "char_wb", "ngram_range": (2, 5)},
}
texts = st.lists(st.text(alphabet="ab é-\t.1", max_size=25), min_size=1, max_size=6)


@pytest.mark.parametrize("kind", THEIRS)
@given(texts=texts, new=texts, min_df=st.integers(1, 2))
@settings(max_examples=60, deadline=None)
def test_terms_and_counts_are_those_of_scikit_learn(kind, texts, new, min_df):
    theirs = CountVectorizer(**THEIRS[kind], min_df=min_df, lowercase=False)
    try:
        expected = theirs.fit_transform(texts)
    except ValueError:  # nothing is left: ours says so too
        with pytest.raises(DataError):
            TermCounter.learn(kind, texts, min_df=min_df)
        return
    counter, counts = TermCounter.learn(kind, texts, min_df=min_df)
    assert counter.terms == theirs.get_feature_names_out().tolist()
    np.testing.assert_array_equal(counts.toarray(), expected.toarray())
    later = theirs.transform(new).toarray()
    np.testing.assert_array_equal(counter.count(new).toarray(), later)
    for row, text in enumerate(new):
        assert counter.count_one(text) == {c: later[row, c] for c in later[row].nonzero()[0]}


def test_the_most_frequent_terms_are_kept():
    counter, counts = TermCounter.learn("words", ["bb aa cc", "cc bb", "cc dd"], max_features=2)
    assert counter.terms == ["bb", "cc"]
    assert counts.toarray().tolist() == [[1, 1], [1, 1], [0, 1]]


@pytest.mark.parametrize("features", ["words", "pairs", "chars"])
@pytest.mark.parametrize("sublinear_tf", [False, True])
def test_a_single_text_gives_the_row_it_has_among_others_to_the_last_bit(features, sublinear_tf):
    shop = ["steel kettle with lid", "kettle kettle of copper", "lid for a steel steel pan", ""]
    encoder = TextEncoder(features=features, sublinear_tf=sublinear_tf).fit(shop)
    together = encoder.transform(shop)
    for row, text in enumerate(shop):
        alone = encoder.transform([text])
        assert alone.shape == (1, together.shape[1])
        np.testing.assert_array_equal(alone.toarray(), together[[row]].toarray())
