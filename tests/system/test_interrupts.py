"""Ctrl-C at any moment: whoever pressed it gets a KeyboardInterrupt, and the next call works."""

from __future__ import annotations

import gc
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from types import FrameType
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler.trace import is_tracing
from flydsl.system.garbage import collection_paused
from flydsl.system.interrupts import holding


@pytest.fixture(autouse=True)
def _interrupts_raise() -> Iterator[None]:
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


def _interrupt_after(function: Callable[..., Any], call: Callable[..., object], number: int) -> bool:
    """Press Ctrl-C as soon as a method of C of that name has returned for the `number`th time. True if it has."""
    seen = 0

    def follow(_frame: FrameType, event: str, called: Any) -> None:
        nonlocal seen
        if event == "c_return" and called == function:
            seen += 1
            if seen == number:
                sys.setprofile(None)
                signal.raise_signal(signal.SIGINT)

    sys.setprofile(follow)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
    return False


def test_a_variable_does_not_keep_what_an_interrupted_block_gave_it() -> None:
    variable: ContextVar[int] = ContextVar("variable", default=1)

    def hold() -> None:
        with holding(variable, 2):
            assert variable.get() == 2

    assert _interrupt_after(variable.set, hold, 1)
    assert variable.get() == 1
    hold()
    assert variable.get() == 1


def test_a_trace_that_is_interrupted_as_it_begins_is_over() -> None:
    from flydsl.compiler import trace

    @flyc.jit
    def launcher(n: fx.Int32) -> None:
        assert is_tracing()

    assert _interrupt_after(trace._current.set, lambda: launcher.lower(1), 1)
    assert not is_tracing()
    launcher.lower(1)


def test_an_interrupt_as_a_compilation_ends_leaves_the_collector_on() -> None:
    @collection_paused()
    def pause() -> None:
        pass

    before = gc.get_threshold()
    assert _interrupt_after(gc.get_threshold, pause, 2)
    assert gc.get_threshold() == before


@flyc.kernel
def _count_kernel(out: fx.Tensor) -> None:
    total = fx.Int32(0)
    for i in range(fx.Int32(5000)):
        total = total ^ (total + i)
    out[fx.block_idx.x] = total


@flyc.jit
def _count(out: fx.Tensor) -> None:
    _count_kernel(out).launch(grid=(4,), block=(64,))


def test_an_interrupt_while_a_thread_of_the_simulator_starts_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_SIMULATOR_THREADS", "2")
    out = torch.zeros(4, dtype=torch.int32)
    _count(out)
    pressed = False

    def follow(frame: FrameType, event: str, _called: Any) -> None:  # threading.Condition.wait has no lock here
        nonlocal pressed
        if event == "c_return" and frame.f_code.co_name == "_release_save":
            pressed = True
            sys.setprofile(None)
            signal.raise_signal(signal.SIGINT)

    before = threading.active_count()
    sys.setprofile(follow)
    try:
        with pytest.raises(KeyboardInterrupt):
            _count(out)
    finally:
        sys.setprofile(None)
    assert pressed
    assert threading.active_count() == before
