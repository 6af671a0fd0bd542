"""Small changes that turn a valid file into one that a reader has to think about.

All take a `random.Random`, so that hypothesis can draw, replay and shrink them and that a seed of
atheris names an input.
"""

from __future__ import annotations

import gzip
import json
import re
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    Mutation = Callable[[bytes, Random], bytes]

MAX_BYTES = 20_000
MAX_STEPS = 4
NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?")
TOKENS = (
    b"", b"0", b"-1", b"1e999", b"-inf", b"nan", b"1_0", b"0x1f", b"9" * 30, b"9223372036854775808",
    b"1.", b".", b"+", b"1e", b"\xd9\xa1", b"''", b'"', b'""', b'"\n', b",", b"\t", b";", b"|",
    b":", b" > ", b"/", b"@", b"{", b"}", b"#", b"%", b"?", b"\\", b"\n", b"\r", b"\r\n", b"\0",
    b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\xe2\x80\xa8", b"\xf0\x9f\x91\xa9", b"sep=;\n",
    b"@DATA", b"@ATTRIBUTE x NUMERIC\n", b"@ATTRIBUTE class hierarchical 1,1/2\n", b"qid:3",
    b"parent,child\n",
)  # fmt: skip
VALUES = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**40, 1e308, 0.5, "", "x", "../..", "\0", "\ud800",
    [], {}, [[]], [None], [0, 0], {"": 0}, "table", "text", "word" * 500,
)  # fmt: skip


def _slice(data: bytes, rng: Random) -> tuple[int, int]:
    start = rng.randint(0, len(data))
    return start, min(len(data), start + rng.choice((0, 1, 2, 4, 16, 64, 1000)))


def flip_bits(data: bytes, rng: Random) -> bytes:
    """Change some bits of one byte."""
    if not data:
        return data
    place = rng.randrange(len(data))
    return data[:place] + bytes([data[place] ^ rng.randint(1, 255)]) + data[place + 1 :]


def delete(data: bytes, rng: Random) -> bytes:
    """Leave some bytes out."""
    start, stop = _slice(data, rng)
    return data[:start] + data[stop:]


def repeat(data: bytes, rng: Random) -> bytes:
    """Write some bytes again, once or very often."""
    start, stop = _slice(data, rng)
    return data[:stop] + data[start:stop] * rng.choice((1, 2, 50, 1000)) + data[stop:]


def move(data: bytes, rng: Random) -> bytes:
    """Copy some bytes to another place."""
    start, stop = _slice(data, rng)
    place = rng.randint(0, len(data))
    return data[:place] + data[start:stop] + data[place:]


def cut(data: bytes, rng: Random) -> bytes:
    """End the file early."""
    return data[: rng.randint(0, len(data))]


def put_token(data: bytes, rng: Random) -> bytes:
    """Put in something that means something to a reader."""
    start, stop = _slice(data, rng)
    return data[:start] + rng.choice(TOKENS) + data[rng.choice((start, stop)) :]


def change_number(data: bytes, rng: Random) -> bytes:
    """Replace a number by another one, or by something that is none."""
    numbers = list(NUMBER.finditer(data[:MAX_BYTES]))
    if not numbers:
        return put_token(data, rng)
    found = rng.choice(numbers)
    return data[: found.start()] + rng.choice(TOKENS) + data[found.end() :]


def shuffle_lines(data: bytes, rng: Random) -> bytes:
    """Swap two lines, or lose one."""
    lines = data.split(b"\n")
    first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[first], lines[second] = lines[second], lines[first]
    if rng.random() < 0.3:
        del lines[first]
    return b"\n".join(lines)


def pack(data: bytes, rng: Random) -> bytes:
    """Gzip it, and damage that now and then."""
    packed = gzip.compress(data, 1, mtime=0)
    return flip_bits(packed, rng) if rng.random() < 0.5 else packed


TEXT_MUTATIONS: tuple[Mutation, ...] = (
    flip_bits, delete, repeat, move, cut, put_token, put_token, change_number, change_number,
    shuffle_lines, pack,
)  # fmt: skip
BINARY_MUTATIONS: tuple[Mutation, ...] = (flip_bits, flip_bits, delete, repeat, move, cut)


def mutate_text(data: bytes, rng: Random) -> bytes:
    """Return a text file with a few changes."""
    return _several(data, rng, TEXT_MUTATIONS)


def mutate_binary(data: bytes, rng: Random) -> bytes:
    """Return a binary file with a few changes."""
    return _several(data, rng, BINARY_MUTATIONS)


def mutate_json(data: bytes, rng: Random) -> bytes:
    """Return JSON with some values replaced, left out, repeated or added."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return mutate_text(data, rng)
    for _ in range(rng.randint(1, MAX_STEPS)):
        value = _change(value, rng)
    written = json.dumps(value).encode()
    return mutate_text(written, rng) if rng.random() < 0.1 else written


def mutate_safetensors(data: bytes, rng: Random) -> bytes:
    """Return safetensors whose header or whose numbers were changed, lengths kept right or not."""
    if len(data) < 8 or rng.random() < 0.3:
        return mutate_binary(data, rng)
    (size,) = struct.unpack("<Q", data[:8])
    header, content = data[8 : 8 + size], data[8 + size :]
    if rng.random() < 0.5:
        header = mutate_json(header, rng)
    else:
        content = _several(content, rng, (flip_bits, flip_bits, _put_number))
    size = len(header) if rng.random() < 0.9 else rng.choice((0, 2**20, 2**63))
    return struct.pack("<Q", size) + header + content


def _put_number(data: bytes, rng: Random) -> bytes:
    """Overwrite four bytes with an integer, aligned as arrays are."""
    if len(data) < 4:
        return data
    place = 4 * rng.randrange(len(data) // 4)
    number = rng.choice((-1, 0, 1, 7, 2**16, 2**31 - 1, -(2**31)))
    return data[:place] + struct.pack("<i", number) + data[place + 4 :]


def _several(data: bytes, rng: Random, mutations: tuple[Mutation, ...]) -> bytes:
    for _ in range(rng.randint(1, MAX_STEPS)):
        data = rng.choice(mutations)(data, rng)[:MAX_BYTES]
    return data


def _change(value: Any, rng: Random) -> Any:
    """Walk down to a random place and change what is there."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        return _change_key(value, rng)
    if isinstance(value, list) and value and rng.random() < 0.8:
        return _change_item(value, rng)
    if isinstance(value, int) and not isinstance(value, bool) and rng.random() < 0.5:
        return value + rng.choice((-1, 1, 10))
    return rng.choice(VALUES)


def _change_key(value: dict[str, Any], rng: Random) -> dict[str, Any]:
    key = rng.choice(list(value))
    action = rng.random()
    if action < 0.1:
        return {name: part for name, part in value.items() if name != key}
    if action < 0.15:
        return value | {str(rng.choice(VALUES)): rng.choice(VALUES)}
    return value | {key: _change(value[key], rng)}


def _change_item(value: list[Any], rng: Random) -> list[Any]:
    place = rng.randrange(len(value))
    action = rng.random()
    if action < 0.1:
        return value[:place] + value[place + 1 :]
    if action < 0.2:
        return [*value, value[place]]
    return [*value[:place], _change(value[place], rng), *value[place + 1 :]]
