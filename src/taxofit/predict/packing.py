"""From a bank to the weights of a predictor: solve the nodes that stay, and pack them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from taxofit.bank.columns import (
    ColumnStore,
    columns_from_arrays,
    columns_to_arrays,
    prune_columns,
)
from taxofit.bank.evidence import nodes_with_rows
from taxofit.bank.harvest import Harvest
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
FEW_WEIGHTS = 100_000  # after the first cut; so small a model loses nothing more


@dataclass(frozen=True, eq=False)
class _PickModels:
    """Takes intercepts and weights, of sparse data without those too small to matter."""

    n_features: int
    has_intercept: bool
    is_sparse: bool
    pruned_share: float
    n_threads: int = field(default=1, compare=False)

    def __call__(self, nodes: IntArray, C: float, solution: BlockSolution) -> Arrays:  # noqa: ARG002  (a Pick)
        weights = solution.weights
        coefficients = weights[: self.n_features]
        intercept = weights[-1] if self.has_intercept else np.zeros(nodes.size)
        if not self.is_sparse:
            return {"intercept": intercept, "weights": coefficients.T}
        pruned = prune_columns(coefficients, self.pruned_share, self.n_threads)
        return {"intercept": intercept, **columns_to_arrays(pruned)}


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
    place = np.zeros(bank.taxonomy.n_nodes, dtype=np.int64)
    place[kept] = np.arange(kept.size)
    intercept = np.full(repaired.n_nodes, -np.inf)
    intercept[0] = 0.0
    store = ColumnStore((n_features, repaired.n_nodes))
    matrix = None if bank.rows.is_sparse else np.zeros((repaired.n_nodes, n_features))

    def receive(nodes: IntArray, C: float, arrays: Arrays) -> None:  # noqa: ARG001  (one C)
        places = place[nodes]
        intercept[places] = arrays["intercept"]
        if matrix is not None:
            matrix[places] = arrays["weights"]
        else:
            store.put(places, columns_from_arrays(arrays))

    share = 0.0 if prune == "none" else FIRST_SHARE
    pick = _PickModels(n_features, has_intercept, bank.rows.is_sparse, share, bank.n_idle_cores)
    solvable = kept[1:][nodes_with_rows(bank)[kept[1:]]]
    report = bank.solve([C], Harvest(pick, receive), nodes=solvable, start=start, progress=progress)
    if matrix is not None:
        return DenseWeights(matrix, intercept), report
    columns = store.to_csr(bank.n_cores)
    if prune == "none" or (prune == "auto" and columns.nnz <= FEW_WEIGHTS):
        return Packer(columns, intercept, repaired, n_threads=bank.n_cores).pack(), report
    leaf = place[bank.row_leaf].astype(np.int32)
    sightings = Sightings.gather(bank.rows.X, leaf, repaired)
    packer = Packer(columns, intercept, repaired, sightings, bank.n_cores)
    if prune != "auto":
        return packer.pack(prune), report
    trial = trial or _training_trial(packer, bank.rows, leaf, C)
    return packer.pack(safe_limit(packer, search, trial)), report


def _training_trial(packer: Packer, rows: Rows, leaf: IntArray, C: float) -> Trial:
    """Return training rows, evenly spread, and their scores without their own part."""
    taxonomy = packer.taxonomy
    chosen = np.linspace(0, rows.n_rows - 1, n_trials(rows.n_rows, taxonomy)).astype(np.int64)
    X = rows.given(chosen)
    wanted = np.zeros(X.shape[1], dtype=bool)
    wanted[X.indices] = True
    scores = packer.pack(0.0, wanted).node_scores(X, taxonomy, packer.n_threads)
    strength = C * rows.weight[chosen]
    return Trial(X, without_own_part(scores, X, leaf[chosen], taxonomy, strength))
