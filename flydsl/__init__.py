"""FlyDSL Workbench: a Python DSL for AMD GPU kernels with an explicit layout algebra, its compiler and its simulator.

import flydsl.compiler as flyc      # @flyc.kernel, @flyc.jit
import flydsl.expr as fx            # what a kernel body calls
import flydsl.layout                # the algebra alone: no MLIR, no GPU
"""

from typing import TYPE_CHECKING, Any

from flydsl import env

# Imported here, as the name is both that of the module and of the decorator.
from flydsl.autotune import autotune
from flydsl.language import language
from flydsl.sweeps import Config
from flydsl.system.lazy_names import lazy_names

if TYPE_CHECKING:
    from flydsl.compiler.debugging.interpreted import interpreting
    from flydsl.compiler.debugging.reference import compare_reference
    from flydsl.compiler.debugging.second_opinion import compare_interpreted
    from flydsl.sweeps import sweep

__all__ = ["Config", "autotune", "compare_interpreted", "compare_reference", "interpreting", "language", "sweep"]

__version__: str

# Asked for by few, and most of them import MLIR.
_NAMES = {
    "flydsl.compiler.debugging.interpreted": "interpreting",
    "flydsl.compiler.debugging.reference": "compare_reference",
    "flydsl.compiler.debugging.second_opinion": "compare_interpreted",
    "flydsl.sweeps": "sweep",
}
_lazy = lazy_names(__name__, _NAMES)


def __getattr__(name: str) -> Any:
    """`flydsl.__version__`, by which programs ask for FlyDSL's release; the workbench has its own in pyproject.toml."""
    if name == "__version__":
        return env.language()
    return _lazy(name)
