"""Conversions of CDNA 4 and gfx1250 between f32, f16 or bf16 and floats of 8, 6 and 4 bits that share a scale.

Of the scale operand, an f32, only the exponent counts: the scale is 2**(exponent - 127), and NaN for 255. A conversion
to a narrow float divides by the scale, and one from a narrow float multiplies (LLVM, "llvm.amdgcn.cvt.scalef32.*",
names the operands and what op_sel selects). A quotient too small for an f32 is zero in all of the formats, so that the
result is rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flydsl.simulator.isa.atomics import from_float, to_float
from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.common import curried, insert_half
from flydsl.simulator.isa.convert import insert_byte, pack_halves
from flydsl.simulator.isa.fields import field_of, packed_fields
from flydsl.simulator.isa.narrow_floats import (
    MICROSCALING,
    OCP,
    NarrowFloat,
    decode,
    decode_all,
    encode,
    encode_all,
    encode_stochastically,
)
from flydsl.simulator.isa.table import define

_WIDE = ("f32", "f16", "bf16")
_SIXES = ("fp6", "bf6")
_COUNT = 32
"""Elements of the conversions of whole blocks."""

Number = Callable[[Builder, Value], Value]


def _exponent(b: Builder, scale: Value) -> tuple[Value, Value]:
    """The power of two that a scale stands for, and whether it is NaN."""
    field = b.and_(b.lshr(scale, b.const("i32", 23)), b.const("i32", 0xFF))
    return b.sub(field, b.const("i32", 127)), b.icmp("eq", field, b.const("i32", 0xFF))


def _times(b: Builder, x: Value, scale: Value) -> Value:
    """x (f32) times the scale, rounded once."""
    exponent, is_nan = _exponent(b, scale)
    return b.select(is_nan, b.const("f32", float("nan")), b.ldexp(x, exponent))


def divided(b: Builder, x: Value, scale: Value) -> Value:
    """x (f32) divided by the scale. A finite x whose quotient overflows gives the largest f32, not an infinity."""
    exponent, is_nan = _exponent(b, scale)
    quotient = b.ldexp(x, b.sub(b.const("i32", 0), exponent))
    infinity, largest = b.const("i32", 0x7F800000), b.const("i32", 0x7F7FFFFF)
    bits = b.bitcast(quotient, "i32")
    was_finite = b.icmp("ne", _magnitude(b, b.bitcast(x, "i32")), infinity)
    overflowed = b.and_(b.icmp("eq", _magnitude(b, bits), infinity), was_finite)
    kept = b.select(overflowed, b.or_(b.and_(bits, b.const("i32", 1 << 31)), largest), bits)
    return b.select(is_nan, b.const("f32", float("nan")), b.bitcast(kept, "f32"))


def _magnitude(b: Builder, bits: Value) -> Value:
    return b.and_(bits, b.const("i32", 0x7FFFFFFF))


def halves(b: Builder, dword: Value, type_: str) -> list[Value]:
    """The two 16-bit floats of a dword as f32."""
    parts = (b.trunc(dword, "i16"), b.trunc(b.lshr(dword, b.const("i32", 16)), "i16"))
    return [x if type_ == "bf16" else b.fpext(x, "f32") for x in (to_float(b, p, type_) for p in parts)]


def _half(b: Builder, x: Value, type_: str) -> Value:
    """An f32 as a 16-bit float, rounded: an i16."""
    return from_float(b, b.fptrunc(x, "f16") if type_ == "f16" else x, type_)


def _selected(modifiers: Any, first: int, bits: int) -> int:
    """The number that some bits of op_sel make, the lowest one first."""
    chosen = modifiers.bits("op_sel", 4)[first : first + bits]
    return sum(bit << i for i, bit in enumerate(chosen))


# --- one element, or a pair, of 8 bits


@curried
def _one_wider(
    format_: NarrowFloat, wide: str, b: Builder, x: Value, scale: Value, old: Value, modifiers: Any
) -> Value:
    """op_sel names the byte, and for f16 the half of the register that is replaced."""
    number = _times(b, decode(b, field_of(b, (x,), _selected(modifiers, 0, 2), 8), format_), scale)
    if wide == "f32":
        return b.bitcast(number, "i32")
    half = b.zext(_half(b, number, wide), "i32")
    return insert_half(b, old, half, high=bool(_selected(modifiers, 2, 1)))


@curried
def _pair_wider(format_: NarrowFloat, wide: str, b: Builder, x: Value, scale: Value, modifiers: Any) -> Any:
    """op_sel names the half of the register that two bytes are in, or the byte that two elements of 4 bits are in."""
    places = 1 if format_.bits == 8 else 2
    first = 2 * _selected(modifiers, 0, places)
    codes = (field_of(b, (x,), first + i, format_.bits) for i in range(2))
    low, high = (_times(b, decode(b, code, format_), scale) for code in codes)
    if wide == "f32":
        return b.bitcast(low, "i32"), b.bitcast(high, "i32")
    return pack_halves(b, _half(b, low, wide), _half(b, high, wide))


def _insert_pair(
    b: Builder, old: Value, codes: Sequence[Value], format_: NarrowFloat, modifiers: Any, at: int
) -> Value:
    """`old`, in which a pair of codes replaces the half, or the byte, that op_sel names."""
    pair = b.or_(codes[0], b.shl(codes[1], b.const("i32", format_.bits)))
    if format_.bits == 8:
        return insert_half(b, old, pair, high=bool(_selected(modifiers, at, 1)))
    return insert_byte(b, old, pair, modifiers)


def _pair_narrower(format_: NarrowFloat, wide: str) -> Any:
    def of_two(b: Builder, x: Value, y: Value, scale: Value, old: Value, modifiers: Any) -> Value:
        codes = [encode(b, divided(b, v, scale), format_) for v in (x, y)]
        return _insert_pair(b, old, codes, format_, modifiers, 3)

    def of_one(b: Builder, x: Value, scale: Value, old: Value, modifiers: Any) -> Value:
        codes = [encode(b, divided(b, v, scale), format_) for v in halves(b, x, wide)]
        return _insert_pair(b, old, codes, format_, modifiers, 2)

    return of_two if wide == "f32" else of_one


@curried
def _one_stochastic(
    format_: NarrowFloat, wide: str, b: Builder, x: Value, random: Value, scale: Value, old: Value, modifiers: Any
) -> Value:
    number = b.bitcast(x, "f32") if wide == "f32" else halves(b, x, wide)[0]
    return insert_byte(b, old, encode_stochastically(b, divided(b, number, scale), random, format_), modifiers)


def _define_pairs() -> None:
    for name, format_ in (*OCP.items(), ("fp4", MICROSCALING["fp4"])):
        for wide in _WIDE:
            result = "i32x2" if wide == "f32" else "i32"
            define(
                f"v_cvt_scalef32_pk_{wide}_{name}",
                f"{result} = i32 i32 modifiers",
                _pair_wider(format_, wide),
                of="cdna4",
            )
            sources = "f32 f32 i32" if wide == "f32" else "i32 i32"
            define(
                f"v_cvt_scalef32_pk_{name}_{wide}",
                f"i32 = {sources} dst modifiers",
                _pair_narrower(format_, wide),
                of="cdna4",
            )


def _define_single() -> None:
    for name, format_ in OCP.items():
        for wide in _WIDE[:2]:
            evaluate = _one_wider(format_, wide)
            define(f"v_cvt_scalef32_{wide}_{name}", "i32 = i32 i32 dst modifiers", evaluate, of="cdna4")
        for wide in _WIDE:
            evaluate = _one_stochastic(format_, wide)
            define(f"v_cvt_scalef32_sr_{name}_{wide}", "i32 = i32 i32 i32 dst modifiers", evaluate, of="cdna4")


# --- blocks of 32 elements of 6 bits


def _block_wider(format_: NarrowFloat, wide: str, count: int = _COUNT) -> Any:
    def evaluate(b: Builder, block: tuple[Value, ...], scale: Value) -> tuple[Value, ...]:
        codes = [field_of(b, block, i, format_.bits) for i in range(count)]
        numbers = [_times(b, number, scale) for number in decode_all(b, codes, format_)]
        if wide == "f32":
            return tuple(b.bitcast(x, "i32") for x in numbers)
        rounded = [_half(b, x, wide) for x in numbers]
        return tuple(pack_halves(b, *rounded[i : i + 2]) for i in range(0, count, 2))

    return evaluate


def _block_narrower(format_: NarrowFloat, wide: str) -> Any:
    def of_halves(b: Builder, block: tuple[Value, ...], scale: Value) -> tuple[Value, ...]:
        numbers = [x for dword in block for x in halves(b, dword, wide)]
        return packed_fields(b, encode_all(b, [divided(b, x, scale) for x in numbers], format_), format_.bits)

    def of_two(b: Builder, x: tuple[Value, ...], y: tuple[Value, ...], scale: Value) -> tuple[Value, ...]:
        """The elements of the two operands alternate."""
        numbers = [b.bitcast(v, "f32") for pair in zip(x, y, strict=True) for v in pair]
        return packed_fields(b, encode_all(b, [divided(b, v, scale) for v in numbers], format_), format_.bits)

    return of_two if wide == "f32" else of_halves


def _define_blocks() -> None:
    for name in _SIXES:
        format_ = MICROSCALING[name]
        for wide in _WIDE:
            registers = _COUNT if wide == "f32" else _COUNT // 2
            words = f"i32x{registers} = i32x6 i32"
            define(f"v_cvt_scalef32_pk32_{wide}_{name}", words, _block_wider(format_, wide), of="cdna4")
            narrower = _block_narrower(format_, wide)
            if wide == "f32":
                define(f"v_cvt_scalef32_2xpk16_{name}_f32", "i32x6 = i32x16 i32x16 i32", narrower, of="cdna4")
            else:
                define(f"v_cvt_scalef32_pk32_{name}_{wide}", "i32x6 = i32x16 i32", narrower, of="cdna4")


# --- 8 elements, or 16 of 6 bits, of gfx1250


@curried
def _wider_by_a_byte(
    format_: NarrowFloat, wide: str, count: int, b: Builder, block: tuple[Value, ...], scales: Value, modifiers: Any
) -> tuple[Value, ...]:
    """The scale is the byte of a register that scale_sel names, E8M0. The meaning of a scale_sel above 3 is unknown."""
    convert = _block_wider(format_, wide, count)
    place = modifiers.integer("scale_sel")
    if place > 3:
        raise NotImplementedError(f"scale_sel:{place}")
    byte = b.and_(b.lshr(scales, b.const("i32", 8 * place)), b.const("i32", 0xFF))
    return convert(b, block, b.shl(byte, b.const("i32", 23)))


@curried
def _narrower(format_: NarrowFloat, wide: str, b: Builder, block: tuple[Value, ...], scale: Value) -> tuple[Value, ...]:
    numbers = [b.bitcast(v, "f32") for v in block] if wide == "f32" else [x for d in block for x in halves(b, d, wide)]
    return packed_fields(b, encode_all(b, [divided(b, x, scale) for x in numbers], format_), format_.bits)


def _define_small_blocks() -> None:
    for name, format_ in MICROSCALING.items():
        count = 16 if name in _SIXES else 8
        narrow = f"i32x{count * format_.bits // 32}"
        for wide in _WIDE:
            registers = f"i32x{count if wide == 'f32' else count // 2}"
            wider = _wider_by_a_byte(format_, wide, count)
            define(f"v_cvt_scale_pk{count}_{wide}_{name}", f"{registers} = {narrow} i32 modifiers", wider, of="cdna5")
            narrower = _narrower(format_, wide)
            define(f"v_cvt_scalef32_pk{count}_{name}_{wide}", f"{narrow} = {registers} i32", narrower, of="cdna5")


_define_single()
_define_pairs()
_define_blocks()
_define_small_blocks()
