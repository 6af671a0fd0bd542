"""``taxofit fit`` and ``taxofit flatten``: labelled rows to a model or a repaired taxonomy."""

from __future__ import annotations

from typing import Annotated

import typer

from taxofit import terminal
from taxofit.cli.arguments import DataFile, Json, Quiet
from taxofit.cli.fit_options import one_of, takes_fit_options
from taxofit.workflow.options import TAXONOMY_FORMS, FitOptions

__all__ = ["fit", "flatten"]


@takes_fit_options
def fit(
    file: DataFile,
    *,
    model: Annotated[str, typer.Option(metavar="DIR", help="Folder to save the model in.")],
    test: Annotated[
        str | None, typer.Option(metavar="FILE", help="Labelled rows to score the model on.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    options: FitOptions,
) -> None:
    """Train a model on labelled rows and repair its taxonomy."""
    with terminal.progress_bars(is_shown=not (as_json or quiet)) as progress:
        from taxofit.workflow.training import fit_file

        report = fit_file(
            file,
            model,
            options,
            test=test,
            progress=progress,
            announce=None if as_json or quiet else terminal.show_estimate,
        )
    if as_json:
        terminal.show_json(report.to_json())
    elif not quiet:
        terminal.show_fit(report, test)


@takes_fit_options
def flatten(
    file: DataFile,
    *,
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Where to write: .csv has the path of every leaf, .tsv edges, .json all and why.",
        ),
    ],
    form: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="NAME",
            help=f"One of {', '.join(TAXONOMY_FORMS)}. By the ending of the file by default.",
            autocompletion=one_of(TAXONOMY_FORMS),
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="DIR", help="Save the model too, in this folder.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    options: FitOptions,
) -> None:
    """Repair the taxonomy of labelled rows: write it, and say which nodes went and why."""
    with terminal.progress_bars(is_shown=not (as_json or quiet)) as progress:
        from taxofit.workflow.flattening_file import flatten_file

        report = flatten_file(file, out, options, form=form, model=model, progress=progress)
    if as_json:
        terminal.show_json(report.to_json())
    elif not quiet:
        terminal.show_flatten(report)
