"""Copy instructions, tilings of them, and copies of tensors. All of them are fixed when compiling."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any

from mlir import ir

from flydsl import atoms
from flydsl import layout as algebra
from flydsl.atoms import CopyOp
from flydsl.dialect.elements import memory_bits
from flydsl.dialect.location import argument_error
from flydsl.dialect.types import CopyAtomType, TiledCopyType
from flydsl.errors import how_to_make
from flydsl.expr.atoms.atom_values import AtomWithValues, OfOneThread, TileCopy, TiledAtom, with_values
from flydsl.expr.atoms.copy_forms import as_moved
from flydsl.expr.layouts.algebra import crd2idx, warn_of_partial_tiles
from flydsl.expr.layouts.coord_tensor import CoordTensor
from flydsl.expr.memory.tensors import (
    Tensor,
    add_offset,
    as_memory,
    buffer_elements,
    get_iter,
    get_layout,
    make_view,
    memref_alloca,
    memref_store,
    of_memory,
    require_tensor,
)
from flydsl.expr.numeric import Boolean, numeric_class
from flydsl.expr.threads.block_threads import note_tile
from flydsl.expr.tracing.emit import emit_fly
from flydsl.expr.tracing.operands import as_operand, element_name, is_runtime, located, thread_coordinate
from flydsl.layout import ComposedLayout, Layout, Tile

if TYPE_CHECKING:
    from flydsl.expr.kinds import AnyLayout, AnyTensor, IntTupleLike, Number, Result, ScalarType

__all__ = [
    "CachePolicy", "UniversalCopy", "UniversalCopy8b", "UniversalCopy16b", "UniversalCopy32b", "UniversalCopy64b",
    "UniversalCopy128b", "copy", "copy_atom_call", "make_copy_atom", "make_fragment_like", "make_tiled_copy",
    "tiled_copy_partition_dst", "tiled_copy_partition_src", "tiled_copy_retile",
]  # fmt: skip


class CachePolicy(IntEnum):
    """FlyDSL's policies of caches, which no function takes: a buffer copy's `cache_modifier` decides."""

    CacheGlobal = 0
    CacheAlways = 1


class CopyAtom(AtomWithValues):
    """A copy instruction for elements of a given width: `fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)`.

    values: further operands of its calls, such as `soffset` of a buffer copy.
    """

    type: CopyAtomType

    @property
    def val_bits(self) -> int:
        """The width in bits of the elements that it is applied to."""
        return self.type.value_bits

    @property
    def thr_layout(self) -> Layout:
        """The threads of a call."""
        return Layout(self.type.op.threads, 1)

    thr_id = thr_layout

    @property
    def layout_src_tv(self) -> Layout:
        """(thread, value) -> element of what one call reads."""
        values = self.type.op.bits // self.type.value_bits
        return Layout((self.type.op.threads, values), (values, 1))

    @property
    def layout_dst_tv(self) -> Layout:
        """(thread, value) -> element of what one call reads, that a thread holds afterwards."""
        source = self.layout_src_tv
        threads, values = source.extents
        return Layout((threads, values), (1, threads)) if self.type.op.transposes else source

    layout_ref_tv = layout_dst_tv

    def operand(self) -> ir.Value:
        value = emit_fly("make_copy_atom", results=[self.type], attributes={"valBits": self.type.value_bits}).result
        return with_values(value, self.values)


class TiledCopy(TiledAtom):
    """A copy instruction repeated over the threads and values of a tile: `fx.make_tiled_copy(...)`."""

    type: TiledCopyType

    @property
    def atom(self) -> CopyAtom:
        """The instruction."""
        return CopyAtom(self.type.atom, self.values)

    @property
    def tiled_tv_layout(self) -> Layout:
        """(thread, value) -> element of the tile, the tile's first mode fastest."""
        return self.type.copy.layout_tv

    layout_tv_tiled = layout_src_tv_tiled = layout_dst_tv_tiled = tiled_tv_layout

    @property
    def tile_mn(self) -> Tile:
        """The tile that the threads copy together."""
        return self.type.copy.tile

    def get_slice(self, thr_idx: Any) -> ThrCopy:
        """The part of one thread. thr_idx: its number, `fx.thread_idx.x` mostly, or a coordinate in the thread mode."""
        return ThrCopy(self, thread_coordinate("get_slice", thr_idx, self.type.copy.layout_tv))

    thr_slice = get_slice

    def operand(self) -> ir.Value:
        parts = (self.atom, self.type.copy.layout_tv, self.type.copy.tile)
        return emit_fly("make_tiled_copy", [as_operand(part) for part in parts]).result


