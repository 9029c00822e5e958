"""Remainders of floats as LLVM's own `frem`, which its back end expands exactly.

convert-gpu-to-rocdl makes calls of AMD's device library from them, `__ocml_fmod_f32`, which nothing links.
"""

from __future__ import annotations

from mlir import ir

from flydsl.arch import Arch

name = "fly-float-remainder"
_LIBRARY = "__ocml_fmod_"


def apply(module: ir.Operation, arch: Arch) -> None:
    """Replace the calls, and remove the declarations."""
    calls: list[ir.Operation] = []
    declarations: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "llvm.call" and "callee" in op.attributes and _LIBRARY in str(op.attributes["callee"]):
            calls.append(op)
        elif op.name == "llvm.func" and ir.StringAttr(op.attributes["sym_name"]).value.startswith(_LIBRARY):
            declarations.append(op)
        return ir.WalkResult.ADVANCE

    module.walk(visit)
    for op in calls:
        with ir.InsertionPoint(op):
            made = ir.Operation.create("llvm.frem", [op.result.type], list(op.operands), loc=op.location)
        op.result.replace_all_uses_with(made.result)
    for op in (*calls, *declarations):
        op.erase()
