"""The main loop of a GEMM whose tiles go from global memory straight to shared memory, into a ring of buffers.

A workgroup of waves_m x waves_n x waves_k waves computes a tile of C. Tiles of A and B are copied past
the registers into `stages` buffers: while one is multiplied, stages - 1 are on their way, and a wave waits only for the
oldest. Without b_to_lds there is no ring: the fragments of B go to registers, one tile ahead, as those of a shuffled B
do. Waves along K have a part of each tile's K; what they have summed meets in shared memory, in f32.

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
from kernels.mfma_preshuffle_pipeline import InShared, TileA, TileB, add_products, main_loop, multiply_groups
from kernels.mfma_products import BITS, CHUNK_BYTES, WAVE, Product, is_cdna4
from kernels.pipeline_utils import interleave, vmcnt, walk_tiles
from kernels.tensor_shim import STensor

SQUARES_AHEAD = 2
"""Fragments of A and of B that are read before those that `RingLoop.grow_square` multiplies."""
READS_AHEAD = 8
"""Reads of LDS before a tile's first matrix instruction: as many as hide their latency."""
OTHER_REGISTERS = 48
"""Registers of a wave besides those of sums and fragments: addresses, and what is on its way."""


@dataclass(frozen=True, kw_only=True)
class Ring:
    """A workgroup's tile and how its operands move. Raises ArgumentError where sizes do not fit.

    dtype: a key of BITS. k: of a row in memory. tile, waves: along M, N and K. split: workgroups that share a tile of
    C, along K. unroll: tiles of K in the body of the ring's loop on the device; 0 for no loop.
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
        fits = self.stages >= 2 if self.b_to_lds else self.stages in (1, 2)
        require(fits, f"STAGES={self.stages}", "2, with B_TO_LDS more, and without it 1")
        fits = self.tiles_k >= self.stages or not self.b_to_lds
        require(fits, f"{self.tiles_k} tiles along K", f"at least STAGES={self.stages}")
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
        shares = prod(self.shares)
        return min(rows * columns // 256, max(1, self._tile_bytes // (self.threads * 16 * shares)) * shares)

    @property
    def shares(self) -> tuple[int, int]:
        """Along M and N, the parts of a tile of sums that the waves along K get: one each, or all of them all."""
        (rows, columns), waves_k = self.wave_tile, self.waves[2]
        if columns % (16 * waves_k) == 0:
            return 1, waves_k
        return (waves_k, 1) if rows % (16 * waves_k) == 0 else (1, 1)

    @property
    def share_tile(self) -> tuple[int, int]:
        """Rows and columns of C that a wave has in the end."""
        return self.wave_tile[0] // self.shares[0], self.wave_tile[1] // self.shares[1]

    def number_of_share(self) -> Any:
        """The number of the calling wave's share among those of the tile, along N first."""
        wave_k, wave_m, wave_n = self.place_of_wave()
        share_m, share_n = self.shares
        row = wave_m * share_m + (wave_k if share_m > 1 else 0)
        return row * (self.waves[1] * share_n) + (wave_n * share_n + (wave_k if share_n > 1 else 0))

    @property
    def grows(self) -> bool:
        """True if a wave has the registers for all its fragments of a tile: see `RingLoop.grow_square`.

        Without a loop, LLVM moves reads of one tile into the one before, and has too few.
        """
        is_large = self.wave_tile == (128, 128) and self.tile[2] == 128 and self.waves == (2, 2, 1)
        return self.dtype == "fp8" and is_large and self.unroll == 1 and is_cdna4()

    def reads_ahead(self, product: Product) -> bool:
        """True if a wave has the registers for two groups of fragments beside its sums: see `ReadsAhead`."""
        rows, columns = self.wave_tile
        fragments = (rows + columns) // 16 * product.lane_bytes[0] // 4
        return rows * columns // 64 + 2 * fragments + OTHER_REGISTERS <= 512 // ceil_div(self.threads, 256)

    @property
    def stays_loop(self) -> bool:
        """True if LLVM is not to unroll the loop over K: its length is then an argument."""
        return self.b_to_lds and (self.stages == 2 or self.waves[2] > 1)

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
            waves_m=self.waves[0],
            waves_n=self.waves[1],
            exchanged=16 if is_cdna4() else 8,
            asynchronous=self.b_to_lds,
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

    def load(self, k: Any) -> list[list[Any]]:
        """[group][ni]: this lane's part of tile k. Two groups share lines of memory, which L1 has for the second."""
        first = self._first + k * self.step
        loaded: list[list[Any]] = [[] for _ in range(self.groups)]
        for pair, ni in pairs_of(range(0, self.groups, 2), range(self.tiling.num_acc_n)):
            for group in range(pair, min(pair + 2, self.groups)):
                loaded[group].append(self._group(first, ni, group))
        return loaded


