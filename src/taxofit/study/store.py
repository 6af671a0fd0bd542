"""Studies in model folders: gzipped JSON beside the weights, with a checksum in the manifest."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import TYPE_CHECKING, Any

from taxofit.errors import ModelError
from taxofit.model_store import read_attachment, read_manifest

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["STUDY_FILE", "pack_study", "read_study", "unpack_study"]

STUDY_FILE = "study.json.gz"
MAX_BYTES = 1 << 28
READABLE_VERSION = 1


def pack_study(study: dict[str, Any]) -> bytes:
    """Return a study as the bytes of its file; the same study gives the same bytes.

    Examples
    --------
    >>> unpack_study(pack_study({"kind": "study", "version": 1}))
    {'kind': 'study', 'version': 1}
    """
    text = json.dumps(study, allow_nan=False, separators=(",", ":"))
    return gzip.compress(text.encode("utf-8"), mtime=0)


def unpack_study(packed: bytes, where: str = "the study") -> dict[str, Any]:
    """Return the study that `pack_study` packed; a ModelError says what is wrong with it."""
    try:
        unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        text = unpacker.decompress(packed, MAX_BYTES)
        if unpacker.unconsumed_tail:
            raise ModelError(f"{where} is too large to be a study")
        study = json.loads(text)
    except (zlib.error, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ModelError(f"{where} is damaged: {error}; fit the model again") from error
    if not isinstance(study, dict) or study.get("kind") != "study":
        raise ModelError(f"{where} is not a study")
    if study.get("version") != READABLE_VERSION:
        raise ModelError(
            f"{where} is of version {study.get('version')}; this taxofit reads version "
            f"{READABLE_VERSION}: upgrade it, or fit the model again"
        )
    return study


def read_study(folder: str | Path) -> dict[str, Any]:
    """Return the study that was saved with a model; a ModelError says why there is none."""
    manifest = read_manifest(folder)
    if STUDY_FILE in manifest.get("files", {}):
        return unpack_study(read_attachment(folder, STUDY_FILE), f"{folder}/{STUDY_FILE}")
    if manifest.get("fitted", {}).get("validation_score") is None:
        raise ModelError(
            f"{folder} has nothing to report: its C and its nodes were fixed beforehand, so no "
            f"rows were held out to measure them; fit with --C auto or --method global-inf"
        )
    raise ModelError(
        f"{folder} has no study of its taxonomy: it was saved from Python or by an older version "
        f"({manifest.get('taxofit_version')}); train it with `taxofit fit`, or call "
        f"taxofit.report.write_report after fitting"
    )
