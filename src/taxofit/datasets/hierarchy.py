"""Reading hierarchy files: a ``parent child`` edge a line, or a path from the top down a line."""

from __future__ import annotations

import csv
import re
from os import fspath
from typing import TYPE_CHECKING, Literal

from taxofit.datasets.files import text_lines
from taxofit.errors import DataError, TaxonomyError
from taxofit.taxonomy import Taxonomy, clean_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from taxofit.datasets.files import FilePath

__all__ = ["guess_separator", "integers_if_all", "read_hierarchy"]

LAYOUTS = ("auto", "edges", "paths")
STRONG_SEPARATORS = ("\t", ">", "::", "|", ";", ",")  # hardly ever part of a name, save the comma
WEAK_SEPARATORS = ("/",)
WHITESPACE = " "
QUOTING_SEPARATORS = "\t|;,"
INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")  # 007 is a name
HEADERS = ({"parent", "child"}, {"source", "target"}, {"from", "to"})


def read_hierarchy(
    path: FilePath,
    *,
    layout: Literal["auto", "edges", "paths"] = "auto",
    separator: str | None = None,
) -> Taxonomy:
    r"""Return the taxonomy in a file of edges or of paths.

    Blank lines and lines that start with ``#`` are skipped, gzip is unpacked, and a first line
    ``parent,child`` is taken as a heading. Labels are integers where all are written as such.

    Parameters
    ----------
    path : path
    layout : {"auto", "edges", "paths"}
        ``"edges"``: parent and child on each line. ``"paths"``: the names from a top down to a
        leaf. By default, lines of two fields each are edges and anything else is paths.
    separator : str, optional
        What stands between fields; ``" "`` is any white space. Guessed by default, first among
        tab, ``>``, ``::``, ``|``, ``;`` and ``,``, then white space and ``/``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "cat_hier.txt")
    ...     _ = file.write_text("1 2 20\n1 2 33\n4 5\n")
    ...     taxonomy = read_hierarchy(file)
    >>> taxonomy
    Taxonomy(7 nodes, 3 leaves, depth 3)
    >>> taxonomy.leaves
    (20, 33, 5)
    """
    if layout not in LAYOUTS:
        raise DataError(f"layout must be one of {', '.join(map(repr, LAYOUTS))}, not {layout!r}")
    if separator == "":
        raise DataError("separator must not be empty; ' ' stands for any white space")
    name = fspath(path)
    numbers, lines = _content(path)
    if not lines:
        raise TaxonomyError(f"{name}: the file has no edges and no paths")
    if separator is None:
        separator = guess_separator(lines)
    rows = _split(lines, separator, name, numbers)
    if {field.lower() for field in rows[0]} in HEADERS and len(rows) > 1:
        numbers, rows = numbers[1:], rows[1:]
    if layout == "auto":
        layout = "edges" if all(len(row) == 2 for row in rows) else "paths"
    if layout == "edges":
        return _from_edges(rows, name, numbers)
    return _from_paths(rows, name, numbers)


def guess_separator(lines: Sequence[str]) -> str:
    """Return the separator that these lines are most likely written with.

    Examples
    --------
    >>> guess_separator(["Home > Kitchen & bath", "Home > Garden"])
    '>'
    >>> guess_separator(["1 2 20", "1 2 33"])
    ' '
    """
    for separator in STRONG_SEPARATORS:
        if all(separator in line for line in lines):
            return separator
    if all(len(line.split()) == 2 for line in lines):
        return WHITESPACE
    candidates = (*STRONG_SEPARATORS, *WEAK_SEPARATORS)
    counts = {separator: sum(separator in line for line in lines) for separator in candidates}
    best = max(candidates, key=lambda separator: counts[separator])
    return best if counts[best] else WHITESPACE


def integers_if_all(rows: Iterable[Sequence[str]]) -> list[tuple[str, ...]] | list[tuple[int, ...]]:
    """Return rows of fields as integers where every one is written as an integer.

    Examples
    --------
    >>> integers_if_all([("1", "20"), ("1", "33")])
    [(1, 20), (1, 33)]
    >>> integers_if_all([("1", "020")])
    [('1', '020')]
    """
    fields = [tuple(row) for row in rows]
    if all(INTEGER.fullmatch(field) for row in fields for field in row):
        return [tuple(int(field) for field in row) for row in fields]
    return fields


def _content(path: FilePath) -> tuple[list[int], list[str]]:
    """Return the lines that say something, stripped, and their numbers."""
    numbers: list[int] = []
    lines: list[str] = []
    for number, line in enumerate(text_lines(path), start=1):
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            numbers.append(number)
            lines.append(stripped)
    return numbers, lines


def _split(
    lines: Sequence[str], separator: str, name: str, numbers: Sequence[int]
) -> list[list[str]]:
    if separator.isspace() and separator != "\t":
        return [line.split() for line in lines]
    if separator not in QUOTING_SEPARATORS:
        return [[field.strip() for field in line.split(separator)] for line in lines]
    rows: list[list[str]] = []
    for number, line in zip(numbers, lines, strict=True):
        try:
            row = next(csv.reader([line], delimiter=separator, skipinitialspace=True, strict=True))
        except csv.Error as error:
            raise TaxonomyError(f"{name}:{number}: {error} in {line!r}") from None
        rows.append([field.strip() for field in row])
    return rows


def _from_edges(rows: Sequence[Sequence[str]], name: str, numbers: Sequence[int]) -> Taxonomy:
    for number, row in zip(numbers, rows, strict=True):
        if len(row) != 2 or "" in row:
            raise TaxonomyError(
                f"{name}:{number}: expected a parent and a child but found {list(row)!r}; every "
                f"line has both, or every line is a path"
            )
    edges = integers_if_all(rows)
    try:
        return Taxonomy.from_edges(edges, describe_edge=lambda k: f"{name}:{numbers[k]}")
    except TaxonomyError as error:
        closing = _edge_that_closes_a_cycle(rows)
        if closing is not None:
            raise TaxonomyError(f"{name}:{numbers[closing]}: {error}") from None
        raise


def _edge_that_closes_a_cycle(edges: Sequence[Sequence[str]]) -> int | None:
    parent: dict[str, str] = {}
    for position, (above, below) in enumerate(edges):
        node: str | None = above
        while node is not None and node != below:
            node = parent.get(node)
        if node == below:
            return position
        if parent.setdefault(below, above) != above:
            return None  # two parents: from_edges named the line
    return None


def _from_paths(rows: Sequence[Sequence[str]], name: str, numbers: Sequence[int]) -> Taxonomy:
    paths = []
    for number, row in zip(numbers, rows, strict=True):
        try:
            paths.append([str(field) for field in clean_path(row)])
        except TaxonomyError as error:
            raise TaxonomyError(f"{name}:{number}: {error}") from None
    try:
        return Taxonomy.from_paths(integers_if_all(paths))
    except TaxonomyError as error:
        raise TaxonomyError(f"{name}: {error}") from None
