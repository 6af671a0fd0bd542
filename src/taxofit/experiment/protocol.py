"""What an experiment is: how many runs, which methods, which grid, which seeds."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from taxofit.bank.solver import SolverSettings
from taxofit.methods import FLATTENINGS, TITLES
from taxofit.selection import C_GRID

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["BASELINES", "METHODS", "TITLES", "Protocol"]

METHODS = tuple(TITLES)
BASELINES = ("td-lr", "tlf", "blf", "mlf", "mta")


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """The paper's protocol; the defaults are its own.

    Attributes
    ----------
    n_runs : int
        Random splits into training and validation rows. Run k has the seed ``seed + k``.
    Cs : tuple of float
    validation_fraction : float
    methods : tuple of str
        Which results to report. All but ``ecoc`` come from the same banks, so leaving some out
        saves next to nothing; one that the taxonomy does not allow (MLF) is left out with a note.
    seed : int
        Of the first run, and of ECOC's random bits.
    fit_intercept, tol, max_iter, n_jobs
        As in :class:`~taxofit.TaxonomyClassifier`.
    code_lengths : tuple of int, optional
        ECOC's; :func:`taxofit.ecoc.code_lengths` of the number of classes by default.
    measures_time : bool
        Whether to fit LR and Global-INF once more on their own, for the table of run times.

    Examples
    --------
    >>> list(Protocol(n_runs=2, seed=7).seeds)
    [7, 8]
    """

    n_runs: int = 5
    Cs: tuple[float, ...] = C_GRID
    validation_fraction: float = 0.1
    methods: tuple[str, ...] = METHODS
    seed: int = 0
    fit_intercept: bool = True
    tol: float = 1e-4
    max_iter: int = 100
    n_jobs: int | None = None
    code_lengths: tuple[int, ...] | None = None
    measures_time: bool = True

    def __post_init__(self) -> None:
        if self.n_runs < 1:
            raise ValueError(f"n_runs must be at least 1, but is {self.n_runs}")
        if not self.Cs or min(self.Cs) <= 0:
            raise ValueError(f"Cs must be positive numbers, but are {self.Cs!r}")
        if not 0 < self.validation_fraction < 1:
            raise ValueError(
                f"validation_fraction must be between 0 and 1, but is {self.validation_fraction}"
            )
        unknown = [method for method in self.methods if method not in METHODS]
        if unknown or not self.methods:
            raise ValueError(
                f"unknown method {', '.join(map(repr, unknown)) or 'list: it is empty'}; "
                f"choose from {', '.join(METHODS)}"
            )

    @property
    def seeds(self) -> range:
        """Seed of every run."""
        return range(self.seed, self.seed + self.n_runs)

    @property
    def solver(self) -> SolverSettings:
        """Settings of the solver."""
        return SolverSettings(tol=self.tol, max_iter=self.max_iter)

    def flattening_methods(self) -> Iterator[str]:
        """Yield the methods asked for that are flattenings, in the paper's order."""
        return (name for name in METHODS if name in self.methods and name in FLATTENINGS)

    def to_json(self) -> dict[str, Any]:
        """Return all settings, for results."""
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in asdict(self).items()
        }

    def model_key(self) -> dict[str, Any]:
        """Return the settings that a solved bank depends on, for cached pieces."""
        return {"fit_intercept": self.fit_intercept, "tol": self.tol, "max_iter": self.max_iter}
