"""The order of a software pipeline: which tile is computed while which one is loaded, and where memory accesses go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr import range_constexpr


@flyc.jit
def walk_tiles(step: Callable[..., Any], state: Any, tiles: int, stages: int, unroll: bool = False) -> Any:
    """Walk the tiles of K through one or two buffers. Gives the state in which the last tile is still to be computed.

    step(state, k, stage): compute the tile in buffer `stage` while tile k is loaded, into the other one if there are
    two; gives the next state. tiles: how many there are; tile 0 is in buffer 0. unroll: no loop on the device.
    """
    turns = 0 if unroll else (tiles - 1) // stages
    for turn in range(turns):
        for stage in range_constexpr(stages):
            state = step(state, stages * fx.Int32(turn) + (stage + 1), stage)
    for k in range_constexpr(stages * turns + 1, tiles):
        state = step(state, k, (k - 1) % stages)
    return state


def vmcnt(count: int, lds: bool = False) -> int:
    """The operand of CDNA's `rocdl.s_waitcnt` to wait until at most `count` accesses of global memory are under way.

    lds: and none of LDS.
    """
    count = min(count, 63)
    return (0x0070 if lds else 0x0F70) | count & 15 | (count >> 4) << 14


def interleave(
    mfma: int, reads: int = 0, loads: int = 0, writes: int = 0, ahead: int = 2, loads_ahead: int = 0
) -> None:
    """Ask the scheduler to spread a tile's memory accesses evenly among its matrix instructions.

    mfma: matrix instructions; reads, writes: of LDS; loads: of global memory. ahead, loads_ahead: reads and loads
    before the first matrix instruction. Writes are in the last third, as they wait for loads.
    """
    done, loaded, written = min(ahead, reads), min(loads_ahead, loads), 0
    _until(fx.rocdl.sched_vmem, 0, loaded)
    _until(fx.rocdl.sched_dsrd, 0, done)
    slots = max(1, min(mfma, reads + loads + writes))
    for slot in range(slots):
        fx.rocdl.sched_mfma(mfma * (slot + 1) // slots - mfma * slot // slots)
        loaded = _until(fx.rocdl.sched_vmem, loaded, loads_ahead + _share(loads - loads_ahead, slot, 0, slots))
        done = _until(fx.rocdl.sched_dsrd, done, ahead + _share(reads - ahead, slot, 0, slots * 7 // 8))
        written = _until(fx.rocdl.sched_dswr, written, _share(writes, slot, slots * 2 // 3, slots))
    fx.rocdl.sched_barrier(0)


def _share(count: int, slot: int, first: int, last: int) -> int:
    """The number of `count` things that are done after a slot, if they are spread evenly over slots first to last."""
    return count if slot >= last - 1 else max(0, -(-count * (slot + 1 - first) // max(1, last - first)))


def _until(hint: Callable[[int], None], done: int, wanted: int) -> int:
    if wanted > done:
        hint(wanted - done)
    return max(done, wanted)
