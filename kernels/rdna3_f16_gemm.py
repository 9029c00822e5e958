"""C = A BT^T of f16 or bf16 on Radeon RX 7000 (RDNA 3), with rows of A and BT as they are in memory.

    launch, block_m, block_n, block_k = create_wmma_gemm_module(4096, 4096, 4096, "bf16", "bf16")
    launch(C, A, BT)                                           # C (M, N), A (M, K), BT (N, K)

The kernel is `rdna_f16_gemm`'s with the fragments of RDNA 3: every lane holds a whole row of A's and BT's 16 x 16, so
that lanes 16 apart hold the same, and every other row of a column of C, which leaves element by element.

128 x 128 x 32 by four waves: 128 registers hold sums; 40 KiB of shared memory.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import flydsl
import flydsl.compiler as flyc
import flydsl.expr as fx
from kernels.rdna_f16_gemm import SHAPES, reference, wmma_launcher
from kernels.wmma_pipeline import Wave, checked_plan, launch_wmma

__all__ = ["SHAPES", "create_wmma_gemm_module", "rdna3_gemm", "reference"]


@cache
def create_wmma_gemm_module(
    M: int,
    N: int,
    K: int,
    in_dtype: str = "bf16",
    out_dtype: str = "bf16",
    *,
    reg_m: int = 4,
    reg_n: int = 4,
    reg_k: int = 2,
    waves_m: int = 2,
    waves_n: int = 2,
    group_m: int = 8,
    a_k_pad: int = 8,
    b_k_pad: int = 8,
) -> tuple[Any, int, int, int]:
    """A launcher of (C, A, BT, stream), and the sizes of a workgroup's tile; see `rdna_f16_gemm`.

    Raises ArgumentError where sizes do not fit, and at the launch on a GPU that is no RDNA 3.
    """
    plan = checked_plan(
        Wave.RDNA3, (M, N, K), (in_dtype, out_dtype), (reg_m, reg_n, reg_k), (waves_m, waves_n), group_m,
        (a_k_pad, b_k_pad),
    )  # fmt: skip
    return wmma_launcher(plan), *plan.block


_TILES = (((4, 4, 2), (2, 2)), ((4, 2, 2), (2, 2)), ((2, 2, 4), (2, 2)))


@flydsl.autotune(
    configs=[flydsl.Config(tiles=tiles, waves=waves) for tiles, waves in _TILES],
    key=["m", "n", "k", "dtype"],
)
@flyc.jit
def rdna3_gemm(
    C: fx.Tensor,
    A: fx.Tensor,
    BT: fx.Tensor,
    m: fx.Constexpr[int],
    n: fx.Constexpr[int],
    k: fx.Constexpr[int],
    dtype: fx.Constexpr[str],
    tiles: fx.Constexpr,
    waves: fx.Constexpr,
    stream: fx.Stream = fx.Stream(None),
) -> None:
    """The product with tiles and waves that are chosen by measurement. See `create_wmma_gemm_module`."""
    launch_wmma(checked_plan(Wave.RDNA3, (m, n, k), (dtype, dtype), tiles, waves, 8, (8, 8)), C, A, BT, stream)
