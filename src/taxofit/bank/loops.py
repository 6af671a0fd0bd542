"""Numba loops over plain arrays: the inner work of the kernels on a CPU.

Every loop releases the interpreter lock, so that threads can each solve a block of their own. Compiled
code is cached next to this file (or where NUMBA_CACHE_DIR says).
"""

from __future__ import annotations

import math

import numba
import numpy as np

__all__ = ["add_curved_product", "add_transposed_product", "derivatives", "losses", "multiply"]

_compiled = numba.njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})


@_compiled
def multiply(indptr, indices, data, W, Z):
    """Z = X W."""
    width = W.shape[1]
    for i in range(Z.shape[0]):
        for b in range(width):
            Z[i, b] = 0
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            x = data[k]
            for b in range(width):
                Z[i, b] += x * W[j, b]


@_compiled
def add_transposed_product(indptr, indices, data, S, G):
    """G += Xᵀ S."""
    width = S.shape[1]
    for i in range(S.shape[0]):
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            x = data[k]
            for b in range(width):
                G[j, b] += x * S[i, b]


@_compiled
def add_curved_product(indptr, indices, data, V, D, HV):
    """HV += Xᵀ (D * (X V)), in one pass over X: a row's entries are still in cache the second time."""
    width = V.shape[1]
    q = np.empty(width, dtype=V.dtype)
    for i in range(D.shape[0]):
        for b in range(width):
            q[b] = 0
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            x = data[k]
            for b in range(width):
                q[b] += x * V[j, b]
        for b in range(width):
            q[b] *= D[i, b]
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            x = data[k]
            for b in range(width):
                HV[j, b] += x * q[b]


@_compiled
def losses(Z, row_class, table, cost):
    """Return Σ_i cost_i log(1 + exp(-y_i z_i)) of every column."""
    width = Z.shape[1]
    total = np.zeros(width)
    for i in range(Z.shape[0]):
        signs = table[row_class[i]]
        for b in range(width):
            m = signs[b] * Z[i, b]
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
