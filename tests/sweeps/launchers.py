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


def tensors(n: int) -> dict[str, Any]:
    return {"x": torch.randn(n), "y": torch.zeros(n), "n": n}


def doubled(x: torch.Tensor, y: torch.Tensor, n: int) -> bool:
    return torch.equal(y, 2 * x)
