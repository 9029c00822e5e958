"""WMMA of 8-, 6- and 4-bit floats in any combination, with a scale for each block along K (gfx1250).

matrix_a_fmt and matrix_b_fmt name the formats, and with them the registers that A and B take. Each half of the lanes
holds every other piece of a row of A (or a column of B), 64 elements in all: with h, the half, and e, the element's
place in the lane's registers,

- 8 bits, pieces of 16: k = 16 h + e mod 16 + 32 (e / 16);
- 6 and 4 bits, pieces of 32: k = 32 h + e mod 32 + 64 (e / 32).

32 x 16 x 128 of 4 bits is two products, one after the other in the registers of A, C and D, with the same B.

A block has 32 elements, or 16 in v_wmma_scale16. A scale is a byte. MATRIX_SCALE_FMT_E8 is E8M0: a power of two with a
bias of 127, and 255 is NaN; E4M3 is the 8-bit float of the elements; E5M3 has no sign, a bias of 15, and 255 is NaN.
Byte j of a lane's register, or pair, is the scale of the j-th block along K. Those of a row of A are in the lane of the
row's number, or, with MATRIX_SCALE_ROW1, 16 lanes further; the 32 rows of the larger product have a lane each. This is
how AMD's kernels for gfx1250 load operands and scales; blocks of 16 and the two other formats are those of AMD's
functional model (rocm-systems, emulation/rocjitsu), and LLVM's tests have the operands and modifiers. Accumulation as
in `matrix`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.convert import byte_of
from flydsl.simulator.isa.fields import field_of
from flydsl.simulator.isa.narrow_floats import MICROSCALING, UNSIGNED, NarrowFloat, decode, decode_all
from flydsl.simulator.isa.scaled_matrix import power_of_two
from flydsl.simulator.isa.table import define
from flydsl.simulator.isa.wmma import shape_of, signed_f32

_K, _ROWS, _LANES = 128, 16, 32
_ELEMENTS, _BLOCK = 64, 32
_SHAPE = shape_of(_K, "f32", _LANES)
_ROW, _SCALE_FMT = ("MATRIX_SCALE_ROW0", "MATRIX_SCALE_ROW1"), "MATRIX_SCALE_FMT_"
_FLOAT_SCALES = {"E5M3": UNSIGNED, "E4M3": MICROSCALING["fp8"]}
"""Formats of scales beside E8."""


@dataclass(frozen=True)
class _Side:
    """A or B ("a", "b") of a format."""

    letter: str
    format_: NarrowFloat

    @property
    def registers(self) -> int:
        return _ELEMENTS * self.format_.bits // 32

    @property
    def piece(self) -> int:
        """Consecutive k that a lane holds before the other half's."""
        return 16 if self.format_.bits == 8 else 32

    def elements(self, b: Builder, registers: Sequence[Value]) -> list[Value]:
        """A lane's elements, in order, as f32."""
        codes = [field_of(b, registers, e, self.format_.bits) for e in range(_ELEMENTS)]
        return decode_all(b, codes, self.format_)

    def scaled(self, b: Builder, elements: list[Value], scales: Sequence[Value]) -> list[Value]:
        """The elements times the scales of their blocks, as f64. scales: of a lane's row, one for each block."""
        factors = self._of_blocks(b, scales)
        return [b.fmul(b.fpext(x, "f64"), factors[e]) for e, x in enumerate(elements)]

    def _of_blocks(self, b: Builder, scales: Sequence[Value]) -> list[Value]:
        """The scale of each of a lane's elements: of the lower lanes' k, and of the upper ones', a piece further."""
        block = _K // len(scales)
        first = [2 * self.piece * (e // self.piece) + e % self.piece for e in range(_ELEMENTS)]
        blocks = [(k // block, (k + self.piece) // block) for k in first]
        of_pair = {(i, j): b.select(_is_upper(b), scales[j], scales[i]) for i, j in sorted(set(blocks)) if i != j}
        return [of_pair.get((i, j), scales[i]) for i, j in blocks]

    def in_pieces_of_a_block(self, b: Builder, elements: list[Value]) -> list[Value]:
        """The elements as lanes would hold them in pieces of 32."""
        if self.piece == _BLOCK:
            return elements
        result = []
        for e in range(_ELEMENTS):
            block, within = divmod(e, _BLOCK)
            half, place = divmod(within, self.piece)
            source = [lane % _ROWS + _ROWS * half for lane in range(_LANES)]
            low, high = (elements[self.piece * (2 * block + i) + place] for i in range(2))
            low, high = (b.permute_constant(x, source) for x in (low, high))
            result.append(b.select(_is_upper(b), high, low))
        return result


def _is_upper(b: Builder) -> Value:
    return b.icmp("uge", b.per_lane(b.lane_id()), b.const("i32", _ROWS))


def _scales(b: Builder, registers: Value, modifiers: Any, letter: str, tile: int | None) -> list[Value]:
    """The scales of each lane's row, as f64. tile: of 16 rows; None if the modifiers tell the lanes."""
    name = f"matrix_{letter}_scale"
    row = modifiers.text(name, _ROW[0])
    if row not in _ROW or (tile and row != _ROW[0]):
        raise NotImplementedError(f"{name}:{row}")
    format_ = modifiers.text(f"{name}_fmt", f"{_SCALE_FMT}E8").removeprefix(_SCALE_FMT)
    first = _ROWS * (_ROW.index(row) if tile is None else tile)
    lanes = [lane % _ROWS + first for lane in range(_LANES)]
    dwords = [b.permute_constant(b.per_lane(dword), lanes) for dword in b.split(registers)]
    return [_scale(b, byte_of(b, dword, i), format_) for dword in dwords for i in range(4)]


def _scale(b: Builder, code: Value, format_: str) -> Value:
    if format_ in _FLOAT_SCALES:
        return b.fpext(decode(b, code, _FLOAT_SCALES[format_]), "f64")
    return power_of_two(b, code)


def _product(
    b: Builder, a: _Side, c: _Side, left: list[Value], right: list[Value], total: Sequence[Value], modifiers: Any
) -> tuple[Value, ...]:
    if any(modifiers.bits(name, 3)[i] for name in ("neg_lo", "neg_hi") for i in range(2)):
        raise NotImplementedError("the negation of elements of 8 bits or less, which is not defined")
    if a.piece != c.piece:  # else both have the same order, whichever it is
        left, right = a.in_pieces_of_a_block(b, left), c.in_pieces_of_a_block(b, right)
    return b.matmul(left, right, signed_f32(b, total, modifiers), _SHAPE)


def _define_scaled(name: str, operands: str, evaluate: Any) -> None:
    """Define a product with four scales of a row, and with eight."""
    for scale, word in (("scale", "i32"), ("scale16", "i64")):
        define(f"v_wmma_{scale}_{name}", f"{operands} {word} {word} modifiers", evaluate, ignores_exec=True, of="cdna5")


def _define_pair(a: _Side, c: _Side, form: str) -> None:
    """Define the product of these formats, without scales and with them."""

    def plain(b: Builder, x: Any, y: Any, total: Any, modifiers: Any) -> Any:
        return _product(b, a, c, a.elements(b, x), c.elements(b, y), total, modifiers)

    def scaled(b: Builder, x: Any, y: Any, total: Any, of_x: Value, of_y: Value, modifiers: Any) -> Any:
        left = a.scaled(b, a.elements(b, x), _scales(b, of_x, modifiers, "a", None))
        right = c.scaled(b, c.elements(b, y), _scales(b, of_y, modifiers, "b", None))
        return _product(b, a, c, left, right, total, modifiers)

    name, operands = f"f32_16x16x128_f8f6f4/{form}", f"i32x8 = i32x{a.registers} i32x{c.registers} i32x8"
    define(f"v_wmma_{name}", f"{operands} modifiers", plain, ignores_exec=True, of="cdna5")
    _define_scaled(name, operands, scaled)


def _define_of_32_rows() -> None:
    a, c = (_Side(letter, MICROSCALING["fp4"]) for letter in "ab")

    def plain(b: Builder, x: Any, y: Any, total: Any, modifiers: Any) -> Any:
        right = c.elements(b, y)
        tiles = ((a.elements(b, x[8 * i :][:8]), total[8 * i :][:8]) for i in range(2))
        return sum((_product(b, a, c, left, right, start, modifiers) for left, start in tiles), ())

    def scaled(b: Builder, x: Any, y: Any, total: Any, of_x: Value, of_y: Value, modifiers: Any) -> Any:
        right = c.scaled(b, c.elements(b, y), _scales(b, of_y, modifiers, "b", None))
        result: tuple[Value, ...] = ()
        for i in range(2):
            left = a.scaled(b, a.elements(b, x[8 * i :][:8]), _scales(b, of_x, modifiers, "a", i))
            result += _product(b, a, c, left, right, total[8 * i :][:8], modifiers)
        return result

    operands = "i32x16 = i32x16 i32x8 i32x16"
    define("v_wmma_f32_32x16x128_f4", f"{operands} modifiers", plain, ignores_exec=True, of="cdna5")
    _define_scaled("f32_32x16x128_f4", operands, scaled)


for _a in MICROSCALING:
    for _b in MICROSCALING:
        _define_pair(_Side("a", MICROSCALING[_a]), _Side("b", MICROSCALING[_b]), f"{_a}_{_b}")
_define_of_32_rows()
