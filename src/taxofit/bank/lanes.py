"""The solver for sparse rows on a CPU: sixteen problems side by side, each at its own pace.

Sixteen float32 numbers are a cache line and a vector register: every entry of X that a pass reads
serves sixteen problems. A problem that has finished leaves its lane to the next one of the block,
so that no slow node holds up the others. What a problem does is in
:mod:`taxofit.bank.lane_steps`, the passes are in :mod:`taxofit.bank.lane_loops`.

Weights are float32. At C <= 0.01 a rare node's rule asks for a gradient below what rounding its
intercept to float32 changes; there the gradient of the weights that are returned was up to five
times the rule's in a sample of NAICS, with objectives within 1e-12 of the peer's.
"""

from __future__ import annotations

import math
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.special import lambertw

from taxofit.bank.buffers import Buffers
from taxofit.bank.lane_block import LaneBlock
from taxofit.bank.lane_sample import SampledStarts
from taxofit.bank.lane_state import (
    Base,
    BaseRows,
    LightRows,
    Problems,
    RowEntries,
    RowsOfClasses,
    SharedRows,
    Starts,
)
from taxofit.bank.lane_tiles import stops_of_frequent
from taxofit.bank.lane_transfer import gradient_norms_at_zero
from taxofit.bank.objective import allowed_gain, stopping_threshold
from taxofit.bank.private_features import SplitFeatures, solve_margin
from taxofit.bank.rows import Targets
from taxofit.datasets.mapped import cast, row_chunks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from taxofit.bank.rows import Rows
    from taxofit.bank.solver import BlockSolution, SolverSettings
    from taxofit.bank.stopping import StopFlag

    Array = NDArray[Any]

__all__ = ["LaneSolver"]

# At its end a block has empty lanes; with more problems its sample has more rows, and their weights
# take more memory. The bank of a directory with 129,000 rows takes as long in blocks of 256, and
# 2.7 GiB instead of 2.0. On two cores NAICS is as fast in those of 64, which are shared evenly.
BLOCK_SIZE, LEAST_BLOCK_SIZE = 128, 64
# Passes per node over 265 nodes of NAICS, from the base and from the solution at C / 10: 16.3 and
# 16.1 at C = 100, 22.7 and 17.2 at 1000; of a directory with rows of 98 entries 11.6 and 13.5 at
# 100, 13.6 and 14.9 at 1000. From samples fewer are taken at every C: 10.2 and 4.5 at 1000, where
# the solution at 100 leaves 12.0 and 8.7.
WARM_FROM = 1000.0
# Neighbours in the tree have rows in common: their samples are small. Problems that are positive on
# this share of the rows or more take up to ten times the passes of others. All over the tree, each
# of them had the other lanes of its block wait at the end: at C = 1000 a web directory took an
# eighth more time. From 1/32 to 1/8 it makes no difference.
BY_SIZE_FROM = 1 / 16
REBASE_STEPS = 4  # of Newton; two or three are enough where rows are about as long as each other
# Of the rows, that the all-negative solution has to rest on. tf-idf has 99 %, raw counts of words
# 3 to 15 %; of images in 80 large numbers it was below 1 %, and nodes took up to four times the
# passes that they take from the constant alone.
LEAST_SUPPORT = 0.025
SHORT_PLACES = 1 << 16  # rows or columns whose places are 16-bit numbers
# Of the rule, to aim at. On NAICS at C = 100 the worst of 200 objectives was ten times as far above
# the peer's with 0.6, for 1 % fewer passes.
TARGET_SHARE = 0.3


