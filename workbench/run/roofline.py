"""The roofline picture: what the memory and the arithmetic of a GPU allow, and where a launch is.

That is by its estimated time, with the error of that, or, where there is no estimate, as high as its resources allow.

Williams, Waterman, Patterson, "Roofline: an insightful visual performance model", CACM 52(4), 2009. Both axes are
logarithmic. Floating-point operations are those of matrix instructions, or of vector instructions if a launch has no
matrix ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from flydsl.arch.instruction_costs import mfma_cycles, mfma_operations, valu_cycles, valu_operations
from flydsl.simulator.counters import LaunchCounters
from workbench.kit import plot_theme
from workbench.kit.html import svg_image
from workbench.kit.kinds import require
from workbench.kit.plot_theme import AXIS, PLOT, ink

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_WIDTH, _HEIGHT = 640, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, _WIDTH - 20, 44, _HEIGHT - 46
_LINE_HEIGHT = 14
_ABOVE, _BELOW = 6, 13  # from a roof to the base line of its label
# The picture has a background of its own: no colour is read well on a white page and on a black one alike.
PAPER, TEXT, LINE, POINT, _GRID = "#fbfbfb", "#222222", "#005a8c", "#b34700", "#cccccc"
_X_TITLE = "operations per byte of the 64-byte lines (no caches)"
_Y_TITLE = "operations per second"
_VECTOR_ROOF = "v_fma_f32"


@dataclass(frozen=True)
class Roof:
    """A horizontal line. is_part: what the compute units that have work can do, not the whole GPU."""

    label: str
    operations_per_second: float
    is_part: bool = False


@dataclass(frozen=True)
class RooflinePicture:
    """The content of the picture.

    point: operations per byte, operations per second; None if there is none; `note` then gives the reason. error: of
    the rate, as a part of 1, None where it is not known. point_is: what the point is.
    """

    title: str
    bytes_per_second: float
    memory_label: str
    roofs: tuple[Roof, ...]
    point: tuple[float, float] | None
    note: str
    error: float | None = None
    point_is: str = ""

    @property
    def reach(self) -> tuple[float, float] | None:
        """From which rate to which other one the launch may be by the error."""
        if self.point is None or not self.error:
            return None
        return self.point[1] / (1 + self.error), self.point[1] / (1 - self.error)

    @property
    def point_text(self) -> str:
        """The point in words."""
        if self.point is None:
            return ""
        about = "" if self.error is None else f" ± {self.error:.0%}".replace("%", " %")
        return f"{self.point_is}: {self.point[0]:.3g} operations per byte, {rate_text(self.point[1])}{about}"

    @property
    def ridge(self) -> float:
        """The operations per byte above which memory is not the limit, for the highest roof."""
        return max(roof.operations_per_second for roof in self.roofs) / self.bytes_per_second

    @property
    def x_range(self) -> tuple[int, int]:
        """The powers of ten at the ends of the axis."""
        xs = [self.ridge] + ([self.point[0]] if self.point else [])
        return math.floor(math.log10(min(xs))) - 1, math.ceil(math.log10(max(xs))) + 1

    @property
    def y_range(self) -> tuple[int, int]:
        """The range of the vertical axis."""
        ys = [roof.operations_per_second for roof in self.roofs] + ([self.point[1]] if self.point else [])
        ys += self.reach or ()
        return math.floor(math.log10(min(ys))) - 1, math.ceil(math.log10(max(ys)))


def picture(counters: LaunchCounters) -> RooflinePicture:
    """The roofline picture of a launch. Raises ArchError for an architecture whose peak figures are not known."""
    bounds, totals, estimate = counters.roofline(), counters.totals, counters.estimate
    operations = totals.mfma_operations or totals.valu_operations
    kind = "matrix" if totals.mfma_operations else "vector"
    point, note = None, ""
    if not operations:
        note = "This launch does no floating-point additions or multiplications: it has no point here."
    elif not bounds.memory_bytes:
        note = "This launch does not touch global memory: it has no point here."
    elif bounds.time_us:
        point = operations / bounds.memory_bytes, operations / (estimate or bounds).time_us * 1e6
        note = f"{operations} {kind} operations, {bounds.memory_bytes} bytes of lines"
    return RooflinePicture(
        title=f"{counters.kernel} on {bounds.peaks.product}, bound by {bounds.bound}",
        bytes_per_second=bounds.peaks.memory_bytes_per_second,
        memory_label=f"memory {bounds.peaks.memory_bytes_per_second / 1e12:.3g} TB/s",
        roofs=tuple(_roofs(counters)),
        point=point,
        note=note,
        error=None if estimate is None or estimate.error_percent is None else estimate.error_percent / 100,
        point_is="this launch at peak rates" if estimate is None else "this launch, an estimate",
    )


def _roofs(counters: LaunchCounters) -> Iterator[Roof]:
    """A roof for each rate of the executed matrix instructions and the vector unit; then one for the SIMDs in use."""
    bounds, arch = counters.roofline(), counters.program.arch
    peaks = bounds.peaks
    rates: dict[float, list[str]] = {}
    executed = {i.mnemonic for i in counters.program.instructions if counters.counts[i.index]["executions"]}
    for mnemonic in sorted(executed):
        operations, cycles = mfma_operations(mnemonic), mfma_cycles(arch, mnemonic)
        if operations and cycles:
            rates.setdefault(peaks.operations_per_second(operations, cycles), []).append(mnemonic)
    cycles = valu_cycles(arch, _VECTOR_ROOF)
    assert cycles is not None
    rates.setdefault(peaks.operations_per_second(arch.wave_size * valu_operations(_VECTOR_ROOF), cycles), []).append(
        _VECTOR_ROOF
    )
    for rate, names in rates.items():
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield Roof(f"{names[0]}{others}: {rate_text(rate)}", rate)
    simds = peaks.compute_units * peaks.simds_per_compute_unit
    if bounds.simds_used < simds:
        rate = bounds.simds_used / simds * max(rates)
        yield Roof(f"{bounds.simds_used} of {simds} SIMDs, which have work: {rate_text(rate)}", rate, is_part=True)


def rate_text(operations_per_second: float) -> str:
    """A rate with its unit.

    >>> rate_text(1.3074e15), rate_text(40e6)
    ('1307 TFLOP/s', '40 MFLOP/s')
    """
    units = (("T", 1e12), ("G", 1e9), ("M", 1e6))
    unit, size = next((pair for pair in units if operations_per_second >= pair[1]), units[-1])
    return f"{operations_per_second / size:.4g} {unit}FLOP/s"


def roofline_figure(counters: LaunchCounters) -> Figure:
    """The roofline of the GPU with the point of a launch, as a plotly figure.

    counters: of a launch, `workbench.profile(...).counters[0]`. Raises ArgumentError for anything else, and ArchError
    for an architecture whose peak figures are not known.
    """
    from workbench.kit.notebook import graph_objects as go
    from workbench.kit.picture import Picture

    require("roofline_figure", counters, LaunchCounters, "counters: workbench.profile(launcher, ...).counters[0]")
    drawn = picture(counters)
    low, high = drawn.y_range
    figure = go.Figure([go.Scatter(**trace) for trace in _traces(drawn)])
    axis = {"type": "log", "exponentformat": "power", "dtick": 1, **AXIS}
    figure.update_xaxes(title=ink(_X_TITLE), range=list(drawn.x_range), **axis)
    figure.update_yaxes(title=ink(_Y_TITLE), range=[low, high + 0.3], **axis)
    figure.update_layout(
        title={"text": ink(escape(drawn.title)), "subtitle": {"text": ink(drawn.note)}},
        legend={"orientation": "h", "y": -0.25},
        height=460,
        margin={"l": 70, "r": 20, "t": 70, "b": 40},
        **PLOT,
    )
    return Picture(figure, roofline_image(counters), f"{drawn.title}; {drawn.note}")


def _traces(drawn: RooflinePicture) -> Iterator[dict[str, Any]]:
    """The roofs and the point, as plotly has them."""
    left, right = (10.0**power for power in drawn.x_range)
    for roof in drawn.roofs:
        corner = roof.operations_per_second / drawn.bytes_per_second
        yield {
            "x": [left, corner, right],
            "y": [left * drawn.bytes_per_second, roof.operations_per_second, roof.operations_per_second],
            "mode": "lines",
            "line": {"color": plot_theme.LINE, "dash": "dash" if roof.is_part else "solid"},
            "name": ink(escape(roof.label)),
            "hovertemplate": f"{escape(roof.label)}; {drawn.memory_label}<extra></extra>",
        }
    if drawn.point is not None:
        x, y = drawn.point
        low, high = drawn.reach or (y, y)
        yield {
            "x": [x],
            "y": [y],
            "mode": "markers",
            "marker": {"color": plot_theme.POINT, "size": 12, "symbol": "diamond"},
            "error_y": {"type": "data", "array": [high - y], "arrayminus": [y - low]} if drawn.reach else None,
            "name": ink(drawn.point_text),
            "hovertemplate": f"{drawn.point_text}<br>{drawn.note}<extra></extra>",
        }


def roofline_image(counters: LaunchCounters) -> str:
    """The roofline as an `<img>` that needs no script. Raises ArchError as the figure does."""
    drawn = picture(counters)
    roofs = [roof.label for roof in drawn.roofs]
    says = [drawn.title, drawn.point_text, drawn.memory_label, *roofs, drawn.note]
    return svg_image(roofline_svg(drawn), "; ".join(filter(None, says)))


@dataclass(frozen=True)
class _Axes:
    """The axes of the SVG, both logarithmic. Ranges are powers of ten."""

    x_range: tuple[int, int]
    y_range: tuple[int, int]

    def x(self, value: float) -> float:
        low, high = self.x_range
        return round(_LEFT + (math.log10(value) - low) / (high - low) * (_RIGHT - _LEFT), 1)

    def y(self, value: float) -> float:
        low, high = self.y_range
        part = (math.log10(value) - low) / (high + 0.3 - low)
        return round(_BOTTOM - part * (_BOTTOM - _TOP), 1)

    def grid(self) -> Iterator[str]:
        """Lines at the powers of ten, with their numbers."""
        for power in range(self.x_range[0], self.x_range[1] + 1):
            at = self.x(10.0**power)
            yield f'<path d="M{at} {_TOP}V{_BOTTOM}" stroke="{_GRID}"/>'
            yield f'<text x="{at}" y="{_BOTTOM + 16}" text-anchor="middle">{10.0**power:g}</text>'
        for power in range(self.y_range[0], self.y_range[1] + 1):
            at = self.y(10.0**power)
            yield f'<path d="M{_LEFT} {at}H{_RIGHT}" stroke="{_GRID}"/>'
            yield f'<text x="{_LEFT - 6}" y="{at + 4}" text-anchor="end">{_power_text(power)}</text>'

    def roof(self, roof: Roof, bytes_per_second: float) -> str:
        """The line of a roof: with the memory's slope, then level."""
        rate, dash = roof.operations_per_second, ' stroke-dasharray="6 4"' if roof.is_part else ""
        start = max(10.0 ** self.x_range[0], 10.0 ** self.y_range[0] / bytes_per_second)
        corner = max(rate / bytes_per_second, start)
        slope = f"M{self.x(start)} {self.y(min(start * bytes_per_second, rate))}L{self.x(corner)} {self.y(rate)}"
        return f'<path d="{slope}H{_RIGHT}" fill="none" stroke="{LINE}" stroke-width="2"{dash}/>'


