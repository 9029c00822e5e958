"""Element types by their MLIR names: width in bits, kind, and conversion to `ir.Type`.

Memory may hold unsigned integers, `ui8` to `ui128`. Values in a program have no sign: theirs are `i8` to `i128`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

from mlir import ir

from flydsl.dialect.context import context
from flydsl.errors import ArgumentError


@dataclass(frozen=True)
class NarrowFloat:
    """A float of at most 8 bits: a sign (if `signed`), an exponent with a bias, and mantissa_bits.

    largest: the largest finite value. infinity, nan: whether the format has them. negative_zero: whether it has one;
    in AMD's FNUZ formats the code of -0 is the only NaN.
    """

    bits: int
    mantissa_bits: int
    bias: int
    largest: float
    infinity: bool = False
    nan: bool = True
    negative_zero: bool = True
    signed: bool = True

    @property
    def smallest(self) -> float:
        """The finite value furthest below the others: the negative largest, or of an unsigned format the least."""
        return -self.largest if self.signed else 2.0**-self.bias

    def holds(self, value: float) -> bool:
        """True if the format has a number near `value`. If not, MLIR aborts or makes a NaN."""
        if math.isnan(value):
            return self.nan
        if math.isinf(value):
            return self.infinity
        return self.smallest <= value <= self.largest


# The floats that LLVM computes with; the narrower ones are formats to store and for matrix instructions.
ARITHMETIC_FLOATS = ("f64", "f32", "f16", "bf16")

# By MLIR's names, which are those of llvm/ADT/APFloat.h.
NARROW_FLOATS = {
    "f8E4M3FN": NarrowFloat(8, 3, 7, 448.0),
    "f8E4M3FNUZ": NarrowFloat(8, 3, 8, 240.0, negative_zero=False),
    "f8E4M3B11FNUZ": NarrowFloat(8, 3, 11, 30.0, negative_zero=False),
    "f8E4M3": NarrowFloat(8, 3, 7, 240.0, infinity=True),
    "f8E5M2": NarrowFloat(8, 2, 15, 57344.0, infinity=True),
    "f8E5M2FNUZ": NarrowFloat(8, 2, 16, 57344.0, negative_zero=False),
    "f8E8M0FNU": NarrowFloat(8, 0, 127, 2.0**127, signed=False),
    "f6E2M3FN": NarrowFloat(6, 3, 1, 7.5, nan=False),
    "f6E3M2FN": NarrowFloat(6, 2, 3, 28.0, nan=False),
    "f4E2M1FN": NarrowFloat(4, 1, 1, 6.0, nan=False),
}

# Each floating point type with its width in bits.
FLOAT_BITS = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16} | {name: kind.bits for name, kind in NARROW_FLOATS.items()}


@cache
def element_bits(name: str) -> int:
    """Width in bits of an element type.

    >>> element_bits("bf16"), element_bits("i4"), element_bits("index")
    (16, 4, 64)
    """
    if name in FLOAT_BITS:
        return FLOAT_BITS[name]
    if name == "index":
        return 64
    digits = value_name(name)[1:]
    if name[:1] in ("i", "u") and digits.isdecimal() and digits.isascii() and 1 <= int(digits) <= 128:
        return int(digits)
    known = f"i1 to i128, ui8 to ui128, index, {', '.join(FLOAT_BITS)}"
    raise ArgumentError(f"{name!r} is not an element type", hint=f"known: {known}")


def value_name(name: str) -> str:
    """The name of an element type as a value: without its sign.

    >>> value_name("ui8"), value_name("i8"), value_name("f32")
    ('i8', 'i8', 'f32')
    """
    return name[1:] if name.startswith("ui") else name


def memory_bits(name: str) -> int:
    """Bits that an element takes in memory: a Boolean takes a byte.

    >>> memory_bits("bf16"), memory_bits("i1")
    (16, 8)
    """
    return 8 if name == "i1" else element_bits(name)


WORD_BITS = 32


def is_packed(name: str) -> bool:
    """True if memory holds several elements in a byte: 4-bit and 6-bit floats, 4-bit integers.

    >>> is_packed("f4E2M1FN"), is_packed("i1"), is_packed("i8")
    (True, False, False)
    """
    return value_name(name) == "i4" or FLOAT_BITS.get(name, WORD_BITS) < 8


def words_of(name: str) -> tuple[int, int]:
    """The fewest packed elements that fill words, and the number of these.

    >>> words_of("f4E2M1FN"), words_of("f6E2M3FN")
    ((8, 1), (16, 3))
    """
    bits = math.lcm(element_bits(name), WORD_BITS)
    return bits // element_bits(name), bits // WORD_BITS


def is_float(name: str) -> bool:
    """True if an element type is a floating point type."""
    return name in FLOAT_BITS


def round_float(name: str, value: float) -> float:
    """`value` rounded to the nearest number of a floating point type, ties to even.

    Raises ArgumentError where the format has none near it: 1e9 is none of f16, though infinity is.

    >>> round_float("f16", 0.1), round_float("f8E4M3FN", 100.0)
    (0.0999755859375, 96.0)
    """
    narrow = NARROW_FLOATS.get(name)
    if narrow is not None and not narrow.holds(value):
        raise ArgumentError(
            f"{name} cannot hold {value}", hint=f"its numbers lie between {narrow.smallest} and {narrow.largest}"
        )
    if name == "f64" or not math.isfinite(value):
        return value
    with context(), ir.Location.unknown():
        rounded = float(ir.FloatAttr.get(element_type(name), value).value)
    if math.isinf(rounded):
        raise ArgumentError(
            f"{name} cannot hold {value}, which would be {rounded}",
            hint=f"write float('{rounded}') for infinity; a wider type, such as fx.Float64, holds {value}",
        )
    return rounded


@cache
def element_type(name: str) -> ir.Type:
    """The MLIR type of an element as a value. There is one MLIR context, so types can be kept.

    Raises ArgumentError for a name that is not an element type.
    """
    element_bits(name)
    return ir.Type.parse(value_name(name), context())


def scalar_of(kind: ir.Type) -> ir.Type:
    """The type of a vector's elements; of a scalar, the type itself."""
    return kind.element_type if isinstance(kind, ir.VectorType) else kind


def with_elements(kind: ir.Type, element: ir.Type) -> ir.Type:
    """A vector type with other elements; of a scalar, the type of the element."""
    return ir.VectorType.get(kind.shape, element) if isinstance(kind, ir.VectorType) else element


@cache
def llvm_pointer_type(space: int) -> ir.Type:
    """`!llvm.ptr<space>`; space: LLVM's number of an address space."""
    return ir.Type.parse(f"!llvm.ptr<{space}>" if space else "!llvm.ptr", context())


TORCH_ELEMENTS = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32",
    "int16": "i16", "int8": "i8", "bool": "i8", "uint64": "ui64", "uint32": "ui32", "uint16": "ui16", "uint8": "ui8",
    "float8_e4m3fn": "f8E4M3FN", "float8_e4m3fnuz": "f8E4M3FNUZ", "float8_e5m2": "f8E5M2",
    "float8_e5m2fnuz": "f8E5M2FNUZ",
}  # fmt: skip
"""MLIR element types by torch's names of types. A bool of torch takes a byte."""
