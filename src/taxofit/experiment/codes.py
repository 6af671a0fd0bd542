"""ECOC under the protocol: its own binary problems, length and C chosen on the validation rows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit.bank.rows import Rows
from taxofit.ecoc import CodeLearner, choose_length, code_lengths, decode, make_code
from taxofit.experiment.splits import split_problem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from taxofit.experiment.cache import PieceCache
    from taxofit.experiment.problem import Problem
    from taxofit.experiment.protocol import Protocol
    from taxofit.progress import Progress

    Arrays = dict[str, NDArray[Any]]

__all__ = ["CodeExperiment"]


class CodeExperiment:
    """The code of a data set, its validation on every split and its refits.

    The code is the same in every run, and shorter codes are its prefixes; so one refit of the
    longest for each chosen C serves all runs and lengths.

    Parameters
    ----------
    problem : Problem
    protocol : Protocol
    cache : PieceCache
    """

    def __init__(self, problem: Problem, protocol: Protocol, cache: PieceCache) -> None:
        self.problem, self.protocol, self.cache = problem, protocol, cache
        self.leaves, row_class = np.unique(problem.row_leaf, return_inverse=True)
        self.row_class = row_class.astype(np.int32)
        self.lengths = protocol.code_lengths or code_lengths(len(self.leaves))
        self.code = make_code(problem.taxonomy, self.leaves, max(self.lengths), seed=protocol.seed)
        self._key = {"lengths": list(self.lengths), "seed": protocol.seed}

    def validate(self, seed: int, progress: Progress | None = None) -> Arrays:
        """Return the chosen ``C``, ``n_bits``, their ``score``, and ``seconds``."""

        def make() -> Arrays:
            rows, kept, held_out = split_problem(self.problem, self.protocol, seed)
            began = time.perf_counter()
            learner = self._learner(rows.take(kept), self.row_class[kept])
            margins = learner.margins(rows.take(held_out), self.protocol.Cs, progress=progress)
            choice = choose_length(margins, self.code, self.row_class[held_out], self.lengths)
            return {
                "C": np.array(choice.C),
                "n_bits": np.array(choice.n_bits),
                "score": np.array(choice.score),
                "seconds": np.array(time.perf_counter() - began),
            }

        key = {
            **self._key,
            "run": seed,
            "Cs": list(self.protocol.Cs),
            "fraction": self.protocol.validation_fraction,
        }
        return self.cache.get("code-choice", key, make)

    def refit(self, C: float, progress: Progress | None = None) -> Arrays:
        """Return the test rows' ``margins`` of all bits, and ``seconds``."""

        def make() -> Arrays:
            intercept = self.protocol.fit_intercept
            began = time.perf_counter()
            learner = self._learner(
                Rows.prepare(self.problem.X, fit_intercept=intercept), self.row_class
            )
            test_rows = Rows.prepare(self.problem.X_test, fit_intercept=intercept)
            margins = learner.margins(test_rows, [C], progress=progress)[C]
            return {"margins": margins, "seconds": np.array(time.perf_counter() - began)}

        return self.cache.get("code-refit", {**self._key, "C": C}, make)

    def predict(self, margins: NDArray[np.float32], n_bits: int) -> NDArray[np.int32]:
        """Return the leaf of the nearest codeword of this length, for every row."""
        return self.leaves[decode(margins[:, :n_bits], self.code[:, :n_bits])]

    def _learner(self, rows: Rows, row_class: NDArray[np.int32]) -> CodeLearner:
        return CodeLearner(
            rows,
            row_class,
            self.code,
            settings=self.protocol.solver,
            n_threads=self.protocol.n_jobs,
        )
