"""Recording of workgroups that wait for each other, for signals or at a barrier of the grid: all of them are executed.

Of a loop that waits only the last time round is kept, in which it finds what it waits for.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from flydsl.simulator.arrays import Array
from flydsl.simulator.counters.instruction_class import instruction_class
from flydsl.simulator.decoding.program import Instruction
from flydsl.simulator.dispatch import Dispatch
from flydsl.simulator.float_environment import IeeeFloats
from flydsl.simulator.memory.buffers import Memory
from flydsl.simulator.native.machine import Execution
from flydsl.simulator.timing.needed import unneeded_products
from flydsl.simulator.timing.recording import Lines, Place, TracingWatch
from flydsl.simulator.timing.signals import (
    LONGEST_LOOP,
    Log,
    Signal,
    Signalling,
    is_coherent,
    is_in,
    signals_of,
    with_signals,
)

_SLICE, _TURN, _PATIENCE_SLICES = 20_000, 500, 20
_TICKET_TURN = 64
"""Instructions of a wave's turn where workgroups take work from a counter: less than most pieces of work have."""


@dataclass(frozen=True)
class Together:
    """A recording of all workgroups. streams: of the chosen ones, wave by wave, with the numbers of their signals.

    signals: of all workgroups. numbered: of the chosen ones, by number, as workgroup and index in `signals`. too_many:
    whether they are more accesses than are kept, so that no signal is known. stuck: workgroups that wait for what no
    workgroup of the launch does; their streams end there. lengths: of all workgroups, the words of the longest stream.
    """

    streams: dict[int, list[Array]]
    signals: dict[int, list[Signal]]
    numbered: list[tuple[int, int]]
    too_many: bool
    stuck: int
    lengths: Mapping[int, int]


def record_together(
    dispatch: Dispatch,
    chosen: Collection[int],
    instruction_limit: int,
    signalling: Signalling,
    copied: Callable[[Memory], Memory] = Memory.with_copied_content,
    places: int | None = None,
) -> Together:
    """The streams of the chosen workgroups while all workgroups run, and the signals of all.

    They change the memory that `copied` makes of the launch's. Matrix instructions are recorded, but not executed where
    they decide nothing. Raises what the launch would raise.

    places: of workgroups on the GPU, where they take work from a counter, and give no signals: so many of them go on
    for a few instructions each in turn, so that each takes its share.
    """
    work = copy.copy(dispatch)
    work.memory = copied(dispatch.memory)
    recorder = _Recorder(work, Lines.of(dispatch.memory), instruction_limit, signalling, places)
    streams = recorder.record(frozenset(chosen))
    has_signals, log = places is None, recorder.log
    signals = signals_of(log.accesses(), signalling, recorder.beginning_of) if has_signals else {}
    loads = [i.index for i in dispatch.program.instructions if _reads_what_others_write(i)]
    loads = [load for load in loads if load not in signalling.tickets]
    keep = {w: [_without_waiting(stream, loads) for stream in waves] for w, waves in streams.items()}
    for w in signals.keys() & streams.keys():
        signals[w] = [s for s in signals[w] if is_in(s, streams[w][s.wave], keep[w][s.wave])]
    numbered = [(workgroup, index) for workgroup in streams for index in range(len(signals.get(workgroup, ())))]
    of_wave = defaultdict[tuple[int, int], list[tuple[int, int]]](list)
    for number, (workgroup, index) in enumerate(numbered):
        signal = signals[workgroup][index]
        of_wave[workgroup, signal.wave].append((signal.at, number))
    kept = {
        w: [with_signals(stream, keep[w][i], of_wave.get((w, i), ())) for i, stream in enumerate(waves)]
        for w, waves in streams.items()
    }
    return Together(kept, signals, numbered, has_signals and log.is_full, recorder.stuck, recorder.lengths)


