"""Common parts of paged attention's decode kernels: a workgroup's walk over the keys of a request, and what it stores.

A workgroup of four waves has the queries of one key head: `queries` tokens of `group` heads each, 16 rows of a matrix
instruction or several times 16. It walks partitions of 256 keys, the last one first; each wave has 64 of them:

| step | what |
|---|---|
| logits | S^T = K Q^T: 16 keys by 16 rows, so that a lane has the logits of one row, from its wave's keys |
| softmax | the largest logit of a row goes through shared memory; sums stay in their lanes until the end |
| P | rounded to the cache's type, through shared memory to every wave |
| values | O^T += V^T P: every wave has all 256 keys of its quarter of the columns |

Keys and values go from the cache straight into the operands' registers, 16 bytes a lane. Values are loaded before the
logits are computed, the next partition's keys before the softmax.

Softmax is in base 2 and 2^BIAS times larger than usual, so that fp8 keeps small probabilities; sums are as well, and
both cancel. With a scale for each token, P is multiplied by that of its value, over the largest one of the partition.
What lies after the last token of a cache is never used, whatever it holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr.buffer_ops import buffer_store, create_buffer_resource
from kernels.attention_common import LOWEST, QUIET, inverse
from kernels.kernels_common import LOG2_E, require
from kernels.launches import for_waves
from kernels.layout_utils import divide, remainder
from kernels.mfma_products import WAVE, WAVES, Product
from kernels.quant import TINY, fp8_codes, scale_and_factor
from kernels.reduce import vector_reduce
from kernels.tensor_shim import GTensor, STensor

PARTITION = 256
KEYS = PARTITION // WAVES  # of a wave
TILE = 16  # rows and keys of a matrix instruction, and elements that lie together in a cache
BIAS = 7
# Words between the rows of a table of 16 numbers in shared memory: eight rows meet every bank once.
PITCH = 20
NUMBERS = 16  # of a row: four waves by four groups of 16 lanes

LN2 = 1 / LOG2_E

QUERY_TYPES = {"bf16": fx.BFloat16, "f16": fx.Float16, "packed_fp8": fx.Int8}
OUT_TYPES = {"bf16": fx.BFloat16, "f16": fx.Float16, "f32": fx.Float32}
CACHE_BYTES = {"fp8": 1, "bf16": 2}
SCALES = ("tensor", "token", "block")
BLOCK_SIZES = (16, 32, 64, 128, 256, 512, 1024)


@dataclass(frozen=True, kw_only=True)
class Decode:
    """The values known at compile time. Raises ArgumentError for what is unsupported.

    dim: columns of a head. block: tokens of a page. group: query heads of a key head. queries: query tokens of a
    request, the last ones of its context. scales: of the cache, one of SCALES. window: keys before its own that a query
    sees, -1 for all. masked: False if every key of a partition that is walked is seen.
    """

    dim: int
    block: int
    group: int
    queries: int
    query_dtype: str
    out_dtype: str
    cache_dtype: str
    scales: str
    trans_v: bool
    softmax_scale: float
    window: int = -1
    masked: bool = True

    def __post_init__(self) -> None:
        require(self.dim in (64, 128, 256), f"head_dim={self.dim}", "64, 128 or 256")
        require(self.block in BLOCK_SIZES, f"block_size={self.block}", f"one of {BLOCK_SIZES}")
        require(self.group > 0, f"query_group_size={self.group}", "at least 1")
        require(1 <= self.rows <= 64, f"{self.queries} queries of {self.group} heads", "1 to 64 rows for a key head")
        for name, given, known in (
            ("query_input_dtype", self.query_dtype, QUERY_TYPES), ("output_dtype_str", self.out_dtype, OUT_TYPES),
            ("cache_dtype", self.cache_dtype, CACHE_BYTES), ("scales", self.scales, SCALES),
        ):  # fmt: skip
            require(given in known, f"{name}={given!r}", f"one of {', '.join(known)}")
        together = self.cache_dtype == "fp8" or self.query_dtype == "bf16"
        require(together, f"query_input_dtype={self.query_dtype!r} and a cache of bf16", "bf16")

    @property
    def rows(self) -> int:
        """Rows of queries of a key head."""
        return self.queries * self.group

    @property
    def row_tiles(self) -> int:
        """Matrix instructions side by side."""
        return -(-self.rows // TILE)

    @property
    def element(self) -> int:
        """Bytes of an element of the cache."""
        return CACHE_BYTES[self.cache_dtype]

    @property
    def head_bytes(self) -> int:
        """Keys or values of a page and key head."""
        return self.dim * self.block * self.element

    @property
    def column_tiles(self) -> int:
        """Tiles of 16 columns of a wave."""
        return self.dim // WAVES // TILE

    @property
    def query_bytes(self) -> int:
        """A row of the queries."""
        return int(self.dim * QUERY_TYPES[self.query_dtype].width // 8)

    @property
    def attributes(self) -> dict[str, Any]:
        """The kernel's: how many waves per SIMD registers are allocated for."""
        few = self.row_tiles * self.dim * self.element <= 128
        return QUIET if self.window >= 0 else {**for_waves(3 if few else 2), **QUIET}

    @property
    def row_bytes(self) -> int:
        """P of a row, and what lets eight rows meet every bank once."""
        return PARTITION * self.element + 16


