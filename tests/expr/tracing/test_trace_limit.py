"""A trace that does not end is refused, with its loop."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError, TraceError
from flydsl.expr.tracing import trace_limit
from tests.launchers import launcher_of


def launch(body: Callable[[Any], None]) -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor):
        body(A)

    run = launcher_of(kernel, grid=1, block=64)
    run(torch.zeros(64))


@flyc.jit
def without_end(A):
    while True:
        A[fx.thread_idx.x] = A[fx.thread_idx.x] + 1.0


@flyc.jit
def forgotten_step(A):
    k = 0
    while k < 4:
        pass


@flyc.jit
def unrolled(A):
    for k in fx.range_constexpr(100_000):
        for _ in fx.range_constexpr(2):
            A[fx.thread_idx.x] = float(k)


@flyc.jit
def around_a_loop_that_ends(A):
    while True:
        for k in fx.range_constexpr(2):
            A[fx.thread_idx.x] = float(k)


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (without_end, "while True:"),
        (forgotten_step, "while k < 4:"),
        (unrolled, "for k in fx.range_constexpr(100_000):"),
        (around_a_loop_that_ends, "while True:"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_error_names_the_loop(monkeypatch: pytest.MonkeyPatch, body: Any, line: str) -> None:
    monkeypatch.setenv("FLYDSL_COMPILE_MAX_TRACED_OPS", "300")
    with pytest.raises(TraceError, match="more than 300 operations are traced, and this loop has not ended") as caught:
        launch(body)
    assert caught.value.at.file == __file__
    assert line in str(caught.value)
    assert "range(...)" in str(caught.value)
    assert "FLYDSL_COMPILE_MAX_TRACED_OPS" in str(caught.value)


def numbers() -> Iterator[int]:
    k = 0
    while True:
        yield k
        k += 1


@pytest.mark.parametrize(
    ("items", "ends"),
    [
        (itertools.count, "whose items have no end"),
        (lambda: itertools.cycle([1, 2]), "whose items have no end"),
        (lambda: itertools.repeat(1), "whose items have no end"),
        pytest.param(numbers, "which has not ended 1000 iterations later", marks=pytest.mark.slow),
    ],
    ids=["count", "cycle", "repeat", "generator"],
)
def test_a_break_on_the_device_ends_no_loop_of_python(items: Callable[[], Any], ends: str) -> None:
    @flyc.jit
    def body(A):
        for k in items():  # here
            if A[k] > 0:
                break

    with pytest.raises(TraceError, match=f"`break` on a runtime condition .*, {ends}") as caught:
        launch(body)
    assert "# here" in str(caught.value)


@pytest.mark.slow
def test_a_break_on_the_device_skips_the_rest_of_the_items() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor):
        for k in itertools.repeat(1, 4):
            if A[0] >= 2:
                break
            A[0] = A[0] + k

    A = torch.zeros(64)
    launcher_of(kernel, grid=1, block=1)(A)
    assert A[0] == 2


def test_there_is_a_warning_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_limit, "_WARN_AT", 100)

    @flyc.jit
    def body(A):
        for k in fx.range_constexpr(60):
            A[fx.thread_idx.x] = float(k)

    with pytest.warns(UserWarning, match="100 operations are traced, in the loop at .*test_trace_limit.py") as caught:
        launch(body)
    assert caught[0].filename == __file__  # so that Python shows the user's line


def test_the_warning_speaks_of_a_loop_only_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_limit, "_WARN_AT", 1)
    with pytest.warns(UserWarning, match=r"^compiling takes long: \d+ operations are traced$"):
        launch(lambda A: A.__setitem__(fx.thread_idx.x, 1.0))


@pytest.mark.slow
def test_the_count_begins_anew_with_each_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_COMPILE_MAX_TRACED_OPS", "40")
    for value in range(8):
        launch(lambda A, value=value: A.__setitem__(fx.thread_idx.x, float(value)))


def test_a_limit_that_is_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_COMPILE_MAX_TRACED_OPS", "many")
    with pytest.raises(ArgumentError, match=r"FLYDSL_COMPILE_MAX_TRACED_OPS must be .*, got 'many'"):
        launch(without_end)
