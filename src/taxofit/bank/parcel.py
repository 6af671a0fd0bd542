"""What the tasks of a bank have in common, as bytes that travel once to every worker."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_info

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from taxofit.bank.block_work import BlockWork

__all__ = ["Parcel"]


@dataclass(eq=False)
class Parcel:
    """The common part of tasks, as bytes.

    Attributes
    ----------
    key : str
        Of the content: a worker opens a parcel once, however many tasks name it.
    payload : ndarray of uint8
        An array, because that is what backends know to scatter or to map into memory.
    n_blas_threads : int
        At home. Sums of dense rows depend on it, so workers take the same number.
    """

    key: str
    payload: NDArray[np.uint8]
    n_blas_threads: int

    @classmethod
    def of(cls, work: BlockWork) -> Parcel:
        """Pack what tasks have in common."""
        payload = np.frombuffer(pickle.dumps(work, protocol=5), dtype=np.uint8)
        n_blas_threads = max(
            (pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"),
            default=1,
        )
        return cls(work.key, payload, n_blas_threads)

    def opened(self) -> Parcel:
        """Return the parcel itself, wherever it has travelled to."""
        return self

    def unpack(self) -> BlockWork:
        """Return what was packed."""
        return pickle.loads(self.payload.data)  # noqa: S301  (from home, as all of a task is)
