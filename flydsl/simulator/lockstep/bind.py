"""Bind an instruction to the lock-step machine: read the operands, compute, write the results.

Everything that can be decided once per instruction is decided here, so that executing one is calling a few closures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from flydsl.simulator.decoding.program import Instruction, Program
from flydsl.simulator.errors import RegisterFault
from flydsl.simulator.lockstep.machine import Machine, Step
from flydsl.simulator.lockstep.reading import half_readers, reader
from flydsl.simulator.lockstep.writing import packed_writer, writers

_bound: WeakKeyDictionary[Program, list[Step]] = WeakKeyDictionary()


class _HasRegisters(Protocol):
    program: Program
    vgprs: int
    agprs: int


def bound_steps(work: _HasRegisters) -> Sequence[Step]:
    """The program's instructions as callables for waves with this number of registers, bound at the first launch."""
    program = work.program
    if program not in _bound:
        _bound[program] = bind_program(program)
    beyond = program.beyond(work.vgprs, work.agprs)
    if not beyond:
        return _bound[program]
    steps = list(_bound[program])
    for i in beyond:
        steps[i] = _refusing(program.instructions[i].beyond(work.vgprs, work.agprs))
    return steps


def _refusing(error: RegisterFault) -> Step:
    def refuse(machine: Machine) -> None:
        raise error

    return refuse


def bind_program(program: Program) -> list[Step]:
    """One callable per instruction; that of an unknown one raises UnknownInstruction."""
    return [_bind_or_report(i, program) for i in program.instructions]


def _bind_or_report(instruction: Instruction, program: Program) -> Step:
    if instruction.semantics is None:
        error = instruction.unknown(instruction.problem)
    else:
        try:
            return bind(instruction, program)
        except NotImplementedError as reason:
            error = instruction.unknown_form(reason)

    def report(machine: Machine) -> None:
        raise error

    return report


def bind(instruction: Instruction, program: Program) -> Step:
    """The callable of one instruction. NotImplementedError names the operand form without a reader or writer."""
    assert instruction.semantics is not None
    step = (_bind_packed if instruction.semantics.packed else _bind_plain)(instruction, program)
    return _with_lane_enable(step) if "dpp" in instruction.encoding else step


def _bind_plain(instruction: Instruction, program: Program) -> Step:
    semantics = instruction.semantics
    assert semantics is not None
    evaluate = semantics.evaluate
    reads = [reader(instruction, i, program) for i in range(len(instruction.sources))]
    writes = writers(instruction, program)
    if not writes:

        def effect(machine: Machine) -> None:
            evaluate(machine, *[read(machine) for read in reads])

        return effect
    if len(writes) == 1:
        (write,) = writes

        def single(machine: Machine) -> None:
            write(machine, evaluate(machine, *[read(machine) for read in reads]))

        return single

    def several(machine: Machine) -> None:
        results = evaluate(machine, *[read(machine) for read in reads])
        for write, result in zip(writes, [_owned(r) for r in results], strict=True):
            write(machine, result)

    return several


def _owned(result: Any) -> Any:
    """A result, copied if it may be a view of a register that an earlier write changes."""
    return result.copy() if isinstance(result, np.ndarray) and result.base is not None else result


def _bind_packed(instruction: Instruction, program: Program) -> Step:
    """VOP3P: the same computation for the low and the high halves."""
    semantics = instruction.semantics
    assert semantics is not None
    evaluate = semantics.evaluate
    pairs = [half_readers(instruction, i, program) for i in range(len(instruction.sources))]
    write = packed_writer(instruction)

    def packed(machine: Machine) -> None:
        low = evaluate(machine, *[read(machine) for read, _ in pairs])
        write(machine, (low, evaluate(machine, *[read(machine) for _, read in pairs])))

    return packed


def _with_lane_enable(step: Step) -> Step:
    """DPP: reading the operand says which lanes may be written."""

    def enabled(machine: Machine) -> None:
        step(machine)
        machine.lane_enable = None

    return enabled
