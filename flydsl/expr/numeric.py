"""Scalar types and values: `fx.Int32`, `fx.Float16`, ...

A class is both the type (`n: fx.Int32`, `fx.make_rmem_tensor(1, fx.Float32)`) and the constructor of its values: from
a Python number a constant, from another value a conversion. A value holds a Python number until an operation needs it
in the program, so `fx.Int32(7)` also works where nothing is traced.
"""

from __future__ import annotations

import operator
from typing import Any, ClassVar

from mlir import ir

from flydsl.dialect.elements import element_bits, element_type
from flydsl.dialect.location import user_location
from flydsl.errors import ArgumentError, TraceError
from flydsl.expr.emit import emit, require_trace


class ArithValue:
    """Anything with arithmetic operators: a scalar (`Numeric`) or a `Vector` of scalars."""

    dtype: type[Numeric]

    def ir_value(self) -> ir.Value:
        """The value in the program that is being traced."""
        raise NotImplementedError(f"{type(self).__name__} has no IR value")

    def _binary(self, operation: str, other: Any, reflected: bool = False) -> Any:
        from flydsl.expr import arith

        left, right = (other, self) if reflected else (self, other)
        return arith.binary(operation, left, right)

    def __add__(self, other: Any) -> Any:
        return self._binary("add", other)

    def __radd__(self, other: Any) -> Any:
        return self._binary("add", other, True)

    def __sub__(self, other: Any) -> Any:
        return self._binary("sub", other)

    def __rsub__(self, other: Any) -> Any:
        return self._binary("sub", other, True)

    def __mul__(self, other: Any) -> Any:
        return self._binary("mul", other)

    def __rmul__(self, other: Any) -> Any:
        return self._binary("mul", other, True)

    def __truediv__(self, other: Any) -> Any:
        return self._binary("div", other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._binary("div", other, True)

    def __floordiv__(self, other: Any) -> Any:
        return self._binary("floordiv", other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._binary("floordiv", other, True)

    def __mod__(self, other: Any) -> Any:
        return self._binary("mod", other)

    def __rmod__(self, other: Any) -> Any:
        return self._binary("mod", other, True)

    def __and__(self, other: Any) -> Any:
        return self._binary("and", other)

    def __rand__(self, other: Any) -> Any:
        return self._binary("and", other, True)

    def __or__(self, other: Any) -> Any:
        return self._binary("or", other)

    def __ror__(self, other: Any) -> Any:
        return self._binary("or", other, True)

    def __xor__(self, other: Any) -> Any:
        return self._binary("xor", other)

    def __rxor__(self, other: Any) -> Any:
        return self._binary("xor", other, True)

    def __lshift__(self, other: Any) -> Any:
        return self._binary("shl", other)

    def __rlshift__(self, other: Any) -> Any:
        return self._binary("shl", other, True)

    def __rshift__(self, other: Any) -> Any:
        return self._binary("shr", other)

    def __rrshift__(self, other: Any) -> Any:
        return self._binary("shr", other, True)

    def __lt__(self, other: Any) -> Any:
        return self._binary("lt", other)

    def __le__(self, other: Any) -> Any:
        return self._binary("le", other)

    def __gt__(self, other: Any) -> Any:
        return self._binary("gt", other)

    def __ge__(self, other: Any) -> Any:
        return self._binary("ge", other)

    def __eq__(self, other: object) -> Any:
        return self._binary("eq", other)

    def __ne__(self, other: object) -> Any:
        return self._binary("ne", other)

    __hash__ = object.__hash__

    def __neg__(self) -> Any:
        from flydsl.expr import arith

        return arith.negate(self)

    def __pos__(self) -> Any:
        return self

    def __invert__(self) -> Any:
        return self._binary("xor", -1 if self.dtype is not Boolean else True)


class NumericMeta(type):
    """Lets a scalar type print as its name and convert from the MLIR spelling."""

    mlir_name: str

    def __repr__(cls) -> str:
        return cls.__name__

    @property
    def width(cls) -> int:
        """Width in bits."""
        return element_bits(cls.mlir_name)

    @property
    def ir_type(cls) -> ir.Type:
        """The MLIR type."""
        return element_type(cls.mlir_name)


class Numeric(ArithValue, metaclass=NumericMeta):
    """A scalar value.

    value: a Python number, or the `ir.Value` that holds it in the program.
    """

    mlir_name: ClassVar[str]
    is_float: ClassVar[bool] = False
    signed: ClassVar[bool] = True

    def __init__(self, value: Any) -> None:
        if isinstance(value, Numeric):
            value = _converted(value, type(self))
        elif isinstance(value, ir.Value):
            value = _converted(wrap_scalar(value), type(self))
        elif isinstance(value, bool | int | float) or hasattr(value, "__index__"):
            value = self._checked(value)
        else:
            raise ArgumentError(
                f"{type(self).__name__}({value!r}): {type(value).__name__} is not a number", at=user_location()
            )
        self.value: Any = value

    @classmethod
    def of(cls, value: ir.Value) -> Any:
        """Wrap an `ir.Value` that already has this type."""
        made = cls.__new__(cls)
        made.value = value
        return made

    @classmethod
    def _checked(cls, value: Any) -> Any:
        """A Python number as this type holds it; raises ArgumentError where it does not fit."""
        raise NotImplementedError(f"{cls.__name__} holds no values")

    @property
    def dtype(self) -> type[Numeric]:  # type: ignore[override]
        return type(self)

    @property
    def is_static(self) -> bool:
        """Whether the value is known while tracing."""
        return not isinstance(self.value, ir.Value)

    def ir_value(self) -> ir.Value:
        if not self.is_static:
            return self.value
        require_trace(f"{self!r} as a runtime value")
        attribute = self._attribute(self.value)
        return emit("arith.constant", results=[type(self).ir_type], attributes={"value": attribute}).result

    @classmethod
    def _attribute(cls, value: Any) -> ir.Attribute:
        raise NotImplementedError(f"{cls.__name__} holds no values")

    def to(self, dtype: type[Numeric]) -> Any:
        """Convert to another scalar type."""
        return dtype(self)

    def select(self, true_value: Any, false_value: Any) -> Any:
        """`true_value` where this is not zero, else `false_value`; both are evaluated."""
        from flydsl.expr import arith

        return arith.select(self, true_value, false_value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value if self.is_static else '?'})"

    def __bool__(self) -> bool:
        if self.is_static:
            return bool(self.value)
        raise TraceError(
            f"a runtime {type(self).__name__} cannot decide a Python branch: its value is known on the device only",
            at=user_location(),
            hint="select with `condition.select(a, b)`; `if` on runtime values is not there yet",
        )

    def __index__(self) -> int:
        if self.is_static and not self.is_float:
            return operator.index(self.value)
        raise TraceError(
            f"a runtime {type(self).__name__} is not a Python integer",
            at=user_location(),
            hint="a value that Python itself needs must be known when compiling: pass it as fx.Constexpr[int]",
        )

    def __float__(self) -> float:
        if self.is_static:
            return float(self.value)
        raise TraceError(f"a runtime {type(self).__name__} is not a Python float", at=user_location())

    def __int__(self) -> int:
        return self.__index__()


class Integer(Numeric):
    """Integers of a fixed width. Overflow wraps, as on the device; a Python number that does not fit is an error."""

    @classmethod
    def _checked(cls, value: Any) -> int:
        if isinstance(value, float) and not value.is_integer():
            raise ArgumentError(
                f"{cls.__name__}({value}): not an integer",
                at=user_location(),
                hint="truncate explicitly: int(...) of the Python number",
            )
        number = int(value)
        low = -(1 << (cls.width - 1)) if cls.signed else 0
        high = (1 << (cls.width - 1)) - 1 if cls.signed else (1 << cls.width) - 1
        if not low <= number <= high:
            # A bit mask such as Int32(0xFFFFFFFF) is the same 32 bits.
            if cls.signed and 0 <= number < (1 << cls.width):
                return number - (1 << cls.width)
            raise ArgumentError(f"{cls.__name__}({number}): outside {low} to {high}", at=user_location())
        return number

    @classmethod
    def wrapped(cls, number: int) -> int:
        """`number` modulo 2^width, in this type's range."""
        number &= (1 << cls.width) - 1
        return number - (1 << cls.width) if cls.signed and number >> (cls.width - 1) else number

    @classmethod
    def _attribute(cls, value: int) -> ir.Attribute:
        if cls.width > 64:
            return ir.Attribute.parse(f"{value} : {cls.mlir_name}")
        if not cls.signed and value >> (cls.width - 1):
            value -= 1 << cls.width
        return ir.IntegerAttr.get(cls.ir_type, value)


class Float(Numeric):
    """Floating point numbers. A Python number is rounded to the type's nearest."""

    is_float = True

    @classmethod
    def _checked(cls, value: Any) -> float:
        return float(value)

    @classmethod
    def _attribute(cls, value: float) -> ir.Attribute:
        return ir.FloatAttr.get(cls.ir_type, value)


class Boolean(Integer):
    """True or false: i1, the result of comparisons."""

    mlir_name = "i1"
    signed = False

    @classmethod
    def _checked(cls, value: Any) -> bool:
        return bool(value)

    @classmethod
    def _attribute(cls, value: int) -> ir.Attribute:
        return ir.BoolAttr.get(bool(value))


class Int4(Integer):
    mlir_name = "i4"


class Int8(Integer):
    mlir_name = "i8"


class Int16(Integer):
    mlir_name = "i16"


class Int32(Integer):
    mlir_name = "i32"


class Int64(Integer):
    mlir_name = "i64"


class Int128(Integer):
    mlir_name = "i128"


class Uint8(Integer):
    mlir_name = "i8"
    signed = False


class Uint16(Integer):
    mlir_name = "i16"
    signed = False


class Uint32(Integer):
    mlir_name = "i32"
    signed = False


class Uint64(Integer):
    mlir_name = "i64"
    signed = False


class Uint128(Integer):
    mlir_name = "i128"
    signed = False


class Index(Integer):
    """MLIR's index type: 64 bits on the device."""

    mlir_name = "index"


class Float16(Float):
    mlir_name = "f16"


class BFloat16(Float):
    mlir_name = "bf16"


class Float32(Float):
    mlir_name = "f32"


class Float64(Float):
    mlir_name = "f64"


class Float8E4M3(Float):
    mlir_name = "f8E4M3"


class Float8E4M3FN(Float):
    mlir_name = "f8E4M3FN"


class Float8E4M3FNUZ(Float):
    mlir_name = "f8E4M3FNUZ"


class Float8E4M3B11FNUZ(Float):
    mlir_name = "f8E4M3B11FNUZ"


class Float8E5M2(Float):
    mlir_name = "f8E5M2"


class Float8E8M0FNU(Float):
    mlir_name = "f8E8M0FNU"


class Float6E2M3FN(Float):
    mlir_name = "f6E2M3FN"


class Float6E3M2FN(Float):
    mlir_name = "f6E3M2FN"


class Float4E2M1FN(Float):
    mlir_name = "f4E2M1FN"


SIGNED_AND_FLOAT: tuple[type[Numeric], ...] = (
    Boolean,
    Int4,
    Int8,
    Int16,
    Int32,
    Int64,
    Int128,
    Index,
    Float16,
    BFloat16,
    Float32,
    Float64,
    Float8E4M3,
    Float8E4M3FN,
    Float8E4M3FNUZ,
    Float8E4M3B11FNUZ,
    Float8E5M2,
    Float8E8M0FNU,
    Float6E2M3FN,
    Float6E3M2FN,
    Float4E2M1FN,
)
# MLIR's integers carry no sign; a bare value is taken as signed.
_BY_MLIR_NAME = {cls.mlir_name: cls for cls in SIGNED_AND_FLOAT}
_BY_MLIR_TYPE: dict[ir.Type, type[Numeric]] = {}


def numeric_class(element: str | ir.Type) -> type[Numeric]:
    """The scalar type for an MLIR type or its name; integers are taken as signed.

    >>> numeric_class("bf16")
    BFloat16
    """
    if isinstance(element, ir.Type):
        found = _BY_MLIR_TYPE.get(element)
        if found is None:
            found = _BY_MLIR_TYPE[element] = numeric_class(str(element))
        return found
    if element not in _BY_MLIR_NAME:
        raise ArgumentError(f"{element} is not a scalar type of the DSL", hint=f"known: {', '.join(_BY_MLIR_NAME)}")
    return _BY_MLIR_NAME[element]


def wrap_scalar(value: ir.Value) -> Any:
    """An `ir.Value` of scalar type as a Numeric."""
    return numeric_class(value.type).of(value)


def as_numeric(value: Any) -> Any:
    """A Python number as the DSL takes it: int is Int32 (Int64 if it does not fit), float Float32, bool Boolean."""
    if isinstance(value, ArithValue):
        return value
    if isinstance(value, ir.Value):
        return wrap_scalar(value)
    if isinstance(value, bool):
        return Boolean(value)
    if isinstance(value, int):
        return Int32(value) if -(1 << 31) <= value < (1 << 31) else Int64(value)
    if isinstance(value, float):
        return Float32(value)
    raise ArgumentError(f"{value!r} of type {type(value).__name__} is not a number", at=user_location())


def _converted(value: Numeric, target: type[Numeric]) -> Any:
    """The payload of `value` as `target` holds it: a Python number or an `ir.Value`."""
    if not value.is_static:
        from flydsl.expr import arith

        return arith.convert(value, target)
    number = value.value
    if issubclass(target, Integer) and target is not Boolean:
        return target.wrapped(int(number))
    return target._checked(number)
