"""A simulation with its past: every step is kept, so that one can go back, and forward again.

    recording = Recording(launcher.simulate(A, B))
    recording.step(); recording.step(wave=2); recording.run(until=17)
    recording.back(); recording.go_to(3); recording.restart()
    recording.now.wave(0).vgpr, recording.now.lds, recording.now.where()

Going back shows what was; it does not undo what the kernel wrote to memory. Going forward again shows the same steps,
as a simulation always takes the same, and then new ones.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

import numpy as np

from flydsl.errors import SimulatorError
from flydsl.hsaco.operands import Register
from flydsl.hsaco.variables import Variables
from flydsl.simulator.arrays import Array
from flydsl.simulator.decoding.program import Instruction, Program
from flydsl.simulator.decoding.result_type import result_type
from flydsl.simulator.dispatch import Dispatch
from flydsl.simulator.stepping.description import Standing
from flydsl.simulator.stepping.places import Place, instructions_at
from flydsl.simulator.stepping.simulation import Breakpoint, Simulation
from flydsl.simulator.stepping.wave_state import WaveState, register_names
from flydsl.simulator.waves import WAITING, Waves

MOST_STEPS = 20_000
_MOST_BYTES = 1 << 29
_ARRAYS = ("sgpr", "scc", "pc", "status", "executed", "lds")
"""The parts of a moment besides vector registers, which are kept row by row."""


@dataclass(frozen=True)
class Change:
    """The change by a step in one array: indices, old values, new values."""

    where: Any
    before: Array
    after: Array


@dataclass(frozen=True)
class Step:
    """A step that was taken. touched: flat indices into a (2, lds_bytes) array of what was read and written in LDS."""

    executed: Instruction
    waves: tuple[int, ...]
    changes: dict[str, Change]
    touched: Array


class State:
    """The state of a workgroup's waves at one moment, as `WaveState` reads it from `Waves`."""

    sgpr: Array
    scc: Array
    pc: Array
    status: Array
    executed: Array
    lds: Array

    def __init__(self, waves: Waves, count: int, lds_bytes: int) -> None:
        self.lanes, self.first_agpr = waves.lanes, waves.first_agpr
        self.vgpr = waves.vgpr[:, :count].copy()
        for name, array in _parts(waves, count, lds_bytes).items():
            setattr(self, name, array.copy())

    def step_to(self, waves: Waves, count: int, lds_bytes: int) -> dict[str, Change]:
        """Become the state of waves; what had to be changed."""
        changes = {}
        rows = np.nonzero((self.vgpr != waves.vgpr[:, :count]).any(axis=2))
        if rows[0].size:
            changes["vgpr"] = self._change(self.vgpr, rows, waves.vgpr[:, :count][rows])
        for name, array in _parts(waves, count, lds_bytes).items():
            mine = getattr(self, name)
            where = np.nonzero(mine != array)
            if where[0].size:
                changes[name] = self._change(mine, where, array[where])
        return changes

    def _change(self, mine: Array, where: Any, after: Array) -> Change:
        change = Change(where, mine[where], np.array(after))
        mine[where] = after
        return change

    def apply(self, step: Step, *, back: bool) -> None:
        """Take a step, or take it back."""
        for name, change in step.changes.items():
            getattr(self, name)[change.where] = change.before if back else change.after


def _parts(waves: Waves, count: int, lds_bytes: int) -> dict[str, Array]:
    return {name: getattr(waves, name)[: lds_bytes if name == "lds" else count] for name in _ARRAYS}


def _result_names(instruction: Instruction) -> frozenset[str]:
    """The registers that an instruction names as its results."""
    registers = [operand.atom for operand in instruction.results if isinstance(operand.atom, Register)]
    return frozenset(f"{r.file}{r.first + i}" for r in registers for i in range(r.count))


