"""Integers that drop bits on their way: indices of fewer and more bits than 64, and quotients of 128."""

from __future__ import annotations

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import CompileError

NUMBERS = (13253518418, -7, -(2**63), 2**31, 0)
DIVISORS = (3, -17780, 2**40 + 1, -1, 0)


@flyc.kernel
def indices_kernel(X: fx.Tensor, Y: fx.Tensor):
    index = X[fx.thread_idx.x].to(fx.Index)
    Y[fx.thread_idx.x, 0] = index.to(fx.Int32).to(fx.Index).to(fx.Int64)
    Y[fx.thread_idx.x, 1] = index.to(fx.Int8).to(fx.Index).to(fx.Int64)
    wide = X[fx.thread_idx.x].to(fx.Int128) << 40
    Y[fx.thread_idx.x, 2] = (wide.to(fx.Index).to(fx.Int128) >> 40).to(fx.Int64)


@flyc.jit
def indices(X: fx.Tensor, Y: fx.Tensor):
    indices_kernel(X, Y).launch(grid=1, block=len(NUMBERS))


def wrapped(number: int, bits: int) -> int:
    return (number + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def test_an_index_keeps_what_its_cast_dropped() -> None:
    found = torch.zeros(len(NUMBERS), 3, dtype=torch.int64)
    indices(torch.tensor(NUMBERS), found)
    assert found.tolist() == [[wrapped(n, 32), wrapped(n, 8), wrapped(n << 40, 64) >> 40] for n in NUMBERS]


@flyc.kernel
def quotients_kernel(X: fx.Tensor, Y: fx.Tensor, Q: fx.Tensor):
    i = fx.thread_idx.x
    x, y = X[i].to(fx.Int128) << 50, Y[i].to(fx.Int128)
    up, by_constant = fx.ceildiv(x, y), x // 1000003
    for place, result in enumerate((x // y, up, x % y, by_constant)):
        Q[i, 2 * place] = result.to(fx.Int64)
        Q[i, 2 * place + 1] = (result >> 64).to(fx.Int64)


@flyc.jit
def quotients(X: fx.Tensor, Y: fx.Tensor, Q: fx.Tensor):
    quotients_kernel(X, Y, Q).launch(grid=1, block=X.shape[0])


def test_quotients_of_128_bits_are_rounded() -> None:
    pairs = [(n, d) for n in NUMBERS for d in DIVISORS]
    found = torch.zeros(len(pairs), 8, dtype=torch.int64)
    quotients(*(torch.tensor(column) for column in zip(*pairs, strict=True)), found)
    for (n, d), row in zip(pairs, found.tolist(), strict=True):
        x = n << 50
        rest = abs(x) % abs(d) * (-1 if x < 0 else 1) if d else 0
        down, up = (x // d, -(-x // d)) if d else (x, x)
        expected = [wrapped(half, 64) for q in (down, up, rest, x // 1000003) for half in (q, q >> 64)]
        assert row == expected, f"{x} and {d}"


@flyc.kernel
def store_kernel(Y: fx.Tensor, number: fx.Int64):
    Y[0] = number


@flyc.jit
def divided_on_the_host(Y: fx.Tensor, n: fx.Int64):
    store_kernel(Y, ((n.to(fx.Int128) << 64) // n.to(fx.Int128)).to(fx.Int64)).launch(grid=1, block=1)


@flyc.jit
def converted_on_the_host(Y: fx.Tensor, n: fx.Int64):
    store_kernel(Y, n.to(fx.Int128).to(fx.Float32).to(fx.Int64)).launch(grid=1, block=1)


@pytest.mark.parametrize("launcher", [divided_on_the_host, converted_on_the_host], ids=["divided", "converted"])
def test_what_a_launcher_lacks_is_refused_at_its_line(launcher: object) -> None:
    with pytest.raises(CompileError, match="unsupported in a launcher") as caught:
        launcher(torch.zeros(1, dtype=torch.int64), 3)  # type: ignore[operator]
    assert caught.value.at is not None
    assert caught.value.at.file == __file__
