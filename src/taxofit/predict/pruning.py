"""How small a weight may be left out: measured, not guessed.

What is left out are small differences between siblings; see :mod:`taxofit.predict.packer`. The
limit is the largest of :data:`LIMITS` that changes at most :data:`MAX_CHANGED` of predictions.

A model is surer of the rows it was fitted to than of rows to come, so those would not tell. What is
known of rows to come are the scores of validation rows by models that had not seen them: how far
the best leaf was ahead of the next, its *lead*. Leaving weights out changes the lead of the same
rows by some amounts. A prediction changes where such a loss exceeds a lead; as the two have little
to do with each other, every loss is held against every lead, which makes a rare event measurable on
some hundred rows. Where there are no validation rows, :data:`CAUTIOUS_LIMIT` is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit.predict.search import Search, find_in_scores, log_sigmoid, path_scores

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from taxofit.predict.packed_weights import PackedWeights
    from taxofit.predict.packer import Packer
    from taxofit.taxonomy import Taxonomy

__all__ = ["CAUTIOUS_LIMIT", "LIMITS", "MAX_CHANGED", "Trial", "pack_pruned"]

LIMITS = (0.004, 0.008, 0.016, 0.022, 0.032, 0.045, 0.064)
CAUTIOUS_LIMIT = 0.008
MAX_CHANGED = 0.001
N_TRIALS = 2000


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


def pack_pruned(packer: Packer, search: Search, trial: Trial | None = None) -> PackedWeights:
    """Return weights packed with the largest limit that leaves predictions as they are.

    Parameters
    ----------
    packer : Packer
        With the sightings of the training rows.
    search : Search
        By which predictions will be made.
    trial : Trial, optional
    """
    limit = CAUTIOUS_LIMIT if trial is None else _largest_limit(packer, search, trial)
    return packer.pack(limit)


def _largest_limit(packer: Packer, search: Search, trial: Trial) -> float:
    taxonomy, scores = packer.taxonomy, trial.scores
    ahead = _leads(scores, taxonomy, search)
    lead = ahead(scores)
    has_rival = np.isfinite(lead)
    if not has_rival.any():
        return LIMITS[-1]
    lost = packer.lost_scores(trial.X, LIMITS)
    for k in reversed(range(len(LIMITS))):
        left = ahead(scores - lost[: k + 1].sum(axis=0))
        if changed_share(lead[has_rival], (lead - left)[has_rival]) <= MAX_CHANGED:
            return LIMITS[k]
    return 0.0


def changed_share(leads: NDArray[Any], losses: NDArray[Any]) -> float:
    """Return how often a loss exceeds a lead, each held against each.

    Examples
    --------
    >>> changed_share(np.array([0.1, 1.0]), np.array([0.5, -0.5]))
    0.25
    """
    return float(np.searchsorted(np.sort(leads), losses, side="left").sum()) / (
        leads.size * losses.size
    )


def _leads(
    scores: NDArray[Any], taxonomy: Taxonomy, search: Search
) -> Callable[[NDArray[Any]], NDArray[np.float64]]:
    """Return what measures how far each row's leaf is ahead of its rival, in other scores too.

    The rival is the second leaf by path score; in a greedy walk, the second child at the step where
    it came closest.
    """
    if search.kind == "greedy":
        best, rival = _closest_step(scores, taxonomy)
        rows = np.arange(best.size)
        alone = best == rival
        return lambda other: np.where(alone, np.inf, other[rows, best] - other[rows, rival])
    wide = Search("beam", search.gamma)
    found = find_in_scores(log_sigmoid(scores), taxonomy, wide, n_best=2)[0]
    rows = np.arange(found.shape[0])

    def ahead(other: NDArray[Any]) -> NDArray[np.float64]:
        totals = path_scores(log_sigmoid(other), taxonomy, search.gamma)
        lead = totals[rows, found[:, 0]] - totals[rows, found[:, 1]]
        return np.where(found[:, 1] < 0, np.inf, lead)

    return ahead


def _closest_step(
    scores: NDArray[Any], taxonomy: Taxonomy
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return, for every row, chosen and second child of the closest step of its walk."""
    n_rows = scores.shape[0]
    best, rival = np.zeros((2, n_rows), dtype=np.int64)
    closest = np.full(n_rows, np.inf)
    node = np.zeros(n_rows, dtype=np.int64)
    moving = np.arange(n_rows)
    while moving.size:
        order = np.argsort(node[moving], kind="stable")
        moving = moving[order]
        _, starts = np.unique(node[moving], return_index=True)
        for group in np.split(moving, starts[1:]):
            parent = node[group[0]]
            first, stop = taxonomy.first_child[parent], taxonomy.first_child[parent + 1]
            here = scores[group, first:stop]
            chosen = here.argmax(axis=1)
            node[group] = first + chosen
            if stop - first > 1:
                top = here[np.arange(group.size), chosen]
                here[np.arange(group.size), chosen] = -np.inf
                second = here.argmax(axis=1)
                lead = top - here[np.arange(group.size), second]
                closer = lead < closest[group]
                rows = group[closer]
                closest[rows] = lead[closer]
                best[rows], rival[rows] = first + chosen[closer], first + second[closer]
        moving = moving[~taxonomy.is_leaf[node[moving]]]
    return best, rival
