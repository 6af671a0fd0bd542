"""Choosing C and the flattening together, on validation rows that are scored once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from taxofit.bank.siblings import sibling_objectives
from taxofit.flattening import Case, Choice, Judge
from taxofit.predict.calibration import UNCALIBRATED, Calibration
from taxofit.predict.search import GREEDY, Search, find_in_scores
from taxofit.predict.walk import walk_scores
from taxofit.search_choice import PathJudge

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from taxofit.bank.evidence import Evidence
    from taxofit.bank.node_bank import NodeBank
    from taxofit.flattening import Flattening
    from taxofit.taxonomy import Taxonomy

__all__ = [
    "C_GRID",
    "VALIDATION_FRACTION",
    "Selection",
    "Selector",
    "Validation",
    "evidence_table",
]

VALIDATION_FRACTION = 0.1  # the paper's 90:10
C_GRID = tuple(10.0**k for k in range(-3, 4))


@dataclass(frozen=True, eq=False)
class Selection:
    """A flattening and the C it goes with.

    Attributes
    ----------
    C : float
    choice : Choice
    score : float
        Validation macro-F1 of the choice; NaN where nothing had to be validated.
    evidence : Evidence or None
        At this C.
    search : Search
        How leaves are found.
    calibration : Calibration
    """

    C: float
    choice: Choice
    score: float = float("nan")
    evidence: Evidence | None = None
    search: Search = GREEDY
    calibration: Calibration = UNCALIBRATED


@dataclass(frozen=True, eq=False)
class Validation:
    """The validation rows of a fit and what they said at the chosen C.

    Attributes
    ----------
    rows : ndarray of int64, shape (n_held_out,)
        Where the validation rows stand among those given to fit.
    classes : ndarray of int32
        Leaves over which macro-F1 runs, as nodes of the original taxonomy.
    evidence : Evidence
        Over these rows, in this order, and the nodes of the original taxonomy.
    """

    rows: NDArray[np.int64]
    classes: NDArray[np.int32]
    evidence: Evidence


class Selector:
    """Puts strategies before the same evidence.

    Parameters
    ----------
    bank : NodeBank
        The bank over the training rows that the evidence came from.
    evidence : sequence of Evidence
        One for each C, smallest first.
    """

    def __init__(self, bank: NodeBank, evidence: Sequence[Evidence]) -> None:
        self.taxonomy = bank.taxonomy
        self.evidence = evidence
        self.classes = np.union1d(bank.row_leaf, evidence[0].row_leaf)
        self._judges = [Judge(self.taxonomy, e, self.classes) for e in evidence]
        self._difficulty = cache(lambda C: sibling_objectives(bank, C))

    def select(self, strategy: Flattening) -> Selection:
        """Return the best C and flattening for greedy walks; of equal scores the smaller C."""
        return max(self._candidates(strategy), key=lambda selection: selection.score)

    def select_beam(
        self,
        strategy: Flattening,
        *,
        gamma: float | Literal["auto"] = "auto",
        width: int | Literal["auto"] = "auto",
    ) -> Selection:
        """Return the best C, flattening and beam search.

        The nodes to remove are those that greedy walks are better without; then C and γ are chosen
        together by macro-F1 of the path score, averaged over neighbouring γ, and last the narrowest
        beam that finds the same leaves.
        """
        judged = []
        for candidate in self._candidates(strategy):
            judge = self._path_judge(candidate)
            if gamma == "auto":
                best, score = judge.best_gamma()
            else:
                best, score = gamma, judge.score(Search("beam", gamma))
            judged.append((score, best, judge, candidate))
        score, best, judge, selection = max(judged, key=lambda found: found[0])
        chosen = Search("beam", best, judge.narrowest(best) if width == "auto" else width)
        return replace(selection, score=judge.score(chosen), search=chosen)

    def calibrate(self, selection: Selection) -> Selection:
        """Return a selection with probabilities fitted to the validation rows.

        Beam search has its γ; that of greedy walks is the one of highest likelihood.
        """
        judge, search = self._path_judge(selection), selection.search
        if search.kind == "greedy":
            search = replace(search, gamma=judge.most_likely_gamma())
            reached = walk_scores(judge.logs, judge.taxonomy)
        else:
            reached = find_in_scores(judge.logs, judge.taxonomy, search)[0][:, 0]
        calibration = judge.calibrate(search.gamma, reached)
        return replace(selection, search=search, calibration=calibration)

    def _candidates(self, strategy: Flattening) -> list[Selection]:
        """Return what the strategy chooses at every C, smallest first."""
        candidates = []
        for evidence, judge in zip(self.evidence, self._judges, strict=True):
            choice = strategy.choose(Case(self.taxonomy, evidence, judge, self._difficulty))
            candidates.append(Selection(evidence.C, choice, judge(choice.removed), evidence))
        return candidates

    def _path_judge(self, selection: Selection) -> PathJudge:
        evidence = next(e for e in self.evidence if selection.C == e.C)
        return PathJudge.on(evidence, self.taxonomy, selection.choice.removed, self.classes)

    def validation(self, rows: NDArray[np.int64], selection: Selection) -> Validation:
        """Return what a selection was judged on: these rows, and the evidence at its C."""
        evidence = next(e for e in self.evidence if selection.C == e.C)
        return Validation(rows, self.classes, evidence)


def evidence_table(
    taxonomy: Taxonomy,
    choice: Choice,
    n_rows: NDArray[np.int64],
    evidence: Evidence | None = None,
) -> pd.DataFrame:
    """Return one line per node but the root: what is known of it and what became of it.

    Columns: ``label``, ``level``, ``is_leaf``, ``rows`` (training rows under it), ``objective`` (f*
    on the validation rows), ``margin`` (1/‖θ‖), ``difficulty`` (what the strategy compared: f* or a
    measure of its own), ``threshold``, ``removed`` and ``why``. NaN where nothing was measured.
    """
    import pandas as pd

    n = taxonomy.n_nodes
    unknown = np.full(n, np.nan)
    objective = unknown if evidence is None else evidence.objective
    norm = unknown if evidence is None else evidence.weight_norm
    threshold = unknown if choice.threshold is None else choice.threshold
    difficulty = objective if choice.difficulty is None else choice.difficulty
    table = pd.DataFrame(
        {
            "label": _object_array(taxonomy.labels),
            "level": taxonomy.level,
            "is_leaf": taxonomy.is_leaf,
            "rows": n_rows,
            "objective": objective,
            "margin": np.divide(1.0, norm, out=np.full(n, np.inf), where=~(norm == 0)),
            "difficulty": difficulty,
            "threshold": threshold,
            "removed": choice.removed,
            "why": _reasons(taxonomy, choice, difficulty, threshold),
        }
    )
    return table.iloc[1:].reset_index(drop=True)


def _reasons(
    taxonomy: Taxonomy,
    choice: Choice,
    difficulty: NDArray[np.float64],
    threshold: NDArray[np.float64],
) -> list[str]:
    reasons = []
    for node in range(taxonomy.n_nodes):
        if taxonomy.is_leaf[node]:
            reasons.append("kept: leaves are never removed")
        elif not choice.removed[node]:
            measured = np.isfinite(difficulty[node]) and np.isfinite(threshold[node])
            compared = f" {difficulty[node]:.4g} ≤ {threshold[node]:.4g}" if measured else ""
            reasons.append(f"kept{compared}")
        elif np.isfinite(threshold[node]):
            sign = ">" if difficulty[node] > threshold[node] else "≥"
            compared = f"{difficulty[node]:.4g} {sign} {threshold[node]:.4g}"
            reasons.append(f"removed: {choice.reason}, {compared}")
        else:
            reasons.append(f"removed: {choice.reason}")
    return reasons


def _object_array(values: Sequence[Any]) -> NDArray[np.object_]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
