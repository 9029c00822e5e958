"""C = A B^T of fp8 with a scale for each row of A and of B, by four waves, each with a quarter of a large tile.

    launch = compile_fp8_gemm_4w(K=8192)
    launch(A, B_T, C, A_scale, B_scale, m, n)

256 x 256 of C, 128 x 128 a wave: its 256 sums fill half of the 512 registers that a wave has when it is alone on its
SIMD, and each fragment that it reads from shared memory serves eight matrix instructions. As all waves read at once
after a barrier, a tile is multiplied in squares that grow: n fragments of A and of B are enough for n x n tiles of C.
`fp8_gemm_utils` has the parts; shared memory is 128 KiB, which CDNA 4 has; gfx942 takes tiles of up to 128 x 128.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from kernels.fp8_gemm_utils import SHAPES, fp8_gemm, fp8_launcher, fp8_plan, reference

__all__ = ["SHAPES", "compile_fp8_gemm_4w", "fp8_gemm", "reference"]


@cache
def compile_fp8_gemm_4w(
    *,
    K: int,
    BLOCK_M: int = 256,
    BLOCK_N: int = 256,
    use_xcd_remap: bool = True,
    b_preshuffled: bool = False,
    unroll: bool = False,
) -> Any:
    """A launcher of (A (M, K), B_T (N, K), C (M, N), A_scale (M), B_scale (N), m, n, stream); C in bf16, scales in f32.

    BLOCK_M, BLOCK_N: multiples of 64. K: a multiple of 128, at least 256. use_xcd_remap: workgroups of a die take
    neighbouring tiles. b_preshuffled: B is `shuffle_weight`'s, its rows filled
    up to a multiple of 16. unroll: no loop over K on the device. Raises
    ArgumentError where sizes do not fit.
    """
    tile = (BLOCK_M, BLOCK_N)
    return fp8_launcher(fp8_plan(K, tile, (2, 2), (64, 64), unroll, remap=use_xcd_remap, shuffled=b_preshuffled))
