"""From a bank to the weights of a predictor: solve the nodes that stay, and pack them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from taxofit.bank.columns import (
    ColumnStore,
    columns_from_arrays,
    columns_to_arrays,
)
from taxofit.bank.evidence import nodes_with_rows
from taxofit.bank.harvest import Harvest
from taxofit.bank.trend import Trend
from taxofit.predict.dense_weights import DenseWeights
from taxofit.predict.packer import Packer, Sightings
from taxofit.predict.pruning import Trial, n_trials, safe_limit, without_own_part

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from taxofit.bank.harvest import Arrays
    from taxofit.bank.node_bank import BankReport, NodeBank, Progress
    from taxofit.bank.rows import Rows
    from taxofit.bank.solver import BlockSolution
    from taxofit.predict.search import Search
    from taxofit.predict.weights import NodeWeights
    from taxofit.taxonomy import Taxonomy

    IntArray = NDArray[np.int32]
    Prune = float | Literal["auto", "none"]

__all__ = ["solve_and_pack"]

# Memory while nodes are solved: what is this far below a node's mean weight never comes back.
# Twice as much would change by itself one in a thousand leaves of DMOZ-SMALL's rows.
FIRST_SHARE = 0.01
# With so few there is memory for all weights. Of unscaled numbers, whose scores are small sums of
# large parts, that cut would change many leaves.
FEW_FEATURES = 2048
MOST_OWN_PART = 1e5  # C ‖x‖²; texts have rows of length 1
FEW_WEIGHTS = 100_000  # after the first cut; so small a model loses nothing more


@dataclass(frozen=True, eq=False)
class _PickModels:
    """Takes intercepts and weights: of sparse data what matters beside a slope times the trend."""

    n_features: int
    has_intercept: bool
    trend: Trend | None  # of sparse data
    pruned_share: float
    n_threads: int = field(default=1, compare=False)

    def __call__(self, nodes: IntArray, C: float, solution: BlockSolution) -> Arrays:  # noqa: ARG002  (a Pick)
        intercept = solution.weights_of(-1) if self.has_intercept else np.zeros(nodes.size)
        if self.trend is None:
            return {"intercept": intercept, "weights": solution.weights[: self.n_features].T}
        left, slope = solution.pruned(self.pruned_share, self.trend, self.n_threads)
        return {"intercept": intercept, "slope": slope, **columns_to_arrays(left)}


def solve_and_pack(
    bank: NodeBank,
    C: float,
    repaired: Taxonomy,
    kept: IntArray,
    *,
    has_intercept: bool,
    prune: Prune,
    search: Search,
    trial: Trial | None = None,
    start: Callable[[IntArray], Any] | None = None,
    progress: Progress | None = None,
) -> tuple[NodeWeights, BankReport]:
    """Return the weights of a repaired taxonomy's nodes, and what solving them took.

    Nodes without rows get no weights and an intercept of -inf: no walk enters them.

    Parameters
    ----------
    bank : NodeBank
        Over all training rows and the original taxonomy.
    C : float
    repaired, kept
        From :meth:`Taxonomy.without`: node n of ``repaired`` is the bank's node ``kept[n]``.
    has_intercept : bool
        Whether the last feature is the constant one.
    prune : "auto", "none" or float
        Which weights of sparse data are left out: those that do not matter, see
        :mod:`taxofit.predict.pruning`, and of few weights none; none; or differences between
        siblings up to a limit.
    search : Search
        By which predictions will be made.
    trial : Trial, optional
        Of validation rows and the nodes of ``repaired``; training rows by default.
    start, progress
        As in :meth:`NodeBank.solve`.
    """
    n_features = bank.rows.n_features - has_intercept
    share = 0.0 if prune == "none" or n_features <= FEW_FEATURES else FIRST_SHARE
    trend = _trend(bank.rows, share)
    models = _Models(bank.taxonomy.n_nodes, kept, n_features, is_sparse=trend is not None)
    pick = _PickModels(n_features, has_intercept, trend, share, bank.n_idle_cores)
    harvest = Harvest(pick, models.receive)
    solvable = kept[1:][nodes_with_rows(bank)[kept[1:]]]
    report = bank.solve([C], harvest, nodes=solvable, start=start, progress=progress)
    if trend is None:
        return DenseWeights(models.matrix, models.intercept), report
    columns = models.columns.to_csr(bank.n_cores)
    leaf, sightings = models.place[bank.row_leaf].astype(np.int32), None
    keeps_all = prune == "none" or (prune == "auto" and columns.nnz <= FEW_WEIGHTS)
    if not keeps_all:
        sightings = Sightings.gather(bank.rows.X, leaf, repaired)
    packer = Packer(
        columns,
        models.intercept,
        repaired,
        trend=(trend.steps, models.slope),
        sightings=sightings,
        n_threads=bank.n_cores,
    )
    limit = 0.0
    if prune == "auto" and not keeps_all:
        trial = trial or _training_trial(packer, bank.rows, leaf, C)
        limit = 0.0 if trial is None else safe_limit(packer, search, trial)
    elif prune not in ("auto", "none"):
        limit = float(prune)
    return packer.pack(limit), report


class _Models:
    """Solved nodes, in their places in the repaired taxonomy.

    Parameters
    ----------
    n_nodes : int
        Of the bank's taxonomy.
    kept : ndarray of int32
        Which of them stay.
    n_features : int
        Without the constant one.
    is_sparse : bool
    """

    def __init__(self, n_nodes: int, kept: IntArray, n_features: int, *, is_sparse: bool) -> None:
        self.place = np.zeros(n_nodes, dtype=np.int64)
        self.place[kept] = np.arange(kept.size)
        self.intercept = np.full(kept.size, -np.inf)
        self.intercept[0] = 0.0
        self.slope = np.zeros(kept.size, dtype=np.float32)
        self.columns = ColumnStore((n_features, kept.size))
        self.matrix = np.zeros((0 if is_sparse else kept.size, n_features))

    def receive(self, nodes: IntArray, C: float, arrays: Arrays) -> None:  # noqa: ARG002  (one C)
        """Take what was picked from a block."""
        places = self.place[nodes]
        self.intercept[places] = arrays["intercept"]
        if "weights" in arrays:
            self.matrix[places] = arrays["weights"]
        else:
            self.slope[places] = arrays["slope"]
            self.columns.put(places, columns_from_arrays(arrays))


def _trend(rows: Rows, share: float) -> Trend | None:
    """Return what to leave out of sparse weights, nothing where all are to stay; of dense None."""
    if not rows.is_sparse:
        return None
    return Trend.of(rows) if share > 0 else Trend.of_nothing(rows.n_features - rows.has_constant)


def _training_trial(packer: Packer, rows: Rows, leaf: IntArray, C: float) -> Trial | None:
    """Return training rows, evenly spread, and their scores without their own part.

    None where rows are so long that their own part, of which only a bound is known, could be all.
    """
    taxonomy = packer.taxonomy
    chosen = np.linspace(0, rows.n_rows - 1, n_trials(rows.n_rows, taxonomy)).astype(np.int64)
    X = rows.given(chosen)
    if C * np.median(X.multiply(X).sum(axis=1, dtype=np.float64)) > MOST_OWN_PART:
        return None
    wanted = np.zeros(X.shape[1], dtype=bool)
    wanted[X.indices] = True
    scores = packer.pack(0.0, wanted).node_scores(X, taxonomy, packer.n_threads)
    strength = C * rows.weight[chosen]
    return Trial(X, without_own_part(scores, X, leaf[chosen], taxonomy, strength))
