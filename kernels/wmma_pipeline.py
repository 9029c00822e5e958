"""The product C = A B^T of 16-bit elements by the waves of 32 lanes of RDNA 3 and RDNA 4, from global memory to C.

`Wave` is what the two differ in: the fragments that lanes hold, and how C leaves. `module_for` and `tuned_for` make the
builder and the launcher of one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property, partial
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.atoms.instruction_sets import RDNA3, RDNA4
from flydsl.expr import range_constexpr
from flydsl.expr.tracing.emit import target_name
from kernels.kernels_common import refusal, require, require_tensors, rounded
from kernels.launches import chosen, launcher
from kernels.sizes import require_rows
from kernels.tensor_shim import GTensor, STensor

LANES, SIZE = 32, 16
PACK = 8  # elements in 16 bytes
TENSORS = "C A BT"
DTYPES = {"bf16": fx.BFloat16, "f16": fx.Float16, "fp16": fx.Float16, "f32": fx.Float32}


class Wave(Enum):
    """The part of the matrices that a lane holds.

    RDNA4: half of a row of A and of B, and eight neighbours of a row of C, as B and A change places. RDNA3: a whole row
    of A and of B, which lanes 16 apart share, and every other row of a column of C.
    """

    RDNA3 = "RDNA 3"
    RDNA4 = "RDNA 4"

    @property
    def archs(self) -> tuple[str, ...]:
        """The GPUs that have it."""
        return RDNA3 if self is Wave.RDNA3 else RDNA4

    @property
    def swaps(self) -> bool:
        """B comes first, so that the result is C transposed."""
        return self is Wave.RDNA4

    def first_element(self, row: Any, pitch: int) -> Any:
        """The place of a lane's first element of a tile whose rows are `pitch` apart, from the first of its wave."""
        lane = fx.Int32(fx.thread_idx.x) & (LANES - 1)
        first = (row + (lane & (SIZE - 1))) * pitch
        return first + (lane >> 4) * PACK if self is Wave.RDNA4 else first

    def fragment(self, tile: STensor, place: Any) -> Any:
        """A lane's elements of 16 rows and 16 columns of K."""
        if self is Wave.RDNA4:
            return fx.Vector(tile.vec_load(place, PACK))
        halves = [fx.Vector(tile.vec_load(place + PACK * half, PACK)) for half in range(2)]
        return halves[0].shuffle(halves[1], list(range(2 * PACK)))

    def multiply(self, dtype: Any, a: Any, b: Any, total: Any) -> Any:
        """The sums of a tile of C."""
        name = "bf16" if dtype is fx.BFloat16 else "f16"
        instruction = getattr(fx.rocdl, f"wmma_f32_16x16x16_{name}")
        first, second = (b, a) if self.swaps else (a, b)
        return fx.Vector(instruction(fx.T.vec(8, fx.Float32.ir_type), first, second, total))


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The compile-time parameters of a kernel. Raises ArgumentError where sizes do not fit.

    size: M, N and K. regs: tiles of 16 of a wave along M, N and K. pads: elements after a row.
    """

    wave: Wave
    size: tuple[int, int, int]
    in_dtype: str
    out_dtype: str
    regs: tuple[int, int, int]
    waves: tuple[int, int]
    group_m: int = 8
    pads: tuple[int, int] = (8, 8)

    @property
    def dtype(self) -> Any:
        """The type of A and B."""
        return DTYPES[self.in_dtype]

    @property
    def out(self) -> Any:
        """The type of C."""
        return DTYPES[self.out_dtype]

    @property
    def block(self) -> tuple[int, int, int]:
        """A workgroup's tile along M, N and K."""
        return (
            SIZE * self.regs[0] * self.waves[0],
            SIZE * self.regs[1] * self.waves[1],
            SIZE * self.regs[2],
        )

    @property
    def threads(self) -> int:
        """Threads of a workgroup."""
        return LANES * self.waves[0] * self.waves[1]

    @property
    def tiles(self) -> tuple[int, int, int]:
        """The number of tiles along M, N and K."""
        m, n, k = (size // block for size, block in zip(self.size, self.block, strict=True))
        return m, n, k

    @cached_property
    def buffer_elements(self) -> int:
        """The elements of one buffer in shared memory: a tile of A and, after it, one of B."""
        m, n, k = self.block
        return m * (k + self.pads[0]) + n * (k + self.pads[1])

    @property
    def lds_bytes(self) -> int:
        """The shared memory of both buffers."""
        return 2 * 2 * self.buffer_elements

    def __post_init__(self) -> None:
        known = self.in_dtype in DTYPES and self.in_dtype != "f32"
        require(known, f"in_dtype={self.in_dtype!r}", "one of bf16, f16, fp16")
        require(self.out_dtype in DTYPES, f"out_dtype={self.out_dtype!r}", f"one of {', '.join(DTYPES)}")
        least = min(*self.regs, *self.waves, self.group_m, self.pads[0] + 1, self.pads[1] + 1)
        require(least > 0, f"tiles {self.regs}, waves {self.waves}, group_m={self.group_m} and pads {self.pads}",
                "at least 1 each, and pads of at least 0")  # fmt: skip
        for name, size, block in zip("MNK", self.size, self.block, strict=True):
            require(size > 0 and size % block == 0, f"{name}={size}", f"a multiple of the tile's {block}")
        require(self.tiles[2] > 1, f"K={self.size[2]}", f"at least two tiles of {self.block[2]}")
        require(self.threads <= 1024, f"waves {self.waves}", "at most 32 in all")
        for name, rows, pad in zip("AB", self.block, self.pads, strict=False):
            chunks = rows * self.block[2] // PACK
            require(chunks % self.threads == 0 and pad % PACK == 0,
                    f"a tile of {rows} rows of {name} and K={self.block[2]} with a pad of {pad}",
                    f"16 bytes for each of {self.threads} threads, and pads of {PACK} elements")  # fmt: skip
        require(self.lds_bytes <= 1 << 16, f"a tile of {self.block}, {self.lds_bytes} bytes of shared memory",
                "at most 64 KiB")  # fmt: skip


def require_wave(wave: Wave) -> None:
    """Raise ArgumentError unless the kernel is compiled for a GPU of this generation."""
    if target_name() not in wave.archs:
        raise refusal(f"a kernel of {wave.value} on {target_name()}", hint=f"for {', '.join(wave.archs)}")


def launch_wmma(plan: Plan, tensors: dict[str, Any], stream: Any) -> None:
    """Launch a workgroup for each tile of C, inside a launcher."""
    require_tensors(tensors, C=plan.out, A=plan.dtype, BT=plan.dtype, rows=TENSORS)
    m, n, k = plan.size
    for name, rows, columns in (("C", m, n), ("A", m, k), ("BT", n, k)):
        require_rows(name, tensors[name], rows, columns)
    m, n, k = plan.tiles
    wmma_kernel(*tensors.values(), k, plan).launch(grid=(m * n,), block=(plan.threads,), stream=stream)


def module_for(wave: Wave) -> Any:
    """The function `create_wmma_gemm_module` of a generation."""

    @cache
    def create_wmma_gemm_module(
        M: int, N: int, K: int, in_dtype: str = "bf16", out_dtype: str = "bf16", *, reg_m: int = 4, reg_n: int = 4,
        reg_k: int = 2, waves_m: int = 2, waves_n: int = 2, group_m: int = 8, a_k_pad: int = 8, b_k_pad: int = 8,
    ) -> tuple[Any, int, int, int]:  # fmt: skip
        """A launcher of (C, A, BT, stream), and the sizes of a workgroup's tile along M, N and K.

        in_dtype: bf16, f16 or fp16. out_dtype: those, or f32. M, N, K: multiples of the tile, and K at least two of
        them. reg_*: tiles of 16 that a wave has along each; waves_*: waves of a workgroup; *_k_pad: elements between
        rows in shared memory. Raises ArgumentError where sizes do not fit, and at the launch on a GPU of another
        generation.
        """
        tiles, waves, pads = (reg_m, reg_n, reg_k), (waves_m, waves_n), (a_k_pad, b_k_pad)
        plan = Plan(
            wave=wave,
            size=(M, N, K),
            in_dtype=in_dtype,
            out_dtype=out_dtype,
            regs=tiles,
            waves=waves,
            group_m=group_m,
            pads=pads,
        )
        return launcher("launch_wmma_gemm", TENSORS, partial(launch_wmma, plan)), *plan.block

    return create_wmma_gemm_module


def tuned_for(wave: Wave, tiles_and_waves: Sequence[tuple[tuple[int, int, int], tuple[int, int]]]) -> Any:
    """The product of a generation with one of these tiles and waves, as `module_for` has them, chosen by measurement.

    It takes (C, A, BT, m, n, k, dtype, stream).
    """

    @chosen(TENSORS, "m n k dtype", tiles_and_waves)
    def tuned_wmma_gemm(
        tensors: dict[str, Any], m: int, n: int, k: int, dtype: str, tiles_and_waves: Any, stream: Any
    ) -> None:
        regs, waves = tiles_and_waves
        plan = Plan(wave=wave, size=(m, n, k), in_dtype=dtype, out_dtype=dtype, regs=regs, waves=waves)
        launch_wmma(plan, tensors, stream)

    return tuned_wmma_gemm


class Operand:
    """A workgroup's rows of A or B: a tile from memory to registers, and from there to shared memory.

    first_row: of the workgroup's rows; first: the element of a buffer where its tile begins.
    """

    def __init__(self, plan: Plan, tensor: Any, rows: int, first_row: Any, pad: int, first: int) -> None:
        self.plan, self.rows, self.pitch, self.first = plan, rows, plan.block[2] + pad, first
        k = plan.size[2]
        self.memory = GTensor(
            tensor, plan.dtype, (rows, k), base_byte_offset=fx.Int64(first_row) * (2 * k),
            num_records_bytes=2 * rows * k,
        )  # fmt: skip
        across = plan.block[2] // PACK
        thread = fx.Int32(fx.thread_idx.x)
        row, column = thread // across, thread % across * PACK
        self.outside, self.inside = row * k + column, row * self.pitch + column
        self._places = range(0, rows, plan.threads // across)

    def load(self, k: Any) -> list[Any]:
        """Tile k in registers."""
        bytes_ = fx.Int32(k) * (2 * self.plan.block[2])
        return [
            fx.Vector(self.memory.vec_load(self.outside + place * self.plan.size[2], PACK, soffset_bytes=bytes_))
            for place in self._places
        ]

    def tile(self, shared: Any, buffer: Any) -> STensor:
        """The tile in a buffer of shared memory."""
        first = buffer * (2 * self.plan.buffer_elements) + 2 * self.first
        return STensor(shared, self.plan.dtype, (self.rows, self.pitch), first)

    def store(self, shared: Any, buffer: Any, values: list[Any]) -> None:
        """A tile from registers to a buffer."""
        tile = self.tile(shared, buffer)
        for place, value in zip(self._places, values, strict=True):
            tile.vec_store(self.inside + place * self.pitch, value)


@flyc.kernel
def wmma_kernel(C: fx.Tensor, A: fx.Tensor, B: fx.Tensor, tiles: fx.Int32, plan: fx.Constexpr[Plan]) -> None:
    """One tile of C. tiles: the plan's along K; as an argument it keeps a short loop a loop."""
    require_wave(plan.wave)
    block_m, block_n, _ = plan.block
    row, column = tile_of_block(plan.tiles[0], plan.tiles[1], plan.group_m)
    shared = fx.SharedAllocator().allocate(plan.lds_bytes, 16).peek().ptr
    a = Operand(plan, A, block_m, row * block_m, plan.pads[0], 0)
    b = Operand(plan, B, block_n, column * block_n, plan.pads[1], block_m * (plan.block[2] + plan.pads[0]))
    acc = all_tiles(plan, a, b, shared, tiles)
    store_tile(plan, C, (row * block_m, column * block_n), acc)


def tile_of_block(rows: int, columns: int, group_m: int) -> tuple[Any, Any]:
    """Row and column of a workgroup's tile: `group_m` rows of tiles are walked column by column."""
    block, group = fx.Int32(fx.block_idx.x), min(group_m, rows)
    first = block // (group * columns) * group
    inside = block % (group * columns)
    if rows % group == 0:
        return first + inside % group, inside // group
    height = (rows - first < group).select(rows - first, fx.Int32(group))
    return first + inside % height, inside // height


@flyc.jit
def all_tiles(plan: Plan, a: Operand, b: Operand, shared: Any, tiles: Any) -> Any:
    """The sums over all of K: tile k is computed from one buffer while the next one is loaded."""
    acc = [[fx.Vector.filled(8, 0.0, fx.Float32) for _ in range_constexpr(plan.regs[1])]
            for _ in range_constexpr(plan.regs[0])]  # fmt: skip
    a.store(shared, 0, a.load(0))
    b.store(shared, 0, b.load(0))
    fx.gpu.barrier()
    for k in range(1, tiles):
        next_a, next_b = a.load(k), b.load(k)
        here = (fx.Int32(k) + 1) & 1
        acc = one_tile(plan, a.tile(shared, here), b.tile(shared, here), acc)
        fx.rocdl.sched_barrier(0)  # what is stored has to arrive first: that takes as long as the products
        a.store(shared, 1 - here, next_a)
        b.store(shared, 1 - here, next_b)
        fx.gpu.barrier()
    last = (plan.tiles[2] - 1) % 2
    return one_tile(plan, a.tile(shared, last), b.tile(shared, last), acc)


def one_tile(plan: Plan, a: STensor, b: STensor, acc: list[list[Any]]) -> list[list[Any]]:
    """The sums with a tile's products added."""
    (first_m, first_n), wave = place_of_wave(plan), plan.wave
    of_lane = [wave.first_element(row, tile.shape[1]) for row, tile in ((first_m, a), (first_n, b))]

    acc = list(acc)

    def fragment(side: int, tile: STensor, number: int, step: int) -> Any:
        return wave.fragment(tile, of_lane[side] + (SIZE * number * tile.shape[1] + SIZE * step))

    for step in range(plan.regs[2]):
        of_b = [fragment(1, b, ni, step) for ni in range(plan.regs[1])]
        following = fragment(0, a, 0, step)
        for mi in range(plan.regs[0]):
            of_a = following
            if mi + 1 < plan.regs[0]:
                following = fragment(0, a, mi + 1, step)
            acc[mi] = [wave.multiply(plan.dtype, of_a, of_b[ni], total) for ni, total in enumerate(acc[mi])]
            fx.rocdl.sched_barrier(0)  # or every fragment would be read beforehand, into registers of its own
    return acc


def place_of_wave(plan: Any) -> tuple[Any, Any]:
    """The first row and column of a wave's part of the workgroup's tile. plan: has regs and waves."""
    wave = fx.Int32(fx.thread_idx.x) // LANES
    return wave // plan.waves[1] * (SIZE * plan.regs[0]), wave % plan.waves[1] * (SIZE * plan.regs[1])


def store_tile(plan: Plan, C: Any, first: tuple[Any, Any], acc: Any) -> None:
    """Write a workgroup's tile of C, whose first row and column are `first`."""
    n, width = plan.size[1], plan.out.width // 8
    memory = GTensor(
        C, plan.out, base_byte_offset=(fx.Int64(first[0]) * n + fx.Int64(first[1])) * width,
        num_records_bytes=plan.block[0] * n * width,
    )  # fmt: skip
    row, column = place_of_wave(plan)
    lane = fx.Int32(fx.thread_idx.x) & (LANES - 1)
    inner, half = lane & (SIZE - 1), lane >> 4
    rows, columns = (inner, half * 8) if plan.wave.swaps else (half, inner)
    place = (row + rows) * n + (column + columns)
    for mi, totals in enumerate(acc):
        for ni, total in enumerate(totals):
            store_fragment(plan, memory, place + SIZE * ni, SIZE * mi, total)


def store_fragment(plan: Plan, memory: GTensor, place: Any, row: int, total: Any) -> None:
    """Write a lane's part of 16 x 16 of C, `row` rows after its place."""
    values, pitch = rounded(total, plan.out), plan.size[1] * plan.out.width // 8
    if not plan.wave.swaps:
        for i in range(8):
            memory.vec_store(place, values[i], soffset_bytes=(row + 2 * i) * pitch)
        return
    count = min(8, 128 // plan.out.width)
    for start in range(0, 8, count):
        part = values.shuffle(values, list(range(start, start + count)))
        memory.vec_store(place + start, part, soffset_bytes=row * pitch)
