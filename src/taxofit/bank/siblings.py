"""Problems of one node against its siblings only: what max-margin taxonomy adaptation looks at.

These are other problems than the bank's, over other rows (those under one parent), and so the one
place where something besides the bank is solved. Each is solved once, whatever C and flattening are
tried.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from taxofit.bank.block_solver import solver_for
from taxofit.bank.rows import Rows, node_targets
from taxofit.datasets.mapped import is_mapped

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from taxofit.bank.node_bank import NodeBank

__all__ = ["sibling_objectives"]


def sibling_objectives(bank: NodeBank, C: float = 1.0) -> NDArray[np.float64]:
    """Return F of every internal node: how badly it is told apart from its siblings.

    F(v) = f(θ_v) / n, where θ_v minimises the objective of the bank over the n rows under v's
    parent, those under v positive. NaN for leaves, for the root, and for nodes that have no sibling
    with rows: nothing says that they are hard.

    Parameters
    ----------
    bank : NodeBank
        Gives rows, leaves and taxonomy; its own models are not used.
    C : float
    """
    taxonomy = bank.taxonomy
    difficulty = np.full(taxonomy.n_nodes, np.nan)
    position = taxonomy.leaf_start[bank.row_leaf]
    by_position = np.argsort(position, kind="stable")
    ordered = position[by_position]
    is_internal = taxonomy.is_internal
    for parent in range(taxonomy.n_nodes):
        children = np.asarray(taxonomy.children(parent), dtype=np.int32)
        internal = children[is_internal[children]] if children.size else children
        if not internal.size:
            continue
        bounds = np.searchsorted(ordered, [taxonomy.leaf_start[parent], taxonomy.leaf_stop[parent]])
        under = np.sort(by_position[bounds[0] : bounds[1]])
        rows = _on_its_own_features(bank.rows.take(under))
        targets = node_targets(taxonomy, bank.row_leaf[under], internal)
        n_positive = targets.n_positive()
        contested = (n_positive > 0) & (n_positive < under.size)
        if not contested.any():
            continue
        solver = solver_for(rows, bank.settings)
        solution = solver.solve(targets.take(np.flatnonzero(contested)), C)
        difficulty[internal[contested]] = solution.objective / rows.weight.sum()
    return difficulty


def _on_its_own_features(rows: Rows) -> Rows:
    """Leave out columns that these rows do not use; their weights would be zero."""
    if not rows.is_sparse or is_mapped(rows.X):
        return rows
    X = rows.X
    used, indices = np.unique(X.indices, return_inverse=True)
    compact = type(X)((X.data, indices.astype(np.int32), X.indptr), shape=(X.shape[0], used.size))
    return Rows(compact, rows.weight, rows.has_constant)
