"""How loops of sparse solver and predictor are compiled: in one way, and no more than is called.

What numba works out for one function serves the next only if both have the same options.
It takes seconds, once on a machine: :func:`is_compiling` is for those who watch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numba
from numba.core import event

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["compiled", "is_compiling", "part"]

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
# Parts make no arrays, so numba need not count who holds which: a fifth of all code for LLVM.
OPTIONS_OF_PARTS: dict[str, Any] = OPTIONS | {"no_cpython_wrapper": True, "_nrt": False}


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls."""
    return numba.njit(cache=True, **OPTIONS)(function)


def part(function: Callable[..., Any]) -> Any:
    """Compile a function that only compiled ones call, and that makes no arrays.

    It goes without the wrapper that takes Python's arguments apart, which for tuples of arrays is
    longer than the function itself, and is kept with those that call it.
    """
    return numba.njit(**OPTIONS_OF_PARTS)(function)


class _Watch(event.Listener):
    """Counts compilations under way, of which one calls for the next; numba has one at a time."""

    depth = 0

    def on_start(self, _event: event.Event) -> None:
        self.depth += 1

    def on_end(self, _event: event.Event) -> None:
        self.depth -= 1


_watch = _Watch()
event.register("numba:compile", _watch)


def is_compiling() -> bool:
    """Return whether numba is compiling a loop that it has not kept from another time."""
    return _watch.depth > 0
