"""Mistakes that explain a wrong number, looked for by launching once more under a check: races, integers that wrap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flydsl.compiler.arguments.given_tensors import copied, tensors_of
from flydsl.compiler.debugging.interpreted import interpreting
from flydsl.errors import DeviceAssertion, DeviceError, LaunchError
from flydsl.simulator.checks import checking, limited
from flydsl.simulator.errors import Race

_MOST_INSTRUCTIONS = 1_000_000  # of a wave: a hint is not worth waiting longer for


def race_in(launch: Callable[..., Any], given: Any, names: Sequence[str]) -> str:
    """A hint at the race of a launch. given: its args and kwargs, of which copies are made. Empty if none is found."""
    error = _found("races", launch, given, names)
    if not isinstance(error, Race):
        return ""
    return f'this launch has a race{_line(error)}: flydsl.simulator.checking("races") names both accesses'


def overflow_in(launch: Callable[..., Any], given: Any, names: Sequence[str]) -> str:
    """A hint at an integer of a launch that wraps around. Empty if none does."""
    error = _found("overflow", launch, given, names)
    if not isinstance(error, DeviceAssertion):
        return ""
    return f'an integer wraps around{_line(error)}: flydsl.simulator.checking("overflow") shows its operands'


def _found(check: str, launch: Callable[..., Any], given: Any, names: Sequence[str]) -> DeviceError | None:
    """The error that a check raises; None where launches are not checked: on a GPU, and inside an observer.

    A launch with a wave that takes too long for a hint ends with `InstructionLimit`.
    """
    args, kwargs = again = copied(given)
    if any(tensor.device.type != "cpu" for _, tensor in tensors_of(names, again)):
        return None
    try:
        with checking(check), limited(instructions=_MOST_INSTRUCTIONS), interpreting(False):
            launch(*args, **kwargs)
    except DeviceError as error:
        return error
    except LaunchError:  # of an observer
        return None
    return None


def _line(error: DeviceError) -> str:
    return f" at {error.at}" if error.at is not None else ""
