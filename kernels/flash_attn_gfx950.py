"""O = softmax(Q K^T / sqrt(128)) V for every head, forward, in a pipeline for CDNA 4; head size 128.

    launch = build_flash_attn_dualwave_swp_module(num_heads=32, num_kv_heads=8, head_dim=128, dtype_str="bf16")
    launch(Q, K, V, O, batch, seq_len)

Operands are those of `flash_attn_generic`, with as many keys as queries. What differs is how a tile moves. It goes
straight to shared memory, in two buffers, and values are turned when they are read (ds_read_b64_tr_b16). A step has
three parts, with one barrier:

    scores of tile j + 1, half of O += P V of tile j                  shared memory, matrix instructions
    copies of the keys of tile j + 2 and the values of tile j + 1     on their way until the next barrier
    the other half, and the powers of tile j + 1                      matrix and vector instructions by turns

so that the vector unit works in the shadow of the matrix unit within a wave, and no read of shared memory waits for a
copy: the fragments of the other half are in registers before. Sums are multiplied by what a new maximum makes of the
old ones only if some query's has risen by more than 2^8. Tiles are taken in pairs, one for each buffer; the last four,
which have the masks, are unrolled.

bf16, causal: 238 VGPRs, of which 64 hold sums, 32 queries, 32 scores and 16 P; two waves per SIMD.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError
from flydsl.expr import range_constexpr
from kernels.attention_common import (
    CHUNK,
    LOWEST,
    QUIET,
    CopiedTile,
    HeadRows,
    Product32,
    TurnedTile,
    both_halves,
    inverse,
    multiply_fragments,
    powers_of,
    sum_of,
    top_of,
    visible,
    weights,
    zeros,
)
from kernels.flash_attn_generic import KEYS, Keys, Plan, Queries, Sequence, reference, require_types
from kernels.kernels_common import LOG2_E, require
from kernels.mfma_preshuffle_pipeline import is_cdna4

__all__ = ["build_flash_attn_dualwave_swp_module", "reference"]

HEAD_DIM, BLOCK_M = 128, 256
BLOCKS_OF_KEYS, FIRST, SECOND = range(2), range(2), range(2, 4)
TAIL = 4  # tiles that may be masked
LAZY = 8.0  # in units of log2
# (B, S, H, Hkv): one query, two tiles, one query beyond a block, two blocks.
SHAPES = ((2, 1, 1, 1), (1, 127, 2, 1), (1, 257, 1, 1), (1, 512, 1, 1))


@flyc.kernel
def flash_attn_dualwave_swp_gfx950_kernel(
    Q: fx.Tensor,
    K: fx.Tensor,
    V: fx.Tensor,
    O: fx.Tensor,
    cu_seqlens: Any,
    seq_len: fx.Int32,
    plan: fx.Constexpr[Plan],
    lazy: fx.Constexpr[bool],
) -> None:
    """The result of 256 queries of a head, if the sequence has as many."""
    require(is_cdna4(), "flash_attn_gfx950 for another architecture", "flash_attn_generic runs on every CDNA")
    place, number, batch = (fx.Int32(i) for i in fx.block_idx)
    # Neighbours do not share their keys.
    head = place % plan.kv_heads * (plan.heads // plan.kv_heads) + place // plan.kv_heads
    if fx.const_expr(plan.causal):
        number = fx.Int32(fx.grid_dim.y) - 1 - number
    sequence = Sequence.of(batch, seq_len, seq_len, cu_seqlens)
    first = number * plan.block_m
    if not cu_seqlens or first < sequence.count:
        attend(plan, lazy, sequence, head, first, Q, K, V, O)


def attend(plan: Plan, lazy: bool, sequence: Sequence, head: Any, first: Any, Q: Any, K: Any, V: Any, O: Any) -> None:
    """The result of the queries from `first` on of a head."""
    keys, product = Keys(plan, sequence, first), Product32.of(plan.dtype)
    queries = Queries(plan, sequence, head, first)
    k, v = tiles(plan, sequence, head, keys.end, K, V)
    q, bounds, scale = queries.load(Q), keys.of_query(queries.number), fx.Float32(plan.scale * LOG2_E)
    pairs = (keys.last_tile + 1) >> 1
    last = (pairs > TAIL // 2).select(pairs * 2, fx.Int32(TAIL))

    def masked(scores: Any, tile: Any) -> Any:
        return visible(scores, None, bounds[1] - (tile * KEYS + queries.half * CHUNK))

    def step(state: Any, tile: Any, stage: int, mask: Any) -> Any:
        """From P of a tile in buffer `stage` to that of the next one."""
        sums, top, total, p, factor = state
        arrive()
        scores = multiply_fragments(product, k.fragments(stage ^ 1, BLOCKS_OF_KEYS), q)
        before: Any = rescaled(sums, factor, lazy)
        done = multiply_fragments(product, v.fragments(stage, FIRST), p, before[:2])
        scores = mask(scores, tile + 1)
        turned = v.fragments(stage, SECOND)
        # Reads behind a copy would wait for it.
        fx.rocdl.sched_barrier(0)
        k.copy(tile + 2, stage)
        v.copy(tile + 1, stage ^ 1)
        top, factor, shift = top_of(scores, scale, top, LAZY if lazy else 0.0)
        done += multiply_fragments(product, turned, p, before[2:])
        powers = powers_of(scores, scale, shift)
        by_turns(8)
        return done, top, total * factor + sum_of(powers), weights(powers, plan.dtype), factor

    def finish(state: Any, stage: int) -> Any:
        sums, _, total, p, factor = state
        arrive()
        before: Any = rescaled(sums, factor, lazy)
        return [
            *multiply_fragments(product, v.fragments(stage, FIRST), p, before[:2]),
            *multiply_fragments(product, v.fragments(stage, SECOND), p, before[2:]),
        ], total

    k.copy(fx.Int32(0), 0)
    arrive()
    k.copy(fx.Int32(1), 1)
    v.copy(fx.Int32(0), 0)
    scores = masked(multiply_fragments(product, k.fragments(0, BLOCKS_OF_KEYS), q), fx.Int32(0))
    top, _, shift = top_of(scores, scale, fx.Float32(LOWEST))
    powers = powers_of(scores, scale, shift)
    nothing = [zeros() for _ in range(plan.width // 32)]
    state = nothing, top, sum_of(powers), weights(powers, plan.dtype), fx.Float32(1.0)
    result: Any = walk(step, finish, masked, state, last)
    sums, total = result
    queries.store(O, sums, inverse(both_halves(total, fx.arith.addf)))


def tiles(plan: Plan, sequence: Sequence, head: Any, end: Any, K: Any, V: Any) -> tuple[CopiedTile, TurnedTile]:
    """The tiles of keys and values of a query head, up to key `end`, with two buffers each."""
    size = KEYS * HEAD_DIM * 2
    shared = fx.SharedAllocator().allocate(4 * size, 128).peek().ptr
    k, v = (
        HeadRows(tensor, plan.kv_heads, HEAD_DIM, head // (plan.heads // plan.kv_heads), sequence.kv_first, end)
        for tensor in (K, V)
    )
    return CopiedTile(k, shared, KEYS, plan.threads), TurnedTile(v, shared, KEYS, plan.threads, 2 * size)


def arrive() -> None:
    """Wait for the copies of all waves, and for their reads of what is copied to next."""
    fx.rocdl.s_waitcnt(0x0F70)
    fx.gpu.barrier()


@flyc.jit
def walk(step: Any, finish: Any, masked: Any, state: Any, last: Any) -> Any:
    """The state after tiles 0 to last - 1; `last` is even."""
    for pair in range((last - TAIL) >> 1):
        tile = fx.Int32(pair) * 2
        state = step(state, tile, 0, lambda scores, _: scores)
        state = step(state, tile + 1, 1, lambda scores, number: if_reached(scores, number, last, masked))
    for number in range_constexpr(TAIL - 1):
        state = step(state, last - TAIL + number, number & 1, masked)
    return finish(state, (TAIL - 1) & 1)


@flyc.jit
def if_reached(scores: Any, number: Any, last: Any, masked: Any) -> Any:
    """The scores, masked if the tile is one of the last ones."""
    if number >= last - TAIL:
        scores = masked(scores, number)
    return scores


@flyc.jit
def rescaled(sums: Any, factor: Any, lazy: bool) -> Any:
    """The sums times a factor; where that is lazy, only if some lane's is not 1."""
    if fx.const_expr(not lazy) or fx.rocdl.ballot(fx.T.i64, factor != 1.0) != 0:
        sums = [values * factor for values in sums]
    return sums


