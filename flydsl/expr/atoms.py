"""Copy and matrix instructions in a program, and what one thread has of them. All of it is known when compiling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from flydsl.atoms import BufferAtomic, BufferCopy, BufferCopyLDS
from flydsl.dialect.location import user_location
from flydsl.dialect.types import CopyAtomType, FlyType, MmaAtomType, TiledCopyType, TiledMmaType
from flydsl.errors import ArgumentError
from flydsl.layout import ComposedLayout, Layout, Tile

if TYPE_CHECKING:
    from flydsl.expr.typing import Tensor


class _Static:
    """A value that its fly type says completely."""

    type: Any

    def __init__(self, fly: FlyType) -> None:
        self.type = fly

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Static) and other.type == self.type

    def __hash__(self) -> int:
        return hash(self.type)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.type})"


class CopyAtom(_Static):
    """A copy instruction for elements of a given width: `fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)`.

    values: what its calls use besides their tensors: `soffset` of a buffer copy.
    """

    type: CopyAtomType

    def __init__(self, fly: CopyAtomType, values: Mapping[str, Any] | None = None) -> None:
        super().__init__(fly)
        self.values = dict(values or {})

    def set_value(self, values: Mapping[str, Any] | str, value: Any = None) -> CopyAtom:
        """The same instruction with values that its calls use: `atom.set_value("soffset", elements)`."""
        given = {values: value} if isinstance(values, str) else values
        for name in given:
            if name != "soffset" or not isinstance(self.type.op, BufferCopy | BufferCopyLDS | BufferAtomic):
                raise ArgumentError(
                    f"{self} has no value {name!r} to set", at=user_location(), hint="a buffer copy has soffset"
                )
        return CopyAtom(self.type, {**self.values, **given}) if given else self


class TiledCopy(_Static):
    """A copy instruction repeated over the threads and values of a tile: `fx.make_tiled_copy(...)`."""

    type: TiledCopyType

    @property
    def atom(self) -> CopyAtom:
        """The instruction."""
        return CopyAtom(self.type.atom)

    @property
    def tiled_tv_layout(self) -> Layout:
        """(thread, value) -> element of the tile, the tile's first mode fastest."""
        return self.type.copy.layout_tv

    @property
    def tile_mn(self) -> Tile:
        """The tile that the threads copy together."""
        return self.type.copy.tile

    def get_slice(self, thread: Any) -> ThrCopy:
        """The part of one thread. thread: its number, usually `fx.thread_idx.x`."""
        return ThrCopy(self, thread)

    thr_slice = get_slice


def _no_layout(what: str, value: Any) -> None:
    if isinstance(value, Layout | ComposedLayout):
        raise ArgumentError(
            f"{what} takes a tensor, not the layout {value}",
            at=user_location(),
            hint="to see the part of this thread in a layout: workbench.layouts.thread_view(thr_copy, layout)",
        )


class ThrCopy:
    """One thread's part of a tiled copy."""

    def __init__(self, tiled_copy: TiledCopy, thread: Any) -> None:
        self.tiled_copy = tiled_copy
        self.thr_idx = thread

    def partition_S(self, source: Any) -> Any:
        """What the thread reads: ((values of a call, calls), tiles along mode 0, tiles along mode 1, ...)."""
        _no_layout("partition_S", source)
        from flydsl.expr import primitive

        return primitive.tiled_copy_partition_src(self.tiled_copy, source, self.thr_idx)

    def partition_D(self, target: Any) -> Any:
        """What the thread writes, in the same form."""
        _no_layout("partition_D", target)
        from flydsl.expr import primitive

        return primitive.tiled_copy_partition_dst(self.tiled_copy, target, self.thr_idx)

    def retile(self, fragment: Tensor) -> Tensor:
        """A fragment of a tiled MMA, over the same registers, in the form that this copy moves."""
        from flydsl.expr import primitive

        return primitive.tiled_copy_retile(self.tiled_copy, fragment)

    def __repr__(self) -> str:
        return f"ThrCopy({self.tiled_copy.type}, {self.thr_idx!r})"


