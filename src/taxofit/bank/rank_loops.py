"""Ranks and places among numbers, for other compiled loops.

NumPy's own would do, but that for ranks takes three seconds to compile.
"""

from __future__ import annotations

from taxofit.compiling import compiled, part

__all__ = ["place_of", "value_of_rank"]


@part
def place_of(values, first, stop, wanted):
    """Return where a value stands in ``values[first:stop]``, which ascends, or where it would."""
    while first < stop:
        middle = (first + stop) >> 1
        if values[middle] < wanted:
            first = middle + 1
        else:
            stop = middle
    return first


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
