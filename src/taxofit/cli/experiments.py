"""``taxofit demo`` and ``taxofit reproduce``: methods side by side, on made-up and on real data."""

from __future__ import annotations

from typing import Annotated

import typer

from taxofit import terminal
from taxofit.cli.arguments import Json, Quiet
from taxofit.workflow.options import METHODS, FitOptions

__all__ = ["demo", "reproduce"]

DEFAULTS = FitOptions()
DEMO_FOLDER = "taxofit-demo"


def demo(
    *,
    out: Annotated[
        str, typer.Option(metavar="DIR", help="Folder for the catalogue and the model.")
    ] = DEMO_FOLDER,
    rows: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="Products in the made-up catalogue.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="Another catalogue.")] = DEFAULTS.seed,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare flat, top-down and repaired classification on a made-up shop."""
    with terminal.progress_bars(is_shown=not (as_json or quiet)) as progress:
        from taxofit.workflow.demo import run_demo

        report = run_demo(out, n_rows=rows, seed=seed, progress=progress)
    if as_json:
        terminal.show_json(report.to_json())
    elif not quiet:
        terminal.show_demo(report)


def reproduce(
    source: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FOLDER",
            help="clef, diatoms, dmoz-small, ipc-d, naics or 20news; or a folder with train.*, "
            "test.* and a hierarchy file.",
        ),
    ],
    *,
    out: Annotated[str, typer.Option(metavar="DIR", help="Folder for results and figures.")],
    data: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Where the data sets are. TAXOFIT_DATA by default."),
    ] = None,
    runs: Annotated[int, typer.Option(metavar="NUMBER", help="Random splits, one a run.")] = 5,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help=f"Some of {','.join((*METHODS, 'ecoc'))}, with commas. All by default.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="Of the first run.")] = DEFAULTS.seed,
    figures: Annotated[bool, typer.Option(help="Draw the figures; needs plotly.")] = True,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run the paper's protocol: all methods, their tables and figures, beside the paper's own.

    A run that was stopped goes on where it was when started again with the same folder.
    """
    with terminal.progress_bars(is_shown=not (as_json or quiet)) as progress:
        from taxofit.workflow.reproducing import reproduce as run

        results = run(
            source,
            out,
            data=data,
            n_runs=runs,
            methods=None if methods is None else tuple(methods.split(",")),
            seed=seed,
            draws_figures=figures,
            progress=progress,
        )
    if as_json:
        terminal.show_json(results)
    elif not quiet:
        terminal.show_reproduction(results, out)
