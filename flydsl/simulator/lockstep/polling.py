"""The story of a wave that goes round a loop: what it reads there again and again, and where the others are."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from flydsl.simulator.decoding.program import Instruction, Program
from flydsl.simulator.memory.buffers import Memory
from flydsl.simulator.waves import AT_BARRIER, AT_CLUSTER_BARRIER, ENDED, Waves

_MOST_LOADS = 4
_READS = ("global_load", "flat_load", "buffer_load", "global_atomic", "flat_atomic", "buffer_atomic", "s_load")


class Stopped(Protocol):
    """A machine that has stopped in a loop."""

    program: Program
    memory: Memory
    waves: Waves

    def first_access(self, index: int, wave: int) -> tuple[int, int] | None:
        """Address and bytes of what the first active lane of a wave accesses by an instruction."""


def loop_around(program: Program, pc: int) -> range:
    """The instructions of the shortest loop that contains one; none if no branch goes back over it."""
    loops = [
        range(target, instruction.index + 1)
        for instruction in program.instructions
        if instruction.index >= pc and (target := _target(program, instruction)) is not None and target <= pc
    ]
    return min(loops, key=len, default=range(0))


def _target(program: Program, instruction: Instruction) -> int | None:
    name, _, label = instruction.listed.text.partition(" ")
    return program.labels.get(label.strip()) if name.startswith(("s_branch", "s_cbranch")) else None


def story_of_loop(machine: Stopped, pc: int, wave: int) -> list[str]:
    """Lines about a wave that does not leave the loop around `pc`, to be asked for when the launch is over."""
    loop = loop_around(machine.program, pc)
    if not loop:
        return []
    polled = [text for index in loop for text in _polled(machine, index, wave)]
    return [*polled[:_MOST_LOADS], _standing(machine.program, machine.waves, wave, loop)]


def _polled(machine: Stopped, index: int, wave: int) -> Iterator[str]:
    """The element that a load of the loop reads, and its value, of the first active lane."""
    instruction = machine.program.instructions[index]
    if not instruction.mnemonic.startswith(_READS) or not instruction.results:
        return
    access = machine.first_access(index, wave)
    buffer = machine.memory.buffer_at(access[0]) if access else None
    if access is None or buffer is None:
        return
    address, size = access
    offset = address - buffer.storage_base
    value = _shown(buffer.storage[offset : offset + min(size, 8)].tobytes(), buffer.label)
    at = f", {instruction.location}" if instruction.location else ""
    yield (
        f"  it reads element {buffer.element_index(address)} of {buffer.name} ({buffer.label}), which is {value}: "
        f"{instruction.listed.text} (ISA line {instruction.listed.line}{at})"
    )


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
