"""Draw `docs/images/measured.svg`: times of the library by the model beside those measured on an MI355X.

python -m tools.measured_plot

Some rows of each family of AMD's tuning tables; `tests.benchmarks.timing_accuracy` has them all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from tests.benchmarks.timing_accuracy import FAMILIES, Compared, compared

PLOT = Path(__file__).parents[1] / "docs" / "images" / "measured.svg"
ROWS = 12  # of a family
COLOURS = {"preshuffle_gemm": "#1f6fb2", "hgemm": "#c8553d", "mixed_moe": "#8a5fb0", "gdr_decode": "#3a7d44"}
LOW_US, HIGH_US = 2.0, 2000.0
LEFT, TOP, SIDE = 60, 20, 360  # of the square, in pixels
TICKS = (2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)


def place(us: float) -> float:
    """Pixels from the side of the least time, on a logarithmic scale."""
    return SIDE * math.log(us / LOW_US) / math.log(HIGH_US / LOW_US)


def text(x: float, y: float, words: str, anchor: str = "middle", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{words}</text>'


def axes() -> Iterable[str]:
    """The square with a line for each tick, the diagonal, and what the axes are."""
    bottom, middle = TOP + SIDE, TOP + SIDE / 2
    yield f'<path d="M{LEFT} {bottom}L{LEFT + SIDE} {TOP}" stroke="#888" stroke-dasharray="4 3"/>'
    for us in TICKS:
        x, y = LEFT + place(us), bottom - place(us)
        yield f'<path d="M{x:.1f} {TOP}V{bottom}M{LEFT} {y:.1f}H{LEFT + SIDE}" stroke="#ddd"/>'
        yield text(x, bottom + 16, str(us))
        yield text(LEFT - 6, y + 4, str(us), "end")
    yield text(LEFT + SIDE / 2, bottom + 36, "measured on an MI355X, us")
    yield text(14, middle, "by the model, us", more=f' transform="rotate(-90 14 {middle:.0f})"')


def drawing(points: dict[str, list[Compared]]) -> str:
    """The SVG."""
    parts = list(axes())
    for number, (family, pairs) in enumerate(points.items()):
        colour = COLOURS[family]
        for pair in pairs:
            x, y = LEFT + place(pair.measured_us), TOP + SIDE - place(pair.modelled_us)
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}" fill-opacity="0.75"/>')
        y = TOP + 18 + 18 * number
        parts.append(f'<circle cx="{LEFT + 14}" cy="{y}" r="4" fill="{colour}"/>')
        parts.append(text(LEFT + 24, y + 4, family, "start"))
    size = f'width="{LEFT + SIDE + 20}" height="{TOP + SIDE + 46}"'
    style = 'font-family="sans-serif" font-size="12" fill="none"'
    body = "\n".join(part.replace("<text", '<text fill="#333"') for part in parts)
    begin = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n<rect width="100%" height="100%" fill="#fff"/>'
    return f"{begin}\n{body}\n</svg>\n"


def main() -> None:
    """Time the rows and write the plot."""
    from kernels.tuned import measured

    points = {family: list(compared(family, max(1, len(measured(family)) // ROWS))) for family in FAMILIES}
    for family, pairs in points.items():
        print(family, *(f"{pair.measured_us:.1f}/{pair.modelled_us:.1f}" for pair in pairs))
    PLOT.write_text(drawing(points))


if __name__ == "__main__":
    main()
