"""Multi-head latent attention of one token over fp8: eight waves of 16 heads each share the keys.

A token's row of 576 bytes is the key of all 128 heads, and its first 512 bytes are the value. A workgroup takes 32 rows
at a time, four a wave, and puts them into shared memory twice: as they are, for

    S^T = K Q^T         16 keys by 16 heads, whose queries stay in registers

and as words of four keys of a column, turned in registers by byte permutes, for

    O^T += V^T P        16 columns by 16 heads

A lane has the probabilities of the same four keys in both products, so they never leave its registers, and only the
rows need a barrier. A matrix instruction takes every fourth column of 64, so that a lane reads four of them at a time
and stores 16 neighbours. While 32 rows are computed, the next ones are on their way, and the numbers of
those after them.

68 matrix instructions for 32 keys; 128 registers hold sums, 36 queries; 35 KiB of shared memory, two waves per SIMD.
"""

from __future__ import annotations

from math import prod
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr.buffer_ops import buffer_store, create_buffer_resource
from kernels.attention_common import LOWEST, QUIET, inverse
from kernels.kernels_common import LOG2_E, bytes_of, fp8_type
from kernels.launches import launcher
from kernels.mfma_products import WAVE
from kernels.pa_metadata import ITEM
from kernels.paged_attention import Work, address, joined, kept, largest_of, logarithm, numbers, softmax_step, unsigned
from kernels.quant import fp8_codes
from kernels.sizes import require_elements, require_rows
from kernels.tensor_shim import STensor

HEADS, KEY_BYTES, VALUE_BYTES = 128, 576, 512
TILE, WAVES = 16, 8
THREADS = WAVE * WAVES
BLOCK = 32  # keys
ROWS = BLOCK // WAVES  # of a wave
PITCH = KEY_BYTES + 32  # of a row in shared memory, so that lanes that read at once use different banks
PIECES = KEY_BYTES // 64  # of 16 bytes of a row, which a lane has
FOURS = VALUE_BYTES // 64  # groups of four tiles of columns
# A row of each of the launcher's tensors.
ROWS_OF = {
    "query": (HEADS, KEY_BYTES), "kv_buffer": (KEY_BYTES,), "kv_page_indices": (), "work_indptr": (),
    "work_info_set": (ITEM,), "final_output": (HEADS, VALUE_BYTES), "split_output": (HEADS, VALUE_BYTES),
    "split_lse": (HEADS, 1),
}  # fmt: skip
# Selectors of v_perm_b32: bytes of two words by turns, of their low halves and of their high ones; and their halves.
_LOW_BYTES, _HIGH_BYTES, _LOW_HALVES, _HIGH_HALVES = 0x05010400, 0x07030602, 0x05040100, 0x07060302


