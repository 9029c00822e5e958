"""The two products of a mixture of experts on gfx1250, of fp8 and fp4 with a scale for each 32 elements of a row.

    gemm1 = compile_moe_gemm1(model_dim=D, inter_dim=I, experts=E, topk=k, tile_m=32, tile_n=128, tile_k=128,
                              doweight_stage1=False, in_dtype="fp8", out_dtype="bf16")
    w, scale_w = (paired_rows(rows, E, 128) for rows in (w1, scale_w1))
    gemm1(h, x, shuffle_weight(w), scale_x, scale_w, sorted_ids, expert_ids, sorted_weights, num_valid_ids, bias,
          T, I, D, blocks)

in_dtype: fp8 (activations and weights), fp4 (two to a byte), a8w4 (activations in fp8, weights in fp4). Scales are E8M0
bytes in rows: of activations (T, D / 32), and (T k, I / 32) in stage 2; of weights as `moe_gemm_2stage_common_gfx1250`
has them, which says how the weights lie in memory and what a workgroup does. The formulas are those of
`moe_gemm_2stage`, with numbers a 2^(scale - 127); a bias is added before the activation.

32 x 128 x 128 of fp8 in stage 1 by eight waves: 32 registers hold sums and 64 fragments.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from kernels.gemm_common_gfx1250 import scheduled
from kernels.gemm_fp8fp4_gfx1250 import FORMATS
from kernels.kernels_common import require
from kernels.moe_gemm_2stage import (
    compile_moe_reduction,
    reference1,
    reference2,
    stage_launcher,
    sum_by,
    tuned_stage,
)
from kernels.moe_gemm_2stage_common_gfx1250 import Plan, launch_tiles, paired_rows, plan_of
from kernels.silu_and_mul_fq import SWIGLU_LIMIT

__all__ = ["compile_moe_gemm1", "compile_moe_gemm2", "compile_moe_gemm2_ex", "compile_moe_reduction",
           "mxscale_moe_gemm_gfx1250", "paired_rows", "reference1", "reference2"]  # fmt: skip

# (T, D, I, E, k, tile_m).
SHAPES = ((1, 256, 128, 4, 2, 16), (33, 128, 128, 2, 1, 32), (9, 256, 128, 3, 2, 16))


@cache
def compile_moe_gemm1(
    *, model_dim: int, inter_dim: int, experts: int, topk: int, tile_m: int, tile_n: int, tile_k: int,
    doweight_stage1: bool, in_dtype: str = "fp4", out_dtype: str = "f16", waves_per_eu: int | None = None,
    expert_sched_mode: bool = True, num_buffers: int = 1, use_tdm_gather: bool = True, use_tdm_gather_as: bool = True,
    use_tdm_store: bool = False, inst_prefetch: bool = False, wave_specialized_tdm: bool = False, cluster_m: int = 1,
    cluster_n: int = 1, k_batch: int = 1, enable_bias: bool = False, act: str = "silu",
) -> Any:  # fmt: skip
    """The launcher of stage 1: (out, x, w, scale_x, scale_w, sorted_token_ids, expert_ids, sorted_weights,
    num_valid_ids, bias, tokens, inter_dim, model_dim, blocks, stream), every tensor flattened to one dimension.

    model_dim: a multiple of tile_k, a power of two from 128 on; inter_dim: of tile_n. out_dtype: f16, bf16. act: silu
    or swiglu. bias: f32 (E 2I), with enable_bias; otherwise any tensor. k_batch: workgroups that share a tile, along K;
    then out is (T k, 2 inter_dim), which the caller clears: the sums of gate and up are added to it, and act is left to
    the caller. num_buffers: places for tiles in shared memory, 1 to 4. The data mover always gathers the rows, and they
    leave from the registers: use_tdm_*, inst_prefetch and wave_specialized_tdm have no effect.
    Raises ArgumentError where sizes do not fit, and for clusters, which are unsupported.
    """
    require(out_dtype in ("f16", "bf16"), f"out_dtype={out_dtype!r} of stage 1", "f16 or bf16")
    require(act in ("silu", "swiglu"), f"act={act!r}", "silu or swiglu")
    _check(in_dtype, cluster_m, cluster_n)
    plan = plan_of(
        in_dtype, model_dim, (tile_m, tile_n, tile_k), out_dtype, num_buffers, columns=inter_dim, experts=experts,
        topk=topk, gated=True, weighted=doweight_stage1, accumulate=False, biased=enable_bias, k_batch=k_batch,
        swiglu_limit=SWIGLU_LIMIT if act == "swiglu" else None,
    )  # fmt: skip
    return _launcher(plan, waves_per_eu, expert_sched_mode)


@cache
def compile_moe_gemm2(
    *, model_dim: int, inter_dim: int, experts: int, topk: int, tile_m: int, tile_n: int, tile_k: int,
    doweight_stage2: bool, in_dtype: str = "fp4", out_dtype: str = "f16", accumulate: bool = True,
    waves_per_eu: int | None = None, expert_sched_mode: bool = True, num_buffers: int = 1, use_tdm_gather: bool = True,
    use_tdm_gather_as: bool = True, use_tdm_store: bool = False, inst_prefetch: bool = False,
    wave_specialized_tdm: bool = False, cluster_m: int = 1, cluster_n: int = 1, enable_bias: bool = False,
) -> Any:  # fmt: skip
    """The launcher of stage 2: (out, h, w, scale_h, scale_w, sorted_token_ids, expert_ids, sorted_weights,
    num_valid_ids, bias, tokens, model_dim, inter_dim, blocks, stream), every tensor flattened to one dimension.

    inter_dim: a multiple of tile_k; model_dim: of tile_n. out_dtype: f16, bf16, f32. accumulate: add the rows of a
    token to out (T, D), which the caller clears; otherwise write each to (T k, D). bias: (E D). The rest is as for
    stage 1.
    """
    _check(in_dtype, cluster_m, cluster_n)
    plan = plan_of(
        in_dtype, inter_dim, (tile_m, tile_n, tile_k), out_dtype, num_buffers, columns=model_dim, experts=experts,
        topk=topk, gated=False, weighted=doweight_stage2, accumulate=accumulate, biased=enable_bias,
    )  # fmt: skip
    return _launcher(plan, waves_per_eu, expert_sched_mode)


def compile_moe_gemm2_ex(**options: Any) -> Any:
    """Stage 2 with either way to sum; see `moe_gemm_2stage.compile_moe_gemm2_ex`."""
    return sum_by(compile_moe_gemm2, **options)


def _check(in_dtype: str, cluster_m: int, cluster_n: int) -> None:
    names = ", ".join(FORMATS)
    require(in_dtype in FORMATS, f"in_dtype={in_dtype!r}", f"{names}; moe_gemm_2stage_wmma_gfx1250 has fp16 and bf16")
    require(cluster_m == cluster_n == 1, f"clusters of {cluster_m} x {cluster_n} workgroups", "unsupported; 1 x 1 is")


def _launcher(plan: Plan, waves_per_eu: int | None, expert: bool) -> Any:
    launch = partial(launch_tiles, waves_per_eu=waves_per_eu)
    return scheduled(stage_launcher(plan, launch, ("bias",), name="launch_mxscale_moe_gemm"), expert)


# (out, ..., num_valid_ids, bias, tokens, plan, stream) with a tile (columns, bytes of activations) that is chosen by
# measurement. plan: of a stage, as `plan_of` gives it. Weights for activations of fp8 lie as their tile wants it: in
# stage 1 that is one of the plan's width.
mxscale_moe_gemm_gfx1250 = tuned_stage(
    "mxscale_moe_gemm_gfx1250", launch_tiles,
    [(columns, size) for columns in (64, 128, 256) for size in (64, 128, 256)], ("bias",),
    lambda configs, given: [
        config for config in configs
        if not (given["plan"].shuffled and given["plan"].gated) or config.kwargs["tile"][0] == given["plan"].tile_n
    ],
)  # fmt: skip
