"""Weights for sparse rows, packed so that a row touches only what it needs.

A *pair* is a feature and a parent whose children weigh it. Pairs are kept feature by feature, the
parents of one feature ascending, and the weights of a pair side by side: a row reads one stretch of
memory for each of its features, whatever the depth of the tree. For a walk, the pair of a feature
and a node is found among the feature's parents by halving.

Of siblings only differences decide, so a pair keeps the weight that its children share (their
median) once, and of each child what differs from it. Most differences are close to nothing, and
what is below a limit is left out; see :mod:`taxofit.predict.packer`.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
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

__all__ = ["PackedWeights"]

ROWS_PER_THREAD = 1024
SCORES_AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class PackedWeights(SavedArrays):
    """Sparse weights of all nodes, for sparse data.

    Attributes
    ----------
    intercept : ndarray of float32, shape (n_nodes,)
    scale : ndarray of float32, shape (n_nodes,)
        By parent: a weight is ``value`` · ``scale``.
    pair_start : ndarray of int64, shape (n_features + 1,)
        The pairs of feature f are ``pair_start[f]``, …, ``pair_start[f + 1] - 1``.
    weight_start : ndarray of int64, shape (n_features + 1,)
        Likewise for its weights.
    pair_parent : ndarray of uint16 or uint32, shape (n_pairs,)
    pair_offset : ndarray of uint16 or uint32, shape (n_pairs,)
        Where a pair's weights begin, counted from its feature's first.
    child : ndarray of uint8, uint16 or uint32, shape (n_weights,)
        Offset from the parent's first child; the number of children stands for all of them.
    value : ndarray of int16 or float32, shape (n_weights,)
    """

    intercept: NDArray[np.float32]
    scale: NDArray[np.float32]
    pair_start: NDArray[np.int64]
    weight_start: NDArray[np.int64]
    pair_parent: NDArray[np.unsignedinteger[Any]]
    pair_offset: NDArray[np.unsignedinteger[Any]]
    child: NDArray[np.unsignedinteger[Any]]
    value: NDArray[np.int16] | NDArray[np.float32]
    kind: ClassVar[str] = "packed"

    @cached_property
    def tables(self) -> tuple[Array, ...]:
        """The arrays that loops over pairs read."""
        return (
            self.pair_start,
            self.weight_start,
            self.pair_parent,
            self.pair_offset,
            self.child,
            self.value,
        )

    @property
    def n_features(self) -> int:
        """How many features there are."""
        return self.pair_start.size - 1

    def find(
        self, X: Any, taxonomy: Taxonomy, search: Search, n_best: int = 1, n_threads: int = 1
    ) -> Found:
        if search.kind == "beam" and search.width == 0:
            return self._find_everywhere(X, taxonomy, search, n_best, n_threads)
        X = _rows(X)
        reached = np.empty((X.shape[0], n_best), dtype=np.int32)
        totals = np.empty((X.shape[0], n_best))
        tables = (*self.tables, *self._tree(taxonomy))
        is_walk = search.kind == "greedy" and n_best == 1

        def find_some(rows: tuple[Array, ...], place: slice) -> None:
            if is_walk:
                loops.walk_packed(rows, tables, search.gamma, reached[place, 0], totals[place, 0])
            else:
                width = max(search.width, n_best)
                loops.beam_packed(rows, tables, search.gamma, width, reached[place], totals[place])

        _in_parts(X, find_some, n_threads)
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
        tables = (*self.tables, *self._tree(taxonomy))

        def score_some(rows: tuple[Array, ...], place: slice) -> None:
            loops.score_packed(rows, tables, taxonomy.parent, scores[place])

        _in_parts(X, score_some, n_threads)
        return scores

    def _tree(self, taxonomy: Taxonomy) -> tuple[Array, ...]:
        """Return scale, intercept, first child, and whether a node's only child repeats it."""
        return self.scale, self.intercept, taxonomy.first_child, self._is_repeated(taxonomy)

    def _is_repeated(self, taxonomy: Taxonomy) -> NDArray[np.bool_]:
        """Return a mask of nodes with one child to go to, whose model is then the node's own."""
        cached: tuple[Taxonomy, NDArray[np.bool_]] | None = self.__dict__.get("_repeated")
        if cached is None or cached[0] is not taxonomy:
            n_open = np.zeros(taxonomy.n_nodes, dtype=np.int64)
            np.add.at(n_open, taxonomy.parent[1:], np.isfinite(self.intercept[1:]))
            mask = n_open == 1
            mask[0] = False
            cached = self.__dict__["_repeated"] = (taxonomy, mask)
        return cached[1]

    def coefficients(self, node: int, taxonomy: Taxonomy) -> Coefficients:
        owner = self._owner(node, taxonomy)
        coefficients = np.zeros(self.n_features)
        parent = int(taxonomy.parent[owner])
        if parent >= 0:
            pairs = np.flatnonzero(self.pair_parent == parent)
            features = np.searchsorted(self.pair_start, pairs, side="right") - 1
            weights = self.child_weights(parent, features, taxonomy)
            coefficients[features] = weights[owner - taxonomy.first_child[parent]]
        return coefficients, float(self.intercept[owner])

    def _owner(self, node: int, taxonomy: Taxonomy) -> int:
        """Return the node above, or this one, whose model this node repeats."""
        is_repeated = self._is_repeated(taxonomy)
        while node > 0 and is_repeated[taxonomy.parent[node]]:
            node = int(taxonomy.parent[node])
        return node

    def child_weights(self, parent: int, features: Array, taxonomy: Taxonomy) -> Array:
        first, stop = taxonomy.first_child[parent], taxonomy.first_child[parent + 1]
        if self._is_repeated(taxonomy)[parent]:
            owner = self._owner(parent, taxonomy)
            above = int(taxonomy.parent[owner])
            own = self.child_weights(above, features, taxonomy)
            return np.tile(own[owner - taxonomy.first_child[above]], (stop - first, 1))
        weights = np.zeros((stop - first + 1, len(features)))
        for k, feature in enumerate(features):
            pairs = self.pair_parent[self.pair_start[feature] : self.pair_start[feature + 1]]
            pair = int(np.searchsorted(pairs, parent))
            if pair < pairs.size and pairs[pair] == parent:
                pair += int(self.pair_start[feature])
                entries = self._entries(int(feature), pair)
                np.add.at(weights[:, k], self.child[entries], self.value[entries])
        return (weights[:-1] + weights[-1]) * self.scale[parent]

    def _entries(self, feature: int, pair: int) -> slice:
        """Return where the weights of a pair are."""
        begin = int(self.weight_start[feature])
        is_last = pair + 1 == self.pair_start[feature + 1]
        stop = (
            self.weight_start[feature + 1] if is_last else begin + int(self.pair_offset[pair + 1])
        )
        return slice(begin + int(self.pair_offset[pair]), int(stop))

    def check(self, taxonomy: Taxonomy, n_features: int) -> None:
        """Check all that is read in full anyway; loops check the rest where they use it."""
        n_nodes, unsigned = taxonomy.n_nodes, (np.uint16, np.uint32)
        n_pairs, n_weights = self.pair_parent.size, self.child.size
        check_array("intercept", self.intercept, (np.float32,), (n_nodes,))
        check_array("scale", self.scale, (np.float32,), (n_nodes,))
        check_array("pair_start", self.pair_start, (np.int64,), (n_features + 1,))
        check_array("weight_start", self.weight_start, (np.int64,), (n_features + 1,))
        check_array("pair_parent", self.pair_parent, unsigned, (n_pairs,))
        check_array("pair_offset", self.pair_offset, unsigned, (n_pairs,))
        check_array("child", self.child, (np.uint8, *unsigned), (n_weights,))
        check_array("value", self.value, (np.int16, np.float32), (n_weights,))
        _check_starts("pair_start", self.pair_start, n_pairs)
        _check_starts("weight_start", self.weight_start, n_weights)
        if not np.isfinite(self.scale).all():
            raise ValueError("scales are not numbers")
        check_walkable(self.intercept, taxonomy)


def _in_parts(
    X: sparse.csr_array, work: Callable[[tuple[Array, ...], slice], None], n_threads: int
) -> None:
    """Call ``work`` with the arrays of some rows and where they stand, in several threads."""
    n_rows, data = X.shape[0], X.data.astype(np.float32, copy=False)
    n_parts = max(1, min(n_threads, n_rows // ROWS_PER_THREAD))
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


def _check_starts(name: str, starts: Array, total: int) -> None:
    if starts[0] != 0 or starts[-1] != total or (np.diff(starts) < 0).any():
        raise ValueError(f"{name} does not ascend from 0 to {total}")
