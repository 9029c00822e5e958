"""The matrix instructions of CDNA by the types of A and B, and the operands they take from memory.

A product is of 16 rows of A and 16 of B along one group of K. Of such a group, a lane holds the bytes of A's row
`lane % 16`, and of B's row `lane % 16`, at the place `lane // 16` of the group's four. Since A and B agree, the order
of K inside a group does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import flydsl.expr as fx
from flydsl.atoms.instruction_sets import CDNA4
from flydsl.expr.tracing.emit import target_name
from kernels.kernels_common import require

WAVE = 64
WAVES = 4
THREADS = WAVE * WAVES
CHUNK_BYTES = 16  # what a lane moves at a time
UNIT_SCALE = 0x7F7F7F7F  # 2 ** 0, four times

# Bits of an element of A and of B in memory. fp6 is filled up: 32 elements take 24 bytes and 8 of zeros.
BITS = {
    "fp8": (8, 8), "int8": (8, 8), "int4": (8, 4), "fp16": (16, 16), "bf16": (16, 16), "fp4": (4, 4), "fp6": (8, 4),
    "fp8_fp4": (8, 4), "mxfp8": (8, 8), "int4_bf16": (16, 4),
}  # fmt: skip
W4A16 = "int4_bf16"  # whose weights become bf16 in registers
MICRO_SCALED = ("fp4", "fp6", "fp8_fp4", "mxfp8")  # 32 elements along K share a scale
_PLAIN = {
    "fp8": ("mfma_f32_16x16x32_fp8_fp8", 32),
    "int8": ("mfma_i32_16x16x32_i8", 32),
    "int4": ("mfma_i32_16x16x32_i8", 32),
    "fp16": ("mfma_f32_16x16x16f16", 16),
    "bf16": ("mfma_f32_16x16x16bf16_1k", 16),
    W4A16: ("mfma_f32_16x16x16bf16_1k", 16),
}
_CDNA4 = {
    "fp16": ("mfma_f32_16x16x32_f16", 32),
    "bf16": ("mfma_f32_16x16x32_bf16", 32),
    W4A16: ("mfma_f32_16x16x32_bf16", 32),
}
# Formats of A and B that the scaled instruction is told: 0 fp8, 2 fp6 (E2M3), 4 fp4.
_SCALED_FORMATS = {"fp8": (0, 0), "fp4": (4, 4), "fp6": (2, 4), "fp8_fp4": (0, 4), "mxfp8": (0, 0)}
_SCALED = ("mfma_scale_f32_16x16x128_f8f6f4", 128)


def is_cdna4() -> bool:
    """True if the kernel that is being traced is for CDNA 4."""
    return target_name() in CDNA4


@dataclass(frozen=True)
class Product:
    """The product of 16 rows of A and 16 of B along one group of K.

    dtype: a key of BITS. name, k: the matrix instruction, and how much of K it takes. formats: of the scaled one.
    """

    dtype: str
    name: str
    k: int
    formats: tuple[int, int] | None = None

    @classmethod
    def of(cls, dtype: str, scaled: bool = True) -> Product:
        """The product of the target. scaled: take the scaled instruction where there is a choice."""
        needs_scaled = dtype in MICRO_SCALED
        has_it = is_cdna4() or not needs_scaled
        require(has_it, f"a product of {dtype} on {target_name()}", "it needs the instructions of CDNA 4")
        if needs_scaled or (scaled and dtype in _SCALED_FORMATS and is_cdna4()):
            return cls(dtype, *_SCALED, _SCALED_FORMATS[dtype])
        return cls(dtype, *(_CDNA4.get(dtype, _PLAIN[dtype]) if is_cdna4() else _PLAIN[dtype]))

    @property
    def group(self) -> int:
        """Elements of K in a group: 64 bytes of A, or what the instruction takes, or what a lane loads of B."""
        return 64 if self.dtype == W4A16 else max(self.k, 512 // BITS[self.dtype][0])

    @property
    def calls(self) -> int:
        """Matrix instructions per group."""
        return self.group // self.k

    @property
    def lane_bytes(self) -> tuple[int, int]:
        """Bytes of A and of B in memory that a lane holds of a group."""
        a, b = BITS[self.dtype]
        return self.group * a // 32, self.group * b // 32

    @property
    def accumulator(self) -> Any:
        """The type of the sums."""
        return fx.Int32 if self.dtype in ("int8", "int4") else fx.Float32

    def zeros(self) -> Any:
        """A lane's part of a tile of 16 x 16: four rows of a column."""
        return fx.Vector.filled(4, 0, self.accumulator)

    def tile_of_zeros(self, tiling: Any) -> Any:
        """[mi][ni]: a lane's part of the tile of a wave."""
        return [[self.zeros() for _ in range(tiling.num_acc_n)] for _ in range(tiling.m_repeat)]

    def __call__(self, a: Any, b: Any, acc: Any, call: int, scales: tuple[Any, ...] = (0, UNIT_SCALE) * 2) -> Any:
        """The sums after one of the group's matrix instructions. scales: of A and B, each (byte of the word, word)."""
        instruction = getattr(fx.rocdl, self.name)
        kind = fx.T.vec(4, self.accumulator.ir_type)
        operands = [_part(a, call, self.calls), _part(b, call, self.calls), acc]
        if self.formats is None:
            return fx.Vector(instruction(kind, [*operands, 0, 0, 0]))
        return fx.Vector(instruction(kind, [*operands, *self.formats, *scales]))


