"""Arithmetic on scalars and vectors: what the operators emit, and the named operations of MLIR's arith dialect.

Operands of an operator may differ in type. They meet in a common one: float wins over integer, the wider over the
narrower, `Index` over a fixed-width integer, and of two widths alike the unsigned, as in C; a Python number takes the
other operand's type. Division follows Python: `//` rounds down, `%` has the sign of the divisor, `/` of integers is
a float division.

The named functions (`addf`, `muli`, ...) take operands of one type and emit exactly that operation.

As in C and on the hardware, some things have no defined result where they happen with runtime values: integer division
by zero, a shift by the width or more, and reading registers that nobody has written or that lie past the tensor. With
values known when compiling they are errors.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

from mlir import ir

from flydsl.dialect.elements import ARITHMETIC_FLOATS, element_type
from flydsl.dialect.location import user_location
from flydsl.errors import ArgumentError
from flydsl.expr.emit import emit
from flydsl.expr.names import unknown_name
from flydsl.expr.numeric import (
    ArithValue,
    Boolean,
    Float32,
    Float64,
    Index,
    Int32,
    Int64,
    Integer,
    Numeric,
    as_numeric,
    is_python_number,
    numeric_class,
    require_numeric,
    wrap_scalar,
)

__all__ = [
    "ArithValue", "addf", "addi", "andi", "bitcast", "ceildivsi", "ceildivui", "cmpf", "cmpi", "constant", "divf",
    "divsi", "divui", "extf", "extsi", "extui", "floordivsi", "fptosi", "fptoui", "index", "index_cast",
    "maximumf", "maxnumf", "maxsi", "maxui", "minimumf", "minnumf", "minsi", "minui", "mulf", "muli", "negf",
    "ori", "remsi", "remui", "select", "shli", "shrsi", "shrui", "sitofp", "subf", "subi", "trunc_f", "truncf",
    "trunci", "uitofp", "xori",
]  # fmt: skip

# Operator -> the operation for floats, signed and unsigned integers.
_OPERATIONS = {
    "add": ("addf", "addi", "addi"),
    "sub": ("subf", "subi", "subi"),
    "mul": ("mulf", "muli", "muli"),
    "div": ("divf", None, None),
    "floordiv": (None, "floordivsi", "divui"),
    "mod": (None, "remsi", "remui"),
    "and": (None, "andi", "andi"),
    "or": (None, "ori", "ori"),
    "xor": (None, "xori", "xori"),
    "shl": (None, "shli", "shli"),
    "shr": (None, "shrsi", "shrui"),
}
_DIVISIONS = {"floordiv", "mod"}
_SHIFTS = {"shl", "shr"}
_BITWISE = {"and", "or", "xor"}
# Operations that take a Boolean as the number 0 or 1.
_COUNTING = {"add", "sub", "mul", "div", *_DIVISIONS, *_SHIFTS}
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
    "select": "select",
}  # fmt: skip


# --- operators -------------------------------------------------------------------------------------------------------


def binary(operation: str, left: Any, right: Any) -> Any:
    """`left <operation> right` for an operator's operands."""
    if not _is_operand(left) or not _is_operand(right):
        return _no_operand(operation, left, right)
    left, right = _wrapped(left), _wrapped(right)
    dtype = _common_type(operation, left, right)
    number = _check_numbers(operation, dtype, left, right)
    left, right = _like(left, dtype, right), _like(right, dtype, left)
    if isinstance(left, Numeric) and isinstance(right, Numeric) and left.is_static and right.is_static:
        folded = _fold(operation, dtype, left.value, right.value)
        if folded is not None:
            return folded
    if operation in _CMPF:
        return _compare(operation, dtype, left, right)
    if operation in ("floordiv", "mod") and dtype.signed and not dtype.is_float:
        return _signed_division(operation, left, right, number)
    name = _OPERATIONS[operation][0 if dtype.is_float else 1 if dtype.signed else 2]
    if name is None:
        raise ArgumentError(f"{dtype.__name__} has no operator {_SYMBOLS[operation]}", at=user_location())
    return _same_type(name, left, right)


def _is_operand(value: Any) -> bool:
    return isinstance(value, ArithValue | ir.Value) or is_python_number(value)


def _wrapped(value: Any) -> Any:
    return _wrap(value) if isinstance(value, ir.Value) else value


def _no_operand(operation: str, left: Any, right: Any) -> Any:
    """What Python itself defines cannot take over the operator, and equality with it is identity."""
    other = right if isinstance(left, ArithValue) else left
    if type(other).__module__ == "builtins" and operation not in ("eq", "ne"):
        raise ArgumentError(f"{left!r} {_SYMBOLS[operation]} {right!r}: {other!r} is not a number", at=user_location())
    return NotImplemented


