"""What kind of file it is: by its name, else by its first line."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

from taxofit.datasets.files import text_lines
from taxofit.errors import DataError

__all__ = ["SUFFIXES", "format_of", "is_svmlight_line", "suffix_of"]

SUFFIXES = {
    ".csv": "table",
    ".tsv": "table",
    ".tab": "table",
    ".parquet": "table",
    ".pq": "table",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".arff": "arff",
}
SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods")
SVMLIGHT_ENTRY = re.compile(r"(?:[0-9]+|qid):\S+")


def suffix_of(file: str) -> str:
    """Return how a file's name ends, before ``.gz`` and in small letters.

    Examples
    --------
    >>> suffix_of("Products.CSV.gz")
    '.csv'
    """
    path = Path(file)
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()


def format_of(file: str) -> str:
    """Return ``"table"``, ``"svmlight"`` or ``"arff"``, from the file's name or its first line.

    A folder of text files is a table.

    Examples
    --------
    >>> format_of("products.csv.gz"), format_of("images.arff")
    ('table', 'arff')
    """
    suffix = suffix_of(file)
    if Path(file).is_dir():
        return "table"
    if suffix in SUFFIXES:
        return SUFFIXES[suffix]
    if suffix in SPREADSHEETS:
        raise DataError(
            f"{file}: spreadsheets are not read; in your spreadsheet program choose File > Save As "
            f"> CSV (UTF-8) and give that file"
        )
    for line in text_lines(file):
        stripped = line.strip()
        if stripped and not stripped.startswith(("#", "%")):
            if stripped.lower().startswith("@relation"):
                return "arff"
            return "svmlight" if is_svmlight_line(stripped) else "table"
    raise DataError(f"{file}: the file is empty")


def is_svmlight_line(line: str) -> bool:
    """Return whether a line reads as labels, with commas between them, and then features.

    Examples
    --------
    >>> is_svmlight_line("12, 13 3:1 4:0.5"), is_svmlight_line("a title 3:1")
    (True, False)
    """
    words = line.partition("#")[0].split()
    is_entry = [SVMLIGHT_ENTRY.fullmatch(word) is not None for word in words]
    n_labels = is_entry.index(True) if any(is_entry) else 0
    labels = words[:n_labels]
    return (
        n_labels > 0
        and all(is_entry[n_labels:])
        and all(a.endswith(",") or b.startswith(",") for a, b in pairwise(labels))
    )
