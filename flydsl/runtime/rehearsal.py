"""Launches on the simulator whose effects are undone: with `checking()`, a kernel with assertions runs first."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from functools import cache
from typing import Any

import numpy as np

from flydsl.errors import SimulatorError
from flydsl.runtime.simulated import SimulatedDevice
from flydsl.simulator import LaunchStatistics, Memory
from flydsl.simulator.arrays import Array
from flydsl.simulator.checks import no_checks
from flydsl.simulator.dispatch import Dispatch
from flydsl.simulator.launching import put_around
from flydsl.simulator.memory.allocations import allocations
from flydsl.simulator.memory.buffers import Buffer
from flydsl.system.interrupts import holding


class _Undone(Memory):
    """The address space of a call; `undo` gives all memory that it reached the content that it had."""

    def __init__(self, memory: Memory) -> None:
        self._before: list[tuple[Array, Array]] = []
        find = memory.find
        super().__init__(memory.in_place, find and (lambda address: self._kept(find(address))))
        for buffer in memory.in_place:
            self._kept(buffer)

    def _put(self, buffer: Buffer) -> int:
        self._before.append((buffer.data, buffer.data.copy()))
        return super()._put(buffer)

    def _kept(self, buffer: Buffer | None) -> Buffer | None:
        if buffer is not None:
            self._before.append((buffer.data, buffer.data.copy()))
        return buffer

    def undo(self) -> None:
        for data, before in self._before:
            np.copyto(data, before)


_sessions: ContextVar[list[_Undone] | None] = ContextVar("flydsl_rehearsals", default=None)


class _RehearsalDevice(SimulatedDevice):
    name = "simulator, for assertions"

    def session(self) -> Memory:
        sessions = _sessions.get()
        assert sessions is not None  # the device is that of `rehearse` alone
        sessions.append(_Undone(allocations.memory()))
        return sessions[-1]


@cache
def _device() -> _RehearsalDevice:
    """The device of all rehearsals, so that a launcher is bound to it once."""
    return _RehearsalDevice()


def rehearse(run: Callable[[SimulatedDevice], Any]) -> None:
    """Run a call on a simulated device, without checks and output, and undo what it did. Raises DeviceAssertion.

    Other errors are those of the call itself, which follows. A call that shares memory with other processes is not
    rehearsed: they see what it does.
    """
    if allocations.memory().others is not None:
        return
    sessions: list[_Undone] = []
    try:
        with holding(_sessions, sessions), no_checks(), redirect_stdout(io.StringIO()):
            run(_device())
    except SimulatorError:
        pass
    finally:
        for session in sessions:
            session.undo()


@contextmanager
def undone() -> Iterator[None]:
    """Launches inside the `with` block run as always, without output; after it, memory is as it was before."""
    before: list[tuple[Array, Array]] = []
    alive: list[Memory] = []  # a program may let go of a tensor when it has launched

    def kept(buffer: Buffer | None) -> Buffer | None:
        if buffer is not None and buffer.data.flags.writeable:
            before.append((buffer.data, buffer.data.copy()))
        return buffer

    def around(
        dispatch: Dispatch, kernarg: bytes, memory: Memory, run: Callable[[], LaunchStatistics]
    ) -> LaunchStatistics:
        alive.append(memory)
        for buffer in memory.buffers().values():
            kept(buffer)
        if find := memory.find:
            memory.find = lambda address: kept(find(address))
        return run() if outer is None else outer(dispatch, kernarg, memory, run)

    outer = put_around(around)
    try:
        with redirect_stdout(io.StringIO()):
            yield
    finally:
        put_around(outer)
        for data, content in reversed(before):
            np.copyto(data, content)
