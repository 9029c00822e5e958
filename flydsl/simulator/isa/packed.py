"""VOP3P: two computations at once (on the halves of a register or on two registers), mixed precision, dot products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flydsl.simulator.isa.atomics import round_to_bf16, to_float
from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.common import curried, flush_denormals, insert_half, saturated, shift
from flydsl.simulator.isa.convert import byte_of
from flydsl.simulator.isa.extremes import extreme, extreme_number
from flydsl.simulator.isa.narrow_floats import OCP, NarrowFloat, decode
from flydsl.simulator.isa.table import ENTERED, define
from flydsl.simulator.isa.vector_integer import clamped, sum_and_extreme

_SMALLEST_NORMAL = {"f16": 2.0**-14, "f32": 2.0**-126}

# --- the elementwise ones are what the scalar ones of the same name are

for _type in ("f16", "f32"):
    for _name in ("add", "mul", "fma", "min", "max"):
        _scalar = ENTERED[f"v_{_name}_{_type}"]
        if not (_type == "f32" and _name in ("min", "max")):
            define(f"v_pk_{_name}_{_type}", f"{_type} = {' '.join(_scalar.sources)}", _scalar.evaluate, packed=True)

for _suffix, _signed in (("u16", False), ("i16", True)):
    for _name in ("add", "sub"):
        define(f"v_pk_{_name}_{_suffix}", "i16 = i16 i16 modifiers", clamped(_name, "i16", signed=_signed), packed=True)
    for _name in ("min", "max", "mad"):
        _scalar = ENTERED[f"v_{_name}_{_suffix}"]
        define(f"v_pk_{_name}_{_suffix}", f"i16 = {' '.join(_scalar.sources)}", _scalar.evaluate, packed=True)
define("v_pk_fmac_f16", "f16 = f16 f16 dst", lambda b, x, y, z: b.fma(x, y, z), packed=True)
define("v_pk_mul_lo_u16", "i16 = i16 i16", lambda b, x, y: b.mul(x, y), packed=True)
for _name, _operation in (("lshlrev_b16", "shl"), ("lshrrev_b16", "lshr"), ("ashrrev_i16", "ashr")):
    define(f"v_pk_{_name}", "i16 = i16 i16", shift(_operation, "i16", reversed_=True), packed=True)


def _packed_move(b: Builder, x: Value, y: Value, modifiers: Any) -> tuple[Value, Value]:
    """op_sel picks a register of the first operand for the low result and of the second for the high one."""
    first, second = modifiers.bits("op_sel", 2)[:2]  # a third bit, which LLVM accepts, is of no operand
    return b.split(x)[first], b.split(y)[second]


define("v_pk_mov_b32", "i32x2 = i64 i64 modifiers", _packed_move)

# --- mixed precision

define("v_fma_mix_f32", "f32 = mix mix mix", lambda b, x, y, z: b.fma(x, y, z))


@curried
def _mix_half(b: Builder, x: Value, y: Value, z: Value, old: Value, modifiers: Any, *, high: bool) -> Value:
    """Rounded to f32 by the fma, then to f16; the other half of the register is kept."""
    result = b.fma(x, y, z)
    if modifiers.flag("clamp"):
        zero, one = b.const("f32", 0.0), b.const("f32", 1.0)
        at_rest = zero if b.dx10_clamp() else b.select(b.fcmp("uno", result, result), result, zero)
        result = b.select(b.fcmp("ogt", result, zero), result, at_rest)
        result = b.select(b.fcmp("ogt", result, one), one, result)
    half = b.zext(b.bitcast(b.fptrunc(result, "f16"), "i16"), "i32")
    return insert_half(b, old, half, high=high)


define("v_fma_mixlo_f16", "i32 = mix mix mix dst modifiers", _mix_half(high=False))
define("v_fma_mixhi_f16", "i32 = mix mix mix dst modifiers", _mix_half(high=True))

# --- dot products


def _fields(b: Builder, x: Value, bits: int, *, signed: bool) -> list[Value]:
    """The fields of a dword, lowest first, extended to i32."""
    result = []
    for i in range(32 // bits):
        up = b.shl(x, b.const("i32", 32 - bits * (i + 1)))
        down = b.const("i32", 32 - bits)
        result.append(b.ashr(up, down) if signed else b.lshr(up, down))
    return result


@curried
def _integer_dot(bits: int, b: Builder, x: Value, y: Value, start: Value, modifiers: Any, *, signed: bool) -> Value:
    """The clamp modifier saturates the exact sum."""
    extend = b.sext if signed else b.zext
    total = extend(start, "i64")
    for p, q in zip(_fields(b, x, bits, signed=signed), _fields(b, y, bits, signed=signed), strict=True):
        total = b.add(total, b.mul(extend(p, "i64"), extend(q, "i64")))
    return saturated(b, total, "i32", signed=signed) if modifiers.flag("clamp") else b.trunc(total, "i32")


for _letter, _signed in (("i", True), ("u", False)):
    for _count in (2, 4, 8):
        _bits = 32 // _count
        _name = f"{_letter}32_{_letter}{_bits}"
        define(f"v_dot{_count}_{_name}", "i32 = i32 i32 i32 modifiers", _integer_dot(_bits, signed=_signed))
        if _signed:
            define(f"v_dot{_count}c_{_name}", "i32 = i32 i32 dst modifiers", _integer_dot(_bits, signed=True))


def _float_dot(b: Builder, x: tuple[Value, Value], y: tuple[Value, Value], total: Value) -> Value:
    """f16 products added to an f32 one after the other, low half first. Whatever the mode, denormals are flushed and
    sums rounded to nearest (ISA, "Denormalized and Rounding Modes"); the products are exact."""
    p, q = ([b.fpext(v, "f32") for v in pair] for pair in (x, y))
    return _accumulated(b, p, q, total, smallest=_SMALLEST_NORMAL["f16"])


def _accumulated(b: Builder, x: Sequence[Value], y: Sequence[Value], total: Value, *, smallest: float) -> Value:
    """The sum, without denormals; smallest: the smallest normal number of the factors."""
    normal = _SMALLEST_NORMAL["f32"]
    total = flush_denormals(b, total, normal)
    for p, q in zip(x, y, strict=True):
        p, q = (flush_denormals(b, v, smallest) for v in (p, q))
        rounded = b.settle_nan(b.float_op("fadd", total, b.float_op("fmul", p, q)), p, q, total)
        total = flush_denormals(b, rounded, normal)
    return total


define("v_dot2_f32_f16", "f32 = f16x2 f16x2 f32", _float_dot)
define("v_dot2c_f32_f16", "f32 = f16x2 f16x2 dst", _float_dot)


def _bfloat_dot(b: Builder, x: tuple[Value, Value], y: tuple[Value, Value], total: Value) -> Value:
    """As of f16."""
    p, q = ([to_float(b, half, "bf16") for half in pair] for pair in (x, y))
    return _accumulated(b, p, q, total, smallest=_SMALLEST_NORMAL["f32"])


define("v_dot2_f32_bf16", "f32 = bf16x2 bf16x2 f32", _bfloat_dot, of="cdna4 rdna")
define("v_dot2c_f32_bf16", "f32 = bf16x2 bf16x2 dst", _bfloat_dot, of="cdna4")


# --- dot products of RDNA: products and their sum in f32, rounded to 16 bits at the end


def _half_dot(b: Builder, x: tuple[Value, Value], y: tuple[Value, Value], total: Value) -> Value:
    return b.fptrunc(_float_dot(b, x, y, b.fpext(total, "f32")), "f16")


def _bfloat_half_dot(b: Builder, x: tuple[Value, Value], y: tuple[Value, Value], total: Value) -> Value:
    return round_to_bf16(b, _bfloat_dot(b, x, y, to_float(b, total, "bf16")))


define("v_dot2_f16_f16", "f16~ = f16x2 f16x2 f16", _half_dot, of="rdna")
define("v_dot2_bf16_bf16", "i16~ = bf16x2 bf16x2 i16", _bfloat_half_dot, of="rdna")


@curried
def _mixed_dot(
    bits: int, b: Builder, x: tuple[Value], y: tuple[Value], start: tuple[Value], modifiers: Any
) -> tuple[Value, ...]:
    """neg_lo tells which of the factors are signed; clamp saturates the exact sum to a signed number."""
    signed = [bool(bit) for bit in modifiers.bits("neg_lo", 3)]
    factors = [_fields(b, v, bits, signed=s) for (v,), s in zip((x, y), signed, strict=False)]
    total = b.sext(start[0], "i64")
    for p, q in zip(*factors, strict=True):
        product = b.mul(*((b.sext if s else b.zext)(v, "i64") for v, s in zip((p, q), signed, strict=False)))
        total = b.add(total, product)
    return (saturated(b, total, "i32", signed=True) if modifiers.flag("clamp") else b.trunc(total, "i32"),)


define("v_dot4_i32_iu8", "i32x1 = i32x1 i32x1 i32x1 modifiers", _mixed_dot(8), of="rdna")
define("v_dot8_i32_iu4", "i32x1 = i32x1 i32x1 i32x1 modifiers", _mixed_dot(4), of="rdna")


@curried
def _float8_dot(x_format: NarrowFloat, y_format: NarrowFloat, b: Builder, x: Value, y: Value, total: Value) -> Value:
    p, q = ([decode(b, byte_of(b, v, i), f) for i in range(4)] for v, f in ((x, x_format), (y, y_format)))
    return _accumulated(b, p, q, total, smallest=_SMALLEST_NORMAL["f32"])


for _x in OCP:
    for _y in OCP:
        define(f"v_dot4_f32_{_x}_{_y}", "f32 = i32 i32 f32", _float8_dot(OCP[_x], OCP[_y]), of="rdna4")


# --- additions of gfx1250


def _folded(of_two: Any) -> Any:
    """The same of three."""
    return lambda b, x, y, z: of_two(b, of_two(b, x, y), z)


for _letter, _signed in (("i", True), ("u", False)):
    for _name in ("min", "max"):
        _of_three = _folded(ENTERED[f"v_{_name}_{_letter}16"].evaluate)
        define(f"v_pk_{_name}3_{_letter}16", "i16 = i16 i16 i16", _of_three, packed=True, of="cdna5")
        _evaluate = sum_and_extreme(_name, "i16", signed=_signed)
        define(f"v_pk_add_{_name}_{_letter}16", "i16 = i16 i16 i16", _evaluate, packed=True, of="cdna5")
for _name, _maximum in (("min", False), ("max", True)):
    _number, _ieee = extreme_number("f16", maximum=_maximum), extreme("f16", maximum=_maximum)
    define(f"v_pk_{_name}3_num_f16", "f16 = f16 f16 f16", _folded(_number), packed=True, of="cdna5")
    define(f"v_pk_{_name}imum3_f16", "f16 = f16 f16 f16", _folded(_ieee), packed=True, of="cdna5")
