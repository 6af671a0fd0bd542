"""The taxonomy: an immutable tree of labelled nodes.

People see labels; arrays hold nodes, integers in breadth-first order (see :mod:`taxofit.tree`).
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit.errors import TaxonomyError
from taxofit.tree import Tree, breadth_first, renumbered

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    import networkx as nx
    from numpy.typing import ArrayLike, NDArray

    Label = Hashable
    IntArray = NDArray[np.int32]
    BoolArray = NDArray[np.bool_]

__all__ = ["PATH_SEPARATOR", "Taxonomy", "clean_path"]

PATH_SEPARATOR = " > "
ROOT_LABEL = "<root>"
N_SHOWN = 5  # how many offenders an error message lists


class Taxonomy(Tree):
    """A tree of labelled nodes that never changes; build one with a ``from_`` method.

    Every node has a *label*, unique and hashable, and a *name*. They are the same thing except in a
    taxonomy made from paths where one name occurs in several places: there the label of each such
    node is its path joined with ``' > '``. Wherever a label is asked for, the full path (a tuple of
    names) will do.

    A taxonomy is a :class:`~taxofit.tree.Tree` with labels: array attributes such as ``parent`` and
    ``level`` and methods on nodes are documented there.

    Attributes
    ----------
    labels, names : tuple
        Label and name of every node.
    has_virtual_root : bool
        Whether the root was added here to join several tops; then it is not part of any path.

    Examples
    --------
    >>> from taxofit import Taxonomy
    >>> t = Taxonomy.from_paths(
    ...     [("Home", "Kitchen", "Kettles"), ("Home", "Garden"), ("Pets", "Fish")]
    ... )
    >>> t
    Taxonomy(7 nodes, 3 leaves, depth 3)
    >>> t.leaves
    ('Kettles', 'Garden', 'Fish')
    >>> t.flatten(["Kitchen"]).children_of("Home")
    ('Kettles', 'Garden')
    """

    __slots__ = ("_index", "_path_index", "has_virtual_root", "labels", "names")

    labels: tuple[Label, ...]
    names: tuple[Label, ...]
    has_virtual_root: bool
    _index: dict[Label, int]
    _path_index: dict[tuple[int, Label], int] | None

    def __init__(self) -> None:
        raise TypeError(
            "build a Taxonomy with Taxonomy.from_edges, from_paths, from_parents or from_networkx"
        )

    # ------------------------------------------------------------------ building

    @classmethod
    def from_edges(
        cls,
        edges: Iterable[Sequence[Label]],
        *,
        describe_edge: Callable[[int], str] = "edge {}".format,
    ) -> Taxonomy:
        """Return the taxonomy with these ``(parent, child)`` edges, in their order.

        A single node without a parent is the root; several get a virtual root above them.

        Parameters
        ----------
        edges : iterable of (parent, child)
            Repeated edges are ignored. A child with two parents, or a cycle, is a TaxonomyError.
        describe_edge : callable, optional
            Turns the position of an edge into words for error messages; file readers give the line.

        Examples
        --------
        >>> t = Taxonomy.from_edges([("animal", "cat"), ("animal", "dog")])
        >>> t.parent_of("cat")
        'animal'
        """
        index: dict[Label, int] = {}
        parent: list[int] = []
        origin: list[int] = []  # the edge that gave a node its parent
        for position, edge in enumerate(edges):
            try:
                above, below = edge
                pair = [index.setdefault(label, len(index)) for label in (above, below)]
            except (TypeError, ValueError):
                raise TaxonomyError(
                    f"an edge is a (parent, child) pair of hashable labels, got {edge!r} "
                    f"({describe_edge(position)})"
                ) from None
            parent += [-1] * (len(index) - len(parent))
            origin += [-1] * (len(index) - len(origin))
            if parent[pair[1]] == -1:
                parent[pair[1]] = pair[0]
                origin[pair[1]] = position
            elif parent[pair[1]] != pair[0]:
                known = list(index)
                raise TaxonomyError(
                    f"node {below!r} has two parents, {known[parent[pair[1]]]!r} and {above!r}; a "
                    f"taxonomy is a tree ({describe_edge(position)}). If these are two categories "
                    f"of one name, give them different labels or use Taxonomy.from_paths"
                )
        if not index:
            raise TaxonomyError("the taxonomy is empty: no edges were given")
        return _assemble(np.asarray(parent), tuple(index), tuple(index))

    @classmethod
    def from_paths(cls, paths: Iterable[Sequence[Label]]) -> Taxonomy:
        """Return the taxonomy whose nodes are all prefixes of these paths, top first.

        Empty entries at a path's end (``""``, None, NaN) are ignored, so rows of a table with one
        column per level can be passed as they are. A first name that all paths share is the root;
        otherwise a virtual root is added.

        Examples
        --------
        >>> t = Taxonomy.from_paths([("Home", "Toys"), ("Pets", "Toys"), ("Pets", "Fish")])
        >>> t.leaves
        ('Home > Toys', 'Pets > Toys', 'Fish')
        """
        children: dict[tuple[int, Label], int] = {}
        parent: list[int] = [-1]
        names: list[Label] = [ROOT_LABEL]
        for position, path in enumerate(paths):
            node = 0
            for name in clean_path(path, position):
                child = children.setdefault((node, name), len(names))
                if child == len(names):
                    parent.append(node)
                    names.append(name)
                node = child
        if len(names) == 1:
            raise TaxonomyError("the taxonomy is empty: no paths were given")
        tops = np.flatnonzero(np.asarray(parent) == 0)
        if len(tops) == 1 and len(names) > 2:
            parent, names = [p - 1 for p in parent[1:]], names[1:]
            has_virtual_root = False
        else:
            has_virtual_root = True
        labels = _labels_of_names(parent, names, skip_root=has_virtual_root)
        return _assemble(np.asarray(parent), labels, tuple(names), virtual_root=has_virtual_root)

    @classmethod
    def from_parents(
        cls,
        parents: ArrayLike | Mapping[Label, Label],
        labels: Sequence[Label] | None = None,
        *,
        names: Sequence[Label] | None = None,
        has_virtual_root: bool = False,
    ) -> Taxonomy:
        """Return the taxonomy in which ``parents[i]`` is the parent of node i (-1: none).

        A mapping from label to parent's label (None: no parent) works as well. Names are the labels
        unless given; ``has_virtual_root`` says that the one node without a parent is no category.

        Examples
        --------
        >>> Taxonomy.from_parents([-1, 0, 0], ["animal", "cat", "dog"]).leaves
        ('cat', 'dog')
        """
        if isinstance(parents, Mapping):
            return cls._from_parent_mapping(parents)
        array = np.asarray(parents)
        if array.ndim != 1 or array.size == 0 or not np.issubdtype(array.dtype, np.integer):
            raise TaxonomyError(
                "parents must be a non-empty one-dimensional array of integers, "
                f"got shape {array.shape} of {array.dtype}"
            )
        bad = np.flatnonzero((array < -1) | (array >= array.size))
        if bad.size:
            raise TaxonomyError(
                f"parents[{bad[0]}] is {array[bad[0]]}, which is not a node: "
                f"use -1 to {array.size - 1} for {array.size} nodes"
            )
        labels = tuple(range(array.size)) if labels is None else tuple(labels)
        if len(labels) != array.size:
            raise TaxonomyError(f"{array.size} parents but {len(labels)} labels; give one for each")
        repeated = [label for label, n in Counter(labels).items() if n > 1]
        if repeated:
            raise TaxonomyError(f"labels must be unique; {_shown(repeated)} occur more than once")
        names = labels if names is None else tuple(names)
        if len(names) != array.size:
            raise TaxonomyError(f"{array.size} parents but {len(names)} names; give one for each")
        return _assemble(array, labels, names, has_virtual_root)

    @classmethod
    def _from_parent_mapping(cls, parents: Mapping[Label, Label]) -> Taxonomy:
        index = {label: position for position, label in enumerate(parents)}
        for above in parents.values():
            if above is not None:
                index.setdefault(above, len(index))
        array = np.full(len(index), -1)
        for below, above in parents.items():
            array[index[below]] = -1 if above is None else index[above]
        return cls.from_parents(array, tuple(index))

    @classmethod
    def from_labels(cls, labels: Iterable[Label]) -> Taxonomy:
        """Return the flat taxonomy: a virtual root with these leaves.

        Examples
        --------
        >>> Taxonomy.from_labels(["spam", "ham"]).leaves
        ('spam', 'ham')
        """
        leaves = tuple(dict.fromkeys(labels))
        if not leaves:
            raise TaxonomyError("the taxonomy is empty: no labels were given")
        parent = np.zeros(len(leaves) + 1, dtype=np.int64)
        parent[0] = -1
        everything = (_unused_root_label(leaves), *leaves)
        return _assemble(parent, everything, everything, virtual_root=True)

    @classmethod
    def from_networkx(cls, graph: nx.DiGraph) -> Taxonomy:
        """Return the taxonomy of a directed networkx graph whose edges go from parent to child."""
        if not graph.is_directed():
            raise TaxonomyError("the graph is undirected; edges must point from parent to child")
        index = {label: position for position, label in enumerate(graph.nodes)}
        if not index:
            raise TaxonomyError("the taxonomy is empty: the graph has no nodes")
        crowded = next((label for label, degree in graph.in_degree if degree > 1), None)
        if crowded is not None:
            raise TaxonomyError(
                f"node {crowded!r} has several parents, "
                f"{_shown(list(graph.predecessors(crowded)))}; a taxonomy is a tree"
            )
        parent = np.full(len(index), -1)
        for above, below in graph.edges:
            parent[index[below]] = index[above]
        return _assemble(parent, tuple(index), tuple(index))

    # ------------------------------------------------------------------ what it is made of

    @property
    def root(self) -> Label:
        """Label of the root."""
        return self.labels[0]

    @property
    def leaves(self) -> tuple[Label, ...]:
        """Labels of the leaves, depth first."""
        return tuple(self.labels[node] for node in self.leaf_order)

    @property
    def internal_nodes(self) -> tuple[Label, ...]:
        """Labels of the internal nodes without the root, level by level: what can be flattened."""
        return tuple(self.labels[node] for node in np.flatnonzero(self.is_internal))

    def __len__(self) -> int:
        return self.n_nodes

    def __contains__(self, label: object) -> bool:
        try:
            return self._find(label) is not None
        except (TaxonomyError, TypeError):
            return False

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Taxonomy):
            return NotImplemented
        return (
            self.labels == other.labels
            and self.has_virtual_root == other.has_virtual_root
            and np.array_equal(self.parent, other.parent)
        )

    def __hash__(self) -> int:
        return hash((self.labels, self.parent.tobytes()))

    def __repr__(self) -> str:
        return f"Taxonomy({self.n_nodes} nodes, {self.n_leaves} leaves, depth {self.depth})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _assemble, (self.parent, self.labels, self.names, self.has_virtual_root)

    # ------------------------------------------------------------------ looking up

    def node_of(self, label: Label) -> int:
        """Return the node with this label or full path; a TaxonomyError says what was meant."""
        node = self._find(label)
        if node is None:
            raise TaxonomyError(self._why_unknown(label))
        return node

    def nodes_of(self, labels: ArrayLike | Sequence[Label]) -> IntArray:
        """Return the nodes with these labels or paths, shape (len(labels),).

        A two-dimensional array or a data frame has one path a row, one column a level.
        """
        if hasattr(labels, "to_numpy"):  # iterating over a frame would give its column names
            labels = labels.to_numpy()
        listed = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)  # type: ignore[arg-type]
        found: dict[Label, int] = {}
        nodes = np.empty(len(listed), dtype=np.int32)
        for row, label in enumerate(listed):
            key = tuple(label) if isinstance(label, list) else label
            node = found.get(key)
            if node is None:
                node = found[key] = self.node_of(key)
            nodes[row] = node
        return nodes

    def _find(self, label: Label) -> int | None:
        """Return the one node with this label or full path, if there is one.

        Whoever asks of thousands of labels whether they are here must not wait for what an error
        would say of each.
        """
        if isinstance(label, (list, np.ndarray)):
            label = tuple(label)
        node = self._index.get(label)
        if node is None and isinstance(label, tuple):
            names = self._names_below_root(label)
            n_found, reached = self._walk(names)
            node = reached if n_found == len(names) else None
        return node

    def _why_unknown(self, label: Label) -> str:
        """Return what to say of a label or path that is not found."""
        if isinstance(label, (list, tuple, np.ndarray)):
            return self._why_lost(tuple(label))
        same_name = [self.labels[n] for n, name in enumerate(self.names) if name == label]
        if same_name:
            return (
                f"{label!r} is the name of {len(same_name)} nodes, {_shown(same_name)}; "
                f"use one of these labels or a full path"
            )
        return f"unknown label {label!r}{_suggestion(label, self.labels)}"

    def _why_lost(self, path: tuple[Label, ...]) -> str:
        """Return what to say of a path that leads to no node."""
        names = self._names_below_root(path)
        n_found, node = self._walk(names)
        name, shown = names[n_found], repr(PATH_SEPARATOR.join(map(str, clean_path(path))))
        siblings = [self.names[child] for child in self.children(node)]
        if name in siblings:
            return f"the path {shown} names several nodes of this flattened taxonomy; use a label"
        return (
            f"unknown path {shown}: {name!r} is not a child of "
            f"{self.labels[node]!r}{_suggestion(name, siblings)}"
        )

    def _names_below_root(self, path: tuple[Label, ...]) -> tuple[Label, ...]:
        cleaned = clean_path(path)
        starts_below = self.has_virtual_root or cleaned[0] != self.names[0]
        return cleaned if starts_below else cleaned[1:]

    def _walk(self, names: tuple[Label, ...]) -> tuple[int, int]:
        """Return how many names lead down to one node each, and the last of these nodes."""
        if self._path_index is None:
            index: dict[tuple[int, Label], int] = {}
            for node in range(1, self.n_nodes):
                key = (int(self.parent[node]), self.names[node])
                index[key] = node if key not in index else -1
            self._path_index = index
        node = 0
        for n_found, name in enumerate(names):
            child = self._path_index.get((node, name), -1)
            if child == -1:
                return n_found, node
            node = child
        return len(names), node

    def children_of(self, label: Label) -> tuple[Label, ...]:
        """Return the labels of a node's children, in the taxonomy's order."""
        return tuple(self.labels[child] for child in self.children(self.node_of(label)))

    def parent_of(self, label: Label) -> Label | None:
        """Return the label of a node's parent; None for the root."""
        node = self.node_of(label)
        return None if node == 0 else self.labels[self.parent[node]]

    def level_of(self, label: Label) -> int:
        """Return a node's distance from the root."""
        return int(self.level[self.node_of(label)])

    def leaves_under(self, label: Label) -> tuple[Label, ...]:
        """Return the labels of the leaves under a node, depth first; a leaf's is itself."""
        node = self.node_of(label)
        under = self.leaf_order[self.leaf_start[node] : self.leaf_stop[node]]
        return tuple(self.labels[leaf] for leaf in under)

    def path_of(self, label: Label) -> tuple[Label, ...]:
        """Return the names from the top down to a node; a virtual root is left out."""
        return self.path(self.node_of(label))

    def path(self, node: int) -> tuple[Label, ...]:
        """Return the names from the top down to a node given as an integer."""
        names = []
        while node > 0:
            names.append(self.names[node])
            node = int(self.parent[node])
        if not self.has_virtual_root:
            names.append(self.names[0])
        return tuple(reversed(names))

    def distance(self, a: Label, b: Label) -> int:
        """Return the number of edges on the undirected path between two labels.

        Examples
        --------
        >>> Taxonomy.from_paths([("Home", "Kettles"), ("Pets", "Fish")]).distance("Kettles", "Fish")
        4
        """
        return int(self.distances(self.node_of(a), self.node_of(b))[0])

    # ------------------------------------------------------------------ changing shape

    def flatten(self, labels: Iterable[Label]) -> Taxonomy:
        """Return the taxonomy without these internal nodes; their children go to their parents.

        The children of a removed node stand where it stood among its siblings. Which leaves lie
        under a surviving node never changes, and the order of the labels does not matter.

        Examples
        --------
        >>> t = Taxonomy.from_paths([("Home", "Gifts", "Mugs"), ("Home", "Kettles")])
        >>> t.flatten(["Gifts"]).to_paths()
        [('Home', 'Mugs'), ('Home', 'Kettles')]
        """
        if isinstance(labels, (str, bytes)):
            raise TaxonomyError(
                f"flatten takes a collection of labels; write flatten([{labels!r}])"
            )
        remove = np.zeros(self.n_nodes, dtype=bool)
        for label in labels:
            remove[self.node_of(label)] = True
        return self.without(remove)[0]

    def without(self, remove: BoolArray) -> tuple[Taxonomy, IntArray]:
        """Return the taxonomy without the masked nodes, and the node here of each of its nodes.

        Parameters
        ----------
        remove : ndarray of bool, shape (n_nodes,)
            Only internal nodes may be True.

        Returns
        -------
        taxonomy : Taxonomy
        kept : ndarray of int32
            Node n of the result is node ``kept[n]`` of this taxonomy.
        """
        offenders = np.flatnonzero(remove & ~self.is_internal)
        if offenders.size:
            node = offenders[0]
            what = "the root" if node == 0 else "a leaf"
            raise TaxonomyError(
                f"{self.labels[node]!r} is {what} and cannot be flattened; only internal nodes can"
            )
        parent, kept = self.removal(remove)
        flattened = _assemble(
            parent,
            tuple(self.labels[node] for node in kept),
            tuple(self.names[node] for node in kept),
            self.has_virtual_root,
        )
        return flattened, kept

    def collapse_chains(self) -> Taxonomy:
        """Return the taxonomy without internal nodes that have a single child.

        Such nodes say nothing: the leaves under them are those under their child. CLEF's 97 nodes
        become the 88 that the paper counts.
        """
        return self.without(self.is_internal & (np.diff(self.first_child) == 1))[0]

    # ------------------------------------------------------------------ leaving

    def to_edges(self) -> list[tuple[Label, Label]]:
        """Return all ``(parent, child)`` edges in breadth-first order.

        Those of a virtual root are among them, so that no top is lost; ``from_edges`` knows the
        virtual root by its label ``'<root>'``.
        """
        return [
            (self.labels[self.parent[node]], self.labels[node]) for node in range(1, self.n_nodes)
        ]

    def to_paths(self) -> list[tuple[Label, ...]]:
        """Return the path of every leaf, depth first."""
        return [self.path(int(leaf)) for leaf in self.leaf_order]

    def to_networkx(self) -> nx.DiGraph:
        """Return a networkx graph with edges from parent to child; needs networkx."""
        import networkx as nx

        graph = nx.DiGraph()
        graph.add_nodes_from(self.labels)
        graph.add_edges_from(self.to_edges())
        return graph


