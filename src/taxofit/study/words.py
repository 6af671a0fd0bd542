"""The features that decide for and against a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from taxofit.classifier import TaxonomyClassifier

    IntArray = NDArray[np.int32]

__all__ = ["deciding_features"]

N_FOR, N_AGAINST = 8, 4
MAX_COMPARED = 1_000_000_000  # weights; of larger models only the most important nodes are shown
CHUNK_FEATURES = 512


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
    names = feature_names(classifier)
    shown, original = _shown_nodes(classifier, len(names))
    if not shown.size:
        return {}
    best, worst = _Largest(N_FOR), _Largest(N_AGAINST)
    for first, part in _weights(classifier, shown, len(names)):
        best.see(first, part)
        worst.see(first, -part)
    (values, features), (low_values, low_features) = best.ordered(), worst.ordered()
    return {
        str(node): {
            "for": _listed(values[:, k], features[:, k], names),
            "against": _listed(low_values[:, k], low_features[:, k], names, sign=-1),
        }
        for k, node in enumerate(original.tolist())
    }


def feature_names(classifier: TaxonomyClassifier) -> NDArray[Any]:
    """Return the encoder's names of the features, the frame's, or x0, x1 and so on."""
    encoder = getattr(classifier, "encoder_", None)
    if encoder is not None and hasattr(encoder, "get_feature_names_out"):
        return np.asarray(encoder.get_feature_names_out())
    given = getattr(classifier, "feature_names_in_", None)
    if given is not None:
        return np.asarray(given)
    return np.array([f"x{column}" for column in range(classifier.n_features_in_)])


def _shown_nodes(classifier: TaxonomyClassifier, n_features: int) -> tuple[IntArray, IntArray]:
    """Return nodes of the repaired taxonomy, internal ones first, and which they were before."""
    taxonomy = classifier.original_taxonomy_
    removed = np.zeros(taxonomy.n_nodes, dtype=bool)
    removed[[taxonomy.node_of(label) for label in classifier.removed_]] = True
    kept = taxonomy.without(removed)[1]
    rows = np.append(0, classifier.evidence_["rows"].to_numpy())
    order = np.lexsort((-rows[kept], taxonomy.is_leaf[kept]))
    order = order[(kept[order] > 0) & (rows[kept[order]] > 0)]
    shown = order[: max(1, MAX_COMPARED // max(n_features, 1))]
    return shown.astype(np.int32), kept[shown]


def _weights(
    classifier: TaxonomyClassifier, nodes: IntArray, n_features: int
) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield weights of some features at a time: the first of them, and (n_features, n_nodes).

    Weights are packed for walks, not by node. What they give a row with a single feature of 1, less
    what they give an empty row, is that feature's weight at every node.
    """
    n_threads = joblib.cpu_count()
    weights, taxonomy = classifier.weights_, classifier.taxonomy_
    empty = sparse.csr_array((1, n_features), dtype=np.float32)
    base = weights.node_scores(empty, taxonomy, n_threads)[:, nodes]
    base = np.where(np.isfinite(base), base, 0.0)
    for first in range(0, n_features, CHUNK_FEATURES):
        n = min(CHUNK_FEATURES, n_features - first)
        columns = np.arange(first, first + n)
        single = sparse.csr_array(
            (np.ones(n, dtype=np.float32), columns, np.arange(n + 1)), shape=(n, n_features)
        )
        yield first, weights.node_scores(single, taxonomy, n_threads)[:, nodes] - base


class _Largest:
    """Keeps the n largest weights of every node as parts of the features go by."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._kept: tuple[NDArray[Any], NDArray[np.int64]] | None = None

    def see(self, first: int, part: NDArray[Any]) -> None:
        features = np.broadcast_to(np.arange(first, first + len(part))[:, None], part.shape)
        if self._kept is not None:
            part = np.vstack([self._kept[0], part])
            features = np.vstack([self._kept[1], features])
        top = np.argpartition(-part, min(self._n, len(part)) - 1, axis=0)[: self._n]
        self._kept = tuple(np.take_along_axis(each, top, axis=0) for each in (part, features))  # type: ignore[assignment]

    def ordered(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return weights and features, largest first, both of shape (n, n_nodes)."""
        if self._kept is None:
            raise ValueError("no features went by")
        order = np.lexsort((self._kept[1], -self._kept[0]), axis=0)
        weights, features = (np.take_along_axis(each, order, axis=0) for each in self._kept)
        return weights, features


def _listed(
    weights: NDArray[Any], features: NDArray[np.int64], names: NDArray[Any], *, sign: int = 1
) -> list[list[Any]]:
    """Return features of positive weight, as [name, weight]."""
    return [
        [str(names[feature]), sign * float(f"{weight:.3g}")]
        for feature, weight in zip(features.tolist(), weights.tolist(), strict=True)
        if np.isfinite(weight) and weight > 0
    ]
