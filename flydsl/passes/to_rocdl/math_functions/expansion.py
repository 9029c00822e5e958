"""The expansion of each operation of the `math` dialect."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from mlir import ir

from flydsl.dialect.location import source_location
from flydsl.errors import CompileError
from flydsl.passes.rewriting import create
from flydsl.passes.to_rocdl.arith_builder import ElementwiseValue, approximate
from flydsl.passes.to_rocdl.math_functions import (
    error_functions,
    exponential,
    inverse_trigonometric,
    of_f64,
    powers,
    trigonometric,
)

# Exact, and selected by LLVM for f16, f32 and f64: operation -> intrinsic.
_EXACT = {
    "absf": "fabs", "ceil": "ceil", "floor": "floor", "trunc": "trunc", "round": "round", "roundeven": "roundeven",
    "fma": "fma", "copysign": "copysign",
}  # fmt: skip
# LLVM computes these within 2 ulp in f32.
_NATIVE = {"exp": "exp", "exp2": "exp2", "log": "log", "log2": "log2", "log10": "log10", "sqrt": "sqrt"}
_FORMULAS: dict[str, Callable[..., ElementwiseValue]] = {
    "acos": inverse_trigonometric.acos, "asin": inverse_trigonometric.asin, "atan": inverse_trigonometric.atan,
    "atan2": inverse_trigonometric.atan2,
    "cos": trigonometric.cos, "sin": trigonometric.sin, "tan": trigonometric.tan,
    "acosh": exponential.acosh, "asinh": exponential.asinh, "atanh": exponential.atanh, "cbrt": exponential.cbrt,
    "cosh": exponential.cosh, "expm1": exponential.expm1, "log1p": exponential.log1p, "rsqrt": exponential.rsqrt,
    "sinh": exponential.sinh, "tanh": exponential.tanh,
    "erf": error_functions.erf, "erfc": error_functions.erfc,
    "powf": powers.powf, "fpowi": powers.fpowi,
}  # fmt: skip
_SMALLEST_NORMAL = {"f64": 2.0**-1022, "f32": 2.0**-126, "f16": 2.0**-14, "bf16": 2.0**-126}
_CLASSES: dict[str, Callable[[ElementwiseValue], ElementwiseValue]] = {
    "isnan": lambda x: x.differs(x),
    "isinf": lambda x: x.abs().equals(float("inf")),
    "isfinite": lambda x: x.abs() < float("inf"),
    "isnormal": lambda x: (x.abs() >= _SMALLEST_NORMAL[str(x.element)]) & (x.abs() < float("inf")),
}
_INTEGERS: dict[str, Callable[..., ElementwiseValue]] = {
    "absi": lambda x: (x < 0).choose(-x, x),
    "ctpop": lambda x: x.llvm("ctpop"),
    "ctlz": lambda x: _count_zeros("ctlz", x),
    "cttz": lambda x: _count_zeros("cttz", x),
    "ipowi": powers.ipowi,
}

# Functions of f64 whose formulas are not those of f32.
_OF_F64: dict[str, Callable[..., ElementwiseValue]] = {
    **{name: getattr(of_f64.exponential, name) for name in (
        "cbrt", "cosh", "exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "sinh", "tanh"
    )},
    "cos": of_f64.trigonometric.cos, "sin": of_f64.trigonometric.sin, "tan": of_f64.trigonometric.tan,
    "erf": of_f64.error_functions.erf, "erfc": of_f64.error_functions.erfc,
    "rsqrt": lambda x: 1.0 / x.llvm("sqrt"),
}  # fmt: skip


def expand(ops: Iterable[ir.Operation]) -> bool:
    """Replace every `math` operation. Return whether there is one."""
    found = [op for op in ops if op.name.startswith("math.")]
    for op in found:
        with ir.InsertionPoint(op):
            results = _expand(op)
        for old, new in zip(op.results, results, strict=True):
            old.replace_all_uses_with(new)
        op.erase()
    return bool(found)


def _expand(op: ir.Operation) -> list[ir.Value]:
    """The values that replace an operation's results.

    Vectors are flattened, and one of a single element becomes a scalar: LLVM's back end fails an assertion for a
    `copysign` of <1 x double> whose sign comes from a select.
    """
    kinds = [result.type for result in op.results]
    operands = [ElementwiseValue(_flattened(operand, op.location), op.location) for operand in op.operands]
    results = _compute(op, op.name.removeprefix("math."), operands)
    return [_shaped(value.value, kind, op.location) for value, kind in zip(results, kinds, strict=True)]


def _flattened(value: ir.Value, at: ir.Location) -> ir.Value:
    kind = value.type
    if not isinstance(kind, ir.VectorType):
        return value
    count = math.prod(kind.shape)
    if count == 1:
        first = {"static_position": ir.DenseI64ArrayAttr.get([0] * kind.rank)}
        return create("vector.extract", [value], [kind.element_type], at, first).result
    if kind.rank == 1:
        return value
    return create("vector.shape_cast", [value], [ir.VectorType.get([count], kind.element_type)], at).result


def _shaped(value: ir.Value, kind: ir.Type, at: ir.Location) -> ir.Value:
    if value.type == kind:
        return value
    cast = "shape_cast" if isinstance(value.type, ir.VectorType) else "broadcast"
    return create(f"vector.{cast}", [value], [kind], at).result


def _compute(op: ir.Operation, name: str, operands: Sequence[ElementwiseValue]) -> list[ElementwiseValue]:
    x = operands[0]
    if name in _INTEGERS:
        return [_INTEGERS[name](*operands)]
    element = str(x.element)
    if element == "bf16" or (element == "f16" and name not in _EXACT and name not in _CLASSES):
        operands = [v.to_float("f32") if v.is_float else v for v in operands]
    results = _compute_float(op, name, operands)
    if name in _CLASSES:
        return results
    return [result.to_float(element) for result in results]


def _compute_float(op: ir.Operation, name: str, operands: Sequence[ElementwiseValue]) -> list[ElementwiseValue]:
    flags = str(op.attributes["fastmath"]) if "fastmath" in op.attributes else ""
    approximately = "afn" in flags or "<fast>" in flags
    x = operands[0]
    if name in _EXACT:
        return [x.llvm(_EXACT[name], *operands[1:])]
    if name in _CLASSES:
        return [_CLASSES[name](x)]
    if name == "clampf":
        return [x.llvm("maximum", operands[1]).llvm("minimum", operands[2])]
    if approximately and str(x.element) == "f32" and name in _APPROXIMATIONS:
        return [_APPROXIMATIONS[name](*operands)]
    is_f64 = str(x.element) == "f64"
    if name == "sincos":
        return list((of_f64.trigonometric if is_f64 else trigonometric).sincos(x))
    if is_f64 and name in _OF_F64:
        return [_OF_F64[name](*operands)]
    if name in _NATIVE:
        return [x.llvm(_NATIVE[name])]
    if name not in _FORMULAS:
        raise CompileError(
            f"{op.name} is unsupported", at=source_location(op.location), hint="write it with the functions of fx.math"
        )
    return [_FORMULAS[name](*operands)]


def _turns(name: str, x: ElementwiseValue) -> ElementwiseValue:
    """Sine or cosine by the instruction, whose operand is in turns."""
    turns = x * (0.5 / math.pi)
    return approximate(name, turns - turns.llvm("floor"))


# Where fastmath allows approximation: one instruction, and a factor if its base or unit differs.
_APPROXIMATIONS: dict[str, Callable[..., ElementwiseValue]] = {
    "exp": lambda x: approximate("exp2", x * math.log2(math.e)),
    "exp2": lambda x: approximate("exp2", x),
    "log": lambda x: approximate("log", x) * math.log(2),
    "log2": lambda x: approximate("log", x),
    "log10": lambda x: approximate("log", x) * math.log10(2),
    "sqrt": lambda x: approximate("sqrt", x),
    "rsqrt": lambda x: approximate("rsq", x),
    "sin": lambda x: _turns("sin", x),
    "cos": lambda x: _turns("cos", x),
    "tan": lambda x: _turns("sin", x) * approximate("rcp", _turns("cos", x)),
    "powf": lambda x, y: approximate("exp2", y * approximate("log", x)),
}


def _count_zeros(name: str, x: ElementwiseValue) -> ElementwiseValue:
    """Count leading or trailing zeros; for 0 the result is the width."""
    return x.op(f"llvm.intr.{name}", is_zero_poison=ir.BoolAttr.get(False))
