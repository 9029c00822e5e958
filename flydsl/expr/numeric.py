"""Scalar types and values: `fx.Int32`, `fx.Float16`, ...

A class is both the type (`n: fx.Int32`, `fx.make_rmem_tensor(1, fx.Float32)`) and the constructor of its values. It
makes a constant of a Python number, and converts another value. A value holds a Python number until an operation needs
it in the program, so `fx.Int32(7)` also works outside of a kernel.
"""

from __future__ import annotations

import math
import operator
import warnings
from copy import copy
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from mlir import ir

from flydsl.dialect.elements import ARITHMETIC_FLOATS, TORCH_ELEMENTS, element_bits, element_type, round_float
from flydsl.dialect.location import argument_error, trace_error
from flydsl.errors import ArgumentError
from flydsl.errors.places import user_location
from flydsl.expr.flydsl_names.names import unknown_name
from flydsl.expr.numbers.arith_value import ArithValue, functions
from flydsl.expr.numbers.rounding_mode import RoundingMode, direction_of
from flydsl.expr.numbers.truth import truth
from flydsl.expr.printing.refusals import WHILE_TRACED, TracedText, no_integer, no_text, no_truth, refuse_as_key
from flydsl.expr.tracing.emit import emit, require_trace
from flydsl.expr.tracing.executing import lanes_of, text_of_lanes, truth_of_lanes
from flydsl.expr.tracing.outlived import note
from flydsl.expr.tracing.undefined import Undefined, refuse_undefined

if TYPE_CHECKING:
    from flydsl.expr.kinds import Result, Value

__all__ = [
    "ArithValue", "BFloat16", "Boolean", "Float", "Float4E2M1FN", "Float6E2M3FN", "Float6E3M2FN", "Float8E4M3",
    "Float8E4M3B11FNUZ", "Float8E4M3FN", "Float8E4M3FNUZ", "Float8E5M2", "Float8E5M2FNUZ", "Float8E8M0FNU", "Float16",
    "Float32", "Float64", "Index", "Int4", "Int8", "Int16", "Int32", "Int64", "Int128", "Integer", "Numeric",
    "NumericMeta", "Uint8", "Uint16", "Uint32", "Uint64", "Uint128", "as_numeric",
]  # fmt: skip


def is_python_number(value: Any) -> bool:
    """True if a value is a number that is known while tracing: Python's own or NumPy's."""
    return isinstance(value, Real)


_OF_RUNTIME = (ir.Value, Undefined)
_NUMPY_NAMES = {
    "i1": "bool", "index": "int64", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "ui8": "uint8",
    "ui16": "uint16", "ui32": "uint32", "ui64": "uint64", "f16": "float16", "f32": "float32", "f64": "float64",
}  # fmt: skip


class NumericMeta(type):
    """Metaclass of scalar types: prints a type as its name and converts from the MLIR spelling."""

    mlir_name: str

    def __repr__(cls) -> str:
        return cls.__name__

    def __eq__(cls, other: object) -> bool:
        """True for the type itself, and for torch's and NumPy's types of the same elements."""
        if cls is other or not hasattr(cls, "mlir_name"):
            return cls is other
        if isinstance(other, np.dtype) or (isinstance(other, type) and issubclass(other, np.generic)):
            return bool(cls.numpy_dtype == np.dtype(other))
        if type(other).__module__ == "torch":
            return TORCH_ELEMENTS.get(str(other).removeprefix("torch.")) == cls.memory_name
        return False

    __hash__ = type.__hash__

    @property
    def width(cls) -> int:
        """Width in bits."""
        return element_bits(cls.mlir_name)

    @property
    def log_width(cls) -> int:
        """The logarithm of the width to the base of 2, rounded up.

        >>> Float16.log_width, Float6E2M3FN.log_width
        (4, 3)
        """
        return (cls.width - 1).bit_length()

    @property
    def memory_name(cls) -> str:
        """The MLIR name of elements of this type in memory, which says whether integers have a sign."""
        unsigned = not getattr(cls, "signed", True) and cls.mlir_name != "i1"
        return f"u{cls.mlir_name}" if unsigned else cls.mlir_name

    @property
    def ir_type(cls) -> ir.Type:
        """The MLIR type."""
        return element_type(cls.mlir_name)

    @property
    def is_integer(cls) -> bool:
        """True for integer and Boolean types."""
        return issubclass(cls, Integer)

    @property
    def numpy_dtype(cls) -> Any:
        """NumPy's type of the same numbers; None if it has none."""
        name = _NUMPY_NAMES.get(cls.memory_name)
        return None if name is None else np.dtype(name)

    @property
    def zero(cls) -> int | float:
        """Zero as a Python number."""
        return 0 if cls.is_integer else 0.0

    def from_ir_type(cls, kind: ir.Type) -> type[Numeric]:
        """The scalar type of an MLIR type; integers are signed."""
        return numeric_class(kind)

    def from_python_value(cls, value: Any) -> Any:
        """A Python number as a scalar: see `as_numeric`."""
        return as_numeric(value)


