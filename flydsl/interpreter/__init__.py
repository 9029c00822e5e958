"""The interpreter: a launch as Python, on arrays of the lanes of a workgroup, for debugging, and as a second opinion.

The kernel's own source runs, with the same functions of `fx`, and each operation that they trace is executed at once by
NumPy. So a debugger stops in the kernel's lines, and names hold values: one for each lane.
"""

from flydsl.expr.tracing.executing import door
from flydsl.interpreter import meanings
from flydsl.interpreter.execution import Execution, NotInterpreted
from flydsl.interpreter.memory import Write
from flydsl.interpreter.running import (
    Interpretation,
    KernelRun,
    bind_host,
    execution_of,
    host_execution,
    watched,
    within,
)
from flydsl.interpreter.showing import ShownLanes

__all__ = [
    "Execution", "Interpretation", "KernelRun", "NotInterpreted", "Write", "bind_host", "execution_of",
    "host_execution", "meanings", "watched", "within",
]  # fmt: skip

door.shown = ShownLanes()
