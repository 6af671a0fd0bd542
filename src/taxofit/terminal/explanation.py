"""How an explanation looks on a terminal: the way down, step by step, and what decided there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from taxofit.terminal.elements import clean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from taxofit.predictions import Explanation, FeatureShare

__all__ = ["show_explanation"]

BAR_CELLS = 12
BLOCKS = " ▏▎▍▌▋▊▉█"
N_FEATURES_SHOWN = 4
LEGEND = (
    "what decided: what each feature adds to the score, less what it adds to the strongest rival's"
)


def show_explanation(explanation: Explanation, title: str) -> None:
    """Print the answer, and for every step its candidates with the features that spoke most.

    Parameters
    ----------
    explanation : Explanation
    title : str
        What was asked about.
    """
    console = Console()
    path = " > ".join(clean(name) for name in explanation.path)
    console.print(Text(clean(title), style="italic"), soft_wrap=True)
    console.print(
        Text.assemble("→ ", (path, "bold"), f"  {explanation.probability:.1%}"), soft_wrap=True
    )
    console.print()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("step", justify="right", style="dim")
    table.add_column("candidate", overflow="fold")
    table.add_column("probability", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("what decided", overflow="fold", ratio=1)
    for number, step in enumerate(explanation.steps, start=1):
        for position, candidate in enumerate(step.candidates):
            is_taken = candidate.label == step.label
            table.add_row(
                str(number) if position == 0 else "",
                Text(f"{'▶' if is_taken else ' '} {clean(candidate.label)}"),
                Text(f"{_bar(candidate.probability)} {candidate.probability:6.1%}"),
                f"{candidate.score:+.2f}",
                _features(candidate.features),
                style="bold" if is_taken else "",
                end_section=position == len(step.candidates) - 1,
            )
    console.print(table)
    console.print(Text(LEGEND, style="dim"))


def _bar(share: float) -> str:
    eighths = round(min(max(share, 0.0), 1.0) * BAR_CELLS * 8)
    return ("█" * (eighths // 8) + BLOCKS[eighths % 8]).ljust(BAR_CELLS)[:BAR_CELLS]


def _features(features: Iterable[FeatureShare]) -> Text:
    shown = Text()
    for position, feature in enumerate(list(features)[:N_FEATURES_SHOWN]):
        if position:
            shown.append(" · ", style="dim")
        sign = "−" if feature.contribution < 0 else "+"
        colour = "red" if feature.contribution < 0 else "green"
        shown.append(f"{clean(feature.name)} ")
        shown.append(f"{sign}{abs(feature.contribution):.2f}", style=colour)
    return shown
