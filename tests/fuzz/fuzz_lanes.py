"""Lanes that read each other's numbers: shuffles, broadcasts, reductions and scans of waves and blocks, votes.

Numbers of several types and groups of all widths; distances that are known at compile time, at the launch, or in the
lane only. The threads compute what NumPy computes, on each GPU, at every opt level, in both backends.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import flydsl.expr as fx
from flydsl.simulator.arrays import Array
from tests.fuzz.thread_programs import DTYPES, Program, Step, run_programs

COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add, "max": np.maximum, "min": np.minimum, "mul": np.multiply, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
OF_FLOATS = ("add", "max", "min")


def accumulated(op: str, groups: Array) -> Array:
    """The inclusive scan of each row."""
    rows = groups.copy()
    for i in range(1, rows.shape[1]):
        rows[:, i] = COMBINE[op](rows[:, i - 1], rows[:, i])
    return rows


@dataclass
class Moved:
    """A number of another lane of the group. distance: how it is known."""

    target: int
    source: int
    mode: str
    width: int
    distance: int
    known: str

    def traced(self, values: list[Any], thread: Any, room: Any) -> Any:
        by: Any = self.distance
        if self.known == "at the launch":
            by = values[0] * 0 + self.distance
        if self.known == "in the lane":
            by = (thread * self.distance) & (self.width - 1)
        return getattr(fx, f"shuffle_{self.mode}")(values[self.source], by, self.width)

    def computed(self, values: list[Array]) -> Array:
        t = np.arange(len(values[0]))
        by = (t * self.distance) & (self.width - 1) if self.known == "in the lane" else self.distance
        within = t % self.width
        place = {"xor": within ^ by, "up": within - by, "down": within + by, "idx": t * 0 + by & self.width - 1}
        source = place[self.mode]
        inside = (source >= 0) & (source < self.width)
        return values[self.source][np.where(inside, t - within + source, t)]


@dataclass
class Combined:
    """All numbers of a group, or those up to a lane. what: reduce, inclusive, exclusive, aggregate."""

    target: int
    source: int
    what: str
    op: str
    width: int
    start: int

    def traced(self, values: list[Any], thread: Any, room: Any) -> Any:
        value, width = values[self.source], self.width
        if self.what == "reduce":
            return fx.warp_reduce(value, self.op, width=width)
        if self.what == "inclusive":
            return fx.warp_inclusive_scan(value, self.op, width=width, init=self.start)
        if self.what == "exclusive":
            return fx.warp_exclusive_scan(value, self.op, width=width, init=self.start)
        return fx.warp_scan_with_aggregate(value, self.op, width=width, init=self.start)[2]

    def computed(self, values: list[Array]) -> Array:
        return combined(self, values[self.source], self.width)


def combined(step: Any, value: Array, width: int) -> Array:
    start, combine = value.dtype.type(step.start), COMBINE[step.op]
    rows = accumulated(step.op, value.reshape(-1, width))
    if step.what in ("reduce", "aggregate"):
        rows[:] = rows[:, -1:]
    elif step.what == "inclusive":
        rows = combine(start, rows)
    else:
        rows = np.concatenate([np.full_like(rows[:, :1], start), combine(start, rows[:, :-1])], axis=1)
    return rows.ravel()


@dataclass
class OfBlock:
    """All numbers of the block, or those up to a thread. what: reduce, inclusive, exclusive."""

    target: int
    source: int
    kind: Any
    what: str
    op: str
    threads: int
    start: int

    def traced(self, values: list[Any], thread: Any, room: Any) -> Any:
        family: Any = fx.BlockReduce if self.what == "reduce" else fx.BlockScan
        made = family[self.kind, self.threads]
        storage = fx.SharedAllocator().allocate(made.SharedStorage)
        fx.barrier()
        if self.what == "reduce":
            return made.reduce(values[self.source], self.op, storage)
        return getattr(made, self.what)(values[self.source], self.op, storage, init=self.start)

    def computed(self, values: list[Array]) -> Array:
        return combined(self, values[self.source], self.threads)


@dataclass
class Voted:
    """How many lanes of the wave, or of the lanes below, have a number that is less."""

    target: int
    source: int
    bound: int
    below: bool
    wave: int

    def traced(self, values: list[Any], thread: Any, room: Any) -> Any:
        mask = fx.rocdl.ballot(fx.T.i64, values[self.source] < self.bound)
        if not self.below:
            return fx.ctpop(mask)
        return fx.rocdl.mbcnt_hi((mask >> 32).to(fx.Int32), fx.rocdl.mbcnt_lo(mask.to(fx.Int32), 0))

    def computed(self, values: list[Array]) -> Array:
        bound = values[self.source].dtype.type(self.bound)
        rows = (values[self.source] < bound).astype(np.int32).reshape(-1, min(self.wave, len(values[0])))
        counts = rows.cumsum(1) - rows if self.below else np.broadcast_to(rows.sum(1)[:, None], rows.shape)
        return counts.ravel()


@dataclass
class Mixed:
    """Two numbers of any types, as one type."""

    target: int
    left: int
    right: int
    kind: Any
    operation: str

    def traced(self, values: list[Any], thread: Any, room: Any) -> Any:
        a, b = self.kind(values[self.left]), self.kind(values[self.right])
        return {"add": lambda: a + b, "sub": lambda: a - b, "max": lambda: fx.max(a, b)}[self.operation]()

    def computed(self, values: list[Array]) -> Array:
        a, b = (values[i].astype(DTYPES[self.kind]) for i in (self.left, self.right))
        functions: dict[str, Callable[[], Array]] = {
            "add": lambda: a + b, "sub": lambda: a - b, "max": lambda: np.maximum(a, b)}  # fmt: skip
        return functions[self.operation]()


def widths(program: Program) -> list[int]:
    return [1 << i for i in range(7) if 1 << i <= min(program.wave, program.threads)]


def a_move(numbers: random.Random, program: Program) -> Step:
    width = numbers.choice(widths(program))
    known = numbers.choice(("when compiling", "at the launch", "in the lane"))
    return Moved(numbers.randrange(4), numbers.randrange(4), numbers.choice(("xor", "up", "down", "idx")), width,
                 numbers.randrange(width), known)  # fmt: skip


def an_operation(numbers: random.Random, kind: Any) -> str:
    return numbers.choice(OF_FLOATS if kind.is_float else list(COMBINE))


def a_combination(numbers: random.Random, program: Program) -> Step:
    source, what = numbers.randrange(4), numbers.choice(("reduce", "reduce", "inclusive", "exclusive", "aggregate"))
    op = an_operation(numbers, program.kinds[source])
    return Combined(numbers.randrange(4), source, what, op, numbers.choice(widths(program)), numbers.randrange(4))


def a_block(numbers: random.Random, program: Program) -> Step:
    source, what = numbers.randrange(4), numbers.choice(("reduce", "inclusive", "exclusive"))
    kind = program.kinds[source]
    op = an_operation(numbers, kind)
    return OfBlock(numbers.randrange(4), source, kind, what, op, program.threads, numbers.randrange(4))


def a_vote(numbers: random.Random, program: Program) -> Step:
    return Voted(numbers.randrange(4), numbers.randrange(4), numbers.randrange(8), numbers.random() < 0.5,
                 program.wave)  # fmt: skip


def a_mixture(numbers: random.Random, program: Program) -> Step:
    kind = numbers.choice([kind for kind in DTYPES if not kind.is_float])
    target, left, right = (numbers.randrange(4) for _ in range(3))
    return Mixed(target, left, right, kind, numbers.choice(("add", "sub", "max")))


def run(seed: int, count: int) -> None:
    """Check `count` programs."""
    makers = (a_move, a_move, a_combination, a_combination, a_block, a_vote, a_mixture)
    run_programs(lambda one, arch: Program(one, arch, makers, (16, 32, 64, 128, 256)), seed, count)
