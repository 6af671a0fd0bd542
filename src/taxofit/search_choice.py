"""Choosing γ, the width of the beam and the calibration, on scores that are already there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit.metrics import macro_f1_nodes
from taxofit.predict.calibration import Calibration, fit_calibration, fit_temperature
from taxofit.predict.search import Search, find_in_scores, log_sigmoid, path_scores

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from taxofit.bank.evidence import Evidence
    from taxofit.taxonomy import Taxonomy

    IntArray = NDArray[np.int32]

__all__ = ["BEAM_WIDTHS", "GAMMAS", "PathJudge"]

GAMMAS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
BEAM_WIDTHS = (2, 5, 10, 20, 50)
WIDE_ENOUGH = 0.999
# The score is smooth in γ and its estimate on some hundred rows is not: neighbours are averaged.
# γ = 0 is flat classification, has a neighbour on one side only, and is judged by itself.
N_NEIGHBOURS = 1


@dataclass(frozen=True, eq=False)
class PathJudge:
    """Validation rows, and what path scores make of them on one flattened taxonomy.

    Attributes
    ----------
    taxonomy : Taxonomy
        The flattened one.
    logs : ndarray of float32, shape (n_rows, n_nodes)
        log σ(θ·x) at its nodes.
    true : ndarray of int32
        True leaves as its nodes.
    classes : ndarray of int32
        Leaves over which macro-F1 runs, as its nodes.
    weight : ndarray of float64, shape (n_rows,), optional
        What every row counts.
    """

    taxonomy: Taxonomy
    logs: NDArray[np.float32]
    true: IntArray
    classes: IntArray
    weight: NDArray[np.float64] | None = None

    @classmethod
    def on(
        cls, evidence: Evidence, original: Taxonomy, removed: NDArray[np.bool_], classes: IntArray
    ) -> PathJudge:
        """Return the judge of a flattening."""
        flattened, kept = original.without(removed)
        place = np.full(original.n_nodes, -1, dtype=np.int32)
        place[kept] = np.arange(kept.size)
        logs = log_sigmoid(evidence.scores[:, kept])
        true = place[evidence.row_leaf]
        return cls(flattened, logs, true, place[classes], evidence.row_weight)

    def score(self, search: Search) -> float:
        """Return the macro-F1 of a beam search."""
        return self._macro_f1(find_in_scores(self.logs, self.taxonomy, search)[0][:, 0])

    def best_gamma(self) -> tuple[float, float]:
        """Return the best γ of :data:`GAMMAS` with every node open, and its smoothed score."""
        scores = np.array([self.score(Search("beam", gamma)) for gamma in GAMMAS])
        smooth = [scores[0]] + [
            scores[k - N_NEIGHBOURS : k + N_NEIGHBOURS + 1].mean() for k in range(1, len(GAMMAS))
        ]
        best = int(np.argmax(smooth))
        return GAMMAS[best], float(smooth[best])

    def narrowest(self, gamma: float) -> int:
        """Return the smallest beam that finds what the whole search finds; 0 where none does."""
        wanted = find_in_scores(self.logs, self.taxonomy, Search("beam", gamma))[0]
        for width in BEAM_WIDTHS:
            found = find_in_scores(self.logs, self.taxonomy, Search("beam", gamma, width))[0]
            if np.mean(found == wanted) >= WIDE_ENOUGH:
                return width
        return 0

    def most_likely_gamma(self) -> float:
        """Return the γ of highest likelihood of the true leaves."""
        losses = [fit_temperature(*self._leaf_totals(gamma), self.weight)[1] for gamma in GAMMAS]
        return GAMMAS[int(np.nanargmin(losses))] if np.isfinite(losses).any() else 0.0

    def calibrate(self, gamma: float, reached: IntArray) -> Calibration:
        """Return the calibration for a search that takes the rows to these leaves."""
        totals = path_scores(self.logs, self.taxonomy, gamma)
        beta, _ = fit_temperature(*self._leaf_totals(gamma), self.weight)
        own = totals[np.arange(reached.size), reached]
        return fit_calibration(beta, own, reached == self.true, self.weight)

    def _leaf_totals(self, gamma: float) -> tuple[NDArray[Any], NDArray[np.int64]]:
        leaves = self.taxonomy.leaf_order
        column = np.full(self.taxonomy.n_nodes, -1, dtype=np.int64)
        column[leaves] = np.arange(leaves.size)
        return path_scores(self.logs, self.taxonomy, gamma)[:, leaves], column[self.true]

    def _macro_f1(self, reached: IntArray) -> float:
        return macro_f1_nodes(self.true, reached, self.taxonomy.is_leaf, self.classes, self.weight)
