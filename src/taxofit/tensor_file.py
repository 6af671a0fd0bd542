"""Safetensors files, memory-mapped and read without trust.

The format: eight bytes with the header's length, a JSON header that gives each array's type, shape
and place, and the arrays. The ``safetensors`` package writes it and reads it into memory; here
arrays stay in the file and pages come in as they are used, so a model may be larger than memory.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit.errors import ModelError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["map_tensors"]

LENGTH_BYTES = 8
MAX_HEADER_BYTES = 1 << 20
TYPES = {
    "U8": np.uint8,
    "U16": np.uint16,
    "U32": np.uint32,
    "U64": np.uint64,
    "I8": np.int8,
    "I16": np.int16,
    "I32": np.int32,
    "I64": np.int64,
    "F32": np.float32,
    "F64": np.float64,
    "BOOL": np.bool_,
}


def map_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of a safetensors file as read-only views of the file.

    Whatever a header claims is held against the file's size first; a ModelError says what is wrong.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(LENGTH_BYTES), "little")
            if size < LENGTH_BYTES or not 0 < length <= min(size - LENGTH_BYTES, MAX_HEADER_BYTES):
                raise ModelError(f"{path} is damaged: its header does not fit in its {size} bytes")
            header = json.loads(file.read(length))
    except FileNotFoundError:
        raise ModelError(f"{path.parent} is incomplete: {path.name} is missing") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ModelError(f"{path} is damaged: {error}") from error
    first = LENGTH_BYTES + length
    mapped = np.memmap(path, dtype=np.uint8, mode="r")
    body = mapped[first:]
    try:
        return {
            name: _array(body, name, described)
            for name, described in header.items()
            if name != "__metadata__"
        }
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{path} is damaged: {error}") from error


def _array(body: NDArray[np.uint8], name: str, described: dict[str, Any]) -> NDArray[Any]:
    dtype = np.dtype(TYPES[described["dtype"]])
    shape = tuple(int(length) for length in described["shape"])
    start, stop = (int(place) for place in described["data_offsets"])
    if min(shape, default=0) < 0 or not 0 <= start <= stop <= body.size:
        raise ValueError(f"the array {name!r} lies outside the file")
    if stop - start != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"the array {name!r} has not the size that its shape asks for")
    raw = np.asarray(body[start:stop])
    if raw.ctypes.data % dtype.itemsize:  # safetensors aligns; others need not
        raw = raw.copy()
    return raw.view(dtype).reshape(shape)