class Numeric(ArithValue, metaclass=NumericMeta):
    """A scalar value.

    value: a Python number, or the `ir.Value` that holds it in the program.
    """

    mlir_name: ClassVar[str]
    is_float: ClassVar[bool] = False
    signed: ClassVar[bool] = True

    def __new__(cls, value: Any) -> Any:
        """A scalar; for a vector, the vector with its elements converted."""
        if isinstance(value, ir.Value) and isinstance(value.type, ir.VectorType):
            value = functions.vector(value)
        if isinstance(value, ArithValue) and not isinstance(value, Numeric):
            return value.to(cls)
        return object.__new__(cls)

    def __init__(self, value: Any) -> None:
        require_numeric("a number", type(self))
        if isinstance(value, Numeric):
            value = _converted(value, type(self))
        elif isinstance(value, ir.Value):
            value = _converted(wrap_scalar(value), type(self))
        elif is_python_number(value):
            value = self._checked(value)
        else:
            refuse_undefined(value)
            raise argument_error(
                f"{type(self).__name__}({value!r}): {type(value).__name__} is not a number", _instead_of(value)
            )
        self.value: Any = value
        if isinstance(value, ir.Value):
            note(self)

    @classmethod
    def of(cls, value: ir.Value) -> Any:
        """Wrap an `ir.Value` that already has this type."""
        made = object.__new__(cls)
        made.value = value
        note(made)
        return made

    @classmethod
    def taken(cls, where: str, value: Any) -> Any:
        """A number for a parameter or field of this type: no fraction is dropped, and 3e9 does not wrap."""
        number = wrap_scalar(value) if isinstance(value, ir.Value) else value
        if isinstance(number, Numeric) and number.is_float and not cls.is_float:
            raise argument_error(
                f"{where} must be {cls.__name__}, got {type(number).__name__}",
                f"convert it with .to(fx.{cls.__name__})",
            )
        if issubclass(cls, Integer) and isinstance(number, int):
            cls._require_fit(where, number)
        if issubclass(cls, Integer) and isinstance(number, Integer) and not number.is_static:
            cls._warn_of_larger(where, type(number))
        try:
            return cls.exactly(number)
        except ArgumentError as error:
            raise argument_error(f"{where} expects {cls.__name__}: {error.message}", error.hint) from None

    @classmethod
    def exactly(cls, value: Any) -> Any:
        """A number without an explicit conversion: integer types refuse a Python number that they would change."""
        return cls(value)

    @classmethod
    def _checked(cls, value: Any) -> Any:
        """A Python number converted to this type. Raises ArgumentError for a float out of the type's range."""
        raise NotImplementedError(f"{cls.__name__} holds no values")

    @classmethod
    def __dsl_size_of__(cls) -> int:
        """Bytes that a value takes in memory. Raises ArgumentError for values that do not fill whole bytes."""
        if cls.width % 8 and cls.width != 1:
            raise argument_error(
                f"memory of {cls.__name__}: sub-byte values, {cls.width} bits, are not whole bytes",
                "use a type of 8 bits or a multiple",
            )
        return -(-cls.width // 8)

    @classmethod
    def __dsl_align_of__(cls) -> int:
        """The alignment in memory, in bytes: the size."""
        return cls.__dsl_size_of__()

    @property
    def dtype(self) -> type[Numeric]:  # type: ignore[override]
        return type(self)

    if not TYPE_CHECKING:  # for which `width` is the metaclass's, of the type

        @property
        def width(self) -> int:
            """Width in bits."""
            return type(self).width

    @property
    def is_static(self) -> bool:
        """True if the value is known while tracing; FlyDSL's programs call it."""
        return truth(not isinstance(self.value, _OF_RUNTIME))

    def __hash__(self) -> int:
        """The hash of the Python number if it is known while tracing, so that a dict takes both for the same key.

        For a runtime value, the hash of the object. Raises TraceError where the user asks for it.
        """
        if self.is_static:
            return hash(self.value)
        refuse_as_key(type(self).__name__)
        return object.__hash__(self)

    # A number is an int tuple of one leaf, too: what `fx.size` and a layout's extents are at run time.
    is_leaf = True
    rank = 1
    depth = 0

    @property
    def get_static_leaf_int(self) -> int:
        """The integer, if it is known while tracing. Raises TraceError otherwise."""
        return self.__index__()

    def to_py_value(self) -> Any:
        """The Python number if it is known while tracing, else the value itself."""
        return self.value if self.is_static else self

    def unpack(self) -> Any:
        """The same as `to_py_value`."""
        return self.to_py_value()

    def ir_value(self) -> ir.Value:
        if isinstance(self.value, ir.Value):
            return self.value
        refuse_undefined(self.value)
        require_trace(f"{self!r} as a runtime value")
        attribute = self._attribute(self.value)
        return emit("arith.constant", results=[type(self).ir_type], attributes={"value": attribute}).result

    @classmethod
    def _attribute(cls, value: Any) -> ir.Attribute:
        raise NotImplementedError(f"{cls.__name__} holds no values")

    def to(self, dtype: type[Numeric] | ir.Type, *, rounding_mode: RoundingMode | None = None) -> Any:
        """Convert to another scalar type. rounding_mode: between floats, by default the nearest with ties to even."""
        target = require_numeric("to", dtype)
        mode = None if rounding_mode is None else direction_of(self.dtype, target, rounding_mode)
        return target(self) if mode is None else bare_like(target.of(convert_rounded(self, target, mode)), self)

    def bitcast(self, dtype: type[Numeric] | ir.Type) -> Any:
        """The same bits as a scalar type of the same width."""
        target = require_numeric("bitcast", dtype)
        if Index in (self.dtype, target) or target.width != self.dtype.width:
            raise argument_error(
                f"bitcast of {self.dtype.__name__} to {target.__name__}",
                "types of one width; an index has no bits of its own",
            )
        value = self.ir_value()
        if value.type != target.ir_type:
            value = emit("arith.bitcast", [value], [target.ir_type]).result
        return bare_like(target.of(value), self)

    @property
    def lanes(self) -> Any:
        """The number in each lane, as an array; one number if all have the same. Where the interpreter is on."""
        return np.array([self.value]) if self.is_static else lanes_of(self.value, type(self).__name__)

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}({self.value})" if self.is_static else text_of_lanes(self.value, name) or f"{name}(?)"

    def __str__(self) -> str:
        shown = repr(self)
        return TracedText(f"{shown}{WHILE_TRACED}") if shown.endswith("(?)") else shown

    def __format__(self, spec: str) -> str:
        if self.is_static:
            return format(self.value if spec else repr(self), spec)
        if spec:
            if text_of_lanes(self.value, type(self).__name__) is None:
                raise no_text(type(self).__name__, spec)
            numbers = self.lanes
            shown = [format(number, spec) for number in numbers.tolist()]
            return shown[0] if len(shown) == 1 else f"[{', '.join(shown)}]"
        return str(self)

    def __bool__(self) -> bool:
        if self.is_static:
            return bool(self.value)
        found = truth_of_lanes(self.value)
        if found is None:
            raise no_truth(type(self).__name__)
        return found

    def __index__(self) -> int:
        if self.is_static and not self.is_float:
            return operator.index(self.value)
        raise no_integer(type(self).__name__)

    def __float__(self) -> float:
        if self.is_static:
            return float(self.value)
        raise trace_error(
            f"a runtime {type(self).__name__} is not a Python float",
            "convert it on the device: .to(fx.Float32); functions of Python's math module are in fx.math",
        )

    def __int__(self) -> int:
        return self.__index__()


