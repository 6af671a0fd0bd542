"""Arrays in files: rows that memory cannot hold, and what is derived from them.

A memory-mapped array looks like any other. The system reads its pages from the file when they are
touched and drops or writes them back when memory runs short, so it never counts as memory that a
program must have. What is made from such rows is mapped too, in a file of the same folder that has
no name: its space is given back when the array goes, even if the program is killed.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from taxofit.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import DTypeLike, NDArray

    Array = NDArray[Any]

__all__ = [
    "by_column",
    "cast",
    "chunk_bounds",
    "continued",
    "empty_beside",
    "index_type",
    "is_mapped",
    "mapped_folder",
    "row_chunks",
    "run_sums",
    "scratch_array",
    "stack_rows",
    "take_rows",
]

CHUNK_ENTRIES = 1 << 19  # looked at at a time: some 20 MB with all that is made of them
COLUMN_ENTRIES = 2 * CHUNK_ENTRIES  # turned from rows to columns at a time
SCRATCH_PREFIX = ".taxofit-scratch-"


def mapped_folder(array: Any) -> Path | None:
    """Return the folder of the file that an array, or a sparse matrix's data, is mapped to.

    Examples
    --------
    >>> mapped_folder(np.zeros(3)) is None
    True
    """
    array = array.data if sparse.issparse(array) else array
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap) and array.filename is not None:
            return Path(array.filename).parent
        array = array.base
    return None


def is_mapped(X: Any) -> bool:
    """Return whether rows are mapped from a file.

    Examples
    --------
    >>> is_mapped(sparse.csr_array(np.eye(2)))
    False
    """
    return mapped_folder(X) is not None


def scratch_array(shape: int | tuple[int, ...], dtype: DTypeLike, folder: Path) -> Array:
    """Return an array of zeros in a nameless file of this folder.

    Its space is reserved at once: a full disk is a DataError here and not a crash later on.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     zeros = scratch_array(3, np.float32, Path(folder))
    ...     zeros.tolist(), os.listdir(folder)
    ([0.0, 0.0, 0.0], [])
    """
    shape = (shape,) if isinstance(shape, int) else shape
    n_bytes = max(1, int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize)
    try:
        handle, name = tempfile.mkstemp(prefix=SCRATCH_PREFIX, dir=folder)
        try:
            _reserve(handle, n_bytes)
            whole = np.memmap(name, np.uint8, "r+", shape=(n_bytes,))
        finally:
            os.close(handle)
            _forget(name)
    except OSError as error:
        raise DataError(
            f"{folder}: no room for {n_bytes / 2**20:.0f} MiB of scratch space "
            f"({error.strerror or error}); free some, or use a folder on a larger disk"
        ) from None
    n_items = int(np.prod(shape, dtype=np.int64))
    return whole.view(dtype)[:n_items].reshape(shape) if n_items else np.zeros(shape, dtype)


def _reserve(handle: int, n_bytes: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, 0, n_bytes)
    else:
        os.truncate(handle, n_bytes)


def _forget(name: str) -> None:
    try:
        Path(name).unlink()
    except PermissionError:  # Windows keeps the names of files that are in use
        import atexit

        atexit.register(Path(name).unlink, missing_ok=True)


def chunk_bounds(stops: Array, n_entries: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield (first row, row after the last) of runs of rows that have some entries at most.

    Parameters
    ----------
    stops : ndarray of int, shape (n_rows + 1,)
        Where rows stop among all entries, 0 first: the indptr of a CSR matrix.
    n_entries : int, optional
        Half a million by default. A row with more is a run of its own.

    Examples
    --------
    >>> list(chunk_bounds(np.array([0, 2, 3, 9, 10]), 4))
    [(0, 2), (2, 3), (3, 4)]
    """
    start, n_rows = 0, len(stops) - 1
    n_entries = CHUNK_ENTRIES if n_entries is None else n_entries
    while start < n_rows:
        fitting = int(np.searchsorted(stops, stops[start] + n_entries, side="right")) - 1
        stop = min(max(fitting, start + 1), n_rows)
        yield start, stop
        start = stop


def row_chunks(X: Any, n_entries: int | None = None) -> Iterator[tuple[int, int, sparse.csr_array]]:
    """Yield (start, stop, rows) over a CSR matrix; the rows are views that must not be changed.

    Examples
    --------
    >>> [rows.toarray().tolist() for _, _, rows in row_chunks(sparse.csr_array(np.eye(2)), 1)]
    [[[1.0, 0.0]], [[0.0, 1.0]]]
    """
    for start, stop in chunk_bounds(X.indptr, n_entries):
        mine = slice(X.indptr[start], X.indptr[stop])
        parts = (X.data[mine], X.indices[mine], X.indptr[start : stop + 1] - X.indptr[start])
        yield start, stop, sparse.csr_array(parts, shape=(stop - start, X.shape[1]))


def run_sums(values: Array, stops: Array) -> Array:
    """Return the sums of runs of values, such as the entries of every row.

    Parameters
    ----------
    values : ndarray
    stops : ndarray of int, shape (n_runs + 1,)
        Where runs stop, 0 first: the indptr of a CSR matrix.

    Examples
    --------
    >>> run_sums(np.array([1, 2, 3]), np.array([0, 2, 2, 3]))
    array([3, 0, 3])
    """
    sums = np.zeros(len(stops) - 1, dtype=values.dtype)
    used = np.flatnonzero(np.diff(stops))
    if used.size:
        sums[used] = np.add.reduceat(values, stops[used])
    return sums


