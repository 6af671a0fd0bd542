"""What people see: tables of reports, progress bars, and errors in one line."""

from __future__ import annotations

import io
import json
import shlex
import sys
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from taxofit.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

    from taxofit.bank.cost import FitCost
    from taxofit.workflow.comparing import ComparisonReport, System
    from taxofit.workflow.demo import DemoReport
    from taxofit.workflow.evaluating import EvaluationReport
    from taxofit.workflow.flattening_file import FlattenReport
    from taxofit.workflow.predicting import PredictionReport, StreamProgress
    from taxofit.workflow.reporting import WrittenReport
    from taxofit.workflow.scoring import Difference
    from taxofit.workflow.three_ways import ThreeWays, Way
    from taxofit.workflow.training import FitReport

    Progress = Callable[[str, int, int], None]

__all__ = [
    "clean",
    "data_output",
    "log_to_stderr",
    "prepare_streams",
    "progress_bars",
    "row_bar",
    "show_comparison",
    "show_demo",
    "show_description",
    "show_error",
    "show_estimate",
    "show_evaluation",
    "show_fit",
    "show_flatten",
    "show_json",
    "show_prediction",
    "show_report",
    "show_reproduction",
    "show_service",
    "show_warning",
]

N_LABELS_SHOWN = 10
LONG_SECONDS = 60
FACT_MARGIN = 12  # columns that the names of facts take
N_REASONS_AFTER_FIT, N_REASONS_SHOWN = 3, 20
IS_FLAT = "The taxonomy is flat: there is nothing to remove."
KEPT_ALL = "Nothing was removed: the held-out rows are best predicted with every category in place."
FEATURE_TITLES = {
    "words": "words",
    "pairs": "words and pairs",
    "chars": "words and parts of words",
}
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
FRACTIONS = {"validation_macro_f1"}


# ---------------------------------------------------------------------- while it runs


@contextmanager
def progress_bars(*, is_shown: bool = True) -> Iterator[Progress | None]:
    """Yield a callback that draws bars on stderr, or None where nobody would see them."""
    if not (is_shown and sys.stderr.isatty()):
        yield None
        return
    from rich import progress as parts

    class TimeLeft(parts.ProgressColumn):
        """Time left where the end is known, else the time taken so far."""

        def render(self, task: parts.Task) -> Text:
            left = task.time_remaining if task.total else None
            seconds = int(task.elapsed or 0) if left is None else int(left)
            shown = f"{seconds // 60}:{seconds % 60:02d}"
            return Text(shown if left is None else f"{shown} left", style="cyan")

    columns = (
        parts.SpinnerColumn(),
        parts.TextColumn("{task.description}"),
        parts.BarColumn(bar_width=30),
        parts.TextColumn("{task.fields[shown]}"),
        TimeLeft(),
    )
    with parts.Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("Starting", total=None, shown="")

        def progress(stage: str, done: int, total: int) -> None:
            if stage != bars.tasks[0].description:
                bars.reset(task, description=stage, shown="")
                bars.tasks[0].total = None  # `reset` would keep the last stage's
            shown = f"{done:,} of {total:,}" if total else f"{done:,}" if done else ""
            bars.update(task, completed=done, total=total or None, shown=shown)

        yield progress


@contextmanager
def row_bar(*, is_shown: bool = True) -> Iterator[StreamProgress | None]:
    """Yield a callback that draws how far a file is read and how many rows came of it."""
    if not (is_shown and sys.stderr.isatty()):
        yield None
        return
    from rich import progress as parts

    columns = (
        parts.SpinnerColumn(),
        parts.TextColumn("{task.description}"),
        parts.BarColumn(bar_width=30),
        parts.TaskProgressColumn(),
        parts.TextColumn("{task.fields[rows]:,} rows"),
        parts.TimeElapsedColumn(),
        parts.TimeRemainingColumn(),
    )
    with parts.Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("Predicting", total=None, rows=0)

        def progress(n_rows: int, n_bytes_read: int, n_bytes: int) -> None:
            bars.update(task, completed=n_bytes_read, total=n_bytes or None, rows=n_rows)

        yield progress


