"""Hierarchical error-correcting output codes: a flat rival that solves other binary problems.

Every class gets a codeword of ±1. One logistic regression is solved for each bit of the code, and a
row goes to the class whose codeword its predicted bits are nearest to. The problems are a table of
signs over classes, as the nodes of a bank are, and go to the same solver.
"""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import joblib
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    check_random_state,
    validate_data,
)

from taxofit.bank.block_solver import solver_for
from taxofit.bank.evidence import scores_of
from taxofit.bank.rows import Rows, Targets
from taxofit.bank.solver import SolverSettings
from taxofit.bank.split import split_rows
from taxofit.errors import DataError
from taxofit.labels import check_labels, find_leaves, label_array
from taxofit.metrics import macro_f1_nodes
from taxofit.selection import C_GRID, VALIDATION_FRACTION

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from taxofit.bank.solver import BlockSolution
    from taxofit.progress import Progress
    from taxofit.taxonomy import Taxonomy

    IntArray = NDArray[np.int32]
    Code = NDArray[np.int8]

__all__ = [
    "CodeChoice",
    "CodeLearner",
    "HierarchicalECOC",
    "choose_length",
    "code_lengths",
    "decode",
    "make_code",
]

MIN_BITS, MAX_BITS = 32, 1024  # the paper's range
MAX_ENUMERATED_CLASSES = 12  # 2^11 - 1 columns: all are listed, none is left to chance
MAX_FRUITLESS_DRAWS = 1000
DECODED_CELLS = 1 << 22  # (rows x classes) looked at together


def code_lengths(n_classes: int) -> tuple[int, ...]:
    """Return the code lengths to choose among: powers of 2 from 32 to n_classes or 1024.

    The paper says "32 to 1024 bits depending on the dataset"; that the longest code grows with the
    number of classes is our reading of it.

    Examples
    --------
    >>> code_lengths(63), code_lengths(290)
    ((32, 64), (32, 64, 128, 256, 512))
    """
    lengths = [MIN_BITS]
    while lengths[-1] < min(n_classes, MAX_BITS):
        lengths.append(2 * lengths[-1])
    return tuple(lengths)


def make_code(taxonomy: Taxonomy, leaves: IntArray, n_bits: int, *, seed: int = 0) -> Code:
    """Return one codeword of ±1 for each leaf, shape (n_classes, at most n_bits).

    Bits of internal nodes (whether the class lies under the node) and random bits take turns, the
    nodes that divide the classes most evenly first, until the nodes run out; so every prefix of a
    code is itself a code of that length, and random bits tell siblings apart even where there are
    more nodes than bits. No column is constant, equals another, or is another's complement. Few
    classes have few such columns (2^(k-1) - 1 of k classes); then the code is shorter than asked
    for.

    Parameters
    ----------
    taxonomy : Taxonomy
    leaves : ndarray of int32, shape (n_classes,)
        The classes, as nodes.
    n_bits : int
    seed : int

    Examples
    --------
    >>> from taxofit import Taxonomy
    >>> t = Taxonomy.from_paths([("animal", "cat"), ("animal", "dog"), ("plant", "oak")])
    >>> make_code(t, t.nodes_of(["cat", "dog", "oak"]), 32).shape
    (3, 3)
    """
    if n_bits < 1:
        raise ValueError(f"n_bits must be positive, but is {n_bits!r}")
    rng = np.random.default_rng(seed)
    hierarchical = _node_columns(taxonomy, leaves)
    random = _random_columns(len(leaves), rng)
    columns: list[Code] = []
    known: set[bytes] = set()

    def add_next(source: Any) -> bool:
        """Append the next new column of a source; say whether it had one."""
        for column in source:
            key = (column * column[0]).tobytes()  # the same for a column and its complement
            if key not in known and np.ptp(column):
                known.add(key)
                columns.append(column)
                return True
        return False

    has_nodes = has_random = len(leaves) > 1
    while len(columns) < n_bits and (has_nodes or has_random):
        has_nodes = has_nodes and add_next(hierarchical)
        if len(columns) < n_bits:
            has_random = has_random and add_next(random)
    if not columns:
        return np.ones((len(leaves), 1), dtype=np.int8)
    return np.ascontiguousarray(np.stack(columns, axis=1))


