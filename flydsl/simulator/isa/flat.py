"""GLOBAL, SCRATCH and FLAT: memory at 64-bit or per-thread addresses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from flydsl.simulator.isa.atomics import ATOMICS, ATOMICS_OF_CDNA5, NEW_ON_RDNA, NEW_ON_RDNA3, Atomic
from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.common import insert_half
from flydsl.simulator.isa.table import define
from flydsl.simulator.isa.transposed_tiles import TRANSPOSED, TRANSPOSED_ON_RDNA4, transposed


def _global_address(b: Builder, vector: Value, scalar: Value | None, modifiers: Any, bytes_: int) -> Value:
    """A 64-bit vector address, or a 64-bit scalar base and a 32-bit unsigned vector offset; a signed constant."""
    base = vector if scalar is None else b.add(scalar, b.zext(vector, "i64"))
    return b.add(base, b.const("i64", modifiers.integer("offset")))


def signed_address(b: Builder, vector: Value, scalar: Value | None, modifiers: Any, bytes_: int) -> Value:
    """The same on gfx1250, whose vector offset beside a base is signed, and with scale_offset counts elements of the
    access (LLVM, hasSignedGVSOffset and hasScaleOffset)."""
    base = vector
    if scalar is not None:
        offset = b.sext(vector, "i64")
        scale = bytes_ if modifiers.flag("scale_offset") else 1
        base = b.add(scalar, b.mul(offset, b.const("i64", scale)))
    elif modifiers.flag("scale_offset"):
        raise NotImplementedError("scale_offset without a scalar base")
    return b.add(base, b.const("i64", modifiers.integer("offset")))


def _scratch_address(b: Builder, vector: Value | None, scalar: Value | None, modifiers: Any, bytes_: int) -> Value:
    """A byte offset into the thread's private segment; with scale_offset the vector part counts elements."""
    if vector is not None and modifiers.flag("scale_offset"):
        vector = b.mul(vector, b.const("i32", bytes_))
    address = b.per_lane(b.const("i32", modifiers.integer("offset")))
    for part in (vector, scalar):
        address = address if part is None else b.add(address, part)
    return address


def _flat_address(b: Builder, vector: Value, modifiers: Any, bytes_: int) -> Value:
    if modifiers.flag("scale_offset"):
        raise NotImplementedError("scale_offset without a scalar base")
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


@dataclass(frozen=True)
class _Addressing:
    """The address operands of instructions of a space. words: of loads; those of stores have the data second.

    form: of the operands, as the table names it. address: gets the words' values and the bytes of an access.
    """

    space: str
    words: str
    address: Callable[..., Value]
    form: str = ""
    of: str = ""

    def name(self, instruction: str) -> str:
        variant = "/".join(filter(None, (instruction.partition("/")[2], self.form)))
        return f"{self.space}_{instruction.partition('/')[0]}" + (f"/{variant}" if variant else "")

    def of_store(self, data: str) -> str:
        first, *rest = self.words.split()
        return " ".join((first, data, *rest))


_LANE_OF_SCRATCH = 52
"""The first bit of the lane's number in a flat address of scratch, on gfx1250."""


def _address_with_lane(b: Builder, vector: Value, modifiers: Any, bytes_: int) -> Value:
    """A flat address. Those in scratch name their lane (LLVM, SIISelLowering, lowerADDRSPACECAST): taken away, another
    lane's is no address at all."""
    address = _flat_address(b, vector, modifiers, bytes_)
    lane = b.shl(b.zext(b.per_lane(b.lane_id()), "i64"), b.const("i64", _LANE_OF_SCRATCH))
    own = b.sub(address, lane)
    upper = b.and_(own, b.const("i64", 0xFFFF_FFFF_0000_0000))
    is_scratch = b.icmp("eq", upper, b.aperture("src_private_base"))
    return b.select(is_scratch, own, address)


_EVERYWHERE = (
    _Addressing("global", "any any modifiers", _global_address),
    _Addressing("scratch", "any any modifiers", _scratch_address),
    _Addressing("flat", "i64 modifiers", _flat_address),
)
_OF_CDNA5 = (
    _Addressing("global", "any any modifiers", signed_address, of="cdna5"),
    _Addressing("flat", "i64 modifiers", _address_with_lane, of="cdna5"),
    _Addressing("flat", "i32 i64 modifiers", signed_address, "base", "cdna5"),
)
SMALL_LOADS = {"ubyte": (8, False), "sbyte": (8, True), "ushort": (16, False), "sshort": (16, True)}
D16_LOADS = {"ubyte_d16": (8, False), "sbyte_d16": (8, True), "short_d16": (16, False)}


