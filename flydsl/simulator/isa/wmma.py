"""WMMA and SWMMAC: D = A * B + C on matrices that a whole wave of 32 or 64 lanes holds.

Layouts ("RDNA 4 Instruction Set Architecture", storage of matrices in VGPRs; for wave64 Mesa's notes on it). All
matrices are 16 wide. Lanes are grouped by 16, and e counts the elements in a lane's registers:

- A: row is lane mod 16, and k = group * elements_per_lane + e. B alike, with the column.
- C and D: column is lane mod 16, and row is e plus the first row of the group: 0 and 8; of wave64 0, 8, 4 and 12.
  Elements of 16 bits are two to a register.

The documents order k within a lane in several ways. That order cannot be seen: A and B have the same, and the sums are
exact. Of a sparse A (SWMMAC) a lane stores two of every four elements; two bits each of the index, a register that each
lane has for itself, tell their places. index_key picks a part of the register where that is more than a lane needs.

Modifiers (the ISA, and LLVM's tests): neg_lo and neg_hi negate, of 16-bit A and B, the elements in the lower and in the
upper halves of registers, and neg_lo those of 32 bits; of C they are the sign and the absolute value. For integers
neg_lo tells that A or B is signed, and clamp saturates the addition of C. matrix_a_reuse and matrix_b_reuse are hints.

RDNA 3 ("rdna3") has a whole row of A, or column of B, in every lane: each group of lanes repeats the first one. Here
each group supplies a part of k from its own copy, so that copies which differ give another product, as they may on the
hardware. The groups take the rows of C and D in turn. Elements of 16 bits of C and D lie one to a register, in the half
that op_sel's third bit names; the other half stays as it is. (RDNA 3 ISA, "Wave Matrix Multiply Accumulate"; AMD's
article "How to accelerate AI applications on RDNA 3 using WMMA".)

gfx1250 ("cdna5") has the same products with more of K, for waves of 32. No document of AMD's says how they lie in
registers; with formats of the same width and no scales the order of k cannot be seen, and C and D are as before (LLVM's
tests have the operands, AMD's kernels load them so). `scaled_wmma` has the products whose order of k can be seen. Of a
sparse A, a lane holds every other run of 8 stored elements of 16 bits, or 16 of 8 bits, and of B every other run of
twice as many. The indices of a row of A stand in the order of k, the first half of them in the lane of the row's
number, the others 16 lanes further: not with the elements that they belong to. AMD's functional model has it so
(rocm-systems, emulation/rocjitsu), after kernels that ran on the hardware; of floats of 8 bits it says that the ISA
differs. Integers have them as RDNA 4 does, in the lane of their elements (ROCm/rocjitsu-test-corpus, cts, after the
ISA's tables).

Accumulation is that of `matrix`: products are exact and summed in f64 (integers in i32), then C is added, then the sum
is rounded once, to nearest even, to the type of D. Denormals are kept whatever the mode. A NaN is the default one. The
ISA documents neither the order nor the intermediate rounding of hardware.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flydsl.simulator.isa.atomics import round_to_bf16, to_float
from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.common import insert_half, saturating
from flydsl.simulator.isa.convert import pack_halves
from flydsl.simulator.isa.fields import field_of
from flydsl.simulator.isa.forms import SIXTEEN_BITS
from flydsl.simulator.isa.matrix import MatrixShape, Pair, dense_from_sparse, pairs_of
from flydsl.simulator.isa.narrow_floats import OCP, NarrowFloat, decode, decode_all, encode
from flydsl.simulator.isa.table import define

_SIZE = 16
_FIRST_ROWS = {32: (0, 8), 64: (0, 8, 4, 12)}
_BITS = {"f32": 32, "f16": 16, "bf16": 16, "iu8": 8, "iu4": 4, "fp8": 8, "bf8": 8}
_COMPUTED_IN = {"f16": "f16", "iu8": "i32", "iu4": "i32"}
"""The type that elements are computed in, if not f32."""
_HALF = NarrowFloat(5, 10, 15, "ieee")
_SIGN, _DEFAULT_NAN = 0x80000000, 0x7E00


@dataclass(frozen=True)
class WaveMatrixShape(MatrixShape):
    """16 x 16 x K, by a wave of this size. is_narrow: D has 16 bits, so that the sum is rounded again."""

    wave_lanes: int = 32
    is_narrow: bool = False

    @property
    def lanes(self) -> int:
        return self.wave_lanes

    @property
    def rounds_to_odd(self) -> bool:
        return self.is_narrow

    def place(self, index: int, lane: int) -> tuple[int, int, int]:
        return 0, _FIRST_ROWS[self.lanes][lane // _SIZE] + index, lane % _SIZE


@dataclass(frozen=True)
class RepeatedShape(WaveMatrixShape):
    """The shape on RDNA 3, where groups of lanes repeat A and B, and take the rows of C and D in turn."""

    @property
    def row_step(self) -> int:
        return self.lanes // _SIZE

    def place(self, index: int, lane: int) -> tuple[int, int, int]:
        return 0, self.row_step * index + lane // _SIZE, lane % _SIZE


def shape_of(k: int, types: str, lanes: int, of: str = "") -> WaveMatrixShape:
    """The shape of a product with these types of D and C, as the mnemonic names them, on GPUs of a set."""
    accumulated = "i32" if types == "i32" else "f32"
    shape = RepeatedShape if of == "rdna3" else WaveMatrixShape
    return shape(_SIZE, _SIZE, k, 1, 0, accumulated, lanes, types in SIXTEEN_BITS)


# --- elements


def halves_of(b: Builder, registers: Sequence[Value]) -> list[Value]:
    """The 16-bit numbers of some registers, the lower of each first."""
    sixteen = b.const("i32", 16)
    return [b.trunc(half, "i16") for r in registers for half in (r, b.lshr(r, sixteen))]


def elements(b: Builder, registers: Sequence[Value], format_: str, *, is_signed: bool) -> list[Value]:
    """A lane's elements, in order, as floats to compute with, or as i32."""
    if format_ in ("f16", "bf16"):
        return [to_float(b, half, format_) for half in halves_of(b, registers)]
    if format_ == "f32":
        return [b.bitcast(r, "f32") for r in registers]
    bits = _BITS[format_]
    codes = [field_of(b, registers, e, bits) for e in range(32 * len(registers) // bits)]
    if format_ in OCP:
        return decode_all(b, codes, OCP[format_])
    if not is_signed:
        return codes
    up = b.const("i32", 32 - bits)
    return [b.ashr(b.shl(code, up), up) for code in codes]


def operand(b: Builder, registers: Sequence[Value], format_: str, modifiers: Any, position: int) -> list[Value]:
    """The elements of A (position 0) or B with the signs that the modifiers give them."""
    low, high = (modifiers.bits(name, 3)[position] for name in ("neg_lo", "neg_hi"))
    if format_.startswith("iu"):
        return elements(b, registers, format_, is_signed=bool(low))
    if format_ in OCP and (low or high):
        raise NotImplementedError("the negation of elements of 8 bits, which the ISA does not define")
    if format_ == "f32" and high:
        raise NotImplementedError("neg_hi of elements of 32 bits, which the ISA does not define")
    numbers, signs = elements(b, registers, format_, is_signed=False), (low, low if format_ == "f32" else high)
    return [b.fneg(x) if signs[e % 2] else x for e, x in enumerate(numbers)]


def _own_part(b: Builder, registers: Sequence[Value], lanes: int) -> list[Value]:
    """The part that a lane's own group supplies of registers that each group of lanes repeats."""
    group, parts = b.lshr(b.per_lane(b.lane_id()), b.const("i32", 4)), list(registers)
    for place in reversed(range((lanes // _SIZE).bit_length() - 1)):
        is_upper = b.icmp("ne", b.and_(group, b.const("i32", 1 << place)), b.const("i32", 0))
        half = len(parts) // 2
        lower = parts[:half] or parts
        upper = parts[half:] if half else [b.lshr(parts[0], b.const("i32", 16))]
        parts = [b.select(is_upper, high, low) for low, high in zip(lower, upper, strict=True)]
    return parts


# --- C and D


def signed_f32(b: Builder, registers: Sequence[Value], modifiers: Any) -> tuple[Value, ...]:
    """C as f32, as bits, with the absolute value and the sign that the modifiers give it."""
    is_negated, is_absolute = (modifiers.bits(name, 3)[2] for name in ("neg_lo", "neg_hi"))
    result = tuple(registers)
    if is_absolute:
        result = tuple(b.and_(r, b.const("i32", _SIGN - 1)) for r in result)
    return tuple(b.xor(r, b.const("i32", _SIGN)) for r in result) if is_negated else result


def wide_c(b: Builder, registers: Sequence[Value], type_: str) -> tuple[Value, ...]:
    """C of 16-bit elements as f32, as bits."""
    floats = (to_float(b, half, type_) for half in halves_of(b, registers))
    return tuple(b.bitcast(x if type_ == "bf16" else widened(b, x), "i32") for x in floats)


def widened(b: Builder, x: Value) -> Value:
    """An f16 as f32, its denormals kept whatever the mode."""
    return decode(b, b.zext(b.bitcast(x, "i16"), "i32"), _HALF)


def narrow_d(b: Builder, registers: Sequence[Value], type_: str) -> tuple[Value, ...]:
    """D from f32, as bits: elements of 16 bits, two to a register."""
    floats = [b.bitcast(r, "f32") for r in registers]
    narrow = round_to_bf16 if type_ == "bf16" else _nearest_half
    halves = [narrow(b, x) for x in floats]
    return tuple(pack_halves(b, low, high) for low, high in zip(halves[::2], halves[1::2], strict=True))


def _nearest_half(b: Builder, x: Value) -> Value:
    code = b.select(b.fcmp("uno", x, x), b.const("i32", _DEFAULT_NAN), encode(b, x, _HALF))
    return b.trunc(code, "i16")


def accumulate(
    b: Builder, left: Any, right: Any, c: Sequence[Value], shape: WaveMatrixShape, types: str, m: Any
) -> tuple[Value, ...]:
    """The product plus C. types: of D and, where it is another, of C, as the mnemonic names them."""
    if types in SIXTEEN_BITS and b.overflow_saturates():
        raise NotImplementedError(f"WMMA to {types} with MODE.FP16_OVFL")
    if types == "i32":
        return _whole(b, left, right, c, shape, saturates=m.flag("clamp"))
    wide = signed_f32(b, wide_c(b, c, types) if types in ("f16", "bf16") else c, m)
    total = b.matmul(left, right, wide, shape)
    return narrow_d(b, total, SIXTEEN_BITS[types]) if types in SIXTEEN_BITS else total


def _whole(
    b: Builder, left: Any, right: Any, c: Sequence[Value], shape: WaveMatrixShape, *, saturates: bool
) -> tuple[Value, ...]:
    if not saturates:
        return b.matmul(left, right, c, shape)
    product = b.matmul(left, right, tuple(b.const("i32", 0) for _ in c), shape)
    return tuple(saturating(b, "add", x, y, "i32", signed=True) for x, y in zip(product, c, strict=True))


# --- entries


def registers_word(elements_: int, bits: int) -> str:
    """The table's word for the elements of a lane; fewer than fill a register take one register."""
    return f"i32x{max(1, elements_ * bits // 32)}"


def _bits_of_d_and_c(types: str) -> tuple[int, int]:
    return 16 if types in SIXTEEN_BITS else 32, 16 if types in ("f16", "bf16") else 32


def define_wmma(k: int, types: str, a: str, c: str, *, lanes: int, of: str) -> None:
    """Define a dense product of formats a and c with D and C of type `types`."""
    shape = shape_of(k, types, lanes, of)
    count = shape.elements_per_lane
    is_repeated = isinstance(shape, RepeatedShape)

    def fragment(b: Builder, registers: Any, format_: str, modifiers: Any, position: int) -> Any:
        def make(registers: Sequence[Value]) -> list[Value]:
            own = _own_part(b, registers, lanes) if is_repeated else registers
            return operand(b, own, format_, modifiers, position)[:count]

        if format_ == "f32":  # to make these again takes less than to look for them
            return make(registers)
        signs = [modifiers.bits(name, 3)[position] for name in ("neg_lo", "neg_hi")]
        return b.fragment("ab"[position], registers, f"{format_} {signs} {is_repeated}", shape, make)

    def evaluate(b: Builder, x: Any, y: Any, total: Any, modifiers: Any) -> Any:
        left, right = fragment(b, x, a, modifiers, 0), fragment(b, y, c, modifiers, 1)
        return accumulate(b, left, right, total, shape, types, modifiers)

    def with_constant(b: Builder, x: Any, y: Any, number: Value, modifiers: Any) -> Any:
        if modifiers.bits("neg_lo", 3)[2] or modifiers.bits("neg_hi", 3)[2]:
            raise NotImplementedError("the sign of a constant, which can have it itself")
        half = b.zext(b.bitcast(number, "i16"), "i32")
        both = b.per_lane(b.or_(half, b.shl(half, b.const("i32", 16))))
        return evaluate(b, x, y, (both,) * (shape.results_per_lane // 2), modifiers)

    form = "/wave64" if lanes == 64 else ""
    name = f"v_wmma_{types}_16x16x{k}_{a if a == c and a not in OCP else f'{a}_{c}'}{form}"
    sources = registers_word(k if is_repeated else count, _BITS[a])
    if is_repeated and types in SIXTEEN_BITS:
        _define_in_halves(name, f"{sources} {sources}", evaluate, shape, types)
        return
    d, total = (registers_word(shape.results_per_lane, bits) for bits in _bits_of_d_and_c(types))
    define(name, f"{d} = {sources} {sources} {total} modifiers", evaluate, ignores_exec=True, of=of)
    if types == "f16":
        signature = f"{d} = {sources} {sources} f16 modifiers"
        define(f"{name}/constant", signature, with_constant, ignores_exec=True, of=of)


def _define_in_halves(name: str, sources: str, product: Any, shape: WaveMatrixShape, types: str) -> None:
    """Define a product of RDNA 3 with elements of 16 bits of C and D in halves of registers. `product` has two to a
    register."""
    sixteen, words = 16, f"i32x{shape.results_per_lane}"

    def evaluate(b: Builder, x: Any, y: Any, total: Sequence[Value], old: Sequence[Value], modifiers: Any) -> Any:
        first, second, is_high = modifiers.bits("op_sel", 3)
        if first or second:
            raise NotImplementedError("op_sel of A or B, which the ISA does not define")
        c = [b.lshr(r, b.const("i32", sixteen)) if is_high else r for r in total]
        low = [b.and_(r, b.const("i32", 0xFFFF)) for r in c]
        pairs = [b.or_(x_, b.shl(y_, b.const("i32", sixteen))) for x_, y_ in zip(low[::2], low[1::2], strict=True)]
        found = product(b, x, y, pairs, modifiers)
        halves = [half for pair in found for half in (pair, b.lshr(pair, b.const("i32", sixteen)))]
        return tuple(insert_half(b, r, half, high=bool(is_high)) for r, half in zip(old, halves, strict=True))

    define(name, f"{words} = {sources} {words} dst modifiers", evaluate, ignores_exec=True, of="rdna3")
    if types == "f16":

        def with_constant(b: Builder, x: Any, y: Any, number: Value, old: Sequence[Value], modifiers: Any) -> Any:
            half = b.zext(b.bitcast(number, "i16"), "i32")
            both = b.per_lane(b.or_(half, b.shl(half, b.const("i32", sixteen))))
            return evaluate(b, x, y, (both,) * len(old), old, modifiers)

        signature = f"{words} = {sources} f16 dst modifiers"
        define(f"{name}/constant", signature, with_constant, ignores_exec=True, of="rdna3")


def _own_indices(b: Builder, stored: list[Value], index: Value, part: int) -> list[Pair]:
    """Stored elements of a lane, with their indices: a part of the lane's own register, or its own two."""
    words, bits = b.split(index), 2 * len(stored)
    if bits * (part + 1) > 32 * len(words):
        raise NotImplementedError(f"index_key:{part} of {32 * len(words) // bits}")
    if bits > 32:
        return pairs_of(b, stored[:16], words[0]) + pairs_of(b, stored[16:], words[1])
    return pairs_of(b, stored, b.lshr(words[0], b.const("i32", bits * part)))


def _indices_of_rows(b: Builder, stored: list[Value], index: Value, part: int) -> list[Pair]:
    """The same where the indices of a row follow each other, in the lane of its number and in that 16 lanes further."""
    if part:
        raise NotImplementedError(f"index_key:{part} of 1")
    words = b.split(index)
    lower, upper = words if len(words) == 2 else (words[0], b.lshr(words[0], b.const("i32", 16)))
    is_upper = b.icmp("uge", b.per_lane(b.lane_id()), b.const("i32", _SIZE))
    result = []
    for half in range(2):
        lanes = [lane % _SIZE + _SIZE * half for lane in range(2 * _SIZE)]
        low, high = (b.permute_constant(b.per_lane(word), lanes) for word in (lower, upper))
        of_half = stored[half * len(stored) // 2 :][: len(stored) // 2]
        result += pairs_of(b, of_half, b.select(is_upper, high, low))
    return result


def define_swmmac(k: int, types: str, a: str, c: str, *, lanes: int, of: str) -> None:
    """Define a product with a sparse A; D is where C is."""
    shape = shape_of(k, types, lanes)
    count = shape.elements_per_lane
    indices = _indices_of_rows if of == "cdna5" and a != "iu8" else _own_indices

    def evaluate(b: Builder, x: Any, y: Any, index: Any, total: Any, modifiers: Any) -> Any:
        stored = operand(b, x, a, modifiers, 0)[: count // 2]
        right = operand(b, y, c, modifiers, 1)[:count]
        part = modifiers.integer("index_key")
        left = dense_from_sparse(b, indices(b, stored, index, part), _COMPUTED_IN.get(a, "f32"))
        return accumulate(b, left, right, total, shape, types, modifiers)

    form = "/wave64" if lanes == 64 else ""
    name = f"v_swmmac_{types}_16x16x{k}_{a if a == c and a not in OCP else f'{a}_{c}'}{form}"
    result = registers_word(shape.results_per_lane, _bits_of_d_and_c(types)[0])
    of_index = "i64" if count > 32 else "i32"
    sources = f"{registers_word(count // 2, _BITS[a])} {registers_word(count, _BITS[c])} {of_index} dst modifiers"
    define(name, f"{result} = {sources}", evaluate, ignores_exec=True, of=of)


def _define_rdna3(lanes: int) -> None:
    for name in ("f16", "bf16"):
        for types in ("f32", name):
            define_wmma(16, types, name, name, lanes=lanes, of="rdna3")
    for name in ("iu8", "iu4"):
        define_wmma(16, "i32", name, name, lanes=lanes, of="rdna3")


def _define_rdna4(lanes: int) -> None:
    of = "rdna4"
    for name in ("f16", "bf16"):
        for types in ("f32", name):
            define_wmma(16, types, name, name, lanes=lanes, of=of)
            define_swmmac(32, types, name, name, lanes=lanes, of=of)
    for a in OCP:
        for c in OCP:
            define_wmma(16, "f32", a, c, lanes=lanes, of=of)
            define_swmmac(32, "f32", a, c, lanes=lanes, of=of)
    for name, k in (("iu8", 16), ("iu4", 16), ("iu4", 32)):
        define_wmma(k, "i32", name, name, lanes=lanes, of=of)
    for name, k in (("iu8", 32), ("iu4", 32), ("iu4", 64)):
        define_swmmac(k, "i32", name, name, lanes=lanes, of=of)


def _define_cdna5() -> None:
    define_wmma(4, "f32", "f32", "f32", lanes=32, of="cdna5")
    for name, types in (("f16", "f32"), ("f16", "f16"), ("bf16", "f32"), ("bf16", "bf16"), ("bf16", "bf16f32")):
        define_wmma(32, types, name, name, lanes=32, of="cdna5")
        if types != "bf16f32":
            define_swmmac(64, types, name, name, lanes=32, of="cdna5")
    for a in OCP:
        for c in OCP:
            for types in ("f32", "f16"):
                define_wmma(64, types, a, c, lanes=32, of="cdna5")
                define_wmma(128, types, a, c, lanes=32, of="cdna5")
                define_swmmac(128, types, a, c, lanes=32, of="cdna5")
    define_wmma(64, "i32", "iu8", "iu8", lanes=32, of="cdna5")
    define_swmmac(128, "i32", "iu8", "iu8", lanes=32, of="cdna5")


for _lanes in (32, 64):
    _define_rdna3(_lanes)
    _define_rdna4(_lanes)
_define_cdna5()
