"""From a fitted classifier to a study: every number is taken from the one matrix of scores."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit._version import __version__
from taxofit.errors import ModelError
from taxofit.experiment.outcomes import SIZE_BINS, tested_against
from taxofit.flattening import PSI_GRID, Judge, global_threshold
from taxofit.methods import FLATTENINGS, flattening_named
from taxofit.metrics import (
    count_classes,
    evaluate_nodes,
    hierarchical_scores_nodes,
    level_errors_nodes,
)
from taxofit.predict.search import find_in_scores, log_sigmoid
from taxofit.study.confusion import confused_leaves, confused_nodes, error_kinds, n_found
from taxofit.study.examples import choose_examples
from taxofit.study.words import deciding_features

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from taxofit.classifier import TaxonomyClassifier
    from taxofit.taxonomy import Taxonomy

    IntArray = NDArray[np.int32]
    BoolArray = NDArray[np.bool_]

__all__ = ["study_fit"]

STUDY_VERSION = 1
FLAT, ORIGINAL = "lr", "td-lr"
BEAM = "+beam"  # after the name of a flattening whose model is searched, not walked down
SHOWN_VERSIONS = ("numpy", "scipy", "scikit-learn", "numba")


def study_fit(
    classifier: TaxonomyClassifier,
    X: Any = None,
    *,
    name: str = "",
    how: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return what the validation rows of a fit say about every node, as JSON values.

    Flat, original and repaired taxonomy are compared at the C that was chosen, by walking the
    scores that are already there; so are 31 thresholds of Global-INF. Keys that ``results.json``
    has too (``threshold_curve``, ``fan_out``, ``level_errors``, ``by_class_size``,
    ``class_sizes``) have its shape, with validation rows in place of test rows.

    Parameters
    ----------
    classifier : TaxonomyClassifier
        As :meth:`fit` left it; a loaded one no longer has its validation rows.
    X : sequence of texts or array, optional
        The rows given to ``fit``, from which examples are quoted.
    name : str
        Of the data.
    how : mapping of str, optional
        Commands that would do it again, by title.

    Examples
    --------
    >>> from taxofit import TaxonomyClassifier
    >>> from taxofit.datasets import make_shop_catalogue
    >>> shop = make_shop_catalogue(500)
    >>> model = TaxonomyClassifier(shop.taxonomy, C=10.0, encoder="words").fit(shop.texts, shop.y)
    >>> study = study_fit(model, shop.texts, name="shop")
    >>> [line["method"] for line in study["results"]], len(study["candidates"]["psi"])
    (['lr', 'td-lr', 'global-inf'], 31)
    """
    if classifier.validation_ is None:
        raise ModelError(
            "there is nothing to study: no rows were held out; fit with C='auto' or with a "
            "flattening that looks at validation rows, such as 'global-inf'"
        )
    walks = _Walks(classifier)
    taxonomy, true = walks.taxonomy, walks.true
    before, after = walks.predicted(ORIGINAL), walks.predicted(walks.method)
    candidates = _candidates(walks)
    return {
        "kind": "study",
        "version": STUDY_VERSION,
        "dataset": name,
        "method": walks.method,
        "titles": {walks.method: walks.title, FLAT: "flat", ORIGINAL: "original"},
        "C": float(classifier.C_),
        "psi": _psi(classifier.psi_),
        "data": {
            "n_rows": int(walks.n_rows[0]),
            "n_validation": int(true.size),
            "n_features": int(classifier.n_features_in_),
            "n_nodes": taxonomy.n_nodes,
            "n_leaves": taxonomy.n_leaves,
            "n_internal": int(taxonomy.is_internal.sum()),
            "depth": int(taxonomy.depth),
        },
        "nodes": _nodes(walks, before, after),
        "candidates": candidates,
        "results": [_result(walks, method) for method in walks.removed],
        "against": {
            rival: tested_against(true, after, walks.predicted(rival))
            for rival in (ORIGINAL, FLAT)
            if rival != walks.method
        },
        "threshold_curve": {
            "psi": candidates["psi"],
            "runs": [],
            "macro_f1": candidates["macro_f1"],
            "flat_macro_f1": walks.scores(walks.predicted(FLAT))["macro_f1"],
        },
        "level_errors": {m: _levels(walks, m) for m in walks.removed},
        "fan_out": _fan_out(walks),
        "by_class_size": _by_class_size(walks),
        "class_sizes": _class_sizes(walks),
        "confusion": {
            "before": confused_nodes(true, before, taxonomy),
            "after": confused_nodes(true, after, taxonomy),
            "leaves": confused_leaves(true, before, after),
            "kinds": {m: error_kinds(true, walks.predicted(m), taxonomy) for m in walks.removed},
        },
        "features": deciding_features(classifier),
        "examples": choose_examples(true, before, after, classifier.validation_.rows, X),
        "settings": _settings(classifier),
        "versions": {
            "taxofit": __version__,
            "python": platform.python_version(),
            **{package: version(package) for package in SHOWN_VERSIONS},
        },
        "how": dict(how or {}),
    }


