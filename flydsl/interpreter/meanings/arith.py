"""The meaning of `arith`: integers wrap, floats are rounded to their type, and a division by zero is as on the device:
`x // 0` is x, `x % 0` is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from mlir import ir

from flydsl.dialect.elements import FLOAT_BITS, element_bits
from flydsl.interpreter.elements import Array, bits_dtype, dtype_of, element_name, recast, rounded, shape_of
from flydsl.interpreter.execution import Execution, means
from flydsl.interpreter.meanings.choosing import chosen

Function = Callable[..., Any]


def unsigned(value: Array, element: str) -> Array:
    """Integers without a sign."""
    if element == "i1":
        return value.astype(np.uint8)
    bits = element_bits(element)
    found: Array = np.ascontiguousarray(value).view(bits_dtype(element))
    return found & np.uint8((1 << bits) - 1) if bits < 8 else found


def wrapped(value: Array, element: str) -> Array:
    """Integers as the lower bits that a type has."""
    if element == "i1":
        return (value.astype(np.int64) & 1).astype(np.bool_)
    dtype = dtype_of(element)
    whole = value.astype(dtype, copy=False)
    unused = 8 * dtype.itemsize - element_bits(element)
    return (whole << unused) >> unused if unused else whole


def _integers(function: Function, is_signed: bool = True) -> Function:
    def meaning(x: Execution, op: ir.Operation, *operands: Array) -> Array:
        element = element_name(op.operands[0].type)
        if element == "i1":
            operands = tuple(-value.astype(np.int8) if is_signed else value.astype(np.uint8) for value in operands)
        elif not is_signed:
            operands = tuple(unsigned(value, element) for value in operands)
        return wrapped(function(*operands), element)

    return meaning


def _floats(function: Function) -> Function:
    def meaning(x: Execution, op: ir.Operation, *operands: Array) -> Array:
        return rounded(function(*operands), element_name(op.result.type))

    return meaning


def _nonzero(divisor: Array) -> Array:
    return np.where(divisor == 0, np.ones(1, divisor.dtype), divisor)


def _toward_zero(a: Array, b: Array) -> Array:
    """The quotient rounded toward zero; the smallest number by -1 is itself."""
    divisor = _nonzero(b)
    quotient = a // divisor
    return quotient + ((a % divisor != 0) & ((a < 0) != (divisor < 0))).astype(quotient.dtype)


def _remainder(a: Array, b: Array) -> Array:
    divisor = np.where(b == -1, np.ones(1, b.dtype), _nonzero(b)) if b.dtype.kind == "i" else _nonzero(b)
    return np.fmod(a, divisor)


def _ceil(a: Array, b: Array) -> Array:
    divisor = _nonzero(b)
    return a // divisor + (a % divisor != 0).astype(a.dtype)


def _shift(function: Function) -> Function:
    """A shift by the low bits of the amount."""

    def shifted(a: Array, b: Array) -> Array:
        return function(a, b & np.array(8 * a.dtype.itemsize - 1, b.dtype))

    return shifted


def _larger(a: Array, b: Array) -> Array:
    """The larger number; a NaN if one is."""
    return np.where(_positive_zero(a, b), np.abs(a), np.maximum(a, b))


def _smaller(a: Array, b: Array) -> Array:
    return np.where(_positive_zero(a, b), -np.abs(a), np.minimum(a, b))


def _positive_zero(a: Array, b: Array) -> Array:
    """A mask of the lanes where both are zero, with different signs."""
    return (a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))


_INTEGERS: dict[str, Function] = {
    "addi": np.add, "subi": np.subtract, "muli": np.multiply, "andi": np.bitwise_and, "ori": np.bitwise_or,
    "xori": np.bitwise_xor, "divsi": _toward_zero, "floordivsi": lambda a, b: a // _nonzero(b), "ceildivsi": _ceil,
    "remsi": _remainder, "maxsi": np.maximum, "minsi": np.minimum, "shli": _shift(np.left_shift),
    "shrsi": _shift(np.right_shift),
}  # fmt: skip
_UNSIGNED: dict[str, Function] = {
    "divui": lambda a, b: a // _nonzero(b), "ceildivui": _ceil, "remui": _remainder, "maxui": np.maximum,
    "minui": np.minimum, "shrui": _shift(np.right_shift),
}  # fmt: skip
_FLOATS: dict[str, Function] = {
    "addf": np.add, "subf": np.subtract, "mulf": np.multiply, "divf": np.divide, "remf": np.fmod,
    "negf": np.negative, "maximumf": _larger, "minimumf": _smaller,
    "maxnumf": lambda a, b: np.where(np.isnan(a) | np.isnan(b), np.fmax(a, b), _larger(a, b)),
    "minnumf": lambda a, b: np.where(np.isnan(a) | np.isnan(b), np.fmin(a, b), _smaller(a, b)),
}  # fmt: skip

for _name, _function in _INTEGERS.items():
    means(f"arith.{_name}")(_integers(_function))
for _name, _function in _UNSIGNED.items():
    means(f"arith.{_name}")(_integers(_function, is_signed=False))
for _name, _function in _FLOATS.items():
    means(f"arith.{_name}")(_floats(_function))


@means("arith.constant", "llvm.mlir.constant")
def _constant(x: Execution, op: ir.Operation) -> Array:
    return constant(op.attributes["value"], op.result.type)


def constant(value: ir.Attribute, kind: ir.Type) -> Array:
    """A constant of a type: (1, ...)."""
    element, shape = element_name(kind), shape_of(kind)
    if isinstance(value, ir.DenseElementsAttr):
        if value.is_splat:
            number = value.get_splat_value().value
            return rounded(np.full((1, *shape), number, _wide(element)), element)
        numbers = [value[i] for i in range(len(value))]
        return rounded(np.array(numbers, _wide(element)).reshape(1, *shape), element)
    return rounded(np.array([value.value], _wide(element)), element)


def _wide(element: str) -> Any:
    return np.float64 if element in FLOAT_BITS else np.int64


@means("arith.cmpi")
def _compare_integers(x: Execution, op: ir.Operation, a: Array, b: Array) -> Array:
    predicate = int(op.attributes["predicate"].value)
    element = element_name(op.operands[0].type)
    if predicate >= 6 or element == "i1":
        a, b = unsigned(a, element), unsigned(b, element)
    if element == "i1" and 2 <= predicate < 6:
        a, b = b, a  # with a sign, True is -1
    compare: Function = (
        np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal,
        np.less, np.less_equal, np.greater, np.greater_equal,
    )[predicate]  # fmt: skip
    return compare(a, b)


_ORDERED: tuple[Function, ...] = (
    np.equal, np.greater, np.greater_equal, np.less, np.less_equal, np.not_equal,
)  # fmt: skip


@means("arith.cmpf")
def _compare_floats(x: Execution, op: ir.Operation, a: Array, b: Array) -> Array:
    predicate = int(op.attributes["predicate"].value)
    nan = np.isnan(a) | np.isnan(b)
    if predicate in (0, 15):
        return np.full(nan.shape, predicate == 15)
    if predicate in (7, 14):
        return ~nan if predicate == 7 else nan
    if predicate < 7:
        return _ORDERED[predicate - 1](a, b) & ~nan
    return _ORDERED[predicate - 8](a, b) | nan


@means("arith.select", "llvm.select")
def _select(x: Execution, op: ir.Operation, condition: Array, then: Any, otherwise: Any) -> Any:
    if condition.ndim > 1:
        return np.where(condition, then, otherwise)
    return chosen(condition, then, otherwise)


@means("arith.bitcast", "llvm.bitcast", "vector.bitcast")
def _bitcast(x: Execution, op: ir.Operation, value: Array) -> Array:
    return recast(value, op.operands[0].type, op.result.type)


@means("arith.extsi", "arith.trunci", "arith.index_cast", "llvm.sext", "llvm.trunc")
def _extend(x: Execution, op: ir.Operation, value: Array) -> Array:
    source, target = element_name(op.operands[0].type), element_name(op.result.type)
    return wrapped(-value.astype(np.int8) if source == "i1" else value, target)


@means("arith.extui", "arith.index_castui", "llvm.zext")
def _zero_extend(x: Execution, op: ir.Operation, value: Array) -> Array:
    source, target = element_name(op.operands[0].type), element_name(op.result.type)
    return wrapped(unsigned(value, source), target)


@means("arith.extf", "arith.truncf", "llvm.fpext", "llvm.fptrunc")
def _convert_float(x: Execution, op: ir.Operation, value: Array) -> Array:
    return rounded(value, element_name(op.result.type))


@means("arith.sitofp", "arith.uitofp")
def _from_integer(x: Execution, op: ir.Operation, value: Array) -> Array:
    source, target = element_name(op.operands[0].type), element_name(op.result.type)
    if op.name == "arith.uitofp":
        value = unsigned(value, source)
    elif source == "i1":
        value = -value.astype(np.int8)
    if target in ("f64", "f32"):
        return value.astype(dtype_of(target))
    return rounded(value.astype(np.float64 if value.dtype.itemsize < 8 else np.float32), target)


@means("arith.fptosi", "arith.fptoui")
def _to_integer(x: Execution, op: ir.Operation, value: Array) -> Array:
    """Toward zero; a number that is too large saturates at 32 bits, or at 16 from f16, and a NaN is 0."""
    source, target = element_name(op.operands[0].type), element_name(op.result.type)
    bits = element_bits(target)
    held = bits if bits >= 32 or (source == "f16" and bits == 16) else 32
    low, high = (-(2 ** (held - 1)), 2 ** (held - 1) - 1) if op.name == "arith.fptosi" else (0, 2**held - 1)
    number = np.trunc(np.where(np.isnan(value), 0, value).astype(np.float64))
    inside = np.clip(number, float(low), float(high))
    if held < 64:
        return wrapped(inside.astype(np.int64), target)
    whole = np.where(number >= float(high), high, np.where(number <= low, low, 0).astype(np.int64) if low else 0)
    exact = (number < float(high)) & (number > low)
    kind = np.int64 if low else np.uint64
    return np.where(exact, np.where(exact, number, 0).astype(kind), whole.astype(kind)).view(np.int64)


def _wide_product(a: Array, b: Array, bits: int, element: str, *, is_signed: bool) -> tuple[Array, Array]:
    """The lower and the upper half of a product, which no integer of NumPy's holds."""
    factors = [value if is_signed else unsigned(value, element) for value in (a, b)]
    whole = factors[0].astype(object) * factors[1].astype(object)

    def half(number: int) -> int:
        low = number & ((1 << bits) - 1)
        return low - (low >> (bits - 1) << bits)

    halves = np.vectorize(half, otypes=[np.int64])
    return halves(whole), halves(whole >> bits)


