"""Opening files: gzip unpacked on the way, encodings found out, every failure a DataError."""

from __future__ import annotations

import codecs
import io
import re
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from taxofit.datasets.streams import CountedBytes, unpacked
from taxofit.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

    FilePath = str | PathLike[str]
    FileOrStream = FilePath | io.BufferedReader

__all__ = [
    "MAX_LINE_BYTES",
    "bounded_lines",
    "clear_errors",
    "decoded",
    "find_encoding",
    "name_of",
    "open_bytes",
    "text_lines",
]

MAX_LINE_BYTES = 64 * 2**20  # a longer line is a damaged or foreign file, not data
BLOCK_BYTES = 2**20
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
WESTERN, ANY_BYTE = "cp1252", "latin-1"  # what old exports mostly are; what decodes any byte
NOT_WESTERN = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")  # the bytes that cp1252 leaves undefined
UTF16_SHARE = 0.3  # of zero bytes at even or odd places, from which a text is taken for UTF-16


def name_of(path: FileOrStream) -> str:
    """Return what messages call a file, or an open stream.

    Examples
    --------
    >>> name_of("shop.csv"), name_of(unpacked(CountedBytes(io.BytesIO(), "standard input")))
    ('shop.csv', 'standard input')
    """
    return str(path.name) if isinstance(path, io.BufferedReader) else fspath(path)


@contextmanager
def open_bytes(path: FileOrStream) -> Iterator[IO[bytes]]:
    """Open a file to read its bytes, unpacked if it is gzip, whatever its name ends with.

    Gzip that unpacks beyond all measure is a DataError; see `max_unpacked_bytes`. An open stream is
    read as it is, from where it stands.

    Examples
    --------
    >>> import gzip, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "packed")
    ...     _ = file.write_bytes(gzip.compress(b"inside"))
    ...     with open_bytes(file) as handle:
    ...         handle.read()
    b'inside'
    """
    name = name_of(path)
    with clear_errors(name):
        if isinstance(path, io.BufferedReader):
            yield cast("IO[bytes]", path)
            return
        with Path(path).open("rb", buffering=0) as raw:
            yield cast("IO[bytes]", unpacked(CountedBytes(cast("IO[bytes]", raw), name)))


@contextmanager
def clear_errors(name: str) -> Iterator[None]:
    """Turn what goes wrong while a file is read into a DataError that names it.

    Examples
    --------
    >>> with clear_errors("shop.csv"):
    ...     open("no such folder/shop.csv")
    Traceback (most recent call last):
        ...
    taxofit.errors.DataError: no such file: shop.csv
    """
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"no such file: {name}") from None
    except OSError as error:
        raise DataError(f"{name}: cannot be read ({error.strerror or error})") from None


def find_encoding(path: FileOrStream) -> tuple[str, tuple[str, ...]]:
    """Return the encoding of a text file and notes on what was assumed.

    A byte-order mark decides, or the zero bytes of UTF-16. Otherwise the file is UTF-8 if all of it
    is, else Windows' cp1252 with a note that says so; Latin-1 where it has bytes that cp1252 lacks.
    An open stream is UTF-8 unless it begins with a mark: nobody can look ahead.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "plain.txt")
    ...     _ = file.write_bytes("Kürbis".encode())
    ...     find_encoding(file)
    ('utf-8-sig', ())
    """
    if isinstance(path, io.BufferedReader):
        is_wide = path.peek(2).startswith(UTF16_MARKS)
        return ("utf-16" if is_wide else "utf-8-sig"), ()
    with open_bytes(path) as handle:
        block = handle.read(BLOCK_BYTES)
        if block.startswith(UTF16_MARKS):
            return "utf-16", ()
        without_mark = _utf16_without_mark(block)
        if without_mark is not None:
            return without_mark, (f"{fspath(path)} is read as {without_mark}",)
        decoder = codecs.getincrementaldecoder("utf-8")()
        n_before = 0
        try:
            while block:
                decoder.decode(block)
                n_before += len(block)
                block = handle.read(BLOCK_BYTES)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            byte = error.object[error.start : error.start + 1].hex()
            is_western = not NOT_WESTERN.search(block)
            while is_western and (block := handle.read(BLOCK_BYTES)):
                is_western = not NOT_WESTERN.search(block)
            encoding = WESTERN if is_western else ANY_BYTE
            note = (
                f"{fspath(path)} is read as {encoding} (not UTF-8: byte 0x{byte} near offset "
                f"{n_before + error.start})"
            )
            return encoding, (note,)
    return "utf-8-sig", ()


def decoded(content: bytes) -> str:
    """Return the text of a whole file: UTF-8, UTF-16 by its mark, else cp1252 or Latin-1.

    Examples
    --------
    >>> decoded("Kürbis".encode("cp1252"))
    'Kürbis'
    """
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", errors="replace")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode(ANY_BYTE if NOT_WESTERN.search(content) else WESTERN)


def _utf16_without_mark(block: bytes) -> str | None:
    """Return which UTF-16 a block is, by the zero bytes that Latin letters have in it; or None."""
    n_pairs = max(1, len(block) // 2)
    for encoding, zeros, others in (
        ("utf-16-le", block[1::2], block[::2]),
        ("utf-16-be", block[::2], block[1::2]),
    ):
        if zeros.count(0) > UTF16_SHARE * n_pairs and not others.count(0):
            return encoding
    return None


def text_lines(path: FileOrStream, encoding: str | None = None) -> Iterator[str]:
    """Yield the lines of a text file with their ends, none of them over 64 MB.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "two.txt")
    ...     _ = file.write_bytes(b"one" + bytes([10]) + b"two")
    ...     [line.strip() for line in text_lines(file)]
    ['one', 'two']
    """
    if encoding is None:
        encoding = find_encoding(path)[0]
    with open_bytes(path) as handle:
        try:
            text = io.TextIOWrapper(handle, encoding=encoding, newline="")
        except LookupError:
            raise DataError(f"unknown encoding {encoding!r}; Python's names are meant") from None
        with text:
            yield from bounded_lines(text, name_of(path))


def bounded_lines(text: io.TextIOWrapper, name: str) -> Iterator[str]:
    """Yield the lines of an open text file; an overlong or undecodable one is a DataError.

    Examples
    --------
    >>> import io
    >>> list(bounded_lines(io.TextIOWrapper(io.BytesIO(b"one")), "note.txt"))
    ['one']
    """
    number = 0
    while True:
        number += 1
        try:
            line = text.readline(MAX_LINE_BYTES + 1)
        except UnicodeError as error:
            raise DataError(
                f"{name}:{number}: not {text.encoding} text ({error}); pass the right encoding="
            ) from None
        if len(line) > MAX_LINE_BYTES:
            raise DataError(
                f"{name}:{number}: a line of more than {MAX_LINE_BYTES // 2**20} MB; "
                f"is this a text file?"
            )
        if not line:
            return
        yield line
