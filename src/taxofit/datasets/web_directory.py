"""Made-up web directories of the sizes that the paper reports for DMOZ.

The real pages cannot be passed on, but their printed statistics can be met: nodes, leaves,
depth, rows and features exactly, a power law of class sizes, and words by Zipf's law, so that a
good part of the features (a third at DMOZ-2010's size) occur in one row only. A page draws some
words from topics of the nodes on its path and the rest from anywhere. Time and memory of
training can be studied on such rows; accuracy cannot.
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
    from numpy.typing import NDArray

    IntArray = NDArray[np.int64]

__all__ = ["DIRECTORY_SIZES", "DirectorySize", "make_web_directory"]

CLASS_SIZE_EXPONENT = (
    0.8  # gives half of the classes five rows or fewer, as the paper's figures show
)
LENGTH_SHAPE = 2.0  # of the gamma distribution of words per row
TOPICAL_SHARE = 0.45  # of a row's words
TOPIC_SIZE = 40  # words of a node
TOPIC_FLOOR = 0.3  # topics leave out the most frequent words, those of rank below n ** TOPIC_FLOOR
WORD_DECAY = 1.2  # of Zipf's law, steep enough that many words occur in one row only
N_STOP_WORDS = 20  # most frequent words of the language, which a directory's features leave out
CHUNK_WORDS = 1 << 22  # drawn at a time


@dataclass(frozen=True, kw_only=True)
class DirectorySize:
    """The statistics that a directory is made to meet.

    Attributes
    ----------
    n_nodes : int
        All nodes, the root included.
    n_leaves, n_train, n_test, n_features : int
    depth : int
        Levels below the root; the paper counts the root too and prints 6.
    words_per_row : float
        Words drawn for a row; some repeat, so that a row has fewer non-zeros.
    """

    n_nodes: int
    n_leaves: int
    depth: int
    n_train: int
    n_test: int
    n_features: int
    words_per_row: float

    def scaled(self, factor: float) -> DirectorySize:
        """Return a directory of the same depth and row length with counts times a factor."""
        n_leaves = max(self.depth, round(self.n_leaves * factor))
        n_internal = max(self.depth, round((self.n_nodes - self.n_leaves) * factor))
        return DirectorySize(
            n_nodes=n_leaves + n_internal,
            n_leaves=n_leaves,
            depth=self.depth,
            n_train=max(n_leaves, round(self.n_train * factor)),
            n_test=max(1, round(self.n_test * factor)),
            n_features=max(10, round(self.n_features * factor)),
            words_per_row=self.words_per_row,
        )


# Counts from the paper's table of data sets. It does not print non-zeros: DMOZ-2010 has 83 a
# row, the others are taken to have about 100.
DIRECTORY_SIZES = {
    "dmoz-small": DirectorySize(
        n_nodes=2388,
        n_leaves=1139,
        depth=5,
        n_train=6323,
        n_test=1858,
        n_features=51033,
        words_per_row=129.0,
    ),
    "dmoz-2010": DirectorySize(
        n_nodes=17222,
        n_leaves=12294,
        depth=5,
        n_train=128710,
        n_test=34880,
        n_features=381580,
        words_per_row=102.0,
    ),
    "dmoz-2012": DirectorySize(
        n_nodes=13963,
        n_leaves=11947,
        depth=5,
        n_train=383408,
        n_test=103435,
        n_features=348548,
        words_per_row=125.0,
    ),
}


def make_web_directory(
    size: str | DirectorySize = "dmoz-small", *, scale: float = 1.0, random_state: int = 0
) -> tuple[Dataset, Dataset]:
    """Return training and test rows of a made-up web directory, L2-normalised tf-idf in CSR.

    Every leaf has a training row, and every feature occurs in some row.

    Parameters
    ----------
    size : str or DirectorySize
        ``"dmoz-small"``, ``"dmoz-2010"``, ``"dmoz-2012"``, or counts of your own.
    scale : float
        Shrinks all counts but the depth, for trials.
    random_state : int
        Seed.

    Examples
    --------
    >>> train, test = make_web_directory("dmoz-small", scale=0.1)
    >>> train.X.shape, test.X.shape, train.taxonomy
    ((632, 5103), (186, 5103), Taxonomy(239 nodes, 114 leaves, depth 5))
    """
    name = size if isinstance(size, str) else "web directory"
    if isinstance(size, str):
        if size not in DIRECTORY_SIZES:
            known = ", ".join(map(repr, DIRECTORY_SIZES))
            raise DataError(f"size must be one of {known}, or a DirectorySize, but is {size!r}")
        size = DIRECTORY_SIZES[size]
    if scale <= 0:
        raise DataError(f"scale must be positive, but is {scale}")
    size = size if scale == 1 else size.scaled(scale)
    rng = np.random.default_rng(random_state)
    taxonomy = Taxonomy.from_parents(_random_tree(size, rng))
    leaf_rows = _class_sizes(size, rng)
    train_leaf = rng.permutation(np.repeat(np.arange(size.n_leaves), leaf_rows))
    test_leaf = rng.choice(size.n_leaves, size.n_test, p=leaf_rows / size.n_train)
    row_node = taxonomy.leaf_order[np.concatenate([train_leaf, test_leaf])]
    X = _tf_idf(_word_counts(taxonomy, row_node, size, rng), size.n_train)
    y = np.asarray(taxonomy.labels)[row_node]
    n = size.n_train
    return (
        Dataset(X[:n], y[:n], taxonomy, name),
        Dataset(X[n:], y[n:], taxonomy, name),
    )


def _random_tree(size: DirectorySize, rng: np.random.Generator) -> IntArray:
    """Return the parent of every node, -1 for the root: internal nodes first, level by level."""
    per_level = _internal_per_level(size)
    starts = np.concatenate([[0], np.cumsum(per_level)])
    parent = [np.array([-1])]
    for level in range(1, size.depth):
        above, here = per_level[level - 1], per_level[level]
        # Every node above gets one of these as far as they go round: few dead ends want a leaf.
        first = rng.permutation(above)[:here]
        rest = rng.integers(above, size=here - first.size)
        parent.append(starts[level - 1] + np.sort(np.concatenate([first, rest])))
    internal = np.concatenate(parent)
    childless = np.setdiff1d(np.arange(internal.size), internal)
    n_free = size.n_leaves - childless.size
    if n_free < 0:
        raise DataError(
            f"{size.n_leaves} leaves are too few for {internal.size} internal nodes in "
            f"{size.depth} levels: {childless.size} of these would stay without a leaf"
        )
    appeal = rng.lognormal(sigma=1.0, size=internal.size)
    appeal[0] = 0.0  # no leaf right under the root
    adopters = rng.choice(internal.size, n_free, p=appeal / appeal.sum())
    return np.concatenate([internal, np.sort(np.concatenate([childless, adopters]))])


def _internal_per_level(size: DirectorySize) -> IntArray:
    """Return the internal nodes on levels 0 … depth - 1: a geometric growth, at least one each."""
    n_internal = size.n_nodes - size.n_leaves
    if n_internal < size.depth:
        raise DataError(
            f"depth {size.depth} needs as many internal nodes, but {size.n_nodes} nodes with "
            f"{size.n_leaves} leaves leave {n_internal}"
        )
    low, high = 1.0, float(n_internal)
    levels = np.arange(size.depth)
    for _ in range(60):
        ratio = 0.5 * (low + high)
        low, high = (ratio, high) if (ratio**levels).sum() < n_internal else (low, ratio)
    counts = np.maximum(np.floor(low**levels), 1).astype(np.int64)
    counts[-1] += n_internal - counts.sum()
    return counts


def _class_sizes(size: DirectorySize, rng: np.random.Generator) -> IntArray:
    """Return the training rows of every leaf: one each, and a power law of the others."""
    weight = np.arange(1, size.n_leaves + 1) ** -CLASS_SIZE_EXPONENT
    more = np.rint(np.cumsum(weight) / weight.sum() * (size.n_train - size.n_leaves))
    counts = 1 + np.diff(more, prepend=0).astype(np.int64)
    return np.asarray(rng.permutation(counts))


def _word_counts(
    taxonomy: Taxonomy, row_node: NDArray[np.int32], size: DirectorySize, rng: np.random.Generator
) -> csr_matrix:
    """Return how often each word occurs in each row; each word somewhere."""
    n_rows, n_features = row_node.size, size.n_features
    length = rng.gamma(LENGTH_SHAPE, size.words_per_row / LENGTH_SHAPE, n_rows)
    row = np.repeat(np.arange(n_rows, dtype=np.int32), np.maximum(length, 1).astype(np.int64))
    word = np.empty(row.size, dtype=np.int32)
    topics = _zipf_ranks(
        int(n_features**TOPIC_FLOOR), n_features, rng, (taxonomy.n_nodes, TOPIC_SIZE)
    )
    path = taxonomy.ancestors(row_node)
    level = taxonomy.level[row_node]
    for first in range(0, row.size, CHUNK_WORDS):
        chunk = slice(first, first + CHUNK_WORDS)
        word[chunk] = _zipf_ranks(N_STOP_WORDS, n_features + N_STOP_WORDS, rng, row[chunk].size)
        word[chunk] -= N_STOP_WORDS
        topical = first + np.flatnonzero(rng.random(row[chunk].size) < TOPICAL_SHARE)
        page = row[topical]
        node = path[page, rng.integers(1, level[page] + 1)]
        word[topical] = topics[node, _zipf_ranks(0, TOPIC_SIZE, rng, topical.size)]
    unseen = np.setdiff1d(np.arange(n_features, dtype=np.int32), word)
    row = np.concatenate([row, rng.integers(n_rows, size=unseen.size, dtype=np.int32)])
    word = np.concatenate([word, unseen])
    word = rng.permutation(n_features).astype(np.int32)[word]  # a column's place tells nothing
    ones = np.ones(row.size, dtype=np.float32)
    return csr_matrix((ones, (row, word)), shape=(n_rows, n_features))


def _zipf_ranks(first: int, stop: int, rng: np.random.Generator, shape: Any) -> NDArray[np.int32]:
    """Return draws from first … stop - 1 whose probability goes with (rank + 1) ** -WORD_DECAY."""
    power = 1.0 - WORD_DECAY
    most, least = np.float32((first + 1.0) ** power), np.float32((stop + 1.0) ** power)
    share = rng.random(shape, dtype=np.float32)
    ranks = (most + (least - most) * share) ** np.float32(1.0 / power)
    return np.clip(ranks.astype(np.int32) - 1, first, stop - 1)


def _tf_idf(counts: csr_matrix, n_train: int) -> csr_matrix:
    """Return (1 + log count) times inverse document frequency in training rows, in unit rows."""
    frequency = np.bincount(counts.indices[: counts.indptr[n_train]], minlength=counts.shape[1])
    idf = (1 + np.log((1 + n_train) / (1 + frequency))).astype(np.float32)
    counts.data = (1 + np.log(counts.data)) * idf[counts.indices]
    length = np.sqrt(np.add.reduceat(counts.data**2, counts.indptr[:-1]))
    counts.data /= np.repeat(length, np.diff(counts.indptr))
    return counts
