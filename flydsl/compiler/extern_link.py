"""The bitcode that defines functions from outside: `link_extern(ffi(...), bitcode_path="library.bc")`.

A kernel that calls such a function is linked with the bitcode; what it does not call is dropped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from flydsl.compiler.trace import CompilationContext, is_tracing
from flydsl.dialect.location import argument_error
from flydsl.expr.extern import ExternFunction as FunctionFromOutside

__all__ = ["BoundExternFunction", "ExternFunction", "LinkedExternFunction", "link_extern", "register_extern_resolver"]

Resolver = Callable[[str, Any, Any], tuple[Any, Any]]
_resolvers: list[Resolver] = []


def register_extern_resolver(resolver: Resolver) -> Resolver:
    """Ask `resolver(symbol, bitcode_path, module_init_fn)` for the last two of each BoundExternFunction made later."""
    _resolvers.append(resolver)
    return resolver


class LinkedExternFunction:
    """A function from outside with the bitcode that defines it."""

    def __init__(self, extern: FunctionFromOutside, bitcode_path: Any = None, module_init_fn: Any = None) -> None:
        if module_init_fn is not None:
            raise argument_error(
                f"{extern.symbol}: module_init_fn is unsupported: nothing of the host is called when code is loaded"
            )
        self.extern, self.symbol = extern, extern.symbol
        self.bitcode_path = None if bitcode_path is None else os.fspath(bitcode_path)

    def __call__(self, *args: Any) -> Any:
        if self.bitcode_path is not None and is_tracing():
            CompilationContext.get_current().add_link_lib(self.bitcode_path)
        return self.extern(*args)

    def __repr__(self) -> str:
        return f"{self.extern!r} of {self.bitcode_path}"


def link_extern(
    extern: FunctionFromOutside, *, bitcode_path: Any = None, module_init_fn: Any = None
) -> LinkedExternFunction:
    """A function from outside with the bitcode that defines it."""
    return LinkedExternFunction(extern, bitcode_path, module_init_fn)


class BoundExternFunction(LinkedExternFunction):
    """`ffi` and `link_extern` in one."""

    def __init__(
        self,
        symbol: str,
        arg_types: Sequence[str],
        ret_type: str,
        is_pure: bool = False,
        bitcode_path: Any = None,
        module_init_fn: Any = None,
    ) -> None:
        for resolver in _resolvers:
            bitcode_path, module_init_fn = resolver(symbol, bitcode_path, module_init_fn)
        super().__init__(FunctionFromOutside(symbol, arg_types, ret_type, is_pure), bitcode_path, module_init_fn)


ExternFunction = BoundExternFunction
