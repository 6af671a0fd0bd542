"""Numba loops that take the entries of a sample of rows."""

from __future__ import annotations

import numpy as np

from taxofit.compiling import compiled

__all__ = ["ABSENT", "PRIVATE", "count_users", "take_entries"]

PRIVATE, ABSENT = -1, -2  # places of features that are no columns of a sample


@compiled
def count_users(indptr, indices, rows, is_positive, n_users, n_positive):
    """Count in how many of these rows, and of the positive ones among them, every feature is.

    is_positive : bool (n,), of all rows.
    """
    for i in rows:
        for q in range(indptr[i], indptr[i + 1]):
            n_users[indices[q]] += 1
            n_positive[indices[q]] += is_positive[i]


@compiled
def take_entries(
    indptr, indices, values, rows, is_positive, slope, place, along, kept, private, pulls
):
    """Write down the entries of rows in columns, and those of positive rows in private features.

    Parameters
    ----------
    indptr, indices, values
        Of all rows.
    rows : ndarray of int64, shape (n_sampled,)
    is_positive : ndarray of bool, shape (n,)
    slope : ndarray of float32, shape (n,)
    place : ndarray of int32, shape (n_features,)
        The column of every feature, or what it is instead.
    along : ndarray of float32
        Of other features, what each adds to a last column, in which all rows have an entry.
    kept : tuple of ndarray
        indptr, indices and values to fill.
    private : tuple of ndarray
        Rows of the sample, features and values to fill.
    pulls : ndarray of float64, shape (2, n_columns + 1)
        Get the sums of rows times slope, of those that are not positive and of the others.
    """
    stops, columns, kept_values = kept
    private_rows, features, private_values = private
    n_kept, n_private, n_columns = 0, 0, pulls.shape[1] - 1
    stops[0] = 0
    for a in range(rows.size):
        i = rows[a]
        which, rest = np.int64(is_positive[i]), np.float32(0)
        for q in range(indptr[i], indptr[i + 1]):
            column = place[indices[q]]
            if column >= 0:
                columns[n_kept], kept_values[n_kept] = column, values[q]
                pulls[which, column] += slope[i] * values[q]
                n_kept += 1
            elif column == PRIVATE and is_positive[i]:
                private_rows[n_private], features[n_private] = a, indices[q]
                private_values[n_private] = values[q]
                n_private += 1
            else:
                rest += values[q] * along[indices[q]]
        columns[n_kept], kept_values[n_kept] = n_columns, rest
        pulls[which, n_columns] += slope[i] * rest
        n_kept += 1
        stops[a + 1] = n_kept