class _Walks:
    """The leaves that validation rows reach under each method, walked once."""

    def __init__(self, classifier: TaxonomyClassifier) -> None:
        validation = classifier.validation_
        assert validation is not None  # noqa: S101  (checked by the caller, told to mypy)
        self.taxonomy: Taxonomy = classifier.original_taxonomy_
        self.evidence, self.classes = validation.evidence, validation.classes
        self.true: IntArray = validation.evidence.row_leaf
        self.n_rows = _rows_of_nodes(classifier)
        fitted = np.zeros(self.taxonomy.n_nodes, dtype=bool)
        fitted[[self.taxonomy.node_of(label) for label in classifier.removed_]] = True
        self.search = classifier.search_
        self.method = _method_name(classifier.flattening)
        if self.search.kind == "beam":
            self.method += BEAM
        self.removed: dict[str, BoolArray] = {
            FLAT: self.taxonomy.is_internal,
            ORIGINAL: np.zeros(self.taxonomy.n_nodes, dtype=bool),
            self.method: fitted,
        }
        self._judge = Judge(self.taxonomy, self.evidence, self.classes)
        self._known: dict[bytes, IntArray] = {}
        self._found: dict[str, IntArray] = {}

    def predicted(self, method: str) -> IntArray:
        """Return the leaf of every validation row; all but the fitted model walk greedily."""
        removed = self.removed[method]
        if not method.endswith(BEAM):
            return self.without(removed)
        if method not in self._found:
            flattened, kept = self.taxonomy.without(removed)
            logs = log_sigmoid(self.evidence.scores[:, kept])
            self._found[method] = kept[find_in_scores(logs, flattened, self.search)[0][:, 0]]
        return self._found[method]

    def without(self, removed: BoolArray) -> IntArray:
        """Return the leaf of every validation row where these nodes are removed."""
        key = np.packbits(removed).tobytes()
        if key not in self._known:
            self._known[key] = self._judge.predict(removed)
        return self._known[key]

    def scores(self, predicted: IntArray) -> dict[str, float]:
        return evaluate_nodes(self.true, predicted, self.taxonomy, self.classes)

    @property
    def title(self) -> str:
        """What people call the fitted model, beside flat and original."""
        if not self.method.endswith(BEAM):
            return "repaired"
        return "repaired, beam search" if self.removed[self.method].any() else "beam search"


def _method_name(flattening: Any) -> str:
    """Return the name of a strategy, whatever its parameters."""
    strategy = flattening_named(flattening)
    for name, known in FLATTENINGS.items():
        if strategy == known:
            return name
    kinds = {type(known): name for name, known in FLATTENINGS.items()}
    return kinds.get(type(strategy), type(strategy).__name__)


def _rows_of_nodes(classifier: TaxonomyClassifier) -> NDArray[np.int64]:
    """Training rows under every node, the root's first; the table has none for the root."""
    rows = classifier.evidence_["rows"].to_numpy(dtype=np.int64)
    tops = classifier.original_taxonomy_.parent[1:] == 0
    return np.concatenate([[rows[tops].sum()], rows])


