"""Sums over the 2 to 8 GPUs of a node, which read each other's memory: out = in_0 + in_1 + ... + in_(n-1).

    kernels = make_allreduce_kernels(N=14336, dtype_str="f16", world_size=8)
    kernels["run_1stage_arr"](rank, grid_x, self_sg, sg_ptrs, in_ptrs, out_ptr)

Every GPU launches the same kernel at about the same time. Pointers are addresses, Int64; `*_ptrs` is the address of 8
of them, in the memory of this GPU. A pack is 16 bytes, P their number; threads form one group for each GPU, and lane l
of group g of block b has packs b L + l, b L + l + grid_x L, ..., where L is the size of a group. Sums are of f32, in the
order of ranks, and rounded once: all ranks get the same bits.

| launcher | each GPU | reads | pointers |
|---|---|---|---|
| run_1stage_arr | sums all packs | n inputs | in_ptrs: entry i is rank (r + i) mod n's |
| run_2stage_arr | sums its part, P / n packs (the last one the rest, too), into tmp; then copies all parts | n inputs, n tmp | in_ptrs, tmp_ptrs: as before |
| run_2stage_write_mode | writes its packs to the tmp of their part's rank; sums its part, and writes it to all outputs | its input, its tmp | out_ptrs, tmp_ptrs: in the order of ranks |

`make_all_gather_kernel` and `make_reduce_scatter_kernel` are the halves of the second one.

Signals: a block tells the blocks of the same number on all GPUs that it has come to a place, by writing its launch's
number to their memory, and waits for theirs. `start`: inputs are complete; `end`: nobody reads them any more, so the next
launch may follow at once, with another input in the same memory. Between what is signalled and its signal lies a fence
of all threads and a barrier. A signal struct has u32 start[80][8] at byte 0, end[80][8] at 2560 and flag[80], the number
of this rank's last launch, at 5120; it is zero before the first launch, and uncached.

8 waves per workgroup, 16 KiB of shared memory, through which the groups hand packs to the first one: f16 on 8 GPUs takes
under 333 instructions (one stage).
"""  # noqa: E501 - a table

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr import range_constexpr
from kernels.kernels_common import ceil_div, element_type, power_of_two, require, rounded
from kernels.launches import launcher

ORDER = fx.AtomicOrdering
THREADS = 512
PACK_BYTES = 16
MOST_BLOCKS, MOST_RANKS = 80, 8
START, END, FLAG = 0, 2560, 5120
SIGNAL_BYTES = 5504
WORLD_SIZES = range(2, MOST_RANKS + 1)
DTYPES = ("f32", "f16", "bf16")
# (elements, ranks): one pack, parts of different lengths, more packs than threads
SHAPES = ((8, 2), (1000, 4), (14336, 8))


