"""The part of the gated delta rule that does not need the state: for each chunk of 64 tokens and each head, by a wave.

`gdr_prefill` has the formulas. A wave multiplies its keys with each other and with its queries. (1 + A)^-1 is computed
in f32: each of the four blocks of 16 x 16 on the diagonal is solved row by row by a quarter of the wave, and the others
follow by products of blocks. Keys and values are loaded as operands by rows, but needed by columns: a product with the
rows of an identity matrix transposes them, exactly.

K = V = 128: 234 VGPRs, 23 KiB of shared memory, two waves per SIMD.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from kernels.attention_common import HeadRows
from kernels.gdr_decode import EPSILON, load_gates
from kernels.kernels_common import LOG2_E, element_type, require, require_waves_of_64, rounded
from kernels.mfma_products import WAVE, Product, concat
from kernels.reduce import vector_reduce
from kernels.tensor_shim import GTensor, STensor

CHUNK = 64  # tokens
ROWS = 16  # of a matrix instruction
GROUP = 32  # of the dimension that is summed over
BLOCKS, SPANS = CHUNK // ROWS, CHUNK // GROUP
PITCH = CHUNK + 4  # of f32 in shared memory, so that rows begin in different banks
INVERSE_PITCH = ROWS + 4
PRODUCTS = {"bf16": "bf16", "f16": "fp16"}


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """The values known at compile time. Raises ArgumentError where they do not fit.

    waves: of a workgroup of the second kernel. normalizes: whether keys and queries are divided by their norms.
    """

    dtype: str
    state_dtype: str
    a_log_dtype: str
    k_heads: int
    v_heads: int
    k_dim: int
    v_dim: int
    waves: int
    normalizes: bool

    def __post_init__(self) -> None:
        require(self.dtype in PRODUCTS, f"operands of {self.dtype}", "bf16 or f16")
        require(self.state_dtype in ("f32", self.dtype), f"a state of {self.state_dtype}", f"f32 or {self.dtype}")
        require(self.a_log_dtype in ("f32", self.dtype), f"A_log of {self.a_log_dtype}", f"f32 or {self.dtype}")
        require(self.v_heads % self.k_heads == 0, f"{self.k_heads} heads of keys, {self.v_heads} of values",
                "as many of values for each of keys")  # fmt: skip
        require(self.k_dim % GROUP == 0 and self.v_dim % GROUP == 0, f"heads of {self.k_dim} and {self.v_dim}",
                f"multiples of {GROUP}")  # fmt: skip
        require(self.waves > 0 and self.v_dim % (ROWS * self.waves) == 0,
                f"{self.waves} waves for {self.v_dim} rows", f"a divisor of {self.v_dim // ROWS}")  # fmt: skip


class Lane:
    """A lane of a wave, and its place in matrix instructions.

    It holds eight numbers of an operand's row for each group of 32, and four numbers of a column of a 16 x 16 result.
    Rows are taken in the order of `row`, so that the numbers from two neighbouring results are eight consecutive ones.
    """

    def __init__(self) -> None:
        self.number = fx.Int32(fx.thread_idx.x) % WAVE
        self.member, self.quarter = self.number % ROWS, self.number // ROWS

    def row(self, block: int) -> Any:
        """The row of a block, or the column, that the lane holds of an operand."""
        return block // 2 * GROUP + self.member // 4 * 8 + block % 2 * 4 + self.member % 4

    def first(self, block: int) -> Any:
        """The first of the four rows that the lane holds of a block's result."""
        return block // 2 * GROUP + self.quarter * 8 + block % 2 * 4

    def word(self, group: int) -> Any:
        """The first of the four words that the lane holds of a group of a row."""
        return group * (GROUP // 2) + self.quarter * 4


class Arithmetic:
    """Products of 16-bit operands, given as words of four a lane, and results of f32."""

    def __init__(self, dtype: str) -> None:
        self.kind, self.product = element_type(dtype), Product.of(PRODUCTS[dtype])

    def add(self, rows: list[Any], columns: list[Any], sums: Any = None) -> Any:
        """The sums after a block of rows is multiplied by one of columns: [group] of each."""
        sums = self.product.zeros() if sums is None else sums
        for row, column in zip(rows, columns, strict=True):
            for call in range(self.product.calls):
                sums = self.product(row, column, sums, call)
        return sums

    def operand(self, pair: list[Any]) -> Any:
        """The words of two neighbouring blocks' results, rounded: an operand of a group."""
        return rounded(concat(pair), self.kind).bitcast(fx.Int32)

    def exact(self, pair: list[Any]) -> Any:
        """The same for results that are numbers of the operands' type."""
        words = concat(pair)
        return (words.bitcast(self.kind)[1::2] if self.kind is fx.BFloat16 else words.to(self.kind)).bitcast(fx.Int32)

    def numbers(self, words: Any) -> Any:
        """The eight numbers of an operand, in f32."""
        return words.bitcast(self.kind).to(fx.Float32)

    def columns(self, lane: Lane, exchanged: bool) -> list[Any]:
        """Two operands that pick the first and the second 16 columns of a group's rows, in the order of `Lane.row` if
        exchanged. A product with one transposes rows, exactly: a lane gets numbers of one column."""
        found = []
        for half in range(2):
            column = lane.row(half) if exchanged else lane.member + half * ROWS
            ones = [(lane.quarter * 8 + i == column).select(fx.Float32(1.0), fx.Float32(0.0)) for i in range(8)]
            found.append(fx.Vector.from_elements(ones, fx.Float32).to(self.kind).bitcast(fx.Int32))
        return found


class Sequence:
    """A sequence: its tokens, first to last - 1, and its chunks, whose numbers from `first_chunk` on are its own."""

    def __init__(self, tensors: Any, number: Any) -> None:
        self.first, self.last = (fx.rocdl.readfirstlane(tensors["starts"][number + i]) for i in range(2))
        self.count = self.last - self.first
        self.chunks, self.first_chunk = (self.count + (CHUNK - 1)) // CHUNK, self.first // CHUNK + number

    def rows(self, tensor: Any, chunk: Any, heads: int, head: Any, width: int) -> GTensor:
        """The rows of a chunk's tokens for a head, as words; after the last token they are 0, and not written."""
        return HeadRows(tensor, heads, width, head, self.first, self.count).view(chunk * CHUNK, CHUNK)


class Chunk:
    """The operands of the second kernel for a chunk and head. number: of both."""

    def __init__(self, tensors: Any, number: Any, spec: Prompt) -> None:
        self.number, self.decays = number, GTensor(tensors["decays"], fx.Float32)
        self.gains = GTensor(tensors["gains"], fx.Float32, base_byte_offset=fx.Int64(number) * (CHUNK * 4))
        shapes = {"w": (CHUNK, spec.k_dim), "u": (spec.v_dim, CHUNK), "keys": (spec.k_dim, CHUNK), "p": (CHUNK, CHUNK)}
        self.w, self.u, self.keys, self.p = (self._matrix(tensors[name], *shape) for name, shape in shapes.items())

    def _matrix(self, tensor: Any, rows: int, columns: int) -> GTensor:
        size = rows * columns * 2
        begin = fx.Int64(self.number) * size
        return GTensor(tensor, fx.Int32, (-1, columns // 2), base_byte_offset=begin, num_records_bytes=size)


def operands(matrix: GTensor, rows: list[Any], lane: Lane, groups: range) -> list[list[Any]]:
    """[row][group]: operands of some rows of a matrix."""
    return [[fx.Vector(matrix.vec_load((row, lane.word(group)), 4)) for group in groups] for row in rows]


@flyc.kernel
def gdr_chunks_kernel(tensors: Any, batch: fx.Int32, spec: fx.Constexpr[Prompt]) -> None:
    """A chunk of a head, by a wave. The grid is (chunks, heads), with chunks to spare between sequences."""
    require_waves_of_64("gdr_prefill")
    place, head, _ = (fx.Int32(i) for i in fx.block_idx)
    number = sequence_of(tensors["starts"], place, batch)
    sequence = Sequence(tensors, number)
    chunk = place - sequence.first_chunk
    if (chunk < sequence.chunks) & (fx.rocdl.readfirstlane(tensors["indices"][number]) >= 0):
        prepare(tensors, sequence, chunk, head, spec)


@flyc.jit
def sequence_of(starts: Any, chunk: Any, batch: Any) -> Any:
    """The last sequence whose chunks begin with this one or before it."""
    count = fx.Int32(0)
    for number in range(fx.Int32(fx.thread_idx.x), batch, WAVE):
        count = count + (fx.Int32(starts[number]) // CHUNK + number <= chunk).to(fx.Int32)
    return fx.coop.warp_reduce(count, "add") - 1


def prepare(tensors: Any, sequence: Sequence, chunk: Any, head: Any, spec: Prompt) -> None:
    """Write the operands of a chunk that the second kernel reads."""
    lane, unit = Lane(), Arithmetic(spec.dtype)
    to = Chunk(tensors, (sequence.first_chunk + chunk) * spec.v_heads + head, spec)
    shared, rows = head // (spec.v_heads // spec.k_heads), [lane.row(block) for block in range(BLOCKS)]
    k, q = (
        operands(sequence.rows(tensors[name], chunk, spec.k_heads, shared, spec.k_dim), rows, lane,
                 range(spec.k_dim // GROUP))
        for name in ("key", "query")
    )  # fmt: skip
    tokens = Tokens(tensors, sequence, chunk, head, (k, q), spec)
    last = fx.Float32(fx.rocdl.readlane(tokens.total, CHUNK - 1))
    to.gains.store(lane.number, exp2(tokens.total) * tokens.q_scale)
    to.decays.store(to.number, exp2(last), mask=lane.number == 0)
    store_p(to, unit, tokens, k, q)
    inverse = tokens.inverse(unit, k)
    keys = transposed(unit, k, lane, spec.k_dim, exchanged=True)
    store_keys(to, unit, tokens, keys, last)
    store_w(to, unit, lane, as_operands(unit, keys), tokens.columns(unit, inverse, tokens.key_rates()))
    values = operands(sequence.rows(tensors["value"], chunk, spec.v_heads, head, spec.v_dim), rows, lane,
                      range(spec.v_dim // GROUP))  # fmt: skip
    columns = as_operands(unit, transposed(unit, values, lane, spec.v_dim, exchanged=False))
    store_u(to, unit, lane, columns, tokens.columns(unit, inverse, tokens.rates()))


def transposed(unit: Arithmetic, rows: list[list[Any]], lane: Lane, width: int, exchanged: bool) -> list[list[Any]]:
    """[block of columns][block of rows]: four numbers of the lane's column, in f32."""
    picks = unit.columns(lane, exchanged)
    return [[unit.add([row[i // 2]], [picks[i % 2]]) for row in rows] for i in range(width // ROWS)]


def as_operands(unit: Arithmetic, columns: list[list[Any]]) -> list[list[Any]]:
    """[block of columns][group of rows]: the same as operands."""
    return [[unit.exact(column[2 * span : 2 * span + 2]) for span in range(SPANS)] for column in columns]


def store_p(to: Chunk, unit: Arithmetic, tokens: Tokens, k: list[list[Any]], q: list[list[Any]]) -> None:
    """Write P, without the groups of keys after a query's own, which are 0."""
    lane = tokens.lane
    for span in range(SPANS):
        for block in range(2 * span, BLOCKS):
            pair = [tokens.weights(unit.add(k[row], q[block]), row, block) for row in (2 * span, 2 * span + 1)]
            to.p.vec_store((lane.row(block), lane.word(span)), unit.operand(pair))


def store_keys(to: Chunk, unit: Arithmetic, tokens: Tokens, keys: list[list[Any]], last: Any) -> None:
    """Write e^(G - G_i) k, a row for each column. last: G of the last token, in base 2."""
    lane = tokens.lane
    ends = [exp2(last - tokens.of_rows("total", block)) * tokens.of_rows("k_scale", block) for block in range(BLOCKS)]
    for number, column in enumerate(keys):
        for span in range(SPANS):
            pair = [column[block] * ends[block] for block in (2 * span, 2 * span + 1)]
            to.keys.vec_store((lane.row(number), lane.word(span)), unit.operand(pair))


def store_w(to: Chunk, unit: Arithmetic, lane: Lane, keys: list[list[Any]], solved: list[list[Any]]) -> None:
    """Write -T (beta e^G k). solved: operands of the first factor's rows."""
    for block, row in enumerate(solved):
        for group in range(len(keys) // 2):
            pair = [unit.add(keys[i][: len(row)], row) for i in (2 * group, 2 * group + 1)]
            to.w.vec_store((lane.row(block), lane.word(group)), unit.operand(pair))


def store_u(to: Chunk, unit: Arithmetic, lane: Lane, values: list[list[Any]], solved: list[list[Any]]) -> None:
    """Write T (beta value), a row for each column of values."""
    for number, column in enumerate(values):
        for span in range(SPANS):
            pair = [unit.add(row, column[: len(row)]) for row in solved[2 * span : 2 * span + 2]]
            to.u.vec_store((number * ROWS + lane.member, lane.word(span)), unit.operand(pair))


class Tokens:
    """The gates and norms of a chunk's tokens: a lane's own token in registers, all of them in shared memory.

    table: (NAMES, tokens). square: A, (tokens, tokens). inverses: the inverses of its diagonal blocks. All are f32.
    """

    NAMES = ("total", "k_scale", "q_scale", "beta")

    def __init__(
        self, tensors: Any, sequence: Sequence, chunk: Any, head: Any, rows: tuple[Any, Any], spec: Prompt
    ) -> None:
        self.lane, lane = Lane(), Lane()
        token = sequence.first + chunk * CHUNK + lane.number
        forget, beta = load_gates(tensors, fx.min(token, sequence.last - 1), head, spec)
        forget = (token < sequence.last).select(forget * LOG2_E, fx.Float32(0.0))
        self.total = fx.coop.warp_inclusive_scan(forget, "add")
        allocator = fx.SharedAllocator()
        self.table = STensor(allocator.allocate(4 * CHUNK * 4, 16).peek().ptr, fx.Float32, (-1, CHUNK))
        self.square = STensor(allocator.allocate(CHUNK * PITCH * 4, 16).peek().ptr, fx.Float32, (-1, PITCH))
        self.inverses = STensor(
            allocator.allocate(CHUNK * INVERSE_PITCH * 4, 16).peek().ptr, fx.Float32, (-1, INVERSE_PITCH)
        )
        unit = Arithmetic(spec.dtype)
        own = lane.quarter // 2 * GROUP + lane.member // 4 * 8 + lane.quarter % 2 * 4 + lane.member % 4
        for name, blocks in zip(("k_scale", "q_scale"), rows, strict=True):
            scales = [inverse_norm(unit, block) if spec.normalizes else fx.Float32(1.0) for block in blocks]
            scale = scales[0]
            for block in range(1, BLOCKS):
                scale = (lane.quarter == block).select(scales[block], scale)
            self.table.store((self.NAMES.index(name), own), scale * (spec.k_dim**-0.5 if name == "q_scale" else 1.0))
        for name, value in (("total", self.total), ("beta", beta)):
            self.table.store((self.NAMES.index(name), lane.number), value)
        fx.gpu.barrier()
        self.q_scale = self.of_token("q_scale", lane.number)

    def of_token(self, name: str, token: Any) -> Any:
        """The value of a token. name: one of NAMES."""
        return fx.Float32(self.table.load((self.NAMES.index(name), token)))

    def of_rows(self, name: str, block: int) -> Any:
        """The values of the four tokens whose rows the lane holds of a block's result."""
        return fx.Vector(self.table.vec_load((self.NAMES.index(name), self.lane.first(block)), 4))

    def weights(self, dots: Any, row: int, column: int) -> Any:
        """P for a block's dot products of keys, its rows, and queries, its columns."""
        query = self.lane.row(column)
        later = exp2(self.of_token("total", query) - self.of_rows("total", row))
        values = dots * later * self.of_rows("k_scale", row) * self.of_token("q_scale", query)
        return self.kept(values, [self.lane.first(row) + i <= query for i in range(4)])

    def kept(self, values: Any, conditions: list[Any]) -> Any:
        """The values where a condition holds, 0 elsewhere."""
        zero = fx.Float32(0.0)
        kept = [condition.select(value, zero) for condition, value in zip(conditions, values, strict=True)]
        return fx.Vector.from_elements(kept, fx.Float32)

    def inverse(self, unit: Arithmetic, k: list[list[Any]]) -> list[list[Any]]:
        """[block of rows][block of columns]: T in f32, by blocks of 16, without those above the diagonal."""
        for row in range(BLOCKS):
            query = self.lane.row(row)
            for column in range(row // 2 * 2 + 2):
                later = exp2(self.of_token("total", query) - self.of_rows("total", column))
                scale = self.of_rows("k_scale", column) * self.of_token("k_scale", query) * self.of_token("beta", query)
                values = unit.add(k[column], k[row]) * later * scale
                below = self.kept(values, [self.lane.first(column) + i < query for i in range(4)])
                self.square.vec_store((query, self.lane.first(column)), below)
        fx.gpu.barrier()
        solved = self.diagonal()
        found = [[self.result(block)] for block in range(BLOCKS)]
        for row in range(1, BLOCKS):
            for column in reversed(range(row)):
                sums = fx.Vector.filled(4, 0.0, fx.Float32)
                for block in range(column, row):
                    a = self.square.vec_load((row * ROWS + self.lane.member, block * ROWS + self.lane.quarter * 4), 4)
                    sums = multiply(fx.Vector(a), found[block][column - block - 1], sums)
                sums = multiply(solved[row], sums, fx.Vector.filled(4, 0.0, fx.Float32))
                found[row].insert(0, sums * -1.0)
        return found

    def diagonal(self) -> list[Any]:
        """[block]: the inverses of the blocks on the diagonal of 1 + A, as operands.

        A quarter of the wave solves each block, a lane its column, and leaves the inverse in shared memory.
        """
        block, solved = self.lane.quarter * ROWS, list[Any]()
        for row in range(ROWS):
            value = (self.lane.member == row).select(fx.Float32(1.0), fx.Float32(0.0))
            for column in range(0, row, 4):
                a = fx.Vector(self.square.vec_load((block + row, block + column), 4))
                for i in range(min(4, row - column)):
                    value = value - a[i] * solved[column + i]
            solved.append(value)
        for row, value in enumerate(solved):
            self.inverses.store((block + row, self.lane.member), value)
        fx.gpu.barrier()
        places = [(number * ROWS + self.lane.member, self.lane.quarter * 4) for number in range(BLOCKS)]
        return [fx.Vector(self.inverses.vec_load(place, 4)) for place in places]

    def result(self, block: int) -> Any:
        """The lane's four rows of an inverse on the diagonal."""
        first = block * ROWS + self.lane.quarter * 4
        values = [fx.Float32(self.inverses.load((first + i, self.lane.member))) for i in range(4)]
        return fx.Vector.from_elements(values, fx.Float32)

    def columns(self, unit: Arithmetic, inverse: list[list[Any]], factors: list[Any]) -> list[list[Any]]:
        """[block][group]: T as operands, without the groups after the block's own, which are 0.

        factors: [block of columns], by which the lane's column is multiplied.
        """
        fx.gpu.barrier()
        memory = STensor(self.square.pointer, unit.kind, (-1, 2 * PITCH))
        for row, blocks in enumerate(inverse):
            zeros = [fx.Vector.filled(4, 0.0, fx.Float32)] * (1 - row % 2)
            for column, values in enumerate([*blocks, *zeros]):
                scaled = rounded(values * factors[column], unit.kind)
                for i, value in enumerate(scaled):
                    place = row * ROWS + self.lane.quarter * 4 + i, column * ROWS + self.lane.member
                    memory.store(place, value)
        fx.gpu.barrier()
        words = STensor(self.square.pointer, fx.Int32, (-1, PITCH))
        return [
            [
                fx.Vector(words.vec_load((self.lane.row(block), self.lane.word(span)), 4))
                for span in range(block // 2 + 1)
            ]
            for block in range(BLOCKS)
        ]

    def rates(self) -> list[Any]:
        """[block]: beta of the token that is the lane's column."""
        return [self.of_token("beta", block * ROWS + self.lane.member) for block in range(BLOCKS)]

    def key_rates(self) -> list[Any]:
        """[block]: -beta e^G of the token that is the lane's column, times the scale of its key."""
        tokens = [block * ROWS + self.lane.member for block in range(BLOCKS)]
        gains = [exp2(self.of_token("total", token)) * self.of_token("k_scale", token) for token in tokens]
        return [rate * gain * -1.0 for rate, gain in zip(self.rates(), gains, strict=True)]


def multiply(a: Any, b: Any, sums: Any) -> Any:
    """The sums after a product of 16 x 16 x 16 in f32. a: four neighbours of the lane's row; b: of its column."""
    for i in range(4):
        sums = fx.Vector(fx.rocdl.mfma_f32_16x16x4f32(fx.T.vec(4, fx.T.f32), [a[i], b[i], sums, 0, 0, 0]))
    return sums


def exp2(x: Any) -> Any:
    """2^x of a number or of each element of a vector, by one instruction of the GPU each."""
    return fx.exp2(x, fastmath="afn")


def inverse_norm(unit: Arithmetic, row: list[Any]) -> Any:
    """1 / sqrt(|x|^2 + epsilon) of the lane's row x of a block. row: the lane's part, one of four."""
    total = fx.Float32(0.0)
    for words in row:
        values = unit.numbers(words)
        total = total + vector_reduce(values * values, "add")
    for distance in (ROWS, 2 * ROWS):
        total = total + fx.gpu.shuffle_xor(total, distance, WAVE)
    return fx.rocdl.rsq(total + EPSILON)
