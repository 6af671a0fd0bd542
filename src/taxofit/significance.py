"""Whether one classifier is really better than another on the same test rows.

Two tests of Yang and Liu (1999), as the paper uses them: a sign test over rows, which asks about
micro-F1, and a signed-rank test over classes, which asks about macro-F1. A system that is better on
many rare classes may win the second and lose the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy import stats

from taxofit.errors import DataError
from taxofit.metrics import count_classes
from taxofit.taxonomy import clean_path

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from taxofit.taxonomy import Label

    Labels = ArrayLike | Sequence[Label]
    Alternative = Literal["two-sided", "greater", "less"]
    IntArray = NDArray[np.int64]
    FloatArray = NDArray[np.float64]

__all__ = [
    "PairwisePValues",
    "SignTestResult",
    "WilcoxonTestResult",
    "pairwise_p_values",
    "sign_test",
    "wilcoxon_test",
]


@dataclass(frozen=True)
class SignTestResult:
    """Outcome of a sign test over rows.

    Attributes
    ----------
    n_a_only_right, n_b_only_right : int
        Rows that exactly one of the two systems got right; all others say nothing.
    p_value : float
        Of the exact binomial test; 1 where no row tells the systems apart.
    """

    n_a_only_right: int
    n_b_only_right: int
    p_value: float


@dataclass(frozen=True)
class WilcoxonTestResult:
    """Outcome of a Wilcoxon signed-rank test over classes.

    Attributes
    ----------
    n_a_better, n_b_better : int
        Classes on which A or B has the higher F1; equal ones are dropped.
    statistic : float
        scipy's: the smaller rank sum, or that of A's classes for a one-sided alternative.
    p_value : float
        1 where no class tells the systems apart.
    """

    n_a_better: int
    n_b_better: int
    statistic: float
    p_value: float


@dataclass(frozen=True)
class PairwisePValues:
    """p-values of every pair of systems; entry [i, j] compares system i with system j.

    Attributes
    ----------
    names : tuple of str, length n_systems
    sign, wilcoxon : ndarray of float64, shape (n_systems, n_systems)
        Both have ones on the diagonal, and are symmetric if the alternative is two-sided.
    """

    names: tuple[str, ...]
    sign: FloatArray
    wilcoxon: FloatArray


def sign_test(
    y_true: Labels,
    y_pred_a: Labels,
    y_pred_b: Labels,
    *,
    alternative: Alternative = "two-sided",
) -> SignTestResult:
    """Return whether A and B are right on equally many of the rows where they differ.

    Of the n rows that exactly one system got right, A's are Binomial(n, ½) if neither is better.

    Parameters
    ----------
    y_true, y_pred_a, y_pred_b : sequence of labels or paths, length n_rows
        All three must name a node the same way: all by label or all by path.
    alternative : {'two-sided', 'greater', 'less'}
        'greater' asks whether A is better than B.

    Examples
    --------
    >>> sign_test([0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [0, 0, 0, 0, 0])
    SignTestResult(n_a_only_right=4, n_b_only_right=0, p_value=0.125)
    """
    _check_alternative(alternative)
    true, a, b = _encode({"y_true": y_true, "y_pred_a": y_pred_a, "y_pred_b": y_pred_b})
    return _sign_test(a == true, b == true, alternative)


def wilcoxon_test(
    y_true: Labels,
    y_pred_a: Labels,
    y_pred_b: Labels,
    *,
    alternative: Alternative = "two-sided",
) -> WilcoxonTestResult:
    """Return whether A's and B's per-class F1 differ, by Wilcoxon's signed-rank test.

    Classes with equal F1 are dropped. A class that never occurs in ``y_true`` has F1 = 0 under
    both, so it makes no difference whether it is counted. Whether the p-value is exact (few
    classes) or a normal approximation is left to scipy.

    Parameters
    ----------
    y_true, y_pred_a, y_pred_b : sequence of labels or paths, length n_rows
        All three must name a node the same way: all by label or all by path.
    alternative : {'two-sided', 'greater', 'less'}
        'greater' asks whether A is better than B.

    Examples
    --------
    >>> y_true = list("aaabbbcccd")
    >>> wilcoxon_test(y_true, y_true, y_true).p_value
    1.0
    >>> wilcoxon_test(y_true, y_true, list("aabbbccaad")).n_a_better
    3
    """
    _check_alternative(alternative)
    true, a, b = _encode({"y_true": y_true, "y_pred_a": y_pred_a, "y_pred_b": y_pred_b})
    n_classes = int(max(array.max() for array in (true, a, b))) + 1
    return _wilcoxon_test(_class_f1(true, a, n_classes), _class_f1(true, b, n_classes), alternative)


def pairwise_p_values(
    y_true: Labels,
    predictions: Mapping[str, Labels],
    *,
    alternative: Alternative = "two-sided",
) -> PairwisePValues:
    """Return the p-values of both tests for every pair of systems: what a heat map shows.

    They are not corrected for the number of pairs.

    Parameters
    ----------
    y_true : sequence of labels or paths, length n_rows
    predictions : mapping from a system's name to its predictions
    alternative : {'two-sided', 'greater', 'less'}
        'greater' asks whether the row's system is better than the column's.

    Examples
    --------
    >>> pairs = pairwise_p_values([0, 1, 2, 3, 4], {"good": [0, 1, 2, 3, 4], "bad": [0] * 5})
    >>> pairs.names, pairs.sign.tolist()
    (('good', 'bad'), [[1.0, 0.125], [0.125, 1.0]])
    """
    _check_alternative(alternative)
    if not predictions:
        raise DataError("there is nothing to compare: no predictions were given")
    names = tuple(predictions)
    true, *systems = _encode(
        {"y_true": y_true, **{f"predictions[{name!r}]": predictions[name] for name in names}}
    )
    n_classes = int(max(array.max() for array in (true, *systems))) + 1
    is_right = [predicted == true for predicted in systems]
    f1 = [_class_f1(true, predicted, n_classes) for predicted in systems]
    sign, wilcoxon = np.ones((2, len(names), len(names)))
    for i in range(len(names)):
        for j in range(len(names)):
            if i != j:
                sign[i, j] = _sign_test(is_right[i], is_right[j], alternative).p_value
                wilcoxon[i, j] = _wilcoxon_test(f1[i], f1[j], alternative).p_value
    return PairwisePValues(names, sign, wilcoxon)


def _sign_test(
    a_right: NDArray[np.bool_], b_right: NDArray[np.bool_], alternative: Alternative
) -> SignTestResult:
    n_a, n_b = int((a_right & ~b_right).sum()), int((b_right & ~a_right).sum())
    if n_a + n_b == 0:
        return SignTestResult(0, 0, 1.0)
    test = stats.binomtest(n_a, n_a + n_b, 0.5, alternative=alternative)
    return SignTestResult(n_a, n_b, float(test.pvalue))


def _wilcoxon_test(
    a_f1: FloatArray, b_f1: FloatArray, alternative: Alternative
) -> WilcoxonTestResult:
    difference = a_f1 - b_f1
    difference = difference[difference != 0]
    if difference.size == 0:
        return WilcoxonTestResult(0, 0, 0.0, 1.0)
    test = stats.wilcoxon(difference, alternative=alternative)
    n_a = int((difference > 0).sum())
    return WilcoxonTestResult(n_a, difference.size - n_a, float(test.statistic), float(test.pvalue))


def _class_f1(true: IntArray, predicted: IntArray, n_classes: int) -> FloatArray:
    """F1 of every code, shape (n_classes,)."""
    every = np.ones(n_classes, dtype=bool)
    return count_classes(true, predicted, every, np.arange(n_classes)).f1


def _encode(columns: Mapping[str, Labels]) -> list[IntArray]:
    """One integer code per label, the same in every column, after checking the lengths."""
    codes: dict[Hashable, int] = {}
    encoded = []
    for name, labels in columns.items():
        if isinstance(labels, (str, bytes)):
            raise DataError(f"{name} is a collection of labels, got the text {labels!r}")
        listed = np.asarray(labels, dtype=object) if hasattr(labels, "to_numpy") else labels
        rows = listed.tolist() if isinstance(listed, np.ndarray) else list(listed)  # type: ignore[arg-type]
        keys = (clean_path(row) if isinstance(row, (list, tuple)) else row for row in rows)
        encoded.append(
            np.fromiter((codes.setdefault(key, len(codes)) for key in keys), np.int64, len(rows))
        )
        if len(rows) != encoded[0].size:
            first = next(iter(columns))
            raise DataError(
                f"{first} has {encoded[0].size} rows and {name} {len(rows)}; "
                f"give one prediction per row"
            )
    if not encoded[0].size:
        raise DataError("there are no rows to compare: y_true is empty")
    return encoded


def _check_alternative(alternative: str) -> None:
    if alternative not in ("two-sided", "greater", "less"):
        raise ValueError(
            f"alternative must be 'two-sided', 'greater' or 'less', got {alternative!r}"
        )
