"""Flat, the taxonomy as it was, and as repaired: what each is worth on the same rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit.classifier import TaxonomyClassifier
from taxofit.flattening import Judge
from taxofit.predict.search import GREEDY, find_in_scores, log_sigmoid
from taxofit.workflow.scoring import Predictions, System, difference, predictions_on

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from taxofit.datasets import Dataset
    from taxofit.progress import StageProgress
    from taxofit.workflow.scoring import Difference

__all__ = ["ThreeWays", "ways_on_test_rows", "ways_on_validation_rows"]

FLAT, ORIGINAL, REPAIRED, BEAM = "flat", "original", "repaired", "beam search"


@dataclass(frozen=True)
class ThreeWays:
    """The ways side by side, all at the C that was chosen for the last of them.

    Attributes
    ----------
    rows : {"validation", "test"}
        Validation rows also chose C and the nodes to remove, so they speak a little too well of the
        repaired taxonomy; test rows are new to all.
    n_rows : int
    C : float
    ways : tuple of System
        ``flat``, ``original``, ``repaired``, walked greedily, and ``beam search`` where the model
        has one; a way that is the same as an earlier one is left out.
    differences : dict of Difference
        The last way against each of the others.
    """

    rows: str
    n_rows: int
    C: float
    ways: tuple[System, ...]
    differences: dict[str, Difference]

    def to_json(self) -> dict[str, Any]:
        """Return the table as JSON values; scores are fractions."""
        return {
            "rows": self.rows,
            "n_rows": self.n_rows,
            "C": self.C,
            "ways": [{"name": w.name, "nodes": w.n_nodes, **w.scores} for w in self.ways],
            "differences": {
                f"{self.ways[-1].name} against {name}": found.to_json()
                for name, found in self.differences.items()
            },
        }


def ways_on_validation_rows(classifier: TaxonomyClassifier) -> ThreeWays | None:
    """Return the ways on the rows held out by fit, all walks over one matrix of scores.

    None where no rows were held out.
    """
    validation, taxonomy = classifier.validation_, classifier.original_taxonomy_
    if validation is None:
        return None
    judge = Judge(taxonomy, validation.evidence, validation.classes)
    labels = np.empty(taxonomy.n_nodes, dtype=object)
    labels[:] = taxonomy.labels
    true = labels[validation.evidence.row_leaf].tolist()
    classes = labels[validation.classes].tolist()
    walked = {
        name: (
            int(taxonomy.n_nodes - removed.sum()),
            Predictions(true, labels[judge.predict(removed)].tolist(), classes, taxonomy),
        )
        for name, removed in _removals(classifier).items()
    }
    if classifier.search_.kind == "beam":
        removed = _removed(classifier)
        flattened, kept = taxonomy.without(removed)
        logs = log_sigmoid(validation.evidence.scores)
        found = find_in_scores(logs, flattened, classifier.search_, column=kept)[0][:, 0]
        predicted = Predictions(true, labels[kept[found]].tolist(), classes, taxonomy)
        walked[BEAM] = int(flattened.n_nodes), predicted
    return _side_by_side("validation", float(classifier.C_), walked)


def ways_on_test_rows(
    classifier: TaxonomyClassifier,
    data: Dataset,
    test: Dataset,
    *,
    progress: StageProgress | None = None,
) -> ThreeWays:
    """Return the ways on new rows; those the classifier does not hold are fitted at its C.

    Parameters
    ----------
    classifier : TaxonomyClassifier
        Fitted on ``data``.
    data, test : Dataset
    progress : callable, optional
    """
    encoder = classifier.encoder_
    X, test_X = (rows.X if encoder is None else encoder.transform(rows.X) for rows in (data, test))
    walked: dict[str, tuple[int, Predictions]] = {}
    for name, removed in _removals(classifier).items():
        if np.array_equal(removed, _removed(classifier)):
            fitted, rows = classifier.with_search(GREEDY), test
        else:
            fitted = TaxonomyClassifier(
                data.taxonomy,
                flattening="lr" if name == FLAT else "td-lr",
                C=classifier.C_,
                n_jobs=classifier.n_jobs,
                device=classifier.device,
            )
            fitted.fit(X, data.y, progress=_titled(progress, name))
            rows = replace(test, X=test_X)
        walked[name] = int(fitted.taxonomy_.n_nodes), predictions_on(fitted, rows)
    if classifier.search_.kind == "beam":
        walked[BEAM] = int(classifier.taxonomy_.n_nodes), predictions_on(classifier, test)
    return _side_by_side("test", float(classifier.C_), walked)


def _removed(classifier: TaxonomyClassifier) -> NDArray[np.bool_]:
    removed = np.zeros(classifier.original_taxonomy_.n_nodes, dtype=bool)
    removed[classifier.original_taxonomy_.nodes_of(classifier.removed_)] = True
    return removed


def _removals(classifier: TaxonomyClassifier) -> dict[str, NDArray[np.bool_]]:
    """Return what each way leaves out of the taxonomy; ways that come to the same once."""
    taxonomy = classifier.original_taxonomy_
    nothing = np.zeros(taxonomy.n_nodes, dtype=bool)
    ways = {FLAT: taxonomy.is_internal, ORIGINAL: nothing, REPAIRED: _removed(classifier)}
    distinct: dict[str, NDArray[np.bool_]] = {}
    for name, removed in ways.items():
        if not any(np.array_equal(removed, other) for other in distinct.values()):
            distinct[name] = removed
    return distinct


def _side_by_side(rows: str, C: float, walked: dict[str, tuple[int, Predictions]]) -> ThreeWays:
    ways = tuple(System(name, n, predictions.scores) for name, (n, predictions) in walked.items())
    *others, last = walked
    differences = {name: difference(walked[last][1], walked[name][1]) for name in others}
    return ThreeWays(rows, len(walked[last][1].true), C, ways, differences)


def _titled(progress: StageProgress | None, name: str) -> StageProgress | None:
    if progress is None:
        return None
    return lambda _, done, total: progress(f"Fitting {name} for the table", done, total)
