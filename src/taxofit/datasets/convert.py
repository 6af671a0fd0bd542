"""From files larger than memory to stores that a fit maps: read once, a piece at a time."""

from __future__ import annotations

from os import fspath
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import sparse

from taxofit.datasets.row_store import open_store
from taxofit.datasets.row_store_writer import RowStoreWriter
from taxofit.datasets.svmlight import parse_file
from taxofit.datasets.table_chunks import is_missing, iter_table
from taxofit.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from taxofit.datasets.features import ColumnScaler, CountEncoder
    from taxofit.datasets.files import FilePath
    from taxofit.datasets.row_store import RowStore
    from taxofit.datasets.svmlight_kernel import ParsedLines
    from taxofit.datasets.text_encoder import TextEncoder

    Progress = Callable[[int], None]

__all__ = ["convert_svmlight", "convert_table"]

TEXT_BYTES = 1 << 20  # of svmlight text parsed at a time: some 20 MB with all that is made of it
CHUNK_ROWS = 2_000


def convert_svmlight(
    path: FilePath,
    folder: str | Path,
    *,
    ignore_features: Sequence[int] = (),
    encoder: CountEncoder | ColumnScaler | None = None,
    made_from: dict[str, Any] | None = None,
    progress: Progress | None = None,
) -> RowStore:
    r"""Write the rows of an svmlight file to a store and return it, mapped.

    Rows are those of :func:`read_svmlight` with ``compact=True``: a column for every feature that
    occurs, in order of their ids, values of an id that occurs twice in a row summed. Memory is
    bounded by a megabyte of text, the labels and the features.

    Parameters
    ----------
    path : path
    folder : path
        An earlier store there is replaced.
    ignore_features : sequence of int
        Ids to skip.
    encoder : CountEncoder or ColumnScaler, optional
        Fitted on the rows, which are kept encoded; the store keeps it.
    made_from : dict, optional
        JSON values to know the store by.
    progress : callable, optional
        Called with the rows written so far.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "train.svm")
    ...     _ = file.write_text("29 127003:1 719094:2\n33 719094:1\n")
    ...     store = convert_svmlight(file, pathlib.Path(folder, "store"))
    ...     store.X.toarray().tolist(), store.feature_ids.tolist(), store.labels
    ([[1.0, 2.0], [0.0, 1.0]], [127003, 719094], (29, 33))
    """
    columns, labels = _Numbering(), _Numbering()
    are_integers = True
    with RowStoreWriter(folder) as writer:
        for lines in parse_file(path, chunk_bytes=TEXT_BYTES):
            if lines.row_stops.size:
                X = _rows_of(lines, columns, ignore_features)
                texts = lines.label_text.tobytes().decode("utf-8", "replace").split("\n")[:-1]
                writer.append(X, labels.number(np.array(texts, dtype=object), lines.row_lines))
                are_integers &= not lines.has_text_labels
                _tell(progress, writer.n_rows)
        if not writer.n_rows:
            raise DataError(f"{fspath(path)}: no rows to read")
        ids = np.array(columns.found, dtype=np.int64)
        if not ids.size:
            raise DataError(f"{fspath(path)}: the rows have labels but no features")
        order = np.argsort(ids)
        place = np.empty(ids.size, dtype=np.int32)
        place[order] = np.arange(ids.size)
        writer.rewrite(lambda rows: _with_columns(rows, place), ids.size)
        _encode(writer, encoder, ids.size)
        writer.finish(
            n_features=ids.size,
            labels=[int(str(text)) for text in labels.found] if are_integers else labels.found,
            first_lines=labels.first_lines,
            source=fspath(path),
            feature_ids=ids[order],
            encoder=encoder,
            made_from=made_from,
        )
    return open_store(folder)


