"""y[row] = sum(x[row]): a workgroup sums a row up, its threads first, and then what they have, through LDS."""

from __future__ import annotations

from collections.abc import Iterator

import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.testing import Case

THREADS = 256

# (rows, columns): one element, less than one of each thread, exactly one, and some of some threads.
SHAPES = ((1, 1), (3, 100), (2, 256), (4, 1000))


@flyc.kernel
def row_sums_kernel(x: fx.Tensor, y: fx.Tensor, columns: fx.Int32):
    sums = fx.make_view(fx.get_dyn_shared(fx.Float32), fx.make_layout(THREADS, 1))
    row, thread = fx.block_idx.x, fx.thread_idx.x
    total = fx.Float32(0.0)
    for column in range(thread, columns, THREADS):
        total = total + x[row, column]
    sums[thread] = total
    for step in fx.range_constexpr(8):
        half = THREADS >> (step + 1)
        fx.gpu.barrier()
        if thread < half:
            sums[thread] = sums[thread] + sums[thread + half]
    if thread == 0:
        y[row] = sums[0]


@flyc.jit
def row_sums(x: fx.Tensor, y: fx.Tensor):
    """y (rows) = the sums of the rows of x (rows, columns); f32."""
    row_sums_kernel(x, y, x.shape[1]).launch(grid=x.shape[0], block=THREADS, smem=4 * THREADS)


def reference(x: torch.Tensor) -> torch.Tensor:
    """The result of torch."""
    return x.sum(1)


def cases(rows: int, columns: int) -> Iterator[Case]:
    """The calls that `workbench check` makes for a shape."""
    yield Case(row_sums, {"x": torch.randn(rows, columns), "y": torch.empty(rows)}, rtol=1e-4, atol=1e-4)
