"""Encoders: from texts and counts to the numbers that the solver reads.

All are scikit-learn transformers, are fitted on training rows only, and can be written down without
pickle: ``to_state`` gives a dictionary for JSON and named arrays, `encoder_from_state` takes them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_array, check_is_fitted

from taxofit.datasets.text_terms import TermCounter
from taxofit.errors import DataError, ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    Arrays = dict[str, NDArray[Any]]
    State = dict[str, Any]

__all__ = ["ColumnScaler", "CountEncoder", "TextEncoder", "encoder_from_state"]

ANALYSES: dict[str, tuple[str, ...]] = {
    "words": ("words",),
    "pairs": ("pairs",),
    "chars": ("words", "chars"),
}
"""The kinds of terms behind each choice of features; see `taxofit.datasets.text_terms`."""


class CountEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn counts into tf-idf rows of length 1.

    With n training rows of which df_j have feature j, an entry becomes

        x_ij = tf_ij · (1 + ln((1 + n) / (1 + df_j))),   then  x_i / ‖x_i‖₂

    where tf is the count, or 1 + ln(count) where ``sublinear_tf``. As in scikit-learn's
    TfidfTransformer.

    Parameters
    ----------
    sublinear_tf : bool

    Attributes
    ----------
    idf_ : ndarray of float32, shape (n_features,)

    Examples
    --------
    >>> counts = sparse.csr_matrix([[2.0, 0.0], [1.0, 1.0]])
    >>> CountEncoder().fit_transform(counts).toarray().round(2).tolist()
    [[1.0, 0.0], [0.5799999833106995, 0.8100000023841858]]
    """

    def __init__(self, *, sublinear_tf: bool = False) -> None:
        self.sublinear_tf = sublinear_tf

    def fit(self, X: Any, y: object = None) -> Self:  # noqa: ARG002  (scikit-learn's signature)
        """Count in how many rows each feature occurs; shape (n_rows, n_features)."""
        counts = _check_counts(X)
        n_rows, self.n_features_in_ = counts.shape
        n_with = np.bincount(counts.indices[counts.data > 0], minlength=self.n_features_in_)
        self.idf_ = (1 + np.log((1 + n_rows) / (1 + n_with))).astype(np.float32)
        return self

    def transform(self, X: Any) -> sparse.csr_matrix:
        """Return tf-idf rows: CSR of float32, same shape."""
        check_is_fitted(self)
        counts = _check_counts(X)
        _check_width(self, counts.shape[1])
        counts.eliminate_zeros()
        return self.weigh(counts)

    def weigh(self, counts: sparse.csr_matrix) -> sparse.csr_matrix:
        """Return float32 counts as tf-idf rows, in place and without a check."""
        if self.sublinear_tf:
            np.log(counts.data, out=counts.data)
            counts.data += 1
        counts.data *= self.idf_[counts.indices]
        rows: sparse.csr_matrix = normalize(counts, copy=False)
        return rows

    def weigh_one(self, columns: NDArray[np.int32], counts: NDArray[np.float32]) -> None:
        """Turn the counts of one row into tf-idf in place, to the last bit as `weigh` would."""
        if self.sublinear_tf:
            np.log(counts, out=counts)
            counts += 1
        counts *= self.idf_[columns]
        if counts.size:
            # scikit-learn squares in float32 and adds up in float64, one after another
            counts[:] = counts / np.sqrt(np.cumsum(counts * counts, dtype=np.float64)[-1])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns, those given or x0, x1, ..."""
        return _column_names(self, input_features)

    def to_state(self) -> tuple[State, Arrays]:
        """Return what `encoder_from_state` needs: a dictionary for JSON, and arrays."""
        check_is_fitted(self)
        return {"kind": "counts", "settings": self.get_params(deep=False)}, {"idf": self.idf_}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the fitted encoder that ``to_state`` described."""
        encoder = cls(**state["settings"])
        encoder.idf_ = np.asarray(arrays["idf"], dtype=np.float32)
        encoder.n_features_in_ = len(encoder.idf_)
        return encoder

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


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


