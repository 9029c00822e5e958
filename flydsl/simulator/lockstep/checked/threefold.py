"""The lock-step machine with every workgroup three times, to see what depends on undefined registers (see `checks`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flydsl.arch.launch_limits import Dim3
from flydsl.hsaco.operands import M0, VCC
from flydsl.simulator.arrays import Array
from flydsl.simulator.dispatch import Dispatch
from flydsl.simulator.errors import Access, UninitializedRegister
from flydsl.simulator.lockstep.checked.register_history import RegisterHistory, differing_operands
from flydsl.simulator.lockstep.machine import Machine, Step
from flydsl.simulator.lockstep.memory import Request
from flydsl.simulator.lockstep.tensor import Move
from flydsl.simulator.memory.buffers import PRIVATE_APERTURE, SHARED_APERTURE
from flydsl.simulator.waves import Waves

COPIES = 3
_SGPRS = 102  # the general ones; then come those that the hardware sets up


class ThreefoldMachine(Machine):
    """Runs the waves of the workgroups and, after them, two copies of all of them; none with copies=1.

    Copies share global memory and nothing else. They take the same way and access the same addresses, or the check
    fails; so a group of waves always has the copies of its waves in it, in the same order.
    """

    def __init__(
        self,
        dispatch: Dispatch,
        steps: Sequence[Step],
        workgroup_ids: Sequence[Dim3],
        instruction_limit: int,
        copies: int = COPIES,
    ) -> None:
        self._copies = copies
        self._originals = len(workgroup_ids) * dispatch.waves_per_workgroup
        waves = dispatch.waves(list(workgroup_ids) * self._copies, self._fill)
        super().__init__(dispatch.program, steps, waves, dispatch.memory, dispatch.symbols, instruction_limit)
        self._one_copy_only = False
        if self._copies > 1:
            self._registers = RegisterHistory(
                self._agree(waves.vgpr.swapaxes(0, 1)).swapaxes(0, 1), self._agree(waves.sgpr)
            )
            refused = self._refused(dispatch)
            self._steps = [step if i in refused else self._noting(step, i) for i, step in enumerate(steps)]

    # --- three copies with different contents

    def _fill(self, waves: Waves) -> None:
        """Fill undefined state of the copies with zeros, random bits, and the complement of these."""
        random = np.random.default_rng(0)
        for state in (waves.sgpr[:, :_SGPRS], waves.sgpr[:, VCC : VCC + 2], waves.sgpr[:, M0 : M0 + 1], waves.scc):
            self._fill_state(random, state)
        self._fill_state(random, waves.vgpr.swapaxes(0, 1))
        self._fill_state(random, waves.lds.reshape(len(waves.workgroup_ids), -1))
        self._fill_state(random, waves.scratch.reshape(waves.count, -1))

    def _fill_state(self, random: np.random.Generator, state: Array) -> None:
        """Fill state, (waves or workgroups of all copies, ...). One by one, so that Ctrl-C need not wait for all."""
        if self._copies == 1 or state.size == 0:
            return
        count = len(state) // self._copies
        for i in range(count):
            bits = np.frombuffer(random.bytes(state[i].nbytes), state.dtype if state.itemsize > 1 else np.uint8)
            garbage = bits.reshape(state[i].shape)
            if state.dtype == np.bool_:
                garbage = garbage > 127
            state[count + i] = garbage
            state[2 * count + i] = ~garbage

    def _agree(self, state: Array) -> Array:
        """For the waves of the first copy: True where all copies agree."""
        copies = state.reshape(self._copies, self._originals, *state.shape[1:])
        return np.asarray((copies == copies[0]).all(axis=0))

    def _refused(self, dispatch: Dispatch) -> set[int]:
        """The instructions that only raise an error: these waves may not have their registers."""
        program = dispatch.program
        unknown = (instruction.index for instruction in program.unknown_instructions())
        return {*unknown, *program.beyond(dispatch.vgprs, dispatch.agprs)}

    def _noting(self, step: Step, index: int) -> Step:
        """A step that also records which registers the instruction reads and writes."""
        instruction = self.program.instructions[index]
        writes_all = instruction.semantics is not None and instruction.semantics.ignores_exec

        def noted(machine: Machine) -> None:
            waves = self._selected_indices()[: self.selected_count // self._copies]
            active = self.exec_mask()[: len(waves)]
            self._registers.note_reads(instruction, waves, active)
            step(machine)
            self._registers.note_writes(instruction, waves, np.ones_like(active) if writes_all else active)

        return noted

    @property
    def workgroup_count(self) -> int:
        return super().workgroup_count // self._copies

    def with_copies(self, wave: int) -> Array:
        return wave + self._originals * np.arange(self._copies)

    def _difference(self, value: Array) -> Array | None:
        """The first copy's elements of (waves, ...) that differ in another copy; None if none does."""
        if self._copies == 1 or len(value) != self.selected_count:
            return None
        copies = value.reshape(self._copies, -1, *value.shape[1:])
        if copies.dtype.kind == "f":
            copies = np.ascontiguousarray(copies).view(f"u{copies.itemsize}")
        differing = (copies != copies[0]).any(axis=0)
        return differing if differing.any() else None

    def _undefined(self, problem: str, wave: int, lane: int | None, access: Access | None = None) -> None:
        waves = self.waves
        copies = self.with_copies(wave)
        raise UninitializedRegister(
            problem,
            instruction=self.instruction.listed,
            workgroup=waves.workgroup_ids[int(waves.workgroup[wave])],
            wave=wave % waves.waves_per_workgroup,
            lane=lane,
            thread=None if lane is None else waves.thread(wave, lane),
            registers=differing_operands(self.instruction, waves, copies, lane),
            access=access,
            first_reads=self._registers.first_reads(wave, lane),
        )

    # --- control

    def _compare_scalar(self, problem: str, value: Array) -> None:
        differing = self._difference(value)
        if differing is not None:
            wave = int(self._selected_indices()[int(np.flatnonzero(differing.any(axis=1))[0])])
            self._undefined(problem, wave, None)

    def branch(self, condition: Array, target: int) -> None:
        self._compare_scalar("where the wave goes on", condition)
        super().branch(condition, target)

    def jump(self, address: Array) -> None:
        self._compare_scalar("where the wave goes on", address)
        super().jump(address)

    def write_mode(self, value: Array) -> None:
        self._compare_scalar("the MODE register", value)
        super().write_mode(value)

    def exec_changed(self) -> None:
        super().exec_changed()
        differing = self._difference(self.exec_mask())
        if differing is not None:
            wave, lane = (int(where[0]) for where in np.nonzero(differing))
            self._undefined("whether a lane is active", int(self._selected_indices()[wave]), lane)

    # --- memory

    def store(self, space: str, address: Array, values: Sequence[Array], where: Array | None = None) -> None:
        self._compare_values(space, address, values, 4 * len(values), where)
        super().store(space, address, values, where)

    def store_small(self, space: str, address: Array, value: Array, bytes_: int, where: Array | None = None) -> None:
        stored = value & value.dtype.type((1 << 8 * bytes_) - 1)
        self._compare_values(space, address, [stored], bytes_, where)
        super().store_small(space, address, value, bytes_, where)

    def store_dwords(
        self, space: str, addresses: Sequence[Array], values: Sequence[Array], where: Sequence[Array | None]
    ) -> None:
        for address, value, lanes in zip(addresses, values, where, strict=True):
            self._compare_values(space, address, [value], 4, lanes)
        super().store_dwords(space, addresses, values, where)

    def atomic(
        self,
        space: str,
        address: Array,
        update: Callable[..., Array],
        operands: Sequence[Array],
        where: Array | None = None,
    ) -> Array:
        """The old values of an atomic. In global memory it happens once, and the copies get the same old value."""
        if self._copies == 1 or space not in ("global", "flat"):
            return super().atomic(space, address, update, operands, where)
        self._compare_values(space, address, operands, operands[0].itemsize, where)
        is_shared = np.broadcast_to(_in_global(space, address), self._shape(address))
        count = self.selected_count // self._copies
        once = ~is_shared | (np.arange(self.selected_count) < count)[:, None]
        self._one_copy_only = True
        try:
            old = super().atomic(space, address, update, operands, once if where is None else where & once)
        finally:
            self._one_copy_only = False
        return np.where(is_shared, np.tile(old[:count], (self._copies, 1)), old)

    def move_tensor(self, words: Sequence[Array], *, is_load: bool) -> None:
        for word in words:
            self._compare_scalar("a tensor descriptor", word)
        super().move_tensor(words, is_load=is_load)

    def _move_tiles(self, moves: Sequence[Move]) -> None:
        count = len(moves) // self._copies
        for i, move in enumerate(moves[:count] if self._copies > 1 else ()):
            others = [moves[i + count * copy] for copy in range(1, self._copies)]
            for piece, *copies in zip(move.pieces, *(other.pieces for other in others), strict=True):
                if not move.is_load and any((piece.content != copy.content).any() for copy in copies):
                    self._undefined("a value in global memory", move.wave, None)
        super()._move_tiles(moves)

    def _compare_values(
        self, space: str, address: Array, values: Sequence[Array], size: int, where: Array | None
    ) -> None:
        """Check that values stored to global memory are the same in all copies."""
        if self._copies == 1 or space not in ("global", "flat"):
            return
        request = self._request(address, size, where, is_write=True)
        if request is None:
            return
        self._compare_request(space, request)
        shape = self._shape(address)
        in_global = _in_global(space, request.address)
        for value in values:
            bits = value.view(f"u{value.itemsize}")  # a NaN is not equal to itself
            flat = np.broadcast_to(bits, shape).reshape(-1)
            stored = flat if request.lanes is None else flat[request.lanes]
            self._compare_elements("a value in global memory", space, request, np.where(in_global, stored, 0))

    def _check(self, space: str, request: Request, *, is_atomic: bool) -> None:
        super()._check(space, request, is_atomic=is_atomic)
        if self._copies > 1 and not self._one_copy_only:
            self._compare_request(space, request)

    def _compare_request(self, space: str, request: Request) -> None:
        """Check that the copies access the same addresses in the same lanes."""
        if request.lanes is not None:
            mask = np.zeros((self.selected_count, request.width), np.bool_)
            mask.reshape(-1)[request.lanes] = True
            differing = self._difference(mask)
            if differing is not None:
                wave, lane = (int(where[0]) for where in np.nonzero(differing))
                self._undefined("whether a lane accesses memory", int(self._selected_indices()[wave]), lane)
        self._compare_elements("the address of an access", space, request, request.address)

    def _compare_elements(self, problem: str, space: str, request: Request, elements: Array) -> None:
        copies = elements.reshape(self._copies, -1)
        differing = (copies != copies[0]).any(axis=0)
        if not differing.any():
            return
        which = int(differing.argmax())
        buffer = self.memory.buffer_at(int(request.address[which])) if space in ("global", "flat") else None
        access = self._describe(space, request, which, buffer)
        if buffer and elements is not request.address:
            problem += f" ({buffer.name}, {buffer.label}: element {access.element_index}, address {access.address:#x})"
        wave = int(self._wave_and_lane(request)[0][which])
        self._undefined(problem, wave, access.lane if request.width > 1 else None, access)


def _in_global(space: str, address: Array) -> Any:
    """True for addresses in global memory; a flat one may be in LDS or scratch."""
    if space == "global":
        return np.True_
    upper = address & ~np.uint64(0xFFFF_FFFF)
    return (upper != np.uint64(SHARED_APERTURE)) & (upper != np.uint64(PRIVATE_APERTURE))
