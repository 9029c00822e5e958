"""Result types of operations, and checks of their operands.

Types are fly types where they are fly's, MLIR types otherwise. Everything here raises LayoutError for operands that do
not fit, so that nothing else has to check them again.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from mlir import ir

from flydsl import layout as algebra
from flydsl.atoms import BUFFER
from flydsl.dialect.elements import element_bits, element_type, is_packed, scalar_of, words_of
from flydsl.dialect.leaves import dynamic_leaves, is_static
from flydsl.dialect.types import (
    AnyLayout,
    ComposedLayoutType,
    CoordSwizzleType,
    FlyType,
    IntTupleType,
    LayoutType,
    MemRefType,
    PointerType,
    SwizzleType,
    TileType,
)
from flydsl.errors import LayoutError, how_to_make
from flydsl.layout.leaf import divides

Attributes = Mapping[str, Any]
# Operand types and attributes to result types.
Infer = Callable[[Sequence[Any], Attributes], list[Any]]
# Operand types, stated result types and attributes; raises LayoutError where they do not fit.
Check = Callable[[Sequence[Any], Sequence[Any], Attributes], None]


# --- the layout algebra ----------------------------------------------------------------------------------------------


def mode_arguments(attributes: Attributes) -> list[Any]:
    """The static arguments of an algebra operation (modes, bit widths), in the order of its Python signature.

    FlyDSL names them: `mode` of get, `begin` and `end` of take and group.
    """
    arguments: list[Any] = []
    if "indices" in attributes:
        arguments.append(list(attributes["indices"]))
    for name in ("args", "mode"):
        arguments.extend(attributes.get(name, ()))
    return arguments + [attributes[name] for name in ("begin", "end") if name in attributes]


def algebra_value(fly: Any) -> Any:
    """The value of the layout algebra for an operand of this type."""
    if isinstance(fly, LayoutType | ComposedLayoutType | MemRefType):
        return fly.layout
    if isinstance(fly, SwizzleType | CoordSwizzleType):
        return fly.swizzle
    if isinstance(fly, IntTupleType):
        return fly.value
    if isinstance(fly, TileType):
        return fly.tile
    raise LayoutError(f"{fly} is not an operand of the layout algebra", hint="it takes layouts, tiles and int tuples")


def algebra_type(value: Any, like: Any = None) -> FlyType:
    """The type of an algebra result; a layout derived from a tensor's is a tensor in the same memory."""
    if isinstance(value, AnyLayout) and isinstance(like, MemRefType):
        return like.with_layout(value)
    if isinstance(value, algebra.Layout):
        return LayoutType(value)
    if isinstance(value, algebra.ComposedLayout):
        return ComposedLayoutType(value)
    if isinstance(value, algebra.Tile):
        return TileType(value)
    if isinstance(value, algebra.CoordSwizzle):
        return CoordSwizzleType(value)
    return SwizzleType(value) if isinstance(value, algebra.Swizzle) else IntTupleType(value)


def infer_algebra(function: Callable[..., Any], keeps_tensor: bool) -> Infer:
    """Infer types by calling a function of `flydsl.layout`. keeps_tensor: it makes a tensor from a tensor."""

    def infer(types: Sequence[Any], attributes: Attributes) -> list[Any]:
        arguments = [*map(algebra_value, types), *mode_arguments(attributes)]
        try:
            _signature(function).bind(*arguments)
        except TypeError as error:
            raise LayoutError(f"{function.__name__} takes other attributes: {error}") from None
        return [algebra_type(function(*arguments), types[0] if keeps_tensor else None)]

    return infer


_signature = cache(inspect.signature)


