"""Functions composed of primitives."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from flydsl import layout as algebra
from flydsl.dialect.location import argument_error
from flydsl.expr.atoms.copies import CopyAtom, ThrCopy, TiledCopy, make_tiled_copy
from flydsl.expr.atoms.indexed_copies import gather, scatter
from flydsl.expr.atoms.mma import MmaAtom, ThrMma, TiledMma
from flydsl.expr.flydsl_names.keywords import accept_keywords
from flydsl.expr.flydsl_names.names import unknown_name
from flydsl.expr.layouts.algebra import make_layout
from flydsl.expr.memory.tensors import Tensor, memref_alloca
from flydsl.expr.numeric import Numeric
from flydsl.expr.tracing.operands import is_runtime, located
from flydsl.layout import Layout

if TYPE_CHECKING:
    from flydsl.expr.kinds import AnyLayout, IntTupleLike, Result

__all__ = [
    "CopyAtom", "MmaAtom", "ThrCopy", "ThrMma", "TiledCopy", "TiledMma", "gather", "make_layout_tv", "make_rmem_tensor",
    "make_tiled_copy", "make_tiled_copy_A", "make_tiled_copy_B", "make_tiled_copy_C", "make_tiled_copy_tv", "scatter",
]  # fmt: skip

__getattr__ = unknown_name(__name__, globals())


def make_rmem_tensor(shape: IntTupleLike | AnyLayout, dtype: type[Numeric]) -> Tensor:
    """Create a tensor in registers, private to each thread. It must be written before it is read.

    A read of elements that nothing can have written is a CompileError. Elements that only some paths write are zero on
    the others, unless an index is known at run time only: then the tensor is memory, and `simulator.checking` reports
    reads of what nothing wrote.

    shape: a static shape (leftmost mode fastest) or a static Layout.
    dtype: the element type.
    """
    layout = shape if isinstance(shape, Layout) else make_layout(cast("IntTupleLike", shape))
    return memref_alloca(layout, dtype)


def make_layout_tv(thr_layout: Layout, val_layout: Layout) -> tuple[Result, Layout]:
    """The tile that threads and their values cover together, and the layout (thread, value) -> element of it.

    thr_layout, val_layout: static layouts of the threads, and of one thread's values, in the tile.

    >>> make_layout_tv(Layout((4, 1), (1, 1)), Layout((1, 8), (1, 1)))
    ((4,8), (4,8):(1,4))
    """
    if is_runtime((thr_layout, val_layout)):
        raise argument_error(
            "make_layout_tv takes layouts that are known at compile time",
            "make them of Python ints or fx.Constexpr values",
        )
    return located(algebra.make_layout_tv, thr_layout, val_layout)


def make_tiled_copy_tv(atom: CopyAtom, thr_layout: Layout, val_layout: Layout) -> TiledCopy:
    """A tiled copy from the positions of the threads in the tile, and of one thread's values."""
    tile, layout_tv = make_layout_tv(thr_layout, val_layout)
    return make_tiled_copy(atom, layout_tv, tile)


def make_tiled_copy_A(atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
    """The tiled copy by which each thread gets its part of A of a tiled MMA."""
    return _copy_of_operand("a", atom, tiled_mma)


def make_tiled_copy_B(atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
    """The tiled copy by which each thread gets its part of B of a tiled MMA."""
    return _copy_of_operand("b", atom, tiled_mma)


def make_tiled_copy_C(atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
    """The tiled copy of each thread's part of C of a tiled MMA."""
    return _copy_of_operand("c", atom, tiled_mma)


def _copy_of_operand(operand: str, atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
    if not isinstance(tiled_mma, TiledMma):
        raise argument_error(f"{tiled_mma!r} is not a tiled MMA", "pass fx.make_tiled_mma(...)")
    mma = tiled_mma.type.mma
    return make_tiled_copy(atom, located(mma.layout_tv, operand), mma.tile_of(operand))


accept_keywords(globals(), __all__)
