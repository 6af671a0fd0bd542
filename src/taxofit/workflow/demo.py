"""The demonstration: a made-up shop, three ways to classify its products, and what repair found."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit.classifier import TaxonomyClassifier
from taxofit.datasets import make_shop_catalogue
from taxofit.errors import DataError
from taxofit.model_store import save_model
from taxofit.workflow.evaluating import score_rows
from taxofit.workflow.options import check_seed
from taxofit.workflow.reporting import report_folder, study_files
from taxofit.workflow.sources import Source
from taxofit.workflow.training import check_can_be_made

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from taxofit.progress import StageProgress

__all__ = ["DemoReport", "MethodResult", "run_demo"]

METHODS = {"lr": "flat", "td-lr": "top-down", "global-inf": "repaired"}
SHOWN_METHOD = "global-inf"
TEST_SHARE = 0.25
CATALOGUE, TEST_ROWS, MODEL, REPORT = "catalogue.csv", "test.csv", "model", "report.html"
FEATURES = "words"


@dataclass(frozen=True)
class MethodResult:
    """One line of the comparison: a method, its test scores and the size of its taxonomy."""

    method: str
    title: str
    scores: dict[str, float]
    n_nodes: int
    C: float
    psi: Any


@dataclass(frozen=True)
class DemoReport:
    """What the demonstration found.

    Attributes
    ----------
    n_train, n_test : int
    results : tuple of MethodResult
        Flat, top-down, and repaired.
    removed : tuple
        Nodes that repair removed.
    planted, found : tuple
        Categories that were made to group unlike things, and those of them that were removed.
    catalogue, test, model : str
        What was written.
    report : str or None
        The page; None where plotly is missing.
    """

    n_train: int
    n_test: int
    results: tuple[MethodResult, ...]
    removed: tuple[Hashable, ...]
    planted: tuple[Hashable, ...]
    found: tuple[Hashable, ...]
    catalogue: str
    test: str
    model: str
    report: str | None

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "train_rows": self.n_train,
            "test_rows": self.n_test,
            "results": [
                {"method": r.method, "C": r.C, "psi": r.psi, "nodes": r.n_nodes, **r.scores}
                for r in self.results
            ],
            "removed": list(self.removed),
            "planted": list(self.planted),
            "found": list(self.found),
            "catalogue": self.catalogue,
            "test": self.test,
            "model": self.model,
            "report": self.report,
        }


def run_demo(
    out: str, *, n_rows: int | None = None, seed: int = 0, progress: StageProgress | None = None
) -> DemoReport:
    """Make the shop, compare three methods on held-out rows, save the model, rows and a report.

    Parameters
    ----------
    out : str
        Folder for the catalogue, its test rows, the model of the repaired taxonomy and its report.
    n_rows : int, optional
        Products in the catalogue; as many as `make_shop_catalogue` makes by default.
    seed : int
    progress : callable, optional
        Called with (stage, done, in all).
    """
    folder = Path(out)
    check_seed(seed)
    _check_folder(folder)
    size = {} if n_rows is None else {"n_rows": n_rows}
    shop = make_shop_catalogue(**size, random_state=seed)
    data = shop.dataset
    order = np.random.default_rng(seed).permutation(data.n_rows)
    n_test = round(data.n_rows * TEST_SHARE)
    test_rows, train_rows = np.sort(order[:n_test]), np.sort(order[n_test:])
    train, test = data.subset(train_rows), data.subset(test_rows)
    results, kept = [], {}
    for method, title in METHODS.items():
        tell = _titled(progress, title)
        tell("Preparing", 0, 0)
        classifier = TaxonomyClassifier(
            data.taxonomy, flattening=method, encoder=FEATURES, random_state=seed
        )
        classifier.fit(train.X, train.y, progress=tell)
        scores = score_rows(classifier, test).scores
        n_nodes, C = classifier.taxonomy_.n_nodes, float(classifier.C_)
        results.append(MethodResult(method, title, scores, n_nodes, C, classifier.psi_))
        kept[method] = classifier
    shown = kept[SHOWN_METHOD]
    rows = shop.to_rows()
    folder.mkdir(parents=True, exist_ok=True)
    shop.to_csv(folder / CATALOGUE)
    _write_rows(folder / TEST_ROWS, [rows[row] for row in test_rows])
    source = Source(
        format="table", text=("title", "description"), label_path="category", separator=" > "
    )
    command = f"taxofit demo --seed {seed}" + ("" if n_rows is None else f" --rows {n_rows}")
    save_model(
        shown,
        folder / MODEL,
        notes={"source": source.to_notes(), "rows": train.n_rows},
        attachments=study_files(shown, train.X, name="a made-up shop", command=command),
    )
    return DemoReport(
        n_train=train.n_rows,
        n_test=test.n_rows,
        results=tuple(results),
        removed=shown.removed_,
        planted=shop.inconsistent,
        found=tuple(label for label in shop.inconsistent if label in shown.removed_),
        catalogue=str(folder / CATALOGUE),
        test=str(folder / TEST_ROWS),
        model=str(folder / MODEL),
        report=_write_page(folder),
    )


def _write_page(folder: Path) -> str | None:
    if find_spec("plotly") is None:
        return None
    return report_folder(str(folder / MODEL), str(folder / REPORT)).out


def _check_folder(folder: Path) -> None:
    """Refuse to write into somebody's folder, or over a file."""
    if not folder.exists():
        check_can_be_made(folder)
        return
    if not folder.is_dir():
        raise DataError(f"{folder} is a file; name a folder with --out")
    names = {file.name for file in folder.iterdir()}
    if names and not {CATALOGUE, TEST_ROWS, MODEL} <= names:
        raise DataError(f"{folder} holds other files; name another folder with --out")


def _write_rows(file: Path, rows: Sequence[dict[str, str]]) -> None:
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _titled(progress: StageProgress | None, title: str) -> StageProgress:
    def tell(stage: str, done: int, total: int) -> None:
        if progress is not None:
            progress(f"{title}: {stage.lower()}", done, total)

    return tell
