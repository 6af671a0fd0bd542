"""Reading Clus's ARFF for hierarchical classes (HMC): the header holds the taxonomy.

The class attribute reads ``@ATTRIBUTE class hierarchical 2,2/1,2/1/3,...``; a row ends with the
whole path ``2@2/1@2/1/3`` or with its deepest node alone. Nodes keep these full names as labels.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import islice
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from taxofit.datasets.dataset import Dataset, check_internal_labels, settle_internal_labels
from taxofit.datasets.files import name_of, text_lines
from taxofit.errors import DataError, TaxonomyError
from taxofit.taxonomy import Taxonomy

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from taxofit.datasets.dataset import InternalLabels
    from taxofit.datasets.files import FileOrStream, FilePath

__all__ = ["iter_arff", "read_arff"]

CHUNK_ROWS = 10_000

ATTRIBUTE = re.compile(r"""@attribute\s+('[^']*'|"[^"]*"|\S+)\s+(.+)""", re.IGNORECASE)
NUMERIC_TYPES = {"numeric", "real", "integer"}
HIERARCHICAL = "hierarchical"


@dataclass(slots=True)
class _Header:
    name: str
    attributes: list[str] = field(default_factory=list)
    class_column: int = -1
    taxonomy: Taxonomy | None = None

    @property
    def n_features(self) -> int:
        return len(self.attributes) - 1


def read_arff(path: FilePath, *, internal_labels: InternalLabels = "error") -> Dataset:
    r"""Return the rows and the taxonomy of a Clus ARFF file with one hierarchical class.

    Parameters
    ----------
    path : path
        Gzip is unpacked on the way. Rows are dense, or sparse as ``{1 0.5, 3 2}``.
    internal_labels : {"error", "drop", "keep"}
        What becomes of rows whose deepest label is an internal node; DIATOMS has 125 of them.

    Returns
    -------
    Dataset
        X is float64, shape (n_rows, n_features).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "xray.arff")
    ...     _ = file.write_text(
    ...         "@RELATION xray\n@ATTRIBUTE edge NUMERIC\n@ATTRIBUTE class hierarchical 2,2/1,2/3\n"
    ...         "@DATA\n7,2@2/1\n5,2@2/3\n"
    ...     )
    ...     images = read_arff(file)
    >>> images
    Dataset('xray', 2 rows, 1 features, 2 of 2 leaves seen)
    >>> images.y.tolist()
    ['2/1', '2/3']
    """
    check_internal_labels(internal_labels)
    name = fspath(path)
    lines = _meaningful_lines(path)
    header, taxonomy = _read_header(lines, name)
    numbers: list[int] = []
    rows: list[np.ndarray] = []
    labels: list[str] = []
    for number, line in lines:
        values, written = _split_row(line, header, number)
        rows.append(values)
        labels.append(_deepest(written, taxonomy, f"{name}:{number}"))
        numbers.append(number)
    if not rows:
        raise DataError(f"{name}: no rows after @DATA")
    X = _finite(rows, numbers, name)
    y = np.array(labels, dtype=object)
    dataset = Dataset(X, y, taxonomy, Path(name).name.split(".")[0])
    return settle_internal_labels(
        dataset, internal_labels, locate=lambda row: f"{name}:{numbers[row]}"
    )


def iter_arff(path: FileOrStream, *, chunk_rows: int = CHUNK_ROWS) -> Iterator[np.ndarray]:
    r"""Yield the numbers of an ARFF file in chunks of rows; what the class says is not looked at.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "xray.arff")
    ...     _ = file.write_text(
    ...         "@RELATION xray\n@ATTRIBUTE edge NUMERIC\n@ATTRIBUTE class hierarchical 2,2/1,2/3\n"
    ...         "@DATA\n7,?\n5,?\n"
    ...     )
    ...     [X.tolist() for X in iter_arff(file)]
    [[[7.0], [5.0]]]
    """
    name = name_of(path)
    lines = _meaningful_lines(path)
    header, _ = _read_header(lines, name)
    is_empty = True
    while batch := list(islice(lines, chunk_rows)):
        is_empty = False
        rows = [_split_row(line, header, number)[0] for number, line in batch]
        yield _finite(rows, [number for number, _ in batch], name)
    if is_empty:
        raise DataError(f"{name}: no rows after @DATA")


def _finite(rows: Sequence[np.ndarray], numbers: Sequence[int], name: str) -> np.ndarray:
    X = np.vstack(rows)
    bad = np.argwhere(~np.isfinite(X))
    if len(bad):
        row, column = bad[0]
        raise DataError(
            f"{name}:{numbers[row]}: value {column + 1} is {X[row, column]}, not finite"
        )
    return X


