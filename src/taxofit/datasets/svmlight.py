"""Reading svmlight (libsvm, LSHTC) files: ``label feature:value feature:value ...`` a line."""

from __future__ import annotations

import math
from codecs import BOM_UTF8
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np
import pandas as pd
from scipy import sparse

from taxofit.datasets import svmlight_kernel as kernel
from taxofit.datasets.dataset import Dataset, settle_internal_labels
from taxofit.datasets.files import MAX_LINE_BYTES, name_of, open_bytes
from taxofit.errors import DataError, TaxonomyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    from taxofit.datasets.dataset import InternalLabels
    from taxofit.datasets.files import FileOrStream, FilePath
    from taxofit.taxonomy import Taxonomy

    IntArray = NDArray[np.int64]

__all__ = ["SvmlightRows", "iter_svmlight", "parse_file", "read_svmlight"]

CHUNK_BYTES = 8 * 2**20
N_CHARACTERS_SHOWN = 40

PROBLEMS = {
    kernel.BAD_FEATURE: "expected feature:value but found",
    kernel.BAD_VALUE: "expected feature:value with a finite number but found",
    kernel.LARGE_ID: "a feature id has at most 18 digits but this is",
    kernel.NO_LABEL: "expected a label before the features but found",
    kernel.BAD_LABEL: "expected one more label after the comma but found",
    kernel.SEVERAL_LABELS: "several labels where one is expected; pass multilabel=True to read",
}


@dataclass(frozen=True, slots=True, eq=False)
class SvmlightRows:
    """The rows of svmlight files; ``to_dataset`` joins them with a taxonomy.

    Attributes
    ----------
    X : csr_matrix of float64, shape (n_rows, n_columns)
    y : ndarray, shape (n_rows,)
        int64 where all labels are integers, else texts as objects; tuples where multilabel.
    feature_ids : ndarray of int64, shape (n_columns,)
        The file's id of every column. Pass it as ``feature_ids=`` to read test rows alike.
    origins : tuple of (str, ndarray of int64)
        Every file and the line of each of its rows.
    n_dropped : int
        Entries left out because their feature was not among the given ``feature_ids``.
    """

    X: sparse.csr_matrix
    y: NDArray[Any]
    feature_ids: IntArray
    origins: tuple[tuple[str, IntArray], ...]
    n_dropped: int = 0

    def to_dataset(
        self,
        taxonomy: Taxonomy,
        *,
        name: str | None = None,
        internal_labels: InternalLabels = "error",
    ) -> Dataset:
        """Return these rows as a Dataset whose labels the taxonomy knows.

        A label it does not have, several labels in a row, and, unless ``internal_labels`` is
        ``"drop"`` or ``"keep"``, the label of an internal node are DataErrors that name the line.
        """
        for row, label in enumerate(self.y.tolist()):
            if isinstance(label, tuple):
                raise DataError(f"{self.locate(row)}: labels {label!r}; a Dataset has one a row")
            if label not in taxonomy:
                try:
                    taxonomy.node_of(label)
                except TaxonomyError as error:
                    raise DataError(f"{self.locate(row)}: {error}") from None
        if name is None:
            name = Path(self.origins[0][0]).name.split(".")[0]
        note = f"left out {self.n_dropped} entries of features unknown in training"
        notes = (note,) if self.n_dropped else ()
        dataset = Dataset(self.X, self.y, taxonomy, name, notes)
        return settle_internal_labels(dataset, internal_labels, locate=self.locate)

    def locate(self, row: int) -> str:
        """Return where a row comes from, as ``'train.txt:17'``."""
        for name, lines in self.origins:
            if row < len(lines):
                return f"{name}:{lines[row]}"
            row -= len(lines)
        raise IndexError(row)

    def __repr__(self) -> str:
        return (
            f"SvmlightRows({self.X.shape[0]} rows, {self.X.shape[1]} columns, {self.X.nnz} entries)"
        )


