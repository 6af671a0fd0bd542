"""Encoders of numbers: counts as tf-idf, columns scaled; and how encoders are written down.

All are scikit-learn transformers, are fitted on training rows only, and can be written down without
pickle: ``to_state`` gives a dictionary for JSON and named arrays, `encoder_from_state` takes them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_array, check_is_fitted

from taxofit.errors import DataError, ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    Arrays = dict[str, NDArray[Any]]
    State = dict[str, Any]

__all__ = ["ColumnScaler", "CountEncoder", "encoder_from_state"]


MAX_IDF = 1e3  # 1 + ln(rows) for more rows than there are atoms


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
        return self.fit_chunks([X])

    def fit_chunks(self, chunks: Iterable[Any]) -> Self:
        """Fit on rows that come some at a time, at least once."""
        n_rows, n_with = 0, np.zeros(0, dtype=np.int64)
        for chunk in chunks:
            counts = _check_counts(chunk)
            n_rows, n_features = n_rows + counts.shape[0], counts.shape[1]
            found = np.bincount(counts.indices[counts.data > 0], minlength=n_features)
            n_with = found + n_with if n_with.size else found
        return self.fit_frequencies(n_rows, n_with)

    def fit_frequencies(self, n_rows: int, n_with: NDArray[np.int64]) -> Self:
        """Fit on what was counted: rows in all, and rows with each feature."""
        self.n_features_in_ = n_with.size
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
        encoder.idf_ = _saved_numbers("idf", arrays["idf"]).astype(np.float32)
        encoder.n_features_in_ = len(encoder.idf_)
        return encoder

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float32"]
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
        return self.fit_chunks([X])

    def fit_chunks(self, chunks: Iterable[Any]) -> Self:
        """Fit on rows that come some at a time, at least once."""
        largest: Any = 0.0
        for chunk in chunks:
            X = check_array(chunk, accept_sparse="csr", dtype=np.float64)
            self.n_features_in_ = X.shape[1]
            found = abs(X).max(axis=0)
            largest = np.maximum(
                largest, found.toarray().ravel() if hasattr(found, "toarray") else found
            )
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
        scaler.scale_ = _saved_numbers("scale", arrays["scale"]).astype(np.float64)
        scaler.n_features_in_ = len(scaler.scale_)
        return scaler

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags


ENCODERS = {
    "text": "taxofit.datasets.text_encoder.TextEncoder",
    "counts": "taxofit.datasets.features.CountEncoder",
    "columns": "taxofit.datasets.features.ColumnScaler",
    "frame": "taxofit.datasets.frame_encoder.FrameEncoder",
}


def encoder_from_state(state: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Any:
    """Return the fitted encoder that some encoder's ``to_state`` described.

    Examples
    --------
    >>> from taxofit.datasets import TextEncoder
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


def _saved_numbers(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Return an encoder's array from a file, which anybody may have written."""
    is_plain = array.ndim == 1 and array.dtype.kind == "f"
    if not is_plain or not np.isfinite(array).all() or (array <= 0).any():
        raise ModelError(f"{name} of the encoder should be positive numbers; the file is damaged")
    if name == "idf" and array.size and array.max() > MAX_IDF:
        raise ModelError(f"{name} of the encoder is beyond {MAX_IDF:g}; the file is damaged")
    return array


def _check_counts(X: Any) -> sparse.csr_matrix:
    counts = sparse.csr_matrix(check_array(X, accept_sparse="csr", dtype=np.float32, copy=True))
    if counts.nnz and counts.data.min() < 0:
        row = int(np.searchsorted(counts.indptr, int(np.argmin(counts.data)), side="right")) - 1
        raise DataError(
            f"Negative values in data passed to CountEncoder: row {row} has a count below 0"
        )
    return counts


def _check_width(encoder: Any, n_features: int) -> None:
    if n_features != encoder.n_features_in_:
        raise DataError(
            f"X has {n_features} features, but {type(encoder).__name__} is expecting "
            f"{encoder.n_features_in_} features as input"
        )


def _column_names(encoder: Any, given: Any) -> NDArray[Any]:
    check_is_fitted(encoder)
    if given is None:
        return np.array([f"x{column}" for column in range(encoder.n_features_in_)], dtype=object)
    names = np.asarray(given, dtype=object)
    _check_width(encoder, len(names))
    return names
