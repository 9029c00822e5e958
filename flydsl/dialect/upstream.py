"""The Python classes of MLIR's own dialects, imported when they are first used.

Those of `llvm` and `gpu` alone take 40 ms, and a program that finds its kernels compiled on disk needs none of them.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

_OF_EVERY_COMPILATION = ("builtin", "func", "gpu", "llvm")


def upstream(dialect: str) -> ModuleType:
    """The module `mlir.dialects.<dialect>`."""
    return import_module(f"mlir.dialects.{dialect}")


def load_dialects() -> None:
    """Import the dialects that every compilation meets; otherwise MLIR does so in the middle of a stage."""
    for dialect in _OF_EVERY_COMPILATION:
        upstream(dialect)
