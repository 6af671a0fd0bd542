"""What goes between processes of one machine, as files; through their pipes go the names.

loky notices that a process is lost, except where it was sending a result: of that it awaits the
rest without end. A name is so short that it is in the pipe in full or not at all.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from taxofit.bank.block_work import pack_blocks, unpack_blocks
from taxofit.bank.parcel import Parcel
from taxofit.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from taxofit.bank.block_work import SolvedBlock

__all__ = ["FileParcel", "FiledBlocks", "filed_parcel", "is_on_this_machine"]

PARCEL = "parcel"
BACKENDS = {"LokyBackend", "MultiprocessingBackend"}  # joblib's own


@dataclass(frozen=True)
class FileParcel:
    """A parcel in a folder that has room for the results of its tasks.

    Attributes
    ----------
    key : str
    folder : str
    n_blas_threads : int
    """

    key: str
    folder: str
    n_blas_threads: int

    def opened(self) -> Parcel:
        """Return the parcel, in any process of this machine."""
        payload = np.memmap(Path(self.folder, PARCEL), dtype=np.uint8, mode="r")
        return Parcel(self.key, payload, self.n_blas_threads)

    def leave(self, number: int, solved: Sequence[SolvedBlock]) -> FiledBlocks:
        """Write the result of a task and return what stands for it."""
        path = Path(self.folder, f"{number}.safetensors")
        arrays = {n: np.asarray(a, order="C") for n, a in pack_blocks(solved).items()}
        try:
            save_file(arrays, path)
        except (OSError, SafetensorError) as error:
            raise _unwritable(self.folder, error) from error
        return FiledBlocks(str(path), tuple(block.C for block in solved))


@dataclass(frozen=True)
class FiledBlocks:
    """The result of a task in a file.

    Attributes
    ----------
    path : str
    Cs : tuple of float
    """

    path: str
    Cs: tuple[float, ...]

    def collect(self) -> list[SolvedBlock]:
        """Return the result and remove its file."""
        packed = load_file(self.path)
        Path(self.path).unlink()
        return unpack_blocks(self.Cs, packed)


def is_on_this_machine(backend: Any) -> bool:
    """Return whether the workers of a joblib backend are processes that read our files."""
    return type(backend).__name__ in BACKENDS


@contextmanager
def filed_parcel(parcel: Parcel) -> Iterator[FileParcel]:
    """Yield what stands for the parcel in tasks, as long as its folder is there."""
    # Windows does not remove what a process that is being killed has still open.
    with tempfile.TemporaryDirectory(prefix="taxofit-", ignore_cleanup_errors=True) as folder:
        try:
            parcel.payload.tofile(Path(folder, PARCEL))
        except OSError as error:
            raise _unwritable(folder, error) from error
        yield FileParcel(parcel.key, folder, parcel.n_blas_threads)


def _unwritable(folder: str, error: Exception) -> DataError:
    return DataError(
        f"what goes between processes cannot be written to {folder}: {error}; make room there, or "
        f"name a folder that has some in the environment variable TMPDIR"
    )
