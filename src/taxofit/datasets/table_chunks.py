"""Tables in bounded pieces: the columns one asks for, a few thousand rows at a time."""

from __future__ import annotations

import difflib
import io
import re
import shutil
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from os import fspath
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from taxofit.datasets.bad_rows import BadRows
from taxofit.datasets.csv_rows import (
    column_names,
    fitting_rows,
    guess_delimiter,
    heading_delimiter,
    numbered_rows,
)
from taxofit.datasets.files import find_encoding, name_of
from taxofit.datasets.streams import read_first_line
from taxofit.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from taxofit.datasets.files import FileOrStream

__all__ = ["TableChunk", "is_missing", "iter_table", "parse_number"]

CHUNK_ROWS = 10_000
DECIMAL_COMMA = re.compile(r"\s*[-+]?[0-9]+,[0-9]+\s*")
PARQUET_MAGIC = b"PAR1"
PARQUET_BUFFER_BYTES = 2**20
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
    types : dict
        The Arrow type of every column, from Parquet.

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
    lines: Sequence[Any]
    notes: tuple[str, ...] = ()
    has_lines: bool = True
    types: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.lines)

    def place(self, row: int) -> str:
        """Return where a row is within its file, as ``'line 12'``."""
        return f"{'line' if self.has_lines else 'row'} {self.lines[row]}"

    def take(self, rows: Sequence[int]) -> TableChunk:
        """Return the chunk with some of its rows."""
        columns = {name: [values[row] for row in rows] for name, values in self.columns.items()}
        return replace(self, columns=columns, lines=[self.lines[row] for row in rows])

    def locate(self, row: int) -> str:
        """Return where a row of this chunk is, as ``'products.csv:12'``."""
        return f"{self.source}:{'' if self.has_lines else ' row '}{self.lines[row]}"

    def texts(self, names: Sequence[str]) -> NDArray[Any]:
        """Return the texts of these columns joined by a space, shape (n_rows,), as objects."""
        joined = np.empty(self.n_rows, dtype=object)
        rows = zip(*(self.columns[name] for name in names), strict=True)
        joined[:] = [" ".join(str(v) for v in row if not is_missing(v)) for row in rows]
        return joined

    def features(
        self, text: Sequence[str], numeric: Sequence[str], category: Sequence[str]
    ) -> NDArray[Any]:
        """Return texts, or numbers; columns of several kinds as objects, one column each."""
        if not category and not (text and numeric):
            return self.texts(text) if text else self.numbers(numeric)
        named = (*text, *numeric, *category)
        table = np.empty((self.n_rows, len(named)), dtype=object)
        for position, name in enumerate(named):
            table[:, position] = self.columns[name]
        return table

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
            return parse_number(value)
        except (TypeError, ValueError):
            if is_missing(value):
                raise DataError(
                    f"{self.locate(row)}: column {name!r} is empty; fill in missing values first"
                ) from None
            raise DataError(
                f"{self.locate(row)}: column {name!r} is not a number: {value!r}"
            ) from None


