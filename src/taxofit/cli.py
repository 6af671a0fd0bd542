"""The command line; what the commands do is in ``workflow``, how it looks in ``terminal``."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taxofit import terminal
from taxofit._version import __version__
from taxofit.cli_options import one_of, takes_fit_options
from taxofit.errors import DataError, Interrupted, TaxofitError
from taxofit.service.settings import ServiceSettings
from taxofit.workflow.options import METHODS, TAXONOMY_FORMS, FitOptions, in_options
from taxofit.workflow.predict_options import INPUT_FORMATS, OUTPUT_FORMATS, PredictOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["app", "main"]

BAD_INPUT, INTERRUPTED = 2, 130
DEFAULTS = FitOptions()
SERVICE = ServiceSettings()
DEMO_FOLDER = "taxofit-demo"
REPORT_FILE = "report.html"
PREDICT_DEFAULTS = PredictOptions()
READING, WRITING, LIMITS = "Reading", "Writing", "Limits"

app = typer.Typer(
    name="taxofit",
    help="Hierarchical classification that repairs the taxonomy it is given.",
    epilog="Start with: taxofit demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

DataFile = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="CSV, TSV, Parquet, svmlight or Clus ARFF, also gzipped; or a folder of text files "
        "in folders.",
    ),
]
Model = Annotated[str, typer.Argument(metavar="MODEL", help="Folder of a fitted model.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts, and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars, no summary.")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, 2 for bad input, 130 for Ctrl-C.

    Where the reader of a pipe has left, Typer exits with 1 and without a word.
    """
    terminal.prepare_streams()
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    try:
        code = app(args=arguments, prog_name="taxofit", standalone_mode=False)
    except TaxofitError as error:
        terminal.show_error(in_options(str(error)))
        return INTERRUPTED if isinstance(error, Interrupted) else BAD_INPUT
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except MemoryError as error:
        terminal.show_error(f"not enough memory ({error}); `fit` takes larger files with --store")
        return BAD_INPUT
    except OSError as error:
        terminal.show_error(f"{error.filename or 'cannot write'}: {error.strerror or error}")
        return BAD_INPUT
    except Exception as error:
        # Typer keeps Click's usage errors to itself; each of them can say what is wrong.
        if not hasattr(error, "format_message"):
            raise
        terminal.show_error(f"{error.format_message()} ({_hint(error)})")
        return BAD_INPUT
    if code == INTERRUPTED:
        terminal.show_error("interrupted")
    return code if isinstance(code, int) else 0


def _hint(error: Any) -> str:
    context = getattr(error, "ctx", None)
    return f"see {context.command_path if context else 'taxofit'} --help"


def _show_warning(message: Warning | str, *_: object) -> None:
    terminal.show_warning(in_options(str(message)))


def _show_version(is_asked: bool) -> None:  # noqa: FBT001  (Typer's callback)
    if is_asked:
        typer.echo(f"taxofit {__version__}")
        raise typer.Exit


