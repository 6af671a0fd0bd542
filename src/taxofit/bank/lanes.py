"""The solver for sparse rows on a CPU: sixteen problems side by side, each at its own pace.

Sixteen float32 numbers are a cache line and a vector register: every entry of X that a pass reads
serves sixteen problems. A problem that has finished leaves its lane to the next one of the block, so
that no slow node holds up the others. What a problem does is in :mod:`taxofit.bank.lane_steps`, the
passes are in :mod:`taxofit.bank.lane_loops`.

Weights are float32. At C <= 0.01 a rare node's rule asks for a gradient below what rounding its
intercept to float32 changes; there the objective agrees with the minimum to some 1e-12.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit.bank import lane_loops as loops
from taxofit.bank import lane_transfer as transfer
from taxofit.bank.lane_steps import FINISHED, IDLE, LANE, TO_EVALUATE, run_lanes
from taxofit.bank.objective import stopping_threshold
from taxofit.bank.private_features import SplitFeatures, solve_margin
from taxofit.bank.simd import LANES, line_aligned
from taxofit.bank.solver import BlockSolution

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from taxofit.bank.rows import Rows, Targets
    from taxofit.bank.solver import SolverSettings

    Array = NDArray[Any]

__all__ = ["LaneSolver"]

# Up to this share of positives the all-negative solution is a better start than zero.
RARE_SHARE = 0.02
# liblinear's last step lands well below its rule, ours just below: at the same objective that is
# about this factor.
TARGET_SHARE = 0.3
# What Newton may still expect to gain, relative to the objective. At C = 1000 the gradient rule alone
# left one node of a web directory 2e-4 above the peer's objective.
DECREASE_SHARE = 1e-6
BLOCK_SIZE = 256  # at its end a block has empty lanes; memory grows with it
# Along a grid of factors of 10, NAICS took 18 to 21 passes instead of 14 below C = 1 when started from
# the C before, and 31 instead of 34 to 48 from 10 on.
WARM_FROM = 1.0
FIRST_STEP = 5.0  # longest first step, times the root of the number of positives


class LaneSolver:
    """Solves blocks of problems over sparse rows.

    Parameters
    ----------
    rows : Rows
        Sparse.
    settings : SolverSettings
    """

    def __init__(self, rows: Rows, settings: SolverSettings) -> None:
        self._rows, self._settings = rows, settings
        self.block_size, self.warm_from = BLOCK_SIZE, WARM_FROM
        self._csr = (rows.X.indptr.astype(np.int64), rows.X.indices.astype(np.int32), rows.X.data)
        self._features = SplitFeatures.of(rows)
        self._negative: dict[float, NDArray[np.float32]] = {}
        self._lock = Lock()

    def solve(self, targets: Targets, C: float, start: Array | None = None) -> BlockSolution:
        """Return the minimisers for every problem, from ``start`` if given."""
        rows, settings = self._rows, self._settings
        n_positive = targets.n_positive()
        tables = np.ascontiguousarray(targets.table.T)
        row_class = targets.row_class.astype(np.int32, copy=False)
        norms = C * transfer.gradient_norms_at_zero(*self._csr, rows.weight, row_class, tables)
        threshold = stopping_threshold(norms, n_positive, rows.n_rows, settings.tol)
        is_rare = n_positive <= RARE_SHARE * rows.n_rows
        negative = self._all_negative(C) if is_rare.any() else None
        block = _Block(self._features, rows, C, settings.max_iter, negative)
        return block.solve(
            row_class,
            tables,
            TARGET_SHARE * threshold,
            np.where(is_rare, 0, 1),
            None if start is None else self._features.restrict(start),
        )

    def _all_negative(self, C: float) -> NDArray[np.float32]:
        """Return the solution without positive rows, shape (n_shared + 1,); solved once per C."""
        with self._lock:
            if C not in self._negative:
                self._negative[C] = self._solve_all_negative(C)
            return self._negative[C]

    def _solve_all_negative(self, C: float) -> NDArray[np.float32]:
        rows, settings = self._rows, self._settings
        block = _Block(self._features, rows, C, settings.max_iter, None)
        row_class = np.zeros(rows.n_rows, dtype=np.int32)
        table = np.full((1, 1), -1, dtype=np.int8)
        norm = C * transfer.gradient_norms_at_zero(*self._csr, rows.weight, row_class, table)
        target = TARGET_SHARE * stopping_threshold(norm, 0, rows.n_rows, settings.tol)
        found = block.solve(row_class, table, target, np.ones(1, dtype=np.int64), None)
        return self._features.restrict(found.weights)[0]


class _Block:
    """Lanes and results while a block is being solved."""

    def __init__(
        self,
        features: SplitFeatures,
        rows: Rows,
        C: float,
        max_iter: int,
        negative: NDArray[np.float32] | None,
    ) -> None:
        n, m = rows.n_rows, features.columns.size
        self.features, self.max_iter = features, max_iter
        self.rows = loops.SharedRows(
            features.shared.indptr.astype(np.int64),
            features.shared.indices.astype(np.int32),
            features.shared.data.astype(np.float32),
            np.array([features.constant], dtype=np.float32),
            features.private_square.astype(np.float32),
            (C * rows.weight).astype(np.float32),
        )
        zero = np.zeros(m, dtype=np.float32)
        self.bases = _bases(features, C * rows.weight, zero if negative is None else negative, zero)
        self.vectors = loops.FeatureLanes(*line_aligned(6, m))
        self.row_lanes = loops.RowLanes(*line_aligned(2, n), np.zeros(n, dtype=np.uint16))
        self.lanes = np.zeros(LANES, dtype=LANE)
        self.masks = np.zeros((loops.N_MASKS, LANES), dtype=np.float32)

    def solve(
        self,
        row_class: NDArray[np.int32],
        tables: NDArray[np.int8],
        target: NDArray[np.float64],
        base: NDArray[np.int64],
        starts: NDArray[np.float32] | None,
    ) -> BlockSolution:
        """Solve all problems, the largest first, so that no lane is left with a long one."""
        width = target.size
        self.weights = np.zeros((self.features.n_features, width), dtype=np.float32)
        self.objective = np.zeros(width)
        self.converged = np.zeros(width, dtype=bool)
        self.n_iterations = np.zeros(width, dtype=np.int64)
        self.n_passes = np.zeros(width, dtype=np.int64)
        counts = np.bincount(row_class, minlength=tables.shape[1])
        n_positive = (tables > 0) @ counts
        queue = list(np.argsort(n_positive, kind="stable"))  # taken from the end
        while True:
            self._take_finished()
            fresh = []
            for k in np.flatnonzero(self.lanes["mode"] == IDLE):
                if queue:
                    problem = queue.pop()
                    lane = self.lanes[k]
                    lane["mode"], lane["problem"], lane["base"] = TO_EVALUATE, problem, base[problem]
                    lane["n_newton"], lane["n_passes"], lane["is_last"] = -1, 0, 0
                    lane["target"], lane["decrease"] = target[problem], DECREASE_SHARE
                    lane["radius"] = FIRST_STEP * np.sqrt(n_positive[problem] + 1.0)
                    lane["length"] = 0.0
                    fresh.append(k)
            if (self.lanes["mode"] == IDLE).all():
                return BlockSolution(
                    self.weights, self.objective, self.converged, self.n_iterations
                )
            if fresh:
                self._load(np.array(fresh), row_class, tables, starts)
            run_lanes(
                self.lanes,
                self.rows,
                self.row_lanes,
                self.vectors,
                self.bases,
                self.masks,
                self.max_iter,
            )

    def _load(
        self,
        fresh: NDArray[np.int64],
        row_class: NDArray[np.int32],
        tables: NDArray[np.int8],
        starts: NDArray[np.float32] | None,
    ) -> None:
        """Make the lanes ``fresh`` ready for the first evaluation of their problems."""
        problem, base = self.lanes["problem"].copy(), self.lanes["base"].copy()
        transfer.load_labels(
            self.row_lanes, self.bases, row_class, tables, fresh, problem, base
        )
        self.masks[:] = 0
        self.masks[loops.FRESH, fresh] = 1
        self.masks[loops.FROM_SECOND_BASE] = base
        nothing = np.zeros((loops.N_COEFFICIENTS, LANES), dtype=np.float32)
        unused = np.zeros((loops.N_TOTALS, LANES))
        loops.begin_directions(self.vectors, self.bases, self.masks, nothing, unused)
        if starts is not None:
            transfer.load_starts(self.vectors, self.bases, starts, fresh, problem, base)

    def _take_finished(self) -> None:
        """Write down the results of finished lanes, which are then idle."""
        lanes = self.lanes
        done = np.flatnonzero(lanes["mode"] == FINISHED)
        if not done.size:
            return
        problem, base = lanes["problem"].copy(), lanes["base"].copy()
        transfer.take_shared(
            self.vectors, self.bases, done, problem, base, self.features.columns, self.weights
        )
        transfer.take_private(
            self.rows, self.features.private, self.row_lanes, done, problem, self.weights
        )
        solved = problem[done]
        self.objective[solved] = lanes["objective"][done]
        self.converged[solved] = lanes["converged"][done]
        self.n_iterations[solved] = lanes["n_newton"][done]
        self.n_passes[solved] = lanes["n_passes"][done]
        lanes["mode"][done] = IDLE


def _bases(
    features: SplitFeatures, cost: NDArray[np.float64], *points: NDArray[np.float32]
) -> loops.Bases:
    """Return margins and derivatives of the all-negative problem at two points, from float64."""
    X = features.shared.astype(np.float64)
    squares = X.power(2)
    square = features.private_square
    found = []
    for point in points:
        w = point.astype(np.float64)
        linear = X @ w[:-1] + features.constant * w[-1]
        margin = solve_margin(linear, square, cost, label=0.0)
        sigma = np.exp(-np.logaddexp(0.0, -margin))
        slope = cost * sigma
        curvature = slope * (1 - sigma)
        curvature /= 1 + curvature * square
        gradient = w + np.append(X.T @ slope, features.constant * slope.sum())
        diagonal = 1 + np.append(squares.T @ curvature, features.constant * curvature.sum())
        found.append((point, gradient, 1 / diagonal, linear, margin, slope))
    stacked = (np.array(arrays, dtype=np.float32) for arrays in zip(*found, strict=True))
    return loops.Bases(*stacked)
