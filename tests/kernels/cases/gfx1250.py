"""Products on gfx1250. The original's figures are those of N = K = 4096; it counts workgroups of 256 threads."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from kernels.gemm_fp8fp4_gfx1250 import FORMATS, compile_fp8fp4_gemm
from kernels.wmma_gemm_gfx1250 import compile_wmma_gemm_tdm
from tests.kernels.cases import Case
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
}  # fmt: skip
_BANKS = "26 more changes of the bank of registers; 68 registers less"
MISSES = {
    **{(f"wmma_{dtype}_256x256x128_2x4_b2", "gfx1250"): _BANKS for dtype in BOTH},
    ("mxfp4_128x256x128_2x4_b2_cl2x2", "gfx1250"): "K is a loop, which the original's code has unrolled",
    ("mxfp8_128x256x128_2x4_b2_splitk2", "gfx1250"): "each atomic has an address of its own; 38 VGPRs fewer",
    ("wmma_fp16_16x128x128_1x4_b2", "gfx1250"): "fragments are read ahead; workgroups are of 128 threads",
}
