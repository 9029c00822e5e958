"""Code objects with wrong bits, bytes, lengths and metadata, beside the listing that belongs to them."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from typing import Any

from tests.fuzz.archs import ARCHS
from tests.fuzz.corpus import modules
from tests.fuzz.launching import load_and_launch, prepare
from tests.fuzz.workers import run_trials
from tests.metadata import metadata_of, with_metadata

_NUMBERS = (0, 1, 2, 3, 4, 7, 8, 16, 63, 64, 65, 127, 128, 255, 256, 257, 511, 512, 513, 600, 1023, 1024, 4095, 4096)
_LARGE = (
    65535,
    65536,
    131056,
    1 << 20,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 32,
    1 << 40,
    (1 << 63) - 1,
    (1 << 64) - 1,
)
_OTHERS: tuple[Any, ...] = (-1, -8, 1.5, float("inf"), None, True, "", "64", "x" * 300, b"", [], [1], {}, [0, 0, 0])


def run(seed: int, count: int) -> None:
    """AssertionError with the trials that ended otherwise than they may."""
    for arch in ARCHS:
        modules(arch)
    run_trials(trial, seed, count, prepare)


def trial(random_: random.Random) -> None:
    code, listing = random_.choice(modules(random_.choice(ARCHS)))
    for _ in range(random_.choice((1, 1, 1, 2, 3))):
        code = random_.choice(MUTATIONS)(code, random_)
    load_and_launch(code, listing, random_)


def _number(random_: random.Random) -> int:
    return random_.choice(random_.choice((_NUMBERS, _LARGE)))


def _flip_bits(code: bytes, random_: random.Random) -> bytes:
    data = bytearray(code)
    for _ in range(random_.choice((1, 1, 2, 8, 64))):
        data[random_.randrange(len(data))] ^= 1 << random_.randrange(8)
    return bytes(data)


def _overwrite(code: bytes, random_: random.Random) -> bytes:
    """A field of 1 to 8 bytes, in the ELF header, a section header or anywhere."""
    size = random_.choice((1, 2, 4, 8))
    (table,) = struct.unpack_from("<Q", code, 40) if len(code) > 64 else (0,)
    start = random_.choice((0, min(table, len(code)), random_.randrange(len(code))))
    position = min(start + random_.randrange(0, 512, size), max(len(code) - size, 0))
    return code[:position] + (_number(random_) % (1 << 8 * size)).to_bytes(size, "little") + code[position + size :]


def _change_length(code: bytes, random_: random.Random) -> bytes:
    position = random_.randrange(len(code))
    return (
        random_.choice(
            (
                code[:position],
                code[:position] + code[position + random_.randrange(64) :],
                code[:position] + bytes(8) + code[position:],
            )
        )
        or b"\x7f"
    )


def _change_descriptor(code: bytes, random_: random.Random) -> bytes:
    """One of the places where a descriptor may be: 64 bytes whose reserved bytes 12 to 15 are 0."""
    found = [i for i in range(0, len(code) - 64, 64) if any(code[i + 16 : i + 24]) and not any(code[i + 24 : i + 44])]
    data = bytearray(code)
    position = (random_.choice(found) if found else 0) + random_.randrange(64)
    if position < len(data):
        data[position] = random_.choice((0, 1, 0x7F, 0xFF, random_.randrange(256)))
    return bytes(data)


def _change_metadata(code: bytes, random_: random.Random) -> bytes:
    try:
        header, metadata = metadata_of(code)
        return with_metadata(code, header, _changed(metadata, random_))
    except (LookupError, OverflowError, ValueError, TypeError):
        return code  # another change has made a reading of it impossible


def _changed(value: Any, random_: random.Random) -> Any:
    """The same tree with one leaf or branch changed."""
    if isinstance(value, dict) and value and random_.random() < 0.95:
        key = random_.choice(list(value))
        changed = dict(value)
        if random_.random() < 0.03:
            del changed[key]
        else:
            changed[key] = _changed(value[key], random_)
        return changed
    if isinstance(value, list) and value and random_.random() < 0.95:
        position = random_.randrange(len(value))
        changed_item = _changed(value[position], random_)
        return random_.choice(
            ([*value[:position], changed_item, *value[position + 1 :]],) * 8 + (value + value[:1], value[1:])
        )
    if isinstance(value, int) and random_.random() < 0.8:
        return random_.choice((value + 1, max(value - 1, 0), value * 2, _number(random_)))
    return random_.choice(_OTHERS)


MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _flip_bits,
    _overwrite,
    _change_length,
    _change_descriptor,
    _change_descriptor,
    _change_metadata,
    _change_metadata,
    _change_metadata,
)