def by_turns(count: int) -> None:
    """Ask the scheduler for `count` matrix instructions, and vector instructions, by turns."""
    for _ in range(count):
        fx.rocdl.sched_mfma(1)
        fx.rocdl.sched_group_barrier(0x400, 2, 0)  # transcendental
        fx.rocdl.sched_group_barrier(0x2, 4, 0)  # vector
    fx.rocdl.sched_barrier(0)


@cache
def build_flash_attn_dualwave_swp_module(
    num_heads: int,
    head_dim: int,
    causal: bool = True,
    dtype_str: str = "bf16",
    num_kv_heads: int | None = None,
    waves_per_eu: int = 2,
    daz: bool = True,
    dualwave_swp_lazy_rescale: bool = True,
    dualwave_swp_setprio: bool = True,
    dualwave_swp_debug_lazy_counts: bool = False,
    dualwave_swp_enable_stagger: bool = True,
    num_kv_splits: int = 1,
    varlen: bool = False,
) -> Any:
    """The launcher (Q, K, V, O, batch, seq_len, stream, cu_seqlens_q, cu_seqlens_kv).

    head_dim: 128. dualwave_swp_lazy_rescale: as the module says; without it sums are multiplied for every tile.
    dualwave_swp_setprio, dualwave_swp_enable_stagger, daz: allowed, and of no consequence: waves are not told how to
    take turns. varlen: sequences of several lengths, at the places cu_seqlens_q (B + 1), of queries and keys; seq_len
    is that of the longest. Raises ArgumentError where sizes do not fit, and for num_kv_splits above 1 and
    dualwave_swp_debug_lazy_counts, which are unsupported.
    """
    require(head_dim == HEAD_DIM, f"head_dim={head_dim}", f"{HEAD_DIM}; flash_attn_generic has others")
    require(num_kv_splits == 1, f"num_kv_splits={num_kv_splits}", "unsupported; 1 is supported")
    require(not dualwave_swp_debug_lazy_counts, "dualwave_swp_debug_lazy_counts", "unsupported")
    plan = Plan(
        num_heads, num_kv_heads or num_heads, HEAD_DIM, HEAD_DIM, dtype_str, causal, 0, HEAD_DIM**-0.5, BLOCK_M
    )  # fmt: skip

    @flyc.jit
    def launch_flash_attn_gfx950(
        Q: fx.Tensor,
        K: fx.Tensor,
        V: fx.Tensor,
        O: fx.Tensor,
        batch: fx.Int32,
        seq_len: fx.Int32,
        stream: fx.Stream = fx.Stream(None),
        cu_seqlens_q: Any = (),
        cu_seqlens_kv: Any = (),
    ) -> None:
        require_types(plan, Q, K, V, O)
        given = [cu for cu in (cu_seqlens_q, cu_seqlens_kv) if not isinstance(cu, tuple)]
        if bool(given) != varlen:
            raise ArgumentError(f"varlen={varlen} with {len(given)} cu_seqlens", hint="cu_seqlens_q with varlen=True")
        cu_seqlens = (given[0], given[-1]) if given else ()
        attributes = {"rocdl.waves_per_eu": waves_per_eu, **QUIET}
        kernel = flash_attn_dualwave_swp_gfx950_kernel(
            Q, K, V, O, cu_seqlens, seq_len, plan, dualwave_swp_lazy_rescale, value_attrs=attributes
        )
        blocks = (seq_len + BLOCK_M - 1) // BLOCK_M
        kernel.launch(grid=(num_heads, blocks, batch), block=plan.threads, stream=stream)

    return launch_flash_attn_gfx950
