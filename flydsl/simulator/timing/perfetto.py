"""A trace in Chrome's trace event format, which https://ui.perfetto.dev opens.

A compute unit is a process, a wave is a thread of it. A wave's slices follow each other: "stall" with the reason, and
the instruction, from its issue until the wave tries the next one; latencies are arguments. What share of the units has
work are counters. Times are in microseconds, as the format has it; where the clock is not known, a cycle is one
nanosecond, which `otherData` says.

Source: "Trace Event Format", Google, https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from flydsl.errors import ArgumentError
from flydsl.simulator.timing.hot_spots import issue_cycles
from flydsl.simulator.timing.trace import Stall, Trace
from flydsl.simulator.timing.utilisation import UNITS, shares, span

_COUNTER_SPANS = 500
_CYCLES_PER_US = 1000.0  # where the clock is not known


def chrome_trace(trace: Trace) -> dict[str, Any]:
    """The trace as the format's object: `traceEvents`, `displayTimeUnit`, `otherData`."""
    return {
        "traceEvents": [*_names(trace), *_slices(trace), *_counters(trace)],
        "displayTimeUnit": "ns",
        "otherData": {
            "kernel": trace.kernel,
            "arch": trace.arch,
            "origin": trace.origin,
            "sampling": trace.sampling,
            "cycles_of_the_launch": trace.cycles,
            "cycles_per_us": _rate(trace),
            "clock_is_known": has_clock(trace),
        },
    }


def write_chrome_trace(trace: Trace, path: str | Path) -> Path:
    """Write the trace in Chrome's trace event format, for https://ui.perfetto.dev. Returns the path.

    Raises ArgumentError if the folder does not exist.
    """
    written = Path(path)
    if not written.parent.is_dir():
        raise ArgumentError(f"{written}: there is no folder {written.parent} to write it to")
    written.write_text(json.dumps(chrome_trace(trace), separators=(",", ":"), allow_nan=False), "utf-8")
    return written


def has_clock(trace: Trace) -> bool:
    """True if the clock is known; without one there are cycles, but no microseconds."""
    return math.isfinite(trace.clock_mhz) and trace.clock_mhz > 0


def _rate(trace: Trace) -> float:
    return float(trace.clock_mhz) if has_clock(trace) else _CYCLES_PER_US


def _process(trace: Trace, wave: int) -> int:
    return int(trace.waves[wave]["xcd"]) << 16 | int(trace.waves[wave]["cu"])


def wave_name(trace: Trace, wave: int) -> str:
    """A wave as people refer to it: where it ran, and which of the launch it is, if that is known."""
    row = trace.waves[wave]
    place = f"SIMD {row['simd']} slot {row['slot']}"
    return f"{place}: workgroup {row['workgroup']} wave {row['wave']}" if trace.origin == "model" else place


def group_name(trace: Trace, wave: int) -> str:
    """The compute unit of a wave. What hardware traces know is its shader engine."""
    row = trace.waves[wave]
    return f"{'XCD' if trace.origin == 'model' else 'SE'} {row['xcd']} CU {row['cu']}"


def _names(trace: Trace) -> Iterator[dict[str, Any]]:
    named: set[int] = set()
    for wave in range(len(trace.waves)):
        process = _process(trace, wave)
        if process not in named:
            named.add(process)
            yield _name("process_name", process, 0, f"{trace.kernel}: {group_name(trace, wave)}")
        yield _name("thread_name", process, wave + 1, wave_name(trace, wave))


def _name(kind: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}


def _slices(trace: Trace) -> Iterator[dict[str, Any]]:
    rate, first = _rate(trace), span(trace)[0]
    processes = [_process(trace, wave) for wave in range(len(trace.waves))]
    columns = (trace.events[name].tolist() for name in trace.events.dtype.names or ())
    for event, (wave, instruction, issue, latency, stall, reason, length) in enumerate(
        zip(*columns, issue_cycles(trace).tolist(), strict=True)
    ):
        made = trace.instructions[instruction]
        place = {"pid": processes[wave], "tid": wave + 1}
        if stall:
            begin = max(issue - stall - first, 0)
            name = trace.stall_name(event) or Stall(reason).name.lower()
            arguments = {"before": made.text, "cycles": stall}
            yield (
                {"name": name, "cat": "stall", "ph": "X", "ts": begin / rate, "dur": stall / rate}
                | place
                | {"args": arguments}
            )
        arguments = {"text": made.text, "issue": issue, "latency": latency, "stall": stall}
        arguments |= {} if made.file is None else {"source": f"{made.file}:{made.line}"}
        name = made.text.split(None, 1)[0] if made.text.strip() else "?"
        shown = {"name": name, "cat": made.unit.name.lower(), "ph": "X", "ts": (issue - first) / rate}
        yield shown | {"dur": length / rate} | place | {"args": arguments}


def _counters(trace: Trace) -> Iterator[dict[str, Any]]:
    first, last = span(trace)
    spans = min(_COUNTER_SPANS, last - first)
    if not spans:
        return
    edges = np.linspace(first, last, spans + 1)
    for unit in UNITS:
        for begin, share in zip(edges[:-1].tolist(), shares(trace, unit, edges).tolist(), strict=True):
            yield {
                "name": f"{unit.name.lower()} in use",
                "ph": "C",
                "ts": (begin - first) / _rate(trace),
                "pid": 1 << 32,
                "args": {"percent": round(100 * share, 2)},
            }
