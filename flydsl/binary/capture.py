"""Launches of binary kernels as they are made: the list of `capture_binary_launches`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flydsl.arch.launch_limits import Dim3
from flydsl.simulator.checks import enabled_checks
from flydsl.simulator.counters import LaunchCounters, counting, current_counting

if TYPE_CHECKING:
    from flydsl.binary.module import BinaryKernel


@dataclass(frozen=True)
class BinaryLaunch:
    """A launch of a kernel from a code object. smem: bytes of dynamic LDS.

    arguments: in the order of `kernel.parameters`. counters: what the simulator counted, if it counted this launch.
    """

    kernel: BinaryKernel
    arguments: tuple[Any, ...]
    grid: Dim3
    block: Dim3
    smem: int = 0
    counters: list[LaunchCounters] = field(default_factory=list, repr=False)

    def __repr__(self) -> str:
        return f"<BinaryLaunch of {self.kernel.name}, grid={self.grid}, block={self.block}>"


@dataclass
class _Capture:
    counted: bool
    launches: list[BinaryLaunch] = field(default_factory=list)
    seen: set[tuple[int, str]] = field(default_factory=set)


_capture: ContextVar[_Capture | None] = ContextVar("flydsl_binary_capture", default=None)


@contextmanager
def capture_binary_launches(*, counted: bool = False) -> Iterator[list[BinaryLaunch]]:
    """Yield a list that receives every launch of a binary kernel inside the `with` block, also one that fails.

    counted: count the first launch of each kernel (see `flydsl.simulator.counting`), unless checks are on. In nested
    blocks the outer one receives the launches, too.
    """
    around = _capture.get()
    capture = _Capture(counted)
    token = _capture.set(capture)
    try:
        yield capture.launches
    finally:
        _capture.reset(token)
        if around is not None:
            around.launches.extend(capture.launches)


def recorded(launch: BinaryLaunch) -> AbstractContextManager[None]:
    """Record a launch that is about to run inside of the `with` block."""
    capture = _capture.get()
    if capture is None:
        return nullcontext()
    key = (id(launch.kernel.module.code), launch.kernel.name)
    is_first = key not in capture.seen
    capture.seen.add(key)
    capture.launches.append(launch)
    return _counted(launch) if capture.counted and is_first and not enabled_checks() else nullcontext()


@contextmanager
def _counted(launch: BinaryLaunch) -> Iterator[None]:
    """Count what runs inside of the block. Counters around it receive the counts, too."""
    around = current_counting()
    with counting() as counters:
        try:
            yield
        finally:
            launch.counters.extend(counters.launches)
            if around is not None:
                around.launches.extend(counters.launches)
