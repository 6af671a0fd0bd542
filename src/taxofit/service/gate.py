"""Who may come in, how many at a time, and with how much: decided before a body is read."""

from __future__ import annotations

import asyncio
import hmac
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException

from taxofit.service.problems import problem_response

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from taxofit.service.settings import ServiceSettings

__all__ = ["Gate"]

JSON = "application/json"


class Gate:
    """An ASGI application behind a token, a limit on requests under way, and one on their size.

    Parameters
    ----------
    app : ASGI application
    settings : ServiceSettings
    open_paths : collection of str
        That need no token.
    body_paths : collection of str
        That take JSON by POST, and work.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: ServiceSettings,
        *,
        open_paths: Collection[str],
        body_paths: Collection[str],
    ) -> None:
        self._app = app
        self._settings = settings
        self._open_paths = frozenset(open_paths)
        self._body_paths = frozenset(body_paths)
        self._expected = None if settings.token is None else f"Bearer {settings.token}".encode()
        self._n_inside = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or send it away; an ASGI application's one method."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope, Headers(scope=scope))
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        if not self._has_work(scope):
            await self._app(scope, receive, send)
            return
        self._n_inside += 1
        try:
            await self._app(scope, self._bounded(receive), send)
        finally:
            self._n_inside -= 1

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        if not self._is_allowed(scope["path"], headers):
            return problem_response(
                401,
                "Send the token of this service as 'Authorization: Bearer TOKEN'.",
                headers={"WWW-Authenticate": "Bearer"},
            )
        if not self._has_work(scope):
            return None
        if self._n_inside >= self._settings.max_requests:
            return problem_response(503, "Too many requests are under way; try again shortly.")
        if headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
            return problem_response(415, f"Send the body as {JSON}.")
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > self._settings.max_body_bytes:
            return problem_response(413, self._too_large())
        return None

    def _has_work(self, scope: Scope) -> bool:
        return scope["method"] == "POST" and scope["path"] in self._body_paths

    def _is_allowed(self, path: str, headers: Headers) -> bool:
        if self._expected is None or path in self._open_paths:
            return True
        given = headers.get("authorization", "").encode("latin-1")
        return hmac.compare_digest(given, self._expected)  # takes as long whatever is right in it

    def _bounded(self, receive: Receive) -> Receive:
        """Return a receive that ends a body that is too long, or too long on its way."""
        n_bytes = 0
        deadline = asyncio.get_running_loop().time() + self._settings.timeout_seconds

        async def receive_bounded() -> Message:
            nonlocal n_bytes
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408, "The body did not arrive in time.") from None
            n_bytes += len(message.get("body", b""))
            if n_bytes > self._settings.max_body_bytes:
                raise HTTPException(413, self._too_large())
            return message

        return receive_bounded

    def _too_large(self) -> str:
        return f"The body is larger than {self._settings.max_body_bytes} bytes; send fewer rows."
