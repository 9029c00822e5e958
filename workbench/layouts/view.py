"""What is drawn of each kind of object, as panels: layouts, and copies with who moves which element as which value.

Another kind (an atom, a tiled something) is another function registered with `view_of`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import TYPE_CHECKING, Any

from flydsl import atoms
from flydsl import expr as fx
from flydsl.arch import DEFAULT_ARCH, Arch
from flydsl.errors import ArgumentError, LayoutError
from flydsl.layout import ComposedLayout, Layout, Tile, get_shape, make_layout, size
from workbench.layouts.figure import panels_figure
from workbench.layouts.grid import AnyLayout, Numbers
from workbench.layouts.panel import Panel
from workbench.layouts.static import panel_text, panels_html

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_MAX_TEXT_CELLS = 16 * 16


@dataclass(frozen=True)
class View:
    """What is drawn of an object. thread: the one to light, None for all."""

    title: str
    panels: tuple[Panel, ...]
    thread: int | None = None

    @property
    def threads(self) -> int:
        """How many threads take part."""
        return max(panel.threads for panel in self.panels)

    @property
    def color_by(self) -> str:
        """What the colours say unless asked for something else."""
        return "thread" if self.threads else "offset"

    def figure(self, *, color_by: str | None = None, thread: int | None = None, arch: Arch = DEFAULT_ARCH) -> Figure:
        """The panels side by side as a plotly figure. thread: the one to light."""
        lit = self.lit(self.thread if thread is None else thread)
        return panels_figure(self.panels, self.title, color_by=color_by or self.color_by, arch=arch, lit=lit)

    def html(self) -> str:
        """The panels as HTML that needs no JavaScript."""
        return panels_html(self.panels, self.title, color_by=self.color_by, lit=self.lit(self.thread))

    def text(self) -> str:
        """Who holds what, where there are threads and it is not much."""
        return "\n".join(
            panel_text(panel, light)
            for panel, light in zip(self.panels, self.lit(self.thread), strict=True)
            if panel.layout_tv is not None and panel.grid.offsets.size <= _MAX_TEXT_CELLS
        )

    def lit(self, thread: int | None) -> list[Numbers | None]:
        """For each panel the cells that a thread holds; for no thread, None. Raises ArgumentError where it is none."""
        if thread is None:
            return [None] * len(self.panels)
        if not 0 <= thread < self.threads:
            raise ArgumentError(f"there is no thread {thread}", hint=f"threads are 0 to {self.threads - 1}")
        return [panel.held_by(thread) for panel in self.panels]


def thread_figure(
    value: Any,
    source: AnyLayout | None = None,
    destination: AnyLayout | None = None,
    *,
    color_by: str | None = None,
    thread: int | None = None,
    arch: Arch = DEFAULT_ARCH,
) -> Figure:
    """A copy atom, tiled copy or a thread's part of one as a plotly figure.

    source, destination: of a tiled copy the layouts of the tensors that it copies between; without them its tile is
    drawn. color_by: "thread", "value", "offset" or "bank". thread: the one to light.

    Raises ArgumentError for what is not drawn, LayoutError where the tile does not divide a tensor.
    """
    return view_of(value, source, destination).figure(color_by=color_by, thread=thread, arch=arch)


@singledispatch
def view_of(value: Any, source: AnyLayout | None = None, destination: AnyLayout | None = None) -> View:
    """What is drawn of an object; arguments and errors are those of `thread_figure`."""
    raise ArgumentError(f"a {type(value).__name__} is not drawn", hint="layouts, copy atoms and tiled copies are")


@view_of.register(Layout)
@view_of.register(ComposedLayout)
def _(value: AnyLayout, source: AnyLayout | None = None, destination: AnyLayout | None = None) -> View:
    return View(str(value), (Panel(value),))


@view_of.register
def _(value: atoms.TiledCopy, source: AnyLayout | None = None, destination: AnyLayout | None = None) -> View:
    title = f"{value.op}, {value.threads} threads"
    if source is None and destination is None:
        tile = make_layout(_extents(value.tile))
        return View(title, (Panel(tile, value.layout_tv, "", value.value_bits),))
    tensors = {"source": source, "destination": destination}
    given = {name: layout for name, layout in tensors.items() if layout is not None}
    return View(title, tuple(_partitioned(value, layout, name) for name, layout in given.items()))


@view_of.register
def _(value: fx.TiledCopy, source: AnyLayout | None = None, destination: AnyLayout | None = None) -> View:
    return view_of(value.type.copy, source, destination)


@view_of.register
def _(value: fx.ThrCopy, source: AnyLayout | None = None, destination: AnyLayout | None = None) -> View:
    if not isinstance(value.thread, int):
        raise ArgumentError(f"the thread {value.thread!r} is known at run time only", hint="draw get_slice(0), say")
    view = view_of(value.tiled_copy, source, destination)
    return View(view.title, view.panels, value.thread)


@view_of.register
def _(value: fx.CopyAtom, source: AnyLayout | None = None, destination: AnyLayout | None = None) -> View:
    op, bits = value.type.op, value.type.value_bits
    layout_tv = make_layout((op.threads, op.bits // bits))
    return View(str(op), (Panel(make_layout(size(layout_tv)), layout_tv, "", bits),))


def _partitioned(copy: atoms.TiledCopy, tensor: AnyLayout, name: str) -> Panel:
    """A tensor and the part of each thread in it."""
    coordinates = make_layout(get_shape(tensor))  # partitioned in the place of the tensor: coordinates for offsets
    return Panel(tensor, copy.partition(coordinates), name, copy.value_bits)


def _extents(tile: Tile) -> tuple[int, ...]:
    """The extents of a tile whose modes are numbers or layouts."""
    extents = tuple(size(mode) for mode in tile.tilers if mode is not None) if isinstance(tile, Tile) else ()
    if len(extents) != len(tile) or not all(isinstance(extent, int) for extent in extents):
        raise LayoutError(f"the tile {tile} has no extents to draw")
    return tuple(int(extent) for extent in extents if isinstance(extent, int))
