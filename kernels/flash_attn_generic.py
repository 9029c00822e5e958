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

A workgroup has `block_m` queries of a head, each wave 32 of them, on RDNA 3, RDNA 4 and gfx1250 16 (`attention_wmma`),
whose fragments stay in registers. 64 keys and their values at a time are in shared memory, the values transposed, while
the next ones are on their way to registers. Both products keep queries in the columns of a result, so that the softmax
of a query is that of two lanes, and P is an operand as it is (`attention_common`). Only tiles on the border of what is
visible are masked; with causal and head_dim >= 128 they have a loop of their own. Head size 128 on CDNA 4, as many keys
as queries, and enough of them: `flash_attn_gfx950`.

D = 128, bf16, causal, gfx942: 216 VGPRs, 64 of which hold sums, 32 queries and 32 scores; with 32 KiB of shared memory
each, two workgroups share a compute unit. D = 64: four waves per SIMD.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from kernels import attention_common as common
from kernels import flash_attn_gfx950
from kernels.attention_common import CHUNK, KEYS, Product32
from kernels.attention_heads import (
    BLOCKS,
    CU_SEQLENS,
    Keys,
    Plan,
    Queries,
    Sequence,
    reference,
    require_operands,
    rows_of_keys,
    starts_of_sequences,
)
from kernels.attention_wmma import Product16
from kernels.kernels_common import LOG2_E, require
from kernels.launches import chosen, for_waves, launch_some, launcher
from kernels.mfma_products import is_cdna4

__all__ = ["build_flash_attn_func_module", "flash_attn", "reference"]

COMPUTE_UNITS = 256  # of an MI355X
SAME = fx.Int32(0)  # seq_len_kv for seq_len
# (B, S, Skv, H, Hkv): one query, a partial tile, two blocks of queries, more keys than queries and fewer.
SHAPES = ((1, 1, 1, 1, 1), (2, 127, 127, 2, 1), (1, 129, 129, 4, 2), (1, 70, 200, 2, 2), (1, 200, 70, 2, 2))


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

    sm_scale: 1 / sqrt(head_dim) by default. block_m: queries of a workgroup, 128 or 256; by default 128, and on CDNA 4
    what `flash_attn_gfx950` has if that fits and is faster by the model.
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
        "launch_flash_attn",
        "Q K V O",
        partial(launch, plan, waves_per_eu, block_m),
        batch=fx.Int32,
        seq_len=fx.Int32,
        **options,
    )


def launch(
    plan: Plan, waves_per_eu: int, block_m: int | None, tensors: dict[str, Any], batch: Any, seq_len: Any, stream: Any,
    seq_len_kv: Any = SAME, *cu_seqlens: Any,
) -> None:  # fmt: skip
    """Launch a workgroup for every block of queries of every head. See `build_flash_attn_func_module`."""
    kv_len, starts = (seq_len_kv == SAME).select(seq_len, seq_len_kv), starts_of_sequences(*cu_seqlens)
    require_operands(plan, tensors, starts, batch, seq_len, kv_len)

    def launch_this() -> None:
        blocks = (seq_len + plan.block_m - 1) // plan.block_m
        attributes = {**for_waves(waves_per_eu), **common.QUIET}
        kernel = flash_attn_generic_kernel(tensors, starts, seq_len, kv_len, plan, value_attrs=attributes)
        launch_some(kernel, batch * blocks, (plan.heads, blocks, batch), plan.threads, stream)

    if block_m == BLOCKS[0] or not is_of_pipeline(plan, *cu_seqlens):
        launch_this()
        return
    larger = replace(plan, block_m=BLOCKS[1])
    faster = pipeline_is_faster(plan, batch, seq_len)
    arguments = waves_per_eu, True, 1, bool(starts), tensors, batch, seq_len, stream, *cu_seqlens
    pipeline = partial(flash_attn_gfx950.launch, larger, *arguments)
    launch_either((kv_len == seq_len) & (faster if block_m is None else True), pipeline, launch_this)


def is_of_pipeline(plan: Plan, starts: Any = (), of_keys: Any = ()) -> bool:
    """True if `flash_attn_gfx950` computes what a plan says where there are as many keys as queries."""
    dim = flash_attn_gfx950.HEAD_DIM
    return is_cdna4() and plan.head_dim == plan.width == dim and not plan.window and isinstance(of_keys, tuple)


def pipeline_is_faster(plan: Plan, batch: Any, seq_len: Any) -> Any:
    """True if the GPU is done sooner with blocks of the pipeline, by what the model has for a workgroup of each.

    A compute unit takes its share of the workgroups one after the other, but no less than the longest one alone.
    """
    tiles = (fx.Int64(seq_len) + (KEYS - 1)) // KEYS
    mean = (tiles + 4) // 2 if plan.causal else tiles  # of those that a workgroup sees

    def time_ns(block_m: int, alone: tuple[int, int], in_turn: tuple[int, int]) -> Any:
        groups = fx.Int64(batch) * plan.heads * ((fx.Int64(seq_len) + (block_m - 1)) // block_m)
        rounds = (groups + (COMPUTE_UNITS - 1)) // COMPUTE_UNITS
        return fx.max(tiles * alone[0] + alone[1], rounds * (mean * in_turn[0] + in_turn[1]))

    # For a tile, and for the rest; two workgroups of 128 queries share a compute unit.
    return time_ns(BLOCKS[1], (1210, 5900), (1210, 5900)) < time_ns(BLOCKS[0], (1710, 1600), (1100, 1500))


@flyc.jit
def launch_either(condition: Any, first: Any, second: Any) -> None:
    """Launch one of two kernels."""
    if condition:
        first()
    else:
        second()


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
    launch(plan, 2, block_m, tensors, batch, seq_len, stream)
