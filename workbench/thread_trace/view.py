"""The static view of a trace: what limits it and what would help, the picture, utilisation, stalls, hot spots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flydsl.arch.timing import is_timed
from flydsl.binary import BinaryLaunch
from flydsl.compiler import Launch
from flydsl.simulator.timing import Stall, Trace, Tracing
from flydsl.simulator.timing.advice import Advice, advise
from flydsl.simulator.timing.hot_spots import costs, hottest, total
from flydsl.simulator.timing.perfetto import has_clock
from flydsl.simulator.timing.rocprofv3_counters import Comparison, MeasuredDispatch, compared
from flydsl.simulator.timing.utilisation import Utilisation, utilisation
from workbench.kit.html import details, escape, table, title
from workbench.run.counted_lines import file_name, isa_html, source_html
from workbench.run.view import gpus_of
from workbench.thread_trace.cost_lines import LEGEND, CostColumns, isa_lines, source_lines
from workbench.thread_trace.overview import overview_image
from workbench.thread_trace.palette import REASON_COLORS, REASON_NAMES, UNIT_COLORS, UNIT_NAMES

MAX_HOTTEST = 20
MAX_ISA_LINES = 300
MAX_TRACES = 8
_OPEN_SHARE = 0.05  # of the cycles, for a file to be unfolded
_ORIGINS = {"model": "estimated by the timing model", "rocprofv3": "measured"}


def heading(trace: Trace) -> str:
    """The kernel and its time, with what is known of the error."""
    clock = f" at {trace.clock_mhz:g} MHz" if has_clock(trace) else "; the clock is not known"
    time = f"{trace.estimate if trace.origin == 'model' else f'{trace.time_us:.4g} us'}, " if has_clock(trace) else ""
    return f"{trace.kernel} on {trace.arch}: {time}{trace.cycles} cycles{clock}, {_ORIGINS[trace.origin]}"


def about(trace: Trace) -> str:
    """The lines under the heading: the error, and the waves that are shown."""
    return f"{trace.estimate.meaning}; {trace.sampling}" if trace.origin == "model" else trace.sampling


def trace_html(
    trace: Trace, measured: Sequence[MeasuredDispatch] = (), *, max_lines: int = MAX_ISA_LINES, with_head: bool = True
) -> str:
    """The whole view. measured: dispatches of the same kernel that were counted. max_lines: of the machine code."""
    head = [trace_head_html(trace), overview_image(trace)] if with_head else []
    return f"<div>{''.join([*head, *trace_tables_html(trace, measured, max_lines)])}</div>"


def trace_head_html(trace: Trace) -> str:
    """The time, how it was come by, and what limits it."""
    parts = [title(f"<strong>{escape(heading(trace))}</strong>"), title(escape(f"{about(trace)}."))]
    return "".join([*parts, advice_html(advise(trace))])


def advice_html(advice: Advice) -> str:
    """The advice: what limits it, and what would help."""
    findings = "".join(f"<li>{escape(finding.sentence)}</li>" for finding in advice.findings)
    return title(f"<strong>{escape(advice.limit)}</strong>") + (f"<ul>{findings}</ul>" if findings else "")


def trace_tables_html(trace: Trace, measured: Sequence[MeasuredDispatch], max_lines: int) -> Iterator[str]:
    """The lines under the picture."""
    columns = CostColumns(trace)
    lines = isa_lines(trace)
    shares = utilisation_html(utilisation(trace)) + stalls_html(trace)
    yield details("Utilisation and stalls", shares, is_open=True)
    for dispatch in measured:
        yield details(
            f"Measured: {escape(dispatch.kernel)}, dispatch {dispatch.dispatch}", measured_html(trace, dispatch)
        )
    yield title(escape(f"{LEGEND}."))
    for file, inside in source_lines(trace).items():
        share = columns.share(inside)
        name = f"{escape(file_name(file))}: {share:.1%} of the cycles"
        yield details(name, source_html(inside, columns), is_open=share >= _OPEN_SHARE)
    hot = [lines[index] for index in hottest(trace, MAX_HOTTEST)]
    yield details(f"The {len(hot)} instructions with the most cycles", isa_html(hot, columns, MAX_HOTTEST))
    yield details("Machine code, all", isa_html(lines, columns, max_lines))


def utilisation_html(found: Utilisation) -> str:
    """The shares as a table with bars."""
    rows = [
        [escape(UNIT_NAMES[unit]), f"{share:.1%}", _bar(share, UNIT_COLORS[unit])] for unit, share in found.busy.items()
    ]
    rows.append(
        [f"some wave of a SIMD issues ({found.waves_per_simd:.1f} waves at a time)", f"{found.issuing:.1%}", ""]
    )
    return table(("unit", "has work", "of the cycles with a wave"), rows, numbers=(1,))


def stalls_html(trace: Trace) -> str:
    """The cycles of the waves by reason, as a table with bars."""
    whole = total(costs(trace))
    cycles, waves = max(whole.cycles, 1), max(len(trace.waves), 1)
    rows = [["issuing", f"{whole.issue_cycles / waves:.0f}", f"{whole.issue_cycles / cycles:.1%}", ""]]
    for reason in sorted(Stall, key=lambda reason: -whole.stalls[reason]):
        if stall := whole.stalls[reason]:
            bar = _bar(stall / cycles, REASON_COLORS[reason])
            rows.append([escape(REASON_NAMES[reason]), f"{stall / waves:.0f}", f"{stall / cycles:.1%}", bar])
    return table(("a wave's cycles", "mean", "share", ""), rows, numbers=(1, 2))


def measured_html(trace: Trace, dispatch: MeasuredDispatch) -> str:
    """The counters of rocprofv3 beside the trace's figures."""
    rows = [
        [escape(one.name), escape(one.unit), _amount(one.measured), _amount(one.traced), _off(one)]
        for one in compared(trace, dispatch)
    ]
    return table(("quantity", "unit", "measured", "this trace", "off by"), rows, numbers=(2, 3, 4))


