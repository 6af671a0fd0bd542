"""A block of problems while it is being solved: a queue, sixteen lanes, and results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from taxofit.bank import lane_state as state
from taxofit.bank import lane_transfer as transfer
from taxofit.bank.lane_heavy_rows import HeavyRows
from taxofit.bank.lane_steps import run_lanes
from taxofit.bank.simd import LANES, line_aligned
from taxofit.bank.solver import BlockSolution
from taxofit.bank.stopping import StopFlag

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from taxofit.bank.lane_state import Base, RowsOfClasses, SharedColumns, SharedRows
    from taxofit.bank.private_features import SplitFeatures

    Lanes = NDArray[np.int64]

__all__ = ["LaneBlock", "Problems"]

FIRST_STEP = 5.0  # longest first step, times the root of the number of positives


@dataclass(frozen=True, eq=False)
class Problems:
    """Binary problems, as lanes take them.

    Attributes
    ----------
    classes : RowsOfClasses
    tables : ndarray of int8, shape (width, n_classes)
        Which classes are positive in problem b is in row b.
    n_positive : ndarray of int64, shape (width,)
    gradient : ndarray of float64, shape (width,)
        Norm of the gradient to reach.
    decrease : float
        What Newton may still expect to gain there, relative to the objective.
    max_iter : int
    starts : ndarray of float32, shape (width, n_shared + 1), optional
        Weights to begin from instead of the base.
    """

    classes: RowsOfClasses
    tables: NDArray[np.int8]
    n_positive: NDArray[np.int64]
    gradient: NDArray[np.float64]
    decrease: float
    max_iter: int
    starts: NDArray[np.float32] | None = None


class LaneBlock:
    """Lanes, and what came out of those that have finished.

    Parameters
    ----------
    features : SplitFeatures
    rows : SharedRows
    columns : SharedColumns
    base : Base
    problems : Problems
    """

    def __init__(
        self,
        features: SplitFeatures,
        rows: SharedRows,
        columns: SharedColumns,
        base: Base,
        problems: Problems,
    ) -> None:
        n, m, width = rows.cost.size, features.columns.size, problems.n_positive.size
        self.features, self.rows, self.columns = features, rows, columns
        self.base, self.problems = base, problems
        point, step, direction, residual = line_aligned(4, m)
        product = line_aligned(1, columns.n_tiled)[0]
        self.vectors = state.FeatureLanes(point, step, direction, residual, product)
        curvature, pull = line_aligned(2, n)
        self.row_lanes = state.RowLanes(curvature, pull, np.zeros(n, dtype=np.uint16))
        self.heavy = HeavyRows.empty(m)
        self.lanes = np.zeros(LANES, dtype=state.LANE)
        self.masks = np.zeros((state.N_MASKS, LANES), dtype=np.float32)
        self.coefficients = np.zeros((state.N_COEFFICIENTS, LANES), dtype=np.float32)
        self.totals = np.zeros((state.N_TOTALS, LANES))
        self.work = np.zeros(m + n, dtype=np.float32)
        self.weights = np.empty((width, features.n_features), dtype=np.float32)
        self.objective = np.zeros(width)
        self.converged = np.zeros(width, dtype=bool)
        self.n_iterations = np.zeros(width, dtype=np.int64)
        self.n_passes = np.zeros(width, dtype=np.int64)

    def solve(self, stop: StopFlag | None = None) -> BlockSolution:
        """Solve all problems, the largest first: at the end only short ones are left."""
        stop = StopFlag() if stop is None else stop
        queue = list(np.argsort(self.problems.n_positive, kind="stable"))
        while True:
            self._take_finished()
            idle = np.flatnonzero(self.lanes["mode"] == state.IDLE)
            fresh = idle[: len(queue)]
            for lane in fresh:
                self._assign(self.lanes[lane], queue.pop())
            if idle.size == LANES and not fresh.size:
                break
            if fresh.size:
                self._load(fresh)
            run_lanes(
                self.lanes,
                self.rows,
                self.columns,
                self.row_lanes,
                self.vectors,
                self.heavy,
                self.base,
                self.masks,
                self.coefficients,
                self.totals,
                self.problems.max_iter,
                stop.raised,
            )
            stop.check()
        return BlockSolution(
            self.weights.T,
            self.objective,
            self.converged,
            self.n_iterations,
            n_products=2 * int(self.n_passes.sum()),
        )

    def _assign(self, lane: np.void, problem: int) -> None:
        """Give a lane its next problem."""
        problems = self.problems
        lane["mode"] = state.AT_BASE if problems.starts is None else state.TO_EVALUATE
        lane["problem"] = problem
        lane["target"], lane["decrease"] = problems.gradient[problem], problems.decrease
        lane["radius"] = FIRST_STEP * np.sqrt(problems.n_positive[problem] + 1.0)
        lane["n_newton"], lane["n_passes"] = -1, 0  # the first evaluation is no step
        lane["is_last"], lane["length"], lane["objective"] = 0, 0.0, 0.0
        lane["mass"] = self.base.mass

    def _load(self, fresh: Lanes) -> None:
        """Make these lanes ready for the first evaluation of their problems."""
        problems, lanes, masks = self.problems, self.lanes, self.masks
        vectors, base = self.vectors, self.base
        problem = lanes["problem"].copy()
        classes, tables = problems.classes, problems.tables
        transfer.load_labels(self.row_lanes.positive, classes, tables, fresh, problem)
        masks[:] = 0
        masks[state.FRESH, fresh] = 1
        transfer.begin_problems(vectors.direction, vectors.residual, base.gradient, masks)
        if problems.starts is not None:
            transfer.load_starts(vectors.direction, base.weights, problems.starts, fresh, problem)
        else:
            transfer.begin_at_base(
                self.row_lanes.curvature,
                self.rows,
                base.rows,
                base.loss,
                classes,
                tables,
                vectors.residual,
                lanes,
                masks,
            )

    def _take_finished(self) -> None:
        """Write down the results of finished lanes, which are then idle."""
        lanes = self.lanes
        done = np.flatnonzero(lanes["mode"] == state.FINISHED)
        if not done.size:
            return
        transfer.take_weights(
            lanes,
            done,
            self.vectors.point,
            self.row_lanes.pull,
            self.row_lanes.positive,
            self.rows.cost,
            self.rows.private_square,
            self.base.weights,
            self.base.rows,
            self.features.origins,
            self.work,
            self.weights,
        )
        solved = lanes["problem"][done]
        self.objective[solved] = lanes["objective"][done]
        self.converged[solved] = lanes["converged"][done]
        self.n_iterations[solved] = lanes["n_newton"][done]
        self.n_passes[solved] = lanes["n_passes"][done]
        lanes["mode"][done] = state.IDLE
