"""Launches of a posed GPU: each advances the clock, and one that would change nothing is not executed again.

Times are estimated from the first event that measures time on: an estimate takes as long as the launch, so programs
that do not ask for time do not pay for it. They are kept by code and sizes: the same kernel with the same grid and the
same numbers is estimated once.

A benchmark repeats a launch a hundred times, or gives it copies of its tensors. So a launch that is repeated is watched
for whether it changes any byte. If it does not, then it will not do so where its memory has the same contents again:
it takes its time on the clock and is not executed.

The launches of `triton.testing.do_bench` wait until their results are read (`waiting`): their times follow
from some of their workgroups.

Under checks every launch is executed, and its time is estimated on a copy before.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from flydsl.arch.products import Product
from flydsl.errors import ArchError, FlyError
from flydsl.gpu.memory import MEMORY
from flydsl.gpu.streams import CLOCK
from flydsl.gpu.waiting import WAITING, is_of_tensors
from flydsl.simulator import counting, tracing
from flydsl.simulator.checks import enabled_checks, no_checks
from flydsl.simulator.counters.session import current_counting
from flydsl.simulator.decoding.program import Program
from flydsl.simulator.dispatch import Dispatch, LaunchStatistics
from flydsl.simulator.errors import SimulatorError
from flydsl.simulator.estimates import Estimate
from flydsl.simulator.memory.buffers import Memory
from flydsl.simulator.timing.session import current_tracing
from flydsl.simulator.timing.trace import Trace
from flydsl.sweeps.bench import Estimated
from flydsl.sweeps.limits import main_stall


@dataclass
class KernelTime:
    """The launches of one kernel with one size. estimate: of one launch. bound: what limits it, by its counts.

    measured_us: the median of the launches on a GPU that is there, None on one that poses.
    """

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    estimate: Estimate
    bound: str
    launches: int = 0
    measured_us: float | None = None

    @property
    def total_us(self) -> float:
        """The time of all its launches, in microseconds: measured, if it is."""
        return self.launches * (self.estimate.time_us if self.measured_us is None else self.measured_us)

    @property
    def compared(self) -> str:
        """The measured time of each, and that of the model in parts of it; empty if none is measured."""
        if self.measured_us is None:
            return ""
        return f"{self.measured_us:.4g} us, the model has {self.estimate.time_us / self.measured_us:.2f} of it"


Sizes = tuple[Any, ...]
"""Kernel, grid, block, bytes of LDS, arguments, and contents of small tensors of integers."""
Call = tuple[Program, Sizes, tuple[tuple[int, int], ...]]
Contents = tuple[bytes, ...]


class Launches:
    """The work that a GPU was asked to do. times: of each program, by kernel and sizes; texts say why it is not known.

    not_timed: how many launches have no time, by the reason.
    """

    def __init__(self, product: Product) -> None:
        self._product = product
        self.times: WeakKeyDictionary[Program, dict[Sizes, KernelTime | str]] = WeakKeyDictionary()
        self.table: list[KernelTime] = []
        self.not_timed: Counter[str] = Counter()
        self._by_address: WeakSet[Program] = WeakSet()  # which work on memory that is not among their arguments
        self._seen: WeakKeyDictionary[Program, set[Sizes]] = WeakKeyDictionary()
        self._unchanging: set[tuple[Program, Sizes, Contents]] = set()
        self._fixed: dict[Call, int] = {}

    def __call__(
        self, dispatch: Dispatch, kernarg: bytes, memory: Memory, run: Callable[[], LaunchStatistics]
    ) -> LaunchStatistics:
        """Make one launch."""
        MEMORY.launched = True
        if MEMORY.captured is not None:
            MEMORY.captured.append(partial(self._again, MEMORY.held(), dispatch, kernarg, memory, run))
        elif MEMORY.is_benchmark and self._waits(dispatch, kernarg, memory, run):
            return _none_executed(dispatch)
        if WAITING:
            WAITING.carry_out()
        reason = _why_not_timed()
        if reason:
            self.not_timed[reason] += 1
            MEMORY.changes += 1
            return run()
        sizes = _sizes(dispatch, kernarg)
        if enabled_checks():
            MEMORY.changes += 1
            return self._timed_before_checks(dispatch, sizes, memory.stream, run)
        seen = self._seen.setdefault(dispatch.program, set())
        if sizes not in seen:
            seen.add(sizes)
            MEMORY.changes += 1
            return self._timed(dispatch, sizes, memory.stream, run)
        call = dispatch.program, sizes, _places(memory)
        if self._fixed.get(call) == MEMORY.changes:
            return self._skipped(dispatch, sizes, memory.stream)
        before = _contents(memory)
        if (dispatch.program, sizes, before) in self._unchanging:
            self._fixed[call] = MEMORY.changes
            return self._skipped(dispatch, sizes, memory.stream)
        known = len(dispatch.memory.in_place)
        statistics = self._timed(dispatch, sizes, memory.stream, run)
        if known == len(dispatch.memory.in_place) and _contents(memory) == before:
            self._unchanging.add((dispatch.program, sizes, before))
            self._fixed[call] = MEMORY.changes
        else:
            MEMORY.changes += 1
        return statistics

    def _again(self, held: tuple[Any, ...], *launch: Any) -> LaunchStatistics:
        """Make a captured launch once more. held: the memory that it knows by its address."""
        return self(*launch)

    def _skipped(self, dispatch: Dispatch, sizes: Sizes, stream: int) -> LaunchStatistics:
        self._advance(dispatch, sizes, stream)
        return _none_executed(dispatch)

    def _waits(self, dispatch: Dispatch, kernarg: bytes, memory: Memory, run: Callable[[], LaunchStatistics]) -> bool:
        """Time a launch by some of its workgroups, and let it wait. False if it has to be carried out now."""
        if _why_not_timed() or enabled_checks() or dispatch.program in self._by_address or not is_of_tensors(memory):
            return False
        WAITING.forget()
        sizes, times = _sizes(dispatch, kernarg), self.times.setdefault(dispatch.program, {})
        if sizes not in times:
            sampled = self._sampled(run)
            if dispatch.memory.in_place:  # it has found memory by its address
                self._by_address.add(dispatch.program)
                return False
            if sampled is None:
                return False
            times[sizes] = self._kept(dispatch, sampled.estimate, main_stall(sampled))
        if isinstance(times[sizes], str):
            return False
        self._advance(dispatch, sizes, memory.stream)
        WAITING.add(memory, run)
        return True

    def _sampled(self, run: Callable[[], LaunchStatistics]) -> Trace | None:
        """The trace of a launch that is not carried out, after the launches that it depends on; None without one."""
        with tracing(gpu=self._product) as traced:
            traced.left_out = WAITING.left_out
            WAITING.left_out.buffer = None
            try:
                run()
                if WAITING.left_out.buffer is not None:
                    WAITING.carry_out()
                    run()
            except (ArchError, SimulatorError):  # which tells of itself where it is carried out
                return None
        return traced.launches[-1].trace

    def _timed(
        self, dispatch: Dispatch, sizes: Sizes, stream: int, run: Callable[[], LaunchStatistics]
    ) -> LaunchStatistics:
        """Run a launch, and estimate its time if that is not known."""
        times = self.times.setdefault(dispatch.program, {})
        if sizes in times:
            statistics = run()
        else:
            with counting() as counters, tracing(execute=True, only_known=True, gpu=self._product):
                statistics = run()
            found = Estimated(tuple(counters.launches))
            try:
                times[sizes] = self._kept(dispatch, found.estimate, found.bound)
            except ArchError as reason:  # a GPU whose figures are not published
                times[sizes] = _unknown(reason)
        if dispatch.memory.in_place:
            self._by_address.add(dispatch.program)
        self._advance(dispatch, sizes, stream)
        return statistics

    def _timed_before_checks(
        self, dispatch: Dispatch, sizes: Sizes, stream: int, run: Callable[[], LaunchStatistics]
    ) -> LaunchStatistics:
        """Estimate a launch on a copy if its time is not known, and then run it under the checks."""
        times = self.times.setdefault(dispatch.program, {})
        if sizes not in times:
            try:
                with no_checks(), tracing(gpu=self._product) as traced:
                    run()
                times[sizes] = self._kept(dispatch, traced.launches[0].trace.estimate, "not counted under checks")
            except (ArchError, SimulatorError) as reason:
                times[sizes] = _unknown(reason)
        self._advance(dispatch, sizes, stream)
        return run()

    def _kept(self, dispatch: Dispatch, estimate: Estimate, bound: str) -> KernelTime:
        self.table.append(KernelTime(dispatch.kernel_name, dispatch.grid, dispatch.block, estimate, bound))
        return self.table[-1]

    def _advance(self, dispatch: Dispatch, sizes: Sizes, stream: int) -> None:
        time = self.times[dispatch.program][sizes]
        if isinstance(time, str):
            self.not_timed[time] += 1
            return
        time.launches += not CLOCK.is_trial
        CLOCK.advance(time.estimate.time_us, time.kernel, handle=stream)


def _none_executed(dispatch: Dispatch) -> LaunchStatistics:
    return LaunchStatistics(dispatch.workgroup_count * dispatch.waves_per_workgroup, 0)


def _why_not_timed() -> str:
    """The reason why a launch that is made now is not timed; empty if it is."""
    if not CLOCK.is_watched:
        return "the program did not measure time yet"
    if current_counting() is not None or current_tracing() is not None:
        return "they are inside of counting() or tracing()"
    return ""


def _unknown(reason: FlyError) -> str:
    """The reason why the time of a launch is not known, which events that measure it raise, too."""
    CLOCK.unknown = CLOCK.unknown or reason.message
    return reason.message


def _sizes(dispatch: Dispatch, kernarg: bytes) -> Sizes:
    """The key of a launch's time. The addresses among its arguments count the buffers of the launch.

    Small tensors of integers belong to it: lengths, offsets and numbers of blocks, which say how much there is to do.
    """
    counts = [
        buffer.data.tobytes()
        for buffer in dispatch.memory.buffers().values()
        if buffer.data.size <= _MOST_COUNTS_BYTES and buffer.label.startswith(("int32", "int64"))
    ]
    return dispatch.kernel_name, tuple(dispatch.grid), tuple(dispatch.block), dispatch.lds_bytes, kernarg, *counts


_MOST_COUNTS_BYTES = 1 << 14


def _places(memory: Memory) -> tuple[tuple[int, int], ...]:
    """The places where the host has the memory of a launch."""
    return tuple((buffer.data.ctypes.data, buffer.data.size) for buffer in memory.buffers().values())


def _contents(memory: Memory) -> Contents:
    """Digests of the buffers in a launch's memory."""
    return tuple(hashlib.blake2b(buffer.data.data, digest_size=16).digest() for buffer in memory.buffers().values())


