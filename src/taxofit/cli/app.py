"""The commands, in the order in which ``taxofit --help`` lists them, each with its examples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from taxofit._version import __version__
from taxofit.cli.experiments import demo, reproduce
from taxofit.cli.judging import evaluate, info, report
from taxofit.cli.predicting import explain, predict
from taxofit.cli.serving import serve
from taxofit.cli.training import fit, flatten

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["app"]

# What to type, and where it is not plain, a word on it.
EXAMPLES: dict[Callable[..., None], tuple[str, ...]] = {
    fit: (
        "fit products.csv --text title --text description --path category --model shop",
        "fit posts/ --test new-posts/ --model news   (text files in folders that name labels)",
    ),
    flatten: (
        "flatten products.csv --text title --path category -o repaired.csv",
        "flatten products.csv -o repaired.tsv   (edges, as --hierarchy reads them)",
    ),
    predict: (
        "predict shop-model new-products.csv -o predictions.csv --keep id",
        "predict shop-model - < titles.txt",
    ),
    explain: (
        "explain shop-model 'electric kettle'",
        "explain shop-model --row 17 new-products.csv",
    ),
    evaluate: (
        "evaluate shop labelled-products.csv",
        "evaluate shop labelled-products.csv --against other-model",
        "evaluate shop test.csv --taxonomy original --taxonomy mine.tsv",
    ),
    info: ("info shop-model",),
    report: ("report shop-model -o report.html",),
    serve: ("serve shop-model --port 8080 --reload-every 60",),
    demo: ("demo --out my-demo",),
    reproduce: ("reproduce clef --data DATA --runs 5 --out runs/clef",),
}

app = typer.Typer(
    name="taxofit",
    help="Hierarchical classification that repairs the taxonomy it is given.",
    epilog="Start with: taxofit demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


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


def _epilog(examples: tuple[str, ...]) -> str:
    first, *others = examples
    lines = [f"Example: taxofit {first}", *(f"Another: taxofit {other}" for other in others)]
    return "\n\n".join(lines)


for _command, _examples in EXAMPLES.items():
    app.command(epilog=_epilog(_examples))(_command)
