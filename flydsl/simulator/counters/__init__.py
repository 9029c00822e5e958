"""Counters of a launch: instructions by class, active lanes, memory traffic, LDS bank conflicts, cycles of the SIMDs.

    with flydsl.simulator.counting() as counters:
        launch(A, B, C)
    counters.launches[0].by_line, .by_source_line, .totals, .roofline()

How to read this package: `raw` is what a backend counts for each instruction (`lockstep.counting` in the lock-step
machine, `native.counting` in native code), `instruction_class` says what an instruction is, `counts` and `report` are
what users read, `table` its text, `roofline` the times at peak rates, `session` the `with` statement.
"""

from typing import TYPE_CHECKING

from flydsl.system.lazy_names import lazy_names

if TYPE_CHECKING:
    from flydsl.simulator.counters.counts import Counts, LineCounts
    from flydsl.simulator.counters.report import LaunchCounters
    from flydsl.simulator.counters.roofline import Roofline
    from flydsl.simulator.counters.session import Counting, counting, current_counting

__all__ = ["Counting", "Counts", "LaunchCounters", "LineCounts", "Roofline", "counting", "current_counting"]

_NAMES = {
    "flydsl.simulator.counters.counts": "Counts LineCounts",
    "flydsl.simulator.counters.report": "LaunchCounters",
    "flydsl.simulator.counters.roofline": "Roofline",
    "flydsl.simulator.counters.session": "Counting counting current_counting",
}
__getattr__ = lazy_names(__name__, _NAMES)  # a launch that is not counted needs none of them