def _node_columns(taxonomy: Taxonomy, leaves: IntArray) -> Any:
    """Yield a column for every internal node, the most even first."""
    nodes = np.flatnonzero(taxonomy.is_internal)
    place = taxonomy.leaf_start[leaves]
    ordered = np.sort(place)
    n_under = np.searchsorted(ordered, taxonomy.leaf_stop[nodes])
    n_under -= np.searchsorted(ordered, taxonomy.leaf_start[nodes])
    unevenness = np.abs(n_under - len(leaves) / 2)
    for node in nodes[np.argsort(unevenness, kind="stable")]:
        under = (place >= taxonomy.leaf_start[node]) & (place < taxonomy.leaf_stop[node])
        yield np.where(under, 1, -1).astype(np.int8)


def _random_columns(n_classes: int, rng: np.random.Generator) -> Any:
    """Yield random columns; all there are, shuffled, where the classes are few."""
    if n_classes <= MAX_ENUMERATED_CLASSES:
        numbers = 1 + rng.permutation(2 ** (n_classes - 1) - 1)
        for number in numbers:
            bits = number >> np.arange(n_classes) & 1
            yield np.where(bits, 1, -1).astype(np.int8)
        return
    for _ in range(MAX_FRUITLESS_DRAWS + MAX_BITS**2):
        yield rng.choice(np.array([-1, 1], dtype=np.int8), size=n_classes)


