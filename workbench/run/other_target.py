"""A launch of a cell once more, for another GPU: on copies, so that the cell's own results stay."""

from __future__ import annotations

import copy
from contextlib import ExitStack

from flydsl.compiler import Launch, Pipeline
from flydsl.errors import ArgumentError
from flydsl.simulator.counters.session import counted_into
from flydsl.simulator.timing.session import traced_into
from workbench.run.view import tensors


def launch_on_copies(launch: Launch, pipeline: Pipeline, *, counted: bool, traced: bool) -> Launch:
    """Run a launch's compilation for another GPU on the simulator, on copies of the arguments as they are now.

    counted, traced: as of `capture_launches`.

    Raises ArgumentError for arguments that cannot be copied or are not on the CPU, and what the launch raises.
    """
    if any(tensor.device.type != "cpu" for tensor in tensors(launch.arguments)):
        raise ArgumentError("tensors of a GPU are not launched for another one", hint="give it tensors on the CPU")
    try:
        arguments = copy.deepcopy(launch.arguments)
    except (TypeError, ValueError, RuntimeError, copy.Error) as error:
        raise ArgumentError(f"the arguments cannot be copied for another target: {error}") from error
    made = Launch(launch.function, arguments, pipeline)
    with ExitStack() as watched:
        if counted:
            watched.enter_context(counted_into(made.counters))
        if traced:
            watched.enter_context(traced_into(made.traces, pipeline.arch))
        pipeline.artifact(*arguments)
    return made
