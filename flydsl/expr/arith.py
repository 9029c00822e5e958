"""The operations of MLIR's arith dialect by name.

`addf`, `muli` and the like take operands of one type and emit exactly that operation; a Python number takes the other
operand's type. The operators `+`, `*`, ... choose among them by the operands' types (`flydsl.expr.numbers.operators`).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from numbers import Integral
from typing import TYPE_CHECKING, Any

from mlir import ir

from flydsl import env
from flydsl.dialect.elements import element_type
from flydsl.dialect.location import argument_error
from flydsl.expr.flydsl_names.names import unknown_name
from flydsl.expr.numbers.arith_value import ArithValue, add_methods
from flydsl.expr.numbers.conversions import (
    bitcast,
    extf,
    extsi,
    extui,
    fptosi,
    fptoui,
    index_cast,
    int_to_fp,
    sitofp,
    trunc_f,
    truncf,
    trunci,
    uitofp,
)
from flydsl.expr.numbers.elementwise import (
    arith_result,
    broadcast_together,
    check_kind,
    check_operands,
    converted_like,
    dtype_of,
    emit_binary,
    from_ir,
    ir_value_of,
    is_operand,
    number_like,
    shape_of,
)
from flydsl.expr.numbers.fastmath_flags import FastMathFlags, fastmath, fastmath_attribute
from flydsl.expr.numbers.promotion import check_numbers, common_type
from flydsl.expr.numbers.rounding_mode import RoundingMode
from flydsl.expr.numbers.vector_value import Vector
from flydsl.expr.numeric import (
    Boolean,
    Index,
    Numeric,
    as_numeric,
    bare_like,
    is_python_number,
    numeric_class,
    require_numeric,
)
from flydsl.expr.tracing.described import described
from flydsl.expr.tracing.emit import emit

if TYPE_CHECKING:
    from flydsl.expr.kinds import FastMath, Result, ScalarType, Value

__all__ = [
    "ArithValue", "CmpFPredicate", "CmpIPredicate", "FastMathFlags", "RoundingMode", "addf", "addi", "andi", "bitcast",
    "ceildivsi", "ceildivui", "cmpf", "cmpi", "constant", "constant_vector", "divf", "divsi", "divui",
    "extf", "extsi", "extui", "fastmath", "floordivsi", "fptosi", "fptoui", "index", "index_cast", "int_to_fp",
    "maximumf", "maxnumf", "maxsi", "maxui", "minimumf", "minnumf", "minsi", "minui", "mulf", "muli", "negf", "ori",
    "remsi", "remui", "select", "shli", "shrsi", "shrui", "sitofp", "subf", "subi", "trunc_f", "truncf", "trunci",
    "uitofp", "unwrap", "xori",
]  # fmt: skip


def _binary_function(name: str, summary: str) -> Callable[[Any, Any], Any]:
    def function(lhs: Value, rhs: Value) -> Result:
        return emit_binary(name, lhs, rhs)

    return _named(function, name, summary)


def _wrapping_function(name: str, summary: str) -> Callable[..., Any]:
    def function(lhs: Value, rhs: Value, *, overflow_flags: Any = None) -> Result:
        return emit_binary(name, lhs, rhs, overflow_flags=overflow_flags)

    promise = 'overflow_flags: "nsw", "nuw" or both promise that it does not wrap, signed or unsigned'
    return _named(function, name, f"{summary}, wrapping. {promise}")


def _float_function(name: str, summary: str) -> Callable[..., Any]:
    def function(lhs: Value, rhs: Value, *, fastmath: FastMath = None) -> Result:
        return emit_binary(name, lhs, rhs, fastmath)

    return _named(function, name, f'{summary}. fastmath: flags such as "contract" or "fast"')


def _named(function: Callable[..., Any], name: str, summary: str) -> Callable[..., Any]:
    return described(function, name, f"`arith.{name}`: {summary}. Operands are scalars or vectors of one type.")


addf = _float_function("addf", "floating point sum")
subf = _float_function("subf", "floating point difference")
mulf = _float_function("mulf", "floating point product")
divf = _float_function("divf", "floating point quotient")
maximumf = _float_function("maximumf", "maximum, NaN if either is")
minimumf = _float_function("minimumf", "minimum, NaN if either is")
maxnumf = _float_function("maxnumf", "maximum, the number if one is NaN")
minnumf = _float_function("minnumf", "minimum, the number if one is NaN")
addi = _wrapping_function("addi", "sum")
subi = _wrapping_function("subi", "difference")
muli = _wrapping_function("muli", "product")
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


# The names of MLIR's operation classes; `.result` of what they give is the value itself.
AddFOp, SubFOp, MulFOp, DivFOp = addf, subf, mulf, divf
MaximumFOp, MinimumFOp, MaxNumFOp, MinNumFOp = maximumf, minimumf, maxnumf, minnumf
AddIOp, SubIOp, MulIOp, AndIOp, OrIOp, XOrIOp, ShLIOp = addi, subi, muli, andi, ori, xori, shli
ShRSIOp, ShRUIOp, MaxSIOp, MinSIOp, MaxUIOp, MinUIOp = shrsi, shrui, maxsi, minsi, maxui, minui


def negf(operand: Any, fastmath: FastMath = None) -> Any:
    """`arith.negf`: negation."""
    value = ir_value_of(operand)
    check_kind("negf", value, True)
    result = emit("arith.negf", [value], [value.type], fastmath_attribute(fastmath)).result
    return bare_like(arith_result(result, dtype_of(operand), shape_of(operand)), operand)


def constant(value: Value, type: ScalarType | None = None, index: bool = False) -> Result:
    """A constant.

    value: a Python number.
    type: a scalar type of the DSL or an MLIR type; by default Int32, Float32 or Boolean after the number's own type.
    index: make it an Index.
    """
    if isinstance(type, ir.VectorType):
        return constant_vector(value, type)
    if index:
        type = Index
    return bare_like(as_numeric(value) if type is None else require_numeric("constant", type)(value))


def constant_vector(element_value: Value, vector_type: ir.Type) -> Result:
    """A constant vector with one number in every element. vector_type: an MLIR vector type."""
    if not isinstance(vector_type, ir.VectorType):
        hint = "such as fx.T.vec(4, fx.T.f32)"
        raise argument_error(f"constant_vector: {vector_type!r} is not an MLIR vector type", hint)
    return Vector.filled(tuple(vector_type.shape), element_value, numeric_class(vector_type.element_type))


def unwrap(val: Value, *, type: ScalarType | None = None, index: bool = False) -> ir.Value:
    """The `ir.Value` of a scalar or vector. index: convert it to the index type.

    type: that of a Python number, a scalar type of the DSL or an MLIR type; a value keeps its own.
    """
    if index:
        return Index(val).ir_value()
    return ir_value_of(val if type is None or not is_python_number(val) else constant(val, type))


def _to_raw(v: Any) -> ir.Value:
    return ir_value_of(v)


def index(value: int) -> Result:
    """An Index constant."""
    return bare_like(Index(value))


class CmpIPredicate(IntEnum):
    """MLIR's numbers of the predicates of `arith.cmpi`: `s` compares signed, `u` unsigned."""

    eq = 0
    ne = 1
    slt = 2
    sle = 3
    sgt = 4
    sge = 5
    ult = 6
    ule = 7
    ugt = 8
    uge = 9


