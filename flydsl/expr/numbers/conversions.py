"""The casts of MLIR's arith dialect by name; `.to(...)` chooses one of them (`flydsl.expr.numeric.convert`).

A cast to the type that a value has is the value. A float becomes an integer by dropping its fraction; of one that the
integer type cannot hold, or a NaN, the integer is not defined (the hardware's conversion to 32 bits takes the nearest).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mlir import ir

from flydsl.dialect.elements import ARITHMETIC_FLOATS, scalar_of
from flydsl.dialect.location import argument_error
from flydsl.expr.numbers.elementwise import arith_result, ir_value_of, shape_of
from flydsl.expr.numbers.fastmath_flags import fastmath_attribute
from flydsl.expr.numeric import Float32, Index, Numeric, bare_like, cast_elements, element_of, numeric_class
from flydsl.expr.tracing.described import described

if TYPE_CHECKING:
    from flydsl.expr.kinds import Result, ScalarType, Value

# Cast -> (from a float, to a float, how the width changes: 1 wider, -1 narrower, None either way).
_CASTS = {
    "extf": (True, True, 1), "truncf": (True, True, -1), "extsi": (False, False, 1), "extui": (False, False, 1),
    "trunci": (False, False, -1), "sitofp": (False, True, None), "uitofp": (False, True, None),
    "fptosi": (True, False, None), "fptoui": (True, False, None),
}  # fmt: skip


def _check_cast(name: str, source: ir.Type, target: ir.Type) -> None:
    """Raise ArgumentError unless MLIR and LLVM support this cast between two scalar types."""
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
        raise argument_error(
            f"no arith.{name} from {source} to {target}", "value.to(dtype) chooses the operation by the two types"
        )


def _cast_function(name: str, summary: str) -> Callable[..., Any]:
    def function(result_type: ScalarType, value: Value, **options: object) -> Result:
        attributes = _cast_attributes(name, **options)
        if isinstance(value, type | ir.Type) and not isinstance(result_type, type | ir.Type):
            result_type, value = value, result_type
        operand = ir_value_of(value)
        element, dtype = _result_type(name, result_type)
        if element == element_of(operand):
            result = operand
        else:
            _check_cast(name, element_of(operand), element)
            result = cast_elements(name, operand, element, attributes)
        made = arith_result(result, dtype, shape_of(value))
        return bare_like(made) if dtype is None else bare_like(made, value)

    return described(
        function, name, f"`arith.{name}(result_type, value)`: {summary}. The two arguments may come in either order."
    )


def _cast_attributes(name: str, fastmath: Any = None) -> dict[str, ir.Attribute]:
    """fastmath: flags, of the two casts between floats."""
    if fastmath is not None and name not in ("extf", "truncf"):
        raise argument_error(f"arith.{name} takes no fastmath flags", "omit fastmath")
    return fastmath_attribute(fastmath)


def _result_type(name: str, given: Any) -> tuple[ir.Type, type[Numeric] | None]:
    """A cast's result element as an MLIR type, and as a scalar type if one was given."""
    if isinstance(given, ir.Type):
        return scalar_of(given), None
    if isinstance(given, type) and issubclass(given, Numeric):
        return given.ir_type, given
    raise argument_error(f"arith.{name}: {given!r} is not a type", "pass fx.Int32, for example")


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


def int_to_fp(src: Value, signed: bool = True, res_elem_type: ScalarType | None = None) -> Result:
    """Convert an integer to a float. signed: how to read its bits; res_elem_type: a scalar or MLIR type, or Float32."""
    return (sitofp if signed else uitofp)(Float32 if res_elem_type is None else res_elem_type, src)
