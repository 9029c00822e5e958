"""Coordinate layouts and coordinate tensors: cells that hold coordinates instead of offsets.

A partition of `make_identity_tensor` is one: it shows which elements of a tile a thread's values are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from flydsl.arch import Arch
from flydsl.errors import ArgumentError, LayoutError
from flydsl.expr.layouts.coord_tensor import CoordTensor
from flydsl.layout import Layout, get_shape, make_layout, size
from workbench.layouts.grid import AnyLayout, Grid, Numbers
from workbench.layouts.panel import Panel
from workbench.layouts.view import View, named, view_of


@dataclass(frozen=True)
class CoordinatePanel(Panel):
    """A layout with basis strides. origin: added to each coordinate; () for nothing.

    Cells are identified and coloured by the positions of their coordinates, counted with the first mode fastest.
    """

    origin: tuple[int, ...] = ()
    has_addresses: ClassVar[bool] = False

    @cached_property
    def grid(self) -> Grid:
        """The numbers of the coordinates over rows and columns. Raises LayoutError where they cannot be drawn."""
        coordinates, places = self._coordinates, self._places
        extents = coordinates.max(axis=0) + 1
        weights = np.cumprod(np.concatenate([[1], extents[:-1]]))
        return Grid(places.shape, (coordinates @ weights)[places.offsets])

    @cached_property
    def _places(self) -> Grid:
        """The places in the layout, counted."""
        if not isinstance(size(self.layout), int):
            raise LayoutError(f"{self.layout} has sizes known at run time only", hint="draw a layout of numbers")
        return Grid.of(make_layout(get_shape(self.layout)))

    @cached_property
    def _coordinates(self) -> Numbers:
        """One row for each element, by the int that counts to its place in the layout."""
        cells = self._places.offsets.size
        found = [self.layout(number) for number in range(cells)]
        if not all(isinstance(mode, int) for coordinate in found for mode in coordinate):
            raise LayoutError(f"{self.layout} does not map to coordinates of numbers")
        coordinates = np.array([tuple(coordinate) for coordinate in found], np.int64)
        if self.origin:
            modes = min(coordinates.shape[1], len(self.origin))
            whole = np.tile(np.array(self.origin, np.int64), (cells, 1))
            whole[:, :modes] += coordinates[:, :modes]
            return whole
        return coordinates

    def cell_texts(self) -> list[list[str]]:
        """The coordinate in each cell."""
        texts = [f"({','.join(map(str, coordinate))})" for coordinate in self._coordinates.tolist()]
        return [[texts[row + self.grid.height * n] for n in range(self.grid.width)] for row in range(self.grid.height)]

    def facts(self, arch: Arch) -> tuple[list[Numbers], list[str]]:
        """The modes of the coordinate; it has no address."""
        modes = [self._spread(mode) for mode in self._coordinates.T]
        held = ",".join(f"%{{customdata[{mode}]}}" for mode in range(len(modes)))
        return modes, [f"holds the coordinate ({held})"]

    def banks(self, arch: Arch) -> Numbers:
        """Raises ArgumentError: coordinates lie in no memory."""
        raise ArgumentError(f"{self.layout} holds coordinates, which lie in no LDS bank")


@view_of.register
def _(value: CoordTensor, *tensors: AnyLayout | None) -> View:
    named(tensors)
    if not isinstance(value.layout, Layout):
        raise ArgumentError("its extents are known at run time only", hint="give it extents that are Python ints")
    if not isinstance(value.origin, tuple):
        return view_of(value.layout)  # its coordinates are integers: the steps from the first one
    if not all(isinstance(start, int) for start in value.origin):
        raise ArgumentError(
            "where the coordinates begin is known at run time only", hint="partition for thread 0, for example"
        )
    return View(str(value), (CoordinatePanel(value.layout, origin=value.origin),))


def coordinate_view(layout: Layout) -> View:
    """The picture of a layout with basis strides."""
    return View(str(layout), (CoordinatePanel(layout),))
