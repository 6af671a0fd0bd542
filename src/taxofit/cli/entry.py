"""Where the command line starts: errors become one line and an exit code."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import typer

from taxofit import terminal
from taxofit.cli.app import app
from taxofit.errors import Interrupted, TaxofitError
from taxofit.workflow.options import in_options

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

BAD_INPUT, INTERRUPTED = 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, 2 for bad input, 130 for Ctrl-C.

    Where the reader of a pipe has left, Typer exits with 1 and without a word.
    """
    terminal.prepare_streams()
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    try:
        code = app(args=arguments, prog_name="taxofit", standalone_mode=False)
    except TaxofitError as error:
        terminal.show_error(in_options(str(error)))
        return INTERRUPTED if isinstance(error, Interrupted) else BAD_INPUT
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except MemoryError as error:
        terminal.show_error(f"not enough memory ({error}); `fit` takes larger files with --store")
        return BAD_INPUT
    except OSError as error:
        terminal.show_error(f"{error.filename or 'cannot write'}: {error.strerror or error}")
        return BAD_INPUT
    except Exception as error:
        # Typer keeps Click's usage errors to itself; each of them can say what is wrong.
        if not hasattr(error, "format_message"):
            raise
        terminal.show_error(f"{error.format_message()} ({_hint(error)})")
        return BAD_INPUT
    if code == INTERRUPTED:
        terminal.show_error("interrupted")
    return code if isinstance(code, int) else 0


def _hint(error: Any) -> str:
    context = getattr(error, "ctx", None)
    return f"see {context.command_path if context else 'taxofit'} --help"


def _show_warning(message: Warning | str, *_: object) -> None:
    terminal.show_warning(in_options(str(message)))
