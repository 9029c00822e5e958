"""Numbers and their types as MLIR has them, for programs that build operations by hand: FlyDSL's `utils.arith`.

    kind = element_type(value.type)
    wide = fp_to_fp(value, T.f32) if is_narrow_float_type(kind) else value

Types are MLIR's or the DSL's; results are bare values, which stand for themselves in MLIR's own builders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlir import ir

from flydsl.dialect.elements import element_type as named_type
from flydsl.dialect.location import argument_error
from flydsl.expr.numbers.arith_value import ArithValue
from flydsl.expr.numbers.fastmath_flags import current_fastmath
from flydsl.expr.numbers.vector_value import Vector
from flydsl.expr.numeric import Boolean, Numeric, as_numeric, bare_value, is_python_number, numeric_class

if TYPE_CHECKING:
    from flydsl.expr.kinds import FastMath, Result, ScalarType, Value

__all__ = [
    "arith_const", "element_type", "fp_to_fp", "fp_to_int", "int_to_int", "is_float_type", "is_integer_like_type",
    "is_narrow_float_type", "recast_type", "resolve_fastmath",
]  # fmt: skip

_NARROW_BITS = 8


def resolve_fastmath(explicit: FastMath) -> Any:
    """Fastmath flags that are stated, or those of the surrounding `with fx.fastmath(...)`."""
    return current_fastmath() if explicit is None else explicit


def element_type(ty: ScalarType) -> ir.Type:
    """The type of a vector's elements; of any other type that itself."""
    kind = ty.ir_type if isinstance(ty, type) and issubclass(ty, Numeric) else ty
    return ir.VectorType(kind).element_type if isinstance(kind, ir.VectorType) else kind


def is_integer_like_type(ty: ScalarType) -> bool:
    """True for integers and indices, and vectors of them."""
    return isinstance(element_type(ty), ir.IntegerType | ir.IndexType)


def is_float_type(ty: ScalarType) -> bool:
    """True for floats, and vectors of them."""
    return isinstance(element_type(ty), ir.FloatType)


def is_narrow_float_type(ty: ScalarType) -> bool:
    """True for floats of at most 8 bits, which nothing computes with, and vectors of them."""
    return is_float_type(ty) and numeric_class(element_type(ty)).width <= _NARROW_BITS


def recast_type(src_type: ScalarType, res_elem_type: ScalarType) -> ir.Type:
    """A scalar's or vector's type with elements of another."""
    element = element_type(res_elem_type)
    return ir.VectorType.get(src_type.shape, element) if isinstance(src_type, ir.VectorType) else element


def arith_const(value: Value, ty: ScalarType | None = None) -> Result:
    """A constant of a type; a vector type repeats the number. A value of the program stays.

    ty: by default i1, i32 and f32 for Python's bool, int and float.
    Raises ArgumentError for what is no number, or a type of none.
    """
    if isinstance(value, ir.Value | ArithValue):
        return value
    if not is_python_number(value):
        raise argument_error(f"arith_const({value!r}): this is not a number", "pass a Python number")
    if ty is None:
        kinds = {bool: "i1", int: "i32", float: "f32"}
        ty = named_type(next((name for kind, name in kinds.items() if isinstance(value, kind)), "f32"))
    if not is_integer_like_type(ty) and not is_float_type(ty):
        raise argument_error(f"arith_const({value!r}, {ty}): no numbers are of this type", "pass T.i32, for example")
    number = numeric_class(element_type(ty))(value)
    made = Vector.filled(list(ty.shape), number, type(number)) if isinstance(ty, ir.VectorType) else number
    return bare_value(made.ir_value())


def fp_to_fp(src: Value, res_elem_type: ScalarType, *, rounding_mode: Any = None) -> Result:
    """A float, or each of a vector, as another float type. rounding_mode: as `.to(...)` takes it, to fewer bits."""
    number, target = _operand("fp_to_fp", src, is_float=True), numeric_class(element_type(res_elem_type))
    if rounding_mode is None or target.width > number.dtype.width:
        return _converted(number, target)
    return bare_value(number.to(target, rounding_mode=rounding_mode).ir_value())


def fp_to_int(src: Value, signed: bool, res_elem_type: ScalarType) -> Result:
    """A float, or each of a vector, as an integer, its fraction dropped. signed: the sign of the integer type."""
    number = _operand("fp_to_int", src, is_float=True)
    return _converted(number, _of_sign(numeric_class(element_type(res_elem_type)), signed))


def int_to_int(src: Value, dst_type: ScalarType, *, signed: bool | None = None) -> Result:
    """An integer, or each of a vector, as an integer of another width.

    signed: repeat the sign in the bits that are added; by default as the value's own type says.
    """
    number = _operand("int_to_int", src, is_float=False)
    if signed is not None and number.dtype is not Boolean:
        number = number.to(_of_sign(number.dtype, signed))
    return _converted(number, numeric_class(element_type(dst_type)))


def _operand(name: str, value: Any, *, is_float: bool) -> Any:
    number = as_numeric(value)
    if number.dtype.is_float != is_float:
        raise argument_error(f"{name} of {number.dtype.__name__}", "value.to(dtype) converts any number")
    return number


def _of_sign(kind: type[Numeric], signed: bool) -> type[Numeric]:
    """The integer type of the same width, with or without a sign."""
    name = kind.mlir_name
    has_both = name.startswith("i") and name not in ("i1", "i4", "index")
    return numeric_class(f"u{name}" if has_both and not signed else name)


def _converted(number: Any, target: type[Numeric]) -> Any:
    return bare_value(number.to(target).ir_value())
