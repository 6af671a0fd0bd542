"""Newton's method with conjugate gradients for a block of logistic regressions at once.

Every column of a block is its own problem: its own step lengths, its own stopping. Nothing a column
does depends on its neighbours; they only share the passes over X.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit.bank.objective import stopping_threshold

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from taxofit.bank.kernels import Kernels
    from taxofit.bank.rows import Targets

    Array = NDArray[Any]

__all__ = ["BlockSolution", "SolverSettings", "solve_block"]

MAX_CG_STEPS = 250
CG_TOLERANCE = 0.1  # residual of a Newton system relative to its gradient, as liblinear has it
SUFFICIENT_DECREASE = 1e-4
MAX_HALVINGS = 40
# A column whose expected decrease is below this share of its objective is at its minimum as far as
# float32 margins can tell; the gradient rule alone could ask for more than their rounding allows.
RELATIVE_DECREASE = 1e-10


@dataclass(frozen=True, kw_only=True)
class SolverSettings:
    """How exactly, how long and how many at a time to solve.

    Attributes
    ----------
    tol : float
        liblinear's tolerance: see :func:`taxofit.bank.objective.stopping_threshold`.
    max_iter : int
        Newton steps after which a column is given up and reported.
    block_size : int
        Problems solved side by side. Memory grows with it, the cost of a pass per problem falls.
    """

    tol: float = 1e-4
    max_iter: int = 100
    block_size: int = 64


@dataclass(frozen=True, eq=False)
class BlockSolution:
    """Minimisers of a block, and what it took to find them.

    Attributes
    ----------
    weights : ndarray, shape (n_features, width)
    objective : ndarray of float64, shape (width,)
        f at the weights, on the training rows.
    converged : ndarray of bool, shape (width,)
    n_iterations : ndarray of int, shape (width,)
        Newton steps.
    """

    weights: Array
    objective: NDArray[np.float64]
    converged: NDArray[np.bool_]
    n_iterations: NDArray[np.int64]

    def take(self, columns: NDArray[np.int64]) -> BlockSolution:
        """Return the solution with these columns, in this order."""
        return BlockSolution(
            self.weights[:, columns],
            self.objective[columns],
            self.converged[columns],
            self.n_iterations[columns],
        )


def solve_block(
    kernels: Kernels,
    targets: Targets,
    cost: Array,
    settings: SolverSettings,
    start: Array | None = None,
) -> BlockSolution:
    """Return the minimisers of Σ_i cost_i log(1 + exp(-y_i θ·x_i)) + ½‖θ‖² for every column.

    Parameters
    ----------
    kernels : Kernels
        Operations on the rows.
    targets : Targets
        Labels of every problem.
    cost : ndarray of float64, shape (n_rows,)
        C times the weight of every row.
    settings : SolverSettings
    start : ndarray, shape (n_features, width), optional
        Where to begin; zero if not given.
    """
    state = _State(kernels, targets, cost, settings, start)
    while (active := state.unfinished()).size:
        state.newton_step(active)
    return BlockSolution(state.W, state.objective, state.converged, state.n_iterations)


class _State:
    """The block while it is being solved."""

    def __init__(
        self,
        kernels: Kernels,
        targets: Targets,
        cost: Array,
        settings: SolverSettings,
        start: Array | None,
    ) -> None:
        width = targets.n_problems
        self.kernels, self.targets, self.settings = kernels, targets, settings
        self.cost = cost.astype(kernels.dtype)
        at_zero = np.zeros((kernels.n_rows, width), dtype=kernels.dtype)
        slopes = kernels.derivatives(at_zero, targets, self.cost)[1]
        zero = np.zeros((kernels.n_features, width), dtype=kernels.dtype)
        norm_at_zero = _norms(kernels.gradient(zero, slopes))
        self.threshold = stopping_threshold(
            norm_at_zero, targets.n_positive(), kernels.n_rows, settings.tol
        )
        self.W = zero if start is None else start.astype(kernels.dtype, copy=True)
        self.Z = at_zero if start is None else kernels.margins(self.W)
        self.objective = np.full(width, np.inf)
        self.converged = np.zeros(width, dtype=bool)
        self.n_iterations = np.zeros(width, dtype=np.int64)

    def unfinished(self) -> NDArray[np.int64]:
        return np.flatnonzero(~self.converged & (self.n_iterations < self.settings.max_iter))

    def newton_step(self, active: NDArray[np.int64]) -> None:
        """Move the active columns along their Newton directions, or find that they are done."""
        kernels, targets = self.kernels, self.targets.take(active)
        W, Z = _columns(self.W, active), _columns(self.Z, active)
        losses, slopes, curvature = kernels.derivatives(Z, targets, self.cost)
        G = kernels.gradient(W, slopes)
        norms = _norms(G)
        objective = losses + 0.5 * _dots(W, W)
        self.objective[active] = objective
        done = norms <= self.threshold[active]
        P = self._newton_direction(G, curvature, np.where(done, np.inf, CG_TOLERANCE * norms))
        slope = _dots(G, P)
        done |= -slope <= RELATIVE_DECREASE * objective
        self.converged[active] = done
        self.n_iterations[active] += ~done
        if not done.all():
            step = self._line_search(W, P, Z, objective, np.where(done, 0.0, slope), targets)
            self.W[:, active] = W + step * P
            self.Z[:, active] = Z + step * self._XP

    def _newton_direction(self, G: Array, curvature: Array, goal: NDArray[np.float64]) -> Array:
        """Return P with ‖(I + XᵀDX) P + G‖ <= goal, by preconditioned conjugate gradients."""
        kernels = self.kernels
        prepared = kernels.prepare_preconditioner(curvature)
        P = np.zeros_like(G)
        R = -G
        S = kernels.precondition(R, prepared)
        V = S.copy()
        energy = _dots(R, S)
        running = _norms(R) > goal
        for _ in range(MAX_CG_STEPS):
            if not running.any():
                break
            HV = kernels.hessian_product(V, curvature)
            alpha = np.where(running, _quotient(energy, _dots(V, HV)), 0.0).astype(G.dtype)
            P += alpha * V
            R -= alpha * HV
            running &= _norms(R) > goal
            S = kernels.precondition(R, prepared)
            previous, energy = energy, _dots(R, S)
            V = S + _quotient(energy, previous).astype(G.dtype) * V
        return P

    def _line_search(
        self,
        W: Array,
        P: Array,
        Z: Array,
        objective: NDArray[np.float64],
        slope: NDArray[np.float64],
        targets: Targets,
    ) -> Array:
        """Return a step length for every column that decreases its objective enough.

        Margins and ½‖θ‖² are known along a direction, so a trial costs no product with X.
        """
        self._XP = XP = self.kernels.margins(P)
        ww, wp, pp = _dots(W, W), _dots(W, P), _dots(P, P)
        rounding = np.finfo(Z.dtype).eps * objective
        step = np.where(slope < 0, 1.0, 0.0)
        for _ in range(MAX_HALVINGS):
            trial = self.kernels.losses(Z + step.astype(Z.dtype) * XP, targets, self.cost)
            trial += 0.5 * (ww + 2 * step * wp + step**2 * pp)
            enough = trial <= objective + SUFFICIENT_DECREASE * step * slope + rounding
            if enough.all():
                break
            step = np.where(enough, step, 0.5 * step)
        return step.astype(Z.dtype)


def _columns(A: Array, active: NDArray[np.int64]) -> Array:
    return A if active.size == A.shape[1] else np.ascontiguousarray(A[:, active])


def _dots(A: Array, B: Array) -> NDArray[np.float64]:
    return np.einsum("ij,ij->j", A, B, dtype=np.float64)


def _norms(A: Array) -> NDArray[np.float64]:
    return np.sqrt(_dots(A, A))


def _quotient(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)
