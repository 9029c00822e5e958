"""The story of a wave that goes round a loop: what it reads there again and again, and where the others are."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from flydsl.simulator.arrays import Array
from flydsl.simulator.decoding.program import Instruction, Program
from flydsl.simulator.memory.buffers import Buffer, Memory
from flydsl.simulator.waves import AT_BARRIER, AT_CLUSTER_BARRIER, ENDED, Waves

_MOST_LOADS, _MOST_WRITES, _MOST_LINES = 4, 3, 4
_WRITES = ("global_store", "flat_store", "buffer_store", "global_atomic", "flat_atomic", "buffer_atomic")
_READS = ("global_load", "flat_load", "buffer_load", "global_atomic", "flat_atomic", "buffer_atomic", "s_load")


class Stopped(Protocol):
    """A machine that has stopped in a loop."""

    program: Program
    memory: Memory
    waves: Waves

    def first_access(self, index: int, wave: int) -> tuple[int, int] | None:
        """Address and bytes of what the first active lane of a wave accesses by an instruction."""


def loop_around(program: Program, pc: int) -> range:
    """The instructions of the shortest loop that contains one; none if no branch goes back over it.

    Of several branches back to one place the last ends the loop: LLVM skips what no lane does by such a branch, too.
    """
    loops: dict[int, range] = {}
    for instruction in program.instructions:
        target = _target(program, instruction)
        if target is not None and target <= pc <= instruction.index:
            loops[target] = range(target, instruction.index + 1)
    return min(loops.values(), key=len, default=range(0))


def _target(program: Program, instruction: Instruction) -> int | None:
    name, _, label = instruction.listed.text.partition(" ")
    return program.labels.get(label.strip()) if name.startswith(("s_branch", "s_cbranch")) else None


@dataclass(frozen=True)
class Workgroups:
    """The workgroups of a launch when it stopped.

    running: the status of each one's waves, (waves,), and their next instructions. ended, not_started: how many have.
    """

    running: Sequence[tuple[Array, Sequence[int]]]
    ended: int
    not_started: int


def story_of_loop(machine: Stopped, pc: int, wave: int, workgroups: Workgroups | None = None) -> list[str]:
    """Lines about a wave that does not leave the loop around `pc`, to be asked for when the launch is over."""
    loop = loop_around(machine.program, pc)
    if not loop:
        return []
    polled = [text for index in loop for text in _text_of_polled(machine, index, wave)]
    of_launch = [] if workgroups is None else [_standing_of_workgroups(machine.program, workgroups, loop)]
    source = _source_of(machine.program, loop)
    return [*source, *polled[: 2 * _MOST_LOADS], _standing(machine.program, machine.waves, wave, loop), *of_launch]


def _source_of(program: Program, loop: range) -> list[str]:
    """The source lines of a loop's instructions, if they are several: of a helper, and of what calls it."""
    lines: dict[str, set[int]] = {}
    for index in loop:
        if at := program.instructions[index].location:
            lines.setdefault(at.file, set()).add(at.line)
    if sum(map(len, lines.values())) < 2:
        return []
    parts = [f"{_span(sorted(found))} of {file}" for file, found in lines.items()]
    return [f"  the loop's instructions come from {'; '.join(parts)}"]


def _span(lines: Sequence[int]) -> str:
    """Numbers of lines, in words.

    >>> _span([386]), _span([386, 394]), _span([1, 2, 3, 4, 5])
    ('line 386', 'lines 386 and 394', '5 of the lines 1 to 5')
    """
    if len(lines) == 1:
        return f"line {lines[0]}"
    if len(lines) > _MOST_LINES:
        return f"{len(lines)} of the lines {lines[0]} to {lines[-1]}"
    return f"lines {', '.join(map(str, lines[:-1]))} and {lines[-1]}"


def _standing_of_workgroups(program: Program, workgroups: Workgroups, loop: range) -> str:
    """The places of the launch's workgroups, in words: "of the launch's 5 workgroups, 4 are in it and 1 has ended"."""
    round_, elsewhere = 0, ""
    for status, pcs in workgroups.running:
        going = [pc for state, pc in zip(status, pcs, strict=True) if state != ENDED]
        if any(pc in loop for pc in going):
            round_ += 1
        elif going and not elsewhere:
            at = program.instructions[min(going[0], len(program.instructions) - 1)].location
            elsewhere = f", the first of them at {at}" if at else ""
    other = len(workgroups.running) - round_
    total = len(workgroups.running) + workgroups.ended + workgroups.not_started
    parts = [f"{round_} {'is' if round_ == 1 else 'are'} in this loop"]
    parts += [f"{other} elsewhere{elsewhere}"] if other else []
    parts += [f"{workgroups.ended} ended"] if workgroups.ended else []
    parts += [f"{workgroups.not_started} not started"] if workgroups.not_started else []
    return f"  of the launch's {total} workgroups: {', '.join(parts)}"


