"""Rows to predict, a few thousand at a time: from files of any size, and from standard input."""

from __future__ import annotations

import io
import os
import stat
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np

from taxofit.datasets import iter_arff, iter_svmlight, iter_table
from taxofit.datasets.csv_rows import guess_delimiter, split_heading
from taxofit.datasets.files import clear_errors, find_encoding, text_lines
from taxofit.datasets.streams import CountedBytes, read_first_line, unpacked
from taxofit.datasets.table_chunks import PARQUET_MAGIC
from taxofit.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from taxofit.classifier import TaxonomyClassifier
    from taxofit.workflow.predict_options import PredictOptions
    from taxofit.workflow.sources import Source

__all__ = ["STANDARD_INPUT", "Batch", "Rows", "check_width", "open_rows"]

STANDARD_INPUT = "-"
TEXT_COLUMN = "text"  # what a line is called where its column has no name


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows in their order: features as the classifier takes them, and columns to copy.

    Attributes
    ----------
    X : ndarray or csr_matrix, n_rows long
    kept : dict of list
        Values of the columns to copy, by name.
    types : dict
        Arrow types of those columns, where the file has them.
    """

    X: Any
    kept: Mapping[str, list[Any]] = field(default_factory=dict)
    types: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Rows:
    """The rows of one input, to be iterated over once.

    Attributes
    ----------
    notes : tuple of str
        What was guessed.
    n_bytes : int
        Of the file as it lies on disk; 0 where nobody knows.
    """

    source: Source
    options: PredictOptions
    stream: io.BufferedReader
    counted: CountedBytes
    kind: str
    file: str | None = None
    notes: tuple[str, ...] = ()
    n_bytes: int = 0

    @property
    def n_bytes_read(self) -> int:
        """How much of the file has been read by now."""
        return self.counted.n_read

    def __iter__(self) -> Iterator[Batch]:
        if self.kind == "table":
            return self._table()
        if self.options.keep:
            known = "all columns of a table can be kept, and --all-columns keeps the texts"
            if self.kind != "lines":
                known = "only columns of a table can be kept"
            raise DataError(f"{self.counted.name}: no column {self.options.keep[0]!r}; {known}")
        if self.kind == "lines":
            return self._lines()
        if self.kind == "svmlight":
            return self._svmlight()
        chunk_rows = self.options.chunk_rows
        return (Batch(X) for X in iter_arff(self.stream, chunk_rows=chunk_rows))

    def _table(self) -> Iterator[Batch]:
        source, options = self.source, self.options
        wanted = None
        if not options.all_columns:
            wanted = list(dict.fromkeys((*source.columns, *options.keep)))
        chunks = iter_table(
            self.stream if self.file is None else self.file,
            wanted,
            chunk_rows=options.chunk_rows,
            encoding=source.encoding,
            delimiter=source.delimiter,
        )
        for chunk in chunks:
            missing = [column for column in source.columns if column not in chunk.columns]
            if missing:
                known = ", ".join(map(repr, chunk.columns))
                raise DataError(f"{chunk.source}: no column {missing[0]!r}; there are {known}")
            kept = chunk.columns if options.all_columns else dict.fromkeys(options.keep)
            self.notes = chunk.notes or self.notes
            yield Batch(
                source.features_of(chunk), {name: chunk.columns[name] for name in kept}, chunk.types
            )

    def _lines(self) -> Iterator[Batch]:
        lines = text_lines(self.stream, self.source.encoding)
        is_empty = True
        while texts := [line.rstrip("\r\n") for line in islice(lines, self.options.chunk_rows)]:
            is_empty = False
            X = np.empty(len(texts), dtype=object)
            X[:] = texts
            yield Batch(X, {TEXT_COLUMN: texts} if self.options.all_columns else {})
        if is_empty:
            raise DataError(f"{self.counted.name}: there are no lines to predict")

    def _svmlight(self) -> Iterator[Batch]:
        source, n_rows = self.source, self.options.chunk_rows
        chunks = iter_svmlight(
            self.stream,
            feature_ids=np.asarray(source.feature_ids, dtype=np.int64),
            ignore_features=source.ignore_features,
        )
        for X in chunks:
            for start in range(0, X.shape[0], n_rows):
                yield Batch(X[start : start + n_rows])


@contextmanager
def open_rows(file: str, source: Source, options: PredictOptions) -> Iterator[Rows]:
    """Open a file, or standard input for ``-``, to read rows like those of training.

    Parameters
    ----------
    file : str
        A folder of text files is a table, as in training.
    source : Source
        How the model's training rows were read.
    options : PredictOptions
        Its format, encoding and delimiter go before the source's.
    """
    name = "standard input" if file == STANDARD_INPUT else file
    source = replace(
        source,
        encoding=options.encoding or source.encoding,
        delimiter=options.delimiter or source.delimiter,
    )
    with ExitStack() as stack:
        with clear_errors(name):  # later ones are the readers' to clear, or come from writing
            if Path(file).is_dir():
                counted = CountedBytes(cast("IO[bytes]", io.BytesIO()), name)
                rows = Rows(source, options, unpacked(counted), counted, "table", file=file)
            else:
                raw = stack.enter_context(_opened(file))
                rows = _begin(raw, name, source, options)
        yield rows


def check_width(classifier: TaxonomyClassifier, X: Any, where: str) -> None:
    """Raise a DataError where rows have not the number of columns that the model was trained on."""
    is_numbers = X.ndim == 2 and X.dtype != object  # columns of several kinds are objects
    if is_numbers and X.shape[1] != classifier.n_features_in_:
        raise DataError(
            f"{where}: rows have {X.shape[1]} numbers, but the model was trained on "
            f"{classifier.n_features_in_}; is this the right model?"
        )


def _begin(raw: IO[bytes], name: str, source: Source, options: PredictOptions) -> Rows:
    """Look at how the input begins, and return its rows."""
    # What is no plain file, such as a pipe under a name, can be read only once, like a pipe.
    is_piped = raw is sys.stdin.buffer or not stat.S_ISREG(os.fstat(raw.fileno()).st_mode)
    counted = CountedBytes(raw, name)
    stream = unpacked(counted)
    notes: tuple[str, ...] = ()
    kind = _kind(source, options, name)
    if is_piped and kind == "table" and options.format == "auto":
        kind, notes, stream = _table_or_lines(source, stream)
    is_parquet = stream.peek(len(PARQUET_MAGIC)).startswith(PARQUET_MAGIC)
    if not (is_piped or is_parquet) and source.encoding is None:
        encoding, notes = find_encoding(name)
        source = replace(source, encoding=encoding)
    if not (is_piped or is_parquet) and kind == "table" and source.delimiter is None:
        source = replace(source, delimiter=guess_delimiter(name, str(source.encoding)))
    return Rows(
        source,
        options,
        stream,
        counted,
        kind,
        file=name if is_parquet and not is_piped else None,
        notes=notes,
        n_bytes=0 if is_piped or is_parquet else os.fstat(raw.fileno()).st_size,
    )


@contextmanager
def _opened(file: str) -> Iterator[IO[bytes]]:
    if file == STANDARD_INPUT:
        yield cast("IO[bytes]", sys.stdin.buffer)
        return
    with Path(file).open("rb", buffering=0) as raw:
        yield cast("IO[bytes]", raw)


def _kind(source: Source, options: PredictOptions, name: str) -> str:
    if options.format in ("auto", source.format):
        return source.format
    if options.format == "lines" and _takes_texts(source):
        return "lines"
    what = "texts" if _takes_texts(source) else "columns"
    trained = f"tables of {what}" if source.format == "table" else f"{source.format} files"
    raise DataError(
        f"{name}: the model was trained on {trained} and cannot read {options.format!r}"
    )


def _takes_texts(source: Source) -> bool:
    """Return whether a row is a text and nothing else."""
    return source.format == "table" and bool(source.text) and source.columns == source.text


def _table_or_lines(
    source: Source, stream: io.BufferedReader
) -> tuple[str, tuple[str, ...], io.BufferedReader]:
    """Return whether a pipe begins with the heading of a table or with a text; and a note."""
    if stream.peek(len(PARQUET_MAGIC)).startswith(PARQUET_MAGIC) or not _takes_texts(source):
        return "table", (), stream
    encoding = source.encoding or find_encoding(stream)[0]
    line, stream = read_first_line(stream)
    try:
        heading = split_heading(line.decode(encoding, errors="replace"), source.delimiter)
    except LookupError:
        return "table", (), stream  # the reader says which encoding it does not know
    if set(source.columns) <= set(heading):
        return "table", (), stream
    if len(heading) == 1:
        return "lines", (), stream
    columns = " and ".join(map(repr, source.columns))
    note = f"standard input has no heading with {columns}: read as one text a line"
    return "lines", (note,), stream
