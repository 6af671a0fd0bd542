"""Weights for sparse rows, packed so that a row touches only what it needs.

Weights are kept feature by feature: a row reads one stretch of memory for each of its features,
whatever the depth of the tree. Within a feature they are sorted by *code*, which numbers the
children of the first parent, what these children share, the children of the next parent, and so on.
For a walk, those of one parent are found by halving.

A node's weight is its slope times a trend that all nodes have in common, plus what its parent's
children share, plus what is its own. Most of the latter two are close to nothing, and what is below
a limit is left out; see :mod:`taxofit.predict.packer`.

What stays is a number of steps in digits of a byte each, a fine one and coarse ones of 256 steps; a
digit that is zero is left out, so most weights take one. Where nothing is left out,
weights are kept as they are, as numbers of 32 bits in the fine digit's place.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import sparse

from taxofit.predict import loops
from taxofit.predict.search import find_in_scores, log_sigmoid
from taxofit.predict.weights import SavedArrays, check_array, check_walkable

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from taxofit.predict.search import Search
    from taxofit.predict.weights import Coefficients, Found
    from taxofit.taxonomy import Taxonomy

    Array = NDArray[Any]

__all__ = ["PackedWeights", "first_codes"]

ROWS_PER_THREAD = 1024  # of searches; fewer are done sooner than a thread has begun
SCORES_PER_THREAD = 1 << 18
SCORES_AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class PackedWeights(SavedArrays):
    """Sparse weights of all nodes, for sparse data.

    Attributes
    ----------
    intercept : ndarray of float32, shape (n_nodes,)
    slope : ndarray of float32, shape (n_nodes,)
        How much of the trend is in a node's weights.
    trend : ndarray of int16, shape (n_features,)
    scale : ndarray of float32, shape (1,)
        What one step is.
    start : ndarray of uint32 or int64, shape (n_features + 1,)
        The digits of feature f are ``start[f]``, …, ``start[f + 1] - 1``.
    code : ndarray of uint8, uint16 or uint32, shape (n_digits,)
        Which weight and which digit, see :func:`first_codes`; ascending within a feature.
    value : ndarray of int8 or float32, shape (n_digits,)
    """

    intercept: NDArray[np.float32]
    slope: NDArray[np.float32]
    trend: NDArray[np.int16]
    scale: NDArray[np.float32]
    start: NDArray[np.uint32] | NDArray[np.int64]
    code: NDArray[np.unsignedinteger[Any]]
    value: NDArray[np.int8] | NDArray[np.float32]
    kind: ClassVar[str] = "packed"

    @property
    def n_features(self) -> int:
        """How many features there are."""
        return self.start.size - 1

    def find(
        self, X: Any, taxonomy: Taxonomy, search: Search, n_best: int = 1, n_threads: int = 1
    ) -> Found:
        if search.kind == "beam" and search.width == 0:
            return self._find_everywhere(X, taxonomy, search, n_best, n_threads)
        X = _rows(X)
        reached = np.empty((X.shape[0], n_best), dtype=np.int32)
        totals = np.empty((X.shape[0], n_best))
        tables = self._tables(taxonomy)
        is_walk = search.kind == "greedy" and n_best == 1

        def find_some(rows: tuple[Array, ...], place: slice) -> None:
            if is_walk:
                loops.walk_packed(rows, tables, search.gamma, reached[place, 0], totals[place, 0])
            else:
                width = max(search.width, n_best)
                loops.beam_packed(rows, tables, search.gamma, width, reached[place], totals[place])

        _in_parts(X, find_some, n_threads, ROWS_PER_THREAD)
        return reached, totals

    def _find_everywhere(
        self, X: Any, taxonomy: Taxonomy, search: Search, n_best: int, n_threads: int
    ) -> Found:
        X = _rows(X)
        size = max(1, SCORES_AT_ONCE // taxonomy.n_nodes)
        parts = [
            find_in_scores(
                log_sigmoid(self.node_scores(X[first : first + size], taxonomy, n_threads)),
                taxonomy,
                search,
                n_best,
            )
            for first in range(0, max(1, X.shape[0]), size)
        ]
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    def node_scores(self, X: Any, taxonomy: Taxonomy, n_threads: int = 1) -> Array:
        X = _rows(X)
        scores = np.empty((X.shape[0], taxonomy.n_nodes), dtype=np.float32)
        tables = self._tables(taxonomy)

        def score_some(rows: tuple[Array, ...], place: slice) -> None:
            loops.score_packed(rows, tables, taxonomy.parent, scores[place])

        _in_parts(X, score_some, n_threads, SCORES_PER_THREAD // taxonomy.n_nodes)
        return scores

    def _tables(self, taxonomy: Taxonomy) -> tuple[Array, ...]:
        """Return the arrays that loops read."""
        return (
            self.start,
            self.code,
            self.value,
            self.trend,
            self.slope,
            self.scale,
            self.intercept,
            taxonomy.first_child,
            *self._tree(taxonomy),
        )

    def _tree(self, taxonomy: Taxonomy) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return first codes, and a mask of nodes with one child to go to: its model is theirs."""
        cached: tuple[Any, ...] | None = self.__dict__.get("_known_tree")
        if cached is None or cached[0] is not taxonomy:
            n_open = np.zeros(taxonomy.n_nodes, dtype=np.int64)
            np.add.at(n_open, taxonomy.parent[1:], np.isfinite(self.intercept[1:]))
            is_repeated = n_open == 1
            is_repeated[0] = False
            cached = self.__dict__["_known_tree"] = (taxonomy, first_codes(taxonomy), is_repeated)
        return cached[1], cached[2]

    def coefficients(self, node: int, taxonomy: Taxonomy) -> Coefficients:
        owner = self._owner(node, taxonomy)
        coefficients = float(self.slope[owner]) * self.trend.astype(np.float64)
        parent = int(taxonomy.parent[owner])
        if parent >= 0:
            first, stop = self._tree(taxonomy)[0][parent : parent + 2]
            places = np.flatnonzero((self.code >= first) & (self.code < stop))
            features = np.unique(np.searchsorted(self.start, places, side="right") - 1)
            weights = self.child_weights(parent, features, taxonomy)
            coefficients[features] = weights[owner - taxonomy.first_child[parent]]
        return coefficients, float(self.intercept[owner])

    def _owner(self, node: int, taxonomy: Taxonomy) -> int:
        """Return the node above, or this one, whose model this node repeats."""
        is_repeated = self._tree(taxonomy)[1]
        while node > 0 and is_repeated[taxonomy.parent[node]]:
            node = int(taxonomy.parent[node])
        return node

    def child_weights(self, parent: int, features: Array, taxonomy: Taxonomy) -> Array:
        first, stop = taxonomy.first_child[parent], taxonomy.first_child[parent + 1]
        first_code, is_repeated = self._tree(taxonomy)
        if is_repeated[parent]:
            owner = self._owner(parent, taxonomy)
            above = int(taxonomy.parent[owner])
            own = self.child_weights(above, features, taxonomy)
            return np.tile(own[owner - taxonomy.first_child[above]], (stop - first, 1))
        own_code, next_code = first_code[parent : parent + 2]
        digits = np.zeros((next_code - own_code, len(features)))
        for k, feature in enumerate(features):
            mine = slice(int(self.start[feature]), int(self.start[feature + 1]))
            places = self.code[mine].astype(np.int64) - own_code
            of_parent = (places >= 0) & (places < len(digits))
            np.add.at(digits[:, k], places[of_parent], self.value[mine][of_parent])
        weights = digits[::2] + loops.COARSE * digits[1::2]
        trend = np.multiply.outer(self.slope[first:stop], self.trend[features])
        return (weights[:-1] + weights[-1]) * self.scale[0] + trend

    def check(self, taxonomy: Taxonomy, n_features: int) -> None:
        """Check all that is read in full anyway; loops check the rest where they use it."""
        n_nodes, n_digits = taxonomy.n_nodes, self.code.size
        check_array("intercept", self.intercept, (np.float32,), (n_nodes,))
        check_array("slope", self.slope, (np.float32,), (n_nodes,))
        check_array("trend", self.trend, (np.int16,), (n_features,))
        check_array("scale", self.scale, (np.float32,), (1,))
        check_array("start", self.start, (np.uint32, np.int64), (n_features + 1,))
        check_array("code", self.code, (np.uint8, np.uint16, np.uint32), (n_digits,))
        check_array("value", self.value, (np.int8, np.float32), (n_digits,))
        if (
            self.start[0] != 0
            or self.start[-1] != n_digits
            or (self.start[1:] < self.start[:-1]).any()
        ):
            raise ValueError(f"start does not ascend from 0 to {n_digits}")
        if not (np.isfinite(self.scale).all() and np.isfinite(self.slope).all()):
            raise ValueError("scales or slopes are not numbers")
        check_walkable(self.intercept, taxonomy)


