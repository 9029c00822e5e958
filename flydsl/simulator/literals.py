"""Constants of 64-bit operands, and of v_fma_mix: what an instruction holds of those that it does not hold whole.

A small integer and a few floats are inline constants. Anything else is a literal of 32 bits, which is the high half of
a float, and of an integer the low half, extended with its sign where the operand has one (ISA, "Literal Expansion to
64 bits"). LLVM assembles more than that, and cuts it off: 0.1 and -17, for example. gfx1250 has literals of 64 bits,
too.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from flydsl.hsaco.operands import Immediate, Operand

_INLINE_FLOATS = tuple(sign | bits << 48 for bits in (0, 0x3FE0, 0x3FF0, 0x4000, 0x4010) for sign in (0, 1 << 63))
_INLINE_FLOATS = (*_INLINE_FLOATS, 0x3FC45F306DC9C882)
"""Of f64, the last one 1 / (2 pi)."""
_INLINE_FRACTION = {"f16": 0x3118, "bf16": 0x3E22}
_LOW = (1 << 32) - 1


def as_encoded(
    source: Operand | None, word: str, mnemonic: str, encoding: str, instruction_sets: Collection[str]
) -> Operand | None:
    """An operand whose constant is what the instruction holds of it. ValueError where its encoding is not known."""
    if source is None or not isinstance(source.atom, Immediate):
        return source
    if word in ("mix", "bmix"):
        return replace(source, atom=_held_by_mix(source.atom, "f16" if word == "mix" else "bf16"))
    if word not in ("i64", "f64"):
        return source
    has_wide = "cdna5" in instruction_sets
    if source.atom.is_wide and has_wide:
        return source
    held = _held(source.atom, word, is_signed=mnemonic.endswith("_i64"))
    if has_wide and held.bits(word) != source.atom.bits(word) and not source.atom.is_literal:
        if encoding == "e32" or mnemonic.startswith("s_"):
            return source
        raise ValueError("a constant of which some encodings hold 64 bits, and others 32")
    return replace(source, atom=held)


def _held_by_mix(constant: Immediate, narrow: str) -> Immediate:
    """The literal of v_fma_mix is a narrow float, also where the instruction takes it for an f32."""
    if not isinstance(constant.value, float) or constant.bits("f64") in _INLINE_FLOATS[:-1]:
        return constant
    bits = constant.packed_bits(narrow)
    return Immediate(0.15915494) if bits == _INLINE_FRACTION[narrow] else Immediate(bits, is_literal=True)


def _held(constant: Immediate, word: str, *, is_signed: bool) -> Immediate:
    bits = constant.bits(word)
    if isinstance(constant.value, float):
        is_inline = word != "f64" or bits in _INLINE_FLOATS
        return constant if is_inline else Immediate(bits >> 32, is_literal=True)
    if not constant.is_literal and -16 <= constant.value <= 64:
        return constant
    low = constant.value & _LOW
    return Immediate(low - (1 << 32) if is_signed and low >> 31 and word == "i64" else low, is_literal=True)
