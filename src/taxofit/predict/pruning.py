"""How small a weight may be left out: measured, not guessed.

What is left out are small differences between siblings; see :mod:`taxofit.predict.packer`. The
limit is a quarter of the largest of :data:`LIMITS` that leaves at least :data:`MIN_KEPT` of
predictions alone: a share of one in a thousand is measured badly on some hundred rows, and rows to
come are often less like the training rows than those held out.

A model is surer of the rows it was fitted to than of rows to come, so those would not tell. What is
known of rows to come are the scores of validation rows by models that had not seen them: from these
is taken what leaving weights out takes from the same rows. Where there are no validation rows,
:data:`CAUTIOUS_LIMIT` is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit.predict.search import find_in_scores, log_sigmoid
from taxofit.predict.walk import walk_scores

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from taxofit.predict.packer import Packer
    from taxofit.predict.search import Search
    from taxofit.taxonomy import Taxonomy

__all__ = ["CAUTIOUS_LIMIT", "LIMITS", "MIN_KEPT", "Trial", "safe_limit"]

LIMITS = (0.004, 0.006, 0.008, 0.012, 0.016, 0.022, 0.032, 0.045, 0.064)
CAUTIOUS_LIMIT = 0.008
MIN_KEPT = 0.999
CAUTION = 4.0
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


def safe_limit(packer: Packer, search: Search, trial: Trial | None = None) -> float:
    """Return a limit that leaves predictions as they are; 0 where none does.

    Parameters
    ----------
    packer : Packer
        With the sightings of the training rows.
    search : Search
        By which predictions will be made.
    trial : Trial, optional
    """
    if trial is None or not trial.X.shape[0]:
        return CAUTIOUS_LIMIT
    expected = _found(trial.scores, packer.taxonomy, search)
    lost = packer.lost_scores(trial.X, LIMITS)
    for k in reversed(range(len(LIMITS))):
        found = _found(trial.scores - lost[: k + 1].sum(axis=0), packer.taxonomy, search)
        if np.mean(found == expected) >= MIN_KEPT:
            return LIMITS[k] / CAUTION
    return 0.0


def _found(scores: NDArray[Any], taxonomy: Taxonomy, search: Search) -> NDArray[np.int32]:
    if search.kind == "greedy":
        return walk_scores(scores, taxonomy)
    return find_in_scores(log_sigmoid(scores), taxonomy, search)[0][:, 0]