def _amount(value: float | None) -> str:
    return "" if value is None else f"{value:,.6g}"


def _off(one: Comparison) -> str:
    return "" if one.error_percent is None else f"{one.error_percent:+.1f}%"


def _bar(part: float, color: str) -> str:
    inner = f'<span style="display:inline-block;width:{100 * part:.0f}%;background-color:{color}"> </span>'
    return f'<span style="display:inline-block;width:10em;white-space:pre">{inner}</span>'


def trace_text(trace: Trace) -> str:
    """The view as text, without the machine code."""
    columns = CostColumns(trace)
    found = utilisation(trace)
    lines = [heading(trace), f"{about(trace)}.", "", str(advise(trace)), ""]
    lines += [f"{UNIT_NAMES[unit]}: has work {share:.1%} of the time" for unit, share in found.busy.items()]
    lines += ["", columns.head]
    for file, inside in source_lines(trace).items():
        lines.append(file_name(file))
        lines += [
            f"{columns.text(line.counts)}  {line.number}  {line.text}" for line in inside if line.counts is not None
        ]
    return "\n".join(lines)


def launch_traces_html(launch: Launch | BinaryLaunch, *, max_lines: int = MAX_ISA_LINES) -> str:
    """The traces of a launch, or why there are none."""
    if not launch.traces:
        return title(escape(why_not_timed(launch)))
    return traces_html(launch.traces, max_lines=max_lines)


def launch_traces_text(launch: Launch | BinaryLaunch) -> str:
    """The traces of a launch as text."""
    return traces_text(launch.traces) if launch.traces else why_not_timed(launch)


def why_not_timed(launch: Launch | BinaryLaunch) -> str:
    """The reason why there are no traces of a launch."""
    if where := gpus_of(launch):
        return f"Not timed: it ran on {where}. workbench.timeline reads what rocprofv3 --att measures there."
    arch = launch.kernel.module.code.arch if isinstance(launch, BinaryLaunch) else launch.pipeline.arch
    if not is_timed(arch):
        return f"Not timed: the project has no figures of the time that {arch.name} needs."
    return (
        "Not timed: the launch came to no end, was compiled only, was not the first of its compilation, or was not "
        "watched (%%flykernel --show trace and workbench.trace do that; under checking() nothing is timed)."
    )


def tracing_html(tracing: Tracing) -> str:
    """The launches of a `with tracing()`."""
    return f"<div>{traces_html([launch.trace for launch in tracing.launches])}</div>"


def tracing_text(tracing: Tracing) -> str:
    """The launches of a `with tracing()` as text."""
    return traces_text([launch.trace for launch in tracing.launches])


def traces_text(traces: Sequence[Trace]) -> str:
    """Each trace as text; of many the first ones."""
    left = len(traces) - MAX_TRACES
    more = [f"{left} more traces"] if left > 0 else []
    return "\n\n".join([*map(trace_text, traces[:MAX_TRACES]), *more]) or "No launch was timed."


def traces_html(traces: Sequence[Trace], *, max_lines: int = MAX_ISA_LINES) -> str:
    """Each trace of a launch; of many the first ones, folded."""
    if not traces:
        return title("No launch was timed.")
    if len(traces) == 1:
        return trace_html(traces[0], max_lines=max_lines)
    shown = [details(escape(heading(trace)), trace_html(trace, max_lines=max_lines)) for trace in traces[:MAX_TRACES]]
    left = len(traces) - MAX_TRACES
    return "".join([*shown, title(f"{left} more traces")] if left > 0 else shown)
