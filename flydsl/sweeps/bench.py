"""The time of a call: measured on a GPU, estimated on the simulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from flydsl.errors import ArgumentError

if TYPE_CHECKING:
    from flydsl.simulator.counters import LaunchCounters
    from flydsl.simulator.counters.roofline import Roofline
    from flydsl.simulator.estimates import Estimate


@dataclass(frozen=True)
class Estimated:
    """A call that ran on the simulator. launches: what its kernels did; empty for a call that ran on a GPU."""

    launches: tuple[LaunchCounters, ...]

    @property
    def estimate(self) -> Estimate:
        """The time on the GPU, of all kernels: by the model of time, or by the roofline of what it cannot time.

        ArchError for an architecture that the model of time does not cover: at peak rates alone, everything is fast.
        """
        from flydsl.arch.timing import timing
        from flydsl.simulator.estimates import Estimate, together

        for launch in self.launches:
            timing(launch.program.arch)
        return together(launch.estimate or Estimate(launch.roofline().time_us) for launch in self.launches)

    @property
    def by_roofline(self) -> str:
        """The kernels that the model of time did not time, and why; empty if it timed all."""
        return "; ".join(
            f"{launch.kernel} is not timed: {launch.untimed}" for launch in self.launches if launch.untimed
        )

    @cached_property
    def rooflines(self) -> tuple[Roofline, ...]:
        """The roofline of each launch, with the bytes that the model's caches leave to the memory if it is timed."""
        return tuple(map(_roofline, self.launches))

    @property
    def bound(self) -> str:
        """The resource that the kernel with the longest time needs the longest at its peak."""
        return max(self.rooflines, key=lambda found: found.time_us).bound


def _roofline(launch: LaunchCounters) -> Roofline:
    found = launch.roofline()
    use = None if launch.trace is None else launch.trace.memory
    return found if use is None else found.with_memory_bytes(use.hbm_bytes)


def estimated(call: Callable[[], Any]) -> Estimated:
    """Make a call, and estimate how long it would take on a GPU.

    `autotune` and `sweep` have their estimates from here and from nowhere else.
    """
    from flydsl.simulator import counting, tracing

    with counting() as counters, tracing(execute=True, only_known=True):
        call()
    return Estimated(tuple(counters.launches))


def do_bench(fn: Callable[[], Any], warmup: int = 5, rep: int = 25, quantiles: Sequence[float] | None = None) -> Any:
    """The time in ms of the launches of a call: on a GPU the median of `rep` calls after `warmup` others.

    quantiles: numbers from 0 to 1; then a list of the times that these shares of the calls do not exceed.

    On the simulator one call is made, and the time is estimated (`estimated`).
    """
    found = estimated(fn)
    if found.launches:
        time_ms = found.estimate.time_us / 1000
        return time_ms if quantiles is None else [time_ms for _ in quantiles]
    import torch

    if not torch.cuda.is_available():
        raise ArgumentError(
            "do_bench: the call launched nothing, neither on the simulator nor on a GPU",
            hint="it calls a @flyc.jit function, which launches a kernel",
        )
    times = []
    for repetition in range(warmup + rep):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        fn()
        end.record()
        end.synchronize()
        if repetition >= warmup:
            times.append(start.elapsed_time(end))
    times.sort()
    if quantiles is not None:
        return [times[min(int(q * len(times)), len(times) - 1)] for q in quantiles]
    return float(times[len(times) // 2])
