"""The weights a fitted classifier keeps, in the form that walks need them.

Dense rows meet a plain matrix. Sparse rows meet weights packed by parent: the children of one node
side by side, keyed by feature, so that one pass over a row's features gives the scores of all
children. A row's scores are summed in an order of its own, so its prediction never depends on other
rows.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from scipy import sparse

from taxofit.predict import loops

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from taxofit.taxonomy import Taxonomy

    Array = NDArray[Any]
    Coefficients = tuple[NDArray[np.float64], float]

__all__ = ["DenseWeights", "NodeWeights", "PackedWeights"]


class NodeWeights(Protocol):
    """Weights of all nodes of a taxonomy; a node that no walk may enter has intercept -inf."""

    kind: ClassVar[str]

    @property
    def intercept(self) -> Array:
        """Intercept of every node, shape (n_nodes,)."""

    def walk(self, X: Any, taxonomy: Taxonomy) -> tuple[NDArray[np.int32], Array]:
        """Return the leaf that each row reaches, as a node, and its score there."""

    def coefficients(self, node: int, taxonomy: Taxonomy) -> Coefficients:
        """Return the weight vector, shape (n_features,), and intercept of a node."""

    def check(self, taxonomy: Taxonomy, n_features: int) -> None:
        """Raise ValueError where arrays from outside do not fit each other or the taxonomy."""

    def to_arrays(self) -> dict[str, Array]:
        """Return all there is to save."""

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> NodeWeights:
        """Return weights from what was saved."""


class _Saved:
    """Saving of dataclasses whose fields are arrays."""

    def to_arrays(self) -> dict[str, Array]:
        return {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Any:
        return cls(**{field.name: arrays[field.name] for field in fields(cls)})  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class DenseWeights(_Saved):
    """One row of weights for every node, for dense data.

    Attributes
    ----------
    matrix : ndarray of float64, shape (n_nodes, n_features)
    intercept : ndarray of float64, shape (n_nodes,)
    """

    matrix: NDArray[np.float64]
    intercept: NDArray[np.float64]
    kind: ClassVar[str] = "dense"

    def walk(self, X: Any, taxonomy: Taxonomy) -> tuple[NDArray[np.int32], Array]:
        X = np.ascontiguousarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
        reached = np.empty(X.shape[0], dtype=np.int32)
        score = np.empty(X.shape[0])
        loops.walk_dense(X, self.matrix, self.intercept, taxonomy.first_child, reached, score)
        return reached, score

    def coefficients(self, node: int, taxonomy: Taxonomy) -> Coefficients:
        return self.matrix[node].copy(), float(self.intercept[node])

    def check(self, taxonomy: Taxonomy, n_features: int) -> None:
        _check_array("matrix", self.matrix, np.float64, (taxonomy.n_nodes, n_features))
        _check_array("intercept", self.intercept, np.float64, (taxonomy.n_nodes,))
        _check_walkable(self.intercept, taxonomy)


@dataclass(frozen=True, eq=False)
class PackedWeights(_Saved):
    """Sparse weights in one block for each parent, for sparse data.

    The block of parent p lists the features that any child of p weighs, ascending, and for each of
    them the children that do.

    Attributes
    ----------
    intercept : ndarray of float32, shape (n_nodes,)
    block_start : ndarray of int64, shape (n_nodes + 1,)
        The features of parent p's block are ``feature[block_start[p]:block_start[p + 1]]``.
    feature : ndarray of int32, shape (n_listed,)
    entry_start : ndarray of int64, shape (n_listed + 1,)
        The weights of the f-th listed feature are ``value[entry_start[f]:entry_start[f + 1]]``.
    child : ndarray of int32, shape (n_weights,)
        Offset of the weighing child from its parent's first child.
    value : ndarray of float32, shape (n_weights,)
    n_features : ndarray of int64, shape (1,)
    """

    intercept: NDArray[np.float32]
    block_start: NDArray[np.int64]
    feature: NDArray[np.int32]
    entry_start: NDArray[np.int64]
    child: NDArray[np.int32]
    value: NDArray[np.float32]
    n_features: NDArray[np.int64]
    kind: ClassVar[str] = "packed"

    @classmethod
    def pack(cls, columns: sparse.csc_array, intercept: Array, taxonomy: Taxonomy) -> PackedWeights:
        """Return the packed form of weights, shape (n_features, n_nodes); the root has none."""
        n_features, n_nodes = columns.shape
        node = np.repeat(np.arange(n_nodes), np.diff(columns.indptr))
        parent = taxonomy.parent[node]
        order = np.lexsort((node, columns.indices, parent))
        node, parent, feature = node[order], parent[order], columns.indices[order]
        is_new = np.ones(node.size, dtype=bool)
        is_new[1:] = (parent[1:] != parent[:-1]) | (feature[1:] != feature[:-1])
        starts = np.flatnonzero(is_new)
        return cls(
            intercept=intercept.astype(np.float32),
            block_start=np.searchsorted(parent[starts], np.arange(n_nodes + 1)).astype(np.int64),
            feature=feature[starts].astype(np.int32),
            entry_start=np.append(starts, node.size).astype(np.int64),
            child=(node - taxonomy.first_child[parent]).astype(np.int32),
            value=columns.data[order].astype(np.float32),
            n_features=np.array([n_features], dtype=np.int64),
        )

    def walk(self, X: Any, taxonomy: Taxonomy) -> tuple[NDArray[np.int32], Array]:
        X = sparse.csr_array(X)
        reached = np.empty(X.shape[0], dtype=np.int32)
        score = np.empty(X.shape[0], dtype=np.float32)
        loops.walk_packed(
            (X.indptr, X.indices, X.data.astype(np.float32, copy=False)),
            (self.block_start, self.feature, self.entry_start, self.child, self.value),
            self.intercept,
            taxonomy.first_child,
            reached,
            score,
        )
        return reached, score

    def coefficients(self, node: int, taxonomy: Taxonomy) -> Coefficients:
        coefficients = np.zeros(int(self.n_features[0]))
        parent = int(taxonomy.parent[node])
        if parent >= 0:
            listed = slice(self.block_start[parent], self.block_start[parent + 1])
            sizes = np.diff(self.entry_start)[listed]
            first = self.entry_start[listed.start]
            entries = slice(first, first + sizes.sum())
            mine = self.child[entries] == node - taxonomy.first_child[parent]
            coefficients[np.repeat(self.feature[listed], sizes)[mine]] = self.value[entries][mine]
        return coefficients, float(self.intercept[node])

    def check(self, taxonomy: Taxonomy, n_features: int) -> None:
        n_listed, n_weights = self.feature.size, self.value.size
        _check_array("intercept", self.intercept, np.float32, (taxonomy.n_nodes,))
        _check_array("block_start", self.block_start, np.int64, (taxonomy.n_nodes + 1,))
        _check_array("feature", self.feature, np.int32, (n_listed,))
        _check_array("entry_start", self.entry_start, np.int64, (n_listed + 1,))
        _check_array("child", self.child, np.int32, (n_weights,))
        _check_array("value", self.value, np.float32, (n_weights,))
        _check_array("n_features", self.n_features, np.int64, (1,))
        _check_starts("block_start", self.block_start, n_listed)
        _check_starts("entry_start", self.entry_start, n_weights)
        if int(self.n_features[0]) != n_features:
            raise ValueError(f"weights are for {self.n_features[0]} features, not {n_features}")
        if n_listed and not 0 <= self.feature.min() <= self.feature.max() < n_features:
            raise ValueError("weights name features that there are not")
        n_children = np.repeat(np.diff(taxonomy.first_child), np.diff(self.block_start))
        n_siblings = np.repeat(n_children, np.diff(self.entry_start))
        if ((self.child < 0) | (self.child >= n_siblings)).any():
            raise ValueError("weights name children that there are not")
        _check_walkable(self.intercept, taxonomy)


def _check_array(name: str, array: Array, dtype: type, shape: tuple[int, ...]) -> None:
    if array.dtype != dtype or array.shape != shape:
        raise ValueError(
            f"{name} should be {np.dtype(dtype)} of shape {shape}, "
            f"not {array.dtype} of shape {array.shape}"
        )


def _check_starts(name: str, starts: Array, total: int) -> None:
    if starts[0] != 0 or starts[-1] != total or (np.diff(starts) < 0).any():
        raise ValueError(f"{name} does not ascend from 0 to {total}")


def _check_walkable(intercept: Array, taxonomy: Taxonomy) -> None:
    """Every node a walk can be at must have a child that it can go to."""
    if np.isnan(intercept).any() or np.isposinf(intercept).any():
        raise ValueError("intercepts are not numbers")
    open_nodes = np.isfinite(intercept)
    reachable = np.zeros(taxonomy.n_nodes, dtype=bool)
    np.logical_or.at(reachable, taxonomy.parent[1:], open_nodes[1:])
    stuck = open_nodes & ~reachable & ~taxonomy.is_leaf
    if stuck.any() or not reachable[0]:
        raise ValueError("some internal nodes have no child with a model")
