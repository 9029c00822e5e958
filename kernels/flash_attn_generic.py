"""O = softmax(Q K^T / sqrt(D)) V for every head, without the scores in memory: flash attention, forward.

    launch = build_flash_attn_func_module(num_heads=64, num_kv_heads=8, head_dim=128, dtype_str="bf16")
    launch(Q, K, V, O, batch, seq_len)
    launch(Q, K, V, O, batch, longest, cu_seqlens_q=starts, cu_seqlens_kv=kv_starts)

| tensor | shape, flat | sequences of several lengths |
|---|---|---|
| Q, O | (B, S, H, D), O as wide as V | (T, H, D) |
| K, V | (B, Skv, Hkv, D), V with a width of its own | (Tkv, Hkv, D) |
| cu_seqlens_q, cu_seqlens_kv | | i32, (B + 1): where sequences begin, and the end |

Query head h has the keys of head h // (H / Hkv). The last query stands at the last key: with causal, query i sees the
keys up to i + Skv - S, and with a sliding window of w those from i + Skv - S - w on, without causal up to as many after
it. A query that sees no key has the result 0. Values that causal or the window hides are multiplied by 0, as torch
does: an infinity among them may become NaN.

A workgroup has `block_m` queries of a head, each wave 32 of them, on RDNA 3 and 4 16 (`attention_wmma`), whose
fragments stay in registers. 64 keys and their values at a time are in shared memory, the values transposed, while the
next ones are on their way to registers. Both products keep queries in the columns of a result, so that the softmax of a
query is that of two lanes, and P is an operand as it is (`attention_common`). Only tiles on the border of what is
visible are masked; with causal and head_dim >= 128 they have a loop of their own.

D = 128, bf16, causal, gfx942: 216 VGPRs, 64 of which hold sums, 32 queries and 32 scores; with 32 KiB of shared memory
each, two workgroups share a compute unit. D = 64: four waves per SIMD.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from kernels import attention_common as common
from kernels.attention_common import CHUNK, GROUP, KEYS, ROWS, WAVE, HeadRows, Product32
from kernels.attention_wmma import Product16
from kernels.kernels_common import LOG2_E, element_type, require, require_tensor, rounded
from kernels.launches import chosen, for_waves, launch_some, launcher
from kernels.sizes import require_elements, require_rows
from kernels.tensor_shim import GTensor

BLOCKS = (128, 256)
LDS_BYTES = 65536
SAME = fx.Int32(0)  # seq_len_kv for seq_len
CU_SEQLENS = {"cu_seqlens_q": (Any, ()), "cu_seqlens_kv": (Any, ())}
DTYPES = ("f16", "bf16")
# (B, S, Skv, H, Hkv): one query, a partial tile, two blocks of queries, more keys than queries and fewer.
SHAPES = ((1, 1, 1, 1, 1), (2, 127, 127, 2, 1), (1, 129, 129, 4, 2), (1, 70, 200, 2, 2), (1, 200, 70, 2, 2))


def reference(
    Q: Any, K: Any, V: Any, *, causal: bool = True, sliding_window: int | None = None, sm_scale: float | None = None
) -> Any:
    """The result of torch in f32. Q (B, S, H, D), K and V (B, Skv, Hkv, D), V with a width of its own.

    sliding_window: keys that a query sees before its own, which may be none; None for all.
    """
    import torch

    q, k, v = (x.float().transpose(1, 2) for x in (Q, K, V))
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q @ k.transpose(-1, -2) * (q.shape[-1] ** -0.5 if sm_scale is None else sm_scale)
    place = torch.arange(q.shape[2])[:, None] + k.shape[2] - q.shape[2]
    after = torch.arange(k.shape[2])[None] - place
    hidden = (after > 0) & causal
    if sliding_window is not None:
        hidden |= (after < -sliding_window) | (after > sliding_window)
    p = scores.masked_fill(hidden, -torch.inf).softmax(-1)
    p = p.masked_fill(hidden.all(-1)[:, None], 0)
    return (p @ v).transpose(1, 2)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The compile-time parameters of a kernel. See `build_flash_attn_func_module`; width: columns of V and O."""

    heads: int
    kv_heads: int
    head_dim: int
    width: int
    dtype: str
    causal: bool
    window: int
    scale: float
    block_m: int

    def __post_init__(self) -> None:
        require(self.dtype in DTYPES, f"dtype_str={self.dtype!r}", f"one of {', '.join(DTYPES)}")
        heads = f"num_heads={self.heads} with num_kv_heads={self.kv_heads}"
        require(self.kv_heads > 0 and self.heads > 0 and self.heads % self.kv_heads == 0, heads, "a multiple")
        require(self.block_m in BLOCKS, f"block_m={self.block_m}", f"one of {', '.join(map(str, BLOCKS))}")
        part = self.block_m // 4
        for name, value in (("head_dim", self.head_dim), ("v_head_dim", self.width)):
            wanted = f"a multiple of {part} from 64 on with block_m={self.block_m}"
            require(value >= 64 and value % part == 0, f"{name}={value}", wanted)
        require(self.lds_bytes <= LDS_BYTES, f"head_dim={self.head_dim} with v_head_dim={self.width}",
                      f"a sum of at most {LDS_BYTES // KEYS // 2}")  # fmt: skip
        require(0 < self.scale < float("inf"), f"sm_scale={self.scale}", "a positive number")
        require(self.window >= 0, f"sliding_window={self.window}", "keys before a query; 0 for all")

    @property
    def threads(self) -> int:
        """Threads of a workgroup."""
        return self.block_m // ROWS * WAVE

    @property
    def lds_bytes(self) -> int:
        """Shared memory: a tile of keys, and one of values."""
        return KEYS * (self.head_dim + self.width) * 2


