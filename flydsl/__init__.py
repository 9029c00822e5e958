"""FlyDSL Workbench: a Python DSL for AMD GPU kernels with an explicit layout algebra, its compiler and its simulator.

import flydsl.compiler as flyc      # @flyc.kernel, @flyc.jit
import flydsl.expr as fx            # what a kernel body calls
import flydsl.layout                # the algebra alone: no MLIR, no GPU
"""

# The release of FlyDSL whose programs run here, which is what they ask: the workbench counts its own in pyproject.toml.
__version__ = "0.2.2"

# Imported here, as the name is both that of the module and of the decorator.
from flydsl.autotune import autotune
from flydsl.sweeps import Config, sweep

__all__ = ["Config", "autotune", "sweep"]
