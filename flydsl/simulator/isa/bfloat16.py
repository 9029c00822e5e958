"""Arithmetic on bf16, of gfx1250: computed in f64 and rounded once, sine, cosine and tangent in f32.

A bf16 is its 16 bits. Results are rounded to nearest even, and denormals are kept, whatever the mode: no document says
that MODE counts for bf16.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from flydsl.simulator.isa.atomics import round_to_bf16, to_float
from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.common import insert_half
from flydsl.simulator.isa.extremes import extreme_number
from flydsl.simulator.isa.table import TABLE, define
from flydsl.simulator.isa.transcendental import plain, tanh

Of1 = Callable[[Builder, Value], Value]


def _wide(b: Builder, x: Value) -> Value:
    return to_float(b, x, "bf16")


def _rounded_to_odd(b: Builder, x: Value) -> Value:
    """An f64 as an f32 that rounds to the same bf16: towards zero, and the lowest bit set where bits were lost."""
    bits = b.bitcast(x, "i64")
    near = b.fptrunc(x, "f32")
    back = b.fpext(near, "f64")
    is_exact = b.icmp("eq", b.bitcast(back, "i64"), bits)
    too_large = b.fcmp("ogt", b.fabs(back), b.fabs(x))
    near_bits = b.bitcast(near, "i32")
    cut = b.select(too_large, b.sub(near_bits, b.const("i32", 1)), near_bits)
    odd = b.or_(cut, b.const("i32", 1))
    return b.select(b.or_(is_exact, b.fcmp("uno", x, x)), near, b.bitcast(odd, "f32"))


def _of_f32(function: Of1) -> Of1:
    return lambda b, x: round_to_bf16(b, function(b, _wide(b, x)))


def _of_f64(operation: str) -> Of1:
    """A function of the builder, computed in f64."""
    function = plain(operation, "f64")
    return lambda b, x: round_to_bf16(b, _rounded_to_odd(b, function(b, b.fpext(_wide(b, x), "f64"))))


for _name, _operation in (("rcp", "rcp"), ("rsq", "rsq"), ("sqrt", "sqrt")):
    define(f"v_{_name}_bf16", "i16~ = bfloat", _of_f64(_operation), of="cdna5")
for _name in ("exp2", "log2"):
    define(f"v_{_name[:3]}_bf16", "i16~ = bfloat", _of_f64(_name), of="cdna5")
for _name in ("sin", "cos"):
    define(f"v_{_name}_bf16", "i16~ = bfloat", _of_f32(TABLE[f"v_{_name}_f32"].evaluate), of="cdna5")
define("v_tanh_bf16", "i16~ = bfloat", _of_f32(tanh("f32")), of="cdna5")


# --- two at once


def _packed(function: Callable[..., Value]) -> Any:
    def evaluate(b: Builder, *operands: Value) -> Value:
        wide = [_wide(b, x) for x in operands]
        return round_to_bf16(b, b.settle_nan(function(b, *wide), *wide))

    return evaluate


def _product(b: Builder, x: Value, y: Value) -> Value:
    return _rounded_to_odd(b, b.float_op("fmul", b.fpext(x, "f64"), b.fpext(y, "f64")))


def _sum(b: Builder, x: Value, y: Value) -> Value:
    return _rounded_to_odd(b, _sum_to_odd(b, b.fpext(x, "f64"), b.fpext(y, "f64")))


def _fma(b: Builder, x: Value, y: Value, z: Value) -> Value:
    """The product is exact in f64, and the sum is rounded to odd there, and so once."""
    x, y, z = (b.fpext(v, "f64") for v in (x, y, z))
    return _rounded_to_odd(b, _sum_to_odd(b, b.float_op("fmul", x, y), z))


def _sum_to_odd(b: Builder, x: Value, y: Value) -> Value:
    """x + y in f64, rounded to odd: the error of the sum, which is exact in f64, says where the sum lies."""
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
define("v_pk_add_bf16", _of_two, _packed(_sum), packed=True, of="cdna5")
define("v_pk_mul_bf16", _of_two, _packed(_product), packed=True, of="cdna5")
define("v_pk_fma_bf16", "i16 = bf16 bf16 bf16", _packed(_fma), packed=True, of="cdna5")
for _name, _maximum in (("min", False), ("max", True)):
    _evaluate = _packed(extreme_number("f32", maximum=_maximum))
    define(f"v_pk_{_name}_num_bf16", _of_two, _evaluate, packed=True, of="cdna5")


# --- mixed with f32

define("v_fma_mix_f32_bf16", "f32 = bmix bmix bmix", lambda b, x, y, z: b.fma(x, y, z), of="cdna5")


def _mix_half(*, high: bool) -> Any:
    """Rounded to f32 by the fma, then to bf16; the other half of the register is kept."""

    def evaluate(b: Builder, x: Value, y: Value, z: Value, old: Value) -> Value:
        half = b.zext(round_to_bf16(b, b.fma(x, y, z)), "i32")
        return insert_half(b, old, half, high=high)

    return evaluate


define("v_fma_mixlo_bf16", "i32 = bmix bmix bmix dst", _mix_half(high=False), of="cdna5")
define("v_fma_mixhi_bf16", "i32 = bmix bmix bmix dst", _mix_half(high=True), of="cdna5")
