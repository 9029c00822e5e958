"""The model's facts about each instruction: its unit, how long it takes, what it waits for."""

from __future__ import annotations

import math
import re
from functools import cache

from flydsl.arch import Arch
from flydsl.arch.instruction_costs import has_separate_transcendental_unit, mfma_cycles, valu_cycles
from flydsl.arch.timing import Timing
from flydsl.simulator.counters.instruction_class import instruction_class
from flydsl.simulator.decoding.program import Instruction, Program
from flydsl.simulator.timing.memory_waits import counters_waited_for
from flydsl.simulator.timing.needed import Effects, effects_of
from flydsl.simulator.timing.replay import layout
from flydsl.simulator.timing.trace import Unit

_QUARTER_RATE = re.compile(r"v_(mul_(lo|hi)_[iu]32|mad_[iu]64|mul_f64|fma_f64|rcp_f64|rsq_f64|sqrt_f64)")
_TRANSCENDENTAL = re.compile(r"v_(exp|log|rcp|rsq|sqrt|sin|cos)(_|$)")
_DOUBLE = re.compile(r"v_\w+_f64(_|$)")
_DOUBLE_CYCLES_OF_RDNA = 16
"""1.5 TFLOPS of an RX 9070 XT, as published, are two lanes a cycle."""
_SCALAR_FLOAT = re.compile(r"s_\w+_f(16|32)(_|$)")
_COUNTERS = {
    "vmcnt": layout.VECTOR_COUNTER,
    "loadcnt": layout.VECTOR_COUNTER,
    "lgkmcnt": layout.LDS_COUNTER,
    "dscnt": layout.LDS_COUNTER,
    "storecnt": layout.STORE_COUNTER,
    "vscnt": layout.STORE_COUNTER,
    "kmcnt": layout.SCALAR_COUNTER,
}
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


def vector_cycles(arch: Arch, mnemonic: str, wave_size: int | None = None) -> int:
    """Cycles for which a vector instruction holds its SIMD's lanes. Unknown ones count as the full rate's."""
    known = valu_cycles(arch, mnemonic, wave_size)
    if known is not None:
        return known
    full = valu_cycles(arch, "v_add_u32", wave_size) or 1
    if has_separate_transcendental_unit(arch) and _DOUBLE.match(mnemonic):
        return _DOUBLE_CYCLES_OF_RDNA * full
    return 4 * full if _TRANSCENDENTAL.match(mnemonic) or _QUARTER_RATE.match(mnemonic) else full


def described(arch: Arch, timing: Timing, program: Program) -> list[layout.Instruction]:
    """The instructions of a program as the replay takes them."""
    pairs = zip(program.instructions, effects_of(program), strict=True)
    return [_described(arch, timing, instruction, effect) for instruction, effect in pairs]


def matrix_cycles(arch: Arch, timing: Timing, instruction: Instruction) -> int:
    """Cycles for which a matrix instruction holds its SIMD's matrix core."""
    return mfma_cycles(arch, instruction.table_name) or 8 * int(timing.issue_cycles.value)


def _described(arch: Arch, timing: Timing, instruction: Instruction, effect: Effects) -> layout.Instruction:
    unit, slot = unit_of(instruction.mnemonic), int(timing.issue_cycles.value)
    result = layout.Instruction(unit=unit, busy=slot, held=slot, latency=slot, after=slot)
    for counter in range(layout.COUNTERS):
        result.limits[counter] = _NO_LIMIT
    _set_registers(result, effect, int(timing.matrix_extra_latency.value) if unit == Unit.MATRIX else 0)
    if unit in (Unit.MATRIX, Unit.VALU, Unit.TRANSCENDENTAL):
        _describe_vector(result, arch, timing, instruction)
    elif unit == Unit.SCALAR:
        is_float = _SCALAR_FLOAT.match(instruction.mnemonic)
        result.latency = int((timing.scalar_float_latency if is_float else timing.scalar_latency).value)
    elif unit in (Unit.VECTOR_MEMORY, Unit.LDS, Unit.SCALAR_MEMORY):
        _describe_access(result, arch, timing, instruction)
    elif unit == Unit.BRANCH:
        result.latency = int(timing.branch_cycles.value)
    else:
        _describe_message(result, instruction, slot)
    return result


