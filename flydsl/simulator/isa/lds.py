"""DS: the memory that a workgroup shares, at 32-bit byte addresses from the workgroup's base."""

from __future__ import annotations

from typing import Any

from flydsl.simulator.isa.atomics import ATOMICS, ATOMICS_OF_CDNA5, NEW_ON_RDNA, NEW_ON_RDNA3, Atomic
from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.common import curried, insert_half
from flydsl.simulator.isa.extremes import extreme_number
from flydsl.simulator.isa.fields import field_of, packed_fields
from flydsl.simulator.isa.flat import extend_small
from flydsl.simulator.isa.table import define
from flydsl.simulator.isa.transposed_tiles import TRANSPOSED, of_the_lane, transposed

_WIDTHS = (("b32", 1), ("b64", 2), ("b96", 3), ("b128", 4))
_ROW = 16
"""Elements of a row of a matrix that is read transposed, and the lanes that get its columns."""
_STRIDES = (("", 1), ("st64", 64))
"""The offsets of the two-address forms count elements, or 64 elements."""


def _at(b: Builder, address: Value, offset_bytes: int) -> Value:
    return b.add(address, b.const("i32", offset_bytes))


def _place(b: Builder, address: Value, modifiers: Any) -> Value:
    return _at(b, address, modifiers.integer("offset"))


def _two_places(b: Builder, address: Value, modifiers: Any, unit_bytes: int) -> tuple[Value, Value]:
    first, second = modifiers.integer("offset0"), modifiers.integer("offset1")
    return _at(b, address, first * unit_bytes), _at(b, address, second * unit_bytes)


