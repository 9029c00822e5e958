"""Element types by their MLIR names: width in bits, kind, and conversion to `ir.Type`."""

from __future__ import annotations

from functools import cache

from mlir import ir

from flydsl.errors import ArgumentError

# MLIR's spelling of each floating point type, with its width in bits.
FLOAT_BITS = {
    "f64": 64,
    "f32": 32,
    "f16": 16,
    "bf16": 16,
    "f8E4M3FN": 8,
    "f8E4M3FNUZ": 8,
    "f8E4M3B11FNUZ": 8,
    "f8E4M3": 8,
    "f8E5M2": 8,
    "f8E5M2FNUZ": 8,
    "f8E8M0FNU": 8,
    "f6E2M3FN": 6,
    "f6E3M2FN": 6,
    "f4E2M1FN": 4,
}


def element_bits(name: str) -> int:
    """Width in bits of an element type.

    >>> element_bits("bf16"), element_bits("i4"), element_bits("index")
    (16, 4, 64)
    """
    if name in FLOAT_BITS:
        return FLOAT_BITS[name]
    if name == "index":
        return 64
    digits = name[1:]
    if name[:1] == "i" and digits.isdigit() and int(digits) > 0:
        return int(digits)
    raise ArgumentError(f"{name!r} is not an element type", hint=f"known: i1 to i128, index, {', '.join(FLOAT_BITS)}")


def is_float(name: str) -> bool:
    """Whether an element type is a floating point type."""
    return name in FLOAT_BITS


@cache
def element_type(name: str) -> ir.Type:
    """The MLIR type of an element name. There is one MLIR context, so types can be kept.

    Raises ArgumentError for a name that is no element type.
    """
    from flydsl.dialect.context import context

    element_bits(name)
    return ir.Type.parse(name, context())
