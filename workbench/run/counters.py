"""The counters of a launch: totals, the estimated time, what limits it, source and machine code with their counts."""

from __future__ import annotations

from collections.abc import Sequence

from flydsl.errors import ArchError
from flydsl.simulator.counters import Counting, Counts, LaunchCounters
from flydsl.simulator.counters.roofline import NO_ESTIMATE
from workbench.kit.html import code, details, escape, table, title
from workbench.run.counted_lines import BAR, Columns, file_name, hottest, isa_html, isa_lines, source_html, source_lines
from workbench.run.measures import limiting, roofline
from workbench.run.roofline import roofline_image
from workbench.stages.diff import clipped

MAX_HOTTEST = 20
MAX_ISA_LINES = 300
MAX_LAUNCHES = 8
LEGEND = (
    "instr: instructions, summed over waves, as all columns are. lines: of 64 bytes of global memory. passes: cycles "
    "of the LDS; confl: those of them due to bank conflicts. MFMA, VALU: cycles of the SIMDs. lanes: active ones in a "
    "vector instruction, of 64. ?: not known. share: of all {heat}, which the bar shows, too"
)


def counters_html(counters: LaunchCounters, *, max_lines: int = MAX_ISA_LINES) -> str:
    """A launch of a kernel. max_lines: of the machine code."""
    return f"<div>{totals_html(counters)}{_lines_html(counters, max_lines)}</div>"


def counting_html(counting: Counting) -> str:
    """Launches one after the other, folded where there are several."""
    return f"<div>{launches_html(counting.launches)}</div>"


def launches_html(launches: Sequence[LaunchCounters], *, max_lines: int = MAX_ISA_LINES) -> str:
    """Each launch of a kernel; of many the first ones."""
    if not launches:
        return title("No launch was counted.")
    if len(launches) == 1:
        return counters_html(launches[0], max_lines=max_lines)
    parts = [
        details(escape(launch.heading), counters_html(launch, max_lines=max_lines))
        for launch in launches[:MAX_LAUNCHES]
    ]
    left = len(launches) - MAX_LAUNCHES
    return "".join([*parts, title(f"{left} more launches")] if left > 0 else parts)


def totals_html(counters: LaunchCounters) -> str:
    """Everything but the lines."""
    parts = [
        title(f"<strong>{escape(counters.heading)}</strong>"),
        _classes_html(counters.totals),
        _facts_html(counters),
        title(f"<strong>{escape(sentence(counters.estimate_text))}</strong>"),
        _roofline_html(counters),
        *(title(escape(f"Not known: {sentence}.")) for sentence in counters.unknown()),
    ]
    return "".join(parts)


def counters_text(counters: LaunchCounters) -> str:
    """The totals and the source with its counts as text."""
    columns = Columns(counters, limiting(counters))
    lines = [*counters.summary(), "", f"{columns.head}, of the {columns.heat.name}"]
    for file, inside in source_lines(counters).items():
        lines.append(file_name(file))
        lines += [f"{columns.text(c.counts)}  {c.number}  {clipped(c.text)}" for c in inside if c.counts is not None]
    return "\n".join(lines)


def launches_text(launches: Sequence[LaunchCounters]) -> str:
    """Each launch of a kernel as text; of many the first ones."""
    left = len(launches) - MAX_LAUNCHES
    more = [f"{left} more launches"] if left > 0 else []
    return "\n\n".join([*map(counters_text, launches[:MAX_LAUNCHES]), *more]) or "No launch was counted."


def counting_text(counting: Counting) -> str:
    """The counters of all launches of a `with counting()`."""
    return launches_text(counting.launches)


def _bar(part: float) -> str:
    """A part of 1 as a bar. The number stands beside it."""
    width = f"width:{100 * part:.0f}%"
    inner = f'<span style="display:inline-block;{width};background-color:{BAR}"> </span>'
    return f'<span style="display:inline-block;width:8em;white-space:pre">{inner}</span>'


def _classes_html(totals: Counts) -> str:
    rows = [
        [escape(name), str(count), f"{count / totals.executions:.1%}", _bar(count / totals.executions)]
        for name, count in sorted(totals.by_class.items(), key=lambda item: -item[1])
    ]
    rows.append(["all", str(totals.executions), "", ""])
    return table(("class", "wave-instructions", "share", ""), rows, numbers=(1, 2))


