"""Claims: what an instruction asks of those after it, until a number of wait states have passed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flydsl.hsaco.operands import split_operands, split_words
from flydsl.hsaco.register_uses import full_names, registers_of
from flydsl.simulator.waits.instructions import Facts

SCALARS = (1 << 128) - 1
"""The scalar registers of a set of registers."""
TRANSCENDENTAL = re.compile(r"v_(s_)?(exp|log|rcp|rsq|sqrt|sin|cos|tanh)(_iflag|_legacy|_clamp)?_[bf]f?(16|32|64)$")
_DPP = re.compile(r"\b(quad_perm|row_\w+|wave_\w+|dpp8):")


@dataclass(frozen=True)
class Claim:
    """A demand of an instruction that holds for a while.

    needs: how many wait states must lie between it and a later instruction, with the rule and the registers; 0 if none.
    most: the most that any instruction needs. counts_vector: only instructions of the vector ALU count.
    """

    index: int
    most: int
    needs: Callable[[Known], tuple[int, str, int]]
    counts_vector: bool = False


@dataclass(frozen=True)
class Known:
    """An instruction as the rules ask for it. operands: the registers of each operand of a matrix instruction."""

    fact: Facts
    is_vector: bool
    is_matrix: bool
    is_memory: bool
    is_dpp: bool
    operands: tuple[int, ...] = ()

    @property
    def reads(self) -> int:
        return self.fact.reads

    @property
    def writes(self) -> int:
        return self.fact.writes


def known(fact: Facts) -> Known:
    """The instruction with its class."""
    name = fact.mnemonic
    is_vector = name.startswith("v_") and not name.startswith("v_nop")
    is_matrix = is_vector and name.startswith(("v_mfma_", "v_smfmac_", "v_wmma_", "v_swmmac_"))
    is_memory = fact.kind not in ("", "scalar load", "message", "first at barrier", "tile") and name[0] != "s"
    is_dpp = is_vector and ("_dpp" in fact.text or _DPP.search(fact.text) is not None)
    operands = tuple(int(registers_of(text)) for text in operands_of(fact.text)) if is_matrix else ()
    return Known(fact, is_vector, is_matrix, is_memory, is_dpp, operands)


def operands_of(text: str) -> list[str]:
    """The texts of an instruction's operands, without modifiers."""
    operands = split_operands(full_names(text).partition(" ")[2])
    return [*operands[:-1], split_words(operands[-1])[0]] if operands else []


def union(sets: Sequence[int]) -> int:
    """The registers that are in any of the sets."""
    found = 0
    for part in sets:
        found |= part
    return found
