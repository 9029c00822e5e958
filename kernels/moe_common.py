"""Y[t] = the sum of X[t, s] over the k slots of a token: what a MoE layer does with the rows of its second GEMM.

    compile_moe_reduction(topk=8, model_dim=7168, dtype_str="f16")(X, Y, valid_mask, tokens)

X (T, k, D), Y (T, D) of f32, f16 or bf16; valid_mask (T, k) u8, with use_mask: where it is 0, X is not used, whatever
it holds. Sums are in f32, in the order of the slots, and rounded once.

A block has THREADS vectors of 16 bytes of a token; a thread loads its vector of all slots at once. Where D is no
multiple of 16 bytes, vectors are as long as divides it. The time is that of memory, T (k + 1) D elements.
"""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True)
class Reduction:
    """What is known when compiling."""

    topk: int
    columns: int
    dtype: str
    masked: bool

    @property
    def width(self) -> int:
        """Elements of a vector."""
        return gcd(self.columns, VECTOR_BYTES * 8 // element_type(self.dtype).width)


@flyc.kernel
def moe_reduction_kernel(
    X: fx.Tensor, Y: fx.Tensor, valid_mask: fx.Tensor, tokens: fx.Int32, spec: fx.Constexpr[Reduction]
) -> None:
    """Y[token], the columns of a block."""
    dtype = element_type(spec.dtype)
    token, row_bytes = fx.Int32(fx.block_idx.x), spec.columns * dtype.width // 8
    size = row_bytes * spec.topk
    x = GTensor(X, dtype, base_byte_offset=fx.Int64(token) * size, num_records_bytes=size)
    y = GTensor(Y, dtype, base_byte_offset=fx.Int64(token) * row_bytes, num_records_bytes=row_bytes)
    valid = GTensor(valid_mask, fx.Uint8, num_records_bytes=tokens * spec.topk)
    column = (fx.Int32(fx.block_idx.y) * THREADS + fx.Int32(fx.thread_idx.x)) * spec.width
    total = fx.full(spec.width, 0.0, fx.Float32)
    for slot in range_constexpr(spec.topk):
        loaded = x.vec_load(column, spec.width, soffset_bytes=slot * row_bytes)
        numbers = fx.Vector.from_elements([loaded] if spec.width == 1 else list(loaded), dtype).to(fx.Float32)
        if spec.masked:
            numbers = (valid.load(token * spec.topk + slot) != 0).select(numbers, fx.full_like(numbers, 0.0))
        total = numbers if slot == 0 else total + numbers
    y.vec_store(column, rounded(total, dtype))


@cache
def compile_moe_reduction(*, topk: int, model_dim: int, dtype_str: str = "f16", use_mask: bool = False) -> Any:
    """The launcher (X, Y, valid_mask, tokens, stream). valid_mask: any tensor without use_mask."""
    require(topk >= 1 and model_dim >= 1, f"topk={topk}, model_dim={model_dim}", "both are at least 1")
    dtype = element_type(dtype_str)
    spec = Reduction(topk, model_dim, dtype_str, use_mask)

    def launch(tensors: dict[str, Any], tokens: Any, stream: Any) -> None:
        require_tensors(tensors, X=dtype, Y=dtype)
        require_rows("X", tensors["X"], tokens, topk * model_dim)
        require_rows("Y", tensors["Y"], tokens, model_dim)
        if use_mask:
            require_tensors(tensors, valid_mask=bytes_of(fx.Boolean))
            require_rows("valid_mask", tensors["valid_mask"], tokens, topk)
        kernel = moe_reduction_kernel(*tensors.values(), tokens, spec)
        launch_some(kernel, tokens, (tokens, ceil_div(model_dim, spec.width * THREADS)), THREADS, stream)

    return launcher("launch_moe_reduction", "X Y valid_mask", launch, tokens=fx.Int32)
