"""The even division of requests' keys, of different lengths, among workgroups, for the persistent decode kernels.

    metadata = get_pa_metadata(context_lengths, num_heads_q, num_heads_k, query_length)

A request has ceil(context / kv_granularity) pieces of keys. The bins of a key head, num_cu / num_heads_k workgroups,
take the pieces of all requests in order, as many each, the first bins one more: so a bin has several requests, or a
request several bins, whose shares are merged afterwards. Tensors of i32, B requests:

| tensor | content |
|---|---|
| work_indptr (num_cu + 1) | where the items of a bin begin |
| work_info (.., 8) | an item: request, row of its share or -1 for the whole request, first and last + 1 query, first and last + 1 piece, 0, last + 1 query head << 16 \\| first |
| reduce_indptr (B + 1) | where the shares of a divided request begin; after the last one their number |
| reduce_final_map (B, 2) | first and last + 1 query of a divided request |
| reduce_partial_map (..) | the first row of each share |
| partition_indptr (B + 1) | the pieces of the requests before: pieces are numbered through all requests |

A request without keys has an item without pieces. All key heads are divided alike, so that shares have the same rows.

One wave schedules: lane h writes what belongs to key head h. For several heads it counts the items beforehand, as the
next head's begin after them. The walk is one chain of scalar instructions, about 25 an item.
"""  # noqa: E501 - a table

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from kernels.kernels_common import ceil_div, require, require_array, require_waves_of_64
from kernels.launches import launch_flat, launcher
from kernels.mla_reduce import MAPS, mla_reduce
from kernels.rows import WAVE
from kernels.sizes import require_least
from kernels.tensor_shim import GTensor

COMPUTE_UNITS = 304  # of an MI300X
GRANULARITY = 256
ITEM = 8
TABLES = "work_indptr work_info reduce_indptr reduce_final_map reduce_partial_map partition_indptr"
# (contexts, num_cu, num_heads_k, group, queries): divided requests, some without keys, more bins than keys.
SHAPES: tuple[tuple[tuple[int, ...], int, int, int, int], ...] = (
    ((1027, 5000, 33), 8, 1, 8, 1), ((8192,) * 3, 16, 2, 8, 4), ((0, 700, 0, 0, 129, 0), 6, 3, 4, 2),
    ((1,), 64, 2, 8, 1), ((0, 0), 4, 1, 16, 1), (tuple(range(0, 2000, 27)), 76, 4, 8, 1),
)  # fmt: skip


def get_pa_metadata_info_v1(
    batch_size: int, num_cu: int = COMPUTE_UNITS, num_heads_k: int = 1
) -> dict[str, tuple[int, ...]]:
    """The shapes of the tensors, by name. There are at most as many shares as reduce_partial_map has elements."""
    return {
        "work_indptr": (num_cu + 1,),
        "work_info": ((batch_size + num_cu - 1) * num_heads_k, ITEM),
        "reduce_indptr": (batch_size + 1,),
        "reduce_final_map": (batch_size, 2),
        "reduce_partial_map": (max(1, min(batch_size + num_cu - 1, 2 * (num_cu - 1))),),
        "partition_indptr": (batch_size + 1,),
    }


