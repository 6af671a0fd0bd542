"""Which internal nodes to remove: one small strategy for every method of the paper.

A strategy looks at :class:`~taxofit.bank.evidence.Evidence` and says which nodes go. Where a
threshold has to be found, candidates are put before a :class:`Judge`, which walks the validation
scores that are already there. No strategy fits anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from taxofit.errors import TaxonomyError
from taxofit.metrics import macro_f1_nodes
from taxofit.predict.walk import walk_scores
from taxofit.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from taxofit.bank.evidence import Evidence
    from taxofit.taxonomy import Taxonomy

    BoolArray = NDArray[np.bool_]
    FloatArray = NDArray[np.float64]
    Psi = float | tuple[float, ...] | None

__all__ = [
    "PSI_GRID",
    "Case",
    "Choice",
    "FlattenAll",
    "FlattenLevels",
    "Flattening",
    "GlobalINF",
    "Judge",
    "KeepAll",
    "LevelINF",
    "MaxMargin",
    "global_threshold",
    "level_thresholds",
]

PSI_GRID = tuple(k / 10 for k in range(31))


@dataclass(frozen=True, eq=False)
class Choice:
    """What a strategy decided.

    Attributes
    ----------
    removed : ndarray of bool, shape (n_nodes,)
    reason : str
        Why the removed nodes go, for people.
    psi : float, tuple of float (one per level, top first) or None
    threshold : ndarray of float64, shape (n_nodes,), optional
        What each node's objective (or ``difficulty``) was held against.
    difficulty : ndarray of float64, shape (n_nodes,), optional
        What was compared, where that is not the evidence's objective.
    """

    removed: BoolArray
    reason: str
    psi: Psi = None
    threshold: FloatArray | None = None
    difficulty: FloatArray | None = None


class Judge:
    """Validation macro-F1 of a candidate flattening, from the one score matrix.

    Parameters
    ----------
    taxonomy : Taxonomy
        The original one, whose nodes are the columns of the scores.
    evidence : Evidence
    classes : ndarray of int32
        Leaves over which F1 is averaged: those that occur in training or validation rows.
    """

    def __init__(self, taxonomy: Taxonomy, evidence: Evidence, classes: NDArray[np.int32]) -> None:
        self._taxonomy, self._evidence, self._classes = taxonomy, evidence, classes
        self._known: dict[bytes, float] = {}

    def __call__(self, removed: BoolArray) -> float:
        """Return the macro-F1 of walking the taxonomy without these nodes."""
        key = np.packbits(removed).tobytes()
        if key not in self._known:
            self._known[key] = macro_f1_nodes(
                self._evidence.row_leaf,
                self.predict(removed),
                self._taxonomy.is_leaf,
                self._classes,
                self._evidence.row_weight,
            )
        return self._known[key]

    def predict(self, removed: BoolArray) -> NDArray[np.int32]:
        """Return the leaf reached by every validation row, as a node of the original taxonomy."""
        parent, kept = self._taxonomy.removal(removed)  # labels are not needed for a walk
        return kept[walk_scores(self._evidence.scores, Tree.of_parents(parent), kept)]


@dataclass(frozen=True, eq=False)
class Case:
    """What a strategy may look at, at one C.

    Attributes
    ----------
    taxonomy : Taxonomy
    evidence : Evidence, optional
    judge : Judge, optional
        Both are there for strategies that say ``needs_evidence``.
    difficulty : callable, optional
        Gives :func:`~taxofit.bank.siblings.sibling_objectives` at a C, solved on first use.
    """

    taxonomy: Taxonomy
    evidence: Evidence | None = None
    judge: Judge | None = None
    difficulty: Callable[[float], FloatArray] | None = None

    def validated(self) -> tuple[Evidence, Judge]:
        """Return evidence and judge; a ValueError where the caller has none."""
        if self.evidence is None or self.judge is None:
            raise ValueError("this strategy needs evidence from validation rows")
        return self.evidence, self.judge


class Flattening(Protocol):
    """A way to choose the nodes to remove."""

    @property
    def needs_evidence(self) -> bool:
        """Whether the choice depends on validation rows."""

    def choose(self, case: Case) -> Choice:
        """Return the nodes to remove."""


@dataclass(frozen=True)
class KeepAll:
    """Remove nothing: top-down logistic regression on the taxonomy as it is (TD-LR)."""

    needs_evidence = False

    def choose(self, case: Case) -> Choice:
        """Return the empty choice."""
        return Choice(np.zeros(case.taxonomy.n_nodes, dtype=bool), "nothing is removed")


@dataclass(frozen=True)
class FlattenAll:
    """Remove every internal node: flat one-vs-rest logistic regression (LR)."""

    needs_evidence = False

    def choose(self, case: Case) -> Choice:
        """Return all internal nodes."""
        return Choice(case.taxonomy.is_internal, "every internal node is removed")


@dataclass(frozen=True)
class FlattenLevels:
    """Remove whole levels: the top (TLF), the bottom (BLF), or the first and third (MLF).

    Parameters
    ----------
    levels : {"top", "bottom", "multiple"} or sequence of int
        ``"top"`` is level 1, ``"bottom"`` the deepest level that has internal nodes, ``"multiple"``
        levels 1 and 3, as the paper has it after Wang and Lu (2010). The root is level 0.
    """

    levels: Literal["top", "bottom", "multiple"] | Sequence[int] = "top"
    needs_evidence = False

    def choose(self, case: Case) -> Choice:
        """Return the internal nodes of the levels; a level without any is a TaxonomyError."""
        taxonomy = case.taxonomy
        internal_levels = np.unique(taxonomy.level[taxonomy.is_internal])
        if not internal_levels.size:
            raise TaxonomyError("the taxonomy is flat: it has no level to flatten")
        wanted = self.levels
        if isinstance(wanted, str):
            wanted = {"top": (1,), "bottom": (int(internal_levels[-1]),), "multiple": (1, 3)}[
                wanted
            ]
        for level in wanted:
            if level not in internal_levels:
                raise TaxonomyError(
                    f"level {level} cannot be flattened: it has no internal nodes (levels "
                    f"{', '.join(map(str, internal_levels))} have); multiple-level flattening "
                    f"needs internal nodes on levels 1 and 3; use 'top' or 'bottom'"
                )
        removed = taxonomy.is_internal & np.isin(taxonomy.level, wanted)
        named = " and ".join(map(str, wanted))
        return Choice(removed, f"level {named} is removed as a whole")


@dataclass(frozen=True)
class GlobalINF:
    """Remove internal nodes whose f* exceeds µ + ψσ over all nodes (Global-INF, Algorithm 2).

    Mean and population standard deviation run over all nodes but the root, leaves included.

    Parameters
    ----------
    psi : float or "auto"
        ``"auto"`` takes the best of 0, 0.1, … 3 by validation macro-F1; of equals, the one that
        removes fewest nodes.
    """

    psi: float | Literal["auto"] = "auto"
    needs_evidence = True

    def choose(self, case: Case) -> Choice:
        """Return the nodes above the threshold."""
        taxonomy, (evidence, judge) = case.taxonomy, case.validated()

        def at(psi: float) -> Choice:
            threshold = np.full(taxonomy.n_nodes, global_threshold(evidence.objective, psi))
            return _above(taxonomy, evidence, threshold, psi)

        if self.psi != "auto":
            return at(_checked_psi(self.psi))
        return _best([at(psi) for psi in PSI_GRID], judge)


@dataclass(frozen=True)
class LevelINF:
    """Remove internal nodes whose f* exceeds µ_k + ψ_kσ_k over their level: Level-INF, Algorithm 1.

    Parameters
    ----------
    psi : float, sequence of float or "auto"
        One for all levels, or one per level that has internal nodes, top first. ``"auto"`` tunes
        them level by level from the top, as :class:`GlobalINF` does, the others held fixed; levels
        not yet tuned lose nothing.
    """

    psi: float | Sequence[float] | Literal["auto"] = "auto"
    needs_evidence = True

    def choose(self, case: Case) -> Choice:
        """Return the nodes above the threshold of their level."""
        taxonomy, (evidence, judge) = case.taxonomy, case.validated()
        n_levels = int(taxonomy.level[taxonomy.is_internal].max(initial=0))

        def at(psi: Sequence[float]) -> Choice:
            threshold = level_thresholds(evidence.objective, taxonomy.level, psi)
            return _above(taxonomy, evidence, threshold, tuple(psi))

        if self.psi != "auto":
            given = list(self.psi) if isinstance(self.psi, Sequence) else [self.psi] * n_levels
            if len(given) != n_levels:
                raise TaxonomyError(
                    f"LevelINF got {len(given)} values of psi, but {n_levels} levels have internal "
                    f"nodes; give one for each, or a single number"
                )
            return at([_checked_psi(value) for value in given])
        chosen = [np.inf] * n_levels
        best = at(chosen)
        for k in range(n_levels):
            best = _best([at([*chosen[:k], psi, *chosen[k + 1 :]]) for psi in PSI_GRID], judge)
            chosen = list(best.psi)  # type: ignore[arg-type]
        return best


@dataclass(frozen=True)
class MaxMargin:
    """Remove nodes that are hardest to tell from their siblings (MTA): a reconstruction.

    After Babbar et al. (2013), *Maximum-margin framework for training data synchronization in
    large-scale hierarchical classification*, whose text was not at hand; this is our reading of the
    rule, with logistic regression as the margin model. At each parent the internal children are
    sorted by F (see :func:`~taxofit.bank.siblings.sibling_objectives`), hardest first. The first
    two go; then the next, as long as the drop in F to it is smaller than the drop before. An only
    internal child is kept.

    Parameters
    ----------
    C : float
        Of the sibling problems.
    """

    C: float = 1.0
    needs_evidence = True

    def choose(self, case: Case) -> Choice:
        """Return the hardest children of every parent."""
        if case.difficulty is None:
            raise ValueError("this strategy needs the difficulty of siblings")
        taxonomy, F = case.taxonomy, case.difficulty(self.C)
        removed = np.zeros(taxonomy.n_nodes, dtype=bool)
        threshold = np.full(taxonomy.n_nodes, np.nan)
        for parent in range(taxonomy.n_nodes):
            children = np.asarray(taxonomy.children(parent), dtype=np.int64)
            contested = children[np.isfinite(F[children])]
            hardest = contested[np.argsort(-F[contested], kind="stable")]
            n_removed = _n_before_larger_drop(F[hardest])
            removed[hardest[:n_removed]] = True
            threshold[hardest] = F[hardest[n_removed - 1]] if n_removed else np.inf
        reason = "it is among the hardest to tell from its siblings"
        return Choice(removed, reason, threshold=threshold, difficulty=F)


def global_threshold(objective: FloatArray, psi: float) -> float:
    """Return τ = µ + ψσ over all nodes but the root, whose objective is NaN.

    Examples
    --------
    >>> global_threshold(np.array([np.nan, 1.0, 3.0]), psi=2.0)
    4.0
    """
    return float(np.nanmean(objective) + psi * np.nanstd(objective))


def level_thresholds(
    objective: FloatArray, level: NDArray[np.int32], psi: Sequence[float]
) -> FloatArray:
    """Return each node's τ_k = µ_k + ψ_kσ_k over the nodes of its level; ψ_1 first.

    Levels without a ψ have an infinite threshold, as an infinite ψ gives.

    Examples
    --------
    >>> level_thresholds(np.array([np.nan, 1.0, 3.0]), np.array([0, 1, 1]), [1.0])
    array([inf,  3.,  3.])
    """
    threshold = np.full(len(objective), np.inf)
    for k, psi_k in enumerate(psi, start=1):
        here = level == k
        if np.isfinite(psi_k):
            threshold[here] = objective[here].mean() + psi_k * objective[here].std()
    return threshold


def _above(taxonomy: Taxonomy, evidence: Evidence, threshold: FloatArray, psi: Psi) -> Choice:
    removed = taxonomy.is_internal & (evidence.objective > threshold)
    return Choice(removed, "its objective is above the threshold", psi, threshold)


def _best(candidates: Sequence[Choice], judge: Judge) -> Choice:
    """Return the candidate of highest score; of equals, the one that removes fewest nodes."""
    return max(candidates, key=lambda c: (judge(c.removed), -int(c.removed.sum())))


def _n_before_larger_drop(F: FloatArray) -> int:
    """Return how many of these descending values go by MaxMargin's rule."""
    if F.size < 2:
        return 0
    drops = F[:-1] - F[1:]
    n = 2
    while n < F.size and drops[n - 1] < drops[n - 2]:
        n += 1
    return n


def _checked_psi(psi: object) -> float:
    if not (isinstance(psi, (int, float)) and psi >= 0):
        raise TaxonomyError(f"psi must be a number not below 0 or 'auto', but is {psi!r}")
    return float(psi)
