"""Where the service listens and what it refuses; read before anything heavy is imported."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_address

from taxofit.errors import DataError

__all__ = ["ServiceSettings"]

MAX_PORT = 65_535


@dataclass(frozen=True, kw_only=True)
class ServiceSettings:
    """Address, limits and habits of the service; the defaults are those of the command line.

    Attributes
    ----------
    host : str
        An address of this machine; loopback by default, so that nobody else can connect.
    port : int
        0 takes any free one.
    max_body_bytes : int
        A longer request body is refused (413), unread if it says its length.
    max_rows : int
        Of one request (413), and of one batch that is made of several requests.
    max_text_length : int
        Characters of one text (422).
    max_requests : int
        That may be read, wait or run at a time; more are sent away (503 with Retry-After).
    timeout_seconds : float
        For a body to arrive (408), for a request to be begun (503) and ended (504).
    drain_seconds : float
        That requests under way get to end after SIGTERM.
    threads : int
        That predict.
    reload_seconds : float, optional
        How often to look whether the folder holds another model.
    token : str, optional
        That clients must send as ``Authorization: Bearer TOKEN``.

    Examples
    --------
    >>> ServiceSettings().is_loopback, ServiceSettings(host="0.0.0.0").is_loopback
    (True, False)
    >>> ServiceSettings(max_rows=0).check()
    Traceback (most recent call last):
        ...
    taxofit.errors.DataError: max-rows must be at least 1, but is 0
    """

    host: str = "127.0.0.1"
    port: int = 8080
    max_body_bytes: int = 2 * 2**20
    max_rows: int = 1000
    max_text_length: int = 20_000
    max_requests: int = 512
    timeout_seconds: float = 30.0
    drain_seconds: float = 30.0
    threads: int = 2
    reload_seconds: float | None = None
    token: str | None = field(default=None, repr=False)

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def check(self) -> None:
        """Raise a DataError that names the first setting that cannot be."""
        if not 0 <= self.port <= MAX_PORT:
            raise DataError(f"port must be from 0 to {MAX_PORT}, but is {self.port}")
        for name in ("max_body_bytes", "max_rows", "max_text_length", "max_requests", "threads"):
            if getattr(self, name) < 1:
                shown = name.replace("_", "-")
                raise DataError(f"{shown} must be at least 1, but is {getattr(self, name)}")
        for name in ("timeout_seconds", "drain_seconds", "reload_seconds"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                shown = name.replace("_", "-")
                raise DataError(f"{shown} must be a positive number, but is {value:g}")
        if self.token is not None and not (self.token.isascii() and self.token.strip()):
            raise DataError("the token must be ASCII text, and not empty")
