"""MLIR's pass manager, which knows the fly passes by name too."""

from __future__ import annotations

from typing import Any

from mlir import ir
from mlir import passmanager as upstream

from flydsl.arch import get_arch
from flydsl.compiler.fly_opt import passes_of, run_pass
from flydsl.dialect.context import context, lock
from flydsl.expr.tracing.emit import chip_of
from flydsl.passes import PASSES
from flydsl.runtime.device import target_arch

__all__ = ["PassManager"]


class PassManager:
    """A list of passes: fly passes, by `flydsl.passes`, and MLIR's own.

    >>> PassManager.parse("builtin.module(fly-canonicalize,cse)")
    PassManager(fly-canonicalize, cse)
    """

    def __init__(self, anchor: str = "any", context: Any = None) -> None:
        self._passes: list[str] = []

    @classmethod
    def parse(cls, pipeline: str, context: Any = None) -> PassManager:
        """The passes of a pipeline in MLIR's syntax. Raises ValueError for one that does not exist."""
        made = cls()
        made.add(pipeline)
        return made

    def add(self, pipeline: str) -> None:
        """Append the passes of a pipeline."""
        for name in passes_of([pipeline]):
            if name not in PASSES:
                with context():
                    upstream.PassManager.parse(f"builtin.module({name})")
            self._passes.append(name)

    def enable_verifier(self, enable: bool) -> None:
        """Do nothing: a module is always verified after each pass."""

    def run(self, operation: ir.Operation | ir.Module) -> None:
        """Rewrite a module in place, for the architecture of its first GPU module. Raises CompileError."""
        module = operation.operation
        with lock, context(), ir.Location.unknown():
            arch = get_arch(_chip(module) or target_arch("cpu"))
            for name in self._passes:
                run_pass(module, name, arch)

    def __repr__(self) -> str:
        return f"PassManager({', '.join(self._passes)})"


def _chip(module: ir.Operation) -> str | None:
    """The architecture that a module's first GPU module names, or None."""
    found = (op for op in module.regions[0].blocks[0].operations if op.operation.name == "gpu.module")
    first = next(found, None)
    return None if first is None else chip_of(first)
