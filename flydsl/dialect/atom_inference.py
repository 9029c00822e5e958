"""Result types of the operations on copy and matrix instructions, and checks of their operands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from math import prod
from typing import Any

from mlir import ir

from flydsl import layout as algebra
from flydsl.atoms import BUFFER, MmaOp, TiledCopy, TiledMma
from flydsl.dialect.elements import element_bits, element_type, value_name
from flydsl.dialect.gemm_traversal import DEFAULT_ORDER, TRAVERSAL_ORDERS
from flydsl.dialect.inference import Attributes, infer_get_scalar
from flydsl.dialect.leaves import is_static
from flydsl.dialect.memory_inference import infer_alloca, require_same
from flydsl.dialect.types import (
    AnyLayout,
    CopyAtomType,
    IntTupleType,
    LayoutType,
    MemRefType,
    MmaAtomType,
    TiledCopyType,
    TiledMmaType,
)
from flydsl.errors import LayoutError
from flydsl.layout.adjacency import begins_aligned, is_adjacent

_BYTE = 8


def infer_atom_set_value(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """An atom with a value that its calls use: a copy's `soffset`, elements to add to the address of a buffer, or the
    scales of a matrix instruction.
    """
    atom, value = types
    check_value(atom, attributes.get("field"))
    require_same("atom.set_value", value, element_type("i32"))
    return [atom]


def check_value(atom: CopyAtomType | MmaAtomType, field: Any) -> None:
    """Raise LayoutError unless the calls of an atom use a value of this name."""
    if field in atom.op.value_names:
        return
    known = f"it has {', '.join(atom.op.value_names)}" if atom.op.value_names else "a buffer copy has soffset"
    raise LayoutError(f"{atom} has no value {field!r} to set", hint=known)


def infer_copy_atom_call(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """No result. Raises LayoutError unless one call of the atom moves exactly the source into the destination."""
    atom, source, target, *predicates = types
    values = atom.op.bits // atom.value_bits
    types_of = partial(_with_types, atom=atom, source=source, destination=target)
    for role, memref in (("source", source), ("destination", target)):
        if memref.element_bits != atom.value_bits:
            raise LayoutError(
                types_of(f"the atom copies {atom.value_bits}-bit values, the {role} has {memref.element}"),
                hint="make the atom with the tensor's element type: fx.make_copy_atom(op, tensor.element_type)",
            )
        count = algebra.size(memref.layout)
        if count != values:
            raise LayoutError(
                types_of(f"the atom moves {values} values, the {role} has {count}"),
                hint=f"partition the tensor so that each thread's piece is {values} values, or take another atom",
            )
        if values > 1 and not is_adjacent(memref.layout, values):
            raise LayoutError(
                types_of(
                    f"an atom of {values} values needs them side by side in memory, the {role} is {memref.layout}"
                ),
                hint="take the atom of one value, or partition along the mode of stride 1",
            )
    if value_name(source.element) != value_name(target.element):
        raise LayoutError(
            types_of(f"the source has elements {source.element}, the destination {target.element}"),
            hint="convert in registers: fragment.store(other.load().to(fx.Float16)), and copy fragments of one type",
        )
    _check_spaces(atom, source, target)
    for predicate in predicates:
        _check_predicates(predicate, {1}, source)
    return []


def _check_predicates(memref: MemRefType, counts: set[int], source: MemRefType) -> None:
    """One Boolean for each call of a copy, in memory that can be read at once."""
    size = algebra.size(memref.layout)
    if memref.element != "i1" or memref.space == BUFFER or size not in counts:
        raise LayoutError(
            f"pred={memref} of a copy of {source}, which takes {' or '.join(map(str, sorted(counts)))} of them",
            hint="a predicate is a register tensor of fx.Boolean with one element for each call",
        )


def _check_spaces(atom: CopyAtomType, source: MemRefType, target: MemRefType) -> None:
    """Raise LayoutError unless the instruction moves these elements between these address spaces."""
    types_of = partial(_with_types, atom=atom, source=source, destination=target)
    wanted = atom.op.only_element
    if wanted is not None and value_name(source.element) != wanted:
        raise LayoutError(
            types_of(f"the atom updates elements of {wanted}, the tensors have {source.element}"),
            hint="make the atom with the type of the tensors' elements",
        )
    if (source.space, target.space) not in atom.op.spaces:
        spaces = ["buffer" if memref.space == BUFFER else memref.space for memref in (source, target)]
        what = f"the atom {atom.op.moves}, and this is from {spaces[0]} to {spaces[1]} memory"
        raise LayoutError(types_of(what), hint=atom.op.hint)


def infer_make_tiled_copy(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """A tiled copy; the values of one thread must be a whole number of the atom's."""
    atom, layout, tile = types
    return [TiledCopyType(TiledCopy(atom.op, atom.value_bits, layout.layout, tile.tile))]


