"""FlyDSL's decorators for library functions, which give operations their caller's line. Here every operation has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, TypeVar

from mlir import ir

from flydsl.expr.flydsl_names.names import unknown_name
from flydsl.expr.threads.block_threads import traced_kernel
from flydsl.system.interrupts import holding

_F = TypeVar("_F", bound=Callable[..., Any])

__all__ = ["dsl_loc_tracing", "traced_op", "tracing_context", "tracing_option"]


def dsl_loc_tracing(function: _F) -> _F:
    """Return the function itself: an operation has the line of the innermost function outside of this package."""
    return function


traced_op = dsl_loc_tracing

_options: ContextVar[Mapping[str, Any]] = ContextVar("flydsl_tracing_options", default=MappingProxyType({}))


@contextmanager
def tracing_context(func: Callable[..., Any] | None = None, **options: Any) -> Iterator[None]:
    """Set options that `tracing_option` reads in the `with` block. An inner block's win, None among them.

    func: in FlyDSL, where places of errors end. Here they are in the innermost function outside of this package.
    """
    with holding(_options, {**_options.get(), **options}):
        yield


def tracing_option(key: str, default: Any = None) -> Any:
    """An option of the innermost `tracing_context` that sets it; `known_block_size` is that of the traced kernel.

    >>> with tracing_context(unroll=4):
    ...     tracing_option("unroll"), tracing_option("other", 1)
    (4, 1)
    """
    if key in _options.get() or key != "known_block_size":
        return _options.get().get(key, default)
    kernel = traced_kernel()
    sizes = None if kernel is None else kernel.attributes.get("known_block_size")
    return default if sizes is None else tuple(ir.DenseI32ArrayAttr(sizes))


__getattr__ = unknown_name("flydsl.expr.meta", globals())
