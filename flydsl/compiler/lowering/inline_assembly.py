"""A check of inline assembly before MLIR translates it: MLIR ends the process on constraints that LLVM rejects."""

from __future__ import annotations

import re

from mlir import ir

from flydsl.codegen.inline_assembly import check_constraints, quoted
from flydsl.codegen.llvm import parse_error
from flydsl.codegen.llvm_bugs.ir_text import declarations
from flydsl.compiler.lowering.translation import to_llvm_ir
from flydsl.dialect.location import source_location
from flydsl.dialect.walk import operations
from flydsl.errors import CompileError

_NAME = "llvm.inline_asm"
_REASON = re.compile(r"error: (.+)")


def check_inline_assembly(device: ir.Module) -> None:
    """Raise CompileError, at the user's line, for constraints that do not fit operands and results."""
    found = [op for op in operations(device.operation) if op.name == _NAME]
    if not found:
        return
    for name, result, operands in declarations(to_llvm_ir(_declarations(found))):
        _check(found[int(name.removeprefix("asm"))], result, operands)


def _declarations(found: list[ir.Operation]) -> ir.Module:
    """A function with the operands and results of each: so MLIR says what LLVM's types of them are."""
    module = ir.Module.create()
    external = ir.Attribute.parse("#llvm.linkage<external>")
    for number, op in enumerate(found):
        result = op.results[0].type if len(op.results) else ir.Type.parse("!llvm.void")
        operands = ", ".join(_in_function_type(operand.type) for operand in op.operands)
        function = ir.Type.parse(f"!llvm.func<{_in_function_type(result)} ({operands})>")
        attributes = {
            "sym_name": ir.StringAttr.get(f"asm{number}"),
            "function_type": ir.TypeAttr.get(function),
            "linkage": external,
        }
        module.body.append(ir.Operation.create("llvm.func", attributes=attributes, regions=1))
    return module


def _in_function_type(type_: ir.Type) -> str:
    return str(type_).removeprefix("!llvm.")


def _check(op: ir.Operation, result: str, operands: list[str]) -> None:
    at = source_location(op.location)
    constraints = ir.StringAttr(op.attributes["constraints"]).value
    try:
        check_constraints(constraints)
    except CompileError as error:
        raise error.located(at) from None
    parameters = ", ".join(f"{type_} %{i}" for i, type_ in enumerate(operands))
    call = f'call {result} asm sideeffect "", "{quoted(constraints)}"({parameters})'
    message = parse_error(f"define void @k({parameters}) {{ {call} ret void }}")
    if message:
        reason = _REASON.search(message)
        raise CompileError(
            f"the constraints {constraints!r} of inline assembly: {reason[1] if reason else message}",
            at=at,
            hint=f"it has the operands ({', '.join(operands)}) and the result {result}; outputs (=v) come first, "
            "then inputs, then clobbers (~{memory})",
        )
