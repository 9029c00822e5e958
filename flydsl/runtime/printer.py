"""The records of one call of a launcher: its buffer on a device, read back after each launch.

What kernels print goes to sys.stdout; an assertion that does not hold becomes an error.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Sequence
from typing import Any

from flydsl import env
from flydsl.errors import DeviceAssertion
from flydsl.printing import HEADER_WORDS, Format, Record, records
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
        """Print the output that kernels of a stream left to sys.stdout, and make room. Raises DeviceAssertion."""
        used, _, missing = _HEADER.unpack(self._buffer.read(0, _HEADER.size, stream))
        if not used:
            return
        header_bytes = HEADER_WORDS * _WORD_BYTES
        words = self._buffer.read(header_bytes, min(used, self._capacity) * _WORD_BYTES, stream)
        self._clear()
        # A record that found no room leaves a gap behind the last one, in which every word is 0.
        found = records(words, self._formats)
        failed = [record for record in found if record.asserted_at is not None]
        text = "".join(record.line for record in found if record.asserted_at is None)
        if missing and not failed:
            text += (
                f"... and {missing} more lines of printf, for which its buffer has no room "
                "(FLYDSL_PRINTF_BUFFER_BYTES)\n"
            )
        sys.stdout.write(text)
        if failed:
            raise _assertion(failed, missing)

    def _clear(self) -> None:
        self._buffer.clear(_HEADER.pack(0, self._capacity, 0))


def _assertion(failed: Sequence[Record], missing: int) -> DeviceAssertion:
    """The error of the first thread of the first workgroup whose assertion does not hold."""
    first, threads = failed[0], len(failed) + missing
    place = f"workgroup {first.workgroup[::-1]}, thread {first.thread[::-1]}"
    others = f", and {threads - 1} more" if threads > 1 else ""
    error = DeviceAssertion(f"{first.line}: {place}{others}", at=first.asserted_at)
    error.threads = threads
    return error
