"""What the weights of all nodes have in common.

Most rows are none of a node's. Each pulls the weights of its features down, and from node to node
they all pull alike but for their strength: a node's weights are, to first order, a *slope* of its
own times the sums of the columns of X. What is left beside that are its own features and those of
rows that look like its own: of 31,600 weights that a node of a web directory has at C = 1 about
3,300 (7,200 of 26,900 at C = 10), and of 37,500 on NAICS 2,600.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit.datasets.mapped import row_chunks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from taxofit.bank.rows import Rows

__all__ = ["Trend"]

MOST_STEPS = 32767
N_RATIOS = 4095  # a slope is the median of so many


@dataclass(frozen=True, eq=False)
class Trend:
    """Column sums in whole steps, and where slopes along them are measured.

    Attributes
    ----------
    steps : ndarray of int16, shape (n_features,)
        Without the constant feature.
    places : ndarray of int64
        Features from the larger half, where a step is small beside the whole.
    """

    steps: NDArray[np.int16]
    places: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Rows) -> Trend:
        """Return the trend of sparse rows.

        Examples
        --------
        >>> from scipy import sparse
        >>> from taxofit.bank.rows import Rows
        >>> Trend.of(Rows.prepare(sparse.csr_array([[1.0, 2.0], [0.0, 2.0]]))).steps
        array([ 8192, 32767], dtype=int16)
        """
        sums: NDArray[Any] = np.zeros(rows.n_features)
        for start, stop, part in row_chunks(rows.X):
            sums += part.T @ rows.weight[start:stop]
        sums = sums[: rows.n_features - rows.has_constant]
        largest = np.abs(sums).max(initial=0.0)
        if largest == 0:
            return cls.of_nothing(sums.size)
        steps = np.rint(sums * (MOST_STEPS / largest)).astype(np.int16)
        size = np.abs(steps.astype(np.int32))
        large = np.flatnonzero(size >= np.median(size[size > 0]))
        evenly = np.linspace(0, large.size - 1, min(large.size, N_RATIOS)).astype(np.int64)
        return cls(steps, large[evenly])

    @classmethod
    def of_nothing(cls, n_features: int) -> Trend:
        """Return a trend of 0, which no slope makes anything of."""
        return cls(np.zeros(n_features, dtype=np.int16), np.zeros(0, dtype=np.int64))
