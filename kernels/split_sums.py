"""Sums of a tile of C whose K is split among workgroups, in one launch: each adds its part, rounded to C's type.

The workgroup with the first part of K fills the tile of C with the bias or zeros while its operands are on their way,
and says so in the tile's word of `signal`, Int32 and 0 before the first launch; the others wait for that before they
add. It waits for nobody, and the GPU starts workgroups in order, so the wait ends however few of them run at the same
time. All count themselves in the word, and the last one clears it. Launches that may overlap need words of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr import range_constexpr
from kernels.mfma_epilogues import TileC
from kernels.tensor_shim import GTensor

ORDER = fx.AtomicOrdering
SEEN: dict[str, Any] = {"memory_order": ORDER.Monotonic, "syncscope": "agent"}
"""How a tile's word is read and written, as other workgroups do the same."""


@flyc.jit
def begin_tile(c: TileC, part: Any, threads: int, signal: Any, bias: Any = None) -> None:
    """Let the workgroup of part 0 fill a tile of C, and signal that. signal: the address of the tile's word."""
    if part == 0:
        lanes = c.tile[1] // 8
        row, column = c.thread // lanes, c.thread % lanes * 8
        value = fx.Vector.filled(8, 0, c.dtype)
        if fx.const_expr(bias is not None):
            value = fx.Vector(GTensor(bias, c.dtype).vec_load(c.first_column + column, 8))
        for first in range_constexpr(0, c.tile[0], threads // lanes):
            c.memory.vec_store((row + first, c.first_column + column), value)
        fx.memory_fence(ordering=ORDER.Release, syncscope="agent")
        fx.gpu.barrier()
        if c.thread == 0:
            fx.generic_store(signal, fx.Int32(1), **SEEN)


@flyc.jit
def wait_for_tile(signal: Any, parts: int) -> None:
    """Let the first thread wait until a tile of C is filled. The last workgroup that has waited clears the word."""
    if fx.thread_idx.x == 0:
        seen = fx.generic_load(signal, **SEEN)
        while seen == 0:
            seen = fx.generic_load(signal, **SEEN)
        fx.memory_fence(ordering=ORDER.Acquire, syncscope="agent")
        if fx.atomic_add(signal, 1, syncscope="agent") == parts:
            fx.generic_store(signal, fx.Int32(0), **SEEN)


@flyc.jit
def add_pairs(C: Any, m: Any, n: int, row: Any, column: Any, values: Any) -> None:
    """Add consecutive elements of a row to C (m, n), if it is one of C's."""
    if row < m:
        first = fx.get_iter(C) + (fx.Int64(row) * n + fx.Int64(column))
        for pair in range_constexpr(values.numel // 2):
            fx.atomic_add(first + 2 * pair, values.shuffle(values, [2 * pair, 2 * pair + 1]))


@contextmanager
def words_left_at_zero() -> Iterator[None]:
    """Forget all words if the launch in the block ends early: it leaves signals, which the next one would believe."""
    try:
        yield
    except BaseException:
        _WORDS.clear()
        raise


_WORDS: dict[tuple[str, Any], Any] = {}


def words_of(c: Any, count: int, stream: Any) -> Any:
    """At least so many words for launches on a stream, which every launch leaves at zero."""
    import torch

    key = str(c.device), stream
    if key not in _WORDS or _WORDS[key].numel() < count:
        _WORDS[key] = torch.zeros(count, dtype=torch.int32, device=c.device)
    return _WORDS[key]
