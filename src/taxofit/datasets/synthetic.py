"""Made-up problems whose taxonomy is wrong in known places.

There are two trees of the same shape. A hidden *concept tree* makes the rows: every concept has a
topic of its own (words, or a direction in space), and a row draws on the topics along its concept's
path. Below the top level a part of a topic is a *facet*, shared by all concepts that are the same
child of their parents (as 'for children' is found under shoes and under books).

The *taxonomy* is that tree with a few internal nodes spoilt: siblings have dealt their children out
among each other, facet by facet, so that each holds unlike things. Shoes for women and books for
children against shoes for children and books for women: no linear model can use 'shoes' or 'for
children' there. These are the inconsistent nodes that a repair should find. All other nodes stay
sound, because dealing among siblings leaves the leaves under their parent as they were.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_matrix

from taxofit.datasets.dataset import Dataset
from taxofit.errors import DataError
from taxofit.taxonomy import Taxonomy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    IntArray = NDArray[np.int64]
    FloatArray = NDArray[np.float64]

__all__ = ["SyntheticProblem", "make_taxonomy_classification"]

# Found by a scan at two seeds a setting, then checked over ten, with logistic regression per node
# at C = 1. With less of a row topical, shorter rows or wider topics, a node of level 2 that cannot
# be fitted ends with small weights, and its f* falls below that of a sound one.
MEAN_WORDS_PER_ROW = 60
TOPICAL_SHARE = 0.75  # of a row's words, at class_separation 1; the rest is background
TOPIC_SIZE = 6  # words of a concept
TOPIC_DECAY = 0.7  # the r-th word of a topic has weight r ** -TOPIC_DECAY
BACKGROUND_DECAY = 0.9  # nearly Zipf's law
TOP_WEIGHT, MIDDLE_WEIGHT, LEAF_WEIGHT = 3.0, 4.0, 2.0  # how much each level adds to a row
MIDDLE_FACET, LEAF_FACET = 0.5, 0.8  # share of a topic that is a facet
DENSE_LENGTH = 0.5  # of a concept's direction against unit noise, at class_separation 1
N_LEAST_ROWS = 4  # of every class


@dataclass(frozen=True, eq=False)
class SyntheticProblem:
    """Rows, labels, a taxonomy, and the truth about it.

    Attributes
    ----------
    X : CSR matrix or ndarray of float32, shape (n_rows, n_features)
    y : ndarray of object, shape (n_rows,)
        Leaf labels.
    taxonomy : Taxonomy
        As given to a classifier; node ``'2.1'`` is the first child of the second top.
    inconsistent : tuple of str
        Labels of the internal nodes that group unlike things, level by level.
    """

    X: Any
    y: NDArray[np.object_]
    taxonomy: Taxonomy
    inconsistent: tuple[str, ...]

    @property
    def dataset(self) -> Dataset:
        """Rows and labels, without the truth about the taxonomy."""
        return Dataset(self.X, self.y, self.taxonomy, "synthetic")


def make_taxonomy_classification(
    n_rows: int = 5000,
    *,
    depth: int | None = None,
    fan_out: int | Sequence[int] = 4,
    n_features: int = 2000,
    sparse: bool = True,
    class_size_exponent: float = 0.3,
    n_inconsistent: int = 6,
    class_separation: float = 1.0,
    random_state: int = 0,
) -> SyntheticProblem:
    """Return rows of a hidden concept tree under a taxonomy with inconsistent nodes planted in it.

    Classes are dealt out by size so that the nodes of one level have about equally many rows:
    otherwise the objective f*, a sum over rows, would tell large nodes from small ones instead of
    inconsistent from sound ones.

    Parameters
    ----------
    n_rows : int
        At least 4 per leaf.
    depth : int, optional
        Levels below the root; 3 if ``fan_out`` is a number, else its length.
    fan_out : int or sequence of int
        Children of every node, or of every node of each level from the root down.
    n_features : int
        Columns of X.
    sparse : bool
        True: L2-normalised tf-idf of made-up texts, CSR. False: a Gaussian around the sum of the
        directions along the concept's path, a dense array.
    class_size_exponent : float
        The r-th largest class has a share of rows that goes with r ** -exponent; 0 is balanced.
    n_inconsistent : int
        Number of planted nodes, spread over the internal levels; 0, or at least 2 and at most about
        half of the internal nodes.
    class_separation : float
        Scales how much of a row its concepts make up; smaller is harder.
    random_state : int
        Seed.

    Examples
    --------
    >>> problem = make_taxonomy_classification(500, fan_out=(4, 4, 2), n_inconsistent=4)
    >>> problem.X.shape, problem.taxonomy
    ((500, 2000), Taxonomy(53 nodes, 32 leaves, depth 3))
    >>> len(problem.inconsistent)
    4
    """
    shape = _tree_shape(depth, fan_out)
    n_leaves = int(np.prod(shape))
    if n_rows < N_LEAST_ROWS * n_leaves:
        raise DataError(
            f"n_rows must be at least {N_LEAST_ROWS} per leaf, {N_LEAST_ROWS * n_leaves} for "
            f"{n_leaves} leaves, but is {n_rows}"
        )
    if class_separation <= 0:
        raise DataError(f"class_separation must be positive, but is {class_separation}")
    rng = np.random.default_rng(random_state)
    taxonomy, level_starts = _regular_taxonomy(shape)
    concepts, planted = _plant(shape, n_inconsistent, rng)
    leaf_rows = _class_sizes(n_rows, shape, class_size_exponent, rng)
    leaves = rng.permutation(np.repeat(np.arange(n_leaves), leaf_rows))
    paths = _concept_paths(concepts[leaves], shape)
    make_rows = _text_rows if sparse else _gaussian_rows
    X = make_rows(paths, shape, n_features, class_separation, rng)
    labels = np.array(taxonomy.labels, dtype=object)
    y = labels[level_starts[-2] + leaves]
    inconsistent = tuple(str(labels[level_starts[level] + position]) for level, position in planted)
    return SyntheticProblem(X, y, taxonomy, inconsistent)


def _tree_shape(depth: int | None, fan_out: int | Sequence[int]) -> tuple[int, ...]:
    """Children per node of each level from the root down."""
    if isinstance(fan_out, (int, np.integer)):
        shape = (int(fan_out),) * (3 if depth is None else depth)
    else:
        shape = tuple(int(n) for n in fan_out)
        if depth is not None and len(shape) != depth:
            raise DataError(f"fan_out has {len(shape)} levels but depth is {depth}")
    if not shape or min(shape) < 2:
        raise DataError(f"fan_out must be at least 2 on every level, but is {fan_out!r}")
    return shape


def _regular_taxonomy(shape: tuple[int, ...]) -> tuple[Taxonomy, IntArray]:
    """Return the tree of a shape, and the node at which each level starts."""
    sizes = np.cumprod([1, *shape])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    parents, labels = [-1], ["all"]
    for level, width in enumerate(shape):
        above = range(int(starts[level]), int(starts[level + 1]))
        parents += [parent for parent in above for _ in range(width)]
        labels += [
            f"{labels[parent]}.{place}" if level else str(place)
            for parent in above
            for place in range(1, width + 1)
        ]
    return Taxonomy.from_parents(parents, labels), starts


def _plant(
    shape: tuple[int, ...], n_inconsistent: int, rng: np.random.Generator
) -> tuple[IntArray, list[tuple[int, int]]]:
    """Concept of every leaf position, and (level, position in level) of the planted nodes.

    Siblings are spoilt in groups: the i-th node of a group gets child j from the (i + j)-th. Groups
    at deeper levels sit under sound parents only, so that no fault is hidden by another.
    """
    concepts = np.arange(np.prod(shape))
    planted: list[tuple[int, int]] = []
    internal_levels = range(1, len(shape))
    shares = _split(n_inconsistent, shape)
    is_sound = np.ones(1, dtype=bool)
    for level, share in zip(internal_levels, shares, strict=True):
        width = shape[level - 1]
        spoilt = np.zeros((is_sound.size, width), dtype=bool)
        parents = rng.permutation(np.flatnonzero(is_sound))
        for parent, size in zip(parents, _group_sizes(share, parents.size), strict=False):
            group = np.sort(rng.choice(width, size, replace=False))
            spoilt[parent, group] = True
            _deal_children(concepts, shape, level, parent * width + group)
            planted += [(level, int(parent * width + place)) for place in group]
        is_sound = np.repeat(is_sound, width) & ~spoilt.ravel()
    return concepts, sorted(planted)


def _split(total: int, shape: tuple[int, ...]) -> list[int]:
    """Return the planted nodes per internal level: as even as may be, nowhere exactly one.

    At most half of the nodes under sound parents are planted, so that sound ones remain to compare
    with and to plant below.
    """
    if total < 0 or total == 1:
        raise DataError(
            "n_inconsistent must be 0 or at least 2, because a node can only trade children with "
            f"another; it is {total}"
        )
    room, n_sound = [], 1
    for width in shape[:-1]:
        room.append(n_sound * width // 2)
        n_sound = n_sound * width - room[-1]
    shares = [0] * len(room)
    for _ in range(total // 2):
        fits = [level for level in range(len(room)) if room[level] >= shares[level] + 2]
        if fits:  # the emptiest level, the deepest of these
            shares[min(reversed(fits), key=shares.__getitem__)] += 2
    odd_fits = [level for level in range(len(room)) if 2 <= shares[level] < room[level]]
    if total % 2 and odd_fits:
        shares[odd_fits[-1]] += 1
    if sum(shares) < total:
        raise DataError(
            f"n_inconsistent is too large: it is {total}, and a tree with fan-out {shape} has room "
            f"for {sum(shares)}"
        )
    return shares


def _group_sizes(share: int, n_parents: int) -> list[int]:
    """Return the sizes of a level's groups of siblings, pairs where there are parents enough."""
    n_groups = min(share // 2, n_parents)
    return [share // n_groups + (group < share % n_groups) for group in range(n_groups)]


def _deal_children(concepts: IntArray, shape: tuple[int, ...], level: int, group: IntArray) -> None:
    """Deal the children of these nodes of a level out among them, in place."""
    n_nodes, n_children = int(np.prod(shape[:level])), shape[level]
    blocks = concepts.reshape(n_nodes, n_children, -1)
    child = np.arange(n_children)
    giver = (np.arange(group.size)[:, None] + child) % group.size
    blocks[group] = blocks[group[giver], child]


def _class_sizes(
    n_rows: int, shape: tuple[int, ...], exponent: float, rng: np.random.Generator
) -> IntArray:
    """Rows of every leaf position: a power law, dealt out so that nodes of a level are alike.

    The largest classes go to different tops, the next ones to different nodes below, and so on.
    """
    n_leaves = int(np.prod(shape))
    weight = np.arange(1, n_leaves + 1) ** -float(exponent)
    sizes = N_LEAST_ROWS + (n_rows - N_LEAST_ROWS * n_leaves) * weight / weight.sum()
    bounds = np.rint(np.cumsum(sizes)).astype(np.int64)
    counts = np.diff(bounds, prepend=0)
    # Position (p1, …, pD) gets rank p1 + s1·p2 + s1·s2·p3 …: neighbours in rank have other tops.
    ranks = np.arange(n_leaves).reshape(shape[::-1]).transpose()
    for axis in range(1, len(shape)):  # every second round runs backwards, as when cards are dealt
        odd = [slice(None)] * len(shape)
        odd[axis] = slice(1, None, 2)
        ranks[tuple(odd)] = np.flip(ranks[tuple(odd)], axis=axis - 1)
    for axis, width in enumerate(shape):
        ranks = np.take(ranks, rng.permutation(width), axis=axis)
    return np.asarray(counts[ranks.ravel()], dtype=np.int64)


def _concept_paths(concepts: IntArray, shape: tuple[int, ...]) -> IntArray:
    """Position within its level of each concept on each row's path, shape (n_rows, depth)."""
    below = np.cumprod([1, *shape[:0:-1]])[::-1]  # leaves under a node of each level
    return concepts[:, None] // below


def _text_rows(
    paths: IntArray,
    shape: tuple[int, ...],
    n_features: int,
    class_separation: float,
    rng: np.random.Generator,
) -> csr_matrix:
    """Return tf-idf of texts with words from the topics on each row's path, or from anywhere."""
    n_rows, depth = paths.shape
    n_words = 1 + rng.poisson(rng.gamma(4, (MEAN_WORDS_PER_ROW - 1) / 4, n_rows))
    row = np.repeat(np.arange(n_rows, dtype=np.int32), n_words)
    share = min(TOPICAL_SHARE * class_separation, 1.0) * _level_weights(depth)
    source = rng.choice(depth + 1, row.size, p=[*share, 1 - share.sum()])  # depth: background
    background = rng.permutation(n_features).astype(np.int32)
    word = background[_zipf_ranks(n_features, BACKGROUND_DECAY, row.size, rng)]
    topic_size = min(TOPIC_SIZE, n_features)
    for level, width in enumerate(shape):
        token = np.flatnonzero(source == level)
        concept = paths[row[token], level]
        n_concepts = int(np.prod(shape[: level + 1]))
        topics = rng.integers(n_features, size=(n_concepts + width, topic_size), dtype=np.int32)
        is_facet = rng.random(token.size) < _facet_share(level, depth)
        concept = np.where(is_facet, n_concepts + concept % width, concept)
        word[token] = topics[concept, _zipf_ranks(topic_size, TOPIC_DECAY, token.size, rng)]
    return _tf_idf(row, word, (n_rows, n_features))


def _level_weights(depth: int) -> FloatArray:
    """Return the share of a row's topics that each level has, from the top; they sum to 1."""
    weight = np.full(depth, MIDDLE_WEIGHT)
    weight[0] = TOP_WEIGHT
    weight[-1] = LEAF_WEIGHT
    return np.asarray(weight / weight.sum())


def _facet_share(level: int, depth: int) -> float:
    """Return how much of a topic is a facet; level 0 is that of the tops here."""
    if level == 0:
        return 0.0
    return LEAF_FACET if level == depth - 1 else MIDDLE_FACET


def _zipf_ranks(n: int, decay: float, size: int, rng: np.random.Generator) -> IntArray:
    """Draws from 0 … n - 1 with probability that goes with (rank + 1) ** -decay."""
    cumulative = np.cumsum(np.arange(1, n + 1) ** -decay)
    ranks = np.searchsorted(cumulative, rng.random(size) * cumulative[-1], side="right")
    return np.asarray(ranks, dtype=np.int64)


def _tf_idf(row: NDArray[np.int32], word: NDArray[np.int32], shape: tuple[int, int]) -> csr_matrix:
    """Return counts times log inverse document frequency, with rows of unit length."""
    counts = csr_matrix((np.ones(row.size, dtype=np.float32), (row, word)), shape=shape)
    frequency = np.bincount(counts.indices, minlength=shape[1])
    idf = (1 + np.log((1 + shape[0]) / (1 + frequency))).astype(np.float32)
    counts.data *= idf[counts.indices]
    length = np.sqrt(np.add.reduceat(counts.data**2, counts.indptr[:-1]))
    counts.data /= np.repeat(length, np.diff(counts.indptr))
    return counts


def _gaussian_rows(
    paths: IntArray,
    shape: tuple[int, ...],
    n_features: int,
    class_separation: float,
    rng: np.random.Generator,
) -> NDArray[np.float32]:
    """Return unit noise around the sum of the directions along each row's path."""
    n_rows, depth = paths.shape
    X = rng.standard_normal((n_rows, n_features), dtype=np.float32)
    lengths = DENSE_LENGTH * class_separation * np.sqrt(depth * _level_weights(depth))
    for level, (width, length) in enumerate(zip(shape, lengths, strict=True)):
        n_concepts = int(np.prod(shape[: level + 1]))
        own = rng.standard_normal((n_concepts, n_features), dtype=np.float32)
        facet = rng.standard_normal((width, n_features), dtype=np.float32)
        facet_share = _facet_share(level, depth)
        own *= np.float32(length * np.sqrt(1 - facet_share))
        facet *= np.float32(length * np.sqrt(facet_share))
        X += own[paths[:, level]]
        X += facet[paths[:, level] % width]
    return X
