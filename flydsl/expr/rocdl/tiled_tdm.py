"""Copies of tiles by gfx1250's tensor data mover, by the coordinates of the tile in a tensor:

    box = fx.make_layout((128, 64), (72, 1))              # the tile in LDS, with 8 elements of padding after each row
    load, coordinates = cdna5.make_tiled_tdm_atom(cdna5.TensorLoad(), A, box, (128, 64), num_warps=4)
    tiles = fx.zipped_divide(coordinates, (128, 64))[None, (fx.block_idx.x, None)]
    place = fx.make_view(lds.ptr, fx.make_layout(((128, 64), 2), ((72, 1), 128 * 72)))     # two stages of it
    to_lds, from_global = cdna5.tdm_partition(load, wave, fx.make_layout(4, 1), place, tiles)
    fx.copy(load, from_global[None, step], to_lds[None, step % 2])
    fx.rocdl.s_wait_tensorcnt(0)
    fx.barrier()

The waves share a tile in the order of its elements in LDS. What lies outside of the tensor is read as 0, and not
written.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple

from flydsl import layout as algebra
from flydsl.dialect.location import argument_error
from flydsl.expr.atoms.atom_values import TileCopy
from flydsl.expr.layouts.algebra import IntTuple, composition, crd2idx, get_, get_shape, get_stride, rank, size
from flydsl.expr.layouts.coord_tensor import CoordTensor, make_identity_tensor
from flydsl.expr.memory.tensors import Tensor, get_iter, get_layout, make_view, require_tensor
from flydsl.expr.numeric import Int32, Int64
from flydsl.expr.rocdl.tdm_atom import OPEN_EXTENT, bound, element_bytes
from flydsl.expr.rocdl.tdm_ops import make_tensor_descriptor_2d, tensor_load_2d, tensor_store_2d
from flydsl.expr.rocdl.tensor_descriptors import global_address
from flydsl.layout import Layout, Tile
from flydsl.layout.int_tuple import flatten
from flydsl.layout.layout import of_modes

__all__ = ["TensorLoad", "TensorStore", "make_tiled_tdm_atom", "tdm_partition"]

_MAX_MODES, _BOX_MODES, _INNER_BYTES = 5, 2, 16


@dataclass(frozen=True)
class TensorLoad:
    """A copy from global memory to LDS. cache_modifier: see `tdm_ops.tensor_load_2d`."""

    cache_modifier: int = 0


@dataclass(frozen=True)
class TensorStore:
    """A copy from LDS to global memory. cache_modifier: see `tdm_ops.tensor_load_2d`."""

    cache_modifier: int = 0


class _Dimension(NamedTuple):
    """A part of a tile that lies in LDS with a stride. step: what a step along it is along its mode of the tile."""

    lds_stride: int
    extent: int
    mode: int
    step: int


class _Box:
    """The part of a wave in a tile, all of it known at compile time; loops and branches leave the object as it is.

    order: place among the tile's elements in LDS -> number of the element in the tile, leftmost mode fastest.
    extents: (mode, extent) of a wave's part, the innermost first. padding: in LDS, (interval, amount) in elements.
    """

    def __init__(self, tile: tuple[int, ...], smem_layout: Layout, num_warps: int) -> None:
        dimensions = _dimensions(tile, smem_layout)
        interval, amount = _padding(dimensions, smem_layout)
        if num_warps < 1 or prod(tile) % num_warps:
            raise argument_error(
                f"a tile of {prod(tile)} elements by {num_warps} waves", "each wave has a whole part of it"
            )
        self.tile, self.num_warps = tile, num_warps
        self.elements = prod(tile) // num_warps
        before = [prod(tile[:mode]) for mode in range(len(tile))]
        self.order = Layout(
            tuple(d.extent for d in dimensions), tuple(before[d.mode] * d.step for d in dimensions)
        ) if dimensions else Layout(1, 0)  # fmt: skip
        self.extents = _part(_by_mode(dimensions), self.elements)
        # A part that ends before the first padding has none; others begin where an interval does.
        if interval and self.elements % interval and interval % self.elements:
            raise argument_error(
                f"{num_warps} waves share a tile that is padded after each {interval} elements",
                f"give each wave whole intervals of it: {self.elements} elements are none",
            )
        self.padding = (interval, amount) if interval < self.elements else (0, 0)


def _dimensions(tile: tuple[int, ...], smem_layout: Layout) -> list[_Dimension]:
    """The parts of a tile in LDS, the innermost first."""
    found = []
    for mode, extent in enumerate(tile):
        own = smem_layout[mode]
        if algebra.size(own) != extent:
            raise argument_error(
                f"a tile of {tile} with the layout {smem_layout} in LDS",
                "mode by mode the layout has as many elements as the tile",
            )
        step = 1
        for part, stride in zip(_leaves(own.shape), _leaves(own.stride), strict=True):
            if part > 1:
                found.append(_Dimension(int(stride), int(part), mode, step))
            step *= int(part)
    return sorted(found)


def _leaves(value: Any) -> tuple[Any, ...]:
    return flatten(value) if isinstance(value, tuple) else (value,)


def _padding(dimensions: Sequence[_Dimension], smem_layout: Layout) -> tuple[int, int]:
    """The number of elements after which LDS has padding, and how many of it; 0, 0 without."""
    so_far, interval, amount = 1, 0, 0
    for dimension in dimensions:
        expected = so_far + (so_far // interval * amount if interval else 0)
        if not interval and dimension.lds_stride > expected > 1:
            interval, amount = so_far, dimension.lds_stride - so_far
        elif dimension.lds_stride != expected:
            raise argument_error(
                f"a tile of the tensor data mover with the layout {smem_layout} in LDS",
                "its elements lie side by side, apart from padding of one size at regular intervals",
            )
        so_far *= dimension.extent
    return interval, amount


def _by_mode(dimensions: Sequence[_Dimension]) -> list[tuple[int, int]]:
    """(mode, extent), where a mode that lies in LDS in several parts, one after another, is one."""
    found: list[tuple[int, int]] = []
    for dimension in dimensions:
        if found and found[-1][0] == dimension.mode and found[-1][1] == dimension.step:
            found[-1] = dimension.mode, found[-1][1] * dimension.extent
        elif dimension.step == 1:
            found.append((dimension.mode, dimension.extent))
        else:
            raise argument_error(
                f"mode {dimension.mode} of the tile lies in LDS in parts with another mode between them",
                "a descriptor moves a box: keep the parts of a mode together",
            )
    return found


def _part(extents: Sequence[tuple[int, int]], elements: int) -> list[tuple[int, int]]:
    """The extents of a number of consecutive elements of a box."""
    found, left = [], elements
    for mode, extent in extents:
        own = min(extent, left)
        if extent % own or left % own:
            raise argument_error(
                f"the part of a wave, {elements} elements, is no box of the tile {dict(extents)}",
                "choose a number of waves that divides the outer mode",
            )
        if own > 1:
            found.append((mode, own))
        left //= own
    if len(found) > _BOX_MODES:
        raise argument_error(
            f"unsupported: a copy by the tensor data mover of {len(found)} dimensions",
            "tiles of two dimensions are supported, and any number of extents of 1",
        )
    return found


@dataclass(frozen=True, eq=False)
class TiledTdmAtom(TileCopy):
    """A copy of the tiles of a tensor. `make_tiled_tdm_atom` makes it.

    boundary_check: for each mode of the tensor, whether what lies outside is left out. workgroup_mask: the workgroups
    of the cluster that ask for the same tile.
    """

    tensor: Tensor
    operation: Any
    box: _Box
    boundary_check: tuple[Any, ...]
    workgroup_mask: Any = 0
    early_timeout: Any = 0

    def set_value(self, values: Mapping[str, Any] | str, value: Any = None) -> TiledTdmAtom:
        """The atom with other values: `workgroup_mask`, `boundary_check`, and `early_timeout` of loads."""
        atom = self
        for name, given in ({values: value} if isinstance(values, str) else values).items():
            if name == "boundary_check":
                checks = _modes(given)
                if len(checks) != len(self.boundary_check):
                    raise argument_error(
                        f"boundary_check={given!r} of a tensor with {len(self.boundary_check)} modes", "one for each"
                    )
                atom = replace(atom, boundary_check=checks)
            elif name in ("workgroup_mask", "early_timeout") and isinstance(self.operation, TensorLoad):
                atom = replace(atom, **{name: given})
            else:
                raise argument_error(
                    f"{type(self.operation).__name__} has no value {name!r}",
                    "boundary_check, and of loads workgroup_mask and early_timeout",
                )
        return atom

    def issue(self, source: Any, target: Any) -> None:
        """Start the copies of this wave's parts. One side is a part of the coordinates, the other a tensor in LDS."""
        is_store = isinstance(self.operation, TensorStore)
        coordinates, place = (target, source) if is_store else (source, target)
        if not isinstance(coordinates, CoordTensor) or not isinstance(place, Tensor) or place.address_space != "shared":
            raise argument_error(
                f"{type(self.operation).__name__} from {source!r} to {target!r}",
                "one side is a part of the coordinates, the other one of shared memory, as tdm_partition gives them",
            )
        for part, where in zip(_parts(coordinates, self.box.elements), _parts(place, self.box.elements), strict=True):
            self._issue_part(part.origin, where, is_store)

    def _issue_part(self, origin: Any, place: Tensor, is_store: bool) -> None:
        layout = get_layout(self.tensor)
        extents, strides = _modes(get_shape(layout)), _modes(get_stride(layout))
        position = origin if isinstance(origin, tuple) else (origin,)
        offset = Int64(0)
        for coordinate, stride in zip(position, strides, strict=True):
            offset = offset + Int64(coordinate) * Int64(stride)
        left = [self._left(mode, position, extents) for mode in range(len(position))]
        modes = [mode for mode, _ in self.box.extents]
        inner = modes[0] if modes else len(position) - 1
        outer = modes[1] if len(modes) > 1 else None
        rows = OPEN_EXTENT if outer is None else left[outer]
        for mode in set(range(len(position))) - set(modes[:_BOX_MODES]) - {inner}:
            if left[mode] is not OPEN_EXTENT:  # of extent 1: the part is inside of the tensor, or nothing of it is
                rows = (Int32(left[mode]) > 0).select(Int32(rows), Int32(0))
        shape = dict(self.box.extents)
        descriptor = make_tensor_descriptor_2d(
            global_ptr=global_address(self.tensor) + offset * element_bytes(self.tensor),
            lds_memref=place,
            global_offset=(0, 0),
            tensor_shape=(bound(rows), bound(left[inner])),
            strides=(shape.get(inner, 1) if outer is None else strides[outer], 1),
            tile_shape=(1 if outer is None else shape[outer], shape.get(inner, 1)),
            elem_bytes=element_bytes(self.tensor),
            pad_interval=self.box.padding[0],
            pad_amount=self.box.padding[1],
            num_warps=1,
            workgroup_mask=self.workgroup_mask,
            early_timeout=bool(self.early_timeout),
            for_store=is_store,
        )
        (tensor_store_2d if is_store else tensor_load_2d)(descriptor, self.operation.cache_modifier)

    def _left(self, mode: int, position: Sequence[Any], extents: Sequence[Any]) -> Any:
        """The elements from a coordinate to the end of the tensor along a mode, OPEN_EXTENT where none are left out."""
        check = self.boundary_check[mode]
        if isinstance(check, int) and not check:
            return OPEN_EXTENT
        start, extent = position[mode], extents[mode]
        left = extent - start if isinstance(start, int) and isinstance(extent, int) else Int32(extent) - Int32(start)
        return left if isinstance(check, int) else (Int32(check) != 0).select(Int32(left), Int32(OPEN_EXTENT))


