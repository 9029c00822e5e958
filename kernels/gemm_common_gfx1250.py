"""Common parts of products for gfx1250: tiles that the tensor data mover brings, and the order in which they come.

A workgroup has `buffers` places for a tile of A and of B in shared memory. One is computed while the others are on
their way: the tensor data mover copies whole tiles, each wave asks for its part of one, and a wave waits until only
the later ones are still under way. Workgroups of a cluster may get a tile together. With one place, a tile is asked for
when all waves have computed the one before.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.atoms.instruction_sets import GFX1250
from flydsl.expr import range_constexpr
from flydsl.expr.rocdl import cluster, tdm_ops
from flydsl.expr.tracing.emit import target_name
from kernels.kernels_common import ceil_div, require

LANES, SIZE = 32, 16
LDS_BYTES = 320 * 1024
_GRANULE = 1024
_MANY = 8  # turns of a loop that the compiler does not unroll


def require_gfx1250(kernel: str) -> None:
    """Raise ArgumentError unless this is compiled for gfx1250."""
    require(target_name() in GFX1250, f"{kernel} on {target_name()}", f"for {GFX1250[0]}")


def scheduled(launcher: Any, expert: bool) -> Any:
    """The launcher; expert: of kernels in which waits for vector registers are made where they are needed."""
    if expert:
        launcher.compile_hints = {"llvm_options": {"amdgpu-expert-scheduling-mode": True}}
    return launcher


def check_smem_capacity(lds_bytes: int) -> None:
    """Raise ArgumentError if a workgroup cannot have so much shared memory."""
    require(
        lds_bytes <= LDS_BYTES,
        f"{lds_bytes} bytes of shared memory",
        f"at most {LDS_BYTES}: smaller tiles, or fewer buffers",
    )


@dataclass(frozen=True)
class Pipeline:
    """The order of the tiles of K. buffers: places for a tile; tiles: how many there are, at least as many."""

    buffers: int
    tiles: int

    def check(self) -> None:
        """Raise ArgumentError where there are too few tiles."""
        require(self.buffers in (1, 2, 3, 4), f"num_buffers={self.buffers}", "1 to 4")
        require(self.tiles >= self.buffers, f"{self.tiles} tiles along K", f"at least num_buffers={self.buffers}")

    @property
    def turns(self) -> int:
        """Turns of the loop, which computes a tile in each buffer."""
        return (self.tiles - (self.buffers - 1)) // self.buffers

    @property
    def in_loop(self) -> int:
        """Tiles that the loop computes."""
        return self.turns * self.buffers

    def counted(self, turns: Any) -> Any:
        """The turns as the loop has them: many as a number, few as the argument of the kernel that says how many."""
        if self.turns == 0 or self.turns > _MANY:
            return self.turns
        return (turns > 1).select(turns, fx.Int32(1))  # so that there is no second way around the loop

    def stage(self, tile: int) -> int:
        """The buffer of a tile."""
        return tile % self.buffers


class WavePlan(ABC):
    """The waves of a plan, for all products. tile: a workgroup's, along M, N and K; waves: along M and N.

    split_k: workgroups that share a tile, along K.
    """

    n: int
    k: int
    tile: tuple[int, int, int]
    waves: tuple[int, int]
    out: Any
    buffers: int
    tdm_store: bool
    cluster: ClusterShape
    split_k: int

    @property
    def pipeline(self) -> Pipeline:
        """The order of a workgroup's tiles of K."""
        return Pipeline(self.buffers, self.k // self.split_k // self.tile[2])

    @property
    def threads(self) -> int:
        """Threads of a workgroup."""
        return LANES * self.waves[0] * self.waves[1]

    @property
    def wave_tile(self) -> tuple[int, int]:
        """A wave's part of the tile."""
        return self.tile[0] // self.waves[0], self.tile[1] // self.waves[1]

    @property
    @abstractmethod
    def buffer_bytes(self) -> int:
        """The size of a buffer in shared memory."""

    @property
    def out_pitch(self) -> int:
        """Elements from row to row of a wave's part of C in shared memory."""
        return self.wave_tile[1] + 16 * 8 // int(self.out.width)

    @property
    def lds_bytes(self) -> int:
        """The shared memory of the buffers, in which C is staged afterwards."""
        of_c = self.wave_tile[0] * self.out_pitch * int(self.out.width) // 8 * self.waves[0] * self.waves[1]
        return max(self.buffers * self.buffer_bytes, of_c if self.tdm_store else 0)

    @property
    def grid(self) -> tuple[int, int]:
        """Workgroups along N and, of one tile, along K."""
        return ceil_div(self.n, self.tile[1]), self.split_k

    def check_sizes(self, step: int, unit: int, wide: int = SIZE) -> None:
        """Raise ArgumentError where sizes do not fit. step, wide: columns of K and of C of an instruction.

        unit: what N is a multiple of.
        """
        _, n, k = self.tile
        require(min(*self.tile, *self.waves) > 0, f"a tile of {self.tile} by {self.waves} waves", "at least 1 each")
        require(k % step == 0 and k & (k - 1) == 0, f"tile_k={k}", f"a power of two from {step} on")
        named = f"tile_n={n}" if unit == n else f"{unit}"
        require(self.n > 0 and self.n % unit == 0, f"N={self.n}", f"a multiple of {named}")
        require(self.split_k > 0, f"split_k={self.split_k}", "at least 1")
        fits = self.k > 0 and self.k % (k * self.split_k) == 0
        require(fits, f"K={self.k}", f"a multiple of tile_k={k} times split_k={self.split_k}")
        self.pipeline.check()
        self.cluster.check()
        require(self.threads <= 1024, f"waves {self.waves}", "at most 32 in all")
        for name, extent, waves, size in zip("mn", self.tile, self.waves, (SIZE, wide), strict=False):
            require(extent % (size * waves) == 0, f"tile_{name}={extent}", f"a multiple of {size * waves}")
        check_smem_capacity(self.lds_bytes)

    def launch(self, kernel: Any, m: Any, stream: Any) -> None:
        """Launch a kernel for m rows of C, inside a launcher."""
        grid = ((m + self.tile[0] - 1) // self.tile[0], *self.grid)
        kernel.launch(grid=grid, block=(self.threads,), stream=stream, **self.cluster.options)


@dataclass(frozen=True)
class ClusterShape:
    """Workgroups of a cluster along M and N."""

    m: int
    n: int

    @property
    def is_one(self) -> bool:
        """There is one workgroup, and so no cluster."""
        return self.m * self.n == 1

    def check(self) -> None:
        """Raise ArgumentError where there are too many."""
        fits = self.m > 0 and self.n > 0 and self.m * self.n <= 16
        require(fits, f"clusters of {self.m} x {self.n} workgroups", "1 to 16 in all")

    @property
    def options(self) -> dict[str, Any]:
        """The options of a launch."""
        return {} if self.is_one else {"cluster": (self.m, self.n, 1)}

    def masks(self) -> tuple[Any, Any]:
        """The workgroups that get this one's tiles of A and of B, too; 0 for none."""
        if self.is_one:
            return 0, 0
        return cluster.compute_mcast_masks(*cluster.compute_cluster_position(), self.m, self.n)


@dataclass(frozen=True)
class TileStream:
    """Tiles of an operand, one after the other along K, from global memory to the buffers.

    descriptor: of the first tile in the first buffer, or of some of its rows by number. step_bytes: from tile to tile
    in memory.
    """

    descriptor: Any
    step_bytes: Any

    def in_buffers(self, buffers: int, buffer_bytes: int) -> list[Any]:
        """For each buffer the addresses of the first tile that it gets: the descriptor's first group."""
        group = self.descriptor.dgroup0
        first = [moved(group, i * self.step_bytes) for i in range(buffers)]
        return [
            fx.Vector.from_elements([fx.Int32(g[0]), fx.Int32(g[1]) + i * buffer_bytes, g[2], g[3]], fx.Int32)
            for i, g in enumerate(first)
        ]

    def load(self, addresses: Any) -> None:
        """Start to load a tile."""
        tdm_ops.tensor_load_to_lds(addresses, *self.descriptor[1:])


def moved(addresses: Any, bytes_: Any) -> Any:
    """A descriptor's first group with its address in global memory that much further."""
    pair = addresses.shuffle(addresses, [2, 3]).bitcast(fx.Int64)[0] + fx.Int64(bytes_)
    halves = fx.Vector.from_elements([pair], fx.Int64).bitcast(fx.Int32)
    return addresses.shuffle(halves.shuffle(halves, [0, 1, 0, 1]), [0, 1, 4, 5])


def chosen_by_wave(streams: list[TileStream], wave: Any) -> TileStream:
    """One stream for all waves, where wave i asks for tiles of stream i and the others for none."""

    def choose(values: list[Any], none: Any = None) -> Any:
        chosen = fx.Int32(values[-1] if none is None else none)
        for i, value in reversed(list(enumerate(values))):
            chosen = (wave == i).select(fx.Int32(value), chosen)
        return chosen

    group0 = [choose([stream.descriptor.dgroup0[i] for stream in streams], None if i else 0) for i in range(4)]
    group1 = [choose([stream.descriptor.dgroup1[i] for stream in streams]) for i in range(8)]
    vectors = [fx.Vector.from_elements([fx.Int32(word) for word in group], fx.Int32) for group in (group0, group1)]
    return TileStream(tdm_ops.TDMDescriptor2D(*vectors), choose([stream.step_bytes for stream in streams]))


def opaque(number: Any) -> Any:
    """The same Int32, hidden from the compiler.

    LDS instructions add distances up to 64 KiB to a register. From a place in a buffer beyond that, the compiler would
    make a register for each instruction; with one place that it does not look into, each has its distance.
    """
    from flydsl._mlir.dialects import llvm  # type: ignore[attr-defined]  # a module that is made when it is imported

    return fx.Int32(llvm.inline_asm(fx.T.i32, [number], "", "=v,0"))


def round_up(number: int, multiple: int = _GRANULE) -> int:
    """The next multiple."""
    return ceil_div(number, multiple) * multiple


def fence(outstanding: int, shape: ClusterShape) -> None:
    """Wait until at most `outstanding` copies of each wave are under way, and all waves (of the cluster) are here."""
    tdm_ops.tensor_wait(outstanding)
    fx.gpu.barrier()
    if not shape.is_one:
        cluster.cluster_signal_once_per_wg()
        cluster.cluster_wait()


class Loads:
    """The tiles that a wave asks for: of some streams, in the buffers of a pipeline.

    ahead: called with the tile's number for every tile that the loop loads, to bring later ones into a cache.
    """

    def __init__(
        self, plan: Pipeline, streams: list[TileStream], buffer_bytes: int, ahead: Callable[[Any], None] | None = None
    ) -> None:
        self.plan, self.streams, self.ahead = plan, streams, ahead
        self.first = [stream.in_buffers(plan.buffers, buffer_bytes) for stream in streams]

    def start(self, addresses: list[list[Any]], stage: int, tile: Any = None) -> list[list[Any]]:
        """Start to load the next tile of a buffer, and give where all come from after that. tile: its number."""
        addresses = [list(of_stream) for of_stream in addresses]
        for stream, of_stream in zip(self.streams, addresses, strict=True):
            stream.load(of_stream[stage])
            of_stream[stage] = moved(of_stream[stage], self.plan.buffers * stream.step_bytes)
        if self.ahead is not None and tile is not None:
            self.ahead(tile)
        return addresses


@flyc.jit
def run_pipeline(
    plan: Pipeline, loads: Loads, shape: ClusterShape, compute: Callable[..., Any], acc: Any, turns: Any
) -> Any:
    """The sums over all tiles.

    compute(acc, stage, between_steps): the sums with the products of a buffer's tile added, and what `between_steps`
    returns, which is called when about half of them are under way. turns: the plan's; as an argument of the kernel it
    keeps a short loop a loop.
    """
    ahead, each, addresses = plan.buffers - 1, len(loads.streams), loads.first
    if fx.const_expr(ahead == 0):
        return one_place(plan, loads, shape, compute, acc, turns)
    for tile in range_constexpr(ahead):
        addresses = loads.start(addresses, tile)
    for turn in range(plan.counted(turns)):
        for stage in range_constexpr(plan.buffers):
            fence(each * (plan.buffers - 2), shape)
            place, tile = (stage + ahead) % plan.buffers, fx.Int32(turn) * plan.buffers + (stage + ahead)
            acc, addresses = compute(acc, stage, partial(loads.start, addresses, place, tile))
    for tile in range_constexpr(plan.in_loop, plan.tiles):
        fence(each * (min(plan.tiles, tile + ahead) - tile - 1), shape)
        between_steps = partial(loads.start, addresses, plan.stage(tile + ahead)) if tile + ahead < plan.tiles else None
        acc, following = compute(acc, plan.stage(tile), between_steps)
        addresses = addresses if following is None else following
    return acc


def one_place(
    plan: Pipeline, loads: Loads, shape: ClusterShape, compute: Callable[..., Any], acc: Any, turns: Any
) -> Any:
    """`run_pipeline` with one buffer. Few tiles are no loop."""

    def step(acc: Any, addresses: Any, following: Any = None) -> Any:
        fence(0, shape)
        acc, _ = compute(acc, 0, None)
        if following is not None:
            fx.gpu.barrier()
            addresses = loads.start(addresses, 0, following)
        return acc, addresses

    addresses = loads.start(loads.first, 0)
    if plan.tiles > _MANY:
        state: Any = repeated(step, acc, addresses, turns)
        acc, addresses = state
    else:
        for tile in range(1, plan.tiles):
            acc, addresses = step(acc, addresses, fx.Int32(tile))
    return step(acc, addresses)[0]


@flyc.jit
def repeated(step: Callable[..., Any], acc: Any, addresses: Any, turns: Any) -> Any:
    """The result of a step that is repeated for every tile but the last one."""
    for tile in range(1, turns):
        acc, addresses = step(acc, addresses, fx.Int32(tile))
    return acc, addresses
