"""Data sets from tables: CSV, TSV, Parquet, and pandas, polars or pyarrow frames."""

from __future__ import annotations

from dataclasses import dataclass
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from taxofit.datasets.dataset import Dataset, check_internal_labels, settle_internal_labels
from taxofit.datasets.label_paths import (
    guess_path_separator,
    labels_in,
    labels_of_paths,
    path_of,
    paths_of_levels,
)
from taxofit.datasets.table_chunks import TableChunk, iter_table
from taxofit.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

    from taxofit.datasets.dataset import InternalLabels
    from taxofit.datasets.files import FilePath
    from taxofit.taxonomy import Taxonomy

__all__ = ["from_frame", "read_table"]

N_COLUMNS_SHOWN = 30


def read_table(
    path: FilePath,
    *,
    text: str | Sequence[str] = (),
    numeric: str | Sequence[str] = (),
    label_path: str | None = None,
    levels: Sequence[str] = (),
    separator: str | None = None,
    taxonomy: Taxonomy | None = None,
    internal_labels: InternalLabels = "error",
    encoding: str | None = None,
    delimiter: str | None = None,
) -> Dataset:
    r"""Return a CSV, TSV or Parquet table as a Dataset.

    Parameters
    ----------
    path : path
    text : str or sequence of str
        Columns of text; X is then an array of texts, several columns joined by a space.
    numeric : str or sequence of str
        Columns of numbers; X is then a float64 array. Give either ``text`` or ``numeric``.
    label_path : str, optional
        The column that holds the label of each row as a path, ``'Home > Kitchen > Kettles'``.
        With a ``taxonomy``, a plain label will do.
    levels : sequence of str
        Instead of ``label_path``: one column a level, top first; shorter paths end with empty ones.
    separator : str, optional
        What stands between the names of a path; guessed by default, and the guess is noted.
    taxonomy : Taxonomy, optional
        Check labels against this one; by default it is made from the paths.
    internal_labels : {"error", "drop", "keep"}
        What becomes of rows labelled with an internal node.
    encoding, delimiter : str, optional
        As in `iter_table`.

    Returns
    -------
    Dataset
        Its ``notes`` tell what was guessed and what was dropped.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "shop.csv")
    ...     _ = file.write_text("title,category\nSteel kettle,Home > Kettles\nGuppy,Pets > Fish\n")
    ...     shop = read_table(file, text="title", label_path="category")
    >>> shop
    Dataset('shop', 2 rows, texts, 2 of 2 leaves seen)
    >>> shop.y.tolist(), shop.notes
    (['Kettles', 'Fish'], ("paths in 'category' are split at ' > ' (guessed)",))
    """
    check_internal_labels(internal_labels)
    wanted = _Wanted.checked(text, numeric, label_path, levels, separator)
    if wanted is None:
        raise DataError(f"{fspath(path)}: {_advice(_heading(path, encoding, delimiter))}")
    X: list[NDArray[Any]] = []
    parts: list[TableChunk] = []
    for chunk in iter_table(path, wanted.columns, encoding=encoding, delimiter=delimiter):
        X.append(wanted.features(chunk))
        labels = {name: chunk.columns[name] for name in wanted.label_columns}
        parts.append(
            TableChunk(chunk.source, labels, chunk.lines, chunk.notes, has_lines=chunk.has_lines)
        )
    name = Path(path).name.split(".")[0]
    return wanted.dataset(np.concatenate(X), _stack(parts), taxonomy, internal_labels, name)


