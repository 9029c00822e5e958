"""The main loop of a GEMM whose B is shuffled beforehand: its operands, and the tiles in flight.

A workgroup of four waves computes a tile of C. Its waves stand side by side along N, or some of them share columns and
have parts of K (`put_sum_of_waves`). All need the same rows of A, so A
goes through shared memory; B is different for every wave and goes from global memory straight into its registers.
`mfma_products` has the matrix instructions, and says what a lane holds of A and B.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from kernels.kernels_common import bytes_of, ceil_div, fp8_type, require, require_tensor
from kernels.layout_utils import idx2crd
from kernels.mfma_products import (
    BITS,
    CHUNK_BYTES,
    THREADS,
    UNIT_SCALE,
    W4A16,
    WAVE,
    WAVES,
    Product,
    concat,
    is_cdna4,
    unpack_int4,
    unpack_int4_to_bf16,
)
from kernels.pipeline_utils import interleave, vmcnt, walk_tiles
from kernels.tensor_shim import GTensor, STensor

NON_TEMPORAL = 2  # a cache policy: what is loaded once is the first to leave a cache


@dataclass(frozen=True, kw_only=True)
class InShared:
    """A workgroup's tile of a product with K columns, with `stages` buffers of A, or an operand like it, in LDS.

    dtype: a key of BITS. k, tile_k: in elements. waves_*: of the workgroup's waves, along M, N and K. exchanged:
    chunks of a row that change places, at most; 128 bytes meet every bank of CDNA 3, 256 those of CDNA 4.
    asynchronous: copies are waited for by the program alone. b_policy: the cache policy of loads of B to registers.

    The products of shuffled weights have the defaults on CDNA 4, too: they stand for the kernels whose times are
    measured there (`flydsl/simulator/timing/ACCURACY.md`).
    """

    dtype: str
    k: int
    tile_m: int
    tile_n: int
    tile_k: int
    stages: int = 2
    threads: int = THREADS
    waves_m: int = 1
    waves_n: int = WAVES
    waves_k: int = 1
    exchanged: int = 8
    asynchronous: bool = False
    b_policy: int = 0

    @property
    def row_chunks(self) -> int:
        """Chunks of a row of the tile."""
        return self.row_bytes // CHUNK_BYTES

    @property
    def swizzled_chunks(self) -> int:
        """Neighbouring chunks of a row that change places."""
        return min(self.exchanged, self.row_chunks & -self.row_chunks)

    @property
    def swizzled_rows(self) -> int:
        """Rows after which the swizzle begins again."""
        return max(8, self.swizzled_chunks)

    def swizzled(self, row: Any, chunk: Any) -> Any:
        """The place in shared memory of a row's chunk of 16 bytes: rows that are read at once meet different banks.

        It is its own inverse.
        """
        places = self.swizzled_chunks
        # Two rows of 64 bytes lie in one row of CDNA 3's banks.
        row = row if places >= 8 else row >> 1
        return chunk ^ (row & (places - 1))

    @property
    def row_bytes(self) -> int:
        """A row of the tile."""
        return self.tile_k * BITS[self.dtype][0] // 8

    @property
    def a_bytes(self) -> int:
        """One buffer."""
        return self.tile_m * self.row_bytes

    @property
    def load_bytes(self) -> int:
        """Bytes that a thread loads at a time: those of a small tile are shared out evenly."""
        share = self.a_bytes // self.threads
        return share if share in (4, 8) else CHUNK_BYTES

    @property
    def a_loads(self) -> int:
        """Loads of a thread for a tile."""
        return self.a_bytes // self.load_bytes // self.threads

    def copy_bytes(self) -> int:
        """Bytes that a thread copies past the registers at a time."""
        return CHUNK_BYTES if is_cdna4() and self.a_bytes >= self.threads * CHUNK_BYTES else 4

    def copies(self) -> int:
        """Copies of a thread past the registers, of a tile."""
        return self.a_bytes // (self.threads * self.copy_bytes())

    @property
    def tiles_k(self) -> int:
        """Tiles along K."""
        return self.k // self.tile_k

    @property
    def m_repeat(self) -> int:
        """Tiles of 16 rows of each wave."""
        return self.tile_m // self.waves_m // 16

    @property
    def num_acc_n(self) -> int:
        """Tiles of 16 columns of each wave."""
        return self.tile_n // self.waves_n // 16

    def wave_place(self) -> tuple[Any, Any]:
        """The calling wave's numbers along N and along K."""
        wave = fx.Int32(fx.thread_idx.x) >> 6
        return (wave, 0) if self.waves_k == 1 else (wave % self.waves_n, wave // self.waves_n)


@dataclass(frozen=True, kw_only=True)
class Tiling(InShared):
    """The tile of four waves, with 1 or 2 stages. Raises ArgumentError where sizes do not fit.

    padding: the last elements of k, a multiple of 32, that do not count: what loads the last tile has 0 in their place.
    """

    padding: int = 0

    def __post_init__(self) -> None:
        require(self.dtype in BITS, f"in_dtype={self.dtype!r}", f"one of {', '.join(BITS)}")
        require(self.b_policy in (0, NON_TEMPORAL), f"b_nt={self.b_policy}", f"0 or {NON_TEMPORAL}")
        require(self.stages in (1, 2), f"lds_stage={self.stages}", "1 or 2")
        require(self.tile_m > 0 and self.tile_m % 16 == 0, f"tile_m={self.tile_m}", "a multiple of 16")
        columns = 16 * self.waves_n
        require(self.tile_n > 0 and self.tile_n % columns == 0, f"tile_n={self.tile_n}", f"a multiple of {columns}")
        group_bytes = 128 if self.dtype in (W4A16, "fp6", "fp8_fp4", "mxfp8") else 64
        fits = self.row_bytes % group_bytes == 0
        require(fits, f"tile_k={self.tile_k}", f"{self.row_bytes} bytes, a multiple of {group_bytes}")
        require(self.tile_k > 0, f"tile_k={self.tile_k}", "positive")
        require(self.k > 0 and self.k % self.tile_k == 0, f"K={self.k}", f"a multiple of tile_k={self.tile_k}")
        wanted = f"a multiple of {CHUNK_BYTES} bytes, or 4 or 8, for each of {THREADS} threads"
        finite = self.dtype != "mxfp8" or self.limit is None
        require(finite, f"{self.padding} columns of padding, and weights of fp8", f"a multiple of tile_k={self.tile_k}")
        fits = self.a_bytes % (THREADS * self.load_bytes) == 0
        require(fits, f"a tile of A of {self.tile_m} x {self.row_bytes} bytes", wanted)

    def product(self) -> Product:
        """The product of the target; the scaled instruction takes 128 bytes of fp8 at a time."""
        return Product.of(self.dtype, scaled=self.row_bytes % 128 == 0)

    @property
    def tiles_k(self) -> int:
        """Tiles along K, as far as it counts."""
        return ceil_div(self.k - self.padding, self.tile_k)

    @property
    def limit(self) -> int | None:
        """The elements of K that count, if they end within a tile."""
        return self.k - self.padding if self.padding % self.tile_k else None

    @property
    def wave_tile(self) -> tuple[int, int]:
        """Rows and columns of C of a wave."""
        return self.tile_m, self.tile_n // self.waves_n


class TileA:
    """A workgroup's rows of A: global memory -> registers -> shared memory -> fragments.

    rows: how many A has; what lies after them reads 0. block: the number of the tile along M. first_row: of the tile,
    where the wave's fragments begin, a multiple of 16. buffer: shared memory for all stages; by default its own.
    first_chunk: of a row's chunks of 16 bytes, where the wave's groups of K begin.
    """

    def __init__(
        self, tiling: Any, product: Product, A: Any, rows: Any, block: Any, first_row: Any = 0, buffer: Any = None,
        first_chunk: Any = 0,
    ) -> None:  # fmt: skip
        self.tiling, self.product = tiling, product
        k_bytes = tiling.k * BITS[tiling.dtype][0] // 8
        first = block * tiling.tile_m
        here = (rows - first < tiling.tile_m).select(rows - first, fx.Int32(tiling.tile_m))
        self.k_bytes, self.size = k_bytes, here * k_bytes
        self.memory = GTensor(
            A, fx.Int32, (-1, k_bytes // 4),
            base_byte_offset=fx.Int64(first) * k_bytes, num_records_bytes=self.size,
        )  # fmt: skip
        if buffer is None:
            buffer = fx.SharedAllocator().allocate(tiling.stages * tiling.a_bytes, 128).peek().ptr
        self.buffer, self.words = buffer, tiling.load_bytes // 4  # of a thread's load
        self.first_row, self.first_chunk = first_row, first_chunk
        self.thread = fx.Int32(fx.thread_idx.x)
        self.lane = self.thread & (WAVE - 1)
        self._places = [self._place(i) for i in range(tiling.a_loads)]

    def _place(self, load: int) -> tuple[Any, Any]:
        """(row, number of the part of it) of a thread's load."""
        parts = self.tiling.row_bytes // self.tiling.load_bytes
        if self.tiling.threads % parts:
            return idx2crd(self.thread + load * self.tiling.threads, (-1, parts))
        row, part = idx2crd(self.thread, (-1, parts))
        return row + load * (self.tiling.threads // parts), part

    def load(self, k: Any) -> list[Any]:
        """This thread's part of tile k."""
        step, words = k * self.tiling.row_bytes, self.words
        return [self.memory.vec_load((row, part * words), words, soffset_bytes=step) for row, part in self._places]

    def copy(self, k: Any, stage: Any) -> None:
        """Copy tile k to a buffer, past the registers; `s_waitcnt` waits. The swizzle is in the global address."""
        bytes_ = self.tiling.copy_bytes()
        wave = fx.Int32(fx.rocdl.readfirstlane(fx.T.i32, self.thread >> 6))
        start = self.buffer + (wave * (WAVE * bytes_) + stage * self.tiling.a_bytes)
        is_async = self.tiling.asynchronous
        load = fx.rocdl.raw_ptr_buffer_load_async_lds if is_async else fx.rocdl.raw_ptr_buffer_load_lds
        for first in range(0, self.tiling.a_bytes, self.tiling.threads * bytes_):
            place, soffset = self._copied(first, bytes_, k)
            load(self.memory.rsrc, start + first, bytes_, place, soffset)

    def _copied(self, first: int, bytes_: int, k: Any) -> tuple[Any, Any]:
        """(offset, soffset) in A of what this thread copies of tile k to its place after byte `first` of a buffer."""
        step = k * self.tiling.row_bytes
        rows, rest = divmod(first, self.tiling.row_bytes)
        if rows % self.tiling.swizzled_rows or rest or not rows:
            return self._global_bytes(first, bytes_), step
        # The swizzle is that of the first copy: only a scalar differs. A soffset beyond the end would count as inside.
        distance = fx.Int32(rows * self.k_bytes)
        return self._global_bytes(0, bytes_) + step, (distance < self.size).select(distance, self.size)

    def _global_bytes(self, first: int, bytes_: int) -> Any:
        """The offset in A of the bytes that this thread copies to its place after byte `first` of a buffer."""
        chunks = self.tiling.row_chunks
        row, chunk, byte = idx2crd(self.thread * bytes_ + first, (-1, chunks, CHUNK_BYTES))
        return row * (self.memory.shape[1] * 4) + self.tiling.swizzled(row, chunk) * CHUNK_BYTES + byte

    def store(self, values: list[Any], stage: Any) -> None:
        """Put what was loaded into a buffer."""
        for (row, part), value in zip(self._places, values, strict=True):
            chunk, rest = (part, 0) if self.words == 4 else idx2crd(part, (-1, 4 // self.words))
            vector = value if self.words > 1 else fx.Vector.from_elements([value], fx.Int32)
            place = self.tiling.swizzled(row, chunk)
            word = row * (self.tiling.row_bytes // 4) + place * 4 + rest * self.words
            self._shared(stage).vec_store(word, fx.Vector(vector))

    def _shared(self, stage: Any) -> STensor:
        return STensor(self.buffer, fx.Int32, first=stage * self.tiling.a_bytes)

    def fragment(self, mi: int, group: int, stage: Any) -> Any:
        """A lane's bytes of 16 rows and one group of K, as words."""
        place = (self.lane >> 4) + self.first_chunk
        if self.tiling.dtype == W4A16:  # two chunks side by side
            return concat([self._read(mi, place * 2 + part, group * 8, stage) for part in range(2)])
        if self.tiling.dtype == "fp6":  # the same, and the last 8 bytes are unused
            first, second = (self._read(mi, place * 2 + part, group * 8, stage, 4 - 2 * part) for part in range(2))
            return first.shuffle(concat([second, second]), range(6))
        # The 32 bytes of a lane are two chunks 64 bytes apart, as B's are.
        parts = self.product.lane_bytes[0] // CHUNK_BYTES
        return concat([self._read(mi, place + part * 4, group * 4 * parts, stage) for part in range(parts)])

    def _read(self, mi: int, chunk: Any, first_chunk: int, stage: Any, words: int = 4) -> Any:
        # The swizzle changes the lowest bits of the chunk's number: the rest is a constant.
        places = self.tiling.swizzled_chunks
        row = self.lane & 15
        place = self.tiling.swizzled(row, chunk + first_chunk % places)
        word = (row + self.first_row) * (self.tiling.row_bytes // 4) + place * 4
        constant = mi * 16 * self.tiling.row_bytes // 4 + first_chunk // places * places * 4
        return fx.Vector(self._shared(stage).vec_load(word + constant, words))


class TileB:
    """A wave's rows of the shuffled B: global memory -> registers. block: the number of the tile along N."""

    def __init__(self, tiling: Any, product: Product, B: Any, block: Any) -> None:
        self.tiling, self.product = tiling, product
        bits = BITS[tiling.dtype][1]
        self.k_bytes = tiling.k * bits // 8
        self.bytes = product.lane_bytes[1]
        # What a lane loads at a time; the loads of a group are 64 lanes apart.
        self.load_bytes = min(self.bytes, CHUNK_BYTES)
        self.memory = GTensor(
            B, fx.Int32, base_byte_offset=fx.Int64(block) * (tiling.tile_n * self.k_bytes),
            num_records_bytes=tiling.tile_n * self.k_bytes,
        )  # fmt: skip
        self.lane = fx.Int32(fx.thread_idx.x) & (WAVE - 1)
        # A wave's groups of K in a tile, words from tile to tile, and bytes from load to load of a row.
        self.groups = tiling.tile_k // tiling.waves_k // product.group
        self.step, self.apart = tiling.tile_k * bits // 8 * 4, WAVE * self.load_bytes
        self._first = self._start(tiling.num_acc_n)

    def _start(self, tiles: int) -> Any:
        """The lane's first word. tiles: of 16 rows from one wave to the next."""
        along_n, along_k = self.tiling.wave_place()
        first = along_n * (tiles * 4 * self.k_bytes) + self.lane * (self.load_bytes // 4)
        return first + along_k * (self.step // self.tiling.waves_k) if self.tiling.waves_k > 1 else first

    @property
    def loads(self) -> int:
        """Loads of a lane for a tile."""
        return self.groups * self.tiling.num_acc_n * (self.bytes // self.load_bytes)

    def load(self, k: Any) -> list[list[Any]]:
        """[group][ni]: this lane's part of tile k, as it is in memory."""
        first = self._first + k * self.step
        columns = range(self.tiling.num_acc_n)
        return [[self._group(first, ni, group) for ni in columns] for group in range(self.groups)]

    def _group(self, first: Any, ni: int, group: int) -> Any:
        parts = range(self.bytes // self.load_bytes)
        offsets = [(group * len(parts) + part) * self.apart for part in parts]
        return concat([self._part(first, ni * 16 * self.k_bytes, offset) for offset in offsets])

    def _part(self, first: Any, row: int, offset: int) -> Any:
        # The instruction holds 12 bits of the offset; the rest is constant, so that a scalar register has it.
        near = offset % 4096
        soffset = row + offset - near
        how = {"soffset_bytes": soffset, "cache_modifier": self.tiling.b_policy}
        return fx.Vector(self.memory.vec_load(first + near // 4, self.load_bytes // 4, **how))

    def unpacked(self, value: Any, scale: Any = None) -> Any:
        """A group as the matrix instruction takes it. scale: of int4 that become bf16, if groups have their own."""
        if self.tiling.dtype == W4A16:
            return unpack_int4_to_bf16(value, scale)
        return unpack_int4(value) if self.tiling.dtype == "int4" else value


def require_types(dtype: str, A: Any, B: Any) -> None:
    """Raise ArgumentError where tensors are not of the type that in_dtype names, nor bytes of it."""
    kind = {
        "fp8": fp8_type(), "fp8_fp4": fp8_type(), "mxfp8": fp8_type(), "int8": fx.Int8, "int4": fx.Int8,
        "fp16": fx.Float16, "bf16": fx.BFloat16, W4A16: fx.BFloat16,
    }.get(dtype)  # fmt: skip
    for name, tensor, bits in zip("AB", (A, B), BITS[dtype], strict=True):
        own = fx.Int8 if bits < BITS[dtype][0] and kind is fx.BFloat16 else kind
        kinds = (own,) if bits > 8 else bytes_of(own) if own else bytes_of()
        require_tensor(name, tensor, *kinds, rows=True)


class MxScales:
    """The scales of A and B, shuffled as `shuffle_scale` does: a word has those of 2 x 16 rows and 2 groups of K.

    scale_a may be None: A has no scales. rows, columns: how many have scales. place: the tile's numbers among them.
    apart: how many tiles of 16 columns after one that is which shares its words, by default the next one.
    """

    def __init__(
        self, tiling: Tiling, scale_a: Any, scale_b: Any, rows: Any, columns: Any, place: Any, apart: int = 1
    ) -> None:
        half = tiling.tile_m == 16
        fits = tiling.tile_m % 32 == (16 if half else 0) and tiling.tile_n % (32 * tiling.waves_n) == 0
        require(fits, f"scales of a tile of {tiling.tile_m} x {tiling.tile_n}",
                f"tile_m is 16 or a multiple of 32, and tile_n of {32 * tiling.waves_n}")  # fmt: skip
        self.tiling, self.apart = tiling, apart
        self.of_32_rows = ceil_div(tiling.k, 256) * WAVE  # words
        lane = self.lane = fx.Int32(fx.thread_idx.x) & (WAVE - 1)
        wave, part = tiling.wave_place()
        self.words = max(1, tiling.tile_k // tiling.waves_k // 256)  # of a wave, for 32 rows
        self.first_k, first = part * (self.words * 256), part * (self.words * WAVE) + lane
        # Scales are padded to 32 rows; what lies after them reads 0, for rows that do not exist.
        padded = (rows + 31) // 32 * (self.of_32_rows * 4)
        self.a = None if scale_a is None else GTensor(scale_a, fx.Int32, num_records_bytes=padded)
        self.b = GTensor(scale_b, fx.Int32, num_records_bytes=columns // 32 * self.of_32_rows * 4)
        # Of a tile of 16 rows the scales are moved to the low byte of each two.
        self.moved_a = fx.Uint32(place[0] % 2 * 8) if half else None
        self.first_a = (place[0] // 2 if half else place[0] * (tiling.m_repeat // 2)) * self.of_32_rows + first
        wave = place[1] * tiling.waves_n + wave
        self.first_b = wave * (tiling.num_acc_n // 2 * self.of_32_rows) + first

    def load(self, k: Any, stage: int, before: Any) -> Any:
        """(of A, of B): [32 rows][256 of K], words of tile k. An odd tile of 128 has those of the one before."""
        halves = self.tiling.tile_k == 128
        if halves and stage == 1:
            return before
        # With one buffer the number of a tile is not known at compile time: its half is moved to the low bits.
        moved = fx.Uint32(k % 2 * 16) if halves and self.tiling.stages == 1 else None
        step = k * (self.tiling.tile_k // 128) // 2 * WAVE
        words = range(self.words)
        masks = [self._counting(k, word) for word in words]

        def load(memory: Any, place: Any, word: int, distances: list[Any]) -> Any:
            if memory is None:
                return UNIT_SCALE
            loaded = memory.load(place + word * WAVE + step) & masks[word]
            return loaded if not distances else fx.Int32(fx.Uint32(loaded) >> sum(distances[1:], distances[0]))

        return tuple(
            [
                [load(memory, first + rows * self.of_32_rows, word, [x for x in distances if x is not None])
                 for word in words]
                for rows in range(ceil_div(count, 2))
            ]
            for memory, first, count, *distances in (
                (self.a, self.first_a, self.tiling.m_repeat, moved, self.moved_a),
                (self.b, self.first_b, self.tiling.num_acc_n, moved),
            )
        )  # fmt: skip

    def _counting(self, k: Any, word: int) -> Any:
        """The bits of a word of tile k whose groups of 32 along K count: two bytes for each of the groups."""
        limit = self.tiling.limit
        if limit is None:
            return -1
        first = k * (self.tiling.tile_k // 128) // 2 * 256 + (word * 256 + self.first_k) + (self.lane >> 4) * 32
        low = (first < limit).select(fx.Int32(0xFFFF), 0)
        return low | (first + 128 < limit).select(fx.Int32(-1 << 16), 0)

    def chooser(self, words: Any, stage: int) -> Callable[[int, int, int], tuple[Any, ...]]:
        """(mi, ni, group) -> what the matrix instruction takes. A tile of 128 is the half `stage` of a word."""
        of_a, of_b = words

        def chosen(mi: int, ni: int, group: int) -> tuple[Any, ...]:
            half = stage if self.tiling.tile_k == 128 else group % 2
            pair, odd = ni // (2 * self.apart) * self.apart + ni % self.apart, ni // self.apart % 2
            a, b = of_a[mi // 2][group // 2], of_b[pair][group // 2]
            return half * 2 + mi % 2, a, half * 2 + odd, b

        return chosen


def add_products(
    product: Product, acc: Any, groups: Any, of_a: Any, of_b: Any, scales: Any = None, first_row: int = 0
) -> Any:
    """[mi][ni]: the sums after groups of K. of_a(mi, group): a fragment of A; of_b(group): [ni], those of B.

    scales(mi, ni, group): of MxScales. first_row: the number mi of the first row of sums.
    """
    result = [list(row) for row in acc]
    for group in groups:
        packs = of_b(group)
        for mi, row in enumerate(result, first_row):
            pack_a = of_a(mi, group)
            for call in range(product.calls):
                for ni, pack_b in enumerate(packs):
                    extra = () if scales is None else (scales(mi, ni, group),)
                    row[ni] = product(pack_a, pack_b, row[ni], call, *extra)
    return result


def multiply_groups(
    b: TileB, acc: Any, now_b: Any, fragment: Any, scales: Any = None, groups: Any = None, first_row: int = 0,
    of_b: Any = None,
) -> Any:  # fmt: skip
    """`add_products` of a tile's groups, by default all. of_b: [group][ni], what the numbers of B are multiplied by."""

    def packs(group: int) -> list[Any]:
        factors = of_b[group] if of_b else [None] * len(now_b[group])
        return [b.unpacked(pack, factor) for pack, factor in zip(now_b[group], factors, strict=True)]

    return add_products(b.product, acc, groups or range(b.groups), fragment, packs, scales, first_row)


@flyc.jit
def put_sum_of_waves(tiling: Tiling, acc: Any, shared: Any, put: Callable[[Any], None]) -> None:
    """put(sums): what becomes of the sums of the waves along K, which meet in shared memory.

    shared: free for (waves_k - 1) tile_m tile_n f32 once every wave has multiplied.
    """
    if fx.const_expr(tiling.waves_k == 1):
        put(acc)
    else:
        wave, part = (fx.Int32(fx.rocdl.readfirstlane(number)) for number in tiling.wave_place())
        size = tiling.m_repeat * tiling.num_acc_n * 16 * 16
        lane = fx.Int32(fx.thread_idx.x) & (WAVE - 1)
        sums = STensor(shared, fx.Float32)
        tiles = [(mi, ni) for mi in range(tiling.m_repeat) for ni in range(tiling.num_acc_n)]
        fx.gpu.barrier()
        if part > 0:
            first = ((part - 1) * tiling.waves_n + wave) * size + lane * 4
            for number, (mi, ni) in enumerate(tiles):
                sums.vec_store(first + number * 256, acc[mi][ni])
        fx.gpu.barrier()
        if part == 0:
            total = [list(row) for row in acc]
            for number, (mi, ni) in enumerate(tiles):
                for other in range(tiling.waves_k - 1):
                    place = (wave + other * tiling.waves_n) * size + lane * 4 + number * 256
                    total[mi][ni] = total[mi][ni] + fx.Vector(sums.vec_load(place, 4))
            put(total)


def no_scales(k: Any, stage: int, before: Any) -> tuple[()]:
    """Further loads of `main_loop` for tile k, besides A and B: none."""
    return ()


@dataclass(frozen=True, kw_only=True)
class Loop:
    """The tiles of K of a workgroup: how each is loaded, put into shared memory and multiplied. See `main_loop`."""

    a: TileA
    b: TileB
    multiply: Callable[..., Any]
    scales: Callable[..., Any] = no_scales
    extra_loads: int = 0
    asynchronous: bool = False
    hints: bool = True
    ahead: tuple[int, int] = (2, 0)
    first_tile: Any = 0

    @property
    def other_buffer(self) -> int:
        """The distance to the buffer of the next tile."""
        return int(self.a.tiling.stages) - 1

    def load(self, k: Any, stage: int, before: Any = None) -> tuple[Any, ...]:
        """(this thread's part of A, of B, and the scales) of tile k. A that goes past the registers is None."""
        k = k + self.first_tile
        if self.asynchronous and self.other_buffer:
            self.a.copy(k, stage)
            fx.rocdl.sched_barrier(0)
        return None if self.asynchronous else self.a.load(k), self.b.load(k), self.scales(k, stage, before)

    def put(self, next_a: Any, k: Any, stage: int) -> Any:
        """The first fragment of tile k, when all of it is in shared memory."""
        loads = self.b.loads + self.extra_loads
        if not self.asynchronous:
            self.a.store(next_a, stage)
        elif not self.other_buffer:
            self.a.copy(k + self.first_tile, stage)
        if self.other_buffer and self.hints:
            self.interleave(loads)
        if self.asynchronous:
            fx.rocdl.s_waitcnt(vmcnt(loads if self.other_buffer else 0))
        fx.gpu.barrier()
        return self.a.fragment(0, 0, stage)

    def interleave(self, loads: int) -> None:
        """Tell the scheduler where a tile's accesses go. loads: past those of A."""
        tiling, product, groups = self.a.tiling, self.b.product, self.b.groups
        mfma = groups * product.calls * tiling.m_repeat * tiling.num_acc_n
        reads = (groups * tiling.m_repeat - 1) * (product.lane_bytes[0] // CHUNK_BYTES)
        writes = 0 if self.asynchronous else tiling.a_loads
        interleave(mfma, reads, writes + loads, writes, *self.ahead)

    def compute_tile(self, state: Any, stage: int) -> Any:
        """The sums after the tile in a buffer. state: (sums, of B, scales, A's first fragment)."""
        now, now_b, now_scales, first = state

        def fragment(mi: int, group: int) -> Any:
            return first if mi == group == 0 else self.a.fragment(mi, group, stage)

        return self.multiply(now, now_b, now_scales, fragment, stage)

    def step(self, state: Any, k: Any, stage: int) -> Any:
        """The state after the tile in a buffer, while tile k is loaded."""
        following = stage ^ self.other_buffer
        next_a, next_b, next_scales = self.load(k, following, state[2])
        now = self.compute_tile(state, stage)
        if not self.other_buffer:
            fx.gpu.barrier()
        return now, next_b, next_scales, self.put(next_a, k, following)


def main_loop(
    a: TileA, b: TileB, acc: Any, multiply: Callable[..., Any], *, unroll: bool = False,
    part: tuple[Any, int] = (0, 1), **how: Any,
) -> Any:  # fmt: skip
    """The sums after all tiles of K, or those of a part of K.

    multiply(sums, now_b, now_scales, fragment, stage): the sums after one tile, where fragment(mi, group) is A's.
    unroll: no loop on the device. part: which one, of how many. how, of `Loop`: scales(k, stage, before): what else is
    loaded for tile k, by default nothing; extra_loads: how many that are; asynchronous: A goes past the registers;
    hints: tell the scheduler where accesses go; ahead: reads of LDS and loads before a tile's first matrix instruction.
    """
    stages, tiles = a.tiling.stages, a.tiling.tiles_k // part[1]
    loop = Loop(a=a, b=b, multiply=multiply, first_tile=0 if part[1] == 1 else part[0] * tiles, **how)
    first_a, first_b, first_scales = loop.load(0, 0)
    state: Any = (acc, first_b, first_scales, loop.put(first_a, 0, 0))
    result = loop.compute_tile(walk_tiles(loop.step, state, tiles, stages, unroll), (tiles - 1) % stages)
    fx.rocdl.sched_barrier(0)
    return result
