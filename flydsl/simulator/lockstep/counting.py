"""Counting in the lock-step machine: slow, and the oracle of native counting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from flydsl.arch import conflict_ways
from flydsl.simulator.arrays import Array
from flydsl.simulator.counters.instruction_class import lds_operation
from flydsl.simulator.counters.raw import LINE_BYTES
from flydsl.simulator.decoding.program import Program
from flydsl.simulator.lockstep.machine import Machine, Step
from flydsl.simulator.lockstep.tensor import Move
from flydsl.simulator.memory.buffers import PRIVATE_APERTURE, SHARED_APERTURE, Memory
from flydsl.simulator.waves import Waves


class CountingMachine(Machine):
    """A machine that adds to `counts`, the per-instruction counters of `counters.raw`.

    count_executions: whether to count executions and active lanes as well, or they are counted elsewhere.
    """

    patience = Machine.patience // 8  # an instruction takes about eight times as long to execute when it is counted

    def __init__(
        self,
        program: Program,
        steps: Sequence[Step],
        waves: Waves,
        memory: Memory,
        symbols: Mapping[str, int],
        instruction_limit: int,
        *,
        counts: Array,
        count_executions: bool = True,
    ) -> None:
        super().__init__(program, _CountedSteps(steps), waves, memory, symbols, instruction_limit)
        self._counts, self._count_executions = counts, count_executions
        # The accesses of the current instruction: space, addresses, active lanes, bytes per lane.
        self._accesses: list[tuple[str, Array, Array, int]] = []

    def execute_counted(self, step: Step) -> None:
        counts = self._counts[self.instruction.index]
        if self._count_executions:
            counts["executions"] += self.selected_count
            counts["active_lanes"] += int(self.exec_mask().sum())
        self._accesses.clear()
        step(self)
        for wave in range(self.selected_count if self._accesses else 0):
            parts = [(space, address[wave][lanes[wave]], size) for space, address, lanes, size in self._accesses]
            self._count_wave(counts, [part for part in parts if part[1].size])
        if len(self._accesses) == 1 and self._accesses[0][0] == "lds":
            self._count_conflicts(counts, *self._accesses[0][1:3])

    def _resolve(
        self, space: str, address: Array, size: int, where: Array | None, *, is_write: bool, aligned: bool = False
    ) -> Any:
        resolved = super()._resolve(space, address, size, where, is_write=is_write, aligned=aligned)
        if address.shape[1] > 1:  # SMEM's addresses are one for a wave
            shape = (self.selected_count, self.lane_count)
            mask = self.exec_mask() if where is None else self.exec_mask() & where
            accessed = np.broadcast_to(address, shape).astype(np.uint64)
            self._accesses.append((space, accessed, np.broadcast_to(mask, shape), size))
        return resolved

    def _move_tiles(self, moves: Sequence[Move]) -> None:
        super()._move_tiles(moves)
        counts = self._counts[self.instruction.index]
        for move in moves:
            tile, last_line = move.tile, -1
            row_bytes = tile.elements * tile.element_bytes
            counts["lds_bytes"] += (
                tile.width * tile.element_bytes * tile.elements.size if move.is_load else row_bytes.sum()
            )
            counts["global_bytes"] += row_bytes.sum()
            for address, size in zip(tile.addresses.tolist(), row_bytes.tolist(), strict=True):
                if size:  # a line on which the row before ended counts once
                    first, last = address // LINE_BYTES, (address + size - 1) // LINE_BYTES
                    counts["global_lines"] += last - first + (first != last_line)
                    last_line = last

    def _count_wave(self, counts: Any, parts: list[tuple[str, Array, int]]) -> None:
        lines: set[int] = set()
        for space, addresses, size in parts:
            for kind, chosen in _by_space(space, addresses):
                counts[f"{kind}_bytes"] += size * chosen.size
                if kind == "global":
                    for address in chosen.tolist():
                        lines.update(range(address // LINE_BYTES, (address + size - 1) // LINE_BYTES + 1))
        counts["global_lines"] += len(lines)

    def _count_conflicts(self, counts: Any, addresses: Array, lanes: Array) -> None:
        operation = lds_operation(self.program.arch, self.instruction.mnemonic)
        if operation is None:
            return
        for wave in range(self.selected_count):
            wanted = [int(a) if on else None for a, on in zip(addresses[wave], lanes[wave], strict=True)]
            if any(a is not None and a % 4 for a in wanted):
                counts["lds_uncounted"] += 1
                continue
            ways = [phase.ways for phase in conflict_ways(self.program.arch, operation, wanted)]
            counts["lds_passes"] += sum(ways)
            counts["lds_phases"] += sum(w > 0 for w in ways)
            counts["lds_max_ways"] = max(counts["lds_max_ways"], *ways)


def _by_space(space: str, addresses: Array) -> Iterator[tuple[str, Array]]:
    """The addresses by memory space. The upper half of a flat address tells its space."""
    if space != "flat":
        yield space, addresses
        return
    upper = addresses & ~np.uint64(0xFFFF_FFFF)
    is_lds, is_scratch = upper == np.uint64(SHARED_APERTURE), upper == np.uint64(PRIVATE_APERTURE)
    yield from (("lds", addresses[is_lds]), ("scratch", addresses[is_scratch]))
    yield "global", addresses[~(is_lds | is_scratch)]


class _CountedSteps(Sequence[Step]):
    """The program's steps, each executed through `execute_counted`."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps

    def __len__(self) -> int:
        return len(self._steps)

    def __getitem__(self, index: Any) -> Any:
        step = self._steps[index]

        def counted(machine: Machine) -> None:
            assert isinstance(machine, CountingMachine)
            machine.execute_counted(step)

        return counted
