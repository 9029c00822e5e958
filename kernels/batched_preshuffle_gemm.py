"""Products of a batch, C_g = A_g B_g^T for each g, in one launch, of micro-scaled fp4 and of other types.

    launch = compile_batched_preshuffle_gemm(K=512, tile_m=32, tile_n=128, tile_k=256, in_dtype="fp4", out_dtype="bf16")
    launch(C, A, B, scale_a, scale_b, bias, M, N, batch)

C: (batch, M, N), A: (batch, M, K), B: (batch, N, K), each of whose matrices is shuffled, and of scales and bias one for
each product, one after the other: types and orders are those of `preshuffle_gemm`. Heads of latent attention are such
products: each has a matrix of its own, and all of them few rows.

A workgroup moves its tensors to where its product begins, and computes a tile as `preshuffle_gemm` does: 32 x 128 x 256
of fp4 takes 64 VGPRs, eight waves per SIMD. Rows after the last of a product, which are the next one's, are neither
read nor written.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from kernels.kernels_common import require
from kernels.launches import chosen, for_waves, launch_some, launcher
from kernels.mfma_preshuffle_pipeline import Tiling, require_types
from kernels.mfma_products import BITS, MICRO_SCALED, THREADS
from kernels.preshuffle_gemm import TENSORS, Plan, Tile, compute_tile
from kernels.preshuffle_gemm import reference as product
from kernels.sizes import require_elements

# (batch, M, N, K)
SHAPES = ((2, 1, 128, 256), (3, 33, 128, 512), (2, 40, 256, 256))


@flyc.kernel
def batched_preshuffle_gemm_kernel(tensors: Any, M: fx.Int32, N: fx.Constexpr[int], plan: fx.Constexpr[Plan]) -> None:
    """A tile of a product. The grid: tiles along M, along N, products."""
    number, sizes = fx.Int32(fx.block_idx.z), elements(plan, M, N)
    compute_tile({name: of_product(tensor, number, sizes[name]) for name, tensor in tensors.items()}, M, N, plan)


def of_product(tensor: Any, number: Any, size: Any) -> Any:
    """The part of a tensor that belongs to a product. size: of each part, in elements of the tensor."""
    return fx.make_view(fx.get_iter(tensor) + fx.Int64(number) * fx.Int64(size), tensor.layout)


def elements(plan: Plan, M: Any, N: int) -> dict[str, Any]:
    """The elements of a product's tensors in memory."""
    k, (a_bits, b_bits) = plan.tiling.k, BITS[plan.tiling.dtype]
    a_bytes, b_bytes = k * a_bits // 8, k * b_bits // 8
    each = 2 if a_bits == 16 else 1  # bytes of an element; what is narrower is in bytes
    sizes = {"C": M * N, "A": M * (a_bytes // each), "B": N * b_bytes // each, "scale_a": 0, "scale_b": 0, "bias": 0}
    if plan.tiling.dtype in MICRO_SCALED:
        sizes |= {"scale_a": (M + 31) // 32 * k, "scale_b": N // 32 * k}
    elif plan.row_scales:
        sizes |= {"scale_a": M, "scale_b": N}
    return sizes | ({"bias": N} if plan.epilogue != "none" else {})


@cache
def compile_batched_preshuffle_gemm(
    *, K: int, tile_m: int, tile_n: int, tile_k: int, in_dtype: str = "fp4", out_dtype: str = "bf16",
    lds_stage: int = 2, use_cshuffle_epilog: bool = False, waves_per_eu: int | None = None,
    use_async_copy: bool = False, epilogue: str = "none",
) -> Any:  # fmt: skip
    """A launcher of (C, A, B, scale_a, scale_b, bias, M, N, batch, stream), every tensor flattened to one dimension.

    Options are those of `compile_preshuffle_gemm_a8`. N is known at compile time, a multiple of tile_n; with fp4,
    tile_m is a multiple of 32, and tile_n of 128. Tensors that the type or the epilogue leaves out have any size.
    Raises ArgumentError where sizes do not fit.
    """
    tiling = Tiling(dtype=in_dtype, k=K, tile_m=tile_m, tile_n=tile_n, tile_k=tile_k, stages=lds_stage)
    plan = Plan(
        tiling=tiling, n=0, out_dtype=out_dtype, cshuffle=use_cshuffle_epilog, asynchronous=use_async_copy,
        ahead=(2, 2 if in_dtype in MICRO_SCALED else 0), epilogue=epilogue,
    )  # fmt: skip
    launch = partial(launch_products, plan, waves_per_eu)
    return launcher("launch_batched_preshuffle_gemm", TENSORS, launch, M=fx.Int32, N=int, batch=fx.Int32)


def launch_products(
    plan: Plan, waves_per_eu: int | None, tensors: dict[str, Any], M: Any, N: int, batch: Any, stream: Any
) -> None:
    """Launch a workgroup for each tile of each product, inside a launcher."""
    tile_m, tile_n = plan.tiling.tile_m, plan.tiling.tile_n
    require(N > 0 and N % tile_n == 0, f"N={N}", f"a multiple of tile_n={tile_n}")
    require_types(plan.tiling.dtype, tensors["A"], tensors["B"])
    kinds = {"C": plan.out, "bias": plan.out} | (
        {"scale_a": fx.Float32, "scale_b": fx.Float32} if plan.row_scales else {}
    )
    for name, size in elements(plan, M, N).items():
        if not isinstance(size, int) or size:
            require_elements(name, tensors[name], batch * size, kinds.get(name, tensors[name].dtype))
    grid = ((M + tile_m - 1) // tile_m, N // tile_n, batch)
    kernel = batched_preshuffle_gemm_kernel(tensors, M, N, plan, value_attrs=for_waves(waves_per_eu))
    launch_some(kernel, fx.min(M, batch), grid, THREADS, stream)


_TILES = tuple(Tile(*sizes) for sizes in ((16, 64, 128), (32, 64, 128), (32, 128, 128), (64, 128, 128), (64, 256, 128)))


@chosen("C A B scale_a scale_b bias", "M N K dtype", _TILES)
def batched_preshuffle_gemm(
    tensors: dict[str, Any], M: fx.Int32, N: int, batch: fx.Int32, K: int, dtype: str, tile: Any, stream: Any
) -> None:
    """The products, in bf16, with a tile that is chosen by measurement."""
    launch_products(tile.plan(0, K, dtype, "bf16"), None, tensors, M, N, batch, stream)


def reference(A: Any, B: Any, scale_a: Any = None, scale_b: Any = None) -> Any:
    """C, in torch and f32. A (batch, M, K) and B (batch, N, K) as numbers; scales of rows of both, (batch, M or N)."""
    import torch

    scales = [(None, None)] * len(A) if scale_a is None else zip(scale_a, scale_b, strict=True)
    return torch.stack([product(a, b, *of_both) for a, b, of_both in zip(A, B, scales, strict=True)])
