"""Places in a program where a wave can be stopped: source lines and ISA lines as sets of instructions."""

from __future__ import annotations

from collections.abc import Sequence

from flydsl.errors import SimulatorError
from flydsl.simulator.decoding.program import Instruction, Program

_ISA_PREFIX = "isa:"

Place = int | str


def instructions_at(program: Program, place: Place) -> frozenset[int]:
    """The indices of the instructions before which a wave stops.

    place: a source line (17, or "kernel.py:17" where several files take part), or a line of the listing ("isa:42").
    For a source line these are the instructions at which its code is entered. Raises SimulatorError for a line
    without code.
    """
    if isinstance(place, str) and place.startswith(_ISA_PREFIX):
        return _at_isa_line(program, place)
    file, _, number = str(place).rpartition(":")
    if not number.isdigit():
        raise SimulatorError(
            f"{place!r} is not a place in a program",
            hint='pass a source line such as 17 or "kernel.py:17", or "isa:42"',
        )
    line = int(number)
    found = [i for i in _in_file(program, file) if i.location and i.location.line == line]
    if not found:
        raise SimulatorError(f"no instruction belongs to line {place}", hint=_lines_with_code(program, file))
    return frozenset(i.index for i in found if _is_entry(program, i))


def _at_isa_line(program: Program, place: str) -> frozenset[int]:
    number = place.removeprefix(_ISA_PREFIX)
    found = frozenset(i.index for i in program.instructions if str(i.listed.line) == number.strip())
    if not found:
        lines = [i.listed.line for i in program.instructions]
        span = f"they are on lines {lines[0]} to {lines[-1]}" if lines else "the program has none"
        raise SimulatorError(f"no instruction is on ISA line {number}", hint=span)
    return found


def _in_file(program: Program, file: str) -> list[Instruction]:
    """The instructions of a source file, by its label, its name or the end of its path; of all files for ""."""
    return [
        i
        for i in program.instructions
        if i.location and (not file or i.location.file_label == file or f"/{i.location.file}".endswith(f"/{file}"))
    ]


def _is_entry(program: Program, instruction: Instruction) -> bool:
    """True if a wave comes here from another line: from the instruction above, or by a branch."""
    index = instruction.index
    above = program.instructions[index - 1].location if index else None
    here = instruction.location
    assert here is not None
    return above is None or (above.file, above.line) != (here.file, here.line) or index in program.labels.values()


def _lines_with_code(program: Program, file: str) -> str:
    lines = sorted({i.location.line for i in _in_file(program, file) if i.location})
    if not lines:
        return "the listing has no line tables" if not file else f"no instruction comes from a file {file}"
    return f"lines with instructions: {_ranges(lines)}"


def _ranges(numbers: Sequence[int]) -> str:
    """
    >>> _ranges([1, 2, 3, 7, 9, 10])
    '1-3, 7, 9-10'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
