"""Operations of FlyDSL's own dialect that programs build by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir import ir

from flydsl import layout as algebra
from flydsl.dialect.atom_inference import mma_value_type
from flydsl.dialect.location import argument_error
from flydsl.dialect.ops import OPS
from flydsl.dialect.types import (
    ComposedLayoutType,
    CoordSwizzleType,
    CopyAtomType,
    IntTupleType,
    LayoutType,
    MemRefType,
    MmaAtomType,
    PointerType,
    SwizzleType,
    TiledCopyType,
    TiledMmaType,
    TileType,
    fly_type,
)
from flydsl.errors import how_to_make
from flydsl.expr import primitive
from flydsl.expr.atoms.copies import CopyAtom
from flydsl.expr.atoms.copies import copy_atom_call as _copy_atom_call
from flydsl.expr.atoms.mma import MmaAtom
from flydsl.expr.atoms.mma import mma_atom_call as _mma_atom_call
from flydsl.expr.flydsl_names.missing import name_error, unsupported
from flydsl.expr.flydsl_names.names import FLYDSL_NAMES
from flydsl.expr.layouts.coord_tensor import CoordTensorType
from flydsl.expr.memory.tensors import Pointer, Tensor, get_iter, memref_alloca
from flydsl.expr.numbers.arith_value import ArithValue
from flydsl.expr.numbers.vector_value import Vector
from flydsl.expr.numeric import Boolean, Index, Int32, Int64, numeric_class
from flydsl.expr.rocdl.instruction_types import (
    CopyOpUniversalAtomicType,
    CopyOpUniversalCopyType,
    MmaOpUniversalFMAType,
)
from flydsl.expr.rocdl.intrinsic import bitcast, bits_of, llvm_pointer
from flydsl.expr.tracing.builder import MlirBuilder, to_mlir
from flydsl.expr.tracing.emit import emit
from flydsl.expr.tracing.operands import as_fly_value, as_ir_value

__all__ = [
    "ComposedLayoutType", "CoordSwizzleType", "CoordTensorType", "CopyAtomType", "CopyOpUniversalAtomicType",
    "CopyOpUniversalCopyType", "IntTupleType", "LayoutType", "MemRefType", "MmaAtomType", "MmaOpUniversalFMAType",
    "PointerType", "SwizzleType", "TileType", "TiledCopyType", "TiledMmaType", "copy_atom_call_ssa",
    "extract_aligned_pointer_as_index", "get_scalar", "mma_atom_call_ssa",
]  # fmt: skip

# LLVM's number of each address space.
_SPACES = {"generic": 0, "global": 1, "shared": 3, "register": 5}


@MlirBuilder
def extract_aligned_pointer_as_index(result: Any, source: Any) -> Any:
    """The address of a tensor's first element, or of a pointer.

    result: an LLVM pointer type, of the memory's own address space or the generic one, or index.
    source: a tensor or pointer, or the `ir.Value` of one.
    """
    pointer = _pointer(source)
    space = _SPACES.get(pointer.type.space)
    if space is None:
        raise argument_error(
            f"the address of {source!r}: it is not an address in bytes",
            "registers and buffers have none: take it of global or shared memory",
        )
    address = llvm_pointer("extract_aligned_pointer_as_index", pointer, space)
    if address.type == result:
        return address
    if result == Index.ir_type:
        width = Int32 if pointer.type.space == "shared" else Int64
        return Index(width.of(emit("llvm.ptrtoint", [address], [width.ir_type]).result)).ir_value()
    if str(result) != "!llvm.ptr":
        raise argument_error(f"the address of {pointer.type} as {result}", f"{address.type}, !llvm.ptr or index")
    return emit("llvm.addrspacecast", [address], [result]).result


def _pointer(source: Any) -> Pointer:
    value = to_mlir(source)
    kind = fly_type(value.type) if isinstance(value, ir.Value) else None
    if isinstance(kind, MemRefType):
        return get_iter(Tensor(value))
    if isinstance(kind, PointerType):
        return Pointer(value)
    raise argument_error(f"the address of {source!r}: it takes a tensor or a pointer", how_to_make.POINTER)


@MlirBuilder
def copy_atom_call_ssa(
    results: Sequence[Any], copy_atom: CopyAtom, src: Any, dst: Any = None, *, pred: Any = None
) -> Any:
    """Execute a copy instruction once on a value.

    With a result type `([type], atom, tensor)` loads and gives the value, 0 where `pred` is false; without,
    `([], atom, value, dst=tensor)` stores it. The value's elements may have another type and width than the tensor's;
    its bits are the instruction's.
    """
    if not isinstance(copy_atom, CopyAtom) or len(results) != (dst is None):
        raise argument_error(
            f"copy_atom_call_ssa {'without' if dst is None else 'with'} a target and with {len(results)} results",
            "([type], atom, tensor) loads, ([], atom, value, dst=tensor) stores",
        )
    moved = src if dst is None else dst
    tensor = moved if isinstance(moved, Tensor) else Tensor(to_mlir(moved))
    pred = as_fly_value(pred)
    if isinstance(pred, ir.Value):  # of i1
        pred = Boolean(pred)
    dtype = _moved_dtype(copy_atom, tensor)
    registers = memref_alloca(algebra.make_layout(copy_atom.type.op.bits // copy_atom.type.value_bits, 1), dtype)
    if dst is None:
        if pred is not None:
            registers.fill(0)
        _copy_atom_call(copy_atom, tensor, registers, pred=pred)
        return _as_type("the result of copy_atom_call_ssa", registers.load().ir_value(), results[0])
    stored = ir.VectorType.get([registers.type.layout.extents], dtype.ir_type)
    registers.store(Vector(_as_type("the value of copy_atom_call_ssa", as_ir_value(src), stored), dtype=dtype))
    return _copy_atom_call(copy_atom, registers, tensor, pred=pred)


def _moved_dtype(atom: CopyAtom, tensor: Tensor) -> Any:
    """The elements of the registers: the tensor's, or integers where the atom's values have another width."""
    bits = atom.type.value_bits
    return tensor.dtype if tensor.type.element_bits == bits else numeric_class(ir.IntegerType.get_signless(bits))


@MlirBuilder
def mma_atom_call_ssa(results: Sequence[Any], atom: MmaAtom, a: Any, b: Any, c: Any) -> Any:
    """Execute a matrix instruction once on a thread's values of A, B and C: D = A B^T + C.

    A and B are vectors or, as in FlyDSL, lists that hold one.
    """
    if not isinstance(atom, MmaAtom):
        raise argument_error(f"mma_atom_call_ssa takes an MMA atom first, not {atom!r}", how_to_make.MMA_ATOM)
    values = {"a": _only(a, "a"), "b": _only(b, "b"), "c": c}
    fragments = [_fragment(atom, name, value) for name, value in values.items()]
    _mma_atom_call(atom, fragments[2], *fragments)
    return _as_type("the result of mma_atom_call_ssa", fragments[2].load().ir_value(), results[0])


@MlirBuilder
def get_scalar(int_tuple: Any) -> Any:
    """The number in a tuple of one leaf, as a value even where it is known at compile time."""
    number = primitive.get_scalar(int_tuple)
    return as_ir_value(number if isinstance(number, ArithValue) else Int32(int(number)))


def _only(operand: Any, name: str) -> Any:
    """The value of an operand that FlyDSL gives as a list."""
    if not isinstance(operand, list | tuple):
        return operand
    if len(operand) != 1:
        raise argument_error(
            f"operand {name} of mma_atom_call_ssa holds {len(operand)} values, not one",
            "set scales on the atom by set_value",
        )
    return operand[0]


def _fragment(atom: MmaAtom, name: str, value: Any) -> Tensor:
    """A thread's values of an operand, in registers."""
    kind = mma_value_type(atom.type.op, name)
    held = kind if isinstance(kind, ir.VectorType) else ir.VectorType.get([1], kind)
    dtype = numeric_class(held.element_type)
    registers = memref_alloca(algebra.make_layout(held.shape[0], 1), dtype)
    registers.store(Vector(_as_type(f"operand {name} of mma_atom_call_ssa", as_ir_value(value), held), dtype=dtype))
    return registers


def _as_type(what: str, value: ir.Value, kind: ir.Type) -> ir.Value:
    """The same bits as a value of another type."""
    if value.type != kind and bits_of(value.type) != bits_of(kind):
        raise argument_error(f"{what} is {value.type}, not {kind}")
    return bitcast(value, kind)


def __getattr__(name: str) -> Any:
    """An operation that `fx` has under the same name, such as `fly.coalesce`. It takes raw values too."""
    found = getattr(primitive, name, None) if name in OPS else None
    if found is None:
        is_known = name in FLYDSL_NAMES["flydsl.expr"]
        text = unsupported(f"{__name__}.{name}") if is_known else f"module {__name__!r} has no attribute {name!r}"
        raise name_error(text)
    return found
