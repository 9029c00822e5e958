"""Paged decode attention and its schedule."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from kernels import mla_fwd_decode_m16x8_fp8_fp8 as mla
from kernels import pa_metadata
from kernels.mla_reduce import build_mla_reduce_module
from kernels.pa_decode_fp8 import compile_pa_decode_metadata, compile_pa_decode_ps
from kernels.pa_decode_swa import compile_pa_decode_sw, parts_of
from tests.kernels.cases import ARCHS, Case

BF16 = torch.bfloat16
CONTEXT, DIM, PARTS = 2048, 128, 4


def inputs(block: int, queries: int, group: int, scales: str) -> tuple[Any, ...]:
    """One request of CONTEXT tokens and one key head, flattened."""
    size = CONTEXT // block
    cache, scale = torch.zeros(CONTEXT * DIM, dtype=torch.uint8), torch.ones(CONTEXT if scales == "ptok" else 1)
    starts = torch.tensor([0, size], dtype=torch.int32)
    pages, lengths = torch.arange(size, dtype=torch.int32), torch.tensor([CONTEXT], dtype=torch.int32)
    query = torch.ones(queries * group * DIM, dtype=BF16)
    return query, cache, cache.clone(), lengths, pages, starts, scale, scale.clone()


def options(scales: str, queries: int, group: int) -> dict[str, Any]:
    return {
        "query_group_size": group,
        "per_token_kv": scales == "ptok",
        "query_length": queries,
        "query_input_dtype": "bf16",
    }


def persistent(block: int, scales: str, queries: int, group: int, trans_v: bool) -> tuple[Any, tuple[Any, ...]]:
    bins, columns = 4, group * DIM
    tables = pa_metadata.reference([CONTEXT], bins, 1, group, queries)
    work = [torch.tensor(tables[name]).int().view(-1) for name in ("work_indptr", "work_info", "partition_indptr")]
    rows = bins * queries
    results = (torch.zeros(queries * columns, dtype=BF16), torch.zeros(rows * columns), torch.zeros(rows * group))
    compiled = compile_pa_decode_metadata(trans_v=trans_v, block_size=block, **options(scales, queries, group))
    return compiled["launch"], (*results, *inputs(block, queries, group, scales), *work, bins, 1)


def partials(parts: int, rows: int) -> tuple[torch.Tensor, ...]:
    return torch.zeros(parts * rows * DIM, dtype=BF16), torch.ones(parts * rows), torch.zeros(parts * rows)


def parts(block: int, scales: str) -> tuple[Any, tuple[Any, ...]]:
    compiled = compile_pa_decode_ps(block_size=block, max_context_partition_num=PARTS, **options(scales, 1, 8))
    return compiled["launch"], (*partials(PARTS, 8), *inputs(block, 1, 8, scales), 1, 1)


def window(scales: str) -> tuple[Any, tuple[Any, ...]]:
    compiled = compile_pa_decode_sw(1023, **options(scales, 1, 8))
    return compiled["launch"], (*partials(parts_of(1023, 1), 8), *inputs(1024, 1, 8, scales), 1, 1)


def reduction() -> tuple[Any, tuple[Any, ...]]:
    compiled = compile_pa_decode_sw(1023, **options("pten", 1, 8))
    return compiled["reduce"], (torch.zeros(8 * DIM, dtype=BF16), *partials(parts_of(1023, 1), 8), 1, 1)


def schedule() -> tuple[Any, tuple[Any, ...]]:
    lengths = torch.tensor([1027, 5000, 33], dtype=torch.int32)
    tables = pa_metadata.get_pa_metadata_info_v1(len(lengths), 256)
    flat = [torch.zeros(shape, dtype=torch.int32).view(-1) for shape in tables.values()]
    return pa_metadata.compile_pa_metadata_v1(num_cu=256), (lengths, *flat, len(lengths))


def latent() -> tuple[Any, tuple[Any, ...]]:
    """Four requests of 512 tokens, each a bin's."""
    requests, tokens = 4, 512
    tables = pa_metadata.reference([tokens] * requests, requests, 1, mla.HEADS, 1, kv_granularity=1)
    work = [torch.tensor(tables[name]).int().view(-1) for name in ("work_indptr", "work_info")]
    count, columns = requests * tokens, mla.HEADS * mla.VALUE_BYTES
    query, kv = (torch.zeros(rows * mla.KEY_BYTES, dtype=torch.uint8) for rows in (requests * mla.HEADS, count))
    results = (torch.zeros(requests * columns, dtype=BF16), torch.zeros(columns), torch.zeros(mla.HEADS))
    pages = torch.arange(count, dtype=torch.int32)
    launch = mla.launch_mla_fwd_decode_m16x8_fp8_fp8
    return launch, (query, kv, pages, *work, *results, mla.KEY_BYTES**-0.5, requests)


