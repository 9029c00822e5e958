"""Buffer resources: tensors that are read and written through one, with bounds checked by the hardware.

    %rsrc = fly.make_ptr(%ptr, %stride, %records, %flags) : ... -> !fly.ptr<f32, #fly_rocdl.buffer_desc>

becomes `rocdl.make.buffer.rsrc`; a copy through it a raw buffer load, store or atomic at a 32-bit byte offset.
"""

from __future__ import annotations

from mlir import ir

from flydsl.atoms.buffer_copy import LARGEST_OFFSET_BYTES
from flydsl.dialect import async_copies
from flydsl.dialect.elements import element_type, llvm_pointer_type, memory_bits
from flydsl.dialect.types import fly_type
from flydsl.errors import CompileError
from flydsl.passes.rewriting import constant, create, defining_op, fly_name, operand_of, values_of
from flydsl.passes.to_rocdl import atomics
from flydsl.passes.to_rocdl.storage import convert_storage, storage_type
from flydsl.passes.to_rocdl.uniform import split_sum

_BUFFER_SPACE = 8
# The size of a resource without a bound: the largest that its 32-bit field holds.
UNBOUNDED_BYTES = 0xFFFFFFFF


def make_resource(op: ir.Operation) -> ir.Value:
    """`fly.make_ptr` of a base, stride, size in bytes and flags as a ROCDL buffer resource."""
    if len(op.operands) != 4:
        raise CompileError("fly.make_ptr of a buffer takes a pointer, a stride, a size in bytes and flags")
    resource = llvm_pointer_type(_BUFFER_SPACE)
    return create("rocdl.make.buffer.rsrc", list(op.operands), [resource], op.location).result


def load(atom: ir.Value, view: ir.Value, vector: ir.Type, at: ir.Location) -> ir.Value:
    """Load one call's vector from a view of a buffer tensor."""
    transfer = _transfer_type(fly_type(atom.type).op.bits)
    operands = [*_address(atom, view, at), _cache_modifier(atom, at)]
    value = create("rocdl.raw.ptr.buffer.load", operands, [transfer], at).result
    stored = create("llvm.bitcast", [value], [storage_type(vector)], at).result
    return convert_storage(stored, vector, at)


def store(atom: ir.Value, value: ir.Value, view: ir.Value, at: ir.Location) -> None:
    """Store one call's vector to a view of a buffer tensor."""
    transfer = _transfer_type(fly_type(atom.type).op.bits)
    stored = convert_storage(value, storage_type(value.type), at)
    moved = create("llvm.bitcast", [stored], [transfer], at).result
    operands = [moved, *_address(atom, view, at), _cache_modifier(atom, at)]
    create("rocdl.raw.ptr.buffer.store", operands, [], at)


def _cache_modifier(atom: ir.Value, at: ir.Location) -> ir.Value:
    return constant(fly_type(atom.type).op.cache_modifier, 32, at)


