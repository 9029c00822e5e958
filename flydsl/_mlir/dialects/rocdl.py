"""Operations of AMD GPUs: the function of `fx.rocdl` if it has the name, else the mirror of MLIR's module.

They take what the builders of FlyDSL's MLIR take: immediates as Python numbers, attributes or constants, the operands
of matrix instructions in a list or one by one, and `loc` and `ip`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from types import FunctionType
from typing import Any

from mlir import ir
from mlir.dialects import rocdl as _upstream

from flydsl._mlir.mirror import mirrored
from flydsl.expr import rocdl as _ours
from flydsl.expr.rocdl.buffer_builder import builder_of

__all__ = sorted({*_ours.__all__, *(name for name in dir(_upstream) if not name.startswith("_"))})


def _placed(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of `fx.rocdl` with the two parameters of MLIR's builders. The location stays the user's line."""

    @wraps(function)
    def at_place(
        *arguments: Any, loc: ir.Location | None = None, ip: ir.InsertionPoint | None = None, **named: Any
    ) -> Any:
        with nullcontext() if ip is None else ip:
            return function(*arguments, **named)

    return at_place


def __getattr__(name: str) -> Any:
    # MLIR's builder of an operation is also called fdot2_, and has no class where MLIR is older than FlyDSL's.
    own = name if name in _ours.__all__ or hasattr(_upstream, name) else name.removesuffix("_")
    found = getattr(_ours, own) if own in _ours.__all__ else getattr(_upstream, name)
    is_operation = isinstance(found, type) and issubclass(found, ir.OpView)
    is_function = own in _ours.__all__ and isinstance(found, FunctionType)
    found = builder_of(found) if is_operation else _placed(found) if is_function else mirrored(found)
    globals()[name] = found
    return found
