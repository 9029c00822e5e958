"""The claims of instructions of RDNA 4 and CDNA 5."""

from __future__ import annotations

from flydsl.arch import Arch
from flydsl.arch.wait_states import TRANSCENDENTAL_SLOTS, VectorSlots, vector_slots
from flydsl.simulator.waits.claims import SCALARS, TRANSCENDENTAL, Claim, Known, union


def claims_of_rdna4(one: Known, arch: Arch) -> list[Claim]:
    """The claims of an instruction."""
    if one.is_matrix:
        slots = vector_slots(arch, one.fact.mnemonic, one.fact.text)
        return [] if slots is None else [_after_wmma(one, slots)]
    if arch.name in TRANSCENDENTAL_SLOTS and TRANSCENDENTAL.match(one.fact.mnemonic):
        return [_after_transcendental(one, TRANSCENDENTAL_SLOTS[arch.name])]
    return []


def _after_wmma(one: Known, slots: VectorSlots) -> Claim:
    written, multiplied = one.operands[0], union(one.operands[1:3])

    def needs(later: Known) -> tuple[int, str, int]:
        if later.is_matrix:
            is_sparse = later.fact.mnemonic.startswith("v_swmmac")
            factors = written & union(later.operands[1:4] if is_sparse else later.operands[1:3])
            return (slots.factors if factors else 0), "multiplies the sums of another matrix instruction", factors
        if not later.is_vector or TRANSCENDENTAL.match(later.fact.mnemonic):
            return 0, "", 0
        used = (later.reads | _overwritten(later)) & written
        if used:
            return slots.vector, "uses the sums of a matrix instruction", used
        overwritten = _overwritten(later) & multiplied
        return (slots.vector if overwritten else 0), "overwrites a factor of a matrix instruction", overwritten

    return Claim(one.fact.index, max(slots.factors, slots.vector), needs, counts_vector=True)


def _overwritten(later: Known) -> int:
    """The registers that it must not overwrite yet: none by a pair of instructions, which LLVM lets overwrite them."""
    return 0 if "::" in later.fact.text else later.writes


def _after_transcendental(one: Known, slots: int) -> Claim:
    def needs(later: Known) -> tuple[int, str, int]:
        if not later.is_vector or TRANSCENDENTAL.match(later.fact.mnemonic):
            return 0, "", 0
        read = later.reads & one.writes
        if read:
            return slots, "reads the result of a transcendental function", read
        overwritten = _overwritten(later) & one.reads & ~SCALARS
        return (slots if overwritten else 0), "overwrites the operand of a transcendental function", overwritten

    return Claim(one.fact.index, slots, needs, counts_vector=True)
