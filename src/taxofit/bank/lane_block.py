"""A block of problems while it is being solved: sixteen lanes, and results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from taxofit.bank import lane_state as state
from taxofit.bank.buffers import Buffers
from taxofit.bank.lane_heavy_rows import MOST, HeavyRows
from taxofit.bank.lane_near_rows import NearRows
from taxofit.bank.lane_queue import run_block
from taxofit.bank.simd import LANES, line_aligned
from taxofit.bank.solver import BlockSolution
from taxofit.bank.stopping import StopFlag

if TYPE_CHECKING:
    from taxofit.bank.lane_state import Base, Problems, SharedColumns, SharedRows, Starts
    from taxofit.bank.private_features import Origins

__all__ = ["LaneBlock"]

# An evaluation (an exponential for every row, and more) makes a pass twice as long on NAICS, and a
# quarter longer where rows have 100 entries: it waits for company, that of so many of the lanes
# that are not idle. From 0.45 to 0.65 NAICS takes the same time within 1 %, by passes; with 0.3 it
# takes 7 % more. For a web directory 0.1 to 0.3 take 3 % less than 0.55.
SHARE_FOR_SHORT_ROWS, SHARE_FOR_LONG_ROWS = 0.55, 0.3
LONG_ROW = 32  # entries
TAKEN_TOGETHER = 4  # lanes that finish at the same time; of NAICS's it is three in the mean
FIRST_STEP = 5.0  # longest first step, times the root of the number of positives


class LaneBlock:
    """Lanes, and what came out of those that have finished.

    Parameters
    ----------
    origins : Origins
        Of the weights to return.
    rows : SharedRows
    columns : SharedColumns
    base : Base
    problems : Problems
    starts : Starts, optional
        Where to begin; at the base if not given.
    most_heavy : int
        Rows of a lane in the preconditioner.
    buffers : Buffers, optional
        Where the memory for vectors and weights comes from.
    """

    def __init__(
        self,
        origins: Origins,
        rows: SharedRows,
        columns: SharedColumns,
        base: Base,
        problems: Problems,
        starts: Starts | None = None,
        most_heavy: int = MOST,
        buffers: Buffers | None = None,
    ) -> None:
        buffers = buffers or Buffers()
        n, m, width = rows.cost.size, base.weights.size, problems.n_positive.size
        self.origins, self.rows, self.columns = origins, rows, columns
        self.base, self.problems = base, problems
        self.starts = state.Starts.at_base(width) if starts is None else starts
        point, step, direction, residual = line_aligned(4, m, buffers)
        product = line_aligned(1, columns.n_tiled, buffers)[0]
        self.vectors = state.FeatureLanes(point, step, direction, residual, product)
        curvature, pull = line_aligned(2, n, buffers)
        self.row_lanes = state.RowLanes(curvature, pull, np.zeros(n, dtype=np.uint16))
        self.near = NearRows.empty()
        self.heavy = HeavyRows.empty(m, most_heavy)
        self.lanes = np.zeros(LANES, dtype=state.LANE)
        self.masks = np.zeros((state.N_MASKS, LANES), dtype=np.float32)
        self.coefficients = np.zeros((state.N_COEFFICIENTS, LANES), dtype=np.float32)
        self.totals = np.zeros((state.N_TOTALS, LANES))
        self.finished = np.zeros(LANES, dtype=np.int64)
        self.work = np.empty((TAKEN_TOGETHER, m + n), dtype=np.float32)
        self.weights = buffers.empty(width, origins.place.size)

    def solve(self, stop: StopFlag | None = None) -> BlockSolution:
        """Solve all problems, the largest first: at the end only short ones are left."""
        stop = StopFlag() if stop is None else stop
        problems, found = self.problems, self._waiting()
        run_block(
            np.argsort(problems.n_positive, kind="stable"),
            found,
            problems.classes,
            problems.tables,
            problems.max_iter,
            self._evaluation_share(),
            self.starts,
            self.rows,
            self.columns,
            self.row_lanes,
            self.near,
            self.vectors,
            self.heavy,
            self.base,
            self.lanes,
            self.masks,
            self.coefficients,
            self.totals,
            self.origins,
            self.finished,
            self.work,
            self.weights,
            stop.raised,
        )
        stop.check()
        return BlockSolution(
            self.weights.T,
            found["objective"].copy(),
            found["converged"].astype(bool),
            found["n_newton"].copy(),
            n_products=2 * int(found["n_passes"].sum()),
        )

    def _evaluation_share(self) -> float:
        """Return which share of the lanes an evaluation waits for."""
        is_long = self.rows.entries.indices.size > LONG_ROW * self.rows.cost.size
        return SHARE_FOR_LONG_ROWS if is_long else SHARE_FOR_SHORT_ROWS

    def _waiting(self) -> np.ndarray:
        """Return lanes as the problems want them to be at first."""
        problems, start = self.problems, self.starts.place
        lanes = np.zeros(start.size, dtype=state.LANE)
        lanes["mode"] = np.where(start < 0, state.AT_BASE, state.TO_EVALUATE)
        lanes["problem"], lanes["start"] = np.arange(start.size), start
        lanes["n_newton"] = -1  # the first evaluation is no step
        lanes["target"], lanes["decrease"] = problems.gradient, problems.decrease
        lanes["radius"] = FIRST_STEP * np.sqrt(problems.n_positive + 1.0)
        lanes["mass"] = self.base.mass
        return lanes
