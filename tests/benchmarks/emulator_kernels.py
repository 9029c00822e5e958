"""Kernels of the suites of AMD's emulator that the library has no use for: each does one thing, in the plainest way."""

from __future__ import annotations

from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx

_THREADS = 256
_COPY_BLOCKS = 256
_TRANSPOSE_TILE, _TRANSPOSE_ROWS = 32, 8
_WAVES = fx.make_layout((2, 2, 1), (1, 2, 0))
_REPEAT = 2  # instructions of a wave along each mode of the tile: 64 x 64 x 64


@flyc.kernel
def copy_kernel(source: fx.Tensor, target: fx.Tensor, vectors: fx.Int32) -> None:
    """Copy vectors of 16 bytes, in steps of the whole grid."""
    atom = fx.make_copy_atom(fx.UniversalCopy128b(), source.dtype)
    held = fx.make_rmem_tensor(4, source.dtype)
    sources, targets = (fx.logical_divide(tensor, fx.make_layout(4, 1)) for tensor in (source, target))
    for i in range(fx.block_idx.x * _THREADS + fx.thread_idx.x, vectors, _THREADS * _COPY_BLOCKS):
        fx.copy_atom_call(atom, fx.slice(sources, (None, i)), held)
        fx.copy_atom_call(atom, held, fx.slice(targets, (None, i)))


