"""Launchers that the tests of sweeps run, and what they are run with."""

from __future__ import annotations

from typing import Any

import torch

import flydsl.compiler as flyc
import flydsl.expr as fx


@flyc.kernel
def scale_kernel(x: fx.Tensor, y: fx.Tensor, n: fx.Int32, block: fx.Constexpr[int], factor: fx.Constexpr[int]):
    for i in range(fx.block_idx.x * block + fx.thread_idx.x, n, block * fx.grid_dim.x):
        y[i] = x[i] * factor


@flyc.jit
def scale(x: fx.Tensor, y: fx.Tensor, n: fx.Int32, block: fx.Constexpr[int], factor: fx.Constexpr[int] = 2):
    scale_kernel(x, y, n, block, factor).launch(grid=2, block=block)


@flyc.kernel
def sum_columns_kernel(x: fx.Tensor, y: fx.Tensor):
    total = fx.Float32(0)
    for row in range(16):
        total += x[row, fx.thread_idx.x]
    y[fx.block_idx.x, fx.thread_idx.x] = total


@flyc.jit
def sum_columns(x: fx.Tensor, y: fx.Tensor):
    """Each of 64 workgroups reads all of x, which is 16 x 64; y is 64 x 64."""
    sum_columns_kernel(x, y).launch(grid=64, block=64)


def tensors(n: int) -> dict[str, Any]:
    return {"x": torch.randn(n), "y": torch.zeros(n), "n": n}


def doubled(x: torch.Tensor, y: torch.Tensor, n: int) -> bool:
    return torch.equal(y, 2 * x)
