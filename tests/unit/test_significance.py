import numpy as np
import pytest

from taxofit import DataError
from taxofit.significance import pairwise_p_values, sign_test, wilcoxon_test

TRUTH = [0, 1, 2, 3, 4, 5]


def test_sign_test_counts_only_rows_that_one_system_got_right():
    a = [0, 1, 2, 3, 9, 9]  # right on 0 to 3
    b = [0, 9, 9, 9, 4, 9]  # right on 0 and 4
    result = sign_test(TRUTH, a, b)
    assert (result.n_a_only_right, result.n_b_only_right) == (3, 1)
    assert result.p_value == pytest.approx(2 * (1 + 4) / 16)


def test_one_sided_sign_test_asks_whether_a_is_better():
    worse = [9] * 6
    assert sign_test(TRUTH, TRUTH, worse, alternative="greater").p_value == pytest.approx(1 / 64)
    assert sign_test(TRUTH, TRUTH, worse, alternative="less").p_value == 1.0


def test_wilcoxon_test_of_five_classes_that_a_wins_is_exact():
    """All five differences of one sign, of different sizes: p = 2 / 2**5."""
    truth = np.repeat(np.arange(5), 10)
    b = truth.copy()
    for label in range(5):
        b[label * 10 : label * 10 + label + 1] = 5
    result = wilcoxon_test(truth, truth, b)
    assert (result.n_a_better, result.n_b_better, result.statistic) == (5, 0, 0.0)
    assert result.p_value == pytest.approx(2 / 32)
    assert wilcoxon_test(truth, truth, b, alternative="greater").p_value == pytest.approx(1 / 32)


def test_classes_without_a_difference_are_dropped():
    truth = list("aabbcc")
    result = wilcoxon_test(truth, list("aabbcc"), list("aabbca"))
    assert (result.n_a_better, result.n_b_better) == (2, 0)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_same_predictions_have_p_value_one(alternative):
    assert sign_test(TRUTH, TRUTH[::-1], TRUTH[::-1], alternative=alternative).p_value == 1.0
    assert wilcoxon_test(TRUTH, TRUTH[::-1], TRUTH[::-1], alternative=alternative).p_value == 1.0


def test_labels_may_be_paths():
    truth = [("Home", "Mugs"), ("Pets",)]
    padded = np.array([["Home", "Mugs"], ["Home", ""]], dtype=object)
    result = sign_test(truth, padded, [["Pets", None], ["Pets", None]])
    assert (result.n_a_only_right, result.n_b_only_right) == (1, 1)


def test_pairwise_matrices_hold_each_pair():
    systems = {"good": TRUTH, "fair": [0, 1, 2, 9, 9, 9], "bad": [9] * 6}
    pairs = pairwise_p_values(TRUTH, systems, alternative="greater")
    assert pairs.names == ("good", "fair", "bad")
    for i, a in enumerate(systems.values()):
        for j, b in enumerate(systems.values()):
            if i != j:
                one_sided = {"alternative": "greater"}
                assert pairs.sign[i, j] == sign_test(TRUTH, a, b, **one_sided).p_value
                assert pairs.wilcoxon[i, j] == wilcoxon_test(TRUTH, a, b, **one_sided).p_value


def test_two_sided_matrices_are_symmetric_with_ones_on_the_diagonal():
    rng = np.random.default_rng(0)
    truth = rng.integers(8, size=200)
    systems = {str(k): np.where(rng.random(200) < k / 5, truth, 0) for k in range(1, 5)}
    pairs = pairwise_p_values(truth, systems)
    for matrix in (pairs.sign, pairs.wilcoxon):
        np.testing.assert_allclose(matrix, matrix.T)
        assert (np.diag(matrix) == 1).all()


@pytest.mark.parametrize("test", [sign_test, wilcoxon_test])
def test_bad_input_is_named(test):
    with pytest.raises(DataError, match="y_true has 6 rows and y_pred_b 2"):
        test(TRUTH, TRUTH, [1, 2])
    with pytest.raises(DataError, match="no rows"):
        test([], [], [])
    with pytest.raises(DataError, match="y_pred_a is a collection of labels"):
        test(["a", "b"], "ab", ["a", "b"])
    with pytest.raises(ValueError, match=r"alternative must be .* got 'better'"):
        test(TRUTH, TRUTH, TRUTH, alternative="better")


def test_nothing_to_compare_is_an_error():
    with pytest.raises(DataError, match="no predictions"):
        pairwise_p_values(TRUTH, {})
    with pytest.raises(DataError, match=r"predictions\['short'\] 1"):
        pairwise_p_values(TRUTH, {"short": [1]})
