"""Reciprocals, roots, exponentials, logarithms, sine and cosine.

They are evaluated in f64 and rounded once, which is within the accuracy the ISA documents (1 ulp for f32 and f16,
2**29 ulp for f64), and closer than hardware is. As documented, those of f32 flush denormals on input and output
whatever the mode, except for sine and cosine.
"""

from __future__ import annotations

import math
from typing import Any

from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.common import curried, flush_denormals
from flydsl.simulator.isa.table import define
from flydsl.simulator.isa.vector_float import flush_to_mode

_SMALLEST_NORMAL = 2.0**-126
_INVALID = {"f16": 0xFE00, "f32": 0xFFC00000, "f64": 0xFFF8 << 48}
"""The NaN, as bits, in the document's examples for operands outside of a function's domain."""


def _invalid(b: Builder, x: Value, result: Value, type_: str) -> Value:
    """The NaN for a number that has no result; a NaN operand stays as it is."""
    made = b.and_(b.fcmp("uno", result, result), b.fcmp("ord", x, x))
    return b.select(made, b.bitcast(b.const("i" + type_[1:], _INVALID[type_]), type_), result)


def plain(operation: str, type_: str) -> Any:
    return lambda b, x: _invalid(b, x, getattr(b, operation)(x), type_)


@curried
def _flushing(operation: str, b: Builder, x: Value) -> Value:
    result = getattr(b, operation)(flush_denormals(b, x, _SMALLEST_NORMAL))
    return _invalid(b, x, flush_denormals(b, result, _SMALLEST_NORMAL), "f32")


for _name, _operation in (("rcp", "rcp"), ("rsq", "rsq"), ("sqrt", "sqrt"), ("exp", "exp2"), ("log", "log2")):
    for _type in ("f16", "f64") if _name in ("rcp", "rsq", "sqrt") else ("f16",):
        define(f"v_{_name}_{_type}", f"{_type} = {_type}", plain(_operation, _type))
    define(f"v_{_name}_f32", "f32 = f32", _flushing(_operation))
define("v_rcp_iflag_f32", "f32 = f32", _flushing("rcp"))
define("v_exp_legacy_f32", "f32 = f32", _flushing("exp2"))
define("v_log_legacy_f32", "f32 = f32", _flushing("log2"))


def _turn(b: Builder, x: Value, type_: str) -> Value:
    """x minus its nearest integer, exactly; NaN for infinity."""
    small = b.fcmp("olt", b.fabs(x), b.const(type_, 0.5))
    return b.select(small, x, b.fsub(x, b.roundeven(x)))  # -0 stays -0


@curried
def sine(type_: str, b: Builder, x: Value) -> Value:
    """The argument is in turns. Beyond a quarter turn, what is left to the half turn has the same sine."""
    turn = _turn(b, x, type_)
    positive = b.fcmp("ogt", turn, b.const(type_, 0.0))
    half = b.select(positive, b.const(type_, 0.5), b.const(type_, -0.5))
    beyond = b.fcmp("ogt", b.fabs(turn), b.const(type_, 0.25))
    sine = b.sin_turns(b.select(beyond, b.fsub(half, turn), turn))
    sine = b.select(b.fcmp("oeq", turn, b.const(type_, 0.0)), flush_to_mode(b, turn), sine)  # -0 keeps its sign
    return _invalid(b, x, sine, type_)


@curried
def cosine(type_: str, b: Builder, x: Value) -> Value:
    """Away from 0, the sine of what is left to the quarter turn: so the zeros are exact."""
    turn = b.fabs(_turn(b, x, type_))
    small = b.fcmp("olt", turn, b.const(type_, 0.125))
    complement = b.fsub(b.const(type_, 0.25), turn)
    return _invalid(b, x, b.select(small, b.cos_turns(turn), b.sin_turns(complement)), type_)


for _type in ("f16", "f32"):
    define(f"v_sin_{_type}", f"{_type} = {_type}", sine(_type))
    define(f"v_cos_{_type}", f"{_type} = {_type}", cosine(_type))


# --- the hyperbolic tangent, of gfx1250

_NEAR_ZERO = 2.0**-9
"""Below, three terms of the series are exact to f32; above, the quotient of exponentials is."""


def tanh_of_f64(b: Builder, wide: Value) -> Value:
    square = b.float_op("fmul", wide, wide)
    terms = b.float_op("fadd", b.float_op("fmul", square, b.const("f64", 2 / 15)), b.const("f64", -1 / 3))
    series = b.float_op("fadd", wide, b.float_op("fmul", b.float_op("fmul", wide, square), terms))
    power = b.exp2(b.float_op("fmul", wide, b.const("f64", 2 / math.log(2))))
    one = b.const("f64", 1.0)
    # 2**1000, at which the exponential stays, and more are far beyond where the quotient is 1.
    quotient = b.float_op("fdiv", b.float_op("fsub", power, one), b.float_op("fadd", power, one))
    result = b.select(b.fcmp("olt", b.fabs(wide), b.const("f64", _NEAR_ZERO)), series, quotient)
    return b.settle_nan(result, wide)


def _tanh(type_: str) -> Any:
    """In f64, rounded once; denormals are kept or flushed as the mode says."""
    return lambda b, x: b.fptrunc(tanh_of_f64(b, b.fpext(b.canonicalize(x), "f64")), type_)


for _type in ("f16", "f32"):
    define(f"v_tanh_{_type}", f"{_type}{'~' if _type == 'f16' else ''} = {_type}", _tanh(_type), of="cdna5")