def _common_type(operation: str, left: Any, right: Any) -> type[Numeric]:
    types = [value.dtype for value in (left, right) if isinstance(value, ArithValue)]
    types = types or [as_numeric(value).dtype for value in (left, right)]
    python = [value for value in (left, right) if is_python_number(value)]
    dtype = types[0] if len(types) == 1 else _wider(*types)
    if not dtype.is_float and any(not isinstance(value, Integral) for value in python):
        dtype = Float32
    elif dtype is Boolean and (operation in _COUNTING or any(not isinstance(value, bool) for value in python)):
        dtype = Int32
    if operation == "div" and not dtype.is_float:
        return Float64 if dtype.width >= 64 else Float32
    return dtype


def _wider(left: type[Numeric], right: type[Numeric]) -> type[Numeric]:
    """The common type of two: float over integer, then Index, then the wider, then the unsigned."""
    if left.is_float and right.is_float and left.width == right.width and left is not right:
        return Float32
    return max((left, right), key=lambda t: (t.is_float, t is Index, t.width, not t.signed))


def _check_numbers(operation: str, dtype: type[Numeric], left: Any, right: Any) -> int | None:
    """Refuse numbers known while tracing that the operation has no result for.

    Returns the right operand where it is such an integer.
    """
    for value in (left, right):
        if isinstance(value, Integral) and not _fits(operation, dtype, int(value)):
            raise ArgumentError(
                f"{value} is not a value of {dtype.__name__}, the type of the other operand of {_SYMBOLS[operation]}",
                at=user_location(),
                hint="convert the other operand to a wider type first, for example with .to(fx.Int64)",
            )
    number = _static_integer(right)
    if number is not None and not dtype.is_float:
        _check_right(_SYMBOLS[operation], operation in _DIVISIONS, operation in _SHIFTS, dtype, number)
    return number


def _fits(operation: str, dtype: type[Numeric], number: int) -> bool:
    if not issubclass(dtype, Integer) or dtype.fits(number):
        return True
    # In bitwise operations a number such as 0xFFFFFFFF or -1 stands for its bits.
    return operation in _BITWISE and -(1 << (dtype.width - 1)) <= number < 1 << dtype.width


def _static_integer(value: Any) -> int | None:
    if isinstance(value, Numeric) and value.is_static:
        value = value.value
    return int(value) if isinstance(value, Integral) else None


def _check_right(symbol: str, divides: bool, shifts: bool, dtype: type[Numeric], number: int) -> None:
    if divides and number == 0:
        raise ArgumentError(f"{symbol} of a {dtype.__name__} by zero", at=user_location())
    if shifts and not 0 <= number < dtype.width:
        raise ArgumentError(
            f"{symbol} of a {dtype.__name__} by {number}: it has {dtype.width} bits",
            at=user_location(),
            hint=f"shift by 0 to {dtype.width - 1}",
        )


def _like(value: Any, dtype: type[Numeric], other: Any) -> Any:
    """`value` as `dtype`; a scalar beside a vector becomes a vector."""
    from flydsl.expr.vector import Vector

    if isinstance(value, Vector):
        return value.to(dtype)
    if isinstance(value, Integral) and issubclass(dtype, Integer) and dtype is not Boolean:
        value = dtype.wrapped(int(value))
    scalar = value if isinstance(value, Numeric) and value.dtype is dtype else dtype(value)
    return Vector.filled(other.shape, scalar, dtype) if isinstance(other, Vector) else scalar


def _fold(operation: str, dtype: type[Numeric], left: Any, right: Any) -> Any:
    """The result for two Python integers, or None where it is left to the program."""
    if dtype.is_float or operation not in _PYTHON:
        return None
    result = _PYTHON[operation](left, right)
    if operation in _CMPF:
        return Boolean(result)
    return dtype(result) if dtype is Boolean else dtype(dtype.wrapped(result))  # type: ignore[attr-defined]


def _compare(operation: str, dtype: type[Numeric], left: ArithValue, right: ArithValue) -> Any:
    if dtype.is_float:
        return cmpf(_CMPF[operation], left, right)
    return cmpi((_CMPI_SIGNED if dtype.signed else _CMPI_UNSIGNED)[operation], left, right)