def prepare_streams() -> None:
    """Let no character of a label or a table fail on a terminal that cannot show it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def data_output(*, is_binary: bool = False) -> IO[str]:
    """Return standard output, set to UTF-8 whatever the locale says."""
    if is_binary and sys.stdout.isatty():
        raise DataError("a terminal cannot show Parquet; name a file with -o, or pipe it on")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="")
    return sys.stdout


def log_to_stderr() -> None:
    """Write what long-running commands log to stderr, one line each, with its time."""
    import logging

    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    logging.getLogger("taxofit").setLevel(logging.INFO)


def show_error(message: object) -> None:
    """Print one line on stderr, whatever the message holds."""
    _show_line("error", "bold red", message)


def show_warning(message: object) -> None:
    """Print one line on stderr."""
    _show_line("warning", "bold yellow", message)


def show_estimate(cost: FitCost) -> None:
    """Say on stderr what a fit will take, where that is more than a minute."""
    from taxofit.workflow.estimate import shown_bytes  # imports NumPy

    if cost.seconds < LONG_SECONDS:
        return
    minutes = cost.seconds / 60
    time = f"{minutes:.0f} minutes" if minutes < 120 else f"{minutes / 60:,.1f} hours"
    _show_line(
        "estimate",
        "bold cyan",
        f"training takes about {time}, {shown_bytes(cost.memory_bytes)} of memory and "
        f"{shown_bytes(cost.disk_bytes)} of disk",
    )


def show_json(report: dict[str, Any]) -> None:
    """Print a report for scripts on stdout."""
    json.dump(report, sys.stdout, ensure_ascii=False, indent=2, allow_nan=False, default=_plain)
    sys.stdout.write("\n")


# ---------------------------------------------------------------------- reports


def show_fit(report: FitReport, test: str | None = None) -> None:
    """Print what was trained, what repair brought, and what to do next."""
    console = Console()
    model = str(report.model)
    _show_training(console, report)
    _show_removals(console, report, N_REASONS_AFTER_FIT)
    pages = [("report", model, "-o", "report.html")]
    _show_next(
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


def show_evaluation(report: EvaluationReport) -> None:
    """Print the scores of labelled rows, and where top-down predictions leave the true path."""
    console = Console()
    _show_notes(console, report.notes)
    table = _table(f"{report.n_rows:,} rows of {report.name}")
    for title in SCORE_TITLES.values():
        table.add_column(title, justify="right")
    table.add_row(*_shown_scores(report.scores))
    console.print(table)
    console.print()
    levels = _table("First mistake, level by level")
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
    _show_notes(console, report.notes)
    first, *others = report.systems
    differences = {
        system.name: found for system, found in zip(others, report.differences, strict=True)
    }
    table = _score_table("", report.systems, first.name, differences)
    _show_scores(console, report.title, table, first.name)


def show_prediction(report: PredictionReport) -> None:
    """Say on stderr what was guessed and, where it was a file, how many rows were written."""
    console = Console(stderr=True)
    _show_notes(console, report.notes)
    if report.out is None:
        return
    if report.n_blank:
        _show_notes(console, [f"{report.n_blank:,} rows have no text: predicted from nothing"])
    console.print(
        Text(f"{report.n_rows:,} predictions in {clean(report.out)}"),
        highlight=False,
        soft_wrap=True,
    )


def show_service(url: str) -> None:
    """Say on stderr where the service answers, and what to ask it first."""
    console = Console(stderr=True)
    console.print(f"taxofit answers at {url}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"  {url}/v1/openapi.json", style="green", highlight=False, soft_wrap=True)


def show_description(description: dict[str, Any], path: str) -> None:
    """Print what a model or a file holds."""
    console = Console()
    facts = dict(description)
    columns = facts.pop("columns", None)
    _show_notes(console, facts.pop("notes", ()))
    console.print(Text(f"{clean(path)}: {facts.pop('kind')}", style="bold"), soft_wrap=True)
    table = _facts()
    for name, value in facts.items():
        if value is not None and value != []:
            table.add_row(name.replace("_", " "), _shown_value(name, value))
    console.print(table)
    if columns is not None:
        listed = _table("Columns")
        listed.add_column("name", style="cyan")
        listed.add_column("distinct", justify="right")
        listed.add_column("first values")
        for column in columns:
            examples = " · ".join(clean(value) for value in column["examples"])
            listed.add_row(Text(clean(column["name"])), f"{column['distinct']:,}", Text(examples))
        console.print()
        console.print(listed)


def show_report(report: WrittenReport) -> None:
    """Say on stderr where the page is."""
    size = f"{report.n_bytes / 1e6:.1f} MB"
    Console(stderr=True).print(
        f"{report.kind} report in {clean(report.out)} ({size}); open it in a browser",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


def show_demo(report: DemoReport) -> None:
    """Print the comparison, what repair removed, and commands to try."""
    console = Console()
    table = _table(
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
            *_shown_scores(result.scores),
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
        console.print(Text(f"Also removed: {_shown_labels(others)}"))
    console.print()
    if report.report is None:
        console.print(Text("A page to explore it all: pip install 'taxofit[report]'", style="dim"))
    else:
        page = Text.assemble("Explore it in a browser: ", (clean(report.report), "bold"))
        console.print(page, soft_wrap=True)
    _show_next(
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
    _show_notes(console, results["notes"])
    n_runs = len({result["seed"] for result in results["results"]})
    table = _table(f"{results['dataset']}, {n_runs} runs, mean (standard deviation)")
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
    _show_next(console, [("report", out, "-o", f"{out}/report.html")])


# ---------------------------------------------------------------------- parts of reports


def _show_training(console: Console, report: FitReport) -> None:
    """Print what was read, how it was trained, and the table of three ways."""
    facts = _facts()
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
        _show_ways(console, ways)


def _show_ways(console: Console, ways: ThreeWays) -> None:
    where = "test rows" if ways.rows == "test" else "held-out rows (they also chose what to remove)"
    table = _score_table("taxonomy", ways.ways, ways.ways[-1].name, ways.differences)
    _show_scores(console, f"On {ways.n_rows:,} {where}", table, ways.ways[-1].name)


def _score_table(
    heading: str,
    systems: Sequence[Way] | Sequence[System],
    reference: str,
    differences: Mapping[str, Difference],
) -> Table:
    """Return a line of scores for each system, with p-values against one of them."""
    table = _table("")
    table.title = None
    table.add_column(heading, style="cyan", overflow="fold")
    for title in ("nodes", *SCORE_TITLES.values(), *(("p µF1", "p MF1") if differences else ())):
        table.add_column(title, justify="right", no_wrap=True)
    best = max(systems, key=lambda system: system.scores["macro_f1"])
    for system in systems:
        found = differences.get(system.name)
        p_values = () if found is None else (_shown_p(found.sign_p), _shown_p(found.wilcoxon_p))
        if differences and system.name == reference:
            p_values = ("–", "–")
        cells = (f"{system.n_nodes:,}", *_shown_scores(system.scores), *p_values)
        table.add_row(Text(clean(system.name)), *cells, style="bold" if system is best else "")
    return table


def _show_scores(console: Console, title: str, table: Table, reference: str) -> None:
    console.print(Text(clean(title), style="bold"), soft_wrap=True)
    console.print(table)
    console.print(Text(LEGEND, style="dim"))
    if len(table.columns) > 2 + len(SCORE_TITLES):
        said = f"p: chance of so large a difference from {clean(reference)} (sign test over rows, "
        console.print(Text(f"{said}Wilcoxon over classes)", style="dim"))


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


# ---------------------------------------------------------------------- pieces


def _table(title: str) -> Table:
    return Table(
        title=Text(title, style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
    )


def _facts() -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def _show_line(kind: str, style: str, message: object) -> None:
    text = Text.assemble((f"{kind}: ", style), clean(message))
    Console(stderr=True).print(text, soft_wrap=True)


def _show_notes(console: Console, notes: Iterable[str]) -> None:
    for note in notes:
        console.print(Text.assemble(("note: ", "yellow"), clean(note)), soft_wrap=True)


def _show_next(console: Console, commands: Iterable[Sequence[str]]) -> None:
    console.print()
    console.print(Text("Next:", style="bold"))
    for command in commands:
        line = " ".join(shlex.quote(clean(part)) for part in ("taxofit", *command))
        console.print(Text(f"  {line}", style="green"), soft_wrap=True)


def _shown_scores(scores: dict[str, float]) -> list[str]:
    return [
        f"{scores[name]:.3f}" if name == "tree_error" else f"{scores[name]:.2%}"
        for name in SCORE_TITLES
    ]


def _shown_p(p_value: float) -> str:
    return "< 0.001" if p_value < SMALL_P else f"{p_value:.3f}"


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


def _shown_labels(labels: Sequence[Hashable]) -> str:
    more = f" and {len(labels) - N_LABELS_SHOWN:,} more" * (len(labels) > N_LABELS_SHOWN)
    return ", ".join(clean(label) for label in labels[:N_LABELS_SHOWN]) + more


def _shown_value(name: str, value: Any) -> Text:
    if isinstance(value, dict):
        return Text(" · ".join(f"{key} {_shown_option(part)}" for key, part in value.items()))
    if isinstance(value, (list, tuple)):
        return Text(_shown_labels(value))
    if name in FRACTIONS:
        return Text(f"{value:.2%}")
    if isinstance(value, int) and not isinstance(value, bool):
        return Text(f"{value:,}")
    return Text(f"{value:g}" if isinstance(value, float) else clean(value))


def _shown_option(value: object) -> str:
    values = value if isinstance(value, (list, tuple)) else (value,)
    return ", ".join(clean(repr(part)) for part in values)


def clean(value: object) -> str:
    r"""Return a text on one line without characters that would steer a terminal.

    Examples
    --------
    >>> clean("two\nlines")
    'two lines'
    """
    return "".join(
        character if character.isprintable() else " " if character.isspace() else "�"
        for character in str(value)
    )


def _plain(value: Any) -> Any:
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{value!r} is a {type(value).__name__}, which JSON has no word for")
