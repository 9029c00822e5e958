"""The lock-step machine with the checks of `checks`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NoReturn

import numpy as np

from flydsl.arch.launch_limits import Dim3
from flydsl.simulator.arrays import Array
from flydsl.simulator.checks import current_findings
from flydsl.simulator.dispatch import Dispatch
from flydsl.simulator.errors import Access, Accessor, GlobalRace, InstructionLimit, LdsRace, UninitializedLds
from flydsl.simulator.isa.operations import writes_lds
from flydsl.simulator.lockstep.checked.access_history import LOST, WRITE, Accesses, AccessHistory, Conflict
from flydsl.simulator.lockstep.checked.barriers import hint_at_ended_waves, hint_at_inactive_lanes
from flydsl.simulator.lockstep.checked.clocks import lane_of, pc_of, time_of, wave_of
from flydsl.simulator.lockstep.checked.contents import Present, Stored, in_units
from flydsl.simulator.lockstep.checked.copies import Copies, store_under_way
from flydsl.simulator.lockstep.checked.lds_history import LdsHistory
from flydsl.simulator.lockstep.checked.outstanding import Ended, Part, Started
from flydsl.simulator.lockstep.checked.races import RaceHistory
from flydsl.simulator.lockstep.checked.signals import tell_who_signalled
from flydsl.simulator.lockstep.checked.threefold import COPIES
from flydsl.simulator.lockstep.checked.waiting import COPIES_OF_CDNA5, WaitingMachine
from flydsl.simulator.lockstep.machine import Step
from flydsl.simulator.lockstep.memory import Request, Resolved
from flydsl.simulator.lockstep.tensor import Move, Piece
from flydsl.simulator.memory.buffers import Buffer
from flydsl.simulator.waits.suspects import suspects_of

_ALIGNMENT_ELSEWHERE = 4
_ALIGNMENT_IN_LDS = 16
_ANY_TIME = 0  # no wave's clock shows it: of a copy, whose accesses are noted when it has completed
_BETWEEN_WORKGROUPS = "workgroups run in any order and at once: give each its own part, use atomics, or launch twice"
_WAIT_HINTS = {
    "asynccnt": "rocdl.s_wait_asynccnt(0) in the wave that copies, and a barrier before other waves access it",
    "tensorcnt": "tdm_ops.tensor_wait(0) in the wave that copies, and a barrier before other waves access it",
}
_VERBS = {"read": "read", "write": "wrote", "atomic": "atomically updated"}


class CheckedMachine(WaitingMachine):
    """Tracks who accessed which memory, and checks alignment; the base classes check registers.

    races: what the launch's earlier batches of workgroups did, where races are checked.
    """

    def __init__(
        self,
        dispatch: Dispatch,
        steps: Sequence[Step],
        workgroup_ids: Sequence[Dim3],
        instruction_limit: int,
        checks: frozenset[str],
        races: RaceHistory | None,
    ) -> None:
        copies = COPIES if "uninitialized" in checks else 1
        super().__init__(dispatch, steps, workgroup_ids, instruction_limit, copies, checks)
        self._checks, self._races = checks, races
        lds_bytes = self.waves.lds_stride * len(workgroup_ids)
        self._lds = LdsHistory(len(workgroup_ids), self.waves.lds_bytes, self.waves.lds_stride)
        if races is not None:
            self._number = races.start_batch(workgroup_ids, self.waves.lds[:lds_bytes])
            self._copies_under_way = Copies(races.lds, lds_bytes, self._number)
        self._stores: list[tuple[Sequence[Array], tuple[int, int]]] = []

    def complete_barriers(self) -> Array:
        if "barriers" in self._checks:
            hint_at_ended_waves(self.program, self.waves, self._all_waves_signalled())
        arrived = super().complete_barriers()
        if self._races is not None:
            self._races.pass_barrier(self._number[arrived[arrived < self._originals]])
        return arrived

    def look_ahead(self) -> None:
        try:
            super().look_ahead()
        except InstructionLimit as error:
            if self._races is not None:
                tell_who_signalled(error, self._races, self.program, self.memory)
            raise

    def barrier_signal(self) -> Array:
        if self._races is not None:
            waves = self.own_waves()
            self._races.clocks.signal_barrier(self._number[waves])
            self._carry_over(waves)
        if "barriers" in self._checks and not self.exec_is_full():
            waves = self._selected_indices()
            own = waves < self._originals
            hint_at_inactive_lanes(self.instruction, self.waves, waves[own], self.exec_mask()[own])
        return super().barrier_signal()

    def complete_cluster_barriers(self) -> Array:
        arrived = super().complete_cluster_barriers()
        if self._races is not None:
            for wave in arrived[arrived < self._originals]:
                self._races.clocks.acquire(int(self._number[wave]), self._cluster_of(int(wave)))
        return arrived

    def cluster_barrier_signal(self, in_cluster: Array) -> None:
        super().cluster_barrier_signal(in_cluster)
        if self._races is not None:
            waves = self._selected_indices()[in_cluster[:, 0]]
            waves = waves[waves < self._originals]
            for wave in waves:
                self._races.clocks.release(int(self._number[wave]), self._cluster_of(int(wave)))
            self._races.clocks.end_release(self._number[waves])

    def _cluster_of(self, wave: int) -> object:
        """The barrier that the waves of a cluster synchronize on."""
        first = self.waves.workgroups_of_cluster(int(self.waves.workgroup[wave])).start
        return "cluster", self.waves.workgroup_ids[first]

    # --- operations that go on for a while

    def end_operations(self, ended: Sequence[Ended]) -> None:
        """Operations that waves have waited for: copies accessed memory up to now."""
        if self._races is None:
            return
        for started, waves in ended:
            if not self._is_copy(started):
                continue
            for part in self._copies_under_way.end(started, waves):
                self._access_again(part, started.fact.index)

    def _is_copy(self, started: Started | None) -> bool:
        """True for an operation that accesses memory past the registers, of which others may see too little."""
        return started is not None and (started.fact.kind in COPIES_OF_CDNA5 or writes_lds(started.fact.kind))

    def _access_again(self, part: Part, pc: int) -> None:
        """Record that an operation may still access its memory at the present time of its waves."""
        assert self._races is not None
        kind, lanes = self._races.kind(pc, part.is_write), np.zeros_like(part.waves)
        present = Present(part.history, part.offsets, part.size)
        accesses = Accesses(kind, part.offsets, part.size, part.waves, lanes, pc, present)
        part.history.access(accesses, self._races.marks)

    def _carry_over(self, waves: Array) -> None:
        """Record accesses to LDS that waves have under way when they arrive at a barrier: they may happen after it."""
        assert self._races is not None
        if self.operations is None:
            return
        for started in self.operations.kept:
            positions, enough = self.operations.in_lds(started, waves)
            if not positions.size:
                continue
            numbers = self._number[started.waves[positions]]
            if self._is_copy(started):
                self._note_carried(started, numbers, np.full(numbers.size, _ANY_TIME), enough)
                continue
            for part in started.parts:
                chosen = np.isin(part.waves, numbers)
                late = replace(part, offsets=part.offsets[chosen], waves=part.waves[chosen])
                if late.offsets.size:
                    self._access_again(late, started.fact.index)
                    self._note_carried(started, numbers, self._races.clocks.time[numbers], enough)

    def _note_carried(self, started: Started, waves: Array, times: Array, enough: Sequence[int]) -> None:
        """Remember the count that lets an operation go before every barrier that it is carried over."""
        assert self._races is not None
        for wave, time, count in zip(waves.tolist(), times.tolist(), enough, strict=True):
            key = started.fact.index, wave, time
            self._races.carried[key] = min(count, self._races.carried.get(key, count))

    def _move_tiles(self, moves: Sequence[Move]) -> None:
        for move in moves:
            for piece in move.pieces if move.wave < self._originals else ():
                self._check_in_lds(move, piece)
                self._check_in_global(move, piece)
        super()._move_tiles(moves)

    def _check_in_lds(self, move: Move, piece: Piece) -> None:
        base = self.lds_of(move.wave)
        request, offsets, values = in_units(piece.lds, piece.content, base, move.wave, is_write=move.is_load)
        if "uninitialized" in self._checks:
            self._check_written(request, offsets, "write" if move.is_load else "read")
        if self._races is not None:
            self._check_races(request, offsets, self._races.lds, values)

    def _check_in_global(self, move: Move, piece: Piece) -> None:
        if self._races is None or piece.storage is None or piece.offsets is None:
            return
        found = self._races.of_buffer(piece.storage)
        if found is None:
            return
        buffer = next(b for b in self.memory.buffers().values() if b.storage is piece.storage)
        request, offsets, values = in_units(
            piece.offsets, piece.content, -buffer.storage_base, move.wave, is_write=not move.is_load
        )
        self._check_races(request, offsets + found[0], found[1], values, buffer)

    def _arrive(self, move: Move) -> None:
        """The barrier is told when the wave's tiles have come: who sees that knows of them."""
        super()._arrive(move)
        if self._races is not None and move.wave < self._originals:
            assert move.tile.barrier is not None
            if self.operations is not None:
                self.end_operations(self.operations.finish("tile", move.wave))
            self._races.tell(int(self._number[move.wave]), self._races.lds, self.lds_of(move.wave) + move.tile.barrier)

    # --- every access comes by here

    def store(self, space: str, address: Array, values: Sequence[Array], where: Array | None = None) -> None:
        self._stores = [(values, self._shape(address))]
        super().store(space, address, values, where)

    def store_small(self, space: str, address: Array, value: Array, bytes_: int, where: Array | None = None) -> None:
        self._stores = [([value], self._shape(address))]
        super().store_small(space, address, value, bytes_, where)

    def store_dwords(
        self, space: str, addresses: Sequence[Array], values: Sequence[Array], where: Sequence[Array | None]
    ) -> None:
        self._stores = [([value], self._shape(addresses[0])) for value in values]
        super().store_dwords(space, addresses, values, where)

    def _resolve(
        self, space: str, address: Array, size: int, where: Array | None, *, is_write: bool, aligned: bool = False
    ) -> list[Resolved]:
        values, shape = self._stores.pop(0) if is_write and not aligned else ((), (0, 0))
        resolved = super()._resolve(space, address, size, where, is_write=is_write, aligned=aligned)
        for access in resolved:
            if access.storage is not self.waves.scratch:
                request = self._part(address, access, size, is_write=is_write)
                kind = "atomic" if aligned else "write" if is_write else "read"
                self._check_access(access, request, kind, Stored(values, shape, request, size))
        return resolved

    def _part(self, address: Array, access: Resolved, size: int, *, is_write: bool) -> Request:
        """The part of the request that an access serves, for lanes of the first copy."""
        shape = self._shape(address)
        flat = np.broadcast_to(address, shape).reshape(-1)
        lanes = np.arange(flat.size) if access.lanes is None else access.lanes
        if self._copies > 1:
            lanes = lanes[: np.searchsorted(lanes, flat.size // self._copies)]
        address = flat[lanes]
        if access.storage is self.waves.lds:  # without the aperture of a flat address
            address = (address & address.dtype.type(0xFFFF_FFFF)).astype(np.uint32)
        return Request(address, lanes, size, shape[1], is_write)

    def _check(self, space: str, request: Request, *, is_atomic: bool) -> None:
        super()._check(space, request, is_atomic=is_atomic)
        if "alignment" in self._checks and not is_atomic:
            self._hint_at_alignment(space, request)

    def _hint_at_alignment(self, space: str, request: Request) -> None:
        """Add a hint for misaligned addresses: the hardware takes several steps for them, which is not an error."""
        limit = _ALIGNMENT_IN_LDS if space == "lds" else _ALIGNMENT_ELSEWHERE
        alignment = min(1 << (request.size - 1).bit_length(), limit)
        misaligned = request.address & request.address.dtype.type(alignment - 1)
        if misaligned.any():
            at = int(misaligned.argmax())
            buffer = self._buffer(space, int(request.address[at]))
            access = self._describe(space, request, at, buffer)
            count = int(np.count_nonzero(misaligned)) // self._copies
            current_findings().add_misaligned(self.instruction, access, alignment, count)

    def _buffer(self, space: str, address: int) -> Buffer | None:
        return self.memory.buffer_at(address) if space in ("global", "flat") else None

    # --- what was accessed before

    def _check_access(self, access: Resolved, request: Request, kind: str, stored: Stored) -> None:
        assert request.lanes is not None
        if not request.lanes.size:
            return
        offsets = access.offsets[: request.lanes.size]
        is_lds = access.storage is self.waves.lds
        if is_lds and "uninitialized" in self._checks:
            self._check_written(request, offsets, kind)
        if self._races is None:
            return
        if is_lds:
            self._check_races(request, offsets, self._races.lds, stored)
            return
        buffer = self.memory.buffer_at(int(request.address[0]))
        found = self._races.of_buffer(access.storage)
        if buffer is None or found is None:
            return
        if request.width == 1:
            # Of less than a dword, and of three, the compiler loads more than the program asks for.
            if buffer.element_bytes < 4:
                return
            request = replace(request, size=12 if request.size == 16 else request.size)
        self._check_races(request, offsets + found[0], found[1], stored, buffer)

    def _check_written(self, request: Request, offsets: Array, kind: str) -> None:
        places = offsets[:, None] + np.arange(request.size)
        # An exchange is how a program may write without knowing whether another one did.
        if kind != "write" and "wrxchg" not in self.instruction.mnemonic:
            bad = self._lds.unwritten(places)
            if bad is not None:
                self._unwritten(request, *bad)
        if kind != "read":
            self._lds.mark_written(places)

    def _unwritten(self, request: Request, which: int, byte: int) -> NoReturn:
        """Raise the error for a read of unwritten LDS. byte: the first byte of the access that was never written."""
        address = int(request.address[which])
        nobody = f"{address + byte:#x}, which no thread of the workgroup has written"
        problem = f"at LDS address {nobody}" if byte == 0 else f"at LDS address {address:#x}, of them {nobody}"
        hint = "write it first, with a barrier in between where another wave reads it"
        self._fault("lds", request, which, None, problem, UninitializedLds, hint)

    def _check_races(
        self,
        request: Request,
        offsets: Array,
        history: AccessHistory,
        stored: Callable[[Array], Array],
        buffer: Buffer | None = None,
    ) -> None:
        races = self._races
        assert races is not None
        waves, lanes = self._wave_and_lane(request)
        accesses = Accesses(races.kind(self._pc, request.is_write), offsets, request.size, self._number[waves], lanes,
                            self._pc, stored)  # fmt: skip
        self._check_copies(request, accesses, history, buffer)
        if history is races.lds and not request.is_write:
            self._check_own_stores(accesses)
        found = races.access(history, accesses)
        if found is not None:
            self._race(request, accesses, found, history, buffer)
        if self.started is not None:
            self._note_part(Part(history, accesses.offsets, accesses.size, accesses.waves, request.is_write))

    def _note_part(self, part: Part) -> None:
        """Keep what the operation that is being started accesses."""
        assert self.started is not None
        assert self._races is not None
        is_lds = part.history is self._races.lds
        if self._is_copy(self.started) and (is_lds or self.started.fact.kind in COPIES_OF_CDNA5):
            self._copies_under_way.add(self.started, part)
        elif is_lds:
            self.started.parts.append(part)

    def _check_own_stores(self, accesses: Accesses) -> None:
        """Raise where a copy from LDS begins before what its own wave stores there is in it."""
        if self.started is None or self.started.fact.kind not in COPIES_OF_CDNA5 or self.operations is None:
            return
        found = store_under_way(self.operations.kept, accesses, self._number)
        if found is not None:
            started, own, position = found
            address = int(accesses.offsets[position]) - self.lds_of(int(started.waves[own]))
            self.raise_missing(
                started, own, f"reads LDS at LDS address {address:#x} before its wave's store has arrived"
            )

    def _check_copies(
        self, request: Request, accesses: Accesses, history: AccessHistory, buffer: Buffer | None
    ) -> None:
        """Raise for an access to memory of a copy that has not been waited for."""
        assert self._races is not None
        found = self._copies_under_way.conflict(history, accesses, self.started)
        if found is None:
            return
        started, part, position, number = found
        assert self.operations is not None
        workgroup, wave = divmod(number, self.waves.waves_per_workgroup)
        own = int(np.flatnonzero(self._number[started.waves] == number)[0])
        access = self._describe("global" if buffer else "lds", request, position, buffer)
        where = _place(access, buffer, 0)
        if started.fact.kind not in COPIES_OF_CDNA5:
            self._copy_too_early(started, own, access, where)
        listed, copying = self.instruction.listed, self.program.instructions[started.fact.index]
        by = Accessor("write" if part.is_write else "read", self._races.workgroup_id(workgroup), wave, None, None,
                      copying.listed.text, copying.listed.line, copying.location)  # fmt: skip
        whose = f"wave {wave}" if access.workgroup == by.workgroup else str(by)
        story = f"which a copy of {whose} {'writes' if part.is_write else 'reads'} that has not been waited for"
        problem = f"{where}, {story}: {by.instruction_text()}"
        hint = _WAIT_HINTS[self.operations.missing(started, own)[1].counter]
        kind = GlobalRace if buffer else LdsRace
        raise kind(problem, access, listed.text, listed.line, listed.location, hint, by)

    def _copy_too_early(self, started: Started, own: int, access: Access, where: str) -> NoReturn:
        """Raise MissingWait for an access to LDS that a load, of the wave at a position, is still to write."""
        assert self._races is not None
        verb, number = "writes to" if access.is_write else "reads", int(self._number[started.waves[own]])
        wave = number % self.waves.waves_per_workgroup
        if access.wave == wave:
            self.raise_missing(started, own, f"{verb} LDS {where} before what its wave loads there has arrived")
        problem = f"{verb} LDS {where} before what wave {wave} loads there has arrived"
        count = self._races.carried.get((started.fact.index, number, _ANY_TIME))
        self.raise_of_other_wave(problem, started.fact, wave, access, count)

    def _race(
        self, request: Request, accesses: Accesses, found: Conflict, history: AccessHistory, buffer: Buffer | None
    ) -> None:
        other = self._accessor(found)
        access = self._describe("global" if buffer else "lds", request, found.position, buffer)
        self._raise_if_waited_late(found, other, access)
        if "races" not in self._checks:
            return
        byte = found.offset - int(accesses.offsets[found.position])
        where = _place(access, buffer, byte)
        by = str(other) if access.workgroup != other.workgroup else other.within_workgroup()
        if access.workgroup == other.workgroup and access.wave == other.wave:
            by = f"lane {other.lane}"
        if found.kind == LOST:
            story = f"{by} stores in the same instruction, both what they computed from what they had loaded there"
            hint = "update with an atomic; if the lanes are to do the same thing, let one of them do it"
        elif found.together is not None:
            story = f"{by} writes in the same instruction"
            hint = "lanes that write one place must write the same, or use an atomic"
        else:
            order = "no barrier" if access.workgroup == other.workgroup else "nothing that orders the two"
            story = f"{by} {_VERBS[found.kind]} with {order} in between"
            hint = "put a barrier between the two"
        if access.workgroup != other.workgroup:
            hint = _BETWEEN_WORKGROUPS
        problem = f"{where}, which {story}: {other.instruction_text()}\n  {self._values(accesses, found, history)}"
        listed = self.instruction.listed
        kind = GlobalRace if buffer else LdsRace
        raise kind(problem, access, listed.text, listed.line, listed.location, hint, other)

    def _raise_if_waited_late(self, found: Conflict, other: Accessor, access: Access) -> None:
        """Raise MissingWait where a barrier would have ordered the two, had the earlier one been waited for before."""
        if self._races is None or "waits" not in self._checks:
            return
        pc, number = int(pc_of(found.stamp)), int(wave_of(found.stamp))
        fact = suspects_of(self.program).facts[pc]
        times = (int(time_of(found.stamp)), _ANY_TIME)
        counts = [self._races.carried[pc, number, time] for time in times if (pc, number, time) in self._races.carried]
        if access.workgroup != other.workgroup or not counts:
            return
        verb = {"read": "reads", "write": "writes"}.get(found.kind, "accesses")
        reads = "accesses" if access.is_write else "reads"
        self.raise_of_other_wave(
            f"{reads} LDS {_place(access, None, 0)} that wave {other.wave} {verb}: it arrives at the barrier before "
            "that has completed", fact, other.wave, access, min(counts),
        )  # fmt: skip

    def _accessor(self, found: Conflict) -> Accessor:
        number, lane = int(wave_of(found.stamp)), int(lane_of(found.stamp))
        workgroup, wave = divmod(number, self.waves.waves_per_workgroup)
        listed = self.program.instructions[int(pc_of(found.stamp))].listed
        assert self._races is not None
        return Accessor(
            kind=found.kind if found.kind != LOST else "read",
            workgroup=self._races.workgroup_id(workgroup),
            wave=wave,
            lane=lane,
            thread=self.waves.thread(wave, lane),
            instruction=listed.text,
            isa_line=listed.line,
            at=listed.location,
        )

    def _values(self, accesses: Accesses, found: Conflict, history: AccessHistory) -> str:
        """The values that the two accesses read and write, as far as they are still known."""
        size = min(accesses.size, 4)

        def stored(position: int) -> str:
            first = found.offset - int(accesses.offsets[position])
            return _shown(accesses.stored(np.array([position]))[0, first : first + size])

        if found.together is not None:
            return f"values: {stored(found.together)} and {stored(found.position)}"
        there = f"value there: {_shown(history.bytes_at(found.offset, size))}"
        return f"{there}, value stored: {stored(found.position)}" if accesses.kind == WRITE else there


def _place(access: Access, buffer: Buffer | None, byte: int) -> str:
    """The first byte that races, in the user's terms."""
    address = access.address + byte
    if buffer is None:
        return f"at LDS address {address:#x}"
    return f"at element {buffer.element_index(address)} of {buffer.name} ({buffer.label}), address {address:#x}"


def _shown(content: Array) -> str:
    """Bytes as a number, and as a float where they may be one.

    >>> _shown(np.array([0, 0, 128, 63], np.uint8))
    '0x3f800000 (1 as f32)'
    """
    number = int.from_bytes(content.tobytes(), "little")
    as_float = f" ({float(content.copy().view(np.float32)[0]):.7g} as f32)" if content.size == 4 else ""
    return f"{number:#0{2 + 2 * content.size}x}{as_float}"
