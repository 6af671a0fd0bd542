"""Data sets from tables: CSV, TSV, Parquet, and pandas, polars or pyarrow frames."""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from taxofit.datasets.dataset import Dataset, check_internal_labels
from taxofit.datasets.label_paths import (
    guess_path_separator,
    labels_in,
    labels_of_paths,
    path_of,
    paths_of_levels,
)
from taxofit.datasets.row_screen import RowScreen
from taxofit.datasets.table_chunks import TableChunk, iter_table
from taxofit.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

    from taxofit.datasets.bad_rows import BadRows
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
    category: str | Sequence[str] = (),
    label_path: str | None = None,
    levels: Sequence[str] = (),
    separator: str | None = None,
    taxonomy: Taxonomy | None = None,
    internal_labels: InternalLabels = "error",
    encoding: str | None = None,
    delimiter: str | None = None,
    bad_rows: BadRows | None = None,
) -> Dataset:
    r"""Return a CSV, TSV or Parquet table as a Dataset.

    Parameters
    ----------
    path : path
    text : str or sequence of str
        Columns of text; X is then an array of texts, several columns joined by a space.
    numeric : str or sequence of str
        Columns of numbers; X is then a float64 array.
    category : str or sequence of str
        Columns of categories. With these, or with both texts and numbers, X is an array of objects
        that `FrameEncoder` takes: texts, numbers and categories, one column each.
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
    bad_rows : BadRows, optional
        Takes the rows that cannot be used: without a label, without text, with a gap in the path or
        a label that the taxonomy lacks, labelled with an internal node, or not well-formed. By
        default the first of them is an error; rows without text are then read like others.

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
    wanted = _Wanted.checked(text, numeric, category, label_path, levels, separator)
    if wanted is None:
        raise DataError(f"{fspath(path)}: {_advice(_heading(path, encoding, delimiter))}")
    screen = RowScreen(bad_rows)
    X: list[NDArray[Any]] = []
    parts: list[TableChunk] = []
    for whole in iter_table(
        path, wanted.columns, encoding=encoding, delimiter=delimiter, bad_rows=bad_rows
    ):
        chunk = screen.usable_features(whole, wanted.text, wanted.numeric, wanted.category)
        X.append(wanted.features(chunk))
        labels = {name: chunk.columns[name] for name in wanted.label_columns}
        parts.append(replace(chunk, columns=labels))
    name = Path(path).name.split(".")[0]
    dataset, chunk = wanted.dataset(np.concatenate(X), _stack(parts), taxonomy, screen, name)
    return screen.settled(dataset, chunk, internal_labels)


def from_frame(
    frame: Any,
    *,
    text: str | Sequence[str] = (),
    numeric: str | Sequence[str] = (),
    category: str | Sequence[str] = (),
    label_path: str | None = None,
    levels: Sequence[str] = (),
    separator: str | None = None,
    taxonomy: Taxonomy | None = None,
    internal_labels: InternalLabels = "error",
    bad_rows: BadRows | None = None,
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
    wanted = _Wanted.checked(text, numeric, category, label_path, levels, separator)
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
    screen = RowScreen(bad_rows)
    whole = TableChunk(name, columns, range(len(table)), has_lines=False)
    chunk = screen.usable_features(whole, wanted.text, wanted.numeric, wanted.category)
    dataset, chunk = wanted.dataset(wanted.features(chunk), chunk, taxonomy, screen, name)
    return screen.settled(dataset, chunk, internal_labels)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Which columns are features and which are labels."""

    text: tuple[str, ...]
    numeric: tuple[str, ...]
    category: tuple[str, ...]
    label_path: str | None
    levels: tuple[str, ...]
    separator: str | None

    @classmethod
    def checked(
        cls,
        text: str | Sequence[str],
        numeric: str | Sequence[str],
        category: str | Sequence[str],
        label_path: str | None,
        levels: Sequence[str],
        separator: str | None,
    ) -> _Wanted | None:
        """Return what was asked for; None where columns of features or of labels are not named."""
        features = _names(text), _names(numeric), _names(category)
        wanted = cls(*features, label_path, _names(levels), separator)
        if wanted.label_path is not None and wanted.levels:
            raise DataError("give either label_path (a path in one column) or levels, not both")
        if separator == "":
            raise DataError("separator must not be empty")
        return wanted if any(features) and wanted.label_columns else None

    @property
    def label_columns(self) -> tuple[str, ...]:
        return self.levels if self.label_path is None else (self.label_path,)

    @property
    def columns(self) -> list[str]:
        named = (*self.text, *self.numeric, *self.category, *self.label_columns)
        return list(dict.fromkeys(named))

    def features(self, chunk: TableChunk) -> NDArray[Any]:
        return chunk.features(self.text, self.numeric, self.category)

    def dataset(
        self,
        X: NDArray[Any],
        chunk: TableChunk,
        taxonomy: Taxonomy | None,
        screen: RowScreen,
        name: str,
    ) -> tuple[Dataset, TableChunk]:
        """Return the rows whose labels can be used, and where they are."""
        notes, separator = chunk.notes, self.separator
        values: Sequence[Hashable]
        if self.label_path is None:
            values = paths = paths_of_levels([chunk.columns[level] for level in self.levels])
        else:
            values = chunk.columns[self.label_path]
            if separator is None:
                separator, note = _guess(values, self.label_path, taxonomy)
                notes = (*notes, *note)
            paths = [path_of(value, separator) for value in values]
        usable = screen.usable_labels(chunk, values, paths, separator, taxonomy)
        if len(usable) < chunk.n_rows:
            X, chunk = X[usable], chunk.take(usable)
            values, paths = [values[row] for row in usable], [paths[row] for row in usable]
        if self.label_path is None or taxonomy is None:
            y, taxonomy = labels_of_paths(paths, taxonomy, locate=chunk.locate)
        else:
            y = labels_in(values, taxonomy, separator, locate=chunk.locate)
        return Dataset(X, y, taxonomy, name, notes), chunk


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
    lines = [line for part in parts for line in part.lines]
    return replace(parts[0], columns=columns, lines=lines)


def _heading(path: FilePath, encoding: str | None, delimiter: str | None) -> list[str]:
    chunk = next(iter_table(path, chunk_rows=1, encoding=encoding, delimiter=delimiter))
    return list(chunk.columns)


def _advice(columns: Sequence[str]) -> str:
    return (
        "name the columns of features (text=, numeric= or category=) and those of labels "
        f"(label_path= or levels=); the columns are {_shown(columns)}"
    )


def _shown(columns: Sequence[str]) -> str:
    more = f" and {len(columns) - N_COLUMNS_SHOWN} more" * (len(columns) > N_COLUMNS_SHOWN)
    return ", ".join(map(repr, columns[:N_COLUMNS_SHOWN])) + more


def _names(columns: str | Sequence[str]) -> tuple[str, ...]:
    return (columns,) if isinstance(columns, str) else tuple(columns)
