"""Bars on stderr while a command runs, where somebody looks."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from taxofit.progress import StageProgress
    from taxofit.workflow.predicting import StreamProgress

__all__ = ["progress_bars", "row_bar"]

BAR_WIDTH = 30
COMPILING = "compiling, once on a machine"


def _is_compiling() -> bool:
    # What has not been imported cannot be compiling, and is too much to import for a bar.
    compiling = sys.modules.get("taxofit.compiling")
    return compiling is not None and compiling.is_compiling()


@contextmanager
def progress_bars(*, is_shown: bool = True) -> Iterator[StageProgress | None]:
    """Yield a callback that draws bars on stderr, or None where nobody would see them."""
    if not (is_shown and sys.stderr.isatty()):
        yield None
        return
    from rich import progress as parts

    class Bar(parts.ProgressColumn):
        """A bar, or why a first fit stands still."""

        bar = parts.BarColumn(bar_width=BAR_WIDTH)

        def render(self, task: parts.Task) -> RenderableType:
            if _is_compiling():
                return Text(COMPILING.ljust(BAR_WIDTH), style="dim")
            return self.bar.render(task)

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
        Bar(),
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
        parts.BarColumn(bar_width=BAR_WIDTH),
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