class _Recorder(Execution):
    """Executes all workgroups of a launch, another one whenever one waits."""

    def __init__(
        self, work: Dispatch, lines: Lines, instruction_limit: int, signalling: Signalling, places: int | None
    ) -> None:
        super().__init__(work, instruction_limit, watch=TracingWatch(unneeded_products(work)))
        self._lines, self.log = lines, Log(signalling)
        self._beginnings = dict[int, list[int]]()
        self._at_work: list[Place] = []
        self._free: list[Place] = []
        self._found: dict[int, list[Array]] = {}
        self.stuck, self.lengths = 0, dict[int, int]()
        self.launch.block.turn = _TURN
        self._slice, self._patience_slices = _SLICE, _PATIENCE_SLICES
        if places is not None:
            self.launch.block.turn, self._most_groups = _TICKET_TURN, places
            self._slice, self._patience_slices = _TICKET_TURN * self.launch.template.count, 1

    @IeeeFloats()
    def record(self, chosen: Collection[int]) -> dict[int, list[Array]]:
        """The streams of the chosen workgroups."""
        for number in range(self.launch.group_count):
            self._go_on(self._started(number, is_kept=number in chosen))
            while len(self._at_work) >= self._most_groups and self._anyone_goes_on():
                pass
        while self._anyone_goes_on() or self._anyone_goes_on():
            pass
        if self._at_work:
            self.stuck = len(self._at_work)
            self._found.update((place.slot.number, place.streams()) for place in self._at_work)
        return {number: self._found[number] for number in sorted(chosen)}

    def beginning_of(self, workgroup: int, wave: int) -> int:
        """The address at which the stream of a wave begins."""
        return self._beginnings[workgroup][wave]

    def _started(self, number: int, *, is_kept: bool) -> Place:
        """A place in which native code starts a workgroup, and no other one after it."""
        place = self._free.pop() if self._free else Place(self, self._lines)
        place.begin(is_kept=is_kept)
        self._beginnings[number] = place.log_signals(self.log.block, number)
        self.launch.block.next, self.launch.block.group_count = number, number + 1
        self._at_work.append(place)
        return place

    def _anyone_goes_on(self) -> bool:
        """Let each workgroup go on. True if any did more than wait."""
        moved = [self._go_on(place) for place in list(self._at_work)]
        return any(moved)

    def _go_on(self, place: Place) -> bool:
        """Execute a workgroup until it ends or waits, or for some slices. True if it did more than wait."""
        for slice_ in range(self._patience_slices):
            place.slot.block.budget, was_waiting = self._slice, place.slot.is_waiting
            if self._continue(place.slot):
                self._at_work.remove(place)
                self._free.append(place)
                number = place.slot.number
                self._found[number], self.lengths[number] = place.streams(), place.longest(self._beginnings[number])
                return True
            place.forget_waiting()
            if place.slot.is_waiting:
                return slice_ > 0
        return not was_waiting  # whether it waits still is only seen when all its waves had their turns


def _without_waiting(stream: Array, loads: list[int]) -> Array:
    """The words of a stream but the rounds of loops in which a wave waits: the same again, with a load and no store.

    The last round, which does not go back, is what is left of such a loop.
    """
    keep = np.ones(len(stream), np.bool_)
    for load in loads:
        for first, end in _rounds(stream, np.flatnonzero(stream == load)):
            keep[first:end] = False
    return keep


def _reads_what_others_write(instruction: Instruction) -> bool:
    """True for a load or an atomic operation that looks beyond the caches of its compute unit."""
    is_load = instruction_class(instruction.mnemonic) in ("VMEM load", "VMEM atomic")
    return is_load and is_coherent(instruction)


def _rounds(stream: Array, places: Array) -> Iterator[tuple[int, int]]:
    """The rounds from one execution of a load to the next that are repeated at once."""
    for first, second, third in zip(places, places[1:], places[2:], strict=False):
        length = second - first
        is_round = length == third - second <= LONGEST_LOOP
        if is_round and np.array_equal(stream[first:second], stream[second:third]):
            yield int(first), int(third)
