"""The workbench: FlyDSL's compiler in a notebook.

    %load_ext workbench

makes layouts, pipelines, stages, artifacts, kernels and occupancies show themselves, gives those that have a live view
the method `.explore()`, and adds the cell magic `%%flykernel`. `workbench.explore(x)` works without loading anything.
Everything here uses only what any user of `flydsl` can use.
"""

from __future__ import annotations

from typing import Any


def explore(value: Any, *arguments: Any, **options: Any) -> Any:
    """The live view of a value, as a widget: see `workbench.explorers.EXPLORERS` for what has one.

    Raises ArgumentError for what has none, and what the view raises for a value that it cannot show.
    """
    from workbench.explorers import explore

    return explore(value, *arguments, **options)


def load_ipython_extension(shell: Any) -> None:
    """IPython's hook for `%load_ext workbench`."""
    from workbench.display import register_formatters
    from workbench.explorers import add_methods
    from workbench.magic import register_magics

    register_formatters(shell)
    add_methods()
    register_magics(shell)
