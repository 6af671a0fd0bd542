"""The estimator: fit rows and labels, repair the taxonomy, predict by walking down it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    check_random_state,
    validate_data,
)

from taxofit.bank.evidence import gather_evidence, nodes_with_rows
from taxofit.bank.node_bank import NodeBank
from taxofit.bank.rows import Rows
from taxofit.bank.solver import SolverSettings
from taxofit.bank.split import split_rows
from taxofit.datasets.features import TextEncoder
from taxofit.errors import DataError, TaxonomyError
from taxofit.flattening import Case, KeepAll
from taxofit.methods import flattening_named
from taxofit.predict.weights import DenseWeights, PackedWeights, prune_columns
from taxofit.selection import C_GRID, Selection, Selector, evidence_table
from taxofit.taxonomy import Taxonomy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import ArrayLike, NDArray

    from taxofit.bank.solver import BlockSolution
    from taxofit.flattening import Choice, Flattening
    from taxofit.predict.weights import NodeWeights

    IntArray = NDArray[np.int32]
    Progress = Callable[[str, int, int], None]

__all__ = ["TaxonomyClassifier"]

VALIDATION_FRACTION = 0.1  # the paper's 90:10
PRUNED_SHARE = 0.02


class TaxonomyClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Top-down logistic regression on a taxonomy that is repaired to fit the data.

    One L2-regularised logistic regression is solved for every node, rows under the node against all
    others. Nodes that the data contradicts are removed by the ``flattening`` strategy, and
    prediction walks from the root to a leaf, at each step to the child of highest score.

    Parameters
    ----------
    taxonomy : Taxonomy, optional
        If None it is made from y: from paths, or flat from plain labels.
    flattening : str or strategy, default "global-inf"
        A strategy from :mod:`taxofit.flattening`, or its name: ``td-lr`` (keep the taxonomy),
        ``tlf``, ``blf``, ``mlf``, ``mta``, ``level-inf``, ``global-inf``, ``lr`` (flat).
    C : float or "auto", default "auto"
        Weight of the loss against the regularisation, one for all nodes. ``"auto"`` takes the best
        of 0.001, 0.01, … 1000 on validation rows, by macro-F1 and together with the flattening.
    encoder : str or transformer, optional
        For texts: ``"words"``, ``"pairs"`` (words and word pairs), ``"chars"`` (words and character
        n-grams), or any transformer of :mod:`taxofit.datasets`. It is fitted on the rows given to
        :meth:`fit`, kept in ``encoder_`` and saved with the model, which then predicts from texts.
    fit_intercept : bool, default True
        Append a constant feature 1, regularised like the others.
    tol : float, default 1e-4
        Tolerance of liblinear's stopping rule.
    max_iter : int, default 100
        Newton steps for a node before it is reported as not converged.
    prune : "auto" or "none", default "auto"
        For sparse data, leave out weights too small to matter: of each node those below 2 % of its
        root mean square weight, so that no score changes by more than 0.02 · ‖θ‖ · ‖x‖. ``"none"``
        keeps all.
    n_jobs : int, optional
        Threads for sparse data; all cores by default. Results do not depend on it.
    random_state : int or RandomState, default 0
        Which rows are held out for validation, where any are needed.

    Attributes
    ----------
    taxonomy_ : Taxonomy
        The repaired taxonomy that predictions walk down.
    original_taxonomy_ : Taxonomy
        The taxonomy as it was given or made from y.
    removed_ : tuple
        Labels of the removed nodes.
    evidence_ : pandas.DataFrame
        One line per node: level, rows, f*, threshold, removed or not, and why.
    C_ : float
    psi_ : float, tuple of float or None
        The threshold parameter, where the strategy has one.
    classes_ : ndarray
        Labels of the leaves that can be predicted: those with training rows.
    n_iter_ : int
        Newton steps that the last fit took, over all nodes.
    validation_score_ : float
        Macro-F1 of the choice on the validation rows; NaN where none were needed.
    encoder_ : transformer or None
    weights_ : NodeWeights
        Packed weights of the nodes of ``taxonomy_``; see :meth:`node_coef`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from taxofit import Taxonomy, TaxonomyClassifier
    >>> X = [[0.0, 1.0], [0.1, 1.2], [2.0, 0.1], [2.2, 0.0], [3.0, 3.1], [3.2, 3.0]]
    >>> y = ["cat", "cat", "dog", "dog", "oak", "oak"]
    >>> t = Taxonomy.from_paths([("animal", "cat"), ("animal", "dog"), ("plant", "oak")])
    >>> clf = TaxonomyClassifier(taxonomy=t, flattening="td-lr", C=10.0).fit(X, y)
    >>> clf.predict([[0.0, 1.1], [3.1, 3.0]]).tolist()
    ['cat', 'oak']
    """

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        *,
        flattening: str | Flattening = "global-inf",
        C: float | Literal["auto"] = "auto",
        encoder: Any = None,
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int = 100,
        prune: Literal["auto", "none"] = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.taxonomy = taxonomy
        self.flattening = flattening
        self.C = C
        self.encoder = encoder
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.prune = prune
        self.n_jobs = n_jobs
        self.random_state = random_state

    # ------------------------------------------------------------------ fitting

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        progress: Progress | None = None,
    ) -> TaxonomyClassifier:
        """Solve the nodes, repair the taxonomy, and keep the models of the nodes that remain.

        Parameters
        ----------
        X : ndarray, sparse matrix or frame, shape (n_rows, n_features)
        y : array-like
            Leaf labels; or paths (tuples, or one column per level).
        sample_weight : array-like, shape (n_rows,), optional
        progress : callable, optional
            Called with (stage, done, in all) as nodes are solved.
        """
        self._check_parameters()
        X = self._encode(X, fit=True)
        y = _check_labels(y, X.shape[0])
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        taxonomy, row_leaf = self._resolve(y)
        used = np.flatnonzero(weight > 0)
        if not used.size:
            raise DataError("all sample weights are zero; at least one row must count")
        X, row_leaf, weight = X[used], row_leaf[used], weight[used]

        rows = Rows.prepare(X, fit_intercept=self.fit_intercept, sample_weight=weight)
        strategy = flattening_named(self.flattening)
        selection, choice, C, warm = self._choose(strategy, taxonomy, rows, row_leaf, progress)
        self._refit(taxonomy, rows, row_leaf, choice, C, warm, progress)
        self._describe(taxonomy, row_leaf, choice, selection)
        return self

    def _encode(self, X: Any, *, fit: bool = False) -> Any:
        """Return X as numbers, dense or CSR."""
        if fit:
            self.encoder_ = _new_encoder(self.encoder)
            if self.encoder_ is not None:
                self.encoder_.fit(X)
        if self.encoder_ is not None:
            X = self.encoder_.transform(X)
        return validate_data(
            self, X, reset=fit, accept_sparse="csr", dtype=[np.float64, np.float32]
        )

    def _check_parameters(self) -> None:
        if self.C != "auto" and not (isinstance(self.C, Real) and self.C > 0):
            raise ValueError(f"C must be a positive number or 'auto', but is {self.C!r}")
        if self.prune not in ("auto", "none"):
            raise ValueError(f"prune must be 'auto' or 'none', but is {self.prune!r}")
        if self.taxonomy is not None and not isinstance(self.taxonomy, Taxonomy):
            raise TypeError(
                f"taxonomy must be a Taxonomy or None, got {type(self.taxonomy).__name__}; build "
                f"one with Taxonomy.from_edges or Taxonomy.from_paths"
            )

    def _resolve(self, y: NDArray[Any]) -> tuple[Taxonomy, IntArray]:
        """Return the taxonomy and the leaf of every row in it."""
        taxonomy = self.taxonomy
        if taxonomy is None:
            if y.ndim == 2 or isinstance(y[0], tuple):
                taxonomy = Taxonomy.from_paths(y.tolist())
            else:
                check_classification_targets(y)
                taxonomy = Taxonomy.from_labels(np.unique(y).tolist())
        row_leaf = taxonomy.nodes_of(y)
        inside = np.flatnonzero(~taxonomy.is_leaf[row_leaf])
        if inside.size:
            label = taxonomy.labels[row_leaf[inside[0]]]
            raise DataError(
                f"{inside.size} rows are labelled with internal nodes, first row {inside[0]} "
                f"with {label!r}; drop them or give them a leaf of their own"
            )
        return taxonomy, row_leaf

    def _choose(
        self,
        strategy: Flattening,
        taxonomy: Taxonomy,
        rows: Rows,
        row_leaf: IntArray,
        progress: Progress | None,
    ) -> tuple[Selection | None, Choice, float, _WarmStart | None]:
        """Return what to remove and at which C, from validation rows where they are needed."""
        needs_validation = self.C == "auto" or strategy.needs_evidence
        if not needs_validation or rows.n_rows < 2:
            choice = strategy.choose(Case(taxonomy)) if not needs_validation else _nothing(taxonomy)
            return None, choice, 1.0 if self.C == "auto" else float(self.C), None
        seed = self.random_state
        if not isinstance(seed, (int, np.integer)):
            seed = check_random_state(seed).randint(np.iinfo(np.int32).max)
        kept, held_out = split_rows(
            rows.X, row_leaf, rows.weight, fraction=VALIDATION_FRACTION, seed=int(seed)
        )
        if not held_out.size or not kept.size:
            return None, _nothing(taxonomy), 1.0 if self.C == "auto" else float(self.C), None
        bank = self._bank(rows.take(kept), taxonomy, row_leaf[kept])
        warm = _WarmStart({})
        evidence = gather_evidence(
            bank,
            rows.take(held_out),
            row_leaf[held_out],
            C_GRID if self.C == "auto" else [float(self.C)],
            also=warm.keep,
            progress=_stage(progress, "Validating nodes"),
        )
        selection = Selector(bank, evidence).select(strategy)
        return selection, selection.choice, selection.C, warm

    def _refit(
        self,
        taxonomy: Taxonomy,
        rows: Rows,
        row_leaf: IntArray,
        choice: Choice,
        C: float,
        warm: _WarmStart | None,
        progress: Progress | None,
    ) -> None:
        """Solve the surviving nodes on all rows and pack their weights."""
        repaired, kept = taxonomy.without(choice.removed)
        bank = self._bank(rows, taxonomy, row_leaf)
        has_rows = nodes_with_rows(bank)[kept]
        solvable = kept[1:][has_rows[1:]]
        n_features = rows.n_features - self.fit_intercept
        intercept = np.full(repaired.n_nodes, -np.inf)
        intercept[0] = 0.0
        place = np.zeros(taxonomy.n_nodes, dtype=np.int64)
        place[kept] = np.arange(kept.size)
        share = PRUNED_SHARE if self.prune == "auto" else 0.0
        columns: dict[int, Any] = {}
        matrix = None if rows.is_sparse else np.zeros((repaired.n_nodes, n_features))

        def consume(nodes: IntArray, _: float, solution: BlockSolution) -> None:
            weights = solution.weights[:n_features]
            intercept[place[nodes]] = solution.weights[-1] if self.fit_intercept else 0.0
            if matrix is not None:
                matrix[place[nodes]] = weights.T
            else:
                columns[int(nodes[0])] = (place[nodes], prune_columns(weights, share))

        report = bank.solve(
            [C],
            consume,
            nodes=solvable,
            start=None if warm is None else warm.start_at(C, taxonomy.n_nodes),
            progress=_stage(progress, "Fitting nodes"),
        )
        self.taxonomy_, self.C_, self.n_iter_ = repaired, C, report.n_iterations
        self.weights_: NodeWeights
        if matrix is not None:
            self.weights_ = DenseWeights(matrix, intercept)
        else:
            everything = _placed_columns(columns, (n_features, repaired.n_nodes))
            self.weights_ = PackedWeights.pack(everything, intercept, repaired)

    def _bank(self, rows: Rows, taxonomy: Taxonomy, row_leaf: IntArray) -> NodeBank:
        settings = SolverSettings(tol=self.tol, max_iter=self.max_iter)
        return NodeBank(rows, taxonomy, row_leaf, settings=settings, n_threads=self.n_jobs)

    def _describe(
        self,
        taxonomy: Taxonomy,
        row_leaf: IntArray,
        choice: Choice,
        selection: Selection | None,
    ) -> None:
        """Set the fitted attributes that tell what happened."""
        self.original_taxonomy_ = taxonomy
        self.removed_ = tuple(taxonomy.labels[node] for node in np.flatnonzero(choice.removed))
        self.psi_ = choice.psi
        self.validation_score_ = float("nan") if selection is None else selection.score
        n_rows = taxonomy.totals(np.bincount(row_leaf, minlength=taxonomy.n_nodes))
        evidence = None if selection is None else selection.evidence
        self.evidence_ = evidence_table(taxonomy, choice, n_rows, evidence)
        self._set_classes()

    def _set_classes(self) -> None:
        """Set the predictable labels; also after loading."""
        leaves = self.taxonomy_.leaf_order
        known = leaves[np.isfinite(self.weights_.intercept[leaves])]
        self.classes_ = _label_array([self.taxonomy_.labels[leaf] for leaf in known])
        self._class_of_node = np.full(self.taxonomy_.n_nodes, -1)
        self._class_of_node[known] = np.arange(known.size)

    # ------------------------------------------------------------------ using

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of the leaf that each row reaches, shape (n_rows,)."""
        return self.predict_with_score(X)[0]

    def predict_with_score(self, X: Any) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Return labels and how sure the leaf's own model is: σ(θ·x), between 0 and 1."""
        reached, score = self._walk(X)
        confidence = np.exp(-np.logaddexp(0.0, -score.astype(np.float64)))
        return self.classes_[self._class_of_node[reached]], confidence

    def _walk(self, X: Any) -> tuple[IntArray, NDArray[Any]]:
        check_is_fitted(self, "weights_")
        return self.weights_.walk(self._encode(X), self.taxonomy_)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of rows whose leaf is found; labels not in the taxonomy are errors."""
        predicted = self.original_taxonomy_.nodes_of(self.predict(X))
        true = np.full(predicted.size, -1)
        for row, label in enumerate(_check_labels(y, predicted.size).tolist()):
            key = tuple(label) if isinstance(label, list) else label
            if key in self.original_taxonomy_:
                true[row] = self.original_taxonomy_.node_of(key)
        return float(np.average(true == predicted, weights=sample_weight))

    def node_coef(self, label: Any) -> tuple[NDArray[np.float64], float]:
        """Return weights, shape (n_features,), and intercept of a node of the repaired taxonomy."""
        check_is_fitted(self, "weights_")
        node = self.taxonomy_.node_of(label)
        if node == 0 or not np.isfinite(self.weights_.intercept[node]):
            raise TaxonomyError(
                f"{label!r} has no model: it is the root or has no training rows under it"
            )
        return self.weights_.coefficients(node, self.taxonomy_)

    def save(self, folder: str | Path) -> None:
        """Write the fitted model to a folder: a JSON manifest and safetensors, no pickle."""
        from taxofit.model_store import save_model

        save_model(self, folder)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@dataclass(frozen=True)
class _WarmStart:
    """Pruned weights of the validation banks, from which the refit starts."""

    columns: dict[float, dict[int, tuple[IntArray, Any]]]
    share: float = 0.3

    def keep(self, nodes: IntArray, C: float, solution: BlockSolution) -> None:
        pruned = prune_columns(
            solution.weights, self.share if solution.weights.shape[0] > 2048 else 0.0
        )
        self.columns.setdefault(C, {})[int(nodes[0])] = (nodes, pruned)

    def start_at(self, C: float, n_nodes: int) -> Callable[[IntArray], NDArray[Any]]:
        blocks = self.columns[C]
        shape = (next(iter(blocks.values()))[1].shape[0], n_nodes)
        everything = _placed_columns(blocks, shape)
        return lambda nodes: everything[:, nodes].toarray()


def _placed_columns(
    blocks: dict[int, tuple[NDArray[Any], Any]], shape: tuple[int, int]
) -> sparse.csc_array:
    """Return one matrix with the blocks' columns in their places."""
    indptr = np.zeros(shape[1] + 1, dtype=np.int64)
    for places, block in blocks.values():
        indptr[places + 1] = np.diff(block.indptr)
    indptr = np.cumsum(indptr)
    indices = np.empty(indptr[-1], dtype=np.int32)
    data = np.empty(indptr[-1], dtype=np.float32)
    for places, block in blocks.values():
        for k, place in enumerate(places):
            mine = slice(block.indptr[k], block.indptr[k + 1])
            indices[indptr[place] : indptr[place + 1]] = block.indices[mine]
            data[indptr[place] : indptr[place + 1]] = block.data[mine]
    return sparse.csc_array((data, indices, indptr), shape=shape)


