"""Arithmetic on scalars and vectors: what the operators emit, and the named operations of MLIR's arith dialect.

Operands of an operator may differ in type. They meet in a common one: float wins over integer, the wider over the
narrower, `Index` over a fixed-width integer; a Python number takes the other operand's type. Division follows Python:
`//` rounds down, `%` has the sign of the divisor, `/` of integers is a float division.

The named functions (`addf`, `muli`, ...) take operands of one type and emit exactly that operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlir import ir

from flydsl.dialect.elements import element_type
from flydsl.dialect.location import user_location
from flydsl.errors import ArgumentError
from flydsl.expr.emit import emit
from flydsl.expr.numeric import (
    ArithValue,
    Boolean,
    Float32,
    Float64,
    Index,
    Int32,
    Integer,
    Numeric,
    as_numeric,
    wrap_scalar,
)

__all__ = [
    "ArithValue", "addf", "addi", "andi", "bitcast", "ceildivsi", "ceildivui", "cmpf", "cmpi", "constant", "divf",
    "divsi", "divui", "extf", "extsi", "extui", "floordivsi", "fptosi", "fptoui", "index", "index_cast", "maximumf",
    "maxnumf", "maxsi", "maxui", "minimumf", "minnumf", "minsi", "minui", "mulf", "muli", "negf", "ori", "remf",
    "remsi", "remui", "select", "shli", "shrsi", "shrui", "sitofp", "subf", "subi", "trunc_f", "truncf", "trunci",
    "uitofp", "xori",
]  # fmt: skip

# Operator -> the operation for floats, signed and unsigned integers.
_OPERATIONS = {
    "add": ("addf", "addi", "addi"),
    "sub": ("subf", "subi", "subi"),
    "mul": ("mulf", "muli", "muli"),
    "div": ("divf", None, None),
    "floordiv": (None, "floordivsi", "divui"),
    "mod": (None, None, "remui"),
    "and": (None, "andi", "andi"),
    "or": (None, "ori", "ori"),
    "xor": (None, "xori", "xori"),
    "shl": (None, "shli", "shli"),
    "shr": (None, "shrsi", "shrui"),
}
# MLIR's predicate numbers: floats (ordered, but `!=` is true for NaN), signed and unsigned integers.
_CMPF = {"eq": 1, "gt": 2, "ge": 3, "lt": 4, "le": 5, "ne": 13}
_CMPI_SIGNED = {"eq": 0, "ne": 1, "lt": 2, "le": 3, "gt": 4, "ge": 5}
_CMPI_UNSIGNED = {"eq": 0, "ne": 1, "lt": 6, "le": 7, "gt": 8, "ge": 9}

_PYTHON: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b,
    "shr": lambda a, b: a >> b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
_SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "and": "&", "or": "|", "xor": "^",
    "shl": "<<", "shr": ">>", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip


# --- operators -------------------------------------------------------------------------------------------------------


def binary(operation: str, left: Any, right: Any) -> Any:
    """`left <operation> right` for an operator's operands."""
    if not _is_operand(left) or not _is_operand(right):
        return NotImplemented
    dtype = _common_type(operation, left, right)
    left, right = _like(left, dtype, right), _like(right, dtype, left)
    if isinstance(left, Numeric) and isinstance(right, Numeric) and left.is_static and right.is_static:
        folded = _fold(operation, dtype, left.value, right.value)
        if folded is not None:
            return folded
    if operation in _CMPF:
        return _compare(operation, dtype, left, right)
    if operation == "floordiv" and dtype.is_float:
        raise _no_operator(operation, dtype, "divide with / and round down with fx.math.floor")
    if operation in ("floordiv", "mod") and issubclass(dtype, Integer) and dtype.signed:
        return _signed_division(operation, dtype, left, right)
    name = _OPERATIONS[operation][0 if dtype.is_float else 1 if dtype.signed else 2]
    if name is None:
        raise _no_operator(operation, dtype)
    return _same_type(name, left, right)


def _is_operand(value: Any) -> bool:
    return isinstance(value, ArithValue | bool | int | float | ir.Value)


def _no_operator(operation: str, dtype: type[Numeric], hint: str | None = None) -> ArgumentError:
    return ArgumentError(f"{dtype.__name__} has no operator {_SYMBOLS[operation]}", at=user_location(), hint=hint)


