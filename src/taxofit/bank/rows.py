"""Rows and binary targets as the solver wants them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from taxofit.datasets.mapped import CHUNK_ENTRIES, row_chunks, stack_rows, take_rows
from taxofit.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from taxofit.taxonomy import Taxonomy

__all__ = ["LeafRanges", "Rows", "Targets", "node_targets"]


@dataclass(frozen=True, eq=False)
class Rows:
    """Feature rows, the constant feature appended if any, and each row's weight in the loss.

    Attributes
    ----------
    X : ndarray of float64 or csr_array of float32, shape (n_rows, n_features)
        Sparse data is float32, which halves the memory traffic that its products are bound by;
        dense data is float64, where BLAS is fast and raw features can be badly scaled.
    weight : ndarray of float64, shape (n_rows,)
    has_constant : bool
        Whether the last column of X is the constant feature.
    """

    X: Any
    weight: NDArray[np.float64]
    has_constant: bool = False

    @classmethod
    def prepare(
        cls, X: Any, *, fit_intercept: bool = True, sample_weight: NDArray[Any] | None = None
    ) -> Rows:
        """Return rows from a dense array or any scipy sparse matrix.

        Of sparse rows that are mapped from a file all copies are mapped too.
        """
        n = X.shape[0]
        if sparse.issparse(X):
            X = _sparse_rows(sparse.csr_array(X), with_constant=fit_intercept)
        else:
            X = np.asarray(X, dtype=np.float64)
            X = np.hstack([X, np.ones((n, 1))]) if fit_intercept else np.ascontiguousarray(X)
        _check_scale(X)
        weight = (
            np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        )
        return cls(X, weight, fit_intercept)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features, the constant one included."""
        return int(self.X.shape[1])

    @property
    def is_sparse(self) -> bool:
        """Whether X is a sparse matrix."""
        return sparse.issparse(self.X)

    def take(self, rows: NDArray[np.integer[Any]]) -> Rows:
        """Return some of the rows."""
        return Rows(take_rows(self.X, rows), self.weight[rows], self.has_constant)

    def given(self, rows: NDArray[np.integer[Any]]) -> sparse.csr_array:
        """Return some sparse rows as they were given, without the constant; mapped if X is."""
        X = take_rows(self.X, rows)
        if not self.has_constant:
            return X
        n, d = X.shape
        pieces = (part[:, : d - 1] for _, _, part in row_chunks(X))
        return stack_rows(pieces, (n, d - 1), X.nnz - n, beside=X)


def _check_scale(X: Any) -> None:
    """Refuse values whose squares cannot be added up; the solver would only find NaN."""
    values = X.data if sparse.issparse(X) else X.reshape(-1)
    for start in range(0, values.size, CHUNK_ENTRIES):
        part = values[start : start + CHUNK_ENTRIES]
        with np.errstate(over="ignore", invalid="ignore"):
            total = np.square(part, dtype=np.float64).sum()
        if not np.isfinite(total):
            raise DataError(
                f"X has values as large as {float(np.abs(part).max()):.3g}, too large to compute "
                f"with; scale the columns, for example with taxofit.datasets.ColumnScaler"
            )


def _sparse_rows(X: sparse.csr_array, *, with_constant: bool) -> sparse.csr_array:
    """Return rows in float32 and in order of their columns, a column of ones appended or not."""
    if not with_constant and X.dtype == np.float32 and X.has_sorted_indices:
        return X
    n, d = X.shape
    pieces = (_ordered(rows, with_constant=with_constant) for _, _, rows in row_chunks(X))
    return stack_rows(pieces, (n, d + with_constant), X.nnz + n * with_constant, beside=X)


def _ordered(rows: sparse.csr_array, *, with_constant: bool) -> sparse.csr_array:
    with np.errstate(over="ignore"):  # what overflows is refused by _check_scale
        rows = rows.astype(np.float32, copy=False)
    if not rows.has_sorted_indices:
        rows = rows.sorted_indices()
    if not with_constant:
        return rows
    n, d = rows.shape
    ends = rows.indptr[1:]
    indices, data = np.insert(rows.indices, ends, d), np.insert(rows.data, ends, np.float32(1))
    indptr = rows.indptr + np.arange(n + 1, dtype=rows.indptr.dtype)
    return sparse.csr_array((data, indices, indptr), shape=(n, d + 1))


@dataclass(frozen=True, eq=False)
class Targets:
    """Many binary problems over the same rows.

    Row i belongs to class ``row_class[i]``, and problem b takes it as positive where
    ``table[row_class[i], b]``. One-vs-rest nodes and the bits of an output code are both such
    tables, and no (n_rows x n_problems) array is ever made.

    Attributes
    ----------
    row_class : ndarray of int32, shape (n_rows,)
    table : ndarray of int8, shape (n_classes, n_problems)
        +1 or -1.
    """

    row_class: NDArray[np.int32]
    table: NDArray[np.int8]

    @property
    def n_problems(self) -> int:
        """Number of binary problems."""
        return int(self.table.shape[1])

    def n_positive(self) -> NDArray[np.int64]:
        """Return the number of positive rows of every problem."""
        counts = np.bincount(self.row_class, minlength=self.table.shape[0])
        return counts @ (self.table > 0)

    def signs(self) -> NDArray[np.int8]:
        """Return the labels of all rows, shape (n_rows, n_problems)."""
        return self.table[self.row_class]

    def take(self, problems: NDArray[Any] | slice) -> Targets:
        """Return some of the problems."""
        return Targets(self.row_class, np.ascontiguousarray(self.table[:, problems]))


@dataclass(frozen=True, eq=False)
class LeafRanges:
    """Which leaves lie under which node: all of a taxonomy that binary targets need.

    Attributes
    ----------
    leaf_start, leaf_stop : ndarray of int32, shape (n_nodes,)
    n_leaves : int
    """

    leaf_start: NDArray[np.int32]
    leaf_stop: NDArray[np.int32]
    n_leaves: int

    @classmethod
    def of(cls, taxonomy: Taxonomy) -> LeafRanges:
        """Return those of a taxonomy."""
        return cls(taxonomy.leaf_start, taxonomy.leaf_stop, taxonomy.n_leaves)


def node_targets(
    taxonomy: Taxonomy | LeafRanges,
    row_leaf: NDArray[np.int32],
    nodes: NDArray[np.integer[Any]],
) -> Targets:
    """Return the one-vs-rest problems of these nodes: rows of leaves under a node are positive.

    Parameters
    ----------
    taxonomy : Taxonomy or LeafRanges
    row_leaf : ndarray of int32, shape (n_rows,)
        The leaf of every row, as a node.
    nodes : ndarray of int, shape (n_problems,)
    """
    position = taxonomy.leaf_start[row_leaf]
    order = np.arange(taxonomy.n_leaves)[:, None]
    under = (order >= taxonomy.leaf_start[nodes]) & (order < taxonomy.leaf_stop[nodes])
    return Targets(position.astype(np.int32), np.where(under, 1, -1).astype(np.int8))
