"""Atomic updates of global and shared memory.

    fly.copy_atom_call_ssa(%atom, %value, %view) : !fly.copy_atom<!fly.universal_atomic<32, add, f32>, 32>, ...

becomes `llvm.atomicrmw fadd`, which LLVM turns into one instruction where the target has it, else into a loop of
compare-and-swap. The order is monotonic, among the threads of the scope, by default all of the device.
"""

from __future__ import annotations

from mlir import ir

from flydsl.atoms import AtomicCopy, UniversalAtomic
from flydsl.dialect.elements import element_type
from flydsl.passes.rewriting import create

# LLVM's numbers (MLIR, LLVMEnums.td, `AtomicBinOp` and `AtomicOrdering`).
_INTEGER = {
    "add": 1, "and": 3, "or": 5, "smax": 7, "smin": 8, "umax": 9, "umin": 10, "inc": 15, "dec": 16,
}  # fmt: skip
_FLOAT = {"add": 11, "max": 13, "min": 14}
_MONOTONIC = 2


def operand(op: AtomicCopy, value: ir.Value, at: ir.Location) -> ir.Value:
    """A call's vector as the instruction takes it: a scalar, or two 16-bit floats."""
    if op.bits != op.element_bits:
        return value
    return create("llvm.bitcast", [value], [element_type(op.element)], at).result


def update(op: UniversalAtomic, value: ir.Value, pointer: ir.Value, alignment: ir.Attribute, at: ir.Location) -> None:
    """Update memory at a pointer by one call's vector. alignment: of the address, in bytes."""
    i64 = element_type("i64")
    numbers = _INTEGER if op.element.startswith("i") else _FLOAT
    attributes = {
        "bin_op": ir.IntegerAttr.get(i64, numbers[op.operation]),
        "ordering": ir.IntegerAttr.get(i64, _MONOTONIC),
        "syncscope": ir.StringAttr.get("" if op.scope == "system" else op.scope),
        "alignment": ir.IntegerAttr.get(i64, max(op.bits // 8, ir.IntegerAttr(alignment).value)),
        # Tensors lie in the device's own memory, where its float atomics work.
        "rocdl.no_fine_grained_memory": ir.UnitAttr.get(),
        "rocdl.no_remote_memory": ir.UnitAttr.get(),
    }
    data = operand(op, value, at)
    create("llvm.atomicrmw", [pointer, data], [data.type], at, attributes)
