"""`gpu.launch_func`, read and made without MLIR's class for it, whose module takes 17 ms to import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from mlir import ir

NAME = "gpu.launch_func"
_SEGMENTS = "operandSegmentSizes"

# The groups of its operands: what it waits for, sizes of grid, block and cluster, dynamic LDS, the kernel's operands
# and the object of an asynchronous launch, its stream.
_NUMBER_OF_GROUPS = 13
_SIZES, _DYNAMIC_LDS, _KERNEL_OPERANDS, _STREAM = range(1, 7), 10, 11, 12


def create_launch(
    kernel: Sequence[str],
    grid: Sequence[ir.Value],
    block: Sequence[ir.Value],
    operands: Sequence[ir.Value],
    stream: ir.Value,
    lds_bytes: ir.Value,
    at: ir.Location,
) -> ir.Operation:
    """A launch on a stream, at the insertion point. kernel: the names of its GPU module and its function."""
    sizes = [1, *[1] * len(grid), *[1] * len(block), 0, 0, 0, 1, len(operands), 0]
    return ir.Operation.create(
        NAME,
        [ir.Type.parse("!gpu.async.token")],
        [stream, *grid, *block, lds_bytes, *operands],
        {"kernel": ir.SymbolRefAttr.get(list(kernel)), _SEGMENTS: ir.DenseI32ArrayAttr.get(sizes)},
        loc=at,
    )


def kernel_of(launch: ir.Operation) -> str:
    """The name of the kernel, without its GPU module."""
    return ir.SymbolRefAttr(launch.attributes["kernel"]).value[-1]


def kernel_operands(launch: ir.Operation) -> list[ir.Value]:
    """The arguments of the kernel."""
    return _group(launch, _KERNEL_OPERANDS)


def dynamic_lds_bytes(launch: ir.Operation) -> ir.Value | None:
    """The size of the dynamic LDS, in bytes; None where there is none."""
    return next(iter(_group(launch, _DYNAMIC_LDS)), None)


@dataclass(frozen=True)
class Places:
    """The places of a launch's operands: the sizes of grid and block, dynamic LDS and stream if given, the kernel's."""

    sizes: tuple[int, ...]
    lds_bytes: int | None
    stream: int | None
    of_kernel: range


def places_of(launch: ir.Operation) -> Places:
    """The places among the operands of a launch that has no others, as `gpu-to-llvm` leaves it."""
    sizes = _sizes(launch)
    starts = [0, *accumulate(sizes)]
    places = [range(start, start + size) for start, size in zip(starts, sizes, strict=False)]
    return Places(
        tuple(place for number in _SIZES for place in places[number]),
        next(iter(places[_DYNAMIC_LDS]), None),
        next(iter(places[_STREAM]), None),
        places[_KERNEL_OPERANDS],
    )


def with_kernel_operands(launch: ir.Operation, operands: Sequence[ir.Value]) -> ir.Operation:
    """Replace a launch by one whose kernel has other operands, and return that."""
    sizes = _sizes(launch)
    start = sum(sizes[:_KERNEL_OPERANDS])
    all_operands = list(launch.operands)
    all_operands[start : start + sizes[_KERNEL_OPERANDS]] = operands
    sizes[_KERNEL_OPERANDS] = len(operands)
    attributes = {name: launch.attributes[name] for name in launch.attributes}
    attributes[_SEGMENTS] = ir.DenseI32ArrayAttr.get(sizes)
    with ir.InsertionPoint(launch):
        made = ir.Operation.create(
            NAME, [result.type for result in launch.results], all_operands, attributes, loc=launch.location
        )
    for old, new in zip(launch.results, made.results, strict=True):
        old.replace_all_uses_with(new)
    launch.erase()
    return made


def _group(launch: ir.Operation, number: int) -> list[ir.Value]:
    ends = list(accumulate(_sizes(launch)))
    return list(launch.operands)[ends[number - 1] : ends[number]]


def _sizes(launch: ir.Operation) -> list[int]:
    sizes = list(ir.DenseI32ArrayAttr(launch.attributes[_SEGMENTS]))
    assert len(sizes) == _NUMBER_OF_GROUPS, sizes
    return sizes
