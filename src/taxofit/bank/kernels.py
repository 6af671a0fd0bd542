"""What the solver asks of a device: a few array operations over a block of problems.

The solver is written once against :class:`Kernels`; sparse and dense data, CPU and GPU meet here
and nowhere else. Arrays are (n_features, width) for weights and (n_rows, width) for margins,
row-major, so that one non-zero of X meets ``width`` neighbouring numbers. They are opaque to the
solver: those of one kernels object go back to it only. *Vectors* have one float64 per column and
live where the arrays do.
"""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, Protocol

import joblib
import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.blas import dsyrk

from taxofit.bank import loops
from taxofit.bank.columns import prune_along
from taxofit.errors import DeviceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from taxofit.bank.rows import Rows, Targets
    from taxofit.bank.trend import Trend

    Array = Any  # NumPy's or torch's
    Floats = NDArray[np.float64]
    Columns = NDArray[np.int64]
    Device = Literal["auto", "cpu", "cuda", "torch-cpu"]

__all__ = ["DenseKernels", "Kernels", "find_device", "kernels_for"]


MAX_FACTORISED_FEATURES = 128
DENSE_BLOCK_SIZE = 512  # BLAS does the threading there: few large blocks
# Margins that a core works on at a time. The parts do not depend on how many cores there are, so
# neither does a sum over them.
PART_CELLS = 1 << 18
LARGEST_ROUGH = 1e30  # eigenvalue of XᵀX: squares of larger numbers do not fit into float32


class Kernels(Protocol):
    """Products with X and per-column arithmetic, for a block of problems at a time.

    A kernels object may solve for fewer features than the rows have, if it can tell the weights
    of the others from these at the end: see :meth:`full_weights`.
    """

    n_rows: int
    n_features: int

    @property
    def epsilon(self) -> float:
        """Relative rounding of margins."""

    @property
    def block_size(self) -> int | None:
        """Problems to solve side by side; None leaves it to the settings."""

    # ---- moving and shaping arrays

    def problems(self, targets: Targets, cost: Floats) -> Any:
        """Return labels and costs as the methods below want them."""

    def take_problems(self, problems: Any, columns: Columns) -> Any:
        """Return some of the problems."""

    def start(self, weights: Array | None, width: int) -> Array:
        """Return weights to begin from, (n_features, width): a copy of these, or zeros.

        They may be NumPy's, sparse, or those of the device.
        """

    def spread(self, weights: Array, chosen: NDArray[np.bool_]) -> Array:
        """Return full weights that are those of one column where chosen, and zero elsewhere."""

    def full_weights(self, W: Array, Z: Array, problems: Any) -> Array:
        """Return the weights of all features of the rows, given those of the solver's."""

    def take(self, A: Array, columns: Columns) -> Array:
        """Return some columns of an array or entries of a vector; A itself where it is all."""

    def put(self, A: Array, columns: Columns, B: Array) -> None:
        """Write B into some columns of A."""

    def vector(self, values: Floats) -> Array:
        """Return a vector on the device."""

    def to_host(self, vector: Array) -> NDArray[Any]:
        """Return a vector of the device as a NumPy array."""

    # ---- columns

    def dots(self, A: Array, B: Array) -> Array:
        """Return the dot product of every pair of columns, a vector."""

    def norms(self, A: Array) -> Array:
        """Return the length of every column, a vector."""

    def add_scaled(self, A: Array, scale: Array, B: Array) -> Array:
        """Return A + scale * B, which may take the place of A."""

    def scaled_sum(self, A: Array, scale: Array, B: Array) -> Array:
        """Return A + scale * B, which may take the place of B and never of A."""

    # ---- the problems

    def margins(self, W: Array) -> Array:
        """Return X W, shape (n_rows, width)."""

    def gradient_norms_at_zero(self, problems: Any) -> Floats:
        """Return ‖∇f(0)‖ of every column, over all features of the rows."""

    def losses(self, Z: Array, problems: Any, *, along: Array, step: Array) -> Floats:
        """Return Σ_i cost_i log(1 + exp(-y_i (z_i + step · along_i))), summed in float64."""

    def derivatives(self, Z: Array, problems: Any) -> tuple[Floats, Array, Array]:
        """Return the losses at Z, and their first and second derivatives by margin."""

    def gradient(self, W: Array, slopes: Array) -> Array:
        """Return W + Xᵀ slopes."""

    def hessian_product(self, V: Array, curvature: Array) -> Array:
        """Return V + Xᵀ (curvature * (X V))."""

    def prepare_preconditioner(self, curvature: Array) -> Any:
        """Return what :meth:`precondition` needs of this Hessian; :meth:`take` takes of it."""

    def precondition(self, R: Array, prepared: Any) -> Array:
        """Return an approximation of the inverse Hessian times R; it may be R itself."""

    def prune_along(
        self, W: Array, share: float, trend: Trend
    ) -> tuple[sparse.csc_array, NDArray[np.float32]]:
        """Return on the host what :func:`taxofit.bank.columns.prune_along` does."""

    # ---- other rows

    def scores(self, rows: Rows, weights: Array) -> NDArray[Any]:
        """Return θ·x of other rows on the host, for full weights on the device."""

    def judge(self, rows: Rows, targets: Targets, weights: Array) -> tuple[NDArray[Any], Floats]:
        """Return scores as above, and Σ weight_i log(1 + exp(-y_i θ·x_i)) of every column."""


