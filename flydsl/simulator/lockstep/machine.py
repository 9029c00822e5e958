"""Execute a batch of waves in lock-step: every instruction is a few array operations over all waves at the same pc.

Waves part where a scalar branch goes both ways, and meet again at the next common pc, because the group with the
lowest pc always goes first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from flydsl.errors import SimulatorError
from flydsl.hsaco.operands import Symbol
from flydsl.simulator.arrays import Array
from flydsl.simulator.decoding.program import CODE_BASE, INSTRUCTION_BYTES, Program, relocated
from flydsl.simulator.errors import BarrierMisuse, InstructionLimit, Trap
from flydsl.simulator.float_environment import IeeeFloats
from flydsl.simulator.lockstep.deadlock import deadlock
from flydsl.simulator.lockstep.polling import Workgroups, polled_by, story_of_loop
from flydsl.simulator.lockstep.standstill import Standstill
from flydsl.simulator.lockstep.tensor import NumpyTensors
from flydsl.simulator.memory.buffers import Memory
from flydsl.simulator.memory.peers import Wait
from flydsl.simulator.modes import FloatMode
from flydsl.simulator.waves import AT_BARRIER, AT_CLUSTER_BARRIER, ENDED, RUNNING, Waves

Step = Callable[["Machine"], None]
RunAhead = Callable[["Machine", int, int], None]
"""Raises InstructionLimit if one of a machine's first workgroups does not end within a limit; changes nothing."""

_TURN, _TURN_BESIDE_BARRIER, _TURN_AMONG_PEERS = 10_000, 1_000, 500
"""Instructions after which a group lets others go first: that stand further on, or at a barrier, or any."""


