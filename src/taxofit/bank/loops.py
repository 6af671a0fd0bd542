"""Numba loops over plain arrays: losses and their derivatives for dense rows on a CPU.

Compiled code is cached next to this file (or where NUMBA_CACHE_DIR says).
"""

from __future__ import annotations

import math

import numba
import numpy as np

__all__ = ["derivatives", "losses"]

_compiled = numba.njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})


@_compiled
def losses(Z, along, step, row_class, table, cost):
    """Return Σ_i cost_i log(1 + exp(-y_i (z_i + step · along_i))) of every column."""
    width = Z.shape[1]
    total = np.zeros(width)
    for i in range(Z.shape[0]):
        signs = table[row_class[i]]
        for b in range(width):
            m = signs[b] * (Z[i, b] + step[b] * along[i, b])
            total[b] += cost[i] * (math.log1p(math.exp(-abs(m))) + max(-m, 0.0))
    return total


@_compiled
def derivatives(Z, row_class, table, cost, slopes, curvature):
    """Return losses as above; fill in their first and second derivatives by margin."""
    width = Z.shape[1]
    total = np.zeros(width)
    for i in range(Z.shape[0]):
        signs = table[row_class[i]]
        for b in range(width):
            m = signs[b] * Z[i, b]
            e = math.exp(-abs(m))
            total[b] += cost[i] * (math.log1p(e) + max(-m, 0.0))
            wrong = (1.0 if m < 0 else e) / (1.0 + e)  # σ(-m)
            slopes[i, b] = -cost[i] * signs[b] * wrong
            curvature[i, b] = cost[i] * e / ((1.0 + e) * (1.0 + e))
    return total
