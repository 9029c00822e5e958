"""The lock-step machine that knows what is under way: uses of registers, and wait states, that come too early."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from flydsl.arch.launch_limits import Dim3
from flydsl.arch.wait_counters import wait_counters
from flydsl.hsaco.operands import Register
from flydsl.hsaco.register_uses import RegisterSet
from flydsl.simulator.arrays import Array
from flydsl.simulator.dispatch import Dispatch
from flydsl.simulator.errors import Access, MissingWait
from flydsl.simulator.isa.operations import writes_lds
from flydsl.simulator.lockstep.checked.outstanding import Ended, Outstanding, Started
from flydsl.simulator.lockstep.checked.threefold import ThreefoldMachine
from flydsl.simulator.lockstep.machine import Machine, Step
from flydsl.simulator.waits.flow import Use
from flydsl.simulator.waits.hazards import Early, states_of
from flydsl.simulator.waits.instructions import Facts
from flydsl.simulator.waits.missing import enough_text, hazard_hint, hazard_problem, waiting_text
from flydsl.simulator.waits.suspects import Suspects, suspects_of
from flydsl.simulator.waves import row_of

COPIES_OF_CDNA5 = ("asynchronous load", "asynchronous store", "tile")
"""The copies that the check of races follows, too."""
_OF_LDS = ("LDS", "flat load", "flat store")
_OF_LANES = ("v_", "ds_", "buffer_", "global_", "flat_", "scratch_", "tbuffer_")
_ACROSS_LANES = ("v_mfma_", "v_smfmac_", "v_wmma_", "v_swmmac_", "v_readlane", "v_readfirstlane", "v_permlane")


class WaitingMachine(ThreefoldMachine):
    """Counts what its waves have under way. The base class checks registers that nothing wrote.

    operations: None where no check asks for them. started: the operation that the present instruction starts, if it is
    kept until it has completed.
    """

    def __init__(
        self,
        dispatch: Dispatch,
        steps: Sequence[Step],
        workgroup_ids: Sequence[Dim3],
        instruction_limit: int,
        copies: int,
        checks: frozenset[str],
    ) -> None:
        super().__init__(dispatch, steps, workgroup_ids, instruction_limit, copies)
        self.operations: Outstanding | None = None
        self.started: Started | None = None
        if checks.isdisjoint(("waits", "races")):
            return
        self._suspects: Suspects = suspects_of(dispatch.program)
        self._waits = "waits" in checks
        kept = {fact.index for fact in self._suspects.facts if self._is_kept(fact)}
        if kept:
            self.operations = Outstanding(wait_counters(dispatch.program.arch), self._originals)
            counting = {s for index in kept for s in self._suspects.facts[index].streams}
            self._steps = [self._counted(step, fact, kept, {s.counter for s in counting})
                           for step, fact in zip(self._steps, self._suspects.facts, strict=True)]  # fmt: skip
        if self._waits and self._suspects.hazards:
            self._passed = np.zeros((2, self._originals), np.int64)  # wait states, and vector instructions
            behind = {early.before for found in self._suspects.hazards.values() for early in found}
            self._since = {before: np.full((2, self._originals), -(1 << 40)) for before in behind}
            facts = self._suspects.facts
            self._steps = [self._timed(step, fact) for step, fact in zip(self._steps, facts, strict=True)]

    def _is_kept(self, fact: Facts) -> bool:
        """True for operations of which something has to be known until they have completed."""
        if fact.kind in COPIES_OF_CDNA5:
            return True
        return self._waits and (fact.index in self._suspects.starting or writes_lds(fact.kind) or fact.kind in _OF_LDS)

    def own_waves(self) -> Array:
        """The executing waves without their copies."""
        waves = self._selected_indices()
        return waves[waves < self._originals]

    # --- counting

    def _counted(self, step: Step, fact: Facts, kept: set[int], counters: set[str]) -> Step:
        """A step that also counts its operation, waits, and checks its registers, as far as there is anything to do."""
        uses = self._suspects.uses.get(fact.index, []) if self._waits else []
        counts = any(s.counter in counters for s in (*fact.streams, *((fact.besides,) if fact.besides else ())))
        waits = not counters.isdisjoint(fact.limits) or "all" in fact.limits
        if not (uses or counts or waits):
            return step
        is_kept = fact.index in kept

        def counted(machine: Machine) -> None:
            assert self.operations is not None
            waves = self.own_waves()
            if uses:
                self._check_uses(fact, uses, waves)
            if waits:
                self.end_operations(self.operations.wait(fact, waves))
            if counts:
                self.started, ended = self.operations.start(fact, waves, is_kept=is_kept)
                self.end_operations(ended)
                if self.started is not None and fact.index in self._suspects.starting:
                    self._remember(self.started)
            step(machine)
            self.started = None

        return counted

    def end_operations(self, ended: Sequence[Ended]) -> None:
        """Operations have completed for some waves. Subclasses record what they have done to memory."""

    def _remember(self, started: Started) -> None:
        """Keep the lanes and the contents of the registers that an operation will write."""
        waves = started.waves
        started.lanes = np.broadcast_to(self.exec_mask(), (self.selected_count, self.lane_count))[: waves.size].copy()
        names = RegisterSet(started.fact.results).registers()
        started.before = {(file, number): self._content(file, number, waves).copy() for file, number in names}

    def _content(self, file: str, number: int, waves: Array) -> Array:
        """A register of some waves: (waves, lanes), or (waves, 1) of a scalar one."""
        if file == "s":
            return np.asarray(self.waves.sgpr[waves, number, None])
        return np.asarray(self.waves.vgpr[row_of(Register(file, number, 1)), waves])

    # --- registers

    def _check_uses(self, fact: Facts, uses: list[Use], waves: Array) -> None:
        assert self.operations is not None
        for use in uses:
            for started in self.operations.of(use.key.instruction):
                self._check_use(fact, use, started, waves)

    def _check_use(self, fact: Facts, use: Use, started: Started, waves: Array) -> None:
        """Raise MissingWait where a lane uses a register that the operation is still to write for it."""
        for position in started.open_for(waves).tolist():
            wave = int(started.waves[position])
            lanes = self._lanes_used(fact, wave, waves)
            if started.lanes is not None and use.registers >> 128:
                lanes = lanes & started.lanes[position]
            if lanes.any():
                self._missing_wait(use, started, position, int(lanes.argmax()))

    def _lanes_used(self, fact: Facts, wave: int, waves: Array) -> Array:
        """The lanes of which an instruction uses vector registers; any, of a scalar one."""
        everything = fact.mnemonic.startswith(_ACROSS_LANES) or "dpp" in fact.text or ":[" in fact.text
        if everything or not fact.mnemonic.startswith(_OF_LANES):
            return np.ones(self.lane_count, np.bool_)
        mask = np.broadcast_to(self.exec_mask(), (self.selected_count, self.lane_count))
        return np.asarray(mask[int(np.searchsorted(waves, wave))])

    def _missing_wait(self, use: Use, started: Started, position: int, lane: int) -> None:
        assert self.operations is not None
        wave = int(started.waves[position])
        file, number = next(iter(RegisterSet(use.registers).registers()))
        is_scalar = file == "s"
        column = 0 if is_scalar else lane
        before = started.before[file, number][position, column]
        now = self._content(file, number, np.array([wave]))[0, column]
        verb = "overwrites" if use.writes else "reads"
        name = RegisterSet.of(file, number).names()[0]
        self.raise_missing(
            started, position, f"{verb} {name} before it has arrived",
            f"{name} held {_shown(before)} before, which the hardware may still see; {_shown(now)} is to come",
            None if is_scalar else lane,
        )  # fmt: skip

    def raise_missing(
        self, started: Started, position: int, problem: str, seen: str = "", lane: int | None = None
    ) -> NoReturn:
        """Raise MissingWait for an operation that the present instruction has not waited for."""
        assert self.operations is not None
        wave = int(started.waves[position])
        _, stream = self.operations.missing(started, position)
        enough = self.operations.enough(started, position)
        raise MissingWait(
            problem, self.instruction.listed, self.program.instructions[started.fact.index].listed,
            workgroup=self.waves.workgroup_ids[int(self.waves.workgroup[wave])],
            wave=wave % self.waves.waves_per_workgroup,
            lane=lane, thread=None if lane is None else self.waves.thread(wave, lane),
            counter=stream.counter, enough=enough, seen=seen, hint=self._waiting_hint(started, stream.counter, enough),
        )  # fmt: skip

    def raise_of_other_wave(self, problem: str, fact: Facts, wave: int, access: Access, count: int | None) -> NoReturn:
        """Raise MissingWait for what another wave of the workgroup has not waited for.

        count: that would do before the barrier between the two; None if there is no barrier.
        """
        counter, enough = fact.streams[-1].counter, count or 0
        barrier = f"and a barrier after it, before wave {access.wave} accesses it"
        where = f"in wave {wave}, {barrier}" if count is None else f"before the barrier in wave {wave}"
        wait = waiting_text(counter, enough) + (", or less," if enough else "")
        raise MissingWait(
            problem, self.instruction.listed, self.program.instructions[fact.index].listed,
            workgroup=access.workgroup, wave=access.wave, lane=access.lane, thread=access.thread,
            counter=counter, enough=enough, seen="", hint=f"{wait} {where}",
        )  # fmt: skip

    def _waiting_hint(self, started: Started, counter: str, enough: int) -> str:
        if started.wait is None:
            return f"nothing waits for it: {waiting_text(counter, enough)} before the use would"
        index, least = started.wait
        most = self._suspects.facts[index].limits.get(counter, 0)
        line = self.program.instructions[index].listed.line
        return f"{counter}({most}) at ISA line {line} leaves it outstanding; {enough_text(counter, least)} waits for it"

    # --- wait states

    def _timed(self, step: Step, fact: Facts) -> Step:
        """A step that also counts wait states, and checks them."""
        earlies = self._suspects.hazards.get(fact.index, [])
        counts = np.array([states_of(fact.text), int(fact.mnemonic.startswith("v_"))])[:, None]
        since = self._since.get(fact.index)

        def timed(machine: Machine) -> None:
            waves = self.own_waves()
            for early in earlies:
                self._check_states(early, waves)
            step(machine)
            self._passed[:, waves] += counts
            if since is not None:
                since[:, waves] = self._passed[:, waves]

        return timed

    def _check_states(self, early: Early, waves: Array) -> None:
        row = int(early.counts_vector)
        passed = self._passed[row, waves] - self._since[early.before][row, waves]
        late = np.flatnonzero(passed < early.needed)
        if not late.size:
            return
        wave, count = int(waves[late[0]]), int(passed[late[0]])
        raise MissingWait(
            hazard_problem(early._replace(passed=count)), self.instruction.listed,
            self.program.instructions[early.before].listed,
            workgroup=self.waves.workgroup_ids[int(self.waves.workgroup[wave])],
            wave=wave % self.waves.waves_per_workgroup,
            lane=None, thread=None, counter="", enough=0, seen="",
            hint=hazard_hint(early, early.needed - count),
        )  # fmt: skip


def _shown(bits: Any) -> str:
    """A register's content as a number, and as a float.

    >>> _shown(np.uint32(0x3F800000))
    '0x3f800000 (1 as f32)'
    """
    return f"{int(bits):#010x} ({float(np.uint32(bits).view(np.float32)):.7g} as f32)"
