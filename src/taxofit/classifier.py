"""The estimator: fit rows and labels, repair the taxonomy, predict by walking down it."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import joblib
import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    check_random_state,
    validate_data,
)

from taxofit.bank.node_bank import NodeBank
from taxofit.bank.rows import Rows
from taxofit.bank.solver import SolverSettings
from taxofit.bank.warm_starts import WarmStarts
from taxofit.bank.work_dir import WorkDir
from taxofit.datasets.mapped import take_rows
from taxofit.encoder_choice import choose_features, has_open_features, new_encoder
from taxofit.errors import DataError, TaxonomyError
from taxofit.explanation import explain_steps
from taxofit.fit_choices import FitChoices
from taxofit.labels import check_labels, find_leaves, label_array
from taxofit.methods import flattening_named
from taxofit.notebook import NotebookSummary
from taxofit.predict.packing import solve_and_pack
from taxofit.predict.predictor import Predictor
from taxofit.predict.pruning import N_TRIALS, Trial
from taxofit.predictions import Explanation, TopPredictions
from taxofit.progress import stage_of
from taxofit.selection import evidence_table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import ArrayLike, NDArray

    from taxofit.flattening import Flattening
    from taxofit.predict.search import Search
    from taxofit.progress import StageProgress
    from taxofit.selection import Selection, Validation
    from taxofit.taxonomy import Taxonomy

    IntArray = NDArray[np.int32]

__all__ = ["TaxonomyClassifier"]


# scikit-learn's classes have no types
class TaxonomyClassifier(NotebookSummary, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
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
    search : {"greedy", "beam", "auto"}, default "greedy"
        How a row finds its leaf. ``"greedy"``, the paper's way, goes to the child of highest score
        at every step. ``"beam"`` looks for the leaf of highest path score, Σ γ^(distance from the
        leaf) · log σ(θ·x) over the nodes of its path, so that an error near the root can be made
        good below; it needs no flattening (``flattening="td-lr"``). ``"auto"`` takes what is better
        on the validation rows.
    gamma : float or "auto", default "auto"
        Of the path score, between 0 (the leaf alone) and 1 (all nodes of the path alike).
    beam_width : int or "auto", default "auto"
        Nodes opened at every depth; 0 opens all. ``"auto"`` is the narrowest beam that finds the
        same leaves on the validation rows.
    encoder : str or transformer, optional
        For texts: ``"words"``, ``"pairs"`` (words and word pairs), ``"chars"`` (words and character
        n-grams), ``"auto"`` (the best of these on validation rows, see
        :mod:`taxofit.encoder_choice`), or any transformer of :mod:`taxofit.datasets`. It is fitted
        on the rows given to :meth:`fit`, kept in ``encoder_`` and saved with the model, which then
        predicts from texts.
    fit_intercept : bool, default True
        Append a constant feature 1, regularised like the others.
    tol : float, default 1e-4
        Tolerance of liblinear's stopping rule.
    max_iter : int, default 100
        Newton steps for a node before it is reported as not converged.
    prune : "auto", "none" or float, default "auto"
        For sparse data, leave out weights that decide little: as many as leave 99.9 % of
        predictions alone (none of a small model), none, or differences between siblings up to a
        number (0.017 makes small models at C = 100); see :mod:`taxofit.predict.pruning`.
    n_jobs : int, optional
        Threads for sparse data, in fitting and prediction; all cores by default. Results do not
        depend on it.
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
        As given, or as chosen.
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
    search_ : Search
        How leaves are found: kind, γ and width.
    calibration_ : Calibration
        How path scores become probabilities.
    encoder_ : transformer or None
        Fitted; what turns texts or frames into numbers.
    encoder_choice_ : EncoderChoice or None
        Scores of the candidates where features were chosen; not saved with the model.
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
        search: Literal["greedy", "beam", "auto"] = "greedy",
        gamma: float | Literal["auto"] = "auto",
        beam_width: int | Literal["auto"] = "auto",
        encoder: Any = None,
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int = 100,
        prune: float | Literal["auto", "none"] = "auto",
        n_jobs: int | None = None,
        device: Literal["auto", "cpu", "cuda"] = "auto",
        random_state: int | np.random.RandomState | None = 0,
        work_dir: str | Path | None = None,
    ) -> None:
        self.taxonomy = taxonomy
        self.flattening = flattening
        self.C = C
        self.search = search
        self.gamma = gamma
        self.beam_width = beam_width
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
        progress: StageProgress | None = None,
    ) -> TaxonomyClassifier:
        """Solve the nodes, repair the taxonomy, and keep the models of the nodes that remain.

        Parameters
        ----------
        X : ndarray, sparse matrix or frame, shape (n_rows, n_features)
        y : array-like
            Leaf labels; or paths (tuples, or one column per level).
        sample_weight : array-like, shape (n_rows,), optional
            A row of weight 2 counts as two rows, in the objective and in all that validation rows
            decide: C, the flattening, the search and the calibration.
        progress : callable, optional
            Called with (stage, done, in all) as nodes are solved.
        """
        self._check_parameters()
        self.encoder_ = self._settled_encoder(X, y, progress)
        X = self._encode(X, fit=True)
        y = check_labels(y, X.shape[0])
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        taxonomy, row_leaf = find_leaves(y, self.taxonomy)
        used = np.flatnonzero(weight > 0)
        if not used.size:
            raise DataError("all sample weights are zero; at least one row must count")
        counted = X if used.size == weight.size else take_rows(X, used)
        bank = NodeBank(
            Rows.prepare(counted, fit_intercept=self.fit_intercept, sample_weight=weight[used]),
            taxonomy,
            row_leaf[used],
            settings=SolverSettings(tol=self.tol, max_iter=self.max_iter),
            n_threads=self.n_jobs,
            device=self.device,
            work_dir=None if self.work_dir is None else WorkDir(self.work_dir),
        )
        warm = WarmStarts(bank)
        choices = FitChoices(
            flattening_named(self.flattening), self.C, self.search, self.gamma, self.beam_width
        )
        selection, validation = choices.settle(
            bank,
            seed=self._seed(),
            also=warm.harvest,
            progress=stage_of(progress, "Validating nodes"),
        )
        repaired, kept = taxonomy.without(selection.choice.removed)
        self.weights_, report = solve_and_pack(
            bank,
            selection.C,
            repaired,
            kept,
            has_intercept=self.fit_intercept,
            prune=self.prune,
            search=selection.search,
            trial=self._trial(bank, validation, kept),
            start=warm.take(selection.C),
            progress=stage_of(progress, "Fitting nodes"),
        )
        if validation is not None:
            validation = replace(validation, rows=used[validation.rows])
        self.validation_ = validation
        self.n_iter_ = report.n_iterations
        self.search_, self.calibration_ = selection.search, selection.calibration
        self.taxonomy_ = repaired
        self._describe(bank, selection)
        return self

    def _settled_encoder(self, X: Any, y: Any, progress: StageProgress | None) -> Any:
        """Return an unfitted encoder of one's own or None, its features chosen if need be."""
        encoder = new_encoder(self.encoder)
        self.encoder_choice_ = None
        if not has_open_features(encoder):
            return encoder
        taxonomy, row_leaf = find_leaves(check_labels(y, len(X)), self.taxonomy)
        self.encoder_choice_ = choose_features(
            encoder,
            X,
            taxonomy,
            row_leaf,
            seed=self._seed(),
            n_threads=self.n_jobs,
            device=self.device,
            progress=progress,
        )
        return encoder.set_params(features=self.encoder_choice_.features)

    def _seed(self) -> int:
        if isinstance(self.random_state, (int, np.integer)):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _encode(self, X: Any, *, fit: bool = False) -> Any:
        """Return X as numbers, dense or CSR."""
        if self.encoder_ is not None:
            X = self.encoder_.fit_transform(X) if fit else self.encoder_.transform(X)
        elif _are_texts(X):
            raise DataError(
                "X holds texts, but this classifier takes numbers; have it encode them with "
                "TaxonomyClassifier(..., encoder='words')"
            )
        if not fit and self._is_plain(X):
            return X
        return validate_data(
            self, X, reset=fit, accept_sparse="csr", dtype=[np.float64, np.float32]
        )

    def _is_plain(self, X: Any) -> bool:
        """Tell whether rows are as the loops want them; scikit-learn's checks take 100 µs."""
        return (
            sparse.issparse(X)
            and X.format == "csr"
            and X.dtype.kind == "f"
            and X.shape[1] == self.n_features_in_
            and not hasattr(self, "feature_names_in_")
            and bool(np.isfinite(X.data).all())
        )

    def _check_parameters(self) -> None:
        if self.C != "auto" and not (isinstance(self.C, (int, float)) and self.C > 0):
            raise ValueError(f"C must be a positive number or 'auto', but is {self.C!r}")
        if self.search not in ("greedy", "beam", "auto"):
            raise ValueError(f"search must be 'greedy', 'beam' or 'auto', but is {self.search!r}")
        is_limit = isinstance(self.prune, (int, float)) and self.prune >= 0
        if self.prune not in ("auto", "none") and not is_limit:
            raise ValueError(
                f"prune must be 'auto', 'none' or a number not below 0, but is {self.prune!r}"
            )

    def _trial(self, bank: NodeBank, validation: Validation | None, kept: IntArray) -> Trial | None:
        """Return what pruning is tried on: validation rows and their scores at the kept nodes."""
        if validation is None or not bank.rows.is_sparse:
            return None
        rows = validation.rows[:N_TRIALS]
        return Trial(bank.rows.given(rows), validation.evidence.scores[:N_TRIALS][:, kept])

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
        self._predictor = Predictor(self.weights_, self.taxonomy_, self.search_, self.calibration_)
        leaves = self._predictor.leaves.tolist()
        self.classes_ = label_array([self.taxonomy_.labels[leaf] for leaf in leaves])

    # ------------------------------------------------------------------ using

    def predict(self, X: Any, *, min_confidence: float | None = None) -> NDArray[Any]:
        """Return the label of the leaf that each row reaches, shape (n_rows,).

        Parameters
        ----------
        X : as in :meth:`fit`
        min_confidence : float, optional
            Between 0 and 1. A row whose leaf is less probable than this gets the label of the
            nearest node above it that is probable enough, in the repaired taxonomy: at worst the
            root's.
        """
        return self.predict_with_score(X, min_confidence=min_confidence)[0]

    def predict_with_score(
        self, X: Any, *, min_confidence: float | None = None
    ) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Return the labels of :meth:`predict`, and how sure they are, between 0 and 1.

        That is the share of validation rows with such a path score that were right, as fitted in
        ``calibration_``; where there were no validation rows, the leaf's own σ(θ·x). Unlike
        :meth:`predict_proba` it needs no look at other leaves. With ``min_confidence`` it is the
        probability that the row's leaf lies under the label, from all of them.
        """
        if min_confidence is not None and not 0 <= min_confidence <= 1:
            raise ValueError(f"min_confidence must be between 0 and 1, but is {min_confidence!r}")
        X = self._ready(X)
        if min_confidence is None:
            reached, totals = self._predictor.find(X, self._n_threads)
            return self._labels_of(reached), self.calibration_.confidence(totals)
        nodes, sure = self._predictor.find_sure(X, min_confidence, self._n_threads)
        return label_array([self.taxonomy_.labels[node] for node in nodes.tolist()]), sure

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of every class, shape (n_rows, n_classes), in ``classes_`` order.

        A softmax of path scores, calibrated on the validation rows. A greedy walk need not end at
        the most probable class; beam search does, as far as its beam is wide enough.
        """
        X = self._ready(X)
        return self._predictor.probabilities(X, self._n_threads)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return β · (path score) of every class, shape (n_rows, n_classes).

        Of two classes, the second's less the first's, shape (n_rows,), as scikit-learn has it.
        """
        X = self._ready(X)
        totals = self.calibration_.beta * self._predictor.totals(X, self._n_threads)
        return totals[:, 1] - totals[:, 0] if self.classes_.size == 2 else totals

    def predict_topk(self, X: Any, k: int = 5) -> TopPredictions:
        """Return the k most probable leaves of every row, with probabilities and paths.

        Examples
        --------
        >>> from taxofit import Taxonomy, TaxonomyClassifier
        >>> t = Taxonomy.from_paths([("animal", "cat"), ("animal", "dog"), ("plant", "oak")])
        >>> clf = TaxonomyClassifier(t, flattening="td-lr", C=10.0)
        >>> clf = clf.fit([[0.0, 1.0], [2.0, 0.0], [3.0, 3.0]], ["cat", "dog", "oak"])
        >>> best = clf.predict_topk([[0.0, 1.1]], k=2)
        >>> best.labels.tolist(), best.paths[0, 0]
        ([['cat', 'oak']], ('animal', 'cat'))
        """
        if k < 1:
            raise ValueError(f"k must be at least 1, but is {k!r}")
        X, k = self._ready(X), min(k, self.classes_.size)
        best, probability = self._predictor.top(X, k, self._n_threads)
        paths = np.empty(self.classes_.size, dtype=object)
        paths[:] = [self.original_taxonomy_.path_of(label) for label in self.classes_.tolist()]
        return TopPredictions(self.classes_[best], probability, paths[best])

    def explain(self, x: Any, *, n_candidates: int = 5, n_features: int = 10) -> Explanation:
        """Return why one row ends where it does: candidates and deciding features at every step.

        Parameters
        ----------
        x : a text, a row of numbers, or rows of which there is one
        n_candidates : int
            Children shown at every step, those of highest score.
        n_features : int
            Features shown for each of them, those that weigh most against its strongest rival.
        """
        X = self._ready(_one_row(x))
        if X.shape[0] != 1:
            raise DataError(f"explain takes one row, but got {X.shape[0]}; pass them one by one")
        steps = explain_steps(
            X,
            self._predictor,
            self._feature_namer(),
            n_candidates=n_candidates,
            n_features=n_features,
        )
        label = steps[-1].label
        probability = next(c.probability for c in steps[-1].candidates if c.label == label)
        return Explanation(label, self.original_taxonomy_.path_of(label), probability, steps)

    def _ready(self, X: Any) -> Any:
        check_is_fitted(self, "weights_")
        return self._encode(X)

    @property
    def _n_threads(self) -> int:
        return self.n_jobs if self.n_jobs and self.n_jobs > 0 else joblib.cpu_count()

    def _labels_of(self, leaves: IntArray) -> NDArray[Any]:
        return self.classes_[self._predictor.place_of[leaves]]

    def _feature_namer(self) -> Callable[[int], str]:
        """Return what names a feature: by the encoder, the columns, or its number."""
        if hasattr(self.encoder_, "get_feature_names_out"):
            names = self.encoder_.get_feature_names_out()
        else:
            names = getattr(self, "feature_names_in_", None)
        return (lambda feature: f"x{feature}") if names is None else lambda k: str(names[k])

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

    def with_search(self, search: Search) -> TaxonomyClassifier:
        """Return the same model with another way to find leaves; weights are shared.

        Examples
        --------
        >>> from taxofit import TaxonomyClassifier
        >>> from taxofit.predict.search import Search
        >>> clf = TaxonomyClassifier(C=1.0, flattening="td-lr").fit([[0.0], [1.0]], ["a", "b"])
        >>> clf.with_search(Search("beam", gamma=1.0)).search_.kind, clf.search_.kind
        ('beam', 'greedy')
        """
        check_is_fitted(self, "weights_")
        other = copy(self)
        other.search_ = search
        other._set_classes()  # noqa: SLF001  (another of its own kind)
        return other

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


def _one_row(x: Any) -> Any:
    """Return a single text or row as the one of several."""
    if isinstance(x, str):
        return [x]
    if isinstance(x, (list, tuple, np.ndarray)) and np.ndim(x) == 1:
        is_text = len(x) > 0 and isinstance(x[0], str)
        return x if is_text else np.asarray(x)[None, :]
    return x


def _are_texts(X: Any) -> bool:
    """Tell whether X is a list or a column of texts, by the first of them."""
    is_column = isinstance(X, (list, tuple)) or len(getattr(X, "shape", ())) == 1
    return is_column and isinstance(next(iter(X), None), str)
