r"""The objective of one node, in plain NumPy float64: the truth that every solver is held to.

For node n, rows i with weights s_i and labels y_i = +1 under the node, -1 elsewhere:

.. math:: f(\theta) = C \sum_i s_i \log(1 + \exp(-y_i\,\theta\cdot x_i)) + \tfrac12 \|\theta\|^2

A sum over rows, not a mean. The intercept is the weight of a constant feature 1 and is regularised
like any other, as liblinear's ``-B 1`` does; nothing here treats it apart. The same formula gives
the paper's f\ :sup:`*`: solve on training rows, evaluate on validation rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

__all__ = [
    "allowed_gain",
    "gradient",
    "hessian_product",
    "log_loss",
    "objective",
    "stopping_threshold",
]


def log_loss(margins: ArrayLike) -> Array:
    """Return log(1 + exp(-m)) of signed margins m = y θ·x, without overflow.

    Examples
    --------
    >>> log_loss([0.0, 1000.0, -1000.0]).round(3).tolist()
    [0.693, 0.0, 1000.0]
    """
    margins = np.asarray(margins, dtype=np.float64)
    return np.logaddexp(0.0, -margins)


def objective(
    theta: ArrayLike, X: Any, y: ArrayLike, C: float, sample_weight: ArrayLike | None = None
) -> float:
    """Return f(θ) for labels y in {-1, +1}; X is dense or sparse and holds the constant feature.

    Examples
    --------
    >>> round(objective([0.0, 0.0], [[1.0, 1.0], [2.0, 1.0]], [1, -1], C=1.0), 4)
    1.3863
    """
    theta, y = np.asarray(theta, dtype=np.float64), np.asarray(y)
    losses = log_loss(y * (_matrix(X) @ theta))
    return float(C * (losses @ _weights(sample_weight, y)) + 0.5 * theta @ theta)


def gradient(
    theta: ArrayLike, X: Any, y: ArrayLike, C: float, sample_weight: ArrayLike | None = None
) -> Array:
    """Return the gradient of f at θ, shape (d,)."""
    theta, y, X = np.asarray(theta, dtype=np.float64), np.asarray(y), _matrix(X)
    slopes = -y * _sigmoid(-y * (X @ theta)) * _weights(sample_weight, y)
    return theta + C * (X.T @ slopes)


def hessian_product(
    theta: ArrayLike,
    v: ArrayLike,
    X: Any,
    y: ArrayLike,
    C: float,
    sample_weight: ArrayLike | None = None,
) -> Array:
    """Return (I + C Xᵀ D X) v at θ, with D the rows' σ(m)(1 - σ(m)), shape (d,)."""
    theta, v, y, X = (
        np.asarray(theta, np.float64),
        np.asarray(v, np.float64),
        np.asarray(y),
        _matrix(X),
    )
    m = y * (X @ theta)
    curvature = _sigmoid(m) * _sigmoid(-m) * _weights(sample_weight, y)
    return v + C * (X.T @ (curvature * (X @ v)))


def stopping_threshold(
    gradient_norm_at_zero: ArrayLike, n_positive: ArrayLike, n_rows: int, tol: float
) -> Array:
    """Return the gradient norm at which liblinear's primal solver stops.

    tol · max(min(n_positive, n_negative), 1) / n_rows · ‖∇f(0)‖: rarer classes are solved to a
    finer tolerance, so that comparisons with liblinear at the same ``tol`` are fair.
    """
    n_positive = np.asarray(n_positive, dtype=np.float64)
    rarer = np.maximum(np.minimum(n_positive, n_rows - n_positive), 1.0)
    return tol * rarer / n_rows * np.asarray(gradient_norm_at_zero, dtype=np.float64)


def allowed_gain(tol: float) -> float:
    """Return what Newton may still expect to gain where a solver stops, relative to the objective.

    liblinear's rule does without it. It can be far from the minimum at large C, where a small
    gradient along directions of little curvature is much to gain: at C = 1000 nodes of DIATOMS
    were up to 9e-4 above it, and one of a web directory 2e-4 above where liblinear itself stopped.
    """
    return 1e-2 * tol


def _sigmoid(m: Array) -> Array:
    return np.exp(-np.logaddexp(0.0, -m))


def _matrix(X: Any) -> Any:
    return X.astype(np.float64) if hasattr(X, "tocsr") else np.asarray(X, dtype=np.float64)


def _weights(sample_weight: ArrayLike | None, y: NDArray[Any]) -> Array:
    return np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
