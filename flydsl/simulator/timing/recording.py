"""Recording of some workgroups of a launch: for every wave its instructions in order, and the lines that they touch.

A stream is an array of u32. A word with a clear highest bit is the index of an instruction; the words after it are its
accesses to memory, see `native/runtime/trace.c`.
"""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from ctypes import addressof, c_uint32, sizeof
from dataclasses import dataclass

import numpy as np

from flydsl.errors import SimulatorError
from flydsl.simulator.arrays import Array
from flydsl.simulator.counters.raw import LINE_BYTES
from flydsl.simulator.decoding.program import Program
from flydsl.simulator.dispatch import Dispatch
from flydsl.simulator.memory.buffers import Buffer, Memory
from flydsl.simulator.native import layout
from flydsl.simulator.native.counting import ThreadCounts, tracing_records
from flydsl.simulator.native.group import WorkgroupSlot
from flydsl.simulator.native.library import library
from flydsl.simulator.native.machine import Execution
from flydsl.simulator.native.turns import Turns
from flydsl.simulator.timing.needed import Needed, needed_instructions

_WORDS_PER_WAVE = 1 << 24
"""The room for a wave's recording, of which the host provides only the pages that are written."""


@dataclass(frozen=True)
class Lines:
    """The lines of memory of a launch, numbered through all its buffers.

    bases: the number of the first line by slot of the address space, then of memory at its address on the host, lowest
    first; the last one is the number of all lines.
    """

    bases: Array

    @classmethod
    def of(cls, memory: Memory) -> Lines:
        buffers = memory.in_slots
        sizes = np.zeros(max(buffers, default=0) + 1, np.int64)
        for slot, buffer in buffers.items():
            sizes[slot] = _room(buffer)
        bases = np.cumsum([0, *sizes, *map(_room, memory.in_place)])
        if bases[-1] >> 30:
            raise SimulatorError(
                "a launch whose tensors have more than 64 GiB cannot be traced", hint="time a smaller one"
            )
        return cls(bases.astype(np.uint32))

    @property
    def count(self) -> int:
        return int(self.bases[-1])


