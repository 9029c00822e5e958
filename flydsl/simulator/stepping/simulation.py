"""Run one workgroup of a launch instruction by instruction.

sim = launcher.simulate(A, B, C)  # stands before the first instruction
sim.step()  # one instruction
sim.run(until=17)  # up to code of source line 17; or "kernel.py:17", "isa:42", "barrier", "kernel"
sim.wave(0).vgpr.view("f4")[2], sim.lds, sim.where()
sim.run()  # to the end
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from flydsl.arch.launch_limits import Dim3
from flydsl.errors import LaunchError, SimulatorError
from flydsl.errors.missing_attributes import Explained
from flydsl.hsaco.variables import Variables
from flydsl.simulator.arrays import Array
from flydsl.simulator.counters import current_counting
from flydsl.simulator.decoding.program import Instruction, Program
from flydsl.simulator.dispatch import Dispatch
from flydsl.simulator.lockstep.machine import Machine
from flydsl.simulator.lockstep.run import new_machine, run_in_lockstep
from flydsl.simulator.stepping.description import Standing
from flydsl.simulator.stepping.places import Place, instructions_at
from flydsl.simulator.stepping.wave_state import Snapshot
from flydsl.simulator.waves import WAITING, Waves


@dataclass(frozen=True)
class Breakpoint:
    """A place where `Simulation.run` stops. instructions: the indices before which it does."""

    number: int
    place: Place
    instructions: frozenset[int]


@dataclass(frozen=True)
class Executed:
    """An instruction that a wave has executed."""

    wave: int
    instruction: Instruction

    def __str__(self) -> str:
        return f"wave {self.wave}  {self.instruction.listed.line:5d}  {self.instruction.listed.text}"


class Watcher(Protocol):
    """Follows a simulation."""

    def kernel_started(self) -> None:
        """The workgroup of another kernel stands before its first instruction."""

    def stepped(self, executed: Instruction, waves: tuple[int, ...]) -> None:
        """Waves of the workgroup have executed an instruction."""


class Simulation(Explained, Standing):
    """The launches of one call, with one workgroup of each kernel run instruction by instruction.

    Workgroups run in the order of dispatch: those before the one looked at have run when it starts, those after it run
    when it ends, and then the next kernel starts. So the tensors end up as after a launch. A kernel
    whose grid does not have the workgroup runs without a stop. Waves take turns as in a launch: those at the lowest pc
    go first and together.

    An error leaves the simulation before the instruction that raised it. The checks and the limit that are set when a
    kernel starts (see `checks`) hold here, too.

    recording: whether executed instructions are kept in `trace`; `Recording` also keeps what they changed.
    listing: the program's instructions. watchers: are told when a kernel starts and after each step.
    """

    elsewhere: ClassVar[Mapping[str, str]] = {
        "registers": "they are .wave(0).vgpr, .wave(0).sgpr",
        **{name: f"it is .wave(0).{name}" for name in ("vgpr", "agpr", "sgpr", "exec", "pc")},
        **dict.fromkeys(("back", "restart", "go_to"), "flydsl.simulator.Recording(sim) goes back, too"),
    }

    def __init__(
        self,
        launches: Sequence[Dispatch],
        workgroup: Dim3 = (0, 0, 0),
        *,
        keep_alive: Any = None,
        after_kernel: Callable[[], None] | None = None,
        traced_module: Callable[[], str] = lambda: "",
        described: Callable[[], Variables] | None = None,
    ) -> None:
        """keep_alive: the owner of the launches' memory. after_kernel: called when a kernel has ended. traced_module:
        the text of the module that the kernels were compiled from, for those who show what is in LDS. described: finds
        the variables of the source in the kernels.

        Raises LaunchError if no grid has the workgroup, and inside `counting`."""
        if current_counting() is not None:
            raise LaunchError(
                "a simulation cannot be counted: it goes on after the `with` block",
                hint="launch inside counting(), and simulate outside",
            )
        if not any(_has(launch, workgroup) for launch in launches):
            grids = ", ".join(f"{launch.kernel_name} {launch.grid}" for launch in launches) or "no kernel at all"
            raise LaunchError(f"no grid of this launch has workgroup {workgroup}", hint=f"it launches {grids}")
        self.workgroup = workgroup
        self.recording = False
        self.trace: list[Executed] = []
        self.watchers: list[Watcher] = []
        self.traced_module = traced_module
        self._describe = described
        self._described: Variables | None = None
        self._launches = iter(launches)
        self._keep_alive = keep_alive
        self._after_kernel = after_kernel or (lambda: None)
        self._breakpoints: dict[int, Breakpoint] = {}
        self._launch: Dispatch | None = None
        self._machine: Machine
        self._start_next_kernel()

    # --- running

    def step(self, n: int = 1, *, wave: int | None = None) -> Simulation:
        """Execute n instructions: of the current waves together, or of one wave alone.

        Raises SimulatorError if nothing is left to run, or the wave cannot continue.
        """
        self._begin()
        for _ in range(n):
            self._advance(wave)
            if self.done:
                break
        return self

    def run(self, until: Place | None = None) -> Simulation:
        """Run up to a place, a breakpoint, or the end, whichever comes first.

        until: a place (see `breakpoint`), "barrier" (every wave waits there), or "kernel" (the next one starts).
        Raises SimulatorError if nothing is left to run, or the place has no code, and InstructionLimit if the kernel
        never ends. Native code finds that out on a copy of everything; the simulation stays where that began.
        """
        launch = self._begin()
        stops = frozenset() if until in (None, "barrier", "kernel") else instructions_at(launch.program, until)
        stops = stops.union(*(b.instructions for b in self._breakpoints.values()))
        if until is None and not stops and not self.recording and not self.watchers:
            while self._launch:
                self._machine.run()
                self._end_kernel()
            return self
        for executed in itertools.count():
            if self.done:
                break
            if executed == self._machine.patience:
                self._machine.look_ahead()
            self._advance(None)
            at_kernel = until == "kernel" and self._launch is not launch
            at_barrier = until == "barrier" and self._everyone_waits()
            if at_kernel or at_barrier:
                break
            if not self.done and not self.current:
                self._pass_barriers()  # after one is a place, too
            if (current := self.current) and self.wave(current[0]).pc in stops:
                break
        return self

    def breakpoint(self, place: Place) -> Breakpoint:
        """Let `run` stop at a source line (17, or "kernel.py:17") or a line of the listing ("isa:42")."""
        added = Breakpoint(max(self._breakpoints, default=0) + 1, place, instructions_at(self.program, place))
        self._breakpoints[added.number] = added
        return added

    @property
    def breakpoints(self) -> tuple[Breakpoint, ...]:
        return tuple(self._breakpoints.values())

    def clear(self, breakpoint: Breakpoint | None = None) -> None:
        """Forget one breakpoint, or all of them."""
        if breakpoint is None:
            self._breakpoints.clear()
        else:
            self._breakpoints.pop(breakpoint.number, None)

    # --- inspecting

    @property
    def done(self) -> bool:
        return self._launch is None

    @property
    def kernel(self) -> str:
        return self._last.kernel_name

    @property
    def wave_count(self) -> int:
        return self._last.waves_per_workgroup

    @property
    def lds(self) -> Array:
        return self._machine.waves.lds[: self._last.lds_bytes]

    @property
    def lds_touched(self) -> Array:
        """The bytes of LDS that the last `step` or `run` read, and wrote: (2, lds_bytes) bool."""
        return self._touched

    @property
    def state(self) -> Waves:
        return self._machine.waves

    @property
    def program(self) -> Program:
        return self._last.program

    @property
    def launched(self) -> Dispatch:
        return self._last

    def described(self) -> Variables:
        if self._describe is None:
            raise SimulatorError(
                "the variables of this machine code are not known: it came without its source",
                hint="call launcher.simulate(...), of a @flyc.jit function",
            )
        if self._described is None:
            self._described = self._describe()
        return self._described

    @property
    def current(self) -> tuple[int, ...]:
        group = () if self.done else self._machine.next_group()
        return tuple(int(wave) for wave in group if wave < self.wave_count)

    @property
    def changed(self) -> dict[int, tuple[str, ...]]:
        """The changes of the last `step` or `run`, by wave: "s4", "v2", "a0", "vcc", "exec", "m0", "scc"."""
        return self._before.changed(self._machine.waves)

    # --- internals

    def _begin(self) -> Dispatch:
        launch = self._running()
        self._before = Snapshot(self._machine.waves, self.wave_count)
        self._touched[:] = False
        return launch

    def _running(self) -> Dispatch:
        if self._launch is None:
            raise SimulatorError(
                "everything has run: nothing is left to simulate", hint="call simulate(...) to start again"
            )
        return self._launch

    def _everyone_waits(self) -> bool:
        status = self._machine.waves.status[: self.wave_count]
        return not self.done and not self.current and bool(np.isin(status, WAITING).any())

    def _pass_barriers(self) -> None:
        self._machine.release_barriers()
        self._let_others_go_on()

    def _let_others_go_on(self) -> None:
        """Run the other workgroups of a cluster until it is this one's turn, or none of them can go on."""
        while not self.current and (group := self._machine.next_group()).size:
            self._machine.step_waves(group)

    def _advance(self, wave: int | None) -> None:
        """Execute one instruction. Waves that wait at a barrier pass it first, if no other can go on."""
        machine = self._machine
        if wave is None:
            while not self.current:
                self._pass_barriers()
            group = machine.next_group()
        else:
            group = self._alone(wave)
        at = int(machine.waves.pc[group[0]])
        machine.step_waves(group)  # which refuses what is after the last instruction
        executed = self.listing[at]
        self._mark()
        own = tuple(int(w) for w in group if w < self.wave_count)
        if self.recording:
            self.trace += [Executed(w, executed) for w in own]
        for watcher in list(self.watchers):
            watcher.stepped(executed, own)
        self._let_others_go_on()
        if not self.current and not self._everyone_waits():
            self._end_kernel()

    def _mark(self) -> None:
        """Take over what the step touched in LDS; machines that run copies of waves have copies of it after it."""
        marks = self._machine.lds_marks
        assert marks is not None
        self.last_touched = marks[:, : self._touched.shape[1]].copy()
        if self.last_touched.any():
            self._touched |= self.last_touched
            marks[:] = False

    def _alone(self, number: int) -> Array:
        wave = self.wave(number)
        if wave.done or (wave.at_barrier and self.current):
            doing = "has ended" if wave.done else "waits at a barrier for the others"
            raise SimulatorError(f"wave {number} cannot go on: it {doing}", hint=f"the current ones are {self.current}")
        if wave.at_barrier:
            self._pass_barriers()
        return self._machine.with_copies(number)

    def _start_next_kernel(self) -> None:
        """Stop before the first instruction of the workgroup in the next kernel that has it."""
        for launch in self._launches:
            if not _has(launch, self.workgroup):
                run_in_lockstep(launch, launch.workgroup_ids())
                self._after_kernel()
                continue
            own = launch.cluster_of(self.workgroup)
            before = [ids for ids in launch.workgroup_ids() if _order(launch.cluster_of(ids)) < _order(own)]
            run_in_lockstep(launch, before)
            self._launch = self._last = launch
            others = [ids for ids in launch.workgroups_of(own) if ids != self.workgroup]
            self._machine = new_machine(launch, [self.workgroup, *others])
            self._machine.lds_marks = np.zeros((2, self._machine.waves.lds.size), np.bool_)
            self._touched = np.zeros((2, launch.lds_bytes), np.bool_)
            self.last_touched = self._touched.copy()  # by the last instruction alone
            self._before = Snapshot(self._machine.waves, self.wave_count)
            for watcher in list(self.watchers):
                watcher.kernel_started()
            return
        self._launch = None

    def _end_kernel(self) -> None:
        launch = self._running()
        self._machine.run()  # what the other workgroups of a cluster still have to do
        own = launch.cluster_of(self.workgroup)
        after = [ids for ids in launch.workgroup_ids() if _order(launch.cluster_of(ids)) > _order(own)]
        run_in_lockstep(launch, after)
        self._after_kernel()
        self._start_next_kernel()


def _has(launch: Dispatch, workgroup: Dim3) -> bool:
    return all(0 <= i < size for i, size in zip(workgroup, launch.grid, strict=True))


def _order(workgroup: Dim3) -> Dim3:
    """The key of dispatch order: x fastest."""
    x, y, z = workgroup
    return z, y, x