def reference(
    contexts: Any, num_cu: int, num_heads_k: int, gqa: int, query_length: int, kv_granularity: int = GRANULARITY
) -> dict[str, list[Any]]:
    """The tables as lists, without the unused elements at their ends."""
    pieces = [ceil_div(int(context), kv_granularity) for context in contexts]
    bins, total = num_cu // num_heads_k, sum(pieces)
    quotas = [total // bins + (number < total % bins) for number in range(bins)]
    begin, cuts = ([0, *accumulate(numbers)] for numbers in (pieces, quotas))
    items: list[list[int]] = []
    owners, shares, groups, final = [0], list[int](), [0], []
    for request, (first, last) in enumerate(pairwise(begin)):
        parts = [(number, max(first, a), min(last, b)) for number, (a, b) in enumerate(pairwise(cuts))]
        parts = [part for part in parts if part[1] < part[2]] or [(owners[-1], first, last)]
        queries, divided = [request * query_length, (request + 1) * query_length], len(parts) > 1
        for number, a, b in parts:
            row = len(shares) * query_length
            items.append([request, row if divided else -1, *queries, a, b, 0])
            owners.append(number)
            shares += [row] if divided else []
        if divided:
            groups.append(len(shares))
            final.append(queries)
    ends = [bisect_right(owners, number) - 1 for number in range(bins)]
    heads = [(head + 1) * gqa << 16 | head * gqa for head in range(num_heads_k)]
    return {
        "work_indptr": [0, *(head * len(items) + end for head in range(num_heads_k) for end in ends)],
        "work_info": [[*item, both] for both in heads for item in items],
        "reduce_indptr": groups + [len(shares)] * (len(pieces) + 1 - len(groups)),
        "reduce_final_map": final,
        "reduce_partial_map": shares,
        "partition_indptr": begin,
    }


@dataclass(frozen=True, kw_only=True)
class Scheduling:
    """The values known at compile time. bins: of a key head."""

    bins: int
    heads: int
    group: int
    granularity: int
    queries: int


class Schedule:
    """The tables. Lane h of the wave writes what belongs to key head h. writes: False while items are only counted."""

    def __init__(self, spec: Scheduling, contexts: Any, tables: dict[str, Any], batch: Any) -> None:
        self.spec, self.batch = spec, batch
        self.contexts = GTensor(contexts, fx.Int32, num_records_bytes=batch * 4)
        self.tables = {name: GTensor(tensor, fx.Int32) for name, tensor in tables.items()}
        self.head = fx.Int32(fx.thread_idx.x)
        lane_of_head = self.head < spec.heads
        self.of_heads, self.of_first, self.writes = lane_of_head, self.head == 0, True

    def pieces(self, request: Any) -> Any:
        """The pieces of a request; 0 for one that does not exist."""
        return (self.contexts.load(request) + (self.spec.granularity - 1)) // self.spec.granularity

    def put(self, table: str, place: Any, values: Any, mask: Any) -> None:
        """Write to a table in some lanes."""
        if self.writes:
            fx.buffer_ops.buffer_store(values, self.tables[table].rsrc, place, mask=mask)

    @flyc.jit
    def total(self) -> Any:
        """The pieces of all requests, counted by all lanes."""
        count = fx.Int32(0)
        for request in range(self.head, self.batch, WAVE):
            count = count + self.pieces(request)
        return fx.coop.warp_reduce(count, "add")

    def quota(self, total: Any, number: Any) -> Any:
        """The pieces of a bin."""
        return total // self.spec.bins + (number < total % self.spec.bins).to(fx.Int32)

    @flyc.jit
    def walk(self, total: Any, items: Any) -> Any:
        """(items of a head, divided requests, shares) after giving every piece to a bin. items: of a head, if known."""
        spec, queries = self.spec, self.spec.queries
        request, number, item, group, shares, done = (fx.Int32(0) for _ in range(6))
        left, quota, divided = self.scalar(self.pieces(request)), self.quota(total, number), fx.Boolean(False)
        of_heads, of_first = self.of_heads, self.of_first
        first_item = self.head * items
        both = (self.head + 1) * spec.group << 16 | self.head * spec.group
        while request < self.batch:
            take, last = fx.min(quota, left), quota >= left
            # The end of a request is an item even without pieces; its middle is none in a bin whose quota is used up.
            exists = last | (quota > 0)
            divided = divided | (exists & ~last)
            shared: Any = exists & divided
            first = request * queries
            row = shared.select(shares * queries, fx.Int32(-1))
            place = (first_item + item) * ITEM
            info = [request, row, first, first + queries, done, done + take, 0, both]
            self.put("work_info", place, fx.Vector.from_elements(info[:4], fx.Int32), of_heads & exists)
            self.put("work_info", place + 4, fx.Vector.from_elements(info[4:], fx.Int32), of_heads & exists)
            self.put("reduce_partial_map", shares, row, of_first & shared)
            item, shares = item + exists.to(fx.Int32), shares + shared.to(fx.Int32)
            done, left, quota = done + take, left - take, quota - take
            if last:
                ends = of_first & divided
                pair = fx.Vector.from_elements([first, first + queries], fx.Int32)
                self.put("reduce_final_map", group * 2, pair, ends)
                group = group + divided.to(fx.Int32)
                self.put("reduce_indptr", group, shares, ends)
                request = request + 1
                self.put("partition_indptr", request, done, of_first)
                left, divided = self.scalar(self.pieces(request)), fx.Boolean(False)
            else:
                number = number + 1
                self.put("work_indptr", self.head * spec.bins + number, first_item + item, of_heads)
                quota = self.quota(total, number)
        for rest in range(number + 1, spec.bins + 1):
            self.put("work_indptr", self.head * spec.bins + rest, first_item + item, of_heads)
        return item, group, shares

    @staticmethod
    def scalar(value: Any) -> Any:
        """A value that all lanes have, as a scalar."""
        return fx.Int32(fx.rocdl.readfirstlane(value))

    @flyc.jit
    def run(self) -> None:
        """Fill the tables."""
        total = self.scalar(self.total())
        items = fx.Int32(0)
        if fx.const_expr(self.spec.heads > 1):
            self.writes = False
            items, _, _ = self.walk(total, items)
            self.writes = True
        _, group, shares = self.walk(total, items)
        for rest in range(group + self.head, self.batch + 1, WAVE):
            self.put("reduce_indptr", rest, (fx.Int32(rest) == 0).select(fx.Int32(0), shares), rest > group)
        for table in ("work_indptr", "reduce_indptr", "partition_indptr"):
            self.put(table, 0, fx.Int32(0), self.of_first)


@flyc.kernel
def pa_metadata_v1_kernel(contexts: fx.Tensor, tables: Any, batch: fx.Int32, spec: fx.Constexpr[Scheduling]) -> None:
    """All tables, by one wave."""
    require_waves_of_64("pa_metadata")
    Schedule(spec, contexts, tables, batch).run()


@cache
def compile_pa_metadata_v1(
    *,
    num_cu: int = COMPUTE_UNITS,
    num_heads_k: int = 1,
    gqa: int = 8,
    kv_granularity: int = GRANULARITY,
    query_length: int = 1,
    warp_size: int = WAVE,
) -> Any:
    """The launcher (context_lengths, work_indptr, work_info, reduce_indptr, reduce_final_map, reduce_partial_map,
    partition_indptr, batch, stream), tensors flattened.

    num_cu: bins of all key heads together. gqa: query heads of a key head. kv_granularity: keys of a piece.
    Raises ArgumentError for bins that key heads cannot share, more key heads than lanes, and a warp_size other than 64.
    """
    require(warp_size == WAVE, f"warp_size={warp_size}", f"{WAVE}")
    require(0 < num_heads_k <= WAVE, f"num_heads_k={num_heads_k}", f"1 to {WAVE}")
    require(num_cu > 0 and num_cu % num_heads_k == 0, f"num_cu={num_cu}", f"a multiple of num_heads_k={num_heads_k}")
    require(min(gqa, kv_granularity, query_length) > 0, f"gqa={gqa}, kv_granularity={kv_granularity}, "
             f"query_length={query_length}", "positive numbers")  # fmt: skip
    require(num_heads_k * gqa < 1 << 15, f"{num_heads_k * gqa} query heads", "less than 32768")
    spec = Scheduling(
        bins=num_cu // num_heads_k, heads=num_heads_k, group=gqa, granularity=kv_granularity, queries=query_length
    )

    def launch(tensors: dict[str, Any], batch: Any, stream: Any) -> None:
        most = batch + (num_cu - 1)
        shares = fx.max(fx.min(most, 2 * (num_cu - 1)), 1)
        sizes = (batch, num_cu + 1, most * (num_heads_k * ITEM), batch + 1, batch * 2, shares, batch + 1)
        require_least(tensors, **{name: (fx.Int32, size) for name, size in zip(tensors, sizes, strict=True)})
        contexts, *tables = tensors.values()
        kernel = pa_metadata_v1_kernel(contexts, dict(zip(TABLES.split(), tables, strict=True)), batch, spec)
        kernel.launch(grid=1, block=WAVE, stream=stream)

    return launcher("launch_pa_metadata", f"context_lengths {TABLES}", launch, batch=fx.Int32)


def get_pa_metadata_v1(
    context_lengths: Any, work_indptr: Any, work_info: Any, reduce_indptr: Any, reduce_final_map: Any,
    reduce_partial_map: Any, partition_indptr: Any, *, num_heads_q: int, num_heads_k: int, query_length: int = 1,
    kv_granularity: int = GRANULARITY, stream: Any = None,
) -> None:  # fmt: skip
    """Fill the tables, of the shapes that `get_pa_metadata_info_v1` gives. context_lengths: i32 (B).

    Raises ArgumentError for tensors of other types or sizes, and for heads that do not divide.
    """
    num_cu, holds = work_indptr.numel() - 1, num_heads_k > 0 and num_heads_q % num_heads_k == 0
    require(holds, f"{num_heads_q} query heads for {num_heads_k} key heads", "a multiple")
    tensors = (
        context_lengths, work_indptr, work_info, reduce_indptr, reduce_final_map, reduce_partial_map, partition_indptr
    )  # fmt: skip
    for name, tensor in zip(f"context_lengths {TABLES}".split(), tensors, strict=True):
        require_array(name, tensor)
    launch = compile_pa_metadata_v1(
        num_cu=num_cu, num_heads_k=num_heads_k, gqa=num_heads_q // num_heads_k, kv_granularity=kv_granularity,
        query_length=query_length,
    )  # fmt: skip
    launch_flat(launch, *tensors, context_lengths.numel(), stream)


def get_pa_metadata(
    context_lengths: Any, num_heads_q: int, num_heads_k: int, query_length: int = 1, *, num_cu: int = COMPUTE_UNITS,
    kv_granularity: int = GRANULARITY, stream: Any = None,
) -> dict[str, Any]:  # fmt: skip
    """The tables by name, in tensors that are allocated here. num_cu is rounded down to a multiple of num_heads_k."""
    import torch

    bins, device = max(num_heads_k, num_cu // num_heads_k * num_heads_k), context_lengths.device
    shapes = get_pa_metadata_info_v1(context_lengths.numel(), bins, num_heads_k)
    tables = {name: torch.zeros(shape, dtype=torch.int32, device=device) for name, shape in shapes.items()}
    get_pa_metadata_v1(
        context_lengths, **tables, num_heads_q=num_heads_q, num_heads_k=num_heads_k, query_length=query_length,
        kv_granularity=kv_granularity, stream=stream,
    )  # fmt: skip
    return tables


def room_for_shares(metadata: dict[str, Any], queries: int, heads: int, columns: int) -> tuple[Any, Any]:
    """(shares (rows, heads, columns), lse (rows, heads, 1)) for what tables of `get_pa_metadata` divide."""
    import torch

    rows, device = metadata["reduce_partial_map"].numel() * queries, metadata["reduce_partial_map"].device
    return torch.empty(rows, heads, columns, device=device), torch.empty(rows, heads, 1, device=device)


def merge_shares(output: Any, shares: Any, lse: Any, metadata: dict[str, Any], queries: int, stream: Any) -> None:
    """Write the rows of divided requests to output."""
    mla_reduce(output, shares, lse, *(metadata[name] for name in MAPS), queries=queries, stream=stream)