def _facts_html(counters: LaunchCounters) -> str:
    totals = counters.totals
    rows = []
    if totals.lane_utilization is not None:
        rows.append(["active lanes of vector instructions", f"{totals.lane_utilization:.1%}"])
    if totals.global_lines:
        accesses = sum(line.executions for line in counters.by_line.values() if line.global_lines)
        lines = f"{totals.global_lines} lines of 64 bytes, {totals.global_lines / accesses:.3g} an access of a wave"
        used = f"{totals.line_utilization:.1%} of the lines' bytes asked for"
        rows.append(["global memory", f"{totals.global_bytes} bytes in {lines}; {used}"])
    if totals.scalar_bytes:
        rows.append(["scalar loads", f"{totals.scalar_bytes} bytes"])
    if totals.scratch_bytes:
        rows.append(["scratch (registers that did not fit)", f"{totals.scratch_bytes} bytes"])
    if totals.lds_bytes:
        rows.append(["LDS", _lds_text(totals)])
    rows.append(["matrix instructions", _mfma_text(totals)])
    return table(("what", "how much"), [[escape(cell) for cell in row] for row in rows])


def _lds_text(totals: Counts) -> str:
    if not totals.lds_passes:
        return f"{totals.lds_bytes} bytes; bank conflicts not known"
    conflicts = f"{totals.lds_conflicts} of them ({totals.lds_conflicts / totals.lds_passes:.1%}) for bank conflicts"
    most = f", at most {totals.lds_max_ways} ways" if totals.lds_conflicts else ""
    unknown = "; of some accesses not known" if totals.lds_unknown else ""
    return f"{totals.lds_bytes} bytes in {totals.lds_passes} passes, {conflicts}{most}{unknown}"


def _mfma_text(totals: Counts) -> str:
    count = totals.by_class.get("MFMA", 0)
    if not count:
        return "none"
    share = f"{count / totals.executions:.1%} of the instructions"
    cycles = totals.mfma_cycles + totals.valu_cycles
    if not totals.mfma_cycles:
        return f"{share}; cycles not known"
    unknown = ", as far as known" if totals.mfma_unknown or totals.valu_unknown else ""
    return f"{share}, {totals.mfma_cycles / cycles:.1%} of the SIMDs' vector and matrix cycles{unknown}"


def sentence(text: str) -> str:
    """With a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:]}."


def _roofline_html(counters: LaunchCounters) -> str:
    found = roofline(counters)
    if isinstance(found, ArchError):
        return title(escape(f"No roofline: {found.message}."))
    most = found.time_us
    rows = [
        [escape(resource), f"{time:.4g}", _bar(time / most if most else 0), "◀ limits" if time == most and most else ""]
        for resource, time in found.times_us.items()
    ]
    head = (
        f"Roofline of {found.peaks.product}: {most:.3g} us, bound by {found.bound}, as if each resource were always "
        f"busy. {sentence(NO_ESTIMATE)} {found.compute_units_used} of {found.peaks.compute_units} compute units have "
        "work."
    )
    return (
        title(escape(head))
        + table(("resource", "us at its peak rate", "", ""), rows, numbers=(1,))
        + roofline_image(counters)
    )


def _lines_html(counters: LaunchCounters, max_lines: int) -> str:
    heat = limiting(counters)
    columns = Columns(counters, heat)
    why = (
        "they limit the launch by the roofline"
        if not isinstance(roofline(counters), ArchError)
        else "what limits is not known"
    )
    parts = [title(escape(f"{LEGEND.format(heat=heat.name)}: {why}."))]
    files = source_lines(counters)
    parts += [
        details(f"Source, {code(file_name(file))}", source_html(lines, columns), is_open=True)
        for file, lines in files.items()
    ]
    isa = isa_lines(counters)
    hot = hottest(isa, heat, MAX_HOTTEST)
    parts.append(
        details(
            f"Machine code, the {len(hot)} instructions with the most {escape(heat.name)}",
            isa_html(hot, columns, MAX_HOTTEST),
        )
    )
    parts.append(details(f"Machine code, all {len(isa)} instructions", isa_html(isa, columns, max_lines)))
    without = sum(heat.amount(line.counts) for line in isa if line.counts is not None and line.place is None)
    if without:
        parts.append(title(escape(f"{without} {heat.name} are of instructions that have no line of the source.")))
    return "".join(parts)