def reference(inputs: Any) -> Any:
    """The sum in f32 over the first dimension, in its order, rounded once."""
    total = inputs[0].float()
    for other in inputs[1:]:
        total = total + other.float()
    return total.to(inputs.dtype)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The compile-time parameters. elements: of an input (all-gather: of each rank). most_threads: a block's."""

    elements: int
    dtype: str
    world: int
    most_threads: int = THREADS

    def __post_init__(self) -> None:
        """Raises ArgumentError."""
        require(self.world in WORLD_SIZES, f"world_size={self.world}", "2 to 8 GPUs")
        require(self.dtype in DTYPES, f"dtype_str={self.dtype!r}", f"one of {', '.join(DTYPES)}")
        each = PACK_BYTES * 8 // self.element.width
        require(self.elements > 0 and self.elements % each == 0, f"N={self.elements}", f"a multiple of {each}")
        require(self.world <= self.most_threads <= 1024, f"threads={self.most_threads}", f"{self.world} to 1024")

    @property
    def element(self) -> Any:
        return element_type(self.dtype)

    @property
    def packs(self) -> int:
        return self.elements * self.element.width // 8 // PACK_BYTES

    @property
    def part(self) -> int:
        """Packs of every rank's part but the last, which has `rest` more."""
        return self.packs // self.world

    @property
    def rest(self) -> int:
        return self.packs % self.world

    @property
    def lanes(self) -> int:
        """Threads of a group, a power of two."""
        return 1 << ((self.most_threads // self.world).bit_length() - 1)

    @property
    def threads(self) -> int:
        """Threads of a block: a group for each GPU."""
        return self.lanes * self.world

    def part_of(self, rank: Any) -> Any:
        """Packs of a rank's part."""
        return (rank == self.world - 1).select(self.part + self.rest, self.part) if self.rest else self.part

    def blocks(self, packs: int) -> int:
        """The workgroups that have some packs to work on, of those that there are signals for."""
        return min(max(ceil_div(packs, self.lanes), 1), MOST_BLOCKS)


def pointer(dtype: Any, address: Any, alignment: int) -> Any:
    """A pointer to global memory."""
    return fx.inttoptr(fx.PointerType.get(dtype, fx.AddressSpace.Global, alignment), address)


def load_pack(address: Any, number: Any) -> Any:
    """A pack of memory, as four words."""
    return fx.ptr_load(pointer(fx.Int32, address + fx.Int64(number) * PACK_BYTES, PACK_BYTES), fx.T.vec(4, fx.T.i32))


def store_pack(address: Any, number: Any, pack: Any) -> None:
    """Write a pack."""
    fx.ptr_store(pack, pointer(fx.Int32, address + fx.Int64(number) * PACK_BYTES, PACK_BYTES))


def address_in(pointers: Any, number: Any) -> Any:
    """An entry of an array of pointers."""
    return fx.ptr_load(pointer(fx.Int64, pointers + fx.Int64(number) * 8, 8))


class Team:
    """A thread's place among the GPUs: its group and lane, its packs, and the signals of its block."""

    def __init__(self, plan: Plan, rank: Any, grid: Any, self_sg: Any, sg_ptrs: Any) -> None:
        self.plan, self.rank, self.self_sg, self.sg_ptrs = plan, rank, self_sg, sg_ptrs
        self.block, self.thread = fx.Int32(fx.block_idx.x), fx.Int32(fx.thread_idx.x)
        self.group, self.lane = self.thread // plan.lanes, self.thread % plan.lanes
        self.first, self.stride = self.block * plan.lanes, grid * plan.lanes
        self.shared = fx.SharedAllocator().allocate(2 * plan.threads * PACK_BYTES, PACK_BYTES).peek().ptr
        self.flag = self_sg + (fx.Int64(self.block) * 4 + FLAG)
        self.launch = fx.ptr_load(pointer(fx.Int32, self.flag, 4)) + 1

    def peer(self, group: Any) -> Any:
        """The rank that a group reads from, where pointers are rotated."""
        return self._around(self.rank + group)

    def _around(self, number: Any) -> Any:
        """A number from -world on as one of the ranks; for powers of two it takes one instruction."""
        world = self.plan.world
        return number & (world - 1) if world == power_of_two(world) else (number + world) % world

    @flyc.jit
    def start(self) -> None:
        """Wait until all ranks have started, and so have their inputs."""
        meet(self, START)
        if self.thread == 0:
            fx.ptr_store(self.launch, pointer(fx.Int32, self.flag, 4))

    def put(self, slot: Any, pack: Any) -> None:
        """Show a pack to the other threads of the block."""
        fx.rocdl.lds_store(self.shared, slot * PACK_BYTES, pack)

    def shown(self, slot: Any) -> Any:
        return fx.rocdl.lds_load(fx.T.vec(4, fx.T.i32), self.shared, slot * PACK_BYTES)

    def sum(self, first_slot: Any, *, rotated: bool = True) -> Any:
        """The sum of a lane's packs that the groups have shown, in the order of ranks."""
        element, total = self.plan.element, None
        for rank in range_constexpr(self.plan.world):
            group = self._around(rank - self.rank) if rotated else rank
            pack = fx.Vector(self.shown(first_slot + group * self.plan.lanes + self.lane), dtype=fx.Int32)
            values = pack.bitcast(element).to(fx.Float32)
            total = values if total is None else total + values
        return rounded(total, element).bitcast(fx.Int32)


@flyc.jit
def meet(team: Any, event: int) -> None:
    """Wait until the blocks of this number are here on all ranks, and see what they wrote before."""
    fx.memory_fence(ordering=ORDER.Release)
    fx.gpu.barrier()
    if team.thread < team.plan.world:
        row = fx.Int64(team.block) * (4 * MOST_RANKS) + event
        theirs = address_in(team.sg_ptrs, team.thread) + (row + fx.Int64(team.rank) * 4)
        fx.generic_store(pointer(fx.Int32, theirs, 4), team.launch, memory_order=ORDER.Monotonic)
        mine = pointer(fx.Int32, team.self_sg + (row + fx.Int64(team.thread) * 4), 4)
        seen = fx.generic_load(mine, memory_order=ORDER.Monotonic)
        while seen - team.launch < 0:  # a difference, as the number of launches may wrap
            seen = fx.generic_load(mine, memory_order=ORDER.Monotonic)
        fx.memory_fence(ordering=ORDER.Acquire)
    fx.gpu.barrier()


@flyc.jit
def reduce_packs(team: Any, source: Any, count: Any, target: Any) -> None:
    """Sum `count` packs from each group's source into the target. Two halves of the shared memory take turns."""
    half = fx.Int32(0)
    for base in range(team.first, count, team.stride):
        number = base + team.lane
        if number < count:
            team.put(half + team.thread, load_pack(source, number))
        fx.gpu.barrier()
        if (team.group == 0) & (number < count):
            store_pack(target, number, team.sum(half))
        half = half ^ team.plan.threads


@flyc.jit
def copy_packs(team: Any, source: Any, count: Any, target: Any) -> None:
    """Copy `count` packs from each group's source to its target."""
    for number in range(team.first + team.lane, count, team.stride):
        store_pack(target, number, load_pack(source, number))


def one_stage(team: Team, in_ptrs: Any, out_ptr: Any) -> None:
    """Every rank sums everything."""
    team.start()
    reduce_packs(team, address_in(in_ptrs, team.group), fx.Int32(team.plan.packs), out_ptr)
    meet(team, END)


def two_stage(team: Team, in_ptrs: Any, tmp_ptrs: Any, out_ptr: Any) -> None:
    """Every rank sums its part, then copies those of the others."""
    reduce_scatter(team, in_ptrs, address_in(tmp_ptrs, 0))
    owner = team.peer(team.group)
    target = out_ptr + fx.Int64(owner) * (team.plan.part * PACK_BYTES)
    copy_packs(team, address_in(tmp_ptrs, team.group), fx.Int32(team.plan.part_of(owner)), target)


def reduce_scatter(team: Team, in_ptrs: Any, target: Any) -> None:
    """Every rank sums its part."""
    team.start()
    first = fx.Int64(team.rank) * (team.plan.part * PACK_BYTES)
    reduce_packs(team, address_in(in_ptrs, team.group) + first, fx.Int32(team.plan.part_of(team.rank)), target)
    meet(team, END)


def write_mode(team: Team, inp_ptr: Any, out_ptrs: Any, tmp_ptrs: Any) -> None:
    """Every rank gives the others their packs, sums its own, and gives the sums to the others."""
    plan, rank = team.plan, team.rank
    longest = (plan.part + plan.rest) * PACK_BYTES  # between what two ranks write to a tmp
    part = plan.part * PACK_BYTES
    given = address_in(tmp_ptrs, team.group) + fx.Int64(rank) * longest
    copy_packs(team, inp_ptr + fx.Int64(team.group) * part, fx.Int32(plan.part_of(team.group)), given)
    team.start()
    taken = address_in(tmp_ptrs, rank) + fx.Int64(team.group) * longest
    target = address_in(out_ptrs, team.group) + fx.Int64(rank) * part
    reduce_for_all(team, taken, fx.Int32(plan.part_of(rank)), target)
    meet(team, END)


@flyc.jit
def reduce_for_all(team: Any, source: Any, count: Any, target: Any) -> None:
    """Sum packs from each group's source, and write the sums to each group's target."""
    plan = team.plan
    for base in range(team.first, count, team.stride):
        number = base + team.lane
        if number < count:
            team.put(team.thread, load_pack(source, number))
        fx.gpu.barrier()
        if (team.group == 0) & (number < count):
            team.put(plan.threads + team.lane, team.sum(0, rotated=False))
        fx.gpu.barrier()
        if number < count:
            store_pack(target, number, team.shown(plan.threads + team.lane))


def all_gather(team: Team, in_ptrs: Any, out_ptr: Any) -> None:
    """Every rank copies the inputs of all, in the order of ranks."""
    plan = team.plan
    team.start()
    target = out_ptr + fx.Int64(team.peer(team.group)) * (plan.packs * PACK_BYTES)
    copy_packs(team, address_in(in_ptrs, team.group), fx.Int32(plan.packs), target)
    meet(team, END)


def _kernel(steps: Callable[..., None], plan: Plan) -> Any:
    """A kernel of (rank, grid, self_sg, sg_ptrs, pointers); its name says what it is compiled for."""

    def collective(rank: fx.Int32, grid: fx.Int32, self_sg: fx.Int64, sg_ptrs: fx.Int64, pointers: Any) -> None:
        steps(Team(plan, rank, grid, self_sg, sg_ptrs), *pointers)

    return flyc.kernel(name=f"{steps.__name__}_{plan.dtype}_ws{plan.world}_n{plan.elements}")(collective)


def _launcher(steps: Callable[..., None], plan: Plan, pointers: str = "in_ptrs out_ptr", name: str = "run") -> Any:
    """A launcher of (rank, grid_x, self_sg, sg_ptrs, pointers ..., stream)."""
    kernel = _kernel(steps, plan)

    def launch(_: Any, rank: Any, grid: Any, self_sg: Any, sg_ptrs: Any, *pointers_and_stream: Any) -> None:
        *given, stream = pointers_and_stream
        kernel(rank, grid, self_sg, sg_ptrs, tuple(given)).launch(grid=(grid,), block=plan.threads, stream=stream)

    addresses = dict.fromkeys(("self_sg", "sg_ptrs", *pointers.split()), fx.Int64)
    return launcher(name, "", launch, rank=fx.Int32, grid_x=fx.Int32, **addresses)


@cache
def make_allreduce_kernels(*, N: int, dtype_str: str, world_size: int, threads: int = THREADS) -> dict[str, Any]:
    """The launchers run_1stage_arr, run_2stage_arr and run_2stage_write_mode, by name.

    N: elements, a multiple of 16 bytes. dtype_str: f32, f16, bf16. world_size: 2 to 8. threads: most of a block.
    Raises ArgumentError.
    grid_x of a launch: `Plan.blocks` of the packs, or of a part. They take a stream as the last argument.
    """
    plan = Plan(elements=N, dtype=dtype_str, world=world_size, most_threads=threads)
    made: dict[str, tuple[Callable[..., None], str]] = {
        "run_1stage_arr": (one_stage, "in_ptrs out_ptr"),
        "run_2stage_arr": (two_stage, "in_ptrs tmp_ptrs out_ptr"),
        "run_2stage_write_mode": (write_mode, "inp_ptr out_ptrs tmp_ptrs"),
    }
    return {name: _launcher(steps, plan, pointers, name) for name, (steps, pointers) in made.items()}


@cache
def make_all_gather_kernel(*, N: int, dtype_str: str, world_size: int, threads: int = THREADS) -> Any:
    """A launcher with the arguments of run_1stage_arr: out holds the N elements of each rank, in the order of ranks."""
    return _launcher(all_gather, Plan(elements=N, dtype=dtype_str, world=world_size, most_threads=threads))


@cache
def make_reduce_scatter_kernel(*, N: int, dtype_str: str, world_size: int, threads: int = THREADS) -> Any:
    """A launcher with the arguments of run_1stage_arr: out holds this rank's part of the sum of N elements."""
    return _launcher(reduce_scatter, Plan(elements=N, dtype=dtype_str, world=world_size, most_threads=threads))
