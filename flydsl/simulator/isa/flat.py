"""GLOBAL, SCRATCH and FLAT: memory at 64-bit or per-thread addresses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from flydsl.simulator.isa.atomics import ATOMICS, NEW_ON_RDNA, Atomic
from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.common import insert_half
from flydsl.simulator.isa.table import define


def _global_address(b: Builder, vector: Value, scalar: Value | None, modifiers: Any) -> Value:
    """A 64-bit vector address, or a 64-bit scalar base and a 32-bit unsigned vector offset; a signed constant."""
    base = vector if scalar is None else b.add(scalar, b.zext(vector, "i64"))
    return b.add(base, b.const("i64", modifiers.integer("offset")))


def _scratch_address(b: Builder, vector: Value | None, scalar: Value | None, modifiers: Any) -> Value:
    """A byte offset into the thread's private segment."""
    address = b.per_lane(b.const("i32", modifiers.integer("offset")))
    for part in (vector, scalar):
        address = address if part is None else b.add(address, part)
    return address


def _flat_address(b: Builder, vector: Value, modifiers: Any) -> Value:
    return b.add(vector, b.const("i64", modifiers.integer("offset")))


LDS_ADDRESS_BITS = {"": 16, "cdna3": 16, "cdna4": 18}
"""The bits of M0 that are an address in LDS, by set of instructions: as many as the LDS needs."""


def store_to_lds(b: Builder, data: Sequence[Value], m0: Value, modifiers: Any, of: str) -> None:
    """A load straight into LDS: lane i's n dwords go to the address in M0 + offset + 4 n i."""
    mask = (1 << LDS_ADDRESS_BITS[of]) - 1
    base = b.add(b.and_(m0, b.const("i32", mask)), b.const("i32", modifiers.integer("offset")))
    b.store("lds", b.add(base, b.mul(b.lane_id(), b.const("i32", 4 * len(data)))), tuple(data))


def extend_small(b: Builder, value: Value, bits: int, *, signed: bool) -> Value:
    return b.sext(b.trunc(value, f"i{bits}"), "i32") if signed else value


_ADDRESSING: dict[str, tuple[str, Callable[..., Value]]] = {
    "global": ("any any modifiers", _global_address),
    "scratch": ("any any modifiers", _scratch_address),
    "flat": ("i64 modifiers", _flat_address),
}
SMALL_LOADS = {"ubyte": (8, False), "sbyte": (8, True), "ushort": (16, False), "sshort": (16, True)}
D16_LOADS = {"ubyte_d16": (8, False), "sbyte_d16": (8, True), "short_d16": (16, False)}


