"""Why a model answers as it does, for a text or for one row of a file."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit.errors import DataError
from taxofit.model_store import load_model, read_manifest
from taxofit.workflow.inputs import STANDARD_INPUT, check_width, open_rows
from taxofit.workflow.predict_options import PredictOptions
from taxofit.workflow.sources import Source

if TYPE_CHECKING:
    from taxofit.workflow.inputs import Batch

__all__ = ["explain_row", "explain_text"]

MAX_TEXT_BYTES = 2**20


def explain_text(model: str, text: str, *, n_candidates: int, n_features: int) -> Any:
    """Return the Explanation of what a model says of a text; ``-`` reads it from standard input."""
    source = Source.from_notes(read_manifest(model).get("notes", {}), model)
    if not source.text:
        raise DataError(
            f"{model} reads rows of numbers, not a text; name a row with --row NUMBER FILE"
        )
    if text == STANDARD_INPUT:
        text = sys.stdin.buffer.read(MAX_TEXT_BYTES).decode("utf-8", "replace")
    if not text.strip():
        raise DataError("there is no text to explain")
    return load_model(model).explain(text, n_candidates=n_candidates, n_features=n_features)


def explain_row(model: str, file: str, row: int, *, n_candidates: int, n_features: int) -> Any:
    """Return the Explanation of what a model says of one row of a file, counted from 1."""
    if row < 1:
        raise DataError(f"rows are counted from 1, so there is no row {row}")
    source = Source.from_notes(read_manifest(model).get("notes", {}), model)
    classifier = load_model(model)
    n_before = 0
    with open_rows(file, source, PredictOptions()) as rows:
        for batch in rows:
            check_width(classifier, batch.X, file)
            n_rows = batch.X.shape[0]
            if row <= n_before + n_rows:
                x = _row(batch, row - n_before - 1)
                return classifier.explain(x, n_candidates=n_candidates, n_features=n_features)
            n_before += n_rows
    raise DataError(f"{file} has {n_before} rows; there is no row {row}")


def _row(batch: Batch, position: int) -> Any:
    """Return one row: a text, numbers of shape (n_features,), or a matrix of one sparse row."""
    X = batch.X
    return X[position] if isinstance(X, np.ndarray) else X[position : position + 1]
