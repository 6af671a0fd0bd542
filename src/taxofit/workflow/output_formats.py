"""Predictions as CSV, TSV, JSON lines or Parquet."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, Protocol, cast

from taxofit.taxonomy import PATH_SEPARATOR

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    LabelPath = tuple[Hashable, ...]

__all__ = [
    "Answers",
    "JsonLines",
    "Layout",
    "Parquet",
    "TextTable",
    "Writer",
    "spreadsheet_safe",
]

COLUMNS = ("label", "path", "score")
RANKED, PROBABILITIES = "top", "probabilities"
SCORE_FORMAT = ".6g"


@dataclass(frozen=True, slots=True)
class Answers:
    """What is said of some rows, the likeliest label first.

    Attributes
    ----------
    labels : ndarray of object, shape (n_rows, n_ranks)
        None where nothing can be said.
    scores : ndarray of float64, shape (n_rows, n_ranks)
    probabilities : ndarray of float64, shape (n_rows, n_classes), optional
    kept : dict of list
        Columns copied from the input.
    types : dict
        Their Arrow types, where these are known.
    """

    labels: NDArray[Any]
    scores: NDArray[np.float64]
    probabilities: NDArray[np.float64] | None = None
    kept: Mapping[str, list[Any]] = field(default_factory=dict)
    types: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.labels)


@dataclass(frozen=True)
class Layout:
    """What every format writes: which columns, and how a label becomes a cell.

    A copied column that is called like one of ours, such as ``label``, becomes ``input_label``.

    Attributes
    ----------
    path_of : callable
        From a label to its path from the top.
    classes : sequence
        The labels that ``probabilities`` are of.
    exact : bool
        Do not guard cells of CSV and TSV against spreadsheets.
    """

    path_of: Callable[[Hashable], LabelPath]
    classes: Sequence[Hashable] = ()
    exact: bool = False

    def kept_names(self, answers: Answers, taken: Sequence[str]) -> list[str]:
        """Return the names under which copied columns are written."""
        names: list[str] = []
        for column in answers.kept:
            name = column
            while name in taken or name in names or (name != column and name in answers.kept):
                name = f"input_{name}"
            names.append(name)
        return names


class Writer(Protocol):
    """Takes the answers of a file, batch by batch."""

    def write(self, answers: Answers) -> None:
        """Write some rows."""


class TextTable:
    """CSV or TSV: rank r has the columns ``label_r``, ``path_r``, ``score_r``; the first none."""

    def __init__(self, stream: IO[str], layout: Layout, delimiter: str) -> None:
        self._layout = layout
        self._stream = stream
        self._writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
        self._cells: dict[Hashable, tuple[str, str]] = {None: ("", "")}
        self._has_heading = False

    def write(self, answers: Answers) -> None:
        """Write some rows."""
        if not self._has_heading:
            self._writer.writerow(self._heading(answers))
            self._has_heading = True
        columns = [list(map(self._cell, values)) for values in answers.kept.values()]
        for labels, scores in zip(answers.labels.T, answers.scores.T, strict=True):
            pairs = list(map(self._label_cells, labels.tolist()))
            columns += [[label for label, _ in pairs], [path for _, path in pairs]]
            columns.append(list(map(_shown_score, scores.tolist())))
        if answers.probabilities is not None:
            columns += [list(map(_shown_score, p.tolist())) for p in answers.probabilities.T]
        self._writer.writerows(zip(*columns, strict=True))
        self._stream.flush()

    def _heading(self, answers: Answers) -> list[str]:
        ours = list(COLUMNS)
        for rank in range(2, answers.labels.shape[1] + 1):
            ours += [f"{column}_{rank}" for column in COLUMNS]
        if answers.probabilities is not None:
            ours += [f"p({label})" for label in self._layout.classes]
        names = [*self._layout.kept_names(answers, ours), *ours]
        return names if self._layout.exact else list(map(spreadsheet_safe, names))

    def _label_cells(self, label: Hashable) -> tuple[str, str]:
        if label not in self._cells:
            path = PATH_SEPARATOR.join(map(str, self._layout.path_of(label)))
            self._cells[label] = self._cell(label), self._cell(path)
        return self._cells[label]

    def _cell(self, value: object) -> str:
        text = "" if value is None else str(value)
        return text if self._layout.exact else spreadsheet_safe(text)


class JsonLines:
    """One object a row; ``path`` is a list of names, ``top`` a list of labels with their paths.

    Where nothing can be said, ``label`` is null and ``path`` empty.
    """

    def __init__(self, stream: IO[str], layout: Layout) -> None:
        self._layout = layout
        self._stream = stream
        self._encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=str)

    def write(self, answers: Answers) -> None:
        """Write some rows."""
        ours = (*COLUMNS, RANKED, PROBABILITIES)
        names = self._layout.kept_names(answers, ours)
        kept = zip(*answers.kept.values(), strict=True) if names else ((),) * answers.n_rows
        labels, scores = answers.labels.tolist(), answers.scores.tolist()
        for row, copied in enumerate(kept):
            ranked = [
                self._entry(label, score)
                for label, score in zip(labels[row], scores[row], strict=True)
            ]
            values = dict(zip(names, map(_json_value, copied), strict=True)) | ranked[0]
            if answers.labels.shape[1] > 1:
                values[RANKED] = ranked
            if answers.probabilities is not None:
                numbers = map(_rounded, answers.probabilities[row].tolist())
                values[PROBABILITIES] = dict(
                    zip(map(str, self._layout.classes), numbers, strict=True)
                )
            self._stream.write(f"{self._encoder.encode(values)}\n")
        self._stream.flush()

    def _entry(self, label: Hashable, score: float) -> dict[str, Any]:
        path = [] if label is None else list(self._layout.path_of(label))
        return {"label": label, "path": path, "score": _rounded(score)}


class Parquet:
    """``path`` is a list of texts, ``top`` a list of label, path and score."""

    def __init__(self, stream: IO[bytes], layout: Layout) -> None:
        self._layout = layout
        self._stream = stream
        self._file: Any = None
        self._schema: Any = None

    def write(self, answers: Answers) -> None:
        """Write some rows, as a row group."""
        import pyarrow as pa
        from pyarrow.parquet import ParquetWriter

        if self._file is None:
            self._schema = self._columns(answers)
            self._file = ParquetWriter(self._stream, self._schema)
        is_number = pa.types.is_integer(self._schema.field(COLUMNS[0]).type)
        as_label = cast("Callable[[Any], Any]", int if is_number else str)
        entries = [
            [
                {
                    "label": None if label is None else as_label(label),
                    "path": [] if label is None else list(map(str, self._layout.path_of(label))),
                    "score": score,
                }
                for label, score in zip(labels, scores, strict=True)
            ]
            for labels, scores in zip(answers.labels.tolist(), answers.scores.tolist(), strict=True)
        ]
        values: list[Any] = list(answers.kept.values())
        values += [[ranked[0][column] for ranked in entries] for column in COLUMNS]
        if answers.labels.shape[1] > 1:
            values.append(entries)
        if answers.probabilities is not None:
            values += list(answers.probabilities.T)
        arrays = [pa.array(v, f.type) for v, f in zip(values, self._schema, strict=True)]
        self._file.write_table(pa.Table.from_arrays(arrays, schema=self._schema))

    def close(self) -> None:
        """Write the index, without which nobody can read the file."""
        if self._file is not None:
            self._file.close()

    def _columns(self, answers: Answers) -> Any:
        import pyarrow as pa

        classes = self._layout.classes
        is_number = all(isinstance(label, int) for label in classes) and bool(classes)
        label = pa.int64() if is_number else pa.string()
        entry = [("label", label), ("path", pa.list_(pa.string())), ("score", pa.float64())]
        ours = list(entry)
        if answers.labels.shape[1] > 1:
            ours.append((RANKED, pa.list_(pa.struct(entry))))
        if answers.probabilities is not None:
            ours += [(f"p({label})", pa.float64()) for label in classes]
        names = self._layout.kept_names(answers, [name for name, _ in ours])
        types = [answers.types.get(column, pa.string()) for column in answers.kept]
        return pa.schema([*zip(names, types, strict=True), *ours])


def spreadsheet_safe(text: str) -> str:
    """Return a text that no spreadsheet runs: with an apostrophe in front where one would.

    A cell that begins with ``=`` or ``@``, with ``+`` or ``-`` and is not a number, or with a tab
    or a carriage return, may be taken for a formula when a CSV file is opened.

    Examples
    --------
    >>> [spreadsheet_safe(text) for text in ("Kettles", "-12", "=1+1", "@home", "- other -")]
    ['Kettles', '-12', "'=1+1", "'@home", "'- other -"]
    """
    if text.startswith(("=", "@", "\t", "\r")):
        return f"'{text}"
    if text.startswith(("+", "-")):
        try:
            float(text)
        except ValueError:
            return f"'{text}"
    return text


def _shown_score(score: float) -> str:
    return "" if math.isnan(score) else format(score, SCORE_FORMAT)


def _rounded(score: float) -> float:
    return float(format(score, SCORE_FORMAT))


def _json_value(value: Any) -> Any:
    """Return a value without NaN and infinity, which JSON has no word for."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _json_value(part) for key, part in value.items()}
    return [_json_value(part) for part in value] if isinstance(value, list) else value
