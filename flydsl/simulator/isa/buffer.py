"""MUBUF: memory through a buffer resource, which limits what can be reached.

A resource is four scalar registers: base (48 bits), stride (14 bits), num_records, flags. With stride 0, or without an
index (idxen), num_records counts bytes, else elements. Out of range reads give 0 and out of range writes do nothing,
dword by dword (ISA, "Range checking"). Swizzled resources, and those that add the lane to the index, are simulated for
gfx1250 only: on other GPUs an access through one is a fault, but for the one through which kernels of CDNA 2 reach
scratch.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from flydsl.simulator.isa.atomics import ATOMICS, ATOMICS_OF_CDNA5, ATOMICS_OF_RDNA, NEW_ON_RDNA3, Atomic
from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.common import curried, insert_half
from flydsl.simulator.isa.flat import D16_LOADS, SMALL_LOADS, extend_small, store_to_lds
from flydsl.simulator.isa.scalar_memory import records_of_cdna5
from flydsl.simulator.isa.table import define
from flydsl.simulator.memory.buffers import PRIVATE_APERTURE, SCRATCH_RESOURCE, THROUGH_SWIZZLED_RESOURCE


class _Place:
    """The address of a buffer instruction, and the lanes that are in range."""

    space = "global"

    def __init__(self, b: Builder, vector: Value, resource: tuple[Value, ...], scalar: Value, modifiers: Any) -> None:
        index, offset = self._index_and_offset(b, vector, modifiers)
        # These two wrap at 32 bits, the scalar offset does not (LLVM, AMDGPU: "Buffer resource"; loops that start at a
        # negative offset rely on it).
        offset = b.zext(b.add(offset, b.const("i32", modifiers.integer("offset"))), "i64")
        offset = b.add(offset, b.zext(scalar, "i64"))
        stride = b.zext(b.and_(b.lshr(resource[1], b.const("i32", 16)), b.const("i32", 0x3FFF)), "i64")
        upper = b.and_(resource[1], b.const("i32", 0xFFFF))
        swizzled = self._is_swizzled(b, resource)
        base = b.select(swizzled, b.const("i64", THROUGH_SWIZZLED_RESOURCE), b.join((resource[0], upper)))
        self._b, self._offset, self._index = b, offset, index
        self._records = b.zext(b.select(swizzled, b.const("i32", 0xFFFF_FFFF), resource[2]), "i64")
        self._is_indexed = modifiers.flag("idxen")
        self._has_no_stride = b.icmp("eq", stride, b.const("i64", 0))
        self._stride, self._flags = stride, resource[3]
        self.address = b.add(b.add(base, offset), b.mul(b.zext(index, "i64"), stride))

    SWIZZLE = 1 << 31
    """The bit of the resource's second dword that enables swizzling."""

    @classmethod
    def _is_swizzled(cls, b: Builder, resource: tuple[Value, ...]) -> Value:
        """True if SWIZZLE_ENABLE or ADD_TID_ENABLE is set (ISA, "Buffer Resource Descriptor")."""
        swizzle = b.and_(resource[1], b.const("i32", cls.SWIZZLE))
        add_lane = b.and_(resource[3], b.const("i32", 1 << 23))
        return b.icmp("ne", b.or_(swizzle, add_lane), b.const("i32", 0))

    @staticmethod
    def _index_and_offset(b: Builder, vector: Value, modifiers: Any) -> tuple[Value, Value]:
        zero = b.per_lane(b.const("i32", 0))
        idxen, offen = modifiers.flag("idxen"), modifiers.flag("offen")
        if idxen and offen:
            parts = b.split(vector)
            return parts[0], parts[1]
        return vector if idxen else zero, vector if offen else zero

    def in_range(self, first_byte: int, bytes_: int) -> Value:
        """True if the `bytes_` bytes from `first_byte` on lie within the buffer."""
        b = self._b
        end = b.add(self._offset, b.const("i64", first_byte + bytes_))
        raw = b.icmp("ule", end, self._records)
        if not self._is_indexed:
            return raw
        structured = b.icmp("ult", b.zext(self._index, "i64"), self._records)
        return b.select(self._has_no_stride, raw, structured)

    def dword(self, i: int) -> tuple[Value, Value]:
        """Address and range check of the i-th dword."""
        b = self._b
        return b.add(self.address, b.const("i64", 4 * i)), self.in_range(4 * i, 4)

    def is_whole(self, dwords: int) -> Value:
        """True if so many dwords follow each other, and all of them lie within the buffer."""
        return self.in_range(0, 4 * dwords)

    def load(self, dwords: int) -> tuple[Value, ...]:
        """Load dwords, each of which is 0 where it does not lie within the buffer."""
        if dwords == 1:
            return self._b.load(self.space, self.address, 1, self.in_range(0, 4))
        return self._b.load_dwords(self.space, self.address, dwords, self.is_whole(dwords), self.dword)


