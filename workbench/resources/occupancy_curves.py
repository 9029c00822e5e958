"""The occupancy curves: waves per SIMD against each resource, the kernel's point on each; for plotly and as SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flydsl.arch import Usage
from flydsl.arch.occupancy import RESOURCES
from flydsl.codegen import Kernel
from workbench.kit.html import INK, PAPER, svg_image
from workbench.kit.kinds import require
from workbench.kit.plot_theme import AXIS, PLOT, ink
from workbench.resources.limits import curve

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

AXES = {
    "VGPR": "vector registers per lane",
    "SGPR": "scalar registers per wave",
    "LDS": "LDS bytes per workgroup",
    "workgroup": "threads per workgroup",
}
_LINE, _POINT = "#0077b6", "#d55e00"  # told apart by everyone

_PANEL_WIDTH, _PANEL_HEIGHT, _MARGIN = 230, 170, 34


def occupancy_figure(kernel: Kernel | Usage) -> Figure:
    """Waves per SIMD against each resource, with the kernel's point on each curve, as a plotly figure.

    kernel: of an artifact, `p.artifact.kernels[0]`. Raises ArgumentError for anything else.
    """
    from workbench.kit.notebook import graph_objects as go
    from workbench.kit.notebook import make_subplots
    from workbench.kit.picture import Picture

    require("occupancy_figure", kernel, (Kernel, Usage), "a kernel: p.artifact.kernels[0] of a compilation p")
    usage = kernel if isinstance(kernel, Usage) else kernel.usage
    now = usage.occupancy
    heading = f"{now.waves_per_simd} of {now.max_waves_per_simd} waves per SIMD on {usage.arch.name}"
    figure = make_subplots(rows=1, cols=len(RESOURCES), subplot_titles=[ink(_title(usage, r)) for r in RESOURCES])
    for column, resource in enumerate(RESOURCES, start=1):
        steps = curve(usage, resource)
        xs, ys = [x for x, _ in steps] + [usage.largest(resource)], [y for _, y in steps] + [steps[-1][1]]
        hover = f"%{{x}} {AXES[resource]}: %{{y}} waves<extra></extra>"
        line = {"shape": "hv", "color": _LINE}
        figure.add_trace(go.Scatter(x=xs, y=ys, mode="lines", line=line, hovertemplate=hover), row=1, col=column)
        point = go.Scatter(
            x=[usage.amount(resource)],
            y=[now.limits[resource]],
            mode="markers",
            marker={"color": _POINT, "size": 11, "symbol": "diamond"},
            hovertemplate=f"this kernel: {hover}",
        )
        figure.add_trace(point, row=1, col=column)
        figure.update_xaxes(title_text=ink(AXES[resource]), row=1, col=column)
    figure.update_yaxes(range=[0, now.max_waves_per_simd + 0.5], **AXIS)
    figure.update_xaxes(**AXIS)
    figure.update_layout(
        title=ink(heading), showlegend=False, height=320, margin={"l": 40, "r": 20, "t": 70, "b": 40}, **PLOT
    )
    return Picture(figure, occupancy_image(usage), heading)


def _title(usage: Usage, resource: str) -> str:
    now = usage.occupancy
    limits = " ◀ limits" if now.limiter and now.limits[resource] == now.waves_per_simd else ""
    return f"{resource}: {now.limits[resource]}{limits}"


def occupancy_image(kernel: Kernel | Usage) -> str:
    """The curves as an `<img>` that needs no script."""
    usage = kernel if isinstance(kernel, Usage) else kernel.usage
    now = usage.occupancy
    says = "; ".join(f"{r}: {usage.amount(r)} {AXES[r]} allow {now.limits[r]} waves per SIMD" for r in RESOURCES)
    return svg_image(occupancy_svg(usage), says)


def occupancy_svg(usage: Usage) -> str:
    """The curves as SVG text, one panel per resource."""
    width = _PANEL_WIDTH * len(RESOURCES)
    panels = "".join(
        f'<g transform="translate({i * _PANEL_WIDTH} 0)">{_panel(usage, resource)}</g>'
        for i, resource in enumerate(RESOURCES)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{_PANEL_HEIGHT}" '
        f'font-family="sans-serif" font-size="11" fill="{INK}">'
        f'<rect width="{width}" height="{_PANEL_HEIGHT}" fill="{PAPER}"/>{panels}</svg>'
    )


def _panel(usage: Usage, resource: str) -> str:
    now, most = usage.occupancy, usage.largest(resource)
    right, bottom = _PANEL_WIDTH - 12, _PANEL_HEIGHT - _MARGIN

    def x(amount: int) -> float:
        return round(_MARGIN + amount / most * (right - _MARGIN), 1)

    def y(waves: int) -> float:
        return round(bottom - waves / now.max_waves_per_simd * (bottom - 26), 1)

    steps = curve(usage, resource)
    ends = [amount for amount, _ in steps[1:]] + [most]
    line = " ".join(f"{x(start)},{y(w)} {x(end)},{y(w)}" for (start, w), end in zip(steps, ends, strict=True))
    marks = "".join(
        f'<text x="{_MARGIN - 4}" y="{y(waves) + 4}" text-anchor="end">{waves}</text>'
        f'<path d="M{_MARGIN} {y(waves)}H{right}" stroke="{INK}" stroke-opacity="0.3"/>'
        for waves in sorted({waves for _, waves in steps})
        if waves in (steps[0][1], steps[-1][1], now.limits[resource])
    )
    at_x, at_y = x(min(usage.amount(resource), most)), y(now.limits[resource])
    return (
        f'<text x="{_MARGIN}" y="14">{_title(usage, resource)}</text>{marks}'
        f'<text x="{_MARGIN}" y="{_PANEL_HEIGHT - 18}">0</text>'
        f'<text x="{right}" y="{_PANEL_HEIGHT - 18}" text-anchor="end">{most}</text>'
        f'<text x="{(_MARGIN + right) / 2}" y="{_PANEL_HEIGHT - 4}" text-anchor="middle">{AXES[resource]}</text>'
        f'<polyline points="{line}" fill="none" stroke="{_LINE}" stroke-width="2"/>'
        f'<path d="M{at_x} {at_y - 6}l6 6l-6 6l-6 -6z" fill="{_POINT}"/>'
    )
