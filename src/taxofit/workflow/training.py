"""From a labelled file to a model in a folder."""

from __future__ import annotations

import math
import os
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taxofit.bank.work_dir import WorkDir
from taxofit.classifier import TaxonomyClassifier
from taxofit.datasets import BadRows
from taxofit.errors import DataError, Interrupted, ModelError, TaxofitError
from taxofit.model_store import read_manifest, save_model
from taxofit.workflow.estimate import check_memory, check_reading, estimate_for
from taxofit.workflow.evaluating import score_rows
from taxofit.workflow.removal_reasons import explain_removals
from taxofit.workflow.reporting import fit_command, study_files
from taxofit.workflow.sources import Source, read_for_fit
from taxofit.workflow.storing import encoder_for, read_through_store
from taxofit.workflow.three_ways import ways_on_test_rows, ways_on_validation_rows
from taxofit.workflow.workers import spread_over

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from taxofit.bank.cost import FitCost
    from taxofit.datasets import Dataset, LeftOut
    from taxofit.encoder_choice import EncoderChoice
    from taxofit.progress import StageProgress
    from taxofit.workflow.evaluating import EvaluationReport
    from taxofit.workflow.options import FitOptions
    from taxofit.workflow.removal_reasons import Removal
    from taxofit.workflow.three_ways import ThreeWays

__all__ = [
    "FitReport",
    "Trained",
    "check_can_be_made",
    "check_model_folder",
    "fit_file",
    "save_trained",
    "train",
]


