"""The command line; what the commands do is in ``workflow``, how it looks in ``terminal``."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taxofit import terminal
from taxofit._version import __version__
from taxofit.errors import Interrupted, TaxofitError
from taxofit.workflow.options import (
    DEVICES,
    FEATURES,
    FORMATS,
    INTERNAL_LABELS,
    METHODS,
    SCALES,
    FitOptions,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["app", "main"]

BAD_INPUT, INTERRUPTED = 2, 130
DEFAULTS = FitOptions()
DEMO_FOLDER = "taxofit-demo"
COLUMNS, READING, TRAINING = "Columns of a table", "Reading", "Training"
RUNNING = "Long runs"

app = typer.Typer(
    name="taxofit",
    help="Hierarchical classification that repairs the taxonomy it is given.",
    epilog="Start with: taxofit demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

Model = Annotated[str, typer.Argument(metavar="MODEL", help="Folder of a fitted model.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts, and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars, no summary.")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, 2 for bad input, 130 for Ctrl-C."""
    terminal.prepare_streams()
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    try:
        code = app(args=arguments, prog_name="taxofit", standalone_mode=False)
    except TaxofitError as error:
        terminal.show_error(error)
        return INTERRUPTED if isinstance(error, Interrupted) else BAD_INPUT
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except OSError as error:
        terminal.show_error(f"{error.filename or 'file'}: {error.strerror or error}")
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
    terminal.show_warning(message)


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
    "--model shop-model"
)
def fit(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="CSV, TSV, Parquet, svmlight or Clus ARFF; or gzip."),
    ],
    *,
    model: Annotated[str, typer.Option(metavar="DIR", help="Folder to save the model in.")],
    text: Annotated[
        list[str] | None,
        typer.Option(
            rich_help_panel=COLUMNS,
            metavar="COL",
            help="Column of text; several are joined.",
            show_default=False,
        ),
    ] = None,
    numeric: Annotated[
        list[str] | None,
        typer.Option(
            rich_help_panel=COLUMNS,
            metavar="COL",
            help="Column of numbers, again for each; 'size_*' takes all that begin so.",
            show_default=False,
        ),
    ] = None,
    path: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=COLUMNS,
            metavar="COL",
            help="Column of labels as paths: 'Home > Kitchen > Kettles'.",
        ),
    ] = None,
    level: Annotated[
        list[str] | None,
        typer.Option(
            rich_help_panel=COLUMNS,
            metavar="COL",
            help="Instead: one column per level, top first.",
            show_default=False,
        ),
    ] = None,
    sep: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=COLUMNS,
            metavar="TEXT",
            help="Separates the names of a path. Guessed by default.",
        ),
    ] = DEFAULTS.separator,
    hierarchy: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=READING,
            metavar="FILE",
            help="The taxonomy: 'parent child' or a path on each line.",
        ),
    ] = DEFAULTS.hierarchy,
    test: Annotated[
        str | None, typer.Option(metavar="FILE", help="Labelled rows to score the model on.")
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            rich_help_panel=TRAINING, metavar="NAME", help=f"One of {', '.join(METHODS)}."
        ),
    ] = DEFAULTS.method,
    C: Annotated[
        str,
        typer.Option(
            "--C",
            rich_help_panel=TRAINING,
            metavar="NUMBER",
            help="Weight of the loss against regularisation, or 'auto'.",
        ),
    ] = DEFAULTS.C,
    features: Annotated[
        str,
        typer.Option(
            rich_help_panel=TRAINING,
            metavar="NAME",
            help=f"What is counted in text: {', '.join(FEATURES)}.",
        ),
    ] = DEFAULTS.features,
    scale: Annotated[
        str,
        typer.Option(
            rich_help_panel=TRAINING,
            metavar="NAME",
            help=f"{' or '.join(SCALES)}: divide columns of numbers by their largest value.",
        ),
    ] = DEFAULTS.scale,
    raw: Annotated[
        bool,
        typer.Option(
            "--raw",
            rich_help_panel=READING,
            help="svmlight: values as they are, not counts for tf-idf.",
        ),
    ] = DEFAULTS.raw,
    ignore_feature: Annotated[
        list[int] | None,
        typer.Option(
            rich_help_panel=READING,
            metavar="ID",
            help="svmlight: a feature to skip.",
            show_default=False,
        ),
    ] = None,
    internal_labels: Annotated[
        str,
        typer.Option(
            rich_help_panel=READING,
            metavar="NAME",
            help=f"Rows labelled with an internal node: {' or '.join(INTERNAL_LABELS)}.",
        ),
    ] = DEFAULTS.internal_labels,
    format: Annotated[  # noqa: A002  (the option's name)
        str,
        typer.Option(rich_help_panel=READING, metavar="NAME", help=f"One of {', '.join(FORMATS)}."),
    ] = DEFAULTS.format,
    encoding: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=READING, metavar="NAME", help="Of a text table. Guessed by default."
        ),
    ] = DEFAULTS.encoding,
    delimiter: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=READING, metavar="CHAR", help="Between columns. Guessed by default."
        ),
    ] = DEFAULTS.delimiter,
    device: Annotated[
        str,
        typer.Option(
            rich_help_panel=TRAINING,
            metavar="NAME",
            help=f"Where to train, one of {', '.join(DEVICES)}; auto is a GPU if there is one.",
        ),
    ] = DEFAULTS.device,
    seed: Annotated[
        int,
        typer.Option(
            rich_help_panel=TRAINING,
            metavar="NUMBER",
            help="Which rows are held out to choose C and nodes.",
        ),
    ] = DEFAULTS.seed,
    work_dir: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=RUNNING,
            metavar="DIR",
            help="Keep what is solved here: a run that was stopped goes on when started again.",
        ),
    ] = DEFAULTS.work_dir,
    dask: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=RUNNING,
            metavar="ADDRESS",
            help="Train on a dask cluster: its scheduler, as tcp://10.0.0.1:8786.",
        ),
    ] = DEFAULTS.dask,
    workers: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=RUNNING,
            metavar="NUMBER",
            help="Train in processes of this machine; threads by default.",
        ),
    ] = DEFAULTS.workers,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a model on labelled rows and repair its taxonomy."""
    options = FitOptions(
        text=tuple(text or ()),
        numeric=tuple(numeric or ()),
        label_path=path,
        levels=tuple(level or ()),
        separator=sep,
        hierarchy=hierarchy,
        format=format,
        ignore_features=tuple(ignore_feature or ()),
        raw=raw,
        scale=scale,
        internal_labels=internal_labels,
        encoding=encoding,
        delimiter=delimiter,
        method=method,
        C=C,
        features=features,
        device=device,
        seed=seed,
        work_dir=work_dir,
        dask=dask,
        workers=workers,
    )
    options.check()
    with terminal.progress_bars(is_shown=not (as_json or quiet)) as progress:
        from taxofit.workflow.training import fit_file

        report = fit_file(file, model, options, test=test, progress=progress)
    if as_json:
        terminal.show_json(report.to_json())
    elif not quiet:
        terminal.show_fit(report, file, test)


@app.command(epilog="Example: taxofit predict shop-model new-products.csv -o predictions.csv")
def predict(
    model: Model,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Rows like those of training.")],
    *,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="CSV to write. Standard output by default."
        ),
    ] = None,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact",
            help="Write labels as they are. By default an apostrophe goes before those that a "
            "spreadsheet would run as a formula, such as =1+1 or @name.",
        ),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Write label, path and score of every row, in order, as CSV."""
    with terminal.progress_bars(is_shown=not quiet and out is not None) as progress:
        from taxofit.workflow.applying import predict_file

        target = terminal.csv_output() if out is None else out
        report = predict_file(model, file, target, exact=exact, progress=progress)
    if not quiet and out is not None:
        terminal.show_prediction(report)


@app.command(epilog="Example: taxofit evaluate shop-model labelled-products.csv --json")
def evaluate(
    model: Model,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Labelled rows.")],
    *,
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars.")] = False,
) -> None:
    """Score a model on labelled rows: flat and hierarchical measures, and errors by level."""
    with terminal.progress_bars(is_shown=not (as_json or quiet)) as progress:
        from taxofit.workflow.applying import evaluate_file

        report = evaluate_file(model, file, progress=progress)
    if as_json:
        terminal.show_json(report.to_json())
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
