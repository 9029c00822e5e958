"""One-instruction approximations of the transcendental unit: `rocdl.exp2(T.f32, x)`, `rocdl.rcp(T.f32, x)`.

Accurate to about 1 ulp; denormal numbers of f32 are flushed. `fx.math` has the accurate functions. Those of one number
take the elements of a `Vector` one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mlir import ir

from flydsl.atoms.instruction_sets import GFX1250
from flydsl.dialect.location import argument_error
from flydsl.expr.numbers.vector_value import Vector
from flydsl.expr.numeric import Float32
from flydsl.expr.rocdl.intrinsic import (
    call,
    call_intrinsic,
    intrinsic_result,
    ir_type,
    operand,
    require_target,
    result_type_first,
    value_of,
)
from flydsl.expr.tracing.described import described

__all__ = ["cos", "exp", "exp2", "fmed3", "log", "rcp", "rsq", "sin", "sqrt", "tanh"]


def _argument(name: str, res: Any, value: Any, types: tuple[str, ...]) -> ir.Value:
    """The operand, of a type that the instruction supports. The result has the same type."""
    given = value_of(name, float(value) if type(value) is int else value)
    if str(given.type) not in types or (res is not None and ir_type(name, res) != given.type):
        result = "" if res is None else f" to {ir_type(name, res)}"
        raise argument_error(
            f"rocdl.{name} of {given.type}{result}: operand and result are one of {', '.join(types)}",
            "convert it first: value.to(fx.Float32)",
        )
    return given


def _function(name: str, meaning: str, types: tuple[str, ...], archs: tuple[str, ...] = ()) -> Callable[..., Any]:
    @result_type_first
    def function(res: Any, arg: Any) -> Any:
        if archs:
            require_target(f"rocdl.{name}", archs)
        if res is None and isinstance(arg, Vector):
            return Vector.from_elements([function(element) for element in arg], arg.dtype)
        value = _argument(name, res, arg, types)
        return call(name, [value], value.type)

    return described(function, name, f"{meaning} arg and result: {', '.join(types)}.")


exp2 = _function("exp2", "2 to the power of arg (v_exp_f32).", ("f32",))
log = _function("log", "The logarithm to base 2 (v_log_f32): the instruction, not the natural logarithm.", ("f32",))
rcp = _function("rcp", "1 / arg (v_rcp).", ("f16", "f32", "f64"))
sqrt = _function("sqrt", "The square root (v_sqrt).", ("f16", "f32", "f64"))
sin = _function("sin", "sin(2 pi arg) (v_sin): the argument counts turns.", ("f16", "f32"))
cos = _function("cos", "cos(2 pi arg) (v_cos): the argument counts turns.", ("f16", "f32"))
tanh = _function("tanh", "The hyperbolic tangent (v_tanh).", ("f16", "f32"), GFX1250)


@result_type_first
def rsq(res: Any, arg: Any) -> Any:
    """1 / sqrt(arg) (v_rsq). arg and result: f16, f32, f64."""
    value = _argument("rsq", res, arg, ("f16", "f32", "f64"))
    return intrinsic_result(call_intrinsic("llvm.amdgcn.rsq", [value], value.type))


@result_type_first
def exp(res: Any, arg: Any) -> Any:
    """e to the power of arg, computed as 2 to the power of arg * log2(e): two instructions. arg and result: f32."""
    value = Float32.of(_argument("exp", res, arg, ("f32",)))
    return exp2(value * Float32(math.log2(math.e)))


@result_type_first
def fmed3(res: Any, src0: Any, src1: Any, src2: Any) -> Any:
    """The median of three numbers (v_med3): a clamp in one instruction. f32 or f16."""
    first = _argument("fmed3", res, src0, ("f16", "f32"))
    return call("fmed3", [first, *(operand("fmed3", value, first.type) for value in (src1, src2))], first.type)
