"""The shares of divided requests, each attention to a part of the keys, merged by the logarithms of their sums.

    mla_reduce(output, shares, lse, reduce_indptr, reduce_final_map, reduce_partial_map, final_lse=final_lse)

Decode kernels divide the keys of long requests among workgroups (`pa_metadata`, which has the maps). Share i of divided
request g, for i from reduce_indptr[g] to reduce_indptr[g + 1] - 1, has a row for each query from
reduce_partial_map[i] on, in shares (rows, H, D) and lse (rows, H), both of f32; lse is the logarithm of the share's sum
of powers of e. For its queries, from reduce_final_map[g, 0] to reduce_final_map[g, 1] - 1:

    final_lse = log(sum of e^lse)
    output = sum of e^(lse - final_lse) * share

output: (.., H, D) of f32, f16 or bf16, and final_lse: (.., H) of f32, which may be left out. Where all shares saw no
key, their lse being -inf, output is 0 and final_lse is -inf.

A workgroup computes a head of a query. Each lane reads the lse of one share, so that after one access to memory the
wave has 64 of them, their maximum and their sum; the others read a share's row and weight from that lane, as scalars.
Eight rows of shares are loaded while eight others are added. Rows of 512: 256 threads of 2 columns, about 45 VGPRs,
eight waves per SIMD.
"""

from __future__ import annotations

from functools import cache, partial
from itertools import pairwise
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from kernels.attention_common import LOWEST, inverse
from kernels.kernels_common import FLOATS, LOG2_E, require, require_array, require_waves_of_64
from kernels.launches import chosen, flat, launch_some, launcher
from kernels.rows import WAVE
from kernels.sizes import require_least, require_rows
from kernels.tensor_shim import GTensor

MAPS = ("reduce_indptr", "reduce_final_map", "reduce_partial_map")
TENSORS = f"output shares lse {' '.join(MAPS)}"
AT_ONCE = (4, 8, 16)
"""Rows of shares that are loaded together."""
# (shares of each divided request, queries, H, D)
SHAPES: tuple[tuple[tuple[int, ...], int, int, int], ...] = (
    ((2, 9, 33), 1, 2, 512), ((3, 2), 2, 3, 128), ((130,), 1, 1, 64),
)  # fmt: skip