class _PlaceOfCdna2(_Place):
    """Kernels of CDNA 2 also reach scratch by buffer instructions.

    They use the resource that the command processor gives a wave, here `SCRATCH_RESOURCE`. Its dwords are interleaved
    over the 64 lanes, and its scalar offset counts bytes of the whole wave (LLVM, AMDGPUUsage, "Private Segment
    Buffer").
    """

    space = "flat"

    def __init__(self, b: Builder, vector: Value, resource: tuple[Value, ...], scalar: Value, modifiers: Any) -> None:
        super().__init__(b, vector, resource, scalar, modifiers)
        own = b.add(self._index_and_offset(b, vector, modifiers)[1], b.const("i32", modifiers.integer("offset")))
        own = b.add(own, b.lshr(scalar, b.const("i32", 6)))
        in_scratch = b.or_(b.const("i64", PRIVATE_APERTURE), b.zext(own, "i64"))
        self.address = b.select(self._is_scratch(b, resource), in_scratch, self.address)

    @staticmethod
    def _is_scratch(b: Builder, resource: tuple[Value, ...]) -> Value:
        same = [b.icmp("eq", word, b.const("i32", own)) for word, own in zip(resource, SCRATCH_RESOURCE, strict=True)]
        return b.and_(b.and_(same[0], same[1]), same[3])


class _PlaceOfRdna(_Place):
    """OOB_SELECT of the resource says how the range is checked (ISA, "Buffer Resource Descriptor").

    0: the index, and the offset in the stride; 1: the index; 2: only that there are records; 3: the bytes.
    A resource without a stride is checked by bytes in the first two cases, too.
    """

    SWIZZLE = 3 << 30

    def in_range(self, first_byte: int, bytes_: int) -> Value:
        b = self._b
        end = b.add(self._offset, b.const("i64", first_byte + bytes_))
        raw = b.icmp("ule", end, self._records)
        by_index = b.icmp("ult", b.zext(self._index, "i64"), self._records)
        structured = b.and_(by_index, b.icmp("ule", end, self._stride))
        select = b.and_(b.lshr(self._flags, b.const("i32", 28)), b.const("i32", 3))

        def selected(number: int) -> Value:
            return b.icmp("eq", select, b.const("i32", number))

        exists = b.icmp("ne", self._records, b.const("i64", 0))
        with_stride = b.select(selected(0), structured, by_index)
        checked = b.select(b.or_(selected(3), self._has_no_stride), raw, with_stride)
        return b.select(selected(2), exists, checked)


