"""Workgroups that exchange values through LDS and global memory, in phases with a barrier between them.

Each thread keeps some numbers; in a phase it writes one of them to a place of its own, and behind a barrier it reads
another thread's. Loops, branches and order of execution are random. Race-free programs compute what numpy computes, at
every opt level, in native code and in lock-step. Where one barrier is left out, `checking` tells of a race, unless
nobody reads across waves there.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import FlyError
from flydsl.expr import range_constexpr
from flydsl.simulator import checking
from flydsl.simulator.arrays import Array
from flydsl.simulator.errors import Race

VALUES = 3  # numbers that each thread keeps
TOGETHER = 4  # programs that are compiled as one module
State = list[Array]


class Phase:
    """Write one value, wait, read another thread's, wait. `order` says whose: a permutation of the threads.

    repeat: how often, in a loop on the device. only_if: whether the value read is kept where another one is odd.
    is_split: whether the barriers are in both ways of a branch that all threads take alike.
    """

    def __init__(self, numbers: random.Random, threads: int) -> None:
        self.threads = threads
        self.source, self.target, self.other = (numbers.randrange(VALUES) for _ in range(3))
        self.factor, self.shift = numbers.choice((1, 3, 5, threads - 1)), numbers.randrange(threads)
        self.is_reversed = numbers.random() < 0.5
        self.repeat = numbers.choice((1, 1, 2, 3))
        self.only_if, self.is_split, self.in_global = (numbers.random() < 0.4 for _ in range(3))
        self.stage = numbers.randrange(2)
        self.has_barrier = True

    def place(self, t: Any) -> Any:
        """Where thread t writes."""
        return (self.threads - 1) - t if self.is_reversed else t

    def reads(self, t: Any) -> Any:
        """The place that thread t reads: that of a thread which is mostly of another wave."""
        return (t * self.factor + self.shift) & (self.threads - 1)

    def crosses(self) -> bool:
        """True if a thread reads what another wave wrote."""
        t = np.arange(self.threads)
        writer = np.empty(self.threads, np.int64)
        writer[self.place(t)] = t
        return bool(np.any(writer[self.reads(t)] // 64 != t // 64))

    def run(self, state: State) -> None:
        t = np.arange(self.threads)
        for _ in range(self.repeat):
            memory = np.empty(self.threads, np.int32)
            memory[self.place(t)] = state[self.source]
            read = memory[self.reads(t)] + state[self.other]
            keep = (state[self.other] & 1 == 1) if self.only_if else np.full(self.threads, True)
            state[self.target] = np.where(keep, read, state[self.target])


class Program:
    """Some phases. `traced` and `expected` are the same thing said twice."""

    def __init__(self, seed: int) -> None:
        numbers = random.Random(seed)
        self.seed, self.threads = seed, numbers.choice((128, 256))
        self.phases = [Phase(numbers, self.threads) for _ in range(numbers.randint(1, 4))]
        self.given = np.random.default_rng(seed).integers(-1000, 1000, (VALUES, self.threads), np.int32)

    def without_a_barrier(self) -> bool:
        """Leave the barrier out between writes and reads across waves. False if there is no such place."""
        crossing = [phase for phase in self.phases if phase.crosses()]
        if crossing:
            crossing[self.seed % len(crossing)].has_barrier = False
        return bool(crossing)

    def expected(self) -> State:
        state = [row.copy() for row in self.given]
        for phase in self.phases:
            phase.run(state)
        return state

    def kernel(self, row: int) -> Any:
        """A kernel on one row of the tensors."""
        program = self

        @flyc.kernel
        def kernel(Given: fx.Tensor, Out: fx.Tensor, Room: fx.Tensor, two: fx.Int32):
            t = fx.Int32(fx.thread_idx.x)
            shared = fx.SharedAllocator().allocate(fx.Array[fx.Int32, 2 * program.threads]).peek().ptr
            values = [Given[row, i, t] for i in range(VALUES)]
            for phase in program.phases:
                values = traced(phase, t, values, shared, Room[row, None], two)
            for i in range_constexpr(VALUES):
                Out[row, i, t] = values[i]

        return kernel


@flyc.jit
def traced(phase: Any, t: Any, values: Any, shared: Any, room: Any, two: Any):
    """A phase on the device. two: 2, which only the launch knows."""
    values = list(values)
    for _ in range(phase.repeat * two // 2):
        exchanged = exchange(phase, t, values[phase.source], shared, room, two) + values[phase.other]
        if phase.only_if:
            if values[phase.other] & 1 == 1:
                values[phase.target] = exchanged
        else:
            values[phase.target] = exchanged
    return values


@flyc.jit
def exchange(phase: Any, t: Any, value: Any, shared: Any, room: Any, two: Any):
    """What the thread reads of what all threads write."""
    at = phase.stage * phase.threads
    if phase.in_global:
        room[at + phase.place(t)] = value
    else:
        shared[at + phase.place(t)] = value
    wait(phase, two, phase.has_barrier)
    read = room[at + phase.reads(t)] if phase.in_global else shared[at + phase.reads(t)]
    wait(phase, two, True)
    return read


@flyc.jit
def wait(phase: Any, two: Any, has_barrier: Any):
    if has_barrier:
        if phase.is_split:
            if two == 2:
                fx.barrier()
            else:
                fx.barrier()
        else:
            fx.barrier()


def launch(programs: list[Program]) -> torch.Tensor:
    """The values of all programs at their end."""
    kernels = [program.kernel(row) for row, program in enumerate(programs)]

    @flyc.jit
    def run_all(Given: fx.Tensor, Out: fx.Tensor, Room: fx.Tensor, two: fx.Int32):
        for kernel, program in zip(kernels, programs, strict=True):
            kernel(Given, Out, Room, two).launch(grid=1, block=program.threads)

    given = torch.zeros(len(programs), VALUES, 256, dtype=torch.int32)
    for row, program in zip(given, programs, strict=True):
        row[:, : program.threads] = torch.from_numpy(program.given)
    out, room = torch.zeros_like(given), torch.zeros(len(programs), 512, dtype=torch.int32)
    run_all(given, out, room, 2)
    return out


@contextmanager
def settings(**variables: str) -> Iterator[None]:
    with mock.patch.dict(os.environ, variables):
        yield


def check(*seeds: int, opt_level: int = 2, backend: str = "native") -> None:
    """Race-free programs give numpy's numbers."""
    programs = [Program(seed) for seed in seeds]
    with settings(FLYDSL_COMPILE_OPT_LEVEL=str(opt_level), FLYDSL_SIMULATOR_BACKEND=backend):
        out = launch(programs)
    for row, program in zip(out.numpy(), programs, strict=True):
        for i, expected in enumerate(program.expected()):
            got = row[i, : program.threads]
            assert np.array_equal(got, expected), (
                f"program {program.seed}, opt level {opt_level}, {backend}: value {i} is\n{got}, not\n{expected}"
            )


