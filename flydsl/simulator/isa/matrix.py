"""MFMA: D = A * B + C on matrices that a whole wave holds.

Layouts (AMD matrix instruction calculator). A wave holds `blocks` independent products of an M x K by a K x N
matrix. With e counting the elements in a lane's registers:

- A: lane = k_group * (M * blocks) + block * M + i, where k = k_group * elements_per_lane + e. B alike, with N and j.
- Of a sparse A a lane holds two of every four k that it has of B. In the products that gfx950 has with twice the K of
  CDNA 3, it has other k of A than of B: the pairs of A for a group's fours of B are, half of them each, in two groups
  of lanes (`SparseShape.source_of_pair`). The tests of AMD's emulator pin that, after an MI350
  (ROCm/rocjitsu-test-corpus, cts/test_cases/cdna4/mfma_gfx950_smfmac_test.cpp); those of integers they do not have, nor
  has the table.
- C and D of 32-bit elements: j is lane mod N, and rows come four registers at a time.
- C and D of f64: j is lane mod N, and rows go round the lane groups, one per register.

Accumulation: products are exact and summed in f64, k ascending (i8: in integers), then C is added, then the sum is
rounded once to the type of D; f64 is one fma per k, ascending, from C on. A NaN is the default one. The ISA documents
neither the order nor the intermediate rounding of hardware, so the last bit of an f32 result may differ from it: an
MI300X was found to add products of f16 and bf16 eight at a time (MMA-Sim, arXiv:2511.10909), which is not modelled.
MODE.FP16_OVFL is about results of 16 bits and less (LLVM, "User Guide for AMDGPU Backend"), which none of these has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flydsl.simulator.isa.atomics import to_float
from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.common import curried, field
from flydsl.simulator.isa.convert import byte_of
from flydsl.simulator.isa.narrow_floats import BY_INSTRUCTION_SET, OCP, NarrowFloat, decode_all
from flydsl.simulator.isa.table import define

LANES = 64
_VALUE_TYPE = {"f16": "f16"}
"""The type that elements are computed in, if not f32."""
_ELEMENT_BITS = {"f64": 64, "f32": 32, "xf32": 32, "f16": 16, "bf16": 16}
Format = str | NarrowFloat
"""The format of elements: a name, or one of 8 bits."""


@dataclass(frozen=True)
class MatrixShape:
    """M x N x K with `blocks` independent products, of elements of `type_`, accumulated in `result_type`."""

    m: int
    n: int
    k: int
    blocks: int
    element_bits: int
    result_type: str

    @property
    def lanes(self) -> int:
        """The lanes that hold the matrices."""
        return LANES

    @property
    def rounds_to_odd(self) -> bool:
        """The result is an f32 whose last bit is set if rounding lost anything, for who rounds it again."""
        return False

    @property
    def row_step(self) -> int:
        """The rows of C and D from one register of a lane to the next, among four that follow each other."""
        return 1

    @property
    def k_groups(self) -> int:
        return self.lanes // (self.m * self.blocks)

    @property
    def elements_per_lane(self) -> int:
        return self.k // self.k_groups

    @property
    def source_registers(self) -> int:
        return self.elements_per_lane * self.element_bits // 32

    @property
    def results_per_lane(self) -> int:
        return self.m * self.n * self.blocks // self.lanes

    def place(self, index: int, lane: int) -> tuple[int, int, int]:
        """(block, row, column) of a lane's `index`-th element of C and D."""
        if self.result_type == "f64":
            groups = LANES // self.n
            if self.blocks > 1:
                return lane // self.n % self.blocks, lane // (self.n * self.blocks), lane % self.n
            return 0, groups * index + lane // self.n, lane % self.n
        column, group = lane % self.n, lane // self.n
        if self.m == 4:
            return group, index, column
        rows_per_step = 4 * (LANES // self.n)
        within = index % (self.m * self.n // LANES)
        return index // (self.m * self.n // LANES), rows_per_step * (within // 4) + 4 * group + within % 4, column


@dataclass(frozen=True)
class SparseShape(MatrixShape):
    """The shape of a product with a sparse A. is_doubled: whether gfx950 has it with twice the K of CDNA 3."""

    is_doubled: bool = False

    def source_of_pair(self, group: int, i: int) -> tuple[int, int]:
        """The group of lanes, and the place there, that has the pair of A for a group's `i`-th four elements of B."""
        half = self.elements_per_lane // 8
        return i // half * (self.k_groups // 2) + group // 2, i % half + half * (group % 2)


def _cut_to_xf32(b: Builder, x: Value) -> Value:
    """An f32 with 10 bits of mantissa: the others are cut off (AMD notes the bias in rocm-libraries)."""
    cut = b.and_(b.bitcast(x, "i32"), b.const("i32", ~0x1FFF))
    return b.select(b.fcmp("uno", x, x), x, b.bitcast(cut, "f32"))


def _elements(b: Builder, registers: Sequence[Value], format_: Format) -> list[Value]:
    """A lane's elements, in order, as floats to compute with (f64 for f64), or as i32.

    f32 denormals follow the wave's mode; those of the other formats are kept.
    """
    if format_ == "f64":
        return [b.bitcast(r, "f64") for r in registers]
    if format_ in ("f32", "xf32"):
        floats = [b.bitcast(r, "f32") for r in registers]
        return [_cut_to_xf32(b, x) if format_ == "xf32" else b.canonicalize(x) for x in floats]
    if format_ in ("f16", "bf16"):
        halves = [half for r in registers for half in (r, b.lshr(r, b.const("i32", 16)))]
        return [to_float(b, b.trunc(half, "i16"), format_) for half in halves]
    codes = [byte_of(b, r, i) for r in registers for i in range(4)]
    if isinstance(format_, NarrowFloat):
        return decode_all(b, codes, format_)
    return [b.sext(b.trunc(c, "i8"), "i32") for c in codes]


def _broadcast_lane(lane: int, pattern: int) -> int:
    """The lane whose elements of B a lane uses (BLGP)."""
    if pattern == 0:
        return lane
    if pattern in (1, 2):
        return lane % 32 + 32 * (pattern - 1)
    return (lane + 16) % 64 if pattern == 3 else lane % 16 + 16 * (pattern - 4)


def _broadcast_block(lane: int, shape: MatrixShape, group_log2: int, chosen: int) -> int:
    """The lane whose elements of A a lane uses: 2**CBSZ blocks use the A of the block that ABID names."""
    group, block, row = lane // (shape.m * shape.blocks), lane // shape.m % shape.blocks, lane % shape.m
    source = (block >> group_log2 << group_log2) + chosen
    return group * shape.m * shape.blocks + source * shape.m + row


@curried
def _mfma(shape: MatrixShape, formats: _Formats, b: Builder, x: Any, y: Any, c: Any, modifiers: Any) -> Any:
    source_of_a = _broadcast_a(shape, modifiers)
    if shape.result_type == "f64":
        return _mfma_f64(b, x, y, c, shape, source_of_a, modifiers)
    source_of_b = None
    if modifiers.flag("blgp"):
        source_of_b = [_broadcast_lane(lane, modifiers.integer("blgp")) for lane in range(LANES)]
    left = _fragment(b, "a", x, formats.a, shape, source_of_a)
    right = _fragment(b, "b", y, formats.b, shape, source_of_b)
    return b.matmul(left, right, c, shape)


def _mfma_f64(
    b: Builder, x: Any, y: Any, c: Any, shape: MatrixShape, source_of_a: list[int] | None, modifiers: Any
) -> Any:
    """A product of f64, in which the BLGP field holds signs. The text calls them neg."""
    negated = modifiers.bits("neg", 3)
    given = (_moved(b, _elements(b, x, "f64"), source_of_a), _elements(b, y, "f64"), c)
    left, right, total = (
        tuple(b.fneg(x) for x in operand) if is_negated else operand
        for operand, is_negated in zip(given, negated, strict=True)
    )
    return b.matmul(left, right, total, shape)


def _broadcast_a(shape: MatrixShape, modifiers: Any) -> list[int] | None:
    """The lane whose elements of A each lane uses, if not its own."""
    cbsz, abid = modifiers.integer("cbsz"), modifiers.integer("abid")
    if 1 << cbsz > shape.blocks or (cbsz and abid >= 1 << cbsz):
        raise NotImplementedError(f"cbsz:{cbsz} abid:{abid} of {shape.blocks} blocks, which the ISA does not define")
    return [_broadcast_block(lane, shape, cbsz, abid) for lane in range(LANES)] if cbsz else None


def _fragment(
    b: Builder, operand: str, registers: Any, format_: Format, shape: MatrixShape, source: list[int] | None
) -> Any:
    """An operand. source: the lane whose elements each lane uses, if not its own."""

    def make(registers: Sequence[Value]) -> list[Value]:
        return _moved(b, _elements(b, registers, format_), source)

    if shape.element_bits > 16:  # to make the others again takes less than to look for them
        return make(registers)
    return b.fragment(operand, registers, f"{format_} {source}", shape, make)


def _moved(b: Builder, elements: list[Value], source: list[int] | None) -> list[Value]:
    return elements if source is None else [b.permute_constant(x, source) for x in elements]


def _define_mfma(
    m: int, n: int, k: int, blocks: int, result: str, formats: _Formats, *, of: str = "", name: str = ""
) -> None:
    """Define a product. name: where it is not spelled as usual."""
    bits = _ELEMENT_BITS.get(formats.text, 8)
    shape = MatrixShape(m, n, k, blocks, bits, result)
    block_text = f"_{blocks}b" if blocks > 1 else ""
    source = "f64x1" if bits == 64 else f"i32x{shape.source_registers}"
    accumulator = f"{'f64' if result == 'f64' else 'i32'}x{shape.results_per_lane}"
    define(
        name or f"v_mfma_{result}_{m}x{n}x{k}{block_text}_{formats.text}",
        f"{accumulator} = {source} {source} {accumulator} modifiers",
        _mfma(shape, formats),
        ignores_exec=True,
        of=of,
    )


@dataclass(frozen=True)
class _Formats:
    """The formats of A and B, and how mnemonics name the two."""

    a: Format
    b: Format
    text: str

    @classmethod
    def same(cls, name: str) -> _Formats:
        return cls(name, name, name)


Pair = tuple[Value, Value, Value]
"""Two stored elements of a sparse A, of four in a row, and four bits of the index: where they stand."""


def pairs_of(b: Builder, stored: list[Value], index: Value) -> list[Pair]:
    """The stored elements of a lane in pairs, whose places follow each other in the index."""
    return [(*stored[e : e + 2], field(b, index, e // 2, 4)) for e in range(0, len(stored), 2)]


def dense_from_sparse(b: Builder, pairs: list[Pair], type_: str) -> list[Value]:
    """The elements of A: four for each pair, i32 or f64. type_: of the stored ones.

    Where both of a pair have the same place, both count.
    """
    result = []
    for first, second, places in pairs:
        if type_ == "i32":
            x, y, both, zero = first, second, b.add(first, second), b.const("i32", 0)
        else:
            x, y, zero = b.fpext(first, "f64"), b.fpext(second, "f64"), b.const("f64", 0.0)
            both = b.float_op("fadd", x, y)
        of_first, of_second = field(b, places, 0, 2), field(b, places, 1, 2)
        for k in range(4):
            is_first, is_second = (b.icmp("eq", place, b.const("i32", k)) for place in (of_first, of_second))
            result.append(b.select(is_first, b.select(is_second, both, x), b.select(is_second, y, zero)))
    return result


@curried
def _smfmac(
    shape: SparseShape, formats: _Formats, b: Builder, x: Any, y: Any, index: Value, c: Any, modifiers: Any
) -> Any:
    """CBSZ 0: ABID picks one of the sets of indices that a register holds."""
    set_bits = shape.elements_per_lane
    stored, b_elements = _elements(b, x, formats.a), _elements(b, y, formats.b)
    chosen = 0 if modifiers.flag("cbsz") else modifiers.integer("abid") % (32 // set_bits)
    pairs = pairs_of(b, stored, b.lshr(index, b.const("i32", chosen * set_bits)))
    if shape.is_doubled:
        pairs = _in_order_of_b(b, pairs, shape)
    type_ = "i32" if formats.text == "i8" else _VALUE_TYPE.get(formats.text, "f32")
    return b.matmul(dense_from_sparse(b, pairs, type_), b_elements, c, shape)


def _in_order_of_b(b: Builder, pairs: list[Pair], shape: SparseShape) -> list[Pair]:
    """The pairs of a doubled product, each in the lane and at the place where B has the same k."""
    is_odd = b.icmp("ne", b.and_(b.per_lane(b.lane_id()), b.const("i32", shape.m)), b.const("i32", 0))
    result = []
    for i in range(len(pairs)):
        sources = [shape.source_of_pair(group, i) for group in range(shape.k_groups)]
        lanes = [sources[lane // shape.m][0] * shape.m + lane % shape.m for lane in range(LANES)]
        low, high = (tuple(b.permute_constant(b.per_lane(x), lanes) for x in pairs[place]) for _, place in sources[:2])
        first, second, places = (b.select(is_odd, y, x) for x, y in zip(low, high, strict=True))
        result.append((first, second, places))
    return result


def _define_smfmac(
    m: int, n: int, k: int, result: str, formats: _Formats, *, of: str = "", is_doubled: bool = False
) -> None:
    shape = SparseShape(m, n, k, 1, _ELEMENT_BITS.get(formats.text, 8), result, is_doubled)
    accumulator = f"i32x{shape.results_per_lane}"
    define(
        f"v_smfmac_{result}_{m}x{n}x{k}_{formats.text}",
        f"{accumulator} = i32x{shape.source_registers // 2} i32x{shape.source_registers} i32 dst modifiers",
        _smfmac(shape, formats),
        ignores_exec=True,
        of=of,
    )


def _of_float8(formats: dict[str, NarrowFloat]) -> list[_Formats]:
    return [_Formats(formats[x], formats[y], f"{x}_{y}") for x in formats for y in formats]


def _define_common() -> None:
    for name, scale in (("f32", 1), ("f16", 4), ("bf16", 4), ("i8", 4)):
        result, formats = "i32" if name == "i8" else "f32", _Formats.same(name)
        _define_mfma(32, 32, scale, 2, result, formats)
        _define_mfma(16, 16, scale, 4, result, formats)
        _define_mfma(4, 4, scale, 16, result, formats)
        if name != "i8":
            _define_mfma(32, 32, 2 * scale, 1, result, formats)
            _define_mfma(16, 16, 4 * scale, 1, result, formats)
    _define_mfma(16, 16, 4, 1, "f64", _Formats.same("f64"))
    _define_mfma(4, 4, 4, 4, "f64", _Formats.same("f64"))


def _define_cdna3() -> None:
    _define_mfma(32, 32, 16, 1, "i32", _Formats.same("i8"), of="cdna3")
    _define_mfma(16, 16, 32, 1, "i32", _Formats.same("i8"), of="cdna3")
    _define_mfma(32, 32, 4, 1, "f32", _Formats.same("xf32"), of="xf32")
    _define_mfma(16, 16, 8, 1, "f32", _Formats.same("xf32"), of="xf32")
    for name, deep, result in (("f16", 1, "f32"), ("bf16", 1, "f32"), ("i8", 2, "i32")):
        _define_smfmac(32, 32, 16 * deep, result, _Formats.same(name), of="cdna3")
        _define_smfmac(16, 16, 32 * deep, result, _Formats.same(name), of="cdna3")
    for instruction_set, float8 in BY_INSTRUCTION_SET.items():
        for formats in _of_float8(float8):
            _define_smfmac(32, 32, 32, "f32", formats, of=instruction_set)
            _define_smfmac(16, 16, 64, "f32", formats, of=instruction_set)
            _define_mfma(32, 32, 16, 1, "f32", formats, of=instruction_set)
            _define_mfma(16, 16, 32, 1, "f32", formats, of=instruction_set)


def _define_cdna4() -> None:
    """Define those of twice the depth. What scales blocks is in `scaled_matrix`."""
    for name, deep, result in (("f16", 1, "f32"), ("bf16", 1, "f32"), ("i8", 2, "i32")):
        formats = _Formats.same(name)
        _define_mfma(32, 32, 16 * deep, 1, result, formats, of="cdna4")
        _define_mfma(16, 16, 32 * deep, 1, result, formats, of="cdna4")
        if name != "i8":
            _define_smfmac(32, 32, 32, result, formats, of="cdna4", is_doubled=True)
            _define_smfmac(16, 16, 64, result, formats, of="cdna4", is_doubled=True)
    for formats in _of_float8(OCP):
        _define_smfmac(32, 32, 64, "f32", formats, of="cdna4", is_doubled=True)
        _define_smfmac(16, 16, 128, "f32", formats, of="cdna4", is_doubled=True)


def _define_cdna2() -> None:
    """Define those that its successor has at twice the depth alone: of i8, and of bf16 the older ones."""
    for m, k, blocks in ((32, 2, 2), (16, 2, 4), (4, 2, 16), (32, 4, 1), (16, 8, 1)):
        _define_mfma(m, m, k, blocks, "f32", _Formats.same("bf16"), of="cdna2", name=f"v_mfma_f32_{m}x{m}x{k}bf16")
    _define_mfma(32, 32, 8, 1, "i32", _Formats.same("i8"), of="cdna2")
    _define_mfma(16, 16, 16, 1, "i32", _Formats.same("i8"), of="cdna2")


_define_common()
_define_cdna3()
_define_cdna4()
_define_cdna2()