class Integer(Numeric):
    """Integers of a fixed width. A Python number wraps around as in C, and a float's fraction is dropped.

    >>> Uint32(-1), Int4(20), Int32(2.9)
    (Uint32(4294967295), Int4(4), Int32(2))
    """

    @classmethod
    def _checked(cls, value: Any) -> int:
        return cls.wrapped_to_width(cls._whole(value))

    @classmethod
    def _whole(cls, value: Any) -> int:
        """A Python number without its fraction. Raises ArgumentError for one that is not finite."""
        try:
            return int(value)
        except (ValueError, OverflowError):
            raise argument_error(f"{cls.__name__}({value}): not an integer", "pass a finite number") from None

    @classmethod
    def exactly(cls, value: Any) -> Any:
        """A number without an explicit conversion. Raises ArgumentError for a Python number that it would change.

        A mask of as many bits, such as 0xFFFFFFFF of an Int32, is the same number.
        """
        if isinstance(value, Real) and not isinstance(value, bool):
            cls._require_same(value)
        return cls(value)

    @classmethod
    def _require_same(cls, value: Any) -> None:
        number = cls._whole(value)
        if number != value:
            raise argument_error(
                f"{cls.__name__}({value}): not an integer", "truncate explicitly: int(...) of the Python number"
            )
        if not cls.fits(number) and not 0 <= number < (1 << cls.width):
            low, high = cls.limits()
            raise argument_error(
                f"{cls.__name__}({number}): outside {low} to {high}",
                f"take a wider type, or have it wrap around: fx.{cls.__name__}({number})",
            )

    @classmethod
    def limits(cls) -> tuple[int, int]:
        """The smallest and the largest value.

        >>> Int8.limits(), Uint8.limits()
        ((-128, 127), (0, 255))
        """
        if not cls.signed:
            return 0, (1 << cls.width) - 1
        return -(1 << (cls.width - 1)), (1 << (cls.width - 1)) - 1

    @classmethod
    def _warn_of_larger(cls, where: str, given: type[Integer]) -> None:
        """Warn at the user's line of a runtime value that may be too large for a parameter, or a field."""
        place, largest = user_location(), cls.limits()[1]
        if place is not None and not issubclass(given, Index) and given.limits()[1] > largest:
            warnings.warn_explicit(
                f"{where} is {cls.__name__}, and takes a {given.__name__}: numbers above {largest} wrap around. "
                f"Annotate it fx.{given.__name__}, or convert the number: fx.{cls.__name__}(...)",
                UserWarning,
                place.file,
                place.line,
            )

    @classmethod
    def fits(cls, number: int) -> bool:
        """True if a Python integer is in this type's range."""
        low, high = cls.limits()
        return low <= number <= high

    @classmethod
    def _require_fit(cls, where: str, number: int) -> None:
        """Raise ArgumentError for a number out of range, though `cls(number)` may take it as a mask of as many bits."""
        if cls.fits(number):
            return
        low, high = cls.limits()
        unsigned = "an unsigned or " if number > 0 and cls.signed else ""
        mask = f"; as a mask of bits, write fx.{cls.__name__}({number})" if 0 < number < 1 << cls.width else ""
        raise argument_error(
            f"{where} must be {cls.__name__}, from {low} to {high}, got {number}",
            f"annotate it with {unsigned}a wider type{mask}",
        )

    @classmethod
    def wrapped_to_width(cls, number: int) -> int:
        """`number` modulo 2^width, in this type's range."""
        number &= (1 << cls.width) - 1
        return number - (1 << cls.width) if cls.signed and number >> (cls.width - 1) else number

    @classmethod
    def _attribute(cls, value: int) -> ir.Attribute:
        if not cls.signed and value >> (cls.width - 1):
            value -= 1 << cls.width
        if cls.width > 64:
            return ir.Attribute.parse(f"{value} : {cls.mlir_name}")
        return ir.IntegerAttr.get(cls.ir_type, value)


