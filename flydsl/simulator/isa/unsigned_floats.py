"""UE5M3 of gfx1250, a float of 8 bits without a sign, which the conversions of fp8 mean with `clamp`.

What becomes one loses its sign. Beyond the largest number there is NaN alone, unless MODE.FP16_OVFL saturates. (LLVM
has the operands, `llvm.amdgcn.cvt.f32.fp8.e5m3` and others; ROCm/rocjitsu-test-corpus, semantics/gfx1250, the values.)
"""

from __future__ import annotations

from typing import Any

from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.convert import byte_of
from flydsl.simulator.isa.narrow_floats import UNSIGNED, decode, encode, encode_stochastically
from flydsl.simulator.isa.table import define

_LARGEST = 114688.0


def _magnitude(b: Builder, x: Value) -> Value:
    """The number without its sign; where overflow saturates, infinity does, too."""
    x = b.fabs(x)
    if not b.overflow_saturates():
        return x
    return b.select(b.fcmp("oeq", x, b.const("f32", float("inf"))), b.const("f32", _LARGEST), x)


def _pair(b: Builder, x: Value, y: Value, modifiers: Any) -> Value:
    low, high = (encode(b, _magnitude(b, v), UNSIGNED) for v in (x, y))
    return b.trunc(b.or_(low, b.shl(high, b.const("i32", 8))), "i16")


def _pair_of_halves(b: Builder, x: tuple[Value, ...], modifiers: Any) -> Value:
    low, high = (b.fpext(v, "f32") for v in x)
    return _pair(b, low, high, modifiers)


def _stochastic(b: Builder, x: Value, random: Value, old: Value, modifiers: Any) -> Value:
    at = b.const("i32", 8 * modifiers.integer("byte_sel"))
    code = encode_stochastically(b, _magnitude(b, x), random, UNSIGNED)
    return b.or_(b.and_(old, b.not_(b.shl(b.const("i32", 0xFF), at))), b.shl(code, at))


def _wider(b: Builder, x: Value, modifiers: Any) -> Value:
    return b.bitcast(decode(b, byte_of(b, x, modifiers.integer("byte_sel")), UNSIGNED), "i32")


define("v_cvt_f32_fp8/clamp", "i32 = i32 modifiers", _wider, of="cdna5")
define("v_cvt_pk_fp8_f32/clamp", "i16~ = f32 f32 modifiers", _pair, of="cdna5")
define("v_cvt_pk_fp8_f16/clamp", "i16~ = f16x2 modifiers", _pair_of_halves, of="cdna5")
define("v_cvt_sr_fp8_f32/clamp", "i32 = f32 i32 dst modifiers", _stochastic, of="cdna5")