class KernelRecord:
    """The steps of a workgroup in one kernel, and its state after any of them."""

    def __init__(self, simulation: Simulation) -> None:
        self.kernel, self.program = simulation.kernel, simulation.program
        self.described, self.launched = simulation.described, simulation.launched
        self.wave_count, self.lds_bytes = simulation.wave_count, simulation.lds.size
        self.steps: list[Step] = []
        self._newest = self._state(simulation)
        self._shown, self._at = self._state(simulation), 0
        self._standings = [self._standing(simulation)]
        self._results: dict[int, frozenset[str]] = {}  # by instruction
        self._written: dict[tuple[int, str], list[int]] = {}  # by wave and register: the steps whose result it is
        self.bytes = 0

    def _state(self, simulation: Simulation) -> State:
        return State(simulation.state, self.wave_count, self.lds_bytes)

    def _standing(self, simulation: Simulation) -> tuple[tuple[int, ...], int | None]:
        """The waves that go on next, and with which instruction; of a barrier the one after it."""
        state = simulation.state
        current = simulation.current
        if current:
            return current, int(state.pc[current[0]])
        waiting = state.pc[: self.wave_count][np.isin(state.status[: self.wave_count], WAITING)]
        return (), int(waiting.min()) if waiting.size else None

    def add(self, simulation: Simulation, executed: Instruction, waves: tuple[int, ...], touched: Array) -> None:
        """Keep a step that was just taken."""
        changes = self._newest.step_to(simulation.state, self.wave_count, self.lds_bytes)
        for name in self._results_of(executed):
            for wave in waves:
                self._written.setdefault((wave, name), []).append(len(self.steps))
        self.steps.append(Step(executed, waves, changes, touched))
        self._standings.append(self._standing(simulation))
        self.bytes += sum(change.before.nbytes + change.after.nbytes for change in changes.values())

    def _results_of(self, instruction: Instruction) -> frozenset[str]:
        if instruction.index not in self._results:
            self._results[instruction.index] = _result_names(instruction)
        return self._results[instruction.index]

    def state(self, position: int) -> State:
        """The state after a number of steps; the arrays are used again for the next one that is asked for."""
        while self._at < position:
            self._shown.apply(self.steps[self._at], back=False)
            self._at += 1
        while self._at > position:
            self._at -= 1
            self._shown.apply(self.steps[self._at], back=True)
        return self._shown

    def has_written(self, number: int, place: str | int, wave: int, lane: int | None) -> bool:
        """True if a step wrote a register of a wave, or of one of its lanes, or a byte of LDS."""
        step = self.steps[number]
        if isinstance(place, int):
            return bool((step.touched == self.lds_bytes + place).any())
        is_result = wave in step.waves and place in self._results_of(step.executed)
        if not is_result and (wave, place) not in register_names(step.changes, self._newest.first_agpr):
            return False
        return lane is None or place[0] not in "va" or self._is_active(number, wave, lane)

    def writer(self, position: int, wave: int, register: str) -> Instruction | None:
        """The last instruction up to a step that has a register of a wave among its results."""
        numbers = self._written.get((wave, register), [])
        last = bisect_left(numbers, position)
        return self.steps[numbers[last - 1]].executed if last else None

    def _is_active(self, number: int, wave: int, lane: int) -> bool:
        return bool(WaveState(self.state(number), wave).active[lane])

    def current(self, position: int) -> tuple[int, ...]:
        """The waves that go on after a number of steps."""
        return self._standings[position][0]

    def next_index(self, position: int) -> int | None:
        """The instruction with which they do; where all wait at a barrier, the first after it."""
        return self._standings[position][1]


