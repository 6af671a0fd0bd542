import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taxofit import Taxonomy
from taxofit import metrics as m


@st.composite
def problems(draw):
    """Draw a tree, true leaves and predicted nodes."""
    n_nodes = draw(st.integers(2, 25))
    parents = [-1, *(draw(st.integers(0, i - 1)) for i in range(1, n_nodes))]
    taxonomy = Taxonomy.from_parents(parents)
    n_rows = draw(st.integers(1, 30))
    leaves = st.sampled_from(taxonomy.leaf_order.tolist())
    nodes = st.integers(0, n_nodes - 1)
    true = draw(st.lists(leaves, min_size=n_rows, max_size=n_rows))
    predicted = draw(st.lists(nodes, min_size=n_rows, max_size=n_rows))
    return taxonomy, np.array(true), np.array(predicted)


@given(problems())
def test_scores_lie_between_zero_and_one(problem):
    taxonomy, true, predicted = problem
    scores = [
        m.micro_f1_nodes(true, predicted),
        m.macro_f1_nodes(true, predicted, taxonomy.is_leaf),
        m.macro_f1_lshtc_nodes(true, predicted, taxonomy.is_leaf),
        m.lca_f1_nodes(true, predicted, taxonomy),
        *m.hierarchical_scores_nodes(true, predicted, taxonomy),
    ]
    assert all(0 <= score <= 1 for score in scores)
    assert 0 <= m.tree_error_nodes(true, predicted, taxonomy) <= 2 * taxonomy.depth


@given(problems())
def test_order_of_rows_is_irrelevant(problem):
    taxonomy, true, predicted = problem
    forwards = m.evaluate_nodes(true, predicted, taxonomy)
    backwards = m.evaluate_nodes(true[::-1], predicted[::-1], taxonomy)
    assert forwards == pytest.approx(backwards)


@given(problems())
def test_averaging_before_combining_never_scores_lower(problem):
    taxonomy, true, predicted = problem
    per_class = m.macro_f1_nodes(true, predicted, taxonomy.is_leaf)
    assert m.macro_f1_lshtc_nodes(true, predicted, taxonomy.is_leaf) >= per_class - 1e-12


@given(problems())
def test_flattening_changes_no_flat_score(problem):
    taxonomy, true, _ = problem
    predicted = np.roll(true, 1)
    truth = [taxonomy.labels[node] for node in true]
    prediction = [taxonomy.labels[node] for node in predicted]
    flat = taxonomy.flatten(taxonomy.internal_nodes)
    for metric in (m.micro_f1, m.macro_f1, m.macro_f1_lshtc):
        assert metric(truth, prediction, flat) == pytest.approx(metric(truth, prediction, taxonomy))
    assert m.hierarchical_f1(truth, prediction, flat) == m.micro_f1(truth, prediction, flat)


@given(problems())
def test_level_errors_account_for_every_wrong_row(problem):
    taxonomy, true, predicted = problem
    errors = m.level_errors_nodes(true, predicted, taxonomy)
    assert errors[0].n_rows == true.size
    assert errors[-1].n_wrong_so_far == (true != predicted).sum()
    assert all(error.n_wrong <= error.n_rows for error in errors)
