"""fly-convert-atom-call-to-ssa-form: copies and matrix instructions work on values instead of register memory.

    fly.copy_atom_call(%atom, %global, %register)
      %v = fly.copy_atom_call_ssa(%atom, %global) {...} : (...) -> vector<1xf32>
      fly.ptr.store(%v, %register_ptr)
    fly.copy_atom_call(%atom, %register, %global)
      %v = fly.ptr.load(%register_ptr)
      fly.copy_atom_call_ssa(%atom, %v, %global) {...}

    fly.mma_atom_call(%atom, %d, %a, %b, %c)
      %r = fly.mma_atom_call_ssa(%atom, %a_value, %b_value, %c_value)
      fly.ptr.store(%r, %d_ptr)

A copy between two memories loads and then stores, unless one instruction does both (`BufferCopyLDS`). A copy with a
predicate is put into an `scf.if`.
"""

from __future__ import annotations

from mlir import ir

from flydsl.arch import Arch
from flydsl.dialect.atom_inference import mma_value_type
from flydsl.dialect.elements import element_type
from flydsl.dialect.types import fly_type
from flydsl.dialect.walk import operations
from flydsl.passes.rewriting import create_fly, erase_dead, fly_name, operand_of

name = "fly-convert-atom-call-to-ssa-form"


def apply(module: ir.Operation, arch: Arch) -> None:
    """Rewrite every copy_atom_call and mma_atom_call of a module."""
    for op in operations(module):
        rewrite = _REWRITES.get(fly_name(op))
        if rewrite is not None:
            with ir.InsertionPoint(op):
                rewrite(op)
            op.erase()
    erase_dead(module)


def _mma(op: ir.Operation) -> None:
    atom, target, *operands = op.operands
    mma = fly_type(atom.type).op
    values = [
        create_fly(
            "ptr.load", [_pointer(view)], op.location,
            results=[mma_value_type(mma, operand, fly_type(view.type).element)],
        ).result
        for operand, view in zip("abc", operands, strict=True)
    ]  # fmt: skip
    result = create_fly("mma_atom_call_ssa", [atom, *values], op.location).result
    create_fly("ptr.store", [result, _pointer(target)], op.location)


def _copy(op: ir.Operation) -> None:
    """Create the copy. A predicate, which FlyDSL's fly-layout-lowering leaves as an operand, becomes an `scf.if`."""
    atom, source, target, *predicates = op.operands
    if not predicates:
        _copy_always(op, atom, source, target)
        return
    i1 = element_type("i1")
    condition = create_fly("ptr.load", [_pointer(predicates[0])], op.location, results=[i1]).result
    branch = ir.Operation.create("scf.if", [], [condition], regions=2, loc=op.location)
    with ir.InsertionPoint(ir.Block.create_at_start(branch.regions[0], [])):
        _copy_always(op, atom, source, target)
        ir.Operation.create("scf.yield", loc=op.location)


def _copy_always(op: ir.Operation, atom: ir.Value, source: ir.Value, target: ir.Value) -> None:
    kind = fly_type(atom.type)
    if kind.op.passes_registers:
        _copy_ssa(op, [atom, source, target])
        return
    vector = ir.VectorType.get([kind.op.bits // kind.value_bits], element_type(fly_type(source.type).element))
    if _in_registers(source):
        value = create_fly("ptr.load", [_pointer(source)], op.location, results=[vector]).result
    else:
        value = _copy_ssa(op, [atom, source], vector).result
    if _in_registers(target):
        create_fly("ptr.store", [value, _pointer(target)], op.location)
    else:
        _copy_ssa(op, [atom, value, target])


def _copy_ssa(op: ir.Operation, operands: list[ir.Value], *results: ir.Type) -> ir.Operation:
    """The call on values. FlyDSL's text states that it has one atom, one source, a target or none, no predicate."""
    call = create_fly("copy_atom_call_ssa", operands, op.location, results=results)
    call.attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, 1, len(operands) - 2, 0])
    return call


def _in_registers(view: ir.Value) -> bool:
    return bool(fly_type(view.type).space == "register")


def _pointer(view: ir.Value) -> ir.Value:
    """The pointer under a view that fly-layout-lowering made."""
    return operand_of(view, "make_view")


_REWRITES = {"copy_atom_call": _copy, "mma_atom_call": _mma}
