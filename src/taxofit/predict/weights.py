"""What a predictor needs of the weights that a fitted classifier keeps."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from taxofit.predict.search import Search
    from taxofit.taxonomy import Taxonomy

    Array = NDArray[Any]
    Coefficients = tuple[NDArray[np.float64], float]
    Found = tuple[NDArray[np.int32], NDArray[np.float64]]

__all__ = ["NodeWeights", "SavedArrays", "check_array", "check_walkable"]


class NodeWeights(Protocol):
    """Weights of all nodes of a taxonomy; a node that no walk may enter has intercept -inf."""

    kind: ClassVar[str]

    @property
    def intercept(self) -> Array:
        """Intercept of every node, shape (n_nodes,)."""

    def find(
        self, X: Any, taxonomy: Taxonomy, search: Search, n_best: int = 1, n_threads: int = 1
    ) -> Found:
        """Return the leaves a search ends at, best first, and their path scores.

        Both of shape (n_rows, n_best); where fewer leaves are found, -1 and -inf follow. A greedy
        walk finds one leaf; for more, a beam as wide as their number is searched.
        """

    def node_scores(self, X: Any, taxonomy: Taxonomy, n_threads: int = 1) -> Array:
        """Return θ·x at every node, shape (n_rows, n_nodes); -inf where there is no model."""

    def coefficients(self, node: int, taxonomy: Taxonomy) -> Coefficients:
        """Return the weight vector, shape (n_features,), and intercept of a node."""

    def child_weights(self, parent: int, features: Array, taxonomy: Taxonomy) -> Array:
        """Return the weights of a node's children for some features, (n_children, n_given)."""

    def check(self, taxonomy: Taxonomy, n_features: int) -> None:
        """Raise ValueError where arrays from outside do not fit each other or the taxonomy."""

    def to_arrays(self) -> dict[str, Array]:
        """Return all there is to save."""

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> NodeWeights:
        """Return weights from what was saved."""


class SavedArrays:
    """Saving of dataclasses whose fields are arrays."""

    def to_arrays(self) -> dict[str, Array]:
        """Return the fields by name."""
        return {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Any:
        """Return an instance from its fields."""
        return cls(**{field.name: arrays[field.name] for field in fields(cls)})  # type: ignore[arg-type]


def check_array(name: str, array: Array, dtypes: tuple[type, ...], shape: tuple[int, ...]) -> None:
    """Raise ValueError where an array has not one of these types and this shape."""
    if array.dtype.type not in dtypes or array.shape != shape:
        expected = " or ".join(str(np.dtype(dtype)) for dtype in dtypes)
        raise ValueError(
            f"{name} should be {expected} of shape {shape}, not {array.dtype} of shape "
            f"{array.shape}"
        )


def check_walkable(intercept: Array, taxonomy: Taxonomy) -> None:
    """Raise ValueError where a walk could be at a node that has no child to go to."""
    if np.isnan(intercept).any() or np.isposinf(intercept).any():
        raise ValueError("intercepts are not numbers")
    open_nodes = np.isfinite(intercept)
    reachable = np.zeros(taxonomy.n_nodes, dtype=bool)
    np.logical_or.at(reachable, taxonomy.parent[1:], open_nodes[1:])
    stuck = open_nodes & ~reachable & ~taxonomy.is_leaf
    if stuck.any() or not reachable[0]:
        raise ValueError("some internal nodes have no child with a model")