def _nodes(walks: _Walks, before: IntArray, after: IntArray) -> dict[str, Any]:
    """Return columns over nodes; the page works out levels, children and paths itself."""
    taxonomy, objective = walks.taxonomy, walks.evidence.objective
    measured = np.isfinite(objective)
    percentile = np.full(taxonomy.n_nodes, -1)
    order = np.sort(objective[measured])
    percentile[measured] = np.floor(
        100 * np.searchsorted(order, objective[measured]) / max(order.size, 1)
    )
    n_validation = taxonomy.totals(np.bincount(walks.true, minlength=taxonomy.n_nodes))
    return {
        "parent": taxonomy.parent.tolist(),
        "name": [str(name) for name in taxonomy.names],
        "has_virtual_root": taxonomy.has_virtual_root,
        "rows": walks.n_rows.tolist(),
        "validation_rows": n_validation.tolist(),
        "objective": [value if np.isfinite(value) else None for value in objective.tolist()],
        "percentile": [value if value >= 0 else None for value in percentile.tolist()],
        "removed": np.flatnonzero(walks.removed[walks.method]).tolist(),
        "found_before": n_found(walks.true, before, taxonomy).tolist(),
        "found_after": n_found(walks.true, after, taxonomy).tolist(),
    }


def _candidates(walks: _Walks) -> dict[str, Any]:
    """Return thresholds and scores over ψ; a node goes where its objective is above the one."""
    objective = walks.evidence.objective
    thresholds = [global_threshold(objective, psi) for psi in PSI_GRID]
    masks = [walks.taxonomy.is_internal & (objective > threshold) for threshold in thresholds]
    scores = [walks.scores(walks.without(mask)) for mask in masks]
    return {
        "psi": list(PSI_GRID),
        "threshold": thresholds,
        "mean": float(np.nanmean(objective)),
        "deviation": float(np.nanstd(objective)),
        "n_removed": [int(mask.sum()) for mask in masks],
        **{name: [score[name] for score in scores] for name in scores[0]},
    }


def _result(walks: _Walks, method: str) -> dict[str, Any]:
    removed = walks.removed[method]
    return {
        "method": method,
        "n_nodes": int((~removed).sum()),
        "n_removed": int(removed.sum()),
        **walks.scores(walks.predicted(method)),
    }


def _levels(walks: _Walks, method: str) -> list[dict[str, Any]]:
    levels = level_errors_nodes(walks.true, walks.predicted(method), walks.taxonomy)
    return [
        {
            "level": level.level,
            "error": _one(level.error),
            "n_misclassified": _one(level.n_wrong_so_far),
        }
        for level in levels
    ]


def _fan_out(walks: _Walks) -> dict[str, Any]:
    taxonomy = walks.taxonomy
    repaired = taxonomy.without(walks.removed[walks.method])[0]
    before, after = (
        np.bincount(each.level, minlength=taxonomy.depth + 1)[1:].tolist()
        for each in (taxonomy, repaired)
    )
    return {"levels": list(range(taxonomy.depth)), "before": before, "after": after}


def _by_class_size(walks: _Walks) -> dict[str, Any]:
    true, sizes = walks.true, walks.n_rows[walks.classes]
    found: dict[str, Any] = {}
    for name, (low, high) in {**SIZE_BINS, "all": (0, np.inf)}.items():
        members = walks.classes[(sizes >= low) & (sizes <= high)]
        tested = np.isin(true, members)
        if not tested.any():
            continue
        found[name] = {"n_classes": int(members.size), "n_test": int(tested.sum())}
        for method in walks.removed:
            predicted = walks.predicted(method)
            counts = count_classes(true, predicted, walks.taxonomy.is_leaf, walks.classes)
            here = hierarchical_scores_nodes(true[tested], predicted[tested], walks.taxonomy)
            found[name][method] = {
                "macro_f1": _one(float(counts.f1[np.isin(counts.classes, members)].mean())),
                "hierarchical_f1": _one(here[2]),
            }
    return found


def _class_sizes(walks: _Walks) -> dict[str, Any]:
    value, count = np.unique(walks.n_rows[walks.classes], return_counts=True)
    return {"n_rows": value.tolist(), "n_classes": count.tolist()}


def _settings(classifier: TaxonomyClassifier) -> dict[str, str]:
    shown = classifier.get_params(deep=False)
    del shown["taxonomy"]
    return {name: str(value) for name, value in shown.items()}


def _psi(psi: Any) -> float | list[float | None] | None:
    if isinstance(psi, tuple):
        return [float(value) if np.isfinite(value) else None for value in psi]
    return psi


def _one(value: float) -> dict[str, float]:
    """Return mean and deviation of a single run, as results.json would have them."""
    return {"mean": value, "std": 0.0}
