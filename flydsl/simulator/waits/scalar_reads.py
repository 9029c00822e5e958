"""Scalar registers of RDNA 4 that are read too early after they were written, once the vector ALU has read them.

The vector ALU keeps what it reads of scalar registers. When one is written again, by either ALU, the next read may see
the old value until `s_wait_alu` has waited for the write, or memory is accessed through a scalar load or a buffer
(LLVM, AMDGPUWaitSGPRHazards.cpp). Registers count in pairs. LLVM inserts these waits; inline assembly may miss them.

What callers and callees read is unknown to each other: where a function begins, and after a call, all have been read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from flydsl.hsaco.register_uses import registers_of
from flydsl.simulator.waits.blocks import Block, blocks_of, entries_of, function_entries_of
from flydsl.simulator.waits.instructions import Facts

_VCC = int(registers_of("vcc"))
_SCALARS = (1 << 106) - 1 | _VCC
_LOWS = sum(1 << i for i in range(0, 128, 2))
_FIELD = re.compile(r"depctr_(sa_sdst|va_sdst|va_vcc)\(0\)")
_BITS = {"sa_sdst": 0x1, "va_vcc": 0x2, "va_sdst": 0xE00}
_THROUGH_MEMORY = re.compile(r"(buffer|tbuffer|image)_|s_(buffer_)?(load|store|atomic)_")
_WITHOUT_STATE = re.compile(r"s_(nop|wait|delay_alu|clause|sleep|barrier|endpgm|code_end|set_inst)")


class EarlyRead(NamedTuple):
    """An instruction that reads a scalar register too early after another that writes it, and the field of
    `s_wait_alu` to be 0 in between."""

    instruction: int
    writer: int
    registers: int
    field: str


@dataclass
class _State:
    """tracked: pairs that the vector ALU has read. written: by the field that waits for it, register -> its writer."""

    tracked: int = 0
    written: dict[str, dict[int, int]] = field(default_factory=lambda: {name: {} for name in _BITS})

    def copy(self) -> _State:
        return _State(self.tracked, {name: dict(found) for name, found in self.written.items()})

    def joined(self, other: _State) -> _State:
        """The state where two paths meet: what either has left."""
        both = {name: {**other.written[name], **found} for name, found in self.written.items()}
        return _State(self.tracked | other.tracked, both)


def early_reads(facts: Sequence[Facts], labels: Mapping[str, int]) -> list[EarlyRead]:
    """The reads of a listing that come too early on some path."""
    blocks = blocks_of(facts, labels)
    starts: list[_State | None] = [None] * len(blocks)
    todo = entries_of(blocks, labels)
    functions = function_entries_of(facts, blocks, labels)
    for entry in todo:
        starts[entry] = _State(_LOWS if entry in functions else 0)
    while todo:
        number = todo.pop(0)
        end = _follow(facts, blocks[number], starts[number] or _State(), None)
        for successor in blocks[number].successors:
            before = starts[successor]
            joined = end.copy() if before is None else before.joined(end)
            if joined != before:
                starts[successor] = joined
                if successor not in todo:
                    todo.append(successor)
    found: list[EarlyRead] = []
    for block, start in zip(blocks, starts, strict=True):
        if start is not None:
            _follow(facts, block, start, found)
    return found


def _follow(facts: Sequence[Facts], block: Block, start: _State, found: list[EarlyRead] | None) -> _State:
    state = start.copy()
    for index in range(block.start, block.end):
        _pass(facts[index], state, found)
    return state


def _pass(fact: Facts, state: _State, found: list[EarlyRead] | None) -> None:
    name = fact.mnemonic
    if _THROUGH_MEMORY.match(name):
        for written in state.written.values():
            written.clear()
        return
    if name == "s_wait_alu":
        for waited_for in _waited_for(fact.text):
            state.written[waited_for].clear()
        return
    is_vector = name.startswith("v_")
    if not is_vector and (not name.startswith("s_") or _WITHOUT_STATE.match(name)):
        return
    tracked = _pairs(state.tracked)
    reads, writes = fact.reads & _SCALARS, fact.writes & _SCALARS & tracked
    if not is_vector:
        _read_by_scalar(reads & tracked, state)
    for early in _too_early(fact, reads & tracked, state, is_vector=is_vector):
        state.written[early.field].clear()
        if found is not None:
            found.append(early)
    if is_vector:
        state.tracked |= (reads | reads >> 1) & _LOWS
    for register in _numbers(writes):
        for written in state.written.values():
            written.pop(register, None)
        of = "sa_sdst" if not is_vector else "va_vcc" if _VCC >> register & 1 else "va_sdst"
        state.written[of][register] = fact.index
    if fact.is_call:
        state.tracked = _LOWS


def _read_by_scalar(reads: int, state: _State) -> None:
    """A scalar instruction waits itself for what the vector ALU writes: for all of it, if it reads any register."""
    if reads & _VCC:
        state.written["va_vcc"].clear()
    if reads & ~_VCC:
        state.written["va_sdst"].clear()


def _too_early(fact: Facts, reads: int, state: _State, *, is_vector: bool) -> list[EarlyRead]:
    found = []
    for name in _BITS if is_vector else ("sa_sdst",):
        early = [register for register in _numbers(reads) if register in state.written[name]]
        if early:
            registers = sum(1 << register for register in early)
            found.append(EarlyRead(fact.index, state.written[name][early[0]], registers, name))
    return found


def _waited_for(text: str) -> list[str]:
    """The fields of `s_wait_alu` that are 0.

    >>> _waited_for("s_wait_alu depctr_sa_sdst(0) depctr_va_vcc(0)"), _waited_for("s_wait_alu 0xfffe")
    (['sa_sdst', 'va_vcc'], ['sa_sdst'])
    """
    operand = text.split()[1]
    if operand[:1].isdigit():
        return [name for name, bits in _BITS.items() if not int(operand, 0) & bits]
    return _FIELD.findall(text)


def _pairs(lows: int) -> int:
    return lows | lows << 1


def _numbers(registers: int) -> list[int]:
    return [i for i in range(108) if registers >> i & 1]
