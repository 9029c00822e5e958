"""Who writes the flag that an endless loop reads: the wave that wrote it last, and the workgroups that have not."""

from __future__ import annotations

from collections.abc import Iterator

from flydsl.simulator.decoding.program import Program
from flydsl.simulator.errors import InstructionLimit
from flydsl.simulator.lockstep.checked.races import RaceHistory
from flydsl.simulator.memory.buffers import Memory

_MOST_NAMED = 4


def tell_who_signalled(error: InstructionLimit, races: RaceHistory, program: Program, memory: Memory) -> None:
    """Add to the error who has written, with an atomic or past the caches, what its loop reads.

    Nothing is added where native code that ran ahead has written it again since the last write that is known.
    """
    told = dict.fromkeys(line for place in error.polled for line in _lines(*place, races, program, memory))
    error.message = "\n".join([error.message, *told])
    error.hint = error.if_meant


def _lines(address: int, content: bytes, races: RaceHistory, program: Program, memory: Memory) -> Iterator[str]:
    buffer = memory.buffer_at(address)
    found = None if buffer is None else races.of_buffer(buffer.storage)
    if buffer is None or found is None:
        return
    offset = address - buffer.storage_base
    if buffer.storage[offset : offset + len(content)].tobytes() != content:
        return
    name = f"element {buffer.element_index(address)} of {buffer.name}"
    start, history = found
    signals = races.signals.get((history.number, offset + start))
    total = races.workgroup_count
    if not signals:
        yield f"  none of the launch's {total} workgroups has written {name} with an atomic"
        return
    number, pc = next(reversed(signals.items()))
    instruction = program.instructions[pc]
    at = f", {instruction.location}" if instruction.location else ""
    workgroup, wave = divmod(number, races.waves_per_workgroup)
    yield (
        f"  {name} was written last by wave {wave} of workgroup {races.workgroup_id(workgroup)}: "
        f"{instruction.listed.text} (ISA line {instruction.listed.line}{at})"
    )
    arrived = {wave // races.waves_per_workgroup for wave in signals}
    missing = [str(races.workgroup_id(i)) for i in range(total) if i not in arrived]
    if total > 1:
        named = ", ".join(missing[:_MOST_NAMED]) + (", …" if len(missing) > _MOST_NAMED else "")
        yield f"  {len(arrived)} of {total} workgroups have written it" + (f", not {named}" if missing else "")
