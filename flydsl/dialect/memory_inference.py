"""Result types of the operations on pointers, tensors and their elements, and checks of their operands.

As in `inference`, everything here raises LayoutError for operands that do not fit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

from mlir import ir

from flydsl import layout as algebra
from flydsl.atoms import BUFFER
from flydsl.dialect.elements import element_bits, element_type, is_packed, scalar_of, words_of
from flydsl.dialect.inference import Attributes, check_bounds, infer_get_scalar
from flydsl.dialect.leaves import is_static
from flydsl.dialect.types import AnyLayout, LayoutType, MemRefType, PointerType
from flydsl.errors import LayoutError, how_to_make
from flydsl.layout.leaf import divides


def infer_make_view(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """The tensor of a pointer and a layout."""
    pointer, layout = types
    if algebra.gives_coordinates(layout.layout):
        raise LayoutError(
            f"make_view of {pointer}: {layout.layout} gives coordinates, and elements have indices",
            hint="compose a layout with it: fx.make_composed_layout(fx.make_layout(shape, stride), coordinates)",
        )
    return [MemRefType(pointer.element, pointer.space, layout.layout)]


def check_inttoptr(types: Sequence[Any], results: Sequence[Any], attributes: Attributes) -> None:
    """`inttoptr` takes an address as `ptrtoint` gives it."""
    (pointer,) = results
    require_same(f"inttoptr to {pointer}", types[0], infer_ptrtoint((pointer,), attributes)[0])


def infer_ptrtoint(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """An address in bytes: 32 bits in shared memory and registers, else 64."""
    (pointer,) = types
    if pointer.space == BUFFER:
        raise LayoutError(
            f"{pointer} has no address in bytes",
            hint="registers and buffers have none: take it of global or shared memory",
        )
    return [element_type("i32" if pointer.space in ("shared", "register") else "i64")]


def infer_add_offset(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """A pointer moved by a number of elements; what is known about the number limits the alignment."""
    pointer, offset = types
    infer_get_scalar([offset], attributes)
    if is_packed(pointer.element):
        raise LayoutError(
            f"unsupported: add_offset of {pointer}, whose elements share bytes",
            hint="move the pointer first, in whole bytes, and then recast it: fx.recast_iter(dtype, pointer)",
        )
    if pointer.alignment is None:
        return [pointer]
    if isinstance(offset.value, tuple):
        raise LayoutError(f"{pointer} moved by {offset.value}", hint="an offset is one integer, in elements")
    step = offset.value if isinstance(offset.value, int) else offset.value.divisibility
    moved = math.gcd(pointer.alignment, step * pointer.element_bits // 8)
    return [pointer.aligned(moved)]


# The start of a kernel's dynamic shared memory: bytes, aligned for any use.
DYNAMIC_SHARED = PointerType("i8", "shared", 1024)


def check_recast_iter(types: Sequence[Any], results: Sequence[Any], attributes: Attributes) -> None:
    """`recast_iter` sees the same address as one of other elements; a larger alignment is the author's promise."""
    (source,), (result,) = types, results
    _element_in_memory(result.element)
    if source.space != result.space:
        raise LayoutError(
            f"recast_iter of {source} to {result}: the address space stays", hint="change the element type only"
        )


