"""Chains of conversions and arithmetic on floats of all formats and integers compute what torch computes.

Scalars and vectors; the opt levels take turns. Of NaNs it is only compared that they are some.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import FlyError

THREADS = 256
TOGETHER = 8  # chains that are compiled as one module
LANES = 4  # of the vectors

INTEGERS = {torch.int8: fx.Int8, torch.int16: fx.Int16, torch.int32: fx.Int32, torch.int64: fx.Int64}
NARROW = {
    torch.float8_e4m3fnuz: fx.Float8E4M3FNUZ, torch.float8_e5m2fnuz: fx.Float8E5M2FNUZ,
    torch.float8_e4m3fn: fx.Float8E4M3FN, torch.float8_e5m2: fx.Float8E5M2,
}  # fmt: skip
FLOATS = {torch.float16: fx.Float16, torch.bfloat16: fx.BFloat16, torch.float32: fx.Float32, torch.float64: fx.Float64}
TYPES: dict[torch.dtype, Any] = {**INTEGERS, **NARROW, **FLOATS}

Step = tuple[str, Callable[[Any], Any], Callable[[torch.Tensor], torch.Tensor]]
"""Its name, what it does in a kernel, and what it does in torch."""


def numbers(chosen: random.Random) -> torch.Tensor:
    """f32 numbers: every exponent, halves between numbers of narrow formats, special ones."""
    generator = torch.manual_seed(chosen.randrange(1 << 32))
    bits = torch.randint(-(1 << 31), 1 << 31, (THREADS,), generator=generator, dtype=torch.int64).to(torch.int32)
    bits[::2] &= -(1 << chosen.choice((12, 16, 19, 20)))
    values = bits.view(torch.float32).clone()
    values[1::4] = torch.randn(THREADS // 4, generator=generator) * chosen.choice((1, 30, 3000))
    values[:8] = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, 448.0, 65520.0, 2.0**-24])
    return values


def next_step(kind: torch.dtype, chosen: random.Random) -> tuple[torch.dtype, Step]:
    """A step from values of a type, and the type that it gives."""
    if kind in INTEGERS:
        if chosen.random() < 0.4:
            number = chosen.randrange(-100, 100)
            operator = chosen.choice("+-*")
            return kind, (f"{operator} {number}", *_with_number(operator, TYPES[kind], kind, number))
        wide = kind in (torch.int32, torch.int64)  # which may round twice on their way to a narrow float
        targets = [*INTEGERS, torch.float64, *([] if wide else [torch.float32, torch.float16, torch.bfloat16])]
    elif kind in NARROW:
        targets = [torch.float16, torch.bfloat16, torch.float32]
    elif chosen.random() < 0.4:
        operator, number = chosen.choice("+-*"), chosen.choice((0.5, 1.0, -3.0, 0.0078125, 100.0))
        return kind, (f"{operator} {number}", *_with_number(operator, TYPES[kind], kind, number))
    elif chosen.random() < 0.2:
        return torch.int32, ("to i32", lambda x: x.to(fx.Int32), _saturated)
    else:  # f64 may round twice on its way to a narrow float
        targets = [torch.float32, torch.float64] if kind is torch.float64 else [*FLOATS, *NARROW]
    target = chosen.choice([t for t in targets if t is not kind])
    return target, (f"to {target}", lambda x: x.to(TYPES[target]), lambda x: x.to(target))


def _with_number(operator: str, dtype: Any, kind: torch.dtype, number: float) -> tuple[Any, Any]:
    apply = {"+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y}[operator]
    # Narrow integers are promoted, and come back.
    return lambda x: apply(x, _like(x, number, dtype)).to(dtype), lambda x: apply(x, torch.tensor(number, dtype=kind))


def _like(x: Any, number: float, dtype: Any) -> Any:
    return fx.Vector.filled_like(x, number, dtype) if isinstance(x, fx.Vector) else dtype(number)


def _saturated(x: torch.Tensor) -> torch.Tensor:
    """What an i32 holds of it, and 0 for NaN."""
    limits = torch.iinfo(torch.int32)
    return x.double().nan_to_num(0, torch.inf, -torch.inf).clamp(limits.min, limits.max).to(torch.int32)


class Chain:
    """Some steps from f32 on. `expected` and `traced` are the same thing said twice."""

    def __init__(self, seed: int) -> None:
        chosen = random.Random(seed)
        self.seed, self.is_vector, self.given = seed, chosen.random() < 0.5, numbers(chosen)
        self.steps: list[Step] = []
        kind = torch.float32
        for _ in range(chosen.randint(1, 7)):
            kind, step = next_step(kind, chosen)
            self.steps.append(step)
        self.is_integer = kind in INTEGERS

    def __str__(self) -> str:
        vectors = f"vectors of {LANES}, " if self.is_vector else ""
        return f"chain {self.seed}: {vectors}{', '.join(name for name, *_ in self.steps)}"

    def traced(self, x: Any) -> Any:
        if self.is_vector:
            x = fx.Vector.from_elements([fx.Float32(0.0)] * (LANES - 1) + [x])
        for _, in_kernel, _ in self.steps:
            x = in_kernel(x)
        x = x.to(fx.Int64 if self.is_integer else fx.Float32).to(fx.Float64 if not self.is_integer else fx.Int64)
        return x[LANES - 1] if self.is_vector else x

    def expected(self) -> torch.Tensor:
        x = self.given
        for *_, in_torch in self.steps:
            x = in_torch(x)
        return x.to(torch.int64) if self.is_integer else x.float().double()


def check(*seeds: int) -> None:
    """Compare chains that are compiled together. AssertionError for the first that differs."""
    chains = [Chain(seed) for seed in seeds]

    @flyc.kernel
    def kernel(X: fx.Tensor, Floats: fx.Tensor, Integers: fx.Tensor):
        for row, chain in enumerate(chains):
            result = chain.traced(X[row, fx.thread_idx.x])
            if chain.is_integer:
                Integers[row, fx.thread_idx.x] = result
            else:
                Floats[row, fx.thread_idx.x] = result

    @flyc.jit
    def launch(X: fx.Tensor, Floats: fx.Tensor, Integers: fx.Tensor):
        kernel(X, Floats, Integers).launch(grid=1, block=THREADS)

    given = torch.stack([chain.given for chain in chains])
    floats, integers = torch.zeros(given.shape, dtype=torch.float64), torch.zeros(given.shape, dtype=torch.int64)
    try:
        launch(given, floats, integers)
    except FlyError as error:
        raise AssertionError(f"{'; '.join(map(str, chains))}\n{error}") from error
    for row, chain in enumerate(chains):
        got, expected = (integers if chain.is_integer else floats)[row], chain.expected()
        same = (got == expected) | (got.isnan() & expected.isnan())
        same &= got.isnan() | (got.double().signbit() == expected.double().signbit())
        if not same.all():
            i = int((~same).nonzero()[0])
            raise AssertionError(f"{chain}: of {given[row, i].item()!r} {got[i].item()!r}, not {expected[i].item()!r}")


def run(seed: int, count: int) -> None:
    """Check `count` chains. The opt levels take turns."""
    findings = []
    for number, first in enumerate(range(0, count, TOGETHER)):
        with mock.patch.dict(os.environ, FLYDSL_COMPILE_OPT_LEVEL=str(number % 4)):
            try:
                check(*range(seed + first, seed + min(first + TOGETHER, count)))
            except AssertionError as finding:
                findings.append(f"at opt level {number % 4}: {finding}")
    assert not findings, "\n\n".join(findings)
