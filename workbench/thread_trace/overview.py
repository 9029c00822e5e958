"""The static picture of a trace: every wave over all cycles, the share of each unit with work, stalls by reason.

The coloured parts are pixels of one image, so the picture is as small for a million instructions as for ten.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from flydsl.simulator.arrays import Array
from flydsl.simulator.timing import Stall, Trace, Unit
from flydsl.simulator.timing.hot_spots import issue_cycles
from flydsl.simulator.timing.utilisation import UNITS, covered, shares, span, utilisation
from workbench.kit.html import INK, PAPER, escape, svg_image
from workbench.kit.png import png_address
from workbench.thread_trace.palette import REASON_COLORS, REASON_NAMES, UNIT_COLORS, UNIT_NAMES, pale
from workbench.thread_trace.rows import Row, rows

MAX_ROWS = 32
_BINS = 720
_GUTTER, _AXIS, _LEGEND = 190, 22, 16
_ROW, _WORK = 10, 8  # pixels of a row, and of what is drawn in it
_LANE, _STALLS = 18, 36
_ALIVE = "#e4e4e4"

_PALETTE = [
    PAPER,
    _ALIVE,
    *(UNIT_COLORS[unit] for unit in Unit),
    *(REASON_COLORS[stall] for stall in Stall),
    *(pale(REASON_COLORS[stall]) for stall in Stall),
]
_UNIT, _REASON, _PALE = 2, 2 + len(Unit), 2 + len(Unit) + len(Stall)


def overview_image(trace: Trace, cycles: int | None = None) -> str:
    """The picture as HTML. cycles: that its width stands for, by default those of the trace."""
    found = utilisation(trace)
    busy = ", ".join(f"{UNIT_NAMES[unit]} {share:.0%}" for unit, share in found.busy.items())
    says = (
        f"{len(trace.waves)} waves of {trace.kernel} over {_length(trace, None)} cycles; with work: {busy or 'nothing'}"
    )
    return svg_image(overview_svg(trace, cycles), says)


def overview_svg(trace: Trace, cycles: int | None = None) -> str:
    """The picture."""
    first, length = span(trace)[0], _length(trace, cycles)
    edges = np.linspace(first, first + length, _BINS + 1)
    every = rows(trace)
    shown = every[:MAX_ROWS]
    used = [unit for unit in UNITS if any(i.unit == unit for i in trace.instructions)]
    lanes = [shares(trace, unit, edges) for unit in used]
    pixels = np.concatenate([_waves(trace, shown, edges), *map(_lane, used, lanes), _stalls(trace, edges)])
    names = [*(f"{row.group} {row.name}" for row in shown), *(UNIT_NAMES[unit] for unit in used), "stalled waves"]
    heights = [*(_ROW for _ in shown), *(_LANE for _ in used), _STALLS]
    left = f"; {len(every) - len(shown)} more rows of waves are not drawn" if len(every) > len(shown) else ""
    return _svg(pixels, names, heights, _axis(first, length), _legend(trace, used), left)


def _length(trace: Trace, cycles: int | None) -> int:
    first, last = span(trace)
    return max(cycles or last - first, 1)


def _waves(trace: Trace, shown: Sequence[Row], edges: Array) -> NDArray[np.uint8]:
    """Work from above, what the waves stall for below it, each as high as its part of the bin's cycles."""
    row_of = np.full(len(trace.waves) + 1, -1)
    for number, row in enumerate(shown):
        row_of[list(row.waves)] = number
    event_row = row_of[trace.events["wave"]]
    units = np.array([i.unit for i in trace.instructions], np.int64)
    unit_of = units[trace.events["instruction"]] if len(units) else event_row
    issue = trace.events["issue"].astype(np.int64)
    ends, attempts = issue + issue_cycles(trace), issue - trace.events["stall"]
    parts = []
    for number, row in enumerate(shown):
        mine = event_row == number
        work = _by_kind(unit_of[mine], issue[mine], ends[mine], edges, len(Unit))
        stalls = _by_kind(trace.events["reason"][mine], attempts[mine], issue[mine], edges, len(Stall))
        alive = trace.waves[list(row.waves)]
        none = np.zeros(len(alive), np.int64)
        lives = covered(none, alive["start"].astype(np.int64), alive["end"].astype(np.int64), edges)
        parts.append(_bins(work, stalls, lives > 0))
    return np.concatenate(parts) if parts else np.zeros((0, _BINS), np.uint8)


def _by_kind(kinds: Array, starts: Array, ends: Array, edges: Array, count: int) -> Array:
    """Cycles of each kind in each bin, of shape (count, bins)."""
    found = np.zeros((count, len(edges) - 1))
    for kind in np.unique(kinds):
        mine = kinds == kind
        found[kind] = covered(np.zeros(int(mine.sum()), np.int64), starts[mine], ends[mine], edges)
    return found


