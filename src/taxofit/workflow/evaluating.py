"""Scores of a saved model on labelled files."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from taxofit.datasets import BadRows
from taxofit.metrics import level_errors
from taxofit.model_store import load_model, read_manifest
from taxofit.workflow.inputs import check_width
from taxofit.workflow.scoring import predictions_on
from taxofit.workflow.sources import Source

if TYPE_CHECKING:
    from taxofit.classifier import TaxonomyClassifier
    from taxofit.datasets import Dataset
    from taxofit.metrics import LevelError
    from taxofit.progress import StageProgress

__all__ = ["EvaluationReport", "evaluate_file", "score_rows"]


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


def evaluate_file(
    model: str, file: str, *, strict: bool = False, progress: StageProgress | None = None
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
    check_width(classifier, data.X, data.name)
    found = predictions_on(classifier, data)
    return EvaluationReport(
        name=data.name,
        n_rows=data.n_rows,
        scores=found.scores,
        levels=tuple(level_errors(found.true, found.predicted, found.taxonomy)),
        notes=(*data.notes, *map(str, data.left_out)),
    )