@dataclass(frozen=True)
class Sequence:
    """The first query and key of a batch in their tensors, and their numbers."""

    first: Any
    count: Any
    kv_first: Any
    kv_count: Any

    @classmethod
    def of(cls, batch: Any, seq_len: Any, kv_len: Any, cu_seqlens: Any) -> Sequence:
        """The sequence number `batch`: all of one length, or between two entries of (cu_seqlens_q, cu_seqlens_kv)."""
        if not cu_seqlens:
            return cls(fx.Int64(batch) * seq_len, seq_len, fx.Int64(batch) * kv_len, kv_len)
        bounds = [fx.Int32(fx.rocdl.readfirstlane(fx.Int32(cu[batch + i]))) for cu in cu_seqlens for i in (0, 1)]
        return cls(bounds[0], bounds[1] - bounds[0], bounds[2], bounds[3] - bounds[2])


class Keys:
    """The keys that the queries from `first` on of a workgroup see; tiles are numbered from the sequence's first key.

    Tiles first_tile to last_tile - 1 have keys that some query sees; of first_whole to last_whole - 1 every query sees
    every key.
    """

    def __init__(self, plan: Plan, sequence: Sequence, first: Any) -> None:
        self.plan, count = plan, sequence.kv_count
        # The key at which the block's first query stands.
        self.place = first + (count - sequence.count)
        last_place = self.place + (plan.block_m - 1)
        self.first_tile, self.first_whole = fx.Int32(0), fx.Int32(0)
        end, whole_end = count, count
        if plan.window:
            self.first_tile = fx.max(self.place - plan.window, 0) >> 6
            self.first_whole = (fx.max(last_place - plan.window, 0) + (KEYS - 1)) >> 6
        ahead = 0 if plan.causal else plan.window
        if plan.causal or plan.window:
            end = fx.min(count, fx.max(last_place + (ahead + 1), 0))
            whole_end = fx.min(count, fx.max(self.place + (ahead + 1), 0))
        self.end = end
        self.last_tile = (end + (KEYS - 1)) >> 6
        self.last_whole = whole_end >> 6
        self.last_key = count - 1

    def is_partial(self, tile: Any) -> Any:
        """True if some query does not see some key of a tile."""
        behind = tile >= self.last_whole
        return (tile < self.first_whole) | behind if self.plan.window else behind

    def of_query(self, query: Any) -> tuple[Any, Any]:
        """(first, last) key that a query sees, counted from the block's first one; no first without a window."""
        window, last = self.plan.window, self.last_key
        if self.plan.causal or window:
            last = fx.min(last, self.place + query + (0 if self.plan.causal else window))
        return (self.place + query - window if window else None), last


