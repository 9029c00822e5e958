"""The layout views: how layouts map coordinates to offsets and banks, and which thread holds what."""

from workbench.layouts.coloring import COLOR_BY
from workbench.layouts.display import SHOWN, layout_bundle
from workbench.layouts.figure import layout_figure
from workbench.layouts.panel import Panel
from workbench.layouts.view import View, thread_figure, view_of

__all__ = ["COLOR_BY", "SHOWN", "Panel", "View", "layout_bundle", "layout_figure", "thread_figure", "view_of"]
