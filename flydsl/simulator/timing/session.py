"""`with tracing() as traced`: times every launch that is made inside the block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from flydsl.arch.products import Product, product_of
from flydsl.simulator.checks import enabled_checks
from flydsl.simulator.estimates import Estimate, together
from flydsl.system.interrupts import holding

if TYPE_CHECKING:
    from flydsl.arch import Arch
    from flydsl.arch.launch_limits import Dim3
    from flydsl.simulator.timing.left_out import LeftOut
    from flydsl.simulator.timing.trace import Trace


@dataclass(frozen=True)
class TracedLaunch:
    """A launch and its trace."""

    kernel: str
    grid: Dim3
    block: Dim3
    trace: Trace

    @property
    def time_us(self) -> float:
        """The estimated time."""
        return self.trace.time_us

    def __repr__(self) -> str:
        return f"grid {self.grid}, block {self.block}: {self.trace}"


@dataclass
class Tracing:
    """The launches that were timed, in their order. execute, only_known, cold: see `tracing`.

    left_out: what they would have written, had they been carried out.
    product: the GPU that they are timed on, None for the one that stands for their architecture.
    """

    execute: bool
    only_known: bool = False
    launches: list[TracedLaunch] = field(default_factory=list)
    left_out: LeftOut | None = field(default=None, repr=False)
    product: Product | None = None
    cold: bool = False

    @property
    def time_us(self) -> float:
        """The time of all launches, one after the other."""
        return self.estimate.time_us

    @property
    def estimate(self) -> Estimate:
        """The time of all launches, with its error."""
        return together(launch.trace.estimate for launch in self.launches)

    def __repr__(self) -> str:
        sum_ = [f"together: {self.estimate}"] if len(self.launches) > 1 else []
        return "\n".join([*map(repr, self.launches), *sum_]) or "no launch was timed"


_current: ContextVar[Tracing | None] = ContextVar("flydsl_tracing", default=None)


@contextmanager
def tracing(
    *, execute: bool = False, only_known: bool = False, gpu: str | Product | None = None, cold: bool = False
) -> Iterator[Tracing]:
    """Time the launches on the simulator that this thread makes inside the `with` block, and keep their traces.

    Launches are timed and not carried out: of a large grid only some workgroups run, on a copy, and tensors keep their
    values. With execute=True launches are also carried out as always, for programs where one depends on another's
    results: otherwise a launch whose branches or addresses depend on what an earlier one would have written is warned
    of, and its error is not known; if it fails with what is there instead, it is timed with zeros there. Launches on a
    GPU are not timed.

    gpu: a product, such as "mi308x" or "MI325X", whose compute units, clock and memory count; by default the one that
    stands for the architecture that a launch is compiled for (MI300X, MI355X, RX 9070 XT, ...).

    cold: a time is that of a launch alone on a GPU that was idle, between two events: the launch itself takes longer,
    and the Infinity Cache is empty and has room for what the kernel writes. By default it is that of one of many
    launches in a row, which write back what the one before left in the caches. Both read their tensors from memory.

    A launch for a GPU without latencies and bandwidths (`flydsl.arch.timing`) raises ArchError, and one whose waves
    execute too much to be kept, SimulatorError; with only_known=True it is carried out and not timed. Waits of
    workgroups for each other are part of a time; where they wait for what another launch or process writes, it is the
    time until then, and its error is not known.
    """
    session = Tracing(execute, only_known, product=product_of(gpu) if isinstance(gpu, str) else gpu, cold=cold)
    with holding(_current, session):
        yield session


def current_tracing() -> Tracing | None:
    """The active `tracing` session, if any."""
    return _current.get()


@contextmanager
def traced_into(traces: list[Trace], arch: Arch) -> Iterator[None]:
    """Time the launches inside the block, which run as always, and add their traces to a list.

    Under checks, and on an architecture without figures, they are not timed. A session around receives the traces, too,
    and says whether the launches are carried out.
    """
    from flydsl.arch.timing import is_timed  # its tables, which a launch that is not timed does without

    if enabled_checks() or not is_timed(arch):
        yield
        return
    around = current_tracing()
    execute = around is None or around.execute
    gpu, cold = (None, False) if around is None else (around.product, around.cold)
    with tracing(execute=execute, gpu=gpu, cold=cold) as traced:
        try:
            yield
        finally:
            traces.extend(one.trace for one in traced.launches)
            if around is not None:
                around.launches.extend(traced.launches)
