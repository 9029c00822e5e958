"""Arithmetic on bf16, of gfx1250: computed in f64 and rounded once.

A bf16 is its 16 bits. Results are rounded to nearest even, and denormals are kept, whatever the mode: no document says
that MODE counts for bf16.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from flydsl.simulator.isa.atomics import round_to_bf16
from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.common import curried, insert_half
from flydsl.simulator.isa.extremes import extreme_number
from flydsl.simulator.isa.table import define
from flydsl.simulator.isa.transcendental import cosine, plain, sine, tanh_of_f64

Of1 = Callable[[Builder, Value], Value]


_MANTISSA, _LOST = 7, 45
"""The bits of a bf16's mantissa, and those by which f64 has more."""
_REBIAS = 1023 - 127
_SMALLEST_NORMAL, _SMALLEST = 2.0**-126, 2.0**-133
_MAGIC = 1.5 * 2.0**52
"""Added to a number below 2**51, it leaves that number, rounded to the nearest whole one, in the lowest bits."""


def _wide(b: Builder, x: Value) -> Value:
    """A bf16 as f64, exactly."""
    code = b.zext(x, "i64")
    magnitude = b.and_(code, b.const("i64", 0x7FFF))
    sign = b.shl(b.and_(code, b.const("i64", 0x8000)), b.const("i64", 48))
    normal = b.add(b.shl(magnitude, b.const("i64", _LOST)), b.const("i64", _REBIAS << 52))
    special = b.or_(b.shl(magnitude, b.const("i64", _LOST)), b.const("i64", 0x7FF << 52))
    denormal = b.float_op("fmul", b.uitofp(b.trunc(magnitude, "i32"), "f64"), b.const("f64", _SMALLEST))
    bits = b.select(b.icmp("uge", magnitude, b.const("i64", 0x7F80)), special, normal)
    is_denormal = b.icmp("ult", magnitude, b.const("i64", 1 << _MANTISSA))
    return b.bitcast(b.or_(b.select(is_denormal, b.bitcast(denormal, "i64"), bits), sign), "f64")


def _narrow(b: Builder, x: Value) -> Value:
    """An f64 as the nearest bf16, ties to even; a NaN keeps its upper bits and becomes quiet."""
    bits = b.bitcast(x, "i64")
    magnitude = b.and_(bits, b.const("i64", (1 << 63) - 1))
    lowest_kept = b.and_(b.lshr(magnitude, b.const("i64", _LOST)), b.const("i64", 1))
    half = b.const("i64", (1 << (_LOST - 1)) - 1)
    kept = b.lshr(b.add(magnitude, b.add(half, lowest_kept)), b.const("i64", _LOST))
    normal = b.sub(kept, b.const("i64", _REBIAS << _MANTISSA))
    units = b.float_op("fmul", b.bitcast(magnitude, "f64"), b.const("f64", 1 / _SMALLEST))
    units = b.bitcast(b.float_op("fadd", units, b.const("f64", _MAGIC)), "i64")
    is_small = b.fcmp("olt", b.bitcast(magnitude, "f64"), b.const("f64", _SMALLEST_NORMAL))
    code = b.select(is_small, b.and_(units, b.const("i64", 0xFFFF)), normal)
    infinity = b.const("i64", 0x7F80)
    code = b.select(b.icmp("ugt", code, infinity), infinity, code)
    payload = b.and_(b.lshr(magnitude, b.const("i64", _LOST)), b.const("i64", 0x7F))
    code = b.select(b.fcmp("uno", x, x), b.or_(payload, b.const("i64", 0x7FC0)), code)
    sign = b.and_(b.lshr(bits, b.const("i64", 48)), b.const("i64", 0x8000))
    return b.trunc(b.or_(code, sign), "i16")


def _through_f64(function: Of1) -> Of1:
    return lambda b, x: _narrow(b, function(b, _wide(b, x)))


for _name in ("rcp", "rsq", "sqrt"):
    define(f"v_{_name}_bf16", "i16~ = bfloat", _through_f64(plain(_name, "f64")), of="cdna5")
for _name in ("exp2", "log2"):
    define(f"v_{_name[:3]}_bf16", "i16~ = bfloat", _through_f64(plain(_name, "f64")), of="cdna5")
for _name, _function in (("sin", sine("f64")), ("cos", cosine("f64")), ("tanh", tanh_of_f64)):
    define(f"v_{_name}_bf16", "i16~ = bfloat", _through_f64(_function), of="cdna5")


# --- two at once


@curried
def _packed(function: Callable[..., Value], b: Builder, *operands: Value) -> Value:
    wide = [_wide(b, x) for x in operands]
    return _narrow(b, b.settle_nan(function(b, *wide), *wide))


def _product(b: Builder, x: Value, y: Value) -> Value:
    """Exact in f64."""
    return b.float_op("fmul", x, y)


def _fma(b: Builder, x: Value, y: Value, z: Value) -> Value:
    return _sum_to_odd(b, _product(b, x, y), z)


def _sum_to_odd(b: Builder, x: Value, y: Value) -> Value:
    """x + y in f64, rounded to odd so that it may be rounded again: the error of the sum, which is exact, says where
    the sum lies."""
    total = b.float_op("fadd", x, y)
    part = b.float_op("fsub", total, x)
    error = b.float_op("fadd", b.float_op("fsub", x, b.float_op("fsub", total, part)), b.float_op("fsub", y, part))
    bits, one = b.bitcast(total, "i64"), b.const("i64", 1)
    is_even = b.icmp("eq", b.and_(bits, one), b.const("i64", 0))
    positive = b.icmp("sgt", bits, b.const("i64", -1))
    up = b.fcmp("ogt", error, b.const("f64", 0.0))
    away = b.icmp("eq", b.zext(up, "i32"), b.zext(positive, "i32"))
    moved = b.select(away, b.add(bits, one), b.sub(bits, one))
    inexact = b.and_(b.fcmp("one", error, b.const("f64", 0.0)), b.fcmp("olt", b.fabs(total), b.const("f64", math.inf)))
    return b.bitcast(b.select(b.and_(inexact, is_even), moved, bits), "f64")


_of_two = "i16 = bf16 bf16"
define("v_pk_add_bf16", _of_two, _packed(_sum_to_odd), packed=True, of="cdna5")
define("v_pk_mul_bf16", _of_two, _packed(_product), packed=True, of="cdna5")
define("v_pk_fma_bf16", "i16 = bf16 bf16 bf16", _packed(_fma), packed=True, of="cdna5")
for _name, _maximum in (("min", False), ("max", True)):
    _evaluate = _packed(extreme_number("f64", maximum=_maximum))
    define(f"v_pk_{_name}_num_bf16", _of_two, _evaluate, packed=True, of="cdna5")


# --- mixed with f32

define("v_fma_mix_f32_bf16", "f32 = bmix bmix bmix", lambda b, x, y, z: b.fma(x, y, z), of="cdna5")


@curried
def _mix_half(b: Builder, x: Value, y: Value, z: Value, old: Value, *, high: bool) -> Value:
    """Rounded to f32 by the fma, then to bf16; the other half of the register is kept."""
    half = b.zext(round_to_bf16(b, b.fma(x, y, z)), "i32")
    return insert_half(b, old, half, high=high)


define("v_fma_mixlo_bf16", "i32 = bmix bmix bmix dst", _mix_half(high=False), of="cdna5")
define("v_fma_mixhi_bf16", "i32 = bmix bmix bmix dst", _mix_half(high=True), of="cdna5")
