"""A folder of solved blocks, from which a run that was killed goes on.

Every result is a *shard*: one safetensors file, named after the content of the task that it is the
result of (rows, labels, C, settings, start, versions) and carrying a checksum of its own. It is
written beside its place, flushed to the disk and renamed, so that a shard is there in full or not
at all, whatever happens to the machine. Two runs in one folder can only write the same bytes under
the same name. Nothing is ever unpickled.
"""

from __future__ import annotations

import os
import secrets
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from taxofit.bank.content import content_key
from taxofit.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Arrays = dict[str, NDArray[Any]]

__all__ = ["WorkDir", "WorkDirSize"]

SHARDS = "blocks"
SUFFIX = ".safetensors"
UNFINISHED = ".part"
ABANDONED_SECONDS = 3600.0  # nobody takes an hour to write a shard


@dataclass(frozen=True)
class WorkDirSize:
    """How much a work folder holds.

    Attributes
    ----------
    n_shards, n_bytes : int
    """

    n_shards: int
    n_bytes: int

    def __str__(self) -> str:
        return f"{self.n_shards:,} shards, {self.n_bytes / 1e6:,.1f} MB"


class WorkDir:
    """A folder of shards; made where it does not exist.

    Parameters
    ----------
    folder : path

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     work_dir = WorkDir(folder)
    ...     work_dir.put("ab12", {"scores": np.ones(3)})
    ...     (work_dir.find("ab12"), work_dir.find("cd34"), work_dir.measure().n_shards)
    ({'scores': array([1., 1., 1.])}, None, 1)
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._shards = self.folder / SHARDS
        try:
            self._shards.mkdir(parents=True, exist_ok=True)
            self._forget_abandoned()
        except OSError as error:
            raise DataError(
                f"the work folder {folder} cannot be used: {error.strerror or error}"
            ) from error

    def find(self, key: str) -> Arrays | None:
        """Return the arrays that were put under a key; None where there are none, or damaged."""
        path = self._path(key)
        try:
            with safe_open(path, framework="numpy") as file:
                marks = file.metadata() or {}
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (not a dict)
        except FileNotFoundError:
            return None
        except (SafetensorError, OSError, ValueError) as error:
            _warn_of(path, error)
            return None
        if marks.get("key") != key or marks.get("sha256") != content_key(arrays):
            _warn_of(path, "it does not match its checksum")
            return None
        return arrays

    def put(self, key: str, arrays: Arrays) -> None:
        """Keep arrays under a key: once this returns they are on the disk."""
        arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
        content = save(arrays, metadata={"key": key, "sha256": content_key(arrays)})
        path = self._path(key)
        unfinished = path.with_name(f".{key}-{os.getpid()}-{secrets.token_hex(4)}{UNFINISHED}")
        try:
            try:
                with unfinished.open("wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                unfinished.replace(path)
            finally:
                unfinished.unlink(missing_ok=True)
            _flush_folder(self._shards)
        except OSError as error:
            raise DataError(
                f"the work folder {self.folder} cannot be written to: {error.strerror or error}; "
                f"what is in it is sound: make room and start the same run again, it will go on "
                f"where it was"
            ) from error

    def measure(self) -> WorkDirSize:
        """Return the number of shards and their bytes, those of other runs included."""
        sizes = [path.stat().st_size for path in self._shards.glob(f"*{SUFFIX}")]
        return WorkDirSize(len(sizes), sum(sizes))

    def _path(self, key: str) -> Path:
        return self._shards / f"{key}{SUFFIX}"

    def _forget_abandoned(self) -> None:
        """Remove what killed runs were writing; a run that is alive is not an hour behind."""
        for path in self._shards.glob(f".*{UNFINISHED}"):
            try:
                if time.time() - path.stat().st_mtime > ABANDONED_SECONDS:
                    path.unlink()
            except FileNotFoundError:
                continue  # another run was faster


def _flush_folder(folder: Path) -> None:
    """Have a rename survive a power failure, where the system has a way to ask for it."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _warn_of(path: Path, what: object) -> None:
    warnings.warn(f"{path} is damaged ({what}); its block is solved again", stacklevel=4)