@flyc.kernel
def flash_attn_generic_kernel(
    tensors: Any, cu_seqlens: Any, seq_len: fx.Int32, kv_len: fx.Int32, plan: fx.Constexpr[Plan]
) -> None:
    """The result of block_m queries of a head, if the sequence has as many."""
    head, number, batch = (fx.Int32(i) for i in fx.block_idx)
    if fx.const_expr(plan.causal):
        # The blocks with the most keys begin first.
        number = fx.Int32(fx.grid_dim.y) - 1 - number
    sequence = Sequence.of(batch, seq_len, kv_len, cu_seqlens)
    first = number * plan.block_m
    if not cu_seqlens or first < sequence.count:
        attend(plan, sequence, head, first, **tensors)


def attend(plan: Plan, sequence: Sequence, head: Any, first: Any, Q: Any, K: Any, V: Any, O: Any) -> None:
    """The result of the queries from `first` on of a head."""
    keys, product = Keys(plan, sequence, first), Product16.of(plan.dtype) or Product32.of(plan.dtype)
    queries = Queries(plan, sequence, head, first, product.rows)
    of_keys, of_values = rows_of_keys(plan, sequence, head, keys.end, K, V)
    shared = fx.SharedAllocator().allocate(plan.lds_bytes, 128).peek().ptr
    k = common.RowTile(of_keys, shared, KEYS, plan.threads)
    v = common.TransposedTile(of_values, shared, KEYS, plan.threads, KEYS * plan.head_dim * 2)
    q = [product.operand(chunk) for chunk in queries.load(Q)]
    bounds, scale = keys.of_query(queries.number), fx.Float32(plan.scale * LOG2_E)
    columns = plan.width // product.rows  # blocks of them

    def step(state: Any, tile: Any, partial: Any) -> Any:
        sums, top, total = state
        next_k = k.load(tile + 1)
        scores: Any = common.multiply(product, k, q, KEYS // product.rows)
        scores = common.masked(scores, partial, bounds, tile * KEYS + queries.half * CHUNK)
        common.fragments_ahead(product, KEYS // product.rows * len(q))
        powers, factor, top, total = common.online_softmax(scores, scale, top, total, product.lanes)
        p = [product.operand(chunk) for chunk in common.weights(powers, product.dtype)]
        fx.rocdl.sched_barrier(0)
        next_v = v.load(tile + 1)
        sums = common.multiply(product, v, p, columns, [values * factor for values in sums])
        common.fragments_ahead(product, columns * len(p))
        fx.gpu.barrier()
        store(next_k, next_v)
        return sums, top, total

    def store(next_k: Any, next_v: Any) -> None:
        k.store(next_k)
        v.store(next_v)
        fx.gpu.barrier()

    store(k.load(keys.first_tile), v.load(keys.first_tile))
    nothing = [product.zeros() for _ in range(columns)]
    state: Any = walk(plan, step, keys, (nothing, fx.Float32(common.LOWEST), fx.Float32(0)))
    sums, _, total = state
    queries.store(O, sums, common.inverse(common.both_halves(total, fx.arith.addf, product.lanes)))


class Queries:
    """The rows of Q and O that a workgroup has, one for two lanes, which have the halves of each group of columns.

    rows: of a wave.
    """

    def __init__(self, plan: Plan, sequence: Sequence, head: Any, first: Any, rows: int = ROWS) -> None:
        self.plan, self.head, self.sequence, self.first = plan, head, sequence, first
        thread, bits = fx.Int32(fx.thread_idx.x), rows.bit_length() - 1
        self.number = (thread >> (bits + 1)) * rows + (thread & (rows - 1))
        self.half = thread >> bits & 1

    def _rows(self, tensor: Any, width: int) -> GTensor:
        rows = HeadRows(tensor, self.plan.heads, width, self.head, self.sequence.first, self.sequence.count)
        return rows.view(self.first, self.plan.block_m)

    def _chunks(self, rows: GTensor, count: int) -> Iterator[tuple[Any, dict[str, int]]]:
        """The offset of the lane's chunk of each group. The distance is a scalar, so that one register is kept."""
        first = rows.linear_offset((self.number, self.half * (CHUNK // 2)))
        return ((first, {"soffset_bytes": group * GROUP * 2}) for group in range(count))

    def load(self, Q: Any) -> list[Any]:
        """[group]: the lane's chunk of its query."""
        rows = self._rows(Q, self.plan.head_dim)
        places = self._chunks(rows, self.plan.head_dim // GROUP)
        return [fx.Vector(rows.vec_load(first, CHUNK // 2, **distance)) for first, distance in places]

    def store(self, O: Any, sums: list[Any], factor: Any) -> None:
        """Write the sums [block of columns of V] times a factor."""
        rows = self._rows(O, self.plan.width)
        results = common.chunks([rounded(values * factor, element_type(self.plan.dtype)) for values in sums])
        for values, (first, distance) in zip(results, self._chunks(rows, len(results)), strict=True):
            rows.vec_store(first, values, **distance)


def rows_of_keys(plan: Plan, sequence: Sequence, head: Any, end: Any, K: Any, V: Any) -> list[HeadRows]:
    """The keys and values of a query head, up to key `end`."""
    of_both, widths = (head // (plan.heads // plan.kv_heads), sequence.kv_first, end), (plan.head_dim, plan.width)
    return [HeadRows(x, plan.kv_heads, width, *of_both) for x, width in zip((K, V), widths, strict=True)]


@flyc.jit
def walk(plan: Plan, step: Any, keys: Keys, state: Any) -> Any:
    """The state after every tile: state = step(state, tile, partial)."""
    # Masked tiles have a loop of their own.
    if fx.const_expr(plan.causal and not plan.window and plan.head_dim >= 128):
        for tile in range(keys.first_tile, keys.last_whole):
            state = step(state, tile, False)
        for tile in range(keys.last_whole, keys.last_tile):
            state = step(state, tile, True)
    else:
        for tile in range(keys.first_tile, keys.last_tile):
            state = step(state, tile, keys.is_partial(tile))
    return state


@cache
def build_flash_attn_func_module(
    num_heads: int, head_dim: int, causal: bool = True, dtype_str: str = "f16", sm_scale: float | None = None,
    waves_per_eu: int = 2, flat_work_group_size: int | None = None, block_m: int | None = None,
    unsafe_fp_math: bool = True, fast_fp_math: bool = True, daz: bool = True, path_tag: str = "auto",
    num_kv_heads: int | None = None, *, v_head_dim: int | None = None, sliding_window: int = 0,
) -> Any:  # fmt: skip
    """The launcher (Q, K, V, O, batch, seq_len, stream, seq_len_kv, cu_seqlens_q, cu_seqlens_kv).

    sm_scale: 1 / sqrt(head_dim) by default. block_m: queries of a workgroup, 128 (the default) or 256.
    flat_work_group_size: its threads, two for a query; None for that. waves_per_eu: waves per SIMD that registers are
    allocated for. v_head_dim: columns of V and O, by default head_dim. sliding_window: keys that a query sees before
    its own, 0 for all. path_tag: "auto", others are unsupported. unsafe_fp_math, fast_fp_math, daz: allowed, and of no
    consequence: infinities and NaNs count. seq_len_kv: by default seq_len. With cu_seqlens_q, and cu_seqlens_kv if it
    is another one, seq_len is that of the longest sequence of queries. Raises ArgumentError where sizes do not fit.
    """
    plan = Plan(
        heads=num_heads,
        kv_heads=num_kv_heads or num_heads,
        head_dim=head_dim,
        width=v_head_dim or head_dim,
        dtype=dtype_str,
        causal=causal,
        window=sliding_window,
        scale=head_dim**-0.5 if sm_scale is None else sm_scale,
        block_m=block_m or BLOCKS[0],
    )
    fits = flat_work_group_size in (None, plan.threads)
    require(fits, f"flat_work_group_size={flat_work_group_size}", f"{plan.threads}, or None")
    require(path_tag == "auto", f"path_tag={path_tag!r}", "unsupported; 'auto' is supported")

    options = {"seq_len_kv": (fx.Int32, SAME), **CU_SEQLENS}
    return launcher(
        "launch_flash_attn", "Q K V O", partial(launch, plan, waves_per_eu), batch=fx.Int32, seq_len=fx.Int32, **options
    )


def launch(
    plan: Plan, waves_per_eu: int, tensors: dict[str, Any], batch: Any, seq_len: Any, stream: Any,
    seq_len_kv: Any = SAME, *cu_seqlens: Any,
) -> None:  # fmt: skip
    """Launch a workgroup for every block of queries of every head. See `build_flash_attn_func_module`."""
    kv_len, starts = (seq_len_kv == SAME).select(seq_len, seq_len_kv), starts_of_sequences(*cu_seqlens)
    require_operands(plan, tensors, starts, batch, seq_len, kv_len)
    blocks = (seq_len + plan.block_m - 1) // plan.block_m
    attributes = {**for_waves(waves_per_eu), **common.QUIET}
    kernel = flash_attn_generic_kernel(tensors, starts, seq_len, kv_len, plan, value_attrs=attributes)
    launch_some(kernel, batch * blocks, (plan.heads, blocks, batch), plan.threads, stream)


def starts_of_sequences(*cu_seqlens: Any) -> tuple[Any, ...]:
    """Those of queries and of keys, which are the queries' where only these are given; none without any."""
    given = [cu for cu in cu_seqlens if not isinstance(cu, tuple)]
    return (given[0], given[-1]) if given else ()


def require_operands(
    plan: Plan, tensors: dict[str, Any], cu_seqlens: Any, batch: Any, seq_len: Any, kv_len: Any
) -> None:
    """Refuse Q, K, V and O of other types and sizes than the launch's. They are flat, so that strides do not count.

    Of sequences of several lengths, whose sum only the device knows, those of queries hold the longest one at least.
    """
    wanted, of_q, of_kv = element_type(plan.dtype), batch * seq_len, batch * kv_len
    if cu_seqlens:
        of_q, of_kv = (batch > 0).select(seq_len, 0), 0
    rows, heads = (of_q, of_kv, of_kv, of_q), (plan.heads, plan.kv_heads, plan.kv_heads, plan.heads)
    widths = (plan.head_dim, plan.head_dim, plan.width, plan.width)
    for (name, x), count, row in zip(tensors.items(), rows, zip(heads, widths, strict=True), strict=True):
        what = f"{name} of {x.dtype.__name__} where dtype_str is {plan.dtype}"
        require(x.dtype is wanted, what, f"it is {wanted.__name__}")
        require(fx.rank(x) == 1, f"{name} of {x.type}", "one dimension: x.contiguous().view(-1)")
        require_rows(name, x, count, row[0] * row[1])
    for name, starts in zip(("cu_seqlens_q", "cu_seqlens_kv"), cu_seqlens, strict=False):
        require_tensor(name, starts, fx.Int32, fx.Int64)
        require_elements(name, starts, batch + 1, or_more=True)


@chosen("Q K V O", "num_heads head_dim seq_len causal", BLOCKS)
def flash_attn(
    tensors: dict[str, Any], batch: fx.Int32, seq_len: fx.Int32, num_heads: int, num_kv_heads: int, head_dim: int,
    causal: bool, dtype_str: str, block_m: int, stream: Any,
) -> None:  # fmt: skip
    """A launcher of (Q, K, V, O, batch, seq_len, num_heads, num_kv_heads, head_dim, causal, dtype_str, stream):
    attention with a number of queries per workgroup that is chosen by measurement. See the builder.
    """
    plan = Plan(
        heads=num_heads,
        kv_heads=num_kv_heads,
        head_dim=head_dim,
        width=head_dim,
        dtype=dtype_str,
        causal=causal,
        window=0,
        scale=head_dim**-0.5,
        block_m=block_m,
    )
    launch(plan, 2, tensors, batch, seq_len, stream)