def _define_reads() -> None:
    for width, dwords in _WIDTHS:
        define(
            f"ds_read_{width}",
            f"i32x{dwords} = i32 modifiers",
            lambda b, address, m, n=dwords: b.load("lds", _place(b, address, m), n),
        )
    for name, bits, signed in (("u8", 8, False), ("i8", 8, True), ("u16", 16, False), ("i16", 16, True)):

        def read_small(b: Builder, address: Value, m: Any, n: int = bits, s: bool = signed) -> Value:
            return extend_small(b, b.load_small("lds", _place(b, address, m), n // 8), n, signed=s)

        define(f"ds_read_{name}", "i32 = i32 modifiers", read_small)
        for suffix, high in (("_d16", False), ("_d16_hi", True)):

            def read_half(b: Builder, address: Value, m: Any, old: Value, f: Any = read_small, h: bool = high) -> Value:
                return insert_half(b, old, f(b, address, m), high=h)

            if name != "i16":
                define(f"ds_read_{name}{suffix}", "i32 = i32 modifiers dst", read_half)
    for width, dwords in _WIDTHS[:2]:
        for stride, elements in _STRIDES:

            def read2(b: Builder, address: Value, m: Any, n: int = dwords, e: int = elements) -> tuple[Value, ...]:
                first, second = _two_places(b, address, m, 4 * n * e)
                return (*b.load("lds", first, n), *b.load("lds", second, n))

            define(f"ds_read2{stride}_{width}", f"i32x{2 * dwords} = i32 modifiers", read2)


NOWHERE = 0x7FFF_FFFF
"""The address that Triton gives lanes of gfx1250 that are to store nothing: the hardware drops what is beyond LDS."""


def is_somewhere(b: Builder, address: Value, place: Value) -> Value:
    """True where neither a lane's address nor the place that it is with the instruction's offset is nowhere: LLVM takes
    a constant that all lanes add, masked off or not, into the offset."""
    nowhere = b.const("i32", NOWHERE)
    return b.and_(b.icmp("ne", address, nowhere), b.icmp("ne", place, nowhere))


def _everywhere(b: Builder, address: Value, place: Value) -> None:
    """All lanes store."""


def _define_writes(of: str, is_stored: Any) -> None:
    """Define the writes, for GPUs of a set; is_stored: the lanes that write, by address and place, None for all."""

    def write(b: Builder, address: Value, data: Any, m: Any) -> None:
        place = _place(b, address, m)
        b.store("lds", place, data, is_stored(b, address, place))

    for width, dwords in _WIDTHS:
        define(f"ds_write_{width}", f"= i32 i32x{dwords} modifiers", write, of=of)
    for name, bytes_, shift in (("b8", 1, 0), ("b16", 2, 0), ("b8_d16_hi", 1, 16), ("b16_d16_hi", 2, 16)):

        def write_small(b: Builder, address: Value, data: Value, m: Any, n: int = bytes_, s: int = shift) -> None:
            part, place = b.lshr(data, b.const("i32", s)), _place(b, address, m)
            b.store_small("lds", place, part, n, is_stored(b, address, place))

        define(f"ds_write_{name}", "= i32 i32 modifiers", write_small, of=of)
    for width, dwords in _WIDTHS[:2]:
        for stride, elements in _STRIDES:

            def write2(b: Builder, address: Value, x: Any, y: Any, m: Any, n: int = dwords, e: int = elements) -> None:
                both = _two_places(b, address, m, 4 * n * e)
                places = [_at(b, place, 4 * i) for place in both for i in range(n)]
                where = [is_stored(b, address, place) for place in both for _ in range(n)]
                b.store_dwords("lds", places, (*x, *y), where)

            define(f"ds_write2{stride}_{width}", f"= i32 i32x{dwords} i32x{dwords} modifiers", write2, of=of)


def _define_transposing_reads() -> None:
    """Define the reads of a matrix whose columns the lanes get.

    Each 16 lanes read a matrix with rows of 16 elements, a row by consecutive lanes. Lane i of them gets column i
    (CDNA 4 ISA, "MFMA Transpose Load from LDS").
    """
    for bits, dwords in ((16, 2), (8, 2), (6, 3), (4, 2)):

        def read(b: Builder, address: Value, m: Any, n: int = dwords, width: int = bits) -> tuple[Value, ...]:
            return _column(b, b.load("lds", _place(b, address, m), n), width)

        define(f"ds_read_b{32 * dwords}_tr_b{bits}", f"i32x{dwords} = i32 modifiers", read, of="cdna4")


def _define_loads_of_transposed_tiles() -> None:
    """Define those of gfx1250; `transposed` says which lane gets what."""
    for name, dwords in TRANSPOSED.items():

        def read(b: Builder, address: Value, m: Any, n: int = dwords, s: str = name) -> tuple[Value, ...]:
            return transposed(b, b.load("lds", _place(b, address, m), n), f"ds_{s}")

        define(f"ds_load_{name}", f"i32x{dwords} = i32 modifiers", read, of="cdna5")


def _column(b: Builder, held: tuple[Value, ...], bits: int) -> tuple[Value, ...]:
    """The column of each lane. A lane holds `each` elements of a row, of which 16 / each lanes make one."""
    each = 32 * len(held) // bits
    lanes_of_row = _ROW // each
    elements = [field_of(b, held, i, bits) for i in range(each)]
    codes = []
    for row in range(each):
        source = [lane // _ROW * _ROW + lanes_of_row * row + lane % _ROW // each for lane in range(64)]
        moved = [b.permute_constant(b.per_lane(element), source) for element in elements]
        codes.append(of_the_lane(b, moved))
    return packed_fields(b, codes, bits)


def _masked_or(b: Builder, old: Value, mask: Value, x: Value) -> Value:
    return b.or_(b.and_(old, b.not_(mask)), x)


def _compare_store(b: Builder, old: Value, expected: Value, new: Value) -> Value:
    """Unlike in global memory, the expected value comes first."""
    return b.select(b.icmp("eq", old, expected), new, old)


def _compare_store_float(b: Builder, old: Value, expected: Value, new: Value) -> Value:
    return b.select(b.fcmp("oeq", old, expected), new, old)


def _wrap(b: Builder, old: Value, x: Value, y: Value) -> Value:
    """old - x, or old + y where that would be below 0."""
    return b.select(b.icmp("uge", old, x), b.sub(old, x), b.add(old, y))


def _lds_atomics() -> dict[str, Atomic]:
    """The names of DS instructions carry the type; "add_u32" is the atomic "add"."""
    atomics = {}
    for bits, suffix in ((32, ""), (64, "_x2")):
        type_ = f"i{bits}"
        for name in ("add", "sub", "inc", "dec"):
            atomics[f"{name}_u{bits}"] = ATOMICS[name + suffix]
        for name in ("min", "max"):
            atomics[f"{name}_u{bits}"] = ATOMICS[f"u{name}{suffix}"]
            atomics[f"{name}_i{bits}"] = ATOMICS[f"s{name}{suffix}"]
        for name in ("and", "or", "xor"):
            atomics[f"{name}_b{bits}"] = ATOMICS[name + suffix]
        atomics[f"rsub_u{bits}"] = Atomic(lambda b, old, x: b.sub(x, old), type_)
        atomics[f"wrxchg_b{bits}"] = ATOMICS["swap" + suffix]
        atomics[f"mskor_b{bits}"] = Atomic(_masked_or, type_, operand_count=2)
        atomics[f"cmpst_b{bits}"] = Atomic(_compare_store, type_, operand_count=2)
        atomics[f"cmpst_f{bits}"] = Atomic(_compare_store_float, f"f{bits}", operand_count=2)
    atomics["wrap_b32"] = Atomic(_wrap, "i32", operand_count=2)
    for name in ("add_f32", "add_f64", "min_f64", "max_f64", "pk_add_f16", "pk_add_bf16"):
        atomics[name] = ATOMICS[name]
    for name in ("min", "max"):
        atomics[f"{name}_f32"] = Atomic(ATOMICS[f"{name}_f64"].update, "f32")
    return atomics


def _atomics_of_rdna() -> dict[str, Atomic]:
    """RDNA's atomics that CDNA does not have, or has otherwise: compare-and-store takes the new value first."""
    atomics = dict(NEW_ON_RDNA)
    for bits, suffix in ((32, ""), (64, "_x2")):
        atomics[f"cmpstore_b{bits}"] = ATOMICS["cmpswap" + suffix]
    for name, maximum in (("min", False), ("max", True)):
        atomics[f"{name}_num_f64"] = Atomic(extreme_number("f64", maximum=maximum), "f64")
    for name in ("pk_add_f16", "pk_add_bf16"):
        atomics[name] = ATOMICS[name]
    return atomics


def _atomics_of_rdna3() -> dict[str, Atomic]:
    """The compare-and-store of floats, which takes the new value first, too."""
    update = NEW_ON_RDNA3["cmpswap_f32"].update
    return {f"cmpstore_f{bits}": Atomic(update, f"f{bits}", operand_count=2) for bits in (32, 64)}


def _define_atomics(atomics: dict[str, Atomic], of: str) -> None:
    for name, atomic in atomics.items():
        operation, _, type_name = name.rpartition("_")
        words = f"i32x{atomic.bits // 32}"
        sources = f"i32 {' '.join([words] * atomic.operand_count)} modifiers"

        def evaluate(b: Builder, address: Value, *operands: Any, a: Atomic = atomic) -> Any:
            *data, modifiers = operands
            return a.perform(b, "lds", _place(b, address, modifiers), tuple(d for part in data for d in part))

        set_ = of or ("cdna3" if name.startswith("pk_add") else "")
        if operation not in ("wrxchg", "wrap"):
            define(f"ds_{name}", f"= {sources}", evaluate, of=set_)
        define(f"ds_{operation}_rtn_{type_name}", f"{words} = {sources}", evaluate, of=set_)


def _define_exchanges() -> None:
    """Define the two-address exchange, which is two atomics, and the conditional one."""
    for width, dwords in _WIDTHS[:2]:
        swap = ATOMICS["swap" if dwords == 1 else "swap_x2"]
        for stride, elements in _STRIDES:

            def exchange(
                b: Builder, address: Value, x: Any, y: Any, m: Any, a: Atomic = swap, unit: int = 4 * dwords * elements
            ) -> Any:
                first, second = _two_places(b, address, m, unit)
                return (*a.perform(b, "lds", first, x), *a.perform(b, "lds", second, y))

            data = f"i32x{dwords}"
            define(f"ds_wrxchg2{stride}_rtn_{width}", f"i32x{2 * dwords} = i32 {data} {data} modifiers", exchange)
    define("ds_condxchg32_rtn_b64", "i32x2 = i32 i32x2 modifiers", _conditional_exchange)


def _conditional_exchange(b: Builder, address: Value, data: Any, m: Any) -> tuple[Value, Value]:
    """Each of the two dwords of an aligned pair is replaced if the highest bit of its data is set."""
    pair = b.and_(_place(b, address, m), b.const("i32", 0xFFF8))

    def exchange(b: Builder, old: Value, x: Value) -> Value:
        return b.select(b.icmp("slt", x, b.const("i32", 0)), b.and_(x, b.const("i32", 0x7FFFFFFF)), old)

    low, high = (b.atomic("lds", _at(b, pair, 4 * i), lambda old, x: exchange(b, old, x), [data[i]]) for i in (0, 1))
    return low, high


def _define_m0_forms() -> None:
    """Define the forms addressed by M0: consecutive dwords, one per lane, and a counter of the whole wave."""
    for of, address in (("", _consecutive), ("cdna5", _consecutive_of_cdna5)):
        define(
            "ds_read_addtid_b32",
            "i32x1 = modifiers m0",
            lambda b, m, m0, at=address: b.load("lds", at(b, m, m0), 1),
            of=of,
        )
        define(
            "ds_write_addtid_b32",
            "= i32x1 modifiers m0",
            lambda b, data, m, m0, at=address: b.store("lds", at(b, m, m0), data),
            of=of,
        )
    define("ds_append", "i32 = modifiers m0 exec", _count_lanes(lambda b, old, count: b.add(old, count)))
    define("ds_consume", "i32 = modifiers m0 exec", _count_lanes(lambda b, old, count: b.sub(old, count)))


def _base(b: Builder, m: Any, m0: Value) -> Value:
    return _place(b, b.and_(m0, b.const("i32", 0xFFFF)), m)


def _consecutive(b: Builder, m: Any, m0: Value) -> Value:
    return b.add(_base(b, m, m0), b.mul(b.lane_id(), b.const("i32", 4)))


def _consecutive_of_cdna5(b: Builder, m: Any, m0: Value) -> Value:
    """The address, 20 bits of base plus lane: LDS has 320 KiB. (ROCm/rocjitsu-test-corpus, ds_addtid_test.)"""
    place = b.add(m0, b.mul(b.lane_id(), b.const("i32", 4)))
    return _place(b, b.and_(place, b.const("i32", 0xFFFFF)), m)


@curried
def _count_lanes(update: Any, b: Builder, m: Any, m0: Value, exec_bits: Value) -> Value:
    """The first active lane adds or subtracts the number of active ones; all of them get the old value."""
    lane = b.per_lane(b.lane_id())
    is_first = b.icmp("eq", lane, b.read_first_lane(lane))
    count = b.per_lane(b.trunc(b.ctpop(exec_bits), "i32"))
    address = b.per_lane(_base(b, m, m0))
    return b.read_first_lane(b.atomic("lds", address, lambda old, n: update(b, old, n), [count], is_first))


_define_reads()
_define_transposing_reads()
_define_loads_of_transposed_tiles()
_define_writes("", _everywhere)
_define_writes("cdna5", is_somewhere)
_define_atomics(_lds_atomics(), "")
_define_atomics(_atomics_of_rdna(), "rdna")
_define_atomics(_atomics_of_rdna3(), "rdna3")
_define_atomics({name: ATOMICS_OF_CDNA5[name] for name in ("add_f32", "add_f64")}, "cdna5")
_define_exchanges()
_define_m0_forms()
