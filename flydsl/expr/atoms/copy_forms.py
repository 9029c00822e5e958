"""FlyDSL's copies between tensors of different types or shapes: the instruction moves bits.

- Elements of one width may differ in type: i8 to fp8, i32 to f32. Two types of floats may not: the bits of a bf16 are
  another number as f16.
- If the registers fill exactly one instruction, the memory may be given by its first element: `4:1` of i32 and `1:0`
  of bf16 with an instruction of 128 bits.

The memory is then viewed as elements of the registers' type. Other differences are a LayoutError.
"""

from __future__ import annotations

from typing import Any

from flydsl import layout as algebra
from flydsl.dialect.elements import is_float, memory_bits, value_name
from flydsl.dialect.leaves import is_static
from flydsl.dialect.types import CopyAtomType, MemRefType
from flydsl.errors import LayoutError
from flydsl.errors.places import user_location
from flydsl.expr.memory.tensors import Tensor, get_iter, make_view, recast_iter
from flydsl.expr.numeric import numeric_class


def as_moved(atom: CopyAtomType, source: Tensor, target: Tensor) -> tuple[CopyAtomType, Tensor, Tensor]:
    """The instruction and the tensors, converted to one element type and shape if possible."""
    if atom.op.passes_registers:
        return _into_lds(atom, source, target)
    if (source.type.space == "register") == (target.type.space == "register"):
        return atom, source, target
    registers, memory = (source, target) if source.type.space == "register" else (target, source)
    held, seen = registers.type, memory.type
    bits = memory_bits(held.element)
    is_alike = value_name(held.element) == value_name(seen.element)
    if not is_alike and memory_bits(seen.element) == bits and is_float(held.element) and is_float(seen.element):
        raise LayoutError(
            f"copy: the source has elements {source.type.element}, the destination {target.type.element}",
            at=user_location(),
            hint="convert in registers: fragment.store(other.load().to(fx.Float16)), and copy fragments of one type",
        )
    if _size(seen) == 1 and _size(held) * bits == atom.op.bits and not (is_alike and _size(held) == 1):
        atom, layout = CopyAtomType(atom.op, bits), algebra.make_layout(_size(held), 1)
    elif not is_alike and memory_bits(seen.element) == bits:
        layout = memory.layout
    else:
        return atom, source, target
    moved = _recast(memory, held.element, layout)
    return (atom, source, moved) if memory is target else (atom, moved, target)


def _into_lds(atom: CopyAtomType, source: Tensor, target: Tensor) -> tuple[CopyAtomType, Tensor, Tensor]:
    bits = memory_bits(source.type.element)
    if atom.value_bits == bits or _size(source.type) != 1 or _size(target.type) != 1:
        return atom, source, target
    layout = algebra.make_layout(atom.op.bits // bits, 1)
    views = [_recast(tensor, source.type.element, layout) for tensor in (source, target)]
    return CopyAtomType(atom.op, bits), views[0], views[1]


def _size(kind: MemRefType) -> int:
    """The number of elements, or 0 if it is not known at compile time."""
    size = algebra.size(kind.layout)
    return size if is_static(size) and isinstance(size, int) else 0


def _recast(tensor: Tensor, element: str, layout: Any) -> Tensor:
    """A tensor's memory viewed as elements of another type."""
    pointer = get_iter(tensor)
    if value_name(tensor.type.element) != value_name(element):
        pointer = recast_iter(numeric_class(element), pointer)
    return make_view(pointer, layout)