def load_to_lds(atom: ir.Value, view: ir.Value, target: ir.Value, at: ir.Location) -> None:
    """Load each lane's part of a view of a buffer tensor into LDS, from the first lane's address `target` on."""
    copy = fly_type(atom.type).op
    resource, offset, shared = _address(atom, view, at)
    size, zero = constant(copy.bits // 8, 32, at), constant(0, 32, at)
    operands = [resource, target, size, offset, shared, _immediate_offset(atom) or zero, zero]
    create("rocdl.raw.ptr.buffer.load.lds", operands, [], at, async_copies.mark() if copy.is_asynchronous else None)


def update(atom: ir.Value, value: ir.Value, view: ir.Value, at: ir.Location) -> None:
    """Update a view of a buffer tensor by one call's vector, atomically."""
    op = fly_type(atom.type).op
    stored = atomics.operand(op, value, at)
    name = f"{'f' if not op.element.startswith('i') else ''}{op.operation}"
    overload = f"v2{op.element}" if op.bits != op.element_bits else op.element
    attributes = {
        "intrin": ir.StringAttr.get(f"llvm.amdgcn.raw.ptr.buffer.atomic.{name}.{overload}"),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([5, 0]),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
    }
    operands = [stored, *_address(atom, view, at), constant(0, 32, at)]
    create("llvm.call_intrinsic", operands, [stored.type], at, attributes)


def _transfer_type(bits: int) -> ir.Type:
    """The type that the instruction moves: dwords, or a part of one."""
    if bits <= 32:
        return element_type(f"i{bits}")
    return ir.VectorType.get([bits // 32], element_type("i32"))


def _address(atom: ir.Value, view: ir.Value, at: ir.Location) -> tuple[ir.Value, ir.Value, ir.Value]:
    """The resource under a view, and its offsets in bytes: one for each lane, and one that all lanes add.

    The second one is the value `soffset` of the atom. Where the resource has no bound, the part of the address that
    all lanes share goes there, too; where it has one, the hardware subtracts that offset from the bound, which is not
    safe for an offset beyond it (CDNA 3 ISA, "Range Checking").
    """
    pointer = operand_of(view, "make_view")
    shared, own = _soffset(atom, view), []
    while (op := defining_op(pointer)) is not None and fly_name(op) in ("add_offset", "recast_iter"):
        pointer = op.operands[0]
        if fly_name(op) == "add_offset":
            own.append((_elements(op.operands[1], at), fly_type(op.result.type).element))
    if _unbounded(pointer):
        parts = [
            (split_sum(value, LARGEST_OFFSET_BYTES * 8 // memory_bits(element), at), element) for value, element in own
        ]
        shared += [(uniform, element) for (uniform, _), element in parts if uniform is not None]
        own = [(divergent, element) for (_, divergent), element in parts if divergent is not None]
    return pointer, _total(own, at), _total(shared, at)


def _soffset(atom: ir.Value, view: ir.Value) -> list[tuple[ir.Value, str]]:
    value = values_of(atom).get("soffset")
    return [] if value is None else [(value, fly_type(view.type).element)]


def _immediate_offset(atom: ir.Value) -> ir.Value | None:
    """The value `imm_offset` of an atom, which is part of the instruction."""
    value = values_of(atom).get("imm_offset")
    if value is None:
        return None
    op = defining_op(value)
    if op is None or op.name != "arith.constant" or not 0 <= op.attributes["value"].value <= LARGEST_OFFSET_BYTES:
        raise CompileError(f"imm_offset must be a constant from 0 to {LARGEST_OFFSET_BYTES} bytes, not {value}")
    return value


def _unbounded(resource: ir.Value) -> bool:
    """True if a resource has the largest possible size."""
    op = defining_op(resource)
    if op is None or op.name != "rocdl.make.buffer.rsrc":
        return False
    size = defining_op(op.operands[2])
    return size is not None and size.name == "arith.constant" and size.attributes["value"].value == UNBOUNDED_BYTES


def _total(offsets: list[tuple[ir.Value, str]], at: ir.Location) -> ir.Value:
    """The sum in bytes of offsets that count elements of a type."""
    total: ir.Value | None = None
    for elements, element in offsets:
        scale = constant(memory_bits(element) // 8, 32, at)
        step = create("arith.muli", [elements, scale], [scale.type], at).result
        total = step if total is None else create("arith.addi", [total, step], [step.type], at).result
    return constant(0, 32, at) if total is None else total


def _elements(offset: ir.Value, at: ir.Location) -> ir.Value:
    """A fly offset as 32 bits, which is what a buffer instruction adds."""
    symbol = fly_type(offset.type).value
    if isinstance(symbol, int):
        return constant(symbol, 32, at)
    value = operand_of(offset, "make_int_tuple")
    i32 = element_type("i32")
    return value if value.type == i32 else create("arith.trunci", [value], [i32], at).result
