"""Copy atoms of gfx1250's tensor data mover, which `fx.copy` and `fx.copy_atom_call` take:

    tile = fx.make_view(fx.get_iter(A), fx.make_layout((128, 64), (K, 1)))
    atom = fx.rocdl.make_tdm_atom(tile, [rows_left, None], num_warps=4, pad_interval=64, pad_amount=8)
    fx.copy(atom, tile, lds, imm_offset=step * 64 * 2)
    tdm_ops.tensor_wait(0)
    fx.barrier()

A call issues one descriptor of `tdm_ops` for each wave, and is the same in all lanes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from flydsl.dialect.location import argument_error
from flydsl.expr.atoms.atom_values import TileCopy
from flydsl.expr.layouts.algebra import depth, get_, get_shape, get_stride, rank
from flydsl.expr.memory.tensors import Tensor, get_layout, require_tensor
from flydsl.expr.numeric import Int32, Int64
from flydsl.expr.rocdl.tdm_ops import (
    make_tensor_descriptor_2d,
    tensor_load_2d,
    tensor_load_to_lds,
    tensor_store_2d,
    tensor_store_from_lds,
)
from flydsl.expr.rocdl.tensor_boxes import MOST_DIMENSIONS, make_box_descriptor
from flydsl.expr.rocdl.tensor_descriptors import global_address

__all__ = ["advance_tdm_atom", "make_tdm_atom"]

OPEN_EXTENT = 0x7FFF_FFFF  # that no tile reaches


class _Options:
    """The parts of a descriptor that are known at compile time; loops and branches leave the object as it is."""

    def __init__(self, cache_modifier: int, **descriptor: Any) -> None:
        self.cache_modifier = cache_modifier
        self.descriptor = descriptor


@dataclass(frozen=True, eq=False)
class TdmAtom(TileCopy):
    """A copy of a tile between global memory and LDS. `make_tdm_atom` makes it.

    extents, strides: numbers or None for each dimension, the outer one first. imm_offset: bytes to add to the address
    in global memory. workgroup_mask: the workgroups of the cluster that ask for the same tile.
    """

    extents: tuple[Any, ...]
    strides: tuple[Any, ...]
    options: _Options
    imm_offset: Int64
    workgroup_mask: Any = 0

    def set_value(self, values: Mapping[str, Any] | str, value: Any = None) -> TdmAtom:
        """The atom with other values: `imm_offset`, `workgroup_mask`, `extent_0`, `stride_0`, ..."""
        atom = self
        dimensions = range(len(self.extents))
        for name, number in ({values: value} if isinstance(values, str) else values).items():
            if name == "imm_offset":
                atom = replace(atom, imm_offset=Int64(number))
            elif name == "workgroup_mask":
                atom = replace(atom, workgroup_mask=number)
            elif name in [f"extent_{i}" for i in dimensions]:
                atom = replace(atom, extents=_with(atom.extents, name, number))
            elif name in [f"stride_{i}" for i in dimensions]:
                atom = replace(atom, strides=_with(atom.strides, name, number))
            else:
                raise argument_error(
                    f"a copy by the tensor data mover has no value {name!r}",
                    "imm_offset, workgroup_mask, and extent_0, stride_0 and so on for its dimensions",
                )
        return atom

    def issue(self, source: Any, target: Any) -> None:
        """Start the copy of this wave's part; the address spaces say in which direction."""
        for tensor in (source, target):
            require_tensor("copy", tensor)
        is_store = target.address_space == "global"
        tile, place = (target, source) if is_store else (source, target)
        if (tile.address_space, place.address_space) != ("global", "shared"):
            raise argument_error(
                f"a copy by the tensor data mover from {source.address_space} to {target.address_space} memory",
                "one tensor is in global memory, of a kernel's argument, and the other in shared memory",
            )
        shape, strides = self._geometry(tile)
        if len(shape) > 2:
            self._issue_box(tile, place, shape, strides, is_store)
            return
        descriptor = make_tensor_descriptor_2d(
            global_ptr=global_address(tile) + self.imm_offset,
            lds_memref=place,
            global_offset=(0, 0),
            tensor_shape=self._bounds(),
            strides=(strides[0], 1),
            tile_shape=(shape[0], shape[1]),
            elem_bytes=element_bytes(tile),
            workgroup_mask=self.workgroup_mask,
            for_store=is_store,
            **self.options.descriptor,
        )
        (tensor_store_2d if is_store else tensor_load_2d)(descriptor, self.options.cache_modifier)

    def _issue_box(self, tile: Any, place: Any, shape: Any, strides: Any, is_store: bool) -> None:
        groups = make_box_descriptor(
            global_address(tile) + self.imm_offset,
            place,
            [bound(OPEN_EXTENT if given is None else given) for given in self.extents],
            strides,
            shape,
            elem_bytes=element_bytes(tile),
            workgroup_mask=self.workgroup_mask,
            for_store=is_store,
            **self.options.descriptor,
        )
        (tensor_store_from_lds if is_store else tensor_load_to_lds)(*groups, cache_policy=self.options.cache_modifier)

    def _bounds(self) -> tuple[Any, Any]:
        """Rows and columns of the tensor from the tile's first element on. A negative number is none."""
        rows, columns = (bound(OPEN_EXTENT if given is None else given) for given in (None, *self.extents)[-2:])
        return rows, columns

    def _geometry(self, tile: Tensor) -> tuple[tuple[int, ...], tuple[Any, ...]]:
        """The extents of a tile, at least rows and columns, and elements from one to the next."""
        layout = get_layout(tile)
        dimensions = len(self.extents)
        shape = _numbers(get_shape(layout), dimensions)
        if not all(isinstance(size, int) for size in shape):
            raise argument_error(
                f"a copy by the tensor data mover of {dimensions} dimensions takes no tile with the layout {layout}",
                "fx.make_layout((rows, columns), (stride, 1)) is one; its extents are known at compile time",
            )
        strides = _numbers(get_stride(layout), dimensions)
        given = [own if own is not None else stride for own, stride in zip(self.strides, strides, strict=True)]
        if isinstance(given[-1], int) and given[-1] != 1 and shape[-1] != 1:
            raise argument_error(
                f"a copy by the tensor data mover of a tile whose inner stride is {given[-1]}",
                "the elements of the last dimension lie side by side: let its stride be 1",
            )
        if len(shape) == 1:
            return (1, shape[0]), (shape[0], 1)
        return shape, (*given[:-1], 1)


