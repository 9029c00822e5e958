"""C = A BT^T of f16 or bf16 on Radeon RX 7000 (RDNA 3), with rows of A and BT as they are in memory.

    launch, block_m, block_n, block_k = create_wmma_gemm_module(4096, 4096, 4096, "bf16", "bf16")
    launch(C, A, BT)                                           # C (M, N), A (M, K), BT (N, K)

The kernel is `rdna_f16_gemm`'s with the fragments of RDNA 3: every lane holds a whole row of A's and BT's 16 x 16, so
that lanes 16 apart hold the same, and every other row of a column of C, which leaves element by element.

128 x 128 x 32 by four waves: 128 registers hold sums; 40 KiB of shared memory.
"""

from __future__ import annotations

from kernels.rdna_f16_gemm import SHAPES, reference
from kernels.wmma_pipeline import Wave, module_for, tuned_for

__all__ = ["SHAPES", "create_wmma_gemm_module", "rdna3_gemm", "reference"]

create_wmma_gemm_module = module_for(Wave.RDNA3)
rdna3_gemm = tuned_for(Wave.RDNA3, [((4, 4, 2), (2, 2)), ((4, 2, 2), (2, 2)), ((2, 2, 4), (2, 2))])