def _meaningful_lines(path: FileOrStream) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text_lines(path), start=1):
        stripped = line.strip()
        if stripped and not stripped.startswith("%"):
            yield number, stripped


def _read_header(lines: Iterator[tuple[int, str]], name: str) -> tuple[_Header, Taxonomy]:
    header = _Header(name)
    for number, line in lines:
        keyword = line.split(None, 1)[0].lower()
        if keyword == "@data":
            if header.taxonomy is None:
                raise DataError(f"{name}: no attribute 'class {HIERARCHICAL}' in the header")
            return header, header.taxonomy
        if keyword == "@relation":
            continue
        match = ATTRIBUTE.fullmatch(line)
        if match is None:
            raise DataError(
                f"{name}:{number}: expected @ATTRIBUTE or @DATA but found {line[:40]!r}"
            )
        attribute, kind = match[1].strip("'\""), match[2]
        if kind.lower().startswith(HIERARCHICAL):
            if header.taxonomy is not None:
                raise DataError(f"{name}:{number}: a second hierarchical class; one is supported")
            header.class_column = len(header.attributes)
            header.taxonomy = _taxonomy(kind[len(HIERARCHICAL) :], f"{name}:{number}")
        elif kind.split()[0].lower() not in NUMERIC_TYPES:
            raise DataError(
                f"{name}:{number}: attribute {attribute!r} is of type {kind[:40]!r}; only numeric "
                f"ones are supported, so encode it as numbers first"
            )
        header.attributes.append(attribute)
    raise DataError(f"{name}: no @DATA in the file; is this ARFF?")


def _taxonomy(listed: str, where: str) -> Taxonomy:
    """Return the tree of names such as ``2/1/3``, with ancestors that are not listed."""
    parents: dict[Hashable, Hashable] = {}
    for label in (part.strip() for part in listed.split(",")):
        if not label:
            raise DataError(f"{where}: an empty name among the classes")
        parts = label.split("/")
        above = None
        for depth in range(1, len(parts) + 1):
            node = "/".join(parts[:depth])
            parents.setdefault(node, above)
            above = node
    try:
        return Taxonomy.from_parents(parents)
    except TaxonomyError as error:
        raise TaxonomyError(f"{where}: {error}") from None


def _split_row(line: str, header: _Header, number: int) -> tuple[np.ndarray, str]:
    if line.startswith("{"):
        fields = _sparse_fields(line, header, number)
    else:
        fields = line.split(",")
        if len(fields) != len(header.attributes):
            raise DataError(
                f"{header.name}:{number}: {len(fields)} values where the header has "
                f"{len(header.attributes)} attributes"
            )
    label = fields.pop(header.class_column).strip()
    try:
        return np.array(list(map(float, fields))), label
    except ValueError:
        names = [*header.attributes]
        names.pop(header.class_column)
        _explain(fields, names, f"{header.name}:{number}")
        raise


def _explain(fields: Sequence[str], names: Sequence[str], where: str) -> None:
    for value, attribute in zip(fields, names, strict=True):
        if value.strip() == "?":
            raise DataError(
                f"{where}: attribute {attribute!r} is missing ('?'); fill in missing values first"
            ) from None
        try:
            float(value)
        except ValueError:
            raise DataError(
                f"{where}: attribute {attribute!r} is not a number: {value.strip()!r}"
            ) from None


def _sparse_fields(line: str, header: _Header, number: int) -> list[str]:
    """Return the fields of ``{0 1.5, 3 2/1}``: index and value, what is left out is 0."""
    fields = ["0"] * len(header.attributes)
    fields[header.class_column] = ""
    inside = line.strip("{}").strip()
    for pair in inside.split(",") if inside else ():
        index, _, value = pair.strip().partition(" ")
        if not index.isdigit() or int(index) >= len(fields) or not value:
            raise DataError(
                f"{header.name}:{number}: expected an attribute's index from 0 to "
                f"{len(fields) - 1} and a value but found {pair.strip()!r}"
            )
        fields[int(index)] = value.strip()
    return fields


def _deepest(written: str, taxonomy: Taxonomy, where: str) -> str:
    """Return the one label of ``2@2/1@2/1/3`` that is no ancestor of another."""
    labels = list(dict.fromkeys(part.strip() for part in written.split("@")))
    if labels in ([""], ["?"]):
        raise DataError(f"{where}: the label is empty")
    for label in labels:
        if label not in taxonomy:
            raise DataError(f"{where}: label {label!r} is not among the classes of the header")
    ends = [label for label in labels if not any(other.startswith(f"{label}/") for other in labels)]
    if len(ends) > 1:
        raise DataError(
            f"{where}: the row has {len(ends)} labels, {', '.join(map(repr, ends))}; taxofit "
            f"classifies rows with one label each"
        )
    return ends[0]
