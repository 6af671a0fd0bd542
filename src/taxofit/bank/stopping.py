"""A flag by which the thread that waits tells those that solve to leave off."""

from __future__ import annotations

import numpy as np

__all__ = ["StopFlag", "Stopped"]


class Stopped(Exception):  # noqa: N818  (nothing went wrong here: somebody else said stop)
    """Raised where a solver finds that its flag was set; its block is not finished."""


class StopFlag:
    """Set once, looked at between passes over the rows, in compiled code too.

    Attributes
    ----------
    raised : ndarray of int64, shape (1,)
        1 once it is set.

    Examples
    --------
    >>> flag = StopFlag()
    >>> flag.check()
    >>> flag.set()
    >>> flag.is_set
    True
    """

    def __init__(self) -> None:
        self.raised = np.zeros(1, dtype=np.int64)

    @property
    def is_set(self) -> bool:
        """Whether to leave off."""
        return bool(self.raised[0])

    def set(self) -> None:
        """Ask all who look at this flag to leave off."""
        self.raised[0] = 1

    def check(self) -> None:
        """Raise :class:`Stopped` if the flag is set."""
        if self.is_set:
            raise Stopped
