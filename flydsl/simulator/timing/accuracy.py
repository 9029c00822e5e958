"""The error of estimates by kind of launch: 9 of 10 measured launches of the kind are within it.

ACCURACY.md has the comparison with measurements. Nothing of the model is derived from these numbers.
"""

from __future__ import annotations

from flydsl.arch import GFX942, GFX950, Arch
from flydsl.simulator.timing.replay import Replayed
from flydsl.simulator.timing.trace import Unit

SHORT_US = 10.0
_MEMORY_BOUND = 0.4
"""Part of the time in which a launch keeps memory busy."""
_MATRIX_AT_WORK = 0.1
"""Part of the time in which a launch keeps the matrix cores busy that it has workgroups for."""
_OF_ATTENTION = 0.1
"""Cycles of transcendental functions for each cycle of matrix instructions, from which on a launch is no product."""
_WAITING = 0.25
"""Part of the time for which a workgroup waits for others, from which on a launch is unlike the compared ones."""
_COMPARED = (GFX942.name, GFX950.name)
_ERROR_PERCENT = {
    "short": 20.0,
    "parts": 25.0,
    "memory": 25.0,
    "matrix": 35.0,
    "routed": 40.0,
    "latency": 55.0,
    "stream": 20.0,
    "cached stream": 50.0,
    "short vector": 25.0,
}

LEAST_PERCENT = _ERROR_PERCENT["matrix"]
"""The least error of a kind that was not compared: that of the worst kind of products."""


def kind_of(
    replay: Replayed, time_us: float, *, adds: bool = False, routed: bool = False, waiting: float = 0.0
) -> str | None:
    """The kind of a launch: "short", "memory", "matrix" or "latency" for products, "stream" for others from memory.

    adds: whether it has atomics on global memory. A short product that has is of several "parts" whose sums meet there.
    A few workgroups that each wait for one load after the other keep nothing busy: their kind is "latency". routed:
    whether what it loads decides what it multiplies, as tables of a mixture of experts do; a longer one is "routed".

    Without matrix instructions, a short launch that memory does not limit is "short vector", if it has more than one
    workgroup on a die.
    What computes transcendental functions beside matrix instructions, as attention does, is no product. A "cached
    stream" is one whose data the Infinity Cache could keep from the launch before, while the model reads them from
    memory. waiting: the part of the time for which a workgroup waits for others, at most. None for what was not
    compared with a GPU.
    """
    if waiting > _WAITING:
        return None
    busy, is_memory_bound = replay.state.busy, replay.memory_part > _MEMORY_BOUND
    if not busy[Unit.MATRIX]:
        if not is_memory_bound:
            return "short vector" if time_us < SHORT_US and len(replay.ends) > 1 else None
        return "stream" if replay.gpu.cache_keeps < 1 else "cached stream"
    if busy[Unit.TRANSCENDENTAL] > _OF_ATTENTION * busy[Unit.MATRIX]:
        return None
    if time_us < SHORT_US:
        return "parts" if adds else "short"
    if routed:
        return "routed"
    if is_memory_bound:
        return "memory"
    return "matrix" if replay.matrix_part > _MATRIX_AT_WORK else "latency"


def error_percent(arch: Arch, kind: str | None) -> float | None:
    """The error of a kind, None where it is not known: the model of other GPUs was not compared with one."""
    return None if kind is None or arch.name not in _COMPARED else _ERROR_PERCENT[kind]
