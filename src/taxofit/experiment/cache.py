"""Finished pieces of an experiment on disk, so that a stopped run goes on where it was."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit._version import __version__
from taxofit.whole_file import whole_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    Arrays = dict[str, NDArray[Any]]

__all__ = ["PieceCache"]


class PieceCache:
    """Named arrays on disk, each set under a hash of all that it depends on.

    A piece is written to a file beside its own and then moved, so it is there as a whole or not at
    all. Nothing is pickled. A damaged piece is made again.

    Parameters
    ----------
    folder : path, optional
        Made on the first write; None keeps nothing.
    common : mapping
        JSON values that every piece depends on; taxofit's version always is one of them.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cache = PieceCache(folder, {"data": "abc"})
    ...     _ = cache.get("square", {"of": 3}, lambda: {"value": np.array(9)})
    ...     again = cache.get("square", {"of": 3}, lambda: {"value": np.array(0)})
    >>> int(again["value"])
    9
    """

    def __init__(self, folder: str | Path | None, common: Mapping[str, Any]) -> None:
        self._folder = None if folder is None else Path(folder)
        self._common = {**common, "taxofit": __version__}

    def get(self, kind: str, key: Mapping[str, Any], make: Callable[[], Arrays]) -> Arrays:
        """Return a piece from disk, or make and keep it."""
        found = self.find(kind, key)
        if found is None:
            found = make()
            self.put(kind, key, found)
        return found

    def find(self, kind: str, key: Mapping[str, Any]) -> Arrays | None:
        """Return a piece from disk; None where it is not there or cannot be read."""
        if self._folder is None:
            return None
        try:
            # opened here, because np.load leaves a damaged file open
            with (
                self._path(kind, key).open("rb") as handle,
                np.load(handle, allow_pickle=False) as saved,
            ):
                return {name: saved[name] for name in saved.files}
        except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile):
            return None

    def put(self, kind: str, key: Mapping[str, Any], arrays: Arrays) -> None:
        """Write a piece, all of it or nothing."""
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        with whole_file(self._path(kind, key)) as handle:
            np.savez(handle, **arrays)  # type: ignore[arg-type]  # numpy's stub has a keyword of its own

    def _path(self, kind: str, key: Mapping[str, Any]) -> Path:
        written = json.dumps([kind, self._common, dict(key)], sort_keys=True)
        digest = hashlib.sha256(written.encode()).hexdigest()[:20]
        return Path(self._folder or ".", f"{kind}-{digest}.npz")
