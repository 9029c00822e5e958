"""Loads and stores of vectors from and to tensors and MLIR memrefs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir import ir

from flydsl import layout as algebra
from flydsl.dialect.elements import element_type
from flydsl.dialect.location import argument_error
from flydsl.errors import how_to_make
from flydsl.expr.atoms.copies import UniversalCopy, copy_atom_call, make_copy_atom
from flydsl.expr.layouts.algebra import crd2idx
from flydsl.expr.memory.tensors import Tensor, add_offset, get_iter, make_view, memref_alloca
from flydsl.expr.numbers.vector_value import Vector, VectorMemory
from flydsl.expr.numeric import Index, numeric_class
from flydsl.expr.tracing.emit import emit
from flydsl.expr.tracing.operands import as_fly_value

_WIDEST_COPY_BITS = 128


def load(
    result_type: Any, memref: Any, indices: Sequence[Any], alignment: int | None = None, nontemporal: bool | None = None
) -> Vector:
    """Read a vector. result_type: an MLIR vector type."""
    if not isinstance(result_type, ir.VectorType):
        raise argument_error(
            f"the result of a vector load must be an MLIR vector type, got {result_type!r}",
            "pass T.vec(4, T.f32), for example",
        )
    memref = as_fly_value(memref)
    if not isinstance(memref, Tensor):
        operands = [_memref(memref), *_positions(indices)]
        return Vector(emit("vector.load", operands, [result_type], _access(alignment, nontemporal)).result)
    dtype = numeric_class(result_type.element_type)
    if dtype.ir_type != memref.dtype.ir_type:
        raise argument_error(
            f"a tensor of {memref.type.element} cannot be loaded as {result_type}",
            "load the type of its elements, and convert the vector",
        )
    count = result_type.shape[0]
    registers = memref_alloca(algebra.make_layout(count, 1), memref.dtype)
    for atom, registers_part, tensor_part in _parts(registers, memref, indices, count):
        copy_atom_call(atom, tensor_part, registers_part)
    return registers.load()


def store(
    vector: Vector, memref: Any, indices: Sequence[Any], alignment: int | None, nontemporal: bool | None = None
) -> None:
    """Write a vector."""
    memref = as_fly_value(memref)
    if not isinstance(memref, Tensor):
        emit("vector.store", [vector.value, _memref(memref), *_positions(indices)], [], _access(alignment, nontemporal))
        return
    if vector.dtype.ir_type != memref.dtype.ir_type:
        raise argument_error(
            f"a tensor of {memref.type.element} cannot hold {vector.value.type}",
            f"convert it with .to(fx.{memref.dtype.__name__})",
        )
    registers = memref_alloca(algebra.make_layout(vector.numel, 1), memref.dtype)
    registers.store(vector)
    for atom, registers_part, tensor_part in _parts(registers, memref, indices, vector.numel):
        copy_atom_call(atom, registers_part, tensor_part)


def _access(alignment: int | None, nontemporal: bool | None) -> dict[str, ir.Attribute]:
    """The attributes of an access of a memref."""
    hints: dict[str, ir.Attribute] = {"nontemporal": ir.BoolAttr.get(True)} if nontemporal else {}
    if alignment is None:
        return hints
    if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
        raise argument_error(f"an alignment must be a power of two, got {alignment!r} bytes", "pass 16, for example")
    return {"alignment": ir.IntegerAttr.get(element_type("i64"), alignment), **hints}


def _memref(memref: Any) -> ir.Value:
    if isinstance(memref, ir.Value) and isinstance(memref.type, ir.MemRefType):
        return memref
    raise argument_error(f"the memory of a vector must be a tensor or a memref, got {memref!r}", how_to_make.TENSOR)


def _positions(indices: Sequence[Any]) -> list[ir.Value]:
    return [Index.exactly(index).ir_value() for index in indices]


def _parts(registers: Tensor, tensor: Tensor, indices: Sequence[Any], count: int) -> list[tuple[Any, Tensor, Tensor]]:
    """The (copy atom, part of the registers, part of the tensor) of each copy that a vector needs."""
    _require_contiguous(tensor)
    coordinate = tuple(indices) if isinstance(indices, tuple | list) else (indices,)
    start = add_offset(get_iter(tensor), crd2idx(coordinate if len(coordinate) > 1 else coordinate[0], tensor.layout))
    source = get_iter(registers)
    parts, done, width = [], 0, tensor.dtype.width
    while done < count:
        size = _copy_size(count - done, width)
        layout = algebra.make_layout(size, 1)
        pieces = [make_view(add_offset(p, done) if done else p, layout) for p in (source, start)]
        atom = make_copy_atom(UniversalCopy(size * width), tensor.dtype)
        parts.append((atom, *pieces))
        done += size
    return parts


def _copy_size(left: int, width: int) -> int:
    """Number of elements of the widest copy of at most `left` elements."""
    size = 1
    while size * 2 <= left and size * 2 * width <= _WIDEST_COPY_BITS:
        size *= 2
    return size


def _require_contiguous(tensor: Tensor) -> None:
    layout = tensor.type.layout
    stride = layout.strides if isinstance(layout, algebra.Layout) else None
    last = stride[-1] if isinstance(stride, tuple) else stride
    if not (isinstance(last, int) and last == 1):
        raise argument_error(
            f"the last mode of a tensor must have stride 1 for vectors, got {last} in {tensor!r}",
            "copy with fx.copy and a tiled copy",
        )


Vector.memory = VectorMemory(load, store)
