"""The common parts of attention kernels: products of 32 x 32, tiles in shared memory, masks, and the online softmax.

Both products are written so that scores never leave the registers. A wave has 32 queries and computes

    S^T = K Q^T         whose rows are keys, and whose columns are its queries
    O^T += V^T P^T      whose rows are columns of V

A matrix instruction gives lane l column l % 32 of its result, and of the rows those of the lane's half l // 32, in
groups of four by turns. `row_of_lane` numbers the rows of the first operand such that a lane has eight consecutive ones
at a time: as many consecutive keys as it needs of P for the other product, and 16 bytes of O to store.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from kernels.kernels_common import element_type
from kernels.layout_utils import idx2crd
from kernels.mfma_products import CHUNK_BYTES, WAVE, is_cdna4
from kernels.pipeline_utils import interleave
from kernels.reduce import vector_reduce
from kernels.tensor_shim import GTensor, STensor

ROWS = 32  # of a product
KEYS = 64  # of a tile
GROUP = 16  # of the dimension that is summed over, which a lane's chunk of 16 bytes is a part of
CHUNK = 8  # elements
# Below every score, but finite: a row that has seen no key yet is no special case.
LOWEST = -1.0e30

_INSTRUCTIONS = {"f16": "mfma_f32_32x32x8f16", "bf16": "mfma_f32_32x32x8bf16_1k"}
_CDNA4 = {"f16": "mfma_f32_32x32x16_f16", "bf16": "mfma_f32_32x32x16_bf16"}


@dataclass(frozen=True)
class Product32:
    """The product of 32 rows and 32 columns along a group of 16, by `calls` instructions of that name."""

    dtype: str
    name: str
    calls: int
    rows = ROWS
    lanes = WAVE
    groups = 1  # that a call takes

    @classmethod
    def of(cls, dtype: str) -> Product32:
        """The product of the target, of f16 or bf16."""
        return cls(dtype, _CDNA4[dtype], 1) if is_cdna4() else cls(dtype, _INSTRUCTIONS[dtype], 2)

    def __call__(self, a: Any, b: Any, sums: Any) -> Any:
        """The sums (16 of a lane) after a group. a, b: a lane's chunk of its row, and of its column, as words."""
        words = a.numel // self.calls
        for first in range(0, a.numel, words):
            operands = [a[first : first + words], b[first : first + words], sums, 0, 0, 0]
            sums = fx.Vector(getattr(fx.rocdl, self.name)(fx.T.vec(16, fx.T.f32), operands))
        return sums

    def zeros(self) -> Any:
        """A lane's part of a result of 32 x 32."""
        return zeros()

    def fragment(self, tile: SharedTile, block: int, group: int) -> Any:
        """A lane's operand of 32 rows and one group, as words."""
        return tile.fragment(block, group)

    def operand(self, chunk: Any) -> Any:
        """A lane's operand, of whose row it has one chunk: that one."""
        return chunk


def multiply(product: Any, rows: SharedTile, columns: list[Any], blocks: int, sums: Any = None) -> list[Any]:
    """[block of rows]: the sums after rows are multiplied by a lane's column, given as an operand of each group."""
    result = [product.zeros() for _ in range(blocks)] if sums is None else list(sums)
    for block in range(blocks):
        for group in range(0, len(columns), product.groups):
            fragments = [product.fragment(rows, block, group + i) for i in range(product.groups)]
            result[block] = product(*map(joined, (fragments, columns[group : group + product.groups])), result[block])
    return result


def joined(parts: list[Any]) -> Any:
    """The words of one or two operands, one after the other."""
    first = parts[0]
    return first if len(parts) == 1 else first.shuffle(parts[1], list(range(2 * first.numel)))


def multiply_fragments(product: Product32, rows: list[list[Any]], columns: list[Any], sums: list[Any]) -> list[Any]:
    """The same for rows whose fragments [group][block] are in registers."""
    for blocks, column in zip(rows, columns, strict=True):
        sums = [product(fragment, column, part) for fragment, part in zip(blocks, sums, strict=True)]
    return sums


