"""Mixture of experts."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from kernels import mixed_moe_gemm_2stage as mixed
from kernels import moe_blockscale_2stage as blockscale
from kernels import moe_sorting_kernel as sorting
from kernels.mfma_products import BITS, W4A16
from kernels.moe_common import compile_moe_reduction
from kernels.moe_gemm_2stage import SMOOTH, compile_moe_gemm1, compile_moe_gemm2
from tests.kernels.cases import Case
from tests.kernels.gemm import TYPES as GEMM_TYPES
from tests.kernels.moe import OUT
from tests.kernels.rows import TYPES


def sort(tokens: int, experts: int, topk: int) -> tuple[Any, tuple[Any, ...]]:
    ids = (torch.arange(tokens * topk) * 7 % experts).int()
    size = sorting.sorted_size(tokens, experts, topk)
    tables = (torch.zeros(n, dtype=torch.int32) for n in (size, size, -(-size // sorting.UNIT), 2))
    sorted_ids, sorted_weights, *others = tables
    words = max(experts, sorting.moe_sorting_get_workspace_size(tokens, experts, topk))
    workspace = torch.zeros(words, dtype=torch.int32)
    at_once = tokens * topk <= sorting.MOST_AT_ONCE
    launch = sorting.build_moe_sorting_module(experts, topk, at_once=at_once)
    moe_buf = torch.zeros(tokens * 7168, dtype=torch.bfloat16)
    results = (sorted_ids, sorted_weights.float(), *others, moe_buf)
    return launch, (ids, torch.ones(tokens * topk), *results, *[workspace] * 3, tokens)


def routed_sort(tokens: int, experts: int, topk: int) -> tuple[Any, tuple[Any, ...]]:
    (_, (_, _, *others)), logits = sort(tokens, experts, topk), torch.zeros(tokens, experts, dtype=torch.bfloat16)
    launch = sorting.build_moe_sorting_module(experts, topk, at_once=True, renormalize=True)
    return launch, (logits, torch.zeros(0), *others)


def sorting_case(tokens: int, experts: int, topk: int) -> Case:
    return Case("moe_sorting_kernel", "i32", partial(sort, tokens, experts, topk))


def reduction(dtype: str, masked: bool) -> tuple[Any, tuple[Any, ...]]:
    tokens, topk, columns = 76, 8, 7168
    x, y = (torch.zeros(*shape, dtype=TYPES[dtype]) for shape in ((tokens, topk, columns), (tokens, columns)))
    launch = compile_moe_reduction(topk=topk, model_dim=columns, dtype_str=dtype, use_mask=masked)
    return launch, (x, y, torch.ones(tokens, topk, dtype=torch.uint8), tokens)


def reduction_case(name: str, dtype: str, masked: bool = False) -> dict[str, Case]:
    return {name: Case("moe_common", dtype, partial(reduction, dtype, masked))}


def memory(dtype: str, elements: int, bits: int) -> torch.Tensor:
    """Operands are bytes where the type is the architecture's, or narrower than a byte."""
    kind = GEMM_TYPES.get(dtype, torch.uint8)
    return torch.zeros(elements * bits // 8 // kind.itemsize, dtype=kind)


def gemm(
    stage: int, dtype: str, tile: tuple[int, int, int], width: tuple[int, int], topk: int, options: dict[str, Any]
) -> tuple[Any, tuple[Any, ...]]:
    """One block of rows, whose expert is the first of topk. width: D, I; as many columns as two tiles have."""
    (tile_m, tile_n, tile_k), (d, i) = tile, width
    tokens, out_dtype = tile_m // topk or 1, options.get("out_dtype", "f16")
    n, k = 2 * tile_n, d if stage == 1 else i
    sizes = {"tile_m": tile_m, "tile_n": tile_n, "tile_k": tile_k, "experts": topk, "topk": topk, "in_dtype": dtype}
    if stage == 1:
        launch = compile_moe_gemm1(model_dim=k, inter_dim=n, doweight_stage1=False, **sizes, **options)
    else:
        launch = compile_moe_gemm2(model_dim=n, inter_dim=k, doweight_stage2=True, **sizes, **options)
    dtype = dtype.removesuffix("smooth")
    a_bits, b_bits = BITS[dtype]
    each_slot = stage == 2 or sizes["in_dtype"] == SMOOTH
    rows, per_expert = tokens * (topk if each_slot else 1), n * (2 if stage == 1 else 1)
    a = memory("bf16" if dtype == W4A16 else dtype, rows * k, a_bits)
    w = memory(dtype, topk * per_expert * k, b_bits)
    split = options.get("k_batch", 1) > 1
    out = torch.zeros(tokens * topk * n * (1 + split), dtype=torch.float32 if split else OUT[out_dtype])
    groups = k // 32 if "group_size" in options else 1
    of_w = torch.ones(topk * per_expert * groups, dtype=torch.bfloat16 if options.get("scale_is_bf16") else None)
    return launch, (out, a, w, torch.ones(rows), of_w, *one_block(tile_m, topk, tokens), tokens, n, k, 1)


def one_block(tile_m: int, topk: int, tokens: int) -> tuple[torch.Tensor, ...]:
    """The tables of a block whose rows are of the first expert."""
    ids = (torch.arange(tile_m) % topk << 24 | torch.arange(tile_m) // topk).int()
    return ids, torch.zeros(1, dtype=torch.int32), torch.ones(tile_m), torch.tensor([tile_m, tokens]).int()


def blockscale_gemm(stage: int, tile: tuple[int, int, int], waves_per_eu: int | None) -> tuple[Any, tuple[Any, ...]]:
    """One block of rows of D=7168, I=256, k=8; stage 2 with as many columns as two tiles have."""
    (tile_m, tile_n, tile_k), topk, d, i = tile, 8, 7168, 256
    tokens, sizes = (
        tile_m // topk,
        {"tile_m": tile_m, "tile_n": tile_n, "tile_k": tile_k, "experts": topk, "topk": topk},
    )
    n, k = (i, d) if stage == 1 else (2 * tile_n, i)
    if stage == 1:
        launch = blockscale.compile_moe_blockscale_gemm1(
            model_dim=k, inter_dim=n, doweight_stage1=False, waves_per_eu=waves_per_eu, **sizes
        )
    else:
        launch = blockscale.compile_moe_blockscale_gemm2(
            model_dim=n, inter_dim=k, doweight_stage2=True, waves_per_eu=waves_per_eu, **sizes
        )
    rows, per_expert = tokens * (1 if stage == 1 else topk), n * (2 if stage == 1 else 1)
    scales = (torch.ones(rows * k // 128), torch.ones(topk * per_expert // 128 * k // 128))
    a, w = (torch.zeros(count, dtype=torch.uint8) for count in (rows * k, topk * per_expert * k))
    out = torch.zeros(tokens * topk * n, dtype=torch.float16)
    return launch, (out, a, w, *scales, *one_block(tile_m, topk, tokens), tokens, n, k, 1)


def blockscale_cases(name: str, waves_per_eu: int | None = None) -> dict[str, Case]:
    """A case. name: as bsmoe1_16x256x128_wpe2."""
    tile_m, tile_n, tile_k = (int(n) for n in name.split("_")[1].split("x"))
    make = partial(blockscale_gemm, int(name[5]), (tile_m, tile_n, tile_k), waves_per_eu)
    return {name: Case("moe_blockscale_2stage", "fp8", make)}


def gemm_cases(
    name: str,
    *types: str,
    archs: tuple[str, ...] = ("gfx942", "gfx950"),
    topk: int = 4,
    width: tuple[int, int] = (8192, 8192),
    **options: Any,
) -> dict[str, Case]:
    """Cases of element types. name: as moe1_{}_64x128x128."""
    stage, tile = int(name[3]), next(part for part in name.split("_") if part.count("x") == 2)
    tile_m, tile_n, tile_k = (int(n) for n in tile.split("x"))

    def make(dtype: str) -> Any:
        # The original's figures of 64 rows of 16 bits are those of 128 bytes.
        k = tile_k // 2 if dtype in ("bf16", "fp16") and tile_m == 64 else tile_k
        return partial(gemm, stage, dtype, (tile_m, tile_n, k), width, topk, options)

    return {name.format(t): Case("moe_gemm_2stage", t, make(t), archs=archs) for t in types}


def groups_case(name: str, **options: Any) -> dict[str, Case]:
    """A case of bf16 and int4 with scales of groups. name: as moe1_int4bf16_g32_16x128x128."""
    tile_m, tile_n, tile_k = (int(n) for n in name.split("_")[-1].split("x"))
    options |= {"group_size": 32, "out_dtype": "bf16"}
    make = partial(gemm, int(name[3]), W4A16, (tile_m, tile_n, tile_k), (7168, 256), 8, options)
    return {name: Case("moe_gemm_2stage", W4A16, make)}


def mixed_gemm(
    stage: int, a_dtype: str, tile: tuple[int, int, int], width: tuple[int, int, int], options: dict[str, Any]
) -> tuple[Any, tuple[Any, ...]]:
    """One block of rows. width: D, I, k; stage 2 with as many columns as two tiles have."""
    (tile_m, tile_n, tile_k), (d, i, topk) = tile, width
    sizes = {"tile_m": tile_m, "tile_n": tile_n, "tile_k": tile_k, "experts": topk, "topk": topk, "a_dtype": a_dtype}
    n, k = (max(tile_n, 256), d) if stage == 1 else (2 * tile_n, i)
    tokens, columns = tile_m // topk or 1, 2 * n if stage == 1 else n
    if stage == 1:
        launch = mixed.compile_mixed_moe_gemm1(model_dim=k, inter_dim=n, doweight_stage1=False, **sizes, **options)
    else:
        launch = mixed.compile_mixed_moe_gemm2(
            model_dim=n, inter_dim=k, doweight_stage2=True, persist_m=1, **sizes, **options
        )
    rows = tokens * (1 if stage == 1 else topk)
    a, w, *scales = (
        torch.zeros(count, dtype=torch.uint8)
        for count in (
            rows * k // (2 if a_dtype == "fp4" else 1), topk * columns * k // (1 if "b_dtype" in options else 2),
            -(-tile_m // 32) * k, topk * columns * k // 32,
        )
    )  # fmt: skip
    out_type = torch.uint8 if options.get("out_dtype") in mixed.ROUNDED else torch.float16
    halves = 2 if options.get("k_batch", 1) > 1 else 1
    out, none = torch.zeros(tokens * topk * n * halves, dtype=out_type), torch.zeros(1)
    extra = (none, torch.zeros(tile_m * n // 32, dtype=torch.uint8)) if stage == 1 else (none,)
    return launch, (out, a, w, *scales, *one_block(tile_m, topk, tokens), *extra, tokens, columns, k, 1)


def mixed_cases(name: str, width: tuple[int, int, int], **options: Any) -> dict[str, Case]:
    """Cases of fp4 and fp8 activations. name: as mxmoe1_a{}w4_64x256x256."""
    stage, (tile_m, tile_n, tile_k) = int(name[5]), (int(n) for n in name.split("_")[2].split("x"))
    types = [t for t in ("fp4", "fp8") if name.format(t) != name or f"_a{t}w" in name]
    return {
        name.format(t): Case(
            "mixed_moe_gemm_2stage", f"{t}, {options.get('b_dtype', 'fp4')}",
            partial(mixed_gemm, stage, t, (tile_m, tile_n, tile_k), width, options), archs=("gfx950",),
        )
        for t in types
    }  # fmt: skip


SMALL: dict[str, Any] = {"topk": 8, "width": (6144, 1024)}
CASES: dict[str, Case] = {
    "moe_sort_oneshot_e256k8_t16": sorting_case(16, 256, 8),
    "moe_sort_oneshot_e513k9_t16": sorting_case(16, 513, 9),
    "moe_sort_two_kernels_e256k8_t512": sorting_case(512, 256, 8),
    "moe_sort_fused_e256k8_t16": Case("moe_sorting_kernel", "bf16", partial(routed_sort, 16, 256, 8)),
    **reduction_case("moe_reduce_k8_d7168_f32", "f32"),
    **reduction_case("moe_reduce_k8_d7168_f16", "f16"),
    **reduction_case("moe_reduce_k8_d7168_bf16", "bf16"),
    **reduction_case("moe_reduce_k8_d7168_f16_mask", "f16", masked=True),
    **gemm_cases("moe1_{}_64x128x128", "bf16", "fp16", "fp8", "int8", "int4", SMOOTH),
    **gemm_cases("moe1_{}_64x128x128_csh", "fp8", use_cshuffle_epilog=True),
    **gemm_cases("moe1_{}_16x64x256", "bf16", "fp16", "fp8", "int8", "int4", **SMALL),
    **gemm_cases("moe1_{}_splitk4_16x64x256", "fp8", k_batch=4, **SMALL),
    **gemm_cases("moe2_{}_64x256x128", "bf16", "fp16", "fp8", "int8", "int4"),
    **gemm_cases("moe2_{}_64x256x128_bf16", "fp8", out_dtype="bf16"),
    **gemm_cases("moe2_{}_64x256x128_f32", "fp8", out_dtype="f32"),
    **gemm_cases("moe2_{}_64x256x128_reduce", "fp8", accumulate=False),
    **gemm_cases("moe2_{}_16x64x256", "bf16", "fp16", "fp8", "int8", "int4", **SMALL),
    **groups_case("moe1_int4bf16_g32_16x128x128"),
    **groups_case("moe1_int4bf16_g32_sbf16_16x128x128", scale_is_bf16=True),
    **groups_case("moe2_int4bf16_g32_16x128x256"),
    **blockscale_cases("bsmoe1_16x256x128_wpe2", 2),
    **blockscale_cases("bsmoe1_64x128x128"),
    **blockscale_cases("bsmoe2_16x256x128_wpe2", 2),
    **blockscale_cases("bsmoe2_64x128x128"),
    **mixed_cases("mxmoe1_a{}w4_64x256x256", (7168, 256, 9)),
    **mixed_cases("mxmoe1_afp4w4_64x256x256_async", (7168, 256, 9), use_async_copy=True),
    **mixed_cases("mxmoe1_afp4w4_64x256x256_fp4out", (7168, 256, 9), out_dtype="fp4"),
    **mixed_cases("mxmoe1_afp8w4_64x256x256_fp8out", (7168, 256, 9), out_dtype="fp8"),
    **mixed_cases("mxmoe1_a{}w4_32x128x256", (3072, 3072, 4)),
    **mixed_cases("mxmoe1_a{}w4_16x128x256", (3072, 3072, 4)),
    **mixed_cases("mxmoe1_afp8w8_32x128x256", (3072, 3072, 4), b_dtype="fp8"),
    **mixed_cases("mxmoe1_a{}w4_32x16x256_kw4", (7168, 256, 9), k_wave=4),
    **mixed_cases("mxmoe1_afp4w4_32x256x256_sk4", (7168, 2048, 8), k_batch=4),
    **mixed_cases("mxmoe2_a{}w4_64x256x256", (7168, 256, 9)),
    **mixed_cases("mxmoe2_a{}w4_32x256x256", (3072, 3072, 4)),
    **mixed_cases("mxmoe2_afp8w8_32x128x128", (3072, 384, 4), b_dtype="fp8"),
}
SCALED = "one scaled instruction multiplies what four do there; its operands are 8 registers"
ROW = "a few registers more, for fewer instructions; occupancy is the same"
MISSES: dict[tuple[str, str], str] = {
    ("bsmoe1_16x256x128_wpe2", "gfx950"): ROW,
    ("bsmoe2_16x256x128_wpe2", "gfx942"): ROW,
    ("moe1_bf16_64x128x128", "gfx942"): ROW,
    ("moe2_int4bf16_g32_16x128x256", "gfx942"): ROW,
    ("moe2_int4bf16_g32_16x128x256", "gfx950"): ROW,
    ("moe1_fp16_64x128x128", "gfx942"): ROW,
    **{(name, "gfx950"): SCALED for name in CASES if name.startswith(("moe1_fp8_", "moe2_fp8_"))},
}
