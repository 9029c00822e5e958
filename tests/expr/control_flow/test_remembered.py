"""Objects that remember a value within an iteration of a runtime loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import FlyError
from tests.launchers import launcher_of


class Reader:
    def __init__(self, a: Any) -> None:
        self.a = a

    def begin(self, k: Any) -> None:
        self._k = k

    def doubled(self) -> Any:
        return self.a[self._k] * 2

    def first(self, k: Any) -> Any:
        if not hasattr(self, "_first"):
            self._first = k
        return self._first


def run(body: Callable[..., Any]) -> list[int]:
    traced = flyc.jit(body)

    @flyc.kernel
    def kernel(A: fx.Tensor, C: fx.Tensor, n: fx.Int32):
        traced(A, C, n)

    c = torch.zeros(2, dtype=torch.int32)
    launcher_of(kernel, grid=1, block=1)(torch.arange(8, dtype=torch.int32), c, 5)
    return c.tolist()


def test_what_an_iteration_sets_it_reads() -> None:
    def body(A, C, n):
        reader, total, m = Reader(A), fx.Int32(0), fx.Int32(0)
        for k in range(n):
            reader.begin(k)
            total = total + reader.doubled()
        C[0] = total
        while m < n:
            reader.begin(m)
            total = total + reader.doubled()
            m = m + 1
        C[1] = total

    assert run(body) == [20, 40]


def test_loops_in_loops() -> None:
    def body(A, C, n):
        reader, total = Reader(A), fx.Int32(0)
        for k in range(n):
            for j in range(k):
                reader.begin(j)
                total = total + reader.doubled()
            reader.begin(k)
            total = total + reader.doubled()
        C[0] = total

    assert run(body)[0] == sum(2 * j for k in range(5) for j in range(k + 1))


def reads_behind_the_loop(A, C, n):
    reader = Reader(A)
    for k in range(n):
        reader.begin(k)
    C[0] = reader.doubled()


def reads_the_iteration_before(A, C, n):
    reader = Reader(A)
    for k in range(n):
        if k > 0:
            C[0] = reader.doubled()
        reader.begin(k)


def changes_what_it_had(A, C, n):
    reader = Reader(A)
    reader.begin(1)
    for k in range(n):
        C[0] = reader.doubled()
        reader.begin(k)


def keeps_the_first(A, C, n):
    reader, total = Reader(A), fx.Int32(0)
    for k in range(n):
        total = total + reader.first(k)
    C[0] = total


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (reads_behind_the_loop, r"'reader\._k' is first assigned inside a runtime loop"),
        (reads_the_iteration_before, "no attribute '_k'"),
        (changes_what_it_had, "reader is changed inside a runtime loop"),
        (keeps_the_first, "reader is changed inside a runtime loop"),
    ],
)
def test_what_goes_from_iteration_to_iteration_is_refused(body: Callable[..., Any], says: str) -> None:
    with pytest.raises((FlyError, AttributeError), match=says):
        run(body)