@dataclass(frozen=True)
class Summary:
    """The work of a posed GPU. kernels: by the time of all their launches, the longest first.

    operators, operators_us: how many of torch's own operators ran, and the time of all. not_timed: how many launches
    have no time, by the reason.
    """

    product: Product
    kernels: Sequence[KernelTime]
    operators: int
    operators_us: float
    not_timed: Mapping[str, int]

    @property
    def launches(self) -> int:
        """The number of launches that are timed."""
        return sum(time.launches for time in self.kernels)

    @property
    def time_us(self) -> float:
        """The time of all launches, in microseconds."""
        return sum(time.total_us for time in self.kernels)

    @property
    def is_measured(self) -> bool:
        """True if the times are of a GPU that is there."""
        return any(time.measured_us is not None for time in self.kernels)

    @property
    def head(self) -> str:
        """The GPU, and how many launches took how long."""
        how = "measured, and simulated" if self.is_measured else "simulated"
        launches = "1 launch" if self.launches == 1 else f"{self.launches} launches"
        return f"{self.product.name} ({self.product.arch}), {how}: {launches}, {self.time_us:.4g} us"

    @property
    def untimed(self) -> list[str]:
        """Sentences about the launches that are not timed."""
        return [
            f"{count} {'launch is' if count == 1 else 'launches are'} not timed: {reason}"
            for reason, count in self.not_timed.items()
        ]

    def __str__(self) -> str:
        rows = [
            (t.kernel, "x".join(map(str, t.grid)), str(t.launches), str(t.estimate), t.bound, t.compared)
            for t in self.kernels
        ]
        heads = ("kernel", "grid", "launches", "time of each", "limited by", "measured" if self.is_measured else "")
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        lines = [self.head, *self.untimed]
        for row in (heads, *rows):
            lines.append("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
        if self.operators:
            lines.append(f"torch: {self.operators} operators, {self.operators_us:.4g} us by memory bandwidth")
        return "\n".join(lines)
