"""What a fit leaves open: C, the flattening and the search, settled on rows that are held out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from taxofit.bank.evidence import gather_evidence
from taxofit.bank.split import split_rows
from taxofit.flattening import Case, KeepAll
from taxofit.predict.search import GREEDY, Search
from taxofit.selection import C_GRID, VALIDATION_FRACTION, Selection, Selector

if TYPE_CHECKING:
    from taxofit.bank.harvest import Harvest
    from taxofit.bank.node_bank import NodeBank
    from taxofit.flattening import Flattening
    from taxofit.progress import Progress
    from taxofit.selection import Validation

__all__ = ["FitChoices"]


@dataclass(frozen=True)
class FitChoices:
    """What was asked for, and how the rest is found.

    Attributes
    ----------
    strategy : Flattening
    C, search, gamma, beam_width
        As in :class:`~taxofit.classifier.TaxonomyClassifier`.
    """

    strategy: Flattening
    C: float | Literal["auto"] = "auto"
    search: Literal["greedy", "beam", "auto"] = "greedy"
    gamma: float | Literal["auto"] = "auto"
    beam_width: int | Literal["auto"] = "auto"

    @property
    def are_settled(self) -> bool:
        """Whether nothing is left for validation rows to decide.

        Examples
        --------
        >>> FitChoices(KeepAll()).are_settled, FitChoices(KeepAll(), C=1.0).are_settled
        (False, True)
        """
        has_open_search = self.search == "auto" or (
            self.search == "beam" and "auto" in (self.gamma, self.beam_width)
        )
        return self.C != "auto" and not self.strategy.needs_evidence and not has_open_search

    def settle(
        self,
        bank: NodeBank,
        *,
        seed: int = 0,
        also: Harvest | None = None,
        progress: Progress | None = None,
    ) -> tuple[Selection, Validation | None]:
        """Return C, what to remove and how to search, from validation rows where they are needed.

        Parameters
        ----------
        bank : NodeBank
            Over all rows, of which some are held out.
        seed : int
            Which ones.
        also : Harvest, optional
            Gets every block that is solved on the other rows.
        progress : callable, optional
            As in :meth:`NodeBank.solve`.
        """
        given = Selection(
            1.0 if self.C == "auto" else float(self.C),
            KeepAll().choose(Case(bank.taxonomy)),
            search=self._given_search(),
        )
        if self.are_settled:
            return replace(given, choice=self.strategy.choose(Case(bank.taxonomy))), None
        rows = bank.rows
        training, held_out = split_rows(
            rows.X, bank.row_leaf, rows.weight, fraction=VALIDATION_FRACTION, seed=seed
        )
        if not held_out.size or not training.size:
            return given, None  # a single distinct row: nothing can be held out
        smaller = bank.take(training)
        evidence = gather_evidence(
            smaller,
            rows.take(held_out),
            bank.row_leaf[held_out],
            C_GRID if self.C == "auto" else [float(self.C)],
            also=also,
            progress=progress,
        )
        selector = Selector(smaller, evidence)
        selection = selector.calibrate(self._best(selector))
        return selection, selector.validation(held_out, selection)

    def _best(self, selector: Selector) -> Selection:
        """Return the best selection for the search that was asked for."""
        if self.search == "greedy":
            return selector.select(self.strategy)
        beam = selector.select_beam(self.strategy, gamma=self.gamma, width=self.beam_width)
        if self.search == "beam":
            return beam
        greedy = selector.select(self.strategy)
        return beam if beam.score > greedy.score else greedy

    def _given_search(self) -> Search:
        """Return the search as far as it is given; without validation rows, walks are greedy."""
        if self.search != "beam":
            return GREEDY
        gamma = 1.0 if self.gamma == "auto" else self.gamma
        return Search("beam", gamma, 0 if self.beam_width == "auto" else self.beam_width)
