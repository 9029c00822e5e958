"""The packages of the extra `notebook`: modules take them from here, so that one place says how to install them.

The compiler, the simulator and the command line need none of them, and an installation for CI leaves them out.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from flydsl.errors import MissingImport

if TYPE_CHECKING:
    import anywidget as anywidget
    import IPython as IPython
    import ipywidgets as ipywidgets
    import traitlets as traitlets
    from IPython.display import display as display
    from plotly import graph_objects as graph_objects
    from plotly.colors import sequential as sequential
    from plotly.subplots import make_subplots as make_subplots

INSTALL = "pip install 'flydsl-workbench[notebook]'"

# name -> the module, or the module and the name in it
_HOMES = {
    "IPython": "IPython",
    "anywidget": "anywidget",
    "display": "IPython.display:display",
    "graph_objects": "plotly.graph_objects",
    "ipywidgets": "ipywidgets",
    "make_subplots": "plotly.subplots:make_subplots",
    "sequential": "plotly.colors:sequential",
    "traitlets": "traitlets",
}


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import a package when it is first needed. Raises MissingImport if the extra is not installed."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module, _, own = _HOMES[name].partition(":")
        try:
            found = import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
                raise  # the package is there, and lacks one of its own
            package = error.name.partition(".")[0]
            raise MissingImport(f"this view needs {package}, which is not installed: {INSTALL}") from None
        return getattr(found, own) if own else found
