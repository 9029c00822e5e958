"""The lock-step machine in which loads bring their data as late as the waits allow.

Where a wait is missing, the wave reads what its registers, or LDS, held before, and its results are wrong, as a GPU's
are when memory is slow. With all waits in place, results do not change. In each workgroup one wave runs ahead, from
barrier to barrier, so that it reads LDS before the other waves' loads have arrived there.

Two kinds of loads arrive at once, because a barrier in LDS, and no counter, says when they are complete: tiles that
signal such a barrier, and asynchronous loads before an asynchronous arrival. Stores from LDS to memory are immediate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from flydsl.arch.launch_limits import Dim3
from flydsl.arch.wait_counters import wait_counters
from flydsl.hsaco.operands import Register
from flydsl.hsaco.register_uses import RegisterSet
from flydsl.simulator.arrays import Array
from flydsl.simulator.dispatch import Dispatch
from flydsl.simulator.isa.operations import writes_lds
from flydsl.simulator.lockstep.checked.outstanding import Ended, Outstanding, Started
from flydsl.simulator.lockstep.machine import Machine, Step
from flydsl.simulator.lockstep.tensor import Move
from flydsl.simulator.waits.instructions import Facts
from flydsl.simulator.waits.suspects import suspects_of
from flydsl.simulator.waves import row_of

Place = tuple[str, int]
"""A register: its file and number."""


@dataclass
class _Arrival:
    """The data of an operation under way. registers: (bits to change, their values), each (waves, lanes) of u32.

    lds: by wave, (offsets in bytes, the bytes there).
    """

    registers: dict[Place, tuple[Array, Array]] = field(default_factory=dict)
    lds: dict[int, tuple[Array, Array]] = field(default_factory=dict)


_NOTHING: tuple[Array, Array] = np.zeros(0, np.intp), np.zeros(0, np.uint8)


class LateMachine(Machine):
    """Executes loads when they are issued, puts the old contents back, and delivers the new ones when they must be."""

    def __init__(
        self, dispatch: Dispatch, steps: Sequence[Step], workgroup_ids: Sequence[Dim3], instruction_limit: int
    ) -> None:
        waves = dispatch.waves(list(workgroup_ids))
        super().__init__(dispatch.program, steps, waves, dispatch.memory, dispatch.symbols, instruction_limit)
        self._operations = Outstanding(wait_counters(dispatch.program.arch), waves.count)
        self._arrivals: dict[Started, _Arrival] = {}
        self._has_arrived = False  # whether a tile of the current instruction has signalled a barrier in LDS
        facts = suspects_of(dispatch.program).facts
        self._steps = [self._delayed(step, fact) for step, fact in zip(steps, facts, strict=True)]

    def _delayed(self, step: Step, fact: Facts) -> Step:
        """A step that first delivers the data that it waits for, and withholds what it loads itself."""
        if not (fact.limits or fact.streams):
            return step
        is_late = bool(fact.results or writes_lds(fact.kind) or fact.kind == "tile")

        def delayed(machine: Machine) -> None:
            waves = self._selected_indices().copy()
            self._deliver(self._operations.wait(fact, waves) if fact.limits else [])
            if fact.kind == "asynchronous arrival":
                for wave in waves.tolist():
                    self._deliver(self._operations.finish("asynchronous load", wave))
            started = None
            if fact.streams:
                started, ended = self._operations.start(fact, waves, is_kept=is_late)
                self._deliver(ended)
            if started is None:
                step(machine)
            else:
                self._put_off(started, step)

        return delayed

    def _next_group(self, runnable: Array) -> tuple[Array, int]:
        """The first wave of each workgroup that can go on."""
        awake = runnable[~self._yielded[runnable]]
        if awake.size == 0:
            self._yielded[:] = False
            awake = runnable
        places = awake % self.waves.waves_per_workgroup
        return super()._next_group(awake[places == places.min()])[0], len(self._steps)

    def _turn_of_group(self, stop: int) -> int:
        """The usual turn, as a wave may wait in a loop for any other one."""
        return self._turn

    def _put_off(self, started: Started, step: Step) -> None:
        """Execute an operation, and withhold its results: the old contents are put back."""
        arrival = self._arrivals[started] = _Arrival()
        if not started.fact.results:
            self._put_off_lds(started, arrival, step)
            return
        registers = [place for place in RegisterSet(started.fact.results).registers() if place[0] in "sva"]
        before = {place: self._content(place, started.waves) for place in registers}
        step(self)
        for place, old in before.items():
            new = self._content(place, started.waves)
            changed = ((old ^ new).view(np.uint8) != 0) * np.uint8(255)
            arrival.registers[place] = changed.view(np.uint32), new
            self._put(place, started.waves, old)

    def _put_off_lds(self, started: Started, arrival: _Arrival, step: Step) -> None:
        """Withhold what an operation writes to LDS, wave by wave, as each waits for its own data."""
        for wave in started.waves.tolist():
            self.select_waves(np.array([wave]))
            before, self._has_arrived = self.waves.lds.copy(), False
            step(self)
            if self._has_arrived:
                arrival.lds[wave] = _NOTHING
                continue
            places = np.flatnonzero(self.waves.lds != before)
            arrival.lds[wave] = places, self.waves.lds[places]
            self.waves.lds[places] = before[places]
        self.select_waves(started.waves)

    def _arrive(self, move: Move) -> None:
        super()._arrive(move)
        self._has_arrived = True

    def _deliver(self, ended: Sequence[Ended]) -> None:
        for started, waves in ended:
            arrival = self._arrivals[started]
            chosen = np.isin(started.waves, waves)
            for place, (changed, new) in arrival.registers.items():
                now = self._content(place, waves)
                self._put(place, waves, (now & ~changed[chosen]) | (new[chosen] & changed[chosen]))
            for wave in waves.tolist() if arrival.lds else ():
                places, content = arrival.lds[wave]
                self.waves.lds[places] = content
            if not started.open.any():
                del self._arrivals[started]

    def _content(self, place: Place, waves: Array) -> Array:
        """A register of some waves: (waves, lanes), or (waves, 1) of a scalar one."""
        file, number = place
        if file == "s":
            return np.ascontiguousarray(self.waves.sgpr[waves, number, None])
        return np.ascontiguousarray(self.waves.vgpr[row_of(Register(file, number, 1)), waves])

    def _put(self, place: Place, waves: Array, content: Array) -> None:
        file, number = place
        if file == "s":
            self.waves.sgpr[waves, number] = content[:, 0]
            self.exec_changed()
        else:
            self.waves.vgpr[row_of(Register(file, number, 1)), waves] = content
