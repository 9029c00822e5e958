"""Streams, events and the clock of a posed GPU: virtual time, in which launches take what the model of time says.

A stream is a queue whose end is a time. A launch begins when its stream is free, and the host's clock stands still
while it calls; it waits for a stream by `synchronize`. So what `elapsed_time` returns depends on the program alone.
"""

from __future__ import annotations

import itertools
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import torch

from flydsl.errors import DeviceError
from flydsl.gpu.memory import MEMORY, gpu_index
from flydsl.gpu.refusals import refusing

_handles = itertools.count(1)
_by_handle: WeakValueDictionary[int, Stream] = WeakValueDictionary()


class Stream:
    """`torch.cuda.Stream`: the work of a stream runs in order. time_us: when the last of it ends."""

    def __init__(self, device: Any = None, priority: int = 0, **options: Any) -> None:
        self.device_index = gpu_index(device) or 0
        self.priority = priority
        self.time_us = 0.0
        self._before: list[tuple[int, Stream]] = []
        self._has_handle(next(_handles))

    def _has_handle(self, handle: int) -> None:
        self.cuda_stream = handle
        _by_handle[handle] = self

    @property
    def device(self) -> torch.device:
        return torch.device("cuda", self.device_index)

    @property
    def stream_id(self) -> int:
        return self.cuda_stream

    @staticmethod
    def priority_range() -> tuple[int, int]:
        return 0, -1

    def synchronize(self) -> None:
        CLOCK.host_us = max(CLOCK.host_us, self.time_us)

    def query(self) -> bool:
        return self.time_us <= CLOCK.host_us

    def is_capturing(self) -> bool:
        return MEMORY.captured is not None

    def wait_event(self, event: AnyEvent) -> None:
        self.time_us = max(self.time_us, event.time_us or 0.0)

    def wait_stream(self, stream: Stream) -> None:
        self.time_us = max(self.time_us, stream.time_us)

    def record_event(self, event: AnyEvent | None = None) -> AnyEvent:
        event = event or Event(enable_timing=True)
        event.record(self)
        return event

    def __enter__(self) -> Stream:
        self._before.append((MEMORY.current, CLOCK.of_gpu(self.device_index)))
        CLOCK.current = self
        return self

    def __exit__(self, *error: object) -> None:
        gpu, CLOCK.current = self._before.pop()
        MEMORY.current = gpu

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.cuda_stream == self.cuda_stream

    def __hash__(self) -> int:
        return hash(self.cuda_stream)

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """`torch.cuda.ExternalStream`: a stream of which the program has the handle."""

    def __init__(self, stream_ptr: int, device: Any = None, **options: Any) -> None:
        super().__init__(device)
        self._has_handle(stream_ptr)


class AnyEvent:
    """`torch.Event`: the time at which a stream comes to a place."""

    def __init__(self, device: Any = None, *, enable_timing: bool = False, **options: Any) -> None:
        self.enable_timing = enable_timing
        CLOCK.is_watched = CLOCK.is_watched or enable_timing
        self.time_us: float | None = None

    def record(self, stream: Stream | None = None) -> None:
        stream = stream or CLOCK.current
        stream.time_us = self.time_us = max(stream.time_us, CLOCK.host_us)

    def synchronize(self) -> None:
        CLOCK.host_us = max(CLOCK.host_us, self.time_us or 0.0)

    def wait(self, stream: Stream | None = None) -> None:
        (stream or CLOCK.current).wait_event(self)

    def query(self) -> bool:
        return (self.time_us or 0.0) <= CLOCK.host_us

    def elapsed_time(self, end_event: AnyEvent) -> float:
        """Milliseconds of the GPU's clock until another event."""
        if not (self.enable_timing and end_event.enable_timing):
            raise RuntimeError("Both events must be created with argument 'enable_timing=True'.")
        if self.time_us is None or end_event.time_us is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        if CLOCK.unknown:
            raise DeviceError(f"the time of launches is not known: {CLOCK.unknown}")
        return (end_event.time_us - self.time_us) / 1000


