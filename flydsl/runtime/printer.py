"""The printf of one call of a launcher: its buffer on a device, read back and printed after each launch."""

from __future__ import annotations

import struct
import sys
from collections.abc import Sequence
from typing import Any

from flydsl import env
from flydsl.printing import HEADER_WORDS, Format, lines
from flydsl.runtime.interface import Device

_WORD_BYTES = 4
_HEADER = struct.Struct("<3Q")


class Printer:
    """A buffer on a device for the output of kernels. formats: those of the launcher's printfs."""

    def __init__(self, formats: Sequence[Format], device: Device) -> None:
        self._formats = formats
        self._capacity = env.printf_buffer_bytes() // _WORD_BYTES - HEADER_WORDS
        self._buffer = device.print_buffer((self._capacity + HEADER_WORDS) * _WORD_BYTES)
        self._clear()

    def address(self, session: Any) -> int:
        """The address at which kernels of a call find the buffer."""
        return self._buffer.address(session)

    def flush(self, stream: int = 0) -> None:
        """Print the output that kernels of a stream left to sys.stdout, and make room."""
        used, _, missing = _HEADER.unpack(self._buffer.read(0, _HEADER.size, stream))
        if not used:
            return
        header_bytes = HEADER_WORDS * _WORD_BYTES
        records = self._buffer.read(header_bytes, min(used, self._capacity) * _WORD_BYTES, stream)
        self._clear()
        # A record that found no room leaves a gap behind the last one, in which every word is 0.
        text = "".join(lines(records, self._formats))
        if missing:
            text += (
                f"... and {missing} more lines of printf, for which its buffer has no room "
                "(FLYDSL_PRINTF_BUFFER_BYTES)\n"
            )
        sys.stdout.write(text)

    def _clear(self) -> None:
        self._buffer.clear(_HEADER.pack(0, self._capacity, 0))
