"""Texts as tf-idf rows over their words, word pairs or runs of characters."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from taxofit.datasets.features import CountEncoder
from taxofit.datasets.text_terms import TermCounter, terms_of
from taxofit.errors import DataError, ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    Arrays = dict[str, NDArray[Any]]
    State = dict[str, Any]

__all__ = ["ANALYSES", "TextEncoder"]

ANALYSES: dict[str, tuple[str, ...]] = {
    "words": ("words",),
    "pairs": ("pairs",),
    "chars": ("words", "chars"),
}
"""The kinds of terms behind each choice of features; see `taxofit.datasets.text_terms`."""


class TextEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn texts into tf-idf rows of length 1 over words, word pairs, or words and characters.

    Parameters
    ----------
    features : {"words", "pairs", "chars", "auto"}
        ``"pairs"``: words and pairs of neighbouring words. ``"chars"``: words, and runs of 2 to 5
        characters of what stands between blanks, its edges marked by a blank; both kinds share one
        row length. ``"auto"``: the best of them, for a classifier to choose.
    sublinear_tf : bool
        Use 1 + ln(count) in place of the count.
    min_df : int
        Leave out what occurs in fewer training rows.
    max_features : int, optional
        Keep only the most frequent of each kind.
    lowercase : bool

    Attributes
    ----------
    weights_ : CountEncoder
        The inverse document frequencies.

    Examples
    --------
    >>> encoder = TextEncoder(features="pairs").fit(["steel kettle", "steel mug"])
    >>> encoder.get_feature_names_out().tolist()
    ['kettle', 'mug', 'steel', 'steel kettle', 'steel mug']
    >>> encoder.transform(["copper kettle"]).toarray().tolist()
    [[1.0, 0.0, 0.0, 0.0, 0.0]]
    """

    def __init__(
        self,
        *,
        features: Literal["words", "pairs", "chars", "auto"] = "words",
        sublinear_tf: bool = True,
        min_df: int = 1,
        max_features: int | None = None,
        lowercase: bool = True,
    ) -> None:
        self.features = features
        self.sublinear_tf = sublinear_tf
        self.min_df = min_df
        self.max_features = max_features
        self.lowercase = lowercase

    def fit(self, X: Any, y: object = None) -> Self:
        """Learn the vocabulary and the weights from training texts, shape (n_rows,)."""
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Any, y: object = None) -> sparse.csr_matrix:  # noqa: ARG002  (as fit)
        """Fit, and return the training rows without analysing the texts twice."""
        texts = self._texts(X)
        self.counters_, parts = [], []
        for kind in self._kinds():
            try:
                counter, counts = TermCounter.learn(
                    kind, texts, min_df=self.min_df, max_features=self.max_features
                )
            except DataError:
                raise DataError(
                    f"no {self.features} to learn from in {len(texts)} texts; are these the right "
                    f"columns, and is min_df={self.min_df} small enough?"
                ) from None
            self.counters_.append(counter)
            parts.append(counts)
        counted = _side_by_side(parts)
        self.weights_ = CountEncoder(sublinear_tf=self.sublinear_tf).fit(counted)
        return self.weights_.weigh(counted)

    def fit_chunks(self, chunks: Iterable[Any]) -> Self:
        """Fit on texts that come some at a time; only the terms are kept, never the counts."""
        kinds = self._kinds()
        n_rows = 0
        with_term: list[Counter[str]] = [Counter() for _ in kinds]
        in_all: list[Counter[str]] = [Counter() for _ in kinds]
        for chunk in chunks:
            texts = self._texts(chunk)
            n_rows += len(texts)
            for kind, rows, total in zip(kinds, with_term, in_all, strict=True):
                for text in texts:
                    terms = terms_of(kind, text)
                    rows.update(set(terms))
                    total.update(terms)
        self.counters_, frequencies = [], []
        for kind, rows, total in zip(kinds, with_term, in_all, strict=True):
            chosen = self._chosen_terms(rows, total)
            self.counters_.append(TermCounter(kind, chosen))
            frequencies += [rows[term] for term in chosen]
        self.weights_ = CountEncoder(sublinear_tf=self.sublinear_tf)
        self.weights_.fit_frequencies(n_rows, np.array(frequencies))
        return self

    def _chosen_terms(self, rows: Counter[str], total: Counter[str]) -> list[str]:
        """Return the terms of enough rows, the most frequent of them, as `TermCounter.learn`."""
        terms = sorted(term for term, n_rows in rows.items() if n_rows >= self.min_df)
        if not terms:
            raise DataError(
                f"no {self.features} to learn from in these texts; are they the right columns, "
                f"and is min_df={self.min_df} small enough?"
            )
        if self.max_features is None:
            return terms
        order = np.argsort([-total[term] for term in terms], kind="stable")[: self.max_features]
        return [terms[place] for place in np.sort(order)]

    def transform(self, X: Any) -> sparse.csr_matrix:
        """Return tf-idf rows: CSR of float32, shape (n_rows, n_terms)."""
        if not hasattr(self, "weights_"):
            check_is_fitted(self)
        texts = self._texts(X)
        if len(texts) == 1:
            return self._transform_one(texts[0])
        weights: CountEncoder = self.weights_
        return weights.weigh(_side_by_side([counter.count(texts) for counter in self.counters_]))

    def _transform_one(self, text: str) -> sparse.csr_matrix:
        """Return the row of a single text, without the cost of matrices of counts."""
        counted: dict[int, int] = {}
        n_before = 0
        for counter in self.counters_:
            part = counter.count_one(text)
            counted |= {n_before + c: n for c, n in part.items()} if n_before else part
            n_before += len(counter.terms)
        columns = np.array(sorted(counted), dtype=np.int32)
        values = np.array([counted[column] for column in columns.tolist()], dtype=np.float32)
        self.weights_.weigh_one(columns, values)
        ends = np.array([0, columns.size], dtype=np.int32)
        return sparse.csr_matrix((values, columns, ends), shape=(1, n_before))

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:  # noqa: ARG002
        """Return the terms, one a column; runs of characters start with ``chars:``."""
        check_is_fitted(self)
        names = []
        for counter in self.counters_:
            prefix = "chars:" if counter.kind == "chars" else ""
            names += [prefix + term for term in counter.terms]
        return np.array(names, dtype=object)

    def to_state(self) -> tuple[State, Arrays]:
        """Return what `encoder_from_state` needs: a dictionary for JSON, and arrays."""
        check_is_fitted(self)
        terms = [counter.terms for counter in self.counters_]
        state = {"kind": "text", "settings": self.get_params(deep=False), "terms": terms}
        return state, {"idf": self.weights_.idf_}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the fitted encoder that ``to_state`` described."""
        encoder = cls(**state["settings"])
        kinds = encoder._kinds()
        if len(kinds) != len(state["terms"]):
            raise ModelError("the encoder's terms do not fit its settings; the file is damaged")
        encoder.counters_ = [
            TermCounter(kind, terms) for kind, terms in zip(kinds, state["terms"], strict=True)
        ]
        weighing = {"settings": {"sublinear_tf": encoder.sublinear_tf}}
        encoder.weights_ = CountEncoder.from_state(weighing, arrays)
        if encoder.weights_.n_features_in_ != sum(map(len, state["terms"])):
            raise ModelError("the encoder has not one weight a term; the file is damaged")
        return encoder

    def _kinds(self) -> tuple[str, ...]:
        if self.features not in ANALYSES:
            hint = "; only a classifier can choose them" if self.features == "auto" else ""
            raise DataError(
                f"features must be one of {', '.join(map(repr, ANALYSES))}, "
                f"not {self.features!r}{hint}"
            )
        return ANALYSES[self.features]

    def _texts(self, X: Any) -> list[str]:
        texts = _check_texts(X)
        return [text.lower() for text in texts] if self.lowercase else texts

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


def _check_texts(X: Any) -> list[str]:
    if isinstance(X, (str, bytes)):
        raise DataError("expected a collection of texts but got a single one; put it in a list")
    if getattr(X, "ndim", 1) == 2 and X.shape[1] == 1:
        X = np.asarray(X, dtype=object)[:, 0]
    texts: Iterable[Any] = X.tolist() if hasattr(X, "tolist") else X
    listed = list(texts)
    for row, text in enumerate(listed):
        if not isinstance(text, str):
            raise DataError(f"row {row} is not a text but {type(text).__name__}: {text!r:.40}")
    if not listed:
        raise DataError("there are no texts to encode")
    return listed


def _side_by_side(parts: list[Any]) -> sparse.csr_matrix:
    return parts[0] if len(parts) == 1 else sparse.csr_matrix(sparse.hstack(parts, format="csr"))
