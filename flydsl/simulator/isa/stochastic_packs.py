"""Stochastic rounding of several elements with one random number (CDNA 4 and gfx1250).

The first element takes the random number, and each other one the number that follows it, as v_prng_b32 has it. So does
AMD's functional model (rocm-systems, emulation/rocjitsu, `prng_advance`); no document says it. Of numbers that the
narrow format has exactly the result is the same whatever the random number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.common import curried
from flydsl.simulator.isa.convert import insert_byte, pack_halves, stochastic_bf16, stochastic_f16
from flydsl.simulator.isa.fields import packed_fields
from flydsl.simulator.isa.narrow_floats import MICROSCALING, NarrowFloat, encode_stochastically
from flydsl.simulator.isa.scaled_convert import divided, halves
from flydsl.simulator.isa.table import define
from flydsl.simulator.isa.vector_integer import next_random

_WIDE = ("f32", "f16", "bf16")
_SIXES = ("fp6", "bf6")


@curried
def _pair(convert: Any, b: Builder, x: Value, y: Value, random: Value) -> Value:
    return pack_halves(b, convert(b, x, random), convert(b, y, next_random(b, random)))


def _numbers(b: Builder, registers: Sequence[Value], wide: str) -> list[Value]:
    """The elements as f32."""
    if wide == "f32":
        return [b.bitcast(r, "f32") for r in registers]
    return [x for r in registers for x in halves(b, r, wide)]


def _codes(
    b: Builder, registers: Sequence[Value], random: Value, scale: Value, format_: NarrowFloat, wide: str
) -> list[Value]:
    codes = []
    for number in _numbers(b, registers, wide):
        codes.append(encode_stochastically(b, divided(b, number, scale), random, format_))
        random = next_random(b, random)
    return codes


@curried
def _block(
    format_: NarrowFloat, wide: str, b: Builder, block: tuple[Value, ...], random: Value, scale: Value
) -> tuple[Value, ...]:
    return packed_fields(b, _codes(b, block, random, scale, format_, wide), format_.bits)


@curried
def _two_nibbles(
    wide: str, b: Builder, x: tuple[Value, ...], random: Value, scale: Value, old: Value, modifiers: Any
) -> Value:
    """The last two bits of op_sel name the byte that the two elements replace."""
    low, high = _codes(b, x, random, scale, MICROSCALING["fp4"], wide)
    return insert_byte(b, old, b.or_(low, b.shl(high, b.const("i32", 4))), modifiers)


def _define_block(name: str, count: int, wide: str, of: str) -> None:
    format_ = MICROSCALING[name]
    narrow, registers = count * format_.bits // 32, count if wide == "f32" else count // 2
    words = f"i32x{narrow} = i32x{registers} i32 i32"
    define(f"v_cvt_scalef32_sr_pk{count}_{name}_{wide}", words, _block(format_, wide), of=of)


for _wide in _WIDE:
    for _name in _SIXES:
        _define_block(_name, 32, _wide, "cdna4")
    for _name in MICROSCALING:
        _define_block(_name, 16 if _name in _SIXES else 8, _wide, "cdna5")
    _words = f"i32 = i32x{2 if _wide == 'f32' else 1} i32 i32 dst modifiers"
    define(f"v_cvt_scalef32_sr_pk_fp4_{_wide}", _words, _two_nibbles(_wide), of="cdna4")
for _wide, _convert in (("f16", stochastic_f16), ("bf16", stochastic_bf16)):
    define(f"v_cvt_sr_pk_{_wide}_f32", "i32 = f32 f32 i32", _pair(_convert), of="cdna5")