class _PlaceOfCdna5(_Place):
    """A resource of gfx1250: 57 bits of base, 45 of num_records, which counts bytes, and 14 of stride, in units of 1,
    4, 8 or 32 bytes. Offsets from a register and from the instruction are added without wrapping. (LLVM,
    SIISelLowering.cpp, lowerPointerAsRsrcIntrin; AMD's functional model, rocm-systems, cdna5/addr_calc.cpp.)

    With bit 29 of the last dword, an access must stay within its record. Bit 28 is the swizzle: 16 bytes of each of 32
    records lie side by side; num_records is then ignored, unless it is 0
    (ROCm/rocjitsu-test-corpus, cts, buffer_descriptor_modes_test, after the ISA).
    """

    _INDICES_LOG2, _BYTES = 5, 16

    def __init__(self, b: Builder, vector: Value, resource: tuple[Value, ...], scalar: Value, modifiers: Any) -> None:
        index, offset = self._index_and_offset(b, vector, modifiers)
        offset = b.add(b.zext(offset, "i64"), b.const("i64", modifiers.integer("offset")))
        offset = b.add(offset, b.zext(scalar, "i64"))
        low, high = b.join(resource[:2]), b.join(resource[2:])
        last = resource[3]
        self._is_swizzle = b.icmp("ne", b.and_(last, b.const("i32", 1 << 28)), b.const("i32", 0))
        self._base = b.and_(low, b.const("i64", (1 << 57) - 1))
        self._records = records_of_cdna5(b, low, high)
        scale = b.and_(b.lshr(last, b.const("i32", 26)), b.const("i32", 3))
        shift = b.lshr(b.const("i32", 0x5320), b.mul(scale, b.const("i32", 4)))
        stride = b.and_(b.lshr(last, b.const("i32", 12)), b.const("i32", 0x3FFF))
        stride = b.zext(b.shl(stride, b.and_(shift, b.const("i32", 7))), "i64")
        self._b, self._offset, self._index = b, offset, index
        self._of_record = b.icmp("ne", b.and_(last, b.const("i32", 1 << 29)), b.const("i32", 0))
        self._stride = stride
        self._total = b.add(offset, b.mul(b.zext(index, "i64"), stride))
        self.address = self._address(0)

    def in_range(self, first_byte: int, bytes_: int) -> Value:
        b, beyond = self._b, first_byte + bytes_
        inside = b.icmp("ule", b.add(self._total, b.const("i64", beyond)), self._records)
        in_record = b.icmp("ule", b.add(self._offset, b.const("i64", beyond)), self._stride)
        linear = b.and_(inside, b.or_(in_record, b.not_(self._of_record)))
        return b.select(self._is_swizzle, b.icmp("ne", self._records, b.const("i64", 0)), linear)

    def dword(self, i: int) -> tuple[Value, Value]:
        return self._address(4 * i), self.in_range(4 * i, 4)

    def is_whole(self, dwords: int) -> Value:
        return self._b.and_(self.in_range(0, 4 * dwords), self._b.not_(self._is_swizzle))

    def _address(self, first_byte: int) -> Value:
        b = self._b
        index = b.zext(self._index, "i64")
        first = b.const("i64", first_byte)
        offset, several = b.add(self._offset, first), b.const("i64", self._INDICES_LOG2)
        whole = b.and_(offset, b.const("i64", -self._BYTES))
        of_indices = b.add(b.mul(b.lshr(index, several), self._stride), whole)
        place = b.mul(b.and_(index, b.const("i64", (1 << self._INDICES_LOG2) - 1)), b.const("i64", self._BYTES))
        within = b.add(place, b.and_(offset, b.const("i64", self._BYTES - 1)))
        swizzled = b.add(b.shl(of_indices, several), within)
        return b.add(self._base, b.select(self._is_swizzle, swizzled, b.add(self._total, first)))


_ADDRESS = "any i32x4 i32 modifiers"


