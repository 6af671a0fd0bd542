"""What the weights of all nodes have in common.

Most rows are none of a node's. Each pulls the weights of its features down, and from node to node
they all pull alike but for their strength: a node's weights are, to first order, a *slope* of its
own times the sums of the columns of X. What is left beside that are its own features and those of
rows that look like its own: of 31,600 weights that a node of a web directory has at C = 1 about
3,300 (7,200 of 26,900 at C = 10), and of 37,500 on NAICS 2,600.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit.datasets.mapped import row_chunks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from taxofit.bank.rows import Rows

__all__ = ["Trend"]

MOST_STEPS = 32767
N_RATIOS = 4095  # a slope is the median of so many
# A feature's values are large if they are so many times those of most: of text none are.
LARGE = 8.0


@dataclass(frozen=True, eq=False)
class Trend:
    """Column sums in whole steps, where slopes along them are measured, and what can be pruned.

    Attributes
    ----------
    steps : ndarray of int16, shape (n_features,)
        Without the constant feature.
    places : ndarray of int64
        Features from the larger half, where a step is small beside the whole.
    care : ndarray of float32, shape (n_features,)
        1, and less where values are large: a small weight matters there, so that much less of a
        cutoff holds.
    """

    steps: NDArray[np.int16]
    places: NDArray[np.int64]
    care: NDArray[np.float32]

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
        n_features = rows.n_features - rows.has_constant
        sums, squares, n_users = np.zeros((3, rows.n_features))
        for start, stop, part in row_chunks(rows.X):
            sums += part.T @ rows.weight[start:stop]
            square = np.square(part.data, dtype=np.float64)
            squares += np.bincount(part.indices, square, minlength=rows.n_features)
            n_users += np.bincount(part.indices, minlength=rows.n_features)
        sums, squares, n_users = sums[:n_features], squares[:n_features], n_users[:n_features]
        care = _care(squares, n_users)
        sums[care < 1] = 0
        largest = np.abs(sums).max(initial=0.0)
        if largest == 0:
            return replace(cls.of_nothing(n_features), care=care)
        steps = np.rint(sums * (MOST_STEPS / largest)).astype(np.int16)
        size = np.abs(steps.astype(np.int32))
        large = np.flatnonzero(size >= np.median(size[size > 0]))
        evenly = np.linspace(0, large.size - 1, min(large.size, N_RATIOS)).astype(np.int64)
        return cls(steps, large[evenly], care)

    @classmethod
    def of_nothing(cls, n_features: int) -> Trend:
        """Return a trend of 0, which no slope makes anything of, and all features alike."""
        return cls(
            np.zeros(n_features, dtype=np.int16),
            np.zeros(0, dtype=np.int64),
            np.ones(n_features, dtype=np.float32),
        )


def _care(squares: NDArray[Any], n_users: NDArray[Any]) -> NDArray[np.float32]:
    """Return what is left of a cutoff, given the squares of every column added up."""
    length = np.sqrt(squares / np.maximum(n_users, 1))
    if not length.any():
        return np.ones(length.size, dtype=np.float32)
    typical = np.median(length[length > 0])
    return np.minimum(1, LARGE * typical / np.maximum(length, typical)).astype(np.float32)
