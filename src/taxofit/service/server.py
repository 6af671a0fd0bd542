"""The process: a socket, uvicorn, signals, and a look at the model's folder now and then."""

from __future__ import annotations

import asyncio
import signal
import socket
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import uvicorn

from taxofit.errors import DataError
from taxofit.service.app import create_app
from taxofit.service.connection import Connection
from taxofit.service.served_model import ModelHolder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from taxofit.service.settings import ServiceSettings

__all__ = ["run_server"]

# Longer than what clients and proxies keep unused connections for, so that they close first and
# no request meets a connection that is being closed.
KEEP_ALIVE_SECONDS = 75
BACKLOG = 2048


def run_server(
    folder: str, settings: ServiceSettings, *, announce: Callable[[str], object]
) -> None:
    """Serve until told to stop; see :func:`taxofit.service.serve`."""
    holder = ModelHolder(folder)
    listening = _listen(settings)
    config = uvicorn.Config(
        create_app(holder, settings),
        http=partial(Connection, head_seconds=settings.timeout_seconds),  # type: ignore[arg-type]
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=round(settings.drain_seconds) or 1,
    )
    server = _Server(config, holder, settings, lambda: announce(_url(listening)))
    server.run(sockets=[listening])
    if server.is_interrupted:
        raise KeyboardInterrupt


class _Server(uvicorn.Server):
    """Uvicorn's server that also reloads the model, and ends without a signal of its own."""

    def __init__(
        self,
        config: uvicorn.Config,
        holder: ModelHolder,
        settings: ServiceSettings,
        on_start: Callable[[], object],
    ) -> None:
        super().__init__(config)
        self._holder = holder
        self._settings = settings
        self._on_start = on_start
        self.is_interrupted = False

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_start()

    async def main_loop(self) -> None:
        watching = asyncio.create_task(self._watch())
        try:
            await super().main_loop()
        finally:
            watching.cancel()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()

        def reload(*_: object) -> None:
            loop.call_soon_threadsafe(loop.run_in_executor, None, self._holder.reload)

        handlers: dict[signal.Signals, Callable[..., Any]] = dict.fromkeys(
            (signal.SIGINT, signal.SIGTERM), self.handle_exit
        )
        if hasattr(signal, "SIGHUP"):  # Windows has none
            handlers[signal.SIGHUP] = reload
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: Any) -> None:
        self.is_interrupted |= sig == signal.SIGINT
        super().handle_exit(sig, frame)

    async def _watch(self) -> None:
        """Take on a new model when the folder has one."""
        if self._settings.reload_seconds is None:
            return
        while True:
            await asyncio.sleep(self._settings.reload_seconds)
            await asyncio.to_thread(self._holder.reload_if_changed)


def _listen(settings: ServiceSettings) -> socket.socket:
    """Return a socket that listens, so that a port that is taken is known before anything else."""
    try:
        family = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((settings.host, settings.port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise DataError(
            f"cannot listen on {settings.host}, port {settings.port}: "
            f"{error.strerror or error}; choose another with --host or --port"
        ) from None


def _url(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