def _bins(work: Array, stalls: Array, is_alive: Array) -> NDArray[np.uint8]:
    """A row of the picture."""
    worked, stalled = work.sum(axis=0), stalls.sum(axis=0)
    both = np.maximum(worked + stalled, 1e-9)
    height = np.where(worked > 0, np.maximum(1, np.rint(_WORK * worked / both)), 0)
    below = np.where(stalled > 0, _PALE + stalls.argmax(axis=0), np.where(is_alive, 1, 0))
    lines = np.arange(_WORK)[:, None]
    drawn = np.where(lines < height, _UNIT + work.argmax(axis=0), below)
    return np.concatenate([drawn, np.zeros((_ROW - _WORK, drawn.shape[1]))]).astype(np.uint8)


def _lane(unit: Unit, found: Array) -> NDArray[np.uint8]:
    """The share of a unit as an area."""
    lines = np.arange(_LANE, 0, -1)[:, None] - 1
    area = np.where(lines < np.rint(found * (_LANE - 4)), _UNIT + unit, 0)
    area[-1] = 1
    return area.astype(np.uint8)


def _stalls(trace: Trace, edges: Array) -> NDArray[np.uint8]:
    """The part of the waves that stall, one reason upon the other."""
    waves = trace.events["wave"].astype(np.int64)
    issue = trace.events["issue"].astype(np.int64)
    alive = covered(
        np.arange(len(trace.waves)), trace.waves["start"].astype(np.int64), trace.waves["end"].astype(np.int64), edges
    )
    area = np.zeros((_STALLS, _BINS), np.uint8)
    below = np.zeros(_BINS)
    lines = np.arange(_STALLS, 0, -1)[:, None] - 1
    for reason in Stall:
        mine = (trace.events["reason"] == reason) & (trace.events["stall"] > 0)
        if mine.any():
            cycles = covered(waves[mine], (issue - trace.events["stall"])[mine], issue[mine], edges)
            above = below + np.divide(cycles, alive, out=np.zeros(_BINS), where=alive > 0) * (_STALLS - 4)
            area[(lines >= np.rint(below)) & (lines < np.rint(above))] = _REASON + reason
            below = above
    return area


def _axis(first: int, length: int) -> list[tuple[float, str]]:
    """Positions from 0 to 1, and what stands there."""
    step = next(s for s in _steps() if length / s <= 8)
    begin = -(-first // step) * step
    return [((cycle - first) / length, f"{cycle:,}") for cycle in range(begin, first + length + 1, step)]


def _steps() -> Sequence[int]:
    return [factor * 10**power for power in range(19) for factor in (1, 2, 5)]


def _legend(trace: Trace, used: Sequence[Unit]) -> list[tuple[str, str]]:
    seen = {Stall(reason) for reason in np.unique(trace.events["reason"])} - {Stall.NONE}
    others = [Unit.MESSAGE] if any(i.unit == Unit.MESSAGE for i in trace.instructions) else []
    units = [(UNIT_COLORS[unit], UNIT_NAMES[unit]) for unit in [*used, *others]]
    return units + [(pale(REASON_COLORS[stall]), REASON_NAMES[stall]) for stall in sorted(seen)]


def _svg(
    pixels: NDArray[np.uint8],
    names: Sequence[str],
    heights: Sequence[int],
    axis: Sequence[tuple[float, str]],
    legend: Sequence[tuple[str, str]],
    note: str,
) -> str:
    width = _GUTTER + _BINS + 10
    tall = _AXIS + pixels.shape[0]
    height = tall + 8 + _LEGEND * (-(-len(legend) // 4) + bool(note))
    parts = [f'<rect width="{width}" height="{height}" fill="{PAPER}"/>']
    for part, label in axis:
        x = _GUTTER + part * _BINS
        parts.append(f'<text x="{x:.0f}" y="{_AXIS - 9}" text-anchor="middle">{label}</text>')
        parts.append(f'<rect x="{x:.0f}" y="{_AXIS - 6}" width="1" height="6" fill="{INK}"/>')
    parts.append(f'<text x="4" y="{_AXIS - 9}">cycle</text>')
    y = _AXIS
    for name, high in zip(names, heights, strict=True):
        size = 9 if high == _ROW else 11
        parts.append(f'<text x="4" y="{y + high / 2 + 3:.0f}" font-size="{size}">{escape(name)}</text>')
        y += high
    address = png_address(pixels, _PALETTE)
    parts.append(
        f'<image x="{_GUTTER}" y="{_AXIS}" width="{_BINS}" height="{pixels.shape[0]}" preserveAspectRatio="none" '
        f'style="image-rendering:pixelated" href="{address}"/>'
    )
    for number, (color, name) in enumerate(legend):
        x, y = 4 + number % 4 * (width // 4), tall + 8 + number // 4 * _LEGEND
        parts.append(f'<rect x="{x}" y="{y}" width="12" height="9" fill="{color}"/>')
        parts.append(f'<text x="{x + 16}" y="{y + 9}">{escape(name)}</text>')
    if note:
        parts.append(f'<text x="4" y="{height - 6}">{escape(note.lstrip("; "))}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="11" fill="{INK}">{"".join(parts)}</svg>'
    )
