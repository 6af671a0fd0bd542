"""The options that ``fit`` and ``flatten`` share: how to read a file and what to train on it."""

from __future__ import annotations

import inspect
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taxofit.cli.arguments import READING
from taxofit.workflow.options import (
    DEVICES,
    FEATURES,
    FORMATS,
    INTERNAL_LABELS,
    METHODS,
    SCALES,
    SEARCHES,
    FitOptions,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["one_of", "takes_fit_options"]

DEFAULTS = FitOptions()
COLUMNS, TRAINING, RUNNING = "Columns of a table", "Training", "Long runs"


def one_of(choices: tuple[str, ...]) -> Callable[[], list[str]]:
    """Return what shell completion offers for an option with these values.

    Examples
    --------
    >>> one_of(("edges", "paths"))()
    ['edges', 'paths']
    """
    return lambda: list(choices)


def _column(help_: str) -> Any:
    return typer.Option(rich_help_panel=COLUMNS, metavar="COL", help=help_, show_default=False)


def _reading(metavar: str, help_: str, **more: Any) -> Any:
    return typer.Option(rich_help_panel=READING, metavar=metavar, help=help_, **more)


def _training(metavar: str, help_: str, choices: tuple[str, ...] | None = None) -> Any:
    completion = None if choices is None else one_of(choices)
    return typer.Option(
        rich_help_panel=TRAINING, metavar=metavar, help=help_, autocompletion=completion
    )


def _running(metavar: str, help_: str) -> Any:
    return typer.Option(rich_help_panel=RUNNING, metavar=metavar, help=help_)


def _fit_options(
    *,
    text: Annotated[
        list[str] | None,
        _column("Column of text; again for each, they are joined. Guessed where it is clear."),
    ] = None,
    numeric: Annotated[
        list[str] | None,
        _column("Column of numbers; again for each. 'size_*' takes all that begin so."),
    ] = None,
    category: Annotated[
        list[str] | None,
        _column("Column of categories, such as a brand; again for each."),
    ] = None,
    path: Annotated[
        str | None,
        _column("Column of labels as paths: 'Home > Kitchen > Kettles'. Guessed where clear."),
    ] = None,
    level: Annotated[list[str] | None, _column("Instead: one column per level, top first.")] = None,
    sep: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=COLUMNS,
            metavar="TEXT",
            help="Separates the names of a path. Guessed by default.",
        ),
    ] = None,
    hierarchy: Annotated[
        str | None,
        _reading("FILE", "The taxonomy: 'parent child' or a path on each line."),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            rich_help_panel=READING,
            help="Stop at the first row that cannot be used. By default such rows are counted "
            "and left out.",
        ),
    ] = False,
    internal_labels: Annotated[
        str,
        _reading(
            "NAME",
            "Rows labelled with a category that has others below it: "
            f"{' or '.join(INTERNAL_LABELS)}.",
            autocompletion=one_of(INTERNAL_LABELS),
        ),
    ] = DEFAULTS.internal_labels,
    format: Annotated[  # noqa: A002  (the option's name)
        str,
        _reading("NAME", f"One of {', '.join(FORMATS)}.", autocompletion=one_of(FORMATS)),
    ] = DEFAULTS.format,
    encoding: Annotated[
        str | None, _reading("NAME", "Of a text table. Guessed by default.")
    ] = None,
    delimiter: Annotated[
        str | None, _reading("CHAR", "Between columns. Guessed by default.")
    ] = None,
    raw: Annotated[
        bool,
        typer.Option(
            "--raw",
            rich_help_panel=READING,
            help="svmlight: values as they are, not counts for tf-idf.",
        ),
    ] = DEFAULTS.raw,
    ignore_feature: Annotated[
        list[int] | None, _reading("ID", "svmlight: a feature to skip.", show_default=False)
    ] = None,
    method: Annotated[
        str, _training("NAME", f"One of {', '.join(METHODS)}.", METHODS)
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
        _training(
            "NAME",
            "What is counted in text: words, pairs (words and word pairs), chars (words and parts "
            "of words), or auto, the best of these on validation rows.",
            FEATURES,
        ),
    ] = DEFAULTS.features,
    scale: Annotated[
        str,
        _training(
            "NAME",
            f"{' or '.join(SCALES)}: divide columns of numbers by their largest value.",
            SCALES,
        ),
    ] = DEFAULTS.scale,
    device: Annotated[
        str,
        _training(
            "NAME",
            f"Where to train, one of {', '.join(DEVICES)}; auto is a GPU if there is one.",
            DEVICES,
        ),
    ] = DEFAULTS.device,
    seed: Annotated[
        int, _training("NUMBER", "Which rows are held out to choose C and nodes.")
    ] = DEFAULTS.seed,
    search: Annotated[
        str,
        _training(
            "NAME",
            f"How rows find their leaf, one of {', '.join(SEARCHES)}; auto is what is better on "
            "held-out rows.",
            SEARCHES,
        ),
    ] = DEFAULTS.search,
    store: Annotated[
        str | None,
        _reading(
            "DIR",
            "For files larger than memory: convert FILE once to a store in this folder, and train "
            "from there.",
        ),
    ] = DEFAULTS.store,
    work_dir: Annotated[
        str | None,
        _running(
            "DIR", "Keep what is solved here: a run that was stopped goes on when started again."
        ),
    ] = DEFAULTS.work_dir,
    dask: Annotated[
        str | None,
        _running("ADDRESS", "Train on a dask cluster: its scheduler, as tcp://10.0.0.1:8786."),
    ] = DEFAULTS.dask,
    workers: Annotated[
        int | None,
        _running("NUMBER", "Train in processes of this machine; threads by default."),
    ] = DEFAULTS.workers,
) -> FitOptions:
    """Return the options as the workflow takes them, checked."""
    options = FitOptions(
        text=tuple(text or ()),
        numeric=tuple(numeric or ()),
        category=tuple(category or ()),
        label_path=path,
        levels=tuple(level or ()),
        separator=sep,
        hierarchy=hierarchy,
        format=format,
        ignore_features=tuple(ignore_feature or ()),
        raw=raw,
        scale=scale,
        internal_labels=internal_labels,
        strict=strict,
        encoding=encoding,
        delimiter=delimiter,
        method=method,
        C=C,
        features=features,
        device=device,
        seed=seed,
        search=search,
        store=store,
        work_dir=work_dir,
        dask=dask,
        workers=workers,
    )
    options.check()
    return options


def takes_fit_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command all options of `FitOptions` in place of its parameter ``options``.

    Typer reads options off a signature, so the command gets one that names them all.
    """
    # Annotations are strings in these modules; Typer needs what they stand for.
    own = inspect.signature(command, eval_str=True).parameters
    shared = inspect.signature(_fit_options, eval_str=True).parameters

    @wraps(command)
    def with_options(*arguments: Any, **given: Any) -> None:
        taken = {name: given.pop(name) for name in shared}
        command(*arguments, options=_fit_options(**taken), **given)

    parameters = [p for name, p in own.items() if name != "options"]
    parameters += [p for name, p in shared.items() if name not in own]
    parameters.sort(key=lambda parameter: parameter.kind)
    with_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_options.__annotations__ = {p.name: p.annotation for p in parameters}
    del with_options.__wrapped__  # Typer would look behind it
    return with_options
