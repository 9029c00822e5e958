"""Logits of an indexer, by which queries choose the keys that attention looks at: heads that share keys make one sum.

    mqa_logits(q, k, k_scale, weights, starts, ends, out)

q: (S, H, D), k: (N, D), of the GPU's fp8; k_scale: (N), weights: (S, H), out: (S, N), of f32; starts, ends: (S) of i32.
Query s sees the keys from starts[s] to ends[s] - 1, for which

    out[s, n] = k_scale[n] * sum over h of weights[s, h] * max(0, q[s, h] . k[n])

and out is -inf for all others. A NaN among the operands is a NaN of the result. DeepSeek V3.2's sparse attention
computes this before it takes the largest logits; multiply a query's weights by its scale.

Heads are the rows of a matrix instruction and keys its columns, both straight from global memory: a wave keeps the
heads of a query in its registers and reads 64 keys at a time, the next ones while it multiplies. Scores never leave the
registers, in which a lane has four heads of each 16; quarters of a wave exchange their sums so that each lane ends up
with one key, and 64 logits are stored at once. There is no shared memory and no barrier. 64 heads of 128: 161 VGPRs on
CDNA 4, three waves per SIMD. There the matrix units and the vector units, which take x + |x| for relu and then the
weight, are busy for about as long; on CDNA 3 the matrix units alone limit it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr import range_constexpr
from kernels.kernels_common import bytes_of, ceil_div, fp8_type, require, require_array, require_waves_of_64
from kernels.launches import flat, launch_some, launcher, tuned
from kernels.mfma_products import CHUNK_BYTES, WAVE, Product, concat
from kernels.reduce import vector_reduce
from kernels.sizes import require_elements, require_rows
from kernels.tensor_shim import GTensor

ROWS = 16  # of a matrix instruction: heads, or keys
KEYS = WAVE  # that a wave takes at a time
PIECE = 4 * CHUNK_BYTES  # of a row: each quarter of a wave loads a chunk of it
TENSORS = "q k k_scale weights starts ends out"
SHARINGS = ((1, 4), (2, 4), (1, 2), (2, 2), (4, 4), (1, 8))
"""Queries and waves of a workgroup."""
FEW_KEYS = 1024
"""The fewest keys of a part, as each part loads the queries again."""
WORKGROUPS = 1024
"""The workgroups that a launch should have, for up to 304 compute units."""
# (S, N, H, D)
SHAPES = ((3, 150, 64, 128), (4, 600, 32, 64), (1, 63, 16, 128))


@dataclass(frozen=True, kw_only=True)
class Indexer:
    """The values known at compile time. queries, waves: of a workgroup. Raises ArgumentError where they do not fit."""

    heads: int
    width: int
    queries: int
    waves: int

    def __post_init__(self) -> None:
        require(self.heads > 0 and self.heads % ROWS == 0, f"{self.heads} heads", f"a multiple of {ROWS}")
        require(self.width > 0 and self.width % PIECE == 0, f"heads of {self.width}", f"a multiple of {PIECE}")
        require(0 < self.waves <= 16 and self.queries > 0, f"{self.queries} queries, {self.waves} waves",
                "one or more, and up to 16 waves")  # fmt: skip


class Rows:
    """Rows of fp8 in global memory as operands of a product. first: bytes before them; count: of the rows."""

    def __init__(self, tensor: Any, width: int, first: Any, count: Any) -> None:
        lane = fx.Int32(fx.thread_idx.x) % WAVE
        self.member, self.quarter, self.pieces = lane % ROWS, lane // ROWS, width // PIECE
        self.product = Product.of("fp8", scaled=width % (2 * PIECE) == 0)
        self.words = GTensor(
            tensor, fx.Int32, (-1, width // 4), base_byte_offset=first, num_records_bytes=count * width
        )  # fmt: skip

    def fragments(self, row: Any) -> list[Any]:
        """[group]: a lane's operand of 16 rows from `row` on. K is permuted, in the same way for all rows."""
        row = row + self.member
        places = [(row, piece * (PIECE // 4) + self.quarter * (CHUNK_BYTES // 4)) for piece in range(self.pieces)]
        loaded = [fx.Vector(self.words.vec_load(place, CHUNK_BYTES // 4)) for place in places]
        each = self.product.lane_bytes[0] // CHUNK_BYTES
        return [concat(loaded[i : i + each]) for i in range(0, len(loaded), each)]


class Query:
    """A query in a wave's registers: its heads, their weights, and the keys that it sees."""

    def __init__(self, tensors: Any, number: Any, counts: Any, spec: Indexer) -> None:
        queries, self.keys = counts
        exists = number < queries
        # Of one that does not exist nothing is read: it sees no key.
        starts, ends = (GTensor(tensors[name], fx.Int32, num_records_bytes=queries * 4) for name in ("starts", "ends"))
        self.start = exists.select(fx.max(starts.load(number), 0), self.keys)
        self.end = exists.select(fx.min(ends.load(number), self.keys), fx.Int32(0))
        place, blocks = fx.Int64(number), range(0, spec.heads, ROWS)
        count = exists.select(fx.Int32(spec.heads), fx.Int32(0))
        rows = Rows(tensors["q"], spec.width, place * (spec.heads * spec.width), count)
        self.heads = [rows.fragments(block) for block in blocks]
        weights = GTensor(
            tensors["weights"], fx.Float32, base_byte_offset=place * (spec.heads * 4), num_records_bytes=count * 4
        )  # fmt: skip
        # Half of them, as relu is twice as large here.
        self.weights = [fx.Vector(weights.vec_load(block + rows.quarter * 4, 4)) * 0.5 for block in blocks]
        self.product, self.number, self.out = rows.product, number, tensors["out"]

    def logits(self, keys: list[list[Any]]) -> Any:
        """The sum over heads for the key of each lane. keys: fragments of four blocks of 16."""
        sums = [self.partial_sum(block) for block in keys]
        lane = fx.Int32(fx.thread_idx.x) % WAVE
        low, even = lane < 2 * ROWS, lane & ROWS == 0
        pair = [exchanged(low, sums[i], sums[i + 2], 2 * ROWS) for i in range(2)]
        return exchanged(even, pair[0], pair[1], ROWS)

    def partial_sum(self, keys: list[Any]) -> Any:
        """The sum over a lane's heads for the key `lane % 16` of a block."""
        total: Any = fx.Vector.filled(4, 0.0, fx.Float32)
        for heads, weights in zip(self.heads, self.weights, strict=True):
            scores = self.product.zeros()
            for head, key in zip(heads, keys, strict=True):
                for call in range(self.product.calls):
                    scores = self.product(head, key, scores, call)
            # Element by element, so that the magnitude is part of the addition; its sum is twice the relu.
            twice = fx.Vector.from_elements([score + fx.absf(score) for score in scores], fx.Float32)
            total = fx.fma(twice, weights, total)
        return vector_reduce(total, "add")

    def store(self, key: Any, logit: Any) -> None:
        """Write a lane's logit, unless the query does not see its key."""
        out = GTensor(
            self.out, fx.Float32, base_byte_offset=fx.Int64(self.number) * self.keys * 4,
            num_records_bytes=self.keys * 4,
        )  # fmt: skip
        out.store(key, logit, mask=(key >= self.start) & (key < self.end))


def exchanged(first_half: Any, a: Any, b: Any, distance: int) -> Any:
    """a in lanes of the first half, and b in others, added to what the lane at this distance has of it."""
    kept, sent = first_half.select(a, b), first_half.select(b, a)
    return kept + fx.gpu.shuffle_xor(sent, distance, WAVE)


@flyc.kernel
def mqa_logits_kernel(tensors: Any, counts: Any, spec: fx.Constexpr[Indexer]) -> None:
    """Some queries and a part of the keys they see. The grid: parts, queries: later ones first, which see most."""
    require_waves_of_64("mqa_logits")
    number = (fx.grid_dim.y - 1 - fx.block_idx.y) * spec.queries
    queries = [Query(tensors, number + i, counts, spec) for i in range_constexpr(spec.queries)]
    first, last = queries[0].start, queries[0].end
    for query in queries[1:]:
        first, last = fx.min(first, query.start), fx.max(last, query.end)
    wave = fx.Int32(fx.rocdl.readfirstlane(fx.thread_idx.x // WAVE))
    step = fx.Int32(fx.grid_dim.x) * (spec.waves * KEYS)
    begin = first // KEYS * KEYS + (fx.Int32(fx.block_idx.x) * spec.waves + wave) * KEYS
    walk(tensors, counts[1], queries, (begin, last, step), spec)


@flyc.jit
def walk(tensors: Any, count: Any, queries: list[Query], bounds: tuple[Any, Any, Any], spec: Indexer) -> None:
    """Compute the logits of a wave's keys, 64 at a time. count: of all keys; bounds: as of `range`."""
    keys = Rows(tensors["k"], spec.width, 0, count)
    scales = GTensor(tensors["k_scale"], fx.Float32, num_records_bytes=count * 4)
    lane = fx.Int32(fx.thread_idx.x) % WAVE

    def load(first: Any) -> tuple[Any, Any]:
        return [keys.fragments(first + block) for block in range(0, KEYS, ROWS)], scales.load(first + lane)

    begin, last, step = bounds
    loaded = load(begin)
    for first in range(begin, last, step):
        blocks, scale = loaded
        loaded = load(first + step)
        for query in queries:
            query.store(first + lane, query.logits(blocks) * scale)


@cache
def build_mqa_logits_module(heads: int, width: int = 128, *, queries: int = 1, waves: int = 4) -> Any:
    """The launcher (q, k, k_scale, weights, starts, ends, out, S, N, parts, stream), tensors of one dimension.

    queries, waves: of a workgroup. parts: workgroups that share the keys of queries. out is not written where a query
    does not see a key. Raises ArgumentError where sizes do not fit.
    """
    spec = Indexer(heads=heads, width=width, queries=queries, waves=waves)
    return launcher("launch_mqa_logits", TENSORS, partial(launch_queries, spec), S=fx.Int32, N=fx.Int32, parts=fx.Int32)


def launch_queries(spec: Indexer, tensors: dict[str, Any], S: Any, N: Any, parts: Any, stream: Any) -> None:
    """Launch the workgroups of all queries, inside a launcher."""
    fp8 = bytes_of(fp8_type())
    require_rows("q", tensors["q"], S, spec.heads * spec.width, *fp8)
    require_rows("k", tensors["k"], N, spec.width, *fp8)
    require_rows("weights", tensors["weights"], S, spec.heads, fx.Float32)
    require_rows("out", tensors["out"], S, N, fx.Float32)
    for name, count, kind in (("k_scale", N, fx.Float32), ("starts", S, fx.Int32), ("ends", S, fx.Int32)):
        require_elements(name, tensors[name], count, kind)
    grid = (parts, (S + (spec.queries - 1)) // spec.queries)
    launch_some(mqa_logits_kernel(tensors, (S, N), spec), fx.min(S, N), grid, spec.waves * WAVE, stream)


def launch_shared(
    tensors: dict[str, Any], S: Any, N: Any, parts: Any, spec: Indexer, sharing: tuple[int, int], stream: Any
) -> None:
    """Launch with as many queries and waves of a workgroup as are found to be the fastest."""
    queries, waves = sharing
    launch_queries(replace(spec, queries=queries, waves=waves), tensors, S, N, parts, stream)


tuned_mqa_logits = tuned(
    "tuned_mqa_logits", TENSORS, launch_shared, ["spec", "S", "N"], [{"sharing": sharing} for sharing in SHARINGS],
    S=fx.Int32, N=fx.Int32, parts=fx.Int32, spec=object,
)  # fmt: skip


def default_parts(S: int, N: int, queries: int = 1) -> int:
    """Workgroups that share the keys of queries, so that a launch has WORKGROUPS, but each at least FEW_KEYS keys.

    >>> default_parts(64, 32768), default_parts(1, 4096), default_parts(4096, 4096)
    (16, 4, 1)
    """
    return max(1, min(ceil_div(N, FEW_KEYS), WORKGROUPS // ceil_div(S, queries)))


def mqa_logits(
    q: Any, k: Any, k_scale: Any, weights: Any, starts: Any, ends: Any, out: Any, *, clean: bool = True,
    parts: int | None = None, stream: Any = None, **options: int,
) -> Any:  # fmt: skip
    """Compute the logits, and return out. options: of `build_mqa_logits_module`.

    clean: fill out with -inf first; otherwise it stays as it is where a query does not see a key. parts: workgroups
    that share the keys of queries, by default enough for a GPU. Raises ArgumentError for operands that do not fit.
    """
    import torch

    require(q.ndim == 3 and k.ndim == 2, f"q {tuple(q.shape)}, k {tuple(k.shape)}", "(S, H, D), (N, D)")
    (S, heads, width), N = q.shape, k.shape[0]
    require(k.numel() < 1 << 31, f"{k.numel()} bytes of keys", "less than 2 GiB")
    given = {"q": (q, q.dtype, q.shape), "k": (k, q.dtype, (N, width)), "k_scale": (k_scale, torch.float32, (N,))}
    given |= {"weights": (weights, torch.float32, (S, heads)), "out": (out, torch.float32, (S, N))}
    given |= {"starts": (starts, torch.int32, (S,)), "ends": (ends, torch.int32, (S,))}
    for name, (tensor, dtype, shape) in given.items():
        require_array(name, tensor, dtype, tuple(shape))
    if clean:
        out.fill_(float("-inf"))
    if out.numel() == 0:
        return out
    launch = build_mqa_logits_module(heads, width, **options)
    parts = parts or default_parts(S, N, options.get("queries", 1))
    tensors = (flat(t) for t in (q, k, k_scale, weights, starts, ends, out))
    launch(*tensors, S, N, parts, *([] if stream is None else [stream]))
    return out


def reference(q: Any, k: Any, k_scale: Any, weights: Any, starts: Any, ends: Any) -> Any:
    """out, in torch and f32."""
    import torch

    scores = torch.einsum("shd,nd->shn", q.float(), k.float()).relu()
    logits = torch.einsum("shn,sh->sn", scores, weights) * k_scale
    keys = torch.arange(k.shape[0], device=k.device)
    seen = (keys >= starts[:, None]) & (keys < ends[:, None])
    return torch.where(seen, logits, float("-inf"))
