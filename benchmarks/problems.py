"""The problems that benchmarks solve: real text, and text of the paper's sizes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit.bank.columns import (
    ColumnStore,
    columns_from_arrays,
    columns_to_arrays,
    prune_columns,
)
from taxofit.bank.harvest import Harvest
from taxofit.bank.node_bank import NodeBank
from taxofit.bank.rows import Rows
from taxofit.datasets import TextEncoder, data_folder, load_benchmark

if TYPE_CHECKING:
    from taxofit.taxonomy import Taxonomy

PRUNED_SHARE = 0.3  # what pruning may drop
DEFAULT_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@dataclass(frozen=True)
class Problem:
    """Encoded training rows (without the constant feature) and the leaf of each."""

    name: str
    X: Any
    taxonomy: Taxonomy
    row_leaf: Any

    def bank(self, **settings):
        return NodeBank(Rows.prepare(self.X), self.taxonomy, self.row_leaf, **settings)

    def nodes(self):
        """Nodes that have rows: the others have nothing that a peer could be asked to learn."""
        counts = np.bincount(self.row_leaf, minlength=self.taxonomy.n_nodes)
        return np.flatnonzero(self.taxonomy.totals(counts) > 0)[1:].astype(np.int32)

    def positives(self, node):
        """Rows under a node."""
        position = self.taxonomy.leaf_start[self.row_leaf]
        inside = (position >= self.taxonomy.leaf_start[node]) & (
            position < self.taxonomy.leaf_stop[node]
        )
        return np.flatnonzero(inside)

    def solve_and_keep(self, bank, C, progress=None):
        """Solve all nodes, keeping pruned weights as a fit does; return the report and these."""
        store = ColumnStore((bank.rows.n_features, self.taxonomy.n_nodes))
        harvest = Harvest(
            lambda _nodes, _C, solution: columns_to_arrays(
                prune_columns(solution.weights, PRUNED_SHARE)
            ),
            lambda chosen, _, arrays: store.put(chosen, columns_from_arrays(arrays)),
        )
        return bank.solve([C], harvest, progress=progress), store.to_csr()

    def save_for_peers(self, path):
        lists = [self.positives(node) for node in self.nodes()]
        labels = np.array([str(label) for label in self.taxonomy.labels])
        ancestors = self.taxonomy.ancestors(self.row_leaf)[:, 1:]
        np.savez(
            path,
            levels=np.where(ancestors < 0, "", labels[ancestors]),
            data=self.X.data,
            indices=self.X.indices,
            indptr=self.X.indptr,
            shape=self.X.shape,
            positive_indices=np.concatenate(lists),
            positive_indptr=np.cumsum([0] + [len(rows) for rows in lists]),
        )


def naics(features: str = "pairs") -> Problem:
    """NAICS 2022 index: 16,299 short texts as tf-idf of words and word pairs, or words alone."""
    train, _ = load_benchmark("naics", data_folder() or DEFAULT_DATA)
    X = TextEncoder(features=features, sublinear_tf=False).fit_transform(train.X)
    return Problem("naics", X.tocsr(), train.taxonomy, train.taxonomy.nodes_of(train.y))


def directory(size: str) -> Problem:
    """Made-up web directory with the printed statistics of one of the paper's DMOZ data sets."""
    from taxofit.datasets.web_directory import make_web_directory

    train, _ = make_web_directory(size)
    return Problem(size, train.X.tocsr(), train.taxonomy, train.taxonomy.nodes_of(train.y))


def load(name: str) -> Problem:
    if name.startswith("naics"):
        return naics("words" if name == "naics-words" else "pairs")
    return directory(name)
