"""The views of shared memory that a kernel makes: layout, element type, and where in LDS they begin."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from flydsl.dialect.elements import element_bits
from flydsl.errors import FlyError
from flydsl.layout import ComposedLayout, Layout, crd2idx, parse, product_each, size
from flydsl.simulator.decoding.program import Program

_RESULT = re.compile(r"\s*(%[\w#]+) = fly\.(\w+)(?:\(([^)]*)\))? : (.*)")
_VIEW = re.compile(r"-> !fly\.memref<(\w+), shared, (.*)>$")
_POINTER = re.compile(r"-> !fly\.ptr<(\w+), shared")
_NUMBER = re.compile(r"!fly\.int_tuple<(\d+)>\)")
_MOST_ELEMENTS = 1 << 14
_KERNEL = re.compile(r"\s*gpu\.func @([\w.$-]+)\(")


@dataclass(frozen=True)
class LdsView:
    """A view. start: its first byte; None where that is known at run time only."""

    element: str
    layout: Layout | ComposedLayout
    start: int | None

    @property
    def name(self) -> str:
        """Its name in a list."""
        where = "from a byte known at run time only" if self.start is None else f"from byte {self.start}"
        return f"{self.layout} of {self.element}, {where}"

    def element_at(self, address: int) -> str | None:
        """The element that has a byte of LDS: "[64]", "[3, 1]"; None if none of the view's first elements has it."""
        if self.start is None or address < self.start:
            return None
        index = (address - self.start) * 8 // element_bits(self.element)
        count = size(self.layout)
        assert isinstance(count, int)  # of a layout that is known at compile time
        number = next(
            (number for number in range(min(count, _MOST_ELEMENTS)) if crd2idx(number, self.layout) == index), None
        )
        if number is None:
            return None
        coordinate, extents = [], product_each(self.layout.shape)
        for extent in (extents,) if isinstance(extents, int) else extents:
            coordinate.append(number % extent)
            number //= extent
        return str(coordinate)


def elements_at(address: int, kernel: str, lds_bytes: int, module: str) -> list[str]:
    """The elements of a kernel's views that have a byte of LDS, in words. lds_bytes: without what the launch adds."""
    views = dict.fromkeys(_views(module, kernel, lds_bytes))
    found = ((view, view.element_at(address)) for view in views)
    return [f"element {element} of the view {view.name}" for view, element in found if element]


def views_of(program: Program, kernel: str, module: str) -> list[LdsView]:
    """The views of LDS that a kernel makes, in order, each once; of those with a layout that is known at compile time.

    module: the text as traced; "" has none.
    """
    return list(dict.fromkeys(_views(module, kernel, program.kernels[kernel].lds_bytes)))


def _views(module: str, kernel: str, static_bytes: int) -> Iterator[LdsView]:
    starts: dict[str, int | None] = {}  # of pointers into LDS, in bytes
    inside = False
    for line in module.splitlines():
        if match := _KERNEL.match(line):
            inside, starts = match[1] == kernel, {}
        if not inside or (operation := _RESULT.match(line)) is None:
            continue
        result, name, operands, types = operation.groups()
        first = (operands or "").partition(",")[0].strip()
        if pointer := _POINTER.search(types):
            starts[result] = _start(name, first, types, pointer[1], starts, static_bytes)
        elif (view := _VIEW.search(types)) and name == "make_view":
            yield from _view(view[1], view[2], starts.get(first))


def _start(
    name: str, first: str, types: str, element: str, starts: dict[str, int | None], static_bytes: int
) -> int | None:
    """The byte at which the pointer begins that an operation makes."""
    if name == "get_dyn_shared":
        return static_bytes
    base = starts.get(first)
    if name == "recast_iter" or base is None:
        return base
    number = _NUMBER.search(types)
    if name == "add_offset" and number is not None:
        return base + int(number[1]) * element_bits(element) // 8
    return None


def _view(element: str, text: str, start: int | None) -> Iterator[LdsView]:
    if "?" in text or "*" in text:
        return
    try:
        layout, _ = parse(text), element_bits(element)
    except FlyError:
        return
    if isinstance(layout, Layout | ComposedLayout):
        yield LdsView(element, layout, start)
