"""The meaning of LLVM's pointers, loads and atomics, of memrefs in LDS, and of structures.

Calls of intrinsics mean what the table of `rocdl` says; inline assembly has no meaning here, and is refused.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from mlir import ir

from flydsl.dialect.elements import element_bits
from flydsl.dialect.location import source_location, trace_error
from flydsl.interpreter.elements import Array, element_name, size_bytes
from flydsl.interpreter.execution import MEANINGS, Execution, NotInterpreted, means
from flydsl.interpreter.meanings.access import load, store
from flydsl.interpreter.meanings.copies import compare_and_swap, update
from flydsl.interpreter.memory import Pointer, RegisterSpace

_DYNAMIC = -(2**31)
_POINTER = re.compile(r"!llvm\.ptr<(\d+)>")
_BYTES = re.compile(r"<(\d+) ?x ?i8\b")
_ARRAY = re.compile(r"!llvm\.array<(\d+) x (.+)>$")
# LLVM's numbers of atomic operations (MLIR, LLVMEnums.td, `AtomicBinOp`).
_ATOMICS = {
    0: "xchg", 1: "add", 2: "sub", 3: "and", 5: "or", 6: "xor", 7: "smax", 8: "smin", 9: "umax", 10: "umin",
    11: "fadd", 12: "fsub", 13: "fmax", 14: "fmin", 15: "inc", 16: "dec",
}  # fmt: skip


def _space(kind: ir.Type) -> int:
    found = _POINTER.match(str(kind))
    return int(found[1]) if found else 0


@means("llvm.inttoptr")
def _inttoptr(x: Execution, op: ir.Operation, address: Array) -> Pointer:
    return Pointer(x.shared if _space(op.result.type) == 3 else x.memory, address.astype(np.int64))


@means("llvm.ptrtoint", "memref.extract_aligned_pointer_as_index")
def _ptrtoint(x: Execution, op: ir.Operation, pointer: Pointer) -> Array:
    return pointer.address.astype(np.int32 if element_name(op.result.type) == "i32" else np.int64)


@means("llvm.addrspacecast")
def _cast(x: Execution, op: ir.Operation, pointer: Pointer) -> Pointer:
    return pointer


@means("llvm.getelementptr")
def _getelementptr(x: Execution, op: ir.Operation, pointer: Pointer, *dynamic: Array) -> Pointer:
    given = iter(dynamic)
    kind = ir.TypeAttr(op.attributes["elem_type"]).value
    offset: Any = 0
    for position, number in enumerate(op.attributes["rawConstantIndices"]):
        index = next(given).astype(np.int64) if number == _DYNAMIC else number
        if position:
            kind = _element(op, kind)
        offset = offset + index * _size(op, kind)
    return pointer.moved(offset)


def _element(op: ir.Operation, kind: ir.Type) -> ir.Type:
    found = _ARRAY.match(str(kind))
    if found is None:
        raise _refused(op, f"an address within {kind}")
    return ir.Type.parse(found[2])


def _size(op: ir.Operation, kind: ir.Type) -> int:
    found = _ARRAY.match(str(kind))
    if found is not None:
        return int(found[1]) * _size(op, ir.Type.parse(found[2]))
    if str(kind).startswith("!llvm."):
        if str(kind).startswith("!llvm.ptr"):
            return 4 if _space(kind) in (3, 5) else 8
        raise _refused(op, f"the size of {kind}")
    return size_bytes(kind)


def _refused(op: ir.Operation, what: str) -> NotInterpreted:
    return NotInterpreted(
        f"the interpreter does not know {what}", at=source_location(op.location), hint="run the kernel compiled"
    )


@means("llvm.load")
def _load(x: Execution, op: ir.Operation, pointer: Pointer) -> Any:
    if str(op.result.type).startswith("!llvm.ptr"):
        address = load(x, pointer, ir.IntegerType.get_signless(64))
        return Pointer(x.memory, address)
    return load(x, pointer, op.result.type)


@means("llvm.store")
def _store(x: Execution, op: ir.Operation, value: Any, pointer: Pointer) -> None:
    if isinstance(value, Pointer):
        store(x, value.address, ir.IntegerType.get_signless(64), pointer)
        return
    store(x, value, op.operands[0].type, pointer)


@means("llvm.alloca")
def _alloca(x: Execution, op: ir.Operation, count: Array) -> Pointer:
    kind = ir.TypeAttr(op.attributes["elem_type"]).value
    return Pointer(RegisterSpace(x.lanes, int(count.max()) * _size(op, kind)), np.zeros(1, np.int64))


@means("llvm.atomicrmw")
def _atomicrmw(x: Execution, op: ir.Operation, pointer: Pointer, value: Array) -> Array:
    number = int(op.attributes["bin_op"].value)
    return update(x, _ATOMICS.get(number, f"operation {number} of LLVM"), value, op.operands[1].type, pointer)


@means("llvm.cmpxchg")
def _cmpxchg(x: Execution, op: ir.Operation, pointer: Pointer, expected: Array, new: Array) -> tuple[Array, Array]:
    return compare_and_swap(x, expected, new, op.operands[1].type, pointer)


@means("llvm.extractvalue")
def _extractvalue(x: Execution, op: ir.Operation, whole: Any) -> Any:
    for position in op.attributes["position"]:
        whole = whole[position]
    return whole


@means("llvm.insertvalue")
def _insertvalue(x: Execution, op: ir.Operation, whole: Any, part: Any) -> Any:
    positions = list(op.attributes["position"])
    if len(positions) != 1:
        raise _refused(op, "structures within structures")
    parts = list(whole or [None] * (positions[0] + 1))
    parts += [None] * (positions[0] + 1 - len(parts))
    parts[positions[0]] = part
    return tuple(parts)


@means("llvm.extractelement")
def _extractelement(x: Execution, op: ir.Operation, vector: Array, position: Array) -> Array:
    return np.take_along_axis(x.spread(vector), x.spread(position)[:, None].astype(np.int64), axis=1)[:, 0]


@means("llvm.insertelement")
def _insertelement(x: Execution, op: ir.Operation, vector: Array, value: Array, position: Array) -> Array:
    made = x.spread(vector).copy()
    np.put_along_axis(made, x.spread(position)[:, None].astype(np.int64), x.spread(value)[:, None], axis=1)
    return made


@means("llvm.call_intrinsic")
def _call_intrinsic(x: Execution, op: ir.Operation, *operands: Any) -> Any:
    name = ir.StringAttr(op.attributes["intrin"]).value
    parts = name.split(".")
    for count in range(len(parts), 1, -1):  # without the types of operands that LLVM's names end in
        meaning = MEANINGS.get(".".join(parts[:count]))
        if meaning is not None:
            return meaning(x, op, *operands)
    raise NotInterpreted(
        f"the interpreter has no intrinsic {name}", at=source_location(op.location), hint="run the kernel compiled"
    )


@means("llvm.inline_asm")
def _inline_assembly(x: Execution, op: ir.Operation, *operands: Any) -> Any:
    """Assembly has no meaning here; the empty one, which LLVM cannot see through, gives what it takes."""
    text = ir.StringAttr(op.attributes["asm_string"]).value
    if not text.strip() and len(op.results) <= 1:
        return operands[0] if len(op.results) else None
    raise NotInterpreted(
        f"the interpreter does not execute inline assembly: {text.strip().splitlines()[0][:60]}",
        at=source_location(op.location),
        hint="run the kernel compiled; sim.explore() steps through its instructions",
    )


# --- LDS by name -----------------------------------------------------------------------------------------------------


def _global_of(x: Execution, symbol: str) -> ir.Operation:
    module = x.block.owner
    while module is not None and module.operation.name != "gpu.module":
        module = module.operation.parent
    for op in module.regions[0].blocks[0].operations if module is not None else ():
        if "sym_name" in op.attributes and ir.StringAttr(op.attributes["sym_name"]).value == symbol:
            return op.operation
    raise trace_error(
        f"LDS storage {symbol!r} is used but was never allocated",
        "call allocator.finalize() in the launcher, inside "
        "`with ir.InsertionPoint(CompilationContext.get_current().gpu_module_body):`",
    )


@means("llvm.mlir.addressof", "memref.get_global")
def _address_of(x: Execution, op: ir.Operation) -> Pointer:
    attribute = op.attributes["global_name" if op.name.startswith("llvm") else "name"]
    symbol = ir.FlatSymbolRefAttr(attribute).value
    storage = _global_of(x, symbol)
    kind = storage.attributes["global_type" if storage.name.startswith("llvm") else "type"]
    found = _BYTES.search(str(kind))
    align = int(storage.attributes["alignment"].value) if "alignment" in storage.attributes else 16
    size = int(found[1]) if found else 0
    return Pointer(x.shared, np.array([x.shared.place(x.storages.get(symbol, symbol), size, align)]))


@means("memref.view")
def _view(x: Execution, op: ir.Operation, source: Pointer, offset: Array, *sizes: Array) -> Pointer:
    return source.moved(offset)


def _element_at(kind: Any, pointer: Pointer, indices: tuple[Array, ...]) -> Pointer:
    strides: list[int] = []
    step = element_bits(str(kind.element_type)) // 8 or 1
    for extent in reversed(kind.shape):
        strides.insert(0, step)
        step *= extent
    return pointer.moved(sum(index * stride for index, stride in zip(indices, strides, strict=True)))


@means("memref.load", "vector.load")
def _memref_load(x: Execution, op: ir.Operation, source: Pointer, *indices: Array) -> Array:
    kind = ir.MemRefType(op.operands[0].type)
    return load(x, _element_at(kind, source, indices), op.result.type)


@means("memref.store", "vector.store")
def _memref_store(x: Execution, op: ir.Operation, value: Array, target: Pointer, *indices: Array) -> None:
    kind = ir.MemRefType(op.operands[1].type)
    store(x, value, op.operands[0].type, _element_at(kind, target, indices))


@means("llvm.fence")
def _fence(x: Execution, op: ir.Operation) -> None:
    """Accesses are in order anyway."""