def _signed_division(operation: str, left: Any, right: Any, divisor: int | None) -> Any:
    """Python's `//` and `%`. A constant power of two takes one shift or mask, which round down as Python does.

    divisor: the right operand where it is known. By -1 the machine's division of the smallest integer is undefined;
    the negation wraps.
    """
    floor = operation == "floordiv"
    if divisor == 1:
        return left if floor else _same_type("xori", left, left)
    if divisor == -1:
        return negate(left) if floor else _same_type("xori", left, left)
    if divisor is not None and divisor > 0 and divisor & (divisor - 1) == 0:
        return shrsi(left, divisor.bit_length() - 1) if floor else andi(left, divisor - 1)
    if floor:
        return floordivsi(left, right)
    remainder = remsi(left, right)
    wrong_sign = (remainder != 0) & ((remainder ^ right) < 0)
    return select(wrong_sign, addi(remainder, right), remainder)


def negate(value: Any) -> Any:
    """`-value`."""
    if value.dtype.is_float and not (isinstance(value, Numeric) and value.is_static):
        return negf(value)
    return value.dtype(-value.value) if value.dtype.is_float else binary("sub", 0, value)


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
    element = _element(value)
    if wants_float and isinstance(element, ir.FloatType) and str(element) not in ARITHMETIC_FLOATS:
        raise ArgumentError(
            f"arith.{name} of {value.type}: {element} is a format to store, without arithmetic", at=user_location()
        )
    if isinstance(element, ir.FloatType) != wants_float:
        raise ArgumentError(
            f"arith.{name} takes {'floats' if wants_float else 'integers'}, not {value.type}",
            at=user_location(),
            hint="the operators + - * / choose the operation by the operand types",
        )


def _beside(value: Any, other: Any) -> Any:
    """A Python number takes the other operand's type."""
    if not is_python_number(value):
        return value
    if not isinstance(other, ArithValue):
        return as_numeric(value)
    return _like(other.dtype(value), other.dtype, other)


def _check_operands(name: str, lhs: ir.Value, rhs: ir.Value, wants_float: bool) -> None:
    if lhs.type != rhs.type:
        raise ArgumentError(
            f"arith.{name} of {lhs.type} and {rhs.type}: the types differ",
            at=user_location(),
            hint="convert one of them, for example with .to(fx.Float32)",
        )
    _check_kind(name, lhs, wants_float)


def _same_type(name: str, left: Any, right: Any) -> Any:
    """Emit `arith.<name>` on two operands of one type; a Python number takes the other's type."""
    left, right = _wrapped(left), _wrapped(right)
    number = _static_integer(right)
    left, right = _beside(left, right), _beside(right, left)
    lhs, rhs = _raw(left), _raw(right)
    _check_operands(name, lhs, rhs, name.endswith("f"))
    if number is not None:
        divides = name.startswith(("div", "rem", "floordiv", "ceildiv"))
        _check_right(f"arith.{name}", divides, name in ("shli", "shrsi", "shrui"), left.dtype, number)
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
    if index:
        return Index(value)
    if type is None:
        return as_numeric(value)
    dtype = numeric_class(type) if isinstance(type, ir.Type) else require_numeric("constant", type)
    return dtype(value)


def index(value: int) -> Any:
    """An Index constant."""
    return Index(value)


def _predicate(predicate: Any, names: dict[str, int]) -> int:
    if isinstance(predicate, str) and predicate in names:
        return names[predicate]
    if isinstance(predicate, Integral) and int(predicate) in names.values():
        return int(predicate)
    raise ArgumentError(f"{predicate!r} is not a predicate", at=user_location(), hint=f"predicates: {', '.join(names)}")


_CMPF_ORDER = ("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true")  # fmt: skip  # noqa: E501
_CMPF_NAMES = {name: number for number, name in enumerate(_CMPF_ORDER)}
_CMPI_NAMES = {
    name: number for number, name in enumerate(["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"])
}


def _compare_op(name: str, predicate: int, left: Any, right: Any) -> Any:
    left, right = _wrapped(left), _wrapped(right)
    lhs, rhs = _raw(_beside(left, right)), _raw(_beside(right, left))
    _check_operands(name, lhs, rhs, name == "cmpf")
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
    """`true_value` where `condition` holds, else `false_value`; both are evaluated. The two take a common type.

    A scalar condition chooses between whole vectors, a vector condition element by element.
    """
    from flydsl.expr.vector import Vector

    for value in (condition, true_value, false_value):
        if not _is_operand(value):
            raise ArgumentError(f"select: {value!r} is not a number", at=user_location())
    chooser, *values = map(_wrapped, (condition, true_value, false_value))
    dtype = _common_type("select", *values)
    _check_numbers("select", dtype, *values)
    vectors = [value for value in (*values, chooser) if isinstance(value, Vector)]
    if len({vector.shape for vector in vectors}) > 1:
        shapes = ", ".join(str(vector.value.type) for vector in vectors)
        raise ArgumentError(f"select on vectors of different shapes: {shapes}", at=user_location())
    beside = vectors[0] if vectors else None
    lhs, rhs = (_like(value, dtype, beside).ir_value() for value in values)
    chooser = as_numeric(chooser)
    if chooser.dtype is not Boolean:
        chooser = chooser != 0
    return _wrap(emit("arith.select", [chooser.ir_value(), lhs, rhs], [lhs.type]).result, dtype)