def polled_by(machine: Stopped, pc: int, wave: int) -> tuple[tuple[int, bytes], ...]:
    """The addresses that the loop around `pc` reads, each with the bytes there."""
    found = [_polled(machine, index, wave) for index in loop_around(machine.program, pc)]
    return tuple((address, content) for address, _, content, _ in filter(None, found))


def _polled(machine: Stopped, index: int, wave: int) -> tuple[int, int, bytes, Buffer] | None:
    """A load of the loop for the first active lane: address, size, up to 8 bytes that it reads, and the buffer."""
    instruction = machine.program.instructions[index]
    if not instruction.mnemonic.startswith(_READS) or not instruction.results:
        return None
    access = machine.first_access(index, wave)
    buffer = machine.memory.buffer_at(access[0]) if access else None
    if access is None or buffer is None:
        return None
    address, size = access
    offset = address - buffer.storage_base
    return address, size, buffer.storage[offset : offset + min(size, 8)].tobytes(), buffer


def _text_of_polled(machine: Stopped, index: int, wave: int) -> Iterator[str]:
    """The element that a load of the loop reads, and its value, of the first active lane."""
    polled = _polled(machine, index, wave)
    if polled is None:
        return
    address, size, content, buffer = polled
    instruction = machine.program.instructions[index]
    at = f", {instruction.location}" if instruction.location else ""
    yield (
        f"  it reads element {buffer.element_index(address)} of {buffer.name} ({buffer.label}), which is "
        f"{_shown(content, buffer.label)}: {instruction.listed.text} (ISA line {instruction.listed.line}{at})"
    )
    yield from _writers(machine, (address, size), wave, index)


def _writers(machine: Stopped, polled: tuple[int, int], wave: int, reader: int) -> Iterator[str]:
    """The instructions that would write what is polled, by the registers that they find: a wave's pointer to a flag
    mostly stays where it was. Which of them are still to come is for the user to see."""
    found = []
    for instruction in machine.program.instructions:
        if instruction.index != reader and instruction.semantics and instruction.mnemonic.startswith(_WRITES):
            access = machine.first_access(instruction.index, wave)
            if access is not None and access[0] < sum(polled) and polled[0] < sum(access):
                at = f", {instruction.location}" if instruction.location else ""
                found.append(f"{instruction.listed.text} (ISA line {instruction.listed.line}{at})")
    if found:
        more = f", and {len(found) - _MOST_WRITES} more" if len(found) > _MOST_WRITES else ""
        yield f"    what writes it: {', '.join(found[:_MOST_WRITES])}{more}"


def _shown(content: bytes, label: str) -> str:
    """A number in memory, as what the buffer's label says that it holds.

    >>> _shown(bytes([0, 0, 128, 63]), "float32[128]"), _shown(bytes([255] * 4), "int32[1]"), _shown(bytes(4), "bytes")
    ('1', '-1', '0')
    """
    if label.startswith("float32") and len(content) >= 4:
        return f"{struct.unpack('<f', content[:4])[0]:.7g}"
    return str(int.from_bytes(content, "little", signed=True))


def _standing(program: Program, waves: Waves, wave: int, loop: range) -> str:
    """The places of the workgroup's waves, in words."""
    of_workgroup = waves.workgroup == waves.workgroup[wave]
    status, pcs = waves.status[of_workgroup], waves.pc[of_workgroup]
    waiting = np.isin(status, (AT_BARRIER, AT_CLUSTER_BARRIER))
    going = (status != ENDED) & ~waiting
    round_ = int(np.count_nonzero(going & (pcs >= loop.start) & (pcs < loop.stop)))
    parts = [f"{round_} of its workgroup's {status.size} waves go round this loop" if round_ != 1 else
             f"1 of its workgroup's {status.size} waves goes round this loop"]  # fmt: skip
    if waiting.any():
        barrier = program.instructions[int(pcs[waiting][0]) - 1]
        at = f", {barrier.location}" if barrier.location else ""
        parts.append(f"{np.count_nonzero(waiting)} at a barrier (ISA line {barrier.listed.line}{at})")
    elsewhere = int(np.count_nonzero(going)) - round_
    parts += [f"{elsewhere} elsewhere"] if elsewhere > 0 else []
    ended = int(np.count_nonzero(status == ENDED))
    parts += [f"{ended} ended"] if ended else []
    return "  " + ", ".join(parts)