def stack_rows(
    pieces: Iterable[Any], shape: tuple[int, int], n_entries: int, *, beside: Any
) -> sparse.csr_array:
    """Return CSR pieces below one another in float32, mapped if ``beside`` is.

    Parameters
    ----------
    pieces : iterable of CSR matrices
    shape : (n_rows, n_columns)
    n_entries : int
        Of all pieces together.
    beside : array or sparse matrix
        What they are made from; a mapped result goes to the folder of its file.

    Examples
    --------
    >>> stack_rows([sparse.csr_array([[0, 1]])] * 2, (2, 2), 2, beside=np.zeros(1)).toarray()
    array([[0., 1.],
           [0., 1.]], dtype=float32)
    """
    kind = index_type(n_entries)
    data = empty_beside(beside, n_entries, np.float32)
    indices = empty_beside(beside, n_entries, kind)
    indptr = np.zeros(shape[0] + 1, dtype=kind)
    row = entry = 0
    for piece in pieces:
        stop = entry + piece.nnz
        data[entry:stop], indices[entry:stop] = piece.data, piece.indices
        indptr[row + 1 : row + 1 + piece.shape[0]] = piece.indptr[1:].astype(kind) + entry
        row, entry = row + piece.shape[0], stop
    return sparse.csr_array((data, indices, indptr), shape=shape)


def by_column(X: Any) -> sparse.csc_array:
    """Return a CSR matrix in CSC form, rows in order within every column; mapped if X is.

    Of a mapped one a run of rows is turned at a time, and each column continued where the rows
    before have left it.

    Examples
    --------
    >>> by_column(sparse.csr_array([[0, 1], [2, 3]])).data
    array([2, 1, 3])
    """
    if not is_mapped(X):
        return X.tocsc()
    n_users = np.zeros(X.shape[1], dtype=np.int64)
    for _, _, rows in row_chunks(X):
        n_users += np.bincount(rows.indices, minlength=X.shape[1])
    stops = np.append(0, np.cumsum(n_users))
    kind = index_type(X.nnz)
    data, indices = empty_beside(X, X.nnz, X.dtype), empty_beside(X, X.nnz, kind)
    following = stops[:-1].copy()
    for start, _, rows in row_chunks(X, COLUMN_ENTRIES):
        turned = rows.tocsc()
        places = continued(following, turned.indptr)
        data[places], indices[places] = turned.data, turned.indices + start
    return sparse.csc_array((data, indices, stops.astype(kind)), shape=X.shape)


def continued(following: NDArray[np.int64], stops: Array) -> NDArray[np.int64]:
    """Return where entries go that continue every column, and move on where the next will follow.

    Parameters
    ----------
    following : ndarray of int64, shape (n_columns,)
        Where each column's next entry goes.
    stops : ndarray of int, shape (n_columns + 1,)
        Where columns stop among the entries, 0 first: the indptr of a CSC matrix.

    Examples
    --------
    >>> following = np.array([0, 10])
    >>> continued(following, np.array([0, 1, 3])), following
    (array([ 0, 10, 11]), array([ 1, 12]))
    """
    n_new = np.diff(stops)
    places = np.repeat(following - stops[:-1], n_new)
    places += np.arange(places.size)
    following += n_new
    return places


def take_rows(X: Any, rows: Any) -> Any:
    """Return some rows, as ``X[rows]`` does; mapped if X is.

    Parameters
    ----------
    X : ndarray or CSR matrix
    rows : slice, mask, or ndarray of int

    Examples
    --------
    >>> take_rows(sparse.csr_array(np.eye(2)), [1]).toarray()
    array([[0., 1.]])
    """
    if not (sparse.issparse(X) and is_mapped(X)):
        return X[rows]
    positions = np.arange(X.shape[0])[rows]
    stops = np.append(0, np.cumsum(np.diff(X.indptr)[positions], dtype=np.int64))
    pieces = (X[positions[start:stop]] for start, stop in chunk_bounds(stops))
    return stack_rows(pieces, (positions.size, X.shape[1]), int(stops[-1]), beside=X)


def cast(array: Array, dtype: DTypeLike) -> Array:
    """Return an array as this type, itself where it is; mapped if it was.

    Examples
    --------
    >>> cast(np.arange(2), np.float32)
    array([0., 1.], dtype=float32)
    """
    folder = mapped_folder(array)
    if folder is None or array.dtype == dtype:
        return np.asarray(array).astype(dtype, copy=False)
    result = scratch_array(array.shape, dtype, folder)
    for start in range(0, len(array), CHUNK_ENTRIES):
        result[start : start + CHUNK_ENTRIES] = array[start : start + CHUNK_ENTRIES]
    return np.asarray(result)


def index_type(n_entries: int) -> type[np.int32 | np.int64]:
    """Return the type that scipy wants for all indices of a matrix with so many entries.

    Examples
    --------
    >>> index_type(2**31).__name__
    'int64'
    """
    return np.int32 if n_entries <= np.iinfo(np.int32).max else np.int64


def empty_beside(beside: Any, n_items: int, dtype: DTypeLike) -> Array:
    """Return a new array whose items are to be set, mapped if ``beside`` is.

    Examples
    --------
    >>> empty_beside(np.zeros(1), 3, np.int32).shape
    (3,)
    """
    folder = mapped_folder(beside)
    return np.empty(n_items, dtype) if folder is None else scratch_array(n_items, dtype, folder)