class Latent:
    """A workgroup's registers and shared memory."""

    def __init__(self, query: Any, kv: Any, pages: Any, scale: float) -> None:
        self.query, self.kv, self.pages, self.factor = query, kv, pages, scale * LOG2_E
        thread = fx.Int32(fx.thread_idx.x)
        self.wave, self.lane = fx.Int32(fx.rocdl.readfirstlane(thread // WAVE)), thread % WAVE
        self.member, self.quarter = self.lane % TILE, self.lane // TILE
        self.head = self.wave * TILE + self.member
        allocator = fx.SharedAllocator()
        self.rows = STensor(allocator.allocate(BLOCK * PITCH, 16).peek().ptr, fx.Int32, (-1, PITCH // 4))
        self.columns = STensor(allocator.allocate(BLOCK * VALUE_BYTES, 16).peek().ptr, fx.Int32, (-1, VALUE_BYTES))

    # --- rows ---

    def page(self, work: Work, block: Any) -> Any:
        """The page of the lane's row: 16 lanes share one of the wave's four. After the last key it is the last page."""
        key = work.first + block * BLOCK + self.wave * ROWS + self.quarter
        return numbers(address(self.pages, 4) + unsigned(fx.min(key, work.last - 1)) * 4, 1, fx.Int32)

    def load(self, page: Any) -> tuple[list[Any], Any]:
        """(8 bytes of each of the wave's rows, a word of one row's last 64 bytes). page: of the lane's row."""
        first, values = address(self.kv), []
        for row in range(ROWS):
            of_row = fx.rocdl.readlane(fx.Int32(page), row * TILE)
            place = first + unsigned(of_row) * KEY_BYTES + unsigned(self.lane * 8)
            values.append(numbers(place, 2, fx.Int32))
        rest = first + unsigned(page) * KEY_BYTES + unsigned(self.member * 4) + VALUE_BYTES
        return values, numbers(rest, 1, fx.Int32)

    def store_rows(self, loaded: tuple[list[Any], Any]) -> None:
        """Put rows into shared memory, as they are and turned."""
        values, rest = loaded
        row = self.wave * ROWS
        for number, v in enumerate(values):
            self.rows.vec_store((row + number, self.lane * 2), fx.Vector(v))
        self.rows.store((row + self.quarter, self.member + VALUE_BYTES // 4), rest)
        for word in range(2):
            self.columns.vec_store((self.wave, self.lane * 8 + word * 4), transpose_bytes([v[word] for v in values]))

    # --- products ---

    def load_queries(self, token: Any) -> list[Any]:
        """[piece]: the row of the lane's head."""
        first = address(self.query) + unsigned(token * HEADS + self.head) * KEY_BYTES + unsigned(self.quarter * 16)
        return [numbers(first + piece * 64, 4, fx.Int32) for piece in range(PIECES)]

    def logits(self, queries: list[Any], work: Work, block: Any) -> list[Any]:
        """[tile]: the logits, times log2(e), of four keys of each 16."""
        result = []
        for tile in range(BLOCK // TILE):
            sums = fx.Vector.filled(4, 0.0, fx.Float32)
            for piece, query in enumerate(queries):
                key = fx.Vector(self.rows.vec_load((self.member + tile * TILE, self.quarter * 4 + piece * 16), 4))
                for half in (0, 2):
                    sums = multiply_add(key[half : half + 2], query[half : half + 2], sums)
            left = work.last - work.first - block * BLOCK - tile * TILE - self.quarter * 4
            result.append(kept(sums * self.factor, -float("inf"), left - 1))
        return result

    def step(self, queries: list[Any], work: Work, block: Any, state: Any) -> Any:
        """(sums, largest logit, the lane's part of the sum of powers) after the rows in shared memory."""
        sums, before, total = state
        logits = self.logits(queries, work, block)
        largest = fx.arith.maxnumf(before, combine_quarters(largest_of(logits), fx.arith.maxnumf))
        powers, (correction, largest, total) = softmax_step(logits, largest, (None, before, total))
        p = joined([fp8_codes(v).bitcast(fx.Int32) for v in powers])
        result = []
        for four in range(FOURS):
            place = self.member * 4 + four * 64
            low, high = (
                fx.Vector(self.columns.vec_load((self.quarter + first, place), 4)) for first in (0, BLOCK // TILE * 2)
            )
            for tile in range(4):
                v = fx.Vector.from_elements([low[tile], high[tile]], fx.Int32)
                result.append(multiply_add(v, p, sums[four * 4 + tile] * correction))
        return result, largest, total

    @flyc.jit
    def walk(self, work: Work) -> Any:
        """(sums, largest logit, sum of powers) of all keys of an item."""
        sums = [fx.Vector.filled(4, 0.0, fx.Float32) for _ in range(4 * FOURS)]
        state = (sums, fx.Float32(LOWEST), fx.Float32(0.0))
        if work.first < work.last:
            queries = self.load_queries(work.token)
            loaded, page = self.load(self.page(work, 0)), self.page(work, 1)
            for block in range((work.last - work.first + (BLOCK - 1)) // BLOCK):
                fx.gpu.barrier()
                self.store_rows(loaded)
                fx.gpu.barrier()
                loaded, page = self.load(page), self.page(work, block + 2)
                state = self.step(queries, work, block, state)
        return state

    # --- results ---

    def store(self, out: Any, row: Any, sums: list[Any], factor: Any) -> None:
        """Write a head's columns: the lane has 16 of each 64."""
        memory, per_store = create_buffer_resource(out), 16 // (out.dtype.width // 8)
        for four in range(FOURS):
            tiles = [sums[four * 4 + tile] * factor for tile in range(4)]
            v = fx.Vector.from_elements([tiles[i % 4][i // 4] for i in range(16)], fx.Float32).to(out.dtype)
            place = row * VALUE_BYTES + four * 64 + self.quarter * 16
            for first in range(0, 16, per_store):
                buffer_store(v[first : first + per_store], memory, place + first)


def combine_quarters(value: Any, op: Any) -> Any:
    """Combine a value with those of the other lanes of the same head."""
    for distance in (TILE, 2 * TILE):
        value = op(value, fx.gpu.shuffle_xor(value, distance, WAVE))
    return value


def multiply_add(a: Any, b: Any, sums: Any) -> Any:
    """Add the product of 32 fp8 numbers along K to the sums."""
    return fx.Vector(fx.rocdl.mfma_f32_16x16x32_fp8_fp8(fx.T.vec(4, fx.T.f32), [a, b, sums, 0, 0, 0]))


def transpose_bytes(rows: list[Any]) -> Any:
    """Transpose a matrix of 4 x 4 bytes, of which each word is a row."""
    a, b, c, d = rows
    pairs = [(fx.rocdl.perm_b32(b, a, s), fx.rocdl.perm_b32(d, c, s)) for s in (_LOW_BYTES, _HIGH_BYTES)]
    halves = (_LOW_HALVES, _HIGH_HALVES)
    return fx.Vector.from_elements([fx.rocdl.perm_b32(cd, ab, s) for ab, cd in pairs for s in halves], fx.Int32)


@flyc.kernel(known_block_size=[THREADS, 1, 1])
def kn_mla_fwd_decode_m16x8_fp8_fp8(
    query: fx.Tensor, kv: fx.Tensor, pages: fx.Tensor, work: Any, results: Any, scale: fx.Constexpr[float]
) -> None:
    """The items of a bin."""
    indptr, info = work
    out, shares, lse = results
    latent = Latent(query, kv, pages, scale)
    bin_ = fx.Int32(fx.block_idx.x)
    for item in range(fx.Int32(indptr[bin_]), fx.Int32(indptr[bin_ + 1])):
        row, token, first, last = (fx.Int32(info[item * ITEM + i]) for i in (1, 2, 4, 5))
        sums, largest, total = latent.walk(Work(token=token, first=first, last=last))
        total = combine_quarters(total, fx.arith.addf)
        if row < 0:
            latent.store(out, token * HEADS + latent.head, sums, inverse(total))
        else:
            to = row * HEADS + latent.head
            latent.store(shares, to, sums, inverse(total))
            buffer_store(logarithm(largest, total), create_buffer_resource(lse), to)


def _launch(tensors: dict[str, Any], scale: float, bins: Any, stream: Any) -> None:
    fp8, i32, f32 = bytes_of(fp8_type()), (fx.Int32,), (fx.Float32,)
    kinds = (fp8, fp8, i32, i32, i32, (fx.BFloat16,), f32, f32)
    for (name, tensor), row, kind in zip(tensors.items(), ROWS_OF.values(), kinds, strict=True):
        require_rows(name, tensor, 0, prod(row), *kind)
    require_elements("work_indptr", tensors["work_indptr"], bins + 1, or_more=True)
    query, kv, pages, indptr, info, *results = tensors.values()
    kernel = kn_mla_fwd_decode_m16x8_fp8_fp8(query, kv, pages, (indptr, info), tuple(results), scale, value_attrs=QUIET)
    kernel.launch(grid=bins, block=THREADS, stream=stream)


# Runs a workgroup for each bin. Tensors are flattened.
launch_mla_fwd_decode_m16x8_fp8_fp8 = launcher(
    "launch_mla_fwd_decode_m16x8_fp8_fp8", " ".join(ROWS_OF), _launch, softmax_scale=float, bins=fx.Int32
)
