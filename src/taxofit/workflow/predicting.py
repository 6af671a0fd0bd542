"""From rows without labels to a file of predictions, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from taxofit.errors import DataError
from taxofit.model_store import load_model, read_manifest
from taxofit.workflow.inputs import STANDARD_INPUT, check_width, open_rows
from taxofit.workflow.output_formats import Answers, Layout
from taxofit.workflow.outputs import format_of_output, open_writer
from taxofit.workflow.predict_options import PredictOptions
from taxofit.workflow.sources import Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from taxofit.classifier import TaxonomyClassifier
    from taxofit.workflow.inputs import Batch

    # (rows done, bytes read, bytes in all or 0)
    StreamProgress = Callable[[int, int, int], None]

__all__ = ["PredictionReport", "predict_file", "sure_labels"]

MAX_PROBABILITIES = 4_000_000  # of all labels for the rows of a chunk: 32 MB
DEFAULTS = PredictOptions()


@dataclass(frozen=True)
class PredictionReport:
    """What was predicted.

    Attributes
    ----------
    n_rows : int
    n_blank : int
        Rows without any text, which get the label of no evidence.
    out : str or None
        Where they went; None is a stream.
    notes : tuple of str
        What was guessed about the input.
    """

    n_rows: int
    n_blank: int
    out: str | None
    notes: tuple[str, ...] = ()


def predict_file(
    model: str,
    file: str,
    out: str | IO[str],
    options: PredictOptions = DEFAULTS,
    *,
    progress: StreamProgress | None = None,
) -> PredictionReport:
    """Write the prediction for every row of a file, in order, a few thousand rows at a time.

    Every row gets ``label``, ``path`` (in the original taxonomy) and ``score`` (how sure the model
    is, from 0 to 1). A row without any text is predicted like the others, from the intercepts
    alone, so that rows of input and output correspond. Memory does not grow with the file.

    Parameters
    ----------
    model, file : str
        ``-`` is standard input.
    out : str or text stream
        A file appears under its name only when it is complete.
    options : PredictOptions
    progress : callable, optional
        Called with rows done, bytes read and bytes in all, the last 0 where that is not known.
    """
    options.check()
    name = out if isinstance(out, str) else None
    kind = format_of_output(name, options.out_format)
    if name is not None and file != STANDARD_INPUT and _is_same_file(name, file):
        raise DataError(f"{name} is the file to read; write the predictions to another one")
    source = Source.from_notes(read_manifest(model).get("notes", {}), model)
    classifier = load_model(model)
    classes = classifier.classes_.tolist()
    if options.proba or options.min_confidence is not None:
        chunk_rows = min(options.chunk_rows, MAX_PROBABILITIES // len(classes))
        options = replace(options, chunk_rows=max(1, chunk_rows))
    layout = Layout(_cached_paths(classifier), classes, options.exact)
    n_rows = n_blank = 0
    with open_rows(file, source, options) as rows, open_writer(out, layout, kind) as writer:
        for batch in rows:
            check_width(classifier, batch.X, file)
            answers = _answer(classifier, batch, options)
            writer.write(answers)
            n_rows += answers.n_rows
            n_blank += _count_blank(batch.X)
            if progress is not None:
                progress(n_rows, rows.n_bytes_read, rows.n_bytes)
    return PredictionReport(n_rows, n_blank, name, rows.notes)


def sure_labels(
    classifier: TaxonomyClassifier, X: Any, min_confidence: float | None
) -> tuple[NDArray[np.object_], NDArray[np.float64]]:
    """Return the label of each row and how sure it is; None where nothing at all is sure enough.

    That is where only the root is, if it stands for no category of the user's own.
    """
    labels, scores = classifier.predict_with_score(X, min_confidence=min_confidence)
    labels = labels.astype(object)
    taxonomy = classifier.original_taxonomy_
    if min_confidence is not None and taxonomy.has_virtual_root:
        root = taxonomy.labels[0]
        labels[[label == root for label in labels.tolist()]] = None  # labels may be tuples
    return labels, scores


def _answer(classifier: TaxonomyClassifier, batch: Batch, options: PredictOptions) -> Answers:
    """Return what the model says of some rows."""
    X = batch.X
    if options.top > 1:
        ranked = classifier.predict_topk(X, k=options.top)
        labels, scores = ranked.labels.astype(object), ranked.probabilities
    else:
        found, sure = sure_labels(classifier, X, options.min_confidence)
        labels, scores = found[:, None], sure[:, None]
    probabilities = classifier.predict_proba(X) if options.proba else None
    return Answers(labels, scores, probabilities, batch.kept, batch.types)


def _count_blank(X: Any) -> int:
    if not (isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1):
        return 0
    return sum(not text.strip() for text in X)


def _cached_paths(classifier: TaxonomyClassifier) -> Callable[[Any], tuple[Any, ...]]:
    taxonomy = classifier.original_taxonomy_
    paths: dict[Any, tuple[Any, ...]] = {}

    def path_of(label: Any) -> tuple[Any, ...]:
        if label not in paths:
            paths[label] = tuple(taxonomy.path_of(label))
        return paths[label]

    return path_of


def _is_same_file(out: str, file: str) -> bool:
    return Path(out).exists() and Path(file).exists() and Path(out).samefile(file)
