"""The features that decide for and against a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit.errors import TaxonomyError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from taxofit.classifier import TaxonomyClassifier

__all__ = ["deciding_features"]

N_FOR, N_AGAINST = 8, 4
# Weights are unpacked node by node; of very wide models only the most important nodes' are.
MAX_UNPACKED = 200_000_000
MAX_NODES = 20_000


def deciding_features(classifier: TaxonomyClassifier) -> dict[str, dict[str, Any]]:
    """Return, by node, the features of largest and smallest weight: ``for`` and ``against``.

    Keys are nodes of the original taxonomy, as texts. Removed nodes have no model and are not here.

    Examples
    --------
    >>> from taxofit import TaxonomyClassifier
    >>> texts = ["black cat", "white cat", "black dog", "brown dog"]
    >>> model = TaxonomyClassifier(flattening="td-lr", C=1.0, encoder="words")
    >>> found = deciding_features(model.fit(texts, ["cat", "cat", "dog", "dog"]))
    >>> found["1"]["for"][0][0], found["1"]["against"][0][0]
    ('cat', 'dog')
    """
    taxonomy = classifier.original_taxonomy_
    names = feature_names(classifier)
    n_nodes = min(MAX_NODES, max(1, MAX_UNPACKED // len(names)))
    rows = classifier.evidence_["rows"].to_numpy()
    order = 1 + np.lexsort((-rows, taxonomy.is_leaf[1:]))
    removed = set(classifier.removed_)
    found = {}
    for node in order[:n_nodes].tolist():
        if (label := taxonomy.labels[node]) in removed:
            continue
        try:
            weights = classifier.node_coef(label)[0]
        except TaxonomyError:  # no training rows, no model
            continue
        found[str(node)] = {
            "for": _top(weights, names, N_FOR),
            "against": _top(-weights, names, N_AGAINST, sign=-1),
        }
    return found


def feature_names(classifier: TaxonomyClassifier) -> NDArray[Any]:
    """Return the encoder's names of the features, the frame's, or x0, x1 and so on."""
    encoder = getattr(classifier, "encoder_", None)
    if encoder is not None and hasattr(encoder, "get_feature_names_out"):
        return np.asarray(encoder.get_feature_names_out())
    given = getattr(classifier, "feature_names_in_", None)
    if given is not None:
        return np.asarray(given)
    return np.array([f"x{column}" for column in range(classifier.n_features_in_)])


def _top(
    weights: NDArray[np.float64], names: NDArray[Any], n: int, *, sign: int = 1
) -> list[list[Any]]:
    """Return up to n features of positive weight, largest first, as [name, weight]."""
    n = min(n, weights.size)
    largest = np.argpartition(-weights, n - 1)[:n]
    largest = largest[np.argsort(-weights[largest], kind="stable")]
    return [
        [str(names[feature]), sign * float(f"{weights[feature]:.3g}")]
        for feature in largest.tolist()
        if weights[feature] > 0
    ]
