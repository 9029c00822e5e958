"""Memory that the launches of a session would have written, had they been carried out.

A launch whose branches or addresses depend on such memory is timed with what was there before, or with zeros where it
fails with that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from flydsl.simulator.arrays import Array
from flydsl.simulator.counters.instruction_class import instruction_class
from flydsl.simulator.dispatch import Dispatch
from flydsl.simulator.memory.buffers import Buffer, Memory, host_range
from flydsl.simulator.timing.needed import deciding_loads
from flydsl.simulator.timing.recording import LDS_WORD, LINE_WORD, Lines

_LOADS = ("VMEM load", "VMEM atomic")
_STORES = ("VMEM store", "VMEM atomic")


class LeftOut:
    """The ranges of the host's memory that launches which were not carried out store to."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []

    def decides(self, dispatch: Dispatch, streams: Sequence[Sequence[Array]], *, is_known: bool = False) -> str | None:
        """The name of a buffer that such a launch stores to and that decides what this one executes, if there is one.

        streams: of the recorded workgroups, wave by wave. is_known: that there is one, so that any of those that they
        store to is named rather than none. The stores of this launch are left out from now on, too.
        """
        read = _deciding_buffers(dispatch, streams) if self._ranges else []
        if is_known:
            read += dispatch.memory.buffers().values()
        found = next((buffer.name for buffer in read if self._overlaps(buffer)), None)
        self._ranges += map(host_range, _touched_buffers(dispatch, streams, _of_classes(dispatch, *_STORES)))
        return found

    def leave(self, *ranges: tuple[int, int]) -> None:
        """Leave out what something else than a launch would write: ranges of addresses, [first, stop)."""
        self._ranges += ranges

    def concerns(self, memory: Memory) -> bool:
        """True if such launches store to memory of a launch."""
        return any(self._overlaps(buffer) for buffer in memory.buffers().values())

    def emptied(self, memory: Memory) -> Memory:
        """A copy of a launch's memory with zeros wherever such launches store."""
        copy = memory.with_copied_content()
        copies = copy.buffers()
        for place, buffer in memory.buffers().items():
            for start, stop in self._ranges:
                first, last = (min(max(end - buffer.host_address, 0), buffer.size_bytes) for end in (start, stop))
                copies[place].data[first:last] = 0
        return copy

    def _overlaps(self, buffer: Buffer) -> bool:
        start, stop = host_range(buffer)
        return any(first < stop and start < last for first, last in self._ranges)


def _of_classes(dispatch: Dispatch, *classes: str) -> list[int]:
    return [i.index for i in dispatch.program.instructions if instruction_class(i.mnemonic) in classes]


def _deciding_buffers(dispatch: Dispatch, streams: Sequence[Sequence[Array]]) -> list[Buffer]:
    """The buffers with what decides where waves go or what they touch.

    What LDS has may come from any load. The lines of scalar loads are not recorded: theirs are buffers without others.
    """
    loads = deciding_loads(dispatch)
    classes = {instruction_class(dispatch.program.instructions[i].mnemonic) for i in loads}
    if "LDS" in classes:
        loads = _of_classes(dispatch, *_LOADS)
    found = _touched_buffers(dispatch, streams, loads)
    if "SMEM" in classes:
        others = _touched_buffers(dispatch, streams, _of_classes(dispatch, *_LOADS, *_STORES))
        found += [b for b in dispatch.memory.buffers().values() if not any(b is other for other in others)]
    return found


def _touched_buffers(
    dispatch: Dispatch, streams: Iterable[Iterable[Array]], instructions: Iterable[int]
) -> list[Buffer]:
    """The buffers that some instructions access in the recorded streams."""
    is_chosen = np.zeros(len(dispatch.program.instructions), np.bool_)
    is_chosen[list(instructions)] = True
    if not is_chosen.any():
        return []
    bases = Lines.of(dispatch.memory).bases
    is_touched = np.zeros(len(bases), np.bool_)
    for workgroup in streams:
        for stream in workgroup:
            is_touched[np.searchsorted(bases, _lines(stream, is_chosen), side="right") - 1] = True
    numbered = _numbered(dispatch.memory)
    return [numbered[place] for place in np.flatnonzero(is_touched).tolist()]


def _lines(stream: Array, is_chosen: Array) -> Array:
    """The lines that the chosen instructions of a wave touch, one as often as it is touched."""
    is_instruction = stream < LDS_WORD
    last = np.maximum.accumulate(np.where(is_instruction, np.arange(len(stream)), 0))
    wanted = (stream >= LINE_WORD) & is_chosen[stream[last]]
    lines: Array = stream[wanted] & ~np.uint32(LINE_WORD)
    return lines


def _numbered(memory: Memory) -> dict[int, Buffer]:
    """The buffers by their place in `Lines.bases`."""
    slots = memory.in_slots
    first = max(slots, default=0) + 1
    return slots | {first + i: buffer for i, buffer in enumerate(memory.in_place)}