def from_frame(
    frame: Any,
    *,
    text: str | Sequence[str] = (),
    numeric: str | Sequence[str] = (),
    label_path: str | None = None,
    levels: Sequence[str] = (),
    separator: str | None = None,
    taxonomy: Taxonomy | None = None,
    internal_labels: InternalLabels = "error",
    name: str = "frame",
) -> Dataset:
    """Return a pandas, polars or pyarrow table as a Dataset; parameters as in `read_table`.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"cm": [30, 5], "kind": ["Pets", "Pets"], "sort": ["Cats", "Fish"]})
    >>> from_frame(frame, numeric="cm", levels=["kind", "sort"])
    Dataset('frame', 2 rows, 1 features, 2 of 2 leaves seen)
    """
    check_internal_labels(internal_labels)
    try:
        table = nw.from_native(frame, eager_only=True)
    except TypeError:
        raise DataError(
            f"expected a pandas, polars or pyarrow table but got {type(frame).__name__}; collect a "
            f"lazy frame first"
        ) from None
    wanted = _Wanted.checked(text, numeric, label_path, levels, separator)
    if wanted is None:
        raise DataError(f"{name}: {_advice(table.columns)}")
    missing = [column for column in wanted.columns if column not in table.columns]
    if missing:
        raise DataError(
            f"{name}: no column {missing[0]!r}; the columns are {_shown(table.columns)}"
        )
    if not len(table):
        raise DataError(f"{name}: the table has no rows")
    columns = {column: table[column].to_list() for column in wanted.columns}
    chunk = TableChunk(name, columns, range(len(table)), has_lines=False)
    return wanted.dataset(wanted.features(chunk), chunk, taxonomy, internal_labels, name)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Which columns are features and which are labels."""

    text: tuple[str, ...]
    numeric: tuple[str, ...]
    label_path: str | None
    levels: tuple[str, ...]
    separator: str | None

    @classmethod
    def checked(
        cls,
        text: str | Sequence[str],
        numeric: str | Sequence[str],
        label_path: str | None,
        levels: Sequence[str],
        separator: str | None,
    ) -> _Wanted | None:
        """Return what was asked for; None where columns of features or of labels are not named."""
        wanted = cls(_names(text), _names(numeric), label_path, _names(levels), separator)
        if wanted.text and wanted.numeric:
            raise DataError(
                "give either text or numeric columns; to mix them, encode the texts yourself and "
                "stack the columns"
            )
        if wanted.label_path is not None and wanted.levels:
            raise DataError("give either label_path (a path in one column) or levels, not both")
        if separator == "":
            raise DataError("separator must not be empty")
        has_features = bool(wanted.text or wanted.numeric)
        return wanted if has_features and wanted.label_columns else None

    @property
    def label_columns(self) -> tuple[str, ...]:
        return self.levels if self.label_path is None else (self.label_path,)

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys((*self.text, *self.numeric, *self.label_columns)))

    def features(self, chunk: TableChunk) -> NDArray[Any]:
        return chunk.texts(self.text) if self.text else chunk.numbers(self.numeric)

    def dataset(
        self,
        X: NDArray[Any],
        chunk: TableChunk,
        taxonomy: Taxonomy | None,
        internal_labels: InternalLabels,
        name: str,
    ) -> Dataset:
        notes = chunk.notes
        if self.label_path is None:
            paths = paths_of_levels([chunk.columns[level] for level in self.levels])
            y, taxonomy = labels_of_paths(paths, taxonomy, locate=chunk.locate)
        else:
            values: Sequence[Hashable] = chunk.columns[self.label_path]
            separator = self.separator
            if separator is None:
                separator, note = _guess(values, self.label_path, taxonomy)
                notes = (*notes, *note)
            if taxonomy is None:
                paths = [path_of(value, separator) for value in values]
                y, taxonomy = labels_of_paths(paths, None, locate=chunk.locate)
            else:
                y = labels_in(values, taxonomy, separator, locate=chunk.locate)
        dataset = Dataset(X, y, taxonomy, name, notes)
        return settle_internal_labels(dataset, internal_labels, locate=chunk.locate)


def _guess(
    values: Sequence[Hashable], column: str, taxonomy: Taxonomy | None
) -> tuple[str | None, tuple[str, ...]]:
    """Return the separator of a column's paths, and a note on it; known labels need none."""
    distinct = {value for value in dict.fromkeys(values) if isinstance(value, str)}
    if taxonomy is not None:
        distinct = {value for value in distinct if value.strip() not in taxonomy}
        if not distinct:
            return None, ()
    separator = guess_path_separator(distinct)
    if separator is None:
        if taxonomy is not None:
            return None, ()
        return None, (
            f"no separator found in {column!r}: labels are taken as they are, all level 1",
        )
    return separator, (f"paths in {column!r} are split at {separator!r} (guessed)",)


def _stack(parts: Sequence[TableChunk]) -> TableChunk:
    columns = {
        name: [value for part in parts for value in part.columns[name]] for name in parts[0].columns
    }
    lines = np.concatenate([part.lines for part in parts]).tolist()
    first = parts[0]
    return TableChunk(first.source, columns, lines, first.notes, has_lines=first.has_lines)


def _heading(path: FilePath, encoding: str | None, delimiter: str | None) -> list[str]:
    chunk = next(iter_table(path, chunk_rows=1, encoding=encoding, delimiter=delimiter))
    return list(chunk.columns)


def _advice(columns: Sequence[str]) -> str:
    return (
        "name the columns of features (text= or numeric=) and those of labels (label_path= or "
        f"levels=); the columns are {_shown(columns)}"
    )


def _shown(columns: Sequence[str]) -> str:
    more = f" and {len(columns) - N_COLUMNS_SHOWN} more" * (len(columns) > N_COLUMNS_SHOWN)
    return ", ".join(map(repr, columns[:N_COLUMNS_SHOWN])) + more


def _names(columns: str | Sequence[str]) -> tuple[str, ...]:
    return (columns,) if isinstance(columns, str) else tuple(columns)
