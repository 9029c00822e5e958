"""The host's side of paged attention: what tensors say about a kernel, and the launch of one with several parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import flydsl.expr as fx
from kernels.kernels_common import dtype_str, require, require_array
from kernels.launches import launch_flat, launcher
from kernels.paged_attention import TILE, Decode, pa_reduce_kernel

# The kernels' inputs, in the order of their launchers.
TENSORS = ("query", "key_cache", "value_cache", "contexts", "pages", "starts", "key_scale", "value_scale")
INPUTS = (*TENSORS[:3], "context_lengths", "kv_page_indices", "kv_indptr", *TENSORS[6:])  # as launchers name them
PARTIALS = ("temporary_output", "exp_sums", "max_logits")


class Given:
    """The tensors of a call, checked. Raises ArgumentError where they do not fit each other."""

    def __init__(
        self, output: Any, query: Any, key_cache: Any, value_cache: Any, contexts: Any, key_scale: Any, value_scale: Any
    ) -> None:
        import torch

        self.output, self.query, self.contexts = output, query, contexts
        self.key_cache, self.value_cache, self.scales = key_cache, value_cache, (key_scale, value_scale)
        known = key_cache.dim() == 5 and key_cache.shape[-1] == TILE
        require(known, f"key_cache of {tuple(key_cache.shape)}", f"(pages, key heads, D / {TILE}, block, {TILE})")
        self.count, self.heads, packs, self.block, _ = key_cache.shape
        self.dim, self.batch = packs * TILE, contexts.numel()
        self._require_caches()
        self._require_queries()
        require_array("context_lengths", contexts, torch.int32)

    def _require_caches(self) -> None:
        import torch

        values, shape = self.value_cache, (self.count, self.heads)
        plain, packed = (*shape, self.dim, self.block), (*shape, self.block // TILE, self.dim, TILE)
        fits = tuple(values.shape) in (plain, packed) and values.dtype == self.key_cache.dtype
        wanted = f"{plain} or {packed}, {self.key_cache.dtype}"
        require(fits, f"value_cache of {tuple(values.shape)}, {values.dtype}", wanted)
        require_array("key_cache", self.key_cache)
        require_array("value_cache", values)
        for name, scale in zip(("key_scale", "value_scale"), self.scales, strict=True):
            require_array(name, scale, torch.float32)

    def _require_queries(self) -> None:
        shape = tuple(self.query.shape)
        fits = len(shape) == 3 and shape[0] > 0 < self.batch and shape[0] % self.batch == 0 and shape[2] == self.dim
        wanted = f"(B queries, H, {self.dim}) for B={self.batch} context lengths"
        require(fits, f"query of {shape}", wanted)
        require(shape[1] % self.heads == 0, f"{shape[1]} query heads for {self.heads} key heads", "a multiple")
        require_array("query", self.query)
        require_array("output", self.output, shape=shape)
        self.queries, self.group = shape[0] // self.batch, shape[1] // self.heads

    @cached_property
    def kind_of_scales(self) -> str:
        """tensor, block or token."""
        sizes = {1: "tensor", self.count * self.heads: "block", self.count * self.heads * self.block: "token"}
        sizes[1] = "tensor"
        key, value = (scale.numel() for scale in self.scales)
        given = f"{key} scales of keys and {value} of values"
        require(key == value and key in sizes, given, f"of both one of {[*sizes]}")
        return sizes[key]

    @property
    def out_dtype(self) -> str:
        """The short name of the output's type."""
        return dtype_str(self.output)

    @property
    def options(self) -> dict[str, Any]:
        """What the builders are told."""
        fp8 = self.key_cache.element_size() == 1
        query = "packed_fp8" if self.query.element_size() == 1 else dtype_str(self.query)
        return {
            "block_size": self.block, "trans_v": self.value_cache.dim() == 5, "query_group_size": self.group,
            "query_length": self.queries, "query_input_dtype": query, "head_dim": self.dim,
            "output_dtype_str": self.out_dtype, "cache_dtype": "fp8" if fp8 else dtype_str(self.key_cache),
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
        for name, tensor in (("kv_page_indices", indices), ("kv_indptr", indptr)):
            require_array(name, tensor, torch.int32)
        wanted = f"{self.batch + 1} for {self.batch} requests"
        require(indptr.numel() > self.batch, f"kv_indptr of {indptr.numel()}", wanted)
        return indices, indptr

    def inputs(self, pages: tuple[Any, Any]) -> tuple[Any, ...]:
        """The kernels' inputs."""
        return (self.query, self.key_cache, self.value_cache, self.contexts, *pages, *self.scales)


def decode_launcher(
    name: str, results: Sequence[str], launch: Callable[..., None], tables: Sequence[str] = (),
    sizes: Sequence[str] = ("batch", "heads"),
) -> Any:  # fmt: skip
    """The launcher (results, the kernels' inputs, tables, sizes, stream), by names.

    launch(results, inputs by the kernels' names, tables, sizes, stream).
    """

    def launch_values(given: dict[str, Any], *sizes_and_stream: Any) -> None:
        *of_sizes, stream = sizes_and_stream
        of_results, inputs, of_tables = (tuple(given[n] for n in names) for names in (results, INPUTS, tables))
        launch(of_results, dict(zip(TENSORS, inputs, strict=True)), of_tables, tuple(of_sizes), stream)

    return launcher(name, " ".join((*results, *INPUTS, *tables)), launch_values, **dict.fromkeys(sizes, fx.Int32))


def reduce_launcher(plan: Decode, parts: int) -> Any:
    """The launcher (output, temporary_output, exp_sums, max_logits, B, key heads, stream)."""

    def launch(tensors: dict[str, Any], batch: Any, heads: Any, stream: Any) -> None:
        out, *partials = tensors.values()
        reduce_parts(out, tuple(partials), batch, heads, parts, plan, stream)

    return launcher("launch_pa_reduce", " ".join(("output", *PARTIALS)), launch, batch=fx.Int32, heads=fx.Int32)


def reduce_parts(
    out: Any, partials: tuple[Any, ...], batch: Any, heads: Any, parts: int, plan: Decode, stream: Any
) -> None:
    """Launch the reduction of parts, inside of a launcher."""
    kernel = pa_reduce_kernel(out, partials, parts, plan)
    kernel.launch(grid=(batch, heads, plan.rows), block=plan.dim, stream=stream)


def kind_of_scales(per_token: bool, per_block: bool) -> str:
    """One of `paged_attention.SCALES`."""
    require(not (per_token and per_block), "per_token_kv and per_block_kv", "one of both")
    return "token" if per_token else "block" if per_block else "tensor"


def run_parts(
    given: Given,
    pages: tuple[Any, Any],
    compiled: dict[str, Any],
    parts: int,
    temporaries: tuple[Any, ...],
    stream: Any,
) -> None:
    """Launch a kernel with several parts for each request and key head, and the reduction.

    temporaries: temporary_output, exp_sums, max_logits, None to allocate one.
    """
    import torch

    shape = (given.batch, given.heads, parts, given.queries * given.group)
    made = []
    for number, tensor in enumerate(temporaries):
        size, dtype = ((*shape, given.dim), torch.bfloat16) if number == 0 else (shape, torch.float32)
        if tensor is None:
            tensor = torch.empty(size, dtype=dtype, device=given.query.device)
        fits = tensor.dtype == dtype and tensor.is_contiguous() and tensor.numel() >= torch.Size(size).numel()
        name = PARTIALS[number]
        require(fits, f"{name} of {tuple(tensor.shape)}, {tensor.dtype}", f"contiguous, {size}, {dtype}")
        made.append(tensor)
    launch_flat(compiled["launch"], *made, *given.inputs(pages), given.batch, given.heads, stream)
    launch_flat(compiled["reduce"], given.output, *made, given.batch, given.heads, stream)