class DenseKernels:
    """Dense rows on BLAS, in float64 but for products with the Hessians of wide ones.

    Narrow data (CLEF has 80 columns) factorises the Hessian of every column, so that one step of
    conjugate gradients is a Newton step. Wide data (embeddings) is preconditioned in the
    eigenbasis of XᵀX: with D replaced by its mean a, H = I + Xᵀ D X becomes Q (I + aΛ) Qᵀ, where
    XᵀX = Q Λ Qᵀ is found once for all problems, all C and all steps; what is left to conjugate
    gradients is only how the curvature varies between rows. A Newton system has to be solved to a
    tenth only, so products with it are float32's: each takes half the time. Where features are in
    units up to 10⁸ apart up to a fifth more of them are made (60 nodes of DIATOMS).
    """

    block_size = DENSE_BLOCK_SIZE

    def __init__(self, rows: Rows) -> None:
        self.n_rows, self.n_features = rows.X.shape
        self.dtype = np.dtype(np.float64)
        self._X = rows.X
        self._is_narrow = self.n_features <= MAX_FACTORISED_FEATURES
        self._rough = rows.X
        if not self._is_narrow:
            self._row_share = np.einsum("ij,ij->i", rows.X, rows.X)
            self._row_share /= max(self._row_share.sum(), np.finfo(np.float64).tiny)
            self._eigenvalues, self._eigenvectors = np.linalg.eigh(rows.X.T @ rows.X)
            if self._eigenvalues[-1] < LARGEST_ROUGH:
                self._rough = rows.X.astype(np.float32)

    def margins(self, W: Array) -> Array:
        return self._X @ W

    def gradient(self, W: Array, slopes: Array) -> Array:
        return W + self._X.T @ slopes

    def hessian_product(self, V: Array, curvature: Array) -> Array:
        X = self._rough
        pull = X @ V.astype(X.dtype)
        pull *= curvature
        return V + X.T @ pull

    def prepare_preconditioner(self, curvature: Array) -> Any:
        if self._is_narrow:
            return [self._factor(curvature[:, b]) for b in range(curvature.shape[1])]
        mean_curvature = self._row_share.astype(curvature.dtype) @ curvature
        return 1.0 / (1.0 + np.outer(np.maximum(self._eigenvalues, 0.0), mean_curvature))

    def precondition(self, R: Array, prepared: Any) -> Array:
        if self._is_narrow:
            solved = [cho_solve(factor, R[:, b]) for b, factor in enumerate(prepared)]
            return np.stack(solved, axis=1)
        return self._eigenvectors @ (prepared * (self._eigenvectors.T @ R))

    def _factor(self, curvature: Array) -> tuple[Array, bool]:
        scaled = np.sqrt(curvature)[:, None] * self._X
        hessian = dsyrk(1.0, scaled.T)  # upper triangle of Xᵀ D X
        hessian.flat[:: self.n_features + 1] += 1.0
        return cho_factor(hessian, overwrite_a=True, check_finite=False)

    @property
    def epsilon(self) -> float:
        return float(np.finfo(self.dtype).eps)

    def problems(self, targets: Targets, cost: Floats) -> tuple[Targets, Array]:
        return targets, cost.astype(self.dtype)

    def take_problems(self, problems: tuple[Targets, Array], columns: Columns) -> Any:
        targets, cost = problems
        return targets.take(columns), cost

    def start(self, weights: Array | None, width: int) -> Array:
        if weights is None:
            return np.zeros((self.n_features, width), dtype=self.dtype)
        weights = weights.toarray() if sparse.issparse(weights) else weights
        return weights.astype(self.dtype, order="C", copy=True)

    def spread(self, weights: Array, chosen: NDArray[np.bool_]) -> Array:
        return weights * chosen

    def full_weights(self, W: Array, Z: Array, problems: Any) -> Array:  # noqa: ARG002  (all are W)
        return W

    def take(self, A: Array, columns: Columns) -> Array:
        if isinstance(A, list):
            return [A[b] for b in columns]
        if A is None or columns.size == A.shape[-1]:
            return A
        return np.ascontiguousarray(A[..., columns])

    def put(self, A: Array, columns: Columns, B: Array) -> None:
        if columns.size == A.shape[1]:
            A[...] = B
        else:
            A[:, columns] = B

    def vector(self, values: Floats) -> Array:
        return values

    def to_host(self, vector: Array) -> NDArray[Any]:
        return vector

    def dots(self, A: Array, B: Array) -> Array:
        return np.einsum("ij,ij->j", A, B, dtype=np.float64)

    def norms(self, A: Array) -> Array:
        return np.sqrt(self.dots(A, A))

    def add_scaled(self, A: Array, scale: Array, B: Array) -> Array:
        return A + scale.astype(self.dtype) * B

    scaled_sum = add_scaled

    def prune_along(
        self, W: Array, share: float, trend: Trend
    ) -> tuple[sparse.csc_array, NDArray[np.float32]]:
        return prune_along(W, share, trend)

    def gradient_norms_at_zero(self, problems: tuple[Targets, Array]) -> Floats:
        targets, _ = problems
        at_zero = np.zeros((self.n_rows, targets.n_problems), dtype=self.dtype)
        slopes = self.derivatives(at_zero, problems)[1]
        norms: Floats = self.norms(self.gradient(self.start(None, targets.n_problems), slopes))
        return norms

    def losses(
        self, Z: Array, problems: tuple[Targets, Array], *, along: Array, step: Array
    ) -> Floats:
        targets, cost = problems

        def add_up(part: slice) -> Floats:
            row_class = targets.row_class[part]
            return loops.losses(Z[part], along[part], step, row_class, targets.table, cost[part])

        return _sum_over_parts(Z, add_up)

    def derivatives(self, Z: Array, problems: tuple[Targets, Array]) -> tuple[Floats, Array, Array]:
        targets, cost = problems
        slopes, curvature = np.empty_like(Z), np.empty(Z.shape, dtype=self._rough.dtype)

        def fill_in(part: slice) -> Floats:
            rows = (targets.row_class[part], targets.table, cost[part])
            return loops.derivatives(Z[part], *rows, slopes[part], curvature[part])

        return _sum_over_parts(Z, fill_in), slopes, curvature

    def scores(self, rows: Rows, weights: Array) -> NDArray[Any]:
        return rows.X @ weights

    def judge(self, rows: Rows, targets: Targets, weights: Array) -> tuple[NDArray[Any], Floats]:
        scores = self.scores(rows, weights)
        losses = np.logaddexp(0.0, -targets.signs() * scores.astype(np.float64))
        return scores, rows.weight @ losses


