"""A data set: rows, the leaf label of each, and the taxonomy that the labels live in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from taxofit.datasets.mapped import take_rows
from taxofit.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from taxofit.datasets.bad_rows import LeftOut
    from taxofit.taxonomy import Taxonomy

    InternalLabels = Literal["drop", "error", "keep"]

__all__ = ["Dataset", "check_internal_labels", "settle_internal_labels"]

INTERNAL_LABEL_CHOICES = ("drop", "error", "keep")


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Rows with labels and their taxonomy; what every reader returns.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features), CSR matrix, or object array of texts (n_rows,)
    y : ndarray of shape (n_rows,)
        Labels of the taxonomy: integers, or objects.
    taxonomy : Taxonomy
    name : str
        What it is called in reports.
    notes : tuple of str
        What the reader guessed or left out, in words.
    left_out : tuple of LeftOut
        Rows that could not be used, where the reader was told to go on without them.

    Examples
    --------
    >>> from taxofit import Taxonomy
    >>> taxonomy = Taxonomy.from_labels(["ham", "spam"])
    >>> mails = Dataset(np.eye(3), np.array(["ham", "spam", "ham"], object), taxonomy, "mails")
    >>> mails
    Dataset('mails', 3 rows, 3 features, 2 of 2 leaves seen)
    >>> mails.subset([0, 2]).y
    array(['ham', 'ham'], dtype=object)
    """

    X: Any
    y: NDArray[Any]
    taxonomy: Taxonomy
    name: str = "data"
    notes: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    def __post_init__(self) -> None:
        if self.X.shape[0] != len(self.y):
            raise DataError(
                f"{self.name}: X has {self.X.shape[0]} rows but y has {len(self.y)} labels"
            )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.y)

    @property
    def n_features(self) -> int | None:
        """Number of columns of X; None where X is texts."""
        return int(self.X.shape[1]) if self.X.ndim == 2 else None

    @property
    def is_text(self) -> bool:
        """Whether X is an array of texts, still to be encoded."""
        return self.n_features is None

    def subset(self, rows: ArrayLike) -> Dataset:
        """Return the data set with these rows only: positions, a mask, or a slice."""
        index = rows if isinstance(rows, slice) else np.asarray(rows)
        return replace(self, X=take_rows(self.X, index), y=self.y[index])

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        width = "texts" if self.is_text else f"{self.n_features} features"
        n_seen = len(set(self.y.tolist()))
        return (
            f"Dataset({self.name!r}, {self.n_rows} rows, {width}, "
            f"{n_seen} of {self.taxonomy.n_leaves} leaves seen)"
        )


def check_internal_labels(internal_labels: str) -> None:
    """Raise a DataError unless this is a known way to treat rows labelled with internal nodes.

    Examples
    --------
    >>> check_internal_labels("drop")
    """
    if internal_labels not in INTERNAL_LABEL_CHOICES:
        raise DataError(
            f"internal_labels must be one of {', '.join(map(repr, INTERNAL_LABEL_CHOICES))}, "
            f"but is {internal_labels!r}"
        )


def settle_internal_labels(
    dataset: Dataset, internal_labels: InternalLabels, *, locate: Callable[[int], str]
) -> Dataset:
    """Return the data set with rows labelled by an internal node dropped, kept, or refused.

    Parameters
    ----------
    dataset : Dataset
        All of its labels are known to its taxonomy.
    internal_labels : {"drop", "error", "keep"}
        Dropped rows leave a note.
    locate : callable
        Turns a row into words, ``'products.csv:12'``.

    Examples
    --------
    >>> from taxofit import Taxonomy
    >>> taxonomy = Taxonomy.from_paths([("Home", "Kettles"), ("Pets", "Fish")])
    >>> shop = Dataset(np.eye(2), np.array(["Fish", "Home"], object), taxonomy, "shop")
    >>> settle_internal_labels(shop, "drop", locate="row {}".format).notes
    ("dropped 1 of 2 rows labelled with an internal node, first 'Home' at row 1",)
    """
    check_internal_labels(internal_labels)
    if internal_labels == "keep":
        return dataset
    is_leaf = dataset.taxonomy.is_leaf[dataset.taxonomy.nodes_of(dataset.y)]
    offenders = np.flatnonzero(~is_leaf)
    if not offenders.size:
        return dataset
    first = int(offenders[0])
    label = dataset.y[[first]].tolist()[0]
    if internal_labels == "error":
        raise DataError(
            f"{locate(first)}: {label!r} is an internal node of the taxonomy, not a leaf "
            f"({offenders.size} of {dataset.n_rows} rows have such labels); "
            f"pass internal_labels='drop' to leave these rows out"
        )
    if offenders.size == dataset.n_rows:
        raise DataError(
            f"{dataset.name}: all {dataset.n_rows} rows are labelled with internal nodes"
        )
    note = (
        f"dropped {offenders.size} of {dataset.n_rows} rows labelled with an internal node, "
        f"first {label!r} at {locate(first)}"
    )
    return replace(dataset.subset(is_leaf), notes=(*dataset.notes, note))
