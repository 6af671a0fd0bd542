"""What the validation rows say about every node, at one C."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit.bank.harvest import Harvest, join_harvests
from taxofit.bank.rows import LeafRanges, node_targets
from taxofit.datasets.mapped import mapped_folder, scratch_array
from taxofit.memory import available_memory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from taxofit.bank.harvest import Arrays
    from taxofit.bank.node_bank import NodeBank, Progress
    from taxofit.bank.rows import Rows
    from taxofit.bank.solver import BlockSolution

    IntArray = NDArray[np.int32]

__all__ = ["Evidence", "EvidencePick", "gather_evidence", "nodes_with_rows", "scores_of"]

SPILLED_SHARE = 0.25  # of available memory: scores that take more are kept in files


@dataclass(frozen=True, eq=False)
class Evidence:
    """Scores of the validation rows at every node, and the objectives they add up to.

    Every candidate flattening is judged on these scores; nothing is fitted again.

    Attributes
    ----------
    C : float
    scores : ndarray of float32, shape (n_rows, n_nodes)
        θ_n·x_i; -inf for nodes without training rows, which no walk may enter. Column 0 is unused.
    row_leaf : ndarray of int32, shape (n_rows,)
        True leaf of every validation row, as a node.
    objective : ndarray of float64, shape (n_nodes,)
        The paper's f*: C Σ log-loss over the validation rows + ½‖θ_n‖²; NaN for the root.
    weight_norm : ndarray of float64, shape (n_nodes,)
        ‖θ_n‖. Its inverse is the geometric margin.
    row_weight : ndarray of float64, shape (n_rows,), optional
        What every validation row counts; all alike by default.
    """

    C: float
    scores: NDArray[np.float32]
    row_leaf: IntArray
    objective: NDArray[np.float64]
    weight_norm: NDArray[np.float64]
    row_weight: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class EvidencePick:
    """Takes from a block what its nodes say about validation rows.

    Attributes
    ----------
    rows, row_leaf
        The validation rows and their leaves.
    ranges : LeafRanges
    has_rows : ndarray of bool, shape (n_nodes,)
        Nodes that have training rows.
    """

    rows: Rows
    row_leaf: IntArray
    ranges: LeafRanges
    has_rows: NDArray[np.bool_]

    def __call__(self, nodes: IntArray, C: float, solution: BlockSolution) -> Arrays:
        """Return scores, objectives and norms of these nodes."""
        Z, losses = solution.judge(self.rows, node_targets(self.ranges, self.row_leaf, nodes))
        norms = solution.weight_norms()
        return {
            "scores": np.where(self.has_rows[nodes], Z, np.float32(-np.inf)).astype(
                np.float32, copy=False
            ),
            "objective": C * losses + 0.5 * norms**2,
            "weight_norm": norms,
        }


def gather_evidence(
    bank: NodeBank,
    rows: Rows,
    row_leaf: IntArray,
    Cs: Sequence[float],
    *,
    also: Harvest | None = None,
    progress: Progress | None = None,
) -> list[Evidence]:
    """Solve the bank for every C and return what the validation rows say, smallest C first.

    Parameters
    ----------
    bank : NodeBank
        Over the training rows.
    rows, row_leaf
        The validation rows and their leaves.
    Cs : sequence of float
    also : Harvest, optional
        Gets every solved block as well.
    progress : callable, optional
        As in :meth:`NodeBank.solve`.
    """
    taxonomy = bank.taxonomy
    n = taxonomy.n_nodes
    matrices = _score_matrices(rows, n, len(Cs))
    gathered = {
        C: Evidence(
            C,
            next(matrices),
            row_leaf,
            np.full(n, np.nan),
            np.full(n, np.nan),
            rows.weight,
        )
        for C in sorted(Cs)
    }

    def receive(nodes: IntArray, C: float, arrays: Arrays) -> None:
        evidence = gathered[C]
        evidence.scores[:, nodes] = arrays["scores"]
        evidence.objective[nodes] = arrays["objective"]
        evidence.weight_norm[nodes] = arrays["weight_norm"]

    pick = EvidencePick(rows, row_leaf, LeafRanges.of(taxonomy), nodes_with_rows(bank))
    harvests = [Harvest(pick, receive)] + ([] if also is None else [also])
    bank.solve(list(gathered), join_harvests(*harvests), progress=progress)
    return list(gathered.values())


def _score_matrices(rows: Rows, n_nodes: int, n_matrices: int) -> Iterator[NDArray[np.float32]]:
    """Yield matrices of zeros; in files where memory would be short of room for all of them."""
    n_bytes = 4 * rows.n_rows * n_nodes * n_matrices
    is_large = n_bytes > SPILLED_SHARE * available_memory()
    folder = mapped_folder(rows.X) or Path(tempfile.gettempdir())
    for _ in range(n_matrices):
        if is_large:
            # A node's scores lie together: a block is written once, a walk reads pages in order.
            yield np.asarray(scratch_array((n_nodes, rows.n_rows), np.float32, folder)).T
        else:
            yield np.zeros((rows.n_rows, n_nodes), dtype=np.float32)


def scores_of(rows: Rows, weights: NDArray[Any]) -> NDArray[Any]:
    """Return θ·x for every row and every column of weights, shape (n_rows, width)."""
    return rows.X @ weights


def nodes_with_rows(bank: NodeBank) -> NDArray[np.bool_]:
    """Return a mask of the nodes that have rows of positive weight under them."""
    taxonomy = bank.taxonomy
    weight = np.bincount(bank.row_leaf, weights=bank.rows.weight, minlength=taxonomy.n_nodes)
    return taxonomy.totals(weight) > 0
