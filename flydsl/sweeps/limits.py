"""Columns of a sweep's table that say what limits a call, by the trace of its longest launch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flydsl.simulator.timing import Trace
    from flydsl.sweeps.bench import Estimated


def limits(found: Estimated) -> dict[str, Any]:
    """The columns; none of them where the model of time did not time every launch.

    main_stall: what waves wait for most, and the part of their time that it takes. roofline_percent: the time that the
    busiest resource needs at its peak, in percent of the estimate. l1_hit_percent, l2_hit_percent: of the longest
    launch. hbm_bytes: that cross the memory's bus, of all launches.
    """
    traces = [launch.trace for launch in found.launches if launch.trace is not None]
    if not traces or len(traces) < len(found.launches):
        return {}
    roofline_us = sum(roofline.time_us for roofline in found.rooflines)
    values: dict[str, Any] = {
        "main_stall": main_stall(max(traces, key=lambda trace: trace.time_us)),
        "roofline_percent": 100 * roofline_us / sum(trace.time_us for trace in traces),
    }
    uses = [trace.memory for trace in traces if trace.memory is not None]
    if uses:
        longest = max(zip(traces, uses, strict=True), key=lambda pair: pair[0].time_us)[1]
        values["l1_hit_percent"], values["l2_hit_percent"] = longest.l1_hit_percent, longest.l2_hit_percent
        values["hbm_bytes"] = sum(use.hbm_bytes for use in uses)
    return values


def main_stall(trace: Trace) -> str:
    """The longest wait of the recorded waves, with its part of their time, as in "wait for vector memory 43 %"."""
    from flydsl.simulator.timing.hot_spots import costs, total
    from flydsl.simulator.timing.trace import Stall

    cost = total(costs(trace))
    reason = cost.main_reason
    if reason is Stall.NONE or not cost.cycles:
        return ""
    part = 100 * cost.stalls[reason] / cost.cycles
    return f"{reason.name.replace('WAIT_', 'wait for ').replace('_', ' ').lower()} {part:.0f} %"
