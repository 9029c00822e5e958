"""Time: the cycles of a launch, estimated from the instructions that its waves execute.

    with flydsl.simulator.tracing() as traced:
        launch(A, B, C)
    traced.launches[0].trace, traced.time_us

Of any trace, also of one that `rocprofv3` measured (`rocprofv3`, `rocprofv3_counters`), `hot_spots` says which
instructions and lines take the time, `utilisation` which units have work, `strong_waits` which waits are for more than
what is used next, `advice` what limits it and what would help; `perfetto` writes it for other viewers.

How to read this package: `trace` is what users read, `session` the `with` statement. `sampling` puts an estimate
together: `recording` executes some workgroups, `needed` says which of their instructions it must, `instructions` says
how long each takes, `gpu` what the hardware is, `replay/` lays them out in time, `accuracy` says how far off that is.
The figures are those of `flydsl.arch.timing`, each with its source.
"""

from typing import TYPE_CHECKING

from flydsl.system.lazy_names import lazy_names

if TYPE_CHECKING:
    from flydsl.simulator.timing.perfetto import write_chrome_trace
    from flydsl.simulator.timing.session import TracedLaunch, Tracing, current_tracing, tracing
    from flydsl.simulator.timing.trace import EVENT, WAVE, Stall, Trace, TracedInstruction, Unit

__all__ = [
    "EVENT", "WAVE", "Stall", "Trace", "TracedInstruction", "TracedLaunch", "Tracing", "Unit", "current_tracing",
    "tracing", "write_chrome_trace",
]  # fmt: skip

_NAMES = {
    "flydsl.simulator.timing.perfetto": "write_chrome_trace",
    "flydsl.simulator.timing.session": "TracedLaunch Tracing current_tracing tracing",
    "flydsl.simulator.timing.trace": "EVENT WAVE Stall Trace TracedInstruction Unit",
}
__getattr__ = lazy_names(__name__, _NAMES)  # a launch that is not timed needs none of them
