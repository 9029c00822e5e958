"""Recording of workgroups that wait for each other, for signals or at a barrier of the grid: all of them are executed.

Of a loop that waits only the last time round is kept, in which it finds what it waits for.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator

import numpy as np

from flydsl.errors import SimulatorError
from flydsl.simulator.arrays import Array
from flydsl.simulator.counters.instruction_class import instruction_class
from flydsl.simulator.decoding.program import Instruction, Program
from flydsl.simulator.dispatch import Dispatch
from flydsl.simulator.float_environment import IeeeFloats
from flydsl.simulator.native.machine import Execution
from flydsl.simulator.timing.needed import unneeded_products
from flydsl.simulator.timing.recording import Lines, Place, TracingWatch

_SLICE, _TURN, _PATIENCE_SLICES = 20_000, 500, 20
_LONGEST_LOOP = 512
"""Words of a loop that waits: it loads, compares and sleeps."""


def record_together(
    dispatch: Dispatch, chosen: Collection[int], instruction_limit: int
) -> tuple[dict[int, list[Array]], bool]:
    """The streams of the chosen workgroups by number, wave by wave, while all workgroups run; and whether any waited.

    The launch's memory is not changed. Matrix instructions are recorded, but not executed where they decide nothing.
    Raises what the launch would raise, and SimulatorError for workgroups that wait for each other without end.
    """
    work = copy.copy(dispatch)
    work.memory = dispatch.memory.with_copied_content()
    recorder = _Recorder(work, Lines.of(dispatch.memory), instruction_limit)
    streams = recorder.record(frozenset(chosen))
    kept = {w: [without_waiting(s, dispatch.program) for s in waves] for w, waves in streams.items()}
    waited = any(len(kept[w][i]) < len(s) for w, waves in streams.items() for i, s in enumerate(waves))
    return kept, waited


class _Recorder(Execution):
    """Executes all workgroups of a launch, another one whenever one waits."""

    def __init__(self, work: Dispatch, lines: Lines, instruction_limit: int) -> None:
        super().__init__(work, instruction_limit, watch=TracingWatch(unneeded_products(work)))
        self._lines = lines
        self._at_work: list[Place] = []
        self._free: list[Place] = []
        self._found: dict[int, list[Array]] = {}
        self.launch.block.turn = _TURN

    @IeeeFloats()
    def record(self, chosen: Collection[int]) -> dict[int, list[Array]]:
        """The streams of the chosen workgroups."""
        for number in range(self.launch.group_count):
            self._go_on(self._started(number, is_kept=number in chosen))
            while len(self._at_work) >= self._most_groups and self._anyone_goes_on():
                pass
        while self._anyone_goes_on():
            pass
        if self._at_work:
            raise SimulatorError(
                f"{len(self._at_work)} workgroups wait for each other, and none goes on",
                hint="launch without tracing(): then the error says what they read",
            )
        return {number: self._found[number] for number in chosen}

    def _started(self, number: int, *, is_kept: bool) -> Place:
        """A place in which native code starts a workgroup, and no other one after it."""
        place = self._free.pop() if self._free else Place(self, self._lines)
        place.begin(is_kept=is_kept)
        self.launch.block.next, self.launch.block.group_count = number, number + 1
        self._at_work.append(place)
        return place

    def _anyone_goes_on(self) -> bool:
        """Let each workgroup go on. True if any did more than wait."""
        moved = [self._go_on(place) for place in list(self._at_work)]
        return any(moved)

    def _go_on(self, place: Place) -> bool:
        """Execute a workgroup until it ends or waits, or for some slices. True if it did more than wait."""
        for slice_ in range(_PATIENCE_SLICES):
            place.slot.block.budget = _SLICE
            if self._continue(place.slot):
                self._at_work.remove(place)
                self._free.append(place)
                self._found[place.slot.number] = place.streams()
                return True
            place.forget_waiting()
            if place.slot.is_waiting:
                return slice_ > 0
        return True


def without_waiting(stream: Array, program: Program) -> Array:
    """A stream without the rounds of loops in which a wave waits: the same words again, with a load and no store.

    The last round, which does not go back, is what is left of such a loop.
    """
    loads = [i.index for i in program.instructions if _reads_what_others_write(i)]
    keep = np.ones(len(stream), np.bool_)
    for load in loads:
        for first, end in _rounds(stream, np.flatnonzero(stream == load)):
            keep[first:end] = False
    return stream[keep] if not keep.all() else stream


def _reads_what_others_write(instruction: Instruction) -> bool:
    """True for a load or an atomic operation that looks beyond the caches of its compute unit."""
    is_load = instruction_class(instruction.mnemonic) in ("VMEM load", "VMEM atomic")
    return is_load and any(word in instruction.listed.text for word in ("sc0", "sc1", "glc", "scope:"))


def _rounds(stream: Array, places: Array) -> Iterator[tuple[int, int]]:
    """The rounds from one execution of a load to the next that are repeated at once."""
    for first, second, third in zip(places, places[1:], places[2:], strict=False):
        length = second - first
        is_round = length == third - second <= _LONGEST_LOOP
        if is_round and np.array_equal(stream[first:second], stream[second:third]):
            yield int(first), int(third)
