"""Native execution of a launch: the shared blocks, the threads, and the instructions left to Python."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from flydsl.arch.launch_limits import Dim3
from flydsl.errors import SimulatorError
from flydsl.progress import Task
from flydsl.simulator.arrays import Array
from flydsl.simulator.counters.raw import merge
from flydsl.simulator.dispatch import LaunchStatistics
from flydsl.simulator.errors import InstructionLimit
from flydsl.simulator.float_environment import IeeeFloats
from flydsl.simulator.lockstep.polling import Workgroups
from flydsl.simulator.memory.peers import Wait
from flydsl.simulator.modes import FloatMode
from flydsl.simulator.native import layout
from flydsl.simulator.native.counting import CountWatch, ThreadCounts
from flydsl.simulator.native.group import SharedWaves, WorkgroupSlot
from flydsl.simulator.native.idle_launches import keep, taken
from flydsl.simulator.native.launch_block import RepeatedWork, SharedLaunch, Watch, Work
from flydsl.simulator.native.library import library
from flydsl.simulator.native.turns import Turns
from flydsl.system.interrupts import interrupt_afterwards

if TYPE_CHECKING:
    from flydsl.simulator.lockstep.machine import Machine

_FIRST_SLICE = 40_000
_SLICE = 100_000
_LEAST_SLICE = 1_000
"""Instructions, not seconds: which workgroup sees what another one does must not depend on how fast the host is."""
_PATIENCE_SLICES = 20
_PATIENCE_OF_MANY_SLICES = 2
"""A workgroup that runs for longer may wait for another one: then that gets a turn, too. Soon it is twice as many, as a
workgroup at a barrier of the whole grid waits for all."""
_RESIDENT_WAVES, _MOST_RESIDENT_WAVES = 512, 8192
_RESIDENT_BYTES = 1 << 28
"""Waves whose workgroups take turns. Where workgroups may wait for each other, as many as are on a large GPU at once (a
barrier of a persistent grid waits for all of them), if their registers and LDS take no more bytes than this."""


def run(
    work: RepeatedWork,
    instruction_limit: int,
    threads: int | None,
    counts: Array | None = None,
    task: Task | None = None,
) -> LaunchStatistics:
    """Run all workgroups to their end.

    counts: array that accumulates the per-instruction counters (`counters.raw`); None: do not count. task: that this
    is, whose progress is asked for.

    Results do not depend on `threads` (default: one per core, which processes that share memory divide), nor on how
    fast the host is: of several errors that of the first workgroup is raised, and workgroups that use atomics in global
    memory run on one thread, start in order and take turns after fixed numbers of instructions. Without atomics a
    kernel whose workgroups write what others access has a race, here as on a GPU.
    """
    idle = taken(work, instruction_limit) if counts is None and work.memory.others is None else None
    execution = Execution(work, instruction_limit, counts, launch=idle)
    if task is not None:
        task.done = execution.ended_workgroups
    if execution.launch.has_global_atomics or execution.launch.group_count == 1:
        threads = 1  # with atomics their order, and with it rounding, is that of the workgroups
    execution.run(threads or max(_cores() // (1 + len(work.memory.others or ())), 1))
    if execution.launch.is_repeatable:
        keep(work, execution.launch)
    return execution.statistics()


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _wait_for(thread: threading.Thread) -> None:
    """Wait for the end of a thread; Ctrl-C works, a little later. A `join` that it interrupts takes it for ended."""
    is_alive = True
    while is_alive:
        with interrupt_afterwards():
            thread.join(0.05)
            is_alive = thread.is_alive()


class _OfThread(threading.local):
    """The current thread's own: its counters, if any, and the groups that it executes."""

    counts: ThreadCounts | None = None
    turns: Turns | None = None


