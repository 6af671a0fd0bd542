"""Strategies against definitions written from the paper, on random taxonomies and evidence."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taxofit import Taxonomy, TaxonomyError
from taxofit.bank.evidence import Evidence
from taxofit.flattening import (
    Case,
    FlattenAll,
    FlattenLevels,
    GlobalINF,
    Judge,
    KeepAll,
    LevelINF,
    MaxMargin,
)
from taxofit.metrics import macro_f1
from taxofit.predict.walk import walk_scores


@st.composite
def taxonomies(draw, max_nodes=25):
    n = draw(st.integers(4, max_nodes))
    parents = [-1] + [draw(st.integers(0, max(0, i // 2))) for i in range(1, n)]
    return Taxonomy.from_parents([min(p, i - 1) for i, p in enumerate(parents)])


@st.composite
def evidences(draw):
    taxonomy = draw(taxonomies())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_rows = draw(st.integers(1, 30))
    objective = rng.gamma(2.0, size=taxonomy.n_nodes)
    objective[0] = np.nan
    return taxonomy, Evidence(
        C=1.0,
        scores=rng.normal(size=(n_rows, taxonomy.n_nodes)).astype(np.float32),
        row_leaf=rng.choice(taxonomy.leaf_order, n_rows),
        objective=objective,
        weight_norm=rng.random(taxonomy.n_nodes),
    )


def judge_of(taxonomy, evidence):
    return Judge(taxonomy, evidence, np.unique(evidence.row_leaf))


def walk_by_definition(scores, taxonomy):
    node = 0
    while len(children := taxonomy.children(node)):
        node = max(children, key=lambda child: scores[child])  # max takes the first of equals
    return node


@given(evidences())
def test_walk_follows_the_highest_score(given_evidence):
    taxonomy, evidence = given_evidence
    expected = [walk_by_definition(row, taxonomy) for row in evidence.scores]
    assert walk_scores(evidence.scores, taxonomy).tolist() == expected


@given(evidences(), st.data())
def test_walking_a_flattened_taxonomy_needs_only_the_original_scores(given_evidence, data):
    taxonomy, evidence = given_evidence
    internal = list(taxonomy.internal_nodes)
    chosen = data.draw(st.lists(st.sampled_from(internal), unique=True)) if internal else []
    removed = np.isin(np.arange(taxonomy.n_nodes), taxonomy.nodes_of(chosen))
    smaller, kept = taxonomy.without(removed)
    expected = [kept[walk_by_definition(row, smaller)] for row in evidence.scores[:, kept]]
    assert judge_of(taxonomy, evidence).predict(removed).tolist() == expected


@given(evidences())
def test_flattening_everything_walks_to_the_best_leaf(given_evidence):
    taxonomy, evidence = given_evidence
    removed = FlattenAll().choose(Case(taxonomy)).removed
    reached = judge_of(taxonomy, evidence).predict(removed)
    best = taxonomy.leaf_order[evidence.scores[:, taxonomy.leaf_order].argmax(axis=1)]
    np.testing.assert_array_equal(reached, best)


@given(evidences(), st.floats(0, 3))
def test_global_inf_is_algorithm_2(given_evidence, psi):
    taxonomy, evidence = given_evidence
    values = [evidence.objective[n] for n in range(1, taxonomy.n_nodes)]
    mean = sum(values) / len(values)
    deviation = (sum((v - mean) ** 2 for v in values) / len(values)) ** 0.5
    expected = {
        n
        for n in range(1, taxonomy.n_nodes)
        if len(taxonomy.children(n)) and evidence.objective[n] > mean + psi * deviation + 1e-12
    }
    choice = GlobalINF(psi=psi).choose(Case(taxonomy, evidence, judge_of(taxonomy, evidence)))
    assert expected <= set(np.flatnonzero(choice.removed))
    for node in set(np.flatnonzero(choice.removed)) - expected:
        assert evidence.objective[node] == pytest.approx(mean + psi * deviation)


@given(evidences(), st.floats(0, 3))
def test_level_inf_is_algorithm_1(given_evidence, psi):
    taxonomy, evidence = given_evidence
    removed = (
        LevelINF(psi=psi).choose(Case(taxonomy, evidence, judge_of(taxonomy, evidence))).removed
    )
    for level in range(1, taxonomy.depth + 1):
        nodes = np.flatnonzero(taxonomy.level == level)
        values = evidence.objective[nodes]
        threshold = values.mean() + psi * values.std()
        for node in nodes:
            is_inconsistent = not taxonomy.is_leaf[node] and evidence.objective[node] > threshold
            assert removed[node] == is_inconsistent


@given(evidences())
@settings(max_examples=30)
def test_automatic_psi_is_the_best_of_the_grid_and_removes_least(given_evidence):
    taxonomy, evidence = given_evidence
    judge = judge_of(taxonomy, evidence)
    choice = GlobalINF().choose(Case(taxonomy, evidence, judge))
    candidates = [
        GlobalINF(psi=k / 10).choose(Case(taxonomy, evidence, judge_of(taxonomy, evidence))).removed
        for k in range(31)
    ]
    best = max(judge(c) for c in candidates)
    assert judge(choice.removed) == best
    assert choice.removed.sum() == min(c.sum() for c in candidates if judge(c) == best)


@given(evidences())
def test_judge_gives_the_macro_f1_of_the_metrics(given_evidence):
    taxonomy, evidence = given_evidence
    removed = KeepAll().choose(Case(taxonomy)).removed
    judge = judge_of(taxonomy, evidence)
    labels = [taxonomy.labels[n] for n in judge.predict(removed)]
    truth = [taxonomy.labels[n] for n in evidence.row_leaf]
    assert judge(removed) == pytest.approx(macro_f1(truth, labels, taxonomy))


@given(taxonomies())
def test_level_flattening_removes_whole_levels(taxonomy):
    internal = taxonomy.is_internal
    if not internal.any():
        with pytest.raises(TaxonomyError, match="the taxonomy is flat"):
            FlattenLevels("top").choose(Case(taxonomy))
        return
    top = FlattenLevels("top").choose(Case(taxonomy)).removed
    assert (top == (internal & (taxonomy.level == 1))).all()
    deepest = taxonomy.level[internal].max()
    bottom = FlattenLevels("bottom").choose(Case(taxonomy)).removed
    assert (bottom == (internal & (taxonomy.level == deepest))).all()
    if (internal & (taxonomy.level == 3)).any():
        both = FlattenLevels("multiple").choose(Case(taxonomy)).removed
        assert (both == (internal & np.isin(taxonomy.level, [1, 3]))).all()
    else:
        with pytest.raises(TaxonomyError, match="level 3 cannot be flattened"):
            FlattenLevels("multiple").choose(Case(taxonomy))


@pytest.mark.parametrize(
    ("difficulty", "expected"),
    [
        ([5.0], 0),  # an only child is compared with nothing
        ([5.0, 4.0], 2),
        ([5.0, 3.0, 2.0, 1.9, 1.0], 4),  # drops 2, 1, 0.1, then 0.9 is larger
        ([5.0, 4.0, 2.0], 2),  # the second drop is larger at once
        ([5.0, 4.0, 3.0], 2),  # an equal drop is not smaller
    ],
)
def test_max_margin_removes_down_to_the_first_larger_drop(difficulty, expected):
    tops = [(f"t{k}", f"leaf{k}") for k in range(len(difficulty))]
    taxonomy = Taxonomy.from_paths([*tops, ("leaf",)])
    F = np.full(taxonomy.n_nodes, np.nan)
    F[taxonomy.nodes_of([name for name, _ in tops])] = difficulty
    choice = MaxMargin().choose(Case(taxonomy, difficulty=lambda C: F))  # noqa: ARG005
    assert choice.removed.sum() == expected
    kept = F[taxonomy.is_internal & ~choice.removed]
    assert not kept.size or kept.max() <= F[choice.removed].min(initial=np.inf)