@app.callback()
def taxofit(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Hierarchical classification that repairs the taxonomy it is given."""


@app.command(
    epilog="Example: taxofit fit products.csv --text title --text description --path category "
    "--model shop\n\nAnother: taxofit fit posts/ --test new-posts/ --model news   (text files in "
    "folders; the folders are the labels)"
)
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


@app.command(
    epilog="Example: taxofit flatten products.csv --text title --path category -o repaired.csv"
    "\n\nAnother: taxofit flatten products.csv -o repaired.tsv   (edges, as --hierarchy reads them)"
)
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


@app.command(
    epilog="Example: taxofit predict shop-model new-products.csv -o predictions.csv --keep id"
    "\n\nor: echo 'electric kettle' | taxofit predict shop-model -"
)
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
    ] = PREDICT_DEFAULTS.top,
    min_confidence: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=WRITING,
            metavar="P",
            help="Stop at a category where nothing below it is this likely, such as 0.6; label and "
            "path are empty where none is.",
        ),
    ] = PREDICT_DEFAULTS.min_confidence,
    proba: Annotated[
        bool,
        typer.Option("--proba", rich_help_panel=WRITING, help="The probability of every label."),
    ] = PREDICT_DEFAULTS.proba,
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
    ] = PREDICT_DEFAULTS.all_columns,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact",
            rich_help_panel=WRITING,
            help="Write cells of CSV as they are. By default an apostrophe goes before those that "
            "a spreadsheet would run as a formula, such as =1+1 or @name.",
        ),
    ] = PREDICT_DEFAULTS.exact,
    out_format: Annotated[
        str,
        typer.Option(
            rich_help_panel=WRITING, metavar="NAME", help=f"One of {', '.join(OUTPUT_FORMATS)}."
        ),
    ] = PREDICT_DEFAULTS.out_format,
    format: Annotated[  # noqa: A002  (the option's name)
        str,
        typer.Option(
            rich_help_panel=READING,
            metavar="NAME",
            help=f"One of {', '.join(INPUT_FORMATS)}; lines are one text each.",
        ),
    ] = PREDICT_DEFAULTS.format,
    encoding: Annotated[
        str | None,
        typer.Option(rich_help_panel=READING, metavar="NAME", help="Of a text table or lines."),
    ] = PREDICT_DEFAULTS.encoding,
    delimiter: Annotated[
        str | None,
        typer.Option(rich_help_panel=READING, metavar="CHAR", help="Between columns."),
    ] = PREDICT_DEFAULTS.delimiter,
    chunk_rows: Annotated[
        int,
        typer.Option(
            rich_help_panel=READING,
            metavar="NUMBER",
            help="Rows at a time; 1 answers every row of a pipe as it comes.",
        ),
    ] = PREDICT_DEFAULTS.chunk_rows,
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


@app.command(
    epilog="Example: taxofit explain shop-model 'electric kettle'"
    "\n\nor: taxofit explain shop-model --row 17 new-products.csv"
)
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
        return
    from taxofit.explanation_view import show_explanation

    show_explanation(explanation, title)


@app.command(
    epilog="Example: taxofit evaluate shop labelled-products.csv"
    "\n\nAnother: taxofit evaluate shop labelled-products.csv --against other-model"
    "\n\nAnother: taxofit evaluate shop test.csv --taxonomy original --taxonomy mine.tsv"
)
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


@app.command(epilog="Example: taxofit info shop-model")
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


@app.command(epilog="Example: taxofit report shop-model -o report.html")
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


@app.command(epilog="Example: taxofit serve shop-model --port 8080 --reload-every 60")
def serve(
    model: Model,
    *,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="To listen on; this machine only by default.")
    ] = SERVICE.host,
    port: Annotated[int, typer.Option(metavar="NUMBER", help="0 is any free one.")] = SERVICE.port,
    reload_every: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Look for a new model in the folder. SIGHUP does so at once.",
            show_default=False,
        ),
    ] = SERVICE.reload_seconds,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            envvar="TAXOFIT_TOKEN",
            show_envvar=False,
            help="That clients must send as a bearer token. The environment variable TAXOFIT_TOKEN "
            "keeps it out of process lists.",
            show_default=False,
        ),
    ] = SERVICE.token,
    threads: Annotated[int, typer.Option(metavar="NUMBER", help="That predict.")] = SERVICE.threads,
    max_rows: Annotated[
        int, typer.Option(rich_help_panel=LIMITS, metavar="NUMBER", help="Of one request.")
    ] = SERVICE.max_rows,
    max_body_bytes: Annotated[
        int, typer.Option(rich_help_panel=LIMITS, metavar="NUMBER", help="Of one request.")
    ] = SERVICE.max_body_bytes,
    max_text_length: Annotated[
        int, typer.Option(rich_help_panel=LIMITS, metavar="NUMBER", help="Characters of one text.")
    ] = SERVICE.max_text_length,
    max_requests: Annotated[
        int,
        typer.Option(
            rich_help_panel=LIMITS, metavar="NUMBER", help="Under way; more are sent away (503)."
        ),
    ] = SERVICE.max_requests,
    timeout: Annotated[
        float,
        typer.Option(rich_help_panel=LIMITS, metavar="SECONDS", help="For one request."),
    ] = SERVICE.timeout_seconds,
    drain: Annotated[
        float,
        typer.Option(
            rich_help_panel=LIMITS,
            metavar="SECONDS",
            help="That requests under way get after SIGTERM or Ctrl-C.",
        ),
    ] = SERVICE.drain_seconds,
) -> None:
    """Answer requests over HTTP: predict, topk, explain, health and metrics under /v1."""
    settings = ServiceSettings(
        host=host,
        port=port,
        max_body_bytes=max_body_bytes,
        max_rows=max_rows,
        max_text_length=max_text_length,
        max_requests=max_requests,
        timeout_seconds=timeout,
        drain_seconds=drain,
        threads=threads,
        reload_seconds=reload_every,
        token=token,
    )
    from taxofit.service import serve as run

    terminal.log_to_stderr()
    if not settings.is_loopback:
        terminal.show_warning(
            f"{host} can be reached from other machines"
            f"{'' if token else ', and anybody there may ask: set TAXOFIT_TOKEN'}"
        )
    run(model, settings, announce=terminal.show_service)


@app.command(epilog="Example: taxofit demo --out my-demo")
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


@app.command(epilog="Example: taxofit reproduce clef --data DATA --runs 5 --out runs/clef")
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
