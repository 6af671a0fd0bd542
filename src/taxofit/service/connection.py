"""Connections that do not wait for ever, nor take in heads of any length.

Uvicorn leaves both to a proxy; a service that is asked directly would fill its memory with one
endless header, and its table of files with connections that say nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    import asyncio

__all__ = ["Connection"]

MAX_HEAD_BYTES = 64 * 2**10


class Connection(HttpToolsProtocol):
    """Uvicorn's connection, closed where the head of a request is too long or too slow.

    Parameters
    ----------
    head_seconds : float
        For a first byte, and then for each whole head, to arrive.
    """

    def __init__(self, *, head_seconds: float, **parts: Any) -> None:
        super().__init__(**parts)
        self._head_seconds = head_seconds
        self._n_head_bytes = 0
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """Take in bytes; of a head only so many."""
        super().data_received(data)
        if self._deadline is None:
            return
        self._n_head_bytes += len(data)
        if self._n_head_bytes > MAX_HEAD_BYTES:
            self._give_up()

    def on_message_begin(self) -> None:
        """Begin to wait for the rest of a head."""
        super().on_message_begin()
        self._wait_for_head()

    def on_headers_complete(self) -> None:
        """Go on to the body, for which the application waits."""
        self._stop_waiting()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget all timers."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        self._stop_waiting()
        self._n_head_bytes = 0
        self._deadline = self.loop.call_later(self._head_seconds, self._give_up)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._stop_waiting()
        if not self.transport.is_closing():
            self.transport.close()
