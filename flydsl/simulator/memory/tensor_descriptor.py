"""The tensor data mover of gfx1250: it copies tiles of up to five dimensions between global memory and LDS.

A descriptor in 12 or 20 scalar registers says what to copy, once for a wave, whatever EXEC is. `FIELDS` is its layout,
for both backends; `Tile` is what it means: rows of elements that lie side by side in global memory, and one after the
other in LDS. What lies beyond the tensor reads as zero, and is not written.

- `global_addr` is where the tile begins, and `tensor_dim0` to `tensor_dim4` are elements of the tensor from there on.
  Strides are elements from one row, plane and so on to the next. A `tile_dim` of 0, but the first, is not used. Of 12
  registers the tensor is one plane, so that a `tile_dim2` of 1 means nothing either (ROCm/rocjitsu-test-corpus, cts,
  tensor_memory_test).
- Padding leaves a number of dwords out in LDS after a number of dwords of the tile; stores ignore it.
- With `gather`, `tile_dim1` rows have the numbers that groups 2 and 3 list.
- With `iterate_enable` a tile of up to three dimensions is copied several times, each time `global_addr_increment` and
  `lds_addr_increment` elements further on. The tensor stays where it is: the strides, the largest first, tell the row,
  plane and so on at which a repetition begins (AMD's functional model, rocm-systems, emulation/rocjitsu). Padding
  begins anew each time; no document says whether it does.
- `workgroup_mask` names the workgroups of the cluster that ask for the same tile, so that memory is read once. Each of
  them has to ask, and gets the tile into its own LDS. How long they wait for each other (`early_timeout`) is nothing
  here, nor is the mask to a workgroup that is in no cluster.

Sources: AMD Instinct CDNA5 Instruction Set Architecture, 10.11 and tables 61 to 67, as far as it agrees with what LLVM
and AMD's kernels write into descriptors. What these leave open is refused, with the name of the field.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from flydsl.simulator.arrays import Array

GROUP_WORDS = (4, 8, 4, 4)
_FIRST_BITS = (0, 128, 384, 512)


class Field(NamedTuple):
    """Bits of a descriptor, counted from the first one of group 0."""

    first: int
    bits: int


def _field(group: int, first: int, last: int) -> Field:
    return Field(_FIRST_BITS[group] + first, last - first + 1)


FIELDS = {
    "count": _field(0, 0, 1),
    "restore": _field(0, 2, 10),
    "index_is_32_bits": _field(0, 30, 30),
    "gather": _field(0, 31, 31),
    "lds_addr": _field(0, 32, 63),
    "global_addr": _field(0, 64, 120),
    "type": _field(0, 126, 127),
    "workgroup_mask": _field(1, 0, 15),
    "data_size": _field(1, 16, 17),
    "atomic_barrier_enable": _field(1, 18, 18),
    "iterate_enable": _field(1, 19, 19),
    "pad_enable": _field(1, 20, 20),
    "early_timeout": _field(1, 21, 21),
    "pad_interval": _field(1, 22, 24),
    "pad_amount": _field(1, 25, 31),
    "atomic_barrier_address": _field(1, 32, 47),
    "tensor_dim0": _field(1, 48, 79),
    "tensor_dim1": _field(1, 80, 111),
    "tile_dim0": _field(1, 112, 127),
    "tile_dim1": _field(1, 128, 143),
    "tile_dim2": _field(1, 144, 159),
    "tensor_dim0_stride": _field(1, 160, 207),
    "tensor_dim1_stride": _field(1, 208, 255),
    "tensor_dim2": _field(2, 0, 31),
    "tensor_dim3": _field(2, 32, 63),
    "tensor_dim2_stride": _field(2, 64, 111),
    "tile_dim3": _field(2, 112, 127),
    "lds_addr_increment": _field(2, 32, 63),
    "global_addr_increment": _field(2, 64, 111),
    "iterate_count": _field(2, 112, 127),
    "tensor_dim3_stride": _field(3, 0, 47),
    "tensor_dim4": _field(3, 48, 79),
    "tile_dim4": _field(3, 80, 95),
    "indices": _field(2, 0, 31),  # the first word of those that list rows
}
"""The fields by AMD's names. Those from lds_addr_increment to iterate_count are with iterate_enable."""

MOST_ITERATIONS = 256
"""An `iterate_count` of 255; no document says what a larger one means."""
MOST_ROWS = 1 << 19
"""More than LDS has bytes."""
_RESTORED, _IMAGE = 2, 2
_DWORD_BYTES = 4


class BadField(ValueError):
    """A field of a descriptor whose value means nothing, or disagrees with another one."""

    def __init__(self, field: str, value: int, why: str, hint: str | None = None) -> None:
        super().__init__(f"{field} is {value:#x}: {why}" if value > 9 else f"{field} is {value}: {why}")
        self.hint = hint


