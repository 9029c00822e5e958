"""The product of attention by waves of 32 lanes, of 16 rows and 16 columns, for RDNA 3, RDNA 4 and gfx1250.

A matrix instruction gives lane l column l % 16 of its result and half of the rows. Of its operands, a lane of RDNA 4
has half of a row of 16 elements, one chunk, so that P is an operand as it is. A lane of RDNA 3 has all of it, as the
lane 16 on has: `operand` joins the chunks of both. gfx1250 takes two groups at once, each as RDNA 4 takes one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import flydsl.expr as fx
from flydsl.atoms.instruction_sets import GFX1250
from flydsl.expr.tracing.emit import target_name
from kernels.attention_common import SharedTile, joined
from kernels.kernels_common import element_type
from kernels.wmma_pipeline import LANES, SIZE, Wave


@dataclass(frozen=True)
class Product16:
    """The product of 16 rows and 16 columns along a group of 16, or along `groups` of them. dtype: f16 or bf16."""

    dtype: str
    wave: Wave
    groups: int = 1
    rows = SIZE
    lanes = LANES
    calls = 1

    @classmethod
    def of(cls, dtype: str) -> Product16 | None:
        """The product of the target; None where waves do not have 32 lanes and WMMA of this size."""
        if target_name() in GFX1250:
            return cls(dtype, Wave.RDNA4, groups=2)
        wave = next((wave for wave in Wave if target_name() in wave.archs), None)
        return wave and cls(dtype, wave)

    def zeros(self) -> Any:
        """A lane's part of a result of 16 x 16."""
        return fx.Vector.filled(SIZE // 2, 0, fx.Float32)

    def row_of_lane(self, lane: Any) -> Any:
        """The row of the first operand that a lane has: such that it then has eight rows of the result in a row.

        Of the result, RDNA 3 gives the two halves of a wave rows by turns.
        """
        number = lane & (SIZE - 1)
        return (number & 1) << 3 | number >> 1 if self.wave is Wave.RDNA3 else number

    def fragment(self, tile: SharedTile, block: int, group: int) -> Any:
        """A lane's operand of 16 rows and one group, as words."""
        lane = fx.Int32(fx.thread_idx.x) & (LANES - 1)
        row = self.row_of_lane(lane)
        if self.wave is Wave.RDNA4:
            return tile.chunk_at(tile.place(row, lane >> 4), block * SIZE, group * 2)
        place = tile.place(row, 0)
        return joined([tile.chunk_at(place, block * SIZE, group * 2 + half) for half in (0, 1)])

    def operand(self, chunk: Any) -> Any:
        """A lane's operand, of whose row it has one chunk and the lane 16 on or back the other."""
        if self.wave is Wave.RDNA4:
            return chunk
        other = fx.gpu.shuffle_xor(chunk, SIZE, LANES)
        is_first = (fx.Int32(fx.thread_idx.x) & SIZE) == 0
        return joined([is_first.select(chunk, other), is_first.select(other, chunk)])

    def __call__(self, a: Any, b: Any, sums: Any) -> Any:
        """The sums (8 of a lane) after a call. a, b: operands, as words."""
        kind = element_type(self.dtype)
        instruction = getattr(fx.rocdl, f"wmma_f32_16x16x{SIZE * self.groups}_{self.dtype}")
        return fx.Vector(instruction(fx.T.vec(SIZE // 2, fx.T.f32), a.bitcast(kind), b.bitcast(kind), sums))
