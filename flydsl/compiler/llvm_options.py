"""Options of LLVM's command line for the compilations inside a `with` block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from flydsl.compiler.hints import compile_hints
from flydsl.dialect.location import argument_error

__all__ = ["llvm_options"]


@contextmanager
def llvm_options(opts: Mapping[str, bool | int | str]) -> Iterator[None]:
    """Compile with these options, {name: value}: the hint `llvm_options` of `flydsl.compiler.hints`.

    LLVM runs in a process of its own with them, so they never outlast the block. Raises ArgumentError for a value that
    is not a bool, int or str.
    """
    for name, value in opts.items():
        if not isinstance(value, bool | int | str):
            raise argument_error(
                f"Unsupported type {type(value).__name__} of LLVM's option {name!r}", "pass a bool, an int or a str"
            )
    with compile_hints({"llvm_options": opts}):
        yield