def field_of(words: Sequence[int], name: str) -> int:
    """A field of a descriptor of 20 words."""
    first, bits = FIELDS[name]
    number = sum(int(word) << 32 * i for i, word in enumerate(words[first // 32 : first // 32 + 3]))
    return number >> first % 32 & (1 << bits) - 1


@dataclass(frozen=True)
class Tile:
    """The rows of a tile, in the order in which they lie in LDS, and how they lie there.

    addresses: (rows,) u64, where each begins in global memory; elements: (rows,), how many of each are in the tensor,
    the first ones. width: elements of each row in LDS, of element_bytes each. lds_starts: (rows,), where the part of
    the tile begins that a row is in; places: (rows,), bytes of that part before it, without padding.
    interval_bytes, padding_bytes: of the padding, 0 for none. barrier: the address in LDS of the one to arrive at.
    """

    addresses: Array
    elements: Array
    width: int
    element_bytes: int
    lds_starts: Array
    places: Array
    interval_bytes: int
    padding_bytes: int
    barrier: int | None

    def lds_offsets(self, rows: Array, elements: int) -> Array:
        """The address in LDS of each byte of the first elements of some rows: (rows, bytes)."""
        return self._lds_addresses(rows, np.arange(elements * self.element_bytes))

    def lds_ends(self, rows: Array, elements: int) -> Array:
        """The address in LDS after the first elements of some rows, which may be of any size."""
        return self._lds_addresses(rows, np.array([elements * self.element_bytes - 1]))[:, 0] + 1

    def _lds_addresses(self, rows: Array, bytes_: Array) -> Array:
        place = self.places[rows][:, None] + bytes_
        padding = place // self.interval_bytes * self.padding_bytes if self.interval_bytes else 0
        return np.asarray(self.lds_starts[rows][:, None] + place + padding)


def tile_of(words: Sequence[int], *, is_load: bool) -> Tile | None:
    """The fields of a descriptor of 20 words; None for one that is null. BadField names what is wrong with it."""
    get = partial(field_of, words)
    if get("count") == 0:
        return None
    _check_form(get, is_load=is_load)
    iterations = _iterations(get)
    if get("gather"):
        offsets, elements = _gathered(words)
    else:
        offsets, elements = _dense(get, MOST_ROWS // iterations, iterations)
    element_bytes, width = 1 << get("data_size"), get("tile_dim0")
    repeated = np.repeat(np.arange(iterations), offsets.size)
    step = element_bytes * repeated.astype(np.uint64)
    addresses = np.uint64(get("global_addr")) + np.tile(offsets * np.uint64(element_bytes), iterations)
    if iterations > 1:
        addresses += step * np.uint64(get("global_addr_increment"))
    pads = is_load and get("pad_enable")
    return Tile(
        addresses=addresses,
        elements=elements,
        width=width,
        element_bytes=element_bytes,
        lds_starts=get("lds_addr")
        + (step * np.uint64(get("lds_addr_increment") if iterations > 1 else 0)).astype(np.int64),
        places=np.tile(np.arange(offsets.size) * (width * element_bytes), iterations),
        interval_bytes=_DWORD_BYTES << get("pad_interval") + 1 if pads else 0,
        padding_bytes=_DWORD_BYTES * (get("pad_amount") + 1) if pads else 0,
        barrier=get("atomic_barrier_address") << 3 if get("atomic_barrier_enable") else None,
    )


def _check_form(get: Any, *, is_load: bool) -> None:
    """Raise for fields that are wrong whatever the shape of the tile."""
    if get("count") >= _RESTORED:
        raise BadField("count", get("count"), "1 is a tile, 0 none; others are for restoring a wave")
    if get("restore"):
        raise BadField("is_restore", get("restore"), "bits 10:2 of group 0 are for restoring a wave")
    if get("type") != _IMAGE:
        raise BadField("type", get("type"), "the upper two bits of group 0 are 2 in a tensor descriptor",
                       "make_tensor_descriptor_2d sets them; keep them in a new upper word of the address")  # fmt: skip
    if get("tile_dim0") == 0:
        raise BadField("tile_dim0", 0, "a tile has at least one element in a row; the hardware copies nothing",
                       "pred=0 says that nothing is to be copied")  # fmt: skip
    row_bytes = get("tile_dim0") << get("data_size")
    if is_load and get("pad_enable") and row_bytes % _DWORD_BYTES:
        raise BadField("tile_dim0", get("tile_dim0"), f"a row has {row_bytes} bytes, and padding needs whole dwords")


def _dense(get: Any, most_rows: int, iterations: int) -> tuple[Array, Array]:
    """For each row, the element at which it begins, from the tile's first one, and how many are in the tensor; the rows
    of all repetitions one after the other."""
    most = 3 if get("iterate_enable") else 5
    if most == 3 and get("tile_dim4"):
        raise BadField("tile_dim4", get("tile_dim4"), "a tile that iterates has up to three dimensions")
    sizes = [get(f"tile_dim{i}") for i in range(1, most)]
    used = [size for size in sizes if size]
    if sizes[: len(used)] != used:
        unused = sizes.index(0) + 1
        raise BadField(f"tile_dim{unused}", 0, "a dimension is not used, but a later one is")
    if math.prod(used) > most_rows:
        raise BadField("tile_dim1", get("tile_dim1"), f"the tile has {math.prod(used)} rows, more than LDS has bytes")
    offsets = np.zeros(1, np.uint64)
    for i, size in enumerate(used):
        along = np.arange(size, dtype=np.uint64)
        stride = np.uint64(get(f"tensor_dim{i}_stride"))
        offsets = (along[:, None] * stride + offsets).reshape(-1)
    return offsets, np.concatenate([_elements_inside(get, used, origin) for origin in _origins(get, used, iterations)])


def _elements_inside(get: Any, used: Sequence[int], origin: Sequence[int]) -> Array:
    """The elements of each row of a tile that are in the tensor. origin: where the tile begins in it."""
    is_inside = np.ones(1, np.bool_)
    for i, size in enumerate(used, start=1):
        is_inside = ((origin[i] + np.arange(size) < get(f"tensor_dim{i}"))[:, None] & is_inside).reshape(-1)
    return np.where(is_inside, min(get("tile_dim0"), max(get("tensor_dim0") - origin[0], 0)), 0)


def _origins(get: Any, used: Sequence[int], iterations: int) -> list[list[int]]:
    """The start of each repetition in the tensor: its element, row and plane."""
    step = get("global_addr_increment") if iterations > 1 else 0
    strides = {i: get(f"tensor_dim{i - 1}_stride") for i in range(1, len(used) + 1) if get(f"tensor_dim{i}") > 1}
    origins = []
    for repetition in range(iterations):
        origin, rest = [0] * (len(used) + 1), repetition * step
        for i in sorted(strides, key=lambda i: -strides[i]) if step else ():
            if strides[i] < get("tensor_dim0"):
                why = "the rows of a tile that iterates overlap, so that a repetition has no place in the tensor"
                raise BadField(f"tensor_dim{i - 1}_stride", strides[i], why)
            origin[i], rest = divmod(rest, strides[i])
        origin[0] = rest
        origins.append(origin)
    return origins


def _gathered(words: Sequence[int]) -> tuple[Array, Array]:
    """The same for rows by their numbers."""
    get = partial(field_of, words)
    first = FIELDS["indices"].first // 32
    listed = np.array(words[first:], np.uint32)
    indices = (listed if get("index_is_32_bits") else listed.view(np.uint16)).astype(np.uint64)
    count = get("tile_dim1")
    if not 1 <= count <= indices.size:
        raise BadField("tile_dim1", count, f"the number of rows to gather, 1 to {indices.size}")
    indices = indices[:count]
    is_inside = indices < get("tensor_dim1")
    if not is_inside.all() and (np.diff(indices.astype(np.int64)) < 0).any():
        why = f"of the rows {indices.tolist()} some are beyond it, which works in ascending order only"
        raise BadField("tensor_dim1", get("tensor_dim1"), why)
    elements = min(get("tile_dim0"), get("tensor_dim0"))
    return indices * np.uint64(get("tensor_dim0_stride")), np.where(is_inside, elements, 0)


def _iterations(get: Any) -> int:
    if not get("iterate_enable") or get("gather"):
        return 1
    count = int(get("iterate_count")) + 1
    if count > MOST_ITERATIONS:
        raise BadField("iterate_count", count - 1, f"the repetitions after the first, up to {MOST_ITERATIONS - 1}")
    return count


def check_multicast(words: Sequence[int], number: int | None, workgroups: int) -> None:
    """Raise for a mask that a workgroup cannot ask with. number: its own in a cluster of so many; None in none."""
    mask = field_of(words, "workgroup_mask")
    if not mask or number is None:
        return
    if mask >> workgroups:
        raise BadField("workgroup_mask", mask, f"the cluster has {workgroups} workgroups")
    if not mask >> number & 1:
        raise BadField("workgroup_mask", mask, f"this workgroup, number {number} of its cluster, is not among them",
                       "each of them asks for the tile, and gets it into its own LDS")  # fmt: skip
