"""Decode attention with a sliding window: a query sees its own key and the `sliding_window` keys before it.

    pa_decode_ps_launch(..., sliding_window=1023)

The keys that a request's queries see are in a few partitions of 256, as many at most as the window and the queries
reach. Each has a workgroup for each key head, and another kernel merges them; with fuse_partitions one workgroup has
them all, and writes the result. `pa_decode_fp8` has the operands, `paged_attention` what a workgroup does;
`pa_decode_swa` chooses by measurement whether partitions are fused.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import flydsl
from kernels.kernels_common import require
from kernels.paged_attention import PARTITION, Decode
from kernels.paged_attention_launch import PagedInputs, compile_parts, kind_of_scales, run_parts

# (contexts, Hkv, group, ql, D, block, window): a window within a partition, across several, one key, more than all.
SHAPES: tuple[tuple[tuple[int, ...], int, int, int, int, int, int], ...] = (
    ((1, 129, 700), 1, 8, 1, 128, 1024, 100), ((900, 0), 2, 4, 1, 128, 64, 511), ((513, 3), 1, 8, 4, 128, 16, 1),
    ((300,), 1, 16, 2, 64, 1024, 5000),
)  # fmt: skip


def parts_of(window: int, queries: int) -> int:
    """The partitions that the queries of a request can reach."""
    return -(-(window + queries - 1) // PARTITION) + 1


@cache
def compile_pa_decode_sw(
    sliding_window: int, softmax_scale: float | None = None, trans_v: bool = False, query_group_size: int = 16,
    per_token_kv: bool = False, query_length: int = 1, query_input_dtype: str = "bf16", fuse_partitions: bool = False,
    head_dim: int = 128, *, block_size: int = 1024, output_dtype_str: str = "bf16", cache_dtype: str = "fp8",
    per_block_kv: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """{"launch", "reduce"}, as `compile_pa_decode_ps` gives them.

    fuse_partitions: launch takes the output instead of temporary_output, exp_sums and max_logits; there is no reduce.
    Raises ArgumentError for what is unsupported.
    """
    require(sliding_window >= 0, f"sliding_window={sliding_window}", "0 or more")
    plan = Decode(
        dim=head_dim,
        block=block_size,
        group=query_group_size,
        queries=query_length,
        query_dtype=query_input_dtype,
        out_dtype=output_dtype_str,
        cache_dtype=cache_dtype,
        scales=kind_of_scales(per_token_kv, per_block_kv),
        trans_v=trans_v,
        softmax_scale=softmax_scale or head_dim**-0.5,
        window=sliding_window,
    )
    parts = 1 if fuse_partitions else parts_of(sliding_window, query_length)
    return compile_parts("launch_pa_decode_sw", plan, parts, fuse_partitions)


@flydsl.autotune(
    configs=[flydsl.Config(fuse_partitions=fuse) for fuse in (False, True)],
    key=["query", "key_cache", "context_lengths", "sliding_window"],
)
def pa_decode_swa(
    output: Any, query: Any, key_cache: Any, value_cache: Any, context_lengths: Any, kv_page_indices: Any,
    kv_indptr: Any, softmax_scale: float | None, key_scale: Any, value_scale: Any, sliding_window: int,
    fuse_partitions: bool, stream: Any = None,
) -> None:  # fmt: skip
    """`pa_decode_ps_launch` with a window, divided in the way that is the faster one."""
    given = PagedInputs(
        output, query, key_cache, value_cache, context_lengths, kv_page_indices, kv_indptr, key_scale, value_scale
    )
    compiled = compile_pa_decode_sw(sliding_window, softmax_scale, fuse_partitions=fuse_partitions, **given.options)
    run_parts(given, compiled, parts_of(sliding_window, given.queries), (None, None, None), stream)
