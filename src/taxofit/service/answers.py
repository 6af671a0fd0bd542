"""What the classifier says, as answers to requests: the one place that calls it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from taxofit.workflow.predicting import sure_labels

if TYPE_CHECKING:
    from taxofit.service.served_model import ModelHolder, ServedModel

__all__ = ["Explain", "Predict", "PredictTop"]


@dataclass(frozen=True)
class Predict:
    """Label, path and probability of each row, with the version of the model that said so."""

    holder: ModelHolder
    min_confidence: float | None = None

    def __call__(self, rows: list[Any]) -> list[tuple[str, dict[str, Any]]]:
        """Return (model version, answer) for each row."""
        model = self.holder.current
        X = model.rows.features_of(rows)
        labels, probabilities = sure_labels(model.classifier, X, self.min_confidence)
        return [
            (model.version, _prediction(model, label, probability))
            for label, probability in zip(labels.tolist(), probabilities.tolist(), strict=True)
        ]


@dataclass(frozen=True)
class PredictTop:
    """The k most probable leaves of each row, best first."""

    holder: ModelHolder
    k: int

    def __call__(self, rows: list[Any]) -> list[tuple[str, list[dict[str, Any]]]]:
        """Return (model version, answers) for each row."""
        model = self.holder.current
        best = model.classifier.predict_topk(model.rows.features_of(rows), k=self.k)
        return [
            (model.version, [_prediction(model, label, p) for label, p in zip(*row, strict=True)])
            for row in zip(best.labels.tolist(), best.probabilities.tolist(), strict=True)
        ]


@dataclass(frozen=True)
class Explain:
    """Why rows get their labels: the scores on the way down, and what they are made of."""

    holder: ModelHolder
    n_candidates: int
    n_features: int

    def __call__(self, rows: list[Any]) -> list[tuple[str, dict[str, Any]]]:
        """Return (model version, explanation) for each row."""
        model = self.holder.current
        X = model.rows.features_of(rows)
        return [
            (
                model.version,
                model.classifier.explain(
                    X[row : row + 1], n_candidates=self.n_candidates, n_features=self.n_features
                ).to_json(),
            )
            for row in range(len(rows))
        ]


def _prediction(model: ServedModel, label: Any, probability: float) -> dict[str, Any]:
    path = () if label is None else model.classifier.original_taxonomy_.path_of(label)
    return {"label": label, "path": list(path), "probability": probability}
