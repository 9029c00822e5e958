"""Rounding modes of conversions: every result is the nearest number in its direction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
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


_TO_TORCH = {fx.Float16: torch.float16, fx.BFloat16: torch.bfloat16, fx.Float32: torch.float32}


def _neighbours(x: torch.Tensor, dtype: torch.dtype) -> tuple[np.ndarray, np.ndarray]:
    """The largest number of a type that is at most x, and the smallest that is at least x."""
    exact = x.double().numpy()
    if dtype == torch.float32:
        with np.errstate(over="ignore"):
            near = exact.astype(np.float32)
        below = np.where(near > exact, np.nextafter(near, np.float32(-np.inf)), near)
        return below, np.where(near < exact, np.nextafter(near, np.float32(np.inf)), near)
    every = torch.arange(-(1 << 15), 1 << 15).to(torch.int16).view(dtype).double()
    every = every[~every.isnan()].unique().numpy()
    last = len(every) - 1
    below = every[np.minimum(np.searchsorted(every, exact, "right") - 1, last)]
    return below, every[np.minimum(np.searchsorted(every, exact, "left"), last)]


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["gfx942", "gfx1201"])
@pytest.mark.parametrize("mode", [fx.RoundingMode.upward, fx.RoundingMode.downward, fx.RoundingMode.toward_zero])
@pytest.mark.parametrize(
    ("source", "target"),
    [(torch.float32, fx.Float16), (torch.float32, fx.BFloat16), (torch.float64, fx.Float32)],
)
@pytest.mark.diagonal(2)
def test_directions(
    source: torch.dtype, target: type[fx.Numeric], mode: fx.RoundingMode, arch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCH", arch)

    @flyc.kernel
    def kernel(x: fx.Tensor, y: fx.Tensor, z: fx.Tensor):
        i = fx.thread_idx.x
        y[i] = x[i].to(target, rounding_mode=mode)
        z[i] = fx.Vector.from_elements([x[i], x[i]]).to(target, rounding_mode=mode)[1]

    torch.manual_seed(0)
    special = [1.0, -1.0, 1 + 1e-7, -1 - 1e-7, 1e-9, -1e-9, 7e4, -7e4, 3.3e38, -3.3e38, 0.0, float("inf"), float("nan")]
    x = torch.cat([torch.randn(51, dtype=torch.float64) * 100, torch.tensor(special, dtype=torch.float64)]).to(source)
    y, z = (torch.zeros(64, dtype=_TO_TORCH[target]) for _ in range(2))
    launcher_of(kernel, grid=1, block=64)(x, y, z)
    below, above = _neighbours(x, y.dtype)
    is_up = mode is UP if mode is not fx.RoundingMode.toward_zero else x.numpy() < 0
    expected = np.where(x.isnan().numpy(), np.nan, np.where(is_up, above, below))
    np.testing.assert_array_equal(y.double().numpy(), expected)
    np.testing.assert_array_equal(z.double().numpy(), expected)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda x: x.to(fx.Float8E5M2, rounding_mode=UP), "the rounding mode upward is unsupported"),
        (lambda x: fx.fma(x, x, x, roundingmode=UP), "math.fma: the rounding mode upward is unsupported"),
        (lambda x: x.to(fx.Int32, rounding_mode=NEAREST), "of a conversion from Float32 to Int32"),
        (lambda x: x.to(fx.Float16, rounding_mode="up"), "the rounding mode must be a fx.RoundingMode, got 'up'"),
    ],
)
def test_others_are_refused(wrong: Callable[[Any], Any], message: str) -> None:
    @flyc.kernel
    def kernel(x: fx.Tensor):
        wrong(x[0])

    with pytest.raises(ArgumentError, match=message):
        launcher_of(kernel, grid=1, block=1).lower(torch.zeros(4), arch="gfx942")