class ThrCopy(OfOneThread):
    """One thread's part of a tiled copy, whose attributes it has, too."""

    def __init__(self, tiled_copy: TiledCopy, thr_idx: Any) -> None:
        if not isinstance(tiled_copy, TiledCopy):
            raise argument_error(f"ThrCopy takes a tiled copy, not {tiled_copy!r}", "pass fx.make_tiled_copy(...)")
        self.tiled = self.tiled_copy = tiled_copy
        self.thr_idx = thr_idx

    def partition_S(self, src: Any) -> Any:
        """The values that the thread reads: ((values of a call, calls), tiles along mode 0, along mode 1, ...)."""
        _no_layout("partition_S", src)
        return tiled_copy_partition_src(self.tiled_copy, src, self.thr_idx)

    def partition_D(self, dst: Any) -> Any:
        """The values that the thread writes, in the same form."""
        _no_layout("partition_D", dst)
        return tiled_copy_partition_dst(self.tiled_copy, dst, self.thr_idx)

    def retile(self, t: Tensor) -> Tensor:
        """A fragment `t` of a tiled MMA, over the same registers, in the form that this copy moves."""
        return tiled_copy_retile(self.tiled_copy, t)

    def __repr__(self) -> str:
        return f"ThrCopy({self.tiled_copy.type}, {self.thr_idx!r})"


def _no_layout(what: str, value: Any) -> None:
    if isinstance(value, Layout | ComposedLayout):
        raise argument_error(
            f"{what} takes a tensor, not the layout {value}",
            "to see the part of this thread in a layout: workbench.layouts.thread_view(thr_copy, layout)",
        )


def UniversalCopy(bit_size: int) -> CopyOp:
    """A copy of `bit_size` contiguous bits (8 to 128) by one thread: a plain load, store or register move."""
    return located(atoms.UniversalCopy, bit_size)


def UniversalCopy8b() -> CopyOp:
    """A copy of 8 bits by one thread."""
    return UniversalCopy(8)


def UniversalCopy16b() -> CopyOp:
    """A copy of 16 bits by one thread."""
    return UniversalCopy(16)


def UniversalCopy32b() -> CopyOp:
    """A copy of 32 bits by one thread."""
    return UniversalCopy(32)


def UniversalCopy64b() -> CopyOp:
    """A copy of 64 bits by one thread."""
    return UniversalCopy(64)


def UniversalCopy128b() -> CopyOp:
    """A copy of 128 bits by one thread."""
    return UniversalCopy(128)


def make_copy_atom(op: CopyOp, element: ScalarType) -> CopyAtom:
    """A copy instruction for elements of a type.

    op: `UniversalCopy32b()`, ...
    element: a scalar type, or the element's width in bits.
    """
    if not isinstance(op, CopyOp):
        hint = "call it: fx.UniversalCopy32b()" if callable(op) else "such as fx.UniversalCopy(32)"
        raise argument_error(f"make_copy_atom takes a copy instruction, not {op!r}", hint)
    bits = element if isinstance(element, int) else memory_bits(element_name(element))
    if bits <= 0 or op.bits % bits:
        raise argument_error(
            f"{op} moves {op.bits} bits, which is not a whole number of {bits}-bit elements",
            "widen the instruction, or copy elements of fewer bits",
        )
    return CopyAtom(CopyAtomType(op, bits))


