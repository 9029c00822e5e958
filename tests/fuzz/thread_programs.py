"""Programs of steps that the threads of one workgroup take together, on a device and in NumPy.

Each thread keeps some numbers of different types. A step computes one of them of the others, in ways that a fuzzer
knows; it may stand in a loop or a branch whose condition only the launch knows.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from unittest import mock

import numpy as np
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.arch import Arch
from flydsl.errors import FlyError
from flydsl.expr import range_constexpr
from flydsl.simulator.arrays import Array
from tests.fuzz.archs import ARCHS

VALUES = 4  # numbers that each thread keeps
MOST_THREADS = 256
MOST_STEPS = 6
ROOM = 256  # integers of 64 bits of global memory for each step
TOGETHER = 3  # programs that are compiled as one module
DTYPES: dict[Any, Any] = {
    fx.Int32: np.int32, fx.Uint32: np.uint32, fx.Int64: np.int64, fx.Int16: np.int16, fx.Uint8: np.uint8,
    fx.Float32: np.float32, fx.Float16: np.float16, fx.Float64: np.float64,
}  # fmt: skip


class Step(Protocol):
    """What one step computes, said twice. target: the number that it replaces."""

    target: int

    def traced(self, values: list[Any], thread: Any, room: Any) -> Any:
        """On the device. room: a pointer to ROOM integers of 64 bits in global memory, which belong to the step."""

    def computed(self, values: list[Array]) -> Array:
        """In NumPy, for all threads."""


@dataclass(frozen=True)
class Taken:
    """A step, and how often. only_if_two: whether it stands in a branch that all threads take."""

    step: Any
    repeat: int
    only_if_two: bool


MakeStep = Callable[[random.Random, "Program"], Step]


class Program:
    """Some steps. kinds: the type of each of a thread's numbers. wave: lanes of a wave of its GPU."""

    def __init__(self, seed: int, arch: Arch, makers: Sequence[MakeStep], block_sizes: Sequence[int]) -> None:
        numbers = random.Random(seed)
        self.seed, self.arch, self.wave = seed, arch, arch.wave_size
        self.threads = numbers.choice(block_sizes)
        self.kinds = [fx.Int32, *(numbers.choice(list(DTYPES)) for _ in range(VALUES - 1))]
        self.steps = [
            Taken(numbers.choice(makers)(numbers, self), numbers.choice((1, 1, 2)), numbers.random() < 0.3)
            for _ in range(numbers.randint(2, MOST_STEPS))
        ]
        generator = np.random.default_rng(seed)
        self.given = generator.integers(-(1 << 31), 1 << 31, (VALUES, self.threads), np.int64)

    def expected(self) -> list[Array]:
        values = [tamed(given, DTYPES[kind]) for given, kind in zip(self.given, self.kinds, strict=True)]
        for taken in self.steps:
            for _ in range(taken.repeat):
                result = taken.step.computed(list(values))
                target = taken.step.target
                values[target] = tamed(result, DTYPES[self.kinds[target]])
        return [value.astype(np.int64) for value in values]

    def kernel(self, row: int) -> Any:
        """A kernel on one row of the tensors."""
        program = self

        @flyc.kernel
        def kernel(Given: fx.Tensor, Out: fx.Tensor, Room: fx.Tensor, two: fx.Int32):
            t = fx.Int32(fx.thread_idx.x)
            values = [tamed_on_device(Given[row, i, t], kind) for i, kind in enumerate(program.kinds)]
            for number, taken in enumerate(program.steps):
                room = fx.get_iter(Room) + (row * MOST_STEPS + number) * ROOM
                values = take(taken, program.kinds, values, t, room, two)
            for i in range_constexpr(VALUES):
                Out[row, i, t] = values[i].to(fx.Int64)

        return kernel