def clean_path(path: Sequence[Label], position: int | None = None) -> tuple[Label, ...]:
    """Return a path without the empty entries at its end; gaps and strings are errors.

    Examples
    --------
    >>> clean_path(["Home", "Kitchen", None])
    ('Home', 'Kitchen')
    """
    where = "" if position is None else f" (path {position})"
    if isinstance(path, (str, bytes)):
        raise TaxonomyError(
            f"a path is a sequence of names, got the text {path!r}; split it first{where}"
        )
    names = list(path)
    while names and _is_blank(names[-1]):
        names.pop()
    if not names:
        raise TaxonomyError(f"a path has no names at all{where}")
    if any(_is_blank(name) for name in names):
        raise TaxonomyError(
            f"the path {tuple(path)!r} has a gap: a level is empty above another{where}"
        )
    return tuple(names)


def _is_blank(name: object) -> bool:
    return name is None or name == "" or name != name  # noqa: PLR0124  (NaN is not itself)


def _labels_of_names(
    parent: Sequence[int], names: Sequence[Label], *, skip_root: bool
) -> tuple[Label, ...]:
    """Names where they are unique, joined paths where not; parents come before children."""
    occurrences = Counter(names)
    paths: list[str] = []
    labels: list[Label] = []
    for node, name in enumerate(names):
        above = parent[node]
        is_top = above < 0 or (above == 0 and skip_root)
        paths.append(str(name) if is_top else f"{paths[above]}{PATH_SEPARATOR}{name}")
        labels.append(name if occurrences[name] == 1 else paths[node])
    if skip_root:
        labels[0] = _unused_root_label(labels[1:])
    repeated = [label for label, n in Counter(labels).items() if n > 1]
    if repeated:
        raise TaxonomyError(
            f"{_shown(repeated)} would name two nodes: once as a name, once as a joined path; "
            f"rename one of them"
        )
    return tuple(labels)