def _common_type(operation: str, left: Any, right: Any) -> type[Numeric]:
    types = [value.dtype for value in (left, right) if isinstance(value, ArithValue)]
    dtype = types[0] if len(types) == 1 else _wider(*types) if types else Int32
    python = [value for value in (left, right) if not isinstance(value, ArithValue)]
    if any(isinstance(value, float) for value in python) and not dtype.is_float:
        dtype = Float32
    elif dtype is Boolean and any(type(value) is int for value in python):
        dtype = Int32
    if operation == "div" and not dtype.is_float:
        return Float64 if dtype.width == 64 else Float32
    return dtype


def _wider(left: type[Numeric], right: type[Numeric]) -> type[Numeric]:
    """The common type of two: float over integer, then Index, then the wider, then the unsigned."""
    if left is right:
        return left
    return max((left, right), key=lambda t: (t.is_float, t is Index, t.width, not t.signed))


def _like(value: Any, dtype: type[Numeric], other: Any) -> Any:
    """`value` as `dtype`; a scalar beside a vector becomes a vector."""
    from flydsl.expr.vector import Vector

    if isinstance(value, Vector):
        return value.to(dtype)
    scalar = value if isinstance(value, Numeric) and value.dtype is dtype else dtype(value)
    return Vector.filled(other.shape, scalar, dtype) if isinstance(other, Vector) else scalar


def _fold(operation: str, dtype: type[Numeric], left: Any, right: Any) -> Any:
    """The result for two Python integers, or None where it is left to the program."""
    if dtype.is_float or operation not in _PYTHON:
        return None
    if operation in ("floordiv", "mod") and right == 0:
        raise ArgumentError(f"{left} {_SYMBOLS[operation]} 0: division by zero", at=user_location())
    if operation in ("shl", "shr") and not 0 <= right < dtype.width:
        raise ArgumentError(f"shift of a {dtype.__name__} by {right} bits", at=user_location())
    result = _PYTHON[operation](left, right)
    if operation in _CMPF:
        return Boolean(result)
    return dtype(result) if dtype is Boolean else dtype(dtype.wrapped(result))  # type: ignore[attr-defined]


def _compare(operation: str, dtype: type[Numeric], left: ArithValue, right: ArithValue) -> Any:
    if dtype.is_float:
        return cmpf(_CMPF[operation], left, right)
    return cmpi((_CMPI_SIGNED if dtype.signed else _CMPI_UNSIGNED)[operation], left, right)


def _signed_division(operation: str, dtype: type[Numeric], left: Any, right: Any) -> Any:
    """Python's `//` and `%`. A constant power of two takes one shift or mask, which round down as Python does."""
    divisor = right.value if isinstance(right, Numeric) and right.is_static else None
    if divisor == 0:
        raise ArgumentError(f"{_SYMBOLS[operation]} by zero", at=user_location())
    if divisor is not None and divisor > 0 and divisor & (divisor - 1) == 0:
        if operation == "floordiv":
            return left if divisor == 1 else shrsi(left, dtype(divisor.bit_length() - 1))
        return andi(left, dtype(divisor - 1))
    if operation == "floordiv":
        return floordivsi(left, right)
    remainder = remsi(left, right)
    zero = _like(dtype(0), dtype, left)
    wrong_sign = (remainder != zero) & ((remainder ^ right) < zero)
    return select(wrong_sign, addi(remainder, right), remainder)


def negate(value: Any) -> Any:
    """`-value`."""
    if value.dtype.is_float:
        return negf(value)
    return binary("sub", 0, value)


# --- the named operations --------------------------------------------------------------------------------------------


def _raw(value: Any) -> ir.Value:
    return value if isinstance(value, ir.Value) else as_numeric(value).ir_value()


def _dtype(value: Any) -> type[Numeric] | None:
    return value.dtype if isinstance(value, ArithValue) else None


def _wrap(value: ir.Value, dtype: type[Numeric] | None = None) -> Any:
    """Wrap a result. dtype: the operand's type, kept where the MLIR type does not tell signed from unsigned."""
    from flydsl.expr.vector import Vector

    keeps = dtype is not None and dtype.ir_type == _element(value)
    if isinstance(value.type, ir.VectorType):
        return Vector(value, dtype if keeps else None)
    return dtype.of(value) if dtype is not None and keeps else wrap_scalar(value)


def _element(value: ir.Value) -> ir.Type:
    return value.type.element_type if isinstance(value.type, ir.VectorType) else value.type


def _check_kind(name: str, value: ir.Value, wants_float: bool) -> None:
    if isinstance(_element(value), ir.FloatType) != wants_float:
        raise ArgumentError(
            f"arith.{name} takes {'floats' if wants_float else 'integers'}, not {value.type}",
            at=user_location(),
            hint="the operators + - * / choose the operation by the operand types",
        )


