"""The live views of layouts and of what threads hold. Widgets are imported when one is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flydsl import atoms
from flydsl import expr as fx
from flydsl.layout import ComposedLayout, Layout
from workbench.layouts.grid import AnyLayout
from workbench.layouts.view import view_of

if TYPE_CHECKING:
    from workbench.layouts.thread_explorer import ThreadExplorer
    from workbench.layouts.visualizer import LayoutVisualizer


def explore_layout(layout: AnyLayout, *, element_bits: int = 16) -> LayoutVisualizer:
    """The layout visualizer, beginning with a layout. element_bits: for byte addresses and LDS banks.

    Raises LayoutError for a layout that cannot be drawn.
    """
    from workbench.layouts.visualizer import LayoutVisualizer

    return LayoutVisualizer(layout, element_bits=element_bits)


def explore_threads(value: Any, *tensors: AnyLayout | None) -> ThreadExplorer:
    """The thread explorer. tensors: as for `thread_view`, which also says what is raised."""
    from workbench.layouts.thread_explorer import ThreadExplorer

    return ThreadExplorer(view_of(value, *tensors))


EXPLORERS: dict[type, Callable[..., Any]] = {
    Layout: explore_layout,
    ComposedLayout: explore_layout,
    **dict.fromkeys((atoms.TiledCopy, fx.TiledCopy, fx.ThrCopy, fx.CopyAtom), explore_threads),
    **dict.fromkeys((atoms.MmaOp, fx.MmaAtom, atoms.TiledMma, fx.TiledMma, fx.ThrMma), explore_threads),
}
