"""Memory that launches which were timed, but not carried out, would have written: it holds stale values.

A later launch whose branches or addresses depend on such memory is timed with the stale values, or with zeros if it
fails with them.
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
    """The ranges of host memory that hold stale values, as launches that store to them were not carried out."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []

    def decides(self, dispatch: Dispatch, streams: Sequence[Sequence[Array]], *, is_known: bool = False) -> str | None:
        """The name of a stale buffer that decides what this launch executes, or None. Its own stores are stale from
        now on, too.

        streams: of the recorded workgroups, wave by wave. is_known: whether the launch is known to depend on stale
        memory; then any stale buffer that it can access is named, even if none is seen to decide.
        """
        read = _deciding_buffers(dispatch, streams) if self._ranges else []
        if is_known:
            read += dispatch.memory.buffers().values()
        found = next((buffer.name for buffer in read if self._overlaps(buffer)), None)
        self._ranges += map(host_range, _touched_buffers(dispatch, streams, _of_classes(dispatch, *_STORES)))
        return found

    def leave(self, *ranges: tuple[int, int]) -> None:
        """Add ranges that something other than a launch would have written: host addresses, [first, stop)."""
        self._ranges += ranges

    def concerns(self, memory: Memory) -> bool:
        """True if a launch's memory overlaps a stale range."""
        return any(self._overlaps(buffer) for buffer in memory.buffers().values())

    def emptied(self, memory: Memory) -> Memory:
        """A copy of a launch's memory with zeros in the stale ranges."""
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
    """The buffers whose contents decide branches or addresses.

    A value in LDS may come from any load. The lines of scalar loads are not recorded: they are taken to read the
    buffers that no vector access touches.
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
    """The lines that the chosen instructions of a wave touch, once for each access."""
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