def _define_space(space: str) -> None:
    words, address_of = _ADDRESSING[space]
    for suffix, dwords in (("", 1), ("x2", 2), ("x3", 3), ("x4", 4)):
        define(
            f"{space}_load_dword{suffix}",
            f"i32x{dwords} = {words}",
            lambda b, *address, n=dwords: b.load(space, address_of(b, *address), n),
        )
    for name, (bits, signed) in SMALL_LOADS.items():
        define(
            f"{space}_load_{name}",
            f"i32 = {words}",
            lambda b, *address, n=bits, s=signed: extend_small(
                b, b.load_small(space, address_of(b, *address), n // 8), n, signed=s
            ),
        )
    _define_d16_loads(space)
    _define_stores(space)


def _define_d16_loads(space: str) -> None:
    words, address_of = _ADDRESSING[space]
    for name, (bits, signed) in D16_LOADS.items():
        for suffix, high in (("", False), ("_hi", True)):

            def load(b: Builder, *operands: Any, n: int = bits, s: bool = signed, h: bool = high) -> Value:
                *address, old = operands
                value = b.load_small(space, address_of(b, *address), n // 8)
                return insert_half(b, old, extend_small(b, value, n, signed=s), high=h)

            define(f"{space}_load_{name}{suffix}", f"i32 = {words} dst", load)


def _define_stores(space: str) -> None:
    """Define the stores. Their operands are address, data, base; for flat stores, address and data."""
    _, address_of = _ADDRESSING[space]
    words = "i64 {} modifiers" if space == "flat" else "any {} any modifiers"

    def arranged(vector: Value, data: Value, *rest: Any) -> tuple[Value, tuple[Any, ...]]:
        return data, (vector, *rest)

    for suffix, dwords in (("", 1), ("x2", 2), ("x3", 3), ("x4", 4)):

        def store(b: Builder, *operands: Any) -> None:
            data, address = arranged(*operands)
            b.store(space, address_of(b, *address), data)

        define(f"{space}_store_dword{suffix}", "= " + words.format(f"i32x{dwords}"), store)
    for name, bytes_, shift in (("byte", 1, 0), ("short", 2, 0), ("byte_d16_hi", 1, 16), ("short_d16_hi", 2, 16)):

        def store_small(b: Builder, *operands: Any, n: int = bytes_, s: int = shift) -> None:
            data, address = arranged(*operands)
            b.store_small(space, address_of(b, *address), b.lshr(data, b.const("i32", s)), n)

        define(f"{space}_store_{name}", "= " + words.format("i32"), store_small)


_FROM_CDNA3 = {"global": ("pk_add_bf16",), "flat": ("add_f32", "pk_add_f16", "pk_add_bf16")}
"""Atomics that CDNA 2 does not have."""


def _define_atomics(space: str) -> None:
    """Define the atomics. With sc0 they return the old value: the text then has a result operand in front."""
    _, address_of = _ADDRESSING[space]
    words = "i64 {} modifiers" if space == "flat" else "any {} any modifiers"
    for name, atomic in (ATOMICS | NEW_ON_RDNA).items():

        def evaluate(b: Builder, vector: Value, data: Any, *rest: Any, a: Atomic = atomic) -> Any:
            return a.perform(b, space, address_of(b, vector, *rest), data)

        sources = words.format(atomic.data_word)
        of = "cdna3 rdna" if name in _FROM_CDNA3[space] else "rdna" if name in NEW_ON_RDNA else ""
        define(f"{space}_atomic_{name}", "= " + sources, evaluate, of=of)
        define(f"{space}_atomic_{name}/returning", f"i32x{atomic.bits // 32} = " + sources, evaluate, of=of)


def _define_loads_to_lds(space: str, of: str) -> None:
    """Define the loads into LDS, which extend less than a dword to one."""
    words, address_of = _ADDRESSING[space]

    def load(b: Builder, vector: Value, scalar: Value | None, modifiers: Any, m0: Value, n: int = 1) -> None:
        store_to_lds(b, b.load(space, address_of(b, vector, scalar, modifiers), n), m0, modifiers, of)

    define(f"{space}_load_lds_dword", f"= {words} m0", load, of=of)
    if space == "global" and of == "cdna4":
        for wide in (3, 4):
            define(f"global_load_lds_dwordx{wide}", f"= {words} m0", partial(load, n=wide), of=of)
    for name, (bits, signed) in SMALL_LOADS.items():

        def load_small(
            b: Builder, vector: Value, scalar: Value | None, m: Any, m0: Value, n: int = bits, s: bool = signed
        ) -> None:
            value = b.load_small(space, address_of(b, vector, scalar, m), n // 8)
            store_to_lds(b, [extend_small(b, value, n, signed=s)], m0, m, of)

        define(f"{space}_load_lds_{name}", f"= {words} m0", load_small, of=of)


def _consecutive_address(b: Builder, scalar: Value | None, modifiers: Any) -> Value:
    """A dword for each lane, one after the other."""
    if scalar is None:
        raise NotImplementedError("an address without a scalar base")
    lanes = b.mul(b.lane_id(), b.const("i32", 4))
    return b.add(b.add(scalar, b.const("i64", modifiers.integer("offset"))), b.zext(b.per_lane(lanes), "i64"))


define(
    "global_load_addtid_b32",
    "i32x1 = any modifiers",
    lambda b, scalar, m: b.load("global", _consecutive_address(b, scalar, m), 1),
    of="rdna",
)
define(
    "global_store_addtid_b32",
    "= i32x1 any modifiers",
    lambda b, data, scalar, m: b.store("global", _consecutive_address(b, scalar, m), data),
    of="rdna",
)
for _set in ("cdna3", "cdna4"):
    for _space in ("global", "scratch"):
        _define_loads_to_lds(_space, _set)
for _space in ("global", "scratch", "flat"):
    _define_space(_space)
for _space in ("global", "flat"):
    _define_atomics(_space)
