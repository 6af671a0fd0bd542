"""What ``taxofit report`` does, and what a fit leaves behind for it."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taxofit.errors import DataError
from taxofit.report import write_report
from taxofit.study import STUDY_FILE, pack_study, read_study, study_fit
from taxofit.workflow.options import FitOptions

if TYPE_CHECKING:
    from taxofit.classifier import TaxonomyClassifier

__all__ = ["WrittenReport", "fit_command", "report_folder", "study_files"]

RESULTS = "results.json"
OPTION_NAMES = {
    "label_path": "path",
    "levels": "level",
    "separator": "sep",
    "ignore_features": "ignore-feature",
}


@dataclass(frozen=True)
class WrittenReport:
    """A page that was written: of a model or of a run, where, and how large."""

    kind: str
    out: str
    n_bytes: int

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {"kind": self.kind, "report": self.out, "bytes": self.n_bytes}


def report_folder(source: str, out: str) -> WrittenReport:
    """Write the page of a model folder, or of the folder of a reproduction.

    Parameters
    ----------
    source : str
        A folder with ``results.json``, that file itself, or a model.
    out : str
        The HTML file.
    """
    results = Path(source) / RESULTS if Path(source).is_dir() else Path(source)
    if results.is_file():
        content, kind = _read_results(results), "run"
    else:
        content, kind = read_study(source), "model"
    page = write_report(content, out)
    return WrittenReport(kind, str(out), page.stat().st_size)


def _read_results(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise DataError(f"{file} is not a results file of `taxofit reproduce`: {error}") from None
    if not isinstance(content, dict) or not {"summary", "results"} <= content.keys():
        raise DataError(f"{file} is not a results file of `taxofit reproduce`")
    return content


def study_files(
    classifier: TaxonomyClassifier, X: Any, *, name: str, command: str
) -> dict[str, bytes]:
    """Return the study of a fit as a file to save with its model; none without validation rows."""
    if classifier.validation_ is None:
        return {}
    study = study_fit(classifier, X, name=name, how={"On the command line": command})
    return {STUDY_FILE: pack_study(study)}


def fit_command(file: str, model: str, options: FitOptions) -> str:
    """Return the command line that fits this model again; options at their default are left out.

    Examples
    --------
    >>> fit_command("shop.csv", "shop", FitOptions(text=("title",), label_path="category"))
    'taxofit fit shop.csv --text title --path category --model shop'
    """
    words = ["taxofit", "fit", file]
    given, default = asdict(options), asdict(FitOptions())
    for field in fields(options):
        value, name = given[field.name], OPTION_NAMES.get(field.name, field.name.replace("_", "-"))
        if value == default[field.name]:
            continue
        if isinstance(value, bool):
            words.append(f"--{name}" if value else f"--no-{name}")
            continue
        for part in value if isinstance(value, (tuple, list)) else (value,):
            words += [f"--{name}", str(part)]
    return shlex.join([*words, "--model", model])