@means("arith.mulsi_extended", "arith.mului_extended", "arith.addui_extended")
def _extended(x: Execution, op: ir.Operation, a: Array, b: Array) -> Any:
    element = element_name(op.operands[0].type)
    bits = element_bits(element)
    if bits > 32 and op.name != "arith.addui_extended":
        return _wide_product(a, b, bits, element, is_signed=op.name == "arith.mulsi_extended")
    if op.name == "arith.mulsi_extended":
        whole = a.astype(np.int64) * b.astype(np.int64)
        return wrapped(whole, element), wrapped(whole >> bits, element)
    first, second = unsigned(a, element), unsigned(b, element)
    if op.name == "arith.mului_extended":
        product = first.astype(np.uint64) * second.astype(np.uint64)
        return wrapped(product.view(np.int64), element), wrapped((product >> np.uint64(bits)).view(np.int64), element)
    total = first + second
    return wrapped(total, element), total < first


@means("ub.poison", "llvm.mlir.undef", "llvm.mlir.poison")
def _poison(x: Execution, op: ir.Operation) -> Any:
    return x.zero(op.result.type)


@means("llvm.freeze", "llvm.intr.assume", "builtin.unrealized_conversion_cast")
def _same(x: Execution, op: ir.Operation, *values: Any) -> Any:
    return values[0] if len(op.results) else None
