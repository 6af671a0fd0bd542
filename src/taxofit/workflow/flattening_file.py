"""From a labelled file to its repaired taxonomy in a file, and why nodes went."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taxofit.errors import DataError
from taxofit.taxonomy import PATH_SEPARATOR
from taxofit.whole_file import check_target, whole_file
from taxofit.workflow.options import TAXONOMY_FORMS
from taxofit.workflow.output_formats import spreadsheet_safe
from taxofit.workflow.training import check_model_folder, save_trained, train

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taxofit.progress import StageProgress
    from taxofit.taxonomy import Taxonomy
    from taxofit.workflow.options import FitOptions
    from taxofit.workflow.removal_reasons import Removal
    from taxofit.workflow.training import FitReport

__all__ = ["FlattenReport", "flatten_file", "form_of", "taxonomy_text"]

FORM_OF_SUFFIX = {".json": "json", ".csv": "paths", ".tsv": "edges", ".txt": "edges"}
PATHS_HEADING = ("label", "path", "original_path")


@dataclass(frozen=True)
class FlattenReport:
    """What was found out on the way, and where the repaired taxonomy is."""

    fit: FitReport
    out: str
    form: str

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {**self.fit.to_json(), "out": self.out, "form": self.form}


def flatten_file(
    file: str,
    out: str,
    options: FitOptions,
    *,
    form: str | None = None,
    model: str | None = None,
    progress: StageProgress | None = None,
) -> FlattenReport:
    """Repair the taxonomy of a file's labels and write it.

    Parameters
    ----------
    file : str
        As in `fit_file`.
    out : str
        The file to write.
    options : FitOptions
    form : {"paths", "edges", "json"}, optional
        By the ending of ``out`` by default; see `taxonomy_text`.
    model : str, optional
        Save the model too, in this folder.
    progress : callable, optional
    """
    options.check()
    form = form_of(out, form)
    _check_out(out, file)
    if model is not None:
        check_model_folder(model)
    trained = train(file, options, progress=progress)
    classifier = trained.classifier
    text = taxonomy_text(
        classifier.taxonomy_, classifier.original_taxonomy_, trained.report.removed, form
    )
    if model is not None:
        save_trained(trained, model, options)
    with whole_file(out) as stream:
        stream.write(text.encode())
    return FlattenReport(trained.report, out, form)


def form_of(out: str, form: str | None = None) -> str:
    """Return the form to write: the one asked for, or that of the file's ending.

    Examples
    --------
    >>> form_of("shop.json"), form_of("shop.tsv"), form_of("shop.csv"), form_of("shop.csv", "edges")
    ('json', 'edges', 'paths', 'edges')
    """
    if form is not None:
        if form not in TAXONOMY_FORMS:
            raise DataError(f"as must be one of {', '.join(TAXONOMY_FORMS)}, but is {form!r}")
        return form
    suffix = Path(out).suffix.lower()
    if suffix not in FORM_OF_SUFFIX:
        known = ", ".join(FORM_OF_SUFFIX)
        raise DataError(f"{out}: end the name with one of {known}, or say what to write with --as")
    return FORM_OF_SUFFIX[suffix]


def taxonomy_text(
    repaired: Taxonomy, original: Taxonomy, removals: Sequence[Removal], form: str
) -> str:
    """Return a repaired taxonomy as text.

    ``"edges"`` has a parent and a child on each line, separated by a tab, as ``--hierarchy`` reads
    them; ``"paths"`` is CSV with the label of each leaf, its path now and its path before;
    ``"json"`` has all nodes, and the removed ones with reasons.

    Examples
    --------
    >>> from taxofit import Taxonomy
    >>> original = Taxonomy.from_paths([("Home", "Gifts", "Mugs"), ("Home", "Pans")])
    >>> print(taxonomy_text(original.flatten(["Gifts"]), original, (), "paths"), end="")
    label,path,original_path
    Mugs,Home > Mugs,Home > Gifts > Mugs
    Pans,Home > Pans,Home > Pans
    """
    if form == "json":
        nodes = [
            {
                "label": label,
                "name": name,
                "parent": None if parent < 0 else repaired.labels[parent],
            }
            for label, name, parent in zip(
                repaired.labels, repaired.names, repaired.parent.tolist(), strict=True
            )
        ]
        content = {"nodes": nodes, "removed": [removal.to_json() for removal in removals]}
        return json.dumps(content, ensure_ascii=False, indent=2) + "\n"
    stream = io.StringIO()
    if form == "edges":
        writer = csv.writer(stream, delimiter="\t", lineterminator="\n")
        quoting = csv.writer(stream, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_ALL)
        writer.writerow(("parent", "child"))
        for parent, child in repaired.to_edges():
            is_comment = str(parent).startswith("#")  # to those who read the line without quotes
            (quoting if is_comment else writer).writerow((parent, child))
    else:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(PATHS_HEADING)
        for label in repaired.leaves:
            paths = (PATH_SEPARATOR.join(map(str, t.path_of(label))) for t in (repaired, original))
            writer.writerow([spreadsheet_safe(str(cell)) for cell in (label, *paths)])
    return stream.getvalue()


def _check_out(out: str, file: str) -> None:
    check_target(out)
    target = Path(out)
    if target.exists() and Path(file).exists() and target.samefile(file):
        raise DataError(f"{out} is the file to read; write the taxonomy to another one")
