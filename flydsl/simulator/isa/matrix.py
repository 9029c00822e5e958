"""MFMA: D = A * B + C on matrices that a whole wave holds.

Layouts (AMD matrix instruction calculator, gfx942). A wave holds `blocks` independent products of an M x K by a K x N
matrix. With e counting the elements in a lane's registers:

- A: lane = k_group * (M * blocks) + block * M + i, where k = k_group * elements_per_lane + e. B alike, with N and j.
- C and D of 32-bit elements: j is lane mod N, and rows come four registers at a time.
- C and D of f64: j is lane mod N, and rows go round the lane groups, one per register.

Accumulation: products are exact and summed in f64 (i8: in integers), k ascending, C last, then rounded once to the type of D. The ISA does not
document the order and the intermediate rounding of hardware, so the last bit of an f32 result may differ from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flydsl.simulator.builder import Builder, Value
from flydsl.simulator.isa.atomics import to_float
from flydsl.simulator.isa.convert import FORMATS, byte_of, decode_float8
from flydsl.simulator.isa.table import define

LANES = 64


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
    def k_groups(self) -> int:
        return LANES // (self.m * self.blocks)

    @property
    def elements_per_lane(self) -> int:
        return self.k // self.k_groups

    @property
    def source_registers(self) -> int:
        return self.elements_per_lane * self.element_bits // 32

    @property
    def results_per_lane(self) -> int:
        return self.m * self.n * self.blocks // LANES

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


def _elements(b: Builder, registers: tuple[Value, ...], format_: str) -> list[Value]:
    """A lane's elements, in order, as floats to compute with (f64 for f64), or as i32."""
    if format_ in ("f32", "f64"):
        return [b.bitcast(r, format_) for r in registers]
    if format_ in ("f16", "bf16"):
        halves = [half for r in registers for half in (r, b.lshr(r, b.const("i32", 16)))]
        return [to_float(b, b.trunc(half, "i16"), format_) for half in halves]
    codes = [byte_of(b, r, i) for r in registers for i in range(4)]
    if format_ == "i8":
        return [b.sext(b.trunc(c, "i8"), "i32") for c in codes]
    return [decode_float8(b, c, FORMATS[format_]) for c in codes]


def _broadcast_lane(lane: int, pattern: int) -> int:
    """BLGP: which lane's elements of B a lane uses."""
    if pattern == 0:
        return lane
    if pattern in (1, 2):
        return lane % 32 + 32 * (pattern - 1)
    return (lane + 16) % 64 if pattern == 3 else lane % 16 + 16 * (pattern - 4)


def _broadcast_block(lane: int, shape: MatrixShape, group_log2: int, chosen: int) -> int:
    """CBSZ and ABID: 2**CBSZ blocks use the A of the block that ABID names among them."""
    group, block, row = lane // (shape.m * shape.blocks), lane // shape.m % shape.blocks, lane % shape.m
    source = (block >> group_log2 << group_log2) + chosen
    return group * shape.m * shape.blocks + source * shape.m + row


def _mfma(shape: MatrixShape, a_format: str, b_format: str) -> Any:
    def evaluate(
        b: Builder, a_registers: Any, b_registers: Any, c: tuple[Value, ...], modifiers: Any
    ) -> tuple[Value, ...]:
        a_elements = _elements(b, a_registers, a_format)
        b_elements = _elements(b, b_registers, b_format)
        if shape.result_type == "f64":
            # For f64 the BLGP field holds signs, which the text calls neg.
            negated = modifiers.bits("neg", 3)
            a_elements = [b.fneg(x) for x in a_elements] if negated[0] else a_elements
            b_elements = [b.fneg(x) for x in b_elements] if negated[1] else b_elements
            c = tuple(b.fneg(x) for x in c) if negated[2] else c
        elif modifiers.flag("blgp"):
            source = [_broadcast_lane(lane, modifiers.integer("blgp")) for lane in range(LANES)]
            b_elements = [b.permute_constant(x, source) for x in b_elements]
        if modifiers.flag("cbsz"):
            cbsz, abid = modifiers.integer("cbsz"), modifiers.integer("abid")
            source = [_broadcast_block(lane, shape, cbsz, abid) for lane in range(LANES)]
            a_elements = [b.permute_constant(x, source) for x in a_elements]
        return b.matmul(a_elements, b_elements, c, shape)

    return evaluate


def _define_mfma(m: int, n: int, k: int, blocks: int, result: str, a_format: str, b_format: str) -> None:
    bits = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16}.get(a_format, 8)
    shape = MatrixShape(m, n, k, blocks, bits, result)
    block_text = f"_{blocks}b" if blocks > 1 else ""
    formats = a_format if a_format == b_format and a_format not in FORMATS else f"{a_format}_{b_format}"
    source = "f64x1" if bits == 64 else f"i32x{shape.source_registers}"
    accumulator = f"{'f64' if result == 'f64' else 'i32'}x{shape.results_per_lane}"
    define(
        f"v_mfma_{result}_{m}x{n}x{k}{block_text}_{formats}",
        f"{accumulator} = {source} {source} {accumulator} modifiers",
        _mfma(shape, a_format, b_format),
        ignores_exec=True,
    )


for _format, _scale in (("f32", 1), ("f16", 4), ("bf16", 4), ("i8", 4)):
    _result = "i32" if _format == "i8" else "f32"
    _define_mfma(32, 32, _scale, 2, _result, _format, _format)
    _define_mfma(16, 16, _scale, 4, _result, _format, _format)
    _define_mfma(4, 4, _scale, 16, _result, _format, _format)
    _deep = 8 if _format == "i8" else _scale
    _define_mfma(32, 32, 2 * _deep, 1, _result, _format, _format)
    _define_mfma(16, 16, 4 * _deep, 1, _result, _format, _format)
for _a in FORMATS:
    for _b in FORMATS:
        _define_mfma(32, 32, 16, 1, "f32", _a, _b)
        _define_mfma(16, 16, 32, 1, "f32", _a, _b)
_define_mfma(16, 16, 4, 1, "f64", "f64", "f64")
_define_mfma(4, 4, 4, 4, "f64", "f64", "f64")
