"""Tokens to the GPUs of their experts, and the experts' rows back, within a node: expert parallelism.

    launch = make_dispatch_kernel(Plan(world=8, max_tokens=64, experts=64, topk=8, row_bytes=4096))
    launch(blocks, number, rank, self_sg, sg_ptrs, areas, tokens, indices, weights, scales, places, count)

Expert e belongs to rank e // (experts / world). Dispatch sends each token once to every rank that has one of its k
experts: it takes the next row of that rank's area by an atomic, and writes the token, its k indices and weights (and
scales), and where it comes from. `places` (T, k) i32 keeps rank * capacity + row for the first slot of each rank, and
-1 for the other slots, and for indices that are no expert's. Combine reads these rows of the experts' results and adds
them in f32, in the order of slots, rounded once: out[t] = the sum over the ranks that have t. Weights are for the
experts to apply: a row may stand for several of them.

A rank's area, at the address that `areas` has for it: two counts of rows, then for `capacity` = world * max_tokens rows
the tokens, indices, weights, scales, sources (rank * max_tokens + token) and results. Launches, which are numbered,
take turns with the counts: each clears the other one, for the launch after it. A wave has a token and a slot (or, in
combine, a token) at a time. The kernels wait for each other as those of `custom_all_reduce_kernel` do, with as many
workgroups of 8 waves on every rank; when a launch has ended on a rank, all that it waits for has arrived.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr import range_constexpr
from kernels import custom_all_reduce_kernel as node
from kernels.custom_all_reduce_kernel import END, PACK_BYTES, Team, address_in, load_pack, meet, pointer, store_pack
from kernels.kernels_common import ceil_div, element_type, require, rounded
from kernels.launches import launcher

WAVE = 64
WAVES = node.THREADS // WAVE
WORLD_SIZES = (2, 4, 8)
DTYPES = ("f32", "f16", "bf16")
# (tokens, ranks, experts, k): one token, an expert of each rank, all experts of a token on few ranks
SHAPES = ((1, 2, 4, 1), (5, 4, 8, 4), (9, 4, 16, 8))


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The compile-time parameters of the kernels. Bytes: of a token, its scales, and its result, whole packs of 16.

    dtype: of the results: f32, f16, bf16.
    """

    world: int
    max_tokens: int
    experts: int
    topk: int
    row_bytes: int
    scale_bytes: int = 0
    result_bytes: int = 0
    dtype: str = "bf16"

    def __post_init__(self) -> None:
        """Raises ArgumentError."""
        require(self.world in WORLD_SIZES, f"world={self.world}", "2, 4 or 8 GPUs")
        require(self.experts > 0 and self.experts % self.world == 0, f"experts={self.experts}", "as many on each rank")
        require(0 < self.topk <= WAVE, f"topk={self.topk}", f"1 to {WAVE}")
        require(self.max_tokens > 0, f"max_tokens={self.max_tokens}", "at least 1")
        sizes = (self.row_bytes, self.scale_bytes, self.result_bytes)
        fits = self.row_bytes > 0 and all(size >= 0 and size % PACK_BYTES == 0 for size in sizes)
        require(fits, f"rows, scales and results of {sizes} bytes", "multiples of 16")
        require(self.dtype in DTYPES, f"dtype={self.dtype!r}", f"one of {', '.join(DTYPES)}")

    @property
    def capacity(self) -> int:
        """Rows that a rank has room for: all tokens of all ranks."""
        return self.world * self.max_tokens

    @property
    def row_sizes(self) -> dict[str, int]:
        """Bytes of a row of each part of an area, in the order of the parts."""
        words = {"indices": 4 * self.topk, "weights": 4 * self.topk, "sources": 4}
        return {"tokens": self.row_bytes, "scales": self.scale_bytes, "results": self.result_bytes, **words}

    @property
    def offsets(self) -> dict[str, int]:
        """The offsets of the parts of an area, in bytes, and its size."""
        found, end = {"counts": 0}, PACK_BYTES
        for name, size in self.row_sizes.items():
            found[name] = end
            end += ceil_div(size * self.capacity, PACK_BYTES) * PACK_BYTES
        return found | {"size": end}


