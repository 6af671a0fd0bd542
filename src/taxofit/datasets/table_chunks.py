"""Tables in bounded pieces: the columns one asks for, a few thousand rows at a time."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from os import fspath
from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit.datasets.files import MAX_LINE_BYTES, find_encoding, text_lines
from taxofit.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from taxofit.datasets.files import FilePath

__all__ = ["TableChunk", "is_missing", "iter_table"]

CHUNK_ROWS = 10_000
DELIMITERS = (",", "\t", ";", "|")
PARQUET_MAGIC = b"PAR1"
N_COLUMNS_SHOWN = 30


@dataclass(frozen=True, slots=True, eq=False)
class TableChunk:
    """Some rows of a table, column by column.

    Attributes
    ----------
    source : str
        The file's name as it was given.
    columns : dict of list
        Values by column: texts from CSV, whatever the type is from Parquet and frames.
    lines : sequence of int
        Where each row starts in the file, counted from 1; rows where the file has no lines.
    notes : tuple of str
        What was guessed about the file.
    has_lines : bool
        Whether ``lines`` counts lines of text; else it counts rows.

    Examples
    --------
    >>> chunk = TableChunk("shop.csv", {"title": ["Kettle"], "price": ["12"]}, [2])
    >>> chunk.texts(["title", "price"])
    array(['Kettle 12'], dtype=object)
    >>> chunk.numbers(["price"])
    array([[12.]])
    """

    source: str
    columns: Mapping[str, list[Any]]
    lines: Sequence[int]
    notes: tuple[str, ...] = ()
    has_lines: bool = True

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.lines)

    def locate(self, row: int) -> str:
        """Return where a row of this chunk is, as ``'products.csv:12'``."""
        return f"{self.source}:{'' if self.has_lines else ' row '}{self.lines[row]}"

    def texts(self, names: Sequence[str]) -> NDArray[Any]:
        """Return the texts of these columns joined by a space, shape (n_rows,), as objects."""
        joined = np.empty(self.n_rows, dtype=object)
        rows = zip(*(self.columns[name] for name in names), strict=True)
        joined[:] = [" ".join(str(v) for v in row if not is_missing(v)) for row in rows]
        return joined

    def numbers(self, names: Sequence[str]) -> NDArray[np.float64]:
        """Return these columns as finite numbers, shape (n_rows, len(names))."""
        table = np.empty((self.n_rows, len(names)))
        for position, name in enumerate(names):
            values = self.columns[name]
            try:
                table[:, position] = np.array(values, dtype=np.float64)
            except (TypeError, ValueError):
                table[:, position] = [self._number(name, row) for row in range(self.n_rows)]
        bad = np.argwhere(~np.isfinite(table))
        if len(bad):
            row, position = (int(index) for index in bad[0])
            raise DataError(
                f"{self.locate(row)}: column {names[position]!r} is "
                f"{self.columns[names[position]][row]!r}; fill in missing and infinite values first"
            )
        return table

    def _number(self, name: str, row: int) -> float:
        value = self.columns[name][row]
        try:
            return float(value)
        except (TypeError, ValueError):
            if is_missing(value):
                raise DataError(
                    f"{self.locate(row)}: column {name!r} is empty; fill in missing values first"
                ) from None
            raise DataError(
                f"{self.locate(row)}: column {name!r} is not a number: {value!r}"
            ) from None


def iter_table(
    path: FilePath,
    columns: Sequence[str] | None = None,
    *,
    chunk_rows: int = CHUNK_ROWS,
    encoding: str | None = None,
    delimiter: str | None = None,
) -> Iterator[TableChunk]:
    r"""Yield a CSV, TSV or Parquet file in chunks of rows; memory stays bounded.

    Parameters
    ----------
    path : path
        CSV may be gzipped; Parquet needs the extra ``taxofit[parquet]``.
    columns : sequence of str, optional
        Those to read; all by default. One that is not there is a DataError that lists what is.
    chunk_rows : int
    encoding : str, optional
        UTF-8 by default; Latin-1, with a note, where the file is not UTF-8.
    delimiter : str, optional
        Guessed from the heading among comma, tab, semicolon and bar by default.

    Yields
    ------
    TableChunk
        At least one; a table without rows is a DataError.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "shop.csv")
    ...     _ = file.write_text("title;price\nKettle;12\nMug;3\nFish;9\n")
    ...     [chunk.columns for chunk in iter_table(file, ["title"], chunk_rows=2)]
    [{'title': ['Kettle', 'Mug']}, {'title': ['Fish']}]
    """
    if chunk_rows < 1:
        raise DataError(f"chunk_rows must be at least 1, but is {chunk_rows}")
    if _is_parquet(path):
        chunks = _iter_parquet(path, columns, chunk_rows)
    else:
        chunks = _iter_csv(path, columns, chunk_rows, encoding=encoding, delimiter=delimiter)
    is_empty = True
    for chunk in chunks:
        is_empty = False
        yield chunk
    if is_empty:
        raise DataError(f"{fspath(path)}: the table has a heading but no rows")


def is_missing(value: object) -> bool:
    """Return whether a table's value stands for nothing: None, NaN, or an empty text.

    Examples
    --------
    >>> is_missing(None), is_missing(float("nan")), is_missing(" "), is_missing(0)
    (True, True, True, False)
    """
    if isinstance(value, str):
        return not value.strip()
    try:
        return value is None or bool(value != value)  # noqa: PLR0124  (NaN is not itself)
    except TypeError:
        return True  # pandas.NA, which compares with nothing


def _is_parquet(path: FilePath) -> bool:
    if fspath(path).lower().endswith((".parquet", ".pq")):
        return True
    try:
        with open(path, "rb") as handle:  # noqa: PTH123  (str and Path alike)
            return handle.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC
    except OSError:
        return False  # the reader that opens it next says what is wrong


def _iter_csv(
    path: FilePath,
    columns: Sequence[str] | None,
    chunk_rows: int,
    *,
    encoding: str | None,
    delimiter: str | None,
) -> Iterator[TableChunk]:
    name = fspath(path)
    notes: tuple[str, ...] = ()
    if encoding is None:
        encoding, notes = find_encoding(path)
    lines = text_lines(path, encoding)
    heading = next((line for line in lines if line.strip()), None)
    if heading is None:
        raise DataError(f"{name}: the file is empty")
    lines.close()  # type: ignore[attr-defined]
    if delimiter is None:
        delimiter = _guess_delimiter(heading)
        if delimiter != ",":
            notes = (*notes, f"{name}: columns are separated by {delimiter!r} (guessed)")
    reader = _numbered_rows(path, encoding, delimiter)
    _, header = next(reader)
    header = [column.strip() for column in header]
    wanted = list(header) if columns is None else list(columns)
    positions = _find_columns(wanted, header, name)
    while batch := list(islice(reader, chunk_rows)):
        for number, row in batch:
            if len(row) != len(header):
                raise DataError(
                    f"{name}:{number}: {len(row)} fields where the heading has {len(header)}; "
                    f"put quotes around a field that contains {delimiter!r}"
                )
        table = {
            column: [row[position] for _, row in batch]
            for column, position in zip(wanted, positions, strict=True)
        }
        yield TableChunk(name, table, [number for number, _ in batch], notes)


def _numbered_rows(
    path: FilePath, encoding: str, delimiter: str
) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not blank, each with the line it starts on."""
    name = fspath(path)
    try:
        reader = csv.reader(text_lines(path, encoding), delimiter=delimiter, strict=True)
    except TypeError:
        raise DataError(f"delimiter must be one character, but is {delimiter!r}") from None
    while True:
        first_line = reader.line_num + 1
        # The limit on a field is the csv module's own global: lent for one row, then given back.
        limit = csv.field_size_limit(MAX_LINE_BYTES)
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(
                f"{name}:{first_line}: not a CSV row ({error}); double the quotes inside quotes"
            ) from None
        finally:
            csv.field_size_limit(limit)
        if row:
            yield first_line, row