@flyc.jit
def take(taken: Any, kinds: Any, values: Any, t: Any, room: Any, two: Any) -> Any:
    """A step on the device. two: 2, which only the launch knows."""
    values = list(values)
    target = taken.step.target
    if taken.repeat > 1:
        for _ in range(taken.repeat * two // 2):
            values[target] = tamed_on_device(taken.step.traced(values, t, room), kinds[target])
    elif taken.only_if_two:
        if two == 2:
            values[target] = tamed_on_device(taken.step.traced(values, t, room), kinds[target])
    else:
        values[target] = tamed_on_device(taken.step.traced(values, t, room), kinds[target])
    return values


def shared(kind: Any, count: int) -> Any:
    """A pointer to so many numbers in shared memory."""
    array: Any = fx.Array
    return fx.SharedAllocator().allocate(array[kind, count, 16]).peek().ptr


def tamed(value: Array, dtype: Any) -> Array:
    """As a type. Floats become whole numbers from 0 to 7, of which sums are exact."""
    if np.issubdtype(dtype, np.floating):
        value = value.astype(np.int64) & 7
    elif np.issubdtype(value.dtype, np.floating):
        value = value.astype(np.int64)
    return value.astype(dtype)


def tamed_on_device(value: Any, kind: Any) -> Any:
    """`tamed`, of a thread."""
    if kind.is_float:
        value = fx.Int32(value) & 7
    elif fx.as_numeric(value).dtype.is_float:
        value = fx.Int32(value)  # a float that is negative becomes a Uint8 of 0
    return kind(value)


def launch(programs: list[Program]) -> Array:
    """The values of all programs at their end."""
    kernels = [program.kernel(row) for row, program in enumerate(programs)]

    @flyc.jit
    def run_all(Given: fx.Tensor, Out: fx.Tensor, Room: fx.Tensor, two: fx.Int32):
        for kernel, program in zip(kernels, programs, strict=True):
            kernel(Given, Out, Room, two).launch(grid=1, block=program.threads)

    given = torch.zeros(len(programs), VALUES, MOST_THREADS, dtype=torch.int64)
    for row, program in zip(given, programs, strict=True):
        row[:, : program.threads] = torch.from_numpy(program.given)
    out = torch.zeros_like(given)
    run_all(given, out, torch.zeros(len(programs), MOST_STEPS * ROOM, dtype=torch.int64), 2)
    found: Array = out.numpy()
    return found


def check(programs: list[Program], opt_level: int = 2, backend: str = "native") -> None:
    """They give NumPy's numbers."""
    settings = {"FLYDSL_COMPILE_OPT_LEVEL": str(opt_level), "FLYDSL_SIMULATOR_BACKEND": backend,
                "FLYDSL_GPU_ARCH": programs[0].arch.name}  # fmt: skip
    about = f"programs {[p.seed for p in programs]} on {programs[0].arch.name}, opt level {opt_level}, {backend}"
    with mock.patch.dict(os.environ, settings):
        try:
            out = launch(programs)
        except FlyError as error:
            if "cdna2" in programs[0].arch.instruction_sets and "of scratch" in error.message:
                return  # refused, as it says
            raise AssertionError(f"{about}: {type(error).__name__}: {error}") from error
    for row, program in zip(out, programs, strict=True):
        for i, expected in enumerate(program.expected()):
            got = row[i, : program.threads]
            steps = "\n".join(map(str, program.steps))
            assert np.array_equal(got, expected), (
                f"{about}: value {i} of {program.seed}, {program.kinds}, {program.threads} threads, is\n{got}, not\n"
                f"{expected}\n{steps}"
            )


def run_programs(make: Callable[[int, Arch], Program], seed: int, count: int, archs: Sequence[Arch] = ARCHS) -> None:
    """Check `count` programs. GPUs, opt levels and backends take turns. AssertionError with the findings."""
    chosen = random.Random(seed)
    findings = []
    for number in range(0, count, TOGETHER):
        arch = chosen.choice(archs)
        programs = [make(chosen.randrange(1 << 32), arch) for _ in range(min(TOGETHER, count - number))]
        try:
            check(programs, number // TOGETHER % 4, chosen.choice(("native", "native", "lockstep")))
        except AssertionError as finding:
            findings.append(str(finding))
    assert not findings, "\n\n".join(findings)