def shares(requests: int, count: int, heads: int, columns: int, has_lse: bool) -> tuple[Any, tuple[Any, ...]]:
    """Requests of which as many shares each are merged."""
    rows, numbers = requests * count, torch.arange(requests + 1, dtype=torch.int32)
    output, lse = torch.zeros(requests * heads * columns, dtype=BF16), [torch.zeros(requests * heads)] * has_lse
    given = output, torch.zeros(rows * heads * columns), torch.zeros(rows * heads), numbers * count
    maps = torch.stack([numbers[:-1], numbers[1:]], 1).view(-1), torch.arange(rows, dtype=torch.int32)
    return build_mla_reduce_module(columns, has_lse=has_lse), (*given, *maps, *lse, requests, heads, 1)


def persistent_case(
    name: str, block: int, scales: str, queries: int, group: int, trans_v: bool = True
) -> dict[str, Case]:
    return {name: Case("pa_decode_fp8", "bf16, fp8", partial(persistent, block, scales, queries, group, trans_v))}


def parts_case(name: str, block: int) -> dict[str, Case]:
    return {name: Case("pa_decode_fp8", "bf16, fp8", partial(parts, block, "ptok"))}


CASES: dict[str, Case] = {
    **persistent_case("pa_meta_bs1024_pten_q1g8", 1024, "pten", 1, 8),
    **persistent_case("pa_meta_bs1024_ptok_q1g8", 1024, "ptok", 1, 8),
    **persistent_case("pa_meta_bs1024_pten_q1g16", 1024, "pten", 1, 16),
    **persistent_case("pa_meta_bs1024_ptok_q1g16", 1024, "ptok", 1, 16),
    **persistent_case("pa_meta_bs1024_pten_q4g8", 1024, "pten", 4, 8),
    **persistent_case("pa_meta_bs1024_ptok_q4g8", 1024, "ptok", 4, 8),
    **persistent_case("pa_meta_bs1024_ptok_q1g8_noTransV", 1024, "ptok", 1, 8, False),
    **persistent_case("pa_meta_bs16_pten_q1g8", 16, "pten", 1, 8),
    **persistent_case("pa_meta_bs64_pten_q1g8", 64, "pten", 1, 8),
    **parts_case("pa_ps_bs16_ptok_q1g8", 16),
    **parts_case("pa_ps_bs64_ptok_q1g8", 64),
    "pa_sw_w1023_pten_q1g8": Case("pa_decode_swa", "bf16, fp8", partial(window, "pten")),
    "pa_sw_w1023_ptok_q1g8": Case("pa_decode_swa", "bf16, fp8", partial(window, "ptok")),
    "pa_sw_reduce_g8": Case("pa_decode_swa", "bf16", reduction),
    "mla_decode_m16x8_fp8": Case("mla_fwd_decode_m16x8_fp8_fp8", "fp8", latent, test="test_mla_fwd_decode.py"),
    "mla_reduce_d512": Case("mla_reduce", "f32, bf16", partial(shares, 2, 20, 16, 512, False)),
    "mla_reduce_d512_lse": Case("mla_reduce", "f32, bf16", partial(shares, 2, 20, 16, 512, True)),
    "mla_reduce_d128": Case("mla_reduce", "f32, bf16", partial(shares, 8, 4, 16, 128, False)),
    "pa_metadata_v1_cu256h1": Case("pa_metadata", "i32", schedule),
}
ROW = "more registers, at the same occupancy, for fewer instructions"
CLEARED = "values after the last token are cleared, so that a NaN there does not count; occupancy is the same"
MISSES: dict[tuple[str, str], str] = {
    **{(name, "gfx942"): ROW for name in CASES if name.startswith(("pa_meta_", "pa_ps_"))},
    **{
        (name, "gfx950"): ROW
        for name in ("pa_meta_bs1024_ptok_q1g8", "pa_meta_bs1024_pten_q1g16", "pa_ps_bs16_ptok_q1g8")
    },
    ("pa_meta_bs1024_ptok_q1g8_noTransV", "gfx942"): CLEARED,
    **{("pa_sw_reduce_g8", arch): "two VGPRs more, at the same occupancy, for one trip to memory" for arch in ARCHS},
    **{("mla_decode_m16x8_fp8", arch): "the loop over 32 keys is there once, not several times" for arch in ARCHS},
}
del MISSES["pa_meta_bs1024_ptok_q4g8", "gfx942"]
