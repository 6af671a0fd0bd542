"""Writing rows to disk piece by piece; see :mod:`taxofit.datasets.row_store`."""

from __future__ import annotations

import json
import shutil
import tempfile
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from safetensors.numpy import save_file
from scipy import sparse

from taxofit._version import __version__
from taxofit.datasets.mapped import chunk_bounds
from taxofit.datasets.row_store import (
    ENCODER,
    FORMAT,
    FORMAT_VERSION,
    MANIFEST,
    fingerprint,
    read_store_manifest,
)
from taxofit.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence
    from types import TracebackType
    from typing import Self

    from numpy.typing import DTypeLike, NDArray

__all__ = ["RowStoreWriter"]


class RowStoreWriter:
    """Writes a store piece by piece beside its folder; `finish` moves it into place.

    Where the ``with`` block ends without `finish`, nothing is left behind. An earlier store in the
    folder is replaced, anything else in the way is a DataError.

    Parameters
    ----------
    folder : path

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as place, RowStoreWriter(Path(place, "s")) as writer:
    ...     writer.append(sparse.csr_array([[0.0, 1.0]]), np.array([0]))
    ...     writer.finish(n_features=2, labels=["cat"], first_lines=[1], source="a.svm")
    ...     sorted(file.name for file in Path(place, "s").iterdir())
    ['codes.npy', 'data.npy', 'indices.npy', 'indptr.npy', 'manifest.json']
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)
        _check_replaceable(self._folder)
        self.n_rows = self.n_entries = 0

    def __enter__(self) -> Self:
        try:
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            beside = tempfile.mkdtemp(prefix=f".{self._folder.name}-", dir=self._folder.parent)
        except OSError as error:
            raise DataError(f"{self._folder} cannot be made ({error.strerror})") from None
        self._beside = Path(beside)
        self._new = self._beside / "new"
        self._new.mkdir()
        self._files = {
            "indptr": _GrowingFile(self._new / "indptr.npy", np.int64),
            "indices": _GrowingFile(self._new / "indices.npy", np.int32),
            "data": _GrowingFile(self._new / "data.npy", np.float32),
            "codes": _GrowingFile(self._new / "codes.npy", np.int32),
        }
        self._files["indptr"].append(np.zeros(1))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for file in self._files.values():
            file.close()
        shutil.rmtree(self._beside, ignore_errors=True)
        if isinstance(error, OSError):
            raise DataError(f"{self._folder}: the store cannot be written ({error})") from error

    def append(self, X: Any, codes: NDArray[Any]) -> None:
        """Add CSR rows and their labels' codes."""
        with np.errstate(over="ignore"):
            data = X.data.astype(np.float32)
        if not np.isfinite(data).all():
            raise DataError(
                f"values as large as {float(np.abs(X.data).max()):.3g} are too large to compute "
                f"with; scale the columns first"
            )
        self._files["indices"].append(X.indices)
        self._files["data"].append(data)
        self._files["indptr"].append(X.indptr[1:].astype(np.int64) + self.n_entries)
        self._files["codes"].append(codes)
        self.n_rows, self.n_entries = self.n_rows + X.shape[0], self.n_entries + X.nnz

    def chunks(self, n_features: int) -> Iterator[sparse.csr_array]:
        """Yield all rows, some at a time; no more can be added then."""
        yield from self._chunks(n_features, "r")

    def rewrite(self, change: Callable[[sparse.csr_array], Any], n_features: int) -> None:
        """Put in place of all rows what ``change`` makes of them; it keeps the entries' number."""
        for rows in self._chunks(n_features, "r+"):
            changed = change(rows)
            rows.indices[:], rows.data[:] = changed.indices, changed.data

    def _chunks(self, n_features: int, mode: Any) -> Iterator[sparse.csr_array]:
        for file in self._files.values():
            file.close()
        stops, indices, data = (
            np.load(self._new / f"{name}.npy", mmap_mode=mode, allow_pickle=False)
            for name in ("indptr", "indices", "data")
        )
        for start, stop in chunk_bounds(stops):
            mine = slice(stops[start], stops[stop])
            indptr = (stops[start : stop + 1] - stops[start]).astype(np.int32)
            shape = (stop - start, n_features)
            yield sparse.csr_array((data[mine], indices[mine], indptr), shape=shape)

    def finish(
        self,
        *,
        n_features: int,
        labels: Sequence[Hashable],
        first_lines: Sequence[int],
        source: str,
        labels_are: str = "labels",
        separator: str | None = None,
        has_lines: bool = True,
        feature_ids: NDArray[np.int64] | None = None,
        encoder: Any = None,
        notes: Sequence[str] = (),
        made_from: dict[str, Any] | None = None,
    ) -> None:
        """Write the manifest and move the store into place; as in `RowStore`."""
        for file in self._files.values():
            file.close()
        manifest: dict[str, Any] = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "taxofit_version": __version__,
            "rows": self.n_rows,
            "features": n_features,
            "entries": self.n_entries,
            "labels": [list(label) if isinstance(label, tuple) else label for label in labels],
            "labels_are": labels_are,
            "separator": separator,
            "first_lines": [int(line) for line in first_lines],
            "has_lines": has_lines,
            "source": source,
            "notes": list(notes),
            "made_from": made_from or {},
        }
        if feature_ids is not None:
            np.save(self._new / "feature_ids.npy", feature_ids.astype(np.int64))
        if encoder is not None:
            manifest["encoder"], arrays = encoder.to_state()
            save_file(
                {key: np.ascontiguousarray(a) for key, a in arrays.items()}, self._new / ENCODER
            )
        written = sorted(self._new.iterdir())
        manifest["files"] = {path.name: fingerprint(path) for path in written}
        try:
            text = json.dumps(manifest, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise DataError(f"labels of a store are texts or numbers: {error}") from None
        (self._new / MANIFEST).write_text(text, encoding="utf-8")
        for path in written:  # safetensors lets only the owner read what it writes
            path.chmod((self._new / MANIFEST).stat().st_mode)
        if self._folder.exists():
            self._folder.replace(self._beside / "old")
        self._new.replace(self._folder)


class _GrowingFile:
    """An .npy file of one dimension that is appended to; its heading is written again at the end.

    Every heading that NumPy writes leaves room for a longer shape.
    """

    def __init__(self, path: Path, dtype: DTypeLike) -> None:
        self._dtype, self._n_items = np.dtype(dtype).newbyteorder("<"), 0
        self._file: BinaryIO = path.open("w+b")
        self._file.write(self._heading())

    def append(self, values: NDArray[Any]) -> None:
        self._file.write(np.ascontiguousarray(values, dtype=self._dtype).data)
        self._n_items += len(values)

    def close(self) -> None:
        if not self._file.closed:
            self._file.seek(0)
            self._file.write(self._heading())
            self._file.close()

    def _heading(self) -> bytes:
        heading = BytesIO()
        shape = {"descr": self._dtype.str, "fortran_order": False, "shape": (self._n_items,)}
        np.lib.format.write_array_header_1_0(heading, shape)
        return heading.getvalue()


def _check_replaceable(folder: Path) -> None:
    if folder.is_dir():
        if not any(folder.iterdir()):
            return
        read_store_manifest(folder)
    elif folder.exists() or folder.is_symlink():
        raise DataError(f"{folder} is a file; choose another folder for the store")