def reference(tokens: Any, indices: Any, experts: int, rank: int) -> Any:
    """The rows that a rank receives, of all tokens (R, T, ...) and indices (R, T, k), in the order of their sources."""
    world = tokens.shape[0]
    here = ((indices >= 0) & (indices < experts) & (indices // (experts // world) == rank)).any(-1)
    return tokens[here]


class WaveOfRank:
    """A wave of a rank. given: what its launch was given, by the names that `make_dispatch_kernel` has."""

    def __init__(self, plan: Plan, given: Any) -> None:
        self.plan, self.given = plan, given
        of_signals, blocks = node.Plan(elements=1 << 10, dtype="f32", world=plan.world), fx.Int32(fx.grid_dim.x)
        self.team = Team(of_signals, given["rank"], blocks, given["self_sg"], given["sg_ptrs"])
        self.lane, self.number = self.team.thread % WAVE, self.team.block * WAVES + self.team.thread // WAVE
        self.waves = blocks * WAVES

    def area(self, rank: Any) -> Any:
        """The address of a rank's area. Its counts are there."""
        return address_in(self.given["areas"], rank)

    def row(self, name: str, area: Any, number: Any) -> Any:
        """The address of a row of a part of an area."""
        return area + (fx.Int64(number) * self.plan.row_sizes[name] + self.plan.offsets[name])

    @flyc.jit
    def clear_next_count(self) -> None:
        """Clear the count of the next launch, which is not used before all ranks have ended this one."""
        if (self.team.block == 0) & (self.team.thread == 0):
            fx.ptr_store(fx.Int32(0), dword_pointer(self.area(self.team.rank), (self.given["number"] + 1) & 1))

    @flyc.jit
    def next_row(self, area: Any) -> Any:
        """The next row of an area, in all lanes of the wave."""
        row = fx.Int32(0)
        if self.lane == 0:
            row = fx.atomic_add(dword_pointer(area, self.given["number"] & 1), 1, syncscope="system")
        return fx.Int32(fx.rocdl.readfirstlane(row))

    @flyc.jit
    def copy(self, name: str, token: Any, target: Any) -> None:
        """Copy what a token has to an address, packs by the lanes of the wave."""
        size = self.plan.row_sizes[name]
        for pack in range(self.lane, size // PACK_BYTES, WAVE):
            store_pack(target, pack, load_pack(self.given[name] + fx.Int64(token) * size, pack))


def dword_pointer(address: Any, number: Any) -> Any:
    """A pointer to a dword of an array."""
    return pointer(fx.Int32, address + fx.Int64(number) * 4, 4)


def first_of_rank(indices: Any, token: Any, slot: Any, plan: Plan) -> tuple[Any, Any]:
    """The rank of a token's slot, and whether it has an expert and no slot before is of the same rank."""
    each = plan.experts // plan.world
    experts = [fx.ptr_load(dword_pointer(indices, token * plan.topk + i)) for i in range_constexpr(plan.topk)]
    expert = fx.ptr_load(dword_pointer(indices, token * plan.topk + slot))
    is_first = (expert >= 0) & (expert < plan.experts)
    for i, other in enumerate(experts):
        is_first = is_first & ((slot <= i) | (other < 0) | (other >= plan.experts) | (other // each != expert // each))
    return expert // each, is_first


@flyc.jit
def send(wave: WaveOfRank, pair: Any) -> None:
    """Send a token to the rank of one of its slots, unless a slot before has done it. pair: the slot's number."""
    plan, given, lane = wave.plan, wave.given, wave.lane
    token, slot = pair // plan.topk, pair % plan.topk
    target, is_first = first_of_rank(given["indices"], token, slot, plan)
    place = fx.Int32(-1)
    if is_first:
        area = wave.area(target)
        row = wave.next_row(area)
        place = target * plan.capacity + row
        for name in ("tokens", "scales"):
            wave.copy(name, token, wave.row(name, area, row))
        if lane < plan.topk:
            for name in ("indices", "weights"):
                value = fx.ptr_load(dword_pointer(given[name], token * plan.topk + lane))
                fx.ptr_store(value, dword_pointer(wave.row(name, area, row), lane))
        if lane == 0:
            fx.ptr_store(given["rank"] * plan.max_tokens + token, dword_pointer(wave.row("sources", area, row), 0))
    if lane == 0:
        fx.ptr_store(place, dword_pointer(given["places"], pair))


@flyc.jit
def add_up(wave: WaveOfRank, token: Any) -> None:
    """Write the sum of a token's results."""
    size = wave.plan.result_bytes
    for pack in range(wave.lane, size // PACK_BYTES, WAVE):
        store_pack(wave.given["out"] + fx.Int64(token) * size, pack, sum_of(wave, token, pack))


@flyc.jit
def sum_of(wave: WaveOfRank, token: Any, number: Any) -> Any:
    """A pack of the sum of a token's results."""
    plan, element = wave.plan, element_type(wave.plan.dtype)
    total = fx.Vector.filled(PACK_BYTES * 8 // element.width, 0.0, fx.Float32)
    for slot in range_constexpr(plan.topk):
        place = fx.ptr_load(dword_pointer(wave.given["places"], token * plan.topk + slot))
        if place >= 0:
            row = wave.row("results", wave.area(place // plan.capacity), place % plan.capacity)
            total = total + fx.Vector(load_pack(row, number), dtype=fx.Int32).bitcast(element).to(fx.Float32)
    return rounded(total, element).bitcast(fx.Int32)


def _launcher(name: str, step: Any, items_of_token: int, addresses: str, plan: Plan) -> Any:
    """A launcher of (blocks, number, rank, addresses ..., count, stream). step(wave, item): what a wave does."""

    def move(given: Any) -> None:
        wave = WaveOfRank(plan, given)
        wave.team.start()
        wave.clear_next_count()
        for item in range(wave.number, given["count"] * items_of_token, wave.waves):
            step(wave, fx.Int32(fx.rocdl.readfirstlane(item)))
        meet(wave.team, END)

    kernel = flyc.kernel(name=f"{name}_kernel_ws{plan.world}_e{plan.experts}k{plan.topk}")(move)
    kinds = {"number": fx.Int32, "rank": fx.Int32, **dict.fromkeys(addresses.split(), fx.Int64), "count": fx.Int32}

    def launch(_: Any, blocks: Any, *values_and_stream: Any) -> None:
        *values, stream = values_and_stream
        kernel(dict(zip(kinds, values, strict=True))).launch(grid=(blocks,), block=node.THREADS, stream=stream)

    return launcher(name, "", launch, blocks=fx.Int32, **kinds)


@cache
def make_dispatch_kernel(plan: Plan) -> Any:
    """A launcher of (blocks, number, rank, self_sg, sg_ptrs, areas, tokens, indices, weights, scales, places, count,
    stream).

    blocks: workgroups, at most 80, on all ranks the same. number: of the launch, 1 for the first one. The others are
    addresses, Int64, but for rank and count, the number of this rank's tokens.
    """
    return _launcher("dispatch", send, plan.topk, "self_sg sg_ptrs areas tokens indices weights scales places", plan)


@cache
def make_combine_kernel(plan: Plan) -> Any:
    """A launcher of (blocks, number, rank, self_sg, sg_ptrs, areas, places, out, count, stream).

    See `make_dispatch_kernel`.
    """
    return _launcher("combine", add_up, 1, "self_sg sg_ptrs areas places out", plan)