def _nothing(taxonomy: Taxonomy) -> Choice:
    return KeepAll().choose(Case(taxonomy))


def _new_encoder(encoder: Any) -> Any:
    """Return an unfitted encoder of one's own, or None."""
    if isinstance(encoder, str):
        return TextEncoder(features=encoder)
    return None if encoder is None else clone(encoder)


def _stage(progress: Progress | None, name: str) -> Callable[[int, int], None] | None:
    return None if progress is None else lambda done, total: progress(name, done, total)


def _check_labels(y: Any, n_rows: int) -> NDArray[Any]:
    """Return y as a 1-D array of labels or tuples, or as a 2-D array with a path in each row."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    if hasattr(y, "to_numpy"):
        y = y.to_numpy()
    if isinstance(y, (list, tuple)) and len(y) and isinstance(y[0], (list, tuple)):
        y = _label_array([tuple(path) for path in y])
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected; it was flattened",
            DataConversionWarning,
            stacklevel=3,
        )
        y = y.ravel()
    if y.ndim not in (1, 2):
        raise ValueError(f"y must have one label or one path a row, got shape {y.shape}")
    if y.shape[0] != n_rows:
        raise DataError(f"X has {n_rows} rows but y has {y.shape[0]}; they must be the same")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise DataError("y contains NaN or infinity; every row needs a label")
    return y


def _label_array(labels: list[Any]) -> NDArray[Any]:
    """Return labels as an array of their own type, or of objects where they are mixed or tuples."""
    kinds = {type(label) for label in labels}
    if len(kinds) == 1 and kinds <= {str, int, float, bool}:
        return np.asarray(labels)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array