def decode(margins: NDArray[Any], code: Code) -> NDArray[np.int64]:
    """Return for each row the class whose codeword is nearest in Hamming distance.

    Of equally near ones it is that of the largest sum of margins, Σ_b M_cb z_b, then the first.

    Parameters
    ----------
    margins : ndarray, shape (n_rows, n_bits)
        θ_b·x_i of every bit; a bit is +1 where it is not negative.
    code : ndarray of int8, shape (n_classes, n_bits)

    Examples
    --------
    >>> decode(np.array([[0.5, -2.0]]), np.array([[1, 1], [1, -1], [-1, -1]], dtype=np.int8))
    array([1])
    """
    words = code.T.astype(np.float32)
    nearest = np.empty(len(margins), dtype=np.int64)
    step = max(1, DECODED_CELLS // len(code))
    for first in range(0, len(margins), step):
        part = np.asarray(margins[first : first + step], dtype=np.float32)
        agreement = np.where(part >= 0, np.float32(1), np.float32(-1)) @ words
        is_nearest = agreement == agreement.max(axis=1, keepdims=True)
        nearest[first : first + step] = np.where(is_nearest, part @ words, -np.inf).argmax(axis=1)
    return nearest


class CodeLearner:
    """The binary problems of a code over given rows.

    Parameters
    ----------
    rows : Rows
    row_class : ndarray of int32, shape (n_rows,)
        Row of the code that each row belongs to.
    code : ndarray of int8, shape (n_classes, n_bits)
    settings : SolverSettings, optional
    n_threads : int, optional
        Blocks of sparse data solved at the same time; all cores by default.
    """

    def __init__(
        self,
        rows: Rows,
        row_class: IntArray,
        code: Code,
        *,
        settings: SolverSettings | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.rows, self.code = rows, code
        self.settings = SolverSettings() if settings is None else settings
        self.n_threads = 1 if not rows.is_sparse else n_threads or joblib.cpu_count()
        self._targets = Targets(row_class.astype(np.int32), code)
        self._solver = solver_for(rows, self.settings)

    def solve(
        self,
        Cs: Sequence[float],
        consume: Callable[[NDArray[np.int64], float, BlockSolution], None],
        *,
        progress: Progress | None = None,
    ) -> None:
        """Solve all bits for every C, smallest first, each starting from the one before.

        Parameters
        ----------
        Cs : sequence of float
        consume : callable
            Called with (bits, C, solution) once per block and C.
        progress : callable, optional
            Called with (bits done, bits in all) after each block.
        """
        size = self._solver.block_size
        bits = np.arange(self.code.shape[1])
        blocks = [bits[k : k + size] for k in range(0, bits.size, size)]

        def solve_one(block: NDArray[np.int64]) -> list[tuple[int, float]]:
            targets, weights, unconverged = self._targets.take(block), None, []
            for C in sorted(Cs):
                solution = self._solver.solve(targets, C, weights)
                consume(block, C, solution)
                weights = solution.device_weights
                unconverged += [(int(bit), C) for bit in block[~solution.converged]]
            return unconverged

        n_done, unconverged = 0, []
        with ThreadPoolExecutor(self.n_threads) as pool:
            for block, failed in zip(blocks, pool.map(solve_one, blocks), strict=True):
                unconverged += failed
                n_done += len(block)
                if progress is not None:
                    progress(n_done, bits.size)
        if unconverged:
            bit, C = unconverged[0]
            warnings.warn(
                f"{len(unconverged)} bits did not converge in {self.settings.max_iter} steps, the "
                f"first is bit {bit} at C={C:g}; raise max_iter, scale the features or lower C",
                ConvergenceWarning,
                stacklevel=3,
            )

    def margins(
        self, rows: Rows, Cs: Sequence[float], *, progress: Progress | None = None
    ) -> dict[float, NDArray[np.float32]]:
        """Return the margins of other rows at every C, each of shape (n_rows, n_bits)."""
        shape = (rows.n_rows, self.code.shape[1])
        margins = {C: np.empty(shape, dtype=np.float32) for C in Cs}

        def consume(bits: NDArray[np.int64], C: float, solution: BlockSolution) -> None:
            margins[C][:, bits] = scores_of(rows, solution.weights)

        self.solve(Cs, consume, progress=progress)
        return margins


@dataclass(frozen=True)
class CodeChoice:
    """A code length and the C it goes with, by validation macro-F1."""

    n_bits: int
    C: float
    score: float


def choose_length(
    margins: dict[float, NDArray[np.float32]],
    code: Code,
    row_class: IntArray,
    lengths: Sequence[int],
) -> CodeChoice:
    """Return the best C and prefix of the code; of equals the smaller C, then the shorter code.

    Parameters
    ----------
    margins : dict of ndarray, shape (n_rows, n_bits)
        Of the validation rows, for every C.
    code : ndarray of int8, shape (n_classes, n_bits)
    row_class : ndarray of int32, shape (n_rows,)
        True classes of the validation rows.
    lengths : sequence of int
    """
    every = np.ones(len(code), dtype=bool)
    best: CodeChoice | None = None
    for C in sorted(margins):
        for n_bits in sorted({min(n, code.shape[1]) for n in lengths}):
            decoded = decode(margins[C][:, :n_bits], code[:, :n_bits])
            score = macro_f1_nodes(row_class, decoded, every, np.arange(len(code)))
            if best is None or score > best.score:
                best = CodeChoice(n_bits, C, score)
    if best is None:
        raise ValueError("there is nothing to choose among: give at least one C and one length")
    return best


class HierarchicalECOC(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Flat classification by an error-correcting output code that knows the taxonomy.

    Parameters
    ----------
    taxonomy : Taxonomy, optional
        If None it is made from y: from paths, or flat from plain labels.
    n_bits : int or "auto", default "auto"
        Length of the code. ``"auto"`` takes the best of :func:`code_lengths` on validation rows, by
        macro-F1 and together with C. Of few classes the code may be shorter; see :func:`make_code`.
    C : float or "auto", default "auto"
        Weight of the loss against the regularisation; ``"auto"`` as in TaxonomyClassifier.
    fit_intercept : bool, default True
        Append a constant feature 1, regularised like the others.
    tol : float, default 1e-4
        Tolerance of liblinear's stopping rule.
    max_iter : int, default 100
        Newton steps for a bit before it is reported as not converged.
    n_jobs : int, optional
        Threads for sparse data; all cores by default. Results do not depend on it.
    random_state : int or RandomState, default 0
        The random bits, and which rows are held out for validation where any are needed.

    Attributes
    ----------
    code_ : ndarray of int8, shape (n_classes, n_bits_)
    n_bits_ : int
    C_ : float
    classes_ : ndarray
        Labels of the leaves that have training rows, in the taxonomy's order.
    coef_ : ndarray, shape (n_bits_, n_features)
    intercept_ : ndarray, shape (n_bits_,)
    n_iter_ : int
        Newton steps of the slowest bit.
    taxonomy_ : Taxonomy
    validation_score_ : float
        Macro-F1 of the choice on the validation rows; NaN where none were needed.

    Examples
    --------
    >>> from taxofit import Taxonomy
    >>> X = [[0.0, 1.0], [0.1, 1.2], [2.0, 0.1], [2.2, 0.0], [3.0, 3.1], [3.2, 3.0]]
    >>> y = ["cat", "cat", "dog", "dog", "oak", "oak"]
    >>> t = Taxonomy.from_paths([("animal", "cat"), ("animal", "dog"), ("plant", "oak")])
    >>> clf = HierarchicalECOC(t, n_bits=32, C=10.0).fit(X, y)
    >>> clf.n_bits_, clf.predict([[0.0, 1.1], [3.1, 3.0]]).tolist()
    (3, ['cat', 'oak'])
    """

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        *,
        n_bits: int | Literal["auto"] = "auto",
        C: float | Literal["auto"] = "auto",
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int = 100,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.taxonomy = taxonomy
        self.n_bits = n_bits
        self.C = C
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> HierarchicalECOC:
        """Make a code for the classes in y and solve its bits.

        Parameters
        ----------
        X : ndarray, sparse matrix or frame, shape (n_rows, n_features)
        y : array-like
            Leaf labels; or paths (tuples, or one column per level).
        sample_weight : array-like, shape (n_rows,), optional
        """
        self._check_parameters()
        X = self._checked(X, reset=True)
        y = check_labels(y, X.shape[0])
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        used = np.flatnonzero(weight > 0)
        if not used.size:
            raise DataError("all sample weights are zero; at least one row must count")
        self.taxonomy_, row_leaf = find_leaves(y, self.taxonomy)
        rows = Rows.prepare(X[used], fit_intercept=self.fit_intercept, sample_weight=weight[used])
        place = self.taxonomy_.leaf_start[row_leaf[used]]
        seen, row_class = np.unique(place, return_inverse=True)
        leaves = self.taxonomy_.leaf_order[seen]
        self.classes_ = label_array([self.taxonomy_.labels[leaf] for leaf in leaves])
        seed = self.random_state
        if not isinstance(seed, (int, np.integer)):
            seed = check_random_state(seed).randint(np.iinfo(np.int32).max)
        lengths = code_lengths(len(leaves)) if self.n_bits == "auto" else (int(self.n_bits),)
        code = make_code(self.taxonomy_, leaves, lengths[-1], seed=int(seed))
        choice = self._choose(rows, row_class.astype(np.int32), code, lengths, int(seed))
        self.C_, self.n_bits_, self.validation_score_ = choice.C, choice.n_bits, choice.score
        self.code_ = np.ascontiguousarray(code[:, : choice.n_bits])
        self._refit(rows, row_class.astype(np.int32))
        return self

    def _check_parameters(self) -> None:
        if self.C != "auto" and not (np.isscalar(self.C) and self.C > 0):  # type: ignore[operator]
            raise ValueError(f"C must be a positive number or 'auto', but is {self.C!r}")
        if self.n_bits != "auto" and not (
            isinstance(self.n_bits, (int, np.integer)) and self.n_bits > 0
        ):
            raise ValueError(f"n_bits must be a positive number or 'auto', but is {self.n_bits!r}")

    def _checked(self, X: Any, *, reset: bool = False) -> Any:
        return validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32]
        )

    def _choose(
        self, rows: Rows, row_class: IntArray, code: Code, lengths: Sequence[int], seed: int
    ) -> CodeChoice:
        """Return length and C, from validation rows where there is anything to choose."""
        Cs = C_GRID if self.C == "auto" else (float(self.C),)
        unchosen = CodeChoice(code.shape[1], 1.0 if self.C == "auto" else Cs[0], float("nan"))
        if len(Cs) == 1 and len(lengths) == 1:
            return unchosen
        kept, held_out = split_rows(
            rows.X, row_class, rows.weight, fraction=VALIDATION_FRACTION, seed=seed
        )
        if not held_out.size or not kept.size:
            return unchosen
        learner = self._learner(rows.take(kept), row_class[kept], code)
        margins = learner.margins(rows.take(held_out), Cs)
        return choose_length(margins, code, row_class[held_out], lengths)

    def _refit(self, rows: Rows, row_class: IntArray) -> None:
        n_features = rows.n_features - self.fit_intercept
        dtype = np.float32 if rows.is_sparse else np.float64
        self.coef_ = np.empty((self.n_bits_, n_features), dtype=dtype)
        self.intercept_ = np.zeros(self.n_bits_, dtype=dtype)
        self.n_iter_ = 0

        def consume(bits: NDArray[np.int64], C: float, solution: BlockSolution) -> None:  # noqa: ARG001  (one C)
            self.coef_[bits] = solution.weights[:n_features].T
            self.n_iter_ = max(self.n_iter_, int(solution.n_iterations.max()), 1)
            if self.fit_intercept:
                self.intercept_[bits] = solution.weights[-1]

        self._learner(rows, row_class, self.code_).solve([self.C_], consume)

    def _learner(self, rows: Rows, row_class: IntArray, code: Code) -> CodeLearner:
        settings = SolverSettings(tol=self.tol, max_iter=self.max_iter)
        return CodeLearner(rows, row_class, code, settings=settings, n_threads=self.n_jobs)

    def bit_margins(self, X: Any) -> NDArray[Any]:
        """Return the margins of all bits, shape (n_rows, n_bits_)."""
        check_is_fitted(self, "coef_")
        return self._checked(X) @ self.coef_.T + self.intercept_

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of the nearest codeword for each row, shape (n_rows,)."""
        nearest = decode(self.bit_margins(X), self.code_)
        return self.classes_[nearest]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
