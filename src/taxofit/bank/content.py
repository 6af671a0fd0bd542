"""A name for content: the same for the same numbers, whoever computes it and when.

Unlike a pickle, which may differ between two equal objects, every part is fed to the hash in one
fixed way: its kind, its shape, its bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence  # noqa: TC003  (singledispatch looks at it)
from dataclasses import fields, is_dataclass
from functools import singledispatch
from types import FunctionType, NoneType
from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["content_key"]


def content_key(*parts: Any) -> str:
    """Return the SHA-256 of arrays, sparse matrices, numbers, texts and dataclasses of these.

    Fields of a dataclass that are not compared do not count, such as a number of threads.
    Functions go by their name in their module; what has no content of its own, such as a lambda, is
    a TypeError.

    Examples
    --------
    >>> content_key(np.arange(3), 1.0) == content_key(np.arange(3), 1.0)
    True
    >>> content_key(np.arange(3)) == content_key(np.arange(3).astype(np.int32))
    False
    >>> content_key([12, 3]) == content_key([1, 23])
    False
    """
    digest = hashlib.sha256()
    for part in parts:
        _feed(part, digest)
    return digest.hexdigest()


@singledispatch
def _feed(part: Any, digest: Any) -> None:
    """Feed the kind, the shape and the bytes of a part."""
    if sparse.issparse(part):
        _say(digest, part.format, repr(part.shape))
        _feed([part.indptr, part.indices, part.data], digest)
    elif is_dataclass(part) and not isinstance(part, type):
        _say(digest, "dataclass", _name(type(part)))
        _feed({f.name: getattr(part, f.name) for f in fields(part) if f.compare}, digest)
    else:
        raise TypeError(f"a {type(part).__name__} has no content that could be hashed: {part!r}")


@_feed.register(NoneType)
@_feed.register(bool)
@_feed.register(int)
@_feed.register(float)
@_feed.register(str)
def _(part: object, digest: Any) -> None:
    _say(digest, type(part).__name__, repr(part))


@_feed.register
def _(part: np.generic, digest: Any) -> None:
    _feed(np.asarray(part), digest)


@_feed.register
def _(part: np.ndarray, digest: Any) -> None:
    if part.dtype.hasobject:
        raise TypeError("an array of objects has no content that could be hashed")
    _say(digest, "array", part.dtype.str, repr(part.shape))
    digest.update(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)


@_feed.register(tuple)
@_feed.register(list)
def _(part: Sequence[Any], digest: Any) -> None:
    _say(digest, "sequence", str(len(part)))
    for member in part:
        _feed(member, digest)


@_feed.register
def _(part: dict, digest: Any) -> None:  # type: ignore[type-arg]  # singledispatch wants the class
    _say(digest, "mapping", str(len(part)))
    for name in sorted(part):
        _say(digest, name)
        _feed(part[name], digest)


@_feed.register
def _(part: FunctionType, digest: Any) -> None:
    _say(digest, "function", _name(part))


def _say(digest: Any, *words: str) -> None:
    """Feed words so that no two lists of words look alike."""
    for word in words:
        encoded = word.encode()
        digest.update(len(encoded).to_bytes(8, "little"))
        digest.update(encoded)


def _name(thing: Any) -> str:
    if "<" in thing.__qualname__:
        raise TypeError(
            f"{thing.__qualname__} is made inside a function and has no name by which another "
            f"process or a later run could know it; move it to a module"
        )
    return f"{thing.__module__}.{thing.__qualname__}"
