"""Lanes of a wave that update the same bytes without an atomic: each adds to what it has read, and one sum remains.

    s[k] = s[k] + 1.0  # k the same in several lanes

All of them load the old value, and all store the same new one. Lanes may store equal values for another reason; here
the stored value was computed, between the load and the store, from what they have loaded.
"""

from __future__ import annotations

from typing import NamedTuple

from flydsl.hsaco.operands import Register, Symbol
from flydsl.simulator.arrays import Array
from flydsl.simulator.decoding.program import Instruction, Program
from flydsl.simulator.lockstep.checked.register_history import registers_read, registers_written

_Registers = set[tuple[str, int]]


EVERY = -1


class Load(NamedTuple):
    """One execution of a load: (n,) offsets into `memory`, and for each its wave, time and lane.

    A scalar load is of all lanes, as lane EVERY.
    """

    memory: object
    offsets: Array
    size: int
    waves: Array
    times: Array
    lanes: Array


class LostUpdates:
    """The last values that the loads of a launch loaded, and the stores that they feed."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._feeding: dict[int, tuple[int, ...]] = {}
        self._last: dict[int, dict[int, Load]] = {}

    def note_load(self, pc: int, load: Load) -> None:
        """Record a load. Waves mostly run in the same groups, so the last load of each group is kept."""
        self._last.setdefault(pc, {})[int(load.waves[0])] = load

    def forget(self) -> None:
        """Forget all loads: the waves so far have ended."""
        self._last.clear()

    def find(self, pc: int, store: Load, positions: Array) -> tuple[int, int, int, int] | None:
        """A lost update at store `pc`, of whose lanes those at positions share bytes: two positions, the load's pc, and
        the offset of a byte that both lanes loaded and store."""
        for source in self._feeds(pc):
            for load in self._last.get(source, {}).values():
                if load.memory is store.memory:
                    found = _common(load, store, positions)
                    if found:
                        return found[0], found[1], source, found[2]
        return None

    def _feeds(self, pc: int) -> tuple[int, ...]:
        if pc not in self._feeding:
            self._feeding[pc] = loads_feeding(self._program, pc)
        return self._feeding[pc]


def _common(load: Load, store: Load, positions: Array) -> tuple[int, int, int] | None:
    """Two positions of the store whose lanes loaded, since the last barrier, a byte that both of them store."""
    loaded: dict[tuple[int, int], tuple[int, int]] = {
        (wave, lane): (offset, time)
        for wave, lane, offset, time in zip(
            load.waves.tolist(), load.lanes.tolist(), load.offsets.tolist(), load.times.tolist(), strict=True
        )
    }
    first: dict[tuple[int, int], int] = {}
    for position in positions.tolist():
        wave, lane, offset = (int(part[position]) for part in (store.waves, store.lanes, store.offsets))
        start, time = loaded.get((wave, lane)) or loaded.get((wave, EVERY)) or (0, None)
        if time != store.times[position]:
            continue
        for byte in range(max(start, offset), min(start + load.size, offset + store.size)):
            if first.setdefault((wave, byte), position) != position:
                return first[wave, byte], position, byte
    return None


def loads_feeding(program: Program, store: int) -> tuple[int, ...]:
    """The loads whose value may reach a store without going round a loop: indices of instructions."""
    needed: dict[int, _Registers] = {store: _expanded(registers_read(program.instructions[store]))}
    found = []
    for index in range(store - 1, -1, -1):
        instruction = program.instructions[index]
        after: _Registers = set()
        for following in _followers(program, instruction):
            after |= needed.get(following, set())
        written = _expanded(registers_written(instruction)) & after
        needed[index] = after - written
        if not written:
            continue
        if _loads(instruction):
            found.append(index)
        else:
            needed[index] |= _expanded(registers_read(instruction))
    return tuple(found)


def _loads(instruction: Instruction) -> bool:
    return "_load_" in instruction.mnemonic or instruction.mnemonic.startswith("ds_read")


def _followers(program: Program, instruction: Instruction) -> list[int]:
    """The instructions after this one, without those that a jump goes back to."""
    name = instruction.mnemonic
    if name.startswith(("s_endpgm", "s_setpc", "s_swappc")):
        return []
    targets = [] if name == "s_branch" else [instruction.index + 1]
    if name in ("s_branch",) or name.startswith("s_cbranch"):
        labels = [o.atom.name for o in instruction.results if isinstance(o.atom, Symbol)]
        targets += [program.labels[label] for label in labels if label in program.labels]
    return [target for target in targets if target > instruction.index]


def _expanded(registers: list[Register]) -> _Registers:
    return {(r.file, r.first + i) for r in registers for i in range(r.count)}
