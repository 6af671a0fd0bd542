"""The claim of the paper on data where the truth is known: planted nodes stand out and hurt."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from taxofit.bank.evidence import gather_evidence, scores_of
from taxofit.bank.harvest import Harvest, pick_weights
from taxofit.bank.node_bank import NodeBank
from taxofit.bank.rows import Rows
from taxofit.bank.split import split_rows
from taxofit.datasets import make_taxonomy_classification
from taxofit.metrics import macro_f1_nodes
from taxofit.predict.walk import walk_scores

SEEDS = range(10)


def scores_on(rows, bank, C):
    scores = np.zeros((rows.n_rows, bank.taxonomy.n_nodes), dtype=np.float32)

    def receive(nodes, C, arrays):  # noqa: ARG001  (one C)
        scores[:, nodes] = scores_of(rows, arrays["weights"])

    bank.solve([C], Harvest(pick_weights, receive))
    return scores


def macro_f1_without(removed, taxonomy, scores, true):
    flattened, kept = taxonomy.without(removed)
    reached = kept[walk_scores(scores, flattened, kept)]
    return macro_f1_nodes(true, reached, taxonomy.is_leaf, taxonomy.leaf_order)


@pytest.fixture(scope="module")
def findings():
    """For each seed: AUC of f* for planted against sound nodes by level, and macro-F1 both ways."""
    found = []
    for seed in SEEDS:
        made = make_taxonomy_classification(random_state=seed)
        taxonomy, row_leaf = made.taxonomy, made.taxonomy.nodes_of(made.y)
        planted = np.isin(np.arange(taxonomy.n_nodes), taxonomy.nodes_of(made.inconsistent))
        rows = Rows.prepare(made.X)
        train, test = split_rows(rows.X, row_leaf, rows.weight, fraction=0.25, seed=seed)
        bank = NodeBank(rows.take(train), taxonomy, row_leaf[train])
        kept, held_out = split_rows(
            rows.X[train], row_leaf[train], rows.weight[train], fraction=0.1, seed=seed
        )
        validation = rows.take(train[held_out]), row_leaf[train[held_out]]
        (evidence,) = gather_evidence(bank.take(kept), *validation, [1.0])
        areas = []
        for level in range(1, taxonomy.depth):
            nodes = np.flatnonzero(taxonomy.is_internal & (taxonomy.level == level))
            if 0 < planted[nodes].sum() < nodes.size:
                areas.append(roc_auc_score(planted[nodes], evidence.objective[nodes]))
        scores = scores_on(rows.take(test), bank, 1.0)
        nothing = np.zeros_like(planted)
        found.append(
            (
                areas,
                macro_f1_without(nothing, taxonomy, scores, row_leaf[test]),
                macro_f1_without(planted, taxonomy, scores, row_leaf[test]),
            )
        )
    return found


def test_planted_nodes_have_the_largest_objectives_of_their_level(findings):
    by_level = np.array([areas for areas, _, _ in findings])
    assert by_level.mean(axis=0).min() >= 0.95


def test_flattening_planted_nodes_helps_on_every_seed(findings):
    for _, top_down, repaired in findings:
        assert repaired > top_down
