"""C = A + B, element by element, for vectors of any length and stride.

Every thread walks the vectors in steps of the whole grid, so no length needs a condition: a thread whose first element
lies after the end runs its loop zero times. Where all three have stride 1 the loop moves 128 bits at a time, and a
second loop adds the few elements that are left.
"""

from __future__ import annotations

from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr import const_expr, range_constexpr

BLOCK_THREADS = 256
# Blocks that fill the largest GPU the kernel is for; a longer vector is more steps, not more blocks.
MAX_BLOCKS = 1216
VECTOR_BITS = 128

# Lengths: less than one vector, odd, one block, many steps.
SHAPES = ((1,), (100,), (1023,), (4096,), (1_000_003,))
DTYPES = ("float32", "float16", "bfloat16", "int32")


def reference(A: Any, B: Any) -> Any:
    """The result of torch."""
    return A + B


@flyc.kernel
def vector_add_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, n: fx.Int32, width: fx.Constexpr[int]) -> None:
    """C[i] = A[i] + B[i] for i < n. width: elements that a thread moves at a time."""
    thread = fx.block_idx.x * fx.block_dim.x + fx.thread_idx.x
    threads = fx.grid_dim.x * fx.block_dim.x
    elements: int = const_expr(width)
    vectors = n // elements if elements > 1 else 0
    if elements > 1:
        add_vectors(A, B, C, elements, thread, vectors, threads)
    for i in range(vectors * elements + thread, n, threads):
        C[i] = A[i] + B[i]


@flyc.jit
def add_vectors(A: Any, B: Any, C: Any, width: int, first: Any, last: Any, step: Any) -> None:
    """Add the vectors of `width` elements numbered first, first + step, ... below last."""
    atom = fx.make_copy_atom(copy_op(width * A.dtype.width), A.dtype)
    a, b, c = (fx.make_rmem_tensor(width, A.dtype) for _ in range_constexpr(3))
    tiles_a, tiles_b, tiles_c = (fx.logical_divide(tensor, fx.make_layout(width, 1)) for tensor in (A, B, C))
    for i in range(first, last, step):
        fx.copy_atom_call(atom, fx.slice(tiles_a, (None, i)), a)
        fx.copy_atom_call(atom, fx.slice(tiles_b, (None, i)), b)
        c.store(a.load() + b.load())
        fx.copy_atom_call(atom, c, fx.slice(tiles_c, (None, i)))


def copy_op(bits: int) -> Any:
    """The copy of `bits` bits by one thread."""
    return {64: fx.UniversalCopy64b, 128: fx.UniversalCopy128b}[bits]()


def is_contiguous(tensor: Any) -> bool:
    """True if the compiler knows that a traced vector has stride 1."""
    return bool(tensor.type.layout.stride == (1,))


@flyc.jit
def vector_add(
    A: fx.Tensor,
    B: fx.Tensor,
    C: fx.Tensor,
    stream: fx.Stream = fx.Stream(None),
) -> None:
    """C = A + B for vectors of one length, at least 1, and one type; any strides."""
    width = VECTOR_BITS // A.dtype.width if all(map(is_contiguous, (A, B, C))) else 1
    n = A.shape[0]
    per_block = BLOCK_THREADS * width
    blocks = (n + per_block - 1) // per_block
    grid = (blocks > MAX_BLOCKS).select(MAX_BLOCKS, blocks)
    vector_add_kernel(A, B, C, n, width).launch(grid=grid, block=BLOCK_THREADS, stream=stream)
