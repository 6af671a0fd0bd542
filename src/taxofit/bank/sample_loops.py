"""Numba loops that take the entries of a sample of rows."""

from __future__ import annotations

import numpy as np

from taxofit.bank.rank_loops import value_of_rank
from taxofit.compiling import compiled

__all__ = ["ABSENT", "PRIVATE", "count_users", "mark_near", "take_entries"]

PRIVATE, ABSENT = -1, -2  # places of features that are no columns of a sample


@compiled
def mark_near(indptr, indices, values, n_users, least, most, is_own, share, score):
    """Mark rows that look like own ones as own, too: those above a score, and at most so many.

    Of each of its entries a row has in common with own rows what they are of the rows with that
    feature; by size of entries this makes its score, which is the share of own rows for a row that
    is like any other.

    Parameters
    ----------
    indptr, indices, values
        Of all rows.
    n_users : ndarray of int64, shape (n_features,)
        In how many rows every feature is.
    least : float
        Score of a near row, in shares of own rows among all.
    most : int
    is_own : ndarray of bool, shape (n,)
        Changed in place.
    share, score : ndarray of float32, shapes (n_features,) and (2, n)
        To work in, 0 at first.
    """
    n, n_own, n_near = is_own.size, 0, 0
    for i in range(n):
        if is_own[i]:
            n_own += 1
            for q in range(indptr[i], indptr[i + 1]):
                share[indices[q]] += 1
    for j in range(share.size):
        share[j] /= n_users[j]
    for i in range(n):
        if not is_own[i]:
            common, whole = np.float32(0), np.float32(0)
            for q in range(indptr[i], indptr[i + 1]):
                size = abs(values[q])
                common += size * share[indices[q]]
                whole += size
            if common * n >= least * n_own * whole and whole > 0:
                score[0, i] = score[1, n_near] = common / whole
                n_near += 1
    lightest = value_of_rank(score[1], n_near, n_near - most - 1) if n_near > most else 0.0
    for i in range(n):
        is_own[i] |= score[0, i] > lightest


@compiled
def count_users(indptr, indices, rows, is_own, n_users, n_own):
    """Count in how many of these rows, and of the own ones among them, every feature is.

    is_own : bool (n,), of all rows.
    """
    for i in rows:
        for q in range(indptr[i], indptr[i + 1]):
            n_users[indices[q]] += 1
            n_own[indices[q]] += is_own[i]


@compiled
def take_entries(indptr, indices, values, rows, is_own, slope, place, along, kept, private, pulls):
    """Write down the entries of rows in columns, and those of own rows in private features.

    Parameters
    ----------
    indptr, indices, values
        Of all rows.
    rows : ndarray of int64, shape (n_sampled,)
    is_own : ndarray of bool, shape (n,)
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
        Get the sums of rows times slope, of those that are not own and of the others.
    """
    stops, columns, kept_values = kept
    private_rows, features, private_values = private
    n_kept, n_private, n_columns = 0, 0, pulls.shape[1] - 1
    stops[0] = 0
    for a in range(rows.size):
        i = rows[a]
        which, rest = np.int64(is_own[i]), np.float32(0)
        for q in range(indptr[i], indptr[i + 1]):
            column = place[indices[q]]
            if column >= 0:
                columns[n_kept], kept_values[n_kept] = column, values[q]
                pulls[which, column] += slope[i] * values[q]
                n_kept += 1
            elif column == PRIVATE and is_own[i]:
                private_rows[n_private], features[n_private] = a, indices[q]
                private_values[n_private] = values[q]
                n_private += 1
            else:
                rest += values[q] * along[indices[q]]
        columns[n_kept], kept_values[n_kept] = n_columns, rest
        pulls[which, n_columns] += slope[i] * rest
        n_kept += 1
        stops[a + 1] = n_kept
