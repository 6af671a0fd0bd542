"""``taxofit serve``: a model behind HTTP."""

from __future__ import annotations

from typing import Annotated

import typer

from taxofit import terminal
from taxofit.cli.arguments import Model
from taxofit.service.settings import ServiceSettings

__all__ = ["serve"]

DEFAULTS = ServiceSettings()
LIMITS = "Limits"


def serve(
    model: Model,
    *,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="To listen on; this machine only by default.")
    ] = DEFAULTS.host,
    port: Annotated[int, typer.Option(metavar="NUMBER", help="0 is any free one.")] = DEFAULTS.port,
    reload_every: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Look for a new model in the folder. SIGHUP does so at once.",
            show_default=False,
        ),
    ] = DEFAULTS.reload_seconds,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            envvar="TAXOFIT_TOKEN",
            show_envvar=False,
            help="That clients must send as a bearer token. The environment variable TAXOFIT_TOKEN "
            "keeps it out of process lists.",
            show_default=False,
        ),
    ] = DEFAULTS.token,
    threads: Annotated[
        int, typer.Option(metavar="NUMBER", help="That predict.")
    ] = DEFAULTS.threads,
    max_rows: Annotated[
        int, typer.Option(rich_help_panel=LIMITS, metavar="NUMBER", help="Of one request.")
    ] = DEFAULTS.max_rows,
    max_body_bytes: Annotated[
        int, typer.Option(rich_help_panel=LIMITS, metavar="NUMBER", help="Of one request.")
    ] = DEFAULTS.max_body_bytes,
    max_text_length: Annotated[
        int, typer.Option(rich_help_panel=LIMITS, metavar="NUMBER", help="Characters of one text.")
    ] = DEFAULTS.max_text_length,
    max_requests: Annotated[
        int,
        typer.Option(
            rich_help_panel=LIMITS, metavar="NUMBER", help="Under way; more are sent away (503)."
        ),
    ] = DEFAULTS.max_requests,
    timeout: Annotated[
        float,
        typer.Option(rich_help_panel=LIMITS, metavar="SECONDS", help="For one request."),
    ] = DEFAULTS.timeout_seconds,
    drain: Annotated[
        float,
        typer.Option(
            rich_help_panel=LIMITS,
            metavar="SECONDS",
            help="That requests under way get after SIGTERM or Ctrl-C.",
        ),
    ] = DEFAULTS.drain_seconds,
) -> None:
    """Answer requests over HTTP: predict, topk, explain, health and metrics under /v1."""
    settings = ServiceSettings(
        host=host,
        port=port,
        max_body_bytes=max_body_bytes,
        max_rows=max_rows,
        max_text_length=max_text_length,
        max_requests=max_requests,
        timeout_seconds=timeout,
        drain_seconds=drain,
        threads=threads,
        reload_seconds=reload_every,
        token=token,
    )
    from taxofit.service import serve as run

    terminal.log_to_stderr()
    if not settings.is_loopback:
        terminal.show_warning(
            f"{host} can be reached from other machines"
            f"{'' if token else ', and anybody there may ask: set TAXOFIT_TOKEN'}"
        )
    run(model, settings, announce=terminal.show_service)
