"""Arguments and options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["READING", "DataFile", "Json", "Model", "Quiet"]

READING = "Reading"

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
