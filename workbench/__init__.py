"""The workbench: FlyDSL's compiler in a notebook.

    %load_ext workbench

makes pipelines, stages, artifacts, kernels and occupancies show themselves, and adds the cell magic `%%flykernel`.
Everything here uses only what any user of `flydsl` can use.
"""

from __future__ import annotations

from typing import Any


def load_ipython_extension(shell: Any) -> None:
    """IPython's hook for `%load_ext workbench`."""
    from workbench.display import register_formatters
    from workbench.magic import register_magics

    register_formatters(shell)
    register_magics(shell)