def roofline_svg(drawn: RooflinePicture) -> str:
    """The picture as SVG text."""
    axes = _Axes(drawn.x_range, drawn.y_range)
    parts = [f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="{PAPER}"/>', *axes.grid()]
    parts += [axes.roof(roof, drawn.bytes_per_second) for roof in drawn.roofs]
    # The labels are over all lines, on a rim of paper.
    rim = f'stroke="{PAPER}" stroke-width="3" stroke-linejoin="round" paint-order="stroke"'
    parts.append(f'<text x="{_LEFT + 6}" y="{_TOP + 12}" {rim}>{escape(drawn.memory_label)} (the slope)</text>')
    for roof, at in _labels([(roof, axes.y(roof.operations_per_second)) for roof in drawn.roofs]):
        parts.append(f'<text x="{_RIGHT}" y="{at}" text-anchor="end" {rim}>{escape(roof.label)}</text>')
    if drawn.point is not None:
        x, y = axes.x(drawn.point[0]), axes.y(drawn.point[1])
        if drawn.reach:
            low, high = map(axes.y, drawn.reach)
            parts.append(f'<path d="M{x} {low}V{high}" stroke="{POINT}"/>')
        parts.append(f'<path d="M{x} {y - 7}l7 7l-7 7l-7 -7z" fill="{POINT}" stroke="{PAPER}"/>')
    parts.append(f'<text x="{_LEFT}" y="18" font-weight="bold">{escape(drawn.title)}</text>')
    parts.append(f'<text x="{_LEFT}" y="34">{escape("; ".join(filter(None, [drawn.point_text, drawn.note])))}</text>')
    middle = (_LEFT + _RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{_HEIGHT - 8}" text-anchor="middle">{_X_TITLE}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
        f'font-family="sans-serif" font-size="11" fill="{TEXT}">{"".join(parts)}</svg>'
    )


def _labels(roofs: Sequence[tuple[Roof, float]]) -> Iterator[tuple[Roof, float]]:
    """The base line of each label, from the highest roof down: above its roof, or below where another label is."""
    free = float(_TOP + 12 + _LINE_HEIGHT)  # below the label of the memory
    for roof, at in sorted(roofs, key=lambda pair: pair[1]):
        label = at - _ABOVE if at - _ABOVE >= free else max(at + _BELOW, free)
        yield roof, round(label, 1)
        free = label + _LINE_HEIGHT


def _power_text(power: int) -> str:
    """A power of ten of operations per second: "10 G", "1 T"."""
    for unit, size in (("P", 15), ("T", 12), ("G", 9), ("M", 6), ("k", 3)):
        if power >= size:
            return f"{10 ** (power - size)} {unit}FLOP/s"
    return f"{10.0**power:g} FLOP/s"
