"""Tokens grouped by expert and padded to whole blocks: the routing tables that the MoE GEMMs read.

    moe_sorting_flydsl(topk_ids, topk_weights, sorted_ids, sorted_weights, sorted_expert_ids, num_valid_ids, moe_buf, E)

topk_ids (T, k) i32: the experts of each token, all different; topk_weights (T, k) f32. The results:

| tensor | content |
|---|---|
| sorted_ids i32 | slot << 24 \\| token: experts in order, tokens in order within an expert; each expert fills blocks of `unit_size` rows, the rest is the sentinel k << 24 \\| T |
| sorted_weights f32 | the weight of each row, 0 where there is none |
| sorted_expert_ids i32 | the expert of each block, -1 where there is none; with a mask its number among the experts kept |
| num_valid_ids i32[2] | rows that belong to blocks of experts, and T |
| moe_buf | zeros: what the second GEMM adds to |

An id that is no expert's, or whose expert the mask leaves out, is in no row. `sorted_size` says how long the tables are.

Few ids (T k <= MOST_AT_ONCE): one kernel. Its first workgroup has the ids in shared memory and a thread for each
expert, which reads them all, four at a time, and gives each of its own its number among them. A scan of the padded
counts says where experts begin. Then each id goes to its place. The other workgroups clear moe_buf.

More: two kernels, with a workgroup for each part of PART ids and a wave for each slice of SLICE. The first one ranks the
ids of a part among those of their expert: lanes vote on each bit of the expert's number, and shared memory has the
counts so far. Other workgroups fill all tables meanwhile. The second one sums up the counts of the parts, scans them
over the experts and writes each id to its place. There is no atomic, so the order is always the same.
"""  # noqa: E501 - a table

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr import range_constexpr

from .kernels_common import FLOATS, TORCH_NAMES, power_of_two, require, require_array, require_waves_of_64
from .launches import launcher
from .layout_utils import divide
from .rows import WAVE
from .sizes import require_least, require_rows
from .tensor_shim import GTensor, STensor
from .topk_gating_softmax_kernel import Gating, build_topk_gating_softmax_module, route

UNIT = 32
MOST_EXPERTS = 1024
MOST_AT_ONCE = 512  # ids
MOST_ROUTED = 16  # tokens of a workgroup: it has a lane for each 16 numbers of the gating
SLOT_SHIFT = 24
MOST_BYTES = (1 << 31) - (1 << 24)  # of a tensor: all threads count on by as many as they are, in 32 bits
RESULTS = ("sorted_ids", "sorted_weights", "sorted_expert_ids", "num_valid_ids", "moe_buf")
OPERANDS = ("topk_ids", "topk_weights", *RESULTS, "expert_mask", "num_local_tokens", "workspace")
THREADS = 256
EACH = 4  # ids that a lane reads at a time
WAVES, SLICE = 8, 256  # waves that rank a part of the ids, and the ids of each
PART = WAVES * SLICE
AT_A_TIME = 16  # counts that are on their way
MOST_CLEARING = 304  # workgroups
# (T, E, k, unit): one token, an odd number of experts, experts without tokens, more than one block of an expert, two
# kernels.
SHAPES = ((1, 8, 2, 16), (7, 32, 5, 32), (40, 257, 9, 32), (61, 4, 2, 16), (130, 5, 5, 32), (300, 70, 3, 16))


def sorted_size(tokens: int, experts: int, topk: int, unit: int = UNIT) -> int:
    """Rows that the tables have room for."""
    return tokens * topk + experts * unit - topk


