"""Predictions beside the truth, in one taxonomy, so that they can be scored and compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from taxofit.errors import DataError
from taxofit.metrics import evaluate
from taxofit.significance import sign_test, wilcoxon_test

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from taxofit.classifier import TaxonomyClassifier
    from taxofit.datasets import Dataset
    from taxofit.taxonomy import Taxonomy

__all__ = ["Difference", "Predictions", "System", "difference", "predictions_on"]


@dataclass(frozen=True, eq=False)
class Predictions:
    """True and predicted labels of the same rows, all of them labels of one taxonomy.

    Attributes
    ----------
    true, predicted : sequence of labels, length n_rows
    classes : sequence of labels
        Over which macro-F1 runs, besides those of the rows.
    taxonomy : Taxonomy
    """

    true: Sequence[Hashable]
    predicted: Sequence[Hashable]
    classes: Sequence[Hashable]
    taxonomy: Taxonomy

    @property
    def scores(self) -> dict[str, float]:
        """µF1, macro-F1, hierarchical F1 and tree error; see `taxofit.metrics.evaluate`."""
        return evaluate(self.true, self.predicted, self.taxonomy, classes=self.classes)


@dataclass(frozen=True)
class System:
    """One of several that are compared: its name, the nodes of its taxonomy, its scores."""

    name: str
    n_nodes: int
    scores: dict[str, float]


@dataclass(frozen=True)
class Difference:
    """Whether one system is better than another on the same rows.

    Attributes
    ----------
    n_only_first, n_only_second : int
        Rows that only one of the two got right.
    sign_p : float
        Two-sided p-value of the sign test over rows: is µF1 different?
    wilcoxon_p : float
        Two-sided p-value of the signed-rank test over classes: is macro-F1 different?
    """

    n_only_first: int
    n_only_second: int
    sign_p: float
    wilcoxon_p: float

    def to_json(self) -> dict[str, Any]:
        """Return the counts and p-values as JSON values."""
        return {
            "rows_only_first_right": self.n_only_first,
            "rows_only_second_right": self.n_only_second,
            "micro_sign_p": self.sign_p,
            "macro_wilcoxon_p": self.wilcoxon_p,
        }


def predictions_on(classifier: TaxonomyClassifier, data: Dataset) -> Predictions:
    """Return what a classifier says of labelled rows, in the data's taxonomy.

    That taxonomy has all of the classifier's labels and may have more.
    """
    original = classifier.original_taxonomy_
    predicted, classes = classifier.predict(data.X).tolist(), classifier.classes_.tolist()
    if data.taxonomy is not original:
        predicted = [original.path_of(label) for label in predicted]
        classes = [original.path_of(label) for label in classes]
    true = [data.taxonomy.labels[node] for node in data.taxonomy.nodes_of(data.y)]
    return Predictions(true, predicted, classes, data.taxonomy)


def difference(first: Predictions, second: Predictions) -> Difference:
    """Return whether two systems differ on the rows that both were given.

    Examples
    --------
    >>> from taxofit import Taxonomy
    >>> taxonomy = Taxonomy.from_labels("abc")
    >>> truth = list("aabbcc")
    >>> good = Predictions(truth, truth, truth, taxonomy)
    >>> difference(good, Predictions(truth, list("aaaaaa"), truth, taxonomy)).sign_p
    0.125
    """
    true, first_said, second_said = _codes(first, second)
    sign = sign_test(true, first_said, second_said)
    wilcoxon = wilcoxon_test(true, first_said, second_said)
    return Difference(sign.n_a_only_right, sign.n_b_only_right, sign.p_value, wilcoxon.p_value)


def _codes(
    first: Predictions, second: Predictions
) -> tuple[list[Hashable], list[Hashable], list[Hashable]]:
    """Return truth and both predictions in one set of names.

    The two may live in different taxonomies. Rows tell which of their labels mean the same; what no
    row says is a name of its own, and wrong wherever it is predicted.
    """
    true, first_said = (
        first.taxonomy.nodes_of(side).tolist() for side in (first.true, first.predicted)
    )
    second_true, second_said = (
        second.taxonomy.nodes_of(side).tolist() for side in (second.true, second.predicted)
    )
    if len(true) != len(second_true):
        raise DataError(
            f"one reads {len(true)} rows of this file and the other {len(second_true)}; compare "
            f"models that were trained on the same columns and labels"
        )
    meaning: dict[int, int] = {}
    for one, other in zip(true, second_true, strict=True):
        if meaning.setdefault(other, one) != one:
            raise DataError(
                f"{second.taxonomy.labels[other]!r} of one is both "
                f"{first.taxonomy.labels[meaning[other]]!r} and {first.taxonomy.labels[one]!r} of "
                f"the other; the two do not have the same leaves"
            )
    if first.taxonomy is second.taxonomy:
        return true, first_said, second_said
    return true, first_said, [meaning.get(node, ("other", node)) for node in second_said]