def _same_type(name: str, left: Any, right: Any) -> Any:
    """Emit `arith.<name>` on two operands of one type; a Python number takes the other's type."""
    if isinstance(left, bool | int | float) and isinstance(right, ArithValue):
        left = _like(left, right.dtype, right)
    if isinstance(right, bool | int | float) and isinstance(left, ArithValue):
        right = _like(right, left.dtype, left)
    lhs, rhs = _raw(left), _raw(right)
    if lhs.type != rhs.type:
        raise ArgumentError(
            f"arith.{name} of {lhs.type} and {rhs.type}: the types differ",
            at=user_location(),
            hint="convert one of them, for example with .to(fx.Float32)",
        )
    _check_kind(name, lhs, name.endswith("f"))
    return _wrap(emit(f"arith.{name}", [lhs, rhs], [lhs.type]).result, _dtype(left))


def _binary_function(name: str, summary: str) -> Callable[[Any, Any], Any]:
    def function(lhs: Any, rhs: Any) -> Any:
        return _same_type(name, lhs, rhs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`arith.{name}`: {summary}. Operands are scalars or vectors of one type."
    return function


addf = _binary_function("addf", "floating point sum")
subf = _binary_function("subf", "floating point difference")
mulf = _binary_function("mulf", "floating point product")
divf = _binary_function("divf", "floating point quotient")
remf = _binary_function("remf", "floating point remainder, sign of the dividend")
maximumf = _binary_function("maximumf", "maximum, NaN if either is")
minimumf = _binary_function("minimumf", "minimum, NaN if either is")
maxnumf = _binary_function("maxnumf", "maximum, the number if one is NaN")
minnumf = _binary_function("minnumf", "minimum, the number if one is NaN")
addi = _binary_function("addi", "sum, wrapping")
subi = _binary_function("subi", "difference, wrapping")
muli = _binary_function("muli", "product, wrapping")
divsi = _binary_function("divsi", "signed quotient, rounded to zero")
divui = _binary_function("divui", "unsigned quotient")
remsi = _binary_function("remsi", "signed remainder, sign of the dividend")
remui = _binary_function("remui", "unsigned remainder")
floordivsi = _binary_function("floordivsi", "signed quotient, rounded down")
ceildivsi = _binary_function("ceildivsi", "signed quotient, rounded up")
ceildivui = _binary_function("ceildivui", "unsigned quotient, rounded up")
andi = _binary_function("andi", "bitwise and")
ori = _binary_function("ori", "bitwise or")
xori = _binary_function("xori", "bitwise exclusive or")
shli = _binary_function("shli", "shift left")
shrsi = _binary_function("shrsi", "arithmetic shift right")
shrui = _binary_function("shrui", "logical shift right")
maxsi = _binary_function("maxsi", "signed maximum")
maxui = _binary_function("maxui", "unsigned maximum")
minsi = _binary_function("minsi", "signed minimum")
minui = _binary_function("minui", "unsigned minimum")


def negf(operand: Any) -> Any:
    """`arith.negf`: change of sign."""
    value = _raw(operand)
    _check_kind("negf", value, True)
    return _wrap(emit("arith.negf", [value], [value.type]).result, _dtype(operand))


def constant(value: Any, type: Any = None, index: bool = False) -> Any:
    """A constant.

    value: a Python number.
    type: a scalar type of the DSL or an MLIR type; by default Int32, Float32 or Boolean after the number's own type.
    index: make it an Index.
    """
    from flydsl.expr.numeric import numeric_class

    if index:
        return Index(value)
    if type is None:
        return as_numeric(value)
    return (numeric_class(type) if isinstance(type, ir.Type) else type)(value)


def index(value: int) -> Any:
    """An Index constant."""
    return Index(value)


def _predicate(predicate: Any, names: dict[str, int]) -> int:
    return names[predicate] if isinstance(predicate, str) else int(predicate)


_CMPF_ORDER = ("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true")  # fmt: skip  # noqa: E501
_CMPF_NAMES = {name: number for number, name in enumerate(_CMPF_ORDER)}
_CMPI_NAMES = {
    name: number for number, name in enumerate(["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"])
}


def _compare_op(name: str, predicate: int, left: Any, right: Any) -> Any:
    lhs, rhs = _raw(left), _raw(right)
    if lhs.type != rhs.type:
        raise ArgumentError(f"arith.{name} of {lhs.type} and {rhs.type}: the types differ", at=user_location())
    _check_kind(name, lhs, name == "cmpf")
    i1 = element_type("i1")
    result = ir.VectorType.get(lhs.type.shape, i1) if isinstance(lhs.type, ir.VectorType) else i1
    attribute = ir.IntegerAttr.get(element_type("i64"), predicate)
    return _wrap(emit(f"arith.{name}", [lhs, rhs], [result], {"predicate": attribute}).result)


def cmpi(predicate: Any, lhs: Any, rhs: Any) -> Any:
    """`arith.cmpi`: predicate is MLIR's name (`slt`, `ult`, `eq`, ...) or number."""
    return _compare_op("cmpi", _predicate(predicate, _CMPI_NAMES), lhs, rhs)


def cmpf(predicate: Any, lhs: Any, rhs: Any) -> Any:
    """`arith.cmpf`: predicate is MLIR's name (`olt`, `une`, ...) or number."""
    return _compare_op("cmpf", _predicate(predicate, _CMPF_NAMES), lhs, rhs)


def select(condition: Any, true_value: Any, false_value: Any) -> Any:
    """`true_value` where `condition` holds, else `false_value`; both are evaluated. The two take a common type."""
    true_value, false_value = as_numeric(true_value), as_numeric(false_value)
    dtype = _common_type("select", true_value, false_value)
    true_value, false_value = _like(true_value, dtype, false_value), _like(false_value, dtype, true_value)
    chooser = as_numeric(condition)
    if chooser.dtype is not Boolean:
        chooser = chooser != 0
    lhs, rhs = true_value.ir_value(), false_value.ir_value()
    return _wrap(emit("arith.select", [chooser.ir_value(), lhs, rhs], [lhs.type]).result, dtype)


# --- conversions -----------------------------------------------------------------------------------------------------


def convert(value: ArithValue, target: type[Numeric]) -> ir.Value:
    """Convert a runtime scalar or vector to another scalar type, rounding to nearest even.

    Integers to Boolean compare with zero; float to integer truncates toward zero.
    """
    source, operand = value.dtype, value.ir_value()
    if source.ir_type == target.ir_type:
        return operand
    if target is Boolean:
        return (value != 0).ir_value()
    if Index in (source, target) and not (source.is_float or target.is_float):
        cast = "index_cast" if source.signed else "index_castui"
        return _cast(cast, operand, target.ir_type)
    if Index in (source, target):
        from flydsl.expr.numeric import Int64

        middle = convert(value, Int64)
        return convert(_wrap(middle), target)
    return _cast(_cast_name(source, target), operand, target.ir_type)


def _cast_name(source: type[Numeric], target: type[Numeric]) -> str:
    if source.is_float and target.is_float:
        if source.width == target.width:
            raise ArgumentError(
                f"no direct conversion from {source.__name__} to {target.__name__}",
                at=user_location(),
                hint="go through fx.Float32",
            )
        return "extf" if source.width < target.width else "truncf"
    if source.is_float:
        return "fptosi" if target.signed else "fptoui"
    if target.is_float:
        return "sitofp" if source.signed else "uitofp"
    if source.width > target.width:
        return "trunci"
    return "extsi" if source.signed else "extui"


def _cast(name: str, operand: ir.Value, element: ir.Type) -> ir.Value:
    result = ir.VectorType.get(operand.type.shape, element) if isinstance(operand.type, ir.VectorType) else element
    return emit(f"arith.{name}", [operand], [result]).result


def _cast_function(name: str, summary: str) -> Callable[[Any, Any], Any]:
    def function(result_type: Any, value: Any) -> Any:
        if isinstance(value, type | ir.Type) and not isinstance(result_type, type | ir.Type):
            result_type, value = value, result_type
        element = result_type if isinstance(result_type, ir.Type) else result_type.ir_type
        element = element.element_type if isinstance(element, ir.VectorType) else element
        return _wrap(_cast(name, _raw(value), element), None if isinstance(result_type, ir.Type) else result_type)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`arith.{name}(result_type, value)`: {summary}. The two arguments may come in either order."
    return function


extf = _cast_function("extf", "to a wider float")
truncf = _cast_function("truncf", "to a narrower float")
trunc_f = truncf
extsi = _cast_function("extsi", "sign extension")
extui = _cast_function("extui", "zero extension")
trunci = _cast_function("trunci", "the low bits")
sitofp = _cast_function("sitofp", "signed integer to float")
uitofp = _cast_function("uitofp", "unsigned integer to float")
fptosi = _cast_function("fptosi", "float to signed integer, toward zero")
fptoui = _cast_function("fptoui", "float to unsigned integer, toward zero")
index_cast = _cast_function("index_cast", "between index and a fixed-width integer")
bitcast = _cast_function("bitcast", "the same bits as another type")
