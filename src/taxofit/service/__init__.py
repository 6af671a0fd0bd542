"""A model behind HTTP: ``taxofit serve`` (the extra ``taxofit[serve]``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taxofit.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable

    from taxofit.service.settings import ServiceSettings

__all__ = ["serve"]


def serve(folder: str, settings: ServiceSettings, *, announce: Callable[[str], object]) -> None:
    """Serve the model of a folder until SIGTERM or Ctrl-C; return when all requests are answered.

    Parameters
    ----------
    folder : str
    settings : ServiceSettings
    announce : callable
        Called with the service's URL when it answers.
    """
    settings.check()
    try:
        from taxofit.service.server import run_server
    except ModuleNotFoundError as error:
        raise DataError(
            f"the service needs {error.name}: install it with pip install 'taxofit[serve]'"
        ) from None
    run_server(folder, settings, announce=announce)
