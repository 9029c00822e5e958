"""Launches of binary kernels as they are made: the list of `capture_binary_launches`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flydsl.arch.launch_limits import Dim3
from flydsl.errors import ArgumentError
from flydsl.simulator.counters import LaunchCounters
from flydsl.simulator.counters.session import counted_into
from flydsl.simulator.timing import Trace
from flydsl.simulator.timing.session import traced_into

if TYPE_CHECKING:
    from flydsl.binary.module import BinaryKernel


@dataclass(frozen=True)
class BinaryLaunch:
    """A launch of a kernel from a code object. smem: bytes of dynamic LDS.

    arguments: in the order of `kernel.parameters`. counters: what the simulator counted, if it counted this launch.
    traces: likewise, if it was timed.
    """

    kernel: BinaryKernel
    arguments: tuple[Any, ...]
    grid: Dim3
    block: Dim3
    smem: int = 0
    counters: list[LaunchCounters] = field(default_factory=list, repr=False)
    traces: list[Trace] = field(default_factory=list, repr=False)

    @property
    def trace(self) -> Trace:
        """Its trace. Raises ArgumentError if it was not timed."""
        if not self.traces:
            raise ArgumentError("the launch was not timed", hint="capture_binary_launches(traced=True) times launches")
        return self.traces[0]

    def __repr__(self) -> str:
        return f"<BinaryLaunch of {self.kernel.name}, grid={self.grid}, block={self.block}>"


@dataclass
class _Capture:
    counted: bool
    traced: bool
    launches: list[BinaryLaunch] = field(default_factory=list)
    seen: set[tuple[int, str]] = field(default_factory=set)


_capture: ContextVar[_Capture | None] = ContextVar("flydsl_binary_capture", default=None)


@contextmanager
def capture_binary_launches(*, counted: bool = False, traced: bool = False) -> Iterator[list[BinaryLaunch]]:
    """Yield a list that receives every launch of a binary kernel inside the `with` block, also one that fails.

    counted: count the first launch of each kernel (see `flydsl.simulator.counting`), unless checks are on.
    traced: likewise time it (see `flydsl.simulator.tracing`), if there are figures of the GPU; it runs as always.

    In nested blocks the outer one receives the launches, too.
    """
    around = _capture.get()
    capture = _Capture(counted, traced)
    token = _capture.set(capture)
    try:
        yield capture.launches
    finally:
        _capture.reset(token)
        if around is not None:
            around.launches.extend(capture.launches)


def recorded(launch: BinaryLaunch) -> AbstractContextManager[Any]:
    """Record a launch that is about to run inside the `with` block."""
    capture, around = _capture.get(), ExitStack()
    if capture is None:
        return around
    key = (id(launch.kernel.module.code), launch.kernel.name)
    is_first = key not in capture.seen
    capture.seen.add(key)
    capture.launches.append(launch)
    if capture.counted and is_first:
        around.enter_context(counted_into(launch.counters))
    if capture.traced and is_first:
        around.enter_context(traced_into(launch.traces, launch.kernel.module.code.arch))
    return around
