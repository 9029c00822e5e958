"""The layout views: how layouts map coordinates to offsets and banks, and which thread holds what."""

from workbench.layouts import coordinates, matrix  # noqa: F401  (register what is drawn of coordinate tensors and MMAs)
from workbench.layouts.coloring import COLOR_BY
from workbench.layouts.display import SHOWN, layout_bundle
from workbench.layouts.lds import LdsAccess
from workbench.layouts.live_views import EXPLORERS, explore_layout, explore_threads
from workbench.layouts.objects import thread_figure, thread_view
from workbench.layouts.padding import padded
from workbench.layouts.panel import Panel
from workbench.layouts.view import View, layout_figure, layout_view, view_of

__all__ = [
    "COLOR_BY", "EXPLORERS", "SHOWN", "LdsAccess", "Panel", "View", "explore_layout", "explore_threads",
    "layout_bundle", "layout_figure", "layout_view", "padded", "thread_figure", "thread_view", "view_of",
]  # fmt: skip
