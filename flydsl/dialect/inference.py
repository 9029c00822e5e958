"""What operations give on operand types, and which operands they take.

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
from flydsl.atoms import BufferCopy, MmaOp, TiledCopy, TiledMma
from flydsl.dialect.elements import element_bits, element_type
from flydsl.dialect.types import (
    BUFFER,
    AnyLayout,
    ComposedLayoutType,
    CopyAtomType,
    FlyType,
    IntTupleType,
    LayoutType,
    MemRefType,
    PointerType,
    SwizzleType,
    TiledCopyType,
    TiledMmaType,
    TileType,
    dynamic_leaves,
    is_static,
)
from flydsl.errors import LayoutError
from flydsl.layout.leaf import divides

Attributes = Mapping[str, Any]
# Operand types and attributes to result types.
Infer = Callable[[Sequence[Any], Attributes], list[Any]]
# Operand types, stated result types and attributes; raises LayoutError where they do not fit.
Check = Callable[[Sequence[Any], Sequence[Any], Attributes], None]


# --- the layout algebra ----------------------------------------------------------------------------------------------


def mode_arguments(attributes: Attributes) -> list[Any]:
    """The static arguments of an algebra operation (modes, bit widths), in the order of its Python signature."""
    arguments: list[Any] = []
    if "indices" in attributes:
        arguments.append(list(attributes["indices"]))
    if "args" in attributes:
        arguments.extend(attributes["args"])
    return arguments


def algebra_value(fly: Any) -> Any:
    """What the algebra computes with for an operand of this type."""
    if isinstance(fly, LayoutType | ComposedLayoutType | MemRefType):
        return fly.layout
    if isinstance(fly, SwizzleType):
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
    return IntTupleType(value)


def infer_algebra(function: Callable[..., Any], keeps_tensor: bool) -> Infer:
    """Inference by calling a function of `flydsl.layout`. keeps_tensor: of a tensor it makes a tensor."""

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
    """What is left of a layout, tuple or tensor when a coordinate fixes some modes."""
    source, coordinate = types
    return [algebra_type(algebra.slice(algebra_value(source), algebra_value(coordinate)), source)]


def infer_make_layout(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """The layout of a shape and a stride, without one the compact layout."""
    return [LayoutType(algebra.make_layout(*(operand.value for operand in types)))]


# --- scalars and memory ----------------------------------------------------------------------------------------------


def infer_make_view(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """The tensor of a pointer and a layout."""
    pointer, layout = types
    return [MemRefType(pointer.element, pointer.space, layout.layout)]


def leaf_type(leaf: Any) -> ir.Type:
    """The scalar type of a leaf of an int tuple."""
    return element_type("i64" if isinstance(leaf, algebra.Dynamic) and leaf.width == 64 else "i32")


def infer_get_scalar(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """The integer type of a tuple that is one integer."""
    leaf = types[0].value
    if not isinstance(leaf, int | algebra.Dynamic):
        raise LayoutError(f"get_scalar of {types[0]}: only a single integer is a scalar", hint="take a mode with get")
    return [leaf_type(leaf)]


def infer_add_offset(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """A pointer moved by a number of elements; what is known about the number limits the alignment."""
    pointer, offset = types
    infer_get_scalar([offset], attributes)
    if pointer.alignment is None:
        return [pointer]
    step = offset.value if isinstance(offset.value, int) else offset.value.divisibility
    moved = math.gcd(pointer.alignment, step * element_bits(pointer.element) // 8)
    plain = PointerType(pointer.element, pointer.space)
    return [PointerType(pointer.element, pointer.space, moved) if moved > plain.known_alignment else plain]


# The start of a kernel's dynamic shared memory: bytes, aligned for any use.
DYNAMIC_SHARED = PointerType("i8", "shared", 1024)


def check_recast_iter(types: Sequence[Any], results: Sequence[Any], attributes: Attributes) -> None:
    """`recast_iter` sees the same address as one of other elements; a larger alignment is the author's promise."""
    (source,), (result,) = types, results
    stored_element(result.element)
    if source.space != result.space:
        raise LayoutError(f"recast_iter of {source} to {result}: the address space stays")