def reference(
    topk_ids: Any, topk_weights: Any, experts: int, unit: int = UNIT, expert_mask: Any = None
) -> tuple[Any, Any, Any, Any]:
    """(sorted_ids, sorted_weights, sorted_expert_ids, num_valid_ids) in torch."""
    import torch

    tokens, topk = topk_ids.shape
    size = sorted_size(tokens, experts, topk, unit)
    ids = torch.full((size,), topk << SLOT_SHIFT | tokens, dtype=torch.int32)
    weights, expert_ids = torch.zeros(size), torch.full((-(-size // unit),), -1, dtype=torch.int32)
    start = local = 0
    for expert in range(experts):
        if expert_mask is not None and not expert_mask[expert]:
            continue
        token, slot = torch.nonzero(topk_ids == expert, as_tuple=True)
        ids[start : start + len(token)] = (slot << SLOT_SHIFT | token).int()
        weights[start : start + len(token)] = topk_weights[token, slot].float()
        end = start + -(-len(token) // unit) * unit
        expert_ids[start // unit : end // unit] = local
        start, local = end, local + 1
    return ids, weights, expert_ids, torch.tensor([start, tokens], dtype=torch.int32)


@dataclass(frozen=True, kw_only=True)
class Sorting:
    """The values known at compile time. masked: there is an expert_mask; counted: there is num_local_tokens.

    gating: how logits are routed that stand in place of the ids, if they do.
    """

    experts: int
    topk: int
    unit: int
    masked: bool
    counted: bool
    gating: Gating | None = None

    @property
    def threads(self) -> int:
        """Threads of the workgroup that sorts few ids: one for each expert."""
        return max(THREADS, power_of_two(self.experts))

    def parts(self, tokens: Any) -> Any:
        """Parts of the ids."""
        return (tokens * self.topk + (PART - 1)) // PART

    def padded(self, rows: Any) -> Any:
        """Rows of whole blocks."""
        return divide(rows + (self.unit - 1), self.unit) * self.unit


class Tables:
    """The tensors that the kernels read and write, by the names of OPERANDS."""

    def __init__(self, spec: Sorting, tensors: Any, tokens: Any) -> None:
        self.spec, self.tensors = spec, tensors
        if spec.counted:
            tokens = fx.Int32(fx.rocdl.readfirstlane(GTensor(tensors["num_local_tokens"], fx.Int32).load(0)))
        self.tokens, self.items = tokens, tokens * spec.topk
        self.ids = GTensor(tensors["topk_ids"], fx.Int32, num_records_bytes=self.items * 4)
        self.weights = GTensor(tensors["topk_weights"], fx.Float32, num_records_bytes=self.items * 4)
        self.mask = GTensor(tensors["expert_mask"], fx.Int32, num_records_bytes=spec.experts * 4)
        rank_bytes = self.items * 4
        self.ranks = GTensor(tensors["workspace"], fx.Int32, num_records_bytes=rank_bytes)
        self.counts = GTensor(
            tensors["workspace"], fx.Int32, base_byte_offset=fx.Int64(rank_bytes),
            num_records_bytes=spec.parts(tokens) * (spec.experts * 4),
        )  # fmt: skip
        self.sorted_ids, self.sorted_weights, self.expert_ids, self.valid = (
            GTensor(tensor, tensor.dtype, num_records_bytes=tensor.shape[0] * 4)
            for tensor in (tensors[name] for name in RESULTS[:4])
        )

    def kept(self, expert: Any) -> Any:
        """True for a number of an expert that is not left out. The mask has 0 where there is none."""
        return self.mask.load(expert) != 0 if self.spec.masked else expert < self.spec.experts

    def clear(self, thread: Any, threads: Any) -> None:
        """Write zeros to moe_buf."""
        fill(self.tensors["moe_buf"], fx.Int32(0), thread, threads)

    def fill(self, thread: Any, threads: Any) -> None:
        """Write what tables have where there is nothing."""
        sentinel = self.tokens | (self.spec.topk << SLOT_SHIFT)
        for name, word in zip(RESULTS, (sentinel, fx.Int32(0), fx.Int32(-1)), strict=False):
            fill(self.tensors[name], word, thread, threads)

    def put(self, item: Any, place: Any, weight: Any) -> None:
        """Write the row of an id, unless its place is negative."""
        token = divide(item, self.spec.topk)
        self.sorted_ids.store(place, token | (item - token * self.spec.topk) << SLOT_SHIFT)
        self.sorted_weights.store(place, weight)


@flyc.jit
def fill(tensor: Any, word: Any, thread: Any, threads: Any) -> None:
    """Write a word to every place of a tensor of one dimension, 16 bytes at a time."""
    elements = tensor.shape[0]
    size = elements * (tensor.dtype.width // 8)
    whole = size // 16 * 16
    memory = GTensor(tensor, fx.Int32, num_records_bytes=whole)
    words = fx.Vector.filled(4, word, fx.Int32)
    for first in range(thread * 16, whole, threads * 16):
        memory.vec_store(first >> 2, words)
    if whole + thread * 4 < size:
        rest = GTensor(tensor, fx.Int32, num_records_bytes=size)
        rest.store(whole // 4 + thread, word)


@flyc.jit
def rank_at_once(ids: Any, ranks: Any, items: Any, expert: Any) -> Any:
    """The count of an expert among the ids in shared memory; each of its ids gets its number among them."""
    count = fx.Int32(0)
    for first in range(0, items, EACH):
        for number, found in enumerate(fx.Vector(ids.vec_load(first, EACH))):
            if found == expert:
                ranks.store(first + number, count)
                count = count + 1
    return count


@flyc.jit
def put_blocks(tables: Tables, expert: Any, local: Any, start: Any, count: Any, part: Any = 0, parts: Any = 1) -> None:
    """Write the number of an expert, `local`, for each of its blocks; for the last expert also how many rows there are.

    start: its first row; count: its ids. part: which of the workgroups that share the blocks.
    """
    spec, rows = tables.spec, tables.spec.padded(count)
    for block in range(part, divide(rows, spec.unit), parts):
        tables.expert_ids.store(divide(start, spec.unit) + block, local)
    if (expert == spec.experts - 1) & (part == 0):
        tables.valid.store(0, start + rows)
        tables.valid.store(1, tables.tokens)


@flyc.jit
def route_at_once(tables: Tables, ids: Any, weights: Any) -> None:
    """Put the experts of all tokens and their weights into shared memory."""
    spec: Any = tables.spec.gating
    thread = fx.Int32(fx.thread_idx.x)
    token, lane = thread // spec.lanes, thread % spec.lanes
    probabilities, experts = route(tables.tensors["topk_ids"], token, lane, token < tables.tokens, spec)
    if (token < tables.tokens) & (lane == 0):
        for number in range_constexpr(spec.topk):
            ids.store(token * spec.topk + number, experts[number])
            weights.store(token * spec.topk + number, probabilities[number])


@flyc.jit
def sort_at_once(tables: Tables) -> None:
    """Sort by one workgroup."""
    spec, thread = tables.spec, fx.Int32(fx.thread_idx.x)
    allocator = fx.SharedAllocator()
    sizes = MOST_AT_ONCE, MOST_AT_ONCE, spec.threads
    ids, ranks, starts = (STensor(allocator.allocate(size * 4, 16).peek().ptr, fx.Int32) for size in sizes)
    for item in range(thread, (tables.items + EACH - 1) // EACH * EACH, spec.threads):
        if fx.const_expr(spec.gating is None):
            ids.store(item, (item < tables.items).select(tables.ids.load(item), -1))
        elif item >= tables.items:
            ids.store(item, fx.Int32(-1))
        ranks.store(item, fx.Int32(-1))
    weights: Any = tables.weights
    if fx.const_expr(spec.gating is not None):
        weights = STensor(allocator.allocate(MOST_AT_ONCE * 4, 16).peek().ptr, fx.Float32)
        route_at_once(tables, ids, weights)
    tables.fill(thread, spec.threads)
    fx.gpu.barrier()
    scan: Any = fx.coop.BlockScan.__class_getitem__((fx.Int32, spec.threads))
    local, kept = thread, tables.kept(thread)
    if spec.masked:
        local = scan.exclusive(kept.to(fx.Int32), "add", allocator.allocate(scan.SharedStorage).peek())
    count = fx.Int32(0)
    if thread < spec.experts:
        count = rank_at_once(ids, ranks, tables.items, kept.select(thread, fx.Int32(-2)))
    start = scan.exclusive(spec.padded(count), "add", allocator.allocate(scan.SharedStorage).peek())
    put_blocks(tables, thread, local, start, count)
    starts.store(thread, start)
    fx.gpu.barrier()
    for item in range(thread, tables.items, spec.threads):
        rank = ranks.load(item)
        if rank >= 0:
            tables.put(item, starts.load(ids.load(item)) + rank, weights.load(item))


@flyc.kernel
def sort_at_once_kernel(tensors: Any, tokens: fx.Int32, spec: fx.Constexpr[Sorting]) -> None:
    """The tables, by the first workgroup, and zeros in moe_buf, by the others."""
    tables = Tables(spec, tensors, tokens)
    if fx.block_idx.x == 0:
        sort_at_once(tables)
    else:
        thread = (fx.Int32(fx.block_idx.x) - 1) * spec.threads + fx.Int32(fx.thread_idx.x)
        tables.clear(thread, (fx.Int32(fx.grid_dim.x) - 1) * spec.threads)


def votes_alike(expert: Any, is_kept: Any, spec: Sorting) -> Any:
    """The lanes of the wave whose expert is the same, if it is kept: a bit of its number at a time."""
    alike = fx.Int64(fx.rocdl.ballot(is_kept))
    for bit in range((spec.experts - 1).bit_length()):
        is_set = (expert >> bit & 1) != 0
        vote = fx.Int64(fx.rocdl.ballot(is_set))
        alike = alike & is_set.select(vote, ~vote)
    return alike


def lanes_before(mask: Any) -> Any:
    """Votes of the lanes below this one."""
    low, high = fx.Int32(mask & 0xFFFFFFFF), fx.Int32(mask >> 32)
    return fx.Int32(fx.rocdl.mbcnt_hi(high, fx.rocdl.mbcnt_lo(low, fx.Int32(0))))


@flyc.jit
def rank_part(tables: Tables, counts: Any) -> None:
    """Write the rank of each id of the workgroup's part among those of its expert, -1 for none, and the counts."""
    spec, thread, part = tables.spec, fx.Int32(fx.thread_idx.x), fx.Int32(fx.block_idx.x)
    lane, own, ranked = thread % WAVE, thread // WAVE * spec.experts, []
    for place in range(thread, WAVES * spec.experts, WAVES * WAVE):
        counts.store(place, fx.Int32(0))
    first = part * PART + thread // WAVE * SLICE + lane
    for item, expert in [(first + done, tables.ids.load(first + done)) for done in range(0, SLICE, WAVE)]:
        is_kept = (item < tables.items) & (expert >= 0) & (expert < spec.experts) & tables.kept(expert)
        place = own + is_kept.select(expert, fx.Int32(0))
        alike = votes_alike(expert, is_kept, spec)
        within = lanes_before(alike)
        fx.gpu.barrier()
        before = counts.load(place)
        fx.gpu.barrier()
        if is_kept & (within == 0):
            counts.store(place, before + fx.Int32(fx.math.ctpop(alike)))
        ranked.append((item, is_kept, place, before + within))
    fx.gpu.barrier()
    # From the counts of the waves to those of the waves before.
    for expert in range(thread, spec.experts, WAVES * WAVE):
        total = fx.Int32(0)
        for wave in range_constexpr(WAVES):
            count = counts.load(wave * spec.experts + expert)
            counts.store(wave * spec.experts + expert, total)
            total = total + count
        tables.counts.store(part * spec.experts + expert, total)
    fx.gpu.barrier()
    for item, is_kept, place, rank in ranked:
        tables.ranks.store(item, is_kept.select(counts.load(place) + rank, fx.Int32(-1)))


@flyc.kernel
def rank_kernel(tensors: Any, tokens: fx.Int32, parts: fx.Int32, spec: fx.Constexpr[Sorting]) -> None:
    """The ranks of all ids in their parts, by the first workgroups, and empty tables, by the others."""
    require_waves_of_64("sorting of many tokens")
    tables = Tables(spec, tensors, tokens)
    if fx.block_idx.x < parts:
        counts = STensor(fx.SharedAllocator().allocate(WAVES * spec.experts * 4, 16).peek().ptr, fx.Int32)
        rank_part(tables, counts)
    else:
        thread = (fx.Int32(fx.block_idx.x) - parts) * (WAVES * WAVE) + fx.Int32(fx.thread_idx.x)
        threads = (fx.Int32(fx.grid_dim.x) - parts) * (WAVES * WAVE)
        tables.clear(thread, threads)  # first, as it takes longest
        tables.fill(thread, threads)


@flyc.jit
def counts_of_parts(tables: Tables, expert: Any, part: Any) -> tuple[Any, Any]:
    """(ids of an expert in the parts before one, in all of them)."""
    before, total, parts = fx.Int32(0), fx.Int32(0), tables.spec.parts(tables.tokens)
    for first in range(0, parts, AT_A_TIME):
        loaded = [tables.counts.load((first + i) * tables.spec.experts + expert) for i in range(AT_A_TIME)]
        for i, count in enumerate(loaded):
            before = before + (first + i < part).select(count, fx.Int32(0))
            total = total + (first + i < parts).select(count, fx.Int32(0))
    return before, total


@flyc.kernel
def place_kernel(tensors: Any, tokens: fx.Int32, spec: fx.Constexpr[Sorting]) -> None:
    """The rows of the ids of a part."""
    tables, thread, part = Tables(spec, tensors, tokens), fx.Int32(fx.thread_idx.x), fx.Int32(fx.block_idx.x)
    # What is loaded of the ids is there when their places are known.
    items = [part * PART + (thread + done) for done in range(0, PART, spec.threads)]
    ranks = [(item < tables.items).select(tables.ranks.load(item), fx.Int32(-1)) for item in items]
    found = [
        (item, rank, tables.ids.load(item), tables.weights.load(item)) for item, rank in zip(items, ranks, strict=True)
    ]
    allocator = fx.SharedAllocator()
    starts = STensor(allocator.allocate(spec.threads * 4, 16).peek().ptr, fx.Int32)
    scan: Any = fx.coop.BlockScan.__class_getitem__((fx.Int32, spec.threads))
    before, count = counts_of_parts(tables, thread, part)
    count = (thread < spec.experts).select(count, fx.Int32(0))
    start = scan.exclusive(spec.padded(count), "add", allocator.allocate(scan.SharedStorage).peek())
    local = thread
    if spec.masked:
        is_kept = tables.kept(thread).to(fx.Int32)
        local = scan.exclusive(is_kept, "add", allocator.allocate(scan.SharedStorage).peek())
    starts.store(thread, start + before)
    fx.gpu.barrier()
    for item, rank, expert, weight in found:
        place = starts.load((rank >= 0).select(expert, fx.Int32(0))) + rank
        tables.put(item, (rank >= 0).select(place, fx.Int32(-1)), weight)
    put_blocks(tables, thread, local, start, count, part, spec.parts(tables.tokens))


@cache
def build_moe_sorting_module(
    num_experts: int, topk: int, unit_size: int = UNIT, masked: bool = False, counted: bool = False,
    at_once: bool = False, renormalize: bool | None = None,
) -> Any:  # fmt: skip
    """The launcher (topk_ids, topk_weights, sorted_ids, sorted_weights, sorted_expert_ids, num_valid_ids, moe_buf,
    expert_mask, num_local_tokens, workspace, tokens, stream), every tensor flattened to one dimension.

    masked, counted: expert_mask and num_local_tokens are used. at_once: by one kernel, for up to MOST_AT_ONCE ids;
    else workspace has an i32 for each id, and for each expert of a part. moe_buf's bytes are a multiple of 4.
    renormalize: not None where topk_ids are logits (T, E) instead, of up to MOST_ROUTED tokens, and topk_weights are
    not used; see `build_topk_gating_softmax_module`.
    """
    holds = 1 <= topk <= num_experts <= MOST_EXPERTS
    require(holds, f"the top {topk} of {num_experts} experts", f"supported: up to {MOST_EXPERTS} experts")
    require(unit_size >= 1, f"unit_size={unit_size}", "rows of a block, at least 1")
    gating = None if renormalize is None else Gating(num_experts, topk, renormalize)
    spec = Sorting(experts=num_experts, topk=topk, unit=unit_size, masked=masked, counted=counted, gating=gating)

    def launch(tensors: dict[str, Any], tokens: Any, stream: Any) -> None:
        require_sizes(spec, tensors, tokens, at_once)
        first, threads = (1, spec.threads) if at_once else (spec.parts(tokens), WAVES * WAVE)
        # Others clear moe_buf, as many as have something to do.
        vectors = (tensors["moe_buf"].shape[0] + (threads * EACH - 1)) // (threads * EACH)
        grid = first + fx.max(fx.min(vectors, MOST_CLEARING), 0 if at_once else 1)
        if at_once:
            sort_at_once_kernel(tensors, tokens, spec).launch(grid=grid, block=threads, stream=stream)
        else:
            rank_kernel(tensors, tokens, first, spec).launch(grid=grid, block=threads, stream=stream)
            place_kernel(tensors, tokens, spec).launch(grid=first, block=spec.threads, stream=stream)

    return launcher("launch_moe_sorting", " ".join(OPERANDS), launch, tokens=fx.Int32)


def workspace_size(ids: Any, experts: int) -> Any:
    """The i32 of a rank for each id, and of the counts of each part."""
    return ids + (ids + (PART - 1)) // PART * experts


def require_sizes(spec: Sorting, tensors: dict[str, Any], tokens: Any, at_once: bool) -> None:
    """Refuse tensors of other types, or too small for the tokens."""
    rows, routed = sorted_size(tokens, spec.experts, spec.topk, spec.unit), spec.gating is not None
    words = 0 if at_once else workspace_size(tokens * spec.topk, spec.experts)
    wanted: dict[str, Any] = {
        "topk_ids": (FLOATS, tokens * spec.experts) if routed else (fx.Int32, tokens * spec.topk),
        "topk_weights": (fx.Float32, 0 if routed else tokens * spec.topk), "sorted_ids": (fx.Int32, rows),
        "sorted_weights": (fx.Float32, rows), "sorted_expert_ids": (fx.Int32, (rows + (spec.unit - 1)) // spec.unit),
        "num_valid_ids": (fx.Int32, 2), "expert_mask": (fx.Int32, spec.experts if spec.masked else 0),
        "num_local_tokens": (fx.Int32, 1), "workspace": (fx.Int32, words),
    }  # fmt: skip
    require_least(tensors, **wanted)
    moe_buf = tensors["moe_buf"]
    require_rows("moe_buf", moe_buf, 0, max(1, 32 // moe_buf.dtype.width))  # whole words


def moe_sorting_get_workspace_size(M: int, num_experts: int, topk: int, unit_size: int = UNIT) -> int:
    """The i32 that `moe_sorting_flydsl` needs as workspace for M tokens."""
    return 0 if M * topk <= MOST_AT_ONCE else workspace_size(M * topk, num_experts)


def moe_softmax_sort_flydsl(
    gating_logits: Any, sorted_ids: Any, sorted_weights: Any, sorted_expert_ids: Any, num_valid_ids: Any, moe_buf: Any,
    num_experts: int, topk: int, dtype_str: str = "bf16", unit_size: int = UNIT, expert_mask: Any = None,
    renormalize: bool = True, num_local_tokens: Any = None,
) -> None:  # fmt: skip
    """Fill the tables from the logits (T, E) of the gating, and clear moe_buf: softmax, the top k, and their sorting.

    dtype_str: of the logits: f32, f16 or bf16. One kernel for up to MOST_ROUTED tokens, and else one for the routing
    before those of `moe_sorting_flydsl`, which says what the other arguments are. num_experts is a power of two.
    Raises ArgumentError for tensors of other types or sizes.
    """
    import torch

    tokens = gating_logits.shape[0]
    kind = getattr(torch, TORCH_NAMES.get(dtype_str, ""), None)
    require_array("gating_logits", gating_logits, kind, (tokens, num_experts))
    at_once = tokens <= MOST_ROUTED and tokens * topk <= MOST_AT_ONCE
    ids = torch.empty(0 if at_once else tokens, topk, dtype=torch.int32, device=gating_logits.device)
    weights = torch.empty_like(ids, dtype=torch.float32)
    if not at_once:
        gate = build_topk_gating_softmax_module(num_experts, topk, dtype_str, renormalize)
        gate(gating_logits, weights, ids, torch.empty_like(ids), tokens)
    tensors = (
        gating_logits if at_once else ids, weights, sorted_ids, sorted_weights, sorted_expert_ids, num_valid_ids,
        moe_buf, expert_mask, num_local_tokens,
    )  # fmt: skip
    _sort(tensors, tokens, topk, num_experts, unit_size, renormalize=renormalize if at_once else None)


def moe_sorting_flydsl(
    topk_ids: Any, topk_weights: Any, sorted_ids: Any, sorted_weights: Any, sorted_expert_ids: Any, num_valid_ids: Any,
    moe_buf: Any, num_experts: int, unit_size: int = UNIT, expert_mask: Any = None, num_local_tokens: Any = None,
    workspace: Any = None,
) -> None:  # fmt: skip
    """Fill the tables and clear moe_buf.

    expert_mask: i32 (E,), 0 for experts to leave out. num_local_tokens: i32 (1,), how many tokens count, at most T.
    workspace: i32, `moe_sorting_get_workspace_size` of them; by default it is allocated.
    Raises ArgumentError for tensors of other types or sizes.
    """
    tensors = (
        topk_ids, topk_weights, sorted_ids, sorted_weights, sorted_expert_ids, num_valid_ids, moe_buf, expert_mask,
        num_local_tokens,
    )  # fmt: skip
    tokens, topk = topk_ids.shape
    _sort(tensors, tokens, topk, num_experts, unit_size, workspace)


def _sort(
    tensors: tuple[Any, ...], tokens: int, topk: int, experts: int, unit: int, workspace: Any = None,
    renormalize: bool | None = None,
) -> None:  # fmt: skip
    """Launch the sorting. tensors: those of OPERANDS before workspace; None for what is not there."""
    (first, *_, valid, _, mask, local_tokens), routed = tensors, renormalize is not None
    needed = 0 if routed else moe_sorting_get_workspace_size(tokens, experts, topk, unit)
    if needed and workspace is None:
        workspace = valid.new_empty(needed)
    launch = build_moe_sorting_module(
        experts, topk, unit, mask is not None, local_tokens is not None, not needed, renormalize
    )
    given = [valid if tensor is None else tensor for tensor in (*tensors, workspace if needed else None)]
    for name, tensor in zip(OPERANDS, given, strict=True):
        require_array(name, tensor)
        require(tensor.nbytes < MOST_BYTES, f"{name} of {tensor.nbytes} bytes", f"less than {MOST_BYTES}")
    launch(first if routed else first.view(-1), *(tensor.view(-1) for tensor in given[1:]), tokens)
