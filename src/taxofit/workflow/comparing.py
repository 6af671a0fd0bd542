"""Two models, or several taxonomies, on the same rows, and whether they differ beyond chance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from taxofit.classifier import TaxonomyClassifier
from taxofit.datasets import BadRows, read_hierarchy
from taxofit.errors import DataError, ModelError
from taxofit.labels import label_array
from taxofit.model_store import load_model, read_manifest
from taxofit.taxonomy import Taxonomy
from taxofit.workflow.scoring import Predictions, System, difference, predictions_on
from taxofit.workflow.sources import Source

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

    from taxofit.datasets import Dataset
    from taxofit.progress import StageProgress
    from taxofit.workflow.scoring import Difference

__all__ = ["ComparisonReport", "compare_models", "compare_taxonomies"]

TEST_SHARE = 0.25  # of the rows, where training and test file are one
OWN_TAXONOMIES = ("original", "repaired", "flat")


@dataclass(frozen=True)
class ComparisonReport:
    """Systems on the same rows.

    Attributes
    ----------
    title : str
    n_rows : int
    systems : tuple of System
    differences : tuple of Difference
        The second, third … against the first.
    notes : tuple of str
    """

    title: str
    n_rows: int
    systems: tuple[System, ...]
    differences: tuple[Difference, ...]
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values; scores are fractions."""
        return {
            "rows": self.n_rows,
            "systems": [
                {"name": system.name, "nodes": system.n_nodes, **system.scores}
                for system in self.systems
            ],
            "differences": [
                {
                    "first": system.name,
                    "second": self.systems[0].name,
                    **found.to_json(),
                }
                for system, found in zip(self.systems[1:], self.differences, strict=True)
            ],
            "notes": list(self.notes),
        }


def compare_models(
    model: str,
    against: str,
    file: str,
    *,
    strict: bool = False,
    progress: StageProgress | None = None,
) -> ComparisonReport:
    """Return how two models fare on the labelled rows of a file.

    Each reads the file with its own columns; both must find the same rows. Measures on paths are
    each in the model's own taxonomy.
    """
    found, notes, n_nodes = [], [], []
    for folder in (model, against):
        if progress is not None:
            progress(f"Predicting with {folder}", 0, 0)
        source = Source.from_notes(read_manifest(folder).get("notes", {}), folder)
        classifier = load_model(folder)
        bad_rows = BadRows(strict=strict, empty_text=False)
        data = source.read_labelled(file, classifier.original_taxonomy_, bad_rows)
        notes += [f"{folder}: {note}" for note in (*data.notes, *map(str, data.left_out))]
        n_nodes.append(classifier.taxonomy_.n_nodes)
        found.append(predictions_on(classifier, data))
    title = f"{len(found[0].true):,} rows of {Path(file).name}"
    return _report(title, (model, against), n_nodes, found, notes)


def compare_taxonomies(
    model: str,
    file: str,
    taxonomies: Sequence[str],
    *,
    train: str | None = None,
    strict: bool = False,
    progress: StageProgress | None = None,
) -> ComparisonReport:
    """Return how taxonomies over the same leaves fare, all else being equal.

    For each one a classifier is fitted to the same training rows, with the model's features and C
    and nothing removed, and tested on the same rows. Measures on paths are in the model's original
    taxonomy for all of them.

    Parameters
    ----------
    model : str
        Tells how files are read, which features are used, and C.
    file : str
        Labelled rows to test on. Where this is the training file, a quarter of its rows is tested
        on and the rest trained on.
    taxonomies : sequence of str
        ``"original"`` and ``"repaired"`` are the model's own, ``"flat"`` is none at all, anything
        else is a hierarchy file. A single one is compared with ``"original"``.
    train : str, optional
        Labelled rows to train on; by default the file that the model was trained on.
    strict : bool
    progress : callable, optional
    """
    names = tuple(taxonomies) if len(taxonomies) > 1 else ("original", *taxonomies)
    notes = read_manifest(model).get("notes", {})
    source, classifier = Source.from_notes(notes, model), load_model(model)
    train = train or notes.get("file")
    if train is None or not Path(train).exists():
        raise ModelError(
            f"{model}: its training rows are not at hand; name their file with --train"
        )
    original = classifier.original_taxonomy_
    shapes = [_taxonomy_called(name, classifier) for name in names]
    if progress is not None:
        progress("Reading", 0, 0)
    training, test, note = _rows(source, original, train, file, strict=strict)
    encoder = None if classifier.encoder_ is None else clone(classifier.encoder_)
    X = training.X if encoder is None else encoder.fit_transform(training.X)
    test_X = test.X if encoder is None else encoder.transform(test.X)
    found = []
    for name, taxonomy in zip(names, shapes, strict=True):
        fitted = TaxonomyClassifier(
            taxonomy, flattening="td-lr", C=classifier.C_, n_jobs=classifier.n_jobs
        )
        meant = _labels_in(training.y, original, taxonomy, name)
        fitted.fit(X, meant, progress=_titled(progress, name))
        back = dict(zip(meant.tolist(), training.y.tolist(), strict=True))
        predicted = [back[label] for label in fitted.predict(test_X).tolist()]
        classes = list(dict.fromkeys(training.y.tolist()))
        if test.taxonomy is not original:
            predicted = [original.path_of(label) for label in predicted]
            classes = [original.path_of(label) for label in classes]
        true = [test.taxonomy.labels[node] for node in test.taxonomy.nodes_of(test.y)]
        found.append(Predictions(true, predicted, classes, test.taxonomy))
    title = f"{test.n_rows:,} rows of {Path(file).name}, trained on {training.n_rows:,}"
    n_nodes = [taxonomy.n_nodes for taxonomy in shapes]
    said = (*note, *test.notes, *map(str, test.left_out))
    return _report(title, names, n_nodes, found, said)


