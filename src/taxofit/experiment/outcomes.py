"""From predictions of the test rows to everything that the paper's tables and figures show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit.experiment.protocol import BASELINES
from taxofit.flattening import PSI_GRID
from taxofit.metrics import (
    count_classes,
    evaluate_nodes,
    hierarchical_scores_nodes,
    level_errors_nodes,
    tree_error_nodes,
)
from taxofit.significance import pairwise_p_values, sign_test, wilcoxon_test

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from taxofit.experiment.problem import Problem
    from taxofit.experiment.splits import Run
    from taxofit.taxonomy import Taxonomy

    IntArray = NDArray[np.int32]

__all__ = [
    "SIZE_BINS",
    "Outcome",
    "by_class_size",
    "class_sizes",
    "fan_out",
    "level_errors",
    "significance",
    "summarise",
    "threshold_curve",
]

SIZE_BINS = {"<=5": (0, 5), "6-10": (6, 10), "11-50": (11, 50), ">50": (51, np.inf)}
"""Training rows per class, both ends included; a class that has none counts among the smallest."""

SCORES = (
    "micro_f1",
    "macro_f1",
    "hierarchical_f1",
    "tree_error",
    "hierarchical_f1_modified",
    "tree_error_modified",
)


@dataclass(frozen=True, eq=False)
class Outcome:
    """One method in one run, tested.

    Attributes
    ----------
    method : str
    seed : int
    C : float
    psi : tuple of float
    removed : ndarray of bool, shape (n_nodes,)
    predicted : ndarray of int32, shape (n_test,)
        Leaves, as nodes of the original taxonomy.
    train_seconds, predict_seconds : float
    n_bits : int, optional
        Of ECOC.
    """

    method: str
    seed: int
    C: float
    psi: tuple[float, ...]
    removed: NDArray[np.bool_]
    predicted: IntArray
    train_seconds: float
    predict_seconds: float
    n_bits: int | None = None

    def to_result(self, problem: Problem) -> dict[str, Any]:
        """Return the line of results.json."""
        scores = evaluate_nodes(
            problem.test_leaf, self.predicted, problem.taxonomy, problem.classes
        )
        modified, kept = problem.taxonomy.without(self.removed)
        place = np.zeros(problem.taxonomy.n_nodes, dtype=np.int32)
        place[kept] = np.arange(kept.size)
        true, predicted = place[problem.test_leaf], place[self.predicted]
        result = {
            "method": self.method,
            "seed": self.seed,
            "C": self.C,
            "psi": _psi_for_json(self.psi),
            "n_removed": int(self.removed.sum()),
            **scores,
            "hierarchical_f1_modified": hierarchical_scores_nodes(true, predicted, modified)[2],
            "tree_error_modified": tree_error_nodes(true, predicted, modified),
            "train_seconds": self.train_seconds,
            "predict_seconds": self.predict_seconds,
        }
        return result if self.n_bits is None else {**result, "n_bits": self.n_bits}


def _psi_for_json(psi: tuple[float, ...]) -> float | list[float | None] | None:
    """Return a number, a list for Level-INF (null: the level loses nothing), or None."""
    if not psi:
        return None
    values = [value if np.isfinite(value) else None for value in psi]
    return values[0] if len(values) == 1 else values


def summarise(results: Sequence[dict[str, Any]]) -> dict[str, dict[str, dict[str, float]]]:
    """Return mean and standard deviation (dividing by n - 1) of every score of every method."""
    methods = dict.fromkeys(result["method"] for result in results)
    return {
        method: {
            score: _mean_and_std([r[score] for r in results if r["method"] == method])
            for score in (*SCORES, "train_seconds", "predict_seconds")
        }
        for method in methods
    }


def significance(
    outcomes: Sequence[Outcome], problem: Problem, summary: dict[str, Any]
) -> dict[str, Any]:
    """Return both tests of Global-INF against its rivals, and all pairs in the first run.

    The best baseline is the top-down one of highest mean macro-F1; the paper's is MTA.
    """
    first = outcomes[0].seed
    predictions = {o.method: o.predicted for o in outcomes if o.seed == first}
    pairs = pairwise_p_values(problem.test_leaf, predictions)
    found: dict[str, Any] = {
        "run": first,
        "methods": list(pairs.names),
        "sign_p_values": pairs.sign.tolist(),
        "wilcoxon_p_values": pairs.wilcoxon.tolist(),
    }
    present = [name for name in BASELINES if name in predictions]
    if "global-inf" not in predictions or not present:
        return found
    best = max(present, key=lambda name: float(summary[name]["macro_f1"]["mean"]))
    found["best_baseline"] = best
    rivals = [name for name in dict.fromkeys((best, "td-lr", "mta", "lr")) if name in predictions]
    found["global_inf_against"] = {
        rival: [_compare(seed, rival, outcomes, problem) for seed in _seeds(outcomes)]
        for rival in rivals
    }
    return found


def _compare(
    seed: int, rival: str, outcomes: Sequence[Outcome], problem: Problem
) -> dict[str, Any]:
    mine, theirs = (
        next(o.predicted for o in outcomes if o.seed == seed and o.method == name)
        for name in ("global-inf", rival)
    )
    return {"seed": seed, **tested_against(problem.test_leaf, mine, theirs)}


def tested_against(
    true: NDArray[np.int32], mine: NDArray[np.int32], theirs: NDArray[np.int32]
) -> dict[str, Any]:
    """Return both tests of one system against another, as results and studies have them.

    Examples
    --------
    >>> tested_against(np.arange(4), np.arange(4), np.zeros(4, int))["n_rows_better"]
    3
    """
    rows, classes = sign_test(true, mine, theirs), wilcoxon_test(true, mine, theirs)
    return {
        "n_rows_better": rows.n_a_only_right,
        "n_rows_worse": rows.n_b_only_right,
        "sign_p_value": rows.p_value,
        "n_classes_better": classes.n_a_better,
        "n_classes_worse": classes.n_b_better,
        "wilcoxon_p_value": classes.p_value,
    }


def level_errors(outcomes: Sequence[Outcome], problem: Problem) -> dict[str, Any]:
    """Return error and misclassified rows per level of the original taxonomy."""
    found = {}
    for method in ("td-lr", "global-inf"):
        runs = [
            level_errors_nodes(problem.test_leaf, o.predicted, problem.taxonomy)
            for o in outcomes
            if o.method == method
        ]
        if runs:
            found[method] = [
                {
                    "level": levels[0].level,
                    "error": _mean_and_std([level.error for level in levels]),
                    "n_misclassified": _mean_and_std([level.n_wrong_so_far for level in levels]),
                }
                for levels in zip(*runs, strict=True)
            ]
    return found


def fan_out(outcomes: Sequence[Outcome], problem: Problem) -> dict[str, Any]:
    """Return the number of children of all nodes of a level, before and after Global-INF."""
    before = _children_by_level(problem.taxonomy, problem.taxonomy.depth)
    runs = [
        _children_by_level(problem.taxonomy.without(o.removed)[0], problem.taxonomy.depth)
        for o in outcomes
        if o.method == "global-inf"
    ]
    return {
        "levels": list(range(problem.taxonomy.depth)),
        "before": before,
        "after": np.mean(runs, axis=0).tolist() if runs else [],
        "after_by_run": runs,
    }


def _children_by_level(taxonomy: Taxonomy, n_levels: int) -> list[int]:
    """Children of the nodes of level k are the nodes of level k + 1."""
    return np.bincount(taxonomy.level, minlength=n_levels + 1)[1 : n_levels + 1].tolist()


def by_class_size(outcomes: Sequence[Outcome], problem: Problem) -> dict[str, Any]:
    """Return MF1 and hF1 by the number of training rows of the true class."""
    sizes = np.bincount(problem.row_leaf, minlength=problem.taxonomy.n_nodes)
    bins = {**SIZE_BINS, "all": (0, np.inf)}
    found: dict[str, Any] = {}
    for name, (low, high) in bins.items():
        members = problem.classes[
            (sizes[problem.classes] >= low) & (sizes[problem.classes] <= high)
        ]
        tested = np.isin(problem.test_leaf, members)
        if not members.size:
            continue
        found[name] = {
            "n_classes": int(members.size),
            "n_unseen": int((sizes[members] == 0).sum()),
            "n_test": int(tested.sum()),
        }
        for method in ("global-inf", "lr", "ecoc"):
            runs = [o.predicted for o in outcomes if o.method == method]
            if runs:
                found[name][method] = {
                    "macro_f1": _mean_and_std([_macro_f1(p, members, problem) for p in runs]),
                    "hierarchical_f1": _mean_and_std(
                        [
                            hierarchical_scores_nodes(
                                problem.test_leaf[tested], p[tested], problem.taxonomy
                            )[2]
                            for p in runs
                        ]
                        if tested.any()
                        else [0.0]
                    ),
                }
    return found


def _macro_f1(predicted: IntArray, members: IntArray, problem: Problem) -> float:
    counts = count_classes(problem.test_leaf, predicted, problem.taxonomy.is_leaf, problem.classes)
    return float(counts.f1[np.isin(counts.classes, members)].mean())


def class_sizes(problem: Problem) -> dict[str, Any]:
    """Return how many classes have how many training rows."""
    sizes = np.bincount(problem.row_leaf, minlength=problem.taxonomy.n_nodes)[problem.classes]
    value, count = np.unique(sizes, return_counts=True)
    return {
        "bins": {
            name: int(((sizes >= low) & (sizes <= high)).sum())
            for name, (low, high) in SIZE_BINS.items()
        },
        "n_rows": value.tolist(),
        "n_classes": count.tolist(),
    }


def threshold_curve(runs: Sequence[Run], Cs: Sequence[float]) -> dict[str, Any]:
    """Return validation MF1 of Global-INF against ψ, at the C it chose, with flat LR at its own."""
    ordered = sorted(Cs)
    lines = []
    for run in runs:
        C, flat_C = run.choices["global-inf"].C, run.choices["lr"].C
        lines.append(
            {
                "seed": run.seed,
                "C": C,
                "macro_f1": run.curve[ordered.index(C)].tolist(),
                "flat_C": flat_C,
                "flat_macro_f1": float(run.flat[ordered.index(flat_C)]),
            }
        )
    return {
        "psi": list(PSI_GRID),
        "runs": lines,
        "macro_f1": np.mean([line["macro_f1"] for line in lines], axis=0).tolist(),
        "flat_macro_f1": float(np.mean([line["flat_macro_f1"] for line in lines])),
    }


def _seeds(outcomes: Sequence[Outcome]) -> list[int]:
    return list(dict.fromkeys(o.seed for o in outcomes))


def _mean_and_std(values: Sequence[float]) -> dict[str, float]:
    return {
        "mean": float(np.mean(values)),
        "std": float(np.std(values, ddof=1)) if len(values) > 1 else 0.0,
    }
