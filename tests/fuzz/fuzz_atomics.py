"""Atomic updates of LDS and global memory whose order does not matter: functions, copy atoms, exchanges, tickets.

Integers and floats of several widths; one place for each thread, for some, or for all of them; under conditions that
differ by lane; with every scope and order. What memory holds afterwards, and what it held before where that does not
depend on the order, is what NumPy computes, on each GPU, at every opt level, in both backends.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.simulator.arrays import Array
from tests.fuzz.thread_programs import Program, Step, run_programs, shared, tamed, tamed_on_device

ELEMENTS: dict[Any, Any] = {
    fx.Int32: np.int32, fx.Uint32: np.uint32, fx.Int64: np.int64, fx.Uint64: np.uint64, fx.Float32: np.float32,
    fx.Float64: np.float64, fx.Float16: np.float16,
}  # fmt: skip
UPDATES: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add, "sub": np.subtract, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
OF_FLOATS = ("add", "max", "min")
AS_ATOMS = {"add": fx.UniversalAtomicAdd, "max": fx.UniversalAtomicMax, "min": fx.UniversalAtomicMin,
            "and": fx.UniversalAtomicAnd, "or": fx.UniversalAtomicOr}  # fmt: skip


ON_DEVICE: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "max": lambda a, b: fx.max(a, b), "min": lambda a, b: fx.min(a, b),
    "and": operator.and_, "or": operator.or_, "xor": operator.xor,
}  # fmt: skip


@dataclass
class Updated:
    """Each thread updates a place, and reads another one's.

    how: `function`, `atom`, `buffer atom` or `compare and swap`. places: how many, a power of two. factor, shift: which
    one. only_odd: only threads whose number is odd. returns: the step's result is what the update returned.
    """

    target: int
    source: int
    kind: Any
    op: str
    how: str
    in_global: bool
    places: int
    factor: int
    shift: int
    only_odd: bool
    returns: bool
    order: dict[str, str]
    threads: int
    backwards: int

    def traced(self, values: list[Any], thread: Any, room: Any) -> Any:
        memory = fx.recast_iter(self.kind, room) if self.in_global else shared(self.kind, self.places)
        value = tamed_on_device(values[self.source], self.kind)
        return updated_and_read(self, memory, value, values[0], thread)

    def computed(self, values: list[Array]) -> Array:
        t = np.arange(self.threads)
        memory = self.start(np.arange(self.places)).astype(ELEMENTS[self.kind])
        value = tamed(values[self.source], memory.dtype)
        before = memory[self.place(t)]
        for i in t[(values[0] & 1 == 1) | (not self.only_odd)]:
            memory[self.place(i)] = UPDATES[self.op](memory[self.place(i)], value[i])
        if self.returns:
            return np.where((values[0] & 1 == 1) | (not self.only_odd), before, memory.dtype.type(0))
        return memory[(self.backwards ^ t) & (self.places - 1)]

    def start(self, place: Any) -> Any:
        """What a place holds at first."""
        return place & 3

    def place(self, t: Any) -> Any:
        return (t * self.factor + self.shift) & (self.places - 1)


@flyc.jit
def updated_and_read(step: Any, memory: Any, value: Any, number: Any, thread: Any) -> Any:
    for first in fx.range_constexpr(0, step.places, step.threads):
        if thread + first < step.places:
            memory[thread + first] = step.kind(step.start(thread + first))
    fx.barrier()
    before = step.kind(0)
    if (number & 1 == 1) | (not step.only_odd):
        before = update(step, memory, value, step.place(thread))
    fx.barrier()
    after = memory[(step.backwards ^ thread) & (step.places - 1)]
    fx.barrier()
    return before if step.returns else after


def update(step: Any, memory: Any, value: Any, place: Any) -> Any:
    """Update a place of memory. Returns what it held before, or 0 where that is not known."""
    if step.how == "function":
        return getattr(fx, f"atomic_{step.op}")(memory + place, value, **step.order)
    if step.how == "compare and swap":
        return swapped(step, memory + place, value)
    mine = fx.make_rmem_tensor(1, step.kind)
    mine[0] = value
    target = fx.make_view(memory + place, fx.make_layout(1, 1))
    fx.copy(fx.make_copy_atom(AS_ATOMS[step.op](step.kind), step.kind), mine, target)
    return step.kind(0)


@flyc.jit
def swapped(step: Any, pointer: Any, value: Any) -> Any:
    """The update as a loop, until nobody came in between."""
    seen, done = pointer[0], fx.Boolean(False)
    while not done:
        wished = ON_DEVICE[step.op](seen, value)
        seen, done = fx.atomic_cas(pointer, seen, wished)
    return seen


@dataclass
class Ticketed:
    """Threads draw tickets at a place, and add them up. The result is each place's sum."""

    target: int
    kind: Any
    places: int
    in_global: bool
    threads: int

    def traced(self, values: list[Any], thread: Any, room: Any) -> Any:
        memory = fx.recast_iter(self.kind, room) if self.in_global else shared(self.kind, 2 * self.places)
        return tickets(self, memory, thread)

    def computed(self, values: list[Array]) -> Array:
        count = self.threads // self.places
        return np.full(self.threads, count * (count + 1) // 2)


@flyc.jit
def tickets(step: Any, memory: Any, thread: Any) -> Any:
    if thread < step.places:
        memory[thread] = step.kind(0)
        memory[thread + step.places] = step.kind(1)
    fx.barrier()
    place = thread & (step.places - 1)
    ticket = fx.atomic_add(memory + (place + step.places), 1)
    fx.atomic_add(memory + place, ticket)
    fx.barrier()
    total = memory[place]
    fx.barrier()
    return total


def an_update(numbers: random.Random, program: Program) -> Step:
    kind = numbers.choice(list(ELEMENTS))
    how = numbers.choice(("function", "function", "atom", "compare and swap"))
    if how == "compare and swap" and kind.is_float:
        how = "function"
    op = numbers.choice(OF_FLOATS if kind.is_float else [*(AS_ATOMS if how == "atom" else UPDATES)])
    if how == "atom" and kind is fx.Float16:
        op = "add"
    places = 1 << numbers.randrange(9)
    if kind is fx.Float16:
        places = max(places, 16)  # sums are exact
    returns = how in ("function", "compare and swap") and places >= program.threads and numbers.random() < 0.7
    order = {"syncscope": numbers.choice(("workgroup", "agent", "system")),
             "ordering": numbers.choice(("monotonic", "acquire", "release", "acq_rel", "seq_cst"))}  # fmt: skip
    return Updated(numbers.randrange(4), numbers.randrange(4), kind, op, how, numbers.random() < 0.5, places,
                   numbers.choice((1, 3, 5, 63)), numbers.randrange(256), numbers.random() < 0.4, returns, order,
                   program.threads, numbers.randrange(256))  # fmt: skip


def a_ticket(numbers: random.Random, program: Program) -> Step:
    kind = numbers.choice((fx.Int32, fx.Uint32, fx.Int64, fx.Uint64))
    places = min(1 << numbers.randrange(5), program.threads)
    return Ticketed(numbers.randrange(4), kind, places, numbers.random() < 0.5, program.threads)


def run(seed: int, count: int) -> None:
    """Check `count` programs."""
    makers = (an_update, an_update, an_update, a_ticket)
    run_programs(lambda one, arch: Program(one, arch, makers, (16, 64, 128, 256)), seed, count)
