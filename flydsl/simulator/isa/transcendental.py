"""Reciprocals, roots, exponentials, logarithms, sine and cosine.

They are evaluated in f64 and rounded once, which is within the accuracy the ISA documents (1 ulp for f32 and f16,
2**29 ulp for f64), and closer than hardware is. As documented, those of f32 flush denormals on input and output
whatever the mode, except for sine and cosine.
"""

from __future__ import annotations

from typing import Any

from flydsl.simulator.builder import Builder, Value
from flydsl.simulator.isa.common import flush_denormals
from flydsl.simulator.isa.table import define
from flydsl.simulator.isa.vector_float import flush_to_mode

_SMALLEST_NORMAL = 2.0**-126


def _flushing(operation: str) -> Any:
    def evaluate(b: Builder, x: Value) -> Value:
        result = getattr(b, operation)(flush_denormals(b, x, _SMALLEST_NORMAL))
        return flush_denormals(b, result, _SMALLEST_NORMAL)

    return evaluate


for _name, _operation in (("rcp", "rcp"), ("rsq", "rsq"), ("sqrt", "sqrt"), ("exp", "exp2"), ("log", "log2")):
    for _type in ("f16", "f64") if _name in ("rcp", "rsq", "sqrt") else ("f16",):
        define(f"v_{_name}_{_type}", f"{_type} = {_type}", lambda b, x, o=_operation: getattr(b, o)(x))
    define(f"v_{_name}_f32", "f32 = f32", _flushing(_operation))
define("v_rcp_iflag_f32", "f32 = f32", _flushing("rcp"))
define("v_exp_legacy_f32", "f32 = f32", _flushing("exp2"))
define("v_log_legacy_f32", "f32 = f32", _flushing("log2"))


def _turn(b: Builder, x: Value, type_: str) -> Value:
    """x less its nearest integer, exactly; infinity gives NaN."""
    small = b.fcmp("olt", b.fabs(x), b.const(type_, 0.5))
    return b.select(small, x, b.fsub(x, b.roundeven(x)))  # -0 stays -0


def _sine(type_: str) -> Any:
    """The argument is in turns. Beyond a quarter turn, what is left to the half turn has the same sine."""

    def evaluate(b: Builder, x: Value) -> Value:
        turn = _turn(b, x, type_)
        positive = b.fcmp("ogt", turn, b.const(type_, 0.0))
        half = b.select(positive, b.const(type_, 0.5), b.const(type_, -0.5))
        beyond = b.fcmp("ogt", b.fabs(turn), b.const(type_, 0.25))
        sine = b.sin_turns(b.select(beyond, b.fsub(half, turn), turn))
        return b.select(b.fcmp("oeq", turn, b.const(type_, 0.0)), flush_to_mode(b, turn), sine)  # -0 keeps its sign

    return evaluate


def _cosine(type_: str) -> Any:
    """Away from 0, the sine of what is left to the quarter turn: so the zeros are exact."""

    def evaluate(b: Builder, x: Value) -> Value:
        turn = b.fabs(_turn(b, x, type_))
        small = b.fcmp("olt", turn, b.const(type_, 0.125))
        complement = b.fsub(b.const(type_, 0.25), turn)
        return b.select(small, b.cos_turns(turn), b.sin_turns(complement))

    return evaluate


for _type in ("f16", "f32"):
    define(f"v_sin_{_type}", f"{_type} = {_type}", _sine(_type))
    define(f"v_cos_{_type}", f"{_type} = {_type}", _cosine(_type))
