"""The meaning of `math`: NumPy's functions, in float64, rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from mlir import ir

from flydsl.dialect.elements import element_bits
from flydsl.interpreter.elements import Array, element_name, rounded
from flydsl.interpreter.execution import Execution, means
from flydsl.interpreter.meanings.arith import unsigned, wrapped
from flydsl.simulator.lockstep import exact

_each = np.vectorize


def _half_away(value: Array) -> Array:
    return np.copysign(np.floor(np.abs(value) + 0.5), value)


_FLOATS: dict[str, Callable[..., Any]] = {
    "absf": np.abs, "ceil": np.ceil, "floor": np.floor, "trunc": np.trunc, "round": _half_away, "roundeven": np.rint,
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "sqrt": np.sqrt, "rsqrt": lambda v: 1 / np.sqrt(v), "cbrt": np.cbrt, "sin": np.sin,
    "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh,
    "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "erf": _each(math.erf, otypes=[np.float64]), "erfc": _each(math.erfc, otypes=[np.float64]), "powf": np.power,
    "atan2": np.arctan2, "copysign": np.copysign,
    "clampf": lambda v, low, high: np.minimum(np.maximum(v, low), high), "fpowi": np.power,
}  # fmt: skip
_TESTS: dict[str, Callable[..., Any]] = {
    "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
}  # fmt: skip


def _float_function(function: Callable[..., Any]) -> Callable[..., Any]:
    def meaning(x: Execution, op: ir.Operation, *operands: Array) -> Array:
        wide = [value.astype(np.float64) for value in operands]
        return rounded(function(*wide), element_name(op.result.type))

    return meaning


for _name, _function in _FLOATS.items():
    means(f"math.{_name}")(_float_function(_function))
for _name, _function in _TESTS.items():
    means(f"math.{_name}")(lambda x, op, value, function=_function: function(value))


@means("math.fma", "vector.fma")
def _fma(x: Execution, op: ir.Operation, a: Array, b: Array, c: Array) -> Array:
    """a * b + c, rounded once; of bf16 in float32 first."""
    return rounded(exact.fma(*np.broadcast_arrays(a, b, c)), element_name(op.result.type))


@means("math.isnormal")
def _isnormal(x: Execution, op: ir.Operation, value: Array) -> Array:
    smallest = {"f16": 2.0**-14, "f64": 2.0**-1022}.get(element_name(op.operands[0].type), 2.0**-126)
    return np.isfinite(value) & (np.abs(value).astype(np.float64) >= smallest)


@means("math.sincos")
def _sincos(x: Execution, op: ir.Operation, value: Array) -> tuple[Array, Array]:
    element, wide = element_name(op.operands[0].type), value.astype(np.float64)
    return rounded(np.sin(wide), element), rounded(np.cos(wide), element)


@means("math.absi")
def _absi(x: Execution, op: ir.Operation, value: Array) -> Array:
    return np.abs(value)


def _bits(value: Array, element: str) -> Array:
    """The bits of integers, highest first, as a further axis."""
    width = element_bits(element)
    whole = unsigned(value, element).astype(np.uint64)
    found: Array = (whole[..., None] >> np.arange(width - 1, -1, -1, dtype=np.uint64)) & np.uint64(1)
    return found


@means("math.ctpop", "llvm.intr.ctpop")
def _ctpop(x: Execution, op: ir.Operation, value: Array) -> Array:
    element = element_name(op.operands[0].type)
    return wrapped(_bits(value, element).sum(axis=-1), element)


@means("math.ctlz", "llvm.intr.ctlz")
def _ctlz(x: Execution, op: ir.Operation, value: Array) -> Array:
    element = element_name(op.operands[0].type)
    bits = _bits(value, element)
    return wrapped(np.where(bits.any(axis=-1), bits.argmax(axis=-1), bits.shape[-1]), element)


@means("math.cttz", "llvm.intr.cttz")
def _cttz(x: Execution, op: ir.Operation, value: Array) -> Array:
    element = element_name(op.operands[0].type)
    bits = _bits(value, element)[..., ::-1]
    return wrapped(np.where(bits.any(axis=-1), bits.argmax(axis=-1), bits.shape[-1]), element)


@means("math.ipowi")
def _ipowi(x: Execution, op: ir.Operation, base: Array, exponent: Array) -> Array:
    element = element_name(op.operands[0].type)
    bits = element_bits(element)

    def power(a: int, n: int) -> int:
        if n < 0:
            a, n = (1 if a == 1 else (1 if n % 2 == 0 else -1) if a == -1 else 0), 1
        low = pow(a, n, 1 << bits)
        return low - (low >> (bits - 1) << bits)

    return wrapped(np.vectorize(power, otypes=[np.int64])(base.astype(object), exponent.astype(object)), element)
