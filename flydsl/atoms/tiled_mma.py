"""Tiled matrix multiplications: a matrix instruction repeated over waves and values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from flydsl import layout as algebra
from flydsl.atoms.mma import MmaOp
from flydsl.errors import LayoutError
from flydsl.layout import Layout, Tile
from flydsl.layout.divide import reaches_past
from flydsl.layout.layout import modes_of, of_modes
from flydsl.layout.text import to_text

# Operand -> the modes of (M, N, K) that it has.
_MODES = {"a": (0, 2), "b": (1, 2), "c": (0, 1)}


@dataclass(frozen=True)
class TiledMma:
    """A tiled MMA: the way in which the waves of a block together multiply tiles.

    op: the instruction.
    atom_layout: (M, N, K) position of an instruction in the tile -> number of the wave that executes it.
    permutation: how the elements of the tile's modes M, N, K are numbered before they are dealt out; None for a mode
    that stays as it is. A layout in mode K lets a thread's values lie side by side in memory.

    The terms are CuTe's; source: CuTe, "TiledMMA" (media/docs/cpp/cute/0t_mma_atom.md).
    """

    op: MmaOp
    atom_layout: Layout
    permutation: Tile | None = None

    def __post_init__(self) -> None:
        if getattr(self.op, "blocks", 1) > 1:
            raise LayoutError(
                f"{self.op} multiplies {self.op.blocks} blocks, each by itself; that is not a tile of one product",  # type: ignore[attr-defined]
                hint="take a shape of one block, or call the instruction itself (fx.rocdl.mfma_...)",
            )
        if algebra.rank(self.atom_layout) != 3:
            raise LayoutError(
                f"a tiled MMA with atoms in {self.atom_layout}: that layout has the modes M, N and K",
                hint="for example fx.make_layout((2, 2, 1)): two atoms along M, two along N",
            )
        waves = _size(self.atom_layout)
        if {self.atom_layout(i) for i in range(waves)} != set(range(waves)):
            raise LayoutError(
                f"a tiled MMA with atoms in {self.atom_layout}: its {waves} atoms are not executed by waves 0 to "
                f"{waves - 1}, each by its own",
                hint=f"pass {algebra.make_layout(self.atom_layout.extents)}, for example",
            )
        if self.permutation is not None and len(self.permutation.modes) != 3:
            raise LayoutError(
                f"a tiled MMA with the permutation {self.permutation}: it has the modes M, N and K",
                hint="for example fx.make_tile(32, 32, 16); None keeps a mode as it is",
            )
        for mode, (size, step) in enumerate(zip(self.tile_size_mnk, self._atoms_size_mnk, strict=True)):
            if size % step:
                raise LayoutError(
                    f"{self.op} in {self.atom_layout} covers {step} elements of mode {'MNK'[mode]}, which does not "
                    f"divide the {size} of the permutation {self.permutation}",
                    hint="make the mode a multiple of what the atoms cover, or leave it None",
                )

    @property
    def threads(self) -> int:
        """Number of threads that take part."""
        size = algebra.size(self.thr_layout_vmnk)
        assert isinstance(size, int)
        return size

    @cached_property
    def thr_layout_vmnk(self) -> Layout:
        """(thread of an instruction, its position along M, N, K) -> thread of the block."""
        return algebra.tiled_product(self.op.thr_layout, self.atom_layout)

    @property
    def _atoms_size_mnk(self) -> tuple[int, ...]:
        return tuple(
            extent * _size(algebra.get(self.atom_layout, mode)) for mode, extent in enumerate(self.op.shape_mnk)
        )

    @cached_property
    def tile_size_mnk(self) -> tuple[int, ...]:
        """Extents of the tile that the block multiplies with one round of instructions per permutation."""
        modes = self.permutation.modes if self.permutation is not None else (None,) * 3
        return tuple(
            size if mode is None else _size(mode) for size, mode in zip(self._atoms_size_mnk, modes, strict=True)
        )

    def tile_of(self, operand: str) -> Tile:
        """The tile that an operand covers, with the extents of its two modes."""
        extents = (self.tile_size_mnk[mode] for mode in _MODES[operand])
        return algebra.make_tile(*(Layout(extent, 1) for extent in extents))

    def partition(self, operand: str, layout: Layout) -> Layout:
        """A tensor's layout as (thread, values of a call, calls along its two modes, its other modes).

        operand: `a`, of a tensor (M, K, ...); `b`, of (N, K, ...); `c`, of (M, N, ...).
        Raises LayoutError where the tile does not divide the layout.
        """
        if algebra.rank(layout) < 2:
            raise LayoutError(
                f"operand {operand} of a tiled MMA has two modes; {layout} has {algebra.rank(layout)}",
                hint="A is (M, K), B is (N, K), C is (M, N): slice the other modes away first, tensor[None, None, i]",
            )
        modes = modes_of(layout)
        try:
            threads, values, rests = self._by_thread(operand, of_modes(modes[:2]))
        except LayoutError as error:
            tile = to_text(tuple(self.tile_size_mnk[mode] for mode in _MODES[operand]))
            raise LayoutError(
                f"operand {operand.upper()} of a tiled MMA has tiles of {tile}, which do not fit {layout}: "
                f"{error.message}",
                hint="take a tile of the tensor that whole tiles of the MMA cover, and not a thread's part of one",
            ) from None
        return of_modes([threads, values, *rests, *modes[2:]])

    def layout_tv(self, operand: str) -> Layout:
        """(thread, (values of a call, (calls along one mode, along the other))) -> element of the operand's tile.

        The tile's leftmost mode is the fastest.
        """
        tile = Layout(tuple(self.tile_size_mnk[mode] for mode in _MODES[operand]))
        threads, values, rests = self._by_thread(operand, tile)
        return of_modes([threads, of_modes([values, of_modes(rests)])])

    def _by_thread(self, operand: str, layout: Layout) -> tuple[Layout, Layout, list[Layout]]:
        """A layout of two modes by thread of the block, values of a call, and calls along each mode."""
        here, whole = _MODES[operand], layout
        if self.permutation is not None:
            layout = algebra.logical_divide(layout, Tile(tuple(self.permutation.modes[mode] for mode in here)))
        atom, rest = algebra.zipped_divide(layout, algebra.make_tile(*(self.op.shape_mnk[mode] for mode in here)))
        threads, values = algebra.composition(atom, self.op.layout_tv(operand))
        waves, calls = algebra.zipped_divide(rest, algebra.make_tile(*(_size(self._waves[mode]) for mode in here)))
        if reaches_past(whole, atom, waves, calls):
            raise LayoutError("they do not divide it", hint="pad the tensor to whole tiles")
        return self._threads(operand, threads, list(waves)), values, list(calls)

    @cached_property
    def _waves(self) -> list[Layout]:
        """The modes M, N, K of the position of a wave."""
        return list(self.thr_layout_vmnk)[1:]

    def _threads(self, operand: str, atom: Layout, waves: list[Layout]) -> Layout:
        """Thread of the block -> element. Waves that share the operand's elements read the same ones."""
        modes = [Layout(algebra.get_shape(mode), _zeros(mode.extents)) for mode in self._waves]
        for mode, layout in zip(_MODES[operand], waves, strict=True):
            modes[mode] = layout
        by_position = of_modes([atom, *modes])
        return algebra.composition(by_position, algebra.right_inverse(self.thr_layout_vmnk))


def _zeros(shape: Any) -> Any:
    return tuple(map(_zeros, shape)) if isinstance(shape, tuple) else 0


def _size(layout: Any) -> int:
    size = algebra.size(layout)
    assert isinstance(size, int)
    return size
