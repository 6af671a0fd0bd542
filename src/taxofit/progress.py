"""How long work tells how far it is: a callback, which the command line turns into bars."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Progress", "StageProgress", "stage_of"]

Progress = Callable[[int, int], None]  # (done, in all)
StageProgress = Callable[[str, int, int], None]  # (stage, done, in all)


def stage_of(progress: StageProgress | None, name: str) -> Progress | None:
    """Return the callback of one stage, or None where nobody listens.

    Examples
    --------
    >>> stage_of(print, "Fitting nodes")(3, 10)
    Fitting nodes 3 10
    """
    return None if progress is None else lambda done, total: progress(name, done, total)