def _modes(part: Any) -> tuple[Any, ...]:
    """The numbers of a flat tuple of the DSL or of Python."""
    if isinstance(part, tuple | list):
        return tuple(part)
    return tuple(get_(part, i) for i in range(rank(part))) if isinstance(part, IntTuple) else (part,)


def _parts(tensor: Any, elements: int) -> list[Any]:
    """The parts of a partition (part, modes...), each of a given number of elements."""
    shape = get_shape(tensor.layout if isinstance(tensor, CoordTensor) else get_layout(tensor))
    if _has(shape, elements):
        return [tensor]
    modes = [size(get_(shape, i)) for i in range(1, rank(shape))]
    if not all(isinstance(mode, int) for mode in modes) or not _has(get_(shape, 0), elements):
        raise argument_error(
            f"a copy by the tensor data mover of {tensor!r}, with parts of {elements} elements",
            "tdm_partition gives (part, modes...); fix modes that are known at run time only: part[None, step]",
        )
    places = [(None, *place) for place in itertools.product(*(range(mode) for mode in modes))]
    return [tensor[place] for place in places]


def make_tiled_tdm_atom(
    op: TensorLoad | TensorStore,
    tensor: Tensor,
    smem_layout: Layout | Tensor,
    tdm_tile: Sequence[int],
    num_warps: int = 1,
    *,
    init_boundary_check: bool = True,
    atomic_barrier: bool = False,
    internal_type: Any = None,
) -> tuple[TiledTdmAtom, CoordTensor]:
    """A copy of tiles by the tensor data mover, and the coordinates of the tensor, which are divided into tiles.

    tensor: in global memory, of at most five modes without nesting. tdm_tile: how many elements of each mode a tile
    has; at most two of them are more than 1. smem_layout: of the tile in LDS, (modes of the tile), without gaps but for
    padding at regular intervals. The mode that is innermost in LDS has stride 1 in the tensor, too, and a wave
    has at least 16 bytes of it.
    num_warps: the waves that share a tile: `tdm_partition` gives each its part.
    init_boundary_check: leave out what lies outside of the tensor; the value `boundary_check` says it for each mode.
    Raises ArgumentError for other tensors, layouts and tiles.
    """
    if not isinstance(op, TensorLoad | TensorStore):
        raise argument_error(f"make_tiled_tdm_atom of {op!r}", "fx.rocdl.TensorLoad() or fx.rocdl.TensorStore()")
    if atomic_barrier or internal_type is not None:
        raise argument_error(
            "unsupported: make_tiled_tdm_atom with atomic_barrier=True or internal_type=",
            "wait with fx.rocdl.s_wait_tensorcnt(0) and fx.barrier()",
        )
    require_tensor("make_tiled_tdm_atom", tensor)
    if tensor.address_space != "global":
        raise argument_error(f"make_tiled_tdm_atom of a tensor in {tensor.address_space} memory", "a kernel's argument")
    tile = tuple(int(extent) for extent in (tdm_tile.modes if isinstance(tdm_tile, Tile) else tdm_tile))
    layout = get_layout(smem_layout) if isinstance(smem_layout, Tensor) else smem_layout
    if not isinstance(layout, Layout):
        raise argument_error(f"make_tiled_tdm_atom with {layout} in LDS", "a layout that is known at compile time")
    shape = get_shape(get_layout(tensor))
    if rank(shape) != len(tile) or not len(tile) <= _MAX_MODES or rank(layout) != len(tile):
        raise argument_error(
            f"make_tiled_tdm_atom of a tensor {shape}, a tile {tile} and a layout {layout}",
            "all three have the same number of modes, at most five",
        )
    box = _Box(tile, layout, num_warps)
    _check_inner(tensor, box)
    coordinates = make_identity_tensor(shape)
    checks = (int(init_boundary_check),) * len(tile)
    return TiledTdmAtom(tensor, op, box, checks), coordinates