class Float(Numeric):
    """Floating point numbers. A Python number is rounded to the nearest value of the type."""

    is_float = True

    @classmethod
    def _checked(cls, value: Any) -> float:
        try:
            return round_float(cls.mlir_name, float(value))
        except OverflowError:
            raise argument_error(
                f"{cls.__name__} of a {int(value).bit_length()}-bit integer",
                "a float of Python has 53 bits: compute it in parts",
            ) from None
        except ArgumentError as error:
            raise error.located(user_location()) from None

    @classmethod
    def _attribute(cls, value: float) -> ir.Attribute:
        return ir.FloatAttr.get(cls.ir_type, value)


class Boolean(Integer):
    """True or false: i1, the result of comparisons. In arithmetic it is 0 or 1: sums and products are Int32."""

    mlir_name = "i1"
    signed = False

    @classmethod
    def _checked(cls, value: Any) -> bool:
        return bool(value)

    @classmethod
    def _require_same(cls, value: Any) -> None:
        """Every number is a truth value."""

    @classmethod
    def _require_fit(cls, where: str, number: int) -> None:
        """Every number is a truth value."""

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


class Float8E5M2FNUZ(Float):
    """torch.float8_e5m2fnuz, the bf8 of MI300's instructions."""

    mlir_name = "f8E5M2FNUZ"


