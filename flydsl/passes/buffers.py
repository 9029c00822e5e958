"""Buffer resources: tensors that are read and written through one, with bounds checked by the hardware.

    %rsrc = fly.make_ptr(%ptr, %stride, %records, %flags) : ... -> !fly.ptr<f32, #fly_rocdl.buffer_desc>

becomes `rocdl.make.buffer.rsrc`; a copy through it a raw buffer load or store at a 32-bit byte offset.
"""

from __future__ import annotations

from mlir import ir

from flydsl.arch import Arch
from flydsl.dialect.elements import element_bits, element_type
from flydsl.dialect.location import source_location
from flydsl.dialect.types import BUFFER, fly_type
from flydsl.errors import CompileError
from flydsl.passes.rewriting import constant, create, defining_op, fly_name, operand_of, operations

_BUFFER_SPACE = 8


def is_buffer(pointer: ir.Value) -> bool:
    """Whether a fly pointer is a buffer resource."""
    kind = fly_type(pointer.type)
    return kind is not None and kind.space == BUFFER


def require_known_resources(module: ir.Operation, arch: Arch) -> None:
    """Raise CompileError for buffer tensors on an architecture whose resource words are not those of CDNA."""
    for op in operations(module):
        if arch.wave_size != 64 and fly_name(op) == "make_ptr" and is_buffer(op.result):
            raise CompileError(f"buffer tensors on {arch.name} are not there yet", at=source_location(op.location))


def make_resource(op: ir.Operation) -> ir.Value:
    """`fly.make_ptr` of a base, stride, size in bytes and flags as a ROCDL buffer resource."""
    if len(op.operands) != 4:
        raise CompileError("fly.make_ptr of a buffer takes a pointer, a stride, a size in bytes and flags")
    resource = ir.Type.parse(f"!llvm.ptr<{_BUFFER_SPACE}>")
    return create("rocdl.make.buffer.rsrc", list(op.operands), [resource], op.location).result


def load(atom: ir.Value, view: ir.Value, vector: ir.Type, at: ir.Location) -> ir.Value:
    """Load one call's vector from a view of a buffer tensor."""
    transfer = _transfer_type(fly_type(atom.type).op.bits)
    operands = [*_address(view, at), _scalar_offset(atom, view, at), constant(0, 32, at)]
    value = create("rocdl.raw.ptr.buffer.load", operands, [transfer], at).result
    return create("llvm.bitcast", [value], [vector], at).result


def store(atom: ir.Value, value: ir.Value, view: ir.Value, at: ir.Location) -> None:
    """Store one call's vector to a view of a buffer tensor."""
    transfer = _transfer_type(fly_type(atom.type).op.bits)
    moved = create("llvm.bitcast", [value], [transfer], at).result
    operands = [moved, *_address(view, at), _scalar_offset(atom, view, at), constant(0, 32, at)]
    create("rocdl.raw.ptr.buffer.store", operands, [], at)


def _scalar_offset(atom: ir.Value, view: ir.Value, at: ir.Location) -> ir.Value:
    """The offset in bytes that all lanes add: the value `soffset` of the atom, in elements."""
    op = defining_op(atom)
    if op is None or fly_name(op) != "atom_set_value":
        return constant(0, 32, at)
    return _bytes(op.operands[1], fly_type(view.type).element, at)


def _bytes(elements: ir.Value, element: str, at: ir.Location) -> ir.Value:
    scale = constant(element_bits(element) // 8, 32, at)
    return create("arith.muli", [elements, scale], [scale.type], at).result


def _transfer_type(bits: int) -> ir.Type:
    """What the instruction moves: dwords, or a part of one."""
    if bits <= 32:
        return element_type(f"i{bits}")
    return ir.VectorType.get([bits // 32], element_type("i32"))


def _address(view: ir.Value, at: ir.Location) -> tuple[ir.Value, ir.Value]:
    """The resource under a view, and the view's offset in bytes."""
    pointer = operand_of(view, "make_view")
    offset: ir.Value | None = None
    while (op := defining_op(pointer)) is not None and fly_name(op) in ("add_offset", "recast_iter"):
        pointer = op.operands[0]
        if fly_name(op) == "add_offset":
            step = _bytes(_elements(op.operands[1], at), fly_type(op.result.type).element, at)
            offset = step if offset is None else create("arith.addi", [offset, step], [step.type], at).result
    return pointer, constant(0, 32, at) if offset is None else offset


def _elements(offset: ir.Value, at: ir.Location) -> ir.Value:
    """A fly offset as 32 bits, which is what a buffer instruction adds."""
    symbol = fly_type(offset.type).value
    if isinstance(symbol, int):
        return constant(symbol, 32, at)
    value = operand_of(offset, "make_int_tuple")
    i32 = element_type("i32")
    return value if value.type == i32 else create("arith.trunci", [value], [i32], at).result