def _unused_root_label(labels: Iterable[Label]) -> str:
    taken = set(labels)
    label = ROOT_LABEL
    while label in taken:
        label = f"<{label}>"
    return label


def _assemble(
    parent: NDArray[np.integer[Any]],
    labels: tuple[Label, ...],
    names: tuple[Label, ...],
    virtual_root: bool = False,  # noqa: FBT001, FBT002  (positional for pickle)
) -> Taxonomy:
    """Return the taxonomy of a parent array in any order; siblings keep their order in it."""
    tops = np.flatnonzero(parent < 0)
    if tops.size > 1:
        parent = np.concatenate([[-1], np.where(parent < 0, 0, parent + 1)])
        labels = (_unused_root_label(labels), *labels)
        names = (ROOT_LABEL, *names)
        virtual_root = True
    order = breadth_first(parent)
    if order.size < parent.size:
        raise TaxonomyError(_describe_cycle(parent, labels, order))
    if order.size == 1:
        raise TaxonomyError(f"the taxonomy is empty: {labels[0]!r} has no children")
    taxonomy = object.__new__(Taxonomy)
    taxonomy._grow(renumbered(parent, order))
    taxonomy.labels = tuple(labels[node] for node in order)
    taxonomy.names = tuple(names[node] for node in order)
    taxonomy.has_virtual_root = virtual_root or taxonomy.labels[0] == ROOT_LABEL
    taxonomy._index = {label: node for node, label in enumerate(taxonomy.labels)}
    taxonomy._path_index = None
    return taxonomy


def _describe_cycle(
    parent: NDArray[np.integer[Any]], labels: Sequence[Label], reached: NDArray[np.int64]
) -> str:
    lost = np.ones(parent.size, dtype=bool)
    lost[reached] = False
    node = int(np.flatnonzero(lost)[0])
    seen: list[int] = []
    while node not in seen:
        seen.append(node)
        node = int(parent[node])
    cycle = [*seen[seen.index(node) :], node][::-1]
    shown = " → ".join(repr(labels[n]) for n in cycle[: N_SHOWN + 1])
    more = " → …" if len(cycle) > N_SHOWN + 1 else ""
    return f"the taxonomy has a cycle: {shown}{more}; remove one of these edges"


def _shown(labels: Sequence[Label]) -> str:
    text = ", ".join(repr(label) for label in labels[:N_SHOWN])
    return f"{text} and {len(labels) - N_SHOWN} more" if len(labels) > N_SHOWN else text


def _suggestion(label: Label, known: Sequence[Label]) -> str:
    if not isinstance(label, str):
        return f"; labels are of type {type(known[-1]).__name__}" if known else ""
    close = difflib.get_close_matches(label, [k for k in known if isinstance(k, str)], n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
