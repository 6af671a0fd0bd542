"""One run: a split, one bank over all C, and what every flattening chooses from it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit.bank.evidence import gather_evidence
from taxofit.bank.node_bank import NodeBank
from taxofit.bank.rows import Rows
from taxofit.bank.split import split_rows
from taxofit.errors import TaxonomyError
from taxofit.experiment.protocol import METHODS
from taxofit.flattening import PSI_GRID, Case, FlattenAll, GlobalINF, Judge
from taxofit.methods import FLATTENINGS
from taxofit.selection import Selector

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from taxofit.experiment.problem import Problem
    from taxofit.experiment.protocol import Protocol
    from taxofit.progress import Progress

    Arrays = dict[str, NDArray[Any]]

__all__ = ["MethodChoice", "Run", "split_problem", "validate"]


@dataclass(frozen=True, eq=False)
class MethodChoice:
    """What a method chose on the validation rows of one run.

    Attributes
    ----------
    C : float
    psi : tuple of float
        One for Global-INF, one per level for Level-INF (inf: nothing goes), none for the others.
    removed : ndarray of bool, shape (n_nodes,)
    score : float
        Validation macro-F1.
    seconds : float
        Spent on choosing, given the scores of the validation rows.
    """

    C: float
    psi: tuple[float, ...]
    removed: NDArray[np.bool_]
    score: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Run:
    """All that is known after the validation of one run.

    Attributes
    ----------
    seed : int
    choices : dict of MethodChoice
        By method; those that the taxonomy does not allow are missing.
    bank_seconds : float
        Solving the bank for every C and scoring the validation rows.
    curve : ndarray, shape (n_Cs, 31)
        Validation macro-F1 of Global-INF for every C and ψ.
    flat : ndarray, shape (n_Cs,)
        Validation macro-F1 of flat LR.
    """

    seed: int
    choices: dict[str, MethodChoice]
    bank_seconds: float
    curve: NDArray[np.float64]
    flat: NDArray[np.float64]

    @classmethod
    def from_arrays(cls, seed: int, arrays: Arrays) -> Run:
        """Return a run from a cached piece."""
        choices = {}
        for row, method in enumerate(arrays["methods"].tolist()):
            psi = arrays["psi"][row]
            choices[method] = MethodChoice(
                float(arrays["C"][row]),
                tuple(psi[~np.isnan(psi)].tolist()),
                arrays["removed"][row],
                float(arrays["score"][row]),
                float(arrays["seconds"][row]),
            )
        return cls(seed, choices, float(arrays["bank_seconds"]), arrays["curve"], arrays["flat"])


def split_problem(
    problem: Problem, protocol: Protocol, seed: int
) -> tuple[Rows, NDArray[np.int64], NDArray[np.int64]]:
    """Return all training rows, and which of them train and validate in the run of this seed."""
    rows = Rows.prepare(problem.X, fit_intercept=protocol.fit_intercept)
    kept, held_out = split_rows(
        rows.X, problem.row_leaf, rows.weight, fraction=protocol.validation_fraction, seed=seed
    )
    return rows, kept, held_out


def validate(
    problem: Problem, protocol: Protocol, seed: int, progress: Progress | None = None
) -> Arrays:
    """Return what every method chooses on one split, as arrays to keep.

    All flattenings are chosen, whatever the protocol asks for: they share the bank, and the choice
    costs little.
    """
    rows, kept, held_out = split_problem(problem, protocol, seed)
    leaf, taxonomy = problem.row_leaf, problem.taxonomy
    started = time.perf_counter()
    bank = NodeBank(
        rows.take(kept), taxonomy, leaf[kept], settings=protocol.solver, n_threads=protocol.n_jobs
    )
    evidence = gather_evidence(
        bank, rows.take(held_out), leaf[held_out], protocol.Cs, progress=progress
    )
    bank_seconds = time.perf_counter() - started
    selector = Selector(bank, evidence)
    choices: dict[str, MethodChoice] = {}
    for method in METHODS:
        if method not in FLATTENINGS:
            continue
        started = time.perf_counter()
        try:
            selection = selector.select(FLATTENINGS[method])
        except TaxonomyError:  # levels that this taxonomy does not have
            continue
        psi = selection.choice.psi
        choices[method] = MethodChoice(
            selection.C,
            () if psi is None else psi if isinstance(psi, tuple) else (psi,),
            selection.choice.removed,
            selection.score,
            time.perf_counter() - started,
        )
    classes = np.unique(leaf)
    judges = [Judge(taxonomy, e, classes) for e in evidence]
    flat = [judge(FlattenAll().choose(Case(taxonomy)).removed) for judge in judges]
    curve = [
        [judge(GlobalINF(psi).choose(Case(taxonomy, e, judge)).removed) for psi in PSI_GRID]
        for e, judge in zip(evidence, judges, strict=True)
    ]
    return _to_arrays(choices, bank_seconds, np.array(curve), np.array(flat))


def _to_arrays(
    choices: dict[str, MethodChoice],
    bank_seconds: float,
    curve: NDArray[np.float64],
    flat: NDArray[np.float64],
) -> Arrays:
    width = max(1, *(len(choice.psi) for choice in choices.values()))
    psi = np.full((len(choices), width), np.nan)
    for row, choice in enumerate(choices.values()):
        psi[row, : len(choice.psi)] = choice.psi
    return {
        "methods": np.array(list(choices)),
        "C": np.array([choice.C for choice in choices.values()]),
        "psi": psi,
        "removed": np.array([choice.removed for choice in choices.values()]),
        "score": np.array([choice.score for choice in choices.values()]),
        "seconds": np.array([choice.seconds for choice in choices.values()]),
        "bank_seconds": np.array(bank_seconds),
        "curve": curve,
        "flat": flat,
    }
