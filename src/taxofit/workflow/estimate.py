"""Will it fit, and how long will it take? Asked before a file is read and before training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
from scipy import sparse

from taxofit.bank.cost import FitCost, FitSize, estimate_fit
from taxofit.bank.kernels import find_device
from taxofit.datasets.mapped import is_mapped
from taxofit.datasets.svmlight import parse_file
from taxofit.errors import DataError
from taxofit.memory import available_memory
from taxofit.methods import flattening_named
from taxofit.selection import C_GRID

if TYPE_CHECKING:
    from taxofit.datasets import Dataset
    from taxofit.workflow.options import FitOptions
    from taxofit.workflow.sources import Source

__all__ = ["check_memory", "check_reading", "estimate_for", "shown_bytes"]

SAMPLE_BYTES = 1 << 20
SAMPLE_TEXTS = 2000
# Measured: an entry of svmlight text while it is being read, and a byte of a table.
READ_ENTRY_BYTES, READ_TABLE_FACTOR = 45, 4
NEW_TERMS = 0.6  # the vocabulary grows with this power of the number of texts (Heaps' law)
TOLERANCE = 1.2  # the estimate is good to a fifth or so; what may fit is tried
ON_DISK = "keep the rows on disk with --store DIR, or use fewer features"
FEWER = "use fewer features, or give C a value (--C 1) and a method without validation (td-lr)"


def check_reading(file: str, source: Source) -> None:
    """Raise a DataError where the rows of a file cannot be held in memory, before reading them."""
    try:
        n_bytes = Path(file).stat().st_size
    except OSError:
        return  # the reader says what is wrong
    if n_bytes < SAMPLE_BYTES or source.format == "arff":
        return
    needed = float(READ_TABLE_FACTOR * n_bytes)
    if source.format == "svmlight":
        sample = next(parse_file(file, chunk_bytes=SAMPLE_BYTES))
        needed = READ_ENTRY_BYTES * len(sample.ids) * n_bytes / SAMPLE_BYTES
    _compare(file, "reading it", needed, ON_DISK)


def check_memory(file: str, cost: FitCost, *, is_stored: bool) -> None:
    """Raise a DataError where a fit needs more memory than there is."""
    _compare(file, "training on it", cost.memory_bytes, FEWER if is_stored else ON_DISK)


def _compare(file: str, what: str, needed: float, remedy: str) -> None:
    available = available_memory()
    if needed > TOLERANCE * available:
        raise DataError(
            f"{file}: {what} needs about {shown_bytes(needed)} of memory but "
            f"{shown_bytes(available)} are available; {remedy}"
        )


def shown_bytes(n_bytes: float) -> str:
    """Return an amount of memory for people.

    Examples
    --------
    >>> shown_bytes(3.5 * 2**30), shown_bytes(200 * 2**20)
    ('3.5 GiB', '200 MiB')
    """
    return f"{n_bytes / 2**30:.1f} GiB" if n_bytes >= 2**30 else f"{n_bytes / 2**20:.0f} MiB"


def estimate_for(data: Dataset, options: FitOptions, encoder: Any) -> FitCost | None:
    """Return what a fit will take; None for dense rows and on a GPU, which have no model.

    Parameters
    ----------
    data : Dataset
    options : FitOptions
    encoder : transformer or None
        What the rows are still to go through.
    """
    if find_device(options.device) != "cpu" or not (sparse.issparse(data.X) or data.is_text):  # type: ignore[arg-type]
        return None
    n_entries, n_features = (
        _terms_in(data.X, encoder) if data.is_text else (int(data.X.nnz), int(data.X.shape[1]))
    )
    C = options.regularisation
    needs_rows_held_out = C == "auto" or flattening_named(options.method).needs_evidence
    return estimate_fit(
        FitSize(
            n_rows=data.n_rows,
            n_entries=n_entries,
            n_features=n_features,
            n_nodes=data.taxonomy.n_nodes - 1,
            Cs=(C_GRID if C == "auto" else (C,)) if needs_rows_held_out else (),
            C=1.0 if C == "auto" else C,
            n_threads=joblib.cpu_count(),
            is_mapped=is_mapped(data.X),
            available_bytes=available_memory(),
        )
    )


def _terms_in(texts: Any, encoder: Any) -> tuple[int, int]:
    """Return entries and features of encoded texts, from some of them."""
    n = len(texts)
    sample = texts[np.linspace(0, n - 1, min(n, SAMPLE_TEXTS)).astype(np.int64)]
    settings = encoder.get_params()
    if settings.get("features") == "auto":
        settings["features"] = "chars"  # the most that may be chosen
    encoded = type(encoder)(**settings).fit_transform(sample)
    growth = n / len(sample)
    return int(encoded.nnz * growth), int(encoded.shape[1] * growth**NEW_TERMS)