def iter_table(
    path: FileOrStream,
    columns: Sequence[str] | None = None,
    *,
    chunk_rows: int = CHUNK_ROWS,
    encoding: str | None = None,
    delimiter: str | None = None,
    bad_rows: BadRows | None = None,
) -> Iterator[TableChunk]:
    r"""Yield a CSV, TSV or Parquet file in chunks of rows; memory stays bounded.

    Parameters
    ----------
    path : path or open stream
        CSV may be gzipped; Parquet needs the extra ``taxofit[parquet]``. A stream is read once;
        since Parquet's index is at its end, that is first copied to a temporary file. A folder
        of text files is a table as well; see `iter_text_folder`.
    columns : sequence of str, optional
        Those to read; all by default. One that is not there is a DataError that lists what is.
    chunk_rows : int
    encoding : str, optional
        Found out by default; see `find_encoding`.
    delimiter : str, optional
        Guessed from the first lines among comma, tab, semicolon and bar by default.
    bad_rows : BadRows, optional
        Takes rows with broken quotes or too many or too few fields, which are otherwise errors.

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
    if not isinstance(path, io.BufferedReader) and Path(path).is_dir():
        from taxofit.datasets.text_folders import iter_text_folder

        chunks = iter_text_folder(path, columns)
    elif _is_parquet(path):
        chunks = _iter_parquet(path, columns, chunk_rows)
    else:
        chunks = _iter_csv(path, columns, chunk_rows, encoding, delimiter, bad_rows)
    is_empty = True
    for chunk in chunks:
        is_empty = False
        yield chunk
    if is_empty:
        raise DataError(f"{name_of(path)}: the table has a heading but no rows")


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


def parse_number(value: Any) -> float:
    """Return a number, also where it is written with a decimal comma; else a ValueError.

    Examples
    --------
    >>> parse_number(" 12.5 "), parse_number("12,5"), parse_number(3)
    (12.5, 12.5, 3.0)
    """
    if isinstance(value, str) and DECIMAL_COMMA.fullmatch(value):
        value = value.replace(",", ".")
    return float(value)


def _is_parquet(path: FileOrStream) -> bool:
    if isinstance(path, io.BufferedReader):
        return path.peek(len(PARQUET_MAGIC)).startswith(PARQUET_MAGIC)
    if fspath(path).lower().endswith((".parquet", ".pq")):
        return True
    try:
        with open(path, "rb") as handle:  # noqa: PTH123  (str and Path alike)
            return handle.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC
    except OSError:
        return False  # the reader that opens it next says what is wrong


def _iter_csv(
    path: FileOrStream,
    columns: Sequence[str] | None,
    chunk_rows: int,
    encoding: str | None,
    delimiter: str | None,
    bad_rows: BadRows | None,
) -> Iterator[TableChunk]:
    name = name_of(path)
    bad_rows = BadRows(strict=True) if bad_rows is None else bad_rows
    notes: tuple[str, ...] = ()
    if encoding is None:
        encoding, notes = find_encoding(path)
    if delimiter is None:
        if isinstance(path, io.BufferedReader):  # more lines than one may be long in coming
            line, path = read_first_line(path)
            delimiter = heading_delimiter(line.decode(encoding, "replace"))
        else:
            delimiter = guess_delimiter(path, encoding)
        if delimiter != ",":
            notes = (*notes, f"{name}: columns are separated by {delimiter!r} (guessed)")
    reader = numbered_rows(path, encoding, delimiter, bad_rows)
    header = column_names(next(reader, (0, []))[1])
    wanted = list(header) if columns is None else list(columns)
    positions = _find_columns(wanted, header, name)
    fitting = fitting_rows(reader, len(header), bad_rows, name, delimiter)
    while batch := list(islice(fitting, chunk_rows)):
        table = {
            column: [row[position] for _, row in batch]
            for column, position in zip(wanted, positions, strict=True)
        }
        yield TableChunk(name, table, [number for number, _ in batch], notes)


def _find_columns(wanted: Sequence[str], header: Sequence[str], name: str) -> list[int]:
    occurrences = Counter(header)
    positions = []
    for column in wanted:
        if not occurrences[column]:
            close = difflib.get_close_matches(column, header, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            shown = ", ".join(map(repr, header[:N_COLUMNS_SHOWN]))
            more = f" and {len(header) - N_COLUMNS_SHOWN} more" * (len(header) > N_COLUMNS_SHOWN)
            raise DataError(f"{name}: no column {column!r}; the columns are {shown}{more}{hint}")
        if occurrences[column] > 1:
            raise DataError(
                f"{name}: {occurrences[column]} columns are called {column!r}; rename all but one"
            )
        positions.append(header.index(column))
    return positions


def _iter_parquet(
    path: FileOrStream, columns: Sequence[str] | None, chunk_rows: int
) -> Iterator[TableChunk]:
    name = name_of(path)
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise DataError(
            f"{name}: reading Parquet needs pyarrow; pip install 'taxofit[parquet]'"
        ) from None
    try:
        # Without a buffer size, whole columns of a row group are read at once; threads hold more.
        with (
            _seekable(path) as source,
            ParquetFile(source, buffer_size=PARQUET_BUFFER_BYTES, pre_buffer=False) as file,
        ):
            header = file.schema_arrow.names
            wanted = list(header) if columns is None else list(columns)
            _find_columns(wanted, header, name)
            types = {column: file.schema_arrow.field(column).type for column in wanted}
            n_before = 0
            batches = file.iter_batches(batch_size=chunk_rows, columns=wanted, use_threads=False)
            for batch in batches:
                batch.validate(full=True)  # a damaged file may hold no UTF-8, or no ends of texts
                numbers = range(n_before + 1, n_before + 1 + batch.num_rows)
                table = {column: batch.column(column).to_pylist() for column in wanted}
                yield TableChunk(name, table, numbers, has_lines=False, types=types)
                n_before += batch.num_rows
    except FileNotFoundError:
        raise DataError(f"no such file: {name}") from None
    except DataError:
        raise
    except (ArrowException, OSError, ValueError, OverflowError) as error:
        raise DataError(f"{name}: not a readable Parquet file ({error})") from None


@contextmanager
def _seekable(path: FileOrStream) -> Iterator[str | IO[bytes]]:
    if not isinstance(path, io.BufferedReader):
        yield fspath(path)
        return
    with TemporaryFile() as copy:
        shutil.copyfileobj(path, copy)
        copy.seek(0)
        yield copy