class Machine(NumpyTensors):
    """The lock-step backend: a builder whose values are arrays, and the loop that runs it.

    `steps` is one callable per instruction of the program, from `bind`. When a wave has executed `patience`
    instructions, which may have taken a second, `run_ahead`, if there is one, is asked whether the waves end.
    """

    patience = 2_000
    run_ahead: RunAhead | None = None

    def __init__(
        self,
        program: Program,
        steps: Sequence[Step],
        waves: Waves,
        memory: Memory,
        symbols: Mapping[str, int],
        instruction_limit: int,
    ) -> None:
        super().__init__(waves, memory)
        self.program = program
        self.symbols = symbols
        self._steps = steps
        self._instruction_limit = instruction_limit
        self._pc = 0
        self._executed = 0  # by the running group, not yet added to its waves
        self._following: int | None = 0  # None: the group does not go on together
        self._yielded = np.zeros(waves.count, np.bool_)
        self._is_known_to_end = False
        self._turn = _TURN if memory.others is None else _TURN_AMONG_PEERS

    def run(self) -> None:
        """Run every wave to its end."""
        standstill = None if self.memory.others is None else Standstill(Wait(self.memory.others), self.waves)
        with IeeeFloats():
            while True:
                runnable = np.flatnonzero(self.waves.status == RUNNING)
                if runnable.size == 0:
                    if not self.release_barriers():
                        return
                    continue
                self._run_group(*self._next_group(runnable))
                if standstill is not None:
                    standstill.after_run()
                if int(self.waves.executed.max()) >= self.patience:
                    self.look_ahead()

    def look_ahead(self) -> None:
        """Raise InstructionLimit if a wave does not end within its limit. Does not change this machine."""
        if self.run_ahead is not None and not self._is_known_to_end and self.memory.others is None:
            self.run_ahead(self, self.workgroup_count, self._instruction_limit)
        self._is_known_to_end = True

    @property
    def workgroup_count(self) -> int:
        """The number of workgroups at the start of `waves` that are not copies of others."""
        return len(self.waves.workgroup_ids)

    def _next_group(self, runnable: Array) -> tuple[Array, int]:
        """The waves with the lowest pc (and one float mode), and the pc at which other waves wait for them."""
        awake = runnable[~self._yielded[runnable]]
        if awake.size == 0:
            self._yielded[:] = False
            awake = runnable
        pcs = self.waves.pc[awake]
        lowest = pcs.min()
        group = awake[pcs == lowest]
        modes = self.waves.mode[group, 0]
        group = group[modes == modes[0]]
        others = self.waves.pc[np.setdiff1d(runnable, group, assume_unique=True)]
        others = others[others > lowest]
        return group, int(others.min()) if others.size else len(self._steps)

    def step_waves(self, group: Array) -> None:
        """Execute one instruction of waves that stand at the same pc and have the same MODE."""
        with IeeeFloats():
            if int(self.waves.executed[group].max()) >= self._instruction_limit:
                pc, wave = int(self.waves.pc[group[0]]), int(group[0])
                raise limit_error(self, self._instruction_limit, pc, wave)
            self._run_group(group, stop=-1)
            if int(self.waves.executed[group].max()) % _TURN == 0:
                self._yielded[group] = True

    def next_group(self) -> Array:
        """The waves whose turn it is, all at one pc; empty if none can go on before a barrier is passed."""
        runnable = np.flatnonzero(self.waves.status == RUNNING)
        return self._next_group(runnable)[0] if runnable.size else runnable

    def first_access(self, index: int, wave: int) -> tuple[int, int] | None:
        """(address, bytes) of the first access to memory that an instruction would make for a wave; it makes none."""
        self.select_waves(np.array([wave]))
        self.instruction = self.program.instructions[index]
        return self.intercept_access(lambda: self._steps[index](self))

    def with_copies(self, wave: int) -> Array:
        """A wave as a group: alone, unless the machine runs copies of waves."""
        return np.array([wave])

    def _run_group(self, group: Array, stop: int) -> None:
        """Run until the group parts, ends, waits, reaches `stop`, or has had its turn."""
        self.select_waves(group)
        waves, steps, instructions = self.waves, self._steps, self.program.instructions
        pc = int(waves.pc[group[0]])
        if pc >= len(steps):
            raise self._past_the_end(int(group[0]))
        self._apply_mode()
        self._executed = 0
        budget = self._instruction_limit - int(waves.executed[group].max())
        turn = self._turn_of_group(stop)
        limit = min(budget, turn)
        if not self._is_known_to_end:
            limit = min(limit, self.patience)
        while True:
            self._pc, self._following = pc, pc + 1
            self.instruction = instructions[pc]
            try:
                steps[pc](self)
            except NotImplementedError as reason:
                self._stop_at(pc)
                raise self.instruction.unknown_form(reason) from reason
            except SimulatorError as error:
                self._stop_at(pc)
                error.located(self.instruction.location)
                raise
            self._executed += 1
            if self._following is None:
                break
            pc = self._following
            if pc >= stop:
                waves.pc[group] = pc
                break
            if self._executed >= limit:
                self._end_turn(pc, budget, turn)
                break
        waves.executed[group] += self._executed

    def _turn_of_group(self, stop: int) -> int:
        """The instructions after which others have their turn: waves that stand at `stop`, or at a barrier.

        A wave that waits in a loop may wait for one that is to pass a barrier.
        """
        if stop < len(self._steps) or self.memory.others is not None:
            return self._turn
        is_waiting = np.isin(self.waves.status, (AT_BARRIER, AT_CLUSTER_BARRIER))
        return _TURN_BESIDE_BARRIER if is_waiting.any() else self._instruction_limit

    def _past_the_end(self, wave: int) -> SimulatorError:
        of_group = wave % self.waves.waves_per_workgroup
        return SimulatorError(
            f"workgroup {self.waves.workgroup_ids[int(self.waves.workgroup[wave])]}, wave {of_group} "
            "ran past the end of the code, without s_endpgm",
            hint="LLVM drops the end of the code after the use of an uninitialised value",
        )

    def _stop_at(self, pc: int) -> None:
        """Leave the group before an instruction that it cannot execute, so that the error is found there."""
        self.waves.pc[self.selection] = pc
        self.waves.executed[self.selection] += self._executed

    def _end_turn(self, pc: int, budget: int, turn: int) -> None:
        """End the turn of a group, which may wait in a loop for other waves."""
        if self._executed < budget:
            self.waves.pc[self.selection] = pc
            if self._executed >= turn:
                self._yield()
            return
        self._stop_at(pc)
        wave = int(np.arange(self.waves.count)[self.selection][0])
        raise limit_error(self, self._instruction_limit, pc, wave)

    def _yield(self) -> None:
        """Let others go first, also those at a complete barrier: a wave that is past it may wait for them in a loop."""
        self._yielded[self.selection] = True
        self.complete_barriers()

    # --- barriers

    def release_barriers(self) -> bool:
        """Let every workgroup and cluster pass that has arrived. Return False if no wave waits at all."""
        waves = self.waves
        waiting = (waves.status == AT_BARRIER) | (waves.status == AT_CLUSTER_BARRIER)
        if not waiting.any():
            return False
        goes_on = np.repeat(self._all_waves_signalled(), waves.waves_per_workgroup)
        goes_on |= np.repeat(self._all_workgroups_signalled(), waves.waves_per_workgroup)
        of_cluster = goes_on.reshape(-1, waves.waves_per_workgroup * waves.cluster_size)
        stuck = np.flatnonzero((waiting.reshape(of_cluster.shape) & ~of_cluster.any(axis=1, keepdims=True)).reshape(-1))
        if stuck.size:
            raise deadlock(self.program, waves, int(stuck[0]))
        self.complete_barriers()
        return True

    def _all_waves_signalled(self) -> Array:
        """For each workgroup: whether all of its waves that have not ended have arrived at its barrier.

        The hardware waits for no others.
        """
        waves = self.waves
        ended = (waves.status == ENDED).reshape(-1, waves.waves_per_workgroup).sum(axis=1)
        return np.asarray((waves.signals > 0) & (waves.signals + ended >= waves.waves_per_workgroup))

    def _all_workgroups_signalled(self) -> Array:
        """For each workgroup: whether all those of its cluster, if it is in one, have arrived at that one's barrier."""
        size = self.waves.cluster_size
        arrived = self.waves.cluster_signals.reshape(-1, size).all(axis=1) & (size > 1)
        return np.repeat(arrived, size)

    def complete_barriers(self) -> Array:
        """Let the workgroups pass whose waves have all arrived: those that wait go on, the others may pass when they
        come to it. Return the waves of these workgroups that have not ended."""
        waves = self.waves
        if waves.cluster_size > 1:
            self.complete_cluster_barriers()
        complete = self._all_waves_signalled()
        waves.signals[complete] = 0
        return self._pass(complete, AT_BARRIER, waves.may_pass)

    def complete_cluster_barriers(self) -> Array:
        """The same of the barriers of clusters."""
        complete = self._all_workgroups_signalled()
        self.waves.cluster_signals[complete] = 0
        return self._pass(complete, AT_CLUSTER_BARRIER, self.waves.may_pass_cluster)

    def _pass(self, complete: Array, status: int, may_pass: Array) -> Array:
        """Let waves of some workgroups pass a barrier, at which those wait that have a status. Return them all."""
        waves = self.waves
        of_them = complete[waves.workgroup]
        waiting = waves.status == status
        may_pass |= of_them & ~waiting
        waves.status[of_them & waiting] = RUNNING
        return np.flatnonzero(of_them & (waves.status != ENDED))

    # --- the builder's control operations

    def next_pc(self) -> Array:
        return np.full((1, 1), CODE_BASE + INSTRUCTION_BYTES * (self._pc + 1), np.uint64)

    def branch(self, condition: Array, target: int) -> None:
        """Go to instruction `target` where the (scalar) condition holds."""
        if condition.all():
            self._following = target
        elif condition.any():
            self.waves.pc[self.selection] = np.where(condition[:, 0], target, self._pc + 1)
            self._following = None

    def jump(self, address: Array) -> None:
        targets = (address[:, 0] - np.uint64(CODE_BASE)) // np.uint64(INSTRUCTION_BYTES)
        self.waves.pc[self.selection] = targets.astype(np.int64)
        self._following = None

    def barrier_signal(self) -> Array:
        workgroups = self.waves.workgroup[self.selection]
        distinct, first = np.unique(workgroups, return_index=True)
        is_first = np.zeros((workgroups.size, 1), np.bool_)
        is_first[first, 0] = self.waves.signals[distinct] == 0
        np.add.at(self.waves.signals, workgroups, 1)
        return is_first

    def barrier_wait(self) -> None:
        self._wait(AT_BARRIER, self.waves.may_pass)

    def _wait(self, status: int, may_pass: Array, has_barrier: Array | bool = True) -> None:
        """Let the waves wait, unless all have arrived. has_barrier: for each wave, whether there is one to wait at."""
        waves, selection = self.waves, self.selection
        waves.pc[selection] = self._pc + 1
        waves.status[selection] = np.where(may_pass[selection] | np.logical_not(has_barrier), RUNNING, status)
        may_pass[selection] = False
        self._following = None

    def cluster_barrier_signal(self, in_cluster: Array) -> None:
        """Arrive once for each wave: SimulatorError for the second wave of a workgroup that does."""
        waves = self.waves
        workgroups = waves.workgroup[self.selection][in_cluster[:, 0]]
        np.add.at(waves.cluster_signals, workgroups, 1)
        twice = np.flatnonzero(waves.cluster_signals > 1)
        if twice.size:
            raise BarrierMisuse(
                f"workgroup {waves.workgroup_ids[int(twice[0])]} signals its cluster's barrier twice before the others "
                "have signalled\n"
                f"  instruction: {self.instruction.listed.text} (ISA line {self.instruction.listed.line})",
                at=self.instruction.location,
                hint="one wave of each workgroup signals it, all wait: fx.rocdl.cluster.cluster_barrier() does that",
            )

    def is_cluster_unsignalled(self) -> Array:
        waves = self.waves
        clusters = waves.workgroup[self.selection] // waves.cluster_size
        signalled = np.asarray(waves.cluster_signals.reshape(-1, waves.cluster_size).any(axis=1))
        first = np.zeros(clusters.size, np.bool_)
        first[np.unique(clusters, return_index=True)[1]] = True
        return (first & ~signalled[clusters])[:, None]

    def cluster_barrier_wait(self, in_cluster: Array) -> None:
        self._wait(
            AT_CLUSTER_BARRIER, self.waves.may_pass_cluster, np.broadcast_to(in_cluster[:, 0], self.selected_count)
        )

    def end_wave(self) -> None:
        self.waves.status[self.selection] = ENDED
        self._following = None

    def trap(self) -> None:
        raise Trap(
            f"the kernel trapped: {self.instruction.listed.text} (ISA line {self.instruction.listed.line})",
            at=self.instruction.location,
            hint="a failed assertion, or code that must not be reached",
        )

    def wait(self) -> None:
        """Nothing: every access has completed, and the other waves are as far."""

    def fence(self, ordering: str) -> None:
        """Nothing: between two operations of numpy, this thread's accesses are in order."""

    def yield_wave(self) -> None:
        """Let the other waves go first: this one may wait for them in a loop."""
        self.waves.pc[self.selection] = self._pc + 1
        self._yield()
        self._following = None

    def clock(self) -> Array:
        """The number of instructions that each wave has executed; the only time here."""
        return (self.waves.executed[self.selection][:, None] + self._executed).astype(np.uint64)

    def symbol_value(self, symbol: Symbol, index: int) -> int:
        """The 32 bits that a relocation puts into the literal of instruction `index`."""
        try:
            return relocated(self.symbols, symbol, index)
        except KeyError:
            problem = f"the symbol {symbol.name}, which the module does not define"
            raise self.instruction.unknown(problem) from None

    # --- float modes

    def read_mode(self) -> Array:
        return self.waves.mode[self.selection]

    def write_mode(self, value: Array) -> None:
        self.waves.mode[self.selection] = value
        self.waves.pc[self.selection] = self._pc + 1
        self._following = None  # the waves may have different modes now

    def ieee_mode(self) -> bool:
        return self.mode.ieee

    def dx10_clamp(self) -> bool:
        return self.mode.dx10_clamp

    def applies_output_modifiers(self, value: Array) -> bool:
        """True if omod applies: only outside of IEEE mode, and if the mode flushes denormal results."""
        return not self.ieee_mode() and not self._denormals(value.dtype) & 2

    def overflow_saturates(self) -> bool:
        return self.mode.overflow_saturates

    def _apply_mode(self) -> None:
        self.mode = FloatMode(int(self.read_mode()[0, 0]))
        self.saturate_f16 = self.mode.overflow_saturates


