"""What `demo` and `reproduce` found: methods side by side, and what to look at next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from taxofit.terminal.elements import clean, shown_labels, titled_table
from taxofit.terminal.messages import show_next, show_notes
from taxofit.terminal.scores import LEGEND, SCORE_TITLES, shown_scores

if TYPE_CHECKING:
    from taxofit.workflow.demo import DemoReport

__all__ = ["show_demo", "show_reproduction"]


def show_demo(report: DemoReport) -> None:
    """Print the comparison, what repair removed, and commands to try."""
    console = Console()
    table = titled_table(
        f"A made-up shop: trained on {report.n_train:,} products, tested on {report.n_test:,}"
    )
    table.add_column("method")
    table.add_column("name", style="cyan")
    for title in SCORE_TITLES.values():
        table.add_column(title, justify="right")
    table.add_column("nodes", justify="right")
    table.add_column("C", justify="right")
    best = max(report.results, key=lambda result: result.scores["macro_f1"])
    for result in report.results:
        table.add_row(
            result.title,
            result.method,
            *shown_scores(result.scores),
            f"{result.n_nodes:,}",
            f"{result.C:g}",
            style="bold" if result is best else "",
        )
    console.print(table)
    console.print(Text(LEGEND, style="dim"))
    console.print()
    found, planted = set(report.found), report.planted
    console.print(
        Text.assemble(
            f"Repair removed {len(report.removed)} nodes, among them {len(found)} of the "
            f"{len(planted)} categories that were planted to group unlike things: ",
            *[
                part
                for label in planted
                for part in (
                    (f"{clean(label)} {'✓' if label in found else '✗'}", "bold"),
                    "  ",
                )
            ],
        )
    )
    others = [label for label in report.removed if label not in found]
    if others:
        console.print(Text(f"Also removed: {shown_labels(others)}"))
    console.print()
    if report.report is None:
        console.print(Text("A page to explore it all: pip install 'taxofit[report]'", style="dim"))
    else:
        page = Text.assemble("Explore it in a browser: ", (clean(report.report), "bold"))
        console.print(page, soft_wrap=True)
    show_next(
        console,
        [
            ("predict", report.model, report.test, "-o", "predictions.csv"),
            ("evaluate", report.model, report.test),
            ("info", report.model),
            (
                "fit",
                report.catalogue,
                "--text",
                "title",
                "--text",
                "description",
                "--path",
                "category",
                "--model",
                "my-model",
            ),
        ],
    )


def show_reproduction(results: dict[str, Any], out: str) -> None:
    """Print mean and standard deviation of every method, and where the rest was written."""
    console = Console()
    show_notes(console, results["notes"])
    n_runs = len({result["seed"] for result in results["results"]})
    table = titled_table(f"{results['dataset']}, {n_runs} runs, mean (standard deviation)")
    table.add_column("method", no_wrap=True)
    for title in SCORE_TITLES.values():
        table.add_column(title, justify="right", no_wrap=True)
    for method, scores in results["summary"].items():
        scale = {name: 1 if name == "tree_error" else 100 for name in SCORE_TITLES}
        table.add_row(
            method,
            *(
                f"{scale[name] * scores[name]['mean']:.2f} "
                f"({scale[name] * (scores[name]['std'] or 0.0):.2f})"
                for name in SCORE_TITLES
            ),
        )
    console.print(table)
    console.print(Text(LEGEND, style="dim"))
    console.print()
    console.print(
        Text(f"Tables beside the paper's: {out}/tables.md · figures: {out}/figures"), soft_wrap=True
    )
    show_next(console, [("report", out, "-o", f"{out}/report.html")])