@flyc.kernel
def mla_reduce_kernel(tensors: Any, heads: fx.Int32, columns: fx.Constexpr[int], at_once: fx.Constexpr[int]) -> None:
    """A query and head of a divided request. The grid: heads, queries, requests."""
    require_waves_of_64("mla_reduce")
    head, query, group = (fx.Int32(i) for i in fx.block_idx)
    first, last = (fx.Int32(tensors["reduce_indptr"][group + i]) for i in range(2))
    begin, end = (fx.Int32(tensors["reduce_final_map"][group * 2 + i]) for i in range(2))
    if (first < last) & (query < end - begin):
        mean, lse = Shares(tensors, head, query, heads, columns).merge(first, last, at_once)
        row, thread = (begin + query) * heads + head, fx.Int32(fx.thread_idx.x)
        output = tensors["output"]
        place = fx.Int64(row) * (columns * output.dtype.width // 8)
        GTensor(output, output.dtype, base_byte_offset=place).vec_store(thread * mean.numel, mean.to(output.dtype))
        if fx.const_expr("final_lse" in tensors):
            GTensor(tensors["final_lse"], fx.Float32).store(row, lse, mask=thread == 0)


class Shares:
    """The shares of a head of a query: each lane has `width` columns of all of them."""

    def __init__(self, tensors: Any, head: Any, query: Any, heads: Any, columns: int) -> None:
        self.values, self.columns = tensors["shares"], columns
        self.lse, self.rows = GTensor(tensors["lse"], fx.Float32), GTensor(tensors["reduce_partial_map"], fx.Int32)
        self.head, self.query, self.heads = head, query, heads
        self.width = lane_columns(columns)

    def row(self, number: Any) -> Any:
        """The row of a share, counted in rows of single heads."""
        return (self.rows.load(number) + self.query) * self.heads + self.head

    def load(self, row: Any) -> Any:
        """A lane's columns of a row. row: the same in all lanes."""
        values = GTensor(self.values, fx.Float32, base_byte_offset=fx.Int64(row) * (self.columns * 4))
        loaded = values.vec_load(fx.Int32(fx.thread_idx.x) * self.width, self.width)
        return fx.Vector(loaded) if self.width > 1 else fx.Vector.from_elements([loaded])

    @flyc.jit
    def merge(self, first: Any, last: Any, at_once: int) -> tuple[Any, Any]:
        """(a lane's columns, the logarithm of the sum) of shares first to last - 1, 64 at a time."""
        lane = fx.Int32(fx.thread_idx.x) % WAVE
        top, total, sums = fx.Float32(LOWEST), fx.Float32(0.0), fx.Vector.filled(self.width, 0.0, fx.Float32)
        for begin in range(first, last, WAVE):
            exists = begin + lane < last
            row = self.row(exists.select(begin + lane, begin))
            logits = exists.select(self.lse.load(row) * LOG2_E, fx.Float32(-float("inf")))
            before, top = top, fx.arith.maxnumf(top, fx.coop.warp_reduce(logits, "max"))
            weight, factor = fx.exp2(logits - top, fastmath="afn"), fx.exp2(before - top, fastmath="afn")
            total = total * factor + fx.coop.warp_reduce(weight, "add")
            sums = self.add(sums * factor, row, weight, fx.min(last - begin, WAVE), at_once)
        return sums * inverse(total), (fx.log2(total) + top) * (1 / LOG2_E)

    @flyc.jit
    def add(self, sums: Any, row: Any, weight: Any, count: Any, at_once: int) -> Any:
        """The sums after some more shares: each lane has the row and the weight of one, 0 after the last of them."""
        loaded = self.load_some(row, fx.Int32(0), at_once)
        for begin in range(0, count, at_once):
            now, loaded = loaded, self.load_some(row, (begin + at_once) % WAVE, at_once)
            for i in fx.range_constexpr(at_once):
                sums = fx.fma(now[i], fx.Vector.filled(self.width, of_lane(weight, begin + i), fx.Float32), sums)
        return sums

    def load_some(self, row: Any, begin: Any, count: int) -> list[Any]:
        """A lane's columns of the rows that lanes begin to begin + count - 1 have."""
        return [self.load(of_lane(row, begin + i)) for i in range(count)]


def of_lane(value: Any, lane: Any) -> Any:
    """A lane's value as a scalar."""
    return type(value)(fx.rocdl.readlane(value, lane))


def lane_columns(columns: int) -> int:
    """The neighbouring columns that a lane has: at most two, so that there are many waves, whose loads overlap.

    Raises ArgumentError unless the columns are those of whole waves.
    """
    each = next((n for n in (2, 1) if columns > 0 and columns % (n * WAVE) == 0), 0)
    require(each > 0 and columns // each <= 1024, f"rows of {columns}", "a multiple of 64, up to 2048")
    return each


@cache
def build_mla_reduce_module(columns: int, *, has_lse: bool = False, at_once: int = 8) -> Any:
    """The launcher (output, shares, lse, reduce_indptr, reduce_final_map, reduce_partial_map, [final_lse], batch,
    heads, queries, stream), tensors of one dimension.

    columns: D, a multiple of 64. has_lse: whether there is final_lse. at_once: rows of shares that are loaded together.
    batch: the requests that reduce_indptr has room for, one less than its size; queries: of one request. Raises
    ArgumentError for other columns.
    """
    lane_columns(columns)
    names = f"{TENSORS} final_lse" if has_lse else TENSORS
    launch = partial(_launch, columns, at_once)
    return launcher("launch_mla_reduce", names, launch, batch=fx.Int32, heads=fx.Int32, queries=fx.Int32)


def _launch(
    columns: int, at_once: int, tensors: dict[str, Any], batch: Any, heads: Any, queries: Any, stream: Any
) -> None:
    require_rows("output", tensors["output"], 0, heads * columns, *FLOATS)
    require_rows("shares", tensors["shares"], 0, heads * columns, fx.Float32)
    sizes = {"reduce_indptr": batch + 1, "reduce_final_map": 0, "reduce_partial_map": 0}
    require_least(tensors, lse=(fx.Float32, tensors["shares"].shape[0] // columns),
                  **{name: (fx.Int32, sizes[name]) for name in MAPS})  # fmt: skip
    if "final_lse" in tensors:
        require_least(tensors, final_lse=(fx.Float32, tensors["output"].shape[0] // columns))
    kernel = mla_reduce_kernel(tensors, heads, columns, at_once)
    launch_some(kernel, batch, (heads, queries, batch), columns // lane_columns(columns), stream)


@chosen(TENSORS, "columns", AT_ONCE)
def tuned_mla_reduce(
    tensors: dict[str, Any], batch: fx.Int32, heads: fx.Int32, queries: fx.Int32, columns: int, at_once: int,
    stream: Any,
) -> None:  # fmt: skip
    """The kernel with as many rows on their way as are found to be the fastest."""
    _launch(columns, at_once, tensors, batch, heads, queries, stream)


def mla_reduce(
    output: Any, shares: Any, lse: Any, reduce_indptr: Any, reduce_final_map: Any, reduce_partial_map: Any,
    *, queries: int = 1, final_lse: Any = None, at_once: int = 8, stream: Any = None,
) -> None:  # fmt: skip
    """Merge the shares of divided requests into the rows of output, and of final_lse, that are theirs.

    queries: the most of a request. Raises ArgumentError for tensors of other types and shapes.
    """
    import torch

    require(shares.ndim == 3, f"shares {tuple(shares.shape)}", "(rows, H, D)")
    rows, heads, columns = shares.shape
    require_array("shares", shares, torch.float32)
    require_array("output", output, None, (..., heads, columns))
    require(lse.numel() == rows * heads, f"lse {tuple(lse.shape)} of {rows} rows of {heads} heads", "one for each")
    tensors = [output, shares, lse, reduce_indptr, reduce_final_map, reduce_partial_map]
    if final_lse is not None:
        given = f"final_lse {tuple(final_lse.shape)} for output {tuple(output.shape)}"
        require(final_lse.numel() * columns == output.numel(), given, "one for each head")
        tensors.append(final_lse)
    launch = build_mla_reduce_module(columns, has_lse=final_lse is not None, at_once=at_once)
    batch = reduce_indptr.numel() - 1
    launch(*map(flat, tensors), batch, heads, queries, *([] if stream is None else [stream]))


def reference(
    shares: Any, lse: Any, reduce_indptr: Any, reduce_final_map: Any, reduce_partial_map: Any
) -> dict[int, tuple[Any, Any]]:
    """{row of output: (its heads, their final_lse)}, in torch and f32."""
    import torch

    found, starts = {}, reduce_indptr.tolist()
    for group, (first, last) in enumerate(pairwise(starts)):
        if first == last:
            continue
        begin, end = reduce_final_map.view(-1, 2)[group].tolist()
        for query in range(end - begin):
            rows = reduce_partial_map[first:last].long() + query
            logarithms = lse.view(lse.shape[0], -1)[rows]
            total = torch.logsumexp(logarithms, 0)
            weights = torch.where(total == -torch.inf, 0, torch.exp(logarithms - total))
            found[begin + query] = (shares[rows] * weights[..., None]).sum(0), total
    return found