def _guess_delimiter(heading: str) -> str:
    """Return the candidate that splits the heading into most columns."""
    counts = [
        len(next(csv.reader([heading.rstrip("\r\n")], delimiter=candidate)))
        for candidate in DELIMITERS
    ]
    return DELIMITERS[int(np.argmax(counts))]


def _find_columns(wanted: Sequence[str], header: Sequence[str], name: str) -> list[int]:
    occurrences = Counter(header)
    positions = []
    for column in wanted:
        if not occurrences[column]:
            shown = ", ".join(map(repr, header[:N_COLUMNS_SHOWN]))
            more = f" and {len(header) - N_COLUMNS_SHOWN} more" * (len(header) > N_COLUMNS_SHOWN)
            raise DataError(f"{name}: no column {column!r}; the columns are {shown}{more}")
        if occurrences[column] > 1:
            raise DataError(
                f"{name}: {occurrences[column]} columns are called {column!r}; rename all but one"
            )
        positions.append(header.index(column))
    return positions


def _iter_parquet(
    path: FilePath, columns: Sequence[str] | None, chunk_rows: int
) -> Iterator[TableChunk]:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise DataError(
            f"{fspath(path)}: reading Parquet needs pyarrow; pip install 'taxofit[parquet]'"
        ) from None
    name = fspath(path)
    try:
        with ParquetFile(name) as file:
            header = file.schema_arrow.names
            wanted = list(header) if columns is None else list(columns)
            _find_columns(wanted, header, name)
            n_before = 0
            for batch in file.iter_batches(batch_size=chunk_rows, columns=wanted):
                numbers = range(n_before + 1, n_before + 1 + batch.num_rows)
                table = {column: batch.column(column).to_pylist() for column in wanted}
                yield TableChunk(name, table, numbers, has_lines=False)
                n_before += batch.num_rows
    except FileNotFoundError:
        raise DataError(f"no such file: {name}") from None
    except (ArrowException, OSError) as error:
        raise DataError(f"{name}: not a readable Parquet file ({error})") from None