def _room(buffer: Buffer) -> int:
    """The lines of a buffer, wherever in a line it begins."""
    return -(-buffer.size_bytes // LINE_BYTES) + 2


class WaitsForOthers(SimulatorError):
    """A workgroup that runs alone goes round a loop until another one changes memory."""


class TracingWatch:
    """Records: see `native.launch_block.Watch`. skipped: the instructions that are not executed."""

    def __init__(self, skipped: Array) -> None:
        self._skipped = skipped

    @property
    def observer(self) -> int:
        return library().tracing["record_access"]

    def records(self, records: Array, program: Program) -> Array:
        return tracing_records(records, program, self._skipped)


class Place:
    """A place where a workgroup is executed, and what its waves do is recorded."""

    def __init__(self, execution: Execution, lines: Lines) -> None:
        launch = execution.launch
        self._buffers: list[Array] = []
        self._streams = (layout.Stream * launch.template.count)()
        self._counting, self._bases = ThreadCounts(execution.work.program), lines.bases
        self.slot = WorkgroupSlot(launch.template, launch.block, self._counting.address, watched=True)
        block = self._counting.block
        block.first_wave, block.line_base = self.slot.block.waves, self._bases.ctypes.data
        block.streams = addressof(self._streams)

    def begin(self, *, is_kept: bool = True) -> None:
        """Be ready for the next workgroup. is_kept: whether anyone wants to know what it does."""
        if is_kept and not self._buffers:
            self._buffers = [np.empty(_WORDS_PER_WAVE, np.uint32) for _ in self._streams]
        for w, stream in enumerate(self._streams):
            stream.at = self._buffers[w].ctypes.data if is_kept else 0
            stream.end = stream.at + self._buffers[w].nbytes if is_kept else 0
            stream.look = 0
        self._kept, self._waited_at = is_kept, list[int]()

    def log_signals(self, log: layout.SignalLog, workgroup: int) -> list[int]:
        """Log the signals of the next workgroup. Returns where the streams of its waves begin."""
        self._counting.block.signals, self._counting.block.group = addressof(log), workgroup
        return [stream.at or 0 for stream in self._streams]

    def forget_waiting(self) -> None:
        """Forget, of a workgroup that goes on waiting, what it executed since it was asked before."""
        if not self.slot.is_waiting:
            self._waited_at = []
        elif not self._waited_at:
            self._waited_at = [stream.at for stream in self._streams]
        else:
            for stream, at in zip(self._streams, self._waited_at, strict=True):
                stream.at = at

    def longest(self, beginnings: Sequence[int]) -> int:
        """The words of the longest stream, kept or not. beginnings: see `log_signals`."""
        ends = ((stream.at or 0) - begin for stream, begin in zip(self._streams, beginnings, strict=True))
        return max(ends) // sizeof(c_uint32)

    def streams(self) -> list[Array]:
        """The streams of the workgroup's waves. SimulatorError where one executes too much to be kept."""
        return [self._recorded(w) for w in range(len(self._buffers))] if self._kept else []

    def _recorded(self, w: int) -> Array:
        buffer = self._buffers[w]
        words = (self._streams[w].at - buffer.ctypes.data) // buffer.itemsize
        if words > len(buffer):
            raise SimulatorError(
                f"a wave executes too much for a trace: {words} instructions and lines of {len(buffer)}",
                hint="time a launch with shorter loops",
            )
        return buffer[:words].copy()


class _Recorder(Execution):
    """Executes single workgroups of a launch, and keeps what their waves do."""

    def __init__(self, work: Dispatch, lines: Lines, needed: Needed, instruction_limit: int) -> None:
        super().__init__(work, instruction_limit, watch=TracingWatch(needed.skipped))
        self._place = Place(self, lines)

    def record(self, workgroup: int) -> list[Array]:
        """The streams of a workgroup's waves. SimulatorError where one executes too much to be kept."""
        self._place.begin()
        self.launch.block.next, self.launch.block.group_count = workgroup, workgroup + 1
        self.take_turns(Turns(self._place.slot))
        self.raise_first_error()
        return self._place.streams()

    def _be_patient(self, group: WorkgroupSlot, turns: Turns) -> None:
        if group.is_waiting:
            raise WaitsForOthers(f"workgroup {group.number} of a launch waits for another one")
        super()._be_patient(group, turns)


class Recorders:
    """Recorders of a launch's workgroups, on several threads. They change the memory that `copied` makes of its own.

    Instructions whose results decide neither control flow nor addresses are recorded, but not executed.
    """

    def __init__(
        self,
        dispatch: Dispatch,
        instruction_limit: int,
        threads: int | None,
        copied: Callable[[Memory], Memory] = Memory.with_copied_content,
    ) -> None:
        needed = needed_instructions(dispatch)
        lines = Lines.of(dispatch.memory)
        work, memory = copy.copy(dispatch), dispatch.memory
        work.memory = copied(memory) if needed.content else with_empty_content(memory)
        # All of them before the first one runs: code must not be loaded while other loaded code is being executed.
        count = _threads(threads, dispatch.workgroup_count)
        self._recorders = [_Recorder(work, lines, needed, instruction_limit) for _ in range(count)]

    def record(self, workgroups: Sequence[int]) -> list[list[Array]]:
        """The streams of some workgroups, wave by wave.

        Raises what the launch would raise, SimulatorError for waves that execute too much, and WaitsForOthers.
        """
        found: dict[int, list[Array]] = {}
        todo, lock = iter(workgroups), threading.Lock()
        errors: list[BaseException] = []

        def work_through(recorder: _Recorder) -> None:
            try:
                while not errors:
                    with lock:
                        workgroup = next(todo, None)
                    if workgroup is None:
                        return
                    found[workgroup] = recorder.record(workgroup)
            except BaseException as error:  # noqa: BLE001 - raised below
                errors.append(error)

        first, *others = self._recorders[: max(1, len(workgroups))]
        helpers = [threading.Thread(target=work_through, args=(r,), daemon=True) for r in others]
        for helper in helpers:
            helper.start()
        work_through(first)
        for helper in helpers:
            helper.join()
        if errors:
            raise errors[0]
        return [found[workgroup] for workgroup in workgroups]


def with_empty_content(memory: Memory) -> Memory:
    """The same buffers at the same addresses; those that a kernel may write have zeros, which take no room."""
    return memory.with_content(lambda buffer: _zeros_like(buffer) if buffer.writable else buffer.data)


def _zeros_like(buffer: Buffer) -> Array:
    """As many bytes, in as many dwords."""
    first = buffer.base - buffer.storage_base
    return np.zeros(buffer.storage.size, np.uint8)[first : first + buffer.size_bytes]


def touched_lines(streams: Iterable[Array]) -> Array:
    """The numbers of the lines that some waves touch, sorted."""
    parts = [stream[stream >= LINE_WORD] & ~np.uint32(LINE_WORD) for stream in streams]
    lines = np.sort(np.concatenate(parts)) if parts else np.zeros(0, np.uint32)
    is_first = np.ones(len(lines), np.bool_)
    is_first[1:] = lines[1:] != lines[:-1]
    return lines[is_first]  # what `np.unique` finds by hashing takes five times as long


def common_lines(lines: Array, others: Array) -> Array:
    """Those of some sorted lines that are among others, sorted, too. `np.isin` would hash all of the others."""
    if not len(others):
        return others
    return lines[others[np.minimum(np.searchsorted(others, lines), len(others) - 1)] == lines]


LDS_WORD, LINE_WORD = 0x8000_0000, 0xC000_0000
"""The marks of a word that is a number of LDS passes, and one that is a line of memory."""


def _threads(threads: int | None, workgroups: int) -> int:
    """The number of threads that record. Default: one per core."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(threads or cores, workgroups))
