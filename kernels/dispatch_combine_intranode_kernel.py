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
from inspect import get_annotations
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr import range_constexpr
from kernels import custom_all_reduce_kernel as node
from kernels.custom_all_reduce_kernel import END, PACK_BYTES, Team, address_in, load_pack, meet, pointer, store_pack
from kernels.kernels_common import element_type, require, rounded
from kernels.launches import launcher

WAVE = 64
WAVES = node.THREADS // WAVE
WORLD_SIZES = (2, 4, 8)
DTYPES = ("f32", "f16", "bf16")
# (tokens, ranks, experts, k): one token, an expert of each rank, all experts of a token on few ranks
SHAPES = ((1, 2, 4, 1), (5, 4, 8, 4), (9, 4, 16, 8))


@dataclass(frozen=True)
class Plan:
    """What the kernels are compiled for. Bytes: of a token, its scales, and its result, whole packs of 16.

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
    def offsets(self) -> dict[str, int]:
        """Where the parts of an area begin, in bytes, and its size."""
        sizes = {"counts": 16, "tokens": self.row_bytes, "scales": self.scale_bytes, "results": self.result_bytes}
        sizes |= {"indices": 4 * self.topk, "weights": 4 * self.topk, "sources": 4}
        found, end = {}, 0
        for name, size in sizes.items():
            found[name] = end
            end += -(-size * (1 if name == "counts" else self.capacity) // PACK_BYTES) * PACK_BYTES
        return found | {"size": end}


def reference(tokens: Any, indices: Any, experts: int, rank: int) -> Any:
    """The rows that a rank receives, of all tokens (R, T, ...) and indices (R, T, k), in the order of their sources."""
    world = tokens.shape[0]
    here = ((indices >= 0) & (indices < experts) & (indices // (experts // world) == rank)).any(-1)
    return tokens[here]


class Area:
    """The area of a rank in memory."""

    def __init__(self, plan: Plan, address: Any) -> None:
        self._plan, self._address = plan, address

    def of(self, name: str, row: Any, row_bytes: int) -> Any:
        """The address of a row of a part."""
        return self._address + (fx.Int64(row) * row_bytes + self._plan.offsets[name])

    def count(self, number: Any) -> Any:
        """A pointer to one of the counts."""
        return pointer(fx.Int32, self._address + fx.Int64(number) * 4, 4)


def word(address: Any, number: Any) -> Any:
    """A pointer to a dword of an array."""
    return pointer(fx.Int32, address + fx.Int64(number) * 4, 4)


@flyc.jit
def copy_row(source: Any, target: Any, row_bytes: int, lane: Any) -> None:
    """Copy packs with the lanes of a wave."""
    for number in range(lane, row_bytes // PACK_BYTES, WAVE):
        store_pack(target, number, load_pack(source, number))


@flyc.jit
def clear_next_count(team: Any, number: Any, areas: Any, plan: Plan) -> None:
    """Clear the count of the next launch, which nobody uses before all ranks have ended this one."""
    if (team.block == 0) & (team.thread == 0):
        fx.ptr_store(fx.Int32(0), Area(plan, address_in(areas, team.rank)).count((number + 1) & 1))


@flyc.jit
def next_row(area: Area, number: Any, lane: Any) -> Any:
    """The next row of an area, in all lanes of a wave."""
    row = fx.Int32(0)
    if lane == 0:
        row = fx.atomic_add(area.count(number), 1, syncscope="system")
    return fx.Int32(fx.rocdl.readfirstlane(row))


def first_of_rank(indices: Any, token: Any, slot: Any, plan: Plan) -> tuple[Any, Any]:
    """The rank of a token's slot, and whether it has an expert and no slot before is of the same rank."""
    each = plan.experts // plan.world
    experts = [fx.ptr_load(word(indices, token * plan.topk + i)) for i in range_constexpr(plan.topk)]
    expert = fx.ptr_load(word(indices, token * plan.topk + slot))
    is_first = (expert >= 0) & (expert < plan.experts)
    for i, other in enumerate(experts):
        is_first = is_first & ((slot <= i) | (other < 0) | (other >= plan.experts) | (other // each != expert // each))
    return expert // each, is_first


def dispatch_kernel(
    number: fx.Int32, rank: fx.Int32, self_sg: fx.Int64, sg_ptrs: fx.Int64, areas: fx.Int64, tokens: fx.Int64,
    indices: fx.Int64, weights: fx.Int64, scales: fx.Int64, places: fx.Int64, count: fx.Int32,
    plan: fx.Constexpr[Plan],
) -> None:  # fmt: skip
    """Send tokens."""
    team, lane, waves = _begun(plan, number, rank, self_sg, sg_ptrs, areas)
    for item in range(team.block * WAVES + team.thread // WAVE, count * plan.topk, waves):
        pair = fx.Int32(fx.rocdl.readfirstlane(item))
        token, slot = pair // plan.topk, pair % plan.topk
        target, is_first = first_of_rank(indices, token, slot, plan)
        place = fx.Int32(-1)
        if is_first:
            area = Area(plan, address_in(areas, target))
            row = next_row(area, number & 1, lane)
            place = target * plan.capacity + row
            send = [("tokens", tokens, plan.row_bytes), ("scales", scales, plan.scale_bytes)]
            for name, source, size in send:
                copy_row(source + fx.Int64(token) * size, area.of(name, row, size), size, lane)
            if lane < plan.topk:
                for name, source in (("indices", indices), ("weights", weights)):
                    value = fx.ptr_load(word(source, token * plan.topk + lane))
                    fx.ptr_store(value, word(area.of(name, row, 4 * plan.topk), lane))
            if lane == 0:
                fx.ptr_store(rank * plan.max_tokens + token, pointer(fx.Int32, area.of("sources", row, 4), 4))
        if lane == 0:
            fx.ptr_store(place, word(places, pair))
    meet(team, END)


def combine_kernel(
    number: fx.Int32, rank: fx.Int32, self_sg: fx.Int64, sg_ptrs: fx.Int64, areas: fx.Int64, places: fx.Int64,
    out: fx.Int64, count: fx.Int32, plan: fx.Constexpr[Plan],
) -> None:  # fmt: skip
    """Add up results."""
    team, lane, waves = _begun(plan, number, rank, self_sg, sg_ptrs, areas)
    for item in range(team.block * WAVES + team.thread // WAVE, count, waves):
        token = fx.Int32(fx.rocdl.readfirstlane(item))
        for pack in range(lane, plan.result_bytes // PACK_BYTES, WAVE):
            store_pack(out + fx.Int64(token) * plan.result_bytes, pack, sum_of(areas, places, token, pack, plan))
    meet(team, END)


@flyc.jit
def sum_of(areas: Any, places: Any, token: Any, number: Any, plan: Plan) -> Any:
    """A pack of the sum of a token's results."""
    element = element_type(plan.dtype)
    total = fx.Vector.filled(PACK_BYTES * 8 // element.width, 0.0, fx.Float32)
    for slot in range_constexpr(plan.topk):
        place = fx.ptr_load(word(places, token * plan.topk + slot))
        if place >= 0:
            area = Area(plan, address_in(areas, place // plan.capacity))
            row = area.of("results", place % plan.capacity, plan.result_bytes)
            total = total + fx.Vector(load_pack(row, number), dtype=fx.Int32).bitcast(element).to(fx.Float32)
    return rounded(total, element).bitcast(fx.Int32)


def _begun(plan: Plan, number: Any, rank: Any, self_sg: Any, sg_ptrs: Any, areas: Any) -> tuple[Team, Any, Any]:
    """(the team, when all ranks have begun, the lane, the waves of this rank)."""
    team = Team(node.Plan(1 << 10, "f32", plan.world), rank, fx.Int32(fx.grid_dim.x), self_sg, sg_ptrs)
    team.start()
    clear_next_count(team, number, areas, plan)
    return team, team.thread % WAVE, fx.Int32(fx.grid_dim.x) * WAVES


def _launcher(name: str, body: Any, plan: Plan) -> Any:
    """A launcher of (blocks, the kernel's arguments ..., stream)."""
    kernel = flyc.kernel(name=f"{body.__name__}_ws{plan.world}_e{plan.experts}k{plan.topk}")(body)

    def launch(_: Any, blocks: Any, *arguments_and_stream: Any) -> None:
        *arguments, stream = arguments_and_stream
        kernel(*arguments, plan).launch(grid=(blocks,), block=node.THREADS, stream=stream)

    *arguments, _plan, _return = get_annotations(body, eval_str=True).items()
    return launcher(name, "", launch, blocks=fx.Int32, **dict(arguments))


@cache
def make_dispatch_kernel(plan: Plan) -> Any:
    """A launcher of (blocks, number, rank, self_sg, sg_ptrs, areas, tokens, indices, weights, scales, places, count,
    stream).

    blocks: workgroups, at most 80, on all ranks the same. number: of the launch, 1 for the first one. The others are
    addresses, Int64, but for rank and count, the number of this rank's tokens.
    """
    return _launcher("dispatch", dispatch_kernel, plan)


@cache
def make_combine_kernel(plan: Plan) -> Any:
    """A launcher of (blocks, number, rank, self_sg, sg_ptrs, areas, places, out, count, stream).

    See `make_dispatch_kernel`.
    """
    return _launcher("combine", combine_kernel, plan)
