"""The run view: what a launch was called with, what its tensors hold now, and what it did, as counted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from flydsl.binary import BinaryLaunch
from flydsl.compiler import JitFunction, Launch, capture_launches
from flydsl.errors import ArgumentError
from workbench.kit.html import code, escape, table, title
from workbench.kit.values import value_text
from workbench.run.counters import MAX_ISA_LINES, launches_html, launches_text

_MAX_ELEMENTS = 8


def profile(launcher: JitFunction, *arguments: Any, **keywords: Any) -> Launch:
    """Launch, count what the simulator executes, and return the launch. It displays itself; `.counters` has the
    numbers. On a GPU it also runs, but is not counted.

    Raises the errors of the call, and ArgumentError for an object that is not a launcher.
    """
    return _watched(launcher, arguments, keywords, counted=True)


def trace(launcher: JitFunction, *arguments: Any, **keywords: Any) -> Launch:
    """Launch, time what the simulator executes, and return the launch. `.trace` displays itself as a timeline.

    The time is that of the simulator's model. On a GPU the launch only runs.

    Raises the errors of the call, and ArgumentError for an object that is not a launcher.
    """
    return _watched(launcher, arguments, keywords, traced=True)


def _watched(launcher: JitFunction, arguments: Any, keywords: Any, **watch: bool) -> Launch:
    if not isinstance(launcher, JitFunction):
        raise ArgumentError(f"a {type(launcher).__name__} cannot be launched", hint="give a @flyc.jit function")
    with capture_launches(**watch) as launches:
        launcher(*arguments, **keywords)
    return launches[0]


def run_html(launch: Launch | BinaryLaunch, *, max_lines: int = MAX_ISA_LINES) -> str:
    """The arguments, and the counters of every kernel. max_lines: of the machine code of each."""
    return f"<div>{arguments_html(launch)}{_counters_html(launch, max_lines)}</div>"


def arguments_html(launch: Launch | BinaryLaunch) -> str:
    """A table of the arguments, tensors with their first elements."""
    rows = [[code(name), escape(text), escape(first)] for name, text, first in _arguments(launch)]
    return table(("argument", "value", "first elements now"), rows)


def run_text(launch: Launch | BinaryLaunch) -> str:
    """The run view as text, without the lines."""
    arguments = [f"{name} = {text}{first and f': {first}'}" for name, text, first in _arguments(launch)]
    counted = launches_text(launch.counters) if launch.counters else why_not_counted(launch)
    return "\n".join([*arguments, "", counted])


def why_not_counted(launch: Launch | BinaryLaunch) -> str:
    """The reason why there are no counters of a launch."""
    if places := gpus_of(launch):
        return f"Not counted: it ran on {places}. The simulator counts: give it tensors on the CPU."
    return (
        "Not counted: the launch came to no end, was compiled only, was not the first of its compilation, or was not "
        "watched (%%flykernel --show run and workbench.profile do that; under checking() nothing is counted)."
    )


def gpus_of(launch: Launch | BinaryLaunch) -> str:
    """The GPUs whose memory the tensors of a launch are in."""
    return ", ".join(sorted({str(t.device) for t in tensors(launch.arguments) if t.device.type != "cpu"}))


def tensors(values: Any) -> Iterator[Any]:
    """The torch tensors among arguments, those inside `from_dlpack(...)` included."""
    for value in values:
        tensor = getattr(value, "tensor", value)
        if hasattr(tensor, "untyped_storage"):
            yield tensor


def _counters_html(launch: Launch | BinaryLaunch, max_lines: int) -> str:
    if not launch.counters:
        return title(escape(why_not_counted(launch)))
    return launches_html(launch.counters, max_lines=max_lines)


def _arguments(launch: Launch | BinaryLaunch) -> Iterator[tuple[str, str, str]]:
    for name, value in zip(_names(launch), launch.arguments, strict=True):
        yield name, value_text(value), _elements(value)


def _names(launch: Launch | BinaryLaunch) -> list[str]:
    """The names of the parameters; a code object may not have them."""
    if isinstance(launch, BinaryLaunch):
        return [parameter.name or f"argument {i}" for i, parameter in enumerate(launch.kernel.parameters)]
    return [parameter.name for parameter in launch.function.signature.parameters]


def _elements(value: Any) -> str:
    """The first elements of a tensor, along its rows."""
    if not (hasattr(value, "numel") and hasattr(value, "flatten")):
        return ""
    first = ", ".join(f"{element:.6g}" for element in islice(value.flatten()[:_MAX_ELEMENTS].tolist(), _MAX_ELEMENTS))
    return f"{first}, …" if value.numel() > _MAX_ELEMENTS else first
