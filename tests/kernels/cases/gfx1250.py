"""Products on gfx1250. The original's figures are those of N = K = 4096; it counts workgroups of 256 threads."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

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
}
_BANKS = "26 more changes of the bank of registers; 68 registers less"
MISSES = {
    **{(f"wmma_{dtype}_256x256x128_2x4_b2", "gfx1250"): _BANKS for dtype in BOTH},
    ("wmma_fp16_16x128x128_1x4_b2", "gfx1250"): "fragments are read ahead; workgroups are of 128 threads",
}