# --- conversions -----------------------------------------------------------------------------------------------------


def convert(value: ArithValue, target: type[Numeric]) -> ir.Value:
    """Convert a runtime scalar or vector to another scalar type, rounding to nearest even.

    Integers to Boolean compare with zero; float to integer truncates toward zero. Raises ArgumentError for floats
    below 16 bits.
    """
    source, operand = value.dtype, value.ir_value()
    if source.ir_type == target.ir_type:
        return operand
    for dtype in (source, target):
        if dtype.is_float and dtype.mlir_name not in ARITHMETIC_FLOATS:
            raise ArgumentError(
                f"conversion of runtime values from {source.__name__} to {target.__name__} is not there yet",
                at=user_location(),
                hint=f"{dtype.__name__} values can be loaded, stored and bitcast",
            )
    if target is Boolean:
        return (value != 0).ir_value()
    if (middle := _stepping_stone(source, target)) is not None:
        return convert(_wrap(convert(value, middle), middle), target)
    if Index in (source, target):
        return _cast("index_cast" if source.signed else "index_castui", operand, target.ir_type)
    return _cast(_cast_name(source, target), operand, target.ir_type)


def _stepping_stone(source: type[Numeric], target: type[Numeric]) -> type[Numeric] | None:
    """The type to go through where MLIR has no direct cast."""
    if source.is_float and target.is_float:
        return Float32 if source.width == target.width else None
    return Int64 if Index in (source, target) and (source.is_float or target.is_float) else None


def _cast_name(source: type[Numeric], target: type[Numeric]) -> str:
    if source.is_float and target.is_float:
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


# Cast -> (from a float, to a float, how the width changes: 1 wider, -1 narrower, None either way).
_CASTS = {
    "extf": (True, True, 1), "truncf": (True, True, -1), "extsi": (False, False, 1), "extui": (False, False, 1),
    "trunci": (False, False, -1), "sitofp": (False, True, None), "uitofp": (False, True, None),
    "fptosi": (True, False, None), "fptoui": (True, False, None),
}  # fmt: skip


def _check_cast(name: str, source: ir.Type, target: ir.Type) -> None:
    """Raise ArgumentError unless MLIR and LLVM have this cast between two scalar types."""
    types = (numeric_class(source), numeric_class(target))
    widths = [dtype.width for dtype in types]
    indices = [dtype is Index for dtype in types]
    if name == "index_cast":
        good = indices[0] != indices[1] and not any(dtype.is_float for dtype in types)
    elif name == "bitcast":
        good = widths[0] == widths[1] and not any(indices)
    else:
        from_float, to_float, change = _CASTS[name]
        grows = (widths[1] > widths[0]) - (widths[1] < widths[0])
        good = [dtype.is_float for dtype in types] == [from_float, to_float] and change in (None, grows)
        good = good and not any(indices)
        good = good and all(not t.is_float or t.mlir_name in ARITHMETIC_FLOATS for t in types)
    if not good:
        raise ArgumentError(f"no arith.{name} from {source} to {target}", at=user_location())


def _cast_function(name: str, summary: str) -> Callable[[Any, Any], Any]:
    def function(result_type: Any, value: Any) -> Any:
        if isinstance(value, type | ir.Type) and not isinstance(result_type, type | ir.Type):
            result_type, value = value, result_type
        operand = _raw(value)
        element, dtype = _result_type(name, result_type)
        _check_cast(name, _element(operand), element)
        return _wrap(_cast(name, operand, element), dtype)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`arith.{name}(result_type, value)`: {summary}. The two arguments may come in either order."
    return function


def _result_type(name: str, given: Any) -> tuple[ir.Type, type[Numeric] | None]:
    """A cast's result element as an MLIR type, and as a scalar type where that was given."""
    if isinstance(given, ir.Type):
        return (given.element_type if isinstance(given, ir.VectorType) else given), None
    if isinstance(given, type) and issubclass(given, Numeric):
        return given.ir_type, given
    raise ArgumentError(f"arith.{name}: {given!r} is not a type", at=user_location(), hint="such as fx.Int32")


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


__getattr__ = unknown_name(__name__, globals())