@dataclass(frozen=True)
class FitReport:
    """What became of a training file.

    Attributes
    ----------
    file : str
    model : str or None
        The folder; None where the model was not kept.
    method : str
    n_rows, n_features, n_leaves : int
    n_nodes, n_nodes_kept : int
        Of the taxonomy before and after repair, the root included.
    removed : tuple of Removal
        The removed nodes with reasons, worst first.
    C : float
    psi : float, tuple of float or None
    features : EncoderChoice or None
        Where text features were chosen.
    validation_macro_f1 : float or None
        None where no rows were held out.
    validation : ThreeWays or None
        Flat, original and repaired on the rows held out.
    train_seconds : float
    notes : tuple of str
        What was guessed.
    left_out : tuple of LeftOut
        Rows that could not be used.
    test : EvaluationReport, optional
    estimate : FitCost, optional
        What training was expected to take; None for dense rows and on a GPU.
    test_ways : ThreeWays, optional
        Flat, original and repaired on the test rows.
    """

    file: str
    model: str | None
    method: str
    n_rows: int
    n_features: int
    n_leaves: int
    n_nodes: int
    n_nodes_kept: int
    removed: tuple[Removal, ...]
    C: float
    psi: float | tuple[float, ...] | None
    features: EncoderChoice | None
    validation_macro_f1: float | None
    validation: ThreeWays | None
    train_seconds: float
    notes: tuple[str, ...]
    left_out: tuple[LeftOut, ...] = ()
    test: EvaluationReport | None = None
    estimate: FitCost | None = None
    test_ways: ThreeWays | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values; scores are fractions, infinity is None."""
        levels = self.psi if isinstance(self.psi, tuple) else None
        return {
            "file": self.file,
            "model": self.model,
            "method": self.method,
            "rows": self.n_rows,
            "rows_left_out": [left_out.to_json() for left_out in self.left_out],
            "features": self.n_features,
            "feature_choice": None if self.features is None else asdict(self.features),
            "leaves": self.n_leaves,
            "nodes": self.n_nodes,
            "nodes_kept": self.n_nodes_kept,
            "removed": [removal.label for removal in self.removed],
            "reasons": [removal.to_json() for removal in self.removed],
            "C": self.C,
            "psi": self.psi
            if levels is None
            else [p if math.isfinite(p) else None for p in levels],
            "validation_macro_f1": self.validation_macro_f1,
            "validation": None if self.validation is None else self.validation.to_json(),
            "train_seconds": self.train_seconds,
            "notes": list(self.notes),
            "test": None if self.test is None else self.test.to_json(),
            "estimate": None if self.estimate is None else self.estimate.to_json(),
            "test_ways": None if self.test_ways is None else self.test_ways.to_json(),
        }


@dataclass(frozen=True, eq=False)
class Trained:
    """A classifier with what it was trained on and what is to be said of it.

    Rows from a store are encoded already: the classifier then has no encoder until it is saved with
    the one that they went through.
    """

    classifier: TaxonomyClassifier
    data: Dataset
    source: Source
    report: FitReport
    stored_encoder: Any = None


def fit_file(
    file: str,
    model: str,
    options: FitOptions,
    *,
    test: str | None = None,
    progress: StageProgress | None = None,
    announce: Callable[[FitCost], None] | None = None,
) -> FitReport:
    """Train on a file, save the model, and return what happened.

    Everything that can be wrong with the files or the folder is found before training starts.

    Parameters
    ----------
    file : str
        CSV, TSV, Parquet, svmlight or Clus ARFF; or a folder of text files in folders.
    model : str
        The folder to write; an earlier model there is replaced.
    options : FitOptions
    test : str, optional
        A labelled file of the same kind, to score the model on.
    progress : callable, optional
        Called with (stage, done, in all); in all is 0 where it is not known.
    announce : callable, optional
        Called with the estimate of what training will take, before it begins.
    """
    options.check()
    check_model_folder(model)
    trained = train(file, options, test=test, progress=progress, announce=announce)
    (progress or _say_nothing)("Saving", 0, 0)
    save_trained(trained, model, options)
    return replace(trained.report, model=model)


def train(
    file: str,
    options: FitOptions,
    *,
    test: str | None = None,
    progress: StageProgress | None = None,
    announce: Callable[[FitCost], None] | None = None,
) -> Trained:
    """Read a file and train on it; parameters as in `fit_file`."""
    tell = progress or _say_nothing
    options.check()
    work_dir = None if options.work_dir is None else WorkDir(options.work_dir)
    tell("Reading", 0, 0)
    if options.store is None:
        check_reading(file, Source.from_options(options, file))
        data, source = read_for_fit(file, options)
        encoder, fitted_encoder = encoder_for(options, source), None
    else:
        data, source, fitted_encoder = read_through_store(file, options, options.store, tell=tell)
        encoder = None  # the store's rows have been through it
    estimate = estimate_for(data, options, encoder)
    if estimate is not None:
        check_memory(file, estimate, is_stored=options.store is not None)
        if announce is not None:
            announce(estimate)
    test_data = None
    if test is not None:
        bad_rows = BadRows(strict=options.strict, empty_text=False)
        test_data = source.read_labelled(test, data.taxonomy, bad_rows)
    classifier = TaxonomyClassifier(
        data.taxonomy,
        flattening=options.method,
        C=options.regularisation,
        encoder=encoder,
        search=options.search,  # type: ignore[arg-type]
        device=options.device,  # type: ignore[arg-type]
        random_state=options.seed,
        work_dir=options.work_dir,
    )
    tell("Encoding", 0, 0)
    started = time.perf_counter()
    with spread_over(dask=options.dask, n_workers=options.workers), _saying_how_to_resume(work_dir):
        classifier.fit(data.X, data.y, progress=progress)
    train_seconds = time.perf_counter() - started
    tell("Judging", 0, 0)
    report = _report(file, options, classifier, data, train_seconds)
    report = replace(report, estimate=estimate, notes=report.notes + _work_dir_notes(work_dir))
    if test_data is not None:
        if fitted_encoder is not None:
            test_data = replace(test_data, X=fitted_encoder.transform(test_data.X))
        report = replace(
            report,
            test=score_rows(classifier, test_data),
            test_ways=ways_on_test_rows(classifier, data, test_data, progress=progress),
        )
    return Trained(classifier, data, source, report, fitted_encoder)


def save_trained(trained: Trained, model: str, options: FitOptions) -> None:
    """Write the model with notes on its source, options and validation, for reports to read."""
    report = trained.report.to_json()
    kept = ("file", "rows", "rows_left_out", "feature_choice", "reasons", "validation", "test_ways")
    notes = {"source": trained.source.to_notes(), **{name: report[name] for name in kept}}
    notes["train_seconds"] = trained.report.train_seconds
    notes["notes"] = report["notes"]
    notes["options"] = {name: value for name, value in asdict(options).items() if value is not None}
    file = trained.report.file
    study = study_files(
        trained.classifier,
        trained.data.X,
        name=Path(file).name,
        command=fit_command(file, model, options),
    )
    if trained.stored_encoder is not None:
        trained.classifier.encoder_ = trained.stored_encoder
    save_model(trained.classifier, model, notes=notes, attachments=study)


def _report(
    file: str,
    options: FitOptions,
    classifier: TaxonomyClassifier,
    data: Dataset,
    train_seconds: float,
) -> FitReport:
    score = classifier.validation_score_
    return FitReport(
        file=file,
        model=None,
        method=options.method,
        n_rows=data.n_rows,
        n_features=int(classifier.n_features_in_),
        n_leaves=data.taxonomy.n_leaves,
        n_nodes=data.taxonomy.n_nodes,
        n_nodes_kept=classifier.taxonomy_.n_nodes,
        removed=tuple(explain_removals(classifier)),
        C=float(classifier.C_),
        psi=classifier.psi_,
        features=classifier.encoder_choice_,
        validation_macro_f1=None if math.isnan(score) else float(score),
        validation=ways_on_validation_rows(classifier),
        train_seconds=train_seconds,
        notes=data.notes,
        left_out=data.left_out,
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


def _say_nothing(stage: str, done: int, total: int) -> None:
    """Tell nobody."""
