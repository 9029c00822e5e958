"""Runtime indices of register memory and vectors: outside they mean the last element, inside they cost nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import CompileError
from flydsl.expr.numbers import vector_value
from flydsl.hsaco.listing import read_listing
from flydsl.passes.to_rocdl import register_indices
from tests.launchers import launcher_of

INDICES = [0, 1, 3, 4, 5, 7, 8, 100, 2**31 - 1, -1, -2, -(2**31)]


def counted(count: int, first: int = 0) -> fx.Tensor:
    """A register tensor of `first`, `first` + 1, ..."""
    registers = fx.make_rmem_tensor(count, fx.Int32)
    for j in fx.range_constexpr(count):
        registers[j] = first + j
    return registers


def launched(body: Callable[..., Any], *indices: int) -> list[list[int]]:
    """What `body(n)` gives, a list of numbers, in a kernel in which n is one of the indices, for each of them."""

    @flyc.kernel
    def kernel(Out: fx.Tensor, N: fx.Tensor):
        for place, value in enumerate(body(N[fx.block_idx.x])):
            Out[fx.block_idx.x, place] = value

    launch = launcher_of(kernel, grid=len(indices), block=1)
    out = torch.full((len(indices), 16), -9, dtype=torch.int32)
    launch(out, torch.tensor(indices, dtype=torch.int32))
    return [[number for number in row if number != -9] for row in out.tolist()]


def read(n):
    return [counted(4)[n]]


def read_long(n):
    return [counted(4)[n.to(fx.Int64)]]


def written(n):
    registers, beside = counted(4), counted(4, 20)
    registers[n] = 9
    return [*(registers[j] for j in range(4)), *(beside[j] for j in range(4)), beside[n]]


def rows(n):
    registers = fx.make_rmem_tensor((3, 4), fx.Int32)  # the first mode is the fastest
    for j in fx.range_constexpr(12):
        registers[j] = j
    return [registers[2, n], registers[n, 3], registers[None, n][1]]


def element_of_vector(n):
    return [counted(4).load()[n], fx.vector.insertelement(counted(4).load(), 9, n)[3]]


def narrow_position(n):
    return [counted(4).load()[n.to(fx.Int8)]]


def bytes_of_it(n):
    pointer = fx.recast_iter(fx.Int8, fx.get_iter(counted(4, 1)))
    return [pointer[n].to(fx.Int32)]


def clamped(index: int, count: int) -> int:
    return min(index & 0xFFFFFFFF, count - 1)


def after_write(n: int) -> list[int]:
    numbers = np.arange(4)
    numbers[clamped(n, 4)] = 9
    return [*numbers.tolist(), 20, 21, 22, 23, 20 + clamped(n, 4)]


WHAT_THEY_GIVE: dict[Callable[..., Any], Callable[[int], list[int]]] = {
    read: lambda n: [clamped(n, 4)],
    read_long: lambda n: [clamped(n, 4)],
    written: after_write,
    element_of_vector: lambda n: [clamped(n, 4), 9 if clamped(n, 4) == 3 else 3],
    narrow_position: lambda n: [clamped((n + 128) % 256 - 128, 4)],
    bytes_of_it: lambda n: np.arange(1, 5, dtype=np.int32).view(np.int8)[[clamped(n, 16)]].tolist(),
}


@pytest.mark.parametrize("opt_level", ["0", "2"])
@pytest.mark.parametrize("body", WHAT_THEY_GIVE)
@pytest.mark.diagonal(2)
def test_an_index_outside_is_the_last(body, opt_level, monkeypatch):
    monkeypatch.setenv("FLYDSL_COMPILE_OPT_LEVEL", opt_level)
    assert launched(body, *INDICES) == [WHAT_THEY_GIVE[body](n) for n in INDICES]


def test_a_row_outside_stays_inside_of_the_tensor():
    """What counts is the place in memory: 3 * n for the second mode, modulo 2^32, and at most the last."""
    expected = [[clamped(2 + 3 * n, 12), clamped(9 + n, 12), clamped(1 + 3 * n, 12)] for n in INDICES]
    assert launched(rows, *INDICES) == expected


@flyc.jit
def chosen(n):
    first, second = counted(4), counted(4, 10)
    for _ in range(n):
        first, second = second, first
    other = first if n > 2 else second
    return [first[n], other[n + 1]]


def test_tensors_that_a_loop_or_branch_chooses():
    for n, (element, other) in enumerate(launched(chosen, *range(6))):
        first, second = (10, 0) if n % 2 else (0, 10)
        assert element == first + clamped(n, 4)
        assert other == (first if n > 2 else second) + clamped(n + 1, 4)


def outside(n):
    registers = counted(4)
    registers[n] = 1
    fx.get_iter(registers)[4] = 2
    return [registers[0]]


@flyc.jit
def moved_along(n):
    pointer = fx.get_iter(counted(4))
    for _ in range(n):
        pointer = pointer + 1
    return [pointer[0]]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (outside, "an access of i32 from byte 16 of a register tensor of 16 bytes"),
        (moved_along, "a part of a register tensor that a branch or loop chooses is unsupported"),
    ],
)
def test_what_cannot_be_inside_is_an_error(body, message):
    with pytest.raises(CompileError, match=message) as caught:
        launched(body, 1)
    assert caught.value.at.file == __file__
    assert caught.value.hint


# --- indices that are inside -----------------------------------------------------------------------------------------


def masked(A, n, t):
    registers = counted(4)
    registers[A[t] & 3] = t
    return registers[A[t + 1] & 3]


@flyc.jit
def in_a_loop(A, n, t):
    registers, total = counted(16), fx.Int32(0)
    for i in range(16):
        registers[i] = A[i * n + t]
    for i in range(n):
        total += registers[i & 15]
    return total


@flyc.jit
def by_thread(A, n, t):
    registers = fx.make_rmem_tensor((4, 4), fx.Int32)
    for i in range(4):
        for j in range(4):
            registers[i, j] = A[i * 4 + j + t]
    return registers[t // 64, t & 3]


@flyc.jit
def guarded(A, n, t):
    registers, x = counted(4), A[t]
    if (x >= 0) & (x < 4):
        registers[x] = t
    return registers[0] + registers[3]


def of_a_vector(A, n, t):
    return counted(4).load()[A[t] & 3]


def machine_code(body: Callable[..., Any]) -> list[str]:
    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor, n: fx.Int32):
        Out[fx.thread_idx.x] = body(A, n, fx.thread_idx.x)

    launch = launcher_of(kernel, grid=1, block=256)
    isa = launch.lower(*torch.zeros(2, 512, dtype=torch.int32), 3).artifact.isa
    return [instruction.text for instruction in read_listing(isa).instructions]


@pytest.mark.parametrize("body", [masked, in_a_loop, by_thread, guarded, of_a_vector])
def test_an_index_that_is_known_to_be_inside_costs_nothing(body, monkeypatch):
    with_clamp = machine_code(body)
    monkeypatch.setattr(register_indices, "clamp", lambda function: None)
    monkeypatch.setattr(vector_value, "runtime_position", lambda number, count: fx.Index(number).ir_value())
    assert machine_code(body) == with_clamp
