"""MFMA of 8-, 6- and 4-bit floats in any combination, with a scale for each block of 32 elements along K.

CBSZ names the format of A, BLGP that of B (the order of `forms.SCALED_FORMATS`), and with it the registers that the
operand takes. A lane holds 32 elements of a row of A (or a column of B). With g, the group of lanes:

- 6 and 4 bits: k = 32 g + e;
- 8 bits: two runs of 16, k = 16 g + e mod 16 + (K / 2) (e / 16).

(AMD, "Matrix Core Programming on AMD CDNA 3 and CDNA 4 architecture".) The scale of a row's block k / 32 is a byte of
the scale operand of lane group k / 32, as E8M0: a power of two with a bias of 127, and 255 is NaN. op_sel and op_sel_hi
name the byte. Accumulation as in `matrix`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.fields import field_of
from flydsl.simulator.isa.forms import SCALED_FORMATS
from flydsl.simulator.isa.matrix import LANES, MatrixShape
from flydsl.simulator.isa.narrow_floats import MICROSCALING, NarrowFloat, decode_all
from flydsl.simulator.isa.table import define

_ELEMENTS, _RUN = 32, 16


@dataclass(frozen=True)
class _Side:
    """A or B: the format of its elements in a shape, and its place in op_sel."""

    format_: NarrowFloat
    shape: MatrixShape
    position: int

    @property
    def registers(self) -> int:
        return _ELEMENTS * self.format_.bits // 32

    @property
    def _is_in_runs(self) -> bool:
        return self.format_.bits == 8

    def elements(self, b: Builder, registers: tuple[Value, ...]) -> list[Value]:
        """A lane's elements as f32, in the order in which the lane has them."""
        codes = [field_of(b, registers, e, self.format_.bits) for e in range(_ELEMENTS)]
        return decode_all(b, codes, self.format_)

    def scaled(self, b: Builder, elements: list[Value], scale: Value, modifiers: Any) -> list[Value]:
        """The elements times the scales of their blocks, as f64."""
        low, high = (modifiers.bits(name, 3)[self.position] for name in ("op_sel", "op_sel_hi"))
        code = b.and_(b.lshr(b.per_lane(scale), b.const("i32", 8 * (low + 2 * high))), b.const("i32", 0xFF))
        runs = [power_of_two(b, self._of_block(b, code, run)) for run in range(_ELEMENTS // _RUN)]
        return [b.fmul(b.fpext(x, "f64"), runs[e // _RUN]) for e, x in enumerate(elements)]

    def _of_block(self, b: Builder, code: Value, run: int) -> Value:
        """The scale of the block to which each lane's run belongs: of the lane itself, but for runs of 8 bits."""
        if not self._is_in_runs:
            return code
        groups, m = self.shape.k_groups, self.shape.m
        blocks = [(_RUN * g + self.shape.k // 2 * run) // _ELEMENTS for g in range(groups)]
        return b.permute_constant(code, [blocks[lane // m] * m + lane % m for lane in range(LANES)])

    def in_order(self, b: Builder, elements: list[Value]) -> list[Value]:
        """The elements as lanes would hold them if k were 32 g + e."""
        if not self._is_in_runs:
            return elements
        m, half = self.shape.m, self.shape.k_groups // 2
        result = []
        is_upper = b.icmp("uge", b.per_lane(b.lane_id()), b.const("i32", LANES // 2))
        for e in range(_ELEMENTS):
            source = [(2 * (lane // m % half) + e // _RUN) * m + lane % m for lane in range(LANES)]
            low, high = (b.permute_constant(elements[e % _RUN + _RUN * run], source) for run in (0, 1))
            result.append(b.select(is_upper, high, low))
        return result


def power_of_two(b: Builder, code: Value) -> Value:
    """2**(code - 127) as f64; NaN for 255."""
    bits = b.shl(b.zext(b.add(code, b.const("i32", 1023 - 127)), "i64"), b.const("i64", 52))
    is_nan = b.icmp("eq", code, b.const("i32", 0xFF))
    return b.select(is_nan, b.const("f64", float("nan")), b.bitcast(bits, "f64"))


def _define(shape: MatrixShape, a: _Side, c: _Side, form: str) -> None:
    """Define the product of these formats, without scales and with them."""

    is_mixed = a.format_.bits != c.format_.bits  # else both have the same order, whichever it is

    def product(b: Builder, left: Any, right: Any, total: tuple[Value, ...]) -> tuple[Value, ...]:
        return b.matmul(left, right, total, shape)

    def ordered(b: Builder, side: _Side, elements: list[Value]) -> list[Value]:
        return side.in_order(b, elements) if is_mixed else elements

    def fragment(b: Builder, side: _Side, registers: Any) -> Any:
        origin = f"{side.format_} {shape if is_mixed else ''}"
        return b.fragment(
            "ab"[side.position], registers, origin, shape, lambda held: ordered(b, side, side.elements(b, tuple(held)))
        )

    def plain(b: Builder, x: Any, y: Any, total: tuple[Value, ...]) -> tuple[Value, ...]:
        return product(b, fragment(b, a, x), fragment(b, c, y), total)

    def scaled(b: Builder, x: Any, y: Any, total: Any, x_scale: Value, y_scale: Value, modifiers: Any) -> Any:
        left = ordered(b, a, a.scaled(b, a.elements(b, x), x_scale, modifiers))
        right = ordered(b, c, c.scaled(b, c.elements(b, y), y_scale, modifiers))
        return product(b, left, right, total)

    name = f"f32_{shape.m}x{shape.n}x{shape.k}_f8f6f4/{form}"
    accumulator = f"i32x{shape.results_per_lane}"
    operands = f"{accumulator} = i32x{a.registers} i32x{c.registers} {accumulator}"
    define(f"v_mfma_{name}", operands, plain, ignores_exec=True, of="cdna4")
    define(f"v_mfma_scale_{name}", f"{operands} i32 i32 modifiers", scaled, ignores_exec=True, of="cdna4")


for _m, _k in ((16, 128), (32, 64)):
    _shape = MatrixShape(_m, _m, _k, 1, 8, "f32")
    for _a in SCALED_FORMATS:
        for _b in SCALED_FORMATS:
            _define(_shape, _Side(MICROSCALING[_a], _shape, 0), _Side(MICROSCALING[_b], _shape, 1), f"{_a}_{_b}")
