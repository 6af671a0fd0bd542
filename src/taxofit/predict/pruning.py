"""How small a weight may be left out: measured, not guessed.

The rule. Among the children of a node only differences of weights decide where a walk goes, so what
is judged is a weight's difference to the median of its siblings' weights for the same feature. One
up to ``limit`` is left out; up to three times as much where no training row under the parent has
the feature, since few rows that get there will.

The limit is the largest of :data:`LIMITS` that leaves predictions as they are. A model is surer of
the rows it was fitted to than of rows to come, so they would not tell. What is known of rows to
come are the scores of validation rows by models that had not seen them; to these is added what
leaving weights out changes, on the same rows, and at least :data:`AGREEMENT` of them must still end
at the same leaf. Where there are no validation rows, :data:`CAUTIOUS_LIMIT` is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from taxofit.predict.packed_weights import PackedWeights
from taxofit.predict.search import find_in_scores, log_sigmoid
from taxofit.predict.walk import walk_scores

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from taxofit.predict.search import Search
    from taxofit.taxonomy import Taxonomy

__all__ = ["AGREEMENT", "CAUTIOUS_LIMIT", "LIMITS", "Sightings", "Trial", "pack_pruned"]

LIMITS = (0.064, 0.045, 0.032, 0.022, 0.016, 0.008, 0.004, 0.002)
CAUTIOUS_LIMIT = 0.008
AGREEMENT = 0.9995
N_TRIALS = 4000


@dataclass(frozen=True, eq=False)
class Sightings:
    """Where in the tree each feature occurs.

    Attributes
    ----------
    start : ndarray of int64, shape (n_features + 1,)
    positions : ndarray of int32
        ``positions[start[f]:start[f + 1]]`` are the places, in the taxonomy's leaf order, of the
        leaves of the rows that have feature f, ascending.
    """

    start: NDArray[np.int64]
    positions: NDArray[np.int32]

    @classmethod
    def gather(cls, X: Any, row_leaf: NDArray[np.int32], taxonomy: Taxonomy) -> Sightings:
        """Return the sightings of the rows of X, shape (n_rows, n_features)."""
        position = taxonomy.leaf_start[row_leaf]
        order = np.argsort(position, kind="stable")
        sorted_rows = sparse.csr_array(X)[order]
        by_feature = sparse.csr_array(
            (
                np.ones(sorted_rows.nnz, dtype=np.int8),
                sorted_rows.indices,
                sorted_rows.indptr,
            ),
            shape=sorted_rows.shape,
        ).tocsc()
        return cls(
            by_feature.indptr.astype(np.int64),
            position[order][by_feature.indices].astype(np.int32),
        )


@dataclass(frozen=True, eq=False)
class Trial:
    """Rows, and their scores by models that were not fitted to them.

    Attributes
    ----------
    X : CSR, shape (n_rows, n_features)
    scores : ndarray of float32, shape (n_rows, n_nodes)
    """

    X: Any
    scores: NDArray[np.float32]


def pack_pruned(
    columns: sparse.csc_array,
    intercept: NDArray[Any],
    taxonomy: Taxonomy,
    sightings: Sightings,
    search: Search,
    trial: Trial | None = None,
) -> PackedWeights:
    """Return weights packed with the largest limit that leaves predictions as they are.

    Parameters
    ----------
    columns, intercept, taxonomy, sightings
        As in :meth:`PackedWeights.pack`.
    search : Search
        By which predictions will be made.
    trial : Trial, optional
    """

    def pack(limit: float) -> PackedWeights:
        return PackedWeights.pack(columns, intercept, taxonomy, sightings=sightings, limit=limit)

    if trial is None or not trial.X.shape[0]:
        return pack(CAUTIOUS_LIMIT)
    X, scores = trial.X[:N_TRIALS], trial.scores[:N_TRIALS]
    whole = PackedWeights.pack(columns, intercept, taxonomy)
    exact = whole.node_scores(X, taxonomy)
    is_open = np.isfinite(exact) & np.isfinite(scores)
    expected = _found(np.where(is_open, scores, -np.inf), taxonomy, search)
    for limit in LIMITS:
        pruned = pack(limit)
        with np.errstate(invalid="ignore"):
            changed = scores + (pruned.node_scores(X, taxonomy) - exact)
        found = _found(np.where(is_open, changed, -np.inf), taxonomy, search)
        if np.mean(found == expected) >= AGREEMENT:
            return pruned
    return whole


def _found(scores: NDArray[Any], taxonomy: Taxonomy, search: Search) -> NDArray[np.int32]:
    if search.kind == "greedy":
        return walk_scores(scores, taxonomy)
    return find_in_scores(log_sigmoid(scores), taxonomy, search)[0][:, 0]
