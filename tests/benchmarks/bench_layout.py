"""Speed of the layout algebra on ints, against the PyPI package tensor-layouts and torch's _pycute where installed.

Thirty cases: ten operations on operands of three sizes. `run()` gives one dict for each: name, ours_us, others_us (by
library), and `summary()` the median of how many times faster than the faster of the others. As a script it prints both.
"""

from __future__ import annotations

import importlib
import statistics
import timeit
from collections.abc import Callable
from types import ModuleType
from typing import Any

import flydsl.layout as fly

REPEATS = 7
SECONDS_PER_REPEAT = 0.004

# Operands as (shape, stride), leftmost mode fastest: small, nested, large.
LAYOUTS = {
    "small": ((8, 16), (16, 1)),
    "nested": ((4, (8, 4)), (8, (1, 32))),
    "large": (((4, 2, 8), (8, 4), (16, 2)), ((1, 64, 4), (1024, 128), (8192, 32))),
}
DIVISORS = {"small": ((4,), (2,)), "nested": ((2, 4), (1, 4)), "large": ((4, 8, 4), (1, 4, 64))}
TILES = {"small": (2, 4), "nested": (2, 8), "large": (8, 4, 8)}
INNER = {"small": ((4, 8), (1, 16)), "nested": ((4, (2, 4)), (4, (2, 16))), "large": ((8, (4, 16)), (4, (32, 512)))}
TUPLE_COORDS = {"small": (3, 9), "nested": (3, (5, 2)), "large": ((3, 1, 6), (5, 2), (11, 1))}
SLICES = {"small": (None, 3), "nested": (2, None), "large": (None, (5, None), 7)}


class Library:
    """One library behind common names. Operands arrive leftmost mode fastest, as plain tuples."""

    name = "flydsl"

    def __init__(self, module: ModuleType) -> None:
        self.module = module

    def tree(self, value: Any) -> Any:
        """An int tuple in the mode order of the library."""
        return value

    def layout(self, operand: tuple[Any, Any]) -> Any:
        shape, stride = (self.tree(x[0] if len(x) == 1 else x) for x in operand)
        return self.module.Layout(shape, stride)

    def tile(self, sizes: tuple[int, ...]) -> Any:
        return self.module.Tile(sizes)

    def operation(self, name: str) -> Callable[..., Any]:
        return getattr(self.module, name)  # type: ignore[no-any-return]


class TensorLayouts(Library):
    name = "tensor-layouts"

    def tile(self, sizes: tuple[int, ...]) -> Any:
        return sizes

    def operation(self, name: str) -> Callable[..., Any]:
        return super().operation({"composition": "compose"}.get(name, name))


class PyCute(Library):
    """torch.distributed._pycute counts its rightmost mode fastest: all operands are mirrored."""

    name = "_pycute"

    def tree(self, value: Any) -> Any:
        return tuple(map(self.tree, reversed(value))) if isinstance(value, tuple) else value

    def tile(self, sizes: tuple[int, ...]) -> Any:
        return sizes[::-1]


def other_libraries() -> list[Library]:
    """The competitors that are installed."""
    found: list[Library] = []
    for kind, module in ((TensorLayouts, "tensor_layouts"), (PyCute, "torch.distributed._pycute")):
        try:
            found.append(kind(importlib.import_module(module)))
        except ImportError:
            print(f"{module} is not installed and not compared with")
    return found


def cases(library: Library, extent: str) -> dict[str, Callable[[], Any]]:
    """The ten operations on operands of one size, ready to run."""
    operand = library.layout(LAYOUTS[extent])
    divisor = library.layout(DIVISORS[extent])
    inner = library.layout(INNER[extent])
    tile = library.tile(TILES[extent])
    shape, stride = operand.shape, operand.stride
    coord, open_coord = library.tree(TUPLE_COORDS[extent]), library.tree(SLICES[extent])
    make = library.module.Layout
    op = library.operation
    coalesce, composition, complement = op("coalesce"), op("composition"), op("complement")
    right_inverse, logical_divide, zipped_divide = op("right_inverse"), op("logical_divide"), op("zipped_divide")
    logical_product, slice_and_offset = op("logical_product"), op("slice_and_offset")
    return {
        "Layout": lambda: make(shape, stride),
        "L(coord)": lambda: operand(coord),
        "coalesce": lambda: coalesce(operand),
        "composition": lambda: composition(operand, inner),
        "complement": lambda: complement(divisor, 4096),
        "right_inverse": lambda: right_inverse(operand),
        "logical_divide": lambda: logical_divide(operand, divisor),
        "zipped_divide": lambda: zipped_divide(operand, tile),
        "logical_product": lambda: logical_product(divisor, inner),
        "slice_and_offset": lambda: slice_and_offset(open_coord, operand),
    }


def microseconds(call: Callable[[], Any]) -> float:
    """The time of one call, the fastest of several repeats."""
    timer = timeit.Timer(call)
    number = max(1, int(SECONDS_PER_REPEAT / max(timer.timeit(10) / 10, 1e-7)))
    return min(timer.repeat(REPEATS, number)) / number * 1e6


def run() -> list[dict[str, Any]]:
    """Time all cases. Each result: name, ours_us, others_us (library -> microseconds)."""
    ours, others = Library(fly), other_libraries()
    results = []
    for extent in LAYOUTS:
        calls = cases(ours, extent)
        other_calls = {other.name: cases(other, extent) for other in others}
        for name, call in calls.items():
            others_us = {library: microseconds(theirs[name]) for library, theirs in other_calls.items()}
            results.append({"name": f"{name} {extent}", "ours_us": microseconds(call), "others_us": others_us})
    return results


def summary(results: list[dict[str, Any]]) -> float | None:
    """The median of (faster of the others) / ours; None where nothing was compared with."""
    ratios = [min(r["others_us"].values()) / r["ours_us"] for r in results if r["others_us"]]
    return statistics.median(ratios) if ratios else None


if __name__ == "__main__":
    table = run()
    for row in table:
        shown = "  ".join(f"{library} {us:8.2f}" for library, us in row["others_us"].items())
        print(f"{row['name']:26} ours {row['ours_us']:8.2f}  {shown}  us")
    print("median speed-up over the faster of the others:", summary(table))
