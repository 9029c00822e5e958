"""Copies of a launch's arguments, so that what runs on them changes nothing of the user's."""

from __future__ import annotations

from flydsl.binary import BinaryLaunch
from flydsl.compiler import Launch
from flydsl.compiler.arguments.copies import on_cpu
from flydsl.simulator import Simulation


def simulate_copies(launch: Launch | BinaryLaunch, workgroup: tuple[int, int, int] = (0, 0, 0)) -> Simulation:
    """Simulate a launch on copies of its tensors in their present state, which includes the results of the launch.

    Raises as `JitFunction.simulate` and `BinaryKernel.simulate` do.
    """
    if isinstance(launch, BinaryLaunch):
        grid, block, smem = launch.grid, launch.block, launch.smem
        return launch.kernel.simulate(*on_cpu(launch.arguments), grid=grid, block=block, smem=smem, workgroup=workgroup)
    return launch.function.simulate(*on_cpu(launch.arguments), workgroup=workgroup)