def _define_loads(at: type[_Place], of: str) -> None:
    for suffix, dwords in (("", 1), ("x2", 2), ("x3", 3), ("x4", 4)):

        def load(b: Builder, *address: Any, n: int = dwords) -> tuple[Value, ...]:
            return at(b, *address).load(n)

        define(f"buffer_load_dword{suffix}", f"i32x{dwords} = {_ADDRESS}", load, of=of)
    for name, (bits, signed) in SMALL_LOADS.items():

        def load_small(b: Builder, *address: Any, n: int = bits, s: bool = signed) -> Value:
            place = at(b, *address)
            value = b.load_small(place.space, place.address, n // 8, place.in_range(0, n // 8))
            return extend_small(b, value, n, signed=s)

        define(f"buffer_load_{name}", f"i32 = {_ADDRESS}", load_small, of=of)
    for name, (bits, signed) in D16_LOADS.items():
        for suffix, high in (("", False), ("_hi", True)):

            def load_half(b: Builder, *operands: Any, n: int = bits, s: bool = signed, h: bool = high) -> Value:
                place = at(b, *operands[:-1])
                value = b.load_small(place.space, place.address, n // 8, place.in_range(0, n // 8))
                return insert_half(b, operands[-1], extend_small(b, value, n, signed=s), high=h)

            define(f"buffer_load_{name}{suffix}", f"i32 = {_ADDRESS} dst", load_half, of=of)


def _define_lds_loads(of: str) -> None:
    """Define the loads with the modifier lds, which have no result register in the text."""

    def load(b: Builder, vector: Value, resource: Any, scalar: Value, modifiers: Any, m0: Value, n: int = 1) -> None:
        store_to_lds(b, _Place(b, vector, resource, scalar, modifiers).load(n), m0, modifiers, of)

    define("buffer_load_dword/lds", f"= {_ADDRESS} m0", load, of=of)
    for wide in (3, 4) if of == "cdna4" else ():
        define(f"buffer_load_dwordx{wide}/lds", f"= {_ADDRESS} m0", partial(load, n=wide), of=of)
    for name, (bits, signed) in SMALL_LOADS.items():

        def load_small(
            b: Builder, vector: Value, resource: Any, scalar: Value, m: Any, m0: Value, n: int = bits, s: bool = signed
        ) -> None:
            place = _Place(b, vector, resource, scalar, m)
            value = b.load_small("global", place.address, n // 8, place.in_range(0, n // 8))
            store_to_lds(b, [extend_small(b, value, n, signed=s)], m0, m, of)

        define(f"buffer_load_{name}/lds", f"= {_ADDRESS} m0", load_small, of=of)


def _define_stores(at: type[_Place], of: str) -> None:
    for suffix, dwords in (("", 1), ("x2", 2), ("x3", 3), ("x4", 4)):

        def store(b: Builder, data: tuple[Value, ...], *address: Any) -> None:
            place = at(b, *address)
            places = [place.dword(i) for i in range(len(data))]
            b.store_dwords(place.space, [address_ for address_, _ in places], data, [where for _, where in places])

        define(f"buffer_store_dword{suffix}", f"= i32x{dwords} {_ADDRESS}", store, of=of)
    for name, bytes_, shift in (("byte", 1, 0), ("short", 2, 0), ("byte_d16_hi", 1, 16), ("short_d16_hi", 2, 16)):

        def store_small(b: Builder, data: Value, *address: Any, n: int = bytes_, s: int = shift) -> None:
            place = at(b, *address)
            value = b.lshr(data, b.const("i32", s))
            b.store_small(place.space, place.address, value, n, place.in_range(0, n))

        define(f"buffer_store_{name}", f"= i32 {_ADDRESS}", store_small, of=of)


def _define_atomics(at: type[_Place], atomics: Mapping[str, Atomic], of: str) -> None:
    for name, atomic in atomics.items():
        if name == "pk_add_bf16" and of == "cdna2":
            continue
        set_ = "cdna4" if name == "pk_add_bf16" and not of else of

        def evaluate(b: Builder, data: tuple[Value, ...], *address: Any, a: Atomic = atomic) -> Any:
            place = at(b, *address)
            return a.perform(b, place.space, place.address, data, place.in_range(0, a.bits // 8))

        define(f"buffer_atomic_{name}", f"= {atomic.data_word} {_ADDRESS}", evaluate, of=set_)
        returning = _returning(evaluate)
        define(f"buffer_atomic_{name}/returning", f"{atomic.data_word} = dst {_ADDRESS}", returning, of=set_)


@curried
def _returning(evaluate: Any, b: Builder, data: tuple[Value, ...], *address: Any) -> tuple[Value, ...]:
    """The old value takes the place of the first data registers; a compare-and-swap's others stay."""
    old = evaluate(b, data, *address)
    return (*old, *data[len(old) :])


for _at, _set, _atomics in (
    (_Place, "", ATOMICS),
    (_PlaceOfCdna2, "cdna2", ATOMICS),
    (_PlaceOfRdna, "rdna", ATOMICS_OF_RDNA),
    (_PlaceOfCdna5, "cdna5", ATOMICS_OF_CDNA5),
):
    _define_loads(_at, _set)
    _define_stores(_at, _set)
    _define_atomics(_at, _atomics, _set)
_define_atomics(_PlaceOfRdna, NEW_ON_RDNA3, "rdna3")
for _set in ("", "cdna4"):
    _define_lds_loads(_set)
