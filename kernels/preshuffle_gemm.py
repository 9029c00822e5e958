"""C = A B^T with B shuffled beforehand, for every element type that the matrix instructions have.

    launch = compile_preshuffle_gemm_a8(K=8192, tile_m=64, tile_n=256, tile_k=128, in_dtype="fp8", out_dtype="bf16")
    launch(C, A, shuffle_weight(B), scale_a, scale_b, bias, M, N)

| in_dtype | A | B | C |
|---|---|---|---|
| fp8, int8 | fp8 or i8 | the same | (A B^T) * scale_a[m] * scale_b[n] |
| int4 | i8 | 4 bits, `pack_int4` | the same |
| fp16, bf16 | 16 bits | the same | A B^T |
| fp4, fp6 | fp4, or fp6 in 8 bits | fp4 | A B^T, 32 values along K share a scale: E8M0, `shuffle_scale`; CDNA 4 |

A workgroup of four waves computes tile_m x tile_n. Its rows of A are in shared memory, swizzled, in one buffer or two;
each wave loads its own columns of B into registers. While a tile of K is multiplied, the next one is on its way, and
the scheduler is told to put memory accesses between matrix instructions. `mfma_preshuffle_pipeline` has the parts,
`shuffles` what puts B and scales in order.

128 x 128 x 128 of fp8: 140 VGPRs, of which 64 hold sums and 32 two tiles of B; two workgroups share a compute unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from kernels.kernels_common import bytes_of, require, require_tensors
from kernels.launches import for_waves, launch_some, launcher, tuned
from kernels.layout_utils import swizzled_blocks
from kernels.mfma_epilogues import ACTIVATIONS, TileC, activated
from kernels.mfma_preshuffle_pipeline import (
    BITS,
    MICRO_SCALED,
    THREADS,
    W4A16,
    MxScales,
    Product,
    TileA,
    TileB,
    Tiling,
    main_loop,
    multiply_groups,
    no_scales,
    require_types,
)
from kernels.sizes import require_elements, require_rows

TENSORS = "C A B scale_a scale_b bias"
OUT_TYPES = {"fp16": fx.Float16, "bf16": fx.BFloat16}
# (M, N, K): one row, a partial tile, several tiles, an odd number of tiles along K.
SHAPES = ((1, 128, 512), (33, 128, 768), (130, 256, 1024))


def reference(
    A: Any, B: Any, scale_a: Any = None, scale_b: Any = None, *, bias: Any = None, epilogue: str = "none"
) -> Any:
    """The result of torch in f32. A (M, K) and B (N, K) as numbers; scales of A's rows and of B's; bias: (N)."""
    import torch

    result = A.float() @ B.float().T
    if scale_a is not None:
        result = result * scale_a[:, None] * scale_b
    activations = {
        "bias_relu": torch.relu,
        "bias_silu": torch.nn.functional.silu,
        "bias_gelu": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    }
    return result if epilogue == "none" else activations.get(epilogue, lambda x: x)(result + bias.float())


@dataclass(frozen=True)
class Plan:
    """What a kernel is compiled for. See `compile_preshuffle_gemm_a8`."""

    tiling: Tiling
    n: int
    out_dtype: str
    cshuffle: bool
    asynchronous: bool
    ahead: tuple[int, int]
    epilogue: str
    xcd_swizzle: int

    def __post_init__(self) -> None:
        require(self.tiling.dtype != W4A16, f"in_dtype={W4A16!r}", "one of the types above; moe_gemm_2stage has it")

    @property
    def row_scales(self) -> bool:
        """True if C is multiplied by scales of rows and columns."""
        return self.tiling.dtype in ("fp8", "int8", "int4")

    @property
    def micro_scales(self) -> bool:
        """True if 32 values along K share a scale."""
        return self.tiling.dtype in MICRO_SCALED


@flyc.kernel
def preshuffle_gemm_kernel(tensors: Any, M: fx.Int32, N: fx.Constexpr[int], plan: fx.Constexpr[Plan]) -> None:
    """One tile of C. tensors: by the names of TENSORS."""
    C, A, B, scale_a, scale_b, bias = tensors.values()
    tiling = plan.tiling
    product = Product.of(tiling.dtype)
    require_types(tiling.dtype, A, B)
    out_type = OUT_TYPES[plan.out_dtype]
    require_tensors(tensors, C=out_type, rows="C")
    if plan.epilogue != "none":
        require_tensors(tensors, bias=out_type)
    if plan.row_scales or plan.micro_scales:
        kinds = fx.Float32 if plan.row_scales else bytes_of(fx.Float8E8M0FNU)
        require_tensors(tensors, scale_a=kinds, scale_b=kinds)
    place = tile_place(plan, N)
    a, b = TileA(tiling, product, A, M, place[0]), TileB(tiling, product, B, place[1])
    c = TileC(C, out_type, M, N, (tiling.tile_m, tiling.tile_n), place, tiling.wave_tile)
    micro = MxScales(tiling, scale_a, scale_b, M, N, place) if plan.micro_scales else None

    def multiply(sums: Any, now_b: Any, now_scales: Any, fragment: Any, stage: int) -> Any:
        chosen = None if micro is None else micro.chooser(now_scales, stage)
        return multiply_groups(b, sums, now_b, fragment, chosen)

    sums = main_loop(
        a, b, product.tile_of_zeros(tiling), multiply, scales=no_scales if micro is None else micro.load,
        asynchronous=plan.asynchronous, hints=not plan.asynchronous, ahead=plan.ahead,
    )  # fmt: skip
    result = with_scales(plan, c, sums, scale_a, scale_b, bias, M)
    finish = partial(c.store_through, a.buffer) if plan.cshuffle else c.store
    finish(result)


def tile_place(plan: Plan, N: int) -> tuple[Any, Any]:
    """The tile's numbers along M and N."""
    if not plan.xcd_swizzle:
        return fx.block_idx.x, fx.block_idx.y
    block = fx.block_idx.x + fx.block_idx.y * fx.grid_dim.x
    columns = N // plan.tiling.tile_n
    return swizzled_blocks(fx.Int32(block), fx.Int32(fx.grid_dim.x) * columns, columns, plan.xcd_swizzle)