def infer_alloca(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """A register tensor; its size must be known."""
    if not isinstance(types[0], LayoutType):
        raise LayoutError(f"a register tensor with {types[0]}, where a layout belongs", hint=how_to_make.LAYOUT)
    memref = MemRefType(attributes.get("element", ""), "register", types[0].layout)
    _check_alloca(memref)
    return [memref]


def check_alloca(types: Sequence[Any], results: Sequence[Any], attributes: Attributes) -> None:
    """`memref.alloca` states the register tensor, which has the operand's layout."""
    (result,) = results
    if result.space != "register" or result.layout != types[0].layout:
        raise LayoutError(f"memref.alloca of {types[0]} gives no {result}")
    _check_alloca(result)


def _check_alloca(memref: MemRefType) -> None:
    _element_in_memory(memref.element)
    register_elements(memref)
    reached = algebra.cosize(memref.layout)
    assert isinstance(reached, int), "the layout is static"
    _require_words(memref, reached)
    _require_room(memref, reached)


# A thread has 512 registers of 4 bytes; somewhat more is spilled, and much more takes LLVM minutes.
_LARGEST_REGISTER_TENSOR_BYTES = 16384


def _require_room(kind: MemRefType | PointerType, elements: int) -> None:
    size = elements * kind.element_bits // 8
    if size > _LARGEST_REGISTER_TENSOR_BYTES:
        raise LayoutError(
            f"{kind} takes {size} bytes of registers in each thread; at most {_LARGEST_REGISTER_TENSOR_BYTES}",
            hint="a thread has 512 registers of 4 bytes; keep more than that in shared or global memory",
        )


def register_elements(memref: MemRefType) -> int:
    """The number of elements in a register tensor. Raises LayoutError if it is not known at compile time."""
    size = algebra.size(memref.layout)
    if not isinstance(size, int) or not is_static(memref.layout):
        raise LayoutError(
            f"{memref} as a vector: its layout is dynamic",
            hint="make the size known at compile time",
        )
    return size


@cache
def vector_pieces(layout: AnyLayout) -> tuple[int, tuple[int, ...]]:
    """The contiguous pieces of a static layout: elements of a piece, and the index of each.

    Pieces are in the order of the coordinates, the leftmost mode fastest.

    >>> vector_pieces(algebra.Layout((3, 2), (1, 16))), vector_pieces(algebra.Layout((4, 2), (1, 4)))
    ((3, (0, 16)), (8, (0,)))
    """
    size, width = algebra.size(layout), 1
    assert isinstance(size, int), "the layout is static"
    if isinstance(layout, algebra.Layout):
        extents, strides = layout.flat_modes()
        if strides and strides[0] == 1 and isinstance(extents[0], int):
            width = extents[0]
    return width, tuple(layout(i) for i in range(0, size, width))


def stored_element(name: str) -> ir.Type:
    """The type of an element that is read or written by itself. Raises LayoutError if it shares a byte with others."""
    if is_packed(name):
        raise LayoutError(
            f"an element of {name} shares a byte with others, and cannot be read or written by itself",
            hint="load() or store() all elements of a register tensor, or copy whole words",
        )
    return _element_in_memory(name)


def _element_in_memory(name: str) -> ir.Type:
    if name != "i1" and element_bits(name) % 8 and not is_packed(name):
        raise LayoutError(f"unsupported: tensors of {name}", hint="pack elements below 8 bits into i8")
    return element_type(name)


def _require_words(memref: MemRefType, elements: int) -> None:
    """Raise LayoutError if elements below 8 bits do not fill whole words."""
    if is_packed(memref.element) and elements % words_of(memref.element)[0]:
        raise LayoutError(
            f"{elements} elements of {memref} do not fill words of 32 bits, by which such elements are held and moved",
            hint=f"take a multiple of {words_of(memref.element)[0]} elements, side by side",
        )


def require_whole_words(element: str, offset: Any) -> None:
    """Raise LayoutError if elements below 8 bits that begin at an offset may begin within a word of 32 bits."""
    if is_packed(element) and not divides(words_of(element)[0], offset):
        raise LayoutError(
            f"elements of {element} that begin {algebra.to_text(offset)} elements from the start of a tensor, which is "
            "not known to be whole words",
            hint=f"take parts that begin at multiples of {words_of(element)[0]} elements",
        )


def infer_load(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """The element at a coordinate, which must fit the layout."""
    memref, coordinate = types
    _require_addresses(memref)
    algebra.crd2idx(coordinate.value, memref.layout)
    check_bounds(coordinate.value, memref.layout.extents, memref)
    return [stored_element(memref.element)]


def _require_addresses(kind: MemRefType | PointerType) -> None:
    """A buffer has no address that a plain load or store could use."""
    if kind.space == BUFFER:
        raise LayoutError(
            f"a load or store of {kind}: buffer tensors are read and written by copies",
            hint="fx.copy it to a register tensor",
        )


def infer_store(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """No result; the value must be an element of the tensor."""
    value, memref, coordinate = types
    (element,) = infer_load((memref, coordinate), attributes)
    require_same("memref.store", value, element)
    return []


def infer_load_vec(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """A vector of all elements of a register tensor, in the order of its coordinates."""
    memref = types[0]
    _require_addresses(memref)
    elements = register_elements(memref)
    _require_words(memref, vector_pieces(memref.layout)[0])
    return [ir.VectorType.get([elements], _element_in_memory(memref.element))]


def infer_store_vec(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """No result; the vector must be what load_vec gives. No two elements may be at one place."""
    value, memref = types
    require_same("memref.store_vec", value, infer_load_vec((memref,), attributes)[0])
    size = register_elements(memref)
    if size > len({memref.layout(i) for i in range(size)}):
        raise LayoutError(
            f"a store of a vector to {memref}: several of its elements are at one place",
            hint="store to a layout without strides of 0",
        )
    return []


def infer_ptr_store(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """No result; the value is an element, or a vector of elements, of the pointer."""
    value, pointer = types
    _require_elements("ptr.store", value, pointer)
    return []


def require_same(name: str, given: Any, wanted: Any) -> None:
    """Raise LayoutError unless an operand or result has the expected type."""
    if given != wanted:
        raise LayoutError(
            f"{name} of {given} where {wanted} belongs",
            hint="convert it first: value.to(fx.Float32); its shape is that of the tensor",
        )


def _require_elements(name: str, value: Any, pointer: PointerType) -> None:
    _require_addresses(pointer)
    stored_element(pointer.element)
    require_same(name, scalar_of(value), element_type(pointer.element))


def check_make_ptr(types: Sequence[Any], results: Sequence[Any], attributes: Attributes) -> None:
    """A pointer to registers states how many elements to allocate."""
    (result,) = results
    stored_element(result.element)
    if result.space == "register":
        _require_room(result, allocated_elements(attributes))


def allocated_elements(attributes: Attributes) -> int:
    """The number of elements that `make_ptr` allocates: `{dictAttrs = {allocSize = 4 : i64}}`."""
    given = attributes.get("dictAttrs")
    names = ("allocSize", "allocaSize")  # the latter in later versions of FlyDSL
    size = next((given[name] for name in names if name in given), None) if isinstance(given, ir.DictAttr) else None
    if not isinstance(size, ir.IntegerAttr) or size.value < 1:
        raise LayoutError(
            "make_ptr to registers states {dictAttrs = {allocSize = <number of elements>}}",
            hint="fx.make_rmem_tensor(shape, dtype) does so",
        )
    return int(size.value)


def infer_decomposition(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """The tensor of the layout that a composed layout applies first, without the functions after it.

    Those move the pointer to what they give for its first element; a swizzle cannot be left off so.
    """
    (memref,) = types
    layout = memref.layout
    while isinstance(layout, algebra.ComposedLayout):
        inner, _, layout = algebra.composed_parts(layout)
        if isinstance(inner, algebra.Swizzle | algebra.CoordSwizzle):
            raise LayoutError(
                f"unsupported: decomposition of {memref}", hint="only layouts can be omitted, not swizzles"
            )
    return [memref.with_layout(layout)]


def check_ptr_load(types: Sequence[Any], results: Sequence[Any], attributes: Attributes) -> None:
    """`ptr.load` gives an element, or a vector of elements, of the pointer."""
    _require_elements("ptr.load", results[0], types[0])