def copy_atom_call(
    atom: CopyAtom | TileCopy, source: AnyTensor, target: AnyTensor, *, pred: Tensor | None = None
) -> None:
    """Execute a copy instruction once for the calling thread.

    source, target: tensors of exactly the atom's bits, contiguous in memory. pred: a Boolean, or a tensor of one
    element; if it is false nothing is read or written. Raises LayoutError if the tensors do not fit.
    """
    _emit_copy("copy_atom_call", atom, source, target, pred)


def copy(
    atom: CopyAtom | TileCopy, source: AnyTensor, target: AnyTensor, *, pred: Tensor | None = None, **values: Number
) -> None:
    """Copy a thread's part of a tensor, executing the instruction as often as necessary.

        part = tiled_copy.get_slice(fx.thread_idx.x).partition_S(tile)
        fx.copy(atom, part, registers)

    source, target: tensors of the same shape; the values of each call are contiguous.
    pred: Booleans in registers, one for each call, or one for all calls along mode 0. If one is false, nothing is read
    or written, and the target keeps its value.
    values: `soffset=`, for a buffer copy: elements to add to the address of the buffer, best the same in all threads.
    `imm_offset=`, for one into LDS: bytes from 0 to 4095, part of the instruction, to add to both addresses.
    Raises LayoutError where the tensors do not fit.
    """
    if not isinstance(atom, CopyAtom | TileCopy):
        raise argument_error(f"copy: atom must be a copy atom, got {atom!r}", how_to_make.COPY_ATOM)
    _emit_copy("copy", atom.set_value(values), source, target, pred)


def _emit_copy(operation: str, atom: CopyAtom | TileCopy, source: Any, target: Any, pred: Any) -> None:
    if not isinstance(atom, CopyAtom | TileCopy):
        raise argument_error(f"{operation}: atom must be a copy atom, got {atom!r}", how_to_make.COPY_ATOM)
    if isinstance(atom, TileCopy):
        if pred is not None:
            raise argument_error(f"unsupported: {operation} of a whole tile with pred=", "put the call into an `if`")
        atom.issue(source, target)
        return
    given = [require_tensor(operation, tensor) for tensor in (source, target)]
    kind, *tensors = as_moved(atom.type, *given)
    if kind != atom.type:
        atom = CopyAtom(kind, atom.values)
    if pred is not None:
        tensors.append(pred if isinstance(pred, Tensor) else _in_register(pred))
    emit_fly(operation, [as_operand(atom), *(tensor.value for tensor in tensors)])


def _copy_element(tensor: Tensor, coordinate: Any, held: Tensor, is_store: bool) -> None:
    """Read or write an element of a buffer tensor, whose width an instruction must have."""
    place = add_offset(get_iter(tensor), crd2idx(coordinate, get_layout(tensor)))
    element = make_view(place, Layout(1, 1))
    atom = make_copy_atom(located(atoms.BufferCopy, tensor.type.element_bits), tensor.dtype)
    copy_atom_call(atom, *((held, element) if is_store else (element, held)))


buffer_elements.copy = _copy_element


def _in_register(condition: Any) -> Tensor:
    """A Boolean as a register tensor of one element."""
    if not isinstance(condition, bool | Boolean):
        raise argument_error(
            f"pred must be a comparison or a register tensor of fx.Boolean, got {condition!r}",
            "pass i < n, for example",
        )
    tensor = memref_alloca(algebra.Layout(1, 0), Boolean)
    memref_store(Boolean(condition), tensor, 0)
    return tensor


