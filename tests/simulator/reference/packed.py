"""VOP3P: two computations at once, mixed precision, dot products."""

from __future__ import annotations

from collections.abc import Callable

from tests.simulator.reference import ieee, vector_float, vector_integer
from tests.simulator.reference.case import M16, M32, Case, case, clamp, field, integer, s32, signed
from tests.simulator.reference.ieee import F16, F32, Mode

CASES: dict[str, Case] = {}
SATURATING: dict[str, Case] = {}


def halves(scalar: Case) -> Callable[..., int]:
    """The scalar computation on low and high halves."""

    def both(mode: Mode, *operands: int) -> int:
        low = scalar.function(mode, *(v & M16 for v in operands))
        high = scalar.function(mode, *(v >> 16 for v in operands))
        return (low & M16) | (high & M16) << 16

    return both


def dwords(scalar: Case) -> Callable[..., int]:
    def both(mode: Mode, *operands: int) -> int:
        low = scalar.function(mode, *(v & M32 for v in operands))
        high = scalar.function(mode, *(v >> 32 for v in operands))
        return (low & M32) | (high & M32) << 32

    return both


for _name in ("add", "mul", "min", "max", "fma"):
    _scalar = vector_float.CASES[f"v_{_name}_f16"]
    CASES[f"v_pk_{_name}_f16"] = case(
        "f16x2 = " + "f16x2 " * len(_scalar.operands), halves(_scalar), exact_nan=_scalar.exact_nan
    )
CASES["v_pk_fmac_f16"] = case("f16x2 = f16x2 f16x2 old", halves(vector_float.CASES["v_fma_f16"]))
for _name in ("add", "mul", "fma"):
    _scalar = vector_float.CASES[f"v_{_name}_f32"]
    CASES[f"v_pk_{_name}_f32"] = case("f32x2 = " + "f32x2 " * len(_scalar.operands), dwords(_scalar))
for _type in ("u16", "i16"):
    for _name in ("add", "sub", "min", "max", "mad"):
        _scalar = vector_integer.CASES[f"v_{_name}_{_type}"]
        CASES[f"v_pk_{_name}_{_type}"] = case("i32 = " + "i32 " * len(_scalar.operands), halves(_scalar))
        if _name in ("add", "sub", "mad"):
            _scalar = vector_integer.SATURATING[f"v_{_name}_{_type}"]
            SATURATING[f"v_pk_{_name}_{_type}"] = case("i32 = " + "i32 " * len(_scalar.operands), halves(_scalar))
for _name in ("mul_lo_u16", "lshlrev_b16", "lshrrev_b16", "ashrrev_i16"):
    CASES[f"v_pk_{_name}"] = case("i32 = i32 i32", halves(vector_integer.CASES[f"v_{_name}"]))
CASES["v_pk_mov_b32"] = integer("i64 = i64 i64", lambda a, b: a & M32 | (b & M32) << 32)

# --- mixed precision; here without f16 operands


def fused_half(mode: Mode, x: int, y: int, z: int) -> int:
    return ieee.convert(mode, F32, F16, ieee.fma(mode, F32, x, y, z))


for _family in ("fma",):
    CASES[f"v_{_family}_mix_f32"] = case("f32 = f32 f32 f32", lambda mode, x, y, z: ieee.fma(mode, F32, x, y, z))
    CASES[f"v_{_family}_mixlo_f16"] = case("f16~ = f32 f32 f32", fused_half)
    CASES[f"v_{_family}_mixhi_f16"] = case(
        "f16hi = f32 f32 f32 old", lambda mode, x, y, z, old: fused_half(mode, x, y, z) << 16 | old & M16
    )

# --- dot products


def integer_dot(a: int, b: int, bits: int, *, is_signed: bool) -> int:
    def part(x: int, i: int) -> int:
        return signed(field(x, i, bits), bits) if is_signed else field(x, i, bits)

    return sum(part(a, i) * part(b, i) for i in range(32 // bits))


for _count, _bits in ((2, 16), (4, 8), (8, 4)):
    for _letter in "iu":
        _is_signed = _letter == "i"
        _name = f"v_dot{_count}_{_letter}32_{_letter}{_bits}"
        CASES[_name] = integer(
            "i32 = i32 i32 i32", lambda a, b, c, w=_bits, s=_is_signed: integer_dot(a, b, w, is_signed=s) + c
        )
        SATURATING[_name] = integer(
            "i32 = i32 i32 i32",
            lambda a, b, c, w=_bits, s=_is_signed: (
                clamp(integer_dot(a, b, w, is_signed=s) + s32(c), -(1 << 31), (1 << 31) - 1)
                if s
                else min(integer_dot(a, b, w, is_signed=s) + c, M32)
            ),
        )
    CASES[f"v_dot{_count}c_i32_i{_bits}"] = integer(
        "i32 = i32 i32 old", lambda a, b, c, w=_bits: integer_dot(a, b, w, is_signed=True) + c
    )


def float_dot(mode: Mode, a: int, b: int, c: int) -> int:
    """One fused step after the other, low half first, rounded to nearest, denormals flushed whatever the mode."""
    flushing = Mode(0x300)
    total = c
    for i in range(2):
        x, y = (ieee.convert(Mode(), F16, F32, ieee.flush(F16, field(v, i, 16))) for v in (a, b))
        total = ieee.fma(flushing, F32, x, y, total)
    return total


CASES["v_dot2_f32_f16"] = case("f32 = f16x2 f16x2 f32", float_dot)
CASES["v_dot2c_f32_f16"] = case("f32 = f16x2 f16x2 old", float_dot)
