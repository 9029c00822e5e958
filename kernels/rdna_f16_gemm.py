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

from typing import Any

from kernels.wmma_pipeline import DTYPES, Wave, module_for, tuned_for

__all__ = ["DTYPES", "SHAPES", "create_wmma_gemm_module", "rdna_gemm", "reference"]

# (M, N, K)
SHAPES = ((128, 128, 64), (256, 128, 96), (128, 384, 128))


def reference(A: Any, BT: Any) -> Any:
    """The result of torch in f32. A (M, K), BT (N, K)."""
    return A.float() @ BT.float().T


create_wmma_gemm_module = module_for(Wave.RDNA4)
rdna_gemm = tuned_for(
    Wave.RDNA4, [((4, 4, 2), (2, 2)), ((4, 2, 2), (2, 2)), ((2, 2, 4), (2, 2)), ((4, 4, 2), (1, 2))]
)  # fmt: skip