class MmaAtom(_Static):
    """A matrix instruction: `fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16))`."""

    type: MmaAtomType

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        """Extents of the tile that one call multiplies."""
        return self.type.op.shape_mnk

    @property
    def thr_layout(self) -> Layout:
        """The threads of a call."""
        return self.type.op.thr_layout

    @property
    def tv_layout_A(self) -> Layout:
        """(thread, value) -> element of A's tile (M, K), its first mode fastest."""
        return self.type.op.layout_tv_a

    @property
    def tv_layout_B(self) -> Layout:
        """(thread, value) -> element of B's tile (N, K)."""
        return self.type.op.layout_tv_b

    @property
    def tv_layout_C(self) -> Layout:
        """(thread, value) -> element of C's tile (M, N)."""
        return self.type.op.layout_tv_c


class TiledMma(_Static):
    """A matrix instruction repeated over the waves and values of a tile: `fx.make_tiled_mma(...)`."""

    type: TiledMmaType

    @property
    def atom(self) -> MmaAtom:
        """The instruction."""
        return MmaAtom(self.type.atom)

    @property
    def tile_size_mnk(self) -> tuple[int, ...]:
        """Extents of the tile that the block multiplies."""
        return self.type.mma.tile_size_mnk

    @property
    def thr_layout_vmnk(self) -> Layout:
        """(thread of an instruction, its position along M, N, K) -> thread of the block."""
        return self.type.mma.thr_layout_vmnk

    @property
    def tiled_tv_layout_A(self) -> Layout:
        """(thread, value) -> element of A's tile, its first mode fastest."""
        return self.type.mma.layout_tv("a")

    @property
    def tiled_tv_layout_B(self) -> Layout:
        """(thread, value) -> element of B's tile."""
        return self.type.mma.layout_tv("b")

    @property
    def tiled_tv_layout_C(self) -> Layout:
        """(thread, value) -> element of C's tile."""
        return self.type.mma.layout_tv("c")

    def get_slice(self, thread: Any) -> ThrMma:
        """The part of one thread. thread: its number, usually `fx.thread_idx.x`."""
        return ThrMma(self, thread)

    thr_slice = get_slice


class ThrMma:
    """One thread's part of a tiled MMA."""

    def __init__(self, tiled_mma: TiledMma, thread: Any) -> None:
        self.tiled_mma = tiled_mma
        self.thr_idx = thread

    def partition_A(self, tensor: Any) -> Any:
        """What the thread multiplies of A (M, K, ...): (values of a call, calls along M, along K, ...)."""
        return self._partition("a", tensor)

    def partition_B(self, tensor: Any) -> Any:
        """What the thread multiplies of B (N, K, ...)."""
        return self._partition("b", tensor)

    def partition_C(self, tensor: Any) -> Any:
        """What the thread accumulates of C (M, N, ...)."""
        return self._partition("c", tensor)

    def make_fragment_A(self, tensor: Tensor, stages: int | None = None) -> Tensor:
        """Registers for the thread's part of A, of the instruction's type; stages: how many of them, in a last mode.

        tensor: the tile (M, K) that the block multiplies, not partitioned yet.
        """
        return self._make_fragment("a", tensor, stages)

    def make_fragment_B(self, tensor: Tensor, stages: int | None = None) -> Tensor:
        """Registers for the thread's part of B."""
        return self._make_fragment("b", tensor, stages)

    def make_fragment_C(self, tensor: Tensor, stages: int | None = None) -> Tensor:
        """Registers for the thread's part of C, of the type in which the instruction accumulates."""
        return self._make_fragment("c", tensor, stages)

    def _partition(self, operand: str, tensor: Any) -> Any:
        from flydsl.expr import primitive

        return primitive.tiled_mma_partition(operand, self.tiled_mma, tensor, self.thr_idx)

    def _make_fragment(self, operand: str, tensor: Tensor, stages: int | None) -> Tensor:
        from flydsl.expr import primitive

        return primitive.mma_make_fragment(operand, self.tiled_mma, tensor, stages=stages)

    def __repr__(self) -> str:
        return f"ThrMma({self.tiled_mma.type}, {self.thr_idx!r})"
