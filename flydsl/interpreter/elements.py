"""Numbers of MLIR's element types in arrays, and as the bits that memory holds.

An integer has NumPy's type of its width, with a sign; i1 is a bool, and an index has 64 bits. A float of 16, 32 or 64
bits is NumPy's. bf16 and narrower floats are float32 numbers that the format has: they are rounded where they are made.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from mlir import ir

from flydsl.dialect.elements import FLOAT_BITS, NARROW_FLOATS, NarrowFloat, element_bits, scalar_of
from flydsl.dialect.location import trace_error

Array = np.ndarray[Any, Any]

_DTYPES = {"i1": np.bool_, "index": np.int64, "f16": np.float16, "f32": np.float32, "f64": np.float64}


@cache
def element_name(kind: ir.Type) -> str:
    """The name of a type's elements: of a vector `vector<4xf32>`, and of a scalar `f32`, the same."""
    return str(scalar_of(kind))


@cache
def shape_of(kind: ir.Type) -> tuple[int, ...]:
    """The shape of a value in one lane: of a scalar ()."""
    return tuple(kind.shape) if isinstance(kind, ir.VectorType) else ()


@cache
def dtype_of(element: str) -> Any:
    """NumPy's type of the numbers of an element type, by its name."""
    if element in _DTYPES:
        return np.dtype(_DTYPES[element])
    if element in FLOAT_BITS:
        return np.dtype(np.float32)
    bits = element_bits(element)
    if bits > 64:
        raise trace_error(f"the interpreter has no integers of {bits} bits", "run the kernel compiled")
    return np.dtype(f"i{max(1, -(-_power_of_two(bits) // 8))}")


def _power_of_two(bits: int) -> int:
    return 1 << (bits - 1).bit_length()


def bits_dtype(element: str) -> Any:
    """The unsigned integers that hold the bits of an element; below 8 bits a byte each."""
    return np.dtype(f"u{max(1, _power_of_two(element_bits(element)) // 8)}")


def is_rounded(element: str) -> bool:
    """True for a float that NumPy does not have."""
    return element == "bf16" or element in NARROW_FLOATS


def rounded(numbers: Array, element: str) -> Array:
    """Numbers as an element type has them: the nearest, ties to even."""
    if is_rounded(element):
        return from_bits(to_bits(numbers, element), element)
    return numbers.astype(dtype_of(element), copy=False)


def to_bits(numbers: Array, element: str) -> Array:
    """The bits of numbers, as unsigned integers."""
    if element == "bf16":
        return _bf16_bits(numbers)
    if element in NARROW_FLOATS:
        return _encoded(numbers.astype(np.float32, copy=False), element)
    if element == "i1":
        return numbers.astype(np.uint8)
    whole = np.ascontiguousarray(numbers).view(bits_dtype(element))
    bits = element_bits(element)
    return whole & np.uint64((1 << bits) - 1).astype(whole.dtype) if bits < 8 * whole.itemsize else whole


def from_bits(bits: Array, element: str) -> Array:
    """The numbers that unsigned integers are the bits of."""
    if element == "bf16":
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if element in NARROW_FLOATS:
        return _table(element)[bits & ((1 << element_bits(element)) - 1)]
    if element == "i1":
        return (bits & 1).astype(np.bool_)
    whole = np.ascontiguousarray(bits.astype(bits_dtype(element), copy=False)).view(dtype_of(element))
    unused = 8 * whole.itemsize - element_bits(element)
    return (whole << unused) >> unused if unused and element not in FLOAT_BITS else whole


def to_bytes(value: Array, kind: ir.Type) -> Array:
    """A value as memory holds it: (lanes, bytes). A Boolean takes a byte."""
    element = element_name(kind)
    bits = to_bits(value, element).reshape(value.shape[0], -1)
    width = element_bits(element)
    if width in (4, 2) and bits.shape[1] > 1:
        per_byte = 8 // width
        groups = bits.reshape(len(bits), -1, per_byte)
        return (groups << (np.arange(per_byte, dtype=np.uint8) * width)).sum(axis=2, dtype=np.uint8)
    if width == 6 and bits.shape[1] > 1:
        each = (bits[:, :, None] >> np.arange(6, dtype=np.uint8)) & 1
        return np.packbits(each.reshape(len(bits), -1), axis=1, bitorder="little")
    return np.ascontiguousarray(bits).view(np.uint8)


