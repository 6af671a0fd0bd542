"""Choosing γ, the width of the beam and the calibration, on scores that are already there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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
# Scores of leaves from which likelihoods are taken; of more rows than that every second, third, …
# will do: β is one number.
LIKELIHOOD_SCORES = 2**25


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
        losses = [self._temperature(gamma)[1] for gamma in GAMMAS]
        return GAMMAS[int(np.nanargmin(losses))] if np.isfinite(losses).any() else 0.0

    def calibrate(self, gamma: float, reached: IntArray) -> Calibration:
        """Return the calibration for a search that takes the rows to these leaves."""
        beta, _ = self._temperature(gamma)
        own = self._own_scores(gamma, reached)
        return fit_calibration(beta, own, reached == self.true, self.weight)

    def _temperature(self, gamma: float) -> tuple[float, float]:
        """Return β of highest likelihood and the loss with it, from as many rows as it takes."""
        leaves = self.taxonomy.leaf_order
        column = np.full(self.taxonomy.n_nodes, -1, dtype=np.int64)
        column[leaves] = np.arange(leaves.size)
        every = -(-self.true.size * leaves.size // LIKELIHOOD_SCORES) or 1
        logs = np.ascontiguousarray(self.logs[::every])
        totals = path_scores(logs, self.taxonomy, gamma)[:, leaves]
        weight = None if self.weight is None else self.weight[::every]
        return fit_temperature(totals, column[self.true[::every]], weight)

    def _own_scores(self, gamma: float, reached: IntArray) -> NDArray[np.float32]:
        """Return the path score of every row at the leaf that it reached."""
        own, parent = np.zeros(reached.size, dtype=np.float32), self.taxonomy.parent
        node, factor = reached.copy(), np.float32(1)
        rows = np.flatnonzero(node > 0)
        while rows.size:
            own[rows] += factor * self.logs[rows, node[rows]]
            node[rows] = parent[node[rows]]
            rows, factor = rows[node[rows] > 0], factor * np.float32(gamma)
        return own

    def _macro_f1(self, reached: IntArray) -> float:
        return macro_f1_nodes(self.true, reached, self.taxonomy.is_leaf, self.classes, self.weight)
