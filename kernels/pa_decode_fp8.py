"""Decode attention over a paged cache of fp8 or bf16: every request has one to a few new tokens and all of its past.

    pa_decode_ps_launch(output, query, key_cache, value_cache, context_lengths, kv_page_indices, kv_indptr,
                        softmax_scale, key_scale, value_scale)

    out[q] = sum over j of softmax_j(query[q] . key[j] * softmax_scale) value[j]      for keys j <= context - ql + q

of the request's last ql tokens q; query head h uses key head h / group. A row that sees no key is 0.

| operand | shape |
|---|---|
| query, output | (B ql, H, D), bf16 or f16; D 64, 128 or 256 |
| key_cache | (pages, Hkv, D / 16, block, 16), of the target's fp8 or bf16, as `fused_rope_cache_kernel` writes it |
| value_cache | (pages, Hkv, D, block), or (pages, Hkv, block / 16, D, 16) |
| context_lengths, kv_indptr | i32 (B,), (B + 1,): tokens, and where a request's pages begin in kv_page_indices |
| key_scale, value_scale | f32: one for all; (pages, Hkv) for each block; or (pages, Hkv, block) for each token |

Two ways to share the keys among workgroups (`paged_attention` has what each of them does). Pages of 16 or 64 tokens:
each request and key head has a fixed number of workgroups, whose results another kernel merges. Larger pages: the
workgroups are as many as the GPU runs at once, and `pa_metadata` gives each an equal share of all keys; what is divided
is merged afterwards. A sliding window is `pa_decode_swa`'s.

The queries are rounded to fp8 with a scale for each row, unless the cache is bf16; probabilities to the cache's type.
An infinite scale makes logits infinite; where f32 has infinity in the result, it may be NaN. 1024-token pages with
scales for each token, 8 heads: 32 matrix instructions for 256 keys of about 840 in all, 167 VGPRs, 5.6 KiB of shared
memory, three waves per SIMD. The time is that of reading the cache.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import flydsl
import flydsl.compiler as flyc
import flydsl.expr as fx
from kernels import flash_attn_generic
from kernels.kernels_common import require
from kernels.launches import launch_flat, launcher
from kernels.mfma_products import THREADS
from kernels.pa_decode_swa import compile_pa_decode_sw, parts_of
from kernels.pa_metadata import COMPUTE_UNITS, ITEM, get_pa_metadata, merge_shares, room_for_shares
from kernels.paged_attention import OUT_TYPES, PARTITION, Attention, Decode, Work
from kernels.paged_attention_launch import INPUTS, PagedInputs, compile_parts, kind_of_scales, require_inputs, run_parts
from kernels.sizes import require_least, require_rows

# (contexts, Hkv, group, ql, D, block): one key, partitions that are not whole, a request without keys, several queries.
SHAPES: tuple[tuple[tuple[int, ...], int, int, int, int, int], ...] = (
    ((1, 127, 129), 1, 8, 1, 128, 16), ((300, 0, 1027), 2, 4, 1, 128, 64), ((2, 513), 1, 8, 4, 128, 1024),
    ((700,), 1, 16, 3, 64, 16), ((260, 5), 1, 16, 1, 256, 1024),
)  # fmt: skip
SMALL_BLOCK = 64  # tokens
RESULTS, WORK = ("output", "shares", "lse"), ("work_indptr", "work_info", "partition_indptr")
BINS = 2 * COMPUTE_UNITS


def reference(
    query: Any, keys: Any, values: Any, contexts: Any, pages: Any, starts: Any, scale: float, window: int = -1
) -> Any:
    """The result in f32. keys, values: (pages, Hkv, block, D) as numbers; D may be another one for values.

    window: see `pa_decode_swa`, -1 for none.
    """
    import torch

    queries, out = len(query) // len(contexts), torch.zeros(*query.shape[:-1], values.shape[-1])
    for request, context in enumerate(contexts.tolist()):
        own = pages[int(starts[request]) :][: -(-context // keys.shape[2])].long()
        k, v = (cache[own].transpose(1, 2).flatten(0, 1)[None, :context] for cache in (keys, values))
        rows = slice(request * queries, (request + 1) * queries)
        seen = None if window < 0 else window
        out[rows] = flash_attn_generic.reference(query[None, rows], k, v, sliding_window=seen, sm_scale=scale)[0]
    return out


@flyc.kernel
def pa_decode_metadata_kernel(tensors: Any, heads: fx.Int32, plan: fx.Constexpr[Decode]) -> None:
    """The items of a bin: partitions of requests, for a key head each."""
    indptr, info, partitions, shares, lse = (tensors[name] for name in (*WORK, "shares", "lse"))
    attention = Attention(plan, tensors, heads)
    block = fx.Int32(fx.block_idx.x)
    for item in range(fx.Int32(indptr[block]), fx.Int32(indptr[block + 1])):
        place = item * ITEM
        request, row, token, first, last = (fx.Int32(info[place + i]) for i in (0, 1, 2, 4, 5))
        head = (fx.Int32(info[place + 7]) & 0xFFFF) // plan.group
        context, pages = (fx.Int32(tensors[name][request]) for name in ("context_lengths", "kv_indptr"))
        before = fx.Int32(partitions[request])
        work = Work(token=token, first=first - before, last=last - before, head=head, context=context, pages=pages)
        # What the item before left in shared memory has been read.
        fx.gpu.barrier()
        rows = attention.walk(work)
        if row < 0:
            attention.finish(work, rows, tensors["output"])
        else:
            places = [attention.row_of_query(row, work.head, query, member) for _, query, member in attention.rows()]
            attention.share(rows, places, shares, lse)


@cache
def compile_pa_decode_metadata(
    softmax_scale: float | None = None, trans_v: bool = False, needs_mask: bool = True, query_group_size: int = 16,
    per_token_kv: bool = False, query_length: int = 1, query_input_dtype: str = "packed_fp8", head_dim: int = 128,
    block_size: int = 1024, output_dtype_str: str = "bf16", *, cache_dtype: str = "fp8", per_block_kv: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """The persistent kernel: {"launch", "kernel", "allocator"}.

    launch: (output, shares, lse, query, key_cache, value_cache, context_lengths, kv_page_indices, kv_indptr, key_scale,
    value_scale, work_indptr, work_info, partition_indptr, bins, key heads, stream), tensors flattened. shares (rows, H,
    D) and lse (rows, H) in f32: of requests that several bins divide, for `mla_reduce`. allocator: None,
    as shared memory is allocated while the kernel is traced.

    needs_mask: False if every context is whole partitions of 256 and query_length is 1. query_input_dtype: bf16, f16,
    or packed_fp8, fp8 numbers whose scale softmax_scale has. Raises ArgumentError for what is unsupported.
    """
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
        masked=needs_mask,
    )

    def launch(tensors: dict[str, Any], bins: Any, heads: Any, stream: Any) -> None:
        require_inputs(plan, tensors, heads)
        of_row, kinds = plan.group * plan.dim, (OUT_TYPES[plan.out_dtype], fx.Float32, fx.Float32)
        for name, width, kind in zip(RESULTS, (of_row, of_row, plan.group), kinds, strict=True):
            require_rows(name, tensors[name], 0, heads * width, kind)
        sizes = zip(WORK, (bins + 1, ITEM, 1), strict=True)
        require_least(tensors, **{name: (fx.Int32, size) for name, size in sizes})
        kernel = pa_decode_metadata_kernel(tensors, heads, plan, value_attrs=plan.attributes)
        kernel.launch(grid=bins, block=THREADS, stream=stream)

    names, sizes = " ".join((*RESULTS, *INPUTS, *WORK)), {"bins": fx.Int32, "heads": fx.Int32}
    made = launcher("launch_pa_decode_metadata", names, launch, **sizes)
    return {"launch": made, "kernel": pa_decode_metadata_kernel, "allocator": None}


@cache
def compile_pa_decode_ps(
    *, block_size: int, max_context_partition_num: int, softmax_scale: float | None = None, trans_v: bool = True,
    query_group_size: int = 16, per_token_kv: bool = False, query_length: int = 1, query_input_dtype: str = "bf16",
    head_dim: int = 128, output_dtype_str: str = "bf16", cache_dtype: str = "fp8", per_block_kv: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """The kernels with max_context_partition_num workgroups for each request and key head: {"launch", "reduce"}.

    launch: (temporary_output, exp_sums, max_logits, query, key_cache, value_cache, context_lengths, kv_page_indices,
    kv_indptr, key_scale, value_scale, B, key heads, stream), tensors flattened. temporary_output (B, Hkv, parts, ql
    group, D) in bf16, the others (B, Hkv, parts, ql group) in f32. reduce: (output, temporary_output, exp_sums,
    max_logits, B, key heads, stream). Raises ArgumentError for what is unsupported.
    """
    parts = max_context_partition_num
    require(parts > 0, f"max_context_partition_num={parts}", "at least 1")
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
    )

    return compile_parts("launch_pa_decode_ps", plan, parts)


def default_parts(batch: int, heads: int, block_size: int) -> int:
    """The workgroups of a request and key head: two for each compute unit, in all, but 4 to 8, or 16 of few requests.

    >>> default_parts(1, 8, 64), default_parts(64, 8, 64)
    (16, 4)
    """
    pages, most = max(1, PARTITION // block_size), 16 if batch * heads * 8 <= COMPUTE_UNITS else 8
    return min(max(-(-2 * COMPUTE_UNITS // (batch * heads * pages)) * pages, 4), most)


def decode_divided(given: PagedInputs, scale: float | None, metadata: Any, stream: Any) -> None:
    """Run the persistent kernel, and merge what it divided."""
    heads, queries = given.heads, given.queries
    if metadata is None:
        metadata = get_pa_metadata(given.contexts, heads * given.group, heads, queries, num_cu=BINS, stream=stream)
    shares = room_for_shares(metadata, queries, heads * given.group, given.dim)
    launch, work = compile_pa_decode_metadata(scale, **given.options)["launch"], [metadata[name] for name in WORK]
    launch_flat(launch, given.output, *shares, *given.inputs, *work, work[0].numel() - 1, heads, stream)
    merge_shares(given.output, *shares, metadata, queries, stream)


def pa_decode_ps_launch(
    output: Any, query: Any, key_cache: Any, value_cache: Any, context_lengths: Any, kv_page_indices: Any,
    kv_indptr: Any, softmax_scale: float | None, key_scale: Any, value_scale: Any, *, sliding_window: int = 0,
    metadata: dict[str, Any] | None = None, block_tables: Any = None, max_context_partition_num: int = 0,
    exp_sums: Any = None, max_logits: Any = None, temporary_output: Any = None, stream: Any = None,
) -> None:  # fmt: skip
    """Write the attention of every request to output.

    sliding_window: keys before its own that a query sees, 0 for all. metadata: tables of `get_pa_metadata`, for pages
    larger than 64 tokens; by default they are made. block_tables: (B, pages), instead of kv_page_indices and kv_indptr;
    negative entries stand for no page. max_context_partition_num: workgroups for each request and key head, 0 for a
    good choice. exp_sums, max_logits, temporary_output: see `compile_pa_decode_ps`; by default they are allocated.
    Raises ArgumentError for tensors of shapes and types that do not fit.
    """
    given = PagedInputs(
        output, query, key_cache, value_cache, context_lengths, kv_page_indices, kv_indptr, key_scale, value_scale,
        block_tables,
    )  # fmt: skip
    if not sliding_window and given.block > SMALL_BLOCK:
        decode_divided(given, softmax_scale, metadata, stream)
        return
    if sliding_window:
        parts = parts_of(sliding_window, given.queries)
        compiled = compile_pa_decode_sw(sliding_window, softmax_scale, **given.options)
    else:
        parts = max_context_partition_num or default_parts(given.batch, given.heads, given.block)
        compiled = compile_pa_decode_ps(max_context_partition_num=parts, softmax_scale=softmax_scale, **given.options)
    run_parts(given, compiled, parts, (temporary_output, exp_sums, max_logits), stream)


# With workgroups for each request and key head that are chosen by measurement.
pa_decode_ps = flydsl.autotune(
    configs=[flydsl.Config(max_context_partition_num=parts) for parts in (1, 2, 4, 8, 16, 32)],
    key=["query", "key_cache", "context_lengths"],
)(pa_decode_ps_launch)