@dataclass(frozen=True, repr=False)
class Moment(Standing):
    """A workgroup between two steps that were recorded. It shows what a `Simulation` shows of the present.

    since: the position from which changes count. is_over: nothing follows in any kernel. step_number: the position of
    the recording, which counts the steps of the kernels before this one, too.
    """

    record: KernelRecord
    workgroup: tuple[int, int, int]
    position: int
    since: int
    is_over: bool
    step_number: int

    @property
    def kernel(self) -> str:
        return self.record.kernel

    @property
    def done(self) -> bool:
        return self.is_over

    @property
    def wave_count(self) -> int:
        return self.record.wave_count

    @property
    def program(self) -> Program:
        return self.record.program

    @property
    def state(self) -> State:
        return self.record.state(self.position)

    @property
    def lds(self) -> Array:
        return self.state.lds

    @property
    def current(self) -> tuple[int, ...]:
        return self.record.current(self.position)

    @property
    def launched(self) -> Dispatch:
        return self.record.launched

    def described(self) -> Variables:
        return self.record.described()

    @property
    def _steps(self) -> list[Step]:
        return self.record.steps[self.since : self.position]

    def type_of(self, wave: int, register: str) -> str:
        writer = self.record.writer(self.position, wave, register)
        return "" if writer is None else result_type(writer.mnemonic)

    @property
    def changed(self) -> dict[int, tuple[str, ...]]:
        """The changes since `since`, by wave: "s4", "v2", "a0", "vcc", "exec", "m0", "scc"."""
        names: dict[int, list[str]] = {}
        for step in self._steps:
            for wave, name in register_names(step.changes, self.state.first_agpr):
                names.setdefault(wave, []).append(name)
        return {wave: tuple(dict.fromkeys(found)) for wave, found in sorted(names.items())}

    @property
    def lds_touched(self) -> Array:
        """The bytes of LDS read (0) and written (1) since `since`: (2, lds_bytes) bool."""
        touched = np.zeros((2, self.record.lds_bytes), np.bool_)
        for step in self._steps:
            touched.reshape(-1)[step.touched] = True
        return touched