class Float8E8M0FNU(Float):
    mlir_name = "f8E8M0FNU"


class Float6E2M3FN(Float):
    mlir_name = "f6E2M3FN"


class Float6E3M2FN(Float):
    mlir_name = "f6E3M2FN"


class Float4E2M1FN(Float):
    mlir_name = "f4E2M1FN"


# A value's integers carry no sign in MLIR, and are taken as signed; those of memory do.
_BY_MLIR_NAME: dict[str, type[Numeric]] = {
    cls.mlir_name: cls
    for cls in (
        Boolean, Int4, Int8, Int16, Int32, Int64, Int128, Index, Float16, BFloat16, Float32, Float64, Float8E4M3,
        Float8E4M3FN, Float8E4M3FNUZ, Float8E4M3B11FNUZ, Float8E5M2, Float8E5M2FNUZ, Float8E8M0FNU, Float6E2M3FN,
        Float6E3M2FN, Float4E2M1FN,
    )
}  # fmt: skip
_BY_MLIR_NAME.update({cls.memory_name: cls for cls in (Uint8, Uint16, Uint32, Uint64, Uint128)})
_BY_MLIR_TYPE: dict[ir.Type, type[Numeric]] = {}


def numeric_class(element: str | ir.Type) -> type[Numeric]:
    """The scalar type for an MLIR type or its name; integers are signed unless the name says otherwise.

    >>> numeric_class("bf16"), numeric_class("ui8")
    (BFloat16, Uint8)
    """
    if isinstance(element, ir.Type):
        found = _BY_MLIR_TYPE.get(element)
        if found is None:
            found = _BY_MLIR_TYPE[element] = numeric_class(str(element))
        return found
    if element not in _BY_MLIR_NAME:
        raise argument_error(f"{element} is not a scalar type of the DSL", f"known: {', '.join(_BY_MLIR_NAME)}")
    return _BY_MLIR_NAME[element]


def require_numeric(what: str, dtype: Any) -> type[Numeric]:
    """A scalar type with values, given as such or as its MLIR type. Raises ArgumentError for anything else."""
    if isinstance(dtype, ir.Type) and not isinstance(dtype, ir.VectorType):
        return numeric_class(dtype)
    if isinstance(dtype, type) and issubclass(dtype, Numeric) and hasattr(dtype, "mlir_name"):
        return dtype
    raise argument_error(f"{what}: {dtype!r} is not a scalar type", "pass fx.Float32, for example")


def wrap_scalar(value: ir.Value) -> Any:
    """An `ir.Value` of scalar type as a Numeric."""
    return numeric_class(value.type).of(value)


def bare_like(result: Any, *operands: Any) -> Any:
    """A new result, which is bare if all operands of the DSL are."""
    if isinstance(result, ArithValue):
        result.bare = all(value.bare for value in operands if isinstance(value, ArithValue))
    return result


def bare_value(value: Any) -> Any:
    """The value as a bare scalar or vector."""
    return bare_like(copy(as_numeric(value)))


def as_numeric(value: Value) -> Result:
    """A Python number as a scalar: int is Int32 (Int64 if it does not fit), float Float32, bool Boolean.

    An `ir.Value` is a bare scalar or vector.
    """
    if isinstance(value, ArithValue):
        return value
    if isinstance(value, ir.Value):
        wrap = functions.vector if isinstance(value.type, ir.VectorType) else wrap_scalar
        return bare_like(wrap(value))
    if isinstance(value, bool):
        return Boolean(value)
    if is_python_number(value):
        return _constant(value)
    refuse_undefined(value)
    raise argument_error(f"{value!r} of type {type(value).__name__} is not a number", _instead_of(value))


# Kinds of values that are no numbers -> how to take a number of one.
_PARTS = {
    "Tuple3D": "take one of its three: fx.thread_idx.x",
    "IntTuple": "take one of its elements: tensor.shape[0]",
    "Tensor": "tensor[i] is an element of a tensor",
    "str": "write numbers without quotes, and give modes and options as fx.Constexpr parameters",
    "ellipsis": "None keeps a whole mode: tensor[None, j]",
    "coroutine": "the device has no `async`: write def",
    "NoneType": "None is what a function without `return` gives",
}


