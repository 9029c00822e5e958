"""The memory in which a launcher gets its arguments: one slot each, and an array of pointers to the slots."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

_SLOT_BYTES = 16  # the alignment of the widest number, of 128 bits


class TooLarge(Exception):
    """A number does not fit into the type in which it is passed to the launcher."""


class ArgumentSlots:
    """Slots for arguments with these struct codes. addresses: of the slots. pointers: a C array of them."""

    def __init__(self, codes: Sequence[str]) -> None:
        formats, offsets, offset = [], [], 0
        for code in codes:
            size = struct.calcsize("=" + code)
            padding = -size % _SLOT_BYTES
            formats.append(f"{code}{padding}x")
            offsets.append(offset)
            offset += size + padding
        self._struct = struct.Struct("=" + "".join(formats))
        memory = ctypes.create_string_buffer(offset + _SLOT_BYTES)
        base = -(-ctypes.addressof(memory) // _SLOT_BYTES) * _SLOT_BYTES
        self._buffer = (ctypes.c_char * max(offset, 1)).from_buffer(memory, base - ctypes.addressof(memory))
        self.addresses = [base + offset for offset in offsets]
        self.pointers = (ctypes.c_void_p * max(len(codes), 1))(*self.addresses)

    def fill(self, values: Sequence[Any]) -> None:
        """Store the values, those of each slot one after the other. Raises TooLarge."""
        try:
            self._struct.pack_into(self._buffer, 0, *values)
        except (struct.error, OverflowError) as error:
            raise TooLarge from error