def _with(numbers: tuple[Any, ...], name: str, number: Any) -> tuple[Any, ...]:
    """The numbers with another one at the position that ends a name."""
    position = int(name.rpartition("_")[2])
    return (*numbers[:position], number, *numbers[position + 1 :])


def _numbers(part: Any, count: int) -> tuple[Any, ...]:
    """The numbers of a shape or stride; of one that has others than so many, (None,)."""
    if rank(part) != count:
        return (None,)
    return tuple(get_(part, i) for i in range(count)) if depth(part) else (part,)


def bound(extent: Any) -> Any:
    """An extent for a descriptor, where a negative one is none."""
    return extent if isinstance(extent, int) and extent > 0 else Int64(Int32(extent))


def element_bytes(tensor: Tensor) -> int:
    """The bytes of an element that the mover copies. Raises ArgumentError for one that is not whole bytes."""
    bits = tensor.type.element_bits
    if bits % 8:
        raise argument_error(
            f"a copy by the tensor data mover of elements of {bits} bits",
            "fx.recast_iter(fx.Int8, pointer) gives them as bytes",
        )
    return bits // 8


def make_tdm_atom(
    tensor: Tensor,
    tensor_extents: Sequence[Any],
    strides: Sequence[Any] | None = None,
    *,
    num_warps: int,
    pad_interval: int = 0,
    pad_amount: int = 0,
    cache_modifier: int = 0,
    atomic_barrier: bool = False,
    early_timeout: bool = False,
) -> TdmAtom:
    """A copy of a tile by the tensor data mover, in either direction.

    tensor: a tile in global memory of one to five dimensions, as calls have it. tensor_extents: for each of them the
    elements of the tensor from the tile's first one on, None for enough; beyond, loads give 0 and stores do nothing.
    strides: elements from one to the next, by default the tile's; the inner one is 1.
    num_warps: the waves of the workgroup that call it, each for its part, see `tdm_ops.compute_warp_distribution`.
    pad_interval, pad_amount: in LDS, pad_amount elements of padding after each pad_interval elements.
    cache_modifier, atomic_barrier, early_timeout: see `tdm_ops.make_tensor_descriptor_2d` and `tensor_load_2d`.
    Values of its calls: `imm_offset`, bytes to add to the address in global memory, and `workgroup_mask`.
    Raises ArgumentError for other dimensions.
    """
    require_tensor("make_tdm_atom", tensor)
    extents = tuple(tensor_extents)
    given = (None,) * len(extents) if strides is None else tuple(strides)
    if not 1 <= len(extents) <= MOST_DIMENSIONS:
        raise argument_error(
            f"unsupported: a copy by the tensor data mover of {len(extents)} dimensions",
            "one to five; a tile of more is several copies, with imm_offset= for each",
        )
    if len(given) != len(extents):
        raise argument_error(
            f"make_tdm_atom of {len(extents)} extents and {len(given)} strides", "as many, or None for the tile's own"
        )
    options = _Options(
        cache_modifier,
        num_warps=num_warps,
        pad_interval=pad_interval,
        pad_amount=pad_amount,
        atomic_barrier_enable=atomic_barrier,
        early_timeout=early_timeout,
    )
    return TdmAtom(extents, given, options, Int64(0))


def advance_tdm_atom(atom: TdmAtom, byte_offset: Any) -> TdmAtom:
    """The atom for a tile that many bytes past its global tensor, whatever its offset was."""
    if not isinstance(atom, TdmAtom):
        raise argument_error(f"advance_tdm_atom takes a copy by the tensor data mover, not {atom!r}", "make_tdm_atom")
    return atom.set_value("imm_offset", byte_offset)