def with_scales(plan: Plan, c: TileC, sums: Any, scale_a: Any, scale_b: Any, bias: Any, M: Any) -> Any:
    """(mi, ni, ii) -> the element of C before it is rounded."""
    if plan.row_scales:
        # unpack_int4 gives 16 times the weights.
        factor = 1 / 16 if plan.tiling.dtype == "int4" else 1.0
        of_columns = [scale * factor for scale in c.of_columns(scale_b, fx.Float32)]
        of_rows = c.of_rows(scale_a, M)
    biases = c.of_columns(bias, OUT_TYPES[plan.out_dtype]) if plan.epilogue != "none" else []

    def result(mi: int, ni: int, ii: int) -> Any:
        value = sums[mi][ni][ii]
        if plan.row_scales:
            value = value.to(fx.Float32) * of_rows[mi][ii] * of_columns[ni]
        return activated(value + biases[ni].to(fx.Float32), plan.epilogue) if biases else value

    return result


@cache
def compile_preshuffle_gemm_a8(
    *, M: int = 0, N: int = 0, K: int, tile_m: int, tile_n: int, tile_k: int, in_dtype: str = "fp8",
    out_dtype: str = "fp16", lds_stage: int = 2, use_cshuffle_epilog: bool = False, waves_per_eu: int | None = None,
    use_async_copy: bool = False, dsrd_preload: int = -1, dvmem_preload: int = -1, epilogue: str = "none",
    xcd_swizzle: int = 0,
) -> Any:  # fmt: skip
    """A launcher of (C, A, B, scale_a, scale_b, bias, M, N, stream), every tensor flattened to one dimension.

    M, N: 0 if the launcher's are any; a launcher's N is known when compiling, and a multiple of tile_n. K is a multiple
    of tile_k. lds_stage: buffers of A in shared memory. use_cshuffle_epilog: C goes through shared memory, so that a
    thread stores several columns at a time. use_async_copy: A goes past the registers. waves_per_eu: waves per SIMD
    that registers are allocated for. dsrd_preload, dvmem_preload: reads of shared and of global memory before the first
    matrix instruction of a tile; -1 for a good choice. epilogue: bias, bias_relu, bias_silu or bias_gelu, where bias
    has C's type. xcd_swizzle: tiles along M that the workgroups of one die take for each tile along N; 0 for no order.
    Raises ArgumentError where sizes do not fit.
    """
    tiling = Tiling(in_dtype, K, tile_m, tile_n, tile_k, lds_stage)
    require(out_dtype in OUT_TYPES, f"out_dtype={out_dtype!r}", f"one of {', '.join(OUT_TYPES)}")
    require(epilogue in ACTIVATIONS, f"epilogue={epilogue!r}", f"one of {', '.join(ACTIVATIONS)}")
    require(epilogue == "none" or not use_cshuffle_epilog, f"epilogue={epilogue!r} with use_cshuffle_epilog",
            "one of both")  # fmt: skip
    room = tiling.stages * tiling.a_bytes
    require(not use_cshuffle_epilog or 2 * tile_m * tile_n <= room, f"use_cshuffle_epilog with {room} bytes of A",
            f"C takes {2 * tile_m * tile_n}")  # fmt: skip
    require(xcd_swizzle >= 0, f"xcd_swizzle={xcd_swizzle}", "0 or more")
    ahead = (2 if dsrd_preload < 0 else dsrd_preload, max(0, dvmem_preload))
    plan = Plan(tiling, N, out_dtype, use_cshuffle_epilog, use_async_copy, ahead, epilogue, xcd_swizzle)

    def launch(tensors: dict[str, Any], m: Any, n: int, stream: Any) -> None:
        launch_tiles(plan, tensors, m, n, stream, waves_per_eu)

    return launcher("launch_preshuffle_gemm", TENSORS, launch, M=fx.Int32, N=int)


