"""VALU instructions of RDNA on the halves of registers (true16), and what it does otherwise with results of 16 bits.

On CDNA 3 most results of 16 bits clear the upper half of their register. On RDNA all of them leave the other half as it
is: every row with such a result has a row of its own for RDNA.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.common import identity
from flydsl.simulator.isa.convert import pack_halves
from flydsl.simulator.isa.spellings import is_on
from flydsl.simulator.isa.table import ENTERED, define, enter, look_up
from flydsl.simulator.isa.vector_float import mul_legacy

define("v_mov_b16", "f16~ = f16", identity, of="rdna")
define("v_swap_b16", "i16~ i16~ = dst dst1", lambda b, x, y: (y, x), of="rdna")
define("v_cndmask_b16", "f16~ = f16 f16 mask", lambda b, x, y, mask: b.select(mask, y, x), of="rdna")
define("v_not_b16", "i16~ = i16", lambda b, x: b.not_(x), of="rdna")
define("v_and_b16", "i16~ = i16 i16", lambda b, x, y: b.and_(x, y), of="rdna")
define("v_or_b16", "i16~ = i16 i16", lambda b, x, y: b.or_(x, y), of="rdna")
define("v_xor_b16", "i16~ = i16 i16", lambda b, x, y: b.xor(x, y), of="rdna")
define("v_cvt_i32_i16", "i32 = i16", lambda b, x: b.sext(x, "i32"), of="rdna")
define("v_cvt_u32_u16", "i32 = i16", lambda b, x: b.zext(x, "i32"), of="rdna")
define("v_fmac_f16", "f16~ = f16 f16 dst", lambda b, x, y, z: b.fma(x, y, z), of="rdna")
define("v_fmamk_f16", "f16~ = f16 f16 f16", lambda b, x, k, y: b.fma(x, k, y), of="rdna")
define("v_fmaak_f16", "f16~ = f16 f16 f16", lambda b, x, y, k: b.fma(x, y, k), of="rdna")


def _saturated_pair(*, signed: bool) -> Any:
    """Two f32 towards zero, saturated to 16 bits."""

    def half(b: Builder, x: Value) -> Value:
        low, high = (-32768.0, 32767.0) if signed else (0.0, 65535.0)
        x = b.select(b.fcmp("olt", x, b.const("f32", low)), b.const("f32", low), x)
        x = b.select(b.fcmp("ogt", x, b.const("f32", high)), b.const("f32", high), x)
        return b.trunc(b.fptosi(x, "i32"), "i16")

    return lambda b, x, y: pack_halves(b, half(b, x), half(b, y))


define("v_cvt_pk_i16_f32", "i32 = f32 f32", _saturated_pair(signed=True), of="rdna")
define("v_cvt_pk_u16_f32", "i32 = f32 f32", _saturated_pair(signed=False), of="rdna")


def _fma_legacy(b: Builder, x: Value, y: Value, z: Value) -> Value:
    """DirectX 9: zero times anything is zero."""
    zero = b.const("f32", 0.0)
    either = b.or_(b.fcmp("oeq", x, zero), b.fcmp("oeq", y, zero))
    return b.select(either, b.fadd(zero, z), b.fma(x, y, z))


_LARGEST = 3.4028234663852886e38


def _multiply_for_lighting(b: Builder, x: Value, y: Value, z: Value) -> Value:
    """x * y where y is a number above the smallest one and z is positive; else the smallest one."""
    smallest = b.const("f32", -_LARGEST)
    is_positive = b.fcmp("ogt", z, b.const("f32", 0.0))
    return b.select(b.and_(b.fcmp("ogt", y, smallest), is_positive), mul_legacy(b, x, y), smallest)


define("v_fma_dx9_zero_f32", "f32 = f32 f32 f32", _fma_legacy, of="rdna")
define("v_fmac_dx9_zero_f32", "f32 = f32 f32 dst", _fma_legacy, of="rdna3")
define("v_mullit_f32", "f32 = f32 f32 f32", _multiply_for_lighting, of="rdna")


def _keep_other_halves() -> None:
    """Enter the rows for RDNA of the instructions that both have, with a result of 16 bits."""
    for semantics in list(ENTERED.values()):
        if semantics.packed or semantics.instruction_set or not semantics.mnemonic.startswith("v_"):
            continue
        results = tuple(f"{word}~" if word in ("f16", "i16") else word for word in semantics.results)
        if results == semantics.results:
            continue
        for sets in (("rdna",), ("rdna3", "rdna")):
            if look_up(semantics.mnemonic, sets) is semantics and is_on(semantics.mnemonic, sets):
                enter(replace(semantics, results=results, instruction_set=sets[0]))


_keep_other_halves()
