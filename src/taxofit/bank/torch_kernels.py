r"""The kernels on torch: a GPU, or torch's CPU device in tests.

A feature that occurs in one row only is *private* to that row. All private features of row i act
as one feature of value s_i, the length of its private entries, with one weight v; and given the
margin z of the other features, the best v is that of a problem in one unknown,

.. math:: \varphi_i(z) = \min_v\; c_i \log(1 + \exp(-y_i (z + s_i v))) + \tfrac12 v^2 .

So private features never enter the solver. It minimises Σ φ_i(θ·x_i) + ½‖θ‖² over the shared
features, where φ is again smooth and convex: with t = y (z + s v) at the minimum and σ the
logistic function,

.. math:: \varphi' = -c\, y\, σ(-t), \qquad \varphi'' = \frac{c D}{1 + c s^2 D}, \; D = σ(t)σ(-t),

and φ'' <= 1/s² however large C is, which keeps the Newton systems well conditioned. The gradient
by v is zero at every step, so the gradient by the shared features is the whole gradient and
liblinear's stopping rule means what it says. At the end v = -s φ'.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from scipy import sparse

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from taxofit.bank.rows import Rows, Targets
    from taxofit.bank.trend import Trend

    Tensor = torch.Tensor
    Floats = NDArray[np.float64]
    Columns = NDArray[np.int64]

__all__ = ["TorchKernels", "best_margins"]

MAX_BLOCK_SIZE = 1024
HOST_BLOCK_SIZE = 256
MEMORY_SHARE = 0.8  # of what is free on the GPU
ARRAYS_OF_FEATURES, ARRAYS_OF_ROWS = 10, 6  # that are alive at once while a block is solved
HEAD_SHARE = 1 / 16  # of the rows: a more frequent feature is cheaper in a dense product
CHUNK_CELLS = 1 << 22  # of elementwise work at a time: its temporaries stay in the GPU's cache
NARROW = 128  # dense rows with fewer features are kept in float64, as raw measurements may need
INNER_STEPS = 3  # leave an error of 1e-8, seen over margins and pulls of any size up to 10⁴


@dataclass(frozen=True, eq=False)
class _Problems:
    """Labels and costs on the device; ``pull`` is c s², 0 for rows without private features."""

    row_class: Tensor  # (n_rows,)
    table: Tensor  # (n_classes, width), int8
    cost: Tensor  # (n_rows, 1)
    pull: Tensor  # (n_rows, 1)

    def signs(self, rows: slice, dtype: torch.dtype) -> Tensor:
        return self.table.index_select(0, self.row_class[rows]).to(dtype)


class TorchKernels:
    """Rows on a torch device: float32 CSR, or dense.

    Parameters
    ----------
    rows : Rows
    device : str or torch.device
    """

    def __init__(self, rows: Rows, device: str | torch.device = "cuda") -> None:
        self.device = torch.device(device)
        self.n_rows = rows.n_rows
        self.n_all_features = rows.n_features
        self._X: _SparseMatrix | _DenseMatrix
        if rows.is_sparse:
            self.dtype = torch.float32
            features = _Features.of(rows.X)
            shared = np.concatenate([features.head, features.tail])
            self._X = _SparseMatrix(rows.X, features, self.device)
            self._private_length = self._upload(features.private_length)[:, None]
            self._shared = self._upload(shared)
            self._private = self._upload(features.private)
            self._private_row = self._upload(features.private_row)
            self._private_share = self._upload(features.private_share)[:, None]
        else:
            self.dtype = torch.float64 if rows.n_features <= NARROW else torch.float32
            self._X = _DenseMatrix(self._upload(rows.X).to(self.dtype))
            self._private_length = torch.zeros(
                (rows.n_rows, 1), dtype=self.dtype, device=self.device
            )
            self._shared = torch.arange(rows.n_features, device=self.device)
            self._private = self._shared[:0]
        self.n_features = len(self._shared)
        self.epsilon = torch.finfo(self.dtype).eps
        self.block_size = self._block_size()
        self._uploaded: WeakKeyDictionary[Rows, _Uploaded] = WeakKeyDictionary()

    def _upload(self, array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    def _block_size(self) -> int:
        """Return how many problems fit into the memory that is free now."""
        if self.device.type != "cuda":
            return HOST_BLOCK_SIZE
        free, _ = torch.cuda.mem_get_info(self.device)
        cells = ARRAYS_OF_FEATURES * self.n_features + ARRAYS_OF_ROWS * self.n_rows
        cells += 2 * self.n_all_features
        width = int(MEMORY_SHARE * free / (cells * self.dtype.itemsize))
        return min(MAX_BLOCK_SIZE, max(1, width // 32 * 32 or width))

    # ---- moving and shaping arrays

    def problems(self, targets: Targets, cost: Floats) -> _Problems:
        c = self._upload(cost)[:, None].to(self.dtype)
        return _Problems(
            self._upload(targets.row_class),
            self._upload(targets.table),
            c,
            c * self._private_length**2,
        )

    def take_problems(self, problems: _Problems, columns: Columns) -> _Problems:
        table = self.take(problems.table, columns)
        return _Problems(problems.row_class, table, problems.cost, problems.pull)

    def start(self, weights: Any, width: int) -> Tensor:
        if weights is None:
            return torch.zeros((self.n_features, width), dtype=self.dtype, device=self.device)
        return self._on_device(weights).index_select(0, self._shared)

    def spread(self, weights: Any, chosen: NDArray[np.bool_]) -> Tensor:
        return self._on_device(weights) * self._upload(chosen)

    def _on_device(self, weights: Any) -> Tensor:
        if sparse.issparse(weights):
            entries = weights.tocoo()
            places = tuple(self._upload(k.astype(np.int64)) for k in (entries.row, entries.col))
            tensor = torch.zeros(entries.shape, dtype=self.dtype, device=self.device)
            return tensor.index_put_(places, self._upload(entries.data).to(self.dtype))
        tensor = weights if isinstance(weights, torch.Tensor) else self._upload(weights)
        return tensor.to(self.device, self.dtype)

    def full_weights(self, W: Tensor, Z: Tensor, problems: _Problems) -> Tensor:
        shape = (self.n_all_features, W.shape[1])
        weights = torch.zeros(shape, dtype=self.dtype, device=self.device)
        weights.index_copy_(0, self._shared, W)
        if len(self._private):
            _, slopes, _ = self.derivatives(Z, problems)
            v = slopes.mul_(-self._private_length)
            weights.index_copy_(0, self._private, v[self._private_row].mul_(self._private_share))
        return weights

    def take(self, A: Tensor, columns: Columns) -> Tensor:
        if columns.size == A.shape[-1] and (columns[1:] > columns[:-1]).all():
            return A
        return A.index_select(-1, self._upload(columns))

    def put(self, A: Tensor, columns: Columns, B: Tensor) -> None:
        if columns.size == A.shape[1]:
            A.copy_(B)
        else:
            A.index_copy_(1, self._upload(columns), B)

    def vector(self, values: Floats) -> Tensor:
        return self._upload(values)

    def to_host(self, vector: Tensor) -> NDArray[Any]:
        return vector.cpu().numpy()

    # ---- columns

    def dots(self, A: Tensor, B: Tensor) -> Tensor:
        return (A * B).sum(0, dtype=torch.float64)

    def norms(self, A: Tensor) -> Tensor:
        return torch.linalg.vector_norm(A, dim=0, dtype=torch.float64)

    def add_scaled(self, A: Tensor, scale: Tensor, B: Tensor) -> Tensor:
        return A.addcmul_(B, scale.to(self.dtype))

    def scaled_sum(self, A: Tensor, scale: Tensor, B: Tensor) -> Tensor:
        return torch.addcmul(A, B, scale.to(self.dtype), out=B)

    def prune_along(
        self, W: Tensor, share: float, trend: Trend
    ) -> tuple[sparse.csc_array, NDArray[np.float32]]:
        steps, care = (self._upload(part).to(W.dtype) for part in (trend.steps, trend.care))
        places = self._upload(trend.places)
        n_columns = max(1, CHUNK_CELLS // max(1, W.shape[0]))
        parts = [_left_beside(V, share * care, steps, places) for V in torch.split(W.T, n_columns)]
        host = [np.concatenate([self.to_host(part[k]) for part in parts]) for k in range(4)]
        n_kept, features, values, slope = host
        stops = np.append(0, np.cumsum(n_kept))
        return sparse.csc_array((values, features, stops), shape=tuple(W.shape)), slope

    # ---- the problems

    def margins(self, W: Tensor) -> Tensor:
        return self._X.multiply(W)

    def gradient_norms_at_zero(self, problems: _Problems) -> Floats:
        slopes = torch.empty(
            (self.n_rows, problems.table.shape[1]), dtype=self.dtype, device=self.device
        )
        for rows in self._chunks(slopes):
            torch.mul(
                problems.signs(rows, self.dtype), -0.5 * problems.cost[rows], out=slopes[rows]
            )
        shared = self.norms(self._X.add_transposed(None, slopes))
        # A private entry's gradient is ±½ c x, whatever the label.
        private = 0.5 * problems.cost.double() * self._private_length
        return self.to_host(torch.sqrt(shared**2 + (private**2).sum()))

    def losses(self, Z: Tensor, problems: _Problems, *, along: Tensor, step: Tensor) -> Floats:
        total = torch.zeros(Z.shape[1], dtype=torch.float64, device=self.device)
        step = step.to(self.dtype)
        for rows in self._chunks(Z):
            signs = problems.signs(rows, self.dtype)
            m = torch.addcmul(Z[rows], along[rows], step).mul_(signs)
            total += self._losses_at(m, problems, rows)[0]
        return self.to_host(total)

    def derivatives(self, Z: Tensor, problems: _Problems) -> tuple[Floats, Tensor, Tensor]:
        total = torch.zeros(Z.shape[1], dtype=torch.float64, device=self.device)
        slopes, curvature = torch.empty_like(Z), torch.empty_like(Z)
        for rows in self._chunks(Z):
            signs, cost = problems.signs(rows, self.dtype), problems.cost[rows]
            losses, wrong = self._losses_at(Z[rows] * signs, problems, rows)
            total += losses
            torch.mul(signs.mul_(-cost), wrong, out=slopes[rows])
            D = wrong.addcmul_(wrong, wrong, value=-1)
            torch.div(D * cost, 1 + problems.pull[rows] * D, out=curvature[rows])
        return self.to_host(total), slopes, curvature

    def _losses_at(self, m: Tensor, problems: _Problems, rows: slice) -> tuple[Tensor, Tensor]:
        """Return Σ φ over these rows, and σ(-t), for signed margins of the shared features."""
        cost, pull = problems.cost[rows], problems.pull[rows]
        t = best_margins(m, pull) if len(self._private) else m
        wrong = torch.sigmoid(-t)
        loss = torch.nn.functional.softplus(-t).addcmul_(0.5 * pull * wrong, wrong).mul_(cost)
        return loss.sum(0, dtype=torch.float64), wrong

    def _chunks(self, A: Tensor) -> list[slice]:
        step = max(1, CHUNK_CELLS // max(1, A.shape[1]))
        return [slice(first, first + step) for first in range(0, A.shape[0], step)]

    def gradient(self, W: Tensor, slopes: Tensor) -> Tensor:
        return self._X.add_transposed(W, slopes)

    def hessian_product(self, V: Tensor, curvature: Tensor) -> Tensor:
        return self._X.add_transposed(V, self._X.multiply(V).mul_(curvature))

    def prepare_preconditioner(self, curvature: Tensor) -> Tensor:
        return self._X.prepare_preconditioner(curvature)

    def precondition(self, R: Tensor, prepared: Tensor) -> Tensor:
        return self._X.precondition(R, prepared)

    # ---- other rows

    def scores(self, rows: Rows, weights: Tensor) -> NDArray[Any]:
        return self.to_host(self._on_other_rows(rows).multiply(weights))

    def judge(self, rows: Rows, targets: Targets, weights: Tensor) -> tuple[NDArray[Any], Floats]:
        Z = self._on_other_rows(rows).multiply(weights)
        row_class, table = self._upload(targets.row_class), self._upload(targets.table)
        weight = self._upload(rows.weight)
        total = torch.zeros(Z.shape[1], dtype=torch.float64, device=self.device)
        for part in self._chunks(Z):
            m = table.index_select(0, row_class[part]).to(self.dtype).mul_(Z[part])
            total += weight[part] @ torch.nn.functional.softplus(-m).double()
        return self.to_host(Z), self.to_host(total)

    def _on_other_rows(self, rows: Rows) -> _Uploaded:
        """Return these rows on the device; they stay there as long as the caller keeps them."""
        if rows not in self._uploaded:
            X = _csr(rows.X, self.device) if rows.is_sparse else self._upload(rows.X).to(self.dtype)
            self._uploaded[rows] = _Uploaded(X)
        return self._uploaded[rows]


@dataclass(frozen=True, eq=False)
class _Uploaded:
    """Rows that are only multiplied with."""

    X: Tensor

    def multiply(self, W: Tensor) -> Tensor:
        return self.X @ W


def best_margins(a: Tensor, pull: Tensor) -> Tensor:
    """Return t with t = a + pull · σ(-t): margins once private features have done their best.

    By symmetry (t, a) ↔ (-t, -a - pull) only t >= 0 needs solving. There t - pull · σ(-t) is
    concave, so Newton's method comes to the left of the root after one step and rises to it from
    there. It begins where σ(-t) is replaced by exp(-t): at Lambert's function, by Winitzki's
    formula.
    """
    is_flipped = a < -0.5 * pull
    b = torch.where(is_flipped, -a - pull, a)
    lambert = torch.nn.functional.softplus(torch.log(pull) - b)
    t = b + lambert * (1 - torch.log1p(lambert) / (2 + lambert))
    for _ in range(INNER_STEPS):
        wrong = torch.sigmoid(-t)
        excess = t - pull * wrong - b
        t = t.sub_(excess.div_(1 + pull * (wrong - wrong * wrong))).clamp_(min=0.0)
    return torch.where(is_flipped, -t, t)


def _left_beside(
    V: Tensor, share: Tensor, steps: Tensor, places: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return what rows of weights are beside a slope times steps, pruned.

    That is how many are kept of each row, which, what is left of them, and the slopes.
    """
    V = V.contiguous()
    mean = torch.linalg.vector_norm(V, dim=1, dtype=torch.float64) / max(1, V.shape[1]) ** 0.5
    cutoff = mean.to(V.dtype)[:, None] * share
    slope = torch.zeros_like(V[:, :1])
    if len(places):
        ratios = V.index_select(1, places) / steps[places]
        slope = torch.kthvalue(ratios, len(places) // 2 + 1, dim=1, keepdim=True).values
        n_left = ((V - slope * steps).abs() > cutoff).sum(1, keepdim=True)
        n_whole = (V.abs() > cutoff).sum(1, keepdim=True)
        slope = torch.where(n_left < n_whole, slope, 0.0)
    left = V - slope * steps
    is_kept = left.abs() > cutoff
    features = is_kept.nonzero(as_tuple=True)[1].to(torch.int32)
    return is_kept.sum(1), features, left[is_kept], slope[:, 0].float()


@dataclass(frozen=True, eq=False)
class _Features:
    """Features by how many rows they occur in: many (head), several (tail), one (private)."""

    head: NDArray[np.int64]
    tail: NDArray[np.int64]
    private: NDArray[np.int64]
    private_row: NDArray[np.int64]
    private_share: NDArray[np.float32]  # entry / s of its row
    private_length: NDArray[np.float32]  # s of every row

    @classmethod
    def of(cls, X: Any) -> _Features:
        n_rows, n_features = X.shape
        frequency = np.bincount(X.indices, minlength=n_features)
        is_head = (frequency > HEAD_SHARE * n_rows) & (frequency > 1)
        entries = np.flatnonzero(frequency[X.indices] == 1)
        row = np.searchsorted(X.indptr, entries, side="right") - 1
        value = X.data[entries].astype(np.float64)
        length = np.sqrt(np.bincount(row, weights=value**2, minlength=n_rows))
        share = np.divide(value, length[row], out=np.zeros_like(value), where=length[row] > 0)
        return cls(
            np.flatnonzero(is_head),
            np.flatnonzero((frequency > 1) & ~is_head),
            X.indices[entries].astype(np.int64),
            row,
            share.astype(np.float32),
            length.astype(np.float32),
        )


class _SparseMatrix:
    """Shared features of sparse rows: a dense head of frequent ones, the rest in CSR both ways.

    One row of Xᵀ with an entry for every row of X, as the constant feature is, would be one long
    chain of work among thousands of short ones.
    """

    def __init__(self, X: Any, features: _Features, device: torch.device) -> None:
        place = np.full(X.shape[1], -1)
        place[features.tail] = np.arange(features.tail.size)
        column = place[X.indices]
        is_tail = column >= 0
        ends = np.concatenate([[0], np.cumsum(is_tail)])[X.indptr]
        tail = sparse.csr_array(
            (X.data[is_tail], column[is_tail], ends), shape=(X.shape[0], features.tail.size)
        )
        head = sparse.csr_array(X)[:, features.head].toarray()
        self.n_head = features.head.size
        self.head = torch.from_numpy(head).to(device)
        self.tail = _csr(tail, device)
        self.tail_t = _csr(tail.T.tocsr(), device)

    def multiply(self, W: Tensor) -> Tensor:
        Z = self.head @ W[: self.n_head]
        return torch.addmm(Z, self.tail, W[self.n_head :])

    def add_transposed(self, W: Tensor | None, S: Tensor) -> Tensor:
        """Return W + Xᵀ S."""
        n = self.n_head
        G = torch.empty((n + self.tail_t.shape[0], S.shape[1]), dtype=S.dtype, device=S.device)
        if W is None:
            W = torch.zeros_like(G)
        torch.addmm(W[:n], self.head.T, S, out=G[:n])
        torch.addmm(W[n:], self.tail_t, S, out=G[n:])
        return G

    # Without private features the systems are well conditioned. Their diagonal as a
    # preconditioner took 31 products a node instead of 26 at C = 1 and 87 instead of 58 at C =
    # 100 (DMOZ-SMALL's size).

    def prepare_preconditioner(self, curvature: Tensor) -> Tensor:
        return curvature[:0]

    def precondition(self, R: Tensor, prepared: Tensor) -> Tensor:  # noqa: ARG002  (none)
        return R


class _DenseMatrix:
    """Dense rows, preconditioned as :class:`DenseKernels` has it.

    Narrow ones by the inverse Hessian of every column, wide ones in the eigenbasis of XᵀX.
    """

    def __init__(self, X: Tensor) -> None:
        self.X = X
        self.is_narrow = X.shape[1] <= NARROW
        if not self.is_narrow:
            length = (X.double() ** 2).sum(1)
            self.row_share = (length / length.sum().clamp_min(1e-300)).to(X.dtype)
            values, vectors = torch.linalg.eigh(X.double().T @ X.double())
            self.eigenvalues = values.clamp_min(0).to(X.dtype)[:, None]
            self.eigenvectors = vectors.to(X.dtype)

    def multiply(self, W: Tensor) -> Tensor:
        return self.X @ W

    def add_transposed(self, W: Tensor | None, S: Tensor) -> Tensor:
        """Return W + Xᵀ S."""
        return self.X.T @ S if W is None else torch.addmm(W, self.X.T, S)

    def prepare_preconditioner(self, curvature: Tensor) -> Tensor:
        if not self.is_narrow:
            return 1 / (1 + self.eigenvalues * (self.row_share @ curvature))
        d, width = self.X.shape[1], curvature.shape[1]
        inverse = torch.empty((d, d, width), dtype=self.X.dtype, device=self.X.device)
        step = max(1, CHUNK_CELLS // max(1, self.X.numel()))
        for first in range(0, width, step):
            D = curvature[:, first : first + step].T
            hessian = (self.X.T * D[:, None, :]) @ self.X  # (step, d, d)
            hessian.diagonal(dim1=1, dim2=2).add_(1)
            inverse[:, :, first : first + step] = torch.cholesky_inverse(
                torch.linalg.cholesky(hessian)
            ).permute(1, 2, 0)
        return inverse

    def precondition(self, R: Tensor, prepared: Tensor) -> Tensor:
        if self.is_narrow:
            return (prepared * R).sum(1)
        return self.eigenvectors @ ((self.eigenvectors.T @ R).mul_(prepared))


def _csr(X: Any, device: torch.device) -> Tensor:
    """Return a scipy CSR array as torch's, with 32-bit indices, which are half the traffic."""
    if X.nnz == 0 and min(X.shape) > 0:  # torch 2.11 refuses one without entries; a zero will do
        X = sparse.coo_array((np.zeros(1, X.dtype), ([0], [0])), shape=X.shape).tocsr()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        warnings.filterwarnings("ignore", "Sparse invariant checks are implicitly disabled")
        return torch.sparse_csr_tensor(
            torch.from_numpy(X.indptr.astype(np.int32)),
            torch.from_numpy(X.indices.astype(np.int32)),
            torch.from_numpy(np.ascontiguousarray(X.data, dtype=np.float32)),
            size=X.shape,
            device=device,
            check_invariants=True,
        )
