"""What `fit` and `flatten` did: what was read, how it was trained, what repair brought and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from taxofit.terminal.elements import clean, fact_table
from taxofit.terminal.messages import show_next
from taxofit.terminal.scores import show_ways

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from taxofit.workflow.flattening_file import FlattenReport
    from taxofit.workflow.training import FitReport

__all__ = ["show_fit", "show_flatten"]

FACT_MARGIN = 12  # columns that the names of facts take
N_REASONS_AFTER_FIT, N_REASONS_SHOWN = 3, 20
IS_FLAT = "The taxonomy is flat: there is nothing to remove."
KEPT_ALL = "Nothing was removed: the held-out rows are best predicted with every category in place."
FEATURE_TITLES = {
    "words": "words",
    "pairs": "words and pairs",
    "chars": "words and parts of words",
}


def show_fit(report: FitReport, test: str | None = None) -> None:
    """Print what was trained, what repair brought, and what to do next."""
    console = Console()
    model = str(report.model)
    _show_training(console, report)
    _show_removals(console, report, N_REASONS_AFTER_FIT)
    pages = [("report", model, "-o", "report.html")]
    show_next(
        console,
        [
            *(pages if report.validation_macro_f1 is not None else ()),
            ("predict", model, test or report.file, "-o", "predictions.csv"),
        ],
    )


def show_flatten(report: FlattenReport) -> None:
    """Print what repair brought, which nodes went and why, and where the taxonomy is."""
    console = Console()
    fit = report.fit
    _show_training(console, fit)
    _show_removals(console, fit, N_REASONS_SHOWN)
    console.print()
    console.print(
        Text.assemble(
            f"{fit.n_nodes:,} nodes before, {fit.n_nodes_kept:,} after: {report.form} in ",
            (clean(report.out), "green"),
        ),
        soft_wrap=True,
    )


def _show_training(console: Console, report: FitReport) -> None:
    """Print what was read, how it was trained, and the table of three ways."""
    facts = fact_table()
    features = f"{report.n_features:,} features"
    if report.features is not None:
        tried = ", ".join(f"{name} {score:.1%}" for name, score in report.features.scores.items())
        chosen = FEATURE_TITLES[report.features.features]
        features = f"{features}: {chosen}, chosen by MF1 of {tried}"
        if report.features.n_rows < report.n_rows:
            rows = f"{report.features.n_rows:,} rows of {report.features.n_leaves:,} leaves"
            features = f"{features} on {rows}"
    nodes = f"{report.n_leaves:,} leaves, {report.n_nodes:,} nodes"
    facts.add_row("read", Text(clean(f"{report.n_rows:,} rows of {report.file}, {nodes}")))
    if report.notes:
        guesses = (_shown_guess(note, report.file) for note in report.notes)
        facts.add_row("guessed", _listed(guesses, console.width))
    if report.left_out:
        left_out = _listed(map(str, report.left_out), console.width)
        left_out.stylize("yellow")
        facts.add_row("left out", left_out)
    psi = "" if report.psi is None else f", ψ = {_shown_psi(report.psi)}"
    trained = f"{report.method}, C = {report.C:g}{psi}, in {report.train_seconds:.1f} s"
    facts.add_row("trained", Text(f"{features}; {trained}"))
    if report.model is not None:
        facts.add_row("model", Text(clean(report.model), style="green"))
    console.print(facts)
    ways = report.test_ways or report.validation
    if ways is not None:
        console.print()
        show_ways(console, ways)


def _show_removals(console: Console, report: FitReport, n_shown: int) -> None:
    """Print the removed nodes, the worst first, each with its reason on the next line."""
    console.print()
    n_internal = report.n_nodes - 1 - report.n_leaves
    if not report.removed:
        console.print(Text(KEPT_ALL if n_internal else IS_FLAT))
        return
    console.print(
        Text(f"Removed {len(report.removed):,} of {n_internal:,} inner nodes", style="bold")
    )
    for removal in report.removed[:n_shown]:
        console.print(Text(f"  {clean(removal.path)}", style="cyan"), soft_wrap=True)
        console.print(Padding(Text(clean(removal.reason)), (0, 0, 0, 4)))
    if len(report.removed) > n_shown:
        console.print(Text(f"  … and {len(report.removed) - n_shown:,} more", style="dim"))


def _shown_guess(note: str, file: str) -> str:
    """Return a note without what the line it is on says already."""
    return note.removesuffix(" (guessed)").removeprefix(f"{file}: ").removeprefix(f"{file} is ")


def _listed(parts: Iterable[str], width: int) -> Text:
    """Return parts in lines that break between them only, so that ``' > '`` stays whole."""
    lines: list[str] = []
    for part in map(clean, parts):
        if lines and len(lines[-1]) + len(part) + 3 <= width - FACT_MARGIN:
            lines[-1] += f" · {part}"
        else:
            lines.append(part)
    return Text("\n".join(lines))


def _shown_psi(psi: float | Sequence[float]) -> str:
    return f"{psi:g}" if isinstance(psi, (int, float)) else ", ".join(f"{p:g}" for p in psi)
