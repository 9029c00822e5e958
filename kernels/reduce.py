"""Reductions by the threads that share a row: `fx.coop` with its shared memory allocated on the way."""

from __future__ import annotations

from typing import Any

import flydsl.expr as fx
from flydsl.expr.coop import combination, warp_reduce, warp_size

__all__ = ["block_reduce", "warp_reduce"]


def block_reduce(value: Any, op: Any, threads: int) -> Any:
    """The values of all threads combined, in every thread: in each group of `threads` where that is within a wave.

    threads: of the block, or of a group of lanes. Each call has shared memory of its own, a number per wave, so none
    needs a barrier but the one inside.
    """
    if threads <= warp_size():
        return warp_reduce(value, op, width=threads)
    kind: Any = fx.coop.BlockReduce.__class_getitem__((value.dtype, threads))
    return kind.reduce(value, op, fx.SharedAllocator().allocate(kind.SharedStorage).peek())


def vector_reduce(vector: Any, op: Any) -> Any:
    """The elements of a vector combined by halves, which is how packed instructions do it."""
    combine = combination(op)
    while vector.numel > 1 and vector.numel % 2 == 0:
        half = vector.numel // 2
        vector = combine(vector[:half], vector[half:])
    first, *rest = vector
    for element in rest:
        first = combine(first, element)
    return first
