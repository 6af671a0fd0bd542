"""What a classifier tells people about rows: the best labels, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Candidate", "Explanation", "FeatureShare", "Step", "TopPredictions"]


@dataclass(frozen=True, eq=False)
class TopPredictions:
    """The most probable leaves of every row, best first.

    Attributes
    ----------
    labels : ndarray, shape (n_rows, k)
    probabilities : ndarray of float64, shape (n_rows, k)
    paths : ndarray of tuples, shape (n_rows, k)
        From the top of the original taxonomy to the leaf.
    """

    labels: NDArray[Any]
    probabilities: NDArray[np.float64]
    paths: NDArray[np.object_]


@dataclass(frozen=True)
class FeatureShare:
    """What one feature did for a candidate.

    Attributes
    ----------
    name : str
    value : float
        In the row.
    weight : float
        The candidate's own.
    contribution : float
        value · (weight - weight of the strongest rival); without a rival, value · weight.
    """

    name: str
    value: float
    weight: float
    contribution: float


@dataclass(frozen=True)
class Candidate:
    """A child that a row could have gone to.

    Attributes
    ----------
    label : hashable
    score : float
        θ·x of its own model.
    probability : float
        Of the row's leaf being under it.
    features : tuple of FeatureShare
        Those that count most against its strongest rival, largest first.
    """

    label: Any
    score: float
    probability: float
    features: tuple[FeatureShare, ...]


@dataclass(frozen=True)
class Step:
    """One step down: the node that was chosen, and the candidates, highest score first."""

    label: Any
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True)
class Explanation:
    """Why a row ends where it does.

    Attributes
    ----------
    label : hashable
    path : tuple
        In the original taxonomy.
    probability : float
    steps : tuple of Step
        In the repaired taxonomy, from the top.
    """

    label: Any
    path: tuple[Any, ...]
    probability: float
    steps: tuple[Step, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as JSON values."""
        return {
            "label": self.label,
            "path": list(self.path),
            "probability": self.probability,
            "steps": [
                {
                    "label": step.label,
                    "candidates": [
                        {
                            "label": candidate.label,
                            "score": candidate.score,
                            "probability": candidate.probability,
                            "features": [vars(share) for share in candidate.features],
                        }
                        for candidate in step.candidates
                    ],
                }
                for step in self.steps
            ],
        }