class Execution:
    """One launch: the launch block, and for each thread the groups that it executes."""

    def __init__(
        self,
        work: Work,
        instruction_limit: int,
        counts: Array | None = None,
        watch: Watch | None = None,
        launch: SharedLaunch | None = None,
    ) -> None:
        self.work, self._limit, self._counts = work, instruction_limit, counts
        self._own = _OfThread()
        self._lock = threading.Lock()
        self._stopped = False
        self._errors: list[tuple[int, BaseException]] = []
        self._executed = self._resident = 0
        self._others = work.memory.others
        watch = watch or (None if counts is None else CountWatch())
        self.launch = launch or SharedLaunch(work, instruction_limit, watch=watch)
        self._most_groups = _most_groups(self.launch, work)
        self._run = library().run

    # --- threads

    def run(self, threads: int) -> None:
        """Run all workgroups. The calling thread also works, and is the one that Ctrl-C interrupts."""
        helpers: list[threading.Thread] = []

        def start_helpers() -> None:
            for _ in range(min(threads, self.launch.group_count) - 1):
                helper = threading.Thread(target=self._help, daemon=True)
                with interrupt_afterwards():  # `start` makes a RuntimeError of one, and the helper would be unknown
                    try:
                        helper.start()
                    except RuntimeError:  # the system has no thread to give: then with those that there are
                        return
                    helpers.append(helper)

        try:
            self._work(start_helpers)
            for helper in helpers:
                _wait_for(helper)
        except BaseException:
            self._stopped = True
            for helper in helpers:
                helper.join()
            raise
        self.raise_first_error()

    def raise_first_error(self) -> None:
        """Raise the error of the first workgroup that had one, if any."""
        if self._errors:
            raise min(self._errors, key=lambda e: e[0])[1]

    def ended_workgroups(self) -> int:
        """The number of workgroups that have come to their end. It may be asked for while they run."""
        started = min(self.launch.block.next, self.launch.group_count)
        return max(started - self._resident, 0) * self.launch.template.cluster_size

    def statistics(self) -> LaunchStatistics:
        return LaunchStatistics(self.launch.group_count * self.launch.template.count, self._executed)

    def _help(self) -> None:
        """Run `_work` on another thread; `run` raises its errors."""
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 - raised in `run`
            self._fail(-1, error)

    def _fail(self, number: int, error: BaseException) -> None:
        """Record a group's error; no more of them start. Those that have started go on: an earlier one may fail."""
        self._errors.append((number, error))
        self.launch.block.next = self.launch.group_count

    def _work(self, after_first_slice: Callable[[], None] | None = None) -> None:
        """Execute workgroups until there are none left, and add up what was counted."""
        counts = None if self._counts is None else ThreadCounts(self.work.program)
        self._own.counts = counts
        executed = self.take_turns(Turns(self._group()), after_first_slice)
        with self._lock:
            self._executed += executed
            if self._counts is not None and counts is not None:
                merge(self._counts, counts.counts())
                merge(self._counts, counts.fallen_back)

    @IeeeFloats()
    def take_turns(self, turns: Turns, after_first_slice: Callable[[], None] | None = None) -> int:
        """Execute groups in slices until they find no more workgroups. Return the number of instructions."""
        budget, executed = _FIRST_SLICE, 0
        self._own.turns = turns
        wait = None if self._others is None else Wait(self._others)
        while (group := turns.next()) and not self._stopped:
            if self._is_pointless(group):
                self._remove(group, turns)
                continue
            group.block.budget = budget
            try:
                finished = self._continue(group)
                if wait is not None:
                    self._wait(wait, group, turns)
            except Exception as error:  # noqa: BLE001 - raised in `run`
                self._fail(group.number, error)
                finished = True
            if finished:
                executed += group.block.executed
                self._remove(group, turns)
                continue
            self._be_patient(group, turns)
            budget = max(_SLICE // len(turns), _LEAST_SLICE)  # so that all of them soon had a turn
            if after_first_slice:
                after_first_slice()
                after_first_slice = None
        return executed

    def _group(self) -> WorkgroupSlot:
        counts = self._own.counts
        with self._lock:
            self._resident += 1
            if self.launch.idle_slots:
                return self.launch.idle_slots.pop()
        address = 0 if counts is None else counts.address
        return WorkgroupSlot(self.launch.template, self.launch.block, address, watched=self.launch.is_watched)

    def _remove(self, group: WorkgroupSlot, turns: Turns) -> None:
        """Take a group's turns away. One that has ended as it should can serve another launch."""
        turns.remove(group)
        with self._lock:
            self._resident -= 1
            if self.launch.is_repeatable and not self.launch.idle_slots and not self._errors:
                group.forget()
                self.launch.idle_slots.append(group)

    def _wait(self, wait: Wait, group: WorkgroupSlot, turns: Turns) -> None:
        """After a group's slice: if all groups wait for memory, start as many more, or let other processes run."""
        turns.waiting = turns.waiting + 1 if group.is_waiting else 0
        if not group.is_waiting:
            wait.go_on()
        elif turns.waiting > 2 * len(turns):
            if not sum(self._add_group(turns) for _ in range(len(turns))):
                wait.pause()
            turns.waiting = 0

    def _be_patient(self, group: WorkgroupSlot, turns: Turns) -> None:
        """Give other workgroups turns if one takes long, as many as have turns: it may wait for them."""
        group.slices += 1
        if group.slices >= (_PATIENCE_SLICES if len(turns) == 1 else _PATIENCE_OF_MANY_SLICES):
            group.slices = 0
            for _ in range(len(turns)):
                self._add_group(turns)

    def _add_group(self, turns: Turns) -> bool:
        """Let another workgroup take turns; False if there is none, or no room for it."""
        is_one_left = self.launch.block.next < self.launch.group_count
        if not is_one_left or len(turns) >= self._most_groups:
            return False
        turns.add(self._group())
        return True

    def _is_pointless(self, group: WorkgroupSlot) -> bool:
        """True if an earlier workgroup never ended: its error counts, whatever happens to this one."""
        return bool(self._errors) and any(
            isinstance(error, InstructionLimit) and number < group.number for number, error in self._errors
        )

    @IeeeFloats()
    def execute(self, group: WorkgroupSlot) -> None:
        """Execute the contents of a group block, and all workgroups that have not started."""
        group.block.budget = _SLICE
        while not self._continue(group):
            group.block.budget = _SLICE

    def _continue(self, group: WorkgroupSlot) -> bool:
        """Run one slice of a group. Return True if it found no more workgroups."""
        before, group.is_waiting = group.number, False
        while True:
            reason = self._run(group.address)
            if reason == layout.DONE:
                return True
            group.is_waiting = reason == layout.WAITING
            if reason in (layout.SLICE_OVER, layout.WAITING):
                if group.number != before:
                    group.slices = 0
                return False
            self._attend(group, reason)

    # --- instructions that native code leaves to Python

    def _attend(self, group: WorkgroupSlot, reason: int) -> None:
        w = group.block.wave
        if reason == layout.FALL_BACK:
            self._step(group, w)
        elif reason == layout.MODE_CHANGED:
            self._resume(self._shared(group), group, w)
        elif reason == layout.DEADLOCK:
            self._machine(self._shared(group)).release_barriers()
        elif reason == layout.LIMIT_REACHED:
            self._limit_reached(group, w)
        else:
            raise AssertionError(f"native code returned {reason}")

    def _step(self, group: WorkgroupSlot, w: int) -> None:
        """Execute one instruction in the lock-step machine: it has no handler, or causes an error."""
        waves = self._shared(group)
        self._machine(waves).step_waves(np.array([w]))
        if not 0 <= waves.pc[w] <= len(self.work.program.instructions):
            raise SimulatorError(f"wave {w} jumped to an address that is not code")
        self.launch.update_in_place()
        self._resume(waves, group, w)

    def _resume(self, waves: SharedWaves, group: WorkgroupSlot, w: int) -> None:
        """Let native code continue with a wave, whose MODE may have changed."""
        records = self.launch.records(FloatMode(int(waves.mode[w, 0])), int(waves.pc[w]))
        group.wave(w).records = records.ctypes.data
        waves.put_back(w)

    def _limit_reached(self, group: WorkgroupSlot, w: int) -> None:
        """Native code only looks at taken branches and where a wave returns: the limit may be further up."""
        wave = group.wave(w)
        run_start = (wave.run_start - wave.records) // layout.RECORD_BYTES
        beyond = wave.executed - self._limit
        pc = max(group.instruction_index(w) - beyond, run_start)
        from flydsl.simulator.lockstep.machine import limit_error

        raise limit_error(self._machine(self._shared(group)), self._limit, pc, w, self._standing(group))

    def _standing(self, group: WorkgroupSlot) -> Workgroups | None:
        """The places of the launch's workgroups; None where there is one, and where another thread may execute some."""
        count, turns = self.launch.group_count, self._own.turns
        if turns is None or count == 1 or self.launch.template.cluster_size > 1 or len(turns) != self._resident:
            return None
        started = min(self.launch.block.next, count)
        return Workgroups(
            [(self._shared(one).status, [one.instruction_index(w) for w in range(one.wave_count)]) for one in turns],
            ended=started - len(turns),
            not_started=count - started,
        )

    def _machine(self, waves: SharedWaves) -> Machine:
        from flydsl.simulator.lockstep.bind import bound_steps  # most launches have a handler for everything
        from flydsl.simulator.lockstep.counting import CountingMachine
        from flydsl.simulator.lockstep.machine import Machine

        machine = (self.work.program, bound_steps(self.work), waves, self.work.memory, self.work.symbols, self._limit)
        counts = self._own.counts
        if counts is None:
            return Machine(*machine)
        return CountingMachine(*machine, counts=counts.fallen_back, count_executions=False)

    def _shared(self, group: WorkgroupSlot) -> SharedWaves:
        return group.waves(self.work.workgroups_of(_coordinates(group.number, self.launch.grid)))


def _most_groups(launch: SharedLaunch, work: Work) -> int:
    """The groups that may take turns on a thread."""
    template, most_waves = launch.template, _RESIDENT_WAVES
    if launch.has_global_atomics:
        bytes_ = template.lds.size + template.count * layout.ROW_BYTES * (work.vgprs + work.agprs)
        most_waves = max(min(_MOST_RESIDENT_WAVES, _RESIDENT_BYTES // bytes_ * template.count), most_waves)
    return most_waves // template.count


def _coordinates(number: int, grid: Dim3) -> Dim3:
    return number % grid[0], number // grid[0] % grid[1], number // (grid[0] * grid[1])
