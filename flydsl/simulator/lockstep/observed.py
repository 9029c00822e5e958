"""The lock-step machine that tells observers what it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from flydsl.hsaco.operands import Register
from flydsl.simulator.arrays import Array
from flydsl.simulator.counters.instruction_class import instruction_class
from flydsl.simulator.decoding.program import Instruction, Program
from flydsl.simulator.lockstep.machine import Machine, Step
from flydsl.simulator.lockstep.memory import Resolved
from flydsl.simulator.memory.buffers import Memory
from flydsl.simulator.observers import ObservedAccess, ObservedInstruction, Observer
from flydsl.simulator.waves import Waves, row_of


class ObservedMachine(Machine):
    """Executes as its base class does, and tells observers of it."""

    def __init__(
        self, observers: Sequence[Observer], program: Program, steps: Sequence[Step], waves: Waves, memory: Memory,
        symbols: Mapping[str, int], instruction_limit: int,
    ) -> None:  # fmt: skip
        super().__init__(program, steps, waves, memory, symbols, instruction_limit)
        self._of_instructions = [one for one in observers if one.overrides("instruction")]
        self._of_accesses = [one for one in observers if one.overrides("access")]
        self._of_barriers = [one for one in observers if one.overrides("barrier")]
        self._steps = [self._told(step, one) for step, one in zip(steps, program.instructions, strict=True)]
        self._ids = np.array(waves.workgroup_ids, np.int64).reshape(-1, 3)

    def _told(self, step: Step, instruction: Instruction) -> Step:
        """A step that tells of itself, if anybody wants to know of its class."""
        kind = instruction_class(instruction.mnemonic)
        observers = [one for one in self._of_instructions if kind in one.classes]
        if not observers:
            return step
        registers = [r.atom for r in instruction.results if isinstance(r.atom, Register)]

        def told(machine: Machine) -> None:
            indices = self._selected_indices().copy()
            active = np.broadcast_to(self.exec_mask(), (indices.size, self.lane_count)).copy()
            step(machine)
            results = tuple(self._content(r, i, indices) for r in registers for i in range(r.count))
            numbers = self._workgroups(indices), self._waves(indices)
            executed = ObservedInstruction(instruction, *numbers, active, results)
            for one in observers:
                one.instruction(executed)

        return told

    def _content(self, register: Register, part: int, indices: Array) -> Array:
        """A dword of a register, of some waves: (waves, lanes), or (waves, 1) of a scalar one."""
        if register.file == "s":
            return np.asarray(self.waves.sgpr[indices, register.first + part, None])
        return np.asarray(self.waves.vgpr[row_of(Register(register.file, register.first + part, 1)), indices])

    def _workgroups(self, indices: Array) -> Array:
        return np.asarray(self._ids[self.waves.workgroup[indices]])

    def _waves(self, indices: Array) -> Array:
        return np.asarray(indices % self.waves.waves_per_workgroup)

    # --- memory

    def _resolve(
        self, space: str, address: Array, size: int, where: Array | None, *, is_write: bool, aligned: bool = False
    ) -> list[Resolved]:
        resolved = super()._resolve(space, address, size, where, is_write=is_write, aligned=aligned)
        if self._of_accesses:
            flat = np.broadcast_to(address, self._shape(address)).reshape(-1)
            for access in resolved:
                told = self._access(flat, access, size, address.shape[1], is_write=is_write)
                for one in self._of_accesses:
                    one.access(told)
        return resolved

    def _access(self, flat: Array, access: Resolved, size: int, width: int, *, is_write: bool) -> ObservedAccess:
        places = np.arange(flat.size) if access.lanes is None else access.lanes
        indices = self._selected_indices()[places // width]
        space = "lds" if access.storage is self.waves.lds else "scratch"
        addresses, name, elements = access.offsets, None, None
        if access.storage is not self.waves.lds and access.storage is not self.waves.scratch:
            space, addresses = "global", flat[places]
            buffer = self.memory.buffer_at(int(addresses[0]))
            if buffer is not None and buffer.element_bytes:
                name = buffer.name
                elements = (addresses.astype(np.int64) - int(buffer.base)) // buffer.element_bytes
        elif space == "lds":
            addresses = addresses - self.waves.workgroup[indices] * self.waves.lds_stride
        else:
            addresses = addresses - (indices * self.lane_count + places % width) * self.waves.scratch_stride
        return ObservedAccess(
            self.instruction, is_write, space, addresses, size, name, elements, self._workgroups(indices),
            self._waves(indices), places % width,
        )  # fmt: skip

    # --- barriers

    def complete_barriers(self) -> Array:
        complete = np.flatnonzero(self._all_waves_signalled())
        passed = super().complete_barriers()
        for one in self._of_barriers if complete.size else ():
            one.barrier(self._ids[complete])
        return passed
