"""Folders of text files: every file a row, the folders above it its label."""

from __future__ import annotations

from dataclasses import dataclass
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING

from taxofit.datasets.files import decoded
from taxofit.datasets.table_chunks import TableChunk
from taxofit.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from taxofit.datasets.files import FilePath

__all__ = ["FOLDER_COLUMN", "TEXT_COLUMN", "FileChunk", "iter_text_folder"]

TEXT_COLUMN, FOLDER_COLUMN, FILE_COLUMN = "text", "folder", "file"
MAX_FILE_BYTES = 64 * 2**20  # a larger file is not one row of text


@dataclass(frozen=True, slots=True, eq=False)
class FileChunk(TableChunk):
    """Some files of a folder; ``lines`` holds their names within it."""

    def place(self, row: int) -> str:
        """Return the name of a file within its folder."""
        return str(self.lines[row])

    def locate(self, row: int) -> str:
        """Return the path of a file."""
        return f"{self.source}/{self.lines[row]}"


def iter_text_folder(
    folder: FilePath, columns: Sequence[str] | None = None, *, chunk_rows: int = 1000
) -> Iterator[TableChunk]:
    """Yield the files under a folder as rows, in order of their paths.

    The columns are ``text``, ``folder`` (the folders above the file, joined with ``/``; empty for
    files right here) and ``file``. Hidden files and folders are passed over. A text is UTF-8, or
    cp1252 where it is not.

    Parameters
    ----------
    folder : path
    columns : sequence of str, optional
        Those wanted; all by default. Files are opened only where the text is one of them.
    chunk_rows : int

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "rec", "autos", "1.txt")
    ...     file.parent.mkdir(parents=True)
    ...     _ = file.write_text("a fast car")
    ...     [dict(chunk.columns) for chunk in iter_text_folder(folder)]
    [{'text': ['a fast car'], 'folder': ['rec/autos'], 'file': ['rec/autos/1.txt']}]
    """
    home = Path(folder)
    files = [path for path in sorted(home.rglob("*")) if _is_row(path, home)]
    if not files:
        raise DataError(f"{fspath(folder)}: the folder holds no text files")
    known = (TEXT_COLUMN, FOLDER_COLUMN, FILE_COLUMN)
    for name in columns or ():
        if name not in known:
            shown = ", ".join(map(repr, known))
            raise DataError(f"{fspath(folder)}: no column {name!r}; a folder of texts has {shown}")
    for start in range(0, len(files), chunk_rows):
        part = files[start : start + chunk_rows]
        names = [path.relative_to(home).as_posix() for path in part]
        table = {FOLDER_COLUMN: [name.rpartition("/")[0] for name in names], FILE_COLUMN: names}
        if columns is None or TEXT_COLUMN in columns:
            table = {TEXT_COLUMN: [_text(path) for path in part], **table}
        yield FileChunk(fspath(folder), table, names, has_lines=False)


def _is_row(path: Path, home: Path) -> bool:
    hidden = any(part.startswith(".") for part in path.relative_to(home).parts)
    return not hidden and path.is_file()


def _text(path: Path) -> str:
    if path.stat().st_size > MAX_FILE_BYTES:
        raise DataError(f"{path}: more than {MAX_FILE_BYTES // 2**20} MB; is this a text file?")
    return decoded(path.read_bytes())
