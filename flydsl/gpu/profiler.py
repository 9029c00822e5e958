"""`torch.profiler.profile` of a posed GPU: its kernels and operators, by its clock. The host's side is not recorded."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerAction

from flydsl.gpu.refusals import refusing
from flydsl.gpu.streams import CLOCK, Work

_RECORDS = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


@dataclass(frozen=True)
class KernelEvent:
    """A kernel, or all of one name: times in microseconds, under the names of torch's events."""

    name: str
    count: int
    device_time_total: float
    start_us: float = 0.0
    device_index: int = 0
    self_cpu_time_total: float = 0.0
    cpu_time_total: float = 0.0
    device_type: DeviceType = DeviceType.CUDA

    @property
    def key(self) -> str:
        return self.name

    @property
    def self_device_time_total(self) -> float:
        return self.device_time_total

    @property
    def device_time(self) -> float:
        return self.device_time_total / self.count


class Averages(list[KernelEvent]):
    """`key_averages()`: one event for each name."""

    def total_average(self) -> KernelEvent:
        """All of them as one."""
        return KernelEvent("Total", sum(e.count for e in self), sum(e.device_time_total for e in self))

    @property
    def self_cpu_time_total(self) -> float:
        """The host's part, which is not recorded."""
        return sum(event.self_cpu_time_total for event in self)

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        """The kernels as text, the longest first."""
        rows = [
            (event.name, f"{event.device_time_total:.3f}us", f"{event.device_time:.3f}us", str(event.count))
            for event in sorted(self, key=lambda event: -event.device_time_total)[:row_limit]
        ]
        heads = ("Name", "CUDA total", "CUDA time avg", "# of Calls")
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        lines = (zip(row, widths, strict=True) for row in (heads, *rows))
        return "\n".join("  ".join(text.rjust(width) for text, width in line) for line in lines)


class Profile:
    """The stand-in for `torch.profiler.profile`."""

    def __init__(
        self,
        *,
        activities: Any = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[Any], Any] | None = None,
        **options: Any,
    ) -> None:
        self._schedule, self._on_trace_ready = schedule, on_trace_ready
        self._work: list[Work] = []
        self._is_saved = False
        self.step_num = 0

    def start(self) -> None:
        CLOCK.is_watched = True
        self._follow()

    def stop(self) -> None:
        is_recorded, CLOCK.log = CLOCK.log is self._work, None
        if is_recorded and self._on_trace_ready is not None:
            self._on_trace_ready(self)

    def step(self) -> None:
        """The next step of the schedule."""
        self._is_saved = self._action() is ProfilerAction.RECORD_AND_SAVE
        if self._is_saved and self._on_trace_ready is not None:
            self._on_trace_ready(self)
        self.step_num += 1
        self._follow()

    def _action(self) -> ProfilerAction:
        return ProfilerAction.RECORD if self._schedule is None else self._schedule(self.step_num)

    def _follow(self) -> None:
        """Record, or not, from now on. A cycle of the schedule begins with a recording of its own."""
        if self._action() not in _RECORDS:
            CLOCK.log = None
        elif CLOCK.log is None or self._is_saved:
            CLOCK.log = self._work = []
            self._is_saved = False

    def __enter__(self) -> Profile:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def events(self) -> list[KernelEvent]:
        """Each kernel that ran, in order."""
        return [KernelEvent(work.name, 1, work.time_us, work.start_us) for work in self._work]

    def key_averages(self, **options: Any) -> Averages:
        """The kernels by name."""
        times: dict[str, list[float]] = {}
        for work in self._work:
            times.setdefault(work.name, []).append(work.time_us)
        return Averages(KernelEvent(name, len(found), sum(found)) for name, found in times.items())

    export_stacks = export_memory_timeline = refusing(
        "torch.profiler's export of stacks and memory", "export_chrome_trace writes the kernels"
    )

    def export_chrome_trace(self, path: str, **options: Any) -> None:
        """Write the kernels as a trace that Perfetto and chrome://tracing read."""
        named = [_named("process_name", torch.cuda.get_device_name())]
        named += [
            _named("thread_name", f"stream {stream}", stream) for stream in sorted({w.stream for w in self._work})
        ]
        events = [
            {"ph": "X", "cat": "kernel", "name": w.name, "ts": w.start_us, "dur": w.time_us, "pid": 0, "tid": w.stream}
            for w in self._work
        ]
        Path(path).write_text(json.dumps({"traceEvents": [*named, *events], "displayTimeUnit": "ns"}), "utf-8")


def _named(what: str, name: str, stream: int = 0) -> dict[str, Any]:
    """The event of a trace that gives the GPU, or one of its streams, a name."""
    return {"ph": "M", "name": what, "pid": 0, "tid": stream, "args": {"name": name}}


def profile(*args: Any, **options: Any) -> Any:
    """`torch.profiler.profile`: of the GPU, or of the host where only that is asked for."""
    activities = args[0] if args else options.get("activities")
    if activities is not None and all(activity is torch.profiler.ProfilerActivity.CPU for activity in activities):
        return _OF_HOST(*args, **options)
    return Profile(**{**({"activities": activities} if args else {}), **options})


_OF_HOST = torch.profiler.profile


def of_autograd(of_host: Any) -> Any:
    """`torch.autograd.profiler.profile` of a GPU, if `use_device="cuda"` asks for it. of_host: torch's own."""

    class AutogradProfile(of_host):
        def __new__(cls, *args: Any, use_device: str | None = None, use_cuda: bool = False, **options: Any) -> Any:
            return Profile() if use_cuda or use_device == "cuda" else super().__new__(cls)

    return AutogradProfile
