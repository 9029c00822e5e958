"""Modules of MLIR as programs written for FlyDSL see them: `flydsl._mlir.dialects.scf` mirrors `mlir.dialects.scf`.

A mirror has the module's own types, attributes and enumerations. Its operation classes and functions are
`MlirBuilder`s.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import Any

from mlir import ir

from flydsl._mlir.faces import FACES
from flydsl.expr.tracing.builder import MlirBuilder

_HERE, _UPSTREAM = "flydsl._mlir", "mlir"


class Mirror(ModuleType):
    """A module of MLIR whose operation classes and functions are replaced by builders, made on first access."""

    _upstream: ModuleType
    _replacements: Callable[[str], Any]

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return [n for n in dir(self._upstream) if not n.startswith("_")]
        if name.startswith("__") and name != "__doc__":
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        found = mirrored(getattr(self._upstream, name))
        setattr(self, name, found)
        return found

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._upstream), *self.__dict__})


def mirrored(found: Any) -> Any:
    """The mirrored form of an attribute of an MLIR module."""
    if isinstance(found, ModuleType) and found.__name__.startswith(f"{_UPSTREAM}.dialects"):
        return importlib.import_module(_HERE + found.__name__.removeprefix(_UPSTREAM))
    if isinstance(found, type) and found in FACES:
        return FACES[found](found)
    makes_operations = isinstance(found, type) and issubclass(found, ir.OpView)
    of_dialect = isinstance(found, FunctionType) and found.__module__.startswith(f"{_UPSTREAM}.dialects")
    if makes_operations or of_dialect:
        return MlirBuilder(found)
    return found


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finder for the MLIR modules that this package has no file for."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        if not fullname.startswith(f"{_HERE}."):
            return None
        upstream = importlib.util.find_spec(_UPSTREAM + fullname.removeprefix(_HERE))
        is_package = upstream is not None and upstream.submodule_search_locations is not None
        return None if upstream is None else ModuleSpec(fullname, self, is_package=is_package)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        upstream = importlib.import_module(_UPSTREAM + spec.name.removeprefix(_HERE))
        module = Mirror(spec.name, upstream.__doc__)
        module._upstream = upstream
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module's attributes are made on first access."""


def install() -> None:
    """Make `import flydsl._mlir.<name>` load the mirror of `mlir.<name>`, if this package has no file of that name."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
