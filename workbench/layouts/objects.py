"""The picture of each kind of object: a grid for a layout, the holders of each element for a copy.

Another kind is another function registered with `view_of`, as in `matrix`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from flydsl import atoms
from flydsl import expr as fx
from flydsl.arch import DEFAULT_ARCH, Arch
from flydsl.errors import ArgumentError, LayoutError
from flydsl.layout import ComposedLayout, Layout, Tile, flatten, get_shape, make_layout, size, zipped_divide
from flydsl.layout.divide import reaches_past
from flydsl.layout.leaf import Basis
from workbench.layouts.coordinates import coordinate_view
from workbench.layouts.grid import AnyLayout
from workbench.layouts.panel import Panel
from workbench.layouts.view import View, named, view_of

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def thread_view(
    value: Any,
    *tensors: AnyLayout | None,
    color_by: str = "thread",
    thread: int | None = None,
    arch: Arch = DEFAULT_ARCH,
) -> View:
    """An atom, a tiled copy, a tiled MMA or a thread's part of one as a picture.

    tensors: the layouts of source and destination for a tiled copy, of A, B and C for a tiled MMA; None leaves one out.
    By default the tile is drawn. color_by: "thread", "value", "offset" or "bank". thread: the one to highlight. arch:
    the architecture whose LDS banks are shown.

    Raises ArgumentError for objects that cannot be drawn, LayoutError if the tile does not divide a tensor, and the
    errors of `View`.
    """
    view = view_of(value, *tensors)
    return replace(view, color_by=color_by, thread=view.thread if thread is None else thread, arch=arch)


def thread_figure(value: Any, *tensors: AnyLayout | None, **options: Any) -> Figure:
    """The picture of `thread_view` as a plotly figure, to save or to change. Takes the same arguments."""
    return thread_view(value, *tensors, **options).figure()


@view_of.register(Layout)
@view_of.register(ComposedLayout)
def _(value: AnyLayout, *tensors: AnyLayout | None) -> View:
    named(tensors)
    if isinstance(value, Layout) and _holds_coordinates(value):
        return coordinate_view(value)
    return View(str(value), (Panel(value),))


def _holds_coordinates(layout: Layout) -> bool:
    """True if the layout maps to coordinates: one of its strides is a multiple of a basis element."""
    return any(isinstance(stride, Basis) for stride in flatten((layout.stride,)))


@view_of.register
def _(value: atoms.TiledCopy, *tensors: AnyLayout | None) -> View:
    given = named(tensors, "source", "destination")
    panels = tuple(_partitioned(value, layout, name) for name, layout in given.items())
    tile = Panel(make_layout(_extents(value.tile)), value.layout_tv, "", value.value_bits)
    return View(f"{value.op}, {value.threads} threads", panels or (tile,), "thread")


@view_of.register
def _(value: fx.TiledCopy, *tensors: AnyLayout | None) -> View:
    return view_of(value.type.copy, *tensors)


@view_of.register
def _(value: fx.ThrCopy, *tensors: AnyLayout | None) -> View:
    return of_thread(view_of(value.tiled_copy, *tensors), value.thr_idx)


@view_of.register
def _(value: fx.CopyAtom, *tensors: AnyLayout | None) -> View:
    named(tensors)
    op, bits = value.type.op, value.type.value_bits
    layout_tv = make_layout((op.threads, op.bits // bits))
    return View(str(op), (Panel(make_layout(size(layout_tv)), layout_tv, "", bits),), "thread")


def of_thread(view: View, thread: Any) -> View:
    """The view with one thread lit. Raises ArgumentError if the thread is known at run time only."""
    if not isinstance(thread, int):
        raise ArgumentError(f"the thread {thread!r} is known at run time only", hint="draw get_slice(0), for example")
    return replace(view, thread=thread)


def _partitioned(copy: atoms.TiledCopy, tensor: AnyLayout, name: str) -> Panel:
    """A tensor and the part of each thread in it."""
    coordinates = make_layout(get_shape(tensor))  # partitioned in the place of the tensor: coordinates for offsets
    if reaches_past(coordinates, zipped_divide(coordinates, copy.tile)):
        raise LayoutError(
            f"tiles of {copy.tile} do not divide {get_shape(tensor)}: the last of them reach past it",
            hint="a picture is of whole tiles: draw the copy by itself, or with a tensor of whole tiles",
        )
    return Panel(tensor, copy.partition(coordinates), name, copy.value_bits)


def _extents(tile: Tile) -> tuple[int, ...]:
    """The extents of a tile whose modes are numbers or layouts."""
    extents = tuple(size(mode) for mode in tile.tilers if mode is not None) if isinstance(tile, Tile) else ()
    if len(extents) != len(tile) or not all(isinstance(extent, int) for extent in extents):
        raise LayoutError(f"the tile {tile} has no extents to draw")
    return tuple(int(extent) for extent in extents if isinstance(extent, int))
