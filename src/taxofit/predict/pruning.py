"""How small a weight may be left out: measured, not guessed.

What is left out are small differences between siblings; see :mod:`taxofit.predict.packer`. That
takes a little from the scores of a row, and its leaf changes where two ways are closer than that.
Close calls are spread evenly near zero, so ten times the loss changes ten times as many leaves,
which can be counted where one in a thousand could not. The limit is the largest of :data:`LIMITS`
with which a test on as many rows as it was tried on would show, with :data:`CONFIDENCE`, at least
:data:`MIN_KEPT` of predictions unchanged: the fewer rows there are to tell, the smaller it is.

A model is surer of the rows it was fitted to than of rows to come, so their scores would not tell.
Validation rows have scores by models that had not seen them. Where there are none, training rows do
without their own part: a row adds α x to a node's weights, with α = ± C σ(∓θ·x) at the optimum, and
so ± C σ(∓θ·x) ‖x‖² to its own score. Taking all of it away makes rows a little less sure than those
to come will be, since other rows would have made up for some of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, gammaincinv

from taxofit.predict.search import find_in_scores, log_sigmoid
from taxofit.predict.walk import walk_scores

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from taxofit.predict.packer import Packer
    from taxofit.predict.search import Search
    from taxofit.taxonomy import Taxonomy

    IntArray = NDArray[np.int32]

__all__ = ["LIMITS", "MIN_KEPT", "N_TRIALS", "Trial", "n_trials", "safe_limit", "without_own_part"]

LIMITS = tuple(float(limit) for limit in np.round(1e-4 * 2 ** (np.arange(31) / 3), 6))
MIN_KEPT = 0.999
CONFIDENCE = 0.99
# What changed rows are counted to, and of how many at least: among fewer rows fewer are enough.
N_CHANGED, CHANGED_SHARE = 8.0, 0.125
N_TRIALS = 2000
MAX_TRIAL_SCORES = 1 << 25


@dataclass(frozen=True, eq=False)
class Trial:
    """Rows, and their scores as if no model had been fitted to them.

    Attributes
    ----------
    X : CSR, shape (n_rows, n_features)
    scores : ndarray of float32, shape (n_rows, n_nodes)
    """

    X: Any
    scores: NDArray[np.float32]


def n_trials(n_rows: int, taxonomy: Taxonomy) -> int:
    """Return how many of the training rows pruning is tried on: their scores are in memory."""
    return max(1, min(n_rows // 8, N_TRIALS, MAX_TRIAL_SCORES // taxonomy.n_nodes))


def safe_limit(packer: Packer, search: Search, trial: Trial) -> float:
    """Return a limit that leaves predictions as they are; 0 where none does.

    Parameters
    ----------
    packer : Packer
        With the sightings of the training rows.
    search : Search
        By which predictions will be made.
    trial : Trial
    """
    taxonomy, X = packer.taxonomy, trial.X
    wanted = np.zeros(X.shape[1], dtype=bool)
    wanted[X.indices] = True
    whole = packer.pack(0.0, wanted)
    n_threads = packer.n_threads
    scores = whole.node_scores(X, taxonomy, n_threads)
    has_model = np.isfinite(whole.intercept)
    expected = _found(trial.scores, taxonomy, search)
    most_changed = _most_changed(expected.size)
    magnified = _magnified(expected.size)

    def is_safe(limit: float) -> bool:
        left = packer.pack(limit, wanted).node_scores(X, taxonomy, n_threads)
        lost = np.subtract(scores, left, out=np.zeros_like(scores), where=has_model)
        changed = [  # a row to come may lose or gain where these do not
            _found(trial.scores + sign * magnified * lost, taxonomy, search) != expected
            for sign in (-1, 1)
        ]
        return int(np.count_nonzero(changed)) <= 2 * most_changed

    n_safe, n_unsafe = 0, len(LIMITS) + 1
    while n_unsafe - n_safe > 1:
        middle = (n_safe + n_unsafe) // 2
        if is_safe(LIMITS[middle - 1]):
            n_safe = middle
        else:
            n_unsafe = middle
    return LIMITS[n_safe - 1] if n_safe else 0.0


def _most_changed(n_rows: int) -> float:
    """Return how many rows the magnified loss may change."""
    return min(N_CHANGED, CHANGED_SHARE * n_rows)


def _magnified(n_rows: int) -> np.float32:
    """Return how many times the loss may change that many rows.

    Changes come like rare events: of n rows no more than m = n (1 - MIN_KEPT), rounded down, change
    with the confidence asked for where the mean λ is such that P(more than m | λ) = 1 - CONFIDENCE
    for a Poisson variable.

    Examples
    --------
    >>> [round(float(_magnified(n_rows)), 1) for n_rows in (1, 500, 1500)]
    [12.4, 796.0, 53.9]
    """
    n_may_change = int((1 - MIN_KEPT) * n_rows + 1e-9)
    return np.float32(_most_changed(n_rows) / gammaincinv(n_may_change + 1, 1 - CONFIDENCE))


def without_own_part(
    scores: NDArray[np.float32],
    X: Any,
    leaf: IntArray,
    taxonomy: Taxonomy,
    strength: NDArray[np.float64],
) -> NDArray[np.float32]:
    """Return the scores of training rows less what each row itself has added to them.

    Parameters
    ----------
    scores : ndarray, shape (n_rows, n_nodes)
        θ·x of the models that were fitted to these rows.
    X : CSR, shape (n_rows, n_features)
        Without the constant feature: it is that of all rows, and a single one adds little to it.
    leaf : ndarray of int32, shape (n_rows,)
    taxonomy : Taxonomy
    strength : ndarray, shape (n_rows,)
        C times the weight of each row.
    """
    position = taxonomy.leaf_start[leaf][:, None]
    is_above = (taxonomy.leaf_start <= position) & (position < taxonomy.leaf_stop)
    sign = np.where(is_above, np.float32(1.0), np.float32(-1.0))
    most = (strength * X.multiply(X).sum(axis=1)).astype(np.float32)
    return scores - sign * most[:, None] * expit(-sign * scores)


def _found(scores: NDArray[Any], taxonomy: Taxonomy, search: Search) -> IntArray:
    if search.kind == "greedy":
        return walk_scores(scores, taxonomy)
    return find_in_scores(log_sigmoid(scores), taxonomy, search)[0][:, 0]
