"""What loads, stores and atomics do to bytes, whatever the address space.

A load is named by what follows `load_` (global, flat, scratch, buffer) or `ds_read_`; a store likewise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.simulator.reference import ieee
from tests.simulator.reference.case import M16, M32, s32, s64, signed
from tests.simulator.reference.ieee import BF16, F16, F32, F64, Format, Mode


@dataclass(frozen=True)
class Load:
    """`dwords` registers, or one that gets `bytes_` bytes: extended, or as one `half` (0 or 1) of it."""

    bytes_: int
    is_signed: bool = False
    half: int | None = None

    @property
    def dwords(self) -> int:
        return max(self.bytes_ // 4, 1)

    def result(self, data: bytes, old: int) -> list[int]:
        if self.bytes_ >= 4:
            return [int.from_bytes(data[i : i + 4], "little") for i in range(0, self.bytes_, 4)]
        value = int.from_bytes(data, "little")
        if self.is_signed:
            value = signed(value, 8 * self.bytes_)
        if self.half is None:
            return [value & M32]
        return [old & M16 | (value & M16) << 16 if self.half else old & ~M16 & M32 | value & M16]


@dataclass(frozen=True)
class Store:
    """`bytes_` bytes of the data, from bit `shift` on."""

    bytes_: int
    shift: int = 0

    @property
    def dwords(self) -> int:
        return max(self.bytes_ // 4, 1)

    def content(self, dwords: list[int]) -> bytes:
        whole = b"".join(d.to_bytes(4, "little") for d in dwords)
        return whole[self.shift // 8 : self.shift // 8 + self.bytes_]


LOADS = {"dword": Load(4), "dwordx2": Load(8), "dwordx3": Load(12), "dwordx4": Load(16)}
LOADS |= {"ubyte": Load(1), "sbyte": Load(1, True), "ushort": Load(2), "sshort": Load(2, True)}
for _suffix, _half in (("", 0), ("_hi", 1)):
    LOADS[f"ubyte_d16{_suffix}"] = Load(1, False, _half)
    LOADS[f"sbyte_d16{_suffix}"] = Load(1, True, _half)
    LOADS[f"short_d16{_suffix}"] = Load(2, False, _half)
STORES = {"dword": Store(4), "dwordx2": Store(8), "dwordx3": Store(12), "dwordx4": Store(16)}
STORES |= {"byte": Store(1), "short": Store(2), "byte_d16_hi": Store(1, 16), "short_d16_hi": Store(2, 16)}
LDS_LOADS = {"b32": Load(4), "b64": Load(8), "b96": Load(12), "b128": Load(16)}
LDS_LOADS |= {"u8": Load(1), "i8": Load(1, True), "u16": Load(2), "i16": Load(2, True)}
for _suffix, _half in (("", 0), ("_hi", 1)):
    LDS_LOADS[f"u8_d16{_suffix}"] = Load(1, False, _half)
    LDS_LOADS[f"i8_d16{_suffix}"] = Load(1, True, _half)
    LDS_LOADS[f"u16_d16{_suffix}"] = Load(2, False, _half)
LDS_STORES = {"b32": Store(4), "b64": Store(8), "b96": Store(12), "b128": Store(16)}
LDS_STORES |= {"b8": Store(1), "b16": Store(2), "b8_d16_hi": Store(1, 16), "b16_d16_hi": Store(2, 16)}


@dataclass(frozen=True)
class Update:
    """An atomic: new = function(mode, old, *operands). type_ says what random operands should look like."""

    bits: int
    function: Callable[..., int]
    operands: int = 1
    type_: str = ""

    @property
    def word(self) -> str:
        return self.type_ or f"i{self.bits}"

    def new(self, mode: Mode, old: int, *operands: int) -> int:
        return self.function(mode, old, *operands) & ((1 << self.bits) - 1)


def _float_extreme(f: Format, want_larger: bool) -> Callable[..., int]:
    """A NaN in memory gives way; a tie, of zeros too, leaves memory as it is."""

    def update(mode: Mode, old: int, x: int) -> int:
        old_number, x_number = mode.flush_in(f, old), mode.flush_in(f, x)
        if ieee.is_nan(f, old):
            return x
        if ieee.is_nan(f, x):
            return old
        a, b = ieee.order(f, x_number), ieee.order(f, old_number)
        return x if (a > b if want_larger else a < b) else old

    return update


def _equal(f: Format, mode: Mode, x: int, y: int) -> bool:
    numbers = [mode.flush_in(f, v) for v in (x, y)]
    return not any(ieee.is_nan(f, v) for v in numbers) and ieee.order(f, numbers[0]) == ieee.order(f, numbers[1])


def add_bf16(mode: Mode, x: int, y: int) -> int:
    """In f32, then rounded to nearest even; the halves are extended by zeros."""
    total = ieee.add(mode, F32, x << 16, y << 16)
    if ieee.is_nan(F32, total):
        return ieee.quiet(F32, total) >> 16
    if ieee.is_infinite(F32, total):
        return total >> 16
    m, e = ieee.number(F32, total)
    return ieee.encode(BF16, m, e, zero_sign=ieee.is_negative(F32, total))


def _pairwise(function: Callable[..., int]) -> Callable[..., int]:
    def update(mode: Mode, old: int, x: int) -> int:
        return function(mode, old & M16, x & M16) | function(mode, old >> 16, x >> 16) << 16

    return update


UPDATES: dict[str, Update] = {}
"""By the names of global, flat and buffer instructions."""
for _bits, _suffix, _signed in ((32, "", s32), (64, "_x2", s64)):
    for _name, _function in {
        "swap": lambda mode, old, x: x,
        "add": lambda mode, old, x: old + x,
        "sub": lambda mode, old, x: old - x,
        "and": lambda mode, old, x: old & x,
        "or": lambda mode, old, x: old | x,
        "xor": lambda mode, old, x: old ^ x,
        "umin": lambda mode, old, x: min(old, x),
        "umax": lambda mode, old, x: max(old, x),
        "smin": lambda mode, old, x, s=_signed: min(old, x, key=s),
        "smax": lambda mode, old, x, s=_signed: max(old, x, key=s),
        "inc": lambda mode, old, x: 0 if old >= x else old + 1,
        "dec": lambda mode, old, x: x if old == 0 or old > x else old - 1,
    }.items():
        UPDATES[_name + _suffix] = Update(_bits, _function)
    # The data are the new value, then the expected one.
    UPDATES["cmpswap" + _suffix] = Update(_bits, lambda mode, old, new, wanted: new if old == wanted else old, 2)
UPDATES["add_f32"] = Update(32, lambda mode, old, x: ieee.add(mode, F32, old, x), type_="f32")
UPDATES["add_f64"] = Update(64, lambda mode, old, x: ieee.add(mode, F64, old, x), type_="f64")
UPDATES["min_f64"] = Update(64, _float_extreme(F64, False), type_="f64")
UPDATES["max_f64"] = Update(64, _float_extreme(F64, True), type_="f64")
UPDATES["pk_add_f16"] = Update(32, _pairwise(lambda mode, x, y: ieee.add(mode, F16, x, y)), type_="f16x2")
UPDATES["pk_add_bf16"] = Update(32, _pairwise(add_bf16), type_="bf16x2")

LDS_UPDATES: dict[str, Update] = {}
"""By the names of DS instructions that return nothing; the returning ones have `_rtn` before the type."""
for _bits, _suffix in ((32, ""), (64, "_x2")):
    for _name in ("add", "sub", "inc", "dec"):
        LDS_UPDATES[f"{_name}_u{_bits}"] = UPDATES[_name + _suffix]
    for _name in ("min", "max"):
        LDS_UPDATES[f"{_name}_u{_bits}"] = UPDATES[f"u{_name}{_suffix}"]
        LDS_UPDATES[f"{_name}_i{_bits}"] = UPDATES[f"s{_name}{_suffix}"]
    for _name in ("and", "or", "xor"):
        LDS_UPDATES[f"{_name}_b{_bits}"] = UPDATES[_name + _suffix]
    LDS_UPDATES[f"rsub_u{_bits}"] = Update(_bits, lambda mode, old, x: x - old)
    LDS_UPDATES[f"mskor_b{_bits}"] = Update(_bits, lambda mode, old, mask, x: old & ~mask | x, 2)
    # Here the expected value comes first.
    LDS_UPDATES[f"cmpst_b{_bits}"] = Update(_bits, lambda mode, old, wanted, new: new if old == wanted else old, 2)
    _f = F32 if _bits == 32 else F64
    LDS_UPDATES[f"cmpst_f{_bits}"] = Update(
        _bits, lambda mode, old, wanted, new, f=_f: new if _equal(f, mode, old, wanted) else old, 2, f"f{_bits}"
    )
    LDS_UPDATES[f"min_f{_bits}"] = Update(_bits, _float_extreme(_f, False), type_=f"f{_bits}")
    LDS_UPDATES[f"max_f{_bits}"] = Update(_bits, _float_extreme(_f, True), type_=f"f{_bits}")
for _name in ("add_f32", "add_f64", "pk_add_f16", "pk_add_bf16"):
    LDS_UPDATES[_name] = UPDATES[_name]
RETURNING_ONLY = {
    "wrxchg_b32": UPDATES["swap"],
    "wrxchg_b64": UPDATES["swap_x2"],
    "wrap_b32": Update(32, lambda mode, old, x, y: old - x if old >= x else old + y, 2),
}
"""DS instructions that exist only with `_rtn`."""


def same_float(type_: str, got: int, wanted: int) -> bool:
    """Equal, or both NaN."""
    if type_ in ("f16x2", "bf16x2"):
        part = type_[:-2]
        return all(same_float(part, g & M16, w & M16) for g, w in ((got, wanted), (got >> 16, wanted >> 16)))
    formats: dict[str, Any] = {**ieee.FORMATS, "bf16": BF16}
    f = formats.get(type_)
    return got == wanted or (f is not None and ieee.is_nan(f, got) and ieee.is_nan(f, wanted))
