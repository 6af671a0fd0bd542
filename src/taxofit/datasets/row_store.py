"""Rows on disk: a folder of plain .npy files that a fit maps instead of reading.

``indptr.npy``, ``indices.npy`` and ``data.npy`` are the rows in CSR, ``codes.npy`` gives the label
of each as a place in the manifest's list, ``feature_ids.npy`` names the columns of svmlight files.
``manifest.json`` has the format's version, sizes, labels, checksums and what the rows were made
from; the arrays of an encoder are in ``encoder.safetensors``. File names are fixed here, never read
from a manifest, and nothing is ever unpickled.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file
from scipy import sparse

from taxofit._version import __version__
from taxofit.datasets.dataset import Dataset, settle_internal_labels
from taxofit.datasets.features import encoder_from_state
from taxofit.datasets.label_paths import labels_in, labels_of_paths, path_of, paths_of_levels
from taxofit.datasets.mapped import CHUNK_ENTRIES, cast, index_type
from taxofit.errors import DataError, TaxofitError, TaxonomyError

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from taxofit.datasets.dataset import InternalLabels
    from taxofit.taxonomy import Taxonomy

__all__ = ["RowStore", "fingerprint", "open_store", "read_store_manifest"]

FORMAT, FORMAT_VERSION = "taxofit-rows", 1
MANIFEST, ENCODER = "manifest.json", "encoder.safetensors"
MAX_MANIFEST_BYTES = 1 << 30
ROWS = ("indptr", "indices", "data", "codes")


@dataclass(frozen=True, eq=False)
class RowStore:
    """The rows of a store, mapped; ``to_dataset`` joins them with a taxonomy.

    Attributes
    ----------
    folder : Path
    X : csr_array of float32, shape (n_rows, n_features)
        Over files: nothing is in memory but where rows start.
    codes : ndarray of int32, shape (n_rows,)
        The label of every row, as a place in ``labels``.
    labels : tuple
        Distinct labels as the file has them; tuples where it has one column a level.
    labels_are : {"labels", "paths", "levels"}
        ``"labels"`` name nodes, ``"paths"`` are to be split at the separator.
    separator : str or None
    first_lines : tuple of int
        Where each label first stands in the file.
    has_lines : bool
        Whether these are lines of text; else rows.
    source : str
        The file's name as it was given.
    feature_ids : ndarray of int64 or None
        The svmlight feature behind each column.
    encoder : transformer or None
        The fitted encoder that the rows have been through.
    notes : tuple of str
        What was guessed when they were converted.
    made_from : dict
        The file and the settings that the store answers to.
    """

    folder: Path
    X: sparse.csr_array
    codes: NDArray[np.int32]
    labels: tuple[Hashable, ...]
    labels_are: str
    separator: str | None
    first_lines: tuple[int, ...]
    has_lines: bool
    source: str
    feature_ids: NDArray[np.int64] | None
    encoder: Any
    notes: tuple[str, ...]
    made_from: dict[str, Any]

    def locate(self, row: int) -> str:
        """Return where the first row with the label of this one is, as ``'train.txt:17'``."""
        return self._locate_label(int(self.codes[row]))

    def to_dataset(
        self, taxonomy: Taxonomy | None = None, *, internal_labels: InternalLabels = "error"
    ) -> Dataset:
        """Return the rows as a Dataset; without a taxonomy it is made from the labels' paths.

        Errors are those of :meth:`SvmlightRows.to_dataset
        <taxofit.datasets.SvmlightRows.to_dataset>`.
        """
        known, taxonomy = self._known_labels(taxonomy)
        if all(isinstance(label, int) for label in known):
            known = known.astype(np.int64)
        name = Path(self.source).name.split(".")[0]
        dataset = Dataset(self.X, known[self.codes], taxonomy, name, self.notes)
        return settle_internal_labels(dataset, internal_labels, locate=self.locate)

    def _known_labels(self, taxonomy: Taxonomy | None) -> tuple[NDArray[Any], Taxonomy]:
        """Return each of ``labels`` as a label of the taxonomy, and the taxonomy."""
        locate = self._locate_label
        if self.labels_are == "labels":
            if taxonomy is None:
                raise DataError(f"{self.source}: svmlight files have no taxonomy in them")
            known = np.empty(len(self.labels), dtype=object)
            known[:] = self.labels
            for code, label in enumerate(self.labels):
                try:
                    taxonomy.node_of(label)
                except TaxonomyError as error:
                    raise DataError(f"{locate(code)}: {error}") from None
            return known, taxonomy
        if self.labels_are == "paths" and taxonomy is not None:
            return labels_in(self.labels, taxonomy, self.separator, locate=locate), taxonomy
        if self.labels_are == "levels":
            columns = list(zip(*self.labels, strict=True))
            return labels_of_paths(paths_of_levels(columns), taxonomy, locate=locate)
        paths = [path_of(value, self.separator) for value in self.labels]
        return labels_of_paths(paths, None, locate=locate)

    def _locate_label(self, code: int) -> str:
        return f"{self.source}:{'' if self.has_lines else ' row '}{self.first_lines[code]}"

    def __repr__(self) -> str:
        return (
            f"RowStore({str(self.folder)!r}, {self.X.shape[0]} rows, {self.X.shape[1]} columns, "
            f"{self.X.nnz} entries)"
        )


def open_store(folder: str | Path) -> RowStore:
    """Return the rows of a store; a DataError says what is wrong with it.

    Every byte is compared with its checksum once, in passing: a fit reads it hundreds of times.
    """
    folder = Path(folder)
    manifest = read_store_manifest(folder)
    try:
        return _opened(folder, manifest)
    except FileNotFoundError as error:
        raise DataError(f"{folder} is incomplete: {error.filename} is missing") from None
    except OSError as error:
        raise DataError(f"{folder} cannot be read ({error.strerror or error})") from None
    except DataError:
        raise
    except (
        TaxofitError,
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        SafetensorError,
    ) as error:
        raise DataError(f"{folder} is damaged ({error}); convert the file again") from error


def read_store_manifest(folder: str | Path) -> dict[str, Any]:
    """Return the manifest of a store, checked for format and version only."""
    path = Path(folder) / MANIFEST
    try:
        if path.stat().st_size > MAX_MANIFEST_BYTES:
            raise DataError(f"{path} is too large to be the manifest of a store")
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{folder} is not a store of rows: it has no {MANIFEST}") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror})") from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise DataError(f"{path} is damaged ({error}); convert the file again") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise DataError(f"{folder} is not a store of rows; choose another folder")
    version = manifest.get("format_version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise DataError(
            f"{folder} was written by taxofit {manifest.get('taxofit_version')} in format "
            f"{version}; this is taxofit {__version__}, which reads formats up to "
            f"{FORMAT_VERSION}: upgrade it"
        )
    return manifest


def _mapped(path: Path, mode: Any = "r") -> NDArray[Any]:
    return np.load(path, mmap_mode=mode, allow_pickle=False)


def _csr(arrays: dict[str, NDArray[Any]], shape: tuple[int, int]) -> sparse.csr_array:
    """Return mapped arrays as a matrix; scipy copies indices that are not of its own choice."""
    kind = index_type(arrays["indices"].size)
    indices, indptr = cast(arrays["indices"], kind), arrays["indptr"].astype(kind)
    return sparse.csr_array((arrays["data"], indices, indptr), shape=shape)


def _opened(folder: Path, manifest: dict[str, Any]) -> RowStore:
    n_features, labels = int(manifest["features"]), manifest["labels"]
    _check_files(folder, manifest["files"])
    arrays = _checked_rows(folder, manifest)
    feature_ids, encoder = None, None
    if "feature_ids.npy" in manifest["files"]:
        feature_ids = np.load(folder / "feature_ids.npy", allow_pickle=False)
        if feature_ids.shape != (n_features,):
            raise DataError(f"{folder / 'feature_ids.npy'} is damaged: not one id a column")
    if "encoder" in manifest:
        encoder = encoder_from_state(manifest["encoder"], load_file(folder / ENCODER))
    if len(manifest["first_lines"]) != len(labels):
        raise DataError(f"{folder / MANIFEST} is damaged: not one line a label")
    return RowStore(
        folder=folder,
        X=_csr(arrays, (int(manifest["rows"]), n_features)),
        codes=np.array(arrays["codes"]),
        labels=tuple(tuple(label) if isinstance(label, list) else label for label in labels),
        labels_are=str(manifest["labels_are"]),
        separator=manifest["separator"],
        first_lines=tuple(manifest["first_lines"]),
        has_lines=bool(manifest["has_lines"]),
        source=str(manifest["source"]),
        feature_ids=feature_ids,
        encoder=encoder,
        notes=tuple(manifest["notes"]),
        made_from=manifest["made_from"],
    )


def _check_files(folder: Path, files: dict[str, Any]) -> None:
    missing = {f"{name}.npy" for name in ROWS} - set(files)
    if missing:
        raise DataError(f"{folder} is incomplete: {min(missing)} is missing")
    for name, expected in files.items():
        if Path(name).name != name or fingerprint(folder / name) != expected:
            raise DataError(
                f"{folder / name} is damaged or was changed: it does not match its checksum in "
                f"{MANIFEST}; convert the file again"
            )


def _checked_rows(folder: Path, manifest: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """Return the mapped arrays; compiled loops trust them, so they are not taken on trust."""
    arrays = {name: _mapped(folder / f"{name}.npy") for name in ROWS}
    n_rows, n_entries = int(manifest["rows"]), int(manifest["entries"])
    sizes = {"indptr": n_rows + 1, "indices": n_entries, "data": n_entries, "codes": n_rows}
    kinds = {"indptr": "<i8", "indices": "<i4", "data": "<f4", "codes": "<i4"}
    for name, array in arrays.items():
        if array.shape != (sizes[name],) or array.dtype.str != kinds[name]:
            raise DataError(f"{folder / name}.npy is damaged: its size is not that of {MANIFEST}")
    stops = arrays["indptr"]
    if stops[0] != 0 or stops[-1] != n_entries or (np.diff(stops) < 0).any():
        raise DataError(f"{folder / 'indptr.npy'} is damaged: rows do not follow one another")
    _check_range(folder / "indices.npy", arrays["indices"], int(manifest["features"]))
    _check_range(folder / "codes.npy", arrays["codes"], len(manifest["labels"]))
    return arrays


def _check_range(path: Path, values: NDArray[Any], stop: int) -> None:
    for start in range(0, values.size, CHUNK_ENTRIES):
        part = values[start : start + CHUNK_ENTRIES]
        if part.min() < 0 or part.max() >= stop:
            raise DataError(f"{path} is damaged: it points beyond its {stop} columns or labels")


def fingerprint(path: Path) -> dict[str, Any]:
    """Return size and checksum of a file."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": digest}
