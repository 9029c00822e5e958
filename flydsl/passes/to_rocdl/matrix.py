"""Matrix instructions: `fly.mma_atom_call_ssa` as ROCDL operations.

Operands go into the registers that `rocdl.mfma.*` and `rocdl.wmma.*` take: values of 8 bits and less packed into
integers, bf16 of older instructions as 16-bit integers, all others as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mlir import ir

from flydsl.arch import Arch
from flydsl.atoms import MFMA, WMMA, MFMAScale, MmaOp, ScaledOp, UniversalFMA
from flydsl.atoms.scaled import FORMATS
from flydsl.dialect.atom_inference import mma_value_type
from flydsl.dialect.elements import element_type
from flydsl.dialect.location import source_location
from flydsl.dialect.types import fly_type
from flydsl.errors import CompileError
from flydsl.passes.rewriting import constant, create, fly_name
from flydsl.passes.to_rocdl.storage import convert_storage, storage_type

# Four scales of 8 bits, each 2**0.
_SCALES_OF_ONE = 0x7F7F7F7F


def require_supported(ops: Iterable[ir.Operation], arch: Arch) -> None:
    """Raise CompileError for a matrix instruction that the architecture does not have."""
    for op in ops:
        if fly_name(op) != "mma_atom_call_ssa":
            continue
        mma = fly_type(op.operands[0].type).op
        if mma.archs is not None and arch.name not in mma.archs:
            raise CompileError(
                f"{arch.name} has no {mma}",
                at=source_location(op.location),
                hint=f"it is an instruction of {', '.join(mma.archs)}",
            )


def multiply(mma: MmaOp, operands: list[ir.Value], values: Mapping[str, ir.Value], at: ir.Location) -> ir.Value:
    """One execution of a matrix instruction on values of A, B and C. values: those set on the atom, by name."""
    if isinstance(mma, UniversalFMA):
        return create("math.fma", operands, [operands[2].type], at).result
    if isinstance(mma, ScaledOp):
        return _scaled(mma, operands, values, at)
    if isinstance(mma, WMMA):
        return _wmma(mma, operands, at)
    assert isinstance(mma, MFMA), f"no lowering of {mma}"
    intrinsic = mma.instruction.intrinsic
    a, b = (
        _in_registers(value, ir.Type.parse(kind), at)
        for value, kind in zip(operands, (intrinsic.a, intrinsic.b), strict=False)
    )
    zeros = [constant(0, 32, at)] * 3  # no broadcast or rotation of blocks
    result = mma_value_type(mma, "c")
    return create(intrinsic.operation, [a, b, operands[2], *zeros], [result], at).result


def _wmma(mma: WMMA, operands: list[ir.Value], at: ir.Location) -> ir.Value:
    form = mma.intrinsic
    matrices = [
        _in_registers(value, ir.Type.parse(kind), at)
        for value, kind in zip(operands, (form.a, form.b, form.c), strict=True)
    ]
    chosen = {"signA": mma.sign_a, "signB": mma.sign_b, "clamp": mma.clamp} if mma.c == "i32" else {}
    attributes = {name: ir.BoolAttr.get(value) for name, value in chosen.items()}
    result = create(form.operation, matrices, [ir.Type.parse(form.d)], at, attributes).result
    return _in_registers(result, mma_value_type(mma, "c"), at)


def _scaled(mma: ScaledOp, operands: list[ir.Value], values: Mapping[str, ir.Value], at: ir.Location) -> ir.Value:
    a, b = (
        _in_registers(value, mma_value_type(mma, operand, "i32"), at)
        for operand, value in zip("ab", operands, strict=False)
    )
    result = mma_value_type(mma, "c")
    if isinstance(mma, MFMAScale):
        return _mfma_scale(mma, [a, b, operands[2]], values, at, result)
    scales = [values.get(name) or constant(_SCALES_OF_ONE, 32, at) for name in mma.value_names]
    numbers = {"scaleAType": mma.opsel_a, "scaleBType": mma.opsel_b}
    if mma.m == 16:
        numbers |= {"fmtA": FORMATS[mma.a][0], "fmtB": FORMATS[mma.b][0]}
    attributes = {name: ir.IntegerAttr.get(element_type("i32"), number) for name, number in numbers.items()}
    return create(mma.operation, [a, b, operands[2], *scales], [result], at, attributes).result


def _mfma_scale(
    mma: MFMAScale, matrices: list[ir.Value], values: Mapping[str, ir.Value], at: ir.Location, result: ir.Type
) -> ir.Value:
    """A scaled product. Without scales these are constants 0, for which LLVM selects the unscaled instruction."""
    default = _SCALES_OF_ONE if values else 0
    scales = [values.get(name) or constant(default, 32, at) for name in mma.value_names]
    formats = [constant(FORMATS[element][0], 32, at) for element in (mma.a, mma.b)]
    opsel = [constant(number if values else 0, 32, at) for number in (mma.opsel_a, mma.opsel_b)]
    return create(mma.operation, [*matrices, *formats, opsel[0], scales[0], opsel[1], scales[1]], [result], at).result


def _in_registers(value: ir.Value, kind: ir.Type, at: ir.Location) -> ir.Value:
    """The values of A or B in a thread, in the type in which the instruction takes them."""
    if kind == value.type:
        return value
    value = convert_storage(value, storage_type(value.type), at)  # LLVM has no type for fp8 values
    return create("llvm.bitcast", [value], [kind], at).result