def _instead_of(value: Any) -> str:
    """The hint for something that is not a number."""
    part = _PARTS.get(type(value).__name__, "tensor[i] is an element of a tensor")
    return f"a Python number or a scalar of the DSL belongs here; {part}"


def _constant(value: Any) -> Numeric:
    if not isinstance(value, Integral):
        return Float32(value)
    number = int(value)
    return Int32(number) if Int32.fits(number) else Int64.exactly(number)


def _converted(value: Numeric, target: type[Numeric]) -> Any:
    """The payload of `value` converted to `target`: a Python number or an `ir.Value`."""
    if not value.is_static:
        return convert(value, target)
    number = value.value
    if target is Boolean or target.is_float:
        return target._checked(number)
    return _static_integer(number, value, target)


def _static_integer(number: int | float, value: Numeric, target: type[Numeric]) -> int:
    """A static number as an integer. Integers wrap and floats truncate, as on the device. Out of range is an error."""
    assert issubclass(target, Integer)
    if isinstance(number, float) and not (math.isfinite(number) and target.fits(int(number))):
        raise argument_error(f"{value!r} as {target.__name__}: outside of its range", "take a wider type")
    return target.wrapped_to_width(int(number))


# --- conversions -----------------------------------------------------------------------------------------------------


def element_of(value: ir.Value) -> ir.Type:
    """The type of a scalar, or of a vector's elements."""
    return value.type.element_type if isinstance(value.type, ir.VectorType) else value.type


def has_arithmetic(dtype: type[Numeric]) -> bool:
    """True if LLVM computes with a scalar type: not with floats below 16 bits."""
    return not dtype.is_float or dtype.mlir_name in ARITHMETIC_FLOATS


def convert(value: ArithValue, target: type[Numeric]) -> ir.Value:
    """Convert a runtime scalar or vector to another scalar type, rounding to nearest even.

    Converting to Boolean compares with zero. Float to integer truncates toward zero, saturates at 32 bits, from f16 to
    16 bits at those, and makes 0 of NaN; other narrow integers are the lower bits of 32, and what 64 bits cannot hold
    becomes any number. Floats below 16 bits: see `flydsl.passes.to_rocdl.narrow_floats`.
    """
    source, operand = value.dtype, value.ir_value()
    if source.ir_type == target.ir_type:
        return operand
    if target is Boolean and has_arithmetic(source):
        return (value != 0).ir_value()
    if (middle := _stepping_stone(source, target)) is not None:
        return convert(value.to(middle), target)
    if Index in (source, target):
        return cast_elements("index_cast" if source.signed else "index_castui", operand, target.ir_type)
    return cast_elements(_cast_name(source, target), operand, target.ir_type)


def convert_rounded(value: ArithValue, target: type[Numeric], mode: RoundingMode) -> ir.Value:
    """Convert a scalar or vector of floats to a type of no more bits, in a direction."""
    exact = value.to(Float32) if target.width == value.dtype.width else value
    attributes = {"roundingmode": ir.IntegerAttr.get(element_type("i32"), int(mode))}
    return cast_elements("truncf", exact.ir_value(), target.ir_type, attributes)


def _stepping_stone(source: type[Numeric], target: type[Numeric]) -> type[Numeric] | None:
    """The intermediate type to use if MLIR, or the lowering, has no direct cast."""
    if not has_arithmetic(target) and source is Float64:
        return None  # by f32 it would be rounded twice
    if not has_arithmetic(source) or not has_arithmetic(target):
        return None if Float32 in (source, target) else Float32
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


def cast_elements(
    name: str, operand: ir.Value, element: ir.Type, attributes: dict[str, ir.Attribute] | None = None
) -> ir.Value:
    """`arith.<name>` of a scalar, or of each element of a vector, to another MLIR type."""
    result = ir.VectorType.get(operand.type.shape, element) if isinstance(operand.type, ir.VectorType) else element
    return emit(f"arith.{name}", [operand], [result], attributes).result


functions.bare_value = bare_value
_FAST_DIVISION = dict.fromkeys(("FastDivmod", "fast_divmod", "fastdivmod_magic"), "flydsl.expr.numbers.fast_division")
__getattr__ = unknown_name(__name__, globals(), _FAST_DIVISION)
