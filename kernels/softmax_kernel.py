"""C = softmax(A), row by row: exp(x - max) / sum of them.

    build_softmax_module(M, N, "bf16")(A, C, m)

A, C: (M, N) of f32, f16 or bf16, with any row stride. A row is read once and stays in registers (`kernels.rows`); each
of its two reductions takes one barrier, in rows of a wave none. exp(x) is 2^(x log2(e)), one instruction of the
transcendental unit; subtraction and products are packed, two elements at a time. The subtraction comes first: a maximum
of any size leaves a difference that is exact enough.

N = 8192: 512 threads of 16 elements each, about 200 instructions, eight waves per SIMD. The time is that of memory,
2 M N elements.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from kernels.kernels_common import LOG2_E, element_type
from kernels.launches import chosen, launcher
from kernels.rows import THREADS, RowMemory, Tiling
from kernels.sizes import require_rows

DTYPES = ("f32", "f16", "bf16")
# (M, N): one wave per row, a partial wave, partial vectors, one row, a whole block, a tail in a block.
SHAPES = ((5, 256), (3, 1), (4, 7), (33, 100), (1, 2000), (2, 8192), (2, 4099))


def reference(A: Any) -> Any:
    """The result of torch in f32, rounded once."""
    return A.float().softmax(-1).to(A.dtype)


@flyc.kernel
def softmax_kernel(A: fx.Tensor, C: fx.Tensor, m: fx.Int32, tiling: fx.Constexpr[Tiling]) -> None:
    """C[row] = softmax(A[row]) for rows below m."""
    row, _ = tiling.place()
    if tiling.rows == 1 or row < m:
        x = RowMemory(A, tiling, row).row().filled(-float("inf"))
        largest = x.fold("max", start=-float("inf"))
        powers = x.map(lambda v: fx.exp2((v - largest) * LOG2_E, fastmath="afn"))
        factor = fx.rocdl.rcp(powers.fold("add"))
        powers.map(lambda v: v * factor).store(RowMemory(C, tiling, row))


@cache
def build_softmax_module(M: int, N: int, dtype_str: str = "f32") -> Any:
    """The launcher (A, C, m_in, stream) for rows of N elements. M: rows that are expected; m_in counts."""
    dtype = element_type(dtype_str)
    # Half as many waves as norms have: two reductions are most of the work.
    tiling = Tiling.of(N, dtype, few_threads=256)
    launch = partial(launch_rows, dtype, tiling)
    return launcher("launch_softmax", "A C", launch, m_in=fx.Int32)


def launch_rows(dtype: Any, tiling: Tiling, tensors: dict[str, Any], m: Any, stream: Any) -> None:
    """Launch the kernel for m rows, inside a launcher."""
    for name, tensor in tensors.items():
        require_rows(name, tensor, m, tiling.columns, dtype, apart=True)
    tiling.launch(softmax_kernel(*tensors.values(), m, tiling), m, stream)


@chosen("A C", "columns", THREADS)
def softmax(tensors: dict[str, Any], columns: int, threads: int, stream: Any) -> None:
    """C = softmax(A) for rows of `columns` elements."""
    a = tensors["A"]
    launch_rows(a.dtype, Tiling.of(columns, a.dtype, threads), tensors, fx.get_scalar(a.shape[0]), stream)
