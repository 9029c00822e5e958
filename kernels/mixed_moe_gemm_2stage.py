"""The two products of a mixture of experts with fp4 weights and fp4 or fp8 activations, or fp8 both, and micro-scales.

    gemm1 = compile_mixed_moe_gemm1(model_dim=D, inter_dim=I, experts=E, topk=k, tile_m=64, tile_n=256, tile_k=256,
                                    doweight_stage1=False, a_dtype="fp4", out_dtype="fp4")
    gemm1(h, x, w1, scale_x, scale_w1, sorted_ids, expert_ids, sorted_weights, num_valid_ids, bias, scale_h,
          T, 2 I, D, blocks)
    gemm2 = compile_mixed_moe_gemm2(..., doweight_stage2=True, a_dtype="fp4")
    gemm2(y, h, w2, scale_h, scale_w2, sorted_ids, expert_ids, sorted_weights, num_valid_ids, bias, T, D, I, blocks)

It is `moe_gemm_2stage` with the scaled matrix instructions of CDNA 4: 32 elements along K share a scale in E8M0.

| scales, bytes, shuffled as `shuffle_scale` does | rows |
|---|---|
| of activations | one for each entry of sorted_ids: `sorted_scales` |
| of w1 | (E 2I), of each expert 16 of the gate and 16 of up in turn: `interleaved_rows` |
| of w2 | (E D) |

Stage 1 can round its result to fp4 or fp8 itself. Then 32 columns share a scale, whose byte goes to the place where
stage 2 reads it (`silu_and_mul_fq` has the formulas). K is unrolled; a tile of A is loaded while one is multiplied.
With k_batch as many workgroups share a tile of stage 1 along K, and add their sums of gate and up to the result: in f32
as they are, in 16 bits as pairs that have met in shared memory.
"""

from __future__ import annotations

from enum import Enum
from functools import cache, partial
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr.buffer_ops import buffer_store

from .kernels_common import ceil_div, require, require_tensor
from .launches import for_waves
from .layout_utils import swizzled_blocks
from .mfma_preshuffle_pipeline import MxScales, main_loop, multiply_groups, require_types
from .mfma_products import THREADS
from .moe_gemm_2stage import OutputTile, Plan, plan_of, stage_launcher, tuned_stage, visit
from .moe_routes import Routes
from .moe_sorting_kernel import SLOT_SHIFT
from .quant import codes, e8m0, group_max, headroom
from .shuffles import shuffle_scale
from .silu_and_mul_fq import SWIGLU_LIMIT, scale_offset
from .tensor_shim import GTensor

GROUP = 32
BLOCK_ROWS = 16
LDS_BYTES = 160 * 1024  # of a compute unit
TYPES = {("fp4", "fp4"): "fp4", ("fp8", "fp4"): "fp8_fp4", ("fp8", "fp8"): "mxfp8"}  # of activations, weights
ROUNDED = {"fp4": 4, "fp8": 8}  # results of stage 1 with scales -> bits
# (T, D, I, E, k, tile_m).
SHAPES = ((1, 256, 256, 4, 2, 16), (40, 512, 256, 3, 2, 32), (33, 256, 512, 5, 3, 64))


class GateMode(Enum):
    """The order of the rows of gate and up in the weights of stage 1: all of one and then of the other, or 16 in turn.

    MOCK_GATE_ONLY is SEPARATED for parts of K.
    """

    SEPARATED = "separated"
    MOCK_GATE_ONLY = "mock_gate_only"
    INTERLEAVE = "interleave"


def interleaved_rows(rows: Any, experts: int) -> Any:
    """Rows (E 2I, ...), of each expert first the gate's, in the order of 16 of the gate and 16 of up in turn."""
    in_blocks = rows.view(experts, 2, -1, BLOCK_ROWS, *rows.shape[1:])
    return in_blocks.transpose(1, 2).reshape(rows.shape)


