"""Path scores to probabilities, fitted on validation rows.

The probability of a leaf is the softmax over leaves of β · (path score); β is the one number that
gives the true leaves of the validation rows the highest likelihood. How sure a search may be of the
one leaf it ends at, without looking at all others, is σ(slope · (path score) + offset), fitted to
whether validation rows ended at their true leaf.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import optimize, special

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[Any]

__all__ = ["UNCALIBRATED", "Calibration", "fit_calibration", "fit_temperature"]

BETA_RANGE = (np.exp(-4.0), np.exp(4.0))
BETA_ACCURACY = 1e-3
NEVER = -1e5  # instead of -inf, which times 0 is not a number; exp(NEVER β) is 0
PART_SIZE = 2**18  # scores worked on together: they stay in cache
# A pull of both numbers towards 0, for validation rows that are all right or all wrong.
RIDGE = 1e-3


@dataclass(frozen=True)
class Calibration:
    """Numbers that turn path scores into probabilities; the defaults take σ(θ·x) at its word.

    Attributes
    ----------
    beta : float
    slope, offset : float or None
        None where nothing was fitted: a search is then as sure as exp(path score).
    """

    beta: float = 1.0
    slope: float | None = None
    offset: float | None = None

    def probabilities(self, totals: FloatArray) -> FloatArray:
        """Return probabilities of leaves from their path scores, both (n_rows, n_leaves).

        Examples
        --------
        >>> Calibration().probabilities(np.log([[0.2, 0.2, 0.1]])).round(2).tolist()
        [[0.4, 0.4, 0.2]]
        """
        return special.softmax(self.beta * totals, axis=1)

    def confidence(self, totals: FloatArray) -> FloatArray:
        """Return how sure a search may be of leaves with these path scores."""
        if self.slope is None or self.offset is None:
            return np.exp(totals)
        return special.expit(self.slope * totals + self.offset)

    def to_json(self) -> dict[str, float | None]:
        """Return the numbers as JSON values."""
        return asdict(self)


UNCALIBRATED = Calibration()


def fit_temperature(
    totals: FloatArray, true: NDArray[np.integer[Any]], weight: FloatArray | None = None
) -> tuple[float, float]:
    """Return the β of highest likelihood, and the mean negative log likelihood with it.

    Parameters
    ----------
    totals : ndarray, shape (n_rows, n_leaves)
        Path scores; -inf for leaves that cannot be reached.
    true : ndarray of int, shape (n_rows,)
        Column of the true leaf; rows with -1 do not count.
    weight : ndarray, shape (n_rows,), optional
        What a row counts; all alike by default.

    Examples
    --------
    >>> beta, _ = fit_temperature(np.log([[0.8, 0.2]] * 4), np.array([0, 0, 0, 1]))
    >>> round(beta, 2)  # 0.8 was claimed, 0.75 was right
    0.79
    """
    own = np.where(true >= 0, totals[np.arange(true.size), true], -np.inf)
    counted = np.flatnonzero(np.isfinite(own))
    if not counted.size:
        return 1.0, float("nan")
    likelihood = _Likelihood.of(totals, own, counted, weight)
    (low, high), beta = BETA_RANGE, 1.0
    while True:
        loss, slope, bend = likelihood.at(beta)
        low, high = (low, beta) if slope > 0 else (beta, high)
        guess = beta - slope / bend if bend > 0 else np.nan
        following = guess if low < guess < high else np.sqrt(low * high)
        if abs(np.log(following / beta)) < BETA_ACCURACY:
            return float(beta), loss
        beta = following


@dataclass(frozen=True, eq=False)
class _Likelihood:
    """The mean negative log likelihood of β, and its derivatives.

    Rows are shifted to have 0 as their highest score, which changes no probability.
    """

    parts: list[FloatArray]  # float32 (some rows, n_leaves)
    own: FloatArray
    share: FloatArray  # of every row, adding up to 1

    @classmethod
    def of(
        cls,
        totals: FloatArray,
        own: FloatArray,
        counted: NDArray[np.int64],
        weight: FloatArray | None,
    ) -> _Likelihood:
        n_parts = -(-counted.size * totals.shape[1] // PART_SIZE)
        parts, shifts = [], []
        for rows in np.array_split(counted, n_parts):
            highest = totals[rows].max(axis=1, keepdims=True)
            parts.append(np.maximum(totals[rows] - highest, NEVER, dtype=np.float32))
            shifts.append(highest[:, 0])
        share = np.ones(counted.size) if weight is None else weight[counted].astype(np.float64)
        return cls(parts, own[counted] - np.concatenate(shifts), share / share.sum())

    def at(self, beta: float) -> tuple[float, float, float]:
        """Return loss, slope and curvature: log Σ exp(β t), and mean and variance of t by it."""
        found = np.concatenate([_moments(part, beta) for part in self.parts], axis=1)
        loss, mean, square = found @ self.share
        on_own = self.own @ self.share
        variance = square - (found[1] ** 2) @ self.share
        return float(loss - beta * on_own), float(mean - on_own), float(variance)


def _moments(scores: FloatArray, beta: float) -> FloatArray:
    """Return log Σ exp(β t) of every row, and mean and mean square of t by these weights."""
    weight = np.exp(np.float32(beta) * scores)
    total = weight.sum(axis=1, dtype=np.float64)
    weight *= scores
    mean = weight.sum(axis=1, dtype=np.float64) / total
    weight *= scores
    return np.array([np.log(total), mean, weight.sum(axis=1, dtype=np.float64) / total])


def fit_calibration(
    beta: float,
    totals: FloatArray,
    is_right: NDArray[np.bool_],
    weight: FloatArray | None = None,
) -> Calibration:
    """Return the calibration with this β for searches that ended at these path scores.

    Parameters
    ----------
    beta : float
    totals : ndarray, shape (n_rows,)
    is_right : ndarray of bool, shape (n_rows,)
        Whether the leaf reached was the true one.
    weight : ndarray, shape (n_rows,), optional
        What a row counts; 1 by default.
    """
    finite = np.isfinite(totals)
    x, y = totals[finite].astype(np.float64), is_right[finite].astype(np.float64)
    w = np.ones(x.size) if weight is None else weight[finite]
    if not x.size:
        return Calibration(beta)

    def loss(numbers: FloatArray) -> tuple[float, FloatArray]:
        z = numbers[0] * x + numbers[1]
        residual = w * (special.expit(z) - y)
        value = w @ (np.logaddexp(0.0, z) - y * z) + RIDGE * np.sum(numbers**2)
        slope = np.array([residual @ x, residual.sum()]) + 2 * RIDGE * numbers
        return float(value), slope

    best = optimize.minimize(
        loss, np.array([1.0, 0.0]), jac=True, method="L-BFGS-B", bounds=[(0.0, None), (None, None)]
    )
    return Calibration(beta, float(best.x[0]), float(best.x[1]))
