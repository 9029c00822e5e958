"""Remainders of floats as LLVM's own `frem`, which its back end expands exactly.

convert-gpu-to-rocdl makes calls of AMD's device library from them, `__ocml_fmod_f32`, which nothing links.
"""

from __future__ import annotations

from mlir import ir

from flydsl.arch import Arch
from flydsl.dialect.walk import operations

name = "fly-float-remainder"
_LIBRARY = "__ocml_fmod_"


def apply(module: ir.Operation, arch: Arch) -> None:
    """Replace the calls, and remove the declarations."""
    found = operations(module)
    calls = [op for op in found if op.name == "llvm.call" and _is_of_library(op, "callee")]
    declarations = [op for op in found if op.name == "llvm.func" and _is_of_library(op, "sym_name")]
    for op in calls:
        with ir.InsertionPoint(op):
            made = ir.Operation.create("llvm.frem", [op.result.type], list(op.operands), loc=op.location)
        op.result.replace_all_uses_with(made.result)
    for op in (*calls, *declarations):
        op.erase()


def _is_of_library(op: ir.Operation, attribute: str) -> bool:
    return attribute in op.attributes and _LIBRARY in str(op.attributes[attribute])
