"""Products of a mixture of experts on gfx1250, one block of rows each. Widths are the original's."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from kernels import moe_gemm_2stage_mxscale_gfx1250 as mx_experts
from kernels import moe_gemm_2stage_wmma_gfx1250 as experts
from kernels.gemm_fp8fp4_gfx1250 import FORMATS
from tests.kernels.cases import Case
from tests.kernels.cases.gfx1250 import ARCHS
from tests.kernels.cases.moe import one_block
from tests.kernels.gemm import TYPES


def moe(
    stage: int, dtype: str, tile: tuple[int, int, int], width: tuple[int, int, int], options: dict[str, Any]
) -> tuple[Any, tuple[Any, ...]]:
    """One block of rows. width: D, I, k."""
    (tile_m, tile_n, tile_k), (d, i, topk), scaled = tile, width, dtype in FORMATS
    module, bits = mx_experts if scaled else experts, FORMATS.get(dtype, (16, 16))
    sizes = {"tile_m": tile_m, "tile_n": tile_n, "tile_k": tile_k, "experts": topk, "topk": topk}
    sizes |= {"model_dim": d, "inter_dim": i, "in_dtype": dtype, f"doweight_stage{stage}": stage == 2} | options
    launch = module.compile_moe_gemm1(**sizes) if stage == 1 else module.compile_moe_gemm2(**sizes)
    (n, k), tokens = ((i, d), (d, i))[stage - 1], tile_m // topk or 1
    rows, columns = tokens * (1 if stage == 1 else topk), topk * n * (2 if stage == 1 else 1)
    kind = torch.uint8 if scaled else TYPES[dtype]
    a, w = (
        torch.zeros(x * k * b // (8 if scaled else 16), dtype=kind) for x, b in zip((rows, columns), bits, strict=True)
    )
    scales = (torch.full((x * k // 32,), 127, dtype=torch.uint8) for x in (rows, columns))
    out = torch.zeros(tokens * topk * n, dtype=torch.float16)
    bias = (torch.zeros(1),) if scaled else ()
    return launch, (out, a, w, *scales, *one_block(tile_m, topk, tokens), *bias, tokens, n, k, 1)


def of_experts(
    name: str, tile: tuple[int, int, int], width: tuple[int, int, int] = (1024, 256, 2), **options: Any
) -> dict[str, Case]:
    """A case. name: as moemx1_fp8_32x128x128_b1."""
    family, dtype = name.split("_")[:2]
    kernel = f"moe_gemm_2stage_{'wmma' if 'wmma' in family else 'mxscale'}_gfx1250"
    make = partial(moe, int(family[-1]), dtype, tile, width, options)
    return {name: Case(kernel, dtype, make, ARCHS, "test_moe_gemm_2stage_gfx1250.py")}


CASES: dict[str, Case] = {
    **of_experts("moewmma1_fp16_32x128x128", (32, 128, 128)),
    **of_experts("moewmma2_fp16_32x128x128", (32, 128, 128)),
    **of_experts("moemx1_fp4_32x128x128_b1", (32, 128, 128)),
    **of_experts("moemx2_fp4_32x128x128_b1", (32, 128, 128)),
    **of_experts("moemx1_fp8_32x128x128_b1", (32, 128, 128)),
    **of_experts("moemx2_fp8_32x128x128_b1", (32, 128, 128)),
    **of_experts("moemx1_a8w4_32x128x128_b1", (32, 128, 128)),
    **of_experts("moemx2_a8w4_32x128x128_b1", (32, 128, 128)),
    **of_experts("moemx1_fp8_64x128x128_b2", (64, 128, 128), (4096, 2048, 9), num_buffers=2),
    **of_experts("moemx2_fp8_64x256x128_b2_tdmst", (64, 256, 128), (4096, 2048, 9), num_buffers=2, accumulate=False),
}
MISSES = {
    ("moemx1_fp4_32x128x128_b1", "gfx1250"): "one VGPR more, for a quarter of the instructions; occupancy is the same",
}
