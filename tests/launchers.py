"""Launchers that do nothing but launch a kernel with their own parameters."""

from __future__ import annotations

import inspect
from typing import Any

import flydsl.compiler as flyc
from flydsl.compiler.arguments.signature import annotations_of


def launcher_of(kernel: Any, *, grid: Any, block: Any, **options: Any) -> Any:
    """A @flyc.jit function with the parameters of a kernel, which it launches."""

    def launch(*arguments: Any) -> None:
        kernel(*arguments).launch(grid=grid, block=block, **options)

    launch.__signature__ = inspect.signature(kernel)  # type: ignore[attr-defined]
    launch.__annotations__ = annotations_of(kernel.function)
    return flyc.jit(launch)
