"""Live views: `workbench.explore(x)`, and `x.explore()` once the extension is loaded.

flydsl knows nothing of the workbench. The method is given to its classes from here, when a notebook asks for it with
`%load_ext workbench`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flydsl.errors import ArgumentError
from workbench.layouts.explore import EXPLORERS as LAYOUT_EXPLORERS

# Every type that has a live view, and what makes it: called with the value and whatever else `explore` was given.
EXPLORERS: dict[type, Callable[..., Any]] = {**LAYOUT_EXPLORERS}


def explore(value: Any, *arguments: Any, **options: Any) -> Any:
    """The live view of a value, as a widget. Raises ArgumentError for what has none."""
    for kind in type(value).__mro__:
        if kind in EXPLORERS:
            return EXPLORERS[kind](value, *arguments, **options)
    names = ", ".join(sorted({kind.__name__ for kind in EXPLORERS}))
    raise ArgumentError(f"a {type(value).__name__} has no live view", hint=f"these have one: {names}")


def add_methods() -> None:
    """Give every type that has a live view the method `explore`."""
    for kind, explorer in EXPLORERS.items():
        kind.explore = explorer  # type: ignore[attr-defined]
