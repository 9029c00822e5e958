"""The host's part of a launcher: a plan where that suffices, else compiled code."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from flydsl.compiler.lowering.launch_planner import planned_launcher
from flydsl.printing import Format
from flydsl.runtime.host import Launcher


def launcher_of(module: ir.Module, entry: str, codes: Sequence[str]) -> Launcher:
    """The launcher of a module as the stages leave it. entry: its function. codes: of the function's parameters."""
    planned = planned_launcher(module, entry, codes)
    if planned is not None:
        return planned
    from flydsl.compiler.lowering.host_launches import host_module  # with MLIR's engine, which few launchers need
    from flydsl.runtime.compiled_launcher import CompiledLauncher

    host, kernels = host_module(module)
    return CompiledLauncher(host, entry, codes, kernels)


def formats_of(module: ir.Module, name: str) -> list[Format]:
    """The formats in an attribute; see the pass `printf_to_buffer`."""
    attributes = module.operation.attributes
    if name not in attributes:
        return []
    return [Format.from_json(ir.StringAttr(text).value) for text in ir.ArrayAttr(attributes[name])]
