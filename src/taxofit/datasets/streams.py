"""Bytes on their way in: counted as they are read, and unpacked without trusting what gzip says."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from typing import IO, TYPE_CHECKING, cast

from taxofit.errors import DataError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = ["CountedBytes", "max_unpacked_bytes", "read_first_line", "unpacked"]

GZIP_MAGIC = b"\x1f\x8b"
BUFFER_BYTES = 2**18
# Text packs 3 to 20 times, gzip reaches 1032 at most: beyond both numbers nobody wrote it for use.
MAX_UNPACKED_BYTES = 2**30
MAX_UNPACKED_RATIO = 100
LIMIT_VARIABLE = "TAXOFIT_MAX_UNPACKED_BYTES"


class CountedBytes(io.RawIOBase):
    """A stream that tells how many bytes were read from it; the one behind it stays open.

    Attributes
    ----------
    name : str
        What messages call it.
    n_read : int

    Examples
    --------
    >>> counted = CountedBytes(io.BytesIO(b"electric kettle"), "standard input")
    >>> counted.read(8), counted.n_read
    (b'electric', 8)
    """

    def __init__(self, stream: IO[bytes], name: str) -> None:
        super().__init__()
        self._stream = stream
        self.name = name
        self.n_read = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fill a buffer as far as one read goes, and return how far that was."""
        view = memoryview(buffer)
        # A pipe is answered with what it has now, not only when the buffer is full.
        read = getattr(self._stream, "read1", self._stream.read)
        block = read(len(view))
        view[: len(block)] = block
        self.n_read += len(block)
        return len(block)


class _Unpacking(io.RawIOBase):
    """The bytes inside a gzip stream, up to what a person could have meant."""

    def __init__(self, packed: CountedBytes, buffered: io.BufferedReader) -> None:
        super().__init__()
        self.name = packed.name
        self._packed = packed
        self._gzip = gzip.GzipFile(fileobj=cast("IO[bytes]", buffered))
        self._limit = max_unpacked_bytes()
        self._n_unpacked = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        try:
            n_bytes = self._gzip.readinto(buffer)
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise DataError(f"{self.name}: damaged gzip file ({error}); fetch it again") from None
        self._n_unpacked += n_bytes
        ratio = self._n_unpacked / max(self._packed.n_read, 1)
        if self._n_unpacked > self._limit and ratio > MAX_UNPACKED_RATIO:
            raise DataError(
                f"{self.name}: unpacks to more than {self._limit:,} bytes, {ratio:.0f} times its "
                f"size; if you trust it, set {LIMIT_VARIABLE} to more, or unpack it yourself"
            )
        return n_bytes


class _Prefixed(io.RawIOBase):
    """Some bytes, then those of a stream."""

    def __init__(self, head: bytes, stream: io.BufferedReader) -> None:
        super().__init__()
        self.name = stream.name
        self._head = head
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer)
        if not self._head:
            return self._stream.readinto1(view)
        block, self._head = self._head[: len(view)], self._head[len(view) :]
        view[: len(block)] = block
        return len(block)


def max_unpacked_bytes() -> int:
    """Return to how many bytes any gzip file may unpack: 1 GiB, or the environment's number.

    Larger ones are unpacked all the same unless they grow more than a hundredfold.

    Examples
    --------
    >>> max_unpacked_bytes()
    1073741824
    """
    written = os.environ.get(LIMIT_VARIABLE, "").strip()
    if not written:
        return MAX_UNPACKED_BYTES
    if not written.isdecimal():
        raise DataError(f"{LIMIT_VARIABLE} must be a number of bytes, but is {written!r}")
    return int(written)


def unpacked(counted: CountedBytes) -> io.BufferedReader:
    """Return the bytes of a stream, those inside if they are gzip.

    Examples
    --------
    >>> packed = io.BytesIO(gzip.compress(b"inside"))
    >>> unpacked(CountedBytes(packed, "packed.gz")).read()
    b'inside'
    """
    buffered: io.BufferedReader = io.BufferedReader(counted, BUFFER_BYTES)
    if not buffered.peek(len(GZIP_MAGIC)).startswith(GZIP_MAGIC):
        return buffered
    return io.BufferedReader(_Unpacking(counted, buffered), BUFFER_BYTES)


def read_first_line(
    stream: io.BufferedReader, max_bytes: int = BUFFER_BYTES
) -> tuple[bytes, io.BufferedReader]:
    """Return how a stream begins, to the end of its first line, and the stream as if unread.

    A pipe may hand over its first line in pieces; this waits for all of it.

    Examples
    --------
    >>> line, stream = read_first_line(unpacked(CountedBytes(io.BytesIO(b"id,title"), "-")), 3)
    >>> line, stream.read()
    (b'id,', b'id,title')
    """
    head = stream.readline(max_bytes)
    return head, io.BufferedReader(_Prefixed(head, stream), BUFFER_BYTES)
