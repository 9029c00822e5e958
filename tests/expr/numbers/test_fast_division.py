"""Division by multiplication."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr.numeric import FastDivmod, fast_divmod, fastdivmod_magic

DIVISORS = [1, 2, 3, 7, 8, 641, 65535, 65536, 65537, (1 << 30) + 1, (1 << 31) - 1]
NEAR = [0, 1, 2, (1 << 30) - 1, (1 << 31) - 1]


@pytest.mark.parametrize("divisor", DIVISORS)
def test_the_magic_of_a_known_divisor(divisor: int) -> None:
    magic, shift = fastdivmod_magic(divisor)
    multiples = [divisor * k + off for k in (1, 2, ((1 << 31) - 1) // divisor) for off in (-1, 0, 1)]
    for n in [*NEAR, *(n for n in multiples if n < 1 << 31)]:
        assert (n * magic) >> (32 + shift) == n // divisor


@pytest.mark.parametrize("wrong", [0, -3, 1 << 31])
def test_a_divisor_outside_is_an_error(wrong: int) -> None:
    with pytest.raises(ValueError, match=f"31 bits, got {wrong}"):
        fastdivmod_magic(wrong)


@fx.struct
class Sizes:
    columns: FastDivmod


@flyc.kernel
def divide(N: fx.Tensor, Out: fx.Tensor, sizes: Sizes, same: FastDivmod, d: fx.Int32):
    n = N[fx.thread_idx.x]
    magic, shift = fastdivmod_magic(10)
    for i, (q, r) in enumerate(
        (sizes.columns.divmod(n), same.divmod(n), FastDivmod(d).divmod(n), fast_divmod(n, 10, magic, shift))
    ):
        Out[fx.thread_idx.x, 2 * i] = q
        Out[fx.thread_idx.x, 2 * i + 1] = r


@flyc.jit
def launch(N: fx.Tensor, Out: fx.Tensor, d: fx.Int32):
    divisor = FastDivmod(d)
    divide(N, Out, Sizes(columns=divisor), divisor, d).launch(grid=1, block=64)


def test_in_a_launcher_a_kernel_and_a_struct() -> None:
    given: Any = torch.randint(0, (1 << 31) - 1, (64,), dtype=torch.int32)
    given[: len(NEAR)] = torch.tensor(NEAR, dtype=torch.int32)
    for divisor in (1, 2, 641, 65537, (1 << 31) - 1):
        out = torch.zeros(64, 8, dtype=torch.int32)
        launch(given, out, divisor)
        for i, d in enumerate((divisor, divisor, divisor, 10)):
            assert torch.equal(out[:, 2 * i : 2 * i + 2], torch.stack([given // d, given % d], 1))
