"""The two products of a mixture of experts, of fp8 with a scale for 1 x 128 of activations and 128 x 128 of weights.

    gemm1 = compile_moe_blockscale_gemm1(model_dim=D, inter_dim=I, experts=E, topk=k, tile_m=16, tile_n=256, tile_k=128,
                                         doweight_stage1=False, waves_per_eu=2)
    gemm1(h, x, w1, scale_x, scale_w1, sorted_ids, expert_ids, sorted_weights, num_valid_ids, T, I, D, blocks)

| scales, f32 | stage 1 | stage 2 |
|---|---|---|
| of activations | (D/128, T) | (I/128, T k) |
| of weights | (E, 2I/128, D/128) | (E, D/128, I/128) |

It is `moe_gemm_2stage` with the loop of `blockscale_preshuffle_gemm`: the matrix instructions sum up a block of 128
along K, which is scaled and added to the total in f32. Scales are loaded when their tile begins, those of activations
by each lane for its four rows, wherever these are. Between the stages h is rounded to fp8 again, with a scale for 128
columns: `quant.build_block_quant_module` does that.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import flydsl.expr as fx

from . import moe_gemm_2stage as experts_gemm
from .blockscale_preshuffle_gemm import BLOCK, multiply_blocks
from .kernels_common import require
from .mfma_preshuffle_pipeline import main_loop
from .mfma_products import WAVES, is_cdna4
from .moe_common import compile_moe_reduction
from .moe_gemm_2stage import Plan
from .moe_routes import Routes
from .tensor_shim import GTensor

__all__ = ["compile_moe_blockscale_gemm1", "compile_moe_blockscale_gemm2", "compile_moe_reduction", "expanded"]

# (T, D, I, E, k, tile_m).
SHAPES = ((1, 256, 128, 4, 2, 16), (33, 256, 256, 3, 2, 16), (20, 384, 128, 5, 3, 32))


def expanded(rows: Any, scales: Any, block_rows: int = 1) -> Any:
    """The numbers, in f32, of fp8 (rows, K) with scales (rows / block_rows, K / 128)."""
    of_rows = scales.repeat_interleave(block_rows, -2)[..., : rows.shape[-2], :]
    return rows.float() * of_rows.repeat_interleave(BLOCK, -1)


class RoutedScales:
    """The factors of the rows and of the columns of a wave's tile."""

    def __init__(self, plan: Plan, routes: Routes, scales: Any) -> None:
        scale_a, scale_w = scales
        self.plan, self.rows = plan, routes.sources
        self.blocks_k = plan.k // BLOCK
        per_expert = plan.rows_of_experts // BLOCK * self.blocks_k
        self.a = GTensor(scale_a, fx.Float32, num_records_bytes=self.rows * (self.blocks_k * 4))
        self.w = GTensor(scale_w, fx.Float32, num_records_bytes=plan.experts * per_expert * 4)
        ids = routes.of_lane(routes.ids, plan.tiling.m_repeat)
        self.sources = [[routes.source(row_id) for row_id in four] for four in ids]
        column = fx.Int32(fx.block_idx.x) * plan.tile_n + (fx.Int32(fx.thread_idx.x) >> 6) * (plan.tile_n // WAVES)
        first_w = routes.expert * per_expert + (column // BLOCK) * self.blocks_k
        self.firsts_w = [first_w + half // BLOCK * self.blocks_k for half in plan.halves]
        self.blocks = plan.tiling.tile_k // BLOCK  # along K of a tile
        self.loads = self.blocks * (plan.tiling.m_repeat * 4 + len(self.firsts_w))  # of a lane for a tile

    def load(self, k: Any) -> Any:
        """The operands of `multiply_blocks` for tile k."""
        blocks = [k * self.blocks + block for block in range(self.blocks)]
        return [self._of_rows(block) for block in blocks], [self._of_columns(block) for block in blocks]

    def _of_rows(self, block: Any) -> list[Any]:
        step = block * (self.rows * 4)
        return [
            fx.Vector.from_elements([self.a.vec_load(row, 1, soffset_bytes=step) for row in four], fx.Float32)
            for four in self.sources
        ]

    def _of_columns(self, block: Any) -> list[Any]:
        """[ni]: of the gate and, after it, of up."""
        return [factor for first in self.firsts_w for factor in [self.w.load(first + block)] * self.plan.num_acc_n]


def product_of_blocks(plan: Plan, routes: Routes, a: Any, b: Any, scales: tuple[Any, Any]) -> Any:
    """The sums of a tile."""
    factors = RoutedScales(plan, routes, scales)

    def multiply(acc: Any, now_b: Any, now_scales: Any, fragment: Any, stage: int) -> Any:
        return multiply_blocks(b, acc, now_b, factors.load(now_scales), fragment, rows_at_a_time=1)

    return main_loop(
        a, b, b.product.tile_of_zeros(plan.tiling), multiply,
        scales=lambda k, stage, before: fx.Int32(k), extra_loads=factors.loads, ahead=(int(is_cdna4()), 0),
    )  # fmt: skip


_launch = partial(experts_gemm.launch_tiles, product=product_of_blocks)
moe_blockscale_gemm = experts_gemm.tuned_stage(
    "moe_blockscale_gemm", _launch, [(n, 128) for n in (64, 128, 256)], family="moe_gemm",
)  # fmt: skip


@cache
def compile_moe_blockscale_gemm1(
    *, model_dim: int, inter_dim: int, experts: int, topk: int, tile_m: int, tile_n: int, tile_k: int,
    doweight_stage1: bool, scale_block_k: int = BLOCK, out_dtype: str = "f16", use_cshuffle_epilog: bool | None = None,
    waves_per_eu: int | None = None,
) -> Any:  # fmt: skip
    """The launcher of stage 1, with the arguments and results of `compile_moe_gemm1`'s.

    inter_dim: a multiple of 128 and tile_n; model_dim: of tile_k, which is one of 128. Raises ArgumentError otherwise.
    """
    return _compile_stage(
        model_dim, (tile_m, tile_n, tile_k), scale_block_k, waves_per_eu, columns=inter_dim, experts=experts, topk=topk,
        out_dtype=out_dtype, gated=True, weighted=doweight_stage1, cshuffle=use_cshuffle_epilog,
    )  # fmt: skip


@cache
def compile_moe_blockscale_gemm2(
    *, model_dim: int, inter_dim: int, experts: int, topk: int, tile_m: int, tile_n: int, tile_k: int,
    doweight_stage2: bool, scale_block_k: int = BLOCK, out_dtype: str = "f16", use_cshuffle_epilog: bool | None = None,
    accumulate: bool = True, waves_per_eu: int | None = None,
) -> Any:  # fmt: skip
    """The launcher of stage 2, with the arguments and results of `compile_moe_gemm2`'s.

    model_dim: a multiple of 128 and tile_n; inter_dim: of tile_k, which is one of 128. Raises ArgumentError otherwise.
    """
    return _compile_stage(
        inter_dim, (tile_m, tile_n, tile_k), scale_block_k, waves_per_eu, columns=model_dim, experts=experts, topk=topk,
        out_dtype=out_dtype, gated=False, weighted=doweight_stage2, accumulate=accumulate, cshuffle=use_cshuffle_epilog,
    )  # fmt: skip


def _compile_stage(
    k: int, tile: tuple[int, int, int], scale_block_k: int, waves_per_eu: int | None, **known: Any
) -> Any:
    _, tile_n, tile_k = tile
    require(scale_block_k == BLOCK, f"scale_block_k={scale_block_k}", str(BLOCK))
    require(tile_k % BLOCK == 0, f"tile_k={tile_k}", f"a multiple of {BLOCK}")
    require(BLOCK % (tile_n // WAVES) == 0, f"tile_n={tile_n}", "64, 128, 256 or 512")
    require(known["columns"] % BLOCK == 0, f"{known['columns']} columns", f"a multiple of {BLOCK}")
    plan = experts_gemm.plan_of("fp8", k, tile, scaled=False, **known)
    return experts_gemm.stage_launcher(plan, partial(_launch, waves_per_eu=waves_per_eu))
