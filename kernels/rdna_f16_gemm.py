"""C = A BT^T of f16 or bf16 on Radeon RX 9000 (RDNA 4), with rows of A and BT as they are in memory.

    launch, block_m, block_n, block_k = create_wmma_gemm_module(4096, 4096, 4096, "bf16", "bf16")
    launch(C, A, BT)                                           # C (M, N), A (M, K), BT (N, K)

A workgroup of four waves computes 128 x 128 of C, each wave a quarter of it in 4 x 4 tiles of 16 x 16. Tiles of A and
BT, 32 columns of K, go through registers to one of two buffers in shared memory: while the matrix instructions work on
one tile, the next is on its way. Rows in shared memory are padded by 16 bytes, so that the 16 rows that lanes read at
once meet no bank twice.

The instruction multiplies BT by A, which gives C transposed: of its result a lane then holds eight neighbours of a row
of C, and stores them at once. Sums are f32 and rounded once. Workgroups walk `group_m` rows of tiles column by column,
so that those that run at the same time share rows and columns in the cache.

128 x 128 x 32: 128 registers hold sums; 40 KiB of shared memory. `rdna3_f16_gemm` is the same for RDNA 3.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import flydsl
import flydsl.compiler as flyc
import flydsl.expr as fx
from kernels.wmma_pipeline import DTYPES, Plan, Wave, checked_plan, launch_wmma

# (M, N, K)
SHAPES = ((128, 128, 64), (256, 128, 96), (128, 384, 128))


def reference(A: Any, BT: Any) -> Any:
    """The result of torch in f32. A (M, K), BT (N, K)."""
    return A.float() @ BT.float().T


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
    """A launcher of (C, A, BT, stream), and the sizes of a workgroup's tile along M, N and K.

    in_dtype: bf16, f16 or fp16. out_dtype: those, or f32. M, N, K: multiples of the tile, and K at least two of them.
    reg_*: tiles of 16 that a wave has along each; waves_*: waves of a workgroup; *_k_pad: elements between rows in
    shared memory. Raises ArgumentError where sizes do not fit, and at the launch on a GPU that is no RDNA 4.
    """
    plan = checked_plan(
        Wave.RDNA4, (M, N, K), (in_dtype, out_dtype), (reg_m, reg_n, reg_k), (waves_m, waves_n), group_m,
        (a_k_pad, b_k_pad),
    )  # fmt: skip
    return wmma_launcher(plan), *plan.block


def wmma_launcher(plan: Plan) -> Any:
    """The launcher of a plan; see `create_wmma_gemm_module`."""

    @flyc.jit
    def launch_wmma_gemm(C: fx.Tensor, A: fx.Tensor, BT: fx.Tensor, stream: fx.Stream = fx.Stream(None)) -> None:
        launch_wmma(plan, C, A, BT, stream)

    return launch_wmma_gemm


_TILES = (((4, 4, 2), (2, 2)), ((4, 2, 2), (2, 2)), ((2, 2, 4), (2, 2)), ((4, 4, 2), (1, 2)))


@flydsl.autotune(
    configs=[flydsl.Config(tiles=tiles, waves=waves) for tiles, waves in _TILES],
    key=["m", "n", "k", "dtype"],
)
@flyc.jit
def rdna_gemm(
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
    launch_wmma(checked_plan(Wave.RDNA4, (m, n, k), (dtype, dtype), tiles, waves, 8, (8, 8)), C, A, BT, stream)


__all__ = ["DTYPES", "SHAPES", "create_wmma_gemm_module", "rdna_gemm", "reference", "wmma_launcher"]