def _sum_over_parts(Z: Array, work: Callable[[slice], Floats]) -> Floats:
    """Return the sum, in their order, of what work gives for parts of the rows, on all cores."""
    step = max(1, PART_CELLS // max(1, Z.shape[1]))
    parts = [slice(first, first + step) for first in range(0, Z.shape[0], step)]
    if len(parts) <= 1:
        return work(slice(None))
    with ThreadPoolExecutor(joblib.cpu_count()) as pool:
        total: Floats = np.sum(list(pool.map(work, parts)), axis=0)
    return total


def kernels_for(rows: Rows, device: Device = "cpu") -> Kernels:
    """Return the kernels that suit these rows on a device that :func:`find_device` gave.

    Sparse rows on the plain CPU have none: they go to :class:`~taxofit.bank.lanes.LaneSolver`.
    """
    if device == "cpu":
        if rows.is_sparse:
            raise ValueError("sparse rows on the CPU are solved by LaneSolver; use solver_for")
        return DenseKernels(rows)
    from taxofit.bank.torch_kernels import TorchKernels

    return TorchKernels(rows, "cpu" if device == "torch-cpu" else "cuda")


def find_device(device: Device) -> Device:
    """Return the device that is meant: ``"cpu"``, ``"cuda"`` or ``"torch-cpu"``.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda", "torch-cpu"}
        ``"cuda"`` is torch on a GPU, ``"auto"`` that if there is one, and the CPU if not.
        ``"torch-cpu"`` runs the GPU's code on the CPU, which is for tests.
    """
    if device not in ("auto", "cpu", "cuda", "torch-cpu"):
        raise DeviceError(f"device must be 'auto', 'cpu' or 'cuda', but is {device!r}")
    if device == "auto":
        return "cuda" if _has_driver() and _why_no_gpu() is None else "cpu"
    if device == "cuda" and (reason := _why_no_gpu()) is not None:
        raise DeviceError(f"device='cuda' cannot be used: {reason}; use device='cpu' or 'auto'")
    return device


def _has_driver() -> bool:
    """Return whether NVIDIA's driver is there; importing torch to ask takes seconds."""
    for name in ("libcuda.so.1", "nvcuda.dll"):
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return True
    return False


def _why_no_gpu() -> str | None:
    """Return what keeps torch from using a GPU; None if nothing does."""
    if find_spec("torch") is None:
        return "torch is not installed (pip install 'taxofit[gpu]')"
    import torch

    if not torch.cuda.is_available():
        return f"torch {torch.__version__} sees no GPU"
    return None
