"""Newton's method with conjugate gradients for a block of logistic regressions at once.

Every column of a block is its own problem: its own step lengths, its own stopping. Nothing a column
does depends on its neighbours; they only share the passes over X. Columns that are done leave the
block, between Newton steps and within a step's conjugate gradients.

Arrays with a column per problem belong to the kernels, in the memory of their device, and are
only passed from one kernel to the next here. Vectors with a number per problem are NumPy's or
torch's; what decides how to go on is brought to the host, once for each step of conjugate
gradients.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit.bank.column_loops import norms_of_rows
from taxofit.bank.columns import prune_along
from taxofit.bank.objective import allowed_gain, stopping_threshold
from taxofit.bank.rows import Targets
from taxofit.bank.stopping import StopFlag

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy import sparse

    from taxofit.bank.kernels import Kernels
    from taxofit.bank.rows import Rows
    from taxofit.bank.trend import Trend

    Array = Any  # NumPy's or torch's
    Floats = NDArray[np.float64]
    Columns = NDArray[np.int64]

__all__ = ["BlockSolution", "SolverSettings", "has_rare", "solve_all_negative", "solve_block"]

MAX_CG_STEPS = 250
CG_TOLERANCE = 0.1  # residual of a Newton system relative to its gradient, as liblinear has it
SUFFICIENT_DECREASE = 1e-4
MAX_HALVINGS = 40
# A column whose expected decrease is below this share of its objective is at its minimum as far as
# float32 margins can tell; the gradient rule alone could ask for more than their rounding allows.
RELATIVE_DECREASE = 1e-10
REPACKED_SHARE = 0.75  # of a block's columns: with fewer left to work on, copying them apart pays
JUDGED_CELLS = 1 << 22  # scores whose losses are added up at a time
RARE_SHARE = 0.02  # of the rows: problems with fewer positive ones are nearly 'all negative'


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
    device_weights : ndarray or torch.Tensor, shape (n_features, n_solved)
        Where they were solved.
    objective : ndarray of float64, shape (width,)
        f at the weights, on the training rows.
    converged : ndarray of bool, shape (width,)
    n_iterations : ndarray of int, shape (width,)
        Newton steps.
    kernels : Kernels, optional
        Those of the device that the weights are on; None for plain NumPy.
    n_products : int
        Products of X or Xᵀ with a vector, over all columns.
    columns : ndarray of int, shape (width,), optional
        Where the weights of each column are among those solved; None if they are the same.
    """

    device_weights: Array
    objective: Floats
    converged: NDArray[np.bool_]
    n_iterations: NDArray[np.int64]
    kernels: Kernels | None = None
    n_products: int = 0
    columns: Columns | None = None

    @property
    def weights(self) -> NDArray[Any]:
        """The weights as a NumPy array; copied from the device at each use, if it is another.

        A column's weights then lie together.
        """
        W = self._own_weights()
        return W if isinstance(W, np.ndarray) else W.T.contiguous().cpu().numpy().T

    def scores(self, rows: Rows) -> NDArray[Any]:
        """Return θ·x of other rows for every column, shape (n_rows, width), made on the device."""
        kernels, W = self.kernels, self.device_weights
        return self._own(rows.X @ W if kernels is None else kernels.scores(rows, W))

    def judge(self, rows: Rows, targets: Targets) -> tuple[NDArray[Any], Floats]:
        """Return the scores of other rows and Σ weight · log-loss of every column over them."""
        if self.kernels is not None:
            return self.kernels.judge(rows, targets, self._own_weights())
        scores = self.scores(rows)
        losses, n_judged = np.zeros(scores.shape[1]), max(1, JUDGED_CELLS // scores.shape[1])
        for start in range(0, rows.n_rows, n_judged):
            part = slice(start, start + n_judged)
            signs = targets.table[targets.row_class[part]]
            judged = np.logaddexp(0.0, -signs * scores[part].astype(np.float64))
            # Not BLAS, whose sums depend on how many threads it has.
            losses += np.einsum("i,ij->j", rows.weight[part], judged)
        return scores, losses

    def weight_norms(self) -> Floats:
        """Return ‖θ‖ of every column."""
        kernels, W = self.kernels, self.device_weights
        if kernels is None:
            return self._own(norms_of_rows(W.T))
        return self._own(kernels.to_host(kernels.norms(W)))

    def weights_of(self, feature: int) -> NDArray[Any]:
        """Return the weight of one feature in every column."""
        W = self.device_weights[feature]
        return self._own(W if self.kernels is None else self.kernels.to_host(W))

    def pruned(
        self, share: float, trend: Trend, n_threads: int = 1
    ) -> tuple[sparse.csc_array, NDArray[np.float32]]:
        """Return what the weights of a trend's features are beside it, pruned, and the slopes.

        As :func:`~taxofit.bank.columns.prune_along`, where the weights are: few have to leave a
        device.
        """
        W = self.device_weights
        if self.kernels is None:
            left, slopes = prune_along(W, share, trend, n_threads)
        else:
            left, slopes = self.kernels.prune_along(W[: trend.steps.size], share, trend)
        return (left if self.columns is None else left[:, self.columns]), self._own(slopes)

    def take(self, columns: Columns) -> BlockSolution:
        """Return the solution with these columns, in this order; weights are not copied yet."""
        return replace(
            self,
            objective=self.objective[columns],
            converged=self.converged[columns],
            n_iterations=self.n_iterations[columns],
            columns=self._own(np.arange(self.device_weights.shape[1]))[columns],
        )

    def _own(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return these columns of what was made of all weights."""
        return array if self.columns is None else array[..., self.columns]

    def _own_weights(self) -> Array:
        kernels, W, columns = self.kernels, self.device_weights, self.columns
        if columns is None or np.array_equal(columns, np.arange(W.shape[1])):
            return W
        # A lane's weights lie together: copied as rows, 256 of NAICS take 8 ms and not 128.
        return W.T[columns].T if kernels is None else kernels.take(W, columns)


def solve_block(
    kernels: Kernels,
    targets: Targets,
    cost: Floats,
    settings: SolverSettings,
    start: Array | None = None,
    *,
    common: Array | None = None,
    stop: StopFlag | None = None,
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
    start : ndarray or device weights, shape (n_features, width), optional
        Where to begin; zero if not given.
    common : ndarray or device weights, shape (n_features, 1), optional
        Where columns with few positive rows begin, if ``start`` is not given: the weights of
        :func:`solve_all_negative`.
    stop : StopFlag, optional
        Looked at in every step; where it is set, :class:`~taxofit.bank.stopping.Stopped` is raised.
    """
    stop = StopFlag() if stop is None else stop
    if start is None and common is not None:
        start = kernels.spread(common, _is_rare(targets))
    state = _Block(kernels, targets, cost, settings, start)
    while (active := state.unfinished()).size:
        state.newton_step(active, stop)
    return state.solution()


def has_rare(targets: Targets) -> bool:
    """Return whether any problem is nearly 'all negative'."""
    return bool(_is_rare(targets).any())


def _is_rare(targets: Targets) -> NDArray[np.bool_]:
    return targets.n_positive() < RARE_SHARE * targets.row_class.size


def solve_all_negative(
    kernels: Kernels, cost: Floats, settings: SolverSettings, stop: StopFlag | None = None
) -> BlockSolution:
    """Return the one model to which every row is negative: where the models of rare nodes start.

    Making n rows positive changes its gradient by -cost_i x_i of these rows and nothing else.
    """
    nothing = Targets(np.zeros(kernels.n_rows, dtype=np.int32), np.array([[-1]], dtype=np.int8))
    return solve_block(kernels, nothing, cost, settings, stop=stop)


class _Block:
    """The block while it is being solved."""

    def __init__(
        self,
        kernels: Kernels,
        targets: Targets,
        cost: Floats,
        settings: SolverSettings,
        start: Array | None,
    ) -> None:
        width = targets.n_problems
        self.kernels, self.settings = kernels, settings
        self.problems = kernels.problems(targets, cost)
        self.threshold = stopping_threshold(
            kernels.gradient_norms_at_zero(self.problems),
            targets.n_positive(),
            kernels.n_rows,
            settings.tol,
        )
        self.W = kernels.start(start, width)
        self.Z = kernels.margins(self.W)
        self.objective = np.full(width, np.inf)
        self.converged = np.zeros(width, dtype=bool)
        self.n_iterations = np.zeros(width, dtype=np.int64)
        self.n_products = (1 + (start is not None)) * width

    def unfinished(self) -> Columns:
        return np.flatnonzero(~self.converged & (self.n_iterations < self.settings.max_iter))

    def solution(self) -> BlockSolution:
        return BlockSolution(
            self.kernels.full_weights(self.W, self.Z, self.problems),
            self.objective,
            self.converged,
            self.n_iterations,
            self.kernels,
            self.n_products,
        )

    def newton_step(self, active: Columns, stop: StopFlag) -> None:
        """Move the active columns along their Newton directions, or find that they are done."""
        stop.check()
        kernels = self.kernels
        W, Z = kernels.take(self.W, active), kernels.take(self.Z, active)
        problems = kernels.take_problems(self.problems, active)
        losses, slopes, curvature = kernels.derivatives(Z, problems)
        G = kernels.gradient(W, slopes)
        del slopes
        norms = kernels.to_host(kernels.norms(G))
        objective = losses + 0.5 * kernels.to_host(kernels.dots(W, W))
        self.objective[active] = objective
        self.n_products += active.size
        gain = allowed_gain(self.settings.tol) * objective
        is_small = norms <= self.threshold[active]
        # No eigenvalue of the Hessian is below 1: nothing can gain more than ½‖G‖².
        done = is_small & (0.5 * norms**2 <= gain)
        if done.all():
            self.converged[active] = True
            return
        P, n_steps = _newton_direction(
            kernels, G, curvature, np.where(done, np.inf, CG_TOLERANCE * norms), stop
        )
        self.n_products += 2 * n_steps
        slope = kernels.to_host(kernels.dots(G, P))
        done |= is_small & (-0.5 * slope <= gain)
        done |= -slope <= RELATIVE_DECREASE * objective
        self.converged[active] = done
        self.n_iterations[active] += ~done
        if not done.all():
            XP = kernels.margins(P)
            self.n_products += active.size
            step = kernels.vector(
                _line_search(
                    kernels, (W, P), (Z, XP), problems, objective, np.where(done, 0.0, slope)
                )
            )
            kernels.put(self.W, active, kernels.add_scaled(W, step, P))
            kernels.put(self.Z, active, kernels.add_scaled(Z, step, XP))


def _newton_direction(
    kernels: Kernels, G: Array, curvature: Array, goal: Floats, stop: StopFlag
) -> tuple[Array, int]:
    """Return P with ‖(I + XᵀDX) P + G‖ <= goal of every column, and all columns' steps.

    Preconditioned conjugate gradients; columns that reached their goal are left out of later steps.
    """
    system = _NewtonSystem(kernels, G, curvature, goal)
    directions = kernels.start(None, G.shape[1])
    columns, n_steps = np.arange(G.shape[1]), 0
    for _ in range(MAX_CG_STEPS):
        stop.check()
        running = system.running()
        if not running.any():
            break
        if running.mean() < REPACKED_SHARE:
            kernels.put(directions, columns, system.P)
            system.keep(np.flatnonzero(running))
            columns = columns[running]
        system.step()
        n_steps += columns.size
    kernels.put(directions, columns, system.P)
    return directions, n_steps


class _NewtonSystem:
    """(I + XᵀDX) P = -G by conjugate gradients: residual R, search direction V, S = M⁻¹R."""

    def __init__(self, kernels: Kernels, G: Array, curvature: Array, goal: Floats) -> None:
        self.kernels, self.curvature = kernels, curvature
        self.prepared = kernels.prepare_preconditioner(curvature)
        self.P = kernels.start(None, G.shape[1])
        self.R = -G
        S = kernels.precondition(self.R, self.prepared)
        self.V = S + 0.0  # S may be R itself, which changes
        self.energy = kernels.dots(self.R, S)
        self.goal = kernels.vector(goal)
        self.is_running = kernels.norms(self.R) > self.goal

    def running(self) -> NDArray[np.bool_]:
        return self.kernels.to_host(self.is_running)

    def step(self) -> None:
        kernels = self.kernels
        HV = kernels.hessian_product(self.V, self.curvature)
        alpha = _quotient(self.energy, kernels.dots(self.V, HV)) * self.is_running
        self.P = kernels.add_scaled(self.P, alpha, self.V)
        self.R = kernels.add_scaled(self.R, -alpha, HV)
        del HV
        self.is_running = self.is_running & (kernels.norms(self.R) > self.goal)
        S = kernels.precondition(self.R, self.prepared)
        previous, self.energy = self.energy, kernels.dots(self.R, S)
        self.V = kernels.scaled_sum(S, _quotient(self.energy, previous), self.V)

    def keep(self, columns: Columns) -> None:
        """Go on with these columns only."""
        take = self.kernels.take
        self.P, self.R, self.V = (take(A, columns) for A in (self.P, self.R, self.V))
        self.curvature, self.prepared = (take(A, columns) for A in (self.curvature, self.prepared))
        self.energy, self.goal = take(self.energy, columns), take(self.goal, columns)
        self.is_running = take(self.is_running, columns)


def _line_search(
    kernels: Kernels,
    weights: tuple[Array, Array],
    margins: tuple[Array, Array],
    problems: Any,
    objective: Floats,
    slope: Floats,
) -> Floats:
    """Return a step length for every column that decreases its objective enough.

    Margins and ½‖θ‖² are known along a direction, so a trial costs no product with X.
    """
    (W, P), (Z, XP) = weights, margins
    ww, wp, pp = (kernels.to_host(kernels.dots(A, B)) for A, B in ((W, W), (W, P), (P, P)))
    rounding = kernels.epsilon * objective
    step = np.where(slope < 0, 1.0, 0.0)
    for _ in range(MAX_HALVINGS):
        trial = kernels.losses(Z, problems, along=XP, step=kernels.vector(step))
        trial += 0.5 * (ww + 2 * step * wp + step**2 * pp)
        enough = trial <= objective + SUFFICIENT_DECREASE * step * slope + rounding
        if enough.all():
            break
        step = np.where(enough, step, 0.5 * step)
    return step


def _quotient(a: Array, b: Array) -> Array:
    """Return a / b, and 0 where b is not positive."""
    positive = b > 0
    return a * positive / (b * positive + ~positive)
