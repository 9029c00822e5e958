"""The one MLIR context, with the fly dialect registered in it.

A single context lets types, attributes and locations be cached for the life of the process. MLIR's own threads are
off: modules are small, and a forked or interrupted notebook must not meet a thread pool. `ir.Context` is not safe to
build IR in from two Python threads, so compilation holds `lock`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache

from mlir import ir
from mlir.dialects import irdl

from flydsl.dialect.upstream import do_without_classes

lock = threading.RLock()
_definitions: list[Callable[[], str]] = []
do_without_classes()

# What kernels are traced to; passes and the parser load what they need besides. All that there are take 5 ms more.
_DIALECTS = ("builtin", "irdl", "func", "gpu", "arith", "scf", "cf", "memref", "vector", "math", "llvm", "rocdl", "ub")


def define(irdl_text: Callable[[], str]) -> None:
    """Register a dialect, by the function that returns its text in IRDL. Must be called before the context is made."""
    _definitions.append(irdl_text)


def extend(irdl_text: str) -> None:
    """Define more operations of a dialect that is registered, by a text in IRDL. The caller must hold `lock`."""
    with context(), ir.Location.unknown():
        irdl.load_dialects(ir.Module.parse(irdl_text))


@cache
def context() -> ir.Context:
    """The context, made at the first call."""
    ctx = ir.Context(load_on_create_dialects=[])
    for dialect in _DIALECTS:
        ctx.get_dialect_descriptor(dialect)
    ctx.enable_multithreading(False)
    with ctx, ir.Location.unknown():
        for irdl_text in _definitions:
            irdl.load_dialects(ir.Module.parse(irdl_text()))
    return ctx
