"""Division and remainder by zero, and of the smallest number by -1, on the device and in launchers."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from tests.launchers import launcher_of

SMALLEST = {torch.int32: -(1 << 31), torch.int64: -(1 << 63), torch.int16: -(1 << 15)}


@flyc.kernel
def divide(A: fx.Tensor, B: fx.Tensor, Quotients: fx.Tensor, Remainders: fx.Tensor):
    i = fx.thread_idx.x
    quotient, remainder = A[i] // B[i], A[i] % B[i]
    Quotients[i] = quotient.to(Quotients.dtype)
    Remainders[i] = remainder.to(Remainders.dtype)


launch = launcher_of(divide, grid=1, block=64)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_signed_division_by_any_number(dtype: Any) -> None:
    smallest = SMALLEST[dtype]
    edges = [smallest, smallest + 1, -7, -1, 0, 1, 7, -smallest - 1]
    A = torch.tensor([a for a in edges for _ in edges], dtype=dtype)
    B = torch.tensor(edges * len(edges), dtype=dtype)
    quotients, remainders = torch.zeros_like(A), torch.zeros_like(A)
    launch(A, B, quotients, remainders)
    for a, b, quotient, remainder in zip(*(t.tolist() for t in (A, B, quotients, remainders)), strict=True):
        expected = a if b == 0 or (a == smallest and b == -1) else a // b
        assert quotient == expected, (a, b)
        truncated = abs(a) % abs(b or 1)
        assert remainder == (-truncated if a < 0 else truncated), (a, b)


def test_unsigned_division_by_zero() -> None:
    A = torch.full((64,), 2**32 - 1, dtype=torch.uint32)
    B = torch.arange(64, dtype=torch.int64).to(torch.uint32)
    quotients, remainders = torch.zeros_like(A), torch.zeros_like(A)
    launch(A, B, quotients, remainders)
    assert quotients.tolist() == [(2**32 - 1) // max(b, 1) for b in range(64)]
    assert remainders.tolist() == [(2**32 - 1) % max(b, 1) for b in range(64)]


@flyc.kernel
def count(A: fx.Tensor):
    A[fx.block_idx.x] = 1


def test_a_launcher_that_divides_by_zero_ends_no_process() -> None:
    @flyc.jit
    def divided(A: fx.Tensor, n: fx.Int32, d: fx.Int32):
        count(A).launch(grid=n // d, block=1)

    @flyc.jit
    def rounded_up(A: fx.Tensor, n: fx.Int32, d: fx.Int32):
        count(A).launch(grid=fx.ceil_div(n, d), block=1)

    for launcher in (divided, rounded_up):
        for divisor, blocks in ((0, 8), (4, 2)):
            A = torch.zeros(8, dtype=torch.int32)
            launcher(A, 8, divisor)
            assert A.sum() == blocks


def test_division_by_a_known_number_costs_nothing() -> None:
    @flyc.kernel
    def known(A: fx.Tensor):
        i = fx.thread_idx.x
        A[i] = A[i] // 3 + A[i] % 8 + A[i] // fx.block_dim.x

    @flyc.jit
    def run(A: fx.Tensor, threads: fx.Int32):
        known(A).launch(grid=1, block=threads)

    pipeline = run.lower(torch.zeros(64, dtype=torch.int32), 64)
    pipeline.run(until="fly-layout-lowering")
    assert "maxui" not in pipeline["fly-layout-lowering"].after
