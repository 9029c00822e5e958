"""Launches as they are made: the list of `capture_launches`, the counters and the traces of launches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from flydsl.compiler.artifact import CompiledArtifact
from flydsl.compiler.pipeline import Pipeline
from flydsl.errors import ArgumentError
from flydsl.errors.missing_attributes import Explained
from flydsl.system.interrupts import holding

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from flydsl.arch.launch_limits import Dim3
    from flydsl.compiler.arguments.signature import Signature
    from flydsl.simulator import Simulation
    from flydsl.simulator.counters import LaunchCounters
    from flydsl.simulator.timing import Trace


_LONGEST = 60
"""The most characters of an argument that are shown."""


class Launcher(Protocol):
    """A function with `@flyc.jit`."""

    @property
    def signature(self) -> Signature:
        """Its parameters."""

    def lower(self, *args: Any, arch: str | None = None) -> Pipeline:
        """Trace for these arguments and return the pipeline, before its first stage."""

    def simulate(self, *args: Any, workgroup: Dim3 = (0, 0, 0)) -> Simulation:
        """Compile for these arguments and simulate the call, instruction by instruction."""


@dataclass(frozen=True, repr=False)
class Launch(Explained):
    """A call of a launcher that `capture_launches` saw.

    arguments: in parameter order, with defaults. pipeline: its compilation, up to the stage that failed, if any.
    counters: one for each kernel that it ran, if the simulator counted this launch. traces: likewise, if it was timed.
    It prints as the call, with the types and shapes of tensors, then the table of each of the first, and the time and
    the advice of each of the second.
    """

    function: Launcher
    arguments: tuple[Any, ...]
    pipeline: Pipeline
    counters: list[LaunchCounters] = field(default_factory=list)
    traces: list[Trace] = field(default_factory=list)

    def __repr__(self) -> str:
        named = zip(self.function.signature.parameters, self.arguments, strict=True)
        parts = [f"{self.function.signature.name}({', '.join(f'{p.name}={_shown(value)}' for p, value in named)})"]
        parts += [str(counters) for counters in self.counters]
        if self.traces:
            from flydsl.simulator.timing.advice import advise  # which counted launches do without

            parts += [f"{trace!r}\n{advise(trace)}" for trace in self.traces]
        return "\n\n".join(parts)

    @property
    def artifact(self) -> CompiledArtifact:
        """The compiled launcher. Raises CompileError if compiling failed."""
        return self.pipeline.artifact

    @property
    def trace(self) -> Trace:
        """The trace of its only kernel. Raises ArgumentError if it was not timed, or ran several."""
        if len(self.traces) != 1:
            raise ArgumentError(
                f"the launch has {len(self.traces)} traces",
                hint="traces has all of them"
                if self.traces
                else "capture_launches(traced=True) times the first launch",
            )
        return self.traces[0]


def _shown(value: Any) -> str:
    """An argument in a few words: of a tensor its type and shape, never what is in it."""
    if isinstance(shape := getattr(value, "shape", None), tuple):
        kind = str(getattr(value, "dtype", type(value).__name__)).removeprefix("torch.")
        return f"<{kind} {tuple(shape)}>"
    text = repr(value)
    return text if len(text) <= _LONGEST else f"<{type(value).__name__}>"


@dataclass
class Capture:
    """The state of a `with capture_launches()` block."""

    trace_only: bool
    counted: bool
    traced: bool
    with_stages: bool
    launches: list[Launch] = field(default_factory=list)
    _seen: set[int] = field(default_factory=set)

    def add(self, launch: Launch) -> AbstractContextManager[Any]:
        """Record a launch that is about to run. It runs inside the `with` block of the result."""
        is_first = id(launch.pipeline) not in self._seen
        self._seen.add(id(launch.pipeline))
        self.launches.append(launch)
        around = ExitStack()
        if self.counted and is_first:
            around.enter_context(_counted(launch))
        if self.traced and is_first:
            around.enter_context(_timed(launch))
        return around


_capture: ContextVar[Capture | None] = ContextVar("flydsl_capture", default=None)


@contextmanager
def capture_launches(
    *, trace_only: bool = False, counted: bool = False, traced: bool = False, with_stages: bool = True
) -> Iterator[list[Launch]]:
    """Yield a list that receives every launch made inside the `with` block, also one whose compilation or run fails.

    trace_only: stop each launch before the first stage of its pipeline; nothing is compiled or run.
    counted: the first launch of each compilation is counted (see `flydsl.simulator.counting`), if it runs on the
    simulator and without checks.
    traced: likewise timed (see `flydsl.simulator.tracing`), if there are figures of the GPU; it runs as always, too.
    with_stages: compile what is not compiled in this process yet, and keep the module after each stage, to look at. If
    False, machine code that is on disk is taken from there, as outside such a block.

    In nested blocks, the outer one receives the launches, too, when the inner one ends. If the outer one is trace_only,
    so is the inner one; likewise with_stages.
    """
    around = _capture.get()
    capture = Capture(
        trace_only or (around is not None and around.trace_only),
        counted,
        traced,
        with_stages or (around is not None and around.with_stages),
    )
    try:
        with holding(_capture, capture):
            yield capture.launches
    finally:
        if around is not None:
            around.launches.extend(capture.launches)


def current_capture() -> Capture | None:
    """The active capture, if any."""
    return _capture.get()


def stages_are_kept() -> bool:
    """True if the stages of what is compiled now will be looked at."""
    capture = _capture.get()
    return capture is not None and capture.with_stages


def _counted(launch: Launch) -> AbstractContextManager[None]:
    """Count the instructions that run inside the block."""
    from flydsl.simulator.counters.session import counted_into

    return counted_into(launch.counters)


def _timed(launch: Launch) -> AbstractContextManager[None]:
    """Time the launches of kernels inside the block."""
    from flydsl.simulator.timing.session import traced_into

    return traced_into(launch.traces, launch.pipeline.arch)