def _describe_vector(result: layout.Instruction, arch: Arch, timing: Timing, instruction: Instruction) -> None:
    """Describe an instruction of the lanes of a SIMD, or of its matrix core.

    CDNA's matrix core works beside the vector ALU, which RDNA executes matrix products with; RDNA has a unit for
    transcendental functions; it starts one while others are executed.
    """
    is_rdna, slot = has_separate_transcendental_unit(arch), int(timing.issue_cycles.value)
    mnemonic, unit = instruction.mnemonic, Unit(result.unit)
    if unit == Unit.MATRIX:
        result.busy = matrix_cycles(arch, timing, instruction)
        result.latency = result.busy + int(timing.matrix_extra_latency.value)
        result.held = result.busy if is_rdna else slot
        return
    result.busy = vector_cycles(arch, mnemonic, instruction.wave_size)
    passes = result.busy // (4 if unit == Unit.TRANSCENDENTAL else 1)
    result.held = passes if is_rdna and unit == Unit.TRANSCENDENTAL else result.busy
    result.after = min(result.held, max(1, instruction.wave_size // arch.wave_size)) if is_rdna else result.busy
    least = timing.transcendental_latency if unit == Unit.TRANSCENDENTAL else timing.vector_latency
    least = timing.double_latency if _DOUBLE.match(mnemonic) else least
    result.latency = max(int(least.value), int(timing.vector_latency.value) + result.busy - slot)


def _describe_access(result: layout.Instruction, arch: Arch, timing: Timing, instruction: Instruction) -> None:
    """Its kind, and what counts it while it is under way: RDNA counts stores and scalar loads apart."""
    unit, is_rdna = Unit(result.unit), has_separate_transcendental_unit(arch)
    result.kind = _access_kind(unit, instruction)
    result.counter, result.room = layout.LDS_COUNTER, 64 if is_rdna else 16
    if unit == Unit.VECTOR_MEMORY:
        result.addressing = int(timing.l1_address_cycles.value) * instruction.wave_size // arch.wave_size
        is_store = result.kind == layout.STORE or (result.kind == layout.ATOMIC and not instruction.results)
        result.counter = layout.STORE_COUNTER if is_rdna and is_store else layout.VECTOR_COUNTER
        result.room = 64
    elif unit == Unit.SCALAR_MEMORY and is_rdna:
        result.counter, result.room = layout.SCALAR_COUNTER, 32
    elif unit == Unit.LDS:
        _describe_lds_ports(result, timing, instruction)


_LDS_DATA = re.compile(r"ds_(?:read|write)(2(?:st64)?)?(?:_tr\d*)?_[a-z]?(\d+)")


def _describe_lds_ports(result: layout.Instruction, timing: Timing, instruction: Instruction) -> None:
    """The cycles of the ports between SIMDs and LDS: four bytes of address go in for each lane, and what is stored.

    Of what is neither a plain load nor a plain store, a dword goes each way.
    """
    match = _LDS_DATA.match(instruction.mnemonic)
    data = max(4, int(match[2]) // 8) * (2 if match[1] else 1) if match else 4
    is_store, is_load = match is None or result.kind == layout.STORE, match is None or result.kind == layout.LOAD
    lanes = instruction.wave_size
    result.lds_in = math.ceil(lanes * (4 + data * is_store) / timing.lds_port_in_bytes.value)
    result.lds_out = math.ceil(lanes * data * is_load / timing.lds_port_out_bytes.value)


def _access_kind(unit: Unit, instruction: Instruction) -> int:
    if unit == Unit.LDS:
        is_store = re.match(r"ds_(write|add|sub|min|max|and|or|xor)", instruction.mnemonic)
        return int(layout.STORE if is_store else layout.LOAD)
    if "lds" in instruction.modifiers.values or "_lds_" in instruction.mnemonic:
        return int(layout.LOAD_TO_LDS)
    kind = instruction_class(instruction.mnemonic)
    return int({"VMEM store": layout.STORE, "VMEM atomic": layout.ATOMIC}.get(kind, layout.LOAD))


_KINDS = {
    "s_barrier": layout.BARRIER,
    "s_barrier_signal": layout.BARRIER_SIGNAL,
    "s_barrier_signal_isfirst": layout.BARRIER_SIGNAL,
    "s_barrier_wait": layout.BARRIER_WAIT,
    "s_endpgm": layout.END,
}


def _describe_message(result: layout.Instruction, instruction: Instruction, slot: int) -> None:
    """Waits, barriers and the like. s_delay_alu takes a slot: a wave waits for registers anyway."""
    text = instruction.listed.text
    limits = _limits(text)
    for name, most in limits.items():
        if name in _COUNTERS:
            result.limits[_COUNTERS[name]] = min(most, _NO_LIMIT)
    result.kind = layout.WAIT if limits else _KINDS.get(instruction.mnemonic, 0)
    if instruction.mnemonic == "s_nop":
        result.after = slot * (int(text.split()[1], 0) + 1)
    elif instruction.mnemonic == "s_sleep":
        result.after = 64 * max(1, int(text.split()[1], 0))


def _limits(text: str) -> dict[str, int]:
    """The counters that an instruction waits for, and the most that each may be afterwards."""
    if text.startswith("s_wait_idle"):
        return dict.fromkeys(_COUNTERS, 0)
    if not text.startswith("s_waitcnt ") or "cnt(" in text:
        return counters_waited_for(text)
    bits = int(text.split()[1], 0)
    of_lds = bits >> 8 & 15
    return {"vmcnt": bits & 15 | (bits >> 14 & 3) << 4, "lgkmcnt": _NO_LIMIT if of_lds == 15 else of_lds}


def _set_registers(result: layout.Instruction, effect: Effects, early: int) -> None:
    """The registers that it waits for, and those that wait for it. early: by how much a sum is there before."""
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
