"""Matrix products of the lock-step backend: registers to matrices, sums over k, and back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from flydsl.simulator.arrays import Array
from flydsl.simulator.isa.matrix import MatrixShape
from flydsl.simulator.lockstep.exact import fma
from flydsl.simulator.lockstep.values import DEFAULT_NAN, DTYPES, constant


def matmul(a: Sequence[Array], b: Sequence[Array], c: Sequence[Array], shape: MatrixShape, waves: int) -> list[Array]:
    """a times b plus c. a, b: per element of a lane, (waves, lanes). c, result: per register. See `isa.matrix`."""
    left = _matrices(a, shape.m, shape, waves)
    right = _matrices(b, shape.n, shape, waves).swapaxes(2, 3)
    block, row, column = _places(shape)
    accumulator = np.stack([_of_lanes(x, shape, waves) for x in c], axis=1)
    if shape.result_type == "f64":
        return _fused(left, right, accumulator, shape)
    product = _product(left, right, shape)[:, block, row, column]
    if shape.result_type == "i32":
        total = product.astype(np.int64).astype(np.uint32) + accumulator
    else:
        exact = product + accumulator.view(np.float32)
        rounded = _to_odd(exact) if shape.rounds_to_odd else exact.astype(np.float32)
        total = _settled(rounded).view(np.uint32)
    return list(total.swapaxes(0, 1))


def _of_lanes(x: Array, shape: MatrixShape, waves: int) -> Array:
    return np.broadcast_to(x, (waves, shape.lanes))


def _to_odd(x: Array) -> Array:
    """f64 as f32, truncated; the last bit is set if anything was lost."""
    near = x.astype(np.float32)
    bits = near.view(np.uint32)
    back = near.astype(np.float64)
    is_inexact = (back != x) & ~np.isnan(x)
    truncated = bits - (np.abs(back) > np.abs(x))
    return (truncated | is_inexact).astype(np.uint32).view(np.float32)


def _matrices(elements: Sequence[Array], rows: int, shape: MatrixShape, waves: int) -> Array:
    """The operands as (waves, blocks, rows, K) f64, in which every product of narrower numbers is exact."""
    stacked = np.stack([_of_lanes(_as_double(x), shape, waves) for x in elements], axis=-1)
    grouped = stacked.reshape(waves, shape.k_groups, shape.blocks, rows, shape.elements_per_lane)
    return grouped.transpose(0, 2, 3, 1, 4).reshape(waves, shape.blocks, rows, shape.k)


def _as_double(x: Array) -> Array:
    return (x.view(np.int32) if x.dtype == DTYPES["i32"] else x).astype(np.float64)


def _product(left: Array, right: Array, shape: MatrixShape) -> Array:
    """The product in f64, summed with k ascending."""
    total = left[..., :, :1] * right[..., :1, :]
    for k in range(1, shape.k):
        total = total + left[..., :, k : k + 1] * right[..., k : k + 1, :]
    return total


def _fused(left: Array, right: Array, accumulator: Array, shape: MatrixShape) -> list[Array]:
    """The f64 product: one fma per k, ascending, starting from C."""
    block, row, column = _places(shape)
    total = accumulator
    for k in range(shape.k):
        total = fma(left[..., k][:, block, row], right[:, :, k][:, block, column], total)
    return list(_settled(total).swapaxes(0, 1))


def _settled(x: Array) -> Array:
    """The floats with every NaN replaced by the default one."""
    return np.where(np.isnan(x), constant(f"i{8 * x.itemsize}", DEFAULT_NAN[x.dtype]).view(x.dtype)[0, 0], x)


@cache
def _places(shape: MatrixShape) -> tuple[Array, Array, Array]:
    """Block, row and column of every element of C and D: each (registers, lanes)."""
    places = np.array([[shape.place(i, lane) for lane in range(shape.lanes)] for i in range(shape.results_per_lane)])
    return places[..., 0], places[..., 1], places[..., 2]