def sorted_scales(scales: Any, sorted_ids: Any, topk: int = 1) -> Any:
    """Scales (rows, K / 32) of activations, shuffled in the order of sorted_ids.

    topk: 1 for stage 1, where a token has one row; for stage 2 as many as it has slots.
    """
    token, slot = sorted_ids & ((1 << SLOT_SHIFT) - 1), sorted_ids >> SLOT_SHIFT
    row = token if topk == 1 else token * topk + slot
    exists = (row < len(scales)) & ((slot < topk) | (topk == 1))
    return shuffle_scale(scales[row.where(exists, 0)])


class RoundedOutputTile(OutputTile):
    """The result of stage 1 in 8 or 4 bits, with its scales."""

    def __init__(self, plan: Plan, routes: Routes, tensors: Any) -> None:
        super().__init__(plan, routes, tensors)
        self.bits, self.groups = ROUNDED[plan.out_dtype], ceil_div(plan.columns // GROUP, 8) * 8
        size = fx.Int64(routes.tokens) * (plan.topk * plan.columns * self.bits // 8)
        self.memory = GTensor(tensors["out"], fx.Int8, num_records_bytes=size)
        self.scale_out = GTensor(tensors["out_scale_sorted"], fx.Uint8)

    def put_through(self, number: Any, half: int, shared: Any) -> None:
        """Lanes that have 32 columns of a row find their scale."""
        plan, quant, width = self.plan, f"mx{self.plan.out_dtype}", 8

        def put(row_of_tile: Any, column: Any, values: Any, row: Any, exists: Any) -> None:
            values = fx.Vector(values)
            scale, factor = e8m0(group_max(values, GROUP // width), headroom(quant))
            place = (row * plan.columns + column) * self.bits // 8
            buffer_store(codes(values, factor, quant), self.memory.rsrc, place, mask=exists)
            scale = exists.select(scale, fx.Int32(0)).to(fx.Uint8)
            place = scale_offset(self.first_row + row_of_tile, column // GROUP, self.groups)
            buffer_store(scale, self.scale_out.rsrc, place, mask=column % GROUP == 0)

        self.store_through(shared, number, e_vec=width, put=put, target=self.target)


@flyc.kernel
def mixed_moe_gemm_kernel(
    tensors: Any, tokens: fx.Int32, blocks: fx.Int32, plan: fx.Constexpr[Plan], persist_m: fx.Constexpr[int]
) -> None:
    """The tiles of the result of persist_m blocks of rows, as far as they have any. tensors: by name."""
    require_types(plan.tiling.dtype, tensors["activations"], tensors["weights"])
    result = RoundedOutputTile if plan.out_dtype in ROUNDED else OutputTile
    number, tile = place_of(plan)
    if fx.const_expr(persist_m == 1):
        routes = Routes(plan, tensors, tokens, number, plan.blocks_of_unit, tile)
        visit(plan, routes, tensors, product_of_micro_scales, result)
    else:
        first = number * persist_m
        for block in range(first, fx.min(first + persist_m, blocks)):
            routes = Routes(plan, tensors, tokens, fx.Int32(block), plan.blocks_of_unit, tile)
            visit(plan, routes, tensors, product_of_micro_scales, result)
            fx.gpu.barrier()  # the next one's activations go where this one's result was


def place_of(plan: Plan) -> tuple[Any, Any]:
    """The workgroup's numbers along rows and columns, of the tiles that are computed."""
    x, y = fx.Int32(fx.block_idx.x), fx.Int32(fx.block_idx.y)
    if not plan.xcd_swizzle:
        return y, x
    columns = tiles_of_columns(plan)
    return swizzled_blocks(y * columns + x, fx.Int32(fx.grid_dim.y) * columns, columns, plan.xcd_swizzle)


def tiles_of_columns(plan: Plan) -> int:
    """The tiles along the columns that count."""
    return ceil_div(plan.columns - plan.padding, plan.tile_n)


def product_of_micro_scales(plan: Plan, routes: Routes, a: Any, b: Any, scales: tuple[Any, Any]) -> Any:
    """The sums of a tile."""
    place = (routes.block, routes.expert * (plan.columns // plan.tile_n) + routes.tile)
    micro = MxScales(
        plan.tiling, *scales, routes.sorted_rows, plan.experts * plan.rows_of_experts, place,
        plan.num_acc_n if plan.gated else 1,
    )  # fmt: skip

    def multiply(acc: Any, now_b: Any, now_scales: Any, fragment: Any, stage: int) -> Any:
        return multiply_groups(b, acc, now_b, fragment, micro.chooser(now_scales, stage))

    return main_loop(
        a, b, b.product.tile_of_zeros(plan.tiling), multiply, scales=micro.load, asynchronous=plan.asynchronous,
        hints=False, unroll=True,  # hints cost a third more registers here
        part=(fx.Int32(fx.block_idx.z), plan.k_batch),
    )  # fmt: skip


@cache
def compile_mixed_moe_gemm1(
    *, model_dim: int, inter_dim: int, experts: int, topk: int, tile_m: int, tile_n: int, tile_k: int,
    doweight_stage1: bool, a_dtype: str = "fp8", b_dtype: str = "fp4", out_dtype: str = "f16", act: str = "silu",
    use_cshuffle_epilog: bool | None = None, enable_bias: bool = False, model_dim_pad: int = 0, inter_dim_pad: int = 0,
    persist_m: int = 1, use_async_copy: bool = False, waves_per_eu: int | None = None, k_batch: int = 1, b_nt: int = 0,
    gate_mode: GateMode = GateMode.SEPARATED, a_scale_one: bool = False, xcd_swizzle: int = 0,
    swiglu_limit: float = 0.0, k_wave: int = 1,
) -> Any:  # fmt: skip
    """The launcher of stage 1: (out, x, w, scale_x, scale_w, sorted_token_ids, expert_ids, sorted_weights,
    num_valid_ids, bias, out_scale_sorted, tokens, 2 inter_dim, model_dim, blocks, stream), every tensor flattened.

    model_dim: a multiple of tile_k, which is one of 128; inter_dim: of tile_n. tile_m: the unit of the routing tables,
    16 or a multiple of 32. a_dtype, b_dtype: fp4 and fp4, fp8 and fp4, or fp8 both, whose paddings are whole tiles of
    K. out_dtype: f16, bf16, or fp4 and fp8 with scales in out_scale_sorted. act: silu or swiglu, whose limit is 7
    unless swiglu_limit says another. bias (E 2I) f32, with enable_bias. gate_mode: of the weights; the scales are as
    the module says. a_scale_one: the activations' scales are 1, whatever scale_x holds. persist_m: blocks of rows of a
    workgroup. waves_per_eu: waves of a SIMD, at most: a workgroup takes so much shared memory that no more of them
    share a compute unit; it may have all the registers that it needs. b_nt: the cache policy of the weights' loads, 0,
    or 2 for non-temporal ones. xcd_swizzle: times persist_m blocks of rows that the workgroups of a die take for each
    tile of columns; 0 for the grid's order.
    k_wave: waves that share columns, 1, 2 or 4. Each takes tile_k of every k_wave tile_k along K, and their sums meet
    in shared memory. A tile may be as narrow as 64 / k_wave columns, so that few tokens reach every compute unit. Needs
    results of 16 bits that go straight to memory.
    k_batch: workgroups that share a tile, along K. With more than one, out is (T k, 2 inter_dim) in f32, f16 or bf16,
    which the caller clears: gate and up are added to it, and act is left to `silu_and_mul_fq`, or the caller.
    model_dim_pad, inter_dim_pad: how many of the last columns are padding, multiples of 32. Those of x do not count,
    whatever x, w and the scales hold there. Of the result's, whole tiles are not computed, and others are what the
    weights in their place give. Raises ArgumentError where sizes do not fit.
    """
    types = ("f16", "bf16", "f32") if k_batch > 1 else ("f16", "bf16", *ROUNDED)
    require(out_dtype in types, f"out_dtype={out_dtype!r} of stage 1 with k_batch={k_batch}", f"one of {types}")
    require(act in ("silu", "swiglu"), f"act={act!r}", "silu or swiglu")
    rounded = out_dtype in ROUNDED
    widths = (64, 128, 256)[tile_m == 16 :]
    require(not rounded or tile_n in widths, f"{out_dtype} with {tile_m} x {tile_n}", f"tile_n is one of {widths}")
    plan = plan_of(
        _in_dtype(a_dtype, b_dtype), model_dim, (tile_m, tile_n, tile_k), columns=inter_dim, experts=experts, topk=topk,
        out_dtype=out_dtype, gated=True, weighted=doweight_stage1, out_types=types,
        cshuffle=rounded or (out_dtype != "f32" if k_batch > 1 else use_cshuffle_epilog), biased=enable_bias,
        swiglu_limit=(swiglu_limit or SWIGLU_LIMIT) if act == "swiglu" else None, asynchronous=use_async_copy,
        interleaved=gate_mode is GateMode.INTERLEAVE, k_batch=k_batch, paddings=(model_dim_pad, inter_dim_pad),
        waves_k=k_wave, b_policy=b_nt, xcd_swizzle=xcd_swizzle,
        lds_room=LDS_BYTES // (waves_per_eu + 1) + 1 if waves_per_eu else 0,
    )  # fmt: skip
    straight = k_wave == 1 or (k_batch == 1 and not plan.cshuffle)
    wanted = "alone, and results of 16 bits without use_cshuffle_epilog"
    require(straight, f"k_wave={k_wave} with k_batch={k_batch} and out_dtype={out_dtype!r}", wanted)
    require(k_wave == 1 or tile_k % 256 == 0, f"k_wave={k_wave} with tile_k={tile_k}", "a multiple of 256")
    alone = gate_mode is GateMode.MOCK_GATE_ONLY and k_batch == 1
    require(not alone, "MOCK_GATE_ONLY with k_batch=1", "SEPARATED, or parts of K")
    _check(plan, persist_m)
    launch = partial(launch_tiles, persist_m=persist_m, a_scale_one=a_scale_one)
    return stage_launcher(plan, launch, ("bias", "out_scale_sorted"), 2 * plan.columns, "launch_mixed_moe_gemm")


@cache
def compile_mixed_moe_gemm2(
    *, model_dim: int, inter_dim: int, experts: int, topk: int, tile_m: int, tile_n: int, tile_k: int,
    doweight_stage2: bool, a_dtype: str = "fp8", b_dtype: str = "fp4", out_dtype: str = "f16",
    use_cshuffle_epilog: bool | None = None, accumulate: bool = True, enable_bias: bool = False, model_dim_pad: int = 0,
    inter_dim_pad: int = 0, persist_m: int = 4, sort_block_m: int = 0, use_async_copy: bool = False,
    waves_per_eu: int | None = None, b_nt: int = 2, xcd_swizzle: int = 0,
) -> Any:  # fmt: skip
    """The launcher of stage 2: (out, h, w, scale_h, scale_w, sorted_token_ids, expert_ids, sorted_weights,
    num_valid_ids, bias, tokens, model_dim, inter_dim, blocks, stream), every tensor flattened.

    inter_dim: a multiple of tile_k, which is one of 128; model_dim: of tile_n, a multiple of 128. accumulate, out_dtype
    and use_cshuffle_epilog as of `compile_moe_gemm2`; the others, and what is raised, as of stage 1. bias (E D) f32.
    sort_block_m: the unit of the routing tables, a multiple of tile_m; 0 for it.
    """
    unit = sort_block_m or tile_m
    require(unit % tile_m == 0, f"sort_block_m={sort_block_m}", f"a multiple of tile_m={tile_m}, or 0 for it")
    plan = plan_of(
        _in_dtype(a_dtype, b_dtype), inter_dim, (tile_m, tile_n, tile_k), columns=model_dim, experts=experts, topk=topk,
        out_dtype=out_dtype, gated=False, weighted=doweight_stage2, accumulate=accumulate, cshuffle=use_cshuffle_epilog,
        biased=enable_bias, asynchronous=use_async_copy, blocks_of_unit=unit // tile_m,
        paddings=(inter_dim_pad, model_dim_pad), b_policy=b_nt, xcd_swizzle=xcd_swizzle,
    )  # fmt: skip
    _check(plan, persist_m)
    launch = partial(launch_tiles, persist_m=persist_m, waves_per_eu=waves_per_eu)
    return stage_launcher(plan, launch, ("bias",), name="launch_mixed_moe_gemm")


def launch_tiles(
    plan: Plan, tensors: dict[str, Any], tokens: Any, blocks: Any, stream: Any, persist_m: int = 1,
    waves_per_eu: int | None = None, a_scale_one: bool = False,
) -> None:  # fmt: skip
    """Launch a workgroup for every tile of columns and persist_m blocks of rows, inside a launcher."""
    _check(plan, persist_m)
    if a_scale_one:
        tensors = {name: tensor for name, tensor in tensors.items() if name != "scale_activations"}
    blocks, options = blocks * plan.blocks_of_unit, for_waves(waves_per_eu)
    kernel = mixed_moe_gemm_kernel(tensors, tokens, blocks, plan, persist_m, value_attrs=options)
    out = tensors["out"]
    require_tensor("out", out, out.dtype if plan.out_dtype in ROUNDED else plan.out_type)
    grid = (tiles_of_columns(plan), (blocks + (persist_m - 1)) // persist_m, plan.k_batch)
    kernel.launch(grid=grid, block=THREADS, stream=stream)


# (out, ..., num_valid_ids, bias, out_scale_sorted, tokens, plan, stream) with a tile (columns, bytes of A) of the
# tables, or chosen by measurement. plan: of a stage, as `plan_of` gives it.
mixed_moe_gemm = tuned_stage(
    "mixed_moe_gemm", launch_tiles, [(columns, size) for columns in (64, 128, 256) for size in (128, 256)],
    ("bias", "out_scale_sorted"), family="mixed_moe_gemm", check=lambda plan: _check(plan),
)  # fmt: skip


def _in_dtype(a_dtype: str, b_dtype: str) -> str:
    wanted = "activations of fp4 or fp8 and weights of fp4, or fp8 both"
    require((a_dtype, b_dtype) in TYPES, f"a_dtype={a_dtype!r}, b_dtype={b_dtype!r}", wanted)
    return TYPES[a_dtype, b_dtype]


def _check(plan: Plan, persist_m: int = 1) -> None:
    tiling = plan.tiling
    fits = tiling.tile_m == 16 or tiling.tile_m % 32 == 0
    require(fits, f"tile_m={tiling.tile_m}", "16, or a multiple of 32, which share words of scales")
    columns = 32 * tiling.waves_n
    require(tiling.tile_n % columns == 0, f"tile_n={plan.tile_n}", f"a multiple of {columns // plan.both}")
    require(tiling.tile_k % 128 == 0, f"tile_k={tiling.tile_k}", "a multiple of 128")
    require(plan.rows_of_experts % 32 == 0, f"{plan.columns} columns", "a multiple of 32")
    require(plan.xcd_swizzle >= 0, f"xcd_swizzle={plan.xcd_swizzle}", "0 or more")
    require(persist_m >= 1, f"persist_m={persist_m}", "at least 1")
    parts, tiles = plan.k_batch, tiling.tiles_k
    require(parts >= 1, f"k_batch={parts}", "at least 1")
    whole = tiles % parts == 0 and (parts == 1 or tiling.tile_k > 128 or tiles // parts % 2 == 0)
    require(whole, f"k_batch={parts} of {tiles} tiles", "parts of as many tiles, an even number of those of 128")
    early = parts > 1 and (plan.weighted or plan.biased)
    require(not early, f"k_batch={parts} with doweight_stage1 or enable_bias", "neither: the activation comes later")