def fragments_ahead(product: Any, count: int) -> None:
    """Ask the scheduler to read `count` fragments two ahead of their products; earlier reads would take registers."""
    interleave(count * product.calls // product.groups, count)


def chunks(values: list[Any]) -> list[Any]:
    """[group]: the chunks of a lane's column, as words. values: [block of rows], of 16 bits."""
    words = [v.bitcast(fx.Int32) for v in values]
    return [v[i : i + 4] for v in words for i in range(0, v.numel, 4)]


def weights(powers: list[Any], dtype: str) -> list[Any]:
    """The chunks of P, rounded to nearest. In bf16 on CDNA 3 ties round up, which saves an instruction per element."""
    if dtype == "f16" or is_cdna4():
        return chunks([v.to(element_type(dtype)) for v in powers])
    return chunks([(v.bitcast(fx.Uint32) + 0x8000).bitcast(fx.BFloat16)[1::2] for v in powers])


def zeros() -> Any:
    """A lane's part of a result of 32 x 32."""
    return fx.Vector.filled(16, 0, fx.Float32)


def row_of_lane(lane: Any) -> Any:
    """The row of the first operand that a lane has: its number's low five bits, two of them swapped."""
    return (lane & 0b10011) | (lane & 0b100) << 1 | (lane & 0b1000) >> 1


class HeadRows:
    """Rows of one head of a tensor (rows, heads, width) of 16-bit elements in global memory.

    first: where the sequence begins; count: its rows, after which loads read 0 and nothing is written.
    """

    def __init__(self, tensor: Any, heads: int, width: int, head: Any, first: Any, count: Any) -> None:
        self.tensor, self.count = tensor, count
        self.width, self.pitch = width, heads * width
        self.first = fx.Int64(first) * self.pitch + fx.Int64(head * width)

    def view(self, row: Any, rows: Any) -> GTensor:
        """Up to `rows` rows from one on, as a matrix of words."""
        left = self.count - row
        here = (left < rows).select(left, fx.Int32(rows))
        return GTensor(
            self.tensor, fx.Int32, (-1, self.pitch // 2),
            base_byte_offset=(self.first + fx.Int64(row) * self.pitch) * 2,
            num_records_bytes=here * (self.pitch * 2) - (self.pitch - self.width) * 2,
        )  # fmt: skip


class SharedTile:
    """Rows of chunks of 16 bytes in shared memory.

    rows: of a tile; first: where it begins, in bytes; threads (of some subclasses): of a workgroup.

    Neighbouring chunks of a row, `exchanged` at a time, change places so that lanes access different banks, whether
    they read a chunk each of the rows of `row_of_lane`, or write the same chunk of every fourth or eighth row.
    """

    def __init__(
        self, source: HeadRows, pointer: Any, rows: int, row_bytes: int, first: int = 0, exchanged: int = CHUNK
    ) -> None:
        self.source, self.rows, self.first = source, rows, first
        self.memory = STensor(pointer, fx.Int32, (-1, row_bytes // 4), first)
        self.chunks = row_bytes // CHUNK_BYTES
        self.exchanged = min(exchanged, self.chunks & -self.chunks)
        lane = fx.Int32(fx.thread_idx.x) & (WAVE - 1)
        self._own = self.place(row_of_lane(lane), lane >> 5)

    def place(self, row: Any, chunk: Any) -> tuple[Any, Any]:
        """A chunk, as `word` takes it."""
        return self.memory.linear_offset((row, 0)), chunk ^ self._key(row)

    def word(self, place: tuple[Any, Any], row: int = 0, chunk: int = 0) -> Any:
        """The first word of a chunk. row, chunk: added to the place's, with which they share no bit."""
        first, mixed = place
        near = chunk % self.exchanged
        return first + (mixed ^ (near ^ self._key(row))) * 4 + self.memory.linear_offset((row, (chunk - near) * 4))

    def _key(self, row: Any) -> Any:
        return ((row >> 3) ^ (row & 4) ^ ((row & 3) << 1)) & (self.exchanged - 1)

    def chunk_at(self, place: tuple[Any, Any], row: int, chunk: int, first: int = 0) -> Any:
        """The words of a chunk. place, row, chunk: as `word` takes them; first: words before the tile."""
        return fx.Vector(self.memory.vec_load(self.word(place, row, chunk) + first, 4))

    def fragment(self, block: int, group: int, first: int = 0) -> Any:
        """A lane's chunk of 32 rows and one group, as words. first: words before the tile."""
        return self.chunk_at(self._own, block * ROWS, group * 2, first)


class RowTile(SharedTile):
    """Rows in their order: global memory -> registers -> shared memory -> fragments. For keys."""

    def __init__(self, source: HeadRows, pointer: Any, rows: int, threads: int, first: int = 0) -> None:
        super().__init__(source, pointer, rows, source.width * 2, first)
        self.threads = threads
        thread = fx.Int32(fx.thread_idx.x)
        count = rows * self.chunks // threads
        self._places = [self._place(thread, number) for number in range(count)]

    def _place(self, thread: Any, number: int) -> tuple[Any, Any, int]:
        """(row, chunk, rows that are known at compile time) of a thread's chunk."""
        if self.threads % self.chunks:
            return (*idx2crd(thread + number * self.threads, (-1, self.chunks)), 0)
        return (*idx2crd(thread, (-1, self.chunks)), number * (self.threads // self.chunks))

    def load(self, number: Any) -> list[Any]:
        """This thread's part of a tile."""
        view = self.source.view(number * self.rows, self.rows)
        return [fx.Vector(view.vec_load((row + known, chunk * 4), 4)) for row, chunk, known in self._places]

    def store(self, values: list[Any]) -> None:
        """Put what was loaded into shared memory."""
        for (row, chunk, known), value in zip(self._places, values, strict=True):
            self.memory.vec_store(self.word(self.place(row, chunk), known), value)


class TransposedTile(SharedTile):
    """Columns become rows on the way: a thread transposes 4 rows of some columns in its registers. For values.

    rows: of the source, a multiple of 8.
    """

    def __init__(self, source: HeadRows, pointer: Any, rows: int, threads: int, first: int = 0) -> None:
        super().__init__(source, pointer, rows, rows * 2, first)
        width = source.width
        self.columns = next(c for c in (8, 4, 2) if rows // 4 * width % (c * threads) == 0)
        thread, count = fx.Int32(fx.thread_idx.x), rows // 4 * width // (self.columns * threads)
        shape = (-1, width // self.columns)
        self._places = [idx2crd(thread + number * threads, shape) for number in range(count)]

    def load(self, number: Any) -> list[list[Any]]:
        """[block][row]: this thread's columns of 4 rows of a tile."""
        view, words = self.source.view(number * self.rows, self.rows), self.columns // 2

        def row(number: Any, columns: Any) -> Any:
            loaded = view.vec_load((number, columns * words), words)
            return fx.Vector.from_elements([loaded]) if words == 1 else fx.Vector(loaded)

        return [[row(rows * 4 + i, columns) for i in range(4)] for rows, columns in self._places]

    def store(self, values: list[list[Any]]) -> None:
        """Put what was loaded into shared memory, four keys of a column at a time."""
        for (rows, columns), block in zip(self._places, values, strict=True):
            first, second = (interleaved(*block[i : i + 2]) for i in (0, 2))
            place, half = self.place(columns * self.columns, rows >> 1), (rows & 1) * 2
            for column in range(self.columns):
                four = fx.Vector.from_elements([first[column], second[column]], fx.Int32)
                self.memory.vec_store(self.word(place, column) + half, four)


class CopiedTile(SharedTile):
    """Rows in their order, copied past the registers into one of several buffers: CDNA 4.

    All threads copy `step` rows at a time.
    """

    def __init__(self, source: HeadRows, pointer: Any, rows: int, threads: int, first: int = 0) -> None:
        super().__init__(source, pointer, rows, source.width * 2, first, exchanged=2 * CHUNK)
        self.bytes, self.step = rows * source.width * 2, threads // self.chunks
        thread = fx.Int32(fx.thread_idx.x)
        self._wave = fx.Int32(fx.rocdl.readfirstlane(fx.T.i32, thread >> 6)) * (WAVE * CHUNK_BYTES)
        row, place = idx2crd(thread, (-1, self.chunks))
        self._offset = (row * source.pitch + (place ^ self._key(row)) * CHUNK) * 2
        self._columns = self.columns()

    def columns(self) -> list[Any]:
        """Pointers to a lane's part of each column of fragments; offsets from them are part of the instruction."""
        words = (self.word(self._own, 0, chunk) for chunk in range(0, self.chunks, 2))
        return [self.memory.pointer + (word * 4 + self.first) for word in words]

    def _key(self, row: Any) -> Any:
        return row & (self.exchanged - 1)

    def copy(self, number: Any, stage: int) -> None:
        """Copy a tile to a buffer; `s_waitcnt` waits."""
        to = self.memory.pointer + (self._wave + (self.first + stage * self.bytes))
        for row in range(0, self.rows, self.step):
            view = self.source.view(number * self.rows + row, self.step)
            place = to + row * self.chunks * CHUNK_BYTES
            fx.rocdl.raw_ptr_buffer_load_async_lds(view.rsrc, place, CHUNK_BYTES, self._offset)

    @property
    def groups(self) -> int:
        """The fragments of a block of 32 rows."""
        return self.chunks // 2

    def fragment(self, block: int, group: int, first: int = 0) -> Any:
        """A lane's chunk of 32 rows and one group, as words. first: words before the tile."""
        distance = first * 4 + block * ROWS * self.chunks * CHUNK_BYTES
        return fx.Vector(fx.rocdl.lds_load(fx.T.vec(4, fx.T.i32), self._columns[group] + distance, 0))

    def fragments(self, stage: int, blocks: range) -> list[list[Any]]:
        """[group][block of 32 rows]: a lane's chunks, as words, read in the order in which they are multiplied."""
        first = stage * self.bytes // 4
        return [[self.fragment(block, group, first) for block in blocks] for group in range(self.groups)]


class TurnedTile(CopiedTile):
    """Rows copied as by `CopiedTile`, and transposed when they are read: their columns are the rows of fragments.

    Each 16 lanes read 4 rows and 16 columns, a row by 4 lanes, and lane i gets column i; `row_of_lane` exchanges the
    quarters in the middle.
    """

    def columns(self) -> list[Any]:
        lane = fx.Int32(fx.thread_idx.x) & (WAVE - 1)
        row = (lane >> 5) * CHUNK + (lane >> 2 & 3)
        # Of a lane's 16 columns, the quarter that it reads: 8 bytes of a chunk.
        place, half = self.place(row, (lane >> 4 & 1) * 2 + (lane & 1)), (lane >> 1 & 1) * 2
        words = (self.word(place, 0, chunk) + half for chunk in range(0, self.chunks, 4))
        return [self.memory.pointer + (word * 4 + self.first) for word in words]

    def _key(self, row: Any) -> Any:
        return (row & 3) << 2

    @property
    def groups(self) -> int:
        return self.rows // GROUP

    def fragment(self, block: int, group: int, first: int = 0) -> Any:
        """A lane's chunk of its column, as words. block: of 32 columns; first: of the tile, in words."""
        address = self._columns[block] + (first * 4 + group * GROUP * self.chunks * CHUNK_BYTES)
        halves = [address, address + 4 * self.chunks * CHUNK_BYTES]
        low, high = (fx.Vector(fx.rocdl.ds_read_tr16_b64(fx.T.vec(2, fx.T.i32), half)) for half in halves)
        return low.shuffle(high, range(4))


def interleaved(a: Any, b: Any) -> Any:
    """Words of the 16-bit halves of two vectors of words by turns, those of the first one low."""
    a, b = a.bitcast(fx.Int16), b.bitcast(fx.Int16)
    return a.shuffle(b, [i + j * a.numel for i in range(a.numel) for j in (0, 1)]).bitcast(fx.Int32)


@flyc.jit
def masked(scores: list[Any], partial: Any, bounds: tuple[Any, Any], number: Any) -> list[Any]:
    """The scores [block of keys] of a lane; if partial, with -inf for keys that the query does not see.

    bounds: the numbers of the first and the last key that it sees; None as the first for no bound. number: of the
    first key of the lane's half of the wave.
    """
    if partial:
        hidden = fx.Float32(-float("inf"))
        first, last = None if bounds[0] is None else bounds[0] - number, bounds[1] - number

        def one(key: int, score: Any) -> Any:
            seen = last >= key if first is None else (last >= key) & (first <= key)
            return seen.select(score, hidden)

        keys = [i // CHUNK * GROUP + i % CHUNK for i in range(scores[0].numel)]
        scores = [
            fx.Vector.from_elements(
                [one(block * 2 * len(keys) + key, score) for key, score in zip(keys, values, strict=True)], fx.Float32
            )
            for block, values in enumerate(scores)
        ]
    return scores


def both_halves(value: Any, op: Any, lanes: int = WAVE) -> Any:
    """A value combined with that of the lane in the other half of the wave, which has the same query's other keys."""
    return op(value, fx.gpu.shuffle_xor(value, lanes // 2, lanes))


def online_softmax(
    scores: list[Any], scale: Any, top: Any, total: Any, lanes: int = WAVE
) -> tuple[list[Any], Any, Any, Any]:
    """(2^(scale (score - top)), factor of the sums so far, top, total) after some more scores.

    top: the largest score so far, of all lanes with the query; total: the lane's own part of the sum. scale: positive.
    """
    top, factor, shift = top_of(scores, scale, top, lanes=lanes)
    powers = powers_of(scores, scale, shift)
    return powers, factor, top, total * factor + sum_of(powers)


def top_of(scores: list[Any], scale: Any, top: Any, lazy: float = 0.0, lanes: int = WAVE) -> tuple[Any, Any, Any]:
    """(top, factor of the sums so far, shift to add to scale * score) after some more scores.

    lazy: how far scores may rise above top, in units of log2, before top changes; while it does not, the factor is 1.
    """
    # In a chain, which takes one instruction for two elements.
    of_blocks = [reduce(fx.maxnumf, list(values)) for values in scores]
    before, top = top, both_halves(reduce(fx.maxnumf, of_blocks, top), fx.maxnumf, lanes)
    if lazy:
        top = ((top - before) * scale > lazy).select(top, before)
    # A product by itself: what its rounding changes is the same in every power, and in the factor.
    shift = top * -scale
    return top, fx.exp2(shift - before * -scale, fastmath="afn"), shift


def powers_of(scores: list[Any], scale: Any, shift: Any) -> list[Any]:
    """2^(scale score + shift), whose exponent is rounded once."""
    factors = [fx.Vector.filled_like(scores[0], number) for number in (scale, shift)]
    return [fx.exp2(fx.fma(values, *factors), fastmath="afn") for values in scores]


def sum_of(powers: list[Any]) -> Any:
    """The sum of all elements: first four sums in a chain, which keeps few registers busy."""
    parts = [values[i : i + 4] for values in powers for i in range(0, values.numel, 4)]
    return vector_reduce(sum(parts[1:], parts[0]), "add")


def inverse(total: Any) -> Any:
    """1 / total, and 0 for 0, the sum of a query that sees no key."""
    return (total == 0).select(fx.Float32(0), fx.Float32(fx.rocdl.rcp(fx.T.f32, total)))


def merged_at_once(count: int, value: Any, weight: Any) -> Any:
    """`merged` of shares 0 to count - 1, at most as many as a wave has lanes, in one trip to memory.

    value(number): an element. weight(number): (the largest logit, the sum), of another share in each lane.
    """
    values = [value(number) for number in range(count)]
    lane = fx.Int32(fx.thread_idx.x) % WAVE
    m, powers = weight(fx.min(lane, count - 1))
    top = fx.coop.warp_reduce(m, "max")
    factor = (lane < count).select(powers * fx.exp2(m - top, fastmath="afn"), fx.Float32(0.0))
    weighted = [fx.Float32(fx.rocdl.readlane(factor, number)) * value for number, value in enumerate(values)]
    return sum(weighted[1:], weighted[0]) * inverse(fx.coop.warp_reduce(factor, "add"))


@flyc.jit
def merged(first: Any, last: Any, share: Any) -> Any:
    """The mean of shares first to last - 1, weighted by their sums of powers; 0 if these are 0.

    share(number): (an element, the largest logit in base 2, the sum of powers of 2 over it).
    """
    largest, total, mean = fx.Float32(LOWEST), fx.Float32(0.0), fx.Float32(0.0)
    for number in range(first, last):
        value, m, powers = share(number)
        new = fx.arith.maxnumf(largest, m)
        correction = fx.exp2(largest - new, fastmath="afn")
        weight = powers * fx.exp2(m - new, fastmath="afn")
        largest, total, mean = new, total * correction + weight, mean * correction + weight * value
    return mean * inverse(total)


# Without this, LLVM spends an instruction before a maximum on each operand that may be a signalling NaN.
QUIET = {"passthrough": [["amdgpu-ieee", "false"]]}
