"""Where problems start: at their solutions over a sample of the rows.

The negative rows of a rare node say much the same as each other. Some hundreds of them, and all
rows that are positive in any problem of a block, put its weights nearly where all rows do: from
there NAICS's nodes take one to two and a half Newton steps instead of three to five. A sample does
not have to grow with the rows, so the more there are the more it saves.

At large C single negative rows count that look like positive ones: without them weights go much too
far. So rows that have more in common with the positive ones than others have are in the sample too.
These near rows and the positive ones are its own; each stands for itself.

A drawn row stands for a rows: it has a times their cost, and a-th of their private square, so that
the margin that its private features give it stays. Drawn rows are moved so that their mean is that
of all rows that they stand for: those weigh little each and much together, and nearly all that they
do to a problem they do as their mean. The gradient at the base is that of all rows: what is sampled
is how it changes.

Weights are free where any own row has a feature. All others stay in proportion to those of the
base, since it is the mean row that pulls at them. Features that a single own row has, and hardly
any other, are private: up to half of them.
Where a block has too many positive rows, its largest problems stay out and start at the base.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from taxofit.bank.lane_block import LaneBlock
from taxofit.bank.lane_state import (
    Base,
    BaseRows,
    LightRows,
    RowEntries,
    RowsOfClasses,
    SharedRows,
    Starts,
)
from taxofit.bank.lane_tiles import arrange_columns, stops_of_frequent
from taxofit.bank.private_features import Origins
from taxofit.bank.sample_loops import ABSENT, PRIVATE, count_users, mark_near, take_entries
from taxofit.datasets.mapped import row_chunks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from taxofit.bank.lane_state import Problems
    from taxofit.bank.private_features import SplitFeatures
    from taxofit.bank.stopping import StopFlag

__all__ = ["SampledStarts"]

# Of a pass over all rows, in entries, and what a row itself is in them. With less no sample pays:
# none did over 4,074 rows of NAICS and 1,580 of a web directory (92,000 and 168,000), and over
# 8,149 and 3,161 of them (188,000 and 348,000) banks took an eighth to a tenth less.
LEAST_WORK, WORK_OF_A_ROW = 175_000, 16
# Rows without any positive label to draw: a share of all, and how many at least and at most.
DRAWN_SHARE, LEAST_DRAWN, MOST_DRAWN = 1 / 32, 256, 4096
# Of the rows, in a sample without near ones. When samples were simpler a tenth paid on NAICS, a
# sixth hardly did for a web directory, and a quarter did not.
MOST_SAMPLED = 1 / 5
LEAST_STARTED = 1 / 2  # of the problems of a block, for whose positive rows there has to be room
# Near rows: a share of all at most, and what they have in common with positive rows, times what any
# row has. Of made-up text, whose rows are near others by chance only, hardly any has twice as much.
MOST_NEAR, LEAST_IN_COMMON = 1 / 32, 2.0
# Mean of cost times squared norm. With 100 and 1000 near rows make NAICS take 15 and 23 % fewer
# passes, and 7 and 12 % less time; with 10 what 9 % fewer passes save goes into the sample.
LEAST_COST_FOR_NEAR = 30.0
# Drawn rows with a feature of a single own row. Each stands for so many that it says little of such
# a feature: starts are as good without it, and with it a sample takes a seventh more time.
MOST_IGNORED = 3
# Mean of cost times squared norm: with less, problems take few steps from the base. With 0.001
# samples pay on NAICS and not for a web directory, with 0.0001 banks take 5 % longer.
LEAST_COST = 5e-4
# How exactly to solve, as a tolerance of the rule. At C = 1 NAICS takes 6 % more passes with 0.3, a
# web directory 8 %, and as many with 0.03; those over samples are 12 % fewer and 10 to 20 % more.
TOLERANCE = 0.1
# Heavy rows of a lane. A product over a sample costs less than what 47 would save: with 15 samples
# take as many passes at C = 1 and a seventh more at 10, and whole banks 2 to 6 % less time.
MOST_HEAVY = 15


class SampledStarts:
    """Draws samples of rows and solves problems over them.

    Parameters
    ----------
    features : SplitFeatures
    tol : float
        To which problems over all rows are solved.

    Attributes
    ----------
    is_possible : bool
        Whether there may be any samples; else all problems start at the base.
    """

    def __init__(self, features: SplitFeatures, tol: float) -> None:
        n_rows = features.private_square.size
        work = WORK_OF_A_ROW * n_rows + features.shared.nnz
        self.is_possible = work >= LEAST_WORK and tol < TOLERANCE
        self._shared, self._looseness = features.shared, TOLERANCE / tol
        self._order = np.random.default_rng(0).permutation(n_rows)
        self._squares = features.row_squares()

    def of(
        self,
        rows: SharedRows,
        base: Base,
        problems: Problems,
        row_class: NDArray[np.int32],
        stop: StopFlag | None = None,
    ) -> Starts | None:
        """Return where problems should start, or None if that is the base.

        Parameters
        ----------
        rows : SharedRows
            All of them.
        base : Base
        problems : Problems
        row_class : ndarray of int32, shape (n_rows,)
        stop : StopFlag, optional
        """
        cost = np.mean(rows.cost * self._squares)
        if not self.is_possible or cost < LEAST_COST:
            return None
        n_rows = row_class.size
        n_drawn = int(np.clip(DRAWN_SHARE * n_rows, LEAST_DRAWN, MOST_DRAWN))
        is_started = _which_fit(problems, MOST_SAMPLED * n_rows - n_drawn)
        is_positive: NDArray[np.bool_] = np.any(problems.tables[is_started] > 0, axis=0)
        is_own = is_positive[row_class]
        if not is_own.any() or is_started.mean() < LEAST_STARTED:
            return None
        if cost >= LEAST_COST_FOR_NEAR:
            self._add_near(is_own)
        sample = self._draw(is_own, n_drawn, base)
        started = problems._replace(
            classes=RowsOfClasses.of(row_class[sample.rows], problems.tables.shape[1]),
            tables=problems.tables[is_started],
            n_positive=problems.n_positive[is_started],
            gradient=self._looseness * problems.gradient[is_started],
            decrease=self._looseness * problems.decrease,
        )
        weights, columns, rest = sample.solve(rows, base, started, stop)
        place = np.where(is_started, np.cumsum(is_started) - 1, -1)
        return Starts(weights, columns, rest, place)

    @cached_property
    def _n_users(self) -> NDArray[np.int64]:
        """In how many rows every shared feature is."""
        n_users = np.zeros(self._shared.shape[1], dtype=np.int64)
        for _, _, part in row_chunks(self._shared):
            n_users += np.bincount(part.indices, minlength=n_users.size)
        return n_users

    def _add_near(self, is_own: NDArray[np.bool_]) -> None:
        """Have rows that look like own ones be own rows as well."""
        X, n_rows = self._shared, is_own.size
        share = np.zeros(X.shape[1], dtype=np.float32)
        score = np.zeros((2, n_rows), dtype=np.float32)
        how = (self._n_users, LEAST_IN_COMMON, int(MOST_NEAR * n_rows))
        mark_near(X.indptr, X.indices, X.data, *how, is_own, share, score)

    def _draw(self, is_own: NDArray[np.bool_], n_drawn: int, base: Base) -> Sample:
        """Take some rows, which stand for all others, and then the own ones."""
        others, slope = self._order[~is_own[self._order]], base.rows.slope
        drawn = np.sort(others[:n_drawn])
        chosen = np.append(drawn, np.flatnonzero(is_own))
        csr, n_shared = (self._shared.indptr, self._shared.indices), self._shared.shape[1]
        n_users, n_own = np.zeros((2, n_shared), dtype=np.int32)
        count_users(*csr, chosen, is_own, n_users, n_own)
        is_private = (n_own == 1) & (n_users <= 1 + MOST_IGNORED)
        columns = np.flatnonzero((n_own > 0) & ~is_private)
        place = np.where(is_private, PRIVATE, ABSENT).astype(np.int32)
        place[columns] = np.arange(columns.size)
        along = np.where(np.append(n_own, 1) > 0, np.float32(0), base.weights)
        along /= max(np.sqrt(_product(along, along)), np.finfo(np.float32).tiny)
        n_entries = int(n_users[columns].sum()) + chosen.size
        entries = _empty_csr(chosen.size, columns.size + 1, n_entries)
        private = PrivateEntries.empty(int(is_private.sum()))
        pulls = np.zeros((2, columns.size + 1))  # of drawn rows at the base, and of own ones
        into = ((entries.indptr, entries.indices, entries.data), tuple(private), pulls)
        rows = (chosen, is_own, slope)
        take_entries(*csr, self._shared.data, *rows, place, along, *into)
        columns = np.append(columns, n_shared)
        # There weights and what rows pull at them are in balance, but for the gradient.
        pull = _in_sample(base.gradient - base.weights, columns, along)[:-1]
        weight, of_drawn = slope[others].sum(dtype=np.float64), slope[drawn].sum(dtype=np.float64)
        common = (pull - pulls[1]) / weight - pulls[0] / of_drawn
        return Sample(
            rows=chosen,
            n_drawn=drawn.size,
            count=np.where(is_own[chosen], 1, weight / of_drawn).astype(np.float32),
            common=np.append(common, 0).astype(np.float32),
            columns=columns,
            along=along,
            entries=entries,
            private=private,
        )


def _in_sample(
    values: NDArray[np.float32], columns: NDArray[np.int64], along: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return what a sample has of the values of all features: the rest are one before the last."""
    found = np.append(values[columns], values[columns[-1]])
    found[-2] = _product(along, values)
    return found


