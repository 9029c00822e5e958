"""Python looks for no garbage while something compiles, and goes on as before."""

from __future__ import annotations

import gc
import signal
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.system.garbage import collection_paused, move_to_oldest_generation
from tests.launchers import launcher_of


@pytest.fixture(autouse=True, scope="module")
def unfrozen() -> Iterator[None]:
    """Nothing is frozen, as in a user's process; `conftest.py` freezes what all tests share."""
    gc.unfreeze()
    gc.collect()
    yield
    gc.freeze()


@pytest.fixture
def collections() -> Iterator[list[int]]:
    """The generations that were collected."""
    found: list[int] = []

    def note(phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            found.append(info["generation"])

    gc.callbacks.append(note)
    yield found
    gc.callbacks.remove(note)


class Cycle:
    def __init__(self) -> None:
        self.itself = self


@pytest.mark.slow
def test_garbage_is_found_afterwards_among_what_is_young(collections: list[int]) -> None:
    with collection_paused():
        gone = weakref.ref(Cycle())
        kept = [[] for _ in range(20_000)]  # type: ignore[var-annotated]
        assert collections == []
    assert gc.isenabled()
    gc.collect(0)
    assert gone() is None
    assert len(kept) == 20_000


def test_it_is_as_it_was_after_an_error_and_where_it_is_off() -> None:
    with pytest.raises(ZeroDivisionError), collection_paused():
        raise ZeroDivisionError
    assert gc.isenabled()
    gc.disable()
    try:
        with collection_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_another_thread_says_meanwhile_stays() -> None:
    before = gc.get_threshold()
    try:
        with collection_paused():
            gc.disable()
            gc.set_threshold(500)
        assert not gc.isenabled()
        assert gc.get_threshold()[0] == 500
    finally:
        gc.enable()
        gc.set_threshold(*before)


def test_the_pause_of_one_thread_within_that_of_another_ends_with_it() -> None:
    before = gc.get_threshold()
    outer, inner = collection_paused(), collection_paused()
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    inner.__exit__(None, None, None)
    assert gc.get_threshold() == before


def test_what_is_taken_for_old_was_not_looked_at(collections: list[int]) -> None:
    new = Cycle()
    gc.disable()  # another thread may come to a collection meanwhile
    try:
        move_to_oldest_generation()
        assert any(each is new for each in gc.get_objects(generation=2))
        assert gc.get_count()[1:] == (0, 0)
        assert collections == []
    finally:
        gc.enable()


def test_frozen_objects_stay_frozen() -> None:
    frozen = Cycle()
    gc.freeze()
    try:
        move_to_oldest_generation()
        assert not any(each is frozen for each in gc.get_objects())
    finally:
        gc.unfreeze()


@flyc.kernel
def double_kernel(x: fx.Tensor):
    x[fx.thread_idx.x] = x[fx.thread_idx.x] * 2


double = launcher_of(double_kernel, grid=1, block=64)


def test_a_first_call_collects_little(collections: list[int]) -> None:
    x = torch.ones(64)
    double(x)
    assert torch.equal(x, torch.full((64,), 2.0))
    assert 2 not in collections


class _Interrupting:
    """Garbage while whose finalizer runs somebody presses Ctrl-C."""

    def __init__(self) -> None:
        self.myself = self

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


@collection_paused()
def _make_garbage() -> list[list[int]]:
    _Interrupting()
    return [[i] for i in range(100_000)]


def test_ctrl_c_while_garbage_is_collected_is_not_lost() -> None:
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            _make_garbage()
    finally:
        signal.signal(signal.SIGINT, previous)
