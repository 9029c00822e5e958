"""The last write to one element of a tensor while a launch is simulated, and the lines that read tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flydsl.errors import SourceLocation
from flydsl.simulator.observers import ObservedAccess, ObservedLaunch, Observer

_MOST_LINES = 4


@dataclass(frozen=True)
class Writer:
    """Who wrote an element last. thread: in the workgroup; at, isa_line: of the instruction."""

    workgroup: tuple[int, int, int]
    thread: tuple[int, int, int]
    instruction: str
    isa_line: int
    at: SourceLocation | None

    def __str__(self) -> str:
        name = self.instruction.split()[0]
        return f"thread {self.thread} of workgroup {self.workgroup}, {name} (ISA line {self.isa_line})"


class WriterHistory(Observer):
    """Who writes an element of a tensor, and where tensors are read.

    tensor: its name. place: of the element in memory, in elements from the tensor's first.
    """

    def __init__(self, tensor: str, place: int, element_bytes: int) -> None:
        self._tensor, self._place, self._bytes = tensor, place, element_bytes
        self._reads: dict[str, dict[SourceLocation, None]] = {}
        self.launches: list[ObservedLaunch] = []
        self.writer: Writer | None = None

    def launch(self, launch: ObservedLaunch) -> None:
        self.launches.append(launch)

    def access(self, access: ObservedAccess) -> None:
        if access.buffer is None or access.elements is None:
            return
        at = access.instruction.location
        if not access.is_write:
            if at is not None:
                self._reads.setdefault(access.buffer, {})[at] = None
            return
        if access.buffer != self._tensor:
            return
        reach = max(access.size_bytes // self._bytes, 1)
        hits = np.flatnonzero((access.elements <= self._place) & (self._place < access.elements + reach))
        if hits.size:
            self._note(access, int(hits[-1]), at)

    def _note(self, access: ObservedAccess, number: int, at: SourceLocation | None) -> None:
        lane = int(access.waves[number]) * access.instruction.wave_size + int(access.lanes[number])
        x, y, _ = self.launches[-1].block
        i, j, k = (int(place) for place in access.workgroups[number])
        listed = access.instruction.listed
        self.writer = Writer((i, j, k), (lane % x, lane // x % y, lane // (x * y)), listed.text, listed.line, at)

    def lines_of_reads(self) -> dict[str, list[str]]:
        """The lines in which each tensor is read."""
        here = self.writer.at.file if self.writer is not None and self.writer.at is not None else ""
        return {name: _lines(sorted(set(places), key=str), here) for name, places in self._reads.items()}


def _lines(places: Sequence[SourceLocation], here: str) -> list[str]:
    """Lines of the file of the writer, and others with their files."""
    lines = list(dict.fromkeys(f"line {at.line}" if at.file == here else f"{at.file}:{at.line}" for at in places))
    return [*lines[:_MOST_LINES], *(["others"] if len(lines) > _MOST_LINES else [])]