class ColumnScaler(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Divide each column by its largest absolute value among the training rows.

    Columns that are 0 throughout stay so. Zeros stay zeros, so CSR stays CSR.

    Attributes
    ----------
    scale_ : ndarray of float64, shape (n_features,)

    Examples
    --------
    >>> ColumnScaler().fit([[1.0, 40.0], [2.0, 10.0]]).transform([[4.0, 20.0]])
    array([[2. , 0.5]])
    """

    def fit(self, X: Any, y: object = None) -> Self:  # noqa: ARG002  (scikit-learn's signature)
        """Find the largest absolute value of each column; shape (n_rows, n_features)."""
        X = check_array(X, accept_sparse="csr", dtype=np.float64)
        self.n_features_in_ = X.shape[1]
        largest: Any = abs(X).max(axis=0)
        if hasattr(largest, "toarray"):
            largest = largest.toarray().ravel()
        self.scale_ = np.where(largest > 0, largest, 1.0)
        return self

    def transform(self, X: Any) -> Any:
        """Return the scaled rows, dense or CSR as they came, in float64."""
        check_is_fitted(self)
        X = check_array(X, accept_sparse="csr", dtype=np.float64, copy=True)
        _check_width(self, X.shape[1])
        if hasattr(X, "indices"):
            X.data /= self.scale_[X.indices]
        else:
            X /= self.scale_
        return X

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns, those given or x0, x1, ..."""
        return _column_names(self, input_features)

    def to_state(self) -> tuple[State, Arrays]:
        """Return what `encoder_from_state` needs: a dictionary for JSON, and arrays."""
        check_is_fitted(self)
        return {"kind": "columns", "settings": {}}, {"scale": self.scale_}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the fitted scaler that ``to_state`` described."""
        scaler = cls(**state["settings"])
        scaler.scale_ = np.asarray(arrays["scale"], dtype=np.float64)
        scaler.n_features_in_ = len(scaler.scale_)
        return scaler

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags


ENCODERS = {
    "text": "taxofit.datasets.features.TextEncoder",
    "counts": "taxofit.datasets.features.CountEncoder",
    "columns": "taxofit.datasets.features.ColumnScaler",
    "frame": "taxofit.datasets.frame_encoder.FrameEncoder",
}


def encoder_from_state(state: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Any:
    """Return the fitted encoder that some encoder's ``to_state`` described.

    Examples
    --------
    >>> state, arrays = TextEncoder().fit(["steel kettle"]).to_state()
    >>> encoder_from_state(state, arrays).get_feature_names_out().tolist()
    ['kettle', 'steel']
    """
    kind = state.get("kind")
    if kind not in ENCODERS:
        raise ModelError(
            f"unknown encoder {kind!r}; this version knows {', '.join(map(repr, ENCODERS))}, "
            f"so the model may come from a newer one"
        )
    module, _, name = ENCODERS[kind].rpartition(".")
    try:
        return getattr(import_module(module), name).from_state(state, arrays)
    except (KeyError, TypeError) as error:
        raise ModelError(f"the state of the {kind!r} encoder is incomplete: {error}") from None


def _check_counts(X: Any) -> sparse.csr_matrix:
    counts = sparse.csr_matrix(check_array(X, accept_sparse="csr", dtype=np.float32, copy=True))
    if counts.nnz and counts.data.min() < 0:
        row = int(np.searchsorted(counts.indptr, int(np.argmin(counts.data)), side="right")) - 1
        raise DataError(
            f"Negative values in data passed to CountEncoder: row {row} has a count below 0"
        )
    return counts


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


def _check_width(encoder: Any, n_features: int) -> None:
    if n_features != encoder.n_features_in_:
        raise DataError(
            f"X has {n_features} features, but {type(encoder).__name__} is expecting "
            f"{encoder.n_features_in_} features as input"
        )


def _side_by_side(parts: list[Any]) -> sparse.csr_matrix:
    return parts[0] if len(parts) == 1 else sparse.csr_matrix(sparse.hstack(parts, format="csr"))


def _column_names(encoder: Any, given: Any) -> NDArray[Any]:
    check_is_fitted(encoder)
    if given is None:
        return np.array([f"x{column}" for column in range(encoder.n_features_in_)], dtype=object)
    names = np.asarray(given, dtype=object)
    _check_width(encoder, len(names))
    return names
