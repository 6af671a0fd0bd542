"""What the lanes know: plain arrays and records that the compiled loops share.

Loops are handed what they read and no more: every array of a tuple is work for the compiler at
every call.

m counts the shared features and the constant, n the rows; a lane is one of sixteen problems.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from taxofit.bank.lane_margins import FAR_BELOW, LEAST_PULL

__all__ = [
    "LANE",
    "Base",
    "BaseRows",
    "FeatureLanes",
    "LightRows",
    "Problems",
    "RowEntries",
    "RowLanes",
    "RowsOfClasses",
    "SharedColumns",
    "SharedRows",
    "Starts",
]

# Rows of the small arrays that say what every lane does, and of those that say what came out.
CURVING, EVALUATING, CONJUGATING, STARTING, ACCEPTING, TRYING, FRESH = range(7)
CAUTIOUS, EVALUATED, ENDING = 7, 8, 9
N_MASKS = 10
ALPHA, BETA, LENGTH, MEAN_SHARE, CONSTANT_PRODUCT, ONWARD = range(6)
N_COEFFICIENTS = 6
ENERGY, ON_CONSTANT, LOSS, RESIDUAL, SCALED_RESIDUAL, STEP, GRADIENT, SLOPE, NORM = range(9)
DIRECTION, LIGHT_MASS, ON_MEAN, STEP_ON_MEAN, STEP_SPREAD = range(9, 14)
N_TOTALS = 14

STRETCH = 128  # rows of a float32 sum
# Of a row's curvature at most this counts for the mass of light rows. From 0.01 to 0.1 it makes
# no difference on NAICS.
LIGHT = 0.03
# Evaluations from the base, the first included, in which rows on the wrong side count with the
# curvature that they will meet, which saves evaluations at large C.
N_CAUTIOUS = 2
# The light rows of a lane come to weigh about so many times what they do at the all-negative
# solution: 5 in the median on NAICS at C = 10, and 50 for its largest nodes. A scale of its own for
# every lane saves up to 4 % of the products there, and makes its vectors five instead of four.
SCALE_MASS = 8.0

# What a lane waits for.
IDLE, AT_BASE, TO_EVALUATE, TO_CURVE, FINISHED = range(5)

LANE = np.dtype(
    [
        ("mode", np.int64),
        ("problem", np.int64),
        ("is_last", np.int64),  # whatever the evaluation says, there is nothing left to gain
        ("is_bent", np.int64),  # whether the trial goes beyond the step, see `lane_step_end`
        ("start", np.int64),  # which of the starts it began at; -1 at the base
        ("converged", np.int64),
        ("n_newton", np.int64),
        ("n_conjugate", np.int64),
        ("n_trials", np.int64),
        ("n_passes", np.int64),
        ("target", np.float64),  # gradient norm to reach
        ("decrease", np.float64),  # gain still allowed, relative to the objective
        ("norm", np.float64),  # of the step
        ("radius", np.float64),  # longest step to trust
        ("loss", np.float64),  # at the base
        ("mass", np.float64),  # curvatures of light rows added up
        ("objective", np.float64),
        ("gradient", np.float64),  # its norm
        ("residual", np.float64),  # norm, of the Newton system
        ("rate", np.float64),  # what the last step of conjugate gradients left of the residual
        ("forcing", np.float64),  # root of the energy to reach, relative to the first
        ("first_energy", np.float64),  # r·M r at the start of the system, M the preconditioner
        ("energy", np.float64),  # r·M r
        ("direction", np.float64),  # v·v
        ("gain", np.float64),  # -g·s of the step so far
        ("length", np.float64),  # of the trial, in Newton steps
    ]
)


class RowEntries(NamedTuple):
    """Shared features of rows in CSR, the constant column apart."""

    indptr: np.ndarray  # uint64 (n + 1,)
    indices: np.ndarray  # uint32
    values: np.ndarray  # float32
    frequent_stop: np.ndarray  # uint64 (n,): where entries of rare features begin
    constant: np.ndarray  # float32 (1,): 1, or 0 where there is no constant column
    common: np.ndarray = np.zeros(0, dtype=np.float32)  # (m,): what some rows have beside these
    n_common: int = 0  # how many rows that are, the first ones


class SharedRows(NamedTuple):
    """Rows, and what stands for their private features."""

    entries: RowEntries
    private_square: np.ndarray  # float32 (n,): s²
    cost: np.ndarray  # float32 (n,): c
    private_cost: np.ndarray  # float32 (n,): k = c s²
    log_private_cost: np.ndarray  # float32 (n,): ln k; 0 where k is
    far_below: np.ndarray  # float32 (n,): x·w up to which a negative row is far below zero

    @classmethod
    def of(cls, entries: RowEntries, private_square: np.ndarray, cost: np.ndarray) -> SharedRows:
        """Return rows, all that follows from these included."""
        private_cost = cost * private_square
        log_private_cost = np.log(np.where(private_cost > 0, private_cost, 1.0))
        far_below = np.minimum(FAR_BELOW, LEAST_PULL - log_private_cost)
        known = (private_square, cost, private_cost, log_private_cost, far_below)
        return cls(entries, *(a.astype(np.float32) for a in known))


class SharedColumns(NamedTuple):
    """The same entries by column, as :mod:`taxofit.bank.lane_tiles` arranges them.

    First come the tiled columns in the first tile of rows, then those in the next, and so on, then
    all other columns, and last that of the constant, which has none.
    """

    indptr: np.ndarray  # uint64 (n_tiles * n_tiled + m - n_tiled + 1,)
    indices: np.ndarray  # uint32: rows
    values: np.ndarray  # float32
    n_frequent: int
    n_tiles: int
    n_tiled: int  # of the frequent ones; 0 where there is one tile


class RowsOfClasses(NamedTuple):
    """The rows of every class, one class after the other: problems are told in classes."""

    indptr: np.ndarray  # int64 (n_classes + 1,)
    rows: np.ndarray  # int64 (n,)

    @classmethod
    def of(cls, row_class: np.ndarray, n_classes: int) -> RowsOfClasses:
        """Return them, given the class of every row."""
        sizes = np.bincount(row_class, minlength=n_classes)
        short = row_class.astype(np.min_scalar_type(n_classes))  # for a radix sort
        return cls(np.append(0, np.cumsum(sizes)), np.argsort(short, kind="stable"))


class Problems(NamedTuple):
    """Binary problems over the same rows."""

    classes: RowsOfClasses
    tables: np.ndarray  # int8 (width, n_classes): above 0 where a class is positive in a problem
    n_positive: np.ndarray  # int64 (width,)
    gradient: np.ndarray  # float64 (width,): norm to reach
    decrease: float  # what Newton may still expect to gain there, relative to the objective
    max_iter: int


class Starts(NamedTuple):
    """Weights that problems begin from instead of the base."""

    weights: np.ndarray  # float32 (n_starts, n_columns)
    columns: np.ndarray  # int64 (n_columns,): those of m that these are
    rest: np.ndarray  # float32 (n_starts,): what all others are, times those of the base
    place: np.ndarray  # int64 (width,): the row of every problem; -1 for those that begin there

    @classmethod
    def of_all(cls, weights: np.ndarray) -> Starts:
        """Return all weights of all problems, float32 (width, m), as starts."""
        width, n_columns = weights.shape
        rest = np.ones(width, dtype=np.float32)  # there are none
        return cls(weights, np.arange(n_columns), rest, np.arange(width))

    @classmethod
    def at_base(cls, width: int) -> Starts:
        """Return that all problems begin at the base."""
        weights, none = np.zeros((0, 0), dtype=np.float32), np.zeros(0, dtype=np.int64)
        return cls(weights, none, np.zeros(0, dtype=np.float32), np.full(width, -1))


class BaseRows(NamedTuple):
    """What every row is at the base."""

    linear: np.ndarray  # float32 (n,): x·w
    slope: np.ndarray  # float32 (n,): c σ(z)
    curvature: np.ndarray  # float32 (n,): the reduced D


class LightRows(NamedTuple):
    """What rows have in common at the base, weighted by curvature; see `lane_heavy_rows`."""

    mean: np.ndarray  # float32 (m,): row
    spread: np.ndarray  # float32 (m,): variance of every feature about it
    scale: np.ndarray  # float32 (m,): M of the preconditioner
    mean_square: float  # μ·M μ of the mean row

    @classmethod
    def of(cls, mean: np.ndarray, spread: np.ndarray, mass: float) -> LightRows:
        """Return mean and spread, and what follows from them for rows of this mass."""
        mean, spread = mean.astype(np.float32), spread.astype(np.float32)
        scale = (1 / (1 + SCALE_MASS * mass * spread)).astype(np.float32)
        return cls(mean, spread, scale, float(np.sum(scale * np.square(mean, dtype=np.float64))))


class Base(NamedTuple):
    """A point to start from, every row negative there; features include the constant."""

    weights: np.ndarray  # float32 (m,)
    gradient: np.ndarray  # float32 (m,)
    rows: BaseRows
    light: LightRows
    mass: float  # sum of curvatures
    loss: float


class RowLanes(NamedTuple):
    """What every lane knows of every row."""

    curvature: np.ndarray  # float32 (n, 16): the reduced D
    pull: np.ndarray  # float32 (n, 16): what the last pass leaves for Xᵀ to multiply
    positive: np.ndarray  # uint16 (n,): bit l is the label in lane l


class FeatureLanes(NamedTuple):
    """Vectors of every lane, each float32 (m, 16) but the last."""

    point: np.ndarray  # δ
    step: np.ndarray  # of Newton, as far as conjugate gradients have come
    direction: np.ndarray  # what the next pass multiplies: a CG direction, or the point to evaluate
    residual: np.ndarray  # of the Newton system; minus the gradient when it starts
    product: np.ndarray  # with Xᵀ, of tiled features
