"""The main loop of a GEMM whose tiles go from global memory straight to shared memory, into a ring of buffers.

A workgroup of waves_m x waves_n x waves_k waves computes a tile of C. Tiles of A, and with b_to_lds of B, are copied
past the registers into `stages` buffers: while one is multiplied, stages - 1 are on their way, and a wave waits only
for the oldest. Without b_to_lds the fragments of B go to registers, one tile ahead. Waves along K have a part of each
tile's K; what they have summed meets in shared memory, in f32.

The parts of `mfma_preshuffle_pipeline` serve here as well: an operand in shared memory is a `TileA`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product as pairs_of
from math import prod
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr import range_constexpr
from kernels.kernels_common import ceil_div, require
from kernels.layout_utils import idx2crd
from kernels.mfma_preshuffle_pipeline import InShared, TileA, TileB, add_products
from kernels.mfma_products import BITS, CHUNK_BYTES, WAVE, Product, is_cdna4
from kernels.pipeline_utils import interleave, vmcnt, walk_tiles
from kernels.tensor_shim import STensor

SQUARES_AHEAD = 2
"""Fragments of A and of B that are read before those that `RingLoop.grow_square` multiplies."""
READS_AHEAD = 8
"""Reads of LDS before a tile's first matrix instruction: as many as hide their latency."""


