"""Products on Radeon. The original's figures are those of 4096 x 4096 x 4096, as rows are at distances known when
compiling; it counts workgroups of 256 threads, of which it launches 128 or 64."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from kernels import rdna3_f16_gemm, rdna_f16_gemm
from kernels.rdna_fp8_preshuffle_gemm import compile_fp8_gemm
from tests.kernels.cases import Case
from tests.kernels.gemm import TYPES

RDNA3, RDNA4 = ("gfx1100",), ("gfx1201",)


def half(kernel: Any, dtype: str, m: int, n: int, k: int) -> tuple[Any, tuple[Any, ...]]:
    launch, *_ = kernel.create_wmma_gemm_module(m, n, k, dtype, dtype)
    return launch, tuple(torch.zeros(shape, dtype=TYPES[dtype]) for shape in ((m, n), (m, k), (n, k)))


def fp8(m: int, n: int, k: int, options: dict[str, int]) -> tuple[Any, tuple[Any, ...]]:
    a, b = (torch.zeros(rows, k // 4) for rows in (m, n))
    c = torch.zeros(m, n, dtype=torch.bfloat16)
    return compile_fp8_gemm(M=m, N=n, K=k, **options), (c, a, b, torch.ones(m), torch.ones(n))


def of_fp8(name: str, *size: int, **options: int) -> dict[str, Case]:
    make = partial(fp8, *size, options)
    return {f"rdnafp8_{name}": Case("rdna_fp8_preshuffle_gemm", "fp8", make, RDNA4)}


CASES = {
    **{
        f"rdna_{name}": Case("rdna_f16_gemm", dtype, partial(half, rdna_f16_gemm, dtype, 4096, 4096, 4096), RDNA4)
        for name, dtype in (("bf16", "bf16"), ("f16", "fp16"))
    },
    **{
        f"rdna3_{dtype}": Case("rdna3_f16_gemm", dtype, partial(half, rdna3_f16_gemm, dtype, 4096, 4096, 4096), RDNA3,
                               test="test_rdna_f16_gemm.py")
        for dtype in ("bf16", "fp16")
    },
    **of_fp8("32x128x128", 32, 128, 128),
    **of_fp8("256x256x256", 256, 256, 256),
    **of_fp8("1024x1024x1024", 1024, 1024, 1024),
    **of_fp8("128x4096x4096", 128, 4096, 4096),
    **of_fp8("4096x4096x4096_t128", 4096, 4096, 4096, tile_m=128),
    **of_fp8("4096x4096x4096_t64", 4096, 4096, 4096, tile_m=64),
}  # fmt: skip
_THREADS = "40 KiB of LDS hold the waves of three workgroups of 128 threads; the original's figure is of 256 threads"
MISSES = {
    **{(f"rdna_{dtype}", "gfx1201"): _THREADS for dtype in ("bf16", "f16")},
    **{(f"rdna3_{dtype}", "gfx1100"): _THREADS for dtype in ("bf16", "fp16")},
    ("rdnafp8_256x256x256", "gfx1201"): "one register more, for where a lane's part of C is",
}
