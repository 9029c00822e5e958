"""What is drawn of each kind of object: of layouts their grid, of copies who moves which element as which value.

Another kind (an atom, a tiled something) is another function registered with `view_of`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import TYPE_CHECKING, Any

from flydsl import atoms
from flydsl import expr as fx
from flydsl.arch import DEFAULT_ARCH, Arch
from flydsl.errors import ArgumentError, LayoutError
from flydsl.layout import ComposedLayout, Layout, Tile, get_shape, make_layout, size
from workbench.layouts.grid import AnyLayout
from workbench.layouts.panel import Panel
from workbench.layouts.view import View

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def thread_view(
    value: Any,
    source: AnyLayout | None = None,
    destination: AnyLayout | None = None,
    *,
    color_by: str = "thread",
    thread: int | None = None,
    arch: Arch = DEFAULT_ARCH,
) -> View:
    """A copy atom, a tiled copy or a thread's part of one as a picture.

    source, destination: of a tiled copy the layouts of the tensors that it copies between; without them its tile is
    drawn. color_by: "thread", "value", "offset" or "bank". thread: the one to light. arch: whose LDS banks are meant.

    Raises ArgumentError for what is not drawn, LayoutError where the tile does not divide a tensor, and what a `View`
    raises.
    """
    view = view_of(value, source, destination)
    return replace(view, color_by=color_by, thread=view.thread if thread is None else thread, arch=arch)


def thread_figure(value: Any, *tensors: AnyLayout | None, **options: Any) -> Figure:
    """The same as a plotly figure, to save or to change. The arguments are those of `thread_view`."""
    return thread_view(value, *tensors, **options).figure()


@singledispatch
def view_of(value: Any, source: AnyLayout | None = None, destination: AnyLayout | None = None) -> View:
    """What is drawn of an object; the tensors are those of `thread_view`. Raises ArgumentError where nothing is."""
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
        return View(title, (Panel(tile, value.layout_tv, "", value.value_bits),), "thread")
    tensors = {"source": source, "destination": destination}
    given = {name: layout for name, layout in tensors.items() if layout is not None}
    return View(title, tuple(_partitioned(value, layout, name) for name, layout in given.items()), "thread")


@view_of.register
def _(value: fx.TiledCopy, source: AnyLayout | None = None, destination: AnyLayout | None = None) -> View:
    return view_of(value.type.copy, source, destination)


@view_of.register
def _(value: fx.ThrCopy, source: AnyLayout | None = None, destination: AnyLayout | None = None) -> View:
    if not isinstance(value.thread, int):
        raise ArgumentError(f"the thread {value.thread!r} is known at run time only", hint="draw get_slice(0), say")
    view = view_of(value.tiled_copy, source, destination)
    return replace(view, thread=value.thread)


@view_of.register
def _(value: fx.CopyAtom, source: AnyLayout | None = None, destination: AnyLayout | None = None) -> View:
    op, bits = value.type.op, value.type.value_bits
    layout_tv = make_layout((op.threads, op.bits // bits))
    return View(str(op), (Panel(make_layout(size(layout_tv)), layout_tv, "", bits),), "thread")


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
