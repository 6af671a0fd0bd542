"""Top-down walks over a matrix of node scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from taxofit.predict import loops

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from taxofit.tree import Tree

__all__ = ["walk_scores"]


def walk_scores(
    scores: NDArray[np.float32], taxonomy: Tree, column: NDArray[np.int32] | None = None
) -> NDArray[np.int32]:
    """Return the leaf that each row reaches, as a node of the taxonomy.

    From the root, a row goes to the child of highest score until it is at a leaf; of equal scores
    the first child in the taxonomy's order wins.

    Parameters
    ----------
    scores : ndarray, shape (n_rows, n_columns)
    taxonomy : Tree
        A taxonomy, or its shape alone.
    column : ndarray of int32, shape (n_nodes,), optional
        Where each node's score stands in ``scores``; a flattened taxonomy walks the scores of the
        original one with the ``kept`` of :meth:`Taxonomy.without`. The node itself by default.
    """
    if column is None:
        column = np.arange(taxonomy.n_nodes, dtype=np.int32)
    reached = np.empty(scores.shape[0], dtype=np.int32)
    loops.walk_scores(scores, taxonomy.first_child, column, reached)
    return reached
