"""Rounding modes of FlyDSL: the hardware's is taken, others are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError
from tests.launchers import launcher_of

NEAREST, UP = fx.RoundingMode.to_nearest_even, fx.RoundingMode.upward


def test_the_nearest_with_ties_to_even() -> None:
    @flyc.kernel
    def kernel(x: fx.Tensor, halves: fx.Tensor, fused: fx.Tensor):
        i = fx.thread_idx.x
        halves[i] = x[i].to(fx.Float16, rounding_mode=NEAREST)
        pair = fx.Vector.from_elements([x[i], x[i]], fx.Float32).to(fx.BFloat16, rounding_mode=NEAREST)
        fused[i] = fx.fma(x[i], 2.0, pair[1].to(fx.Float32), roundingmode=NEAREST)

    x = torch.tensor([1 + 2.0**-11, 1 + 3 * 2.0**-11, -0.1, 3.0])
    halves, fused = torch.zeros(4).half(), torch.zeros(4)
    launcher_of(kernel, grid=1, block=4)(x, halves, fused)
    assert torch.equal(halves, x.half())
    assert torch.equal(fused, x * 2 + x.bfloat16().float())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda x: x.to(fx.Float16, rounding_mode=UP), "the rounding mode upward is unsupported"),
        (lambda x: x.to(fx.Int32, rounding_mode=NEAREST), "of a conversion from Float32 to Int32"),
        (lambda x: fx.fma(x, x, x, roundingmode="up"), "the rounding mode must be a fx.RoundingMode, got 'up'"),
    ],
)
def test_others_are_refused(wrong: Callable[[Any], Any], message: str) -> None:
    @flyc.kernel
    def kernel(x: fx.Tensor):
        wrong(x[0])

    with pytest.raises(ArgumentError, match=message):
        launcher_of(kernel, grid=1, block=1).lower(torch.zeros(4), arch="gfx942")
