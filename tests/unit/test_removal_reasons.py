from __future__ import annotations

import numpy as np
import pytest

from taxofit import TaxonomyClassifier
from taxofit.datasets import make_shop_catalogue
from taxofit.workflow.removal_reasons import explain_removals, neighbours_of


@pytest.fixture(scope="module")
def shop():
    return make_shop_catalogue(n_rows=1500, random_state=0)


@pytest.fixture(scope="module")
def fitted(shop):
    data = shop.dataset
    return TaxonomyClassifier(data.taxonomy, encoder="words", C=10.0).fit(data.X, data.y)


def leaves_below(taxonomy, node):
    return {taxonomy.node_of(label) for label in taxonomy.leaves_under(taxonomy.labels[node])}


def neighbours_by_hand(taxonomy, evidence, node):
    """Count the nearest leaf of every row, straight from the definition."""
    inside = leaves_below(taxonomy, node)
    own, beside = 0, {}
    rows = [row for row, leaf in enumerate(evidence.row_leaf) if leaf in inside]
    for row in rows:
        child = next(
            c
            for c in taxonomy.children(node)
            if evidence.row_leaf[row] in leaves_below(taxonomy, c)
        )
        others = [
            leaf
            for leaf in taxonomy.leaf_order
            if leaf not in leaves_below(taxonomy, child) and np.isfinite(evidence.scores[row, leaf])
        ]
        nearest = max(others, key=lambda leaf: evidence.scores[row, leaf])
        if nearest in inside:
            own += 1
            continue
        mine, theirs = taxonomy.path(node), taxonomy.path(int(nearest))
        n_shared = sum(a == b for a, b in zip(mine, theirs, strict=False))
        branch = taxonomy.labels[taxonomy.node_of(theirs[: n_shared + 1])]
        beside[branch] = beside.get(branch, 0) + 1
    return len(rows), own, beside


def test_neighbours_are_those_of_the_definition(fitted):
    taxonomy, evidence = fitted.original_taxonomy_, fitted.validation_.evidence
    for node in np.flatnonzero(taxonomy.is_internal):
        found = neighbours_of(taxonomy, evidence, int(node))
        n_rows, own, beside = neighbours_by_hand(taxonomy, evidence, int(node))
        assert found.n_rows == n_rows
        if not n_rows:
            continue
        assert found.own_share == pytest.approx(own / n_rows)
        if beside:
            assert found.nearest_share == pytest.approx(max(beside.values()) / n_rows)
            assert beside[found.nearest] == max(beside.values())


def test_planted_categories_are_removed_because_their_children_belong_elsewhere(shop, fitted):
    removals = {removal.label: removal for removal in explain_removals(fitted)}
    assert set(removals) == set(fitted.removed_)
    planted = [label for label in shop.inconsistent if label in removals]
    assert len(planted) >= 3
    for label in planted:
        neighbours, reason = removals[label].neighbours, removals[label].reason
        assert neighbours.nearest_share > neighbours.own_share
        assert f"closer to '{neighbours.nearest}' than to each other" in reason
        assert "told apart from the rest worse than" in reason


def test_shares_are_of_other_nodes_and_of_the_nodes_own_rows(fitted):
    taxonomy, evidence = fitted.original_taxonomy_, fitted.validation_.evidence
    reached = []
    for scores in evidence.scores:
        node = 0
        while not taxonomy.is_leaf[node]:
            node = max(taxonomy.children(node), key=lambda child: scores[child])
        reached.append(node)
    for removal in explain_removals(fitted):
        node = taxonomy.node_of(removal.label)
        others = [evidence.objective[n] for n in range(1, taxonomy.n_nodes) if n != node]
        assert removal.worse_than == pytest.approx(np.mean(evidence.objective[node] > others))
        inside = leaves_below(taxonomy, node)
        mine = [row for row, leaf in enumerate(evidence.row_leaf) if leaf in inside]
        lost = np.mean([reached[row] not in inside for row in mine])
        assert removal.sent_elsewhere == pytest.approx(lost)


def test_the_worst_comes_first(fitted):
    shares = [removal.worse_than for removal in explain_removals(fitted)]
    assert shares == sorted(shares, reverse=True)


def test_methods_without_evidence_give_their_own_reason(shop):
    data = shop.dataset.subset(np.arange(300))
    flat = TaxonomyClassifier(data.taxonomy, flattening="tlf", encoder="words", C=1.0)
    removals = explain_removals(flat.fit(data.X, data.y))
    assert {removal.reason for removal in removals} == {"level 1 is removed as a whole"}
    assert removals[0].neighbours is None
