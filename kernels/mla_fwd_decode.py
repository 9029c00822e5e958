"""Multi-head latent attention, decode: 128 heads of a request's last token, over one key for all, in fp8.

    mla_fwd_decode(output, query, kv_buffer, kv_page_indices, context_lengths, softmax_scale)

    out[b, h] = sum over j of softmax_j(query[b, h] . kv[j] * softmax_scale) kv[j, :512]

of the request's tokens j, a page each. query (B, 128, 576) and kv_buffer (pages, 1, 1, 576) are of the target's fp8,
output (B, 128, 512) of bf16; kv_page_indices has the pages of all requests, one request after another.

The tokens are divided evenly among as many workgroups as there are compute units (`pa_metadata`, pieces of one token);
`mla_fwd_decode_m16x8_fp8_fp8` is what a workgroup does. Requests that several of them share are merged by another
kernel; `tuned_mla_fwd_decode` finds out how many workgroups are best. Reading the keys, 576 bytes each, takes most of
the time; from about 64 requests on the matrix units do, with 278 thousand operations for a key of a request.
"""

from __future__ import annotations

from typing import Any

import flydsl
from kernels import pa_decode_fp8
from kernels.kernels_common import require, require_array
from kernels.launches import launch_flat
from kernels.mla_fwd_decode_m16x8_fp8_fp8 import HEADS, ROWS_OF, VALUE_BYTES, launch_mla_fwd_decode_m16x8_fp8_fp8
from kernels.pa_metadata import COMPUTE_UNITS, get_pa_metadata, merge_shares, room_for_shares

# (contexts, num_cu): one token, blocks of 32 keys that are not whole, a request without keys, divided requests.
SHAPES: tuple[tuple[tuple[int, ...], int], ...] = (((1,), 2), ((127, 0, 129), 3), ((33, 64), 1))


def reference(query: Any, kv: Any, pages: Any, contexts: Any, scale: float) -> Any:
    """The result in f32 of numbers query (B, 128, 576) and kv (pages, 576)."""
    kv, starts = kv[:, None, None], contexts.cumsum(0) - contexts
    return pa_decode_fp8.reference(query, kv, kv[..., :VALUE_BYTES], contexts, pages, starts, scale)


def flydsl_mla_fwd_decode(
    query: Any, kv_buffer: Any, kv_page_indices: Any, work_indptr: Any, work_info_set: Any, final_output: Any,
    split_output: Any, split_lse: Any, softmax_scale: float, stream: Any = None,
) -> None:  # fmt: skip
    """Write what whole items compute to final_output (T, 128, 512), bf16, and the shares of divided requests to
    split_output (rows, 1, 128, 512) and split_lse (rows, 1, 128, 1), f32, for `mla_reduce`.

    work_indptr, work_info_set: of `pa_metadata` with kv_granularity=1, for one query of a request.
    Raises ArgumentError for tensors of other shapes and types.
    """
    import torch

    integers, fp8 = torch.int32, query.dtype
    require(query.element_size() == 1, f"query of {fp8}", "fp8")
    tensors = (
        query, kv_buffer, kv_page_indices, work_indptr, work_info_set, final_output, split_output, split_lse
    )  # fmt: skip
    kinds = (fp8, fp8, integers, integers, integers, torch.bfloat16, torch.float32, torch.float32)
    for (name, row), tensor, kind in zip(ROWS_OF.items(), tensors, kinds, strict=True):
        require_array(name, tensor, kind, (..., *row))
    bins = work_indptr.numel() - 1
    launch_flat(launch_mla_fwd_decode_m16x8_fp8_fp8, *tensors, float(softmax_scale), bins, stream)


def mla_fwd_decode(
    output: Any,
    query: Any,
    kv_buffer: Any,
    kv_page_indices: Any,
    context_lengths: Any,
    softmax_scale: float,
    *,
    num_cu: int = COMPUTE_UNITS,
    stream: Any = None,
) -> None:
    """Divide the work, compute it, and merge what was divided. See the module."""
    batch = context_lengths.numel()
    shape = (batch, HEADS, VALUE_BYTES)
    require(tuple(output.shape) == shape, f"output of {tuple(output.shape)} for {batch} requests", f"{shape}")
    require(query.shape[0] == batch, f"query of {tuple(query.shape)} for {batch} requests", "one token of each")
    tables = get_pa_metadata(context_lengths, HEADS, 1, num_cu=num_cu, kv_granularity=1, stream=stream)
    shares = room_for_shares(tables, 1, HEADS, VALUE_BYTES)
    flydsl_mla_fwd_decode(
        query, kv_buffer, kv_page_indices, tables["work_indptr"], tables["work_info"], output, *shares, softmax_scale,
        stream,
    )  # fmt: skip
    merge_shares(output, *shares, tables, 1, stream)


# Fewer workgroups than compute units leave less to merge.
tuned_mla_fwd_decode = flydsl.autotune(
    configs=[flydsl.Config(num_cu=COMPUTE_UNITS // share) for share in (8, 4, 2, 1)], key=["query", "kv_page_indices"]
)(mla_fwd_decode)
