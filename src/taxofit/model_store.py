"""Models on disk: a folder with a JSON manifest and safetensors files. Nothing is ever unpickled.

``manifest.json`` holds the format's version, settings, taxonomy, evidence and checksums;
``weights.safetensors`` the packed weights; ``encoder.safetensors`` the arrays of a text encoder,
where the model has one. File names are fixed here, never read from a manifest.

Arrays are memory-mapped: loading reads little, and prediction reads the pages it needs. Checksums
are verified for files up to :data:`MAX_HASHED_BYTES`; larger ones, which would have to be read
whole, when ``load_model(folder, verify=True)`` asks for it. Without that a changed file may predict
nonsense, but no more: all that loops use as places is checked where it is used.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors.numpy import save_file

from taxofit._version import __version__
from taxofit.classifier import TaxonomyClassifier
from taxofit.datasets.features import encoder_from_state
from taxofit.errors import ModelError, TaxofitError
from taxofit.methods import flattening_from_json, flattening_to_json
from taxofit.predict.calibration import Calibration
from taxofit.predict.dense_weights import DenseWeights
from taxofit.predict.packed_weights import PackedWeights
from taxofit.predict.search import Search
from taxofit.taxonomy import Taxonomy
from taxofit.tensor_file import map_tensors

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from numpy.typing import NDArray

__all__ = ["load_model", "read_attachment", "read_manifest", "save_model"]

FORMAT = "taxofit-model"
FORMAT_VERSION = 2
MANIFEST = "manifest.json"
WEIGHTS = "weights.safetensors"
ENCODER = "encoder.safetensors"
MAX_MANIFEST_BYTES = 1 << 30
MAX_HASHED_BYTES = 1 << 28
WEIGHT_KINDS = {kind.kind: kind for kind in (DenseWeights, PackedWeights)}


def save_model(
    classifier: TaxonomyClassifier,
    folder: str | Path,
    *,
    notes: Mapping[str, Any] | None = None,
    attachments: Mapping[str, bytes] | None = None,
) -> None:
    """Write a fitted classifier to a folder, all of it or nothing.

    Parameters
    ----------
    classifier : TaxonomyClassifier
    folder : path
        Made where it does not exist. An earlier model there is replaced; anything else in the way
        is a ModelError.
    notes : mapping, optional
        JSON values kept under ``"notes"``; the command line keeps column names there.
    attachments : mapping from file name to bytes, optional
        Kept beside the weights, with a checksum; see `read_attachment`.
    """
    folder = Path(folder)
    _check_replaceable(folder)
    files = {WEIGHTS: classifier.weights_.to_arrays()}
    manifest = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "taxofit_version": __version__,
        "settings": _settings(classifier),
        "fitted": {
            "C": classifier.C_,
            "psi": _finite(classifier.psi_),
            "validation_score": _finite(classifier.validation_score_),
            "search": classifier.search_.to_json(),
            "calibration": classifier.calibration_.to_json(),
            "n_features_in": int(classifier.n_features_in_),
            "feature_names_in": getattr(classifier, "feature_names_in_", np.array([])).tolist(),
        },
        "taxonomy": _taxonomy_to_json(classifier.original_taxonomy_),
        "removed": [classifier.original_taxonomy_.node_of(label) for label in classifier.removed_],
        "evidence": _frame_to_json(classifier.evidence_),
        "weights": classifier.weights_.kind,
        "notes": dict(notes or {}),
    }
    if getattr(classifier, "encoder_", None) is not None:
        manifest["encoder"], files[ENCODER] = classifier.encoder_.to_state()
    _write_folder(folder, manifest, files, attachments or {})


def load_model(folder: str | Path, *, verify: bool | None = None) -> TaxonomyClassifier:
    """Return the classifier that was saved in a folder; a ModelError says what is wrong with it.

    Parameters
    ----------
    folder : path
    verify : bool, optional
        Whether to hold every file against its checksum; by default those up to 256 MiB.
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    try:
        return _restore(folder, manifest, verify=verify)
    except (KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
        raise ModelError(
            f"{folder / MANIFEST} is damaged: {type(error).__name__} {error}; save the model again"
        ) from error
    except (TaxofitError, ValueError) as error:
        if isinstance(error, ModelError) and str(folder) in str(error):
            raise
        raise ModelError(f"{folder} is damaged: {error}; save the model again") from error


def read_manifest(folder: str | Path) -> dict[str, Any]:
    """Return the manifest of a model folder, checked for format and version only."""
    path = Path(folder) / MANIFEST
    try:
        _check_plain_file(path)
        _check_manifest_size(path)
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(f"{folder} is not a taxofit model: it has no {MANIFEST}") from None
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from error
    except ModelError:
        raise
    except (ValueError, RecursionError) as error:  # no UTF-8, no JSON, a number of 10,000 digits
        raise ModelError(f"{path} is damaged: {error}; save the model again") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelError(f"{path} is not a taxofit manifest")
    version = manifest.get("format_version")
    if not isinstance(version, int) or isinstance(version, bool) or version > FORMAT_VERSION:
        raise ModelError(
            f"{folder} was written by taxofit {manifest.get('taxofit_version')} in format "
            f"{version}; this is taxofit {__version__}, which reads formats up to "
            f"{FORMAT_VERSION}: upgrade it"
        )
    if version < FORMAT_VERSION:
        raise ModelError(
            f"{folder} was written by taxofit {manifest.get('taxofit_version')} in format "
            f"{version}, which is no longer read; fit the model again"
        )
    return manifest


def read_attachment(folder: str | Path, name: str) -> bytes:
    """Return what was saved with a model under a name; a ModelError where it was changed."""
    path = Path(folder) / name
    listed = read_manifest(folder).get("files", {}).get(name)
    try:
        if _fingerprint(path) != listed:
            raise ModelError(
                f"{path} is damaged or was changed: it does not match its checksum in {MANIFEST}"
            )
        return path.read_bytes()
    except FileNotFoundError:
        raise ModelError(f"{folder} is incomplete: {name} is missing") from None


def _restore(folder: Path, manifest: dict[str, Any], *, verify: bool | None) -> TaxonomyClassifier:
    original = _taxonomy_from_json(manifest["taxonomy"])
    removed = np.zeros(original.n_nodes, dtype=bool)
    removed[np.asarray(manifest["removed"], dtype=np.int64)] = True
    settings = dict(manifest["settings"])
    settings["flattening"] = flattening_from_json(settings["flattening"])
    classifier = TaxonomyClassifier(**settings)
    classifier.original_taxonomy_ = original
    classifier.taxonomy_ = original.without(removed)[0]
    classifier.removed_ = tuple(original.labels[node] for node in np.flatnonzero(removed))
    fitted = manifest["fitted"]
    classifier.C_, classifier.psi_ = fitted["C"], fitted["psi"]
    if isinstance(classifier.psi_, list):
        classifier.psi_ = tuple(np.inf if psi is None else psi for psi in classifier.psi_)
    score = fitted["validation_score"]
    classifier.validation_score_ = float("nan") if score is None else float(score)
    classifier.search_ = Search(**fitted["search"])
    classifier.calibration_ = Calibration(**fitted["calibration"])
    classifier.n_features_in_ = int(fitted["n_features_in"])
    if fitted["feature_names_in"]:
        classifier.feature_names_in_ = np.asarray(fitted["feature_names_in"], dtype=object)
    classifier.evidence_ = _frame_from_json(manifest["evidence"])
    weights = WEIGHT_KINDS[manifest["weights"]].from_arrays(
        _load(folder, WEIGHTS, manifest, verify=verify)
    )
    weights.check(classifier.taxonomy_, classifier.n_features_in_)
    classifier.weights_ = weights
    classifier.validation_ = None
    classifier.encoder_ = None
    if "encoder" in manifest:
        classifier.encoder_ = encoder_from_state(
            manifest["encoder"], _load(folder, ENCODER, manifest, verify=verify)
        )
    classifier._set_classes()  # noqa: SLF001  (the other half of fitting, kept in one place)
    return classifier


def _settings(classifier: TaxonomyClassifier) -> dict[str, Any]:
    """Return constructor settings for JSON; strategies by name, the taxonomy apart."""
    settings = classifier.get_params(deep=False)
    settings["flattening"] = flattening_to_json(settings["flattening"])
    settings["taxonomy"] = settings["encoder"] = settings["work_dir"] = None
    if not isinstance(settings["random_state"], int):
        settings["random_state"] = None
    return settings


# ---------------------------------------------------------------------- files


def _check_replaceable(folder: Path) -> None:
    if folder.is_dir() and (not any(folder.iterdir()) or (folder / MANIFEST).is_file()):
        return
    if folder.exists() or folder.is_symlink():
        raise ModelError(f"{folder} exists and is not a taxofit model; choose another folder")


def _write_folder(
    folder: Path,
    manifest: dict[str, Any],
    files: dict[str, dict[str, NDArray[Any]]],
    attachments: Mapping[str, bytes],
) -> None:
    """Write everything beside the folder and move it into place, so that no reader sees a part."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        written = beside / "new"
        written.mkdir()
        manifest["files"] = {}
        for name, arrays in files.items():
            save_file({key: np.ascontiguousarray(a) for key, a in arrays.items()}, written / name)
            manifest["files"][name] = _fingerprint(written / name)
        for name, content in attachments.items():
            (written / name).write_bytes(content)
            manifest["files"][name] = _fingerprint(written / name)
        text = json.dumps(manifest, ensure_ascii=False, allow_nan=False, default=_plain)
        (written / MANIFEST).write_text(text, encoding="utf-8")
        for name in files:  # safetensors lets only the owner read what it writes
            (written / name).chmod((written / MANIFEST).stat().st_mode)
        if folder.exists():
            folder.replace(beside / "old")
        written.replace(folder)
    except (TypeError, ValueError) as error:
        raise ModelError(f"the model cannot be saved: {error}") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _load(
    folder: Path, name: str, manifest: dict[str, Any], *, verify: bool | None
) -> dict[str, NDArray[Any]]:
    path = folder / name
    expected = manifest["files"][name]
    if not path.is_file():
        raise ModelError(f"{folder} is incomplete: {name} is missing")
    size = path.stat().st_size
    if size != expected["bytes"]:
        raise ModelError(
            f"{path} is damaged: it has {size} bytes, but was written with {expected['bytes']}"
        )
    hashes = size <= MAX_HASHED_BYTES if verify is None else verify
    if hashes and _fingerprint(path) != expected:
        raise ModelError(
            f"{path} is damaged or was changed: it does not match its checksum in {MANIFEST}"
        )
    return map_tensors(path)


def _check_plain_file(path: Path) -> None:
    if not stat.S_ISREG(path.stat().st_mode):
        raise ModelError(f"{path} is not a plain file; a device or a pipe may have no end")


def _check_manifest_size(path: Path) -> None:
    if path.stat().st_size > MAX_MANIFEST_BYTES:
        raise ModelError(f"{path} is too large to be a taxofit manifest")


def _fingerprint(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": digest}


# ---------------------------------------------------------------------- values


def _taxonomy_to_json(taxonomy: Taxonomy) -> dict[str, Any]:
    for label in taxonomy.labels:
        if not isinstance(label, (str, int, float)):
            raise ModelError(
                f"the label {label!r} is a {type(label).__name__} and cannot be saved; labels of "
                f"saved models are texts or numbers"
            )
    return {
        "parent": taxonomy.parent.tolist(),
        "labels": list(taxonomy.labels),
        "names": list(taxonomy.names),
        "has_virtual_root": taxonomy.has_virtual_root,
    }


def _taxonomy_from_json(saved: dict[str, Any]) -> Taxonomy:
    parents = np.asarray(saved["parent"], dtype=np.int64)
    return Taxonomy.from_parents(
        parents, saved["labels"], names=saved["names"], has_virtual_root=saved["has_virtual_root"]
    )


def _frame_to_json(frame: pd.DataFrame) -> dict[str, list[Any]]:
    def plain(column: str) -> list[Any]:
        values = frame[column].tolist()
        if frame[column].dtype.kind == "f":
            return [value if np.isfinite(value) else repr(value) for value in values]
        return values

    return {column: plain(column) for column in frame.columns}


def _frame_from_json(saved: dict[str, list[Any]]) -> pd.DataFrame:
    import pandas as pd

    frame = pd.DataFrame(saved)
    numbers = ["objective", "margin", "difficulty", "threshold"]
    return frame.assign(**{name: [float(value) for value in saved[name]] for name in numbers})


def _finite(value: Any) -> Any:
    """Return a number, or numbers, with None for NaN and infinity, which JSON has no word for."""
    if isinstance(value, tuple):
        return [_finite(part) for part in value]
    return value if value is None or np.isfinite(value) else None


def _plain(value: object) -> Any:
    """Return NumPy numbers as Python's own, for JSON."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} is a {type(value).__name__}; only texts and numbers can be saved")
