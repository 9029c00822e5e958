"""Y[t] = the sum of X[t, s] over the k slots of a token: what a MoE layer does with the rows of its second GEMM.

    compile_moe_reduction(topk=8, model_dim=7168, dtype_str="f16")(X, Y, valid_mask, tokens)

X (T, k, D), Y (T, D) of f32, f16 or bf16; valid_mask (T, k) u8, with use_mask: where it is 0, X is not used, whatever
it holds. Sums are in f32, in the order of the slots, and rounded once.

A block has THREADS vectors of 16 bytes of a token; a thread loads its vector of all slots at once. Where D is no
multiple of 16 bytes, vectors are as long as divides it. The time is that of memory, T (k + 1) D elements.
"""

from __future__ import annotations

from functools import cache
from math import gcd
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr import range_constexpr

from .kernels_common import bytes_of, ceil_div, element_type, require, require_tensors, rounded
from .launches import launch_some, launcher
from .rows import BLOCK_THREADS as THREADS
from .rows import VECTOR_BYTES
from .sizes import require_rows
from .tensor_shim import GTensor

DTYPES = ("f32", "f16", "bf16")
# (T, k, D): one token and slot, vectors of one, two and eight elements, several blocks of a token.
SHAPES = ((1, 1, 64), (5, 3, 101), (3, 2, 1030), (4, 8, 2304))


def reference(X: Any, valid_mask: Any = None) -> Any:
    """The sum by torch, in f32, rounded once."""
    numbers = X.float() if valid_mask is None else X.float().where(valid_mask.bool()[..., None], 0)
    return numbers.sum(1).to(X.dtype)


def vector_width(columns: int, dtype: Any) -> int:
    """Elements of a vector."""
    return gcd(columns, VECTOR_BYTES * 8 // dtype.width)


@flyc.kernel
def moe_reduction_kernel(
    tensors: Any, tokens: fx.Int32, topk: fx.Constexpr[int], columns: fx.Constexpr[int], masked: fx.Constexpr[bool]
) -> None:
    """Y[token], the columns of a block. tensors: X, Y and valid_mask by name."""
    X, Y, valid_mask = tensors.values()
    token, dtype, row_bytes = fx.Int32(fx.block_idx.x), X.dtype, columns * X.dtype.width // 8
    size, width = row_bytes * topk, vector_width(columns, dtype)
    x = GTensor(X, dtype, base_byte_offset=fx.Int64(token) * size, num_records_bytes=size)
    y = GTensor(Y, dtype, base_byte_offset=fx.Int64(token) * row_bytes, num_records_bytes=row_bytes)
    valid = GTensor(valid_mask, fx.Uint8, num_records_bytes=tokens * topk)
    column = (fx.Int32(fx.block_idx.y) * THREADS + fx.Int32(fx.thread_idx.x)) * width
    total = fx.full(width, 0.0, fx.Float32)
    for slot in range_constexpr(topk):
        loaded = x.vec_load(column, width, soffset_bytes=slot * row_bytes)
        numbers = fx.Vector.from_elements([loaded] if width == 1 else list(loaded), dtype).to(fx.Float32)
        if masked:
            numbers = (valid.load(token * topk + slot) != 0).select(numbers, fx.full_like(numbers, 0.0))
        total = numbers if slot == 0 else total + numbers
    y.vec_store(column, rounded(total, dtype))


@cache
def compile_moe_reduction(*, topk: int, model_dim: int, dtype_str: str = "f16", use_mask: bool = False) -> Any:
    """The launcher (X, Y, valid_mask, tokens, stream). valid_mask: any tensor without use_mask."""
    require(topk >= 1 and model_dim >= 1, f"topk={topk}, model_dim={model_dim}", "both are at least 1")
    dtype = element_type(dtype_str)

    def launch(tensors: dict[str, Any], tokens: Any, stream: Any) -> None:
        require_tensors(tensors, X=dtype, Y=dtype)
        require_rows("X", tensors["X"], tokens, topk * model_dim)
        require_rows("Y", tensors["Y"], tokens, model_dim)
        if use_mask:
            require_tensors(tensors, valid_mask=bytes_of(fx.Boolean))
            require_rows("valid_mask", tensors["valid_mask"], tokens, topk)
        kernel = moe_reduction_kernel(tensors, tokens, topk, model_dim, use_mask)
        blocks = ceil_div(model_dim, vector_width(model_dim, dtype) * THREADS)
        launch_some(kernel, tokens, (tokens, blocks), THREADS, stream)

    return launcher("launch_moe_reduction", "X Y valid_mask", launch, tokens=fx.Int32)
