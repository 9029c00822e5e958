"""Running one workgroup of a kernel whose body is an expression built with `flydsl._mlir`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from tests.launchers import launcher_of

LANES = 64


@pytest.fixture
def lanes() -> Callable[..., torch.Tensor]:
    """`run(body, *tensors, dtype)`: `body(lane, *tensors)` of each of 64 lanes; the lane is an Int32."""

    def run(body: Callable[..., Any], *tensors: torch.Tensor, dtype: torch.dtype = torch.int32) -> torch.Tensor:
        given = [*tensors, *[torch.zeros(1)] * (3 - len(tensors))]
        out = torch.zeros(LANES, dtype=dtype)

        @flyc.kernel
        def kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, Out: fx.Tensor):
            lane = fx.thread_idx.x
            result = fx.as_dsl_value(body(fx.Int32(lane), *[A, B, C][: len(tensors)]))
            Out[lane] = result.to(Out.dtype)

        launch = launcher_of(kernel, grid=1, block=LANES)
        launch(*given, out)
        return out

    return run
