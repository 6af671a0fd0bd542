"""Columns of several kinds side by side: texts, numbers and categories as one sparse row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import narwhals as nw
import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from taxofit.datasets.table_chunks import is_missing, parse_number
from taxofit.datasets.text_encoder import TextEncoder
from taxofit.errors import DataError, ModelError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Arrays = dict[str, NDArray[Any]]
    State = dict[str, Any]
    Columns = list[list[Any]]

__all__ = ["FrameEncoder"]

TEXT_CHOICES = ("joined", "apart")
MIDDLE_SHARE = (5.0, 95.0)  # percentiles between which a column's values are taken at their word


class FrameEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn columns of texts, numbers and categories into sparse rows.

    Each kind of column weighs about as much as the texts, whose part of a row has length 1:

    - a number becomes (x - m) / s, cut off at ±1, where m is the median of the training rows and s
      the larger distance from it to their 5th and 95th percentile. A missing number is 0, and 1 in
      a column of its own where training rows had missing ones too;
    - a category becomes a 1 in its own column. Missing ones and those that training rows never had
      become nothing.

    Parameters
    ----------
    text, numeric, category : sequence of str
        Columns of the frame. An array without names has its columns in this order.
    features : {"words", "pairs", "chars", "auto"}
        What is counted in texts; see `TextEncoder`.
    texts : {"joined", "apart"}
        One vocabulary for all columns of text, or one for each; their parts of a row then have
        length 1/√(number of text columns).
    min_df : int
        As in `TextEncoder`.

    Attributes
    ----------
    text_encoders_ : list of TextEncoder
    categories_ : list of list of str
        The known values of each column of categories.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"title": ["red mug", "mug"], "cm": [9, 12], "brand": ["Acme", None]})
    >>> encoder = FrameEncoder(text=["title"], numeric=["cm"], category=["brand"]).fit(frame)
    >>> encoder.get_feature_names_out().tolist()
    ['mug', 'red', 'cm', 'brand=Acme']
    >>> encoder.transform(pd.DataFrame({"title": [""], "cm": [99], "brand": ["Other"]})).toarray()
    array([[0., 0., 1., 0.]], dtype=float32)
    """

    def __init__(
        self,
        *,
        text: Sequence[str] = (),
        numeric: Sequence[str] = (),
        category: Sequence[str] = (),
        features: Literal["words", "pairs", "chars", "auto"] = "words",
        texts: Literal["joined", "apart"] = "joined",
        min_df: int = 1,
    ) -> None:
        self.text = text
        self.numeric = numeric
        self.category = category
        self.features = features
        self.texts = texts
        self.min_df = min_df

    # ------------------------------------------------------------------ fitting and using

    def fit(self, X: Any, y: object = None) -> Self:
        """Learn vocabularies, scales and categories from training rows."""
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Any, y: object = None) -> sparse.csr_matrix:  # noqa: ARG002  (as fit)
        """Fit, and return the training rows."""
        self._check_settings()
        texts, numbers, categories = self._split(X)
        self.text_encoders_ = []
        parts = []
        for joined in self._texts(texts):
            encoder = TextEncoder(features=self.features, min_df=self.min_df)
            parts.append(encoder.fit_transform(joined))
            self.text_encoders_.append(encoder)
        table = self._numbers(numbers)
        self.centre_, self.scale_, self.has_missing_ = _scale(table)
        self.categories_ = [
            sorted({str(value).strip() for value in column if not is_missing(value)})
            for column in categories
        ]
        self._index_categories()
        return self._joined(parts, table, categories)

    def transform(self, X: Any) -> sparse.csr_matrix:
        """Return the rows: CSR of float32, shape (n_rows, n_columns)."""
        if not hasattr(self, "categories_"):
            check_is_fitted(self)
        texts, numbers, categories = self._split(X)
        parts = [
            encoder.transform(joined)
            for encoder, joined in zip(self.text_encoders_, self._texts(texts), strict=True)
        ]
        return self._joined(parts, self._numbers(numbers), categories)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:  # noqa: ARG002
        """Return terms, numbers (``missing:cm`` where there are such) and ``brand=Acme``."""
        check_is_fitted(self)
        names: list[str] = []
        for position, encoder in enumerate(self.text_encoders_):
            prefix = f"{self.text[position]}:" if self.texts == "apart" else ""
            names += [prefix + term for term in encoder.get_feature_names_out()]
        names += self.numeric
        names += [
            f"missing:{column}"
            for column, has_missing in zip(self.numeric, self.has_missing_, strict=True)
            if has_missing
        ]
        for column_name, values in zip(self.category, self.categories_, strict=True):
            names += [f"{column_name}={value}" for value in values]
        return np.array(names, dtype=object)

    # ------------------------------------------------------------------ saving

    def to_state(self) -> tuple[State, Arrays]:
        """Return what `encoder_from_state` needs: a dictionary for JSON, and arrays."""
        check_is_fitted(self)
        texts = [encoder.to_state() for encoder in self.text_encoders_]
        settings = {
            name: value if isinstance(value, (str, int)) else list(value)
            for name, value in self.get_params(deep=False).items()
        }
        state = {
            "kind": "frame",
            "settings": settings,
            "texts": [state for state, _ in texts],
            "categories": self.categories_,
        }
        arrays = {f"idf_{k}": arrays["idf"] for k, (_, arrays) in enumerate(texts)}
        arrays |= {"centre": self.centre_, "scale": self.scale_, "has_missing": self.has_missing_}
        return state, arrays

    @classmethod
    def from_state(cls, state: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the fitted encoder that ``to_state`` described."""
        encoder = cls(**state["settings"])
        encoder.text_encoders_ = [
            TextEncoder.from_state(text, {"idf": arrays[f"idf_{k}"]})
            for k, text in enumerate(state["texts"])
        ]
        encoder.centre_ = np.asarray(arrays["centre"], dtype=np.float64)
        encoder.scale_ = np.asarray(arrays["scale"], dtype=np.float64)
        encoder.has_missing_ = np.asarray(arrays["has_missing"], dtype=bool)
        encoder.categories_ = [list(values) for values in state["categories"]]
        n_texts = 0 if not encoder.text else len(encoder.text) if encoder.texts == "apart" else 1
        sizes = (encoder.centre_.size, encoder.scale_.size, encoder.has_missing_.size)
        if (
            len(encoder.text_encoders_) != n_texts
            or set(sizes) != {len(encoder.numeric)}
            or len(encoder.categories_) != len(encoder.category)
        ):
            raise ModelError("the encoder's parts do not fit its columns; the file is damaged")
        encoder._index_categories()
        return encoder

    # ------------------------------------------------------------------ pieces

    def _check_settings(self) -> None:
        columns = [*self.text, *self.numeric, *self.category]
        if not columns:
            raise DataError("name at least one column: text=, numeric= or category=")
        twice = next((column for column in columns if columns.count(column) > 1), None)
        if twice is not None:
            raise DataError(f"the column {twice!r} is named twice; a column is of one kind")
        if self.texts not in TEXT_CHOICES:
            raise DataError(f"texts must be 'joined' or 'apart', not {self.texts!r}")

    def _split(self, X: Any) -> tuple[Columns, Columns, Columns]:
        """Return the columns by kind, each as a list of values."""
        names = [*self.text, *self.numeric, *self.category]
        frame = None if isinstance(X, (np.ndarray, list)) else _frame(X)
        if frame is None:
            columns = _columns_of_array(X, len(names))
        else:
            missing = [name for name in names if name not in frame.columns]
            if missing:
                raise DataError(f"the frame has no column {missing[0]!r}")
            columns = [frame[name].to_list() for name in names]
        first, second = len(self.text), len(self.text) + len(self.numeric)
        return columns[:first], columns[first:second], columns[second:]

    def _texts(self, columns: Columns) -> list[list[str]]:
        """Return the texts that each text encoder reads."""
        filled = [["" if is_missing(v) else str(v) for v in column] for column in columns]
        if self.texts == "apart" or len(filled) < 2:
            return filled
        return [[" ".join(filter(None, row)) for row in zip(*filled, strict=True)]]

    def _numbers(self, columns: Columns) -> NDArray[np.float64]:
        """Return the numbers, NaN where one is missing, shape (n_rows, n_numeric)."""
        table = np.empty((len(columns[0]) if columns else 0, len(columns)))
        for position, column in enumerate(columns):
            for row, value in enumerate(column):
                try:
                    table[row, position] = np.nan if is_missing(value) else parse_number(value)
                except ValueError:
                    raise DataError(
                        f"row {row}: column {self.numeric[position]!r} is not a number: {value!r}"
                    ) from None
        return table

    def _index_categories(self) -> None:
        self._category_column = [
            {value: column for column, value in enumerate(values)} for values in self.categories_
        ]

    def _joined(
        self, texts: list[sparse.csr_matrix], table: NDArray[np.float64], categories: Columns
    ) -> sparse.csr_matrix:
        """Return the parts side by side; those of several texts shortened to length 1 in all."""
        if len(texts) > 1:
            for part in texts:
                part.data *= np.float32(len(texts) ** -0.5)
        parts = list(texts)
        if table.shape[1]:
            is_known = np.isfinite(table)
            scaled = np.minimum(np.maximum((table - self.centre_) / self.scale_, -1.0), 1.0)
            scaled[~is_known] = 0.0
            dense = np.hstack([scaled, ~is_known[:, self.has_missing_]])
            parts.append(_sparse(dense.astype(np.float32)))
        for column, known in zip(categories, self._category_column, strict=True):
            parts.append(_one_hot(column, known))
        return parts[0] if len(parts) == 1 else _side_by_side(parts)


def _frame(X: Any) -> nw.DataFrame[Any]:
    try:
        return nw.from_native(X, eager_only=True)
    except TypeError:
        raise DataError(
            f"expected a pandas, polars or pyarrow table or an array but got {type(X).__name__}"
        ) from None


def _columns_of_array(X: Any, n_columns: int) -> Columns:
    array = np.asarray(X, dtype=object)
    if array.ndim != 2 or array.shape[1] != n_columns:
        raise DataError(
            f"expected a frame, or an array with {n_columns} columns, one for each that is named; "
            f"got the shape {array.shape}"
        )
    if not len(array):
        raise DataError("there are no rows to encode")
    return array.T.tolist()


def _scale(
    table: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Return the median and the reach of each column, and whether it has missing values."""
    n_columns = table.shape[1]
    centre, scale = np.zeros(n_columns), np.ones(n_columns)
    for column in range(n_columns):
        values = table[np.isfinite(table[:, column]), column]
        if values.size:
            centre[column] = np.median(values)
            reach = float(np.abs(np.percentile(values, MIDDLE_SHARE) - centre[column]).max())
            # a column that hardly ever leaves its median still tells something when it does
            reach = reach or float(np.abs(values - centre[column]).max())
            scale[column] = reach or 1.0
    return centre, scale, np.asarray(~np.isfinite(table).all(axis=0))


def _sparse(dense: NDArray[np.float32]) -> sparse.csr_matrix:
    """Return dense rows as CSR; scipy's own way is slow for a single row."""
    rows, columns = np.nonzero(dense)
    indptr = np.searchsorted(rows, np.arange(len(dense) + 1)).astype(np.int32)
    parts = dense[rows, columns], columns.astype(np.int32), indptr
    return sparse.csr_matrix(parts, shape=dense.shape)


def _one_hot(column: Sequence[Any], known: Mapping[str, int]) -> sparse.csr_matrix:
    found = [-1 if is_missing(v) else known.get(str(v).strip(), -1) for v in column]
    indices = np.array(found, dtype=np.int32)
    is_set = indices >= 0
    indptr = np.concatenate([[0], np.cumsum(is_set)]).astype(np.int32)
    ones = np.ones(int(is_set.sum()), dtype=np.float32)
    return sparse.csr_matrix((ones, indices[is_set], indptr), shape=(len(found), len(known)))


def _side_by_side(parts: Sequence[sparse.csr_matrix]) -> sparse.csr_matrix:
    """Return CSR parts in one matrix; a single row without the cost of scipy's hstack."""
    width = sum(part.shape[1] for part in parts)
    if parts[0].shape[0] > 1:
        return sparse.csr_matrix(sparse.hstack(parts, format="csr"))
    starts = np.cumsum([0, *(part.shape[1] for part in parts[:-1])])
    indices = np.concatenate([part.indices + s for part, s in zip(parts, starts, strict=True)])
    data = np.concatenate([part.data for part in parts])
    ends = np.array([0, indices.size], dtype=np.int32)
    return sparse.csr_matrix((data, indices.astype(np.int32), ends), shape=(1, width))
