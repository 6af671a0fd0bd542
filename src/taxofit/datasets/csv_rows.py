"""Rows of delimited text as people's programs write them, and guesses at how they do."""

from __future__ import annotations

import csv
import re
from collections import Counter
from contextlib import contextmanager
from itertools import chain, islice
from os import fspath
from typing import TYPE_CHECKING

from taxofit.datasets.files import MAX_LINE_BYTES, name_of, text_lines
from taxofit.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from taxofit.datasets.bad_rows import BadRows
    from taxofit.datasets.files import FileOrStream, FilePath

__all__ = [
    "column_names",
    "fitting_rows",
    "guess_delimiter",
    "heading_delimiter",
    "numbered_rows",
    "split_heading",
]

DELIMITERS = (",", "\t", ";", "|")
N_LINES_TRIED = 200  # of a file, to guess its delimiter
EXCEL_HINT = re.compile(r"sep=(.)\s*", re.IGNORECASE)  # a first line that some programs write


def guess_delimiter(path: FilePath, encoding: str) -> str:
    r"""Return the candidate that splits most of the first rows as it splits the heading.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "shop.csv")
    ...     _ = file.write_text("title;path\nKettle, steel;Home\n")
    ...     guess_delimiter(file, "utf-8")
    ';'
    """
    lines = text_lines(path, encoding)
    first = list(islice(lines, N_LINES_TRIED))
    lines.close()  # type: ignore[attr-defined]
    hint = EXCEL_HINT.fullmatch(first[0]) if first else None
    if hint:
        return hint[1]
    if not any(line.strip() for line in first):
        raise DataError(f"{fspath(path)}: the file is empty")

    def fit(candidate: str) -> tuple[bool, float, int]:
        with _long_fields():
            rows = [row for row in csv.reader(first, delimiter=candidate) if any(row)]
        n_fields = len(rows[0]) if rows else 0  # nothing but quotes
        n_alike = sum(len(row) == n_fields for row in rows)
        return n_fields > 1, n_alike / max(1, len(rows)), n_fields

    return max(DELIMITERS, key=fit)


def heading_delimiter(line: str) -> str:
    """Return the candidate that splits a heading into most names, for want of further rows.

    Examples
    --------
    >>> heading_delimiter("title;price in EUR, net")
    ','
    """
    hint = EXCEL_HINT.fullmatch(line)
    if hint:
        return hint[1]
    return max(DELIMITERS, key=lambda delimiter: len(_fields(line, delimiter)))


def split_heading(line: str, delimiter: str | None = None) -> list[str]:
    """Return the names in the first line of a table.

    Examples
    --------
    >>> split_heading("title; price")
    ['title', 'price']
    """
    return column_names(_fields(line, delimiter or heading_delimiter(line)))


def _fields(line: str, delimiter: str) -> list[str]:
    try:
        with _long_fields():
            return next(csv.reader([line.rstrip("\r\n")], delimiter=delimiter), [])
    except (csv.Error, TypeError, ValueError):
        return []


def column_names(row: Sequence[str]) -> list[str]:
    """Return the names of columns; those without one are numbered, repeated ones as well.

    Examples
    --------
    >>> column_names([" title", "", "title"])
    ['title (1)', 'column 2', 'title (2)']
    """
    names = [cell.strip() or f"column {position}" for position, cell in enumerate(row, start=1)]
    n_in_all, n_so_far = Counter(names), Counter[str]()
    for position, name in enumerate(names):
        if n_in_all[name] > 1:
            n_so_far[name] += 1
            names[position] = f"{name} ({n_so_far[name]})"
    return names


def numbered_rows(
    path: FileOrStream, encoding: str, delimiter: str, bad_rows: BadRows
) -> Iterator[tuple[int, list[str]]]:
    """Yield rows that are not blank, the heading first, each with the line it starts on.

    A row with broken quotes goes to ``bad_rows``. A quote that is never closed is an error, as it
    swallows the rest of the file.
    """
    name = name_of(path)
    lines = text_lines(path, encoding)
    first = next(lines, "")
    n_before = 1 if EXCEL_HINT.fullmatch(first) else 0
    try:
        reader = csv.reader(
            lines if n_before else chain([first], lines), delimiter=delimiter, strict=True
        )
    except (TypeError, ValueError):
        raise DataError(f"delimiter must be one character, but is {delimiter!r}") from None
    while True:
        number = n_before + reader.line_num + 1
        limit = csv.field_size_limit(MAX_LINE_BYTES)  # as _long_fields, in a third of the time
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            where = f"{name}:{number}: not a CSV row"
            if "end of data" in str(error):  # everything from here on is inside the quotes
                raise DataError(f"{where}: a quote opens here and is never closed") from None
            advice = f"{where} ({error}); double the quotes inside quotes"
            bad_rows.add("with broken quotes", f"line {number}", advice)
            continue
        finally:
            csv.field_size_limit(limit)
        if row:
            yield number, row


def fitting_rows(
    rows: Iterator[tuple[int, list[str]]],
    n_fields: int,
    bad_rows: BadRows,
    name: str,
    delimiter: str,
) -> Iterator[tuple[int, list[str]]]:
    """Yield rows with as many fields as the heading, empty ones at the end not counted.

    Examples
    --------
    >>> from taxofit.datasets.bad_rows import BadRows
    >>> rows = iter([(2, ["mug", "Home"]), (3, ["cup"]), (4, ["pan", "Home", ""])])
    >>> bad = BadRows()
    >>> [number for number, _ in fitting_rows(rows, 2, bad, "shop.csv", ",")]
    [2, 4]
    >>> bad.left_out[0].n_rows
    1
    """
    for number, row in rows:
        if len(row) == n_fields or (len(row) > n_fields and not any(row[n_fields:])):
            yield number, row
        else:
            message = (
                f"{name}:{number}: {len(row)} fields where the heading has {n_fields}; "
                f"put quotes around a field that contains {delimiter!r}"
            )
            bad_rows.add("with too many or too few fields", f"line {number}", message)


@contextmanager
def _long_fields() -> Iterator[None]:
    """Lift the limit on a field, which is the csv module's own global, for as long as needed."""
    limit = csv.field_size_limit(MAX_LINE_BYTES)
    try:
        yield
    finally:
        csv.field_size_limit(limit)
