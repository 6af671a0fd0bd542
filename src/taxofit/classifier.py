"""The estimator: fit rows and labels, repair the taxonomy, predict by walking down it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    check_random_state,
    validate_data,
)

from taxofit.bank.evidence import gather_evidence
from taxofit.bank.node_bank import NodeBank
from taxofit.bank.rows import Rows
from taxofit.bank.solver import SolverSettings
from taxofit.bank.split import split_rows
from taxofit.bank.warm_starts import WarmStarts
from taxofit.bank.work_dir import WorkDir
from taxofit.datasets.features import TextEncoder
from taxofit.errors import DataError, TaxonomyError
from taxofit.flattening import Case, KeepAll
from taxofit.labels import check_labels, find_leaves, label_array
from taxofit.methods import flattening_named
from taxofit.predict.packing import solve_and_pack
from taxofit.selection import (
    C_GRID,
    VALIDATION_FRACTION,
    Selection,
    Selector,
    Validation,
    evidence_table,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import ArrayLike, NDArray

    from taxofit.flattening import Flattening
    from taxofit.taxonomy import Taxonomy

    IntArray = NDArray[np.int32]
    Progress = Callable[[str, int, int], None]

__all__ = ["TaxonomyClassifier"]

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
    device : {"auto", "cpu", "cuda"}, default "auto"
        Where nodes are solved. ``"auto"`` is a GPU if torch sees one (the extra ``taxofit[gpu]``),
        else the CPU. Prediction is on the CPU.
    random_state : int or RandomState, default 0
        Which rows are held out for validation, where any are needed.
    work_dir : path, optional
        A folder that keeps what is solved. A fit that was killed or interrupted goes on from there
        when the same fit is started again, and ends with the identical model. Not saved with the
        model. See docs/clusters.md, also for fits that spread over machines.

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
    validation_ : Validation or None
        The validation rows and the scores of every node on them, at the chosen C; not saved with
        the model. None where none were needed.
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
        device: Literal["auto", "cpu", "cuda"] = "auto",
        random_state: int | np.random.RandomState | None = 0,
        work_dir: str | Path | None = None,
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
        self.device = device
        self.random_state = random_state
        self.work_dir = work_dir

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
        y = check_labels(y, X.shape[0])
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        taxonomy, row_leaf = find_leaves(y, self.taxonomy)
        used = np.flatnonzero(weight > 0)
        if not used.size:
            raise DataError("all sample weights are zero; at least one row must count")
        bank = NodeBank(
            Rows.prepare(X[used], fit_intercept=self.fit_intercept, sample_weight=weight[used]),
            taxonomy,
            row_leaf[used],
            settings=SolverSettings(tol=self.tol, max_iter=self.max_iter),
            n_threads=self.n_jobs,
            device=self.device,
            work_dir=None if self.work_dir is None else WorkDir(self.work_dir),
        )
        warm = WarmStarts(taxonomy.n_nodes)
        selection, validation = self._select(bank, warm, progress)
        self.validation_ = (
            None if validation is None else replace(validation, rows=used[validation.rows])
        )
        repaired, kept = taxonomy.without(selection.choice.removed)
        self.weights_, report = solve_and_pack(
            bank,
            selection.C,
            repaired,
            kept,
            has_intercept=self.fit_intercept,
            pruned_share=PRUNED_SHARE if self.prune == "auto" else 0.0,
            start=warm.at(selection.C),
            progress=_stage(progress, "Fitting nodes"),
        )
        self.n_iter_ = report.n_iterations
        self.taxonomy_ = repaired
        self._describe(bank, selection)
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
        if self.C != "auto" and not (isinstance(self.C, (int, float)) and self.C > 0):
            raise ValueError(f"C must be a positive number or 'auto', but is {self.C!r}")
        if self.prune not in ("auto", "none"):
            raise ValueError(f"prune must be 'auto' or 'none', but is {self.prune!r}")

    def _select(
        self, bank: NodeBank, warm: WarmStarts, progress: Progress | None
    ) -> tuple[Selection, Validation | None]:
        """Return C and what to remove, from validation rows where they are needed."""
        strategy = flattening_named(self.flattening)
        nothing_removed = KeepAll().choose(Case(bank.taxonomy))
        fallback = Selection(1.0 if self.C == "auto" else float(self.C), nothing_removed)
        if self.C != "auto" and not strategy.needs_evidence:
            return replace(fallback, choice=strategy.choose(Case(bank.taxonomy))), None
        seed = self.random_state
        if not isinstance(seed, (int, np.integer)):
            seed = check_random_state(seed).randint(np.iinfo(np.int32).max)
        rows = bank.rows
        training, held_out = split_rows(
            rows.X, bank.row_leaf, rows.weight, fraction=VALIDATION_FRACTION, seed=int(seed)
        )
        if not held_out.size or not training.size:
            return fallback, None  # a single distinct row: nothing can be held out
        smaller = bank.take(training)
        evidence = gather_evidence(
            smaller,
            rows.take(held_out),
            bank.row_leaf[held_out],
            C_GRID if self.C == "auto" else [float(self.C)],
            also=warm.harvest,
            progress=_stage(progress, "Validating nodes"),
        )
        selector = Selector(smaller, evidence)
        selection = selector.select(strategy)
        return selection, selector.validation(held_out, selection)

    def _describe(self, bank: NodeBank, selection: Selection) -> None:
        """Set the fitted attributes that tell what happened."""
        taxonomy, choice = bank.taxonomy, selection.choice
        self.original_taxonomy_ = taxonomy
        self.removed_ = tuple(taxonomy.labels[node] for node in np.flatnonzero(choice.removed))
        self.C_, self.psi_ = selection.C, choice.psi
        self.validation_score_ = selection.score
        n_rows = taxonomy.totals(np.bincount(bank.row_leaf, minlength=taxonomy.n_nodes))
        self.evidence_ = evidence_table(taxonomy, choice, n_rows, selection.evidence)
        self._set_classes()

    def _set_classes(self) -> None:
        """Set the predictable labels; also after loading."""
        leaves = self.taxonomy_.leaf_order
        known = leaves[np.isfinite(self.weights_.intercept[leaves])]
        self.classes_ = label_array([self.taxonomy_.labels[leaf] for leaf in known])
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
        for row, label in enumerate(check_labels(y, predicted.size).tolist()):
            key = tuple(label) if isinstance(label, list) else label
            if key in self.original_taxonomy_:
                true[row] = self.original_taxonomy_.node_of(key)
        weights = None if sample_weight is None else np.asarray(sample_weight)
        return float(np.average(true == predicted, weights=weights))

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


def _new_encoder(encoder: Any) -> Any:
    """Return an unfitted encoder of one's own, or None."""
    if isinstance(encoder, str):
        return TextEncoder(features=encoder)  # type: ignore[arg-type]
    return None if encoder is None else clone(encoder)


def _stage(progress: Progress | None, name: str) -> Callable[[int, int], None] | None:
    return None if progress is None else lambda done, total: progress(name, done, total)
