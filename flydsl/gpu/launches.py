"""Launches of a posed GPU: each advances the clock, and one that would change nothing is not executed again.

Times are estimated from the first event that measures time on: an estimate takes as long as the launch, so programs
that do not ask for time do not pay for it. They are kept by code and sizes: the same kernel with the same grid and the
same numbers is estimated once.

A benchmark repeats a launch a hundred times, or gives it copies of its tensors. So a launch that is repeated is watched
for whether it changes any byte. If it does not, then it will not do so where its memory has the same contents again:
it takes its time on the clock and is not executed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from flydsl.arch.products import Product
from flydsl.errors import ArchError
from flydsl.gpu.memory import MEMORY
from flydsl.gpu.streams import CLOCK
from flydsl.simulator import counting, tracing
from flydsl.simulator.checks import enabled_checks
from flydsl.simulator.counters.session import current_counting
from flydsl.simulator.decoding.program import Program
from flydsl.simulator.dispatch import Dispatch, LaunchStatistics
from flydsl.simulator.estimates import Estimate
from flydsl.simulator.memory.buffers import Memory
from flydsl.simulator.timing.session import current_tracing
from flydsl.sweeps.bench import Estimated


@dataclass
class KernelTime:
    """The launches of one kernel with one size. estimate: of one launch. bound: what limits it, by its counts."""

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    estimate: Estimate
    bound: str
    launches: int = 0


Sizes = tuple[str, tuple[int, ...], tuple[int, ...], int, bytes]
Call = tuple[Program, Sizes, tuple[tuple[int, int], ...]]
Contents = tuple[bytes, ...]


class Launches:
    """The work that a GPU was asked to do. times: of each program, by kernel and sizes."""

    def __init__(self, product: Product) -> None:
        self._product = product
        self.times: WeakKeyDictionary[Program, dict[Sizes, KernelTime | None]] = WeakKeyDictionary()
        self.table: list[KernelTime] = []
        self.under_checks = 0
        self._seen: WeakKeyDictionary[Program, set[Sizes]] = WeakKeyDictionary()
        self._unchanging: set[tuple[Program, Sizes, Contents]] = set()
        self._fixed: dict[Call, int] = {}

    def __call__(
        self, dispatch: Dispatch, kernarg: bytes, memory: Memory, run: Callable[[], LaunchStatistics]
    ) -> LaunchStatistics:
        """Make one launch."""
        if MEMORY.captured is not None:
            MEMORY.captured.append(lambda: self(dispatch, kernarg, memory, run))
        self.under_checks += bool(enabled_checks())
        if not CLOCK.is_watched or enabled_checks() or current_counting() is not None or current_tracing() is not None:
            MEMORY.changes += 1
            return run()
        sizes = _sizes(dispatch, kernarg)
        seen = self._seen.setdefault(dispatch.program, set())
        if sizes not in seen:
            seen.add(sizes)
            MEMORY.changes += 1
            return self._timed(dispatch, sizes, run)
        call = dispatch.program, sizes, _places(memory)
        if self._fixed.get(call) == MEMORY.changes:
            return self._skipped(dispatch, sizes)
        before = _contents(memory)
        if (dispatch.program, sizes, before) in self._unchanging:
            self._fixed[call] = MEMORY.changes
            return self._skipped(dispatch, sizes)
        known = len(dispatch.memory.in_place)
        statistics = self._timed(dispatch, sizes, run)
        if known == len(dispatch.memory.in_place) and _contents(memory) == before:
            self._unchanging.add((dispatch.program, sizes, before))
            self._fixed[call] = MEMORY.changes
        else:
            MEMORY.changes += 1
        return statistics

    def _skipped(self, dispatch: Dispatch, sizes: Sizes) -> LaunchStatistics:
        self._advance(dispatch, sizes)
        return LaunchStatistics(dispatch.workgroup_count * dispatch.waves_per_workgroup, 0)

    def _timed(self, dispatch: Dispatch, sizes: Sizes, run: Callable[[], LaunchStatistics]) -> LaunchStatistics:
        """Run a launch, and estimate its time if that is not known."""
        times = self.times.setdefault(dispatch.program, {})
        if sizes in times:
            statistics = run()
        else:
            with counting() as counters, tracing(execute=True, only_known=True, gpu=self._product):
                statistics = run()
            times[sizes] = self._kept(dispatch, Estimated(tuple(counters.launches)))
        self._advance(dispatch, sizes)
        return statistics

    def _kept(self, dispatch: Dispatch, found: Estimated) -> KernelTime | None:
        try:
            time = KernelTime(dispatch.kernel_name, dispatch.grid, dispatch.block, found.estimate, found.bound)
        except ArchError as reason:  # a GPU whose figures nobody has published
            CLOCK.unknown = CLOCK.unknown or reason.message
            return None
        self.table.append(time)
        return time

    def _advance(self, dispatch: Dispatch, sizes: Sizes) -> None:
        time = self.times[dispatch.program][sizes]
        if time is not None:
            time.launches += not CLOCK.is_trial
            CLOCK.advance(time.estimate.time_us, time.kernel)


def _sizes(dispatch: Dispatch, kernarg: bytes) -> Sizes:
    """The key of a launch's time. The addresses among its arguments count the buffers of the launch."""
    return dispatch.kernel_name, tuple(dispatch.grid), tuple(dispatch.block), dispatch.lds_bytes, kernarg


def _places(memory: Memory) -> tuple[tuple[int, int], ...]:
    """The places where the host has the memory of a launch."""
    return tuple((buffer.data.ctypes.data, buffer.data.size) for buffer in memory.buffers().values())


def _contents(memory: Memory) -> Contents:
    """Digests of the buffers in a launch's memory."""
    return tuple(hashlib.blake2b(buffer.data.data, digest_size=16).digest() for buffer in memory.buffers().values())


def report(table: Sequence[KernelTime], operators_us: float, operators: int) -> str:
    """The kernels with their launches, time and what limits them, the longest first."""
    rows = [
        (time.kernel, "x".join(map(str, time.grid)), str(time.launches), str(time.estimate), time.bound)
        for time in sorted(table, key=lambda time: -time.launches * time.estimate.time_us)
        if time.launches
    ]
    heads = ("kernel", "grid", "launches", "time of each", "limited by")
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in (heads, *rows)
    ]
    if operators:
        lines.append(f"torch: {operators} operators, {operators_us:.4g} us by memory bandwidth")
    return "\n".join(lines)