class CmpFPredicate(IntEnum):
    """MLIR's numbers of the predicates of `arith.cmpf`; where an operand is NaN, `O` (ordered) is false, `U` true."""

    AlwaysFalse = 0
    OEQ = 1
    OGT = 2
    OGE = 3
    OLT = 4
    OLE = 5
    ONE = 6
    ORD = 7
    UEQ = 8
    UGT = 9
    UGE = 10
    ULT = 11
    ULE = 12
    UNE = 13
    UNO = 14
    AlwaysTrue = 15


def _predicate(predicate: Any, names: dict[str, int]) -> int:
    if isinstance(predicate, str) and predicate in names:
        return names[predicate]
    if isinstance(predicate, Integral) and int(predicate) in names.values():
        return int(predicate)
    raise argument_error(f"{predicate!r} is not a predicate", f"predicates: {', '.join(names)}")


# The names that MLIR's text has, which spells two of them otherwise.
_CMPF_NAMES = {predicate.name.lower().removeprefix("always"): predicate.value for predicate in CmpFPredicate}
_CMPI_NAMES = {predicate.name: predicate.value for predicate in CmpIPredicate}


def _compare_op(name: str, predicate: int, left: Any, right: Any, fastmath: Any = None) -> Any:
    left, right = from_ir(left), from_ir(right)
    left, right = broadcast_together(number_like(left, right), number_like(right, left))
    lhs, rhs = ir_value_of(left), ir_value_of(right)
    check_operands(name, lhs, rhs, name == "cmpf")
    i1 = element_type("i1")
    result = ir.VectorType.get(lhs.type.shape, i1) if isinstance(lhs.type, ir.VectorType) else i1
    attribute = ir.IntegerAttr.get(element_type("i64"), predicate)
    attributes = {"predicate": attribute, **fastmath_attribute(fastmath)}
    return arith_result(emit(f"arith.{name}", [lhs, rhs], [result], attributes).result, shape=shape_of(left))


