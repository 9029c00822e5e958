"""From the error of a launch into the debugger: the call once more, step by step, up to the error."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Protocol

from flydsl.arch.launch_limits import Dim3
from flydsl.compiler.arguments.copies import on_cpu
from flydsl.compiler.debugging.lds_views import elements_at
from flydsl.errors import SimulatorError
from flydsl.simulator import MemoryFault
from flydsl.simulator.checks import NAN, checking, enabled_checks, instruction_limit, limited
from flydsl.simulator.errors import NotFinite

if TYPE_CHECKING:
    from flydsl.compiler.artifact import CompiledArtifact
    from flydsl.simulator import Recording, Simulation

_MOST_VIEWS = 2
_ADDRESS = re.compile(r"at LDS address (?:0x[0-9a-f]+, of them )?(0x[0-9a-f]+)")
_WORKGROUP = re.compile(r"workgroup \((\d+), (\d+), (\d+)\)")


class Simulated(Protocol):
    """A launcher."""

    def simulate(self, *args: Any, workgroup: Dim3 = (0, 0, 0)) -> Simulation:
        """Simulate the call, instruction by instruction."""


def offer_simulation(error: SimulatorError, launcher: Simulated, values: Sequence[Any]) -> None:
    """Give the error of a call its `simulation`. values: of the call, in parameter order."""
    checks, limit = NAN if isinstance(error, NotFinite) else enabled_checks() - NAN, instruction_limit()

    def again() -> Recording:
        with checking(*sorted(checks)) if checks else nullcontext(), limited(instructions=limit):
            return _stopped(error, launcher, values)

    error.offer_simulation(again)


def name_lds(error: SimulatorError, artifact: CompiledArtifact) -> None:
    """Say which elements of the kernel's views of LDS a fault is about, if there is one kernel that it may be in."""
    kernels = artifact.code.kernels
    if not isinstance(error, MemoryFault) or error.access.space != "lds" or len(kernels) != 1:
        return
    (kernel,) = kernels
    named = _ADDRESS.search(error.message)
    address = int(named[1], 16) if named else error.access.address
    elements = elements_at(address, kernel.name, kernel.resources.lds_bytes, artifact.pipeline.origin)[:_MOST_VIEWS]
    if elements:
        error.message += f"\n  LDS at {address:#x} is {', and '.join(elements)}"


def _stopped(error: SimulatorError, launcher: Simulated, values: Sequence[Any]) -> Recording:
    """The recording of the workgroup that the error names, which stands before the instruction that raises it."""
    from flydsl.simulator import Recording  # which most programs do without

    named = _WORKGROUP.search(str(error))
    workgroup = (int(named[1]), int(named[2]), int(named[3])) if named else (0, 0, 0)
    recording = Recording(launcher.simulate(*on_cpu(values), workgroup=workgroup))
    try:
        recording.run()
    except SimulatorError as found:
        if type(found) is type(error):
            return recording
        raise
    raise SimulatorError(
        f"the {type(error).__name__} does not happen again in workgroup {workgroup}: the failed launch changed what "
        "the kernel reads, or other workgroups contribute to it",
        hint="restore the tensors, and step through with .simulate(...)",
    )