def check_race(seed: int) -> None:
    """`checking` finds the barrier that is missing, and nothing in the program that has it."""
    with checking("races"):
        launch([Program(seed)])
        program = Program(seed)
        if not program.without_a_barrier():
            return
        try:
            launch([program])
        except Race:
            return
    raise AssertionError(f"check_race({seed}): a barrier is missing, and no race was found")


def run(seed: int, count: int) -> None:
    """Check `count` programs; opt levels and backends take turns. One in eight is checked for races."""
    chosen = random.Random(seed)
    findings: list[str] = []

    def look(trial: Callable[[], None]) -> None:
        try:
            trial()
        except AssertionError as finding:
            findings.append(str(finding))
        except FlyError as error:
            findings.append(f"{type(error).__name__}: {error}")

    for number in range(0, count, TOGETHER):
        seeds = [chosen.randrange(1 << 32) for _ in range(min(TOGETHER, count - number))]
        level, backend = number // TOGETHER % 4, ("native", "native", "lockstep")[number // TOGETHER % 3]
        look(lambda: check(*seeds, opt_level=level, backend=backend))  # noqa: B023 - called at once
        if number // TOGETHER % 2:
            look(lambda: check_race(seeds[0]))  # noqa: B023
    assert not findings, "\n\n".join(findings)
