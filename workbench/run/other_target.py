"""A launch of a cell once more, for another GPU: on copies, so that the cell's own results stay."""

from __future__ import annotations

import copy

from flydsl.compiler import Launch, Pipeline
from flydsl.errors import ArgumentError
from flydsl.simulator.counters import LaunchCounters
from flydsl.simulator.counters.session import counted_into
from workbench.run.view import tensors


def launch_on_copies(launch: Launch, pipeline: Pipeline) -> Launch:
    """Run a launch's compilation for another GPU on the simulator, on copies of the arguments as they are now.

    It is counted, and timed where the model of time can.

    Raises ArgumentError for arguments that cannot be copied or are not on the CPU, and what the launch raises.
    """
    if any(tensor.device.type != "cpu" for tensor in tensors(launch.arguments)):
        raise ArgumentError("tensors of a GPU are not launched for another one", hint="give it tensors on the CPU")
    try:
        arguments = copy.deepcopy(launch.arguments)
    except (TypeError, ValueError, RuntimeError, copy.Error) as error:
        raise ArgumentError(f"the arguments cannot be copied for another target: {error}") from error
    counters: list[LaunchCounters] = []
    with counted_into(counters):
        pipeline.artifact(*arguments)
    return Launch(launch.function, arguments, pipeline, counters)
