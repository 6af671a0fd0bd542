"""How the rows of a file are read: decided when a model is fitted, and kept with the model."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from taxofit.datasets import (
    BadRows,
    iter_table,
    read_arff,
    read_hierarchy,
    read_svmlight,
    read_table,
)
from taxofit.datasets.label_paths import (
    guess_name_separator,
    guess_path_separator,
    paths_of_levels,
    split_path,
)
from taxofit.errors import DataError, ModelError, TaxonomyError
from taxofit.taxonomy import Taxonomy, clean_path
from taxofit.workflow.column_guess import with_columns
from taxofit.workflow.file_formats import format_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping

    from taxofit.datasets import Dataset, SvmlightRows, TableChunk
    from taxofit.datasets.dataset import InternalLabels
    from taxofit.workflow.options import FitOptions

__all__ = ["Source", "read_for_fit"]

N_LABELS_SHOWN = 3
FORMATS = ("table", "svmlight", "arff")


def _all(kind: type, value: object) -> bool:
    return isinstance(value, tuple) and all(type(part) is kind for part in value)


# What values a field of `Source` can have, by its annotation.
MAY_BE: dict[str, Callable[[object], bool]] = {
    "str": lambda value: isinstance(value, str),
    "str | None": lambda value: value is None or isinstance(value, str),
    "bool": lambda value: isinstance(value, bool),
    "tuple[str, ...]": lambda value: _all(str, value),
    "tuple[int, ...]": lambda value: _all(int, value),
    "tuple[int, ...] | None": lambda value: value is None or _all(int, value),
}


@dataclass(frozen=True, kw_only=True)
class Source:
    """Everything needed to read further files as the training file was read.

    Attributes
    ----------
    format : {"table", "svmlight", "arff"}
    text, numeric, category, label_path, levels, separator
        As in `FitOptions`, the separator no longer to be guessed.
    encoding, delimiter, ignore_features, internal_labels
        As in `FitOptions`.
    has_hierarchy : bool
        Whether the taxonomy came from a file of its own; a label it lacks is then an error.
    feature_ids : tuple of int, optional
        The svmlight feature behind each column.
    """

    format: str
    text: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    label_path: str | None = None
    levels: tuple[str, ...] = ()
    separator: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    ignore_features: tuple[int, ...] = ()
    internal_labels: str = "error"
    has_hierarchy: bool = False
    feature_ids: tuple[int, ...] | None = None

    @classmethod
    def from_options(cls, options: FitOptions, file: str) -> Self:
        """Return how this file is to be read; a DataError where options contradict one another."""
        kind = format_of(file) if options.format == "auto" else options.format
        options.check_for(kind, file)
        shared = {field.name for field in fields(cls)} & {field.name for field in fields(options)}
        values = {name: getattr(options, name) for name in shared}
        values |= {"format": kind, "has_hierarchy": options.hierarchy is not None}
        if kind == "table":
            for name in ("text", "numeric", "category"):
                values[name] = _columns_named(getattr(options, name), file, options)
        return cls(**values)

    def to_notes(self) -> dict[str, Any]:
        """Return what `from_notes` needs, for JSON; only what differs from the defaults."""
        kept = {field.name: field.default for field in fields(self)}
        return {name: value for name, value in asdict(self).items() if value != kept[name]}

    @classmethod
    def from_notes(cls, notes: Mapping[str, Any], folder: str) -> Self:
        """Return the source that a model's notes describe."""
        if "source" not in notes:
            raise ModelError(
                f"{folder} was saved from Python and does not say how to read files; use "
                f"taxofit.load_model there, or train it with `taxofit fit`"
            )
        try:
            saved: dict[str, Any] = {
                name: tuple(value) if isinstance(value, list) else value
                for name, value in notes["source"].items()
            }
            source = cls(**saved)
        except (TypeError, AttributeError) as error:
            raise ModelError(f"{folder}: the notes on its columns are damaged ({error})") from None
        source.check_notes(folder)
        return source

    def check_notes(self, folder: str) -> None:
        """Raise a ModelError where what a model's notes say cannot be meant."""
        for described in fields(self):
            value = getattr(self, described.name)
            if not MAY_BE[str(described.type)](value):
                raise ModelError(
                    f"{folder}: the notes on its columns are damaged ({described.name} is "
                    f"{value!r:.60})"
                )
        is_table = self.format == "table"
        if self.format not in FORMATS or (is_table and not self.columns):
            raise ModelError(f"{folder}: the notes do not say how to read files like {self.format}")
        if self.format == "svmlight" and self.feature_ids is None:
            raise ModelError(f"{folder}: the notes do not say which features were learned")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table that hold features."""
        return (*self.text, *self.numeric, *self.category)

    @property
    def label_columns(self) -> tuple[str, ...]:
        """The columns of a table that hold labels."""
        return self.levels if self.label_path is None else (self.label_path,)

    # ------------------------------------------------------------------ rows without labels

    def features_of(self, chunk: TableChunk) -> Any:
        """Return X of some rows of a table: texts, numbers, or columns of several kinds."""
        return chunk.features(self.text, self.numeric, self.category)

    # ------------------------------------------------------------------ rows with labels

    def read_labelled(
        self, file: str, taxonomy: Taxonomy | None, bad_rows: BadRows | None = None
    ) -> Dataset:
        """Return the rows with their labels; rows of a table that cannot be used go to `BadRows`.

        Without a taxonomy it is made from the paths. With one, labels that it lacks are added to it
        where it was itself made from training rows: such rows are errors of the model, and dropping
        them would flatter it.
        """
        if self.format == "svmlight":
            if taxonomy is None:
                raise DataError(f"{file}: svmlight files have no taxonomy in them")
            rows = self.svmlight_rows(file)
            return rows.to_dataset(taxonomy, internal_labels=self._internal_labels)
        if self.format == "arff":
            return self._read_arff(file, taxonomy)
        internal_labels = self._internal_labels
        notes: tuple[str, ...] = ()
        if taxonomy is not None and not self.has_hierarchy:
            taxonomy, notes = self._with_new_labels(file, taxonomy)
            internal_labels = "keep" if notes else internal_labels
        dataset = read_table(
            file,
            text=self.text,
            numeric=self.numeric,
            category=self.category,
            label_path=self.label_path,
            levels=self.levels,
            separator=self.separator,
            taxonomy=taxonomy,
            internal_labels=internal_labels,
            encoding=self.encoding,
            delimiter=self.delimiter,
            bad_rows=bad_rows,
        )
        return replace(dataset, notes=(*dataset.notes, *notes))

    def with_separator(
        self, file: str, taxonomy: Taxonomy | None
    ) -> tuple[Source, tuple[str, ...]]:
        """Return the source with its separator found out, and a note on the guess.

        A separator that was given but is in no label is a DataError, where another one is.
        """
        if self.format != "table" or self.label_path is None:
            return self, ()
        values = {value for value in self._labels(file) if isinstance(value, str)}
        if taxonomy is not None:
            values = {value for value in values if value.strip() not in taxonomy}
        separator = guess_path_separator(values)
        if separator is None and Path(file).is_dir():
            separator = guess_name_separator(values)
        if separator is None:
            return self, ()
        if self.separator is not None:
            if any(self.separator in value for value in values):
                return self, ()
            raise DataError(
                f"{file}: no label in {self.label_path!r} has the separator {self.separator!r}; "
                f"is it {separator!r}?"
            )
        note = f"paths in {self.label_path!r} are split at {separator!r} (guessed)"
        return replace(self, separator=separator), (note,)

    @property
    def _internal_labels(self) -> InternalLabels:
        return cast("InternalLabels", self.internal_labels)

    def svmlight_rows(self, file: str) -> SvmlightRows:
        """Return the rows of an svmlight file; its own columns where none are known yet."""
        return read_svmlight(
            file,
            ignore_features=self.ignore_features,
            compact=self.feature_ids is None,
            feature_ids=None if self.feature_ids is None else np.asarray(self.feature_ids),
        )

    def _read_arff(self, file: str, taxonomy: Taxonomy | None) -> Dataset:
        dataset = read_arff(file, internal_labels=self._internal_labels)
        if taxonomy is None:
            return dataset
        for label in dict.fromkeys(dataset.y.tolist()):
            try:
                taxonomy.node_of(label)
            except TaxonomyError as error:
                raise DataError(f"{file}: {error}; is this the model's data?") from None
        return replace(dataset, taxonomy=taxonomy)

    def _labels(self, file: str) -> Iterator[Hashable]:
        """Yield what the label columns say, row by row: a value, or a path of one per level."""
        chunks = iter_table(
            file,
            self.label_columns,
            encoding=self.encoding,
            delimiter=self.delimiter,
            bad_rows=BadRows(),
        )
        for chunk in chunks:
            if self.label_path is None:
                yield from paths_of_levels([chunk.columns[level] for level in self.levels])
            else:
                yield from chunk.columns[self.label_path]

    def _path(self, value: Hashable) -> tuple[Hashable, ...]:
        if isinstance(value, str):
            return split_path(value, self.separator)
        return value if isinstance(value, tuple) else (value,)

    def _with_new_labels(self, file: str, taxonomy: Taxonomy) -> tuple[Taxonomy, tuple[str, ...]]:
        """Return the taxonomy with the paths of this file that it lacks, and a note on them."""
        new: dict[tuple[Hashable, ...], None] = {}
        for value in dict.fromkeys(self._labels(file)):
            label = value.strip() if isinstance(value, str) else value
            path = self._path(label)
            if label in taxonomy or path in taxonomy:
                continue
            try:
                new[clean_path(path)] = None
            except TaxonomyError:
                continue  # read_table says which line it is on
        if not new:
            return taxonomy, ()
        shown = ", ".join(repr(" > ".join(map(str, path))) for path in list(new)[:N_LABELS_SHOWN])
        more = f" and {len(new) - N_LABELS_SHOWN} more" * (len(new) > N_LABELS_SHOWN)
        note = f"{len(new)} labels are unknown to the model and count as errors: {shown}{more}"
        return Taxonomy.from_paths([*taxonomy.to_paths(), *new]), (note,)


def read_for_fit(file: str, options: FitOptions) -> tuple[Dataset, Source]:
    """Return the training rows, and how to read further files like them."""
    source, guesses = with_columns(Source.from_options(options, file), file)
    taxonomy = None if options.hierarchy is None else read_hierarchy(options.hierarchy)
    source, notes = source.with_separator(file, taxonomy)
    if source.format == "svmlight":
        feature_ids = tuple(source.svmlight_rows(file).feature_ids.tolist())
        if not feature_ids:
            raise DataError(f"{file}: the rows have labels but no features")
        source = replace(source, feature_ids=feature_ids)
    bad_rows = BadRows(strict=options.strict)
    dataset = source.read_labelled(file, taxonomy, bad_rows)
    return replace(dataset, notes=(*guesses, *notes, *dataset.notes)), source


def _columns_named(names: tuple[str, ...], file: str, options: FitOptions) -> tuple[str, ...]:
    """Return names with patterns such as ``'MFCCs_*'`` replaced by the columns they match."""
    if not any("*" in name for name in names):
        return names
    first = next(
        iter_table(
            file,
            chunk_rows=1,
            encoding=options.encoding,
            delimiter=options.delimiter,
            bad_rows=BadRows(),
        )
    )
    found: dict[str, None] = {}
    for name in names:
        matching = [c for c in first.columns if c == name or fnmatchcase(c, name)]
        if not matching:
            known = ", ".join(map(repr, first.columns))
            raise DataError(f"{file}: no column is like {name!r}; the columns are {known}")
        found |= dict.fromkeys(matching)
    return tuple(found)