class RingLoop:
    """The tiles of a workgroup from number first_k on, one after the other through the ring.

    A wave waits for its own copies; the barrier after that, for those of all waves, and it says that the buffer of the
    last tile is free. It is the bare instruction, as `gpu.barrier` would wait for all copies that are on their way.
    """

    reads_ahead = False

    def __init__(self, ring: Ring, product: Product, a: TileA, b: Any, first_k: Any) -> None:
        self.ring, self.product, self.a, self.b, self.first_k = ring, product, a, b, first_k
        self.in_flight = a.tiling.copies() + b.tiling.copies()

    def fetch(self, k: Any, stage: Any) -> None:
        """Let tile k come."""
        self.a.copy(self.first_k + k, stage)
        self.b.copy(self.first_k + k, stage)

    def wait(self, tiles: int) -> None:
        """Wait until at most a number of tiles are on their way."""
        fx.rocdl.s_waitcnt(vmcnt(tiles * self.in_flight, lds=self.reads_ahead))
        fx.rocdl.s_barrier()

    def compute_tile(self, acc: Any, stage: Any, loads: int) -> Any:
        """The sums after the tile in a buffer. loads: that go on meanwhile."""
        ring, product = self.ring, self.product

        def load_b(group: int) -> list[Any]:
            return [self.b.fragment(ni, group, stage) for ni in range(ring.wave_tile[1] // 16)]

        def load_a(mi: int, group: int) -> Any:
            return self.a.fragment(mi, group, stage)

        result = add_products(product, acc, range(ring.groups(product)), load_a, load_b)
        groups, (rows, columns) = ring.groups(product), ring.wave_tile
        reads = groups * (rows + columns) // 16 * (product.lane_bytes[0] // CHUNK_BYTES)
        mfma = groups * product.calls * rows * columns // 256
        interleave(mfma, reads, loads, ahead=min(reads, READS_AHEAD), loads_ahead=min(4, loads))
        return result

    def step(self, acc: Any, k: Any, read: Any, write: Any) -> Any:
        """The sums after the oldest tile, while tile k is fetched."""
        self.wait(self.ring.stages - 2)
        if self.ring.grows:
            return self.grow_square(acc, read, lambda: self.fetch(k, write))
        self.fetch(k, write)
        return self.compute_tile(acc, read, self.in_flight)

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

    def in_turn(self, acc: Any, number: Any, place: int) -> Any:
        """`step` of a walk through whole turns of the ring, where this is the tile before tile `number`."""
        before, stages = self.ring.stages - 1, self.ring.stages
        return self.step(acc, number + (before - 1), place % stages, (place + before) % stages)

    @flyc.jit
    def run(self, acc: Any, tiles_k: Any) -> Any:
        """The sums after all tiles. tiles_k: the ring's, or the same of run time."""
        ring, before = self.ring, self.ring.stages - 1
        stages, tiles = ring.stages, ring.tiles_k
        for k in range_constexpr(before):
            self.fetch(k, k)
        if ring.unroll == 1:
            read = fx.Int32(0)
            for k in range(tiles_k - before):
                write = (read == 0).select(fx.Int32(before), read - 1)
                acc = self.step(acc, fx.Int32(k) + before, read, write)
                read = (read == before).select(fx.Int32(0), read + 1)
        else:
            # Whole turns of the ring, so that the numbers of buffers are known.
            turn = stages * max(1, ceil_div(ring.unroll, stages))
            acc = walk_tiles(self.in_turn, acc, tiles - before + 1, turn, unroll=not ring.unroll)
        for left in range_constexpr(before):
            self.wait(stages - 2 - left)
            if ring.grows:
                acc = self.grow_square(acc, (tiles - before + left) % stages, lambda: None)
                continue
            acc = self.compute_tile(acc, (tiles - before + left) % stages, 0)
        return acc


class ReadsAhead(RingLoop):
    """The same, with the fragments of the next group of K in registers before those of a group are multiplied.

    So waves need not wait for LDS after a barrier, when all of them read. The last group of a tile lets those of the
    next tile be read; then nobody needs the tile's buffer, which the tile after the whole ring gets.
    """

    reads_ahead = True

    def read(self, group: int, stage: Any) -> tuple[list[Any], list[Any]]:
        """A lane's fragments of A and of B."""
        rows, columns = self.ring.wave_tile
        of_a = [self.a.fragment(mi, group, stage) for mi in range(rows // 16)]
        return of_a, [self.b.fragment(ni, group, stage) for ni in range(columns // 16)]

    def multiply(self, acc: Any, fragments: Any, reads: int, loads: int) -> Any:
        """The sums after a group, while the next one is read. loads: copies that begin meanwhile."""
        of_a, of_b = fragments
        result = add_products(self.product, acc, range(1), lambda mi, _: of_a[mi], lambda _: of_b)
        mfma = self.product.calls * len(of_a) * len(of_b)
        interleave(mfma, reads, loads, ahead=min(reads, 4), loads_ahead=min(2, loads))
        return result

    def step(self, state: Any, k: Any, read: Any, following: Any, tiles: int | None = None) -> Any:
        """The sums after the tile in a buffer, and the first fragments of the one after it.

        k: the tile that is fetched. tiles: at the end, how many are on their way after that one, and none is fetched;
        -1 after the last one.
        """
        (acc, fragments), last = state, self.ring.groups(self.product) - 1
        reads = sum(map(len, fragments)) * (self.product.lane_bytes[0] // CHUNK_BYTES)
        for group in range(last):
            ahead = self.read(group + 1, read)
            acc, fragments = self.multiply(acc, fragments, reads, 0), ahead
        if tiles == -1:
            return self.multiply(acc, fragments, 0, 0), fragments
        self.wait(self.ring.stages - 2 if tiles is None else tiles)
        ahead = self.read(0, following)
        if tiles is None:
            self.fetch(k, read)
        return self.multiply(acc, fragments, reads, self.in_flight if tiles is None else 0), ahead

    def run(self, acc: Any, tiles_k: Any) -> Any:
        """The sums after all tiles. tiles_k: the ring's, or the same of run time."""
        stages, tiles = self.ring.stages, self.ring.tiles_k
        for k in range_constexpr(stages):
            self.fetch(k, k)
        self.wait(stages - 1)
        state = self.walk((acc, self.read(0, 0)), tiles_k)
        for left in range_constexpr(stages):
            at = (tiles - stages + left) % stages
            state = self.step(state, None, at, (at + 1) % stages, stages - 2 - left)
        return state[0]

    @flyc.jit
    def walk(self, state: Any, tiles_k: Any) -> Any:
        """The state after all tiles but those of the last turn of the ring."""
        stages, read = self.ring.stages, fx.Int32(0)
        # An even number of groups, so that fragments need not move from registers to registers.
        body = 1 + self.ring.groups(self.product) % 2
        for turn in range((tiles_k - stages) // body):
            for place in range_constexpr(body):
                following = (read == stages - 1).select(fx.Int32(0), read + 1)
                state = self.step(state, fx.Int32(turn) * body + (stages + place), read, following)
                read = following
        if fx.const_expr((self.ring.tiles_k - stages) % body):
            at = (self.ring.tiles_k - stages - 1) % stages
            state = self.step(state, self.ring.tiles_k - 1, at, (at + 1) % stages)
        return state


def ring_sums(ring: Ring, product: Product, a: TileA, b: Any, part: Any, tiles_k: Any) -> Any:
    """[mi][ni]: a lane's sums after all tiles of a workgroup, in its wave's share of the tile (`Ring.share_tile`).

    part: the number of its part of K. tiles_k: the ring's, or the same of run time.
    """
    zeros = product.tile_of_zeros(a.tiling)
    if ring.b_to_lds:
        loop = ReadsAhead if ring.reads_ahead(product) and ring.unroll == 1 else RingLoop
        acc = loop(ring, product, a, b, part * ring.tiles_k if ring.split > 1 else 0).run(zeros, tiles_k)
    else:
        acc = main_loop(
            a, b, zeros, lambda acc, now_b, _, fragment, stage: multiply_groups(b, acc, now_b, fragment),
            part=(part, ring.split),
        )  # fmt: skip
    return acc if ring.waves[2] == 1 else of_all_waves(ring, acc, a.buffer)


def of_all_waves(ring: Ring, acc: Any, shared: Any) -> Any:
    """A wave's part of the sums of the waves along K together, summed in the same order: see `Ring.shares`."""
    (waves_m, waves_n, waves_k), (share_m, share_n) = ring.waves, ring.shares
    memory = STensor(shared, fx.Float32)
    thread = fx.Int32(fx.thread_idx.x)
    wave_k, place = idx2crd(thread, (-1, waves_m * waves_n * WAVE))
    rows, columns = len(acc) // share_m, len(acc[0]) // share_n
    # The tiles of the first wave, then those of the second one, ...
    tiles = [
        acc[m * rows + mi][n * columns + ni]
        for mi, ni in pairs_of(range(rows), range(columns))
        for m, n in pairs_of(range(share_m), range(share_n))
    ]
    shares, at_once = share_m * share_n, ring.sums_at_once
    step = waves_m * waves_n * WAVE * 4
    mine = fx.Int32(fx.rocdl.readfirstlane(fx.T.i32, wave_k)) * step if shares > 1 else 0
    totals = []
    for first in range(0, len(tiles), at_once):
        fx.gpu.barrier()
        for number, tile in enumerate(tiles[first : first + at_once]):
            memory.vec_store((wave_k * at_once + number) * step + place * 4, tile)
        fx.gpu.barrier()
        for number in range(0, len(tiles[first : first + at_once]), shares):
            places = [place * 4 + mine + (w * at_once + number) * step for w in range(waves_k)]
            parts = [fx.Vector(memory.vec_load(place, 4)) for place in places]
            totals.append(sum(parts[1:], parts[0]))
    return [totals[first : first + columns] for first in range(0, len(totals), columns)]
