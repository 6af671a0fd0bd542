"""Which columns of a table are texts and which the label, where that is plain to see."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taxofit.datasets import BadRows, iter_table
from taxofit.datasets.label_paths import guess_path_separator
from taxofit.datasets.table_chunks import is_missing, parse_number
from taxofit.datasets.text_folders import FOLDER_COLUMN, TEXT_COLUMN
from taxofit.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from taxofit.workflow.sources import Source

__all__ = ["ColumnGuess", "guess_columns", "unclear", "with_columns"]

LABEL_NAMES = {
    *("category", "categories", "categorypath", "productcategory", "producttype", "department"),
    *("label", "labels", "class", "path", "taxonomy", "genre", "topic", "target"),
}
TEXT_NAMES = {
    *("text", "texts", "title", "name", "description", "summary", "body", "abstract", "content"),
    *("productname", "producttitle", "productdescription", "headline", "question", "message"),
}
LEVEL_NAME = re.compile(r"(level|lvl|cat|category|categorie)[ _.-]?([0-9]+)", re.IGNORECASE)
PATH_SHARE = 0.9  # of a column's values that must hold the separator of paths
MANY_DISTINCT = 0.3  # share of different values from which a column is more than categories
MIN_WORDS = 1.8  # in the mean, from which a column is text rather than a name or a code
N_COLUMNS_SHOWN = 20
N_ROWS_LOOKED_AT = 1000


@dataclass(frozen=True)
class ColumnGuess:
    """The columns found; empty where it is not plain.

    Attributes
    ----------
    text : tuple of str
    label_path : str or None
    levels : tuple of str
        Columns such as ``level_1``, ``level_2`` instead of a path in one column.
    """

    text: tuple[str, ...] = ()
    label_path: str | None = None
    levels: tuple[str, ...] = ()


def guess_columns(columns: Mapping[str, Sequence[Any]]) -> ColumnGuess:
    """Return which columns look like texts and which like the label, from some rows of a table.

    The label is the one column whose values are nearly all paths and repeat themselves; of several
    the one with a telling name such as ``category``; or a column of that name without paths; or
    else columns called ``level 1``, ``level 2``. Texts are the other columns of mostly different
    values with several words, and those called ``title``, ``description`` and the like.

    Examples
    --------
    >>> guess_columns(
    ...     {
    ...         "id": ["1", "2", "3"],
    ...         "title": ["Steel kettle", "Blue mug", "Red mug"],
    ...         "category": ["Home > Kettles", "Home > Mugs", "Home > Mugs"],
    ...     }
    ... )
    ColumnGuess(text=('title',), label_path='category', levels=())
    """
    values = {
        name: [str(value) for value in cells if not is_missing(value)]
        for name, cells in columns.items()
    }
    values = {name: cells for name, cells in values.items() if cells}
    levels = _levels(list(values))
    label = _label(values)
    if label is not None and label not in levels:
        levels = ()
    taken = {*levels, label}
    text = tuple(
        name for name, cells in values.items() if name not in taken and _is_text(name, cells)
    )
    return ColumnGuess(text, None if levels else label, levels)


def unclear(file: str, columns: Sequence[str], guess: ColumnGuess) -> DataError:
    """Return an error that lists the columns and gives a command to start from.

    Examples
    --------
    >>> str(unclear("a.csv", ["one", "two"], ColumnGuess(text=("one",))))
    "a.csv: which column is the label? ... for example: taxofit fit a.csv --text one --path two ..."
    """
    has_label = guess.label_path is not None or bool(guess.levels)
    what = "column is the label" if not has_label else "columns are the features"
    rest = [name for name in columns if name != guess.label_path and name not in guess.levels]
    text = guess.text[0] if guess.text else next(iter(rest), "TEXT")
    label = guess.label_path or next((name for name in rest[::-1] if name != text), "LABEL")
    shown = ", ".join(map(repr, columns[:N_COLUMNS_SHOWN])) + ", …" * (
        len(columns) > N_COLUMNS_SHOWN
    )
    command = ["taxofit", "fit", file, "--text", text, "--path", label, "--model", "model"]
    return DataError(
        f"{file}: which {what}? The columns are {shown}; name them with --text, --numeric, "
        f"--category and --path (or --level), for example: {shlex.join(command)}"
    )


def with_columns(source: Source, file: str) -> tuple[Source, tuple[str, ...]]:
    """Return the source with columns of features and labels, and a note on those guessed.

    What was named is kept. A DataError lists the columns where they are not plain to see.
    """
    has_label = bool(source.label_columns)
    if source.format != "table" or (source.columns and has_label):
        return source, ()
    if Path(file).is_dir():
        return replace(source, text=(TEXT_COLUMN,), label_path=FOLDER_COLUMN), ()
    first = next(
        iter_table(
            file,
            chunk_rows=N_ROWS_LOOKED_AT,
            encoding=source.encoding,
            delimiter=source.delimiter,
            bad_rows=BadRows(),
        )
    )
    named = {*source.columns, *source.label_columns}
    rest = {name: cells for name, cells in first.columns.items() if name not in named}
    guess = guess_columns(rest)
    if not source.columns:
        source = replace(source, text=guess.text)
    if not has_label:
        source = replace(source, label_path=guess.label_path, levels=guess.levels)
    if not (source.columns and source.label_columns):
        known = replace(guess, text=source.text or guess.text)
        if has_label:
            known = replace(known, label_path=source.label_columns[0])
        raise unclear(file, list(first.columns), known)
    guessed = "" if named & set(source.columns) else f"text from {_listed(source.text)}"
    if not has_label:
        guessed += " and " * bool(guessed) + f"labels from {_listed(source.label_columns)}"
    return source, (f"{guessed} (guessed)",)


def _listed(names: tuple[str, ...]) -> str:
    return " + ".join(map(repr, names))


def _label(values: Mapping[str, Sequence[str]]) -> str | None:
    named = [name for name in values if _plain(name) in LABEL_NAMES]
    paths = [name for name, cells in values.items() if _holds_paths(cells)]
    for candidates in ([name for name in paths if name in named], paths, named):
        if len(candidates) == 1:
            return candidates[0]
    return None


def _holds_paths(cells: Sequence[str]) -> bool:
    distinct = set(cells)
    separator = guess_path_separator(distinct)
    if separator is None or len(distinct) > max(2, 0.7 * len(cells)):
        return False
    if sum("://" in value or value.replace("/", "").isdecimal() for value in distinct):
        return False  # addresses and dates
    return sum(separator in value for value in cells) >= PATH_SHARE * len(cells)


def _levels(names: Sequence[str]) -> tuple[str, ...]:
    found = {name: LEVEL_NAME.fullmatch(name.strip()) for name in names}
    numbered = sorted((int(match[2]), name) for name, match in found.items() if match)
    return tuple(name for _, name in numbered) if len(numbered) > 1 else ()


def _is_text(name: str, cells: Sequence[str]) -> bool:
    if all(_is_number(value) for value in cells) or any("://" in value for value in cells[:5]):
        return False
    if _plain(name) in TEXT_NAMES:
        return True
    mean_words = sum(len(value.split()) for value in cells) / len(cells)
    return mean_words >= MIN_WORDS and len(set(cells)) >= MANY_DISTINCT * len(cells)


def _is_number(value: str) -> bool:
    try:
        parse_number(value)
    except ValueError:
        return False
    return True


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
