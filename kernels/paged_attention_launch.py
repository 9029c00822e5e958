"""The choice of a paged attention kernel by its tensors, and the kernels for parts of each request's keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from kernels.attention_common import merged, merged_at_once
from kernels.kernels_common import LOG2_E, bytes_of, dtype_str, fp8_type, require, require_array, require_waves_of_64
from kernels.launches import launch_flat, launcher
from kernels.mfma_products import THREADS
from kernels.paged_attention import OUT_TYPES, PARTITION, QUERY_TYPES, TILE, Attention, Decode, Work
from kernels.sizes import require_elements, require_least, require_rows

# The launchers' inputs.
INPUTS = (
    "query", "key_cache", "value_cache", "context_lengths", "kv_page_indices", "kv_indptr", "key_scale", "value_scale"
)  # fmt: skip
# What is known of a part of a request's keys: its share of the result, its sum of powers of e, and its largest logit.
MOST_AT_ONCE = 32  # parts that are read together
PARTIALS = ("temporary_output", "exp_sums", "max_logits")


class PagedInputs:
    """The tensors of a call. Raises ArgumentError where their shapes do not fit each other; launchers check types."""

    def __init__(
        self, output: Any, query: Any, key_cache: Any, value_cache: Any, contexts: Any, indices: Any, indptr: Any,
        key_scale: Any, value_scale: Any, block_tables: Any = None,
    ) -> None:  # fmt: skip
        self.output, self.query, self.contexts = output, query, contexts
        self.key_cache, self.value_cache, self.scales = key_cache, value_cache, (key_scale, value_scale)
        known = key_cache.dim() == 5 and key_cache.shape[-1] == TILE and key_cache.shape[0] > 0
        wanted = f"(pages, key heads, D / {TILE}, block, {TILE}), at least a page"
        require(known, f"key_cache of {tuple(key_cache.shape)}", wanted)
        self.count, self.heads, packs, self.block, _ = key_cache.shape
        self.dim, self.batch, of_pages = packs * TILE, contexts.numel(), (self.count, self.heads)
        plain, packed = (*of_pages, self.dim, self.block), (*of_pages, self.block // TILE, self.dim, TILE)
        values = f"value_cache of {tuple(value_cache.shape)}, {value_cache.dtype}"
        fits = tuple(value_cache.shape) in (plain, packed) and value_cache.dtype == key_cache.dtype
        require(fits, values, f"{plain} or {packed}, {key_cache.dtype}")
        shape = tuple(query.shape)
        fits = len(shape) == 3 and shape[0] > 0 < self.batch and shape[0] % self.batch == 0 and shape[2] == self.dim
        require(fits, f"query of {shape}", f"(B queries, H, {self.dim}) for B={self.batch} context lengths")
        require(shape[1] % self.heads == 0, f"{shape[1]} query heads for {self.heads} key heads", "a multiple")
        require_array("output", output, shape=shape)
        self.queries, self.group = shape[0] // self.batch, shape[1] // self.heads
        pages = (indices, indptr) if block_tables is None else self.pages_of_rows(block_tables)
        self.inputs = (query, key_cache, value_cache, contexts, *pages, key_scale, value_scale)
        for name, tensor in zip(INPUTS, self.inputs, strict=True):
            require_array(name, tensor)

    @property
    def kind_of_scales(self) -> str:
        """tensor, block or token."""
        pages, (key, value) = self.count * self.heads, (scale.numel() for scale in self.scales)
        sizes = {pages * self.block: "token", pages: "block", 1: "tensor"}
        given = f"{key} scales of keys and {value} of values"
        require(key == value and key in sizes, given, f"of both one of {sorted(sizes)}")
        return sizes[key]

    @property
    def options(self) -> dict[str, Any]:
        """The options of the builders."""
        fp8 = self.key_cache.element_size() == 1
        query = "packed_fp8" if self.query.element_size() == 1 else dtype_str(self.query)
        return {
            "block_size": self.block, "trans_v": self.value_cache.dim() == 5, "query_group_size": self.group,
            "query_length": self.queries, "query_input_dtype": query, "head_dim": self.dim,
            "output_dtype_str": dtype_str(self.output), "cache_dtype": "fp8" if fp8 else dtype_str(self.key_cache),
            "per_token_kv": self.kind_of_scales == "token", "per_block_kv": self.kind_of_scales == "block",
        }  # fmt: skip

    def pages_of_rows(self, tables: Any) -> tuple[Any, Any]:
        """(the list of pages, where the requests' begin) for a row of pages of each request."""
        import torch

        shape, kind = tuple(tables.shape), tables.dtype
        fits = len(shape) == 2 and shape[0] == self.batch and kind == torch.int32
        require(fits, f"block_tables of {shape}, {kind}", f"({self.batch}, pages), torch.int32")
        starts = torch.arange(self.batch, dtype=torch.int32, device=tables.device) * shape[1]
        return tables.contiguous(), starts


def require_inputs(plan: Decode, given: dict[str, Any], heads: Any, batch: Any = 0) -> None:
    """Refuse inputs of other types, for fewer requests, and caches of other pages and scales than the plan's."""
    cache = bytes_of(fp8_type()) if plan.element == 1 else (fx.BFloat16,)
    query, keys = QUERY_TYPES[plan.query_dtype], given["key_cache"].shape[0]
    scales = {"tensor": 1, "token": keys // plan.dim, "block": keys // (plan.dim * plan.block)}[plan.scales]
    kinds = bytes_of(fp8_type()) if query.width == 8 else (query,)
    require_rows("query", given["query"], batch * plan.queries, heads * (plan.group * plan.dim), *kinds)
    require_rows("key_cache", given["key_cache"], 0, heads * (plan.dim * plan.block), *cache)
    require_elements("value_cache", given["value_cache"], keys, *cache)
    require_least(
        given, context_lengths=(fx.Int32, batch), kv_page_indices=(fx.Int32, 0), kv_indptr=(fx.Int32, batch),
        key_scale=(fx.Float32, scales), value_scale=(fx.Float32, scales),
    )  # fmt: skip


def require_results(plan: Decode, tensors: Mapping[str, Any], rows: Any, parts: int) -> None:
    """Refuse an output or partials of other types, or with too few rows for the queries' parts."""
    out, of_parts = (OUT_TYPES[plan.out_dtype], rows * plan.dim), rows * parts
    partials = (fx.BFloat16, of_parts * plan.dim), (fx.Float32, of_parts), (fx.Float32, of_parts)
    wanted = dict(zip(("output", *PARTIALS), (out, *partials), strict=True))
    require_least(tensors, **{name: wanted[name] for name in tensors})


@flyc.kernel
def pa_decode_parts_kernel(tensors: Any, parts: fx.Constexpr[int], plan: fx.Constexpr[Decode]) -> None:
    """A part of a request's keys, or all, for one key head, to the output, if that is given, or to partials.

    Parts are of one length, but with a window each is one partition of those that it reaches.
    """
    batch, head, part = (fx.Int32(i) for i in fx.block_idx)
    heads, fused = fx.Int32(fx.grid_dim.y), "output" in tensors
    context, pages = (fx.Int32(tensors[name][batch]) for name in ("context_lengths", "kv_indptr"))
    partitions = (context + (PARTITION - 1)) // PARTITION
    if fx.const_expr(plan.window < 0):
        first, last = (fx.Int32(fx.Uint32(partitions * n) // parts) for n in (part, part + 1))
    else:
        first = fx.max(context - plan.queries - plan.window, 0) // PARTITION + part
        last = partitions if fused else fx.min(first + 1, partitions)
    attention = Attention(plan, tensors, heads)
    work = Work(token=batch * plan.queries, first=first, last=last, head=head, context=context, pages=pages)
    rows = attention.walk(work, once=plan.window >= 0 and not fused)
    if fx.const_expr(fused):
        attention.finish(work, rows, tensors["output"])
    else:
        place = ((batch * heads + head) * parts + part) * plan.rows
        places = [place + row for row, _, _ in attention.rows()]
        attention.share(rows, places, *(tensors[name] for name in PARTIALS))


@flyc.kernel
def pa_reduce_kernel(
    out: fx.Tensor, partials: Any, parts: fx.Int32, plan: fx.Constexpr[Decode], at_once: fx.Constexpr[int]
) -> None:
    """One row of the output from the parts of `pa_decode_parts_kernel`. A thread for each column.

    at_once: the number of parts, if they are few enough to be read together; then `parts` is not used.
    """
    require_waves_of_64("the reduction of partitions")
    batch, head, row = (fx.Int32(i) for i in fx.block_idx)
    column, heads = fx.Int32(fx.thread_idx.x), fx.Int32(fx.grid_dim.y)
    values, sums, largest = partials
    first = (batch * heads + head) * (at_once or parts)

    def value(part: Any) -> Any:
        return values[((first + part) * plan.rows + row) * plan.dim + column].to(fx.Float32)

    def weight(part: Any) -> tuple[Any, Any]:
        place = (first + part) * plan.rows + row
        return fx.Float32(largest[place]) * LOG2_E, fx.Float32(sums[place])

    query, member = row // plan.group, row % plan.group
    to = ((batch * plan.queries + query) * heads + head) * plan.group + member
    if fx.const_expr(at_once):
        mean = merged_at_once(at_once, value, weight)
    else:
        mean = merged(0, parts, lambda part: (value(part), *weight(part)))
    out[to * plan.dim + column] = fx.Float32(mean).to(out.dtype)


def compile_parts(name: str, plan: Decode, parts: int, fused: bool = False) -> dict[str, Any]:
    """{"launch", "reduce"} of a kernel with `parts` workgroups for each request and key head.

    launch: (temporary_output, exp_sums, max_logits, the inputs, B, key heads, stream). reduce: (output,
    temporary_output, exp_sums, max_logits, B, key heads, stream). fused: one workgroup, whose launch takes the output
    instead of the partials; there is no reduce.
    """

    def launch(tensors: dict[str, Any], batch: Any, heads: Any, stream: Any) -> None:
        require_inputs(plan, tensors, heads, batch)
        require_results(plan, {name: tensors[name] for name in names}, batch * heads * plan.rows, parts)
        kernel = pa_decode_parts_kernel(tensors, parts, plan, value_attrs=plan.attributes)
        kernel.launch(grid=(batch, heads, parts), block=THREADS, stream=stream)

    def reduce(tensors: dict[str, Any], batch: Any, heads: Any, stream: Any) -> None:
        require_results(plan, tensors, batch * heads * plan.rows, parts)
        out, *partials = tensors.values()
        kernel = pa_reduce_kernel(out, tuple(partials), parts, plan, parts if parts <= MOST_AT_ONCE else 0)
        kernel.launch(grid=(batch, heads, plan.rows), block=plan.dim, stream=stream)

    names, sizes = ("output",) if fused else PARTIALS, {"batch": fx.Int32, "heads": fx.Int32}
    launchers = {"launch": launcher(name, " ".join((*names, *INPUTS)), launch, **sizes)}
    if not fused:
        launchers["reduce"] = launcher("launch_pa_reduce", " ".join(("output", *PARTIALS)), reduce, **sizes)
    return launchers


def kind_of_scales(per_token: bool, per_block: bool) -> str:
    """One of `paged_attention.SCALES`."""
    require(not (per_token and per_block), "per_token_kv and per_block_kv", "one of both")
    return "token" if per_token else "block" if per_block else "tensor"


def run_parts(
    given: PagedInputs, compiled: dict[str, Any], parts: int, temporaries: Sequence[Any], stream: Any
) -> None:
    """Launch a kernel with several parts for each request and key head, and the reduction, if there is one.

    temporaries: temporary_output, exp_sums, max_logits, None to allocate one.
    """
    import torch

    of_launch = (*given.inputs, given.batch, given.heads, stream)
    if "reduce" not in compiled:
        launch_flat(compiled["launch"], given.output, *of_launch)
        return
    shape, numbers = (given.batch, given.heads, parts, given.queries * given.group), torch.float32
    sizes, made = ((*shape, given.dim), shape, shape), []
    types = (torch.bfloat16, numbers, numbers)
    for name, tensor, size, kind in zip(PARTIALS, temporaries, sizes, types, strict=True):
        made.append(torch.empty(size, dtype=kind, device=given.query.device) if tensor is None else tensor)
        require_array(name, made[-1])
    launch_flat(compiled["launch"], *made, *of_launch)
    launch_flat(compiled["reduce"], given.output, *made, given.batch, given.heads, stream)
