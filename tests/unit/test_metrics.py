import numpy as np
import pytest

from taxofit import DataError, Taxonomy, TaxonomyError
from taxofit import metrics as m

PATHS = [("Home", "Kitchen", "Kettles"), ("Home", "Kitchen", "Mugs"), ("Home", "Rugs"), ("Pets",)]
METRICS = [
    m.micro_f1,
    m.macro_f1,
    m.macro_f1_lshtc,
    m.hierarchical_precision,
    m.hierarchical_recall,
    m.hierarchical_f1,
    m.lca_f1,
]


@pytest.fixture
def shop():
    return Taxonomy.from_paths(PATHS)


@pytest.mark.parametrize("metric", METRICS)
def test_perfect_predictions_score_one(metric, shop):
    assert metric(shop.leaves, shop.leaves, shop) == 1.0


def test_perfect_predictions_have_no_tree_error(shop):
    assert m.tree_error(shop.leaves, shop.leaves, shop) == 0.0


def test_internal_prediction_is_wrong_for_flat_metrics_but_earns_hierarchical_credit(shop):
    truth, prediction = ["Kettles", "Mugs"], ["Kitchen", "Mugs"]
    assert m.micro_f1(truth, prediction, shop) == 0.5
    assert m.macro_f1(truth, prediction, shop) == 0.5
    assert m.hierarchical_precision(truth, prediction, shop) == 1.0
    assert m.hierarchical_recall(truth, prediction, shop) == pytest.approx(5 / 6)
    assert m.tree_error(truth, prediction, shop) == 0.5


def test_internal_node_counts_as_a_class_only_where_it_is_the_truth(shop):
    assert set(m.per_class_f1(["Mugs"], ["Home"], shop)) == {"Mugs"}
    assert m.per_class_f1(["Home"], ["Home"], shop) == {"Home": 1.0}


def test_predicting_the_root_scores_zero_without_warnings(shop):
    scores = m.hierarchical_scores_nodes(np.array([1, 2]), np.array([0, 0]), shop)
    assert scores == (0.0, 0.0, 0.0)


def test_training_classes_that_never_occur_count_as_zero(shop):
    truth = prediction = ["Kettles", "Mugs"]
    assert m.macro_f1(truth, prediction, shop, classes=["Rugs", "Rugs", "Mugs", "Pets"]) == 0.5
    assert m.per_class_f1(truth, prediction, shop, classes=["Pets"])["Pets"] == 0.0
    assert m.evaluate(truth, prediction, shop, classes=["Rugs", "Pets"])["macro_f1"] == 0.5


def test_class_that_is_only_predicted_counts_as_zero(shop):
    assert m.macro_f1(["Mugs"], ["Pets"], shop) == 0.0
    assert m.macro_f1(["Mugs", "Mugs"], ["Mugs", "Pets"], shop) == pytest.approx(1 / 3)


def test_paths_and_labels_score_the_same(shop):
    truth = [PATHS[0], PATHS[2], PATHS[3]]
    padded = np.array([[*path, *[""] * (3 - len(path))] for path in truth], dtype=object)
    prediction = ["Mugs", "Rugs", "Pets"]
    expected = m.evaluate(["Kettles", "Rugs", "Pets"], prediction, shop)
    assert m.evaluate(truth, prediction, shop) == expected
    assert m.evaluate(padded, np.array(prediction), shop) == expected


def test_evaluate_agrees_with_each_metric(shop):
    truth, prediction = ["Kettles", "Mugs", "Rugs", "Pets"], ["Mugs", "Mugs", "Pets", "Pets"]
    assert m.evaluate(truth, prediction, shop) == {
        "micro_f1": m.micro_f1(truth, prediction, shop),
        "macro_f1": m.macro_f1(truth, prediction, shop),
        "hierarchical_f1": m.hierarchical_f1(truth, prediction, shop),
        "tree_error": m.tree_error(truth, prediction, shop),
    }


def test_level_errors_count_a_row_once_and_only_where_its_path_reaches(shop):
    truth = ["Kettles", "Kettles", "Mugs", "Rugs", "Rugs", "Pets"]
    prediction = ["Kettles", "Mugs", "Rugs", "Mugs", "Rugs", "Mugs"]
    found = [
        (e.level, e.n_rows, e.n_wrong, e.n_wrong_so_far)
        for e in m.level_errors(truth, prediction, shop)
    ]
    assert found == [(1, 6, 1, 1), (2, 5, 2, 3), (3, 2, 1, 4)]


def test_prediction_that_stops_early_is_wrong_at_the_next_level(shop):
    errors = m.level_errors(["Kettles"], ["Home"], shop)
    assert [e.n_wrong for e in errors] == [0, 1, 0]
    assert [e.error for e in errors] == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("metric", [*METRICS, m.tree_error, m.evaluate, m.level_errors])
def test_bad_input_is_named(metric, shop):
    with pytest.raises(DataError, match="y_true has 2 rows and y_pred 1"):
        metric(["Mugs", "Mugs"], ["Mugs"], shop)
    with pytest.raises(DataError, match="no rows"):
        metric([], [], shop)
    with pytest.raises(TaxonomyError, match="in y_pred: unknown label 'Mug'; did you mean 'Mugs'"):
        metric(["Mugs"], ["Mug"], shop)
    with pytest.raises(DataError, match="y_true is a collection of labels"):
        metric("Mugs", ["Mugs"], shop)


def test_unknown_class_is_named(shop):
    with pytest.raises(TaxonomyError, match="in classes: unknown label 'Cats'"):
        m.macro_f1(["Mugs"], ["Mugs"], shop, classes=["Cats"])
