"""The value of a given rank among few numbers, for other compiled loops.

NumPy's own would do, but takes three seconds to compile.
"""

from __future__ import annotations

from taxofit.compiling import compiled

__all__ = ["value_of_rank"]


@compiled
def value_of_rank(values, n_values, rank):
    """Return the value of this rank of the first n, 0 being the smallest; they change places.

    Examples
    --------
    >>> import numpy as np
    >>> value_of_rank(np.array([5.0, 3.0, 9.0, 1.0]), 3, 1)
    5.0
    """
    first, last = 0, n_values - 1
    while first < last:
        pivot = values[(first + last) >> 1]
        low, high = first, last
        while low <= high:
            while values[low] < pivot:
                low += 1
            while values[high] > pivot:
                high -= 1
            if low <= high:
                values[low], values[high] = values[high], values[low]
                low += 1
                high -= 1
        if rank <= high:
            last = high
        elif rank >= low:
            first = low
        else:
            break
    return values[rank]
