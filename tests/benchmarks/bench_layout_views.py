"""What the layout views cost: drawing a layout, its size in a saved notebook, a move of the visualizer's sliders."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from flydsl.layout import parse
from workbench.layouts import explore_layout, layout_bundle

REPEATS = 5
LARGE = "S<3,3,3> o 0 o ((16,8),(8,16)):((128,2048),(1,8))"
TILE = "(16,64):(64,1)"


def run() -> list[dict[str, Any]]:
    """Each result: name, value, unit, target."""
    large = parse(LARGE)
    saved_kb = len(json.dumps(layout_bundle(large), indent=1)) / 1024  # as a notebook is saved
    return [
        {"name": "drawing a layout of 128 x 128", "value": fresh_ms(large), "unit": "ms", "target": 1000},
        {"name": "the same, saved in a notebook", "value": saved_kb, "unit": "kB", "target": 400},
        {"name": "slider of the visualizer, tile of 16 x 64", "value": slider_ms(TILE), "unit": "ms", "target": 100},
        {"name": "slider of the visualizer, 128 x 128", "value": slider_ms("(128,128):(128,1)"), "unit": "ms"},
    ]


def fresh_ms(layout: Any) -> float:
    """The time to draw a layout that has not been drawn before."""
    from workbench.layouts.grid import Grid

    def draw() -> None:
        Grid.of.cache_clear()
        layout_bundle(layout)

    return min(milliseconds(draw) for _ in range(REPEATS))


def slider_ms(layout: str) -> float:
    """The median time of a move of a slider, each to a swizzle or padding that was not shown before."""
    visualizer = explore_layout(parse(layout))
    moves = [(visualizer.swizzle_bits, 1), (visualizer.swizzle_bits, 2), (visualizer.swizzle_bits, 3)]
    moves += [(visualizer.swizzle_base, 4), (visualizer.padding, 8)]
    times = sorted(milliseconds(lambda control=control, to=to: setattr(control, "value", to)) for control, to in moves)
    return times[len(times) // 2]


def milliseconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1e3


if __name__ == "__main__":
    for row in run():
        print(row)