def make_tiled_copy(atom: CopyAtom, layout_tv: AnyLayout, tile: Tile | IntTupleLike) -> TiledCopy:
    """A copy instruction repeated over a tile.

    >>> import flydsl.expr as fx
    >>> atom = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32)
    >>> fx.make_tiled_copy(atom, fx.make_layout((4, 4), (1, 4)), (4, 4)).tiled_tv_layout
    (4,4):(1,4)

    layout_tv: (thread, value) -> element of the tile, leftmost mode fastest, as `make_layout_tv` gives it.
    tile: the tile's extents, a tuple or a Tile. Both must be known at compile time.
    """
    if not isinstance(atom, CopyAtom):
        raise argument_error(f"make_tiled_copy: atom must be a copy atom, got {atom!r}", how_to_make.COPY_ATOM)
    if not isinstance(layout_tv, Layout) or is_runtime(tile):
        raise argument_error(
            f"make_tiled_copy: layout and tile must be known at compile time, got {layout_tv!r} and {tile!r}",
            "make them of Python ints or fx.Constexpr values",
        )
    extents = tile if isinstance(tile, tuple | list) else (tile,)
    modes = tile if isinstance(tile, Tile) else located(algebra.make_tile, *extents)
    tiling = located(atoms.TiledCopy, atom.type.op, atom.type.value_bits, layout_tv, modes)
    return TiledCopy(TiledCopyType(tiling), atom.values)


def tiled_copy_partition_src(copy: TiledCopy, source: AnyTensor, thread: Number) -> Result:
    """The part of a tensor, or coordinate tensor, that a thread reads."""
    return _partition("partition_src", copy, source, thread)


def tiled_copy_partition_dst(copy: TiledCopy, target: AnyTensor, thread: Number) -> Result:
    """The part of a tensor, or coordinate tensor, that a thread writes."""
    return _partition("partition_dst", copy, target, thread)


def _partition(operation: str, copy: TiledCopy, tensor: Any, thread: Any) -> Any:
    if not isinstance(copy, TiledCopy):
        raise argument_error(f"{operation} takes a tiled copy first, not {copy!r}", how_to_make.TILED_COPY)
    if isinstance(tensor, CoordTensor):
        if isinstance(tensor.layout, Layout):
            reads = operation == "partition_src"
            return tensor.by_thread(located(copy.type.copy.partition, tensor.layout, reads), thread)
        return of_memory(tensor, _partition(operation, copy, as_memory(tensor), thread))
    value = require_tensor(operation, tensor).value
    if not isinstance(thread, tuple):  # a coordinate need not be that of the thread
        note_tile(f"the tiled copy {copy.type.copy.layout_tv}", copy.type.copy.layout_tv, thread)
    part = Tensor(emit_fly(f"tiled_copy.{operation}", [as_operand(copy), value, as_operand(thread)]).result)
    warn_of_partial_tiles(tensor.type.layout, algebra.zipped_divide(tensor.type.layout, copy.type.copy.tile))
    return part


def tiled_copy_retile(copy: TiledCopy, fragment: Tensor) -> Tensor:
    """A fragment of a tiled MMA, over the same registers, in the form that a tiled copy moves."""
    if not isinstance(copy, TiledCopy):
        raise argument_error(f"retile takes a tiled copy first, not {copy!r}", how_to_make.TILED_COPY)
    return Tensor(emit_fly("tiled_copy.retile", [as_operand(copy), require_tensor("retile", fragment).value]).result)


def make_fragment_like(tensor: AnyTensor | AnyLayout | CoordTensor, dtype: ScalarType | None = None) -> Tensor:
    """A register tensor of the shape of a tensor, static layout or coordinate tensor; see `make_rmem_tensor`.

    dtype: the element type, by default the tensor's. With coordinates it may be fx.Boolean: a predicate for each.
    """
    if isinstance(tensor, CoordTensor):
        tensor = algebra.make_layout(tensor.shape) if isinstance(tensor.origin, tuple) else tensor.layout
    if isinstance(tensor, Layout):
        if dtype is None:
            raise argument_error(
                "make_fragment_like of a layout or of coordinates takes an element type too",
                "make_fragment_like(layout, fx.Float32)",
            )
        return memref_alloca(located(algebra.make_fragment_layout_like, tensor), numeric_class(element_name(dtype)))
    attributes = {} if dtype is None else {"element": element_name(dtype)}
    value = require_tensor("make_fragment_like", tensor).value
    return Tensor(emit_fly("make_fragment_like", [value], attributes=attributes).result)
