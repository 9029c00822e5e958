"""Launches that have ended, in native form, for launches with the same sizes: making one takes longer than many run.

Those of a few kernels are kept, the latest ones, whatever the process has compiled.
"""

from __future__ import annotations

from collections import OrderedDict

from flydsl.simulator.native.launch_block import RepeatedWork, SharedLaunch

_MOST_KEPT = 32
_idle: OrderedDict[object, SharedLaunch] = OrderedDict()


def taken(work: RepeatedWork, instruction_limit: int) -> SharedLaunch | None:
    """An ended launch that now is this one; None if there is none, or another thread has it."""
    launch = _idle.pop(work.sizes, None)
    if launch is not None:
        launch.begin_again(work, instruction_limit)
    return launch


def keep(work: RepeatedWork, launch: SharedLaunch) -> None:
    """Keep a launch that has ended as it should."""
    launch.end(work)
    _idle[work.sizes] = launch
    if len(_idle) > _MOST_KEPT:
        _idle.popitem(last=False)
