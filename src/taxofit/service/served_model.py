"""The model that is served, and its exchange for a newer one while requests go on."""

from __future__ import annotations

import hashlib
import logging
import shutil
import tempfile
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taxofit.errors import ModelError
from taxofit.model_store import MANIFEST, load_model, read_manifest
from taxofit.service.row_format import RowFormat

if TYPE_CHECKING:
    from taxofit.classifier import TaxonomyClassifier

__all__ = ["ModelHolder", "ServedModel"]

VERSION_LENGTH = 16
logger = logging.getLogger("taxofit.service")


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A loaded model that has predicted once, and what to call it.

    Attributes
    ----------
    name : str
        Of its folder.
    version : str
        The beginning of the SHA-256 of its manifest, which holds the checksums of all other files:
        two models of the same version are the same model.
    classifier : TaxonomyClassifier
    rows : RowFormat
    manifest : dict
    loaded_at : datetime
    """

    name: str
    version: str
    classifier: TaxonomyClassifier
    rows: RowFormat
    manifest: dict[str, Any]
    loaded_at: datetime

    @classmethod
    def load(cls, folder: Path) -> ServedModel:
        """Return the model of a folder; whatever is wrong with it is a ModelError.

        A loaded model reads its files as it predicts, and a file that somebody shortens meanwhile
        would end the process. So it is loaded from a copy that has no name any more when it serves.
        """
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as beside:
            copy = Path(beside, "model")
            try:
                return cls._load_copy(folder, copy)
            except ModelError as error:
                raise ModelError(str(error).replace(str(copy), str(folder))) from error

    @classmethod
    def _load_copy(cls, folder: Path, copy: Path) -> ServedModel:
        _version_of(folder)  # a folder that is no model is not worth a copy
        try:
            copy.mkdir()
            for file in folder.iterdir():
                if file.is_file():
                    shutil.copyfile(file, copy / file.name)
        except OSError as error:
            raise ModelError(f"{folder} cannot be read: {error.strerror}") from error
        version = _version_of(copy)
        manifest = read_manifest(copy)
        classifier = load_model(copy, verify=True)
        rows = RowFormat.of(classifier, manifest.get("notes", {}), str(folder))
        try:  # also compiles the loops, so that the first request need not wait for it
            classifier.predict_with_score(rows.features_of([rows.blank()]))
        except Exception as error:
            raise ModelError(f"{folder} loads, but cannot predict: {error}") from error
        return cls(folder.absolute().name, version, classifier, rows, manifest, datetime.now(UTC))


class ModelHolder:
    """The current model of a folder. Requests take it once and keep it until they are done.

    Parameters
    ----------
    folder : str
        May be a link that is moved from one model to the next.

    Attributes
    ----------
    current : ServedModel
    reload_error : str or None
        Why the last exchange failed; None after one that did not.
    n_reloads, n_failures : int
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._lock = threading.Lock()
        self.current = ServedModel.load(self._folder)
        self.reload_error: str | None = None
        self.n_reloads = self.n_failures = 0

    def reload(self) -> None:
        """Exchange the model for the one that is in the folder now, if it is sound.

        The new one is loaded and tried beside the old one, and one assignment changes them. One
        that is damaged, or whose rows look different from what clients send, changes nothing.
        """
        with self._lock:
            old = self.current
            try:
                new = ServedModel.load(self._folder)
            except Exception as error:  # noqa: BLE001  (whatever it is, the old model goes on)
                self._remember(str(error))
                return
            if new.rows.shape != old.rows.shape:
                self._remember(
                    f"{self._folder} now holds a model that reads other rows than clients of this "
                    f"one send; start the service anew to serve it"
                )
                return
            self.current, self.reload_error = new, None
            self.n_reloads += 1
            logger.info("serving version %s of %s, before %s", new.version, new.name, old.version)

    def reload_if_changed(self) -> None:
        """Do so where the folder's manifest is not that of the current model."""
        try:
            if _version_of(self._folder) == self.current.version and self.reload_error is None:
                return
        except ModelError as error:
            with self._lock:
                self._remember(str(error))
            return
        self.reload()

    def _remember(self, message: str) -> None:
        if message != self.reload_error:  # said once, not at every look
            logger.warning("still serving version %s: %s", self.current.version, message)
        self.reload_error = message
        self.n_failures += 1


def _version_of(folder: Path) -> str:
    try:
        manifest = (folder / MANIFEST).read_bytes()
    except OSError as error:
        raise ModelError(
            f"{folder} is not a taxofit model: {MANIFEST} cannot be read ({error.strerror})"
        ) from None
    return hashlib.sha256(manifest).hexdigest()[:VERSION_LENGTH]
