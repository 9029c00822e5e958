"""What the model knows of each instruction: its unit, how long it takes, what it waits for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from flydsl.arch import Arch
from flydsl.arch.instruction_costs import mfma_cycles, valu_cycles
from flydsl.arch.timing import Timing
from flydsl.simulator.counters.instruction_class import instruction_class
from flydsl.simulator.program import Instruction
from flydsl.simulator.timing.needed import effects
from flydsl.simulator.timing.replay import layout
from flydsl.simulator.timing.trace import Unit

SLOT_CYCLES = 4
"""A SIMD has its turn to issue every fourth cycle."""
_QUARTER_RATE = re.compile(r"v_(mul_(lo|hi)_[iu]32|mad_[iu]64|mul_f64|fma_f64|rcp_f64|rsq_f64|sqrt_f64)")
_TRANSCENDENTAL = re.compile(r"v_(exp|log|rcp|rsq|sqrt|sin|cos)(_|$)")
_WAIT = re.compile(r"(vmcnt|lgkmcnt)\((\d+)\)")
_NO_LIMIT = 63
_UNITS = {
    "VALU": Unit.VALU,
    "MFMA": Unit.MATRIX,
    "SALU": Unit.SCALAR,
    "SMEM": Unit.SCALAR_MEMORY,
    "VMEM load": Unit.VECTOR_MEMORY,
    "VMEM store": Unit.VECTOR_MEMORY,
    "VMEM atomic": Unit.VECTOR_MEMORY,
    "LDS": Unit.LDS,
    "branch": Unit.BRANCH,
}


@cache
def unit_of(mnemonic: str) -> Unit:
    """The unit that executes an instruction.

    >>> unit_of("v_exp_f32"), unit_of("s_waitcnt")
    (<Unit.TRANSCENDENTAL: 2>, <Unit.MESSAGE: 8>)
    """
    if _TRANSCENDENTAL.match(mnemonic):
        return Unit.TRANSCENDENTAL
    return _UNITS.get(instruction_class(mnemonic), Unit.MESSAGE)


def vector_cycles(arch: Arch, mnemonic: str) -> int:
    """Cycles for which a vector instruction holds its SIMD's lanes. Unknown ones count as the full rate's."""
    known = valu_cycles(arch, mnemonic)
    if known is not None:
        return known
    return 4 * SLOT_CYCLES if _TRANSCENDENTAL.match(mnemonic) or _QUARTER_RATE.match(mnemonic) else SLOT_CYCLES


def described(arch: Arch, timing: Timing, instructions: Sequence[Instruction]) -> list[layout.Instruction]:
    """The instructions of a program as the replay takes them."""
    return [_described(arch, timing, instruction) for instruction in instructions]


def _described(arch: Arch, timing: Timing, instruction: Instruction) -> layout.Instruction:
    unit, mnemonic = unit_of(instruction.mnemonic), instruction.mnemonic
    result = layout.Instruction(unit=unit, busy=SLOT_CYCLES, latency=SLOT_CYCLES, after=SLOT_CYCLES)
    result.vector_limit = result.scalar_limit = _NO_LIMIT
    extra = int(timing.matrix_extra_latency.value) if unit == Unit.MATRIX else 0
    _set_registers(result, instruction, extra)
    if unit == Unit.MATRIX:
        busy = mfma_cycles(arch, instruction.table_name) or 8 * SLOT_CYCLES
        result.busy, result.latency = busy, busy + extra
    elif unit in (Unit.VALU, Unit.TRANSCENDENTAL):
        result.busy = result.latency = result.after = vector_cycles(arch, mnemonic)
    elif unit == Unit.SCALAR:
        result.latency = int(timing.scalar_latency.value)
    elif unit == Unit.VECTOR_MEMORY:
        result.kind = _memory_kind(instruction)
    elif unit == Unit.LDS:
        result.kind = layout.STORE if re.match(r"ds_(write|add|sub|min|max|and|or|xor)", mnemonic) else layout.LOAD
    elif unit == Unit.SCALAR_MEMORY:
        result.kind = layout.LOAD
    elif unit == Unit.BRANCH:
        result.latency = int(timing.branch_cycles.value)
    else:
        _describe_message(result, instruction)
    return result


def _memory_kind(instruction: Instruction) -> int:
    if "lds" in instruction.modifiers.values or "_lds_" in instruction.mnemonic:
        return int(layout.LOAD_TO_LDS)
    kind = instruction_class(instruction.mnemonic)
    return int({"VMEM load": layout.LOAD, "VMEM store": layout.STORE}.get(kind, layout.ATOMIC))


def _describe_message(result: layout.Instruction, instruction: Instruction) -> None:
    text = instruction.listed.text
    if instruction.mnemonic == "s_waitcnt":
        result.kind = layout.WAIT
        limits = {name: int(value) for name, value in _WAIT.findall(text)}
        if not limits and "cnt(" not in text:
            bits = int(text.split()[1], 0)
            limits = {"vmcnt": bits & 15 | (bits >> 14 & 3) << 4, "lgkmcnt": bits >> 8 & 15}
            limits["lgkmcnt"] = _NO_LIMIT if limits["lgkmcnt"] == 15 else limits["lgkmcnt"]
        result.vector_limit = limits.get("vmcnt", _NO_LIMIT)
        result.scalar_limit = limits.get("lgkmcnt", _NO_LIMIT)
    elif instruction.mnemonic == "s_barrier":
        result.kind = layout.BARRIER
    elif instruction.mnemonic.startswith("s_endpgm"):
        result.kind = layout.END
    elif instruction.mnemonic == "s_nop":
        result.after = SLOT_CYCLES * (int(text.split()[1], 0) + 1)
    elif instruction.mnemonic == "s_sleep":
        result.after = 64 * max(1, int(text.split()[1], 0))


def _set_registers(result: layout.Instruction, instruction: Instruction, early: int) -> None:
    """The registers that it waits for, and those that wait for it. early: by how much a sum is there before."""
    effect = effects(instruction)
    reads = _ranges(effect.reads & ~effect.writes)
    writes = _ranges(effect.writes)
    result.read_count, result.write_count = len(reads), len(writes)
    for i, (first, count) in enumerate(reads):
        result.reads[i] = layout.Range(first, count)
    for i, (first, count) in enumerate(writes):
        result.writes[i] = layout.Range(first, count)
    result.early = early if effect.reads & effect.writes else 0


def _ranges(bits: int) -> list[tuple[int, int]]:
    """The runs of ones: (first, count). EXEC, which everything reads, is left out."""
    bits &= ~layout.IGNORED_REGISTERS
    found = []
    while bits:
        first = (bits & -bits).bit_length() - 1
        count = ((~(bits >> first)) & ((bits >> first) + 1)).bit_length() - 1
        found.append((first, count))
        bits &= ~(((1 << count) - 1) << first)
    if len(found) > layout.MAX_RANGES:
        raise AssertionError(f"{len(found)} ranges of registers")
    return found
