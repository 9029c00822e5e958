"""Products. N is the original's, as rows of C are at distances known at compile time; M is one tile, and K is short.

The original's figures of tiles of 64 or 128 x 256 x 128 have three tiles of code, so they are those of an odd number.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import torch

from kernels import splitk_hgemm
from kernels.batched_preshuffle_gemm import compile_batched_preshuffle_gemm
from kernels.blockscale_preshuffle_gemm import compile_blockscale_preshuffle_gemm
from kernels.fp8_gemm_4wave import compile_fp8_gemm_4w
from kernels.fp8_gemm_8wave import compile_fp8_gemm_8w
from kernels.hgemm_splitk import DTYPES, compile_hgemm_kernel
from kernels.mfma_products import BITS
from kernels.preshuffle_gemm import compile_preshuffle_gemm_a8
from kernels.preshuffle_gemm_v2 import compile_preshuffle_gemm_v2
from kernels.small_m_hgemm import compile_small_m_hgemm_kernel
from tests.kernels.cases import ARCHS, Case
from tests.kernels.gemm import TYPES

EVEN, ODD = 2048, 2176
N = 5120
MICRO = ("fp4", "fp6")
CDNA3, CDNA4 = ARCHS[:1], ARCHS[1:]


def empty(dtype: str, elements: int, bits: int) -> torch.Tensor:
    """Operands are bytes where the type is the architecture's, or narrower than a byte."""
    kind = TYPES.get(dtype, torch.uint8)
    return torch.zeros(elements * bits // 8 // kind.itemsize, dtype=kind)


def preshuffle(dtype: str, tile: tuple[int, int, int], k: int, options: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    m, n = tile[0], N
    a_bits, b_bits = BITS[dtype]
    scales = [torch.zeros(x * k // 32, dtype=torch.uint8) if dtype in MICRO else torch.ones(x) for x in (m, n)]
    c, bias = (torch.zeros(x, dtype=torch.bfloat16) for x in (m * n, n))
    launch = compile_preshuffle_gemm_a8(
        K=k, tile_m=tile[0], tile_n=tile[1], tile_k=tile[2], in_dtype=dtype, out_dtype="bf16", **options
    )
    return launch, (c, empty(dtype, m * k, a_bits), empty(dtype, n * k, b_bits), *scales, bias, m, n)


def gemm(name: str, dtype: str, *tile: int, k: int = EVEN, **options: Any) -> dict[str, Case]:
    archs = {"archs": ("gfx950",)} if dtype in MICRO else {}
    if dtype in MICRO:
        options = {"dsrd_preload": 2, "dvmem_preload": 2, **options}
    return {name: Case("preshuffle_gemm", dtype, partial(preshuffle, dtype, tile, k, options), **archs)}


def batched(dtype: str, batch: int, m: int, n: int, k: int, tile: tuple[int, int, int]) -> tuple[Any, tuple[Any, ...]]:
    """A product for each of some heads."""
    a_bits, b_bits = BITS[dtype]
    rows = (-(-x // 32) * 32 for x in (m, n))
    scales = [torch.zeros(batch * x * k // 32, dtype=torch.uint8) if dtype in MICRO else torch.ones(1) for x in rows]
    c, bias = (torch.zeros(x, dtype=torch.bfloat16) for x in (batch * m * n, 1))
    launch = compile_batched_preshuffle_gemm(
        K=k, tile_m=tile[0], tile_n=tile[1], tile_k=tile[2], in_dtype=dtype, out_dtype="bf16"
    )
    operands = empty(dtype, batch * m * k, a_bits), empty(dtype, batch * n * k, b_bits)
    return launch, (c, *operands, *scales, bias, m, n, batch)


def batched_gemm(name: str, dtype: str, *sizes: int, tile: tuple[int, int, int]) -> dict[str, Case]:
    make = partial(batched, dtype, *sizes, tile)
    return {name: Case("batched_preshuffle_gemm", dtype, make, CDNA4 if dtype in MICRO else ARCHS)}


def blockscale(tile: tuple[int, int, int], n: int, k: int, options: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    m = tile[0]
    launch = compile_blockscale_preshuffle_gemm(
        N=n, K=k, tile_m=m, tile_n=tile[1], tile_k=tile[2], **({"unroll": True} | options)
    )
    a, b = (torch.zeros(rows * k, dtype=torch.uint8) for rows in (m, n))
    scales = torch.ones(m * k // 128), torch.ones(-(-n // 128) * k // 128)
    return launch, (torch.zeros(m * n, dtype=torch.bfloat16), a, b, *scales, m, n)


def hgemm(compile_: Any, dtype: str, m: int, n: int, k: int, options: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    launch = compile_(dtype, n, k, **options)
    c, a, b, bias = (torch.zeros(count, dtype=TYPES[DTYPES[dtype]]) for count in (m * n, m * k, n * k, n))
    unused = torch.zeros(256, dtype=torch.int32)
    return launch, (c, a, b, bias, m, unused, unused)


def half(
    name: str, dtype: str, n: int, k: int, tile: tuple[int, int, int], stages: int, waves: tuple[int, ...],
    split: int = 1, b_to_lds: bool = True, archs: tuple[str, ...] = ARCHS,
) -> dict[str, Case]:  # fmt: skip
    options = {
        "TILE_M": tile[0], "TILE_N": tile[1], "TILE_K": tile[2], "STAGES": stages, "SPLIT_K": split,
        "BLOCK_M_WARPS": waves[0], "BLOCK_N_WARPS": waves[1], "BLOCK_K_WARPS": prod(waves[2:]), "B_TO_LDS": b_to_lds,
    }  # fmt: skip
    make = partial(hgemm, compile_hgemm_kernel, dtype, tile[0], n, k, options)
    return {name: Case("hgemm_splitk", dtype, make, archs)}


def side_by_side(name: str, n: int, k: int, *tile: int, split: int = 1) -> dict[str, Case]:
    options = {"TILE_M": tile[0], "TILE_N": tile[1], "TILE_K": tile[2], "SPLIT_K": split}
    make = partial(hgemm, splitk_hgemm.compile_hgemm_kernel, "bf16", tile[0], n, k, options)
    return {name: Case("splitk_hgemm", "bf16", make, test="test_hgemm_splitk.py")}


def small_m(name: str, n: int, k: int, **options: Any) -> dict[str, Case]:
    make = partial(hgemm, compile_small_m_hgemm_kernel, "bf16", 16, n, k, options)
    return {name: Case("small_m_hgemm", "bf16", make)}


def layout_api(dtype: str, block_k: int) -> tuple[Any, tuple[Any, ...]]:
    m, n, k = 128, N, EVEN
    launch = compile_preshuffle_gemm_v2(N=n, K=k, tile_m=128, tile_n=128, tile_k=block_k, in_dtype=dtype)
    a, b = (empty(dtype, rows * k, BITS[dtype][0]) for rows in (m, n))
    return launch, (torch.zeros(m * n, dtype=torch.bfloat16), a, b, torch.ones(m), torch.ones(n), m, n)


def row_scaled(name: str, compile_: Any, kernel: str, k: int, *, unroll: bool, **options: Any) -> dict[str, Case]:
    def make() -> tuple[Any, tuple[Any, ...]]:
        a, b = (torch.zeros(256 * k, dtype=torch.uint8) for _ in range(2))
        c, scales = torch.zeros(256 * 256, dtype=torch.bfloat16), torch.ones(256)
        return compile_(K=k, unroll=unroll, **options), (a, b, c, scales, scales, 256, 256)

    return {name: Case(kernel, "fp8", make, CDNA4, test="test_fp8_gemm.py")}


def row_scaled_ones() -> dict[str, Case]:
    cases = [
        row_scaled(f"fp8_rowscale_{waves}w_256x256{'_bpre' * shuffled}{'' if unroll else '_loop'}", compile_,
                   f"fp8_gemm_{waves}wave", 8192, b_preshuffled=shuffled, unroll=unroll)
        for waves, compile_ in ((4, compile_fp8_gemm_4w), (8, compile_fp8_gemm_8w))
        for shuffled in (False, True)
        for unroll in (True, False)
    ]  # fmt: skip
    return {name: case for found in cases for name, case in found.items()}


def block(name: str, n: int, k: int, *tile: int, **options: Any) -> dict[str, Case]:
    return {name: Case("blockscale_preshuffle_gemm", "fp8", partial(blockscale, tile, n, k, options))}


def epilogues() -> dict[str, Case]:
    names = ("bias", "bias_relu", "bias_silu", "bias_gelu")
    cases = [gemm(f"gemm_bf16_16x64x512_{name}", "bf16", 16, 64, 512, epilogue=name) for name in names]
    return {name: case for found in cases for name, case in found.items()}


def micro() -> dict[str, Case]:
    tiles = ((64, 128, 128), (32, 128, 256), (64, 128, 256), (64, 256, 256), (128, 256, 256), (128, 256, 128))
    cases = [
        gemm(f"gemm_{name}_{m}x{n}x{k}", dtype, m, n, k)
        for m, n, k in tiles
        for name, dtype in (("w4_fp4", "fp4"), ("a6w4", "fp6"))
    ]
    return {name: case for found in cases for name, case in found.items()}


CASES: dict[str, Case] = {
    **gemm("gemm_fp8", "fp8", 128, 128, 128),
    **gemm("gemm_int8", "int8", 128, 128, 128),
    **gemm("gemm_int4", "int4", 128, 128, 128),
    **gemm("gemm_bf16", "bf16", 128, 128, 64),
    **gemm("gemm_fp16", "fp16", 128, 128, 64),
    **gemm("gemm_fp8_16x64x512", "fp8", 16, 64, 512),
    **gemm("gemm_int8_16x64x512", "int8", 16, 64, 512),
    **gemm("gemm_int4_16x64x512", "int4", 16, 64, 512),
    **gemm("gemm_bf16_16x64x512", "bf16", 16, 64, 512),
    **epilogues(),
    **gemm("gemm_fp8_16x128x256", "fp8", 16, 128, 256, k=8192),
    **gemm("gemm_fp8_32x64x512", "fp8", 32, 64, 512),
    **gemm("gemm_fp8_64x64x256", "fp8", 64, 64, 256),
    **gemm("gemm_fp8_64x64x256_async", "fp8", 64, 64, 256, k=8192, use_async_copy=True),
    **gemm("gemm_fp8_64x256x128", "fp8", 64, 256, 128, k=ODD),
    **gemm("gemm_int8_64x256x128", "int8", 64, 256, 128, k=ODD),
    **gemm("gemm_int4_64x256x128", "int4", 64, 256, 128, k=ODD),
    **gemm("gemm_bf16_64x256x128", "bf16", 64, 256, 128, k=ODD),
    **gemm("gemm_fp16_64x256x128", "fp16", 64, 256, 128, k=ODD),
    **gemm("gemm_fp8_128x128x128_csh", "fp8", 128, 128, 128, use_cshuffle_epilog=True),
    **gemm("gemm_fp8_128x128x128_lds1", "fp8", 128, 128, 128, lds_stage=1),
    **gemm("gemm_fp8_128x256x128", "fp8", 128, 256, 128, k=ODD),
    **gemm("gemm_fp8_128x256x128_async_wpe2", "fp8", 128, 256, 128, use_async_copy=True, waves_per_eu=2),
    **micro(),
    **gemm("gemm_w4_fp4_128x256x256_async_wpe2", "fp4", 128, 256, 256, k=8192, use_async_copy=True, waves_per_eu=2),
    **batched_gemm("batched_fp4_32x128x256", "fp4", 16, 64, 128, 512, tile=(32, 128, 256)),
    **batched_gemm("batched_bf16_32x64x128", "bf16", 16, 64, 512, 128, tile=(32, 64, 128)),
    **block("blockscale_16x64x256", 2112, 7168, 16, 64, 256),
    **block("blockscale_64x128x128", 1536, 7168, 64, 128, 128),
    **block("blockscale_64x128x128_async", 1536, 7168, 64, 128, 128, use_async_copy=True),
    **block("blockscale_64x128x128_csh", 1536, 7168, 64, 128, 128, use_cshuffle_epilog=True),
    **block("blockscale_64x256x128", 7168, 2304, 64, 256, 128),
    **block("blockscale_64x128x128_loop", 1536, 7168, 64, 128, 128, unroll=False),
    **half("hgemm_f16_128x128x64_s2", "f16", 1024, 4096, (128, 128, 64), 2, (2, 2)),
    **half("hgemm_bf16_128x128x64_s2_breg", "bf16", 1024, 4096, (128, 128, 64), 2, (2, 2), b_to_lds=False),
    **half("hgemm_bf16_16x64x128_s2_sk14", "bf16", 384, 7168, (16, 64, 128), 2, (1, 2), 14, archs=CDNA3),
    **half("hgemm_f16_128x128x64_s4_w4x4", "f16", 1024, 2048, (128, 128, 64), 4, (4, 4), archs=CDNA4),
    **half("hgemm_bf16_32x64x64_s5_sk16", "bf16", 384, 7168, (32, 64, 64), 5, (2, 2), 16, archs=CDNA4),
    **half("hgemm_bf16_256x256x64_s2_w2x4", "bf16", 1024, 4096, (256, 256, 64), 2, (2, 4), archs=CDNA4),
    **half("hgemm_bf16_16x64x128_s4_wk2", "bf16", 7168, 2048, (16, 64, 128), 4, (1, 1, 2), archs=CDNA4),
    **side_by_side("splitk_hgemm_bf16_128x128x64", 1024, 4096, 128, 128, 64),
    **side_by_side("splitk_hgemm_bf16_32x64x64_sk8", 384, 7168, 32, 64, 128, split=8),
    **{
        f"gemmv2_{dtype}": Case("preshuffle_gemm_v2", dtype, partial(layout_api, dtype, 128 * 8 // BITS[dtype][0]))
        for dtype in ("fp8", "bf16", "fp16")
    },
    **row_scaled_ones(),
    **small_m("small_m_hgemm_n128k64", 7168, 2048),
}
_ADDS = "four reads of LDS for one, so that atomics take the L2 a quarter as long"
_AHEAD = "fragments are read a group of K ahead: a tile of code and registers more, up to a quarter less time"
_PAIR = "two tiles of code in the loop, so that fragments of B need not move from registers to registers"
MISSES: dict[tuple[str, str], str] = {
    ("gemm_a6w4_128x256x256", "gfx950"): "17 registers more, of 512 that a wave has at this occupancy",
    ("hgemm_f16_128x128x64_s2", "gfx942"): _AHEAD,
    ("hgemm_f16_128x128x64_s2", "gfx950"): _AHEAD,
    ("hgemm_bf16_16x64x128_s2_sk14", "gfx942"): _AHEAD,
    ("hgemm_f16_128x128x64_s4_w4x4", "gfx950"): _AHEAD,
    ("hgemm_bf16_16x64x128_s4_wk2", "gfx950"): _AHEAD,
    ("hgemm_bf16_32x64x64_s5_sk16", "gfx950"): _ADDS,
    ("hgemm_bf16_128x128x64_s2_breg", "gfx942"): _PAIR,
    ("hgemm_bf16_128x128x64_s2_breg", "gfx950"): _PAIR,
    ("splitk_hgemm_bf16_128x128x64", "gfx942"): _PAIR,
    ("splitk_hgemm_bf16_128x128x64", "gfx950"): _PAIR,
    ("splitk_hgemm_bf16_32x64x64_sk8", "gfx942"): _PAIR,
    ("small_m_hgemm_n128k64", "gfx950"): _PAIR,
}