def convert_table(
    path: FilePath,
    folder: str | Path,
    *,
    text: Sequence[str] = (),
    numeric: Sequence[str] = (),
    label_path: str | None = None,
    levels: Sequence[str] = (),
    separator: str | None = None,
    encoder: TextEncoder | ColumnScaler | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    made_from: dict[str, Any] | None = None,
    progress: Progress | None = None,
) -> RowStore:
    r"""Write the rows of a CSV, TSV or Parquet table to a store and return it, mapped.

    Texts are read twice: the encoder learns its terms and their frequencies first, then every chunk
    is encoded and written. Numbers are kept as float32, without zeros.

    Parameters
    ----------
    path, text, numeric, label_path, levels, separator, encoding, delimiter
        As in :func:`read_table`; the separator is not guessed.
    folder, made_from, progress
        As in :func:`convert_svmlight`.
    encoder : TextEncoder or ColumnScaler, optional
        Texts need one; numbers may go through a scaler.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from taxofit.datasets import TextEncoder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "shop.csv")
    ...     _ = file.write_text("title,category\nKettle,Home > Kettles\nGuppy,Pets > Fish\n")
    ...     store = convert_table(
    ...         file,
    ...         pathlib.Path(folder, "store"),
    ...         text=["title"],
    ...         label_path="category",
    ...         separator=" > ",
    ...         encoder=TextEncoder(),
    ...     )
    ...     store.to_dataset()
    Dataset('shop', 2 rows, 2 features, 2 of 2 leaves seen)
    """
    if bool(text) == bool(numeric) or (label_path is None) == (not levels):
        raise DataError("name columns of texts or of numbers, and label_path or levels")
    if text and encoder is None:
        raise DataError("texts need an encoder, for example taxofit.datasets.TextEncoder()")
    label_columns = list(levels) if label_path is None else [label_path]
    columns = list(dict.fromkeys((*text, *numeric, *label_columns)))

    def chunks() -> Iterator[Any]:
        yield from iter_table(
            path, columns, chunk_rows=CHUNK_ROWS, encoding=encoding, delimiter=delimiter
        )

    if text:
        encoder.fit_chunks(chunk.texts(text) for chunk in chunks())  # type: ignore[union-attr]
    labels, notes = _Numbering(), ()
    with RowStoreWriter(folder) as writer:
        for chunk in chunks():
            if text:
                X = encoder.transform(chunk.texts(text))  # type: ignore[union-attr]
            else:
                X = sparse.csr_array(chunk.numbers(numeric))
            values = np.empty(chunk.n_rows, dtype=object)
            listed = [_named(chunk.columns[name]) for name in label_columns]
            values[:] = list(zip(*listed, strict=True)) if levels else listed[0]
            writer.append(X, labels.number(values, np.asarray(chunk.lines)))
            notes = chunk.notes
            _tell(progress, writer.n_rows)
        n_features = int(X.shape[1])
        if numeric:
            _encode(writer, encoder, n_features)
        writer.finish(
            n_features=n_features,
            labels=labels.found,
            first_lines=labels.first_lines,
            has_lines=chunk.has_lines,
            labels_are="levels" if label_path is None else "paths",
            separator=separator,
            source=fspath(path),
            encoder=encoder,
            notes=notes,
            made_from=made_from,
        )
    return open_store(folder)


def _named(values: Sequence[Hashable]) -> list[Hashable]:
    return [None if is_missing(value) else value for value in values]


class _Numbering:
    """Numbers for values, in the order in which they first come."""

    def __init__(self) -> None:
        self.found: list[Hashable] = []
        self.first_lines: list[int] = []
        self._number: dict[Hashable, int] = {}

    def number(
        self, values: NDArray[Any], lines: NDArray[np.int64] | None = None
    ) -> NDArray[np.int32]:
        """Return the number of each value, and note the lines of those that are new."""
        codes, distinct = pd.factorize(values, use_na_sentinel=False)
        before = len(self.found)
        for value in distinct.tolist():
            if value not in self._number:
                self._number[value] = len(self.found)
                self.found.append(value)
        numbers = np.array([self._number[value] for value in distinct.tolist()], dtype=np.int32)
        found = numbers[codes]
        if lines is not None and len(self.found) > before:
            new = np.flatnonzero(found >= before)
            _, first = np.unique(found[new], return_index=True)
            self.first_lines += np.asarray(lines)[new[first]].tolist()
        return found


def _rows_of(
    lines: ParsedLines, columns: _Numbering, ignore_features: Sequence[int]
) -> sparse.csr_array:
    """Return parsed lines as rows over columns in order of appearance, without zeros."""
    ids, values = lines.ids, lines.numbers
    stops = np.append(0, lines.row_stops)
    if len(ignore_features):
        kept = ~np.isin(ids, ignore_features)
        ids, values = ids[kept], values[kept]
        stops = np.append(0, np.cumsum(kept))[stops]
    numbers = columns.number(ids)
    shape = (lines.row_stops.size, len(columns.found))
    X = sparse.csr_array((values, numbers, stops.astype(np.int32)), shape=shape)
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


def _with_columns(rows: sparse.csr_array, place: NDArray[np.int32]) -> sparse.csr_array:
    moved = sparse.csr_array((rows.data, place[rows.indices], rows.indptr), shape=rows.shape)
    return moved.sorted_indices()


def _encode(writer: RowStoreWriter, encoder: Any, n_features: int) -> None:
    if encoder is not None:
        encoder.fit_chunks(writer.chunks(n_features))
        writer.rewrite(encoder.transform, n_features)


def _tell(progress: Progress | None, n_rows: int) -> None:
    if progress is not None:
        progress(n_rows)