@flyc.jit
def copy(source: fx.Tensor, target: fx.Tensor) -> None:
    """Copy f32 elements, of which there must be a multiple of four."""
    copy_kernel(source, target, source.shape[0] // 4).launch(grid=_COPY_BLOCKS, block=_THREADS)


@flyc.kernel
def transpose_kernel(source: fx.Tensor, target: fx.Tensor) -> None:
    """Transpose a tile by way of shared memory, whose rows are one element longer."""
    tile = fx.SharedAllocator().allocate(fx.Array[source.dtype, _TRANSPOSE_TILE * (_TRANSPOSE_TILE + 1)]).peek()
    x, y = fx.thread_idx.x, fx.thread_idx.y
    column, row = fx.block_idx.x * _TRANSPOSE_TILE, fx.block_idx.y * _TRANSPOSE_TILE
    for i in fx.range_constexpr(0, _TRANSPOSE_TILE, _TRANSPOSE_ROWS):
        tile[(y + i) * (_TRANSPOSE_TILE + 1) + x] = source[row + y + i, column + x]
    fx.barrier()
    for i in fx.range_constexpr(0, _TRANSPOSE_TILE, _TRANSPOSE_ROWS):
        target[column + y + i, row + x] = tile[x * (_TRANSPOSE_TILE + 1) + y + i]


@flyc.jit
def transpose(source: fx.Tensor, target: fx.Tensor) -> None:
    """Transpose a matrix whose sizes are multiples of 32."""
    rows, columns = source.shape[0], source.shape[1]
    transpose_kernel(source, target).launch(
        grid=(columns // _TRANSPOSE_TILE, rows // _TRANSPOSE_TILE), block=(_TRANSPOSE_TILE, _TRANSPOSE_ROWS)
    )


@flyc.kernel
def gather_kernel(source: fx.Tensor, indices: fx.Tensor, target: fx.Tensor, elements: fx.Int32) -> None:
    """target[i] = source[indices[i]]"""
    i = fx.block_idx.x * _THREADS + fx.thread_idx.x
    if i < elements:
        target[i] = source[indices[i]]


@flyc.jit
def gather(source: fx.Tensor, indices: fx.Tensor, target: fx.Tensor) -> None:
    elements = target.shape[0]
    gather_kernel(source, indices, target, elements).launch(grid=(elements + _THREADS - 1) // _THREADS, block=_THREADS)


@flyc.kernel
def add_to_buckets_kernel(values: fx.Tensor, sums: fx.Tensor) -> None:
    """Add each value to the sum of its bucket, atomically."""
    i = fx.block_idx.x * _THREADS + fx.thread_idx.x
    fx.atomic_add(fx.get_iter(sums) + i % sums.shape[0], values[i])


@flyc.jit
def add_to_buckets(values: fx.Tensor, sums: fx.Tensor) -> None:
    """Add values, a multiple of 256 of them, in turn to as many sums as there are."""
    add_to_buckets_kernel(values, sums).launch(grid=values.shape[0] // _THREADS, block=_THREADS)


@flyc.kernel
def product_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, mma: fx.TiledMma, atom: fx.Constexpr[Any]) -> None:
    """A tile of C = A B^T of one batch, from memory to the fragments of the matrix instructions, element by element.

    What lies behind the last column of a matrix is its next row: it is not loaded, and not stored.
    """
    bm, bn, bk = _tile(mma)
    m, n, batch = fx.block_idx
    A, B, C = (fx.rocdl.make_buffer_tensor(fx.slice(t, (batch, None, None)), max_size=False) for t in (A, B, C))
    columns, depth = fx.get_scalar(C.shape[1]), fx.get_scalar(A.shape[1])
    tiles_a = fx.flat_divide(A, (bm, bk))[None, None, m, None]
    tiles_b = fx.flat_divide(B, (bn, bk))[None, None, n, None]
    tile_c = fx.flat_divide(C, (bm, bn))[None, None, m, n]
    thread, i = mma.get_slice(fx.thread_idx.x), fx.thread_idx.x
    copy_a, copy_b, copy_c = (
        make(atom, mma).get_slice(i) for make in (fx.make_tiled_copy_A, fx.make_tiled_copy_B, fx.make_tiled_copy_C)
    )
    part_a, part_b = thread.make_fragment_A(tiles_a[None, None, 0]), thread.make_fragment_B(tiles_b[None, None, 0])
    sums = thread.make_fragment_C(tile_c)
    sums.fill(0)
    for k in range((depth + bk - 1) // bk):
        for copy, tiles, rows, part in ((copy_a, tiles_a, bm, part_a), (copy_b, tiles_b, bn, part_b)):
            part.fill(0)
            inside = columns_inside(copy.partition_S(fx.make_identity_tensor((rows, bk))), depth - k * bk)
            fx.copy(atom, copy.partition_S(tiles)[None, None, None, k], copy.retile(part), pred=inside)
        fx.gemm(mma, sums, part_a, part_b, sums)
    rounded = fx.make_fragment_like(sums, C.dtype)
    rounded.store(sums.load().to(C.dtype))
    inside = columns_inside(copy_c.partition_D(fx.make_identity_tensor((bm, bn))), columns - n * bn)
    fx.copy(atom, copy_c.retile(rounded), copy_c.partition_D(tile_c), pred=inside)


def columns_inside(places: Any, columns: Any) -> Any:
    """For each place (row, column) of a thread, whether its column is one of the first `columns`."""
    values, *rest = places.shape
    inside = fx.make_rmem_tensor((fx.size(values), *rest), fx.Boolean)
    for i in range(fx.size(inside)):
        inside[i] = places[i][1] < columns
    return inside


def _tile(mma: Any) -> tuple[int, ...]:
    return tuple(_REPEAT * extent for extent in mma.tile_size_mnk)


@flyc.jit
def product(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor) -> None:
    """C = A B^T in 16-bit floats for each batch, of any sizes: A (batch, M, K), B (batch, N, K), C (batch, M, N)."""
    mma = fx.make_tiled_mma(fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 32, A.dtype)), _WAVES)
    bm, bn, _ = _tile(mma)
    batches, rows, columns = (fx.get_scalar(size) for size in C.shape)
    product_kernel(A, B, C, mma, fx.make_copy_atom(fx.rocdl.BufferCopy(16), A.dtype)).launch(
        grid=((rows + bm - 1) // bm, (columns + bn - 1) // bn, batches), block=fx.size(mma.thr_layout_vmnk)
    )
