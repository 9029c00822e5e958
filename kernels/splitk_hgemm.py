"""C = A B^T of f16 or bf16 whose waves stand side by side along N, with two stages: `hgemm_splitk`'s older sibling.

    launch = compile_hgemm_kernel("bf16", n, k, TILE_M=32, TILE_N=64, TILE_K=128, SPLIT_K=8)
    launch(C, A, B, bias, m, semaphore, signal)

The same kernel with another choice of waves: each has all rows of the tile, and B goes straight to its registers.
Programs that import this module's builder get it under the name that `hgemm_splitk` has for its own.

128 x 128 x 64 of bf16: 142 VGPRs or fewer, 64 of which hold sums.
"""

from __future__ import annotations

from typing import Any

from kernels import hgemm_splitk
from kernels.hgemm_splitk import SHAPES, hgemm, hgemm_of_size, hgemm_splitk_, reference
from kernels.kernels_common import require

__all__ = ["SHAPES", "compile_hgemm_kernel", "hgemm", "hgemm_of_size", "hgemm_splitk_", "reference"]


def compile_hgemm_kernel(
    dtype: str, n: int, k: int, TILE_M: int = 128, TILE_N: int = 128, TILE_K: int = 64, SPLIT_K: int = 1,
    BLOCK_M_WARPS: int = 1, BLOCK_N_WARPS: int = 4, B_TO_LDS: bool = False, HAS_BIAS: bool = False,
) -> Any:  # fmt: skip
    """The launcher of `hgemm_splitk.compile_hgemm_kernel`, with two stages and up to four waves."""
    require(BLOCK_M_WARPS * BLOCK_N_WARPS <= 4, f"{BLOCK_M_WARPS} x {BLOCK_N_WARPS} waves", "1 to 4")
    return hgemm_splitk.compile_hgemm_kernel(
        dtype, n, k, TILE_M, TILE_N, TILE_K, 2, SPLIT_K, BLOCK_M_WARPS, BLOCK_N_WARPS, 1, B_TO_LDS, HAS_BIAS
    )