def _part(vector: Any, number: int, parts: int) -> Any:
    """One of the equal parts of a vector."""
    count = vector.numel // parts
    return vector if parts == 1 else vector.shuffle(vector, range(number * count, (number + 1) * count))


def concat(vectors: list[Any]) -> Any:
    """The elements of up to two vectors of one length."""
    if len(vectors) == 1:
        return vectors[0]
    first, second = vectors
    return first.shuffle(second, range(2 * first.numel))


def unpack_int4(words: Any) -> Any:
    """Twice as many words of int8: 16 times each signed nibble, first the low ones of a word, then the high ones.

    A product of these is 16 times too large. That costs an exact factor at the end, and extending the sign nothing.
    """
    high = 0xF0F0F0F0 - (1 << 32)
    low_nibbles, high_nibbles = (words << 4) & high, words & high
    return low_nibbles.shuffle(high_nibbles, [i + j * words.numel for i in range(words.numel) for j in range(2)])


def unpack_int4_to_bf16(words: Any, scale: Any = None) -> Any:
    """Four times as many words of bf16: a sixteenth of each signed nibble, times `scale`, an f32, rounded."""
    pairs = []
    for word in (words[i] for i in range(words.numel)):
        # Rotated, so that the high halves stay a word, and conversions read each byte where it is.
        rotated = word.to(fx.Uint32) >> 4 | word.to(fx.Uint32) << 28
        for nibbles in (word, rotated.to(fx.Int32)):
            floats = [fx.rocdl.cvt_off_f32_i4(nibbles, byte_sel=byte) for byte in range(4)]
            pairs += [_bf16_pair(floats[first : first + 2], scale) for first in (0, 2)]
    return fx.Vector.from_elements(pairs, fx.Int32)


def _bf16_pair(floats: list[Any], scale: Any) -> Any:
    """Two f32, times scale, as a word. Without a scale they are bf16 already."""
    pair = fx.Vector.from_elements(floats, fx.Float32)
    if scale is not None:
        pair = pair * fx.Vector.filled(2, scale, fx.Float32)
        if is_cdna4():
            return fx.rocdl.cvt_pk_bf16_f32(pair[0], pair[1])
    low, high = (pair[i].bitcast(fx.Int32) for i in range(2))
    if scale is not None:
        # Rounded to nearest, and from the middle away from zero: one addition each, where ties to even take four.
        low, high = low + 0x8000, high + 0x8000
    return fx.rocdl.perm_b32(high, low, 0x07060302)
