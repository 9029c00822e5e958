"""Running one wave on the simulator, and compiling for other targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from tests.launchers import launcher_of

LANES = 64


@pytest.fixture
def wave() -> Callable[..., torch.Tensor]:
    """`run(function, *inputs, dtype=)`: row j of the result is `function(lane, *tensors)[j]` of each of 64 lanes."""

    def run(function: Callable[..., Sequence[Any]], *inputs: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        out = torch.zeros(64, LANES, dtype=dtype)
        made = []

        @flyc.kernel
        def kernel(Out: fx.Tensor, A: fx.Tensor, B: fx.Tensor):
            lane = fx.thread_idx.x
            results = function(lane, *[A, B][: len(inputs)])
            made.append(len(results))
            for j, result in enumerate(results):
                Out[j, lane] = result

        launch = launcher_of(kernel, grid=1, block=LANES)
        a, b = [*inputs, torch.zeros(1), torch.zeros(1)][:2]
        launch(out, a, b)
        return out[: made[0]]

    return run


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """`compiled(function, arch)`: the assembly of a kernel that calls `function(A)`; A is f32 (64)."""

    def run(function: Callable[[Any], Any], arch: str = "gfx942") -> str:
        monkeypatch.setenv("ARCH", arch)

        @flyc.kernel
        def kernel(A: fx.Tensor):
            function(A)

        launch = launcher_of(kernel, grid=1, block=LANES)
        return launch.lower(torch.zeros(64)).artifact.isa

    return run
