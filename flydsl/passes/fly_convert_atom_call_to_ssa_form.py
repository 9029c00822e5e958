"""fly-convert-atom-call-to-ssa-form: copies and matrix instructions work on values instead of register memory.

    func.func @f(%p: !fly.ptr<f32, global>, %q: !fly.ptr<f32, register>) {
      %l = fly.static : !fly.layout<4:1>
      %a = fly.make_view(%p, %l) : (!fly.ptr<f32, global>, !fly.layout<4:1>) -> !fly.memref<f32, global, 4:1>
      %b = fly.make_view(%q, %l) : (!fly.ptr<f32, register>, !fly.layout<4:1>) -> !fly.memref<f32, register, 4:1>
      %t = fly.make_copy_atom {valBits = 32 : i32} : !fly.copy_atom<!fly.universal_copy<128>, 32>
      fly.copy_atom_call(%t, %a, %b)
        : (!fly.copy_atom<!fly.universal_copy<128>, 32>, !fly.memref<f32, global, 4:1>,
           !fly.memref<f32, register, 4:1>) -> ()
      return
    }

becomes

    func.func @f(%p: !fly.ptr<f32, global>, %q: !fly.ptr<f32, register>) {
      %l = fly.static : !fly.layout<4:1>
      %a = fly.make_view(%p, %l) : (!fly.ptr<f32, global>, !fly.layout<4:1>) -> !fly.memref<f32, global, 4:1>
      %t = fly.make_copy_atom {valBits = 32 : i32} : !fly.copy_atom<!fly.universal_copy<128>, 32>
      %v = fly.copy_atom_call_ssa(%t, %a) {operandSegmentSizes = array<i32: 1, 1, 0, 0>}
        : (!fly.copy_atom<!fly.universal_copy<128>, 32>, !fly.memref<f32, global, 4:1>) -> vector<4xf32>
      fly.ptr.store(%v, %q) : (vector<4xf32>, !fly.ptr<f32, register>) -> ()
      return
    }

A copy from registers loads its value first, and `fly.mma_atom_call` loads its operands and stores its result. A copy
between two memories loads and then stores, unless one instruction does both (`BufferCopyLDS`). A copy with a predicate
is put into an `scf.if`.
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