class Recording:
    """A simulation that can be gone through in both directions.

    position: the number of steps up to the moment that `now` is, from 0 on; each kernel begins with a moment of its
    own. At most `most_steps` are kept, fewer if memory is short; what runs after them is only seen at its
    end, as the last moment.
    """

    def __init__(self, simulation: Simulation, most_steps: int = MOST_STEPS) -> None:
        self.simulation = simulation
        self._most_steps = most_steps
        self._records: list[KernelRecord] = []
        self._is_full = False
        self.position = self._since = 0
        simulation.watchers.append(self)
        self.kernel_started()

    # --- what the simulation tells

    def kernel_started(self) -> None:
        """Begin with another kernel."""
        is_present = not self._records or self.position == self.last
        self._records.append(KernelRecord(self.simulation))
        if is_present:
            self.position = self.last

    def stepped(self, executed: Instruction, waves: tuple[int, ...]) -> None:
        """Keep a step. Where the present was looked at, it still is."""
        is_present = self.position == self.last
        touched = np.flatnonzero(self.simulation.last_touched)
        self._records[-1].add(self.simulation, executed, waves, touched)
        kept = sum(record.bytes for record in self._records)
        if self.last >= self._most_steps or kept > _MOST_BYTES:
            self._is_full = True
            self.simulation.watchers.remove(self)
        if is_present:
            self.position = self.last

    # --- where it is

    @property
    def last(self) -> int:
        """The last position."""
        return sum(len(record.steps) + 1 for record in self._records) - 1 + self._is_full

    @property
    def is_full(self) -> bool:
        """True if there were more steps than are kept: the last position is the present, after all that followed."""
        return self._is_full

    @property
    def done(self) -> bool:
        """True if nothing is left, neither recorded nor to run."""
        return self.simulation.done and self.position == self.last

    @property
    def now(self) -> Standing:
        """The moment at `position`."""
        if self._is_full and self.position == self.last:
            return self.simulation
        record, inside = self._place(self.position)
        first = self.position - inside
        since, is_over = max(self._since - first, 0), self.done and not self._is_full
        return Moment(
            record=record,
            workgroup=self.simulation.workgroup,
            position=inside,
            since=since,
            is_over=is_over,
            step_number=self.position,
        )

    def _place(self, position: int) -> tuple[KernelRecord, int]:
        """The kernel of a position, and the number of its steps up to there."""
        for record in self._records:
            if position <= len(record.steps):
                return record, position
            position -= len(record.steps) + 1
        raise IndexError(position)

    # --- going on and back

    def step(self, n: int = 1, *, wave: int | None = None) -> Recording:
        """Go on by n steps; with a wave, until it has executed n more instructions (the others take their turns).

        Raises SimulatorError if nothing is left to run.
        """
        self._since = self.position
        for _ in range(n):
            self._advance_wave(wave) if wave is not None else self._advance()
            if self.done:
                break
        return self

    def back(self, n: int = 1, *, wave: int | None = None) -> Recording:
        """Go back by n steps; with a wave, to before the last n instructions that it executed."""
        for _ in range(n):
            self._move(self.position - 1)
            while wave is not None and self.position and not self._is_next(wave):
                self._move(self.position - 1)
        return self

    def back_to_write(self, place: str | int, *, wave: int = 0, lane: int | None = None) -> Recording:
        """Go back to before the last instruction of this kernel that wrote what is asked for: who wrote this?

        place: a register of the wave ("v6", "a0", "s4", "vcc"), of one lane if that is given; or an address in LDS, in
        bytes, whoever wrote there. Raises SimulatorError, and stays, if nothing recorded has written it.
        """
        record, inside = self._place(min(self.position, self.last - self._is_full))
        first = min(self.position, self.last - self._is_full) - inside
        for number in reversed(range(inside)):
            if record.has_written(number, place, wave, lane):
                self._move(first + number)
                return self
        in_lds = isinstance(place, int)
        what = f"LDS at {place:#x}" if in_lds else f"{place} of wave {wave}"
        raise SimulatorError(
            f"no recorded instruction before this has written {what}",
            hint="a launch writes nothing to LDS: until an instruction does, what is read there is undefined"
            if in_lds
            else "what a kernel begins with was written by the launch",
        )

    def restart(self) -> Recording:
        """Go back to the beginning."""
        return self.go_to(0)

    def go_to(self, position: int) -> Recording:
        """Go to a position that was recorded. Raises SimulatorError for another."""
        if not 0 <= position <= self.last:
            raise SimulatorError(f"there is no moment {position}", hint=f"moments are 0 to {self.last}")
        self._move(position)
        return self

    def run(self, until: Place | None = None) -> Recording:
        """Go on to a place, a breakpoint of the simulation, or the end; see `Simulation.run`. First through what was
        recorded."""
        start, self._since = self.position, self.position
        stops = frozenset() if until in (None, "barrier", "kernel") else instructions_at(self.now.program, until)
        stops = stops.union(*(b.instructions for b in self.simulation.breakpoints))
        record, _ = self._place(min(start, self.last - self._is_full))
        while self.position < self.last:
            self.position += 1
            if self._stops(until, stops, record):
                return self
        if self.simulation.done:
            if start == self.position:
                self._advance()  # which says that nothing is left
            return self
        try:
            self._run_on(until, stops)
        finally:
            self.position = self.last
        return self

    def _run_on(self, until: Place | None, stops: frozenset[int]) -> None:
        """Go on where nothing is recorded. Without a place to stop at, what is not kept runs at full speed."""
        if until is not None or stops:
            self.simulation.run(until)
            return
        while not self._is_full and not self.simulation.done:
            self.simulation.step()
        if not self.simulation.done:
            self.simulation.run()

    def _stops(self, until: Place | None, stops: frozenset[int], begun_in: KernelRecord) -> bool:
        if self._is_full and self.position == self.last:
            return False
        record, inside = self._place(self.position)
        if until == "kernel" and record is not begun_in:
            return True
        if until == "barrier" and not record.current(inside) and record.next_index(inside) is not None:
            return True
        return record.next_index(inside) in stops

    def _advance(self) -> None:
        if self.position < self.last:
            self.position += 1
            return
        try:
            self.simulation.step()
        finally:
            self.position = self.last

    def _advance_wave(self, wave: int) -> None:
        """Go on until a wave has executed an instruction, or its kernel is over."""
        kernel = self.now.kernel
        executed = self.now.wave(wave).executed
        while True:
            self._advance()
            now = self.now
            if self.done or now.kernel != kernel or wave >= now.wave_count or now.wave(wave).executed != executed:
                return
            if now.wave(wave).done:
                return

    def _is_next(self, wave: int) -> bool:
        """True if the step from here is one of a wave."""
        record, inside = self._place(self.position)
        return inside < len(record.steps) and wave in record.steps[inside].waves

    def _move(self, position: int) -> None:
        self.position = max(position, 0)
        self._since = max(self.position - 1, 0)

    # --- breakpoints

    def breakpoint(self, place: Place) -> Breakpoint:
        """Let `run` stop at a place; see `Simulation.breakpoint`."""
        return self.simulation.breakpoint(place)