def limit_error(
    machine: Machine, instruction_limit: int, pc: int, wave: int, workgroups: Workgroups | None = None
) -> InstructionLimit:
    """The error for a wave that continues at `pc` after its `instruction_limit`-th instruction.

    workgroups: where those of the launch stand, if that is known.
    """
    program, waves = machine.program, machine.waves
    following = program.instructions[min(pc, len(program.instructions) - 1)]
    before = [one.location for one in program.instructions[: following.index + 1] if one.location is not None]
    workgroup = waves.workgroup_ids[int(waves.workgroup[wave])]
    lines = [
        f"a wave executed more than {instruction_limit} instructions: does a loop never end?",
        f"  instruction: {following.listed.text} (ISA line {following.listed.line})",
        f"  workgroup {workgroup}, wave {wave % waves.waves_per_workgroup}",
        *story_of_loop(machine, pc, wave, workgroups),
    ]
    polled = polled_by(machine, pc, wave)
    who = 'inside checking("races"), this says who wrote last what it reads; ' if polled else ""
    error = InstructionLimit(
        "\n".join(lines),
        at=next((at for at in reversed(before) if at.column is not None), None),  # LLVM leaves an empty loop without
        hint=who + InstructionLimit.if_meant,
    )
    error.polled = polled
    return error
