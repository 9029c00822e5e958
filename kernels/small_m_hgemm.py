"""C = A B^T of f16 or bf16 for up to 16 rows of A: the weights are read once, by as many workgroups as there are.

    launch = compile_small_m_hgemm_kernel("bf16", n, k, TILE_N=128, SPLIT_K=4)
    launch(C, A, B, bias, m, semaphore, signal)

A tile has 16 rows, and its waves stand side by side along N (`hgemm_splitk`): A is in shared memory, 4 KiB for two
stages of 64 columns, and each wave has its own rows of B in its registers, or with B_TO_LDS in the ring. The time is
that of reading B; more workgroups, with TILE_N and SPLIT_K, have more of it on its way. More than 16 rows are right as
well, and read B again for each 16.

16 x 128 x 64 of bf16: 90 VGPRs or fewer; the loop over K has two tiles of code.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import flydsl.expr as fx
from kernels.hgemm_splitk import half_plan, hgemm_launcher, launch_tiles, reference
from kernels.kernels_common import require
from kernels.launches import chosen

__all__ = ["SHAPES", "compile_small_m_hgemm_kernel", "reference", "small_m_hgemm"]

TILE_M = 16
# (M, N, K)
SHAPES = ((1, 128, 256), (16, 384, 512), (7, 256, 384))


@cache
def compile_small_m_hgemm_kernel(
    dtype: str, n: int, k: int, *, TILE_N: int = 128, TILE_K: int = 64, SPLIT_K: int = 1, BLOCK_N_WARPS: int = 2,
    N_TILE_REPEAT: int = 1, PERSISTENT_N_TILES: int = 1, WAVES_PER_EU_HINT: int = 0, B_TO_LDS_UNROLL: int = 0,
    B_TO_LDS: bool = False, HAS_BIAS: bool = False,
) -> Any:  # fmt: skip
    """A launcher of (C, A, B, bias, m, semaphore, signal, stream), as of `compile_hgemm_kernel`.

    N_TILE_REPEAT: tiles along N that a workgroup computes together, with one copy of A; not with B_TO_LDS.
    PERSISTENT_N_TILES: tiles along N that it computes one after the other. WAVES_PER_EU_HINT: waves per SIMD that
    registers are allocated for, 0 for any. B_TO_LDS_UNROLL: tiles of K in the loop's body, 0 for one, rounded up to
    whole turns of the ring. Raises ArgumentError where sizes do not fit.
    """
    require(N_TILE_REPEAT >= 1 and PERSISTENT_N_TILES >= 1, f"{N_TILE_REPEAT} and {PERSISTENT_N_TILES} tiles along N",
            "1 or more")  # fmt: skip
    require(N_TILE_REPEAT == 1 or not B_TO_LDS, f"N_TILE_REPEAT={N_TILE_REPEAT} with B_TO_LDS", "one of both")
    require(B_TO_LDS_UNROLL >= 0 and (B_TO_LDS or not B_TO_LDS_UNROLL), f"B_TO_LDS_UNROLL={B_TO_LDS_UNROLL}",
            "0, or with B_TO_LDS more")  # fmt: skip
    tile, waves = (TILE_M, TILE_N * N_TILE_REPEAT, TILE_K), (1, BLOCK_N_WARPS, 1)
    plan = half_plan(
        dtype, n, k, tile, waves, split=SPLIT_K, b_to_lds=B_TO_LDS, has_bias=HAS_BIAS, tiles=PERSISTENT_N_TILES,
        unroll=B_TO_LDS_UNROLL or 1, has_words=SPLIT_K > 1,
    )  # fmt: skip
    return hgemm_launcher(plan, WAVES_PER_EU_HINT or None)


# Columns of a tile, of K in it, waves, and parts of K.
_TILES = tuple((*tile, split) for tile in ((64, 128, 1), (64, 64, 2), (128, 64, 2), (256, 64, 2)) for split in (1, 4))


@chosen("C A B", "m n k dtype", _TILES)
def small_m_hgemm(tensors: dict[str, Any], m: fx.Int32, n: int, k: int, dtype: str, tile: Any, stream: Any) -> None:
    """The product with a tile and a split of K that are chosen by measurement."""
    tile_n, tile_k, warps, split = tile
    plan = half_plan(dtype, n, k, (TILE_M, tile_n, tile_k), (1, warps, 1), split=split, b_to_lds=False)
    launch_tiles(plan, None, tensors, m, stream)
