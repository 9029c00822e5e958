"""The layout visualizer: shape, stride, padding, an operation and a swizzle, with the bank conflicts they lead to."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from flydsl import layout as algebra
from flydsl.arch import ARCHS, DEFAULT_ARCH, Arch, get_arch
from flydsl.errors import FlyError, LayoutError
from flydsl.layout import ComposedLayout, Explanation, Layout, Swizzle, explain, make_layout, parse, to_text
from workbench.kit.controls import Field, Note, dropdown, scrolled, slider
from workbench.kit.download import Download
from workbench.kit.html import escape, listing
from workbench.kit.live_view import LiveView
from workbench.kit.notebook import ipywidgets as widgets
from workbench.layouts.figure import panels_data
from workbench.layouts.grid import AnyLayout, Grid, Numbers
from workbench.layouts.lds import ACROSS, ALONG, OPS, LdsAccess
from workbench.layouts.live_figure import LiveFigure
from workbench.layouts.padding import padded
from workbench.layouts.panel import Panel
from workbench.layouts.static import panels_html
from workbench.layouts.svg import panels_svg

OPERATIONS = (
    *("logical_divide", "zipped_divide", "tiled_divide", "flat_divide"),
    *("logical_product", "zipped_product", "tiled_product", "flat_product", "blocked_product", "raked_product"),
    *("composition", "complement", "coalesce", "right_inverse", "left_inverse", "tile_to_shape"),
)
_NO_OPERATION = "none"
_STALE = "\nThe picture is that of the last layout that could be drawn."


class _Wrong(Exception):
    """Invalid input in a control. note: where to show the message."""

    def __init__(self, note: Note, error: FlyError) -> None:
        super().__init__(str(error))
        self.note = note


@dataclass(frozen=True)
class _Drawing:
    """The state of the controls. explanation: the steps of the operation, if any."""

    panel: Panel
    explanation: Explanation | None


class LayoutVisualizer(LiveView):
    """A layout with controls for everything that can be done to it.

    layout: the initial layout; the inner function of a composed one must be a swizzle.

    The controls are attributes: fields `shape`, `stride`, `operand` (their `.text.value` is what is in them); choices
    `operation`, `color_by`, `arch`, `element_bits`, `access`, `order`; sliders `swizzle_bits`, `swizzle_base`,
    `swizzle_shift`, `padding`; the checkboxes `lights_phase` and `has_numbers`. Invalid input is explained
    under its control and leaves the picture unchanged.

    Raises LayoutError for a layout that cannot be drawn.
    """

    def __init__(self, layout: AnyLayout | None = None, *, element_bits: int = 16) -> None:
        start = make_layout((16, 64), (64, 1)) if layout is None else layout
        outer, swizzle, self._offset = _taken_apart(start)
        Grid.of(Panel(start, element_bits=element_bits).layout)  # what cannot be drawn is refused here
        self._make_controls(outer, swizzle, element_bits)
        self._drawing = self._read()
        self._live_figure = LiveFigure(self._figure_data())
        self._say_conflicts()
        super().__init__(self._rows())
        for control in self._controls:
            control.observe(self._on_change, names="value")
        self.download.observe(self._on_change, names="width")

    def _make_controls(self, outer: Layout, swizzle: Swizzle, element_bits: int) -> None:
        self.shape = Field("Shape", to_text(outer.shape))
        self.stride = Field("Stride", to_text(outer.stride), "empty: leftmost mode fastest")
        self.operation = dropdown("Operation", (_NO_OPERATION, *OPERATIONS), _NO_OPERATION)
        self.operand = Field("Operand", "", "a layout 4:2, a tile [2|4], a number")
        self.swizzle_bits = slider("Swizzle bits", 0, max(5, swizzle.bits), swizzle.bits)
        self.swizzle_base = slider("Swizzle base", 0, max(8, swizzle.base), swizzle.base)
        reach = max(8, abs(swizzle.shift))
        self.swizzle_shift = slider("Swizzle shift", -reach, reach, swizzle.shift)
        self.swizzle_note = Note()
        self.padding = slider("Padding (elements)", 0, 32, 0)
        self.padding_note = Note()
        self.color_by = dropdown("Colour by", ("offset", "bank"), "offset")
        known = [arch.name for arch in ARCHS if arch.lds_banks is not None]
        self.arch = dropdown("Banks of", known, DEFAULT_ARCH.name)
        self.element_bits = dropdown("Element bits", sorted({4, 8, 16, 32, 64, element_bits}), element_bits)
        self.access = dropdown("LDS access", OPS, "read_b128")
        self.order = dropdown("Lanes go", [("across the vectors", ACROSS), ("along the vectors", ALONG)], ACROSS)
        self.lights_phase = widgets.Checkbox(description="Light the slowest phase", value=False, indent=False)
        self.has_numbers = widgets.Checkbox(description="Numbers on all cells", value=False, indent=False)
        self.download = Download(self.svg, "layout")
        self.access_note = Note()
        self.steps = widgets.HTML()
        self.conflicts = widgets.HTML()

    @property
    def _controls(self) -> tuple[Any, ...]:
        texts = (self.shape.text, self.stride.text, self.operand.text)
        sliders = (self.swizzle_bits, self.swizzle_base, self.swizzle_shift, self.padding)
        choices = (self.operation, self.color_by, self.arch, self.element_bits, self.access, self.order)
        return (*texts, *sliders, *choices, self.lights_phase, self.has_numbers)

    @property
    def _notes(self) -> tuple[Note, ...]:
        fields = (self.shape.note, self.stride.note, self.operand.note)
        return (*fields, self.swizzle_note, self.padding_note, self.access_note)

    def _rows(self) -> list[widgets.Widget]:
        wrap = widgets.Layout(flex_flow="row wrap")

        def row(*parts: widgets.Widget) -> widgets.Widget:
            return widgets.Box(parts, layout=wrap)

        return [
            row(self.shape, self.stride, self.operation, self.operand),
            self.steps,
            row(self.swizzle_bits, self.swizzle_base, self.swizzle_shift, self.padding),
            self.swizzle_note,
            self.padding_note,
            row(self.color_by, self.arch, self.element_bits, self.access, self.order, self.lights_phase),
            self.access_note,
            self.conflicts,
            row(self.has_numbers, self.download),
            scrolled(self.figure),
        ]

    # --- from controls to picture ------------------------------------------------------------------------------------

    @property
    def current(self) -> AnyLayout:
        """The layout that the controls make."""
        return self._drawing.panel.layout

    @property
    def figure(self) -> Any:
        """The plotly figure that is shown."""
        return self._live_figure.widget

    def _on_change(self, change: Any) -> None:
        for note in self._notes:
            note.say("")
        try:
            self._drawing = self._read()
        except _Wrong as wrong:
            wrong.note.say(f"{wrong}{_STALE}")
            return
        self.steps.value = "" if self._drawing.explanation is None else _steps_html(self._drawing.explanation)
        self._say_conflicts()
        self._live_figure.redraw(self._figure_data())

    def _read(self) -> _Drawing:
        """The state of the controls. Raises _Wrong for invalid input."""
        shape = _entered(self.shape, lambda text: make_layout(parse(text)).shape)
        plain = _entered(self.stride, lambda text: make_layout(shape, parse(text) if text else None))
        layout = _tried(self.padding_note, lambda: padded(plain, self.padding.value))
        explanation = None
        if self.operation.value != _NO_OPERATION:
            explanation = _entered(self.operand, lambda text: _explained(self.operation.value, layout, text))
            layout = explanation.result
        current = _tried(self.swizzle_note, lambda: self._swizzled(layout))
        panel = Panel(current, element_bits=self.element_bits.value)
        _tried(self.shape.note, lambda: panel.grid)
        return _Drawing(panel, explanation)

    def _swizzled(self, layout: Layout) -> AnyLayout:
        swizzle = Swizzle(self.swizzle_bits.value, self.swizzle_base.value, self.swizzle_shift.value)
        if swizzle.bits == 0 and self._offset == 0:
            return layout
        return ComposedLayout(swizzle, self._offset, layout)

    def _drawn(self, draw: Callable[..., Any], **options: Any) -> Any:
        """The picture, drawn by one of the functions that draw panels."""
        colors = {"color_by": self.color_by.value, "arch": self._arch, "lit": [self._lit()]}
        return draw([self._drawing.panel], str(self.current), **colors, **options)

    def _figure_data(self) -> dict[str, Any]:
        return self._drawn(panels_data, is_labelled=self.has_numbers.value, width_px=self.download.width)

    def svg(self) -> str:
        """The picture as the text of an SVG file, with a label on every cell."""
        return self._drawn(panels_svg)

    @property
    def _arch(self) -> Arch:
        return get_arch(self.arch.value)

    @property
    def _access(self) -> LdsAccess:
        return LdsAccess(self.current, self.access.value, self.element_bits.value, self.order.value)

    def _lit(self) -> Numbers | None:
        """The cells of the slowest phase, where they are asked for and known."""
        if not self.lights_phase.value:
            return None
        try:
            cells = self._access.slowest_phase(self._arch)
        except FlyError as error:
            self.access_note.say(error)
            return None
        lit = np.zeros(self._drawing.panel.grid.offsets.shape, bool)
        lit[tuple(zip(*cells, strict=True))] = True
        return lit

    def _say_conflicts(self) -> None:
        try:
            self.conflicts.value = f'<div style="line-height:1.4">{self._access._repr_html_()}</div>'
        except FlyError as error:
            self.conflicts.value = ""
            self.access_note.say(error)

    def static_html(self) -> str:
        """The present content as HTML that needs no JavaScript."""
        return f"<div>{self.steps.value}{self.conflicts.value}{self._drawn(panels_html)}</div>"


def _steps_html(explanation: Explanation) -> str:
    return listing(escape(str(explanation)))


def _entered(field: Field, function: Callable[[str], Any]) -> Any:
    return _tried(field.note, lambda: function(field.text.value.strip()))


def _tried(note: Note, function: Callable[[], Any]) -> Any:
    try:
        return function()
    except FlyError as error:
        raise _Wrong(note, error) from None


def _explained(operation: str, layout: Layout, operand: str) -> Explanation:
    """An operation with its steps. Raises LayoutError where the operand is missing, too much or wrong."""
    _, *others = inspect.signature(getattr(algebra, operation)).parameters.values()
    if operand and not others:
        raise LayoutError(f"{operation} takes no operand besides the layout", hint="leave the field empty")
    if not operand and others and others[0].default is inspect.Parameter.empty:
        raise LayoutError(
            f"{operation} takes an operand", hint="pass a layout such as 4:2, a tile such as [2|4], a number"
        )
    explanation = explain(operation, layout, *([parse(operand)] if operand else []))
    if not isinstance(explanation.result, Layout):
        raise LayoutError(f"{operation} gives {explanation.result}, which is not a layout")
    return explanation


def _taken_apart(layout: AnyLayout) -> tuple[Layout, Swizzle, int]:
    """The outer layout, the swizzle (one that does nothing, ready for its slider) and the offset."""
    if isinstance(layout, Layout):
        return layout, Swizzle(0, 3, 3), 0
    if not isinstance(layout.inner, Swizzle) or not isinstance(layout.offset, int):
        raise LayoutError(f"{layout} is not a swizzle of a layout of numbers", hint="explore its outer layout")
    return layout.outer, layout.inner, layout.offset