def _product(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    """Return a·b, in float64 and not by BLAS.

    That has more than 10,000 numbers multiplied by threads of its own, which then keep cores busy
    for a while: one such product a block made a bank of NAICS take half as long again.
    """
    return float(np.sum(np.multiply(a, b, dtype=np.float64)))


def _empty_csr(n_rows: int, n_columns: int, n_entries: int) -> Any:
    """Return a matrix whose entries are still to be written."""
    data, indices = np.empty(n_entries, dtype=np.float32), np.zeros(n_entries, dtype=np.int32)
    stops = np.zeros(n_rows + 1, dtype=np.int32)
    stops[-1] = n_entries
    return sparse.csr_array((data, indices, stops), shape=(n_rows, n_columns))


def _which_fit(problems: Problems, n_rows: float) -> NDArray[np.bool_]:
    """Return which problems, the smallest first, have at most so many positive rows together."""
    by_size = np.argsort(problems.n_positive, kind="stable")
    is_own = problems.tables[by_size] > 0
    n_own = np.diff(problems.classes.indptr) * is_own.any(axis=0)
    n_new = np.bincount(is_own.argmax(axis=0), weights=n_own, minlength=by_size.size)
    fits = np.empty(by_size.size, dtype=bool)
    fits[by_size] = np.cumsum(n_new) <= n_rows
    return fits


class PrivateEntries(NamedTuple):
    """Entries of own rows in features that are private in a sample."""

    row: NDArray[np.int64]  # in the sample
    column: NDArray[np.int32]  # of the shared features
    value: NDArray[np.float32]

    @classmethod
    def empty(cls, n_entries: int) -> PrivateEntries:
        """Return entries that are still to be written."""
        return cls(
            np.empty(n_entries, dtype=np.int64),
            np.empty(n_entries, dtype=np.int32),
            np.empty(n_entries, dtype=np.float32),
        )


@dataclass(frozen=True, eq=False)
class Sample:
    """Some rows, and of their features those of own rows.

    Attributes
    ----------
    rows : ndarray of int64, shape (n_sampled,)
        The drawn ones, then the own ones.
    n_drawn : int
    count : ndarray of float32, shape (n_sampled,)
        For how many rows each stands.
    common : ndarray of float32, shape (n_columns + 2,)
        What drawn rows lack of the mean of all that they stand for.
    columns : ndarray of int64, shape (n_columns + 1,)
        Which of the shared features are no private ones here, and the constant.
    along : ndarray of float32, shape (n_shared + 1,)
        Weights of the base where no own row has a feature, of norm 1; 0 for others.
    entries : csr_array of float32, shape (n_sampled, n_columns + 1)
        The last column is what rows have along the others.
    private : PrivateEntries
    """

    rows: NDArray[np.int64]
    n_drawn: int
    count: NDArray[np.float32]
    common: NDArray[np.float32]
    columns: NDArray[np.int64]
    along: NDArray[np.float32]
    entries: Any
    private: PrivateEntries

    def solve(
        self, rows: SharedRows, base: Base, problems: Problems, stop: StopFlag | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32]]:
        """Solve these problems over the sample.

        Returns
        -------
        weights : ndarray of float32, shape (width, n_columns + 1 + n_private)
        columns : ndarray of int64, shape (n_columns + 1 + n_private,)
            Of which features these are.
        rest : ndarray of float32, shape (width,)
            What all other weights are, times those of the base.
        """
        found = self.block(rows, base, problems).solve(stop).weights.T
        at_rest, n_columns = _product(self.along, base.weights), self.columns.size
        rest = found[:, n_columns - 1] / at_rest if at_rest > 0 else np.ones(len(found))
        weights = np.delete(found, n_columns - 1, axis=1)
        row, column, value = self.private
        weights[:, n_columns:] += base.weights[column] + value * base.rows.slope[self.rows[row]]
        return weights, np.append(self.columns, column), rest.astype(np.float32)

    def block(self, rows: SharedRows, base: Base, problems: Problems) -> LaneBlock:
        """Return these problems over the sample, ready to be solved.

        Of the weights of its private features it finds what their rows add.
        """
        X, places = self.entries, rows.entries.indices.dtype
        columns = arrange_columns(X.tocsc())
        columns = columns._replace(indices=columns.indices.astype(places))
        entries = RowEntries(
            X.indptr.astype(np.uint64),
            X.indices.astype(places),
            X.data,
            stops_of_frequent(X, columns.n_frequent),
            rows.entries.constant,
            self.common,
            self.n_drawn,
        )
        row, value = self.private.row, self.private.value
        square: Any = np.bincount(row, weights=value * value, minlength=self.rows.size)
        sampled = SharedRows.of(
            entries,
            rows.private_square[self.rows] / self.count + square,
            rows.cost[self.rows] * self.count,
        )
        n_weights = self.common.size
        origins = Origins.of_places(n_weights, (n_weights + row, -value))
        base = self._base(sampled, base, square)
        return LaneBlock(origins, sampled, columns, base, problems, most_heavy=MOST_HEAVY)

    def _base(self, sampled: SharedRows, base: Base, square: NDArray[np.float64]) -> Base:
        """Return the base as the sample has it, with the gradient of all rows.

        square : ndarray of float64, shape (n_sampled,), of features that are private in the sample:
        a row's x·w does without them, and is what makes the margin and the slope stay.
        """
        slope = base.rows.slope[self.rows] * self.count
        bend = base.rows.curvature[self.rows] * self.count
        linear = (base.rows.linear[self.rows] + square * slope).astype(np.float32)
        margin = linear - sampled.private_square * slope
        losses = sampled.cost * np.logaddexp(0, margin) + 0.5 * sampled.private_square * slope**2
        weights, gradient, mean, spread = (
            _in_sample(values, self.columns, self.along)
            for values in (base.weights, base.gradient, base.light.mean, base.light.spread)
        )
        spread[-2] = self._spread_of_rest(bend)
        return Base(
            weights=weights,
            gradient=gradient,
            rows=BaseRows(linear, slope, (bend / (1 + bend * square)).astype(np.float32)),
            light=LightRows.of(mean, spread, base.mass),
            mass=base.mass,
            loss=float(losses.sum(dtype=np.float64)),
        )

    def _spread_of_rest(self, bend: NDArray[np.float32]) -> float:
        """Return the variance of what rows have along the features that are no columns here."""
        rest = self.entries.data[self.entries.indptr[1:] - 1]
        return float(np.average((rest - np.average(rest, weights=bend)) ** 2, weights=bend))