def _define_space(at: _Addressing) -> None:
    space, words, address_of = at.space, at.words, at.address
    for suffix, dwords in (("", 1), ("x2", 2), ("x3", 3), ("x4", 4)):
        define(
            at.name(f"load_dword{suffix}"),
            f"i32x{dwords} = {words}",
            lambda b, *address, n=dwords: b.load(space, address_of(b, *address, 4 * n), n),
            of=at.of,
        )
    for name, (bits, signed) in SMALL_LOADS.items():
        define(
            at.name(f"load_{name}"),
            f"i32 = {words}",
            lambda b, *address, n=bits, s=signed: extend_small(
                b, b.load_small(space, address_of(b, *address, n // 8), n // 8), n, signed=s
            ),
            of=at.of,
        )
    _define_d16_loads(at)
    _define_stores(at)


def _define_d16_loads(at: _Addressing) -> None:
    for name, (bits, signed) in D16_LOADS.items():
        for suffix, high in (("", False), ("_hi", True)):

            def load(b: Builder, *operands: Any, n: int = bits, s: bool = signed, h: bool = high) -> Value:
                *address, old = operands
                value = b.load_small(at.space, at.address(b, *address, n // 8), n // 8)
                return insert_half(b, old, extend_small(b, value, n, signed=s), high=h)

            define(at.name(f"load_{name}{suffix}"), f"i32 = {at.words} dst", load, of=at.of)


def _define_stores(at: _Addressing) -> None:
    """Define the stores. Their operands are address, data, base; for flat stores, address and data."""

    def arranged(vector: Value, data: Value, *rest: Any) -> tuple[Value, tuple[Any, ...]]:
        return data, (vector, *rest)

    for suffix, dwords in (("", 1), ("x2", 2), ("x3", 3), ("x4", 4)):

        def store(b: Builder, *operands: Any, n: int = dwords) -> None:
            data, address = arranged(*operands)
            b.store(at.space, at.address(b, *address, 4 * n), data)

        define(at.name(f"store_dword{suffix}"), "= " + at.of_store(f"i32x{dwords}"), store, of=at.of)
    for name, bytes_, shift in (("byte", 1, 0), ("short", 2, 0), ("byte_d16_hi", 1, 16), ("short_d16_hi", 2, 16)):

        def store_small(b: Builder, *operands: Any, n: int = bytes_, s: int = shift) -> None:
            data, address = arranged(*operands)
            b.store_small(at.space, at.address(b, *address, n), b.lshr(data, b.const("i32", s)), n)

        define(at.name(f"store_{name}"), "= " + at.of_store("i32"), store_small, of=at.of)


_FROM_CDNA3 = {"global": ("pk_add_bf16",), "flat": ("add_f32", "pk_add_f16", "pk_add_bf16")}
"""Atomics that CDNA 2 does not have."""


def _define_atomics(at: _Addressing, atomics: Mapping[str, Atomic]) -> None:
    """Define the atomics. With sc0 they return the old value: the text then has a result operand in front."""
    for name, atomic in atomics.items():

        def evaluate(b: Builder, vector: Value, data: Any, *rest: Any, a: Atomic = atomic) -> Any:
            return a.perform(b, at.space, at.address(b, vector, *rest, a.bits // 8), data)

        sources = at.of_store(atomic.data_word)
        of = at.of or ("cdna3 rdna" if name in _FROM_CDNA3[at.space] else "rdna" if name in NEW_ON_RDNA else "")
        define(at.name(f"atomic_{name}"), "= " + sources, evaluate, of=of)
        define(at.name(f"atomic_{name}/returning"), f"i32x{atomic.bits // 32} = " + sources, evaluate, of=of)


def _define_loads_to_lds(space: str, of: str) -> None:
    """Define the loads into LDS, which extend less than a dword to one."""
    words = "any any modifiers"
    address_of = {"global": _global_address, "scratch": _scratch_address}[space]

    def load(b: Builder, vector: Value, scalar: Value | None, modifiers: Any, m0: Value, n: int = 1) -> None:
        store_to_lds(b, b.load(space, address_of(b, vector, scalar, modifiers, 4 * n), n), m0, modifiers, of)

    define(f"{space}_load_lds_dword", f"= {words} m0", load, of=of)
    if space == "global" and of == "cdna4":
        for wide in (3, 4):
            define(f"global_load_lds_dwordx{wide}", f"= {words} m0", partial(load, n=wide), of=of)
    for name, (bits, signed) in SMALL_LOADS.items():

        def load_small(
            b: Builder, vector: Value, scalar: Value | None, m: Any, m0: Value, n: int = bits, s: bool = signed
        ) -> None:
            value = b.load_small(space, address_of(b, vector, scalar, m, n // 8), n // 8)
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


def _define_transposing_loads(at: _Addressing, names: Mapping[str, str]) -> None:
    """names: suffixes of the instructions, and what `transposed` calls them."""
    for suffix, name in names.items():
        dwords = int(suffix.rpartition("b")[2]) // 32

        def load(b: Builder, *address: Any, n: int = dwords, s: str = name) -> tuple[Value, ...]:
            if b.lane_count == 64:
                raise NotImplementedError("a transposing load in waves of 64 lanes")
            return transposed(b, b.load(at.space, at.address(b, *address, 4 * n), n), s)

        define(at.name(f"load_{suffix}"), f"i32x{dwords} = {at.words}", load, of=at.of)


def _define_monitor_loads(at: _Addressing) -> None:
    """Define the loads after which s_monitor_sleep may wait: here, that other waves go first."""
    for bits in (32, 64, 128):
        n = bits // 32
        define(
            at.name(f"load_monitor_b{bits}"),
            f"i32x{n} = {at.words}",
            lambda b, *address, n=n: b.load(at.space, at.address(b, *address, 4 * n), n),
            of=at.of,
        )


_BLOCK = 32
"""The registers of a block, one for each bit of M0."""


def _define_blocks(at: _Addressing) -> None:
    """Define the load and the store of the registers, and dwords of memory, that the bits of M0 name."""

    def place(b: Builder, address: Value, m0: Value, i: int) -> tuple[Value, Value]:
        type_ = "i32" if at.space == "scratch" else "i64"
        is_named = b.icmp("ne", b.and_(m0, b.const("i32", 1 << i)), b.const("i32", 0))
        return b.add(address, b.const(type_, 4 * i)), b.per_lane(is_named)

    def load(b: Builder, *operands: Any) -> tuple[Value, ...]:
        *address, old, m0 = operands
        first, result = at.address(b, *address, 4), []
        for i, before in enumerate(old):
            at_dword, is_named = place(b, first, m0, i)
            (loaded,) = b.load(at.space, at_dword, 1, is_named)
            result.append(b.select(is_named, loaded, before))
        return tuple(result)

    def store(b: Builder, vector: Value, data: tuple[Value, ...], *rest: Any) -> None:
        *address, m0 = rest
        first = at.address(b, vector, *address, 4)
        for i, value in enumerate(data):
            at_dword, is_named = place(b, first, m0, i)
            b.store(at.space, at_dword, (value,), is_named)

    define(at.name("load_block"), f"i32x{_BLOCK} = {at.words} dst m0", load, of=at.of)
    define(at.name("store_block"), f"= {at.of_store(f'i32x{_BLOCK}')} m0", store, of=at.of)


for _addressing in (*_EVERYWHERE[:2], _OF_CDNA5[0]):
    _define_blocks(_addressing if _addressing.of else replace(_addressing, of="rdna"))
_define_transposing_loads(_OF_CDNA5[0], {name: f"global_{name}" for name in TRANSPOSED})
_define_transposing_loads(replace(_EVERYWHERE[0], of="rdna4"), TRANSPOSED_ON_RDNA4)
for _addressing in _OF_CDNA5:
    _define_monitor_loads(_addressing)
for _addressing in (*_EVERYWHERE, *_OF_CDNA5):
    _define_space(_addressing)
    if _addressing.space != "scratch":
        _define_atomics(_addressing, ATOMICS_OF_CDNA5 if _addressing.of == "cdna5" else ATOMICS | NEW_ON_RDNA)
    if not _addressing.of and _addressing.space != "scratch":
        _define_atomics(replace(_addressing, of="rdna3"), NEW_ON_RDNA3)
