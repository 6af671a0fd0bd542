"""What is said in a line or two: errors, warnings, notes, and where things are."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from taxofit.terminal.elements import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from taxofit.bank.cost import FitCost
    from taxofit.workflow.predicting import PredictionReport
    from taxofit.workflow.reporting import WrittenReport

__all__ = [
    "show_error",
    "show_estimate",
    "show_next",
    "show_notes",
    "show_prediction",
    "show_report",
    "show_service",
    "show_warning",
]

LONG_SECONDS = 60


def show_error(message: object) -> None:
    """Print one line on stderr, whatever the message holds."""
    show_line("error", "bold red", message)


def show_warning(message: object) -> None:
    """Print one line on stderr."""
    show_line("warning", "bold yellow", message)


def show_estimate(cost: FitCost) -> None:
    """Say on stderr what a fit will take, where that is more than a minute."""
    from taxofit.workflow.estimate import shown_bytes  # imports NumPy

    if cost.seconds < LONG_SECONDS:
        return
    minutes = cost.seconds / 60
    time = f"{minutes:.0f} minutes" if minutes < 120 else f"{minutes / 60:,.1f} hours"
    show_line(
        "estimate",
        "bold cyan",
        f"training takes about {time}, {shown_bytes(cost.memory_bytes)} of memory and "
        f"{shown_bytes(cost.disk_bytes)} of disk",
    )


def show_prediction(report: PredictionReport) -> None:
    """Say on stderr what was guessed and, where it was a file, how many rows were written."""
    console = Console(stderr=True)
    show_notes(console, report.notes)
    if report.out is None:
        return
    if report.n_blank:
        show_notes(console, [f"{report.n_blank:,} rows have no text: predicted from nothing"])
    console.print(
        Text(f"{report.n_rows:,} predictions in {clean(report.out)}"),
        highlight=False,
        soft_wrap=True,
    )


def show_report(report: WrittenReport) -> None:
    """Say on stderr where the page is."""
    size = f"{report.n_bytes / 1e6:.1f} MB"
    Console(stderr=True).print(
        f"{report.kind} report in {clean(report.out)} ({size}); open it in a browser",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


def show_service(url: str) -> None:
    """Say on stderr where the service answers, and what to ask it first."""
    console = Console(stderr=True)
    console.print(f"taxofit answers at {url}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"  {url}/v1/openapi.json", style="green", highlight=False, soft_wrap=True)


def show_notes(console: Console, notes: Iterable[str]) -> None:
    """Print what a person may want to know, a line each."""
    for note in notes:
        console.print(Text.assemble(("note: ", "yellow"), clean(note)), soft_wrap=True)


def show_next(console: Console, commands: Iterable[Sequence[str]]) -> None:
    """Print commands to go on with, quoted for a shell."""
    console.print()
    console.print(Text("Next:", style="bold"))
    for command in commands:
        line = " ".join(shlex.quote(clean(part)) for part in ("taxofit", *command))
        console.print(Text(f"  {line}", style="green"), soft_wrap=True)


def show_line(kind: str, style: str, message: object) -> None:
    text = Text.assemble((f"{kind}: ", style), clean(message))
    Console(stderr=True).print(text, soft_wrap=True)