def _report(
    title: str,
    names: Sequence[str],
    n_nodes: Sequence[int],
    found: Sequence[Predictions],
    notes: Sequence[str],
) -> ComparisonReport:
    systems = tuple(
        System(name, n, predictions.scores)
        for name, n, predictions in zip(names, n_nodes, found, strict=True)
    )
    differences = tuple(difference(other, found[0]) for other in found[1:])
    return ComparisonReport(title, len(found[0].true), systems, differences, tuple(notes))


def _taxonomy_called(name: str, classifier: TaxonomyClassifier) -> Taxonomy:
    original: Taxonomy = classifier.original_taxonomy_
    if name == "original":
        return original
    if name == "repaired":
        repaired: Taxonomy = classifier.taxonomy_
        return repaired
    if name == "flat":
        return Taxonomy.from_labels(original.leaves)
    if not Path(name).is_file():
        known = ", ".join(OWN_TAXONOMIES)
        raise DataError(f"taxonomy must be one of {known} or a file, but there is no {name!r}")
    return read_hierarchy(name)


def _rows(
    source: Source, taxonomy: Taxonomy, train: str, file: str, *, strict: bool
) -> tuple[Dataset, Dataset, tuple[str, ...]]:
    """Return training and test rows; parts of one file where both are the same."""
    training = source.read_labelled(train, taxonomy, BadRows(strict=strict))
    if not Path(file).exists() or not Path(train).samefile(file):
        bad_rows = BadRows(strict=strict, empty_text=False)
        return training, source.read_labelled(file, taxonomy, bad_rows), ()
    order = np.random.default_rng(0).permutation(training.n_rows)
    n_test = round(training.n_rows * TEST_SHARE)
    note = f"{train} is both: a random quarter is tested on, the rest trained on"
    test = training.subset(np.sort(order[:n_test]))
    return replace(training.subset(np.sort(order[n_test:])), notes=()), test, (note,)


def _labels_in(y: NDArray[Any], original: Taxonomy, taxonomy: Taxonomy, name: str) -> NDArray[Any]:
    """Return the rows' labels as those of another taxonomy: the same label, or the same name."""
    leaf_names: dict[Hashable, Hashable | None] = {}
    for leaf in taxonomy.leaf_order.tolist():
        known = taxonomy.names[leaf] in leaf_names
        leaf_names[taxonomy.names[leaf]] = None if known else taxonomy.labels[leaf]
    leaves = set(taxonomy.leaves)
    meant: dict[Hashable, Hashable] = {}
    for label in dict.fromkeys(y.tolist()):
        last = original.names[original.node_of(label)]
        found = label if label in leaves else leaf_names.get(last)
        if found is None and isinstance(label, str) and label.lstrip("-").isdecimal():
            found = int(label) if int(label) in leaves else None
        if found is None:
            raise DataError(f"{name}: {label!r} is not one of its leaves, but rows have it")
        meant[label] = found
    return label_array([meant[label] for label in y.tolist()])


def _titled(progress: StageProgress | None, name: str) -> StageProgress | None:
    if progress is None:
        return None
    return lambda _, done, total: progress(f"Fitting {name}", done, total)
