"""The shape of a tree, kept as arrays; labels come in :mod:`taxofit.taxonomy`.

Nodes are integers in breadth-first order: the root is 0, a parent comes before its children, and
the children of one node are consecutive. So a subtree is described by a few integers and every walk
over the tree is array arithmetic, level by level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    IntArray = NDArray[np.int32]
    BoolArray = NDArray[np.bool_]

__all__ = ["Tree", "breadth_first", "renumbered"]


class Tree:
    """Parents, levels and leaf ranges of nodes in breadth-first order.

    Attributes
    ----------
    parent : ndarray of int32, shape (n_nodes,)
        Parent of every node; -1 for the root, which is node 0.
    level : ndarray of int32, shape (n_nodes,)
        Distance from the root.
    first_child : ndarray of int32, shape (n_nodes + 1,)
        The children of node p are ``range(first_child[p], first_child[p + 1])``.
    leaf_order : ndarray of int32, shape (n_leaves,)
        The leaves in depth-first order, in which the leaves under any node are consecutive.
    leaf_start, leaf_stop : ndarray of int32, shape (n_nodes,)
        The leaves under node n are ``leaf_order[leaf_start[n]:leaf_stop[n]]``.
    """

    __slots__ = ("first_child", "leaf_order", "leaf_start", "leaf_stop", "level", "parent")

    parent: IntArray
    level: IntArray
    first_child: IntArray
    leaf_order: IntArray
    leaf_start: IntArray
    leaf_stop: IntArray

    @classmethod
    def of_parents(cls, parent: NDArray[np.integer[Any]]) -> Tree:
        """Return the tree in which nodes, in breadth-first order, have these parents.

        Examples
        --------
        >>> Tree.of_parents(np.array([-1, 0, 0, 1])).first_child
        array([1, 3, 4, 4, 4], dtype=int32)
        """
        tree = Tree()
        tree._grow(parent)
        return tree

    def _grow(self, parent: NDArray[np.integer[Any]]) -> None:
        """Fill in all arrays from the parents of nodes in breadth-first order."""
        self.parent = parent.astype(np.int32)
        n_children = np.bincount(self.parent[1:], minlength=parent.size)
        self.first_child = np.concatenate([[1], 1 + np.cumsum(n_children)]).astype(np.int32)
        self.level = _levels(self.first_child)
        n_leaves = self.totals(self.is_leaf.astype(np.int64))
        start = self._interval_starts(n_leaves, own=0)
        self.leaf_start = start.astype(np.int32)
        self.leaf_stop = (start + n_leaves).astype(np.int32)
        leaves = np.flatnonzero(self.is_leaf)
        self.leaf_order = leaves[np.argsort(start[leaves])].astype(np.int32)
        for name in Tree.__slots__:
            getattr(self, name).flags.writeable = False

    @property
    def n_nodes(self) -> int:
        """Number of nodes, the root included."""
        return self.parent.size

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self.leaf_order)

    @property
    def depth(self) -> int:
        """Level of the deepest leaf; the root has level 0."""
        return int(self.level[-1])

    @property
    def is_leaf(self) -> BoolArray:
        """Mask of the leaves over nodes."""
        return self.first_child[1:] == self.first_child[:-1]

    @property
    def is_internal(self) -> BoolArray:
        """Mask of the internal nodes over nodes; the root is not one of them."""
        mask = ~self.is_leaf
        mask[0] = False
        return mask

    def children(self, node: int) -> range:
        """Return the children of a node, as nodes."""
        return range(int(self.first_child[node]), int(self.first_child[node + 1]))

    def nodes_by_level(self) -> list[IntArray]:
        """Return the nodes of each level, the root's first."""
        bounds = np.searchsorted(self.level, np.arange(self.depth + 2))
        nodes = np.arange(self.n_nodes, dtype=np.int32)
        return [nodes[bounds[k] : bounds[k + 1]] for k in range(self.depth + 1)]

    def totals(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the sum of the values of every node and all nodes under it, shape (n_nodes,)."""
        totals = values.copy()
        for nodes in self.nodes_by_level()[:0:-1]:
            np.add.at(totals, self.parent[nodes], totals[nodes])
        return totals

    def ancestors(self, nodes: ArrayLike) -> IntArray:
        """Return each node's ancestors by level, itself included, shape (n, depth + 1).

        Column k holds the ancestor at level k, -1 below the node's own level.
        """
        nodes = np.atleast_1d(np.asarray(nodes, dtype=np.int32))
        table = np.full((nodes.size, self.depth + 1), -1, dtype=np.int32)
        current = nodes.copy()
        for level in range(self.depth, -1, -1):
            here = self.level[current] == level
            table[here, level] = current[here]
            if level:
                current[here] = self.parent[current[here]]
        return table

    def common_ancestors(self, a: ArrayLike, b: ArrayLike) -> IntArray:
        """Return the lowest common ancestor of each pair of nodes."""
        a, b = (np.atleast_1d(np.asarray(x, dtype=np.int32)).copy() for x in (a, b))
        while (apart := a != b).any():
            climb_a = apart & (self.level[a] >= self.level[b])
            climb_b = apart & (self.level[b] >= self.level[a])
            a[climb_a], b[climb_b] = self.parent[a[climb_a]], self.parent[b[climb_b]]
        return a

    def distances(self, a: ArrayLike, b: ArrayLike) -> IntArray:
        """Return the length of the undirected path between each pair of nodes."""
        a, b = np.atleast_1d(np.asarray(a)), np.atleast_1d(np.asarray(b))
        meeting = self.common_ancestors(a, b)
        return self.level[a] + self.level[b] - 2 * self.level[meeting]

    def removal(self, remove: BoolArray) -> tuple[NDArray[np.int64], IntArray]:
        """Return the parents that remain without the masked nodes, and which nodes they are.

        Children of a removed node stand where it stood among its siblings.

        Returns
        -------
        parent : ndarray of int64, shape (n_kept,)
            In breadth-first order of the smaller tree.
        kept : ndarray of int32, shape (n_kept,)
            The node here of each node there.
        """
        anchor = np.arange(self.n_nodes, dtype=np.int32)  # nearest survivor at or above a node
        for nodes in self.nodes_by_level()[1:]:
            gone = nodes[remove[nodes]]
            anchor[gone] = anchor[self.parent[gone]]
        n_below = self.totals(np.ones(self.n_nodes, dtype=np.int64))
        depth_first = np.argsort(self._interval_starts(n_below, own=1))
        survivors = depth_first[~remove[depth_first]]
        position = np.full(self.n_nodes, -1)
        position[survivors] = np.arange(survivors.size)
        parent = np.full(survivors.size, -1)
        parent[1:] = position[anchor[self.parent[survivors[1:]]]]
        order = breadth_first(parent)
        return renumbered(parent, order), survivors[order].astype(np.int32)

    def _interval_starts(self, size: NDArray[np.int64], *, own: int) -> NDArray[np.int64]:
        """Return where each node's interval starts, inside that of its parent, siblings in order.

        A node's interval has its ``size``; its children begin ``own`` after its start.
        """
        start = np.zeros(self.n_nodes, dtype=np.int64)
        for nodes in self.nodes_by_level()[1:]:
            before = np.cumsum(size[nodes]) - size[nodes]
            parents = self.parent[nodes]
            eldest = self.first_child[parents] - nodes[0]
            start[nodes] = start[parents] + own + before - before[eldest]
        return start


def breadth_first(parent: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Return the nodes reachable from the tops, level by level, siblings in index order."""
    by_parent = np.argsort(parent, kind="stable")
    bounds = np.searchsorted(parent[by_parent], np.arange(-1, parent.size + 1))
    frontier = by_parent[: bounds[1]]
    visited = [frontier]
    while frontier.size:
        starts, stops = bounds[frontier + 1], bounds[frontier + 2]
        sizes = stops - starts
        offsets = np.repeat(starts - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
        frontier = by_parent[offsets + np.arange(offsets.size)]
        visited.append(frontier)
    return np.concatenate(visited)


def renumbered(parent: NDArray[np.integer[Any]], order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the parents of nodes that are put in a new order, numbered by it."""
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size)
    above = parent[order]
    return np.where(above < 0, -1, rank[above])


def _levels(first_child: IntArray) -> IntArray:
    """Level of every node of a tree in breadth-first order."""
    level = np.zeros(first_child.size - 1, dtype=np.int32)
    start, stop = 0, 1
    depth = 0
    while start < stop:
        level[start:stop] = depth
        start, stop, depth = int(first_child[start]), int(first_child[stop]), depth + 1
    return level
