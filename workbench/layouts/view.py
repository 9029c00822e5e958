"""A picture as a value: what a notebook shows and saves of it is a plotly figure, HTML and text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import TYPE_CHECKING, Any

from flydsl.arch import DEFAULT_ARCH, Arch
from flydsl.errors import ArgumentError
from flydsl.layout import Layout
from workbench.layouts.coloring import coloring
from workbench.layouts.figure import panels_figure
from workbench.layouts.grid import AnyLayout, Numbers
from workbench.layouts.panel import Panel
from workbench.layouts.static import panel_text, panels_html
from workbench.layouts.svg import panels_svg

if TYPE_CHECKING:
    from workbench.kit.picture import Picture

_MAX_TEXT_CELLS = 16 * 16


@dataclass(frozen=True, repr=False)
class View:
    """Panels side by side, on the last line of a cell.

    color_by: one of COLOR_BY. thread: the one to highlight, None for all. arch: the architecture whose LDS banks are
    shown.

    Raises LayoutError for layouts that cannot be drawn, ArgumentError for unknown colours and threads, ArchError if
    banks are requested and those of `arch` are not known.
    """

    title: str
    panels: tuple[Panel, ...]
    color_by: str = "offset"
    thread: int | None = None
    arch: Arch = DEFAULT_ARCH

    def __post_init__(self) -> None:
        if self.thread is not None and not (isinstance(self.thread, int) and 0 <= self.thread < self.threads):
            raise ArgumentError(f"there is no thread {self.thread!r}", hint=f"threads are 0 to {self.threads - 1}")
        for panel in self.panels:
            coloring(panel, self.color_by, self.arch)

    @property
    def threads(self) -> int:
        """The number of threads that take part."""
        return max(panel.threads for panel in self.panels)

    def lit(self) -> list[Numbers | None]:
        """For each panel the cells that are lit, as booleans; None where all are."""
        return [None if self.thread is None else panel.held_by(self.thread) for panel in self.panels]

    def figure(self) -> Picture:
        """The picture as a plotly figure."""
        return panels_figure(self.panels, self.title, color_by=self.color_by, arch=self.arch, lit=self.lit())

    def html(self) -> str:
        """The picture as HTML that needs no JavaScript."""
        return panels_html(self.panels, self.title, color_by=self.color_by, arch=self.arch, lit=self.lit())

    def svg(self) -> str:
        """The picture as the text of an SVG file, with a label on every cell."""
        return panels_svg(self.panels, self.title, color_by=self.color_by, arch=self.arch, lit=self.lit())

    def text(self) -> str:
        """The holders of all elements as text, for small panels with threads."""
        return "\n".join(
            panel_text(panel, light)
            for panel, light in zip(self.panels, self.lit(), strict=True)
            if panel.layout_tv is not None and panel.grid.offsets.size <= _MAX_TEXT_CELLS
        )

    def bundle(self, text: str) -> dict[str, Any]:
        """The picture by mime type. text: what it is of, in a line."""
        return self.figure()._repr_mimebundle_() | {"text/plain": "\n".join(filter(None, [text, self.text()]))}

    def __repr__(self) -> str:
        return f"View({self.title})"

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        return self.bundle(self.title)


def layout_view(
    layout: AnyLayout,
    *,
    color_by: str = "offset",
    layout_tv: Layout | None = None,
    element_bits: int = 32,
    arch: Arch = DEFAULT_ARCH,
    title: str | None = None,
) -> View:
    """A layout as a picture.

    color_by: "offset", "bank", and, with a `layout_tv`, "thread" or "value".
    layout_tv: (thread, value) -> coordinate as an int, to show who holds which element.
    element_bits: for byte addresses and banks. arch: the architecture whose LDS banks are shown. Raises as `View` does.
    """
    panel = Panel(layout, layout_tv, element_bits=element_bits)
    return View(str(layout) if title is None else title, (panel,), color_by, arch=arch)


def layout_figure(layout: AnyLayout, **options: Any) -> Picture:
    """A layout as a plotly figure, to save or to change. options: those of `layout_view`.

    >>> layout_figure(Layout((2, 3), (3, 1))).data[0].z.tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    return layout_view(layout, **options).figure()


@singledispatch
def view_of(value: Any, *tensors: AnyLayout | None) -> View:
    """The picture of an object; tensors: see `thread_view`. Raises ArgumentError for a type that has no picture."""
    raise ArgumentError(f"a {type(value).__name__} is not drawn", hint="pass a layout, an atom, a tiled copy or an MMA")


def named(tensors: tuple[AnyLayout | None, ...], *names: str) -> dict[str, AnyLayout]:
    """The tensors that are given, by name. Raises ArgumentError where there are more than names."""
    if len(tensors) > len(names):
        what = " and ".join(names) or "none"
        raise ArgumentError(f"{len(tensors)} tensors for a picture that has {what}")
    return {name: layout for name, layout in zip(names, tensors, strict=False) if layout is not None}