class Event(AnyEvent):
    """`torch.cuda.Event`."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        super().__init__(enable_timing=enable_timing)

    ipc_handle = from_ipc_handle = refusing("torch.cuda.Event for another process", "each process has its own clock")
    cuda_event = property(refusing("torch.cuda.Event.cuda_event", "there is no HIP runtime"))


class Work(NamedTuple):
    """A kernel on a stream, by the GPU's clock."""

    name: str
    start_us: float
    time_us: float
    stream: int


class _Thread(threading.local):
    """current: the streams that a thread has chosen, by the number of their GPU."""

    def __init__(self) -> None:
        self.current: dict[int, Stream] = {}


class Clock:
    """The GPU's time. is_watched: whether the program measures time.

    is_trial: whether a benchmark chooses among configurations. unknown: why the time of a launch is not known; empty if
    all are.
    """

    is_watched = is_trial = False
    unknown = ""
    log: list[Work] | None = None
    """The place where a profiler wants the work of streams to be written."""

    def reset(self) -> None:
        """Begin at 0, on the default streams."""
        self.host_us, self.unknown, self.log = 0.0, "", None
        self.is_watched = self.is_trial = False
        self._defaults: dict[int, Stream] = {}
        self._ends_us: dict[int, float] = defaultdict(float)
        self._thread = _Thread()

    def default_of(self, gpu: int) -> Stream:
        """The default stream of a GPU, whose handle is 0."""
        if gpu not in self._defaults:
            self._defaults[gpu] = Stream(gpu)
            self._defaults[gpu].cuda_stream = 0
        return self._defaults[gpu]

    def of_gpu(self, gpu: int) -> Stream:
        """The stream that the calling thread's launches on a GPU go to."""
        return self._thread.current.get(gpu) or self.default_of(gpu)

    @property
    def current(self) -> Stream:
        """The stream that the calling thread's launches go to. Setting it sets the thread's GPU, too."""
        return self.of_gpu(MEMORY.current)

    @current.setter
    def current(self, stream: Stream) -> None:
        MEMORY.current = stream.device_index
        self._thread.current[stream.device_index] = stream

    def advance(self, time_us: float, name: str, *, handle: int = 0, gpu: int | None = None) -> None:
        """Let a stream work for so long: that of a handle, or the current one of a GPU, or of the thread's GPU.

        name: of the kernel, or of torch's operator.
        """
        stream = _by_handle.get(handle) if handle else None
        if stream is None:
            stream = self.of_gpu(MEMORY.current if gpu is None else gpu)
        start_us = max(stream.time_us, self.host_us)
        stream.time_us = start_us + time_us
        self._ends_us[stream.device_index] = max(self._ends_us[stream.device_index], stream.time_us)
        if self.log is not None:
            self.log.append(Work(name, start_us, time_us, stream.cuda_stream))

    def synchronize(self, gpu: int | None = None) -> None:
        """Wait until all streams of a GPU, by default the thread's, have done their work."""
        self.host_us = max(self.host_us, self._ends_us[MEMORY.current if gpu is None else gpu])


CLOCK = Clock()
CLOCK.reset()


def time_ms(call: Callable[[], Any], is_trial: bool = False) -> float:
    """Milliseconds of a call on the GPU's clock, which runs for this call if the program does not measure time.

    is_trial: whether the call is one of several configurations, which reports leave out.
    """
    with benchmark(is_trial):
        start, end = Event(enable_timing=True), Event(enable_timing=True)
        CLOCK.synchronize()
        start.record()
        call()
        end.record()
        CLOCK.synchronize()
    return start.elapsed_time(end)


@contextmanager
def benchmark(is_trial: bool = False) -> Iterator[None]:
    """Run a block as a benchmark, with the clock; events that it makes count for no longer than the block."""
    before = CLOCK.is_watched, CLOCK.is_trial, MEMORY.is_benchmark
    CLOCK.is_watched, CLOCK.is_trial, MEMORY.is_benchmark = True, is_trial, True
    try:
        yield
    finally:
        CLOCK.is_watched, CLOCK.is_trial, MEMORY.is_benchmark = before
