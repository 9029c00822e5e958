"""Mistakes that explain a wrong number, looked for by launching once more under a check: races, integers that wrap."""

from __future__ import annotations

from flydsl.compiler.debugging.calls import Call
from flydsl.compiler.debugging.interpreted import interpreting
from flydsl.errors import DeviceAssertion, DeviceError, LaunchError
from flydsl.simulator.checks import checking, limited
from flydsl.simulator.errors import Race

_MOST_INSTRUCTIONS = 1_000_000  # of a wave: a hint is not worth waiting longer for


def race_in(launch: Call) -> str:
    """A hint at the race of a launch, which is made on copies of its tensors. Empty if none is found."""
    error = _found("races", launch)
    if not isinstance(error, Race):
        return ""
    return f'this launch has a race{_line(error)}: flydsl.simulator.checking("races") names both accesses'


def overflow_in(launch: Call) -> str:
    """A hint at an integer of a launch that wraps around. Empty if none does."""
    error = _found("overflow", launch)
    if not isinstance(error, DeviceAssertion):
        return ""
    return f'an integer wraps around{_line(error)}: flydsl.simulator.checking("overflow") shows its operands'


def _found(check: str, launch: Call) -> DeviceError | None:
    """The error that a check raises; None where launches are not checked: on a GPU, and inside an observer.

    A launch with a wave that takes too long for a hint ends with `InstructionLimit`.
    """
    if not launch.is_simulated:
        return None
    try:
        with checking(check), limited(instructions=_MOST_INSTRUCTIONS), interpreting(False):
            launch.copy()()
    except DeviceError as error:
        return error
    except LaunchError:  # of an observer
        return None
    return None


def _line(error: DeviceError) -> str:
    return f" at {error.at}" if error.at is not None else ""
