"""Descriptors of gfx1250's tensor data mover for boxes of three to five dimensions, which take all four groups.

Where each field lies: `flydsl.simulator.memory.tensor_descriptor`, after AMD's CDNA 5 ISA, tables 61 to 67.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from flydsl.atoms.instruction_sets import GFX1250
from flydsl.dialect.location import argument_error
from flydsl.expr.numbers.vector_value import Vector
from flydsl.expr.numeric import Int32, Int64, Uint32
from flydsl.expr.rocdl.ids import wave_id
from flydsl.expr.rocdl.intrinsic import require_target
from flydsl.expr.rocdl.lds_address import lds_address
from flydsl.expr.rocdl.tensor_descriptors import (
    FIELD_MAX,
    PREDICATE,
    Padding,
    descriptor_bits,
    first_group,
    high_half,
    plane_group,
    remaining,
    signed_word,
    unsigned,
)
from flydsl.expr.tracing.immediates import immediate

MOST_DIMENSIONS = 5


def box_parts(shape: Sequence[int], num_warps: int) -> tuple[list[int], list[int]]:
    """The numbers of waves along each dimension of a box, the outer one first, and the box of one wave.

    Waves double along a dimension while each has a part of its own, and go on in the next one then.

    >>> box_parts((4, 8, 64), 8), box_parts((2, 3, 64), 1)
    (([4, 2, 1], [1, 4, 64]), ([1, 1, 1], [2, 3, 64]))
    """
    waves, left = [], num_warps
    for size in shape:
        count = 1
        while count < left and 2 * count <= size:
            count *= 2
        waves.append(count)
        left //= count
    parts = [size // count for size, count in zip(shape, waves, strict=True)]
    if math.prod(waves) != num_warps or any(size % count for size, count in zip(shape, waves, strict=True)):
        raise argument_error(
            f"a box of {' x '.join(map(str, shape))} does not divide among {num_warps} waves",
            "pass a power of two that divides its outer dimension, or more where that is one, too",
        )
    return waves, parts


def make_box_descriptor(
    global_address: Int64,
    lds_memref: Any,
    extents: Sequence[Any],
    strides: Sequence[Any],
    shape: Sequence[int],
    *,
    elem_bytes: int,
    num_warps: int,
    pad_interval: int,
    pad_amount: int,
    workgroup_mask: Any,
    for_store: bool,
    atomic_barrier_enable: bool,
    early_timeout: bool,
) -> tuple[Vector, Vector, Vector, Vector]:
    """The four groups for a box, or for this wave's part of it. The parameters are `make_tensor_descriptor_2d`'s.

    extents, strides, shape: of each dimension, the outer one first. The parts of the waves follow each other in LDS.
    Raises ArgumentError for a store from LDS with padding.
    """
    require_target("a tensor descriptor", GFX1250)
    if for_store and pad_interval:
        raise argument_error(
            f"unsupported: a store of {len(shape)} dimensions from LDS with padding", "store planes, of two dimensions"
        )
    sizes = [immediate("the shape of a tensor descriptor", size, 1, FIELD_MAX) for size in shape]
    waves, parts = box_parts(sizes, num_warps)
    padding = Padding(pad_interval, pad_amount)
    own, place = [Int64(0)] * len(sizes), lds_address("a tensor descriptor", lds_memref, 0)
    if num_warps > 1:
        number, position = Uint32(wave_id()), Uint32(0)
        for i, count in enumerate(waves):
            own[i] = Int64(number % count * parts[i])
            position = position * count + number % count
            number = number // count
        place = place + Int32(position * (padding.extent(math.prod(parts)) * elem_bytes))
    steps = [Int64(unsigned(stride)) for stride in strides]
    offset = sum((first * step for first, step in zip(own, steps, strict=True)), Int64(0))
    left = [remaining(extent, size, first) for extent, size, first in zip(extents, sizes, own, strict=True)]
    bits = descriptor_bits(elem_bytes, None if for_store else padding, atomic_barrier_enable, early_timeout)
    inner = [[*reversed(numbers), *[1] * (MOST_DIMENSIONS - len(sizes))] for numbers in (left, parts)]
    (_, _, *outer), tile = inner
    steps = [*steps[-2::-1], *[Int64(0)] * (MOST_DIMENSIONS - len(sizes))]
    return (
        first_group(PREDICATE, place, global_address + offset * elem_bytes),
        plane_group(bits, workgroup_mask, left[:-3:-1], tile[:3], steps[:2]),
        _third_group(outer[:2], steps[2], tile[3] if len(sizes) > 3 else 0),
        _fourth_group(steps[3], outer[2], tile[4] if len(sizes) > 4 else 0),
    )


def _third_group(extents: Sequence[Any], stride: Int64, tile: int) -> Vector:
    """Two extents of the tensor, a stride of 48 bits, and an extent of the tile."""
    low, high = Int32(stride), Int32(stride >> 32) & FIELD_MAX
    return Vector.from_elements([*map(_word, extents), low, high | signed_word(tile << 16)], Int32)


def _fourth_group(stride: Int64, extent: Any, tile: int) -> Vector:
    """A stride of 48 bits, an extent of the tensor of 32, and an extent of the tile."""
    last = _word(extent)
    words = [Int32(stride), Int32(stride >> 32) & FIELD_MAX | (last << 16), high_half(last) | signed_word(tile << 16)]
    return Vector.from_elements([*words, Int32(0)], Int32)


def _word(extent: Any) -> Int32:
    return Int32(signed_word(extent)) if isinstance(extent, int) else Int32(extent)
