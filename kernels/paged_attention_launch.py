"""The host's side of paged attention: what tensors say about a kernel, and the launch of one with several parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import flydsl.expr as fx
from kernels.kernels_common import bytes_of, dtype_str, fp8_type, require, require_array
from kernels.launches import launch_flat, launcher
from kernels.mfma_preshuffle_pipeline import THREADS
from kernels.paged_attention import OUT_TYPES, QUERY_TYPES, TILE, Decode, pa_decode_parts_kernel, pa_reduce_kernel
from kernels.sizes import require_elements, require_least, require_rows

# The kernels' inputs, in the order of their launchers, which have some by other names.
TENSORS = ("query", "key_cache", "value_cache", "contexts", "pages", "starts", "key_scale", "value_scale")
INPUTS = (*TENSORS[:3], "context_lengths", "kv_page_indices", "kv_indptr", *TENSORS[6:])
PARTIALS = ("temporary_output", "exp_sums", "max_logits")


class Given:
    """The tensors of a call. Raises ArgumentError where their shapes do not fit each other; launchers check types."""

    def __init__(
        self, output: Any, query: Any, key_cache: Any, value_cache: Any, contexts: Any, key_scale: Any, value_scale: Any
    ) -> None:
        self.output, self.query, self.contexts = output, query, contexts
        self.key_cache, self.value_cache, self.scales = key_cache, value_cache, (key_scale, value_scale)
        known = key_cache.dim() == 5 and key_cache.shape[-1] == TILE
        require(known, f"key_cache of {tuple(key_cache.shape)}", f"(pages, key heads, D / {TILE}, block, {TILE})")
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
        for name, tensor in zip(("query", "key_cache", "value_cache", "context_lengths", *TENSORS[6:]),
                                (query, key_cache, value_cache, contexts, *self.scales), strict=True):  # fmt: skip
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
        """What the builders are told."""
        fp8 = self.key_cache.element_size() == 1
        query = "packed_fp8" if self.query.element_size() == 1 else dtype_str(self.query)
        return {
            "block_size": self.block, "trans_v": self.value_cache.dim() == 5, "query_group_size": self.group,
            "query_length": self.queries, "query_input_dtype": query, "head_dim": self.dim,
            "output_dtype_str": dtype_str(self.output), "cache_dtype": "fp8" if fp8 else dtype_str(self.key_cache),
            "per_token_kv": self.kind_of_scales == "token", "per_block_kv": self.kind_of_scales == "block",
        }  # fmt: skip

    def pages(self, indices: Any, indptr: Any, block_tables: Any) -> tuple[Any, Any]:
        """(the list of pages, where the requests' begin)."""
        import torch

        if block_tables is not None:
            shape, kind = tuple(block_tables.shape), block_tables.dtype
            fits = len(shape) == 2 and shape[0] == self.batch and kind == torch.int32
            require(fits, f"block_tables of {shape}, {kind}", f"({self.batch}, pages), torch.int32")
            starts = torch.arange(self.batch, dtype=torch.int32, device=block_tables.device) * block_tables.shape[1]
            return block_tables.contiguous(), starts
        require_array("kv_page_indices", indices)
        require_array("kv_indptr", indptr)
        return indices, indptr

    def inputs(self, pages: tuple[Any, Any]) -> tuple[Any, ...]:
        """The kernels' inputs."""
        return (self.query, self.key_cache, self.value_cache, self.contexts, *pages, *self.scales)


def decode_launcher(
    name: str, plan: Decode, results: Sequence[str], launch: Callable[..., None], tables: Sequence[str] = (),
    sizes: Sequence[str] = ("batch", "heads"),
) -> Any:  # fmt: skip
    """The launcher (results, the kernels' inputs, tables, sizes, stream), by names; key heads are the last size.

    launch(results, inputs by the kernels' names, tables, sizes, stream).
    """

    def launch_values(given: dict[str, Any], *sizes_and_stream: Any) -> None:
        *of_sizes, stream = sizes_and_stream
        require_inputs(plan, given, of_sizes[-1], 0 if tables else of_sizes[0])
        of_results, inputs, of_tables = (tuple(given[n] for n in names) for names in (results, INPUTS, tables))
        launch(of_results, dict(zip(TENSORS, inputs, strict=True)), of_tables, tuple(of_sizes), stream)

    return launcher(name, " ".join((*results, *INPUTS, *tables)), launch_values, **dict.fromkeys(sizes, fx.Int32))


def require_inputs(plan: Decode, given: dict[str, Any], heads: Any, batch: Any = 0) -> None:
    """Refuse inputs of other types, for fewer requests, and caches of other pages and scales than the plan's."""
    cache = bytes_of(fp8_type()) if plan.element == 1 else fx.BFloat16
    query, keys = QUERY_TYPES[plan.query_dtype], given["key_cache"].shape[0]
    scales = {"tensor": 1, "token": keys // plan.dim, "block": keys // (plan.dim * plan.block)}[plan.scales]
    require_least(
        given, key_cache=(cache, 0), value_cache=(cache, 0), kv_page_indices=(fx.Int32, 0),
        query=(bytes_of(fp8_type()) if query.width == 8 else query, 0),
        context_lengths=(fx.Int32, batch), kv_indptr=(fx.Int32, batch),
        key_scale=(fx.Float32, scales), value_scale=(fx.Float32, scales),
    )  # fmt: skip
    require_rows("query", given["query"], batch * plan.queries, heads * (plan.group * plan.dim))
    require_rows("key_cache", given["key_cache"], 0, heads * (plan.dim * plan.block))
    require_elements("value_cache", given["value_cache"], keys)


def require_results(plan: Decode, tensors: Mapping[str, Any], rows: Any, parts: int) -> None:
    """Refuse an output or partials of other types, or with too few rows of queries, of which each has so many parts."""
    out, of_parts = (OUT_TYPES[plan.out_dtype], rows * plan.dim), rows * parts
    partials = (fx.BFloat16, of_parts * plan.dim), (fx.Float32, of_parts), (fx.Float32, of_parts)
    wanted = dict(zip(("output", *PARTIALS), (out, *partials), strict=True))
    require_least(tensors, **{name: wanted[name] for name in tensors})


def compile_parts(name: str, plan: Decode, parts: int, fused: bool = False) -> dict[str, Any]:
    """{"launch", "reduce"} of a kernel with `parts` workgroups for each request and key head.

    launch: (temporary_output, exp_sums, max_logits, the inputs, B, key heads, stream). reduce: (output,
    temporary_output, exp_sums, max_logits, B, key heads, stream). fused: one workgroup, whose launch takes the output
    instead of the partials; there is no reduce.
    """

    def launch(results: Any, inputs: Any, _: Any, sizes: Any, stream: Any) -> None:
        batch, heads = sizes
        require_results(plan, dict(zip(names, results, strict=True)), batch * heads * plan.rows, parts)
        kernel = pa_decode_parts_kernel(inputs, results, parts, plan, value_attrs=plan.attributes)
        kernel.launch(grid=(batch, heads, parts), block=THREADS, stream=stream)

    def reduce(tensors: dict[str, Any], batch: Any, heads: Any, stream: Any) -> None:
        require_results(plan, tensors, batch * heads * plan.rows, parts)
        out, *partials = tensors.values()
        kernel = pa_reduce_kernel(out, tuple(partials), parts, plan)
        kernel.launch(grid=(batch, heads, plan.rows), block=plan.dim, stream=stream)

    names = ("output",) if fused else PARTIALS
    launchers = {"launch": decode_launcher(name, plan, names, launch)}
    if not fused:
        sizes: dict[str, Any] = {"batch": fx.Int32, "heads": fx.Int32}
        launchers["reduce"] = launcher("launch_pa_reduce", " ".join(("output", *PARTIALS)), reduce, **sizes)
    return launchers


def kind_of_scales(per_token: bool, per_block: bool) -> str:
    """One of `paged_attention.SCALES`."""
    require(not (per_token and per_block), "per_token_kv and per_block_kv", "one of both")
    return "token" if per_token else "block" if per_block else "tensor"


def run_parts(
    given: Given, pages: tuple[Any, Any], compiled: dict[str, Any], parts: int, temporaries: Sequence[Any], stream: Any
) -> None:
    """Launch a kernel with several parts for each request and key head, and the reduction, if there is one.

    temporaries: temporary_output, exp_sums, max_logits, None to allocate one.
    """
    import torch

    of_launch = (*given.inputs(pages), given.batch, given.heads, stream)
    if "reduce" not in compiled:
        launch_flat(compiled["launch"], given.output, *of_launch)
        return
    shape, numbers = (given.batch, given.heads, parts, given.queries * given.group), torch.float32
    sizes, made = ((*shape, given.dim), shape, shape), []
    for tensor, size, kind in zip(temporaries, sizes, (torch.bfloat16, numbers, numbers), strict=True):
        made.append(torch.empty(size, dtype=kind, device=given.query.device) if tensor is None else tensor)
        require_array(PARTIALS[len(made) - 1], made[-1])
    launch_flat(compiled["launch"], *made, *of_launch)
    launch_flat(compiled["reduce"], given.output, *made, given.batch, given.heads, stream)
