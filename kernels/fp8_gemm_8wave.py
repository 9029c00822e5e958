"""C = A B^T of fp8 with a scale for each row of A and of B, by eight waves, two on each SIMD.

    launch = compile_fp8_gemm_8w(K=8192)
    launch(A, B_T, C, A_scale, B_scale, m, n)

256 x 256 of C, 128 x 64 a wave: 128 of its 256 registers hold sums. While one of the two waves of a SIMD waits for
shared memory, the other one multiplies. `fp8_gemm_utils` has the parts; see `fp8_gemm_4wave`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from kernels.fp8_gemm_utils import SHAPES, fp8_gemm, fp8_launcher, fp8_plan, reference

__all__ = ["SHAPES", "compile_fp8_gemm_8w", "fp8_gemm", "reference"]


@cache
def compile_fp8_gemm_8w(
    *, K: int, BLOCK_M: int = 256, BLOCK_N: int = 256, b_preshuffled: bool = False, unroll: bool = False
) -> Any:
    """The launcher of `compile_fp8_gemm_4w` for eight waves. BLOCK_M: a multiple of 128, BLOCK_N of 256."""
    return fp8_launcher(fp8_plan(K, (BLOCK_M, BLOCK_N), (2, 4), (128, 256), unroll, shuffled=b_preshuffled))