def from_bytes(data: Array, kind: ir.Type) -> Array:
    """A value of the bytes that memory holds."""
    element, shape = element_name(kind), shape_of(kind)
    width = element_bits(element)
    if width in (4, 2) and shape:
        fields = np.arange(8 // width, dtype=np.uint8) * width
        bits = ((data[:, :, None] >> fields) & ((1 << width) - 1)).reshape(len(data), -1)
    elif width == 6 and shape:
        each = np.unpackbits(data, axis=1, bitorder="little").reshape(len(data), -1, 6)
        bits = (each << np.arange(6, dtype=np.uint8)).sum(axis=2, dtype=np.uint8)
    else:
        bits = np.ascontiguousarray(data).view(bits_dtype(element))
    return from_bits(bits.reshape(len(data), *shape), element)


@cache
def size_bytes(kind: ir.Type) -> int:
    """The bytes that a value takes in memory."""
    count = int(np.prod(shape_of(kind), dtype=int))
    bits = element_bits(element_name(kind))
    return count if bits == 1 else -(-count * bits // 8)


def recast(value: Array, source: ir.Type, target: ir.Type) -> Array:
    """The same bits as a value of another type of as many."""
    a, b = element_name(source), element_name(target)
    if element_bits(a) == element_bits(b):
        return from_bits(to_bits(value, a), b).reshape(len(value), *shape_of(target))
    if element_bits(a) == 1 or element_bits(b) == 1:
        return _recast_single_bits(value, source, target)
    return from_bytes(to_bytes(value, source), target)


def _recast_single_bits(value: Array, source: ir.Type, target: ir.Type) -> Array:
    """The same for vectors of i1, which are packed where bits are what counts."""
    a, b = element_name(source), element_name(target)
    data = to_bytes(value, source)
    if element_bits(a) == 1:
        data = np.packbits(data, axis=1, bitorder="little")
    if element_bits(b) == 1:
        return np.unpackbits(data, axis=1, bitorder="little").astype(np.bool_).reshape(len(value), *shape_of(target))
    return from_bytes(data, target)


def _bf16_bits(numbers: Array) -> Array:
    if numbers.dtype != np.float32:
        numbers = _to_odd(numbers)
    bits = np.ascontiguousarray(numbers).view(np.uint32)
    to_even = (bits >> np.uint32(16)) & np.uint32(1)
    nearest = (bits + np.uint32(0x7FFF) + to_even) >> np.uint32(16)
    return np.where(np.isnan(numbers), (bits >> np.uint32(16)) | np.uint32(0x40), nearest).astype(np.uint16)


def _to_odd(numbers: Array) -> Array:
    """float64 numbers as float32, rounded to odd where they are inexact, so that a second rounding is the only one."""
    wide = numbers.astype(np.float64)
    near = wide.astype(np.float32)
    bits = near.view(np.int32)
    neighbour = np.where(np.abs(near.astype(np.float64)) > np.abs(wide), bits - 1, bits + 1)
    inexact = (near.astype(np.float64) != wide) & np.isfinite(near)
    return np.where(inexact & (bits & 1 == 0), neighbour, bits).astype(np.int32).view(np.float32)


@cache
def _table(element: str) -> Array:
    """The number of each code of a narrow float."""
    kind = NARROW_FLOATS[element]
    codes = np.arange(1 << kind.bits, dtype=np.int64)
    if not kind.signed:
        return np.where(codes == (1 << kind.bits) - 1, np.nan, np.exp2(codes - float(kind.bias))).astype(np.float32)
    sign_bit = 1 << (kind.bits - 1)
    exponent = (codes & (sign_bit - 1)) >> kind.mantissa_bits
    fraction = (codes & ((1 << kind.mantissa_bits) - 1)) / (1 << kind.mantissa_bits)
    numbers = np.where(exponent == 0, fraction * 2.0, 1 + fraction) * np.exp2(exponent - float(kind.bias))
    special = numbers > kind.largest
    if kind.infinity:
        numbers[special & (fraction == 0)] = np.inf
        numbers[special & (fraction != 0)] = np.nan
    else:
        numbers[special] = np.nan
    numbers = np.where(codes & sign_bit != 0, -numbers, numbers)
    if not kind.negative_zero:
        numbers[sign_bit] = np.nan
    return numbers.astype(np.float32)


@cache
def _positive(element: str) -> tuple[Array, Array]:
    """The finite numbers of a narrow float that are not negative, in order, and what lies halfway between them."""
    kind = NARROW_FLOATS[element]
    numbers = _table(element)[: 1 << (kind.bits - int(kind.signed))].astype(np.float64)
    numbers = numbers[np.isfinite(numbers)]
    step = numbers[-1] - numbers[-2]
    above = numbers[-1] + step / 2  # from here on a number is too large
    return numbers, np.append((numbers[1:] + numbers[:-1]) / 2, above)


def _encoded(numbers: Array, element: str) -> Array:
    """The codes of float32 numbers. One that is too large becomes what the compiled conversion makes of it."""
    kind = NARROW_FLOATS[element]
    finite, halves = _positive(element)
    magnitude = np.abs(numbers).astype(np.float64)
    code = np.searchsorted(halves, magnitude, side="left").astype(np.int64)
    tie = (code < len(halves)) & (halves[np.minimum(code, len(halves) - 1)] == magnitude)
    code = np.where(tie & (code & 1 == 1), code + 1, code)
    too_large = code >= len(finite)
    code = np.where(too_large, _too_large(kind, len(finite)), code)
    if not kind.signed:
        return np.where(np.isnan(numbers), 255, code).astype(np.uint8)
    sign_bit = 1 << (kind.bits - 1)
    signed = np.where(np.signbit(numbers), code | sign_bit, code)
    if not kind.negative_zero:
        return np.where(np.isnan(numbers) | too_large, sign_bit, np.where(code == 0, 0, signed)).astype(np.uint8)
    nan = sign_bit - 1 if kind.nan else len(finite) - 1
    return np.where(np.isnan(numbers), nan | (signed & sign_bit), signed).astype(np.uint8)


def _too_large(kind: NarrowFloat, count: int) -> int:
    """The code for a number beyond the largest: infinity, or the largest where there is none."""
    return count if kind.infinity else count - 1
