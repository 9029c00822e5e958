"""O = softmax(Q K^T / sqrt(128)) V for every head, forward, in a pipeline for CDNA 4; head size 128.

    launch = build_flash_attn_dualwave_swp_module(num_heads=32, num_kv_heads=8, head_dim=128, dtype_str="bf16")
    launch(Q, K, V, O, batch, seq_len)

Operands are those of `flash_attn_generic`, with as many keys as queries. What differs is how a tile moves. It goes
straight to shared memory, in two buffers, and values are turned when they are read (ds_read_b64_tr_b16). A step has
four phases, with a barrier before each:

    reads of the keys of tile j + 1, copies of the values of tile j + 1     shared memory
    scores of tile j + 1, powers of the second half of tile j               matrix and vector instructions by turns
    reads of the values of tile j, copies of the keys of tile j + 3         shared memory
    O += P V of tile j, powers of the first half of tile j + 1              matrix and vector instructions by turns

Of the two waves of a SIMD, one is a phase behind the other, so that one reads while the other multiplies. A phase ends
when its reads are done, so that a copy overwrites nothing that is still to be read. Sums are multiplied by what a new
maximum makes of the old ones only if some query's has risen by more than 2^8. Tiles are taken in pairs, one for each
buffer; the last four, which have the masks, are unrolled.

Few queries with many keys leave most of a GPU idle. With num_kv_splits as many workgroups share the keys of a block of
queries, in parts of an even number of tiles, at least four. Each writes its own result to a workspace, with the largest
score and the sum of its powers, and a second kernel takes their mean:

    O = sum of w_i O_i / sum of w_i, w_i = 2^(top_i - top) total_i        32 lanes for a row, all parts loaded at once

bf16, causal: 238 VGPRs, 64 of which hold sums, 64 keys or values, 32 queries, 32 scores and 16 P; two waves per SIMD.
By the model, long sequences without a mask take as long as the GPU's power lets matrix cores need for them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial, reduce
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr import range_constexpr
from kernels import attention_common as common
from kernels.attention_common import KEYS, Product32, inverse, multiply_fragments, weights, zeros
from kernels.attention_heads import (
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
from kernels.kernels_common import LOG2_E, element_type, require, rounded
from kernels.launches import for_waves, launch_some, launcher
from kernels.mfma_products import is_cdna4
from kernels.pipeline_utils import vmcnt
from kernels.sizes import require_elements
from kernels.tensor_shim import GTensor

__all__ = ["build_flash_attn_dualwave_swp_module", "reference", "workspace_size"]

HEAD_DIM, BLOCK_M = 128, 256
BLOCKS, COLUMNS = range(2), range(4)  # of 32 keys and of 32 columns
LDS_COUNTER = 0xF00  # of s_waitcnt
# See `by_turns`.
TURNS_OF_SCORES = ((16, 1, 2),)
TURNS_OF_SUMS = ((6, 0, 5), (10, 2, 3))
TAIL = 4  # tiles that may be masked
LAZY = 8.0  # in units of log2
LANES = 32  # of what combines the parts of a row
COMBINE_THREADS = 256
TOTALS = 4  # 16-bit elements that a row's largest score and sum take in the workspace
# (B, S, H, Hkv): one query, two tiles, one query beyond a block, two blocks.
SHAPES = ((2, 1, 1, 1), (1, 127, 2, 1), (1, 257, 1, 1), (1, 512, 1, 1))


@flyc.kernel
def flash_attn_dualwave_swp_gfx950_kernel(
    tensors: Any, cu_seqlens: Any, seq_len: fx.Int32, workspace: Any, plan: fx.Constexpr[Plan],
    lazy: fx.Constexpr[bool], splits: fx.Constexpr[int],
) -> None:  # fmt: skip
    """The result of 256 queries of a head, if the sequence has as many; with several splits that of some keys."""
    require(is_cdna4(), "flash_attn_gfx950 for another architecture", "flash_attn_generic runs on every CDNA")
    place, number, share = (fx.Int32(i) for i in fx.block_idx)
    batch, part = (share, fx.Int32(0)) if splits == 1 else (share // splits, share % splits)
    # Neighbours do not share their keys.
    head = place % plan.kv_heads * (plan.heads // plan.kv_heads) + place // plan.kv_heads
    if fx.const_expr(plan.causal):
        number = fx.Int32(fx.grid_dim.y) - 1 - number
    sequence = Sequence.of(batch, seq_len, seq_len, cu_seqlens)
    first = number * plan.block_m
    if not cu_seqlens or first < sequence.count:
        Q, K, V, O = tensors.values()
        block = DualWave(plan, lazy, sequence, head, first, Q, K, V)
        sums, top, total = block.attend(part, splits)
        if fx.const_expr(splits == 1):
            block.queries.store(O, sums, inverse(total))
        else:
            put_share(block.queries, workspace, share, sums, top, total)


class DualWave:
    """The queries from `first` on of a head, and the tiles of the keys that they see."""

    def __init__(
        self, plan: Plan, lazy: bool, sequence: Sequence, head: Any, first: Any, Q: Any, K: Any, V: Any
    ) -> None:
        self.plan, self.lazy, self.product = plan, lazy, Product32.of(plan.dtype)
        self.keys = Keys(plan, sequence, first)
        self.queries = Queries(plan, sequence, head, first)
        k, v = rows_of_keys(plan, sequence, head, self.keys.end, K, V)
        # Two buffers of keys, and two of values.
        size = KEYS * HEAD_DIM * 2
        shared = fx.SharedAllocator().allocate(4 * size, 128).peek().ptr
        self.k = common.CopiedTile(k, shared, KEYS, plan.threads)
        self.v = common.TurnedTile(v, shared, KEYS, plan.threads, 2 * size)
        self.q, self.bounds = self.queries.load(Q), self.keys.of_query(self.queries.number)
        self.scale = fx.Float32(plan.scale * LOG2_E)

    def masked(self, scores: Any, tile: Any, partial: Any = True) -> Any:
        """The scores of a tile; if partial, without those of keys that the query does not see."""
        return common.masked(scores, partial, self.bounds, tile * KEYS + self.queries.half * common.CHUNK)

    def scores(self, stage: int) -> Any:
        """The scores of the keys in a buffer."""
        return multiply_fragments(self.product, self.k.fragments(stage, BLOCKS), self.q, [zeros(), zeros()])

    def step(self, state: Any, tile: Any, stage: int, mask: Any) -> Any:
        """From the scores of a tile, whose values are in buffer `stage`, to those of the next one."""
        sums, top, total, factor, shift, p, late = state
        arrive()
        keys = self.k.fragments(stage ^ 1, BLOCKS)
        fx.rocdl.sched_barrier(0)
        self.v.copy(tile + 1, stage ^ 1)
        arrive()
        scores = multiply_fragments(self.product, keys, self.q, [zeros(), zeros()])
        rest, total = self.powers(late, shift, total)
        by_turns(*TURNS_OF_SCORES)
        arrive()
        values = self.v.fragments(stage, COLUMNS)
        fx.rocdl.sched_barrier(0)
        self.k.copy(tile + 3, stage ^ 1)
        before: Any = rescaled(sums, factor, self.lazy)
        arrive()
        scores = mask(scores, tile + 1)
        sums = multiply_fragments(self.product, values, [*p, *rest], before)
        top, factor, shift = common.top_of(scores, self.scale, top, LAZY if self.lazy else 0.0)
        p, total = self.powers(scores[0], shift, total * factor)
        by_turns(*TURNS_OF_SUMS)
        return sums, top, total, factor, shift, p, scores[1]

    def powers(self, scores: Any, shift: Any, total: Any) -> tuple[list[Any], Any]:
        """(P of a block of keys, the sum of powers with these)."""
        powers = common.powers_of([scores], self.scale, shift)
        return [here(chunk) for chunk in weights(powers, self.plan.dtype)], here(total + common.sum_of(powers))

    def finish(self, state: Any, stage: int) -> Any:
        """(sums, top, total) after the last tile."""
        sums, top, total, factor, shift, p, late = state
        arrive(0)
        rest, total = self.powers(late, shift, total)
        before: Any = rescaled(sums, factor, self.lazy)
        arrive(0)
        values = self.v.fragments(stage, COLUMNS)
        return multiply_fragments(self.product, values, [*p, *rest], before), top, total

    def attend(self, part: Any, parts: int) -> tuple[list[Any], Any, Any]:
        """(the queries' sums, their largest score in units of log2, the sums of their powers) of a part of the keys."""
        start, last = tiles_of(self.keys.last_tile, part, parts)
        self.k.copy(start, 0)
        self.k.copy(start + 1, 1)
        self.v.copy(start, 0)
        arrive(4)
        scores = self.masked(self.scores(0), start)
        arrive(4)
        self.k.copy(start + 2, 0)
        top, _, shift = common.top_of(scores, self.scale, fx.Float32(common.LOWEST))
        p, total = self.powers(scores[0], shift, fx.Float32(0.0))
        nothing = [zeros() for _ in range(self.plan.width // 32)]
        state = nothing, top, total, fx.Float32(1.0), shift, p, scores[1]
        is_late = fx.rocdl.readfirstlane(fx.thread_idx.x) >= self.plan.threads // 2
        let_wait(is_late)
        result: Any = walk(self.step, self.finish, self.masked, state, start, last)
        let_wait(~is_late)
        sums, top, total = result
        return sums, top * self.scale, common.both_halves(total, fx.arith.addf)


def tiles_of(count: Any, part: Any, parts: int) -> tuple[Any, Any]:
    """(first, after the last) tile of a part of `count` tiles: an even number of them, at least TAIL.

    The parts are of one length, except for the last ones, some of which may begin after the last tile.
    """
    pairs = (count + 1) >> 1
    if parts == 1:
        return fx.Int32(0), (pairs > TAIL // 2).select(pairs * 2, fx.Int32(TAIL))
    length = fx.max((pairs + (parts - 1)) // parts * 2, fx.Int32(TAIL))
    first = part * length
    return first, fx.max(fx.min(first + length, pairs * 2), first + TAIL)


def put_share(queries: Queries, workspace: Any, share: Any, sums: list[Any], top: Any, total: Any) -> None:
    """Write what a part of the keys gives to place number `share` of the workspace.

    It has rows of O (shares, S, H, 128), and then pairs (shares, S, H) of the largest score and the sum of powers.
    """
    plan, sequence, first = queries.plan, queries.sequence, queries.first
    of_share = replace(sequence, first=fx.Int64(share) * sequence.count)
    Queries(plan, of_share, queries.head, first).store(workspace, sums, inverse(total))
    behind = fx.Int64(fx.grid_dim.z) * sequence.count * (HEAD_DIM // TOTALS)  # in rows of pairs
    totals = common.HeadRows(workspace, plan.heads, TOTALS, queries.head, of_share.first + behind, sequence.count)
    value = (queries.half == 0).select(top, total)  # the two lanes of a query have the same ones
    totals.view(first, plan.block_m).store((queries.number, queries.half), value.bitcast(fx.Int32))


@flyc.kernel
def flash_attn_splitk_combine_kernel(
    O: fx.Tensor, workspace: fx.Tensor, rows: fx.Int32, splits: fx.Constexpr[int], dtype: fx.Constexpr[str]
) -> None:
    """Rows of O of a batch: the mean of the parts, weighted by their sums of powers. rows: of a batch."""
    batch, kind, thread = fx.Int32(fx.block_idx.y), element_type(dtype), fx.Int32(fx.thread_idx.x)
    row = fx.Int32(fx.block_idx.x) * (COMBINE_THREADS // LANES) + thread // LANES
    place, behind = (row, thread % LANES * 2), fx.Int64(fx.grid_dim.y * splits) * rows * (HEAD_DIM // TOTALS)

    def rows_of(tensor: Any, share: Any, first: Any = 0, width: int = HEAD_DIM) -> GTensor:
        return common.HeadRows(tensor, 1, width, 0, first + fx.Int64(share) * rows, rows).view(0, rows)

    values, totals = [], []
    for part in range_constexpr(splits):
        share = batch * splits + part
        values.append(fx.Vector(rows_of(workspace, share).vec_load(place, 2)).bitcast(kind).to(fx.Float32))
        pair = rows_of(workspace, share, behind, TOTALS).vec_load((row, 0), 2)
        totals.append(fx.Vector(pair).bitcast(fx.Float32))
    top = reduce(fx.maxnumf, [pair[0] for pair in totals])
    shares = [fx.exp2(pair[0] - top, fastmath="afn") * pair[1] for pair in totals]
    weighted = [value * share for value, share in zip(values, shares, strict=True)]
    mean = reduce(fx.arith.addf, weighted) * inverse(reduce(fx.arith.addf, shares))
    rows_of(O, batch).vec_store(place, rounded(mean, kind).bitcast(fx.Int32))


def here(values: Any) -> Any:
    """The same numbers, of which the compiler knows only that they are needed here: it makes them in no later block."""
    from flydsl._mlir.dialects import llvm  # type: ignore[attr-defined]  # a module that is made when it is imported

    kept = llvm.inline_asm(values.type, [values], "", "=v,0", has_side_effects=True)
    return type(values)(kept)


def arrive(copies: int = 2) -> None:
    """Wait for other waves, and before that for what this one reads and copies, but for the last copies."""
    fx.rocdl.s_waitcnt(vmcnt(copies) & ~LDS_COUNTER)
    fx.rocdl.s_barrier()
    fx.rocdl.sched_barrier(0)


@flyc.jit
def let_wait(some: Any) -> None:
    """Let some waves arrive once more than the others do."""
    if some:
        arrive()


@flyc.jit
def walk(step: Any, finish: Any, masked: Any, state: Any, first: Any, last: Any) -> Any:
    """The state after tiles first to last - 1; both are even."""
    for pair in range((last - first - TAIL) >> 1):
        tile = first + fx.Int32(pair) * 2
        state = step(state, tile, 0, lambda scores, _: scores)
        state = step(state, tile + 1, 1, lambda scores, number: masked(scores, number, number >= last - TAIL))
    for number in range_constexpr(TAIL - 1):
        state = step(state, last - TAIL + number, number & 1, masked)
    return finish(state, (TAIL - 1) & 1)


@flyc.jit
def rescaled(sums: Any, factor: Any, lazy: bool) -> Any:
    """The sums times a factor; where that is lazy, only if some lane's is not 1."""
    if fx.const_expr(not lazy) or fx.rocdl.ballot(fx.T.i64, factor != 1.0) != 0:
        sums = [values * factor for values in sums]
    return sums


def by_turns(*turns: tuple[int, int, int]) -> None:
    """Ask the scheduler for (count) matrix instructions, each with (transcendental, vector) ones after it."""
    for count, transcendental, vector in turns:
        for _ in range(count):
            fx.rocdl.sched_mfma(1)
            fx.rocdl.sched_group_barrier(0x400, transcendental, 0)
            fx.rocdl.sched_group_barrier(0x2, vector, 0)
    fx.rocdl.sched_barrier(0)


def workspace_size(num_kv_splits: int, batch: int, seq_len: int, num_heads: int) -> int:
    """The least number of f32 in the workspace of several splits."""
    return num_kv_splits * batch * seq_len * num_heads * (HEAD_DIM + TOTALS) // 2


@cache
def build_flash_attn_dualwave_swp_module(
    num_heads: int, head_dim: int, causal: bool = True, dtype_str: str = "bf16", num_kv_heads: int | None = None,
    waves_per_eu: int = 2, daz: bool = True, dualwave_swp_lazy_rescale: bool = True, dualwave_swp_setprio: bool = True,
    dualwave_swp_debug_lazy_counts: bool = False, dualwave_swp_enable_stagger: bool = True, num_kv_splits: int = 1,
    varlen: bool = False,
) -> Any:  # fmt: skip
    """The launcher (Q, K, V, O, batch, seq_len, stream, cu_seqlens_q, cu_seqlens_kv, workspace).

    head_dim: 128. dualwave_swp_lazy_rescale: as the module says; without it sums are multiplied for every tile.
    dualwave_swp_setprio, dualwave_swp_enable_stagger, daz: allowed, and of no consequence: waves are not told how to
    take turns. varlen: sequences of several lengths, at the places cu_seqlens_q (B + 1), of queries and keys; seq_len
    is that of the longest. num_kv_splits: workgroups that share the keys of a block of queries, not with varlen; with
    more than one the launcher needs a workspace of `workspace_size` f32, whatever they are. Raises ArgumentError where
    sizes do not fit, and for dualwave_swp_debug_lazy_counts, which is unsupported.
    """
    require(head_dim == HEAD_DIM, f"head_dim={head_dim}", f"{HEAD_DIM}; flash_attn_generic has others")
    require(num_kv_splits >= 1, f"num_kv_splits={num_kv_splits}", "at least 1")
    require(num_kv_splits == 1 or not varlen, f"num_kv_splits={num_kv_splits} with varlen", "sequences of one length")
    require(not dualwave_swp_debug_lazy_counts, "dualwave_swp_debug_lazy_counts", "unsupported")
    plan = Plan(
        heads=num_heads,
        kv_heads=num_kv_heads or num_heads,
        head_dim=HEAD_DIM,
        width=HEAD_DIM,
        dtype=dtype_str,
        causal=causal,
        window=0,
        scale=HEAD_DIM**-0.5,
        block_m=BLOCK_M,
    )

    sizes = {"batch": fx.Int32, "seq_len": fx.Int32}
    pipeline = partial(launch, plan, waves_per_eu, dualwave_swp_lazy_rescale, num_kv_splits, varlen)
    return launcher("launch_flash_attn_gfx950", "Q K V O", pipeline, **sizes, **CU_SEQLENS, workspace=(Any, ()))


def launch(
    plan: Plan, waves_per_eu: int, lazy: bool, splits: int, varlen: bool, tensors: dict[str, Any], batch: Any,
    seq_len: Any, stream: Any, starts: Any = (), of_keys: Any = (), workspace: Any = (),
) -> None:  # fmt: skip
    """Launch a workgroup for every block of queries of every head. See `build_flash_attn_dualwave_swp_module`."""
    cu_seqlens = starts_of_sequences(starts, of_keys)
    wanted = "cu_seqlens_q with varlen=True, and only with it"
    require(bool(cu_seqlens) == varlen, f"varlen={varlen} with {len(cu_seqlens) // 2} cu_seqlens", wanted)
    require_operands(plan, tensors, cu_seqlens, batch, seq_len, seq_len)
    require_workspace(splits, workspace, batch * seq_len * workspace_size(splits, 1, 1, plan.heads))
    kernel = flash_attn_dualwave_swp_gfx950_kernel(
        tensors, cu_seqlens, seq_len, workspace, plan, lazy, splits,
        value_attrs={**for_waves(waves_per_eu), **common.QUIET},
    )  # fmt: skip
    blocks = (seq_len + BLOCK_M - 1) // BLOCK_M
    launch_some(kernel, batch * blocks, (plan.heads, blocks, batch * splits), plan.threads, stream)
    if splits > 1:
        launch_combine(tensors["O"], workspace, seq_len * plan.heads, splits, plan.dtype, batch, stream)


def launch_combine(O: Any, workspace: Any, rows: Any, splits: int, dtype: str, batch: Any, stream: Any) -> None:
    """Make O of what the parts of the keys gave. rows: of queries and heads, in each batch."""
    at_a_time = COMBINE_THREADS // LANES
    kernel = flash_attn_splitk_combine_kernel(O, workspace, rows, splits, dtype)
    groups = (rows + (at_a_time - 1)) // at_a_time
    launch_some(kernel, batch * rows, (groups, batch), COMBINE_THREADS, stream)


def require_workspace(splits: int, workspace: Any, size: Any) -> None:
    """Refuse anything but a workspace of that many f32 with several splits, and none without."""
    given = not isinstance(workspace, tuple)
    wanted = "workspace=, of as many f32 as workspace_size says" if splits > 1 else "none: no splits share keys"
    require(given == (splits > 1), f"num_kv_splits={splits} {'with' if given else 'without'} a workspace", wanted)
    if given:
        require_elements("workspace", workspace, size, fx.Float32, or_more=True)