def partitioned(copy: TiledCopy, thread: Any, layout: AnyLayout, reads: bool) -> tuple[AnyLayout, Any]:
    """One thread's part of a layout, ((values of a call, calls), rest...), and the offset of its first element."""
    parts = on_plain_layout(lambda plain: copy.partition(plain, reads), layout)
    return algebra.slice_and_offset((thread, *[None] * (algebra.rank(parts) - 1)), parts)


def infer_partition(types: Sequence[Any], attributes: Attributes, *, reads: bool) -> list[Any]:
    """The part of a tensor that a thread reads or writes, whatever its elements are: a copy of it compares them."""
    copy, memref, thread = types
    if not isinstance(thread.value, tuple):
        infer_get_scalar([thread], attributes)
    return [memref.with_layout(partitioned(copy.copy, thread.value, memref.layout, reads)[0])]


def infer_make_fragment_like(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """A register tensor of the same shape, compact: mode 0 first, the others in the order of the tensor's strides."""
    source = types[0]
    element = attributes.get("element", getattr(source, "element", ""))
    if not element:
        raise LayoutError(
            f"make_fragment_like of {source}: the type of the elements is missing",
            hint="make_fragment_like(layout, fx.Float32)",
        )
    return _fragment("make_fragment_like", source.layout, element)


def _fragment(operation: str, layout: AnyLayout, element: str) -> list[Any]:
    plain = layout.outer if isinstance(layout, algebra.ComposedLayout) else layout
    if not is_static(plain.extents):
        raise LayoutError(
            f"{operation} of {layout}: registers need a shape known at compile time",
            hint="take a tile of a static shape first: fx.zipped_divide(tensor, tile)[None, i]",
        )
    return infer_alloca([LayoutType(algebra.make_fragment_layout_like(plain))], {"element": element})


def infer_mma_partition_shape(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """The shape of a thread's part of an operand of a static shape, (values of a call, calls along its modes)."""
    mma, shape = types
    if not is_static(shape.value):
        raise LayoutError(
            f"partition_shape of {shape}: it is known at compile time", hint="pass a shape of Python ints"
        )
    _, *rest = mma.mma.partition(attributes.get("operand", ""), algebra.make_layout(shape.value))
    return [IntTupleType(algebra.make_int_tuple(tuple(mode.extents for mode in rest)))]


def infer_copy(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """No result. Raises LayoutError unless both tensors have one shape, of whole calls of the atom."""
    atom, source, target, *predicates = types
    sizes = [algebra.size(memref.layout) for memref in (source, target)]
    if not is_static(tuple(sizes)) or sizes[0] != sizes[1]:
        raise LayoutError(
            _with_types(
                f"copy: the source has {sizes[0]} elements, the destination {sizes[1]}",
                source=source,
                destination=target,
            ),
            hint="partition both with the same tiled copy"
            if is_static(tuple(sizes))
            else "sizes must be known at compile time: partition both with the same tiled copy",
        )
    tensors = {"source": source, "destination": target}
    with _part_of("copy", {"atom": atom, **tensors}):
        calls = [call_of(atom, memref.layout) for memref in (source, target)]
    for predicate in predicates:
        _check_predicates(predicate, set(predicate_counts(atom, source.layout)), source)
    _infer_calls("copy", infer_copy_atom_call, atom, tensors, calls)
    return []


def _infer_calls(
    whole: str, infer: Callable[..., Any], atom: Any, tensors: Mapping[str, MemRefType], calls: Sequence[AnyLayout]
) -> None:
    """Check all calls of an operation by the first one.

    tensors: by their roles. calls: each tensor's layout as (values of a call, calls...).
    """
    pairs = zip(tensors.values(), calls, strict=True)
    firsts = [memref.with_layout(algebra.get(layout, 0)) for memref, layout in pairs]
    with _part_of(whole, {"atom": atom, **tensors}):
        infer([atom, *firsts], {})
        for layout in calls:
            _require_calls_like_first(layout)


def _require_calls_like_first(calls: AnyLayout) -> None:
    """Raise LayoutError if only the first call has its values side by side: each must begin with a block."""
    values = known_size(algebra.get(calls, 0))
    if not isinstance(calls, algebra.ComposedLayout) or values == 1:
        return
    rest = algebra.coalesce(algebra.take(calls.outer, 1, algebra.rank(calls.outer)))
    if not all(begins_aligned(calls, stride, values) for stride in algebra.get_leaves((rest.strides,))):
        raise LayoutError(
            f"{calls.inner} does not keep the {values} values of a call side by side where calls are at strides of "
            f"{rest.strides}",
            hint=f"strides that are multiples of {values}, or an atom of one value",
        )


@contextmanager
def _part_of(whole: str, types: Mapping[str, object]) -> Iterator[None]:
    """Make an error about one call of an operation one of the operation, with the types of its operands."""
    try:
        yield
    except LayoutError as error:
        what = error.message.partition("\n")[0]
        raise LayoutError(_with_types(f"{whole}: {what}", **types), hint=error.hint) from None


def _with_types(what: str, /, **types: object) -> str:
    """A message that begins with what is wrong. The types, which are long, are in lines of their own."""
    return "\n".join([what, *(f"  {role}: {type_}" for role, type_ in types.items())])


def predicate_counts(atom: CopyAtomType, layout: AnyLayout) -> tuple[int, int]:
    """The numbers of predicates that a copy accepts: one for each call, or one for all calls of mode 0."""
    total, in_mode_0 = (known_size(part) * atom.value_bits // atom.op.bits for part in (layout, algebra.get(layout, 0)))
    return total, total // max(in_mode_0, 1)


def known_size(layout: AnyLayout) -> int:
    """The size of a layout, after inference has found that it is known at compile time."""
    size = algebra.size(layout)
    assert isinstance(size, int)
    return size


def call_of(atom: CopyAtomType, layout: AnyLayout) -> AnyLayout:
    """A layout as (values of one call of the atom, calls). Raises LayoutError if the calls do not divide it evenly."""
    values = atom.op.bits // atom.value_bits
    if known_size(layout) % values:
        raise LayoutError(
            f"a call of this atom copies {values} values, which do not divide the {known_size(layout)} of {layout}",
            hint="take an atom of fewer bits, or a tile of a multiple of its values",
        )
    return algebra.logical_divide(layout, values)


def on_plain_layout(function: Callable[[algebra.Layout], algebra.Layout], layout: AnyLayout) -> AnyLayout:
    """Apply a rearrangement of coordinates to a layout, or to the outer part of a composed one."""
    if isinstance(layout, algebra.ComposedLayout):
        return algebra.make_composed_layout(layout.inner, layout.offset, function(layout.outer))
    return function(layout)


def infer_retile(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """A fragment in the form that a tiled copy moves, over the same registers."""
    copy, memref = types
    if memref.element_bits != copy.copy.value_bits:
        raise LayoutError(
            f"retile of {memref}: the copy {copy.atom}, in {copy.copy.layout_tv}, is of "
            f"{copy.copy.value_bits}-bit values",
            hint="make the copy atom for the fragment's element type",
        )
    return [memref.with_layout(on_plain_layout(copy.copy.retile, memref.layout))]


# --- matrix instructions ---------------------------------------------------------------------------------------------


def infer_make_tiled_mma(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """A tiled MMA; its atoms must tile it."""
    atom, layout, *tiles = types
    return [TiledMmaType(TiledMma(atom.op, layout.layout, tiles[0].tile if tiles else None))]


_MODES_OF_PART = 3  # the values of a call, and the calls along the tile's first two modes


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

    With the attribute `stages` they are there as many times, in a last mode, instead of the tile's modes after the
    first two.
    """
    mma, memref = types
    operand = _operand_id(attributes)
    stages = attributes.get("stages")
    part = mma_partitioned(mma.mma, operand, 0, memref.layout)[0]
    if stages is not None:
        outer = part.outer if isinstance(part, algebra.ComposedLayout) else part
        part = algebra.take(outer, 0, _MODES_OF_PART)
    (fragment,) = _fragment("make_fragment", part, mma.mma.op.element_of(operand))
    if stages is None:
        return [fragment]
    if stages < 1:
        raise LayoutError(f"a fragment of {stages} stages", hint="pass one stage or more")
    staged = algebra.append(fragment.layout, algebra.Layout(stages, algebra.cosize(fragment.layout)))
    return infer_alloca([LayoutType(staged)], {"element": fragment.element})


def infer_mma_atom_call(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """No result. Raises LayoutError unless one call of the atom multiplies exactly these fragments."""
    atom, *fragments = types
    for role, operand, memref in zip("DABC", "cabc", fragments, strict=True):
        types_of = partial(_with_types, atom=atom, **{role: memref})
        forms = _register_forms(atom.op, operand)
        if value_name(memref.element) not in forms:
            raise LayoutError(
                types_of(f"operand {role} of the instruction is {' or '.join(forms)}, not {memref.element}"),
                hint="make the fragment with make_fragment_A, _B or _C, and convert values before they go into it",
            )
        if memref.space != "register":
            raise LayoutError(
                types_of(f"operand {role} is in {memref.space} memory: a matrix instruction multiplies registers"),
                hint="copy it to a fragment",
            )
        values = forms[value_name(memref.element)]
        count = algebra.size(memref.layout)
        if count != values:
            raise LayoutError(
                types_of(
                    f"operand {role}: a thread holds {values} values of it, in {atom.op.layout_tv(operand)}; "
                    f"this has {count}"
                ),
                hint="make the fragment with make_fragment_A, _B or _C",
            )
        if values > 1 and not is_adjacent(memref.layout, values):
            raise LayoutError(
                types_of(f"operand {role}: its {values} values do not lie side by side, in {memref.layout}"),
                hint="copy fewer bits at once, or along the dimension of stride 1",
            )
    return []


def infer_gemm(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """No result. Raises LayoutError unless D and C are (values, M, N), A is (values, M, K) and B is (values, N, K).

    Modes M, N and K may be missing together, or K alone.
    """
    mma, *fragments = types
    atom = mma.atom if isinstance(mma, TiledMmaType) else mma
    gemm_extents(fragments)
    modes = [gemm_modes(memref.layout) for memref in fragments]
    if attributes.get("order", DEFAULT_ORDER) not in TRAVERSAL_ORDERS:
        raise LayoutError(f"a gemm in the order {attributes['order']!r}", hint=f"orders: {', '.join(TRAVERSAL_ORDERS)}")
    _infer_calls("gemm", infer_mma_atom_call, atom, dict(zip("DABC", fragments, strict=True)), modes)
    return []


def gemm_modes(layout: AnyLayout) -> AnyLayout:
    """A fragment's layout with its three modes; missing modes have extent 1."""
    if isinstance(layout, algebra.Layout) and not isinstance(layout.extents, tuple):
        layout = algebra.make_layout((layout.extents,), (layout.strides,))
    while algebra.rank(layout) < 3:
        layout = algebra.append(layout, algebra.Layout(1, 0))
    return layout


def gemm_extents(fragments: Sequence[MemRefType]) -> tuple[int, int, int]:
    """The numbers of calls along M, N and K. Raises LayoutError if D, A, B and C disagree about them."""
    layouts = [fragment.layout for fragment in fragments]
    shown: dict[str, object] = dict(zip("DABC", fragments, strict=True))

    def types_of(what: str) -> str:
        return _with_types(what, **shown)

    if any(algebra.rank(layout) > 3 for layout in layouts):
        raise LayoutError(
            types_of("gemm: a fragment has at most 3 modes"),
            hint="(values, M, K), (values, N, K), (values, M, N): what make_fragment_A, _B and _C give",
        )
    if not all(is_static(algebra.get_shape(layout)) for layout in layouts):
        raise LayoutError(
            types_of("gemm: fragments have a shape known at compile time"),
            hint="make them with make_fragment_A, _B and _C, and copy the operands into them",
        )
    d, a, b, c = ([known_size(algebra.get(gemm_modes(layout), mode)) for mode in (1, 2)] for layout in layouts)
    pairs = [("D", d[0], "C", c[0], "M"), ("D", d[1], "C", c[1], "N"), ("A", a[0], "C", c[0], "M")]
    for one, calls, other, others, mode in [*pairs, ("B", b[0], "C", c[1], "N"), ("A", a[1], "B", b[1], "K")]:
        if calls != others:
            raise LayoutError(
                types_of(f"gemm: {one} has {calls} instructions along {mode}, {other} has {others}"),
                hint="shapes: D and C (values, M, N), A (values, M, K), B (values, N, K)",
            )
    return a[0], b[0], a[1]


def infer_mma_atom_call_ssa(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """The result of a matrix instruction on values. Vectors of integers with as many bits stand for A and B, too."""
    atom, *operands = types
    for operand, given in zip("abc", operands, strict=True):
        kinds = [mma_value_type(atom.op, operand, element) for element in _register_forms(atom.op, operand)]
        if given not in kinds and (operand == "c" or _integer_bits(given) != _bits(kinds[0])):
            require_same(f"operand {operand} of mma_atom_call_ssa", given, kinds[0])
    return [mma_value_type(atom.op, "c")]


def _integer_bits(kind: Any) -> int:
    """The bits of a vector of integers; -1 for another type."""
    of_integers = isinstance(kind, ir.VectorType) and isinstance(kind.element_type, ir.IntegerType)
    return prod(kind.shape) * kind.element_type.width if of_integers else -1


def _bits(kind: ir.Type) -> int:
    return prod(kind.shape) * element_bits(str(kind.element_type)) if isinstance(kind, ir.VectorType) else 0


def _register_forms(op: MmaOp, operand: str) -> dict[str, int]:
    """Elements in which registers may hold a thread's values of an operand -> their number.

    Elements below 16 bits may also stand in words of 32, and those of 8 bits in bytes. The usual form comes first: the
    element itself, or words for those below 8 bits.
    """
    element, values = op.element_of(operand), known_size(algebra.get(op.layout_tv(operand), 1))
    bits = element_bits(element)
    forms = {element: values} if bits >= _BYTE else {}
    if bits == _BYTE:
        forms["i8"] = values
    if bits >= 16:
        return forms
    forms["i32"] = values * bits // 32
    return forms if bits >= _BYTE else {**forms, element: values}


@cache
def mma_value_type(op: MmaOp, operand: str, held: str | None = None) -> ir.Type:
    """The type of the values of an operand in a thread: a vector, or a scalar for one value.

    held: the element type of the registers, by default the usual one.
    """
    forms = _register_forms(op, operand)
    name = value_name(held) if held is not None else next(iter(forms))
    return element_type(name) if forms[name] == 1 else ir.VectorType.get([forms[name]], element_type(name))


# --- operations that state their result ------------------------------------------------------------------------------


def check_make_copy_atom(types: Sequence[Any], results: Sequence[Any], attributes: Attributes) -> None:
    """Check that the attribute repeats the width that the type states."""
    (result,) = results
    if attributes.get("valBits") != result.value_bits:
        raise LayoutError(f"make_copy_atom of {result} with valBits = {attributes.get('valBits')}")


def check_make_mma_atom(types: Sequence[Any], results: Sequence[Any], attributes: Attributes) -> None:
    """The type says it all."""


def check_copy_atom_call_ssa(types: Sequence[Any], results: Sequence[Any], attributes: Attributes) -> None:
    """A load `(atom, source) -> vector`, a store `(atom, vector, destination)`, or both in one instruction."""
    atom = types[0]
    memref = types[-1]
    vector = results[0] if results else types[1]
    if not isinstance(atom, CopyAtomType) or not isinstance(memref, MemRefType) or len(types) + len(results) != 3:
        raise LayoutError(
            f"copy_atom_call_ssa of {', '.join(map(str, types))}", hint="pass an atom, a source and a target"
        )
    if atom.op.passes_registers:
        return
    values = atom.op.bits // atom.value_bits
    element = element_type(memref.element)
    if values != 1 or vector != element:  # FlyDSL's passes write one value as a scalar
        require_same("copy_atom_call_ssa", vector, ir.VectorType.get([values], element))