def _check_inner(tensor: Tensor, box: _Box) -> None:
    """Raise ArgumentError unless the innermost mode of a box lies side by side in global memory, too."""
    mode, extent = box.extents[0] if box.extents else (len(box.tile) - 1, 1)
    stride = _modes(get_stride(get_layout(tensor)))[mode]
    if not isinstance(stride, int) or stride != 1:
        raise argument_error(
            f"mode {mode} of the tile is the innermost in LDS, and its stride in the tensor is {stride}",
            "the mover reads rows: let the innermost mode of both be the one with stride 1",
        )
    if extent * element_bytes(tensor) < _INNER_BYTES:
        raise argument_error(
            f"a wave's part has rows of {extent * element_bytes(tensor)} bytes", f"it takes {_INNER_BYTES} or more"
        )


def tdm_partition(
    atom: TiledTdmAtom, warp_coord: Any, warp_layout: Layout, stensor: Tensor, gtensor: CoordTensor
) -> tuple[Tensor, CoordTensor]:
    """The part of a wave in shared memory and in the coordinates: (part, modes...) of each.

    stensor, gtensor: (tile, modes...), whose modes may differ, or the tile alone. warp_layout: coordinate of a wave ->
    its number among those that share the tile.
    Raises ArgumentError for tensors of other tiles, or as many waves as the atom does not have.
    """
    if not isinstance(atom, TiledTdmAtom):
        raise argument_error(f"tdm_partition takes a tiled copy first, not {atom!r}", "make_tiled_tdm_atom makes it")
    box, count = atom.box, atom.box.num_warps
    if algebra.size(warp_layout) != count or sorted(warp_layout(i) for i in range(count)) != list(range(count)):
        raise argument_error(
            f"tdm_partition by the waves {warp_layout} of a copy with num_warps={box.num_warps}",
            "the layout numbers the waves from 0 on, and has as many as the copy",
        )
    wave = crd2idx(warp_coord, warp_layout)
    order = algebra.composition(box.order, Layout((box.elements, count), (1, box.elements)))
    shared = _cut(get_layout(stensor), order, box)
    part = _coalesced(make_view(get_iter(stensor), shared[0])[_of_wave(wave, shared[1])])
    coordinates = _cut(gtensor.layout, order, box)
    return part, gtensor.of_layout(coordinates[0])[_of_wave(wave, coordinates[1])]


