"""Uses that come before the wait states that they need: `arch.wait_states` has the figures.

An instruction whose result, or operand, must be left alone for a while leaves a `Claim`. The walk carries the claims
along every path with the least number of wait states since, and a later instruction asks each how many it needs. Of the
sums that another matrix instruction has overwritten, which it does in order, nothing is left to be claimed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from flydsl.arch import Arch
from flydsl.arch.wait_states import wait_states
from flydsl.hsaco.register_uses import RegisterSet
from flydsl.simulator.waits.blocks import Block, blocks_of, entries_of
from flydsl.simulator.waits.claims import Claim, Known, known
from flydsl.simulator.waits.claims_cdna import claims_of_cdna
from flydsl.simulator.waits.claims_rdna4 import claims_of_rdna4
from flydsl.simulator.waits.instructions import Facts


class Early(NamedTuple):
    """An instruction that comes too early after another. passed, needed: wait states, or vector instructions.

    rule: in words, what it does that it must not do yet. registers: that both use, 0 where none is named.
    """

    instruction: int
    before: int
    passed: int
    needed: int
    rule: str
    registers: int
    counts_vector: bool


class Hazards:
    """The instructions of a listing that come too early on some path."""

    def __init__(self, facts: Sequence[Facts], labels: dict[str, int], arch: Arch) -> None:
        self._known = [known(fact) for fact in facts]
        self._claims = _claims_of(self._known, arch)
        self.early: list[Early] = []
        if any(self._claims):
            self._walk(blocks_of(facts, labels), labels)

    def _walk(self, blocks: list[Block], labels: dict[str, int]) -> None:
        starts: list[_Passed | None] = [None] * len(blocks)
        todo = sorted(entries_of(blocks, labels))
        for entry in todo:
            starts[entry] = {}
        while todo:
            number = todo.pop(0)
            end = self._follow(blocks[number], starts[number] or {}, None)
            for successor in blocks[number].successors:
                before = starts[successor]
                joined = dict(end) if before is None else _least(before, end)
                if joined != before:
                    starts[successor] = joined
                    if successor not in todo:
                        todo.append(successor)
        for block, start in zip(blocks, starts, strict=True):
            if start is not None:
                self._follow(block, start, self.early.append)

    def _follow(self, block: Block, start: _Passed, found: Callable[[Early], None] | None) -> _Passed:
        """The claims that hold after a block."""
        passed = dict(start)
        for index in range(block.start, block.end):
            one = self._known[index]
            if passed:
                if found is not None:
                    for early in self._asked(one, passed):
                        found(early)
                self._age(one, passed)
            if self._claims[index]:
                passed[index] = 0, 0
        return passed

    def _asked(self, one: Known, passed: _Passed) -> list[Early]:
        found = []
        for before, (count, gone) in passed.items():
            for claim in self._claims[before]:
                if count >= claim.most:
                    continue
                needed, rule, registers = claim.needs(one)
                if needed > count and not (registers and not registers & ~gone):
                    left = registers & ~gone
                    found.append(Early(one.fact.index, before, count, needed, rule, left, claim.counts_vector))
        return found

    def _age(self, one: Known, passed: _Passed) -> None:
        states = states_of(one.fact.text)
        slots = int(one.is_vector or one.fact.mnemonic == "v_nop" or one.fact.kind == "tile")  # so LLVM counts
        overwritten = one.operands[0] if one.is_matrix else 0
        for before, (count, gone) in list(passed.items()):
            claims = self._claims[before]
            count += slots if claims[0].counts_vector else states
            if count >= max(claim.most for claim in claims):
                del passed[before]
            else:
                passed[before] = count, gone | overwritten


_Passed = dict[int, tuple[int, int]]
"""By the instruction that claims: the wait states since, and the registers that are claimed no more."""


def _least(one: _Passed, other: _Passed) -> _Passed:
    """The claims that hold where two paths join."""
    joined = dict(one)
    for key, (count, gone) in other.items():
        mine = one.get(key)
        joined[key] = (count, gone) if mine is None else (min(count, mine[0]), gone & mine[1])
    return joined


def states_of(text: str) -> int:
    """The wait states that an instruction takes."""
    return int(text.split()[1], 0) + 1 if text.startswith("s_nop ") else 1


def _claims_of(instructions: Sequence[Known], arch: Arch) -> list[list[Claim]]:
    figures = wait_states(arch)
    if figures.memory_sgpr:
        return [claims_of_cdna(one, figures, arch) for one in instructions]
    return [claims_of_rdna4(one, arch) for one in instructions]


def register_names(registers: int) -> str:
    """The registers of a set, runs as ranges: "v[2:3], s4".

    >>> from flydsl.hsaco.register_uses import registers_of
    >>> register_names(registers_of("v[2:3], s4, v7"))
    's4, v[2:3], v7'
    """
    names: list[str] = []
    for name in RegisterSet(registers).names():
        previous = names[-1] if names else ""
        match = re.fullmatch(r"([sva])(?:(\d+)|\[(\d+):(\d+)\])", previous)
        number = name[1:]
        if match and number.isdigit() and name[0] == match[1] and int(number) == int(match[2] or match[4]) + 1:
            names[-1] = f"{match[1]}[{match[2] or match[3]}:{number}]"
        else:
            names.append(name)
    return ", ".join(names)
