"""Memory that is used again.

What a process returns to the system has to be cleared before it gets it back, page by page, and of
arrays beyond 32 MB malloc keeps none. The weights of 64 nodes with 380,000 features are 98 MB: to
have them new for every block took a fifteenth of a bank's time.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

__all__ = ["Buffers"]

LEAST_USED = 0.5  # of a buffer: large ones are kept for large arrays


class Buffers(threading.local):
    """Hands out arrays, and has their memory back when nobody refers to them any more.

    Every thread has buffers of its own, no more than it ever used at a time; they go when it ends.
    """

    def __init__(self) -> None:
        self._free: list[Floats] = []

    def empty(self, *shape: int) -> Floats:
        """Return an array of float32, whatever its values are."""
        size = int(np.prod(shape))
        buffer = self._take(size)
        loan = _Loan(buffer[:size])
        weakref.finalize(loan, self._free.append, buffer).atexit = False
        return np.asarray(loan).reshape(shape)

    def zeros(self, *shape: int) -> Floats:
        """Return an array of float32 zeros."""
        array = self.empty(*shape)
        array.fill(0)
        return array

    def _take(self, size: int) -> Floats:
        """Return a buffer that suits, or else a new one instead of that longest unused."""
        for place, buffer in enumerate(self._free):  # others may come in at the end meanwhile
            if LEAST_USED * buffer.size <= size <= buffer.size:
                return self._free.pop(place)
        if self._free:
            self._free.pop(0)
        return np.empty(size, dtype=np.float32)


class _Loan:
    """What all arrays over a buffer refer to, so that it is gone when they are."""

    def __init__(self, buffer: Floats) -> None:
        self.__array_interface__: dict[str, Any] = buffer.__array_interface__
