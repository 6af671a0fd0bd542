"""Where predictions go: a stream, or a file that appears only when it is complete."""

from __future__ import annotations

import gzip
import io
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from taxofit.errors import DataError
from taxofit.whole_file import check_target, whole_file
from taxofit.workflow.output_formats import JsonLines, Parquet, TextTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taxofit.workflow.output_formats import Layout, Writer

__all__ = ["format_of_output", "open_writer"]

SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".txt": "csv",
    "": "csv",
}


def format_of_output(out: str | None, asked: str = "auto") -> str:
    """Return the format to write: the one asked for, else by the name of the file.

    Examples
    --------
    >>> format_of_output("new.jsonl.gz"), format_of_output(None), format_of_output("x", "parquet")
    ('jsonl', 'csv', 'parquet')
    """
    if asked != "auto":
        return asked
    path = Path(out or "")
    suffix = (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(
            f"{out}: {suffix!r} is no format to write; name a .csv, .tsv, .jsonl or .parquet file, "
            f"or say --out-format"
        )
    return SUFFIXES[suffix]


@contextmanager
def open_writer(out: str | IO[str], layout: Layout, kind: str) -> Iterator[Writer]:
    """Open a file to write answers to, or take an open stream such as standard output.

    A file appears under its name only when it is complete, and is packed if that ends with ``.gz``.
    """
    if kind == "parquet":
        _check_parquet()
        with _binary(out) as stream, closing(Parquet(stream, layout)) as writer:
            yield writer
        return
    with _text(out) as text:
        if kind == "jsonl":
            yield JsonLines(text, layout)
        else:
            yield TextTable(text, layout, "\t" if kind == "tsv" else ",")
        text.flush()


def _check_parquet() -> None:
    try:
        import pyarrow.parquet  # noqa: F401  (is it there?)
    except ImportError:
        raise DataError("writing Parquet needs pyarrow; pip install 'taxofit[parquet]'") from None


@contextmanager
def _text(out: str | IO[str]) -> Iterator[IO[str]]:
    if not isinstance(out, str):
        yield out
        return
    with _binary(out) as stream, io.TextIOWrapper(stream, encoding="utf-8", newline="") as text:
        yield text


@contextmanager
def _binary(out: str | IO[str]) -> Iterator[IO[bytes]]:
    if not isinstance(out, str):
        yield cast("Any", out).buffer
        return
    with _replacing(out) as stream:
        if not out.lower().endswith(".gz"):
            yield stream
            return
        with gzip.GzipFile(fileobj=stream, mode="wb", filename="", mtime=0) as packed:
            yield cast("IO[bytes]", packed)


@contextmanager
def _replacing(out: str) -> Iterator[IO[bytes]]:
    """Open a file that replaces the one of this name, with errors that say which it was."""
    check_target(out)
    try:
        with whole_file(out) as stream:
            yield stream
    except BrokenPipeError:
        raise
    except OSError as error:
        raise DataError(f"{out}: cannot be written ({error.strerror or error})") from None