class LaneSolver:
    """Solves blocks of problems over sparse rows.

    Parameters
    ----------
    rows : Rows
        Sparse.
    settings : SolverSettings
    """

    def __init__(self, rows: Rows, settings: SolverSettings) -> None:
        self.block_size, self.least_block_size = BLOCK_SIZE, LEAST_BLOCK_SIZE
        self.is_threaded = True
        self._features, self._settings = SplitFeatures.of(rows), settings
        self._weight = rows.weight[self._features.order]
        self._sums = self._features.column_sums(self._weight)
        self._private_sum = float(np.sum(self._weight**2 * self._features.private_square))
        shared, columns = self._features.shared, self._features.by_column
        stops = stops_of_frequent(shared, columns.n_frequent)
        self._shared = (*_for_loops(shared), stops)
        indices = _places_for_loops(columns.indices, max(shared.shape))
        self._columns = columns._replace(indices=indices)
        self._samples = SampledStarts(self._features, settings.tol)
        self.warm_from = math.inf if self._samples.is_possible else WARM_FROM
        self.by_size_from = BY_SIZE_FROM if self._samples.is_possible else 0.0
        self._known: dict[float, tuple[SharedRows, Base]] = {}
        self._buffers = Buffers()
        self._lock = Lock()

    def solve(
        self,
        targets: Targets,
        C: float,
        start: Any | None = None,
        stop: StopFlag | None = None,
    ) -> BlockSolution:
        """Return the minimisers for every problem, from ``start`` if given.

        Products over a sample of the rows, from which others start, are not counted.
        """
        if start is not None and sparse.issparse(start):
            start = start.toarray()
        targets = Targets(targets.row_class[self._features.order], targets.table)
        problems = self._problems(targets, C)
        with self._lock:
            rows, base = self._at(C, stop)
        if start is None:
            starts = self._samples.of(rows, base, problems, targets.row_class, stop)
        else:
            starts = Starts.of_all(self._features.restrict(start))
        origins = self._features.origins
        columns, buffers = self._columns, self._buffers
        return LaneBlock(origins, rows, columns, base, problems, starts, buffers=buffers).solve(
            stop
        )

    def _problems(self, targets: Targets, C: float) -> Problems:
        settings, features, weight = self._settings, self._features, self._weight
        classes = RowsOfClasses.of(targets.row_class, targets.table.shape[0])
        tables, n_positive = np.ascontiguousarray(targets.table.T), targets.n_positive()
        norms = C * gradient_norms_at_zero(
            *self._shared[:3],
            features.constant,
            self._private_sum,
            weight,
            self._sums,
            classes,
            tables,
        )
        rule = stopping_threshold(norms, n_positive, weight.size, settings.tol)
        return Problems(
            classes=classes,
            tables=tables,
            n_positive=n_positive,
            gradient=TARGET_SHARE * rule,
            decrease=allowed_gain(settings.tol),
            max_iter=settings.max_iter,
        )

    def _at(self, C: float, stop: StopFlag | None = None) -> tuple[SharedRows, Base]:
        """Return the rows at C and the point that all problems start from, made once."""
        if C not in self._known:
            cost = C * self._weight
            constant = np.array([self._features.constant], dtype=np.float32)
            entries = RowEntries(*self._shared, constant)
            rows = SharedRows.of(entries, self._features.private_square, cost)
            self._known[C] = rows, self._all_negative(rows, cost, C, stop)
        return self._known[C]

    def _all_negative(
        self, rows: SharedRows, cost: NDArray[np.float64], C: float, stop: StopFlag | None
    ) -> Base:
        """Return the solution to which every row is negative, or with the constant alone.

        The preconditioner belongs to the base: every few steps the point reached becomes that.
        Where few rows hold the solution in its place, all others lie far beyond, and their mean and
        spread are not those that a node meets.
        """
        features, n_rows = self._features, cost.size
        nothing = Targets(np.zeros(n_rows, dtype=np.int32), np.full((1, 1), -1, dtype=np.int8))
        problems = self._problems(nothing, C)._replace(max_iter=REBASE_STEPS)
        # With the constant b alone the gradient is b + c σ(b), and σ(b) is about exp(b).
        point = np.zeros(features.columns.size, dtype=np.float32)
        point[-1] = -features.constant * lambertw(cost.sum()).real
        base = alone = _base(features, cost, point)
        for _ in range(0, self._settings.max_iter, REBASE_STEPS):
            found = LaneBlock(features.origins, rows, self._columns, base, problems).solve(stop)
            base = _base(features, cost, features.restrict(found.weights)[0])
            if found.converged[0]:
                break
        squares = float(np.sum(np.square(base.rows.curvature, dtype=np.float64)))
        is_supported = base.mass**2 > LEAST_SUPPORT * n_rows * squares
        return base if is_supported else alone


def _for_loops(X: Any) -> tuple[Array, Array, Array]:
    """Return indptr, indices and values of a CSR matrix as compiled loops take them."""
    return X.indptr.astype(np.uint64), _places_for_loops(X.indices, max(X.shape)), X.data


def _places_for_loops(places: Array, n_places: int) -> Array:
    """Return rows or columns of entries as compiled loops take them.

    Places are unsigned: at every access numba asks of signed ones whether they count from the end,
    which was more work than a product itself. Where 16 bits are enough an entry takes 6 bytes: with
    half a million of them, more than the caches hold beside the vectors, a bank takes 9 % less.
    """
    if n_places <= SHORT_PLACES:
        return cast(places, np.uint16)
    return cast(places, np.int32).view(np.uint32)


def _base(features: SplitFeatures, cost: NDArray[np.float64], point: NDArray[np.float32]) -> Base:
    """Return margins and derivatives of the all-negative problem at a point, from float64."""
    square, w = features.private_square, point.astype(np.float64)
    linear, slope, curvature = np.empty((3, square.size))
    gradient, loss = w.copy(), 0.0
    bend_sum, bend_square = np.zeros((2, w.size))  # of every feature and its square, by curvature
    for start, stop, shared in row_chunks(features.shared):
        mine, X = slice(start, stop), shared.astype(np.float64)
        linear[mine] = X @ w[:-1] + features.constant * w[-1]
        margin = solve_margin(linear[mine], square[mine], cost[mine], label=0.0)
        sigma = np.exp(-np.logaddexp(0.0, -margin))
        slope[mine] = cost[mine] * sigma
        bend = slope[mine] * (1 - sigma)
        bend /= 1 + bend * square[mine]
        curvature[mine] = bend
        gradient += np.append(X.T @ slope[mine], features.constant * slope[mine].sum())
        on_constant = features.constant * bend.sum()
        bend_sum += np.append(X.T @ bend, on_constant)
        bend_square += np.append(X.power(2).T @ bend, on_constant)
        loss += np.sum(cost[mine] * np.logaddexp(0.0, margin))
        loss += 0.5 * np.sum(square[mine] * slope[mine] ** 2)
    mass = max(float(curvature.sum()), np.finfo(np.float64).tiny)
    mean = bend_sum / mass
    spread = np.maximum(bend_square / mass - mean**2, 0)
    return Base(
        weights=w.astype(np.float32),
        gradient=gradient.astype(np.float32),
        rows=BaseRows(*(a.astype(np.float32) for a in (linear, slope, curvature))),
        light=LightRows.of(mean, spread, mass),
        mass=mass,
        loss=float(loss),
    )