@dataclass(frozen=True, kw_only=True)
class Ring:
    """A workgroup's tile and how its operands move. Raises ArgumentError where sizes do not fit.

    dtype: a key of BITS. k: of a row in memory. tile, waves: along M, N and K. split: workgroups that share a tile of
    C, along K. unroll: tiles of K in the body of the loop on the device; 0 for no loop.
    """

    dtype: str
    k: int
    tile: tuple[int, int, int]
    waves: tuple[int, int, int]
    stages: int = 2
    split: int = 1
    b_to_lds: bool = True
    unroll: int = 1

    def __post_init__(self) -> None:
        (tile_m, tile_n, tile_k), (waves_m, waves_n, waves_k) = self.tile, self.waves
        shown = " x ".join(map(str, self.waves if waves_k > 1 else self.waves[:2]))
        require(1 <= prod(self.waves) <= 16 and min(self.waves) > 0, f"{shown} waves", "1 to 16")
        require(tile_m > 0 and tile_m % (16 * waves_m) == 0, f"TILE_M={tile_m}", f"a multiple of {16 * waves_m}")
        require(tile_n > 0 and tile_n % (16 * waves_n) == 0, f"TILE_N={tile_n}", f"a multiple of {16 * waves_n}")
        group = 512 // BITS[self.dtype][0] * waves_k
        require(tile_k > 0 and tile_k % group == 0, f"TILE_K={tile_k}", f"a multiple of {group}")
        whole = self.split * tile_k
        require(self.split > 0 and self.k > 0 and self.k % whole == 0, f"k={self.k}",
                f"a multiple of SPLIT_K * TILE_K={whole}")  # fmt: skip
        require(self.stages >= 2 and (self.b_to_lds or self.stages == 2), f"STAGES={self.stages}",
                "2, or with B_TO_LDS more")  # fmt: skip
        require(self.tiles_k >= self.stages, f"{self.tiles_k} tiles along K", f"at least STAGES={self.stages}")
        for name, rows in (("TILE_M", tile_m), ("TILE_N", tile_n))[: 1 + self.b_to_lds]:
            require(self.slab(rows).a_bytes % (self.threads * CHUNK_BYTES) == 0, f"{name}={rows} with TILE_K={tile_k}",
                    f"16 bytes for each of {self.threads} threads")  # fmt: skip

    @property
    def threads(self) -> int:
        """Threads of a workgroup."""
        return prod(self.waves) * WAVE

    @property
    def wave_tile(self) -> tuple[int, int]:
        """Rows and columns of C of a wave."""
        return self.tile[0] // self.waves[0], self.tile[1] // self.waves[1]

    @property
    def tiles_k(self) -> int:
        """Tiles along K of a workgroup."""
        return self.k // self.split // self.tile[2]

    @property
    def lds_bytes(self) -> int:
        """Shared memory: of the tiles, and then of the sums of waves along K."""
        return max(self._tile_bytes, self.sums_at_once * self.threads * 16)

    @property
    def _tile_bytes(self) -> int:
        """Shared memory of the tiles in all stages."""
        rows = self.tile[0] + (self.tile[1] if self.b_to_lds else 0)
        return self.stages * self.slab(rows).a_bytes

    @property
    def sums_at_once(self) -> int:
        """Tiles of 16 x 16 of each wave whose sums meet at a time: as many as there is room for where operands were."""
        if self.waves[2] == 1:
            return 0
        rows, columns = self.wave_tile
        return min(rows * columns // 256, max(1, self._tile_bytes // (self.threads * 16)))

    @property
    def grows(self) -> bool:
        """True if a wave has the registers for all its fragments of a tile: see `RingLoop.grow_square`.

        Without a loop, LLVM moves reads of one tile into the one before, and has too few.
        """
        is_large = self.wave_tile == (128, 128) and self.tile[2] == 128 and self.waves == (2, 2, 1)
        return self.dtype == "fp8" and is_large and self.unroll == 1 and is_cdna4()

    @property
    def stays_loop(self) -> bool:
        """True if LLVM is not to unroll the loop over K: its length is then an argument."""
        return self.stages == 2 or self.waves[2] > 1

    def slab(self, rows: int) -> InShared:
        """The tiles of A or B, with their number of rows."""
        _, tile_n, tile_k = self.tile
        return InShared(
            dtype=self.dtype,
            k=self.k,
            tile_m=rows,
            tile_n=tile_n,
            tile_k=tile_k,
            stages=self.stages,
            threads=self.threads,
            waves_n=self.waves[1],
            exchanged=16 if is_cdna4() else 8,
            asynchronous=True,
        )

    def place_of_wave(self) -> tuple[Any, Any, Any]:
        """(k, m, n) of the calling wave among the workgroup's, scalars; n is the fastest."""
        wave = fx.Int32(fx.rocdl.readfirstlane(fx.T.i32, fx.Int32(fx.thread_idx.x) >> 6))
        waves_m, waves_n, waves_k = self.waves
        if waves_k == 1:
            return (fx.Int32(0), *idx2crd(wave, (-1, waves_n)))
        return idx2crd(wave, (-1, waves_m, waves_n))

    def groups(self, product: Product) -> int:
        """Groups of K that a wave multiplies of a tile."""
        return self.tile[2] // product.group // self.waves[2]

    def operands(
        self, A: Any, B: Any, rows: Any, columns: Any, place: tuple[Any, Any], shared: Any, kind: Any = TileA
    ) -> Any:
        """(product, A, B) of a workgroup. rows, columns: of C. place: the tile's numbers along M and N. kind: B's."""
        product = Product.of(self.dtype)
        wave_k, wave_m, wave_n = self.place_of_wave()
        a_slab, b_slab = self.slab(self.tile[0]), self.slab(self.tile[1])
        first_k = wave_k * (self.groups(product) * product.lane_bytes[0] // 4) if self.waves[2] > 1 else 0
        a = TileA(a_slab, product, A, rows, place[0], wave_m * self.wave_tile[0], shared, first_k)
        first_row = wave_n * self.wave_tile[1]
        if self.b_to_lds:
            behind_a = shared + self.stages * a_slab.a_bytes
            return product, a, kind(b_slab, product, B, columns, place[1], first_row, behind_a, first_k)
        return product, a, DirectB(self, product, B, place[1], first_row, first_k)


class DirectB(TileB):
    """A wave's rows of B (N, K) as they are. first_chunk: of 16 bytes, where its part of K begins."""

    def __init__(self, ring: Ring, product: Product, B: Any, block: Any, first_row: Any, first_chunk: Any) -> None:
        super().__init__(ring.slab(ring.tile[1]), product, B, block)
        row, chunk = (self.lane & 15) + first_row, (self.lane >> 4) + first_chunk
        self._first = row * (self.k_bytes // 4) + chunk * 4
        self.groups = ring.groups(product)
        self.step, self.apart = ring.tile[2] // 2, 4 * CHUNK_BYTES


class RingLoop:
    """The tiles of a workgroup from number first_k on, one after the other through the ring.

    A wave waits for its own copies; the barrier after that, for those of all waves, and it says that the buffer of the
    last tile is free. It is the bare instruction, as `gpu.barrier` would wait for all copies that are on their way.
    """

    def __init__(self, ring: Ring, product: Product, a: TileA, b: Any, first_k: Any) -> None:
        self.ring, self.product, self.a, self.b, self.first_k = ring, product, a, b, first_k
        self.in_flight = a.tiling.copies() + (b.tiling.copies() if ring.b_to_lds else b.loads)

    def fetch(self, k: Any, stage: Any) -> Any:
        """Let tile k come; gives what registers get of it."""
        self.a.copy(self.first_k + k, stage)
        if self.ring.b_to_lds:
            self.b.copy(self.first_k + k, stage)
            return ()
        fx.rocdl.sched_barrier(0)
        return self.b.load(self.first_k + k)

    def wait(self, tiles: int) -> None:
        """Wait until at most a number of tiles are on their way. What a lane loads to its registers does not count."""
        fx.rocdl.s_waitcnt(vmcnt(tiles * self.in_flight if self.ring.b_to_lds else self.b.loads))
        fx.rocdl.s_barrier()

    def compute_tile(self, acc: Any, stage: Any, now_b: Any, loads: int) -> Any:
        """The sums after the tile in a buffer. loads: that go on meanwhile."""
        ring, product = self.ring, self.product
        blocks = range(ring.wave_tile[1] // 16)

        def load_b(group: int) -> list[Any]:
            return [self.b.fragment(ni, group, stage) for ni in blocks] if ring.b_to_lds else now_b[group]

        def load_a(mi: int, group: int) -> Any:
            return self.a.fragment(mi, group, stage)

        result = add_products(product, acc, range(ring.groups(product)), load_a, load_b)
        if ring.b_to_lds:
            groups, (rows, columns) = ring.groups(product), ring.wave_tile
            reads = groups * (rows + columns) // 16 * (product.lane_bytes[0] // CHUNK_BYTES)
            mfma = groups * product.calls * rows * columns // 256
            interleave(mfma, reads, loads, ahead=min(reads, READS_AHEAD), loads_ahead=min(4, loads))
        return result

    def step(self, acc: Any, now_b: Any, k: Any, read: Any, write: Any) -> Any:
        """The sums after the oldest tile, while tile k is fetched."""
        self.wait(self.ring.stages - 2)
        if self.ring.grows:
            return self.grow_square(acc, read, lambda: self.fetch(k, write)), ()
        ahead = self.fetch(k, write)
        return self.compute_tile(acc, read, now_b, self.in_flight), ahead

    def grow_square(self, acc: Any, stage: Any, fetch: Any) -> Any:
        """The sums after the tile in a buffer: after n fragments of A and of B, those of n x n tiles of C.

        A row of C after the other would need all of B at the start, when all waves read. fetch: what copies a tile.
        """
        rows, columns = len(acc), len(acc[0])
        result, a, b = [list(row) for row in acc], list[Any](), list[Any]()

        def read(size: int) -> None:
            a.extend(self.a.fragment(mi, 0, stage) for mi in range(len(a), min(size, rows)))
            b.extend(self.b.fragment(ni, 0, stage) for ni in range(len(b), min(size, columns)))

        read(SQUARES_AHEAD)
        fx.rocdl.sched_barrier(0)
        fetch()
        for size in range(max(rows, columns)):
            fx.rocdl.sched_barrier(0)
            read(size + 1 + SQUARES_AHEAD)
            for mi, ni in pairs_of(range(min(size + 1, rows)), range(min(size + 1, columns))):
                if size in (mi, ni):
                    result[mi][ni] = self.product(a[mi], b[ni], result[mi][ni], 0)
        fx.rocdl.sched_barrier(0)
        return result

    def in_turn(self, state: Any, number: Any, place: int) -> Any:
        """`step` of a walk through whole turns of the ring, where this is the tile before tile `number`."""
        (acc, now_b), before, stages = state, self.ring.stages - 1, self.ring.stages
        return self.step(acc, now_b, number + (before - 1), place % stages, (place + before) % stages)

    @flyc.jit
    def run(self, acc: Any, tiles_k: Any) -> Any:
        """The sums after all tiles. tiles_k: the ring's, or the same of run time."""
        ring, before = self.ring, self.ring.stages - 1
        stages, tiles, held = ring.stages, ring.tiles_k, ()
        for k in range_constexpr(before):
            held = self.fetch(k, k)
        if ring.unroll == 1:
            read = fx.Int32(0)
            for k in range(tiles_k - before):
                write = (read == 0).select(fx.Int32(before), read - 1)
                acc, held = self.step(acc, held, fx.Int32(k) + before, read, write)
                read = (read == before).select(fx.Int32(0), read + 1)
        else:
            # Whole turns of the ring, so that the numbers of buffers are known.
            turn = stages * max(1, ceil_div(ring.unroll, stages))
            acc, held = walk_tiles(self.in_turn, (acc, held), tiles - before + 1, turn, unroll=not ring.unroll)
        for left in range_constexpr(before):
            self.wait(stages - 2 - left)
            if ring.grows:
                acc = self.grow_square(acc, (tiles - before + left) % stages, lambda: None)
                continue
            acc = self.compute_tile(acc, (tiles - before + left) % stages, held, 0)
        return acc


def ring_sums(ring: Ring, product: Product, a: TileA, b: Any, first_k: Any, tiles_k: Any) -> Any:
    """[mi][ni]: a lane's sums after all tiles of a workgroup. tiles_k: the ring's, or the same of run time."""
    rows, columns = ring.wave_tile
    zeros = [[product.zeros() for _ in range(columns // 16)] for _ in range(rows // 16)]
    acc = RingLoop(ring, product, a, b, first_k).run(zeros, tiles_k)
    return acc if ring.waves[2] == 1 else of_all_waves(ring, acc, a.buffer)


def of_all_waves(ring: Ring, acc: Any, shared: Any) -> Any:
    """The sums of the waves along K together, in all of them and in the same order."""
    waves_m, waves_n, waves_k = ring.waves
    memory = STensor(shared, fx.Float32)
    thread = fx.Int32(fx.thread_idx.x)
    wave_k, place = idx2crd(thread, (-1, waves_m * waves_n * WAVE))
    tiles, columns, at_once = [t for row in acc for t in row], len(acc[0]), ring.sums_at_once
    step = waves_m * waves_n * WAVE * 4
    totals = []
    for first in range(0, len(tiles), at_once):
        fx.gpu.barrier()
        for number, tile in enumerate(tiles[first : first + at_once]):
            memory.vec_store((wave_k * at_once + number) * step + place * 4, tile)
        fx.gpu.barrier()
        for number in range(len(tiles[first : first + at_once])):
            parts = [fx.Vector(memory.vec_load(place * 4 + (w * at_once + number) * step, 4)) for w in range(waves_k)]
            totals.append(sum(parts[1:], parts[0]))
    return [totals[first : first + columns] for first in range(0, len(totals), columns)]
