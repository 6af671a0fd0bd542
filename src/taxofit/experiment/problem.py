"""The data of an experiment: encoded rows, their leaves, the taxonomy, what was done to them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from taxofit.datasets import (
    BENCHMARKS,
    ColumnScaler,
    CountEncoder,
    TextEncoder,
    load_benchmark,
)
from taxofit.experiment.folder import read_folder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from taxofit.datasets import Dataset
    from taxofit.taxonomy import Taxonomy

    IntArray = NDArray[np.int32]

__all__ = ["ENCODINGS", "Encoding", "Problem", "load_problem"]


@dataclass(frozen=True)
class Encoding:
    """How a data set's rows and taxonomy are prepared.

    Attributes
    ----------
    encoder : transformer, optional
        Fitted on the training rows only; None leaves the numbers as they are.
    collapses_chains : bool
        Whether internal nodes with one child are left out before anything else.
    words : str
        The same for people.
    """

    encoder: Any = None
    collapses_chains: bool = False
    words: str = "features as they are"


ENCODINGS = {
    "clef": Encoding(
        StandardScaler(),
        collapses_chains=True,
        words="each column to mean 0 and variance 1; single-child nodes collapsed (88 nodes)",
    ),
    "diatoms": Encoding(ColumnScaler(), words="each column divided by its training maximum"),
    "dmoz-small": Encoding(CountEncoder(), words="tf-idf of the counts, rows of length 1"),
    "ipc-d": Encoding(words="features as they are (100 LSA components)"),
    "naics": Encoding(TextEncoder(features="pairs"), words="tf-idf of words and word pairs"),
    "20news": Encoding(TextEncoder(features="words"), words="tf-idf of words"),
}


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows to learn from and rows to be tested on.

    Attributes
    ----------
    name : str
    X, X_test : ndarray or CSR, shape (n_rows, n_features)
    row_leaf, test_leaf : ndarray of int32
        Leaf of every row, as a node.
    taxonomy : Taxonomy
    encoding : str
        What was done to the features and the taxonomy, in words.
    notes : tuple of str
    """

    name: str
    X: Any
    row_leaf: IntArray
    X_test: Any
    test_leaf: IntArray
    taxonomy: Taxonomy
    encoding: str = "features as they are"
    notes: tuple[str, ...] = ()

    @cached_property
    def classes(self) -> IntArray:
        """Leaves that occur in training or test rows: macro-F1 is their mean."""
        return np.union1d(self.row_leaf, self.test_leaf)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything that results depend on."""
        digest = hashlib.sha256()
        for part in (self.X, self.X_test):
            arrays = (part.indptr, part.indices, part.data) if sparse.issparse(part) else (part,)
            digest.update(repr(part.shape).encode())
            for array in arrays:
                digest.update(np.ascontiguousarray(array).tobytes())
        for array in (self.row_leaf, self.test_leaf, self.taxonomy.parent):
            digest.update(np.ascontiguousarray(array, dtype=np.int64).tobytes())
        return digest.hexdigest()

    def describe(self) -> dict[str, Any]:
        """Return the counts of the paper's table of data sets, and what was done."""
        return {
            "n_nodes": self.taxonomy.n_nodes,
            "n_leaves": self.taxonomy.n_leaves,
            "depth": self.taxonomy.depth + 1,
            "n_train": len(self.row_leaf),
            "n_test": len(self.test_leaf),
            "n_features": int(self.X.shape[1]),
            "encoding": self.encoding,
            "notes": list(self.notes),
        }


def load_problem(
    source: str | Path,
    data: str | Path | None = None,
    *,
    encoding: Encoding | None = None,
    seed: int = 0,
) -> Problem:
    """Return a benchmark by name, or whatever a folder holds.

    Parameters
    ----------
    source : str or path
        One of :data:`taxofit.datasets.BENCHMARKS`, or a folder; see
        :func:`~taxofit.experiment.folder.read_folder`.
    data : path, optional
        The folder that holds the benchmarks; ``TAXOFIT_DATA`` by default.
    encoding : Encoding, optional
        Instead of that of :data:`ENCODINGS`, or of the one guessed for a folder.
    seed : int
        Of the split into training and test rows, where the source gives none.
    """
    if isinstance(source, str) and source in BENCHMARKS:
        train, test = load_benchmark(source, data, random_state=seed)
        return _prepare(source, train, test, encoding or ENCODINGS[source])
    if isinstance(source, str) and not Path(source).is_dir():
        load_benchmark(source, data)  # raises: it lists the names there are
    train, test = read_folder(source)
    return _prepare(Path(source).resolve().name, train, test, encoding or _guessed_encoding(train))


def _prepare(name: str, train: Dataset, test: Dataset, encoding: Encoding) -> Problem:
    taxonomy = train.taxonomy
    if encoding.collapses_chains:
        taxonomy = taxonomy.collapse_chains()
    X, X_test = train.X, test.X
    if encoding.encoder is not None:
        encoder = clone(encoding.encoder)
        X, X_test = encoder.fit_transform(X), encoder.transform(X_test)
    notes = tuple(dict.fromkeys((*train.notes, *test.notes)))
    leaves, test_leaves = taxonomy.nodes_of(train.y), taxonomy.nodes_of(test.y)
    return Problem(name, X, leaves, X_test, test_leaves, taxonomy, encoding.words, notes)


def _guessed_encoding(train: Dataset) -> Encoding:
    """Texts and counts become tf-idf, other numbers stay."""
    if train.is_text:
        return Encoding(TextEncoder(features="words"), words="tf-idf of words")
    if sparse.issparse(train.X) and train.X.nnz:
        values = train.X.data
        if values.min() >= 0 and np.array_equal(values, np.rint(values)):
            return Encoding(CountEncoder(), words="tf-idf of the counts, rows of length 1")
    return Encoding()