def launch_tiles(
    plan: Plan, tensors: dict[str, Any], M: Any, N: int, stream: Any, waves_per_eu: int | None = None
) -> None:
    """Launch a workgroup for each tile of C."""
    tile_m, tile_n = plan.tiling.tile_m, plan.tiling.tile_n
    require(N > 0 and N % tile_n == 0, f"N={N}", f"a multiple of tile_n={tile_n}")
    require(plan.n in (0, N), f"N={N}", f"this launcher was compiled for N={plan.n}")
    require_sizes(plan, tensors, M, N)
    kernel = preshuffle_gemm_kernel(tensors, M, N, plan, value_attrs=for_waves(waves_per_eu))
    launch_some(kernel, M, ((M + tile_m - 1) // tile_m, N // tile_n), THREADS, stream)


def require_sizes(plan: Plan, tensors: dict[str, Any], M: Any, N: int) -> None:
    """Refuse tensors of other sizes than the launch's."""
    C, A, B, scale_a, scale_b, bias = tensors.values()
    k, bits = plan.tiling.k, BITS[plan.tiling.dtype]
    require_rows("C", C, M, N)
    require_rows("A", A, M, k, bits=bits[0])
    require_elements("B", B, N * k, bits=bits[1])
    if plan.row_scales:
        require_elements("scale_a", scale_a, M, or_more=True)
        require_elements("scale_b", scale_b, N)
    elif plan.micro_scales:
        require_elements("scale_a", scale_a, (M + 31) // 32 * k, or_more=True)
        require_elements("scale_b", scale_b, N // 32 * k, or_more=True)
    if plan.epilogue != "none":
        require_elements("bias", bias, N)


def compile_preshuffle_gemm_w4(
    *, a_dtype: str = "fp4", dsrd_preload: int = 2, dvmem_preload: int = 2, **sizes: Any
) -> Any:
    """The launcher of a product of fp4 weights. sizes: as of `compile_preshuffle_gemm_a8`. a_dtype: fp4 or fp8."""
    require(a_dtype in ("fp4", "fp8"), f"a_dtype={a_dtype!r}", "fp4 or fp8")
    in_dtype = "fp4" if a_dtype == "fp4" else "fp8_fp4"
    return compile_preshuffle_gemm_a8(
        in_dtype=in_dtype, dsrd_preload=dsrd_preload, dvmem_preload=dvmem_preload, **sizes
    )


def compile_preshuffle_gemm_a6w4(*, dsrd_preload: int = 2, dvmem_preload: int = 2, **sizes: Any) -> Any:
    """The launcher of a product of fp6 and fp4 weights. See `compile_preshuffle_gemm_w4`."""
    return compile_preshuffle_gemm_a8(in_dtype="fp6", dsrd_preload=dsrd_preload, dvmem_preload=dvmem_preload, **sizes)


_TILES = ((16, 64, 512), (32, 64, 256), (32, 128, 128), (64, 64, 256), (64, 128, 128), (128, 128, 128))


def _launch(
    tensors: dict[str, Any], M: Any, N: int, K: int, in_dtype: str, out_dtype: str, tile: tuple[int, int, int],
    stream: Any,
) -> None:  # fmt: skip
    """A launcher of (C, A, B, scale_a, scale_b, bias, M, N, K, in_dtype, out_dtype, stream), with a tile, in bytes of A
    along K, that is chosen by measurement.
    """
    tile_m, tile_n, row_bytes = tile
    tiling = Tiling(in_dtype, K, tile_m, tile_n, row_bytes * 8 // BITS[in_dtype][0])
    launch_tiles(Plan(tiling, N, out_dtype, False, False, (2, 0), "none", 0), tensors, M, N, stream)


preshuffle_gemm = tuned(
    "preshuffle_gemm", TENSORS, _launch, ["M", "N", "K", "in_dtype"], [{"tile": tile} for tile in _TILES],
    M=fx.Int32, N=int, K=int, in_dtype=str, out_dtype=str,
)  # fmt: skip
