"""Matrix instructions: `fly.mma_atom_call_ssa` as ROCDL operations.

Operands go into the registers that `rocdl.mfma.*` takes: fp8 and i8 values packed into integers, bf16 of the
instructions up to CDNA 3 as 16-bit integers, all others as they are.
"""

from __future__ import annotations

from mlir import ir

from flydsl.arch import Arch
from flydsl.atoms import MFMA, MmaOp, UniversalFMA
from flydsl.dialect.atom_inference import mma_value_type
from flydsl.dialect.location import source_location
from flydsl.dialect.types import fly_type
from flydsl.errors import CompileError
from flydsl.passes.rewriting import constant, create, fly_name, operations
from flydsl.passes.to_rocdl.storage import storage_type


def require_supported(module: ir.Operation, arch: Arch) -> None:
    """Raise CompileError for a matrix instruction that the architecture does not have."""
    for op in operations(module):
        if fly_name(op) != "mma_atom_call_ssa":
            continue
        mma = fly_type(op.operands[0].type).op
        if isinstance(mma, MFMA) and arch.name not in mma.instruction.archs:
            raise CompileError(
                f"{arch.name} has no {mma}",
                at=source_location(op.location),
                hint=f"it is an instruction of {', '.join(mma.instruction.archs)}",
            )


def multiply(mma: MmaOp, operands: list[ir.Value], at: ir.Location) -> ir.Value:
    """One execution of a matrix instruction on values of A, B and C."""
    if isinstance(mma, UniversalFMA):
        return create("math.fma", operands, [operands[2].type], at).result
    assert isinstance(mma, MFMA), f"no lowering of {mma}"
    intrinsic = mma.instruction.intrinsic
    registers = [ir.Type.parse(kind) for kind in (intrinsic.a, intrinsic.b)]
    a, b = (_in_registers(value, kind, at) for value, kind in zip(operands, registers, strict=False))
    zeros = [constant(0, 32, at)] * 3  # no broadcast or rotation of blocks
    result = mma_value_type(mma, "c")
    return create(intrinsic.operation, [a, b, operands[2], *zeros], [result], at).result


def _in_registers(value: ir.Value, kind: ir.Type, at: ir.Location) -> ir.Value:
    """The values of A or B in a thread, in the type in which the instruction takes them."""
    if kind == value.type:
        return value
    storage = storage_type(value.type)
    if storage != value.type:  # LLVM has no type for fp8 values
        value = create("arith.bitcast", [value], [storage], at).result
    return create("llvm.bitcast", [value], [kind], at).result