def first_codes(taxonomy: Taxonomy) -> NDArray[np.int64]:
    """Return the code of the first child of every node, shape (n_nodes + 1,), the total at the end.

    A node with k children has 2 (k + 1) codes: for every child and last for what they share, the
    fine digit and the coarse one.
    """
    n_before = np.append(0, np.cumsum(~taxonomy.is_leaf))
    return 2 * (taxonomy.first_child.astype(np.int64) - 1 + n_before)


def _in_parts(
    X: sparse.csr_array,
    work: Callable[[tuple[Array, ...], slice], None],
    n_threads: int,
    least_rows: int,
) -> None:
    """Call ``work`` with the arrays of some rows and where they stand, in several threads.

    No thread gets less than ``least_rows``.
    """
    n_rows, data = X.shape[0], X.data.astype(np.float32, copy=False)
    n_parts = max(1, min(n_threads, n_rows // max(1, least_rows)))
    if n_parts == 1:
        work((X.indptr, X.indices, data), slice(0, n_rows))
        return
    edges = np.linspace(0, n_rows, n_parts + 1).astype(np.int64)
    with ThreadPoolExecutor(n_parts) as pool:
        parts = [
            pool.submit(work, (X.indptr[a : b + 1], X.indices, data), slice(a, b))
            for a, b in pairwise(edges.tolist())
        ]
        for part in parts:
            part.result()


def _rows(X: Any) -> sparse.csr_array:
    return X if sparse.issparse(X) and X.format == "csr" else sparse.csr_array(X)