def cmpi(predicate: str | int, lhs: Value, rhs: Value) -> Result:
    """`arith.cmpi`: predicate is MLIR's name (`slt`, `ult`, `eq`, ...) or number."""
    return _compare_op("cmpi", _predicate(predicate, _CMPI_NAMES), lhs, rhs)


def cmpf(predicate: str | int, lhs: Value, rhs: Value, fastmath: FastMath = None) -> Result:
    """`arith.cmpf`: predicate is MLIR's name (`olt`, `une`, ...) or number."""
    return _compare_op("cmpf", _predicate(predicate, _CMPF_NAMES), lhs, rhs, fastmath)


def select(condition: Any, true_value: Any, false_value: Any) -> Result:
    """`true_value` if `condition` holds, else `false_value`. Both are evaluated and converted to a common type.

    A scalar condition chooses between whole vectors, a vector condition element by element. Both may also be pointers
    of one type, such as descriptors of buffers.
    """
    if _are_pointers(true_value, false_value):
        chooser = as_numeric(condition)
        chooser = chooser if chooser.dtype is Boolean else chooser != 0
        return emit("arith.select", [chooser.ir_value(), true_value, false_value], [true_value.type]).result
    for value in (condition, true_value, false_value):
        if not is_operand(value):
            raise argument_error(f"select: {value!r} is not a number", "both values are numbers or vectors of one type")
    chooser, *values = map(from_ir, (condition, true_value, false_value))
    dtype = common_type("select", *values)
    check_numbers("select", dtype, *values)
    vectors = [value for value in (*values, chooser) if isinstance(value, Vector)]
    if len({vector.shape for vector in vectors}) > 1:
        shapes = ", ".join(map(repr, vectors))
        raise argument_error(
            f"select on vectors of different shapes: {shapes}",
            "broadcast them to one shape: vector.broadcast_to(shape)",
        )
    shaped = vectors[0] if vectors else None
    lhs, rhs = (converted_like(value, dtype, shaped).ir_value() for value in values)
    chooser = as_numeric(chooser)
    if chooser.dtype is not Boolean:
        chooser = chooser != 0
    result = emit("arith.select", [chooser.ir_value(), lhs, rhs], [lhs.type]).result
    return bare_like(arith_result(result, dtype, shape_of(*vectors)), true_value, false_value)


def _are_pointers(*values: Any) -> bool:
    """True for values of one of MLIR's pointer types."""
    types = [value.type for value in values if isinstance(value, ir.Value)]
    return len(types) == len(values) and types[0] == types[1] and str(types[0]).startswith("!llvm.ptr")


NegFOp, CmpIOp, CmpFOp, SelectOp = negf, cmpi, cmpf, select
ExtFOp, TruncFOp, ExtSIOp, ExtUIOp, TruncIOp, BitcastOp = extf, truncf, extsi, extui, trunci, bitcast
SIToFPOp, UIToFPOp, FPToSIOp, FPToUIOp, IndexCastOp = sitofp, uitofp, fptosi, fptoui, index_cast


def _chosen(condition: Any, true_value: Value, false_value: Value) -> Result:
    """`condition.select(true_value, false_value)`: `select`, where Python's numbers have types of their own.

    In FlyDSL 0.2.2, and beside a bare value, they take the other's type.
    """
    if not env.is_language_0_2_2():
        true_value, false_value = _typed_beside(true_value, false_value), _typed_beside(false_value, true_value)
    return select(condition, true_value, false_value)


def _typed_beside(value: Any, other: Any) -> Any:
    """A Python number as a value of its own type, beside a scalar of the DSL."""
    is_typed = isinstance(other, Numeric) and not other.bare
    return as_numeric(value) if is_python_number(value) and is_typed else value


ArithValue.select = _chosen
add_methods(addf, subf, mulf, divf, maximumf, minimumf, maxnumf, minnumf, extf, truncf)
__getattr__ = unknown_name(
    __name__, globals(), dict.fromkeys(("ceildiv", "max", "min"), "flydsl.expr.numbers.operators")
)
