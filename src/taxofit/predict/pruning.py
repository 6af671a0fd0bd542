"""How small a weight may be left out: measured, not guessed.

What is left out are small differences between siblings; see :mod:`taxofit.predict.packer`.

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

from taxofit.predict.search import find_in_scores, log_sigmoid
from taxofit.predict.walk import walk_scores

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from taxofit.predict.packed_weights import PackedWeights
    from taxofit.predict.packer import Packer
    from taxofit.predict.search import Search
    from taxofit.taxonomy import Taxonomy

__all__ = ["AGREEMENT", "CAUTIOUS_LIMIT", "LIMITS", "Trial", "pack_pruned"]

LIMITS = (0.004, 0.008, 0.016, 0.022, 0.032, 0.045, 0.064)
CAUTIOUS_LIMIT = 0.008
AGREEMENT = 0.9995
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
    scores, taxonomy = trial.scores, packer.taxonomy
    expected = _found(scores, taxonomy, search)
    lost = packer.lost_scores(trial.X, LIMITS)
    for k in reversed(range(len(LIMITS))):
        found = _found(scores - lost[: k + 1].sum(axis=0), taxonomy, search)
        if np.mean(found == expected) >= AGREEMENT:
            return LIMITS[k]
    return 0.0


def _found(scores: NDArray[Any], taxonomy: Taxonomy, search: Search) -> NDArray[np.int32]:
    if search.kind == "greedy":
        return walk_scores(scores, taxonomy)
    return find_in_scores(log_sigmoid(scores), taxonomy, search)[0][:, 0]