def _has(shape: Any, elements: int) -> bool:
    """True for a shape that is known to have this number of elements."""
    count = size(shape)
    return isinstance(count, int) and count == elements


def _cut(layout: Any, order: Layout, box: _Box) -> tuple[Any, int]:
    """A layout (tile, modes...) as ((part, wave), modes...), and the number of its modes; of a tile, (part, wave)."""
    shape = get_shape(layout)
    elements = box.elements * box.num_warps
    if _has(get_(shape, 0), elements):
        rest = rank(shape) - 1
        return composition(layout, Tile((order, *[None] * rest))), rest
    if _has(shape, elements):
        return composition(layout, order), -1
    raise argument_error(
        f"tdm_partition of {shape} with tiles of {box.tile}", "its first mode is the tile, the others are free"
    )


def _coalesced(part: Tensor) -> Tensor:
    """A part of a wave whose first mode has as few modes as possible."""
    layout = get_layout(part)
    if not isinstance(layout, Layout):
        return part
    first, *rest = (layout[mode] for mode in range(layout.rank))
    return make_view(get_iter(part), of_modes([algebra.coalesce(first), *rest]))


def _of_wave(wave: Any, rest: int) -> Any:
    return (None, wave) if rest < 0 else ((None, wave), *[None] * rest)
