"""What a person can ask of ``fit``: names, defaults, and what goes with which format.

This module is read before anything heavy is imported, so that ``taxofit --help`` answers at once.
Tests hold its names and defaults against those of the library.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from taxofit.errors import DataError

__all__ = [
    "DEVICES",
    "FEATURES",
    "FORMATS",
    "INTERNAL_LABELS",
    "METHODS",
    "SCALES",
    "SEARCHES",
    "TAXONOMY_FORMS",
    "FitOptions",
    "check_seed",
    "in_options",
]

METHODS = ("td-lr", "tlf", "blf", "mlf", "mta", "level-inf", "global-inf", "lr")
FEATURES = ("auto", "words", "pairs", "chars")
FORMATS = ("auto", "table", "svmlight", "arff")
SCALES = ("none", "max")
DEVICES = ("auto", "cpu", "cuda")
SEARCHES = ("auto", "greedy", "beam")
INTERNAL_LABELS = ("drop", "error")
TAXONOMY_FORMS = ("paths", "edges", "json")


OPTION_OF_ARGUMENT = {
    "C": "--C",
    "category": "--category",
    "delimiter": "--delimiter",
    "device": "--device",
    "encoding": "--encoding",
    "features": "--features",
    "internal_labels": "--internal-labels",
    "label_path": "--path",
    "levels": "--level",
    "numeric": "--numeric",
    "search": "--search",
    "separator": "--sep",
    "text": "--text",
}
PHRASES = {"pass multilabel=True to read": "keep only one of"}  # what no option does
ARGUMENT = re.compile(rf"\b({'|'.join(OPTION_OF_ARGUMENT)})=(?:'([^']*)')?(?![\w=])")


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """How to read a file and what to train on it; the defaults are those of the command line.

    Attributes
    ----------
    text, numeric, category : tuple of str
        Columns of a table that hold texts, numbers, or one of a few values; guessed where none are
        given and it is plain which are texts.
    label_path : str, optional
        The column that holds the label of each row as a path; guessed likewise.
    levels : tuple of str
        Instead: one column a level, top first.
    separator : str, optional
        Between the names of a path; guessed by default.
    hierarchy : str, optional
        A file with the taxonomy.
    format : str
        One of ``FORMATS``; ``"auto"`` looks at the file's name and, if need be, at its first line.
    ignore_features : tuple of int
        Ids to skip in svmlight files.
    raw : bool
        Take the numbers of svmlight files as they are; else they are counts, turned into tf-idf.
    scale : {"none", "max"}
        ``"max"`` divides each column of numbers by its largest absolute value in the training rows.
    internal_labels : {"drop", "error"}
        What becomes of rows that are labelled with an internal node.
    strict : bool
        Stop at the first row that cannot be used; else go on without such rows and count them.
    encoding, delimiter : str, optional
        Of text tables; guessed by default.
    method : str
        One of ``METHODS``.
    C : str
        A positive number or ``"auto"``.
    features : str
        One of ``FEATURES``: what is counted in texts; ``"auto"`` tries them on validation rows.
    device : str
        Where to train; one of ``DEVICES``.
    seed : int
    search : str
        How rows find their leaf; one of ``SEARCHES``.
    store : str, optional
        Folder where the rows are kept in a memory-mapped store: for files larger than memory.
    work_dir : str, optional
        A folder that keeps solved blocks, so that a run that was stopped can go on.
    dask : str, optional
        Address of a dask scheduler whose workers solve the blocks.
    workers : int, optional
        Processes of this machine that solve them.

    Examples
    --------
    >>> FitOptions(text=("title",), label_path="category").regularisation
    'auto'
    >>> FitOptions(method="best").check()
    Traceback (most recent call last):
        ...
    taxofit.errors.DataError: method must be one of td-lr, tlf, ... but is 'best'
    """

    text: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    label_path: str | None = None
    levels: tuple[str, ...] = ()
    separator: str | None = None
    hierarchy: str | None = None
    format: str = "auto"
    ignore_features: tuple[int, ...] = ()
    raw: bool = False
    scale: str = "none"
    internal_labels: str = "drop"
    strict: bool = False
    encoding: str | None = None
    delimiter: str | None = None
    method: str = "global-inf"
    C: str = "auto"
    features: str = "auto"
    device: str = "auto"
    seed: int = 0
    search: str = "auto"
    store: str | None = None
    work_dir: str | None = None
    dask: str | None = None
    workers: int | None = None

    @property
    def regularisation(self) -> float | Literal["auto"]:
        """C as a number, or ``"auto"``."""
        if self.C == "auto":
            return "auto"
        try:
            value = float(self.C)
        except ValueError:
            value = float("nan")
        if not 0 < value < float("inf"):
            raise DataError(f"C must be a positive number or 'auto', but is {self.C!r}")
        return value

    def check(self) -> None:
        """Raise a DataError that names the first option whose value is not one of its choices."""
        for name, value, choices in (
            ("method", self.method, METHODS),
            ("features", self.features, FEATURES),
            ("format", self.format, FORMATS),
            ("scale", self.scale, SCALES),
            ("internal-labels", self.internal_labels, INTERNAL_LABELS),
            ("device", self.device, DEVICES),
            ("search", self.search, SEARCHES),
        ):
            if value not in choices:
                raise DataError(f"{name} must be one of {', '.join(choices)}, but is {value!r}")
        check_seed(self.seed)
        if self.workers is not None and self.workers < 1:
            raise DataError(f"workers must be a positive number, but is {self.workers}")
        if self.workers is not None and self.dask is not None:
            raise DataError(
                "--workers are processes of this machine, --dask is a cluster; name one"
            )
        _ = self.regularisation

    def check_for(self, kind: str, file: str) -> None:
        """Raise a DataError where options do not go with the format of the file."""
        if kind == "table":
            if self.label_path is not None and self.levels:
                raise DataError("give --path (a path in one column) or --level, not both")
            return
        for option, given in (
            ("--text", self.text),
            ("--numeric", self.numeric),
            ("--category", self.category),
            ("--path", self.label_path),
            ("--level", self.levels),
        ):
            if given:
                raise DataError(
                    f"{file}: {option} names columns of a table, but this is read as {kind}; "
                    f"leave it out, or say --format table"
                )
        if kind == "svmlight" and self.hierarchy is None:
            raise DataError(
                f"{file}: svmlight files have no taxonomy in them; give its file with --hierarchy"
            )
        if kind == "arff" and self.hierarchy is not None:
            raise DataError(f"{file}: the header of an ARFF file is its taxonomy; drop --hierarchy")


def in_options(message: str) -> str:
    """Return a message of the library in the words of the command line.

    The library names its keyword arguments; a person at a terminal knows options.

    Examples
    --------
    >>> in_options("a.csv:3: not utf-8 text; pass the right encoding=")
    'a.csv:3: not utf-8 text; pass the right --encoding'
    >>> in_options("pass internal_labels='drop' to leave these rows out")
    'pass --internal-labels drop to leave these rows out'
    """

    def option(match: re.Match[str]) -> str:
        value = match[2] or ""
        return f"{OPTION_OF_ARGUMENT[match[1]]}{' ' * bool(value)}{value}"

    for words, meant in PHRASES.items():
        message = message.replace(words, meant)
    return ARGUMENT.sub(option, message)


def check_seed(seed: int) -> None:
    """Raise a DataError unless NumPy takes this number as a seed.

    Examples
    --------
    >>> check_seed(-1)
    Traceback (most recent call last):
        ...
    taxofit.errors.DataError: seed must be a number from 0 to 2^32 - 1, but is -1
    """
    if not 0 <= seed < 2**32:
        raise DataError(f"seed must be a number from 0 to 2^32 - 1, but is {seed}")