def read_svmlight(
    path: FilePath | Sequence[FilePath],
    *,
    n_features: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    ignore_features: Sequence[int] = (),
    multilabel: bool = False,
    compact: bool = False,
    feature_ids: ArrayLike | None = None,
) -> SvmlightRows:
    r"""Return the rows of one svmlight file, or of several one after the other.

    Gzip is unpacked on the way. Blank lines and what follows a ``#`` are skipped, ``qid:3`` is
    ignored. Ids need not be sorted; values of an id that occurs twice in a row are *summed*, as
    counts of a word found in two parts of a document are. Values must be finite.

    Parameters
    ----------
    path : path or sequence of paths
    n_features : int, optional
        Number of columns; an id beyond them is an error. Found from the data by default.
    zero_based : bool or "auto"
        Whether id 0 is the first column, or id 1. ``"auto"`` is True where an id 0 is left after
        ``ignore_features``.
    ignore_features : sequence of int
        Ids to skip; LSHTC's files hide a document number in feature 0.
    multilabel : bool
        Labels are then tuples: ``12,34 5:1`` gives ``(12, 34)``.
    compact : bool
        Give columns only to ids that occur, in ascending order: LSHTC's ids go up to millions.
    feature_ids : array of int, optional
        The id of every column, as found in another file; entries of other ids are left out and
        counted.

    Returns
    -------
    SvmlightRows
        Labels are integers where all are written as such (``007`` is not), else texts.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "train.txt")
    ...     _ = file.write_text("29 0:202 127003:1 719094:2\n33 0:256 719094:1\n")
    ...     rows = read_svmlight(file, ignore_features=[0], compact=True)
    >>> rows
    SvmlightRows(2 rows, 2 columns, 3 entries)
    >>> rows.y.tolist(), rows.feature_ids.tolist()
    ([29, 33], [127003, 719094])
    """
    paths = [path] if isinstance(path, (str, PathLike)) else list(path)
    chunks: list[kernel.ParsedLines] = []
    origins: list[tuple[str, IntArray]] = []
    for file in paths:
        found = list(parse_file(file, multilabel=multilabel))
        origins.append((fspath(file), _joined([chunk.row_lines for chunk in found])))
        chunks += found
    row_stops = _running([chunk.row_stops for chunk in chunks], [len(c.ids) for c in chunks])
    if not len(row_stops):
        raise DataError(f"{', '.join(str(file) for file in paths) or 'no files'}: no rows to read")
    y = _labels(chunks, multilabel=multilabel)
    ids = _joined([chunk.ids for chunk in chunks])
    values = np.concatenate([chunk.numbers for chunk in chunks])
    del chunks
    if len(ignore_features):
        ids, values, row_stops = _keep(~np.isin(ids, ignore_features), ids, values, row_stops)
    n_read = len(ids)
    if feature_ids is not None:
        known = _check_feature_ids(feature_ids)
    elif compact:
        known = np.sort(pd.unique(ids))
    else:
        known = _all_ids(ids, n_features, zero_based=zero_based)
    if compact or feature_ids is not None:
        columns = pd.Index(known).get_indexer(pd.Index(ids)).astype(np.int64, copy=False)
        columns, values, row_stops = _keep(columns >= 0, columns, values, row_stops)
    else:
        columns = ids - known[0] if len(known) else ids
    row_starts = np.concatenate([[0], row_stops])
    X = sparse.csr_matrix((values, columns, row_starts), shape=(len(row_stops), len(known)))
    X.sum_duplicates()
    return SvmlightRows(X, y, known, tuple(origins), n_read - len(columns))


def iter_svmlight(
    path: FileOrStream, *, feature_ids: ArrayLike, ignore_features: Sequence[int] = ()
) -> Iterator[sparse.csr_matrix]:
    r"""Yield the rows of an svmlight file over known features, some megabytes of text at a time.

    Every line that is not blank is a row, in order, whatever its labels; memory does not grow with
    the file.

    Parameters
    ----------
    path : path or open stream
    feature_ids : array of int
        The id of every column; entries of other ids are left out.
    ignore_features : sequence of int
        Ids to skip.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "new.txt")
    ...     _ = file.write_text("0 7:1 9:5\n0 3:2\n")
    ...     [X.toarray().tolist() for X in iter_svmlight(file, feature_ids=[3, 7])]
    [[[0.0, 1.0], [2.0, 0.0]]]
    """
    known = pd.Index(_check_feature_ids(feature_ids))
    is_empty = True
    for chunk in parse_file(path, multilabel=True, chunk_bytes=CHUNK_BYTES):
        if not len(chunk.row_stops):
            continue
        is_empty = False
        ids, values, row_stops = chunk.ids, chunk.numbers, chunk.row_stops
        columns = known.get_indexer(pd.Index(ids)).astype(np.int64, copy=False)
        is_wanted = (columns >= 0) & ~np.isin(ids, ignore_features)
        columns, values, row_stops = _keep(is_wanted, columns, values, row_stops)
        shape = (len(row_stops), len(known))
        X = sparse.csr_matrix((values, columns, np.concatenate([[0], row_stops])), shape=shape)
        X.sum_duplicates()
        yield X
    if is_empty:
        raise DataError(f"{name_of(path)}: no rows to read")


