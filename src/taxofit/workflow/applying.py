"""Using a saved model on files: predictions row by row, and scores against labels."""

from __future__ import annotations

import csv
import os
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from taxofit.datasets import BadRows
from taxofit.errors import DataError
from taxofit.metrics import level_errors
from taxofit.model_store import load_model, read_manifest
from taxofit.taxonomy import PATH_SEPARATOR
from taxofit.workflow.scoring import predictions_on
from taxofit.workflow.sources import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from taxofit.classifier import TaxonomyClassifier
    from taxofit.datasets import Dataset
    from taxofit.metrics import LevelError

    Progress = Callable[[str, int, int], None]

__all__ = [
    "EvaluationReport",
    "PredictionReport",
    "evaluate_file",
    "predict_file",
    "score_rows",
    "spreadsheet_safe",
]

COLUMNS = ("label", "path", "score")
SCORE_FORMAT = ".6g"


@dataclass(frozen=True)
class PredictionReport:
    """How many rows were predicted, and where they went; None is the stream."""

    n_rows: int
    out: str | None


@dataclass(frozen=True)
class EvaluationReport:
    """How good a model is on labelled rows.

    Attributes
    ----------
    name : str
        Of the data.
    n_rows : int
    scores : dict of float
        ``micro_f1``, ``macro_f1``, ``hierarchical_f1`` as fractions, and ``tree_error``, all on the
        original taxonomy.
    levels : tuple of LevelError
    notes : tuple of str
    """

    name: str
    n_rows: int
    scores: dict[str, float]
    levels: tuple[LevelError, ...]
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "rows": self.n_rows,
            **self.scores,
            "levels": [{**asdict(level), "error": level.error} for level in self.levels],
            "notes": list(self.notes),
        }


def predict_file(
    model: str,
    file: str,
    out: str | IO[str],
    *,
    exact: bool = False,
    progress: Progress | None = None,
) -> PredictionReport:
    """Write the prediction for every row of a file, in order, as CSV.

    Columns are ``label``, ``path`` (in the original taxonomy, joined with ``' > '``) and ``score``
    (the leaf's own probability, six significant digits). Tables are read and written in chunks.

    Parameters
    ----------
    model, file : str
    out : str or text stream
        A file appears under its name only when it is complete.
    exact : bool
        Write labels as they are, even those that a spreadsheet would run as a formula; see
        `spreadsheet_safe`.
    progress : callable, optional
        Called with ("Predicting", rows done, 0).
    """
    source = Source.from_notes(read_manifest(model).get("notes", {}), model)
    classifier = load_model(model)
    if not isinstance(out, str):
        return PredictionReport(
            _write(classifier, source, file, out, exact=exact, progress=progress), None
        )
    if _is_same_file(out, file):
        raise DataError(f"{out} is the file to read; write the predictions to another one")
    with _replacing(out) as stream:
        n_rows = _write(classifier, source, file, stream, exact=exact, progress=progress)
    return PredictionReport(n_rows, out)


def evaluate_file(
    model: str, file: str, *, strict: bool = False, progress: Progress | None = None
) -> EvaluationReport:
    """Return how well a model predicts the labels of a file, which are read as at fit time.

    Rows without a label cannot be scored: they are left out with a note, or an error if ``strict``.
    """
    source = Source.from_notes(read_manifest(model).get("notes", {}), model)
    classifier = load_model(model)
    if progress is not None:
        progress("Reading", 0, 0)
    bad_rows = BadRows(strict=strict, empty_text=False)
    data = source.read_labelled(file, classifier.original_taxonomy_, bad_rows)
    return score_rows(classifier, data)


def score_rows(classifier: TaxonomyClassifier, data: Dataset) -> EvaluationReport:
    """Return the scores of a classifier on labelled rows.

    Labels are compared in the data's taxonomy, which has all of the classifier's and may have more.
    Macro-F1 runs over the classes of training and test rows alike.
    """
    _check_width(classifier, data.X, data.name)
    found = predictions_on(classifier, data)
    return EvaluationReport(
        name=data.name,
        n_rows=data.n_rows,
        scores=found.scores,
        levels=tuple(level_errors(found.true, found.predicted, found.taxonomy)),
        notes=(*data.notes, *map(str, data.left_out)),
    )


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


def _write(
    classifier: TaxonomyClassifier,
    source: Source,
    file: str,
    stream: IO[str],
    *,
    exact: bool,
    progress: Progress | None,
) -> int:
    written: dict[Hashable, tuple[str, str]] = {}

    def cells(label: Hashable) -> tuple[str, str]:
        if label not in written:
            path = PATH_SEPARATOR.join(map(str, classifier.original_taxonomy_.path_of(label)))
            pair = str(label), path
            written[label] = pair if exact else (spreadsheet_safe(pair[0]), spreadsheet_safe(path))
        return written[label]

    writer = csv.writer(stream, lineterminator="\n")
    n_rows = 0
    for X in source.iter_features(file):
        _check_width(classifier, X, file)
        labels, scores = classifier.predict_with_score(X)
        if not n_rows:
            writer.writerow(COLUMNS)
        writer.writerows(
            (*cells(label), format(score, SCORE_FORMAT))
            for label, score in zip(labels.tolist(), scores.tolist(), strict=True)
        )
        n_rows += len(labels)
        if progress is not None:
            progress("Predicting", n_rows, 0)
    return n_rows


def _check_width(classifier: TaxonomyClassifier, X: Any, where: str) -> None:
    """Raise a DataError where rows have not the number of columns that the model was trained on."""
    is_numbers = X.ndim == 2 and X.dtype != object  # columns of several kinds are objects
    if is_numbers and X.shape[1] != classifier.n_features_in_:
        raise DataError(
            f"{where}: rows have {X.shape[1]} numbers, but the model was trained on "
            f"{classifier.n_features_in_}; is this the right model?"
        )


def _is_same_file(out: str, file: str) -> bool:
    return Path(out).exists() and Path(file).exists() and Path(out).samefile(file)


@contextmanager
def _replacing(out: str) -> Iterator[IO[str]]:
    """Open a file beside the one that is meant, and give it its name when all went well."""
    target = Path(out).resolve()
    if target.exists() and not target.is_file():
        if target.is_dir():
            raise DataError(f"{out} is a folder; name a file to write to")
        with target.open("w", encoding="utf-8", newline="") as stream:  # a device or a pipe
            yield stream
        return
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with beside.open("x", encoding="utf-8", newline="") as stream:
            yield stream
        beside.replace(target)
    except FileNotFoundError:
        raise DataError(
            f"{out}: the folder {target.parent} does not exist; make it first"
        ) from None
    finally:
        beside.unlink(missing_ok=True)
