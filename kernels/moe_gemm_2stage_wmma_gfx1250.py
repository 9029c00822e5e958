"""The two products of a mixture of experts on gfx1250, of f16 or bf16: gate and up with silu, then down.

    gemm1 = compile_moe_gemm1(model_dim=D, inter_dim=I, experts=E, topk=k, tile_m=32, tile_n=128, tile_k=128,
                              doweight_stage1=False, in_dtype="bf16", out_dtype="bf16")
    gemm1(h, x, w1, none, none, sorted_ids, expert_ids, sorted_weights, num_valid_ids, T, I, D, blocks)

Formulas, arguments and results are those of `moe_gemm_2stage`, but for the weights, whose rows are not shuffled:
(E 2I, D), for each expert the gate's first, and (E D, I). There are no scales: pass any tensors in their place. A
workgroup computes as `moe_gemm_2stage_common_gfx1250` says, with the instruction for 32 columns of K, and one place in
shared memory.

32 x 128 x 128 of stage 1 by eight waves: 32 registers hold sums and 24 fragments.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from kernels.gemm_common_gfx1250 import scheduled
from kernels.kernels_common import require
from kernels.moe_gemm_2stage import (
    compile_moe_reduction,
    reference1,
    reference2,
    stage_launcher,
    sum_by,
    tuned_stage,
)
from kernels.moe_gemm_2stage_common_gfx1250 import HALVES, Plan, launch_tiles, plan_of

__all__ = ["compile_moe_gemm1", "compile_moe_gemm2", "compile_moe_gemm2_ex", "compile_moe_reduction",
           "moe_gemm_gfx1250", "reference1", "reference2"]  # fmt: skip

# (T, D, I, E, k, tile_m).
SHAPES = ((1, 128, 64, 4, 2, 16), (33, 64, 64, 2, 2, 32), (9, 128, 64, 5, 3, 16))


def _launch(
    plan: Plan, tensors: dict[str, Any], tokens: Any, blocks: Any, stream: Any, waves_per_eu: int | None = None
) -> None:
    """Without scales and bias, whose tensors are not read."""
    out, x, w = (tensors[name] for name in ("out", "activations", "weights"))
    unused = {"scale_activations": x, "scale_weights": w, "bias": out}
    launch_tiles(plan, {**tensors, **unused}, tokens, blocks, stream, waves_per_eu)


def _compiled(plan: Plan, waves_per_eu: int | None, expert: bool) -> Any:
    return scheduled(stage_launcher(plan, partial(_launch, waves_per_eu=waves_per_eu)), expert)


moe_gemm_gfx1250 = tuned_stage("moe_gemm_gfx1250", _launch, [(n, k) for n in (64, 128, 256) for k in (128, 256)])


@cache
def compile_moe_gemm1(
    *, model_dim: int, inter_dim: int, experts: int, topk: int, tile_m: int, tile_n: int, tile_k: int,
    doweight_stage1: bool, in_dtype: str = "fp16", group_size: int = -1, out_dtype: str = "f16",
    use_cshuffle_epilog: bool | None = None, scale_is_bf16: bool = False, k_batch: int = 1,
    waves_per_eu: int | None = None, expert_sched_mode: bool = True, num_buffers: int = 1,
) -> Any:  # fmt: skip
    """The launcher of stage 1: (out, x, w, scale_x, scale_w, sorted_token_ids, expert_ids, sorted_weights,
    num_valid_ids, tokens, inter_dim, model_dim, blocks, stream), every tensor flattened to one dimension.

    model_dim: a multiple of tile_k, a power of two from 32 on; inter_dim: of tile_n. in_dtype: fp16, bf16. out_dtype:
    f16, bf16. k_batch: workgroups that share a tile, along K; then out is (T k, 2 inter_dim), which the caller clears:
    the sums of gate and up are added to it. num_buffers: places for tiles in shared memory, 1 to 4.
    use_cshuffle_epilog has no effect. Raises ArgumentError where sizes do not fit, and for scales.
    """
    require(out_dtype in ("f16", "bf16"), f"out_dtype={out_dtype!r} of stage 1", "f16 or bf16")
    _require_plain(in_dtype, group_size, scale_is_bf16)
    plan = plan_of(
        in_dtype, model_dim, (tile_m, tile_n, tile_k), out_dtype, num_buffers, columns=inter_dim, experts=experts,
        topk=topk, gated=True, weighted=doweight_stage1, accumulate=False, k_batch=k_batch,
    )  # fmt: skip
    return _compiled(plan, waves_per_eu, expert_sched_mode)


@cache
def compile_moe_gemm2(
    *, model_dim: int, inter_dim: int, experts: int, topk: int, tile_m: int, tile_n: int, tile_k: int,
    doweight_stage2: bool, in_dtype: str = "fp16", group_size: int = -1, out_dtype: str = "f16",
    use_cshuffle_epilog: bool | None = None, accumulate: bool = True, scale_is_bf16: bool = False,
    waves_per_eu: int | None = None, expert_sched_mode: bool = True, num_buffers: int = 1,
) -> Any:  # fmt: skip
    """The launcher of stage 2: (out, h, w, scale_h, scale_w, sorted_token_ids, expert_ids, sorted_weights,
    num_valid_ids, tokens, model_dim, inter_dim, blocks, stream), every tensor flattened to one dimension.

    inter_dim: a multiple of tile_k; model_dim: of tile_n. out_dtype: f16, bf16, f32. accumulate: add the rows of a
    token to out (T, D), which the caller clears; otherwise write each to (T k, D). The rest is as for stage 1.
    """
    _require_plain(in_dtype, group_size, scale_is_bf16)
    plan = plan_of(
        in_dtype, inter_dim, (tile_m, tile_n, tile_k), out_dtype, num_buffers, columns=model_dim, experts=experts,
        topk=topk, gated=False, weighted=doweight_stage2, accumulate=accumulate,
    )  # fmt: skip
    return _compiled(plan, waves_per_eu, expert_sched_mode)


def compile_moe_gemm2_ex(**options: Any) -> Any:
    """Stage 2 with either way to sum; see `moe_gemm_2stage.compile_moe_gemm2_ex`."""
    return sum_by(compile_moe_gemm2, **options)


def _require_plain(in_dtype: str, group_size: int, scale_is_bf16: bool) -> None:
    names = ", ".join(HALVES)
    require(in_dtype in HALVES, f"in_dtype={in_dtype!r}", f"{names}; moe_gemm_2stage_mxscale_gfx1250 has fp8 and fp4")
    scales = group_size != -1 or scale_is_bf16
    require(not scales, f"group_size={group_size}, scale_is_bf16={scale_is_bf16} of {in_dtype}", "neither")
