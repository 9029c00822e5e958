"""Data in an assembly listing: `.long`, `.asciz`, `.zero` and their like, as bytes, and the addresses among them."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_PAGE_BYTES = 4096
MOST_BYTES = 1 << 26
"""The limit for data, and for padding: a few characters of a listing can ask for any amount of memory."""

_INTEGERS = {".byte": 1, ".short": 2, ".long": 4, ".quad": 8}
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|.)")
_NAMED_ESCAPES = {b"n": 10, b"t": 9, b"r": 13, b"b": 8, b"f": 12}

_ADDRESS = re.compile(r"([A-Za-z_.$][\w.$]*)([+-]\d+)?$")

DATA_DIRECTIVES = (*_INTEGERS, ".ascii", ".asciz", ".zero", ".fill", ".p2align")


@dataclass(frozen=True)
class DataRelocation:
    """8 bytes of data at `offset` that hold the address of a symbol, plus `addend` bytes."""

    offset: int
    symbol: str
    addend: int


@dataclass(frozen=True)
class DataSegment:
    """Data of a module. labels maps a symbol to its offset in content."""

    content: bytes = b""
    labels: Mapping[str, int] = field(default_factory=dict)
    relocations: tuple[DataRelocation, ...] = ()

    def addresses(self, base: int) -> dict[str, int]:
        """Addresses of the symbols for a segment at `base`."""
        return {name: base + offset for name, offset in self.labels.items()}


class DataReader:
    """Collects the data of some sections."""

    def __init__(self) -> None:
        self._content = bytearray()
        self._labels: dict[str, int] = {}
        self._relocations: list[DataRelocation] = []

    def label(self, name: str) -> None:
        self._labels[name] = len(self._content)

    def append(self, directive: str, operands: str) -> None:
        """Append data. ValueError unless it is a constant or the address of a symbol."""
        address = _ADDRESS.match(operands) if directive == ".quad" else None
        if address:
            self._relocations.append(DataRelocation(len(self._content), address[1], int(address[2] or 0)))
            operands = "0"
        append_data(self._content, directive, operands)

    def segment(self) -> DataSegment:
        return DataSegment(bytes(self._content), self._labels, tuple(self._relocations))


def page_aligned(content: bytes) -> np.ndarray[Any, Any]:
    """A copy as u8, at the start of a page: the segments are aligned more strictly than any numpy array."""
    storage = bytearray(2 * _PAGE_BYTES + len(content))
    start = -ctypes.addressof(ctypes.c_char.from_buffer(storage)) % _PAGE_BYTES
    storage[start : start + len(content)] = content
    return np.frombuffer(storage, np.uint8, len(content), start)


def append_data(data: bytearray, directive: str, operands: str) -> None:
    """Append the bytes that a directive emits. ValueError unless it is a plain constant.

    >>> data = bytearray(b"a")
    >>> append_data(data, ".p2align", "2, 0x0")
    >>> append_data(data, ".short", "-2")
    >>> bytes(data)
    b'a\\x00\\x00\\x00\\xfe\\xff'
    """
    if directive in _INTEGERS:
        size = _INTEGERS[directive]
        for word in operands.split(","):
            data += (int(word, 0) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    elif directive in (".ascii", ".asciz"):
        data += _string(operands) + (b"\0" if directive == ".asciz" else b"")
    elif directive == ".zero":
        data += bytes(_room(data, int(operands.split(",")[0], 0)))
    elif directive == ".fill":
        repeat, size, value = (int(word, 0) for word in operands.split(","))
        if not 0 <= size <= 8:
            raise ValueError(f"elements of {size} bytes")
        _room(data, repeat * size)
        data += (value & ((1 << 8 * size) - 1)).to_bytes(size, "little") * repeat
    elif directive == ".p2align":
        exponent = int(operands.split(",")[0], 0)
        if not 0 <= exponent <= _PAGE_BYTES.bit_length() - 1:
            raise ValueError(f"the simulator aligns data to {_PAGE_BYTES} bytes at most")
        data += bytes(_room(data, -len(data) % (1 << exponent)))


def _room(data: bytearray, size: int) -> int:
    """The number of bytes to append. ValueError if there is no room for them."""
    if not 0 <= size <= MOST_BYTES - len(data):
        raise ValueError(f"the simulator holds {MOST_BYTES} bytes of data at most")
    return size


def _string(text: str) -> bytes:
    """The bytes of a quoted string."""
    if not (text.startswith('"') and text.endswith('"')):
        raise ValueError("expected a quoted string")
    return unescaped(text[1:-1])


def unescaped(text: str) -> bytes:
    """The bytes of what stands between quotation marks, with C escapes, octal ones included."""

    def replace(match: re.Match[bytes]) -> bytes:
        escaped = match[1]
        number = int(escaped, 8) if escaped[0] in b"01234567" else _NAMED_ESCAPES.get(escaped, escaped[0])
        return bytes([number & 255])

    return _ESCAPE.sub(replace, text.encode(errors="surrogateescape"))
