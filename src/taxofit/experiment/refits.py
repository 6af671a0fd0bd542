"""The bank on all training rows, once for every C that any method of any run chose."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit.bank.evidence import nodes_with_rows, scores_of
from taxofit.bank.harvest import Harvest, join_harvests
from taxofit.bank.node_bank import NodeBank
from taxofit.bank.rows import Rows
from taxofit.bank.warm_starts import WarmStarts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from taxofit.bank.solver import BlockSolution
    from taxofit.experiment.cache import PieceCache
    from taxofit.experiment.problem import Problem
    from taxofit.experiment.protocol import Protocol
    from taxofit.progress import Progress

    IntArray = NDArray[np.int32]
    Arrays = dict[str, NDArray[Any]]

__all__ = ["refit"]


def refit(
    problem: Problem,
    protocol: Protocol,
    Cs: Iterable[float],
    cache: PieceCache,
    progress: Progress | None = None,
) -> dict[float, Arrays]:
    """Return the scores of the test rows at every node, for every C.

    The values of C are solved from the smallest up, each from the one before, and kept one by one.

    Returns
    -------
    dict by C of arrays
        ``scores`` (n_test, n_nodes) float32, -inf at nodes without training rows; ``seconds`` spent
        on solving and ``score_seconds`` on scoring the test rows at all nodes.
    """
    found = {C: cache.find("refit", {"C": C}) for C in sorted(set(Cs))}
    missing = [C for C, piece in found.items() if piece is None]
    if missing:
        bank = NodeBank(
            Rows.prepare(problem.X, fit_intercept=protocol.fit_intercept),
            problem.taxonomy,
            problem.row_leaf,
            settings=protocol.solver,
            n_threads=protocol.n_jobs,
        )
        test_rows = Rows.prepare(problem.X_test, fit_intercept=protocol.fit_intercept)
        solver = _WarmSolver(bank, test_rows)
        n_nodes = problem.taxonomy.n_nodes - 1
        for k, C in enumerate(missing):
            piece = found[C] = solver.solve(C)
            cache.put("refit", {"C": C}, piece)
            if progress is not None:
                progress((k + 1) * n_nodes, len(missing) * n_nodes)
    return {C: piece for C, piece in found.items() if piece is not None}


@dataclass(frozen=True, eq=False)
class _PickScores:
    """Takes the scores of test rows, and how long they took."""

    rows: Rows
    has_rows: NDArray[np.bool_]

    def __call__(self, nodes: IntArray, C: float, solution: BlockSolution) -> Arrays:  # noqa: ARG002  (a Pick)
        began = time.perf_counter()
        Z = scores_of(self.rows, solution.weights)
        scores = np.where(self.has_rows[nodes], Z, -np.inf)
        return {"scores": scores, "seconds": np.array(time.perf_counter() - began)}


class _WarmSolver:
    """A bank that starts each C from the weights of the one before, where it wants that."""

    def __init__(self, bank: NodeBank, test_rows: Rows) -> None:
        self.bank, self.test_rows = bank, test_rows
        self._start: Any = None

    def solve(self, C: float) -> Arrays:
        """Return the scores of the test rows, and the seconds it took."""
        n_nodes = self.bank.taxonomy.n_nodes
        scores = np.zeros((self.test_rows.n_rows, n_nodes), dtype=np.float32)
        scoring: list[float] = []

        def receive(nodes: IntArray, C: float, arrays: Arrays) -> None:  # noqa: ARG001  (one C)
            scores[:, nodes] = arrays["scores"]
            scoring.append(float(arrays["seconds"]))

        pick = _PickScores(self.test_rows, nodes_with_rows(self.bank))
        warm = WarmStarts(self.bank)
        began = time.perf_counter()
        harvest = join_harvests(Harvest(pick, receive), warm.harvest)
        self.bank.solve([C], harvest, start=self._start)
        seconds = time.perf_counter() - began
        self._start = warm.take(C)
        return {
            "scores": scores,
            "seconds": np.array(seconds - sum(scoring)),
            "score_seconds": np.array(sum(scoring)),
        }
