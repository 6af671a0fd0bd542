"""Explaining one row: at every step down, the candidates and the features that decided."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from taxofit.predictions import Candidate, FeatureShare, Step

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from taxofit.predict.predictor import Predictor

__all__ = ["explain_steps"]


def explain_steps(
    X: Any,
    predictor: Predictor,
    name_of: Callable[[int], str],
    *,
    n_candidates: int = 5,
    n_features: int = 10,
) -> tuple[Step, ...]:
    """Return the steps of a single row, shape (1, n_features), from the root to its leaf.

    Parameters
    ----------
    X : ndarray or CSR
    predictor : Predictor
    name_of : callable
        Gives a feature's name.
    n_candidates, n_features : int
        How many to show at every step, and for each candidate.
    """
    taxonomy = predictor.taxonomy
    row = sparse.csr_array(X)
    row.sum_duplicates()
    features, values = row.indices, row.data.astype(np.float64)
    probability = predictor.node_probabilities(X)[0]
    scores = predictor.weights.node_scores(X, taxonomy)[0].astype(np.float64)
    path = [int(predictor.find(X)[0][0])]
    while taxonomy.parent[path[-1]] > 0:
        path.append(int(taxonomy.parent[path[-1]]))
    steps = []
    for node in reversed(path):
        parent = int(taxonomy.parent[node])
        children = np.asarray(taxonomy.children(parent))
        children = children[np.isfinite(scores[children])]
        best = children[np.argsort(-scores[children], kind="stable")]
        shown = best[:n_candidates]
        if node not in shown:
            shown = np.append(shown[: n_candidates - 1], node)
        weights = predictor.weights.child_weights(parent, features, taxonomy)
        first = int(taxonomy.first_child[parent])
        candidates = []
        for child in shown.tolist():
            own = weights[child - first]
            rival = next((other for other in best.tolist() if other != child), None)
            against = own if rival is None else own - weights[rival - first]
            shares = _shares(features, values, own, values * against, name_of, n_features)
            candidates.append(
                Candidate(
                    taxonomy.labels[child], float(scores[child]), float(probability[child]), shares
                )
            )
        steps.append(Step(taxonomy.labels[node], tuple(candidates)))
    return tuple(steps)


def _shares(
    features: NDArray[Any],
    values: NDArray[np.float64],
    weights: NDArray[np.float64],
    contributions: NDArray[np.float64],
    name_of: Callable[[int], str],
    n_features: int,
) -> tuple[FeatureShare, ...]:
    largest = np.argsort(-np.abs(contributions), kind="stable")[:n_features]
    return tuple(
        FeatureShare(
            name_of(int(features[k])), float(values[k]), float(weights[k]), float(contributions[k])
        )
        for k in largest
        if contributions[k] != 0
    )