def infer_alloca(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """A register tensor; its size must be known."""
    memref = MemRefType(attributes.get("element", ""), "register", types[0].layout)
    stored_element(memref.element)
    register_elements(memref)
    return [memref]


def register_elements(memref: MemRefType) -> int:
    """How many elements a register tensor holds. Raises LayoutError where that is not known when compiling."""
    size = algebra.size(memref.layout)
    if not isinstance(size, int) or not is_static(memref.layout):
        raise LayoutError(
            f"{memref} as a vector: its layout is dynamic", hint="a register vector needs a size known when compiling"
        )
    return size


@cache
def _fills_memory(layout: AnyLayout, size: int) -> bool:
    """Whether a static layout reaches every index from 0 to its size once, so that a vector can stand for it."""
    return {layout(i) for i in range(size)} == set(range(size))


def stored_element(name: str) -> ir.Type:
    """The type of an element in memory. Raises LayoutError for one that shares a byte with others."""
    if name != "i1" and element_bits(name) % 8:
        raise LayoutError(f"tensors of {name} are not there yet", hint="elements below 8 bits: pack them into i8")
    return element_type(name)


def infer_load(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """The element at a coordinate, which must fit the layout."""
    memref, coordinate = types
    _require_addresses(memref)
    algebra.crd2idx(coordinate.value, memref.layout)
    _check_bounds(coordinate.value, memref.layout.shape, memref)
    return [stored_element(memref.element)]


def _check_bounds(coordinate: Any, shape: Any, memref: MemRefType) -> None:
    """Raise LayoutError where a coordinate that is known lies outside of an extent that is known."""
    if isinstance(coordinate, tuple) and isinstance(shape, tuple):
        for part, extent in zip(coordinate, shape, strict=True):
            _check_bounds(part, extent, memref)
        return
    extent = algebra.size(shape)
    if isinstance(coordinate, int) and (coordinate < 0 or (isinstance(extent, int) and coordinate >= extent)):
        raise LayoutError(f"index {coordinate} is outside of 0 to {extent} (exclusive) in {memref}")


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
    _require_same("memref.store", value, element)
    return []


def infer_load_vec(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """A vector of all elements of a register tensor, in the order of its memory."""
    memref = types[0]
    _require_addresses(memref)
    size = register_elements(memref)
    if not _fills_memory(memref.layout, size):
        raise LayoutError(f"{memref} as a vector: its {size} elements do not lie one by one in memory without gaps")
    return [ir.VectorType.get([size], stored_element(memref.element))]


def infer_store_vec(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """No result; the vector must be what load_vec gives."""
    value, memref = types
    _require_same("memref.store_vec", value, infer_load_vec((memref,), attributes)[0])
    return []


def infer_ptr_store(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """No result; the value is an element, or a vector of elements, of the pointer."""
    value, pointer = types
    _require_elements("ptr.store", value, pointer)
    return []


def _require_same(name: str, given: Any, wanted: Any) -> None:
    if given != wanted:
        raise LayoutError(f"{name} of {given} where {wanted} belongs")


def _require_elements(name: str, value: Any, pointer: PointerType) -> None:
    _require_addresses(pointer)
    _require_same(
        name, value.element_type if isinstance(value, ir.VectorType) else value, element_type(pointer.element)
    )


# --- atoms -----------------------------------------------------------------------------------------------------------


def infer_atom_set_value(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """A copy atom with a value that its calls use: `soffset`, elements to add to the address of a buffer."""
    atom, value = types
    field = attributes.get("field")
    if field != "soffset" or not isinstance(atom.op, BufferCopy):
        raise LayoutError(f"{atom} has no value {field!r} to set", hint="a buffer copy has soffset")
    _require_same("atom_set_value", value, element_type("i32"))
    return [atom]


def infer_copy_atom_call(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """No result. Raises LayoutError unless one call of the atom moves exactly the source into the destination."""
    atom, source, target, *predicates = types
    values = atom.op.bits // atom.value_bits
    for role, memref in (("source", source), ("destination", target)):
        where = f"copy_atom_call: {atom} and its {role} {memref}"
        if memref.element_bits != atom.value_bits:
            raise LayoutError(
                f"{where}: the atom copies {atom.value_bits}-bit values, the tensor's are {memref.element}"
            )
        count = algebra.size(memref.layout)
        if count != values:
            raise LayoutError(
                f"{where}: the atom moves {values} values, the tensor has {count}",
                hint=f"partition the tensor so that each thread's piece is {values} values, or take another atom",
            )
        if values > 1 and not _contiguous(memref.layout, values):
            raise LayoutError(
                f"{where}: an atom of {values} values needs them side by side in memory, the layout is {memref.layout}",
                hint="take the atom of one value, or partition along the mode of stride 1",
            )
    if source.element != target.element:
        raise LayoutError(f"copy_atom_call from {source} to {target}: the element types differ")
    _check_spaces(atom, source, target)
    for predicate in predicates:
        _check_predicates(predicate, {1})
    return []


def _check_predicates(memref: MemRefType, counts: set[int]) -> None:
    """One Boolean for each call of a copy, in memory that can be read at once."""
    size = algebra.size(memref.layout)
    if memref.element != "i1" or memref.space == BUFFER or size not in counts:
        raise LayoutError(
            f"pred={memref} of a copy of {' or '.join(map(str, sorted(counts)))} calls",
            hint="a predicate is a register tensor of fx.Boolean with one element for each call",
        )


def _check_spaces(atom: CopyAtomType, source: MemRefType, target: MemRefType) -> None:
    """A buffer copy moves between a buffer tensor and registers; other copies cannot address a buffer."""
    buffers = [memref.space == BUFFER for memref in (source, target)]
    if isinstance(atom.op, BufferCopy) and {source.space, target.space} != {BUFFER, "register"}:
        raise LayoutError(
            f"{atom} from {source} to {target}: it copies between a buffer tensor and registers",
            hint="make the buffer tensor with fx.rocdl.make_buffer_tensor(tensor)",
        )
    if any(buffers) and not isinstance(atom.op, BufferCopy):
        raise LayoutError(
            f"{atom} from {source} to {target}: it cannot address a buffer tensor",
            hint="take fx.rocdl.BufferCopy32b() or another width",
        )


def _contiguous(layout: AnyLayout, values: int) -> bool:
    """Whether the values of a layout lie side by side.

    A swizzle moves blocks of 2**base elements; values of an aligned part of one stay together.
    """
    if isinstance(layout, algebra.ComposedLayout):
        block = 1 << layout.inner.base if isinstance(layout.inner, algebra.Swizzle) else 1
        return divides(values, block) and divides(values, layout.offset) and _contiguous(layout.outer, values)
    merged = algebra.coalesce(layout)
    return algebra.rank(merged) == 1 and all(stride == 1 for stride in algebra.get_leaves((merged.stride,)))


def infer_make_tiled_copy(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """A tiled copy; the values of one thread must be a whole number of the atom's."""
    atom, layout, tile = types
    return [TiledCopyType(TiledCopy(atom.op, atom.value_bits, layout.layout, tile.tile))]


def partitioned(copy: TiledCopy, thread: Any, layout: AnyLayout) -> tuple[AnyLayout, Any]:
    """One thread's part of a layout, ((values of a call, calls), rest...), and the offset of its first element."""
    parts = on_plain_layout(copy.partition, layout)
    return algebra.slice_and_offset((thread, *[None] * (algebra.rank(parts) - 1)), parts)


def infer_partition(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """The part of a tensor that a thread copies."""
    copy, memref, thread = types
    infer_get_scalar([thread], attributes)
    if memref.element_bits != copy.copy.value_bits:
        raise LayoutError(
            f"partition of {memref}: the copy {copy.atom} is of {copy.copy.value_bits}-bit values",
            hint="make the copy atom for the tensor's element type",
        )
    return [memref.with_layout(partitioned(copy.copy, thread.value, memref.layout)[0])]


def infer_make_fragment_like(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """A register tensor of the same shape, compact: mode 0 first, the others in the order of the tensor's strides."""
    memref = types[0]
    return _fragment("make_fragment_like", memref.layout, attributes.get("element", memref.element))


def _fragment(operation: str, layout: AnyLayout, element: str) -> list[Any]:
    plain = layout.outer if isinstance(layout, algebra.ComposedLayout) else layout
    if not is_static(plain.shape):
        raise LayoutError(f"{operation} of {layout}: registers need a shape known when compiling")
    return infer_alloca([LayoutType(algebra.make_fragment_layout_like(plain))], {"element": element})


def infer_copy(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """No result. Raises LayoutError unless both tensors have one shape, of whole calls of the atom."""
    atom, source, target, *predicates = types
    sizes = [algebra.size(memref.layout) for memref in (source, target)]
    if not is_static(tuple(sizes)) or sizes[0] != sizes[1]:
        raise LayoutError(
            f"copy from {source} to {target}: {sizes[0]} and {sizes[1]} elements",
            hint="partition both with the same tiled copy",
        )
    calls = [memref.with_layout(algebra.get(call_of(atom, memref.layout), 0)) for memref in (source, target)]
    for predicate in predicates:
        _check_predicates(predicate, set(predicate_counts(atom, source.layout)))
    return infer_copy_atom_call([atom, *calls], attributes)


def predicate_counts(atom: CopyAtomType, layout: AnyLayout) -> tuple[int, int]:
    """How many predicates a copy takes: one for each call, or one for all calls of mode 0."""
    total = algebra.size(layout) * atom.value_bits // atom.op.bits
    in_mode_0 = algebra.size(algebra.get(layout, 0)) * atom.value_bits // atom.op.bits
    return total, total // max(in_mode_0, 1)


def call_of(atom: CopyAtomType, layout: AnyLayout) -> AnyLayout:
    """A layout as (values of one call of the atom, calls). Raises LayoutError where they do not come out even."""
    return algebra.logical_divide(layout, atom.op.bits // atom.value_bits)


def on_plain_layout(function: Callable[[algebra.Layout], algebra.Layout], layout: AnyLayout) -> AnyLayout:
    """Apply a rearrangement of coordinates to a layout, or to the outer part of a composed one."""
    if isinstance(layout, algebra.ComposedLayout):
        return algebra.make_composed_layout(layout.inner, layout.offset, function(layout.outer))
    return function(layout)


def infer_retile(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """A fragment in the form that a tiled copy moves, over the same registers."""
    copy, memref = types
    if memref.element_bits != copy.copy.value_bits:
        raise LayoutError(f"retile of {memref}: the copy {copy.atom} is of {copy.copy.value_bits}-bit values")
    return [memref.with_layout(on_plain_layout(copy.copy.retile, memref.layout))]


# --- matrix instructions ---------------------------------------------------------------------------------------------


def infer_make_tiled_mma(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """A tiled MMA; its atoms must tile it."""
    atom, layout, *tiles = types
    return [TiledMmaType(TiledMma(atom.op, layout.layout, tiles[0].tile if tiles else None))]


def _operand_id(attributes: Attributes) -> str:
    operand = attributes.get("operand")
    if operand not in ("a", "b", "c"):
        raise LayoutError(f"operand {operand!r} of an MMA", hint="operands: a, b, c")
    return str(operand)


def mma_partitioned(mma: TiledMma, operand: str, thread: Any, layout: AnyLayout) -> tuple[AnyLayout, Any]:
    """One thread's part of an operand's layout, (values, calls...), and the offset of its first element."""
    parts = on_plain_layout(lambda plain: mma.partition(operand, plain), layout)
    return algebra.slice_and_offset((thread, *[None] * (algebra.rank(parts) - 1)), parts)


def infer_mma_partition(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """The part of an operand that a thread multiplies."""
    mma, memref, thread = types
    infer_get_scalar([thread], attributes)
    return [memref.with_layout(mma_partitioned(mma.mma, _operand_id(attributes), thread.value, memref.layout)[0])]


def infer_mma_make_fragment(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """Registers for the part of an operand that a thread multiplies, of the instruction's element type.

    With the attribute `stages` they are there as many times, in a last mode.
    """
    mma, memref = types
    operand = _operand_id(attributes)
    part = mma_partitioned(mma.mma, operand, 0, memref.layout)[0]
    (fragment,) = _fragment("make_fragment", part, mma.mma.op.element_of(operand))
    stages = attributes.get("stages")
    if stages is None:
        return [fragment]
    if stages < 1:
        raise LayoutError(f"a fragment of {stages} stages")
    return [
        fragment.with_layout(algebra.append(fragment.layout, algebra.Layout(stages, algebra.cosize(fragment.layout))))
    ]


def infer_mma_atom_call(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """No result. Raises LayoutError unless one call of the atom multiplies exactly these fragments."""
    atom, *fragments = types
    for role, operand, memref in zip("DABC", "cabc", fragments, strict=True):
        where = f"{atom} and its operand {role}, {memref}"
        wanted = atom.op.element_of(operand)
        if memref.element != wanted:
            raise LayoutError(
                f"{where}: the instruction takes {wanted}, not {memref.element}",
                hint="make the fragment with make_fragment_A, _B or _C, and convert values before they go into it",
            )
        if memref.space != "register":
            raise LayoutError(f"{where}: a matrix instruction multiplies registers", hint="copy it to a fragment")
        values = algebra.size(algebra.get(atom.op.layout_tv(operand), 1))
        count = algebra.size(memref.layout)
        if count != values:
            raise LayoutError(
                f"{where}: a thread holds {values} values of it, in {atom.op.layout_tv(operand)}; this has {count}",
                hint="make the fragment with make_fragment_A, _B or _C",
            )
        if values > 1 and not _contiguous(memref.layout, values):
            raise LayoutError(f"{where}: its {values} values do not lie side by side, in {memref.layout}")
    return []


def infer_gemm(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """No result. Raises LayoutError unless D, A, B, C are (values, M, N), (values, M, K), (values, N, K), (values, M, N).

    Modes M, N and K may be missing together, or K alone.
    """
    mma, *fragments = types
    atom = mma.atom if isinstance(mma, TiledMmaType) else mma
    gemm_extents([memref.layout for memref in fragments], [str(memref) for memref in fragments])
    calls = [memref.with_layout(algebra.get(gemm_modes(memref.layout), 0)) for memref in fragments]
    if attributes.get("order", "KMN") not in TRAVERSAL_ORDERS:
        raise LayoutError(f"a gemm in the order {attributes['order']!r}", hint=f"orders: {', '.join(TRAVERSAL_ORDERS)}")
    return infer_mma_atom_call([atom, *calls], attributes)


# Outermost mode first; in a serpentine order the innermost loop turns around each time.
TRAVERSAL_ORDERS = tuple(
    order + turning for turning in ("", "_SERPENTINE") for order in ("KMN", "KNM", "MKN", "MNK", "NKM", "NMK")
)


def gemm_modes(layout: AnyLayout) -> AnyLayout:
    """A fragment's layout with its three modes, those that are missing of extent 1."""
    if not isinstance(layout.shape, tuple):
        layout = algebra.make_layout((layout.shape,), (layout.stride,))
    while algebra.rank(layout) < 3:
        layout = algebra.append(layout, algebra.Layout(1, 0))
    return layout


def gemm_extents(layouts: Sequence[AnyLayout], shown: Sequence[str]) -> tuple[int, int, int]:
    """The numbers of calls along M, N and K. Raises LayoutError where D, A, B and C disagree about them."""
    if any(algebra.rank(layout) > 3 for layout in layouts):
        raise LayoutError(f"gemm of D {shown[0]}, A {shown[1]}, B {shown[2]}, C {shown[3]}: a fragment has 3 modes")
    d, a, b, c = ([algebra.size(mode) for mode in list(gemm_modes(layout))[1:]] for layout in layouts)
    if not (d == c and a[0] == c[0] and b[0] == c[1] and a[1] == b[1]):
        raise LayoutError(
            f"gemm of D {shown[0]}, A {shown[1]}, B {shown[2]}, C {shown[3]}: they do not fit together",
            hint="shapes: D and C (values, M, N), A (values, M, K), B (values, N, K)",
        )
    return a[0], b[0], a[1]


def infer_mma_atom_call_ssa(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """The result of a matrix instruction on values."""
    atom, *operands = types
    for operand, given in zip("abc", operands, strict=True):
        _require_same(f"operand {operand} of mma_atom_call_ssa", given, mma_value_type(atom.op, operand))
    return [mma_value_type(atom.op, "c")]


def mma_value_type(op: MmaOp, operand: str) -> ir.Type:
    """What a thread holds of an operand: a vector, or a scalar where it is one value."""
    values = algebra.size(algebra.get(op.layout_tv(operand), 1))
    element = element_type(op.element_of(operand))
    return element if values == 1 else ir.VectorType.get([values], element)


# --- operations that state their result ------------------------------------------------------------------------------


def check_static(types: Sequence[Any], results: Sequence[Any], attributes: Attributes) -> None:
    """`static` names a layout, tile or int tuple that leaves nothing to run time."""
    (result,) = results
    if not is_static(algebra_value(result)):
        raise LayoutError(f"static of {result}: parts of it are known at run time only")


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
        allocated_elements(attributes)


def allocated_elements(attributes: Attributes) -> int:
    """How many elements `make_ptr` allocates: `{dictAttrs = {allocSize = 4 : i64}}`."""
    given = attributes.get("dictAttrs")
    size = given["allocSize"] if isinstance(given, ir.DictAttr) and "allocSize" in given else None
    if not isinstance(size, ir.IntegerAttr) or size.value < 1:
        raise LayoutError("make_ptr to registers states {dictAttrs = {allocSize = <number of elements>}}")
    return int(size.value)


def check_ptr_load(types: Sequence[Any], results: Sequence[Any], attributes: Attributes) -> None:
    """`ptr.load` gives an element, or a vector of elements, of the pointer."""
    _require_elements("ptr.load", results[0], types[0])


def check_make_copy_atom(types: Sequence[Any], results: Sequence[Any], attributes: Attributes) -> None:
    """The attribute repeats the width that the type states."""
    (result,) = results
    if attributes.get("valBits") != result.value_bits:
        raise LayoutError(f"make_copy_atom of {result} with valBits = {attributes.get('valBits')}")


def check_make_mma_atom(types: Sequence[Any], results: Sequence[Any], attributes: Attributes) -> None:
    """The type says it all."""


def check_copy_atom_call_ssa(types: Sequence[Any], results: Sequence[Any], attributes: Attributes) -> None:
    """A load `(atom, source) -> vector` or a store `(atom, vector, destination)`."""
    atom = types[0]
    memref = types[-1]
    vector = results[0] if results else types[1]
    if not isinstance(atom, CopyAtomType) or not isinstance(memref, MemRefType) or len(types) + len(results) != 3:
        raise LayoutError(f"copy_atom_call_ssa of {', '.join(map(str, types))}")
    values = atom.op.bits // atom.value_bits
    _require_same("copy_atom_call_ssa", vector, ir.VectorType.get([values], element_type(memref.element)))
