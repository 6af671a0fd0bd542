"""``taxofit evaluate``, ``info`` and ``report``: what a model is worth, and what it holds."""

from __future__ import annotations

from typing import Annotated

import typer

from taxofit import terminal
from taxofit.cli.arguments import Json, Model
from taxofit.cli.fit_options import one_of
from taxofit.errors import DataError

__all__ = ["evaluate", "info", "report"]

REPORT_FILE = "report.html"


def evaluate(
    model: Model,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Labelled rows.")],
    *,
    against: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Compare with another model on the same rows."),
    ] = None,
    taxonomy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME|FILE",
            help="Compare taxonomies: original, repaired, flat or a hierarchy file, again for "
            "each. Each is fitted to the same training rows with the model's features and C.",
            show_default=False,
            autocompletion=one_of(("original", "repaired", "flat")),
        ),
    ] = None,
    train: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Rows to fit them to. The file that the model was trained on by default.",
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first row that cannot be used.")
    ] = False,
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars.")] = False,
) -> None:
    """Score a model on labelled rows, or compare models or taxonomies on the same rows.

    A comparison tells by two tests whether the difference is more than chance: a sign test over
    rows for µF1, and a signed-rank test over classes for MF1.
    """
    if against is not None and taxonomy:
        raise DataError("give --against or --taxonomy, not both")
    if train is not None and not taxonomy:
        raise DataError("--train goes with --taxonomy: nothing else is fitted here")
    with terminal.progress_bars(is_shown=not (as_json or quiet)) as progress:
        from taxofit.workflow.comparing import compare_models, compare_taxonomies
        from taxofit.workflow.evaluating import evaluate_file

        comparison = None
        if against is not None:
            comparison = compare_models(model, against, file, strict=strict, progress=progress)
        elif taxonomy:
            comparison = compare_taxonomies(
                model, file, taxonomy, train=train, strict=strict, progress=progress
            )
        else:
            report = evaluate_file(model, file, strict=strict, progress=progress)
    if as_json:
        terminal.show_json((comparison or report).to_json())
    elif comparison is not None:
        terminal.show_comparison(comparison)
    else:
        terminal.show_evaluation(report)


def info(
    path: Annotated[
        str, typer.Argument(metavar="MODEL|FILE", help="A model, data file or hierarchy file.")
    ],
    *,
    as_json: Json = False,
) -> None:
    """Tell what a model, a data file or a hierarchy file holds."""
    with terminal.progress_bars(is_shown=not as_json):
        from taxofit.workflow.describing import describe

        description = describe(path)
    if as_json:
        terminal.show_json(description)
    else:
        terminal.show_description(description, path)


def report(
    source: Annotated[
        str,
        typer.Argument(
            metavar="MODEL|RUN", help="Folder of a fitted model, or of `taxofit reproduce`."
        ),
    ],
    *,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE", help="The page to write.")
    ] = REPORT_FILE,
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing.")] = False,
) -> None:
    """Write one HTML page: what repair did, the taxonomy to explore, a threshold to move.

    The page needs no network and no other file, so it can be mailed or put on any web server.
    """
    with terminal.progress_bars(is_shown=not (as_json or quiet)):
        from taxofit.workflow.reporting import report_folder

        written = report_folder(source, out)
    if as_json:
        terminal.show_json(written.to_json())
    elif not quiet:
        terminal.show_report(written)
