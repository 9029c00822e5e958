"""The workbench: FlyDSL's compiler in a notebook.

    %load_ext workbench

gives pipelines, stages, artifacts, kernels and layouts a rich display and `.explore()`, and adds the magics
`%%flykernel` and `%flydiff`. The same is available as functions: `explore`, `compare`, `find`, `listing`, `export` and
the figures. Everything here uses only the public interface of `flydsl`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flydsl.binary import open_binary as open
    from workbench.comparisons import compare
    from workbench.live_views import explore
    from workbench.machine_code.listing import part_of as listing
    from workbench.page import export
    from workbench.resources.occupancy_curves import occupancy_figure
    from workbench.run.roofline import roofline_figure
    from workbench.run.view import profile, trace
    from workbench.stages.search import find
    from workbench.sweeps.heat_map import heat_map_figure
    from workbench.sweeps.pareto import pareto_figure
    from workbench.thread_trace.trace_view import timeline

__all__ = [
    "compare", "explore", "export", "find", "heat_map_figure", "listing", "occupancy_figure", "open", "pareto_figure",
    "profile", "roofline_figure", "timeline", "trace",
]  # fmt: skip
# name -> where the function is, and its name there if it is another
_HOMES = {
    "compare": "workbench.comparisons",
    "explore": "workbench.live_views",
    "export": "workbench.page",
    "find": "workbench.stages.search",
    "heat_map_figure": "workbench.sweeps.heat_map",
    "listing": "workbench.machine_code.listing:part_of",
    "occupancy_figure": "workbench.resources.occupancy_curves",
    "open": "flydsl.binary:open_binary",
    "pareto_figure": "workbench.sweeps.pareto",
    "profile": "workbench.run.view",
    "roofline_figure": "workbench.run.roofline",
    "timeline": "workbench.thread_trace.trace_view",
    "trace": "workbench.run.view",
}


def __dir__() -> list[str]:
    return sorted(__all__)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        from flydsl.compiler.user_error import user_facing
        from flydsl.errors import MissingName, did_you_mean

        if name not in _HOMES:
            suggestion = f"{did_you_mean(name, __all__)}there are {', '.join(__all__)}"
            raise MissingName(f"module {__name__!r} has no attribute {name!r}", hint=suggestion)
        module, _, own = _HOMES[name].partition(":")
        function = user_facing(getattr(import_module(module), own or name))
        setattr(sys.modules[__name__], name, function)
        return function


def load_ipython_extension(shell: Any) -> None:
    """IPython's hook for `%load_ext workbench`."""
    from flydsl.sweeps import show_progress_with
    from workbench.display import register_formatters
    from workbench.live_views import add_methods
    from workbench.magic import register_magics
    from workbench.progress_line import show_progress
    from workbench.sweeps.progress import Progress

    register_formatters(shell)
    register_magics(shell)
    add_methods()
    show_progress_with(Progress())
    show_progress(shell)


def unload_ipython_extension(shell: Any) -> None:
    """IPython's hook for `%unload_ext workbench`: what loading it added is gone, and `%reload_ext` begins anew."""
    from flydsl.sweeps import show_progress_with
    from workbench.display import unregister_formatters
    from workbench.live_views import remove_methods
    from workbench.magic import unregister_magics
    from workbench.progress_line import hide_progress

    hide_progress(shell)
    show_progress_with(None)
    remove_methods()
    unregister_magics(shell)
    unregister_formatters(shell)
