"""Scores of systems as tables: one system, or several side by side with tests of chance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from taxofit.terminal.elements import clean, titled_table
from taxofit.terminal.messages import show_notes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.table import Table

    from taxofit.workflow.comparing import ComparisonReport
    from taxofit.workflow.evaluating import EvaluationReport
    from taxofit.workflow.scoring import Difference, System
    from taxofit.workflow.three_ways import ThreeWays

__all__ = [
    "LEGEND",
    "SCORE_TITLES",
    "show_comparison",
    "show_evaluation",
    "show_ways",
    "shown_scores",
]

SCORE_TITLES = {
    "micro_f1": "µF1",
    "macro_f1": "MF1",
    "hierarchical_f1": "hF1",
    "tree_error": "TE",
}
SMALL_P = 0.001
LEGEND = (
    "µF1 rows right · MF1 mean F1 of the classes · hF1 F1 of whole paths · TE mean steps between "
    "truth and prediction"
)


def show_evaluation(report: EvaluationReport) -> None:
    """Print the scores of labelled rows, and where top-down predictions leave the true path."""
    console = Console()
    show_notes(console, report.notes)
    table = titled_table(f"{report.n_rows:,} rows of {report.name}")
    for title in SCORE_TITLES.values():
        table.add_column(title, justify="right")
    table.add_row(*shown_scores(report.scores))
    console.print(table)
    console.print()
    levels = titled_table("First mistake, level by level")
    for title in ("level", "rows still right", "go wrong here", "error", "wrong so far"):
        levels.add_column(title, justify="right")
    for level in report.levels:
        levels.add_row(
            str(level.level),
            f"{level.n_rows:,}",
            f"{level.n_wrong:,}",
            f"{level.error:.2%}",
            f"{level.n_wrong_so_far:,}",
        )
    console.print(levels)
    console.print(Text(LEGEND, style="dim"))


def show_comparison(report: ComparisonReport) -> None:
    """Print systems side by side on the same rows, and whether they differ by more than chance."""
    console = Console()
    show_notes(console, report.notes)
    first, *others = report.systems
    differences = {
        system.name: found for system, found in zip(others, report.differences, strict=True)
    }
    table = _score_table("", report.systems, first.name, differences)
    _show_table(console, report.title, table, first.name)


def show_ways(console: Console, ways: ThreeWays) -> None:
    """Print flat, original and repaired taxonomy, the last compared with the others."""
    where = "test rows" if ways.rows == "test" else "held-out rows (they also chose what to remove)"
    table = _score_table("taxonomy", ways.ways, ways.ways[-1].name, ways.differences)
    _show_table(console, f"On {ways.n_rows:,} {where}", table, ways.ways[-1].name)


def _score_table(
    heading: str,
    systems: Sequence[System],
    reference: str,
    differences: Mapping[str, Difference],
) -> Table:
    """Return a line of scores for each system, with p-values against one of them."""
    table = titled_table(None)
    table.add_column(heading, style="cyan", overflow="fold")
    for title in ("nodes", *SCORE_TITLES.values(), *(("p µF1", "p MF1") if differences else ())):
        table.add_column(title, justify="right", no_wrap=True)
    best = max(systems, key=lambda system: system.scores["macro_f1"])
    for system in systems:
        found = differences.get(system.name)
        p_values = () if found is None else (_shown_p(found.sign_p), _shown_p(found.wilcoxon_p))
        if differences and system.name == reference:
            p_values = ("–", "–")
        cells = (f"{system.n_nodes:,}", *shown_scores(system.scores), *p_values)
        table.add_row(Text(clean(system.name)), *cells, style="bold" if system is best else "")
    return table


def _show_table(console: Console, title: str, table: Table, reference: str) -> None:
    console.print(Text(clean(title), style="bold"), soft_wrap=True)
    console.print(table)
    console.print(Text(LEGEND, style="dim"))
    if len(table.columns) > 2 + len(SCORE_TITLES):
        said = f"p: chance of so large a difference from {clean(reference)} (sign test over rows, "
        console.print(Text(f"{said}Wilcoxon over classes)", style="dim"))


def shown_scores(scores: dict[str, float]) -> list[str]:
    """Return the cells under :data:`SCORE_TITLES`."""
    return [
        f"{scores[name]:.3f}" if name == "tree_error" else f"{scores[name]:.2%}"
        for name in SCORE_TITLES
    ]


def _shown_p(p_value: float) -> str:
    return "< 0.001" if p_value < SMALL_P else f"{p_value:.3f}"
