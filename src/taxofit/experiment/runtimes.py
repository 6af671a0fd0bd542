"""How long a method takes when it is fitted and used on its own."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit.classifier import TaxonomyClassifier

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from taxofit.experiment.problem import Problem
    from taxofit.experiment.protocol import Protocol

__all__ = ["measure_runtimes"]

N_PREDICTIONS = 5


def measure_runtimes(
    problem: Problem, protocol: Protocol, method: str, C: float
) -> dict[str, NDArray[Any]]:
    """Return the seconds of one fit at a given C and of the fastest of five predictions.

    LR solves the leaves on all training rows. Global-INF solves every node on nine tenths of them,
    chooses ψ, and solves the surviving nodes on all. Prediction is the classifier's own: from
    encoded test rows through packed weights to labels.
    """
    classifier = TaxonomyClassifier(
        problem.taxonomy,
        flattening=method,
        C=C,
        fit_intercept=protocol.fit_intercept,
        tol=protocol.tol,
        max_iter=protocol.max_iter,
        n_jobs=protocol.n_jobs,
        random_state=protocol.seed,
    )
    labels = np.empty(len(problem.row_leaf), dtype=object)
    labels[:] = [problem.taxonomy.labels[leaf] for leaf in problem.row_leaf]
    began = time.perf_counter()
    classifier.fit(problem.X, labels)
    train_seconds = time.perf_counter() - began
    classifier.predict(problem.X_test[:1])  # compiled before timing
    predictions = []
    for _ in range(N_PREDICTIONS):
        began = time.perf_counter()
        classifier.predict(problem.X_test)
        predictions.append(time.perf_counter() - began)
    return {
        "train_seconds": np.array(train_seconds),
        "predict_seconds": np.array(min(predictions)),
        "n_models": np.array(classifier.taxonomy_.n_nodes - 1),
    }
