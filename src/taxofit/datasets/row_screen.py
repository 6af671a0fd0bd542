"""Finding the rows of a table that cannot be used, before anything fails on them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit.datasets.dataset import settle_internal_labels
from taxofit.datasets.label_paths import label_reader
from taxofit.datasets.table_chunks import is_missing, parse_number
from taxofit.errors import DataError, TaxonomyError
from taxofit.taxonomy import clean_path

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from taxofit.datasets.bad_rows import BadRows
    from taxofit.datasets.dataset import Dataset, InternalLabels
    from taxofit.datasets.table_chunks import TableChunk
    from taxofit.taxonomy import Taxonomy

    Path = tuple[Hashable, ...]
    Trouble = tuple[str, Callable[[], str]]  # a reason, and what an error would say

__all__ = ["RowScreen"]


class RowScreen:
    """Hands rows that cannot be used to a `BadRows` and keeps the others.

    Parameters
    ----------
    bad_rows : BadRows, optional
        Without one nothing is screened: what cannot be used is an error wherever it is met.
    """

    def __init__(self, bad_rows: BadRows | None) -> None:
        self._bad_rows = bad_rows

    def usable_features(
        self,
        chunk: TableChunk,
        text: Sequence[str],
        numeric: Sequence[str],
        category: Sequence[str],
    ) -> TableChunk:
        """Return the chunk without rows that have no text, or something else for a number.

        Missing numbers are allowed where there are columns of other kinds, as in `FrameEncoder`.
        """
        if self._bad_rows is None:
            return chunk
        trouble: list[Trouble | None] = [None] * chunk.n_rows
        if self._bad_rows.empty_text and text and not (numeric or category):
            for row, values in enumerate(zip(*(chunk.columns[n] for n in text), strict=True)):
                if all(map(is_missing, values)):
                    trouble[row] = "without text", lambda: "the text is empty"
        for name in numeric:
            for row, value in enumerate(chunk.columns[name]):
                if not _is_number(value, may_be_missing=bool(text or category)):
                    what = partial("column {!r} is not a number: {!r}".format, name, value)
                    trouble[row] = f"where {name!r} is not a number", what
        usable = self._without(chunk, trouble)
        return chunk if len(usable) == chunk.n_rows else chunk.take(usable)

    def usable_labels(
        self,
        chunk: TableChunk,
        values: Sequence[Hashable],
        paths: Sequence[Path],
        separator: str | None,
        taxonomy: Taxonomy | None,
    ) -> list[int]:
        """Return the rows whose label is there, has no gap, and is in the taxonomy if one is."""
        if self._bad_rows is None:
            return list(range(chunk.n_rows))
        label_of = None if taxonomy is None else label_reader(taxonomy, separator)
        found: dict[Path, Trouble | None] = {}
        for path, value in zip(paths, values, strict=True):
            if path not in found:
                label: Hashable = path
                if label_of is not None and not isinstance(value, tuple):
                    label = label_of(value)
                found[path] = _label_trouble(path, label, taxonomy)
        usable = self._without(chunk, [found[path] for path in paths])
        if not usable:
            reasons = "; ".join(map(str, self._bad_rows.left_out))
            raise DataError(f"{chunk.source}: no row can be used: {reasons or 'there are none'}")
        return usable

    def settled(
        self, dataset: Dataset, chunk: TableChunk, internal_labels: InternalLabels
    ) -> Dataset:
        """Return the data set without rows labelled with an internal node, or as is asked."""
        if self._bad_rows is None:
            return settle_internal_labels(dataset, internal_labels, locate=chunk.locate)
        if internal_labels != "drop":
            dataset = settle_internal_labels(dataset, internal_labels, locate=chunk.locate)
        else:
            is_leaf = dataset.taxonomy.is_leaf[dataset.taxonomy.nodes_of(dataset.y)]
            if not is_leaf.any():
                raise DataError(f"{dataset.name}: every row is labelled with an internal node")
            if not is_leaf.all():
                usable = self._without(chunk, _internal_trouble(dataset.y.tolist(), is_leaf))
                dataset = dataset.subset(usable)
        return replace(dataset, left_out=self._bad_rows.left_out)

    def _without(self, chunk: TableChunk, trouble: Sequence[Trouble | None]) -> list[int]:
        """Return the rows without trouble, having handed over the others."""
        assert self._bad_rows is not None  # noqa: S101  (asked for by its users above)
        usable = []
        for row, what in enumerate(trouble):
            if what is None:
                usable.append(row)
            else:
                message = f"{chunk.locate(row)}: {what[1]()}" if self._bad_rows.strict else what[0]
                self._bad_rows.add(what[0], chunk.place(row), message)
        return usable


def _label_trouble(path: Path, label: Hashable, taxonomy: Taxonomy | None) -> Trouble | None:
    """Return why a label cannot be used, in general and in this row; None where it can."""
    if all(is_missing(name) for name in path):
        return "without a label", lambda: "the label is empty; every row needs one"
    if isinstance(label, tuple):
        try:
            label = clean_path(label)
        except TaxonomyError as error:
            return "with a gap in the path", partial(str, error)
    if taxonomy is None or label in taxonomy:
        return None
    return "with a label that the hierarchy lacks", partial(_why_unknown, taxonomy, label)


def _why_unknown(taxonomy: Taxonomy, label: Hashable) -> str:
    """Return what the taxonomy says of a label that it lacks: looking for the like takes time."""
    try:
        taxonomy.node_of(label)
    except TaxonomyError as error:
        return str(error)
    raise AssertionError(label)


def _internal_trouble(labels: Sequence[Hashable], is_leaf: Any) -> list[Trouble | None]:
    reason = "labelled with a category that has others below it"
    return [
        None
        if leaf
        else (reason, partial("{!r} is an internal node of the taxonomy, not a leaf".format, label))
        for label, leaf in zip(labels, is_leaf, strict=True)
    ]


def _is_number(value: Any, *, may_be_missing: bool) -> bool:
    if is_missing(value):
        return may_be_missing
    try:
        return bool(np.isfinite(parse_number(value)))
    except (TypeError, ValueError):
        return False