def parse_file(
    path: FileOrStream, *, multilabel: bool = False, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[kernel.ParsedLines]:
    """Yield the rows of a file some at a time, with their lines counted from its start."""
    n_lines = 0
    for text in _whole_lines(path, chunk_bytes):
        parsed = kernel.parse_lines(text, multilabel=multilabel)
        what, line, line_start, start, stop = parsed.problem
        if what != kernel.FINE:
            place = (n_lines + line, start - line_start + 1)
            _fail(path, place, PROBLEMS[what], text[start:stop])
        for entry, line, line_start, start, stop in parsed.hard.tolist():
            value = parsed.numbers[entry] = float(text[start:stop])
            if not math.isfinite(value):
                place = (n_lines + line, start - line_start + 1)
                _fail(path, place, PROBLEMS[kernel.BAD_VALUE], text[start:stop])
        yield parsed._replace(row_lines=parsed.row_lines + n_lines)
        n_lines += parsed.n_lines


def _fail(path: FileOrStream, place: tuple[int, int], what: str, token: bytes) -> NoReturn:
    found = token.decode("utf-8", "replace")
    if len(found) > N_CHARACTERS_SHOWN:
        found = found[:N_CHARACTERS_SHOWN] + "…"
    shown = repr(found) if found else "the end of the line"
    raise DataError(f"{name_of(path)}:{place[0]}: {what} {shown} (column {place[1]})")


def _whole_lines(path: FileOrStream, chunk_bytes: int) -> Iterator[bytes]:
    """Yield the file in chunks that end with a newline."""
    n_lines = 0
    with open_bytes(path) as handle:
        rest = handle.read(len(BOM_UTF8)).removeprefix(BOM_UTF8)
        while block := handle.read(chunk_bytes):
            block = rest + block
            cut = block.rfind(b"\n") + 1
            rest = block[cut:]
            if len(rest) > MAX_LINE_BYTES:
                n_lines += block.count(b"\n") + 1
                raise DataError(
                    f"{name_of(path)}:{n_lines}: a line of more than {MAX_LINE_BYTES // 2**20} MB; "
                    f"is this an svmlight file?"
                )
            if cut:
                n_lines += block.count(b"\n")
                yield block[:cut]
    if rest:
        yield rest


def _joined(arrays: Sequence[IntArray]) -> IntArray:
    return np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int64)


def _running(stops: Sequence[IntArray], sizes: Sequence[int]) -> IntArray:
    """Return stops within chunks as stops within all chunks in a row."""
    before = np.cumsum([0, *sizes])
    return _joined([stop + start for stop, start in zip(stops, before, strict=False)])


def _keep(
    mask: NDArray[np.bool_], ids: IntArray, values: NDArray[np.float64], row_stops: IntArray
) -> tuple[IntArray, NDArray[np.float64], IntArray]:
    """Entries under the mask, and where rows stop among them."""
    if mask.all():
        return ids, values, row_stops
    n_kept = np.concatenate([[0], np.cumsum(mask)])
    return ids[mask], values[mask], n_kept[row_stops]


def _labels(chunks: Sequence[kernel.ParsedLines], *, multilabel: bool) -> NDArray[Any]:
    flat: Any
    if any(chunk.has_text_labels for chunk in chunks):
        text = b"".join(chunk.label_text.tobytes() for chunk in chunks)
        flat = np.array(text.decode("utf-8", "replace").split("\n")[:-1], dtype=object)
    else:
        flat = np.concatenate([chunk.labels for chunk in chunks])
    if not multilabel:
        return np.asarray(flat)
    stops = _running([c.label_stops for c in chunks], [len(c.labels) for c in chunks]).tolist()
    listed = flat.tolist()
    rows = np.empty(len(stops), dtype=object)
    rows[:] = [
        tuple(listed[start:stop]) for start, stop in zip([0, *stops[:-1]], stops, strict=True)
    ]
    return rows


def _check_feature_ids(feature_ids: ArrayLike) -> IntArray:
    known = np.asarray(feature_ids)
    if known.ndim != 1 or not np.issubdtype(known.dtype, np.integer):
        raise DataError("feature_ids must be a one-dimensional array of integers, one a column")
    if len(pd.unique(known)) < len(known):
        raise DataError("feature_ids names a feature twice; give every column an id of its own")
    return known.astype(np.int64)


def _all_ids(
    ids: IntArray, n_features: int | None, *, zero_based: bool | Literal["auto"]
) -> IntArray:
    """Return consecutive ids for all columns, from 0 or from 1."""
    smallest = int(ids.min()) if ids.size else 1
    largest = int(ids.max()) if ids.size else 0
    is_zero_based = smallest == 0 if zero_based == "auto" else zero_based
    first = 0 if is_zero_based else 1
    if smallest < first:
        raise DataError("there is a feature 0 but zero_based is False; pass zero_based=True")
    n_found = largest + 1 - first
    if n_features is not None and n_found > n_features:
        raise DataError(
            f"feature {largest} needs {n_found} columns but n_features is {n_features}; "
            f"raise it, or pass feature_ids= to leave unknown features out"
        )
    n_columns = n_found if n_features is None else n_features
    return np.arange(first, first + n_columns, dtype=np.int64)
