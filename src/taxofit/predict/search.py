"""Ways down a taxonomy: greedy, and beam search for the best path.

The path score of a node is log σ(θ·x) + γ · (that of its parent), 0 at the root: for a leaf the sum
of γ^(distance from the leaf) · log σ over its path. With γ = 0 only the leaf's own model counts
(flat classification); with γ = 1 all nodes of the path count alike.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from taxofit.predict import loops

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from taxofit.taxonomy import Taxonomy

    Array = NDArray[Any]

__all__ = ["GREEDY", "Search", "find_in_scores", "log_sigmoid", "path_scores"]


@dataclass(frozen=True)
class Search:
    """How a row finds its leaf.

    Attributes
    ----------
    kind : {"greedy", "beam"}
        Greedy goes to the child of highest score at every step. Beam search opens the ``width``
        best nodes of every depth and ends at the leaf of highest path score.
    gamma : float
        How much of its parent's path score a node takes over, 0 to 1.
    width : int
        Of the beam; 0 opens every node.
    """

    kind: Literal["greedy", "beam"] = "greedy"
    gamma: float = 0.0
    width: int = 0

    def __post_init__(self) -> None:
        if self.kind not in ("greedy", "beam"):
            raise ValueError(f"search must be 'greedy' or 'beam', but is {self.kind!r}")
        if not 0 <= self.gamma <= 1:
            raise ValueError(f"gamma must be between 0 and 1, but is {self.gamma!r}")
        if self.width < 0:
            raise ValueError(f"beam_width must be positive, but is {self.width!r}")

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        return asdict(self)


GREEDY = Search()


def log_sigmoid(scores: Array) -> NDArray[np.float32]:
    """Return log σ of every score; -inf stays.

    Examples
    --------
    >>> log_sigmoid(np.array([[0.0, -np.inf]]))
    array([[-0.6931472,       -inf]], dtype=float32)
    """
    logs = np.empty(scores.shape, dtype=np.float32)
    loops.log_sigmoids(scores, logs)
    return logs


def path_scores(
    logs: Array, taxonomy: Taxonomy, gamma: float, column: NDArray[np.int32] | None = None
) -> NDArray[np.float32]:
    """Return the path score of every node, shape (n_rows, n_nodes).

    Parameters
    ----------
    logs : ndarray, shape (n_rows, n_columns)
        log σ(θ·x).
    taxonomy : Taxonomy
    gamma : float
    column : ndarray of int32, shape (n_nodes,), optional
        Where each node stands in ``logs``, as in :func:`~taxofit.predict.walk.walk_scores`.
    """
    totals = np.empty((logs.shape[0], taxonomy.n_nodes), dtype=np.float32)
    loops.path_scores(logs, taxonomy.parent, _columns(taxonomy, column), gamma, totals)
    return totals


def find_in_scores(
    logs: Array,
    taxonomy: Taxonomy,
    search: Search,
    n_best: int = 1,
    column: NDArray[np.int32] | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return what a beam search finds in a matrix of log σ: leaves and path scores, best first.

    Shapes are (n_rows, n_best); the parameters are as in :func:`path_scores`.
    """
    if search.width == 0:
        return _best_leaves(path_scores(logs, taxonomy, search.gamma, column), taxonomy, n_best)
    reached = np.empty((logs.shape[0], n_best), dtype=np.int32)
    totals = np.empty((logs.shape[0], n_best))
    places = _columns(taxonomy, column)
    width = max(search.width, n_best)
    loops.beam_scores(logs, taxonomy.first_child, places, search.gamma, width, reached, totals)
    return reached, totals


def _best_leaves(
    totals: Array, taxonomy: Taxonomy, n_best: int
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return the leaves of highest path score of all, best first."""
    leaves = np.sort(taxonomy.leaf_order)
    own = totals[:, leaves]
    order = (
        own.argmax(axis=1)[:, None]
        if n_best == 1
        else np.argsort(-own, axis=1, kind="stable")[:, :n_best]
    )
    reached = np.full((own.shape[0], n_best), -1, dtype=np.int32)
    best = np.full((own.shape[0], n_best), -np.inf)
    n_found = order.shape[1]
    best[:, :n_found] = np.take_along_axis(own, order, axis=1)
    reached[:, :n_found] = np.where(np.isfinite(best[:, :n_found]), leaves[order], -1)
    return reached, best


def _columns(taxonomy: Taxonomy, column: NDArray[np.int32] | None) -> NDArray[np.int32]:
    return np.arange(taxonomy.n_nodes, dtype=np.int32) if column is None else column
