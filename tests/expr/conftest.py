"""Running an expression on every element of two tensors, on the simulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from tests.launchers import launcher_of

BLOCK = 64


@pytest.fixture
def elementwise() -> Callable[..., torch.Tensor]:
    """`run(function, a, b, dtype)`: row j of the result is `function(a[i], b[i])[j]`, converted to `dtype`."""

    def run(
        function: Callable[[Any, Any], Sequence[Any]], a: torch.Tensor, b: torch.Tensor, dtype: torch.dtype
    ) -> torch.Tensor:
        count = a.numel()
        padded = -(-count // BLOCK) * BLOCK
        a, b = (torch.cat([t, t[:1].expand(padded - count)]).contiguous() for t in (a, b))
        rows = 64
        out = torch.zeros(rows, padded, dtype=dtype)
        made = []

        @flyc.kernel
        def kernel(A: fx.Tensor, B: fx.Tensor, Out: fx.Tensor):
            i = fx.block_idx.x * BLOCK + fx.thread_idx.x
            results = function(A[i], B[i])
            made.append(len(results))
            for j, result in enumerate(results):
                Out[j, i] = result.to(Out.dtype)

        launch = launcher_of(kernel, grid=padded // BLOCK, block=BLOCK)
        launch(a, b, out)
        return out[: made[0], :count]

    return run


@pytest.fixture
def trace() -> Callable[..., Any]:
    """`trace(function)`: what `function(A, Out)` gives inside a kernel; A is f32 (64, 64), Out is i32 (64)."""

    def run(function: Callable[[Any, Any], Any]) -> Any:
        results = []

        @flyc.kernel
        def kernel(A: fx.Tensor, Out: fx.Tensor):
            results.append(function(A, Out))

        launch = launcher_of(kernel, grid=1, block=BLOCK)
        launch.lower(torch.zeros(64, 64), torch.zeros(64, dtype=torch.int32))
        return results[0]

    return run