def infer_slice(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """The part of a layout, tuple or tensor that remains when a coordinate fixes some modes."""
    source, coordinate = types
    found = algebra.slice(algebra_value(source), algebra_value(coordinate))
    if isinstance(source, MemRefType):
        _check_bounds(coordinate.value, source.layout.extents, source)
    return [algebra_type(found, source)]


def infer_make_layout(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """The layout of a shape and a stride, without one the compact layout."""
    return [LayoutType(algebra.make_layout(*(operand.value for operand in types)))]


# --- scalars and memory ----------------------------------------------------------------------------------------------


def infer_make_view(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """The tensor of a pointer and a layout."""
    pointer, layout = types
    if algebra.gives_coordinates(layout.layout):
        raise LayoutError(
            f"make_view of {pointer}: {layout.layout} gives coordinates, and elements have indices",
            hint="compose a layout with it: fx.make_composed_layout(fx.make_layout(shape, stride), coordinates)",
        )
    return [MemRefType(pointer.element, pointer.space, layout.layout)]


def leaf_type(leaf: Any) -> ir.Type:
    """The scalar type of a leaf of an int tuple."""
    return element_type("i64" if isinstance(leaf, algebra.Dynamic) and leaf.width == 64 else "i32")


def single_leaf(value: Any) -> Any:
    """A value without the parentheses around a single leaf: `((5))` is 5."""
    while isinstance(value, tuple) and len(value) == 1:
        value = value[0]
    return value


def infer_get_scalar(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """The integer type of a tuple that is one integer."""
    leaf = single_leaf(types[0].value)
    if not isinstance(leaf, int | algebra.Dynamic):
        raise LayoutError(f"get_scalar of {types[0]}: only a single integer is a scalar", hint="take a mode with get")
    return [leaf_type(leaf)]


def infer_leaves(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """The integer type of each leaf, or with `dynamicOnly` of each that is known at run time only."""
    leaves = algebra.flatten((types[0].value,))
    only = str(attributes.get("dynamicOnly", "false")) in ("true", "True", "-1", "1")
    if any(leaf is None or isinstance(leaf, algebra.Basis) for leaf in leaves):
        raise LayoutError(
            f"get_leaves of {types[0]}: only integers are scalars", hint="take the leaves of an int tuple"
        )
    return [leaf_type(leaf) for leaf in leaves if isinstance(leaf, algebra.Dynamic) or not only]


def infer_make_tile(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """The tile of modes that are known at compile time: layouts, and int tuples of one integer or `*`."""
    modes = [single_leaf(kind.value) if isinstance(kind, IntTupleType) else _mode_of(kind) for kind in types]
    if not all(map(is_static, modes)):
        raise LayoutError(
            f"make_tile of {', '.join(map(str, types))}: a tile is known at compile time",
            hint="pass Python ints or fx.Constexpr values",
        )
    return [TileType(algebra.make_tile(*modes))]


def _mode_of(kind: Any) -> algebra.Layout:
    if not isinstance(kind, LayoutType):
        raise LayoutError(
            f"make_tile of {kind}, where a layout or int tuple belongs",
            hint="a tile's mode is an int, None or a layout",
        )
    return kind.layout


def infer_assume(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """The first type, which says more about the value of the second operand than its own."""
    promised, given = types
    _check_promise(promised.value, given.value, f"assume of {given} as {promised}")
    return [promised]


def _check_promise(promised: Any, given: Any, what: str) -> None:
    if isinstance(promised, tuple) and isinstance(given, tuple) and len(promised) == len(given):
        for parts in zip(promised, given, strict=True):
            _check_promise(*parts, what)
    elif isinstance(promised, algebra.Dynamic) and isinstance(given, algebra.Dynamic):
        if promised.width != given.width:
            raise LayoutError(
                f"{what}: integers of {given.width} and {promised.width} bits",
                hint="convert it to the width that is promised",
            )
    elif promised != given:
        raise LayoutError(f"{what}: they differ in more than what divides their numbers")


def infer_print(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """No result. The text has a placeholder `{}` for each operand."""
    text = attributes.get("format")
    if not isinstance(text, str) or text.count("{}") != len(types):
        raise LayoutError(
            f"print of {len(types)} values with the text {text!r}: it has a {{}} for each",
            hint="write as many {} as there are values",
        )
    return []


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
    _check_bounds(coordinate.value, memref.layout.extents, memref)
    return [stored_element(memref.element)]


def _check_bounds(coordinate: Any, shape: Any, memref: MemRefType) -> None:
    """Raise LayoutError if a known coordinate is outside a known extent. It may be nested in another way.

    In a buffer, a mode of one element counts steps of its stride, as in FlyDSL; the descriptor bounds them.
    """
    if isinstance(coordinate, tuple):
        for part, extent in zip(coordinate, shape, strict=True) if _has_modes(shape, len(coordinate)) else ():
            _check_bounds(part, extent, memref)
        return
    extent = algebra.size(shape)
    if memref.space == BUFFER and extent == 1 and isinstance(coordinate, int) and coordinate > 0:
        return
    if isinstance(coordinate, int) and (coordinate < 0 or (isinstance(extent, int) and coordinate >= extent)):
        raise LayoutError(
            f"index {coordinate} is outside of 0 to {extent} (exclusive) in {memref}",
            hint="indices count from 0, and do not count from the end" if coordinate < 0 else "is the tile that large?",
        )


def _has_modes(shape: Any, count: int) -> bool:
    return isinstance(shape, tuple) and len(shape) == count


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


# --- operations that state their result ------------------------------------------------------------------------------


def check_static(types: Sequence[Any], results: Sequence[Any], attributes: Attributes) -> None:
    """`static` names a layout, tile or int tuple that leaves nothing to run time."""
    (result,) = results
    if not is_static(algebra_value(result)):
        raise LayoutError(
            f"static of {result}: parts of it are known at run time only", hint="a runtime value stays an operand"
        )


def check_int_tuple(types: Sequence[Any], results: Sequence[Any], attributes: Attributes) -> None:
    """`make_int_tuple` takes one integer for each dynamic leaf."""
    (result,) = results
    leaves = list(map(leaf_type, dynamic_leaves(result.value)))
    if list(types) != leaves:
        raise LayoutError(f"make_int_tuple of {list(map(str, types))} gives no {result}")


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


def infer_comparison(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """A Boolean: whether each part of a tuple is less than, or equal to, the same part of another one."""
    compared_parts(*(operand.value for operand in types))
    return [element_type("i1")]


def infer_elem_less(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """A Boolean, of tuples of numbers: strides along axes, such as `1E0`, have no order."""
    for left, right in compared_parts(*(operand.value for operand in types)):
        if isinstance(left, algebra.Basis) or isinstance(right, algebra.Basis):
            raise LayoutError(f"{left} and {right} have no order", hint="compare int tuples of one shape")
    return infer_comparison(types, attributes)


def compared_parts(left: Any, right: Any) -> list[tuple[Any, Any]]:
    """The leaves of two tuples in pairs. Raises LayoutError if the tuples do not have the same form."""
    left, right = single_leaf(left), single_leaf(right)
    if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
        return [pair for parts in zip(left, right, strict=True) for pair in compared_parts(*parts)]
    if any(isinstance(part, tuple) or part is None or _is_dynamic_basis(part) for part in (left, right)):
        shown = " and ".join(map(algebra.to_text, (left, right)))
        raise LayoutError(
            f"{shown} have no parts to compare one by one", hint="compare int tuples with int tuples of the same shape"
        )
    return [(left, right)]


def _is_dynamic_basis(leaf: Any) -> bool:
    return isinstance(leaf, algebra.Basis) and not isinstance(leaf.coefficient, int)


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
                f"unsupported: decomposition of {memref}", hint="only layouts can be left off, no swizzle"
            )
    return [memref.with_layout(layout)]


def check_ptr_load(types: Sequence[Any], results: Sequence[Any], attributes: Attributes) -> None:
    """`ptr.load` gives an element, or a vector of elements, of the pointer."""
    _require_elements("ptr.load", results[0], types[0])
