"""Products on gfx1250. The original's figures are those of N = K = 4096; it counts workgroups of 256 threads."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from kernels import moe_gemm_2stage_mxscale_gfx1250 as mx_experts
from kernels import moe_gemm_2stage_wmma_gfx1250 as experts
from kernels.gemm_fp8fp4_gfx1250 import FORMATS, compile_fp8fp4_gemm
from kernels.wmma_gemm_gfx1250 import compile_wmma_gemm_tdm
from tests.kernels.cases import Case
from tests.kernels.cases.moe import one_block
from tests.kernels.gemm import TYPES

ARCHS = ("gfx1250",)
SIZE = 4096


def half(dtype: str, options: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    m, out = options["tile_m"], torch.float32 if options.get("out_dtype") == "f32" else TYPES[dtype]
    launch = compile_wmma_gemm_tdm(N=SIZE, K=SIZE, in_dtype=dtype, **options)
    a, b = (torch.zeros(shape, dtype=TYPES[dtype]) for shape in ((m, SIZE), (SIZE, SIZE)))
    return launch, (torch.zeros(m, SIZE, dtype=out), a, b, m, SIZE)


def of_half(name: str, tile: tuple[int, int, int], *dtypes: str, **options: Any) -> dict[str, Case]:
    options = {"tile_m": tile[0], "tile_n": tile[1], "tile_k": tile[2]} | options
    return {
        f"wmma_{dtype}_{name}": Case("wmma_gemm_gfx1250", dtype, partial(half, dtype, options), ARCHS)
        for dtype in dtypes
    }


def narrow(
    data_format: str, tile: tuple[int, int, int], n: int, k: int, options: dict[str, Any]
) -> tuple[Any, tuple[Any, ...]]:
    m, out = tile[0], torch.bfloat16 if options.get("out_dtype") == "bf16" else torch.float32
    launch = compile_fp8fp4_gemm(
        data_format=data_format, N=n, K=k, tile_m=tile[0], tile_n=tile[1], tile_k=tile[2], **options
    )
    a, b = (
        torch.zeros(rows * k * bits // 8, dtype=torch.uint8)
        for rows, bits in zip((m, n), FORMATS[data_format], strict=True)
    )
    of_rows = options.get("scale_mode") == "ptpc"
    scales = [torch.ones(x) if of_rows else torch.zeros(x * k // 32, dtype=torch.uint8) for x in (m, n)]
    return launch, (torch.zeros(m * n, dtype=out), a, b, *scales, m, n, k, n)


def of_narrow(
    name: str, data_format: str, tile: tuple[int, int, int], waves: tuple[int, int], n: int, k: int, **options: Any
) -> dict[str, Case]:
    options = {"m_warp": waves[0], "n_warp": waves[1]} | options
    make = partial(narrow, data_format, tile, n, k, options)
    return {name: Case("gemm_fp8fp4_gfx1250", data_format, make, ARCHS)}


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


BF16 = {"out_dtype": "bf16"}
OF_ROWS = BF16 | {"scale_mode": "ptpc", "num_buffers": 4, "wave_specialized_tdm": True}
BOTH = ("fp16", "bf16")
CASES = {
    **of_half("64x128x32_2x4_b2", (64, 128, 32), *BOTH),
    **of_half("64x256x128_2x4_b2", (64, 256, 128), *BOTH),
    **of_half("64x256x128_2x4_b3", (64, 256, 128), *BOTH, num_buffers=3),
    **of_half("256x256x128_2x4_b2", (256, 256, 128), *BOTH),
    **of_half("64x256x128_b2_bufstore", (64, 256, 128), "fp16", use_tdm_store=False),
    **of_half("64x256x128_b2_bufstore_f32", (64, 256, 128), "fp16", use_tdm_store=False, out_dtype="f32"),
    **of_half("128x256x128_b2_cl2x2", (128, 256, 128), "fp16", cluster_m=2, cluster_n=2),
    **of_half("128x256x128_b2_ws", (128, 256, 128), "fp16", wave_specialized_tdm=True),
    **of_half("16x128x128_1x4_b2", (16, 128, 128), "fp16", m_warp=1),
    **of_narrow("mxfp4_128x128x256_2x2_b2_bf16", "fp4", (128, 128, 256), (2, 2), 512, 7168, **BF16),
    **of_narrow("mxfp4_128x128x256_2x2_b2_f32", "fp4", (128, 128, 256), (2, 2), 512, 7168),
    **of_narrow("mxfp4_128x128x256_2x2_b2_bufstore", "fp4", (128, 128, 256), (2, 2), 512, 7168, use_tdm_store=False,
                **BF16),
    **of_narrow("mxfp4_128x256x256_2x2_b3_ws", "fp4", (128, 256, 256), (2, 2), 4096, 7168, num_buffers=3,
                wave_specialized_tdm=True),
    **of_narrow("mxfp4_256x256x256_2x2_b4", "fp4", (256, 256, 256), (2, 2), 1024, 1024, num_buffers=4),
    **of_narrow("mxfp4_128x256x128_2x4_b2_cl2x2", "fp4", (128, 256, 128), (2, 4), 1024, 1024, cluster_m=2,
                cluster_n=2, **BF16),
    **of_narrow("mxfp8_128x256x128_2x4_b2_bf16", "fp8", (128, 256, 128), (2, 4), 1024, 1024, **BF16),
    **of_narrow("mxfp8_128x256x128_2x4_b2_f32", "fp8", (128, 256, 128), (2, 4), 1024, 1024),
    **of_narrow("mxfp8_256x256x128_2x2_b2", "fp8", (256, 256, 128), (2, 2), 1024, 1024),
    **of_narrow("mxfp8_128x256x128_2x4_b3", "fp8", (128, 256, 128), (2, 4), 1024, 1024, num_buffers=3, **BF16),
    **of_narrow("mxfp8_128x256x128_2x4_b2_splitk2", "fp8", (128, 256, 128), (2, 4), 256, 2048, split_k=2, **BF16),
    **of_narrow("a8w4_128x256x128_2x4_b2_bf16", "a8w4", (128, 256, 128), (2, 4), 1024, 1024, **BF16),
    **of_narrow("a8w4_128x256x128_2x4_b2_f32", "a8w4", (128, 256, 128), (2, 4), 1024, 1024),
    **of_narrow("a8w4_128x256x256_2x2_b2", "a8w4", (128, 256, 256), (2, 2), 5632, 2816, **BF16),
    **of_narrow("a8w4_16x256x256_1x4_b2", "a8w4", (16, 256, 256), (1, 4), 2816, 2816, **BF16),
    **of_narrow("ptpc_fp8_128x256x128_2x2_b4", "fp8", (128, 256, 128), (2, 2), 256, 1024, **OF_ROWS),
    **of_narrow("ptpc_fp8_128x128x128_2x2_b4", "fp8", (128, 128, 128), (2, 2), 256, 1024, **OF_ROWS),
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
}  # fmt: skip
_BANKS = "26 more changes of the bank of registers; 68 registers less"
MISSES = {
    ("moemx1_fp4_32x128x128_b1", "gfx1250"): "one VGPR more, for a quarter of the instructions; occupancy is the same",
    **{(f"wmma_{dtype}_256x256x128_2x4_b2", "gfx1250"): _BANKS for dtype in BOTH},
    ("mxfp4_128x256x128_2x4_b2_cl2x2", "gfx1250"): "K is a loop, which the original's code has unrolled",
    ("wmma_fp16_16x128x128_1x4_b2", "gfx1250"): "fragments are read ahead; workgroups are of 128 threads",
}
