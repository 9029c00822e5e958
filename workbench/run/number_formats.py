"""Bytes of registers and memory as numbers of any element type."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flydsl.dialect.elements import NARROW_FLOATS, NarrowFloat, element_bits, is_float

_PLAIN = {"dwords": "<u4", "f64": "<f8", "f32": "<f4", "f16": "<f2", "i64": "<i8", "ui64": "<u8", "i32": "<i4"}
_PLAIN |= {"ui32": "<u4", "i16": "<i2", "ui16": "<u2", "i8": "<i1", "ui8": "<u1"}
DWORDS = "dwords"
FORMS = (
    *(DWORDS, "f32", "f16", "bf16", "f64", "f8E4M3FN", "f8E4M3FNUZ", "f8E5M2", "f8E5M2FNUZ", "f8E8M0FNU"),
    *("f6E2M3FN", "f6E3M2FN", "f4E2M1FN", "i32", "ui32", "i16", "ui16", "i8", "ui8", "i4", "ui4", "i64", "ui64"),
)
"""The forms in which values can be shown: "dwords" in hexadecimal, else an element type by its name in MLIR."""


def bits_of(form: str) -> int:
    """The width of one value."""
    return 32 if form == "dwords" else element_bits(form)


def numbers(data: NDArray[Any], form: str) -> NDArray[Any]:
    """Memory or registers as values; bytes that do not fill one are left out. data: one row of u8 or u32.

    >>> numbers(np.array([0x3F80_4000], np.uint32), "bf16").tolist()
    [2.0, 1.0]
    >>> numbers(np.array([0xE7], np.uint8), "i4").tolist(), numbers(np.array([0xE7], np.uint8), "f4E2M1FN").tolist()
    ([7, -2], [6.0, -4.0])
    """
    raw = np.ascontiguousarray(data).view(np.uint8)
    if form in _PLAIN:
        kind: np.dtype[Any] = np.dtype(_PLAIN[form])
        return raw[: raw.size // kind.itemsize * kind.itemsize].view(kind)
    if form == "bf16":
        halves = raw[: raw.size // 2 * 2].view("<u2").astype("<u4")
        return (halves << 16).view("<f4")
    codes = _codes(raw, bits_of(form))
    if form in NARROW_FLOATS:
        return _values(form)[codes]
    assert form in ("i4", "ui4")
    return np.where(codes > 7, codes.astype(np.int8) - 16, codes) if form == "i4" else codes


def _codes(raw: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Fields of `bits` bits, the lowest first."""
    ones = np.unpackbits(raw, bitorder="little")
    whole = ones[: ones.size // bits * bits].reshape(-1, bits)
    return np.packbits(whole, axis=1, bitorder="little")[:, 0]


@cache
def _values(form: str) -> NDArray[np.float64]:
    """The value of every code of a narrow float."""
    kind = NARROW_FLOATS[form]
    return np.array([_value(kind, code) for code in range(1 << kind.bits)])


def _value(kind: NarrowFloat, code: int) -> float:
    exponent_bits = kind.bits - kind.mantissa_bits - kind.signed
    fraction = code & ((1 << kind.mantissa_bits) - 1)
    exponent = code >> kind.mantissa_bits & ((1 << exponent_bits) - 1)
    negative = bool(kind.signed and code >> (kind.bits - 1))
    is_last = exponent == (1 << exponent_bits) - 1
    if not kind.signed:
        return float("nan") if is_last else 2.0 ** (exponent - kind.bias)
    if not kind.negative_zero and negative and not exponent and not fraction:
        return float("nan")
    if kind.infinity and is_last:
        return float("nan") if fraction else (-1 if negative else 1) * float("inf")
    if kind.nan and kind.negative_zero and not kind.infinity and is_last and fraction == (1 << kind.mantissa_bits) - 1:
        return float("nan")
    hidden = 1 if exponent else 0
    size = (hidden + fraction / (1 << kind.mantissa_bits)) * 2.0 ** (max(exponent, 1) - kind.bias)
    return -size if negative else size


def texts(data: NDArray[Any], form: str) -> Sequence[str]:
    """The values as text, each at most as wide as `width_of` says.

    >>> texts(np.array([0x3C00_3800, 0x3F80_0000], np.uint32), "f16")
    ['0.5', '1', '0', '1.875']
    """
    if form == "dwords":
        return [f"{value:08x}" for value in numbers(data, form).tolist()]
    if is_float(form):
        digits = 4 if bits_of(form) <= 8 else 6
        return [f"{value:.{digits}g}" for value in numbers(data, form).tolist()]
    return [str(value) for value in numbers(data, form).tolist()]


def width_of(form: str) -> int:
    """The number of characters of the longest value."""
    if form == "dwords":
        return 8
    if is_float(form):
        return 10 if bits_of(form) <= 8 else 13 if form == "f64" else 12
    return len(str(2 ** bits_of(form))) + (0 if form.startswith("ui") else 1)
