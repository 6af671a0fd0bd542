"""Standard output and standard error, and what is written to them for programs."""

from __future__ import annotations

import io
import json
import sys
from typing import IO, Any

from taxofit.errors import DataError

__all__ = ["data_output", "log_to_stderr", "prepare_streams", "show_json"]


def prepare_streams() -> None:
    """Let no character of a label or a table fail on a terminal that cannot show it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def data_output(*, is_binary: bool = False) -> IO[str]:
    """Return standard output, set to UTF-8 whatever the locale says."""
    if is_binary and sys.stdout.isatty():
        raise DataError("a terminal cannot show Parquet; name a file with -o, or pipe it on")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="")
    return sys.stdout


def log_to_stderr() -> None:
    """Write what long-running commands log to stderr, one line each, with its time."""
    import logging

    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    logging.getLogger("taxofit").setLevel(logging.INFO)


def show_json(report: dict[str, Any]) -> None:
    """Print a report for scripts on stdout."""
    json.dump(report, sys.stdout, ensure_ascii=False, indent=2, allow_nan=False, default=_plain)
    sys.stdout.write("\n")


def _plain(value: Any) -> Any:
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{value!r} is a {type(value).__name__}, which JSON has no word for")
