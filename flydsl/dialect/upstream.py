"""The Python classes of MLIR's own dialects, imported when they are first used.

MLIR's bindings import the classes of a dialect at the first operation of it that they show: 80 ms for those that
every kernel has. The compiler knows operations by name and needs no class, so the bindings find an empty module
instead, until classes are asked for.
"""

from __future__ import annotations

import importlib
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

_MLIRS, _EMPTY = "mlir.dialects", f"{__name__}.empty"
_OF_KERNELS = ("arith", "builtin", "cf", "func", "gpu", "llvm", "math", "memref", "rocdl", "scf", "vector")


def upstream(dialect: str) -> ModuleType:
    """The module `mlir.dialects.<dialect>`."""
    return import_module(f"{_MLIRS}.{dialect}")


def do_without_classes() -> None:
    """Have the bindings show operations as plain `ir.OpView`, of dialects whose classes were not imported."""
    sys.modules[_EMPTY] = package = ModuleType(_EMPTY)
    package.__path__ = []
    for dialect in _OF_KERNELS:
        sys.modules[f"{_EMPTY}.{dialect}"] = ModuleType(f"{_EMPTY}.{dialect}")
    # `flydsl.dialect` has the module `fly`.
    _bindings().dialect_search_modules = [_EMPTY, _MLIRS, __package__]


def show_classes() -> None:
    """Have the bindings show every operation by its class, for programs that handle MLIR's operations themselves."""
    _bindings().dialect_search_modules = [_MLIRS, __package__]
    for dialect in _OF_KERNELS:  # the bindings do not look again for what they have found
        upstream(dialect)


def _bindings() -> Any:
    # Mypy would take this module for the whole of `mlir`.
    return importlib.import_module("mlir._mlir_libs._mlir").globals