@dataclass(frozen=True, kw_only=True)
class Work:
    """The work of a workgroup: keys, or partitions of them, first to last - 1 of a request, for one key head.

    token: the request's first query. context: its tokens. pages: where its pages begin in the list of pages.
    """

    token: Any
    first: Any
    last: Any
    head: Any = None
    context: Any = None
    pages: Any = None


class Attention:
    """A workgroup's registers and shared memory. tensors: a launcher's, by name.

    heads: key heads of the caches, a runtime number.
    """

    def __init__(self, plan: Decode, tensors: dict[str, Any], heads: Any) -> None:
        self.plan, self.tensors, self.heads = plan, tensors, heads
        self.product = Product.of(plan.cache_dtype, scaled=False)
        thread = fx.Int32(fx.thread_idx.x)
        self.wave = fx.Int32(fx.rocdl.readfirstlane(thread // WAVE))
        lane = thread % WAVE
        self.row, self.quarter = lane % TILE, lane // TILE
        allocator = fx.SharedAllocator()
        tables = plan.row_tiles * TILE * PITCH * 4
        p = allocator.allocate(plan.row_tiles * TILE * plan.row_bytes, 16).peek().ptr
        self.p, self.p_bytes = STensor(p, fx.Int32), STensor(p, fx.Int8)
        self.table = STensor(allocator.allocate(tables, 16).peek().ptr, fx.Float32, (-1, PITCH))
        self.of_queries = STensor(allocator.allocate(plan.row_tiles * TILE * 4, 16).peek().ptr, fx.Float32)
        self.of_values = STensor(allocator.allocate(NUMBERS * 4, 16).peek().ptr, fx.Float32)

    def rows(self) -> list[tuple[Any, Any, Any]]:
        """[row tile]: (the lane's row, its query's number, its head's number within the group)."""
        return [self.row_of(self.row + TILE * tile) for tile in range(self.plan.row_tiles)]

    def row_of(self, row: Any) -> tuple[Any, Any, Any]:
        """(a row, its query's number, its head's number within the group)."""
        return (row, 0, row) if self.plan.queries == 1 else (row, row // self.plan.group, row % self.plan.group)

    # --- the cache ---

    def pages(self, work: Work, partition: Any, group: Any) -> list[Any]:
        """The pages of a group of 64 keys."""
        pages, block = self.tensors["kv_page_indices"], self.plan.block
        if block >= PARTITION:
            place = address(pages, 4) + fx.Int64(work.pages + divide(partition * PARTITION, block)) * 4
            return [numbers(place, 1, fx.Int32)]
        memory = GTensor(pages, fx.Int32, num_records_bytes=pages.shape[0] * 4)
        count, first = max(1, KEYS // block), divide(partition * PARTITION + group * KEYS, block)
        found = memory.vec_load(work.pages + first, count)
        left = divide(work.context - 1, block) - first
        # What the list has after a request's last page may be anything.
        every = list(fx.Vector(found)) if count > 1 else [found]
        return [(left >= number).select(fx.Int32(page), fx.Int32(0)) for number, page in enumerate(every)]

    def packs(self, partition: Any, group: Any) -> tuple[Any, Any]:
        """Packs of 16 keys in a page: before a partition, the same in all lanes, and from there to a group of 64."""
        packs, own = self.plan.block // TILE, group * (KEYS // TILE)
        if self.plan.block < PARTITION:
            return 0, remainder(own, packs)
        return remainder(partition * (PARTITION // TILE), packs), own

    def places(
        self, name: str, work: Work, pages: list[Any], head_bytes: int, pack_bytes: int, first: Any = 0, lane: Any = 0
    ) -> list[Any]:
        """[tile]: the address of what a lane has of each 16 keys of a group.

        head_bytes: of a page and key head; pack_bytes: of 16 keys. Before the group are `first` packs, the same in all
        lanes, and `lane` bytes.
        """
        own, of_page = address(self.tensors[name]) + unsigned(work.head * head_bytes), unsigned(self.heads * head_bytes)
        before, lane, in_page = unsigned(first * pack_bytes), unsigned(lane), min(self.plan.block, KEYS) // TILE
        return [
            own + unsigned(pages[tile // in_page]) * of_page + before + lane + tile % in_page * pack_bytes
            for tile in range(KEYS // TILE)
        ]

    def pieces(self, row: Any, pitch: int) -> list[Any]:
        """[piece]: what a lane has of a row of keys or queries: 16 of each 64 columns, `pitch` bytes apart."""
        packs = [row + pack * pitch for pack in range(self.plan.dim // (4 * TILE))]
        return [words(pack + part) for pack in packs for part in range(0, TILE * self.plan.element, 16)]

    def keys(self, work: Work, partition: Any) -> tuple[list[Any], list[Any]]:
        """([tile][piece]: the keys of this wave, their pages)."""
        plan, size = self.plan, TILE * self.plan.element
        pages = [fx.rocdl.readfirstlane(fx.Int32(page)) for page in self.pages(work, partition, self.wave)]
        first, lane = sum(self.packs(partition, self.wave)), (self.quarter * plan.block + self.row) * size
        rows = self.places("key_cache", work, pages, plan.head_bytes, TILE * size, first, lane)
        return [self.pieces(row, 4 * plan.block * size) for row in rows], pages

    def values(self, work: Work, partition: Any) -> Any:
        """[column tile][piece]: what this lane has of the values: 64 keys of each of its columns."""
        plan, size = self.plan, TILE * self.plan.element
        pages, (first, own) = self.pages(work, partition, self.quarter), self.packs(partition, self.quarter)
        of_pack, of_column = (plan.dim * size, size) if plan.trans_v else (size, plan.block * plan.element)
        lane = own * of_pack + (self.wave * (plan.dim // WAVES) + self.row) * of_column
        tiles = self.places("value_cache", work, pages, plan.head_bytes, of_pack, first, lane)
        return [
            [words(tile + (n * TILE * of_column + part)) for tile in tiles for part in range(0, size, 16)]
            for n in range(plan.column_tiles)
        ]

    def scales(self, name: str, work: Work, partition: Any, pages: list[Any]) -> list[Any]:
        """[tile]: the scales of the four keys whose logits a lane holds. pages: of this wave's keys."""
        if self.plan.scales == "block":
            return [fx.Vector.filled(4, numbers(page, 1), fx.Float32) for page in self.places(name, work, pages, 4, 0)]
        lane = sum(self.packs(partition, self.wave)) * (TILE * 4) + self.quarter * 16
        return [numbers(v, 4) for v in self.places(name, work, pages, self.plan.block * 4, TILE * 4, 0, lane)]

    # --- queries ---

    def row_of_query(self, first: Any, head: Any, query: Any, member: Any) -> Any:
        """The number of a row of all heads of tokens from `first` on, for one of a key head's group."""
        return ((first + query) * self.heads + head) * self.plan.group + member

    def queries(self, work: Work) -> list[tuple[Any, Any]]:
        """[row tile]: (the pieces of the lane's row, what its logits are multiplied by)."""
        factor = fx.Float32(self.plan.softmax_scale * LOG2_E)
        if self.plan.scales == "tensor":
            factor = factor * numbers(address(self.tensors["key_scale"], 4), 1)
        if self.plan.cache_dtype == "fp8" and self.plan.query_dtype != "packed_fp8":
            return self._quantised(work, factor)
        size = TILE * self.plan.element
        rows = [self._row(work, row) + unsigned(self.quarter * size) for row, _, _ in self.rows()]
        return [(self.pieces(row, 4 * size), factor) for row in rows]

    def _row(self, work: Work, row: Any) -> Any:
        """The address of a row. Those that do not exist are the last one again; they are not stored."""
        _, query, head = self.row_of(fx.min(row, self.plan.rows - 1))
        row = self.row_of_query(work.token, work.head, query, head)
        return address(self.tensors["query"]) + unsigned(row) * self.plan.query_bytes

    def _quantised(self, work: Work, factor: Any) -> list[tuple[Any, Any]]:
        """The rows as fp8. Sixteen threads quantise one; then it goes through the memory of P to every wave."""
        plan, kind = self.plan, QUERY_TYPES[self.plan.query_dtype]
        thread = fx.Int32(fx.thread_idx.x)
        row, member = thread // TILE, thread % TILE
        count = plan.dim // TILE
        for tile in range(plan.row_tiles):
            number = row + tile * TILE
            first = self._row(work, number) + unsigned(member * (plan.query_bytes // TILE))
            x = numbers(first, count, kind).to(fx.Float32)
            largest = fx.coop.warp_reduce(vector_reduce(fx.absf(x), "max"), "max", width=TILE)
            scale, inverse = scale_and_factor(largest, "fp8")
            self.of_queries.store(number, scale)
            chunk = self._word(number, member * count // 16)
            self.p_bytes.store(chunk * 4 + member * count % 16, fp8_codes(x * inverse))
        fx.gpu.barrier()
        result = []
        for tile in range(plan.row_tiles):
            chunks = [pack * 4 + self.quarter for pack in range(plan.dim // (4 * TILE))]
            pieces = [fx.Vector(self.p.vec_load(self._word(self.row + tile * TILE, chunk), 4)) for chunk in chunks]
            result.append((pieces, factor * self.of_queries.load(self.row + tile * TILE)))
        return result

    # --- a partition ---

    def logits(self, keys: Any, queries: Any, scales: Any) -> list[list[Any]]:
        """[row tile][tile]: the logits, times log2(e), of four keys each."""
        result = []
        for pieces, factor in queries:
            tiles = [self._products(tile, pieces, self.product.zeros()) for tile in keys]
            factors = [factor] * len(tiles) if scales is None else [scale * factor for scale in scales]
            result.append([tile * f for tile, f in zip(tiles, factors, strict=True)])
        return result

    def _products(self, a: list[Any], b: list[Any], sums: Any) -> Any:
        for piece_a, piece_b in zip(a, b, strict=True):
            for call in range(self.product.calls):
                sums = self.product(piece_a, piece_b, sums, call)
        return sums

    def _behind(self, partition: Any, key: Any) -> Any:
        """Keys from the lane's first one in a partition to another."""
        return key - partition * PARTITION - (self.wave * KEYS + self.quarter * 4)

    def hidden(self, work: Work, partition: Any, logits: Any) -> Any:
        """The logits, minus infinity where a row does not see the key."""
        result = []
        for (_, query, _), tiles in zip(self.rows(), logits, strict=True):
            # From the lane's first key on, the number of the last one that the row sees.
            end = self._behind(partition, work.context - self.plan.queries + query)
            hidden = -float("inf")
            result.append([kept(v, hidden, end, tile * TILE, self.plan.window) for tile, v in enumerate(tiles)])
        return result

    def weights(self, work: Work, partition: Any, pages: list[Any]) -> list[Any]:
        """[tile]: the scales of the values, 0 where there are none."""
        end, scales = self._behind(partition, work.context - 1), self.scales("value_scale", work, partition, pages)
        return [kept(v, 0.0, end, tile * TILE) for tile, v in enumerate(scales)]

    def step(self, work: Work, queries: Any, state: Any, partition: Any, following: Any = None) -> Any:
        """The state after a partition. following: the next one, whose keys are loaded."""
        plan = self.plan
        keys, pages, rows = state
        values = self.values(work, partition)
        each = plan.scales != "tensor"
        logits = self.logits(keys, queries, self.scales("key_scale", work, partition, pages) if each else None)
        # Registers of keys are free now; what is loaded next would need others earlier.
        fx.rocdl.sched_barrier(0)
        of_values = self.weights(work, partition, pages) if each else None
        if following is not None:
            keys, pages = self.keys(work, following)
        if plan.masked:
            logits = self.hidden(work, partition, logits)
        largest, heaviest = self.exchanged(logits, of_values)
        moved = []
        for tile, (v, new, row) in enumerate(zip(logits, largest, rows, strict=True)):
            powers, state_of_row = softmax_step(v, fx.arith.maxnumf(row[1], new), row)
            if of_values is not None:
                powers = [v * (scale * fx.rocdl.rcp(heaviest)) for v, scale in zip(powers, of_values, strict=True)]
            self._put(tile, powers)
            moved.append(state_of_row)
        values = self.cleared(work, partition, values)
        fx.gpu.barrier()
        rows = [
            (self.summed(values, self._probabilities(tile), row[0], correction, heaviest), new, total)
            for tile, (row, (correction, new, total)) in enumerate(zip(rows, moved, strict=True))
        ]
        return keys, pages, rows

    def exchanged(self, logits: Any, of_values: Any) -> tuple[list[Any], Any]:
        """([row tile]: a row's largest logit of all waves, the largest scale of the values)."""
        place = self.wave * 4 + self.quarter
        for tile, v in enumerate(logits):
            self.table.store((self.row + tile * TILE, place), largest_of(v))
        if of_values is not None:
            self.of_values.store(place, largest_of(of_values))
        fx.gpu.barrier()
        heaviest = None
        if of_values is not None:
            heaviest = largest_of([self.of_values.vec_load(i, 4) for i in range(0, NUMBERS, 4)])
            heaviest = (heaviest < TINY).select(fx.Float32(1.0), heaviest)
        return [vector_reduce(self._row_of(tile), "max") for tile in range(len(logits))], heaviest

    def summed(self, values: Any, pieces: Any, sums: Any, correction: Any, heaviest: Any) -> list[Any]:
        """[column tile]: the sums of columns after a partition."""
        if heaviest is None:
            return [self._products(v, pieces, old * correction) for v, old in zip(values, sums, strict=True)]
        parts = [self._products(v, pieces, self.product.zeros()) for v in values]
        return [part * heaviest + old * correction for part, old in zip(parts, sums, strict=True)]

    def _row_of(self, tile: int) -> Any:
        """The 16 numbers of the lane's row in the table."""
        return joined([self.table.vec_load((self.row + tile * TILE, i), 4) for i in range(0, NUMBERS, 4)])

    def _word(self, row: Any, chunk: Any) -> Any:
        """The offset of a chunk of 16 bytes of a row of P, in words."""
        return row * (self.plan.row_bytes // 4) + chunk * 4

    def _put(self, tile: int, powers: list[Any]) -> None:
        """Write the probabilities of this lane's keys."""
        element, bytes_ = self.plan.element, self.quarter * (4 * self.plan.element)
        for number, v in enumerate(powers):
            codes = fp8_codes(v) if element == 1 else v.to(fx.BFloat16)
            chunk = (self.wave * 4 + number) * element + bytes_ // 16
            self.p.store(self._word(self.row + tile * TILE, chunk) + bytes_ % 16 // 4, codes.bitcast(fx.Int32))

    def _probabilities(self, tile: int) -> list[Any]:
        """[piece]: the lane's row of P, in the order of `values`."""
        row, pieces = self.row + tile * TILE, KEYS // TILE * self.plan.element
        return [fx.Vector(self.p.vec_load(self._word(row, self.quarter * pieces + i), 4)) for i in range(pieces)]

    @flyc.jit
    def cleared(self, work: Work, partition: Any, values: Any) -> Any:
        """The values, 0 after the last token: what is there may be no number, and 0 times that is none either."""
        if (partition + 1) * PARTITION > work.context:
            missing = (partition * PARTITION + self.quarter * KEYS - work.context) * (8 * self.plan.element)
            values = cleared(values, missing)
        return values

    # --- all of them ---

    @flyc.jit
    def walk(self, work: Work, once: bool = False) -> Any:
        """[row tile]: (sums of columns, largest logit, sum of probabilities) of the work's partitions.

        once: there is at most one.
        """
        zeros = [self.product.zeros() for _ in range(self.plan.column_tiles)]
        rows: Any = [(zeros, fx.Float32(LOWEST), fx.Float32(0.0)) for _ in range(self.plan.row_tiles)]
        # Small pages are looked up within bounds: their keys are on their way with no branch before the arguments.
        if fx.const_expr(self.plan.block < PARTITION and not once) or work.first < work.last:
            queries = self.queries(work)
            state = (*self.keys(work, fx.max(work.last - 1, 0)), rows)
            if fx.const_expr(once):
                state = self.step(work, queries, state, work.first)
            else:
                for number in range(work.last - work.first):
                    partition = work.last - 1 - number
                    state = self.step(work, queries, state, partition, fx.max(partition - 1, work.first))
            rows = state[2]
        # The sums of probabilities of all lanes.
        for tile, (_, _, total) in enumerate(rows):
            self.table.store((self.row + tile * TILE, self.wave * 4 + self.quarter), total)
        fx.gpu.barrier()
        return [(sums, m, vector_reduce(self._row_of(tile), "add")) for tile, (sums, m, _) in enumerate(rows)]

    # --- results ---

    def value_factor(self) -> Any:
        """The factor of the sums of columns."""
        return fx.Float32(self.tensors["value_scale"][0]) if self.plan.scales == "tensor" else fx.Float32(1.0)

    def finish(self, work: Work, rows: Any, out: Any) -> None:
        """Write the rows of the output; 0 where a row sees no key."""
        for (row, query, head), (columns, _, total) in zip(self.rows(), rows, strict=True):
            sees = work.context - self.plan.queries + query >= 0
            factor = sees.select(self.value_factor() * fx.rocdl.rcp(total), fx.Float32(0.0))
            place = self.row_of_query(work.token, work.head, query, head)
            self.store(out, place, columns, factor, row < self.plan.rows)

    def share(self, rows: Any, places: list[Any], out: Any, sums: Any, largest: Any = None) -> None:
        """Write each row's share as it would be alone, its sum of powers of e, and its largest logit.

        largest: None to write the logarithm of the sum of powers instead of the two. places: [row tile].
        """
        for (row, _, _), place, (columns, m, total) in zip(self.rows(), places, rows, strict=True):
            exists = row < self.plan.rows
            self.store(out, place, columns, inverse(total) * self.value_factor(), exists)
            number = logarithm(m, total) if largest is None else total * 2.0**-BIAS
            buffer_store(number, create_buffer_resource(sums), place, mask=exists)
            if largest is not None:
                buffer_store(m * LN2, create_buffer_resource(largest), place, mask=exists)

    def store(self, out: Any, row: Any, columns: Any, factor: Any, exists: Any) -> None:
        """Write the lane's columns of a row, times a factor."""
        memory = create_buffer_resource(out)
        first = row * self.plan.dim + self.wave * (self.plan.dim // WAVES) + self.quarter * 4
        for tile, v in enumerate(columns):
            buffer_store((v * factor).to(out.dtype), memory, first + tile * TILE, mask=exists)


def cleared(values: Any, missing: Any) -> Any:
    """[column tile][piece]: 0 in the last `missing` bits of the first piece, 128 more of each that follows."""
    columns: list[list[Any]] = [[] for _ in values]
    for piece in range(len(values[0])):
        mask = existing(missing + 128 * (piece + 1))
        for column, v in zip(columns, values, strict=True):
            column.append(v[piece] & mask)
        # One mask at a time: all of them together would take more registers than anything else does.
        fx.rocdl.sched_barrier(0)
    return columns


def existing(missing: Any) -> Any:
    """Ones in 16 bytes but for the last `missing` bits, a number of whole bytes of any sign and size."""
    word = fx.Int64(0xFFFFFFFF)
    each = [fx.max(fx.min(missing - 32 * (3 - i), 32), 0) for i in range(4)]
    return fx.Vector.from_elements([fx.Int32(word >> fx.Int64(n)) for n in each], fx.Int32)


def address(tensor: Any, align: int = 16) -> Any:
    """The address of a tensor's first byte."""
    return fx.recast_iter(fx.PointerType.get(fx.Int8, fx.AddressSpace.Global, align), fx.get_iter(tensor))


def unsigned(offset: Any) -> Any:
    """An offset that is not negative, in 64 bits; in this form a scalar base and 32 bits in a lane address memory."""
    return fx.Int64(fx.Uint32(offset))


def words(pointer: Any) -> Any:
    """The 16 bytes at an address."""
    return numbers(pointer, 4, fx.Int32)


def numbers(pointer: Any, count: int, dtype: Any = fx.Float32) -> Any:
    """The f32, or others, at an address that is a multiple of their size: one, or a vector of up to 16 bytes."""
    kind = fx.PointerType.get(dtype, fx.AddressSpace.Global, min(16, dtype.width * count // 8))
    return fx.recast_iter(kind, pointer).load(fx.T.vec(count, dtype.ir_type) if count > 1 else None)


def softmax_step(logits: list[Any], largest: Any, row: tuple[Any, Any, Any]) -> tuple[list[Any], tuple[Any, Any, Any]]:
    """(powers of 2, (what earlier sums are multiplied by, the largest logit, the sum of powers)) after some logits."""
    _, before, total = row
    powers = [fx.exp2(v - (largest - BIAS), fastmath="afn") for v in logits]
    correction = fx.exp2(before - largest, fastmath="afn")
    return powers, (correction, largest, total * correction + vector_reduce(joined(powers), "add"))


def kept(vector: Any, otherwise: float, last: Any, first: int = 0, window: int = -1) -> Any:
    """Values of keys `first` and the next ones; another number for those after the last one, or before its window."""
    keys = range(first, first + vector.numel)
    seen = [last >= key if window < 0 else (last >= key) & (last - window <= key) for key in keys]
    elements = [here.select(v, fx.Float32(otherwise)) for here, v in zip(seen, vector, strict=True)]
    return fx.Vector.from_elements(elements, fx.Float32)


def logarithm(largest: Any, total: Any) -> Any:
    """The logarithm of the sum of powers of e, for the largest logit in base 2 and the sum of powers."""
    return (largest + fx.math.log2(total, fastmath="afn") - BIAS) * LN2


def joined(vectors: list[Any]) -> Any:
    """The elements of a power of two of vectors."""
    while len(vectors) > 1:
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [fx.Vector(a).shuffle(fx.Vector(b), range(2 * a.numel)) for a, b in pairs]
    return vectors[0]


def largest_of(vectors: list[Any]) -> Any:
    """The largest element; NaNs are left out."""
    return vector_reduce(joined(vectors), "max")
