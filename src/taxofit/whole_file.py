"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from taxofit.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["check_target", "whole_file"]


def check_target(file: str | Path) -> None:
    """Raise a DataError where no file of this name can be written: a folder, or in none.

    Examples
    --------
    >>> check_target("/")
    Traceback (most recent call last):
    taxofit.errors.DataError: / is a folder; name a file to write to
    """
    target = Path(file)
    if target.is_dir():
        raise DataError(f"{file} is a folder; name a file to write to")
    if not target.absolute().parent.is_dir():
        raise DataError(f"{file}: the folder {target.parent} does not exist; make it first")


@contextmanager
def whole_file(file: str | Path) -> Iterator[IO[bytes]]:
    """Open a file to write that gets its name only when all went well.

    Until then it lies hidden beside the one that is meant, which stays as it was after an error. A
    device or a pipe is written to as it is, and a link's target is what is replaced.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = Path(folder, "page.html")
    ...     with whole_file(page) as stream:
    ...         stream.write(b"<p>"), page.exists()
    ...     page.read_text(encoding="utf-8")
    (3, False)
    '<p>'
    """
    target = Path(file).resolve()
    if target.exists() and not target.is_file():
        with target.open("wb") as stream:
            yield stream
        return
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    beside.unlink(missing_ok=True)  # left by a killed process with this one's number
    try:
        with beside.open("xb") as stream:
            yield stream
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
