"""``taxofit predict`` and ``taxofit explain``: rows to labels, and why."""

from __future__ import annotations

from typing import Annotated

import typer

from taxofit import terminal
from taxofit.cli.arguments import READING, Json, Model, Quiet
from taxofit.workflow.predict_options import INPUT_FORMATS, OUTPUT_FORMATS, PredictOptions

__all__ = ["explain", "predict"]

DEFAULTS = PredictOptions()
WRITING = "Writing"


def predict(
    model: Model,
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="Rows like those of training; - is standard input."),
    ],
    *,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            rich_help_panel=WRITING,
            metavar="FILE",
            help=".csv, .tsv, .jsonl (each also .gz) or .parquet. Standard output by default.",
        ),
    ] = None,
    top: Annotated[
        int,
        typer.Option(
            "--top",
            "--topk",
            rich_help_panel=WRITING,
            metavar="NUMBER",
            help="Labels for each row, the likeliest first: columns label_2, path_2, score_2 and "
            "so on; in JSON and Parquet a list.",
        ),
    ] = DEFAULTS.top,
    min_confidence: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=WRITING,
            metavar="P",
            help="Stop at a category where nothing below it is this likely, such as 0.6; label and "
            "path are empty where none is.",
        ),
    ] = DEFAULTS.min_confidence,
    proba: Annotated[
        bool,
        typer.Option("--proba", rich_help_panel=WRITING, help="The probability of every label."),
    ] = DEFAULTS.proba,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            rich_help_panel=WRITING,
            metavar="COL",
            help="Column of the input to copy to the output, again for each.",
            show_default=False,
        ),
    ] = None,
    all_columns: Annotated[
        bool,
        typer.Option("--all-columns", rich_help_panel=WRITING, help="Copy all of them."),
    ] = DEFAULTS.all_columns,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact",
            rich_help_panel=WRITING,
            help="Write cells of CSV as they are. By default an apostrophe goes before those that "
            "a spreadsheet would run as a formula, such as =1+1 or @name.",
        ),
    ] = DEFAULTS.exact,
    out_format: Annotated[
        str,
        typer.Option(
            rich_help_panel=WRITING, metavar="NAME", help=f"One of {', '.join(OUTPUT_FORMATS)}."
        ),
    ] = DEFAULTS.out_format,
    format: Annotated[  # noqa: A002  (the option's name)
        str,
        typer.Option(
            rich_help_panel=READING,
            metavar="NAME",
            help=f"One of {', '.join(INPUT_FORMATS)}; lines are one text each.",
        ),
    ] = DEFAULTS.format,
    encoding: Annotated[
        str | None,
        typer.Option(rich_help_panel=READING, metavar="NAME", help="Of a text table or lines."),
    ] = DEFAULTS.encoding,
    delimiter: Annotated[
        str | None,
        typer.Option(rich_help_panel=READING, metavar="CHAR", help="Between columns."),
    ] = DEFAULTS.delimiter,
    chunk_rows: Annotated[
        int,
        typer.Option(
            rich_help_panel=READING,
            metavar="NUMBER",
            help="Rows at a time; 1 answers every row of a pipe as it comes.",
        ),
    ] = DEFAULTS.chunk_rows,
    quiet: Quiet = False,
) -> None:
    """Write label, path and score of every row, in order, in memory that does not grow.

    Each row of input gives one row of output, also a row without text, which is predicted from
    nothing. A file to write appears only when it is complete.
    """
    options = PredictOptions(
        format=format,
        out_format=out_format,
        encoding=encoding,
        delimiter=delimiter,
        top=top,
        min_confidence=min_confidence,
        proba=proba,
        keep=tuple(keep or ()),
        all_columns=all_columns,
        exact=exact,
        chunk_rows=chunk_rows,
    )
    options.check()
    is_piped = out in (None, "-")
    target = terminal.data_output(is_binary=out_format == "parquet") if is_piped else str(out)
    with terminal.row_bar(is_shown=not quiet and not is_piped) as progress:
        from taxofit.workflow.predicting import predict_file

        report = predict_file(model, file, target, options, progress=progress)
    if not quiet:
        terminal.show_prediction(report)


def explain(
    model: Model,
    what: Annotated[
        str,
        typer.Argument(
            metavar="TEXT|FILE", help="A text, - for one on standard input; a file with --row."
        ),
    ],
    *,
    row: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", help="A row of the file, counted from 1 after a heading."),
    ] = None,
    candidates: Annotated[
        int, typer.Option(metavar="NUMBER", min=1, help="How many to show at each step.")
    ] = 5,
    features: Annotated[
        int, typer.Option(metavar="NUMBER", min=1, help="How many to tell of each candidate.")
    ] = 10,
    as_json: Json = False,
) -> None:
    """Show the way down to a label: at each step the candidates and what spoke for them."""
    from taxofit.workflow.explaining import explain_row, explain_text

    if row is None:
        title = what
        explanation = explain_text(model, what, n_candidates=candidates, n_features=features)
    else:
        title = f"row {row} of {what}"
        explanation = explain_row(model, what, row, n_candidates=candidates, n_features=features)
    if as_json:
        terminal.show_json(explanation.to_json())
    else:
        terminal.show_explanation(explanation, title)
