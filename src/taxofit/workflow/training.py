"""From a labelled file to a model in a folder."""

from __future__ import annotations

import math
import os
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taxofit.bank.work_dir import WorkDir
from taxofit.classifier import TaxonomyClassifier
from taxofit.datasets import ColumnScaler, CountEncoder
from taxofit.errors import DataError, Interrupted, ModelError, TaxofitError
from taxofit.model_store import read_manifest, save_model
from taxofit.workflow.applying import score_rows
from taxofit.workflow.sources import read_for_fit
from taxofit.workflow.workers import spread_over

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from taxofit.workflow.applying import EvaluationReport
    from taxofit.workflow.options import FitOptions
    from taxofit.workflow.sources import Source

    Progress = Callable[[str, int, int], None]

__all__ = ["FitReport", "check_can_be_made", "check_model_folder", "fit_file"]


@dataclass(frozen=True)
class FitReport:
    """What became of a training file.

    Attributes
    ----------
    model : str
        The folder.
    method : str
    n_rows, n_features, n_leaves : int
    n_nodes, n_nodes_kept : int
        Of the taxonomy before and after repair, the root included.
    removed : tuple
        Labels of the removed nodes.
    C : float
    psi : float, tuple of float or None
    validation_macro_f1 : float or None
        None where no rows were held out.
    train_seconds : float
    notes : tuple of str
        What was guessed or left out.
    test : EvaluationReport, optional
    """

    model: str
    method: str
    n_rows: int
    n_features: int
    n_leaves: int
    n_nodes: int
    n_nodes_kept: int
    removed: tuple[Hashable, ...]
    C: float
    psi: float | tuple[float, ...] | None
    validation_macro_f1: float | None
    train_seconds: float
    notes: tuple[str, ...]
    test: EvaluationReport | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values; scores are fractions, infinity is None."""
        levels = self.psi if isinstance(self.psi, tuple) else None
        return {
            "model": self.model,
            "method": self.method,
            "rows": self.n_rows,
            "features": self.n_features,
            "leaves": self.n_leaves,
            "nodes": self.n_nodes,
            "nodes_kept": self.n_nodes_kept,
            "removed": list(self.removed),
            "C": self.C,
            "psi": self.psi
            if levels is None
            else [p if math.isfinite(p) else None for p in levels],
            "validation_macro_f1": self.validation_macro_f1,
            "train_seconds": self.train_seconds,
            "notes": list(self.notes),
            "test": None if self.test is None else self.test.to_json(),
        }


def fit_file(
    file: str,
    model: str,
    options: FitOptions,
    *,
    test: str | None = None,
    progress: Progress | None = None,
) -> FitReport:
    """Train on a file, save the model, and return what happened.

    Everything that can be wrong with the files or the folder is found before training starts.

    Parameters
    ----------
    file : str
        CSV, TSV, Parquet, svmlight or Clus ARFF.
    model : str
        The folder to write; an earlier model there is replaced.
    options : FitOptions
    test : str, optional
        A labelled file of the same kind, to score the model on.
    progress : callable, optional
        Called with (stage, done, in all); in all is 0 where it is not known.
    """
    tell = progress or _say_nothing
    options.check()
    check_model_folder(model)
    work_dir = None if options.work_dir is None else WorkDir(options.work_dir)
    tell("Reading", 0, 0)
    data, source = read_for_fit(file, options)
    test_data = None if test is None else source.read_labelled(test, data.taxonomy)
    classifier = TaxonomyClassifier(
        data.taxonomy,
        flattening=options.method,
        C=options.regularisation,
        encoder=_encoder(options, source),
        device=options.device,  # type: ignore[arg-type]
        random_state=options.seed,
        work_dir=options.work_dir,
    )
    tell("Preparing", 0, 0)
    started = time.perf_counter()
    with spread_over(dask=options.dask, n_workers=options.workers), _saying_how_to_resume(work_dir):
        classifier.fit(data.X, data.y, progress=progress)
    train_seconds = time.perf_counter() - started
    save_model(classifier, model, notes={"source": source.to_notes(), "rows": data.n_rows})
    score = classifier.validation_score_
    return FitReport(
        model=model,
        method=options.method,
        n_rows=data.n_rows,
        n_features=int(classifier.n_features_in_),
        n_leaves=data.taxonomy.n_leaves,
        n_nodes=data.taxonomy.n_nodes,
        n_nodes_kept=classifier.taxonomy_.n_nodes,
        removed=classifier.removed_,
        C=float(classifier.C_),
        psi=classifier.psi_,
        validation_macro_f1=None if math.isnan(score) else float(score),
        train_seconds=train_seconds,
        notes=data.notes + _work_dir_notes(work_dir),
        test=None if test_data is None else score_rows(classifier, test_data),
    )


def check_model_folder(folder: str) -> None:
    """Raise a ModelError where a model could not be saved here later.

    Examples
    --------
    >>> check_model_folder("a-folder-that-does-not-exist-yet")
    """
    place = Path(folder)
    if not folder.strip():
        raise ModelError("the model needs a folder; name one")
    if not (place.exists() or place.is_symlink()):
        check_can_be_made(place)
        return
    if place.is_dir() and not any(place.iterdir()):
        return
    try:
        read_manifest(place)
    except TaxofitError:
        raise ModelError(
            f"{folder} exists and is not a taxofit model; choose another folder"
        ) from None


def check_can_be_made(folder: Path) -> None:
    """Raise a DataError where a folder of this name cannot be made."""
    above = next(parent for parent in folder.absolute().parents if parent.exists())
    if not above.is_dir():
        raise DataError(f"{folder} cannot be made: {above} is a file")
    if not os.access(above, os.W_OK):
        raise DataError(f"{folder} cannot be made: {above} may not be written to")


@contextmanager
def _saying_how_to_resume(work_dir: WorkDir | None) -> Iterator[None]:
    """Give Ctrl-C a message that says what is kept and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        if work_dir is None:
            hint = "nothing is kept; with --work-dir DIR a run can be stopped and go on later"
        else:
            size = work_dir.measure()
            hint = (
                f"{work_dir.folder} keeps what is solved ({size}); run the same command again to "
                f"go on"
            )
        raise Interrupted(f"interrupted; {hint}") from None


def _work_dir_notes(work_dir: WorkDir | None) -> tuple[str, ...]:
    if work_dir is None:
        return ()
    return (f"{work_dir.folder} holds {work_dir.measure()}; remove it when no run needs it",)


def _encoder(options: FitOptions, source: Source) -> str | CountEncoder | ColumnScaler | None:
    if source.text:
        return options.features
    if source.format == "svmlight" and not options.raw:
        return CountEncoder(sublinear_tf=True)
    return ColumnScaler() if options.scale == "max" else None


def _say_nothing(stage: str, done: int, total: int) -> None:
    """Tell nobody."""
