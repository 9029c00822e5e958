"""Attention. Heads are the original's; one sequence of a block of queries."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from kernels.flash_attn_generic import build_flash_attn_func_module
from kernels.flash_attn_gfx950 import build_flash_attn_dualwave_swp_module, workspace_size
from kernels.mqa_logits import build_mqa_logits_module, default_parts
from tests.kernels.attention import TYPES
from tests.kernels.cases import ARCHS, Case

OF_32_LANES = ("gfx1100", "gfx1201", "gfx1250")


def generic(dtype: str, dims: tuple[int, int], heads: tuple[int, int], options: dict[str, Any]) -> Any:
    options = {"block_m": 128} | options  # without it there may be two kernels
    length = options["block_m"]
    q, k, v, o = (
        torch.zeros(length * count * dim, dtype=TYPES[dtype])
        for count, dim in zip((heads[0], heads[1], heads[1], heads[0]), (dims[0], *dims, dims[1]), strict=True)
    )
    launch = build_flash_attn_func_module(
        heads[0], dims[0], dtype_str=dtype, num_kv_heads=heads[1], v_head_dim=dims[1], **options
    )
    return launch, (q, k, v, o, 1, length)


def flash(
    name: str, dtype: str, dims: tuple[int, int], heads: tuple[int, int] = (16, 16), archs: tuple[str, ...] = ARCHS,
    **options: Any,
) -> dict[str, Case]:  # fmt: skip
    return {f"fagen_{name}": Case("flash_attn_generic", dtype, partial(generic, dtype, dims, heads, options), archs)}


def pipeline(dtype: str, causal: bool, varlen: bool, splits: int) -> Any:
    length, heads, kv_heads = 256, 32, 8
    q, k, v, o = (torch.zeros(length * count * 128, dtype=TYPES[dtype]) for count in (heads, kv_heads, kv_heads, heads))
    launch = build_flash_attn_dualwave_swp_module(
        heads, 128, causal, dtype, num_kv_heads=kv_heads, varlen=varlen, num_kv_splits=splits
    )
    starts = torch.tensor([0, length], dtype=torch.int32) if varlen else ()
    workspace = torch.zeros(workspace_size(splits, 1, length, heads)) if splits > 1 else ()
    return launch, (q, k, v, o, 1, length, None, starts, (), workspace)


def cdna4(dtype: str, mask: str, varlen: bool = False, splits: int = 1) -> dict[str, Case]:
    name = f"fadw_{dtype}_{mask}" + ("_varlen" if varlen else "") + (f"_splitk{splits}" if splits > 1 else "")
    make = partial(pipeline, dtype, mask == "causal", varlen, splits)
    return {name: Case("flash_attn_gfx950", dtype, make, archs=ARCHS[1:])}


def indexer(queries: int, keys: int, heads: int, width: int) -> tuple[Any, tuple[Any, ...]]:
    """The last queries of a sequence."""
    q, k = (torch.zeros(count * width, dtype=torch.uint8) for count in (queries * heads, keys))
    numbers = torch.arange(queries, dtype=torch.int32)
    others = torch.ones(keys), torch.ones(queries * heads), numbers * 0, numbers + (keys - queries + 1)
    launch = build_mqa_logits_module(heads, width)
    return launch, (q, k, *others, torch.zeros(queries * keys), queries, keys, default_parts(queries, keys))


def every_size() -> dict[str, Case]:
    cases = [
        flash(f"{dtype}_d{dim}_{name}", dtype, (dim, dim), causal=name == "causal")
        for dtype in TYPES
        for dim in (64, 128)
        for name in ("causal", "full")
    ]
    return {name: case for found in cases for name, case in found.items()}


CASES: dict[str, Case] = {
    **every_size(),
    **flash("bf16_d128_causal_bm256", "bf16", (128, 128), archs=ARCHS[:1], block_m=256),
    **flash("bf16_d128_causal_gqa32_8", "bf16", (128, 128), (32, 8)),
    **flash("bf16_d192_128_causal", "bf16", (192, 128)),
    **flash("bf16_d128_causal_window", "bf16", (128, 128), sliding_window=1024),
    **flash("rdna_f16_d64_causal", "f16", (64, 64), archs=OF_32_LANES),
    **flash("rdna_bf16_d128_causal", "bf16", (128, 128), archs=OF_32_LANES),
    **cdna4("bf16", "causal"),
    **cdna4("bf16", "full"),
    **cdna4("f16", "causal"),
    **cdna4("f16", "full"),
    **cdna4("bf16", "causal", varlen=True),
    **cdna4("bf16", "full", varlen=True),
    **cdna4("bf16", "causal", splits=2),
    **cdna4("bf16", "full", splits=4),
    "mqa_logits_h64_d128": Case("mqa_logits", "fp8", partial(indexer, 16, 2048, 64, 128)),
    "mqa_logits_h32_d64": Case("mqa_logits", "fp8", partial(indexer, 16, 2048, 32, 64)),
}
MISSES: dict[tuple[str, str], str] = {}
