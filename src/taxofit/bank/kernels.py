"""What the solver asks of a device: a few array operations over a block of problems.

The solver is written once against :class:`Kernels`; sparse and dense data, CPU and GPU meet here and
nowhere else. Arrays are (n_features, width) for weights and (n_rows, width) for margins, row-major, so
that one non-zero of X meets ``width`` neighbouring numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.blas import dsyrk

from taxofit.bank import loops

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from taxofit.bank.rows import Rows, Targets

    Array = NDArray[Any]

__all__ = ["DenseKernels", "Kernels", "SparseKernels", "kernels_for"]


MAX_FACTORISED_FEATURES = 128


class Kernels(Protocol):
    """Products with X and per-column arithmetic, for a block of problems at a time."""

    n_rows: int
    n_features: int
    dtype: np.dtype[Any]

    def margins(self, W: Array) -> Array:
        """Return X W, shape (n_rows, width)."""

    def losses(self, Z: Array, targets: Targets, cost: Array) -> NDArray[np.float64]:
        """Return Σ_i cost_i log(1 + exp(-y_i z_i)) of every column, summed in float64."""

    def derivatives(
        self, Z: Array, targets: Targets, cost: Array
    ) -> tuple[NDArray[np.float64], Array, Array]:
        """Return losses as above, and their first and second derivatives by margin."""

    def gradient(self, W: Array, slopes: Array) -> Array:
        """Return W + Xᵀ slopes."""

    def hessian_product(self, V: Array, curvature: Array) -> Array:
        """Return V + Xᵀ (curvature * (X V))."""

    def prepare_preconditioner(self, curvature: Array) -> Any:
        """Return what :meth:`precondition` needs to know of this Hessian."""

    def precondition(self, R: Array, prepared: Any) -> Array:
        """Return an approximation of the inverse Hessian times R."""


class SparseKernels:
    """Float32 CSR rows on numba loops."""

    def __init__(self, rows: Rows) -> None:
        self.n_rows, self.n_features = rows.X.shape
        self.dtype = np.dtype(np.float32)
        self._csr = (rows.X.indptr, rows.X.indices, rows.X.data)

    def margins(self, W: Array) -> Array:
        Z = np.empty((self.n_rows, W.shape[1]), dtype=np.float32)
        loops.multiply(*self._csr, W, Z)
        return Z

    def losses(self, Z: Array, targets: Targets, cost: Array) -> NDArray[np.float64]:
        return loops.losses(Z, targets.row_class, targets.table, cost)

    def derivatives(
        self, Z: Array, targets: Targets, cost: Array
    ) -> tuple[NDArray[np.float64], Array, Array]:
        slopes, curvature = np.empty_like(Z), np.empty_like(Z)
        losses = loops.derivatives(Z, targets.row_class, targets.table, cost, slopes, curvature)
        return losses, slopes, curvature

    def gradient(self, W: Array, slopes: Array) -> Array:
        G = W.copy()
        loops.add_transposed_product(*self._csr, slopes, G)
        return G

    def hessian_product(self, V: Array, curvature: Array) -> Array:
        HV = V.copy()
        loops.add_curved_product(*self._csr, V, curvature, HV)
        return HV

    def prepare_preconditioner(self, curvature: Array) -> Any:
        return None

    def precondition(self, R: Array, prepared: Any) -> Array:
        return R


class DenseKernels:
    """Float64 rows on BLAS.

    Narrow data (CLEF has 80 columns) factorises the Hessian of every column, so that one step of
    conjugate gradients is a Newton step. Wide data (embeddings) is preconditioned in the eigenbasis of
    XᵀX: with D replaced by its mean a, H = I + Xᵀ D X becomes Q (I + aΛ) Qᵀ, where XᵀX = Q Λ Qᵀ is
    found once for all problems, all C and all steps; what is left to conjugate gradients is only how
    the curvature varies between rows.
    """

    def __init__(self, rows: Rows) -> None:
        self.n_rows, self.n_features = rows.X.shape
        self.dtype = np.dtype(np.float64)
        self._X = rows.X
        self._is_narrow = self.n_features <= MAX_FACTORISED_FEATURES
        if not self._is_narrow:
            self._row_share = np.einsum("ij,ij->i", rows.X, rows.X)
            self._row_share /= max(self._row_share.sum(), np.finfo(np.float64).tiny)
            self._eigenvalues, self._eigenvectors = np.linalg.eigh(rows.X.T @ rows.X)

    def margins(self, W: Array) -> Array:
        return self._X @ W

    losses = SparseKernels.losses
    derivatives = SparseKernels.derivatives

    def gradient(self, W: Array, slopes: Array) -> Array:
        return W + self._X.T @ slopes

    def hessian_product(self, V: Array, curvature: Array) -> Array:
        return V + self._X.T @ (curvature * (self._X @ V))

    def prepare_preconditioner(self, curvature: Array) -> Any:
        if self._is_narrow:
            return [self._factor(curvature[:, b]) for b in range(curvature.shape[1])]
        mean_curvature = self._row_share @ curvature
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


def kernels_for(rows: Rows) -> Kernels:
    """Return the kernels that suit these rows."""
    return SparseKernels(rows) if rows.is_sparse else DenseKernels(rows)
