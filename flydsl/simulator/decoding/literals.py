"""The part of a constant that an instruction holds where that is not all of it, as LLVM assembles it.

A small integer and a few floats are inline constants. Anything else is a literal of 32 bits. For a 64-bit operand it is
the high half of a float, or the low half of an integer, which is sign-extended if the operand is signed (ISA, "Literal
Expansion to 64 bits"). LLVM also accepts constants that do not fit, such as 0.1 and -17, and truncates them. gfx1250
has literals of 64 bits, too. v_fma_mix and some scalar instructions of f16 have operands that LLVM encodes as another
type. An operand that a scaled conversion reads as 32 bits may be an f16 or a bf16, and its constant then is one, too.
Whether the constant of a pair of floats is in one half or in both, no document says.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

from flydsl.hsaco.operands import Immediate, Operand

_INLINE_FLOATS = (0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0)
_INVERSE_OF_2_PI = 0.15915494
_INLINE_F64 = {Immediate(value).bits("f64") for value in (0.0, -0.0, *_INLINE_FLOATS)}
_INVERSE_OF_2_PI_F64 = 0x3FC45F306DC9C882
_LOW = (1 << 32) - 1
_TAKEN_FOR_F32 = re.compile(r"s_((ceil|floor|trunc|rndne)_f16|cvt_f32_f16|cmp_.*_f16)")
"""Instructions with f16 operands whose constants LLVM encodes as those of f32."""
_SCALED_FROM_HALF = re.compile(r"v_cvt_scalef32_sr_(?:fp8|bf8)_(b?f16)")
_SCALED_FROM_PAIR = re.compile(r"v_cvt_scalef32_((sr_)?pk_(fp8|bf8|fp4)_b?f16|sr_pk_fp4_f32)")
_NEVER_INLINE = {"v_fmaak_f64": 2, "v_fmamk_f64": 1}
"""Instructions with a source that is always a literal, and which one."""


def as_encoded(
    source: Operand | None, place: int, word: str, mnemonic: str, encoding: str, instruction_sets: Collection[str]
) -> Operand | None:
    """An operand with the part of its constant that the instruction holds. ValueError if the encoding is not known.

    place: of the operand among the sources. word: its kind, a word of a signature in `isa.table`.
    """
    if source is None or not isinstance(source.atom, Immediate):
        return source
    if word in ("mix", "bmix"):
        return replace(source, atom=_held_by_mix(source.atom, "f16" if word == "mix" else "bf16"))
    if word == "f16" and _TAKEN_FOR_F32.fullmatch(mnemonic):
        return replace(source, atom=_of_bits(source.atom.bits("f32"), 32, "f32"))
    if place == 0 and isinstance(source.atom.value, float) and mnemonic.startswith("v_cvt_scalef32_"):
        return _of_scaled(source, mnemonic)
    if word not in ("i64", "f64"):
        return source
    has_wide = "cdna5" in instruction_sets
    may_be_wide = has_wide and (encoding == "e32" or mnemonic.startswith("s_"))
    if (has_wide and source.atom.is_wide) or (may_be_wide and word == "i64"):
        return source
    if _NEVER_INLINE.get(mnemonic) == place and isinstance(source.atom.value, int):
        return replace(source, atom=Immediate(source.atom.value & _LOW, is_literal=True))
    held = _held(source.atom, word, is_signed=mnemonic.endswith("_i64"))
    is_cut_off = held.bits(word) != source.atom.bits(word) and not source.atom.is_literal
    is_upper_half = word == "f64" and isinstance(source.atom.value, int)  # in every encoding
    if has_wide and is_cut_off and not is_upper_half:
        if may_be_wide:
            return source
        raise ValueError("a constant that some encodings hold in 64 bits, and others in 32")
    return replace(source, atom=held)


def _of_scaled(source: Operand, mnemonic: str) -> Operand:
    """The operand of a scaled conversion. ValueError for a constant that stands for a pair."""
    if _SCALED_FROM_PAIR.fullmatch(mnemonic):
        raise ValueError("a float constant as a pair of floats")
    if half := _SCALED_FROM_HALF.fullmatch(mnemonic):
        assert isinstance(source.atom, Immediate)
        return replace(source, atom=Immediate(source.atom.bits("bfloat" if half[1] == "bf16" else "f16")))
    return source


def _held_by_mix(constant: Immediate, narrow: str) -> Immediate:
    """v_fma_mix holds a narrow float even where the instruction reads it as an f32."""
    if isinstance(constant.value, float) and constant.bits("f64") in _INLINE_F64:
        return constant  # which may be a zero with a sign
    return _of_bits(constant.packed_bits(narrow) & 0xFFFF, 16, "bfloat" if narrow == "bf16" else narrow)


def _of_bits(bits: int, width: int, float_type: str) -> Immediate:
    """The inline constant that has these bits, or the literal."""
    number = bits - (1 << width) if bits >> (width - 1) else bits
    if -16 <= number <= 64:
        return Immediate(number)
    inline = (Immediate(value) for value in (*_INLINE_FLOATS, _INVERSE_OF_2_PI))
    return next((c for c in inline if c.bits(float_type) == bits), Immediate(bits, is_literal=True))


def _held(constant: Immediate, word: str, *, is_signed: bool) -> Immediate:
    bits = constant.bits(word)
    if isinstance(constant.value, float):
        is_inline = word != "f64" or bits in _INLINE_F64 or bits == _INVERSE_OF_2_PI_F64
        return constant if is_inline else Immediate(bits >> 32, is_literal=True)
    if not constant.is_literal and -16 <= constant.value <= 64:
        return constant
    low = constant.value & _LOW
    return Immediate(low - (1 << 32) if is_signed and low >> 31 and word == "i64" else low, is_literal=True)
