"""The strip of the stages as a picture: the time of each, and its changed lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from flydsl.compiler import Pipeline
from workbench.kit.html import INK, PAPER, escape, svg_image
from workbench.stages.stage_facts import bar_height, stage_facts

LEAST_MS = 0.05
_COLUMN, _BARS, _TEXT_LINE = 46, 34, 14
_MIDDLE = _BARS + 2 * _TEXT_LINE + 2  # of a row: the line of the numbers
_MOST_STAGES = 24  # of a row
_TIME, _ADDED, _REMOVED = "#767676", "#0072b2", "#e69f00"


def strip_image(pipeline: Pipeline) -> str:
    """The strip as an `<img>` that needs no script."""
    stages = [stage_facts(stage) for stage in pipeline]
    says = "; ".join(f"{s['number']} {s['name']}: {s['summary'] or s['state']}{_time(s)}" for s in stages)
    return svg_image(strip_svg(stages), says)


def strip_svg(stages: Sequence[dict[str, Any]]) -> str:
    """The strip as SVG text: above the numbers the time of each stage, below them its changed lines.

    Many stages are in rows, or they would be too small to read in a page.
    """
    rows = [stages[start : start + _MOST_STAGES] for start in range(0, len(stages), _MOST_STAGES)] or [[]]
    width, row_height = 64 + len(rows[0]) * _COLUMN, _MIDDLE + _BARS + 3 * _TEXT_LINE
    height = len(rows) * row_height
    parts = [f'<rect width="{width}" height="{height}" fill="{PAPER}"/>']
    most = max([1.0, *(stage["time"] or 0.0 for stage in stages)])
    for number, row in enumerate(rows):
        parts += [f'<g transform="translate(0 {number * row_height})">', *_row(row, row_height, most), "</g>"]
    style = f'font-family="sans-serif" font-size="11" fill="{INK}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" {style}>{"".join(parts)}</svg>'


def _row(stages: Sequence[dict[str, Any]], height: int, most_ms: float) -> Iterator[str]:
    names = {_MIDDLE - 5: "ms", _MIDDLE + 10: "stage", height - _TEXT_LINE - 4: "+ added", height - 4: "- removed"}
    for at, name in names.items():
        yield f'<text x="4" y="{at}">{name}</text>'
    for i, stage in enumerate(stages):
        yield from _column(stage, 64 + i * _COLUMN, height, most_ms)


def _column(stage: dict[str, Any], x: int, height: int, most_ms: float) -> Iterator[str]:
    centre, wide = x + _COLUMN / 2, _COLUMN - 6
    tall = round(bar_height(stage["time"] or 0.0, LEAST_MS, most_ms) * _BARS, 1)
    yield f"<g><title>{escape(stage['name'])}</title>"
    yield f'<rect x="{x + 3}" y="{_TEXT_LINE + _BARS - 3 - tall}" width="{wide}" height="{tall}" fill="{_TIME}"/>'
    if stage["time"] is not None:
        yield f'<text x="{centre}" y="{_MIDDLE - 5}" text-anchor="middle">{_short(stage["time"])}</text>'
    yield f'<text x="{centre}" y="{_MIDDLE + 10}" text-anchor="middle" font-weight="bold">{stage["number"]}</text>'
    top = _MIDDLE + _TEXT_LINE
    for side, (kind, color) in enumerate((("added", _ADDED), ("removed", _REMOVED))):
        tall = round(bar_height(stage[kind], 1, 300) * _BARS, 1)
        yield f'<rect x="{x + 3 + side * wide / 2}" y="{top}" width="{wide / 2}" height="{tall}" fill="{color}"/>'
    if stage["added"] or stage["removed"]:
        yield f'<text x="{centre}" y="{height - _TEXT_LINE - 4}" text-anchor="middle">+{stage["added"]}</text>'
        yield f'<text x="{centre}" y="{height - 4}" text-anchor="middle">-{stage["removed"]}</text>'
    yield "</g>"


def _short(time_ms: float) -> str:
    return f"{time_ms:.1f}" if time_ms < 100 else f"{time_ms:.0f}"


def _time(stage: dict[str, Any]) -> str:
    return "" if stage["time"] is None else f", {_short(stage['time'])} ms"
