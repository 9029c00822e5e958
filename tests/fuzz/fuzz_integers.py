"""Chains of operators on integers of every width and sign compute what Python's integers say, in kernels and launchers.

1 to 128 bits and indices; operands of two types, which meet in a common one; runtime divisors and amounts of shifts,
also zero, negative and too large, and known ones. Each chain is computed by a kernel, for 64 threads, and by a
launcher, for the first thread's numbers. GPUs, opt levels and backends take turns.
"""

from __future__ import annotations

import operator
import os
import random
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import FlyError
from tests.fuzz.archs import ARCHS

THREADS = 64
TOGETHER = 6  # chains that are compiled as one module
GIVEN = 4
TYPES: tuple[Any, ...] = (
    fx.Int8, fx.Uint8, fx.Int16, fx.Uint16, fx.Int32, fx.Uint32, fx.Int64, fx.Uint64, fx.Int128, fx.Uint128, fx.Index,
)  # fmt: skip
KNOWN = (1, 2, 3, 5, 7, 8, 10, 16, 25, 63, 64, 100, 127, 128, 255, 641, 1000, 4096, 65535, 65536, 1000003, 2**31 - 1)
_WORD = (1 << 64) - 1

Numbers = list[int]  # one of each thread
Step = tuple[str, Callable[[list[Any]], Any], Callable[[list[Numbers]], Numbers], Any]
"""What it is called, what it is on the device and in Python, and the type of its result."""


def wrapped(dtype: Any, number: int) -> int:
    """The number that a type keeps of it. An index has a sign until it divides, is shifted or compared."""
    kept = number & ((1 << dtype.width) - 1)
    return kept - (1 << dtype.width) if dtype.signed and kept >> (dtype.width - 1) else kept


def counted(dtype: Any, x: int) -> int:
    """The number without a sign that an index stands for."""
    return x & _WORD if dtype is fx.Index else x


def quotient(dtype: Any, x: int, y: int) -> int:
    x, y = counted(dtype, x), counted(dtype, y)
    return x // y if y else x


def remainder(dtype: Any, x: int, y: int) -> int:
    x, y = counted(dtype, x), counted(dtype, y)
    return (abs(x) % abs(y) * (-1 if x < 0 else 1)) if y else 0


OPERATORS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, int, int], int]]] = {
    "+": (operator.add, lambda _, x, y: x + y),
    "-": (operator.sub, lambda _, x, y: x - y),
    "*": (operator.mul, lambda _, x, y: x * y),
    "&": (operator.and_, lambda _, x, y: x & y),
    "|": (operator.or_, lambda _, x, y: x | y),
    "^": (operator.xor, lambda _, x, y: x ^ y),
    "//": (operator.floordiv, quotient),
    "%": (operator.mod, remainder),
    "<<": (operator.lshift, lambda dtype, x, y: x << (y & (dtype.width - 1))),
    ">>": (operator.rshift, lambda dtype, x, y: counted(dtype, x) >> (y & (dtype.width - 1))),
}
COMPARISONS = (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge)
UNARY = {"~": operator.invert, "-": operator.neg, "abs": abs}


def common(left: Any, right: Any) -> Any:
    """The type in which two meet: the wider, or the one without a sign, as which an index counts."""
    return max((left, right), key=lambda dtype: (dtype.width, dtype is fx.Index or not dtype.signed))


class Chain:
    """Steps from four numbers of each thread on. `traced` and `values` are the same thing said twice."""

    def __init__(self, seed: int) -> None:
        self.seed, self.random = seed, random.Random(seed)
        pool = self.random.sample(TYPES, self.random.randint(1, 4))
        self.types = [self.random.choice(pool) for _ in range(GIVEN)]
        self.values = [[self._number(dtype) for _ in range(THREADS)] for dtype in self.types]
        self.names: list[str] = []
        self.steps: list[Callable[[list[Any]], Any]] = []
        for _ in range(self.random.randint(3, 12)):
            name, on_device, in_python, dtype = self.random.choice(
                (self._operator, self._operator, self._by_known, self._comparison, self._conversion, self._unary)
            )()
            self.names.append(f"v{len(self.types)} = {name}")
            self.values.append([wrapped(dtype, number) for number in in_python(self.values)])
            self.types.append(dtype)
            self.steps.append(on_device)

    def __str__(self) -> str:
        return f"chain {self.seed}: {[t.__name__ for t in self.types[:GIVEN]]}\n" + "\n".join(self.names)

    def _number(self, dtype: Any) -> int:
        width, choice = dtype.width, self.random.random()
        if choice < 0.25:
            special = (0, 1, -1, 2, 3, 1 << (width - 1), (1 << (width - 1)) - 1, (1 << width) - 1)
            return wrapped(dtype, self.random.choice(special))
        if choice < 0.6:
            return wrapped(dtype, self.random.randrange(-20, 100))
        return wrapped(dtype, self.random.getrandbits(width) >> self.random.randrange(width))

    def _any(self) -> int:
        return self.random.choice(range(len(self.types))[-5:])

    def _operator(self) -> Step:
        a, b, sign = self._any(), self._any(), self.random.choice(list(OPERATORS))
        dtype = common(self.types[a], self.types[b])
        on_device, meaning = OPERATORS[sign]

        def in_python(values: list[Numbers]) -> Numbers:
            pairs = zip(values[a], values[b], strict=True)
            return [meaning(dtype, wrapped(dtype, x), wrapped(dtype, y)) for x, y in pairs]

        return f"v{a} {sign} v{b}", lambda values: on_device(values[a], values[b]), in_python, dtype

    def _by_known(self) -> Step:
        a, sign, number = self._any(), self.random.choice(("*", "//", "%", "<<", ">>")), self.random.choice(KNOWN)
        dtype = common(self.types[a], fx.Int32)
        if sign in ("<<", ">>"):
            number %= dtype.width
        elif dtype.signed and dtype is not fx.Index and self.random.random() < 0.3:
            number = -number
        on_device, meaning = OPERATORS[sign]

        def in_python(values: list[Numbers]) -> Numbers:
            return [meaning(dtype, wrapped(dtype, x), number) for x in values[a]]

        return f"v{a} {sign} {number}", lambda values: on_device(values[a], number), in_python, dtype

    def _comparison(self) -> Step:
        a, b, compare = self._any(), self._any(), self.random.choice(COMPARISONS)
        dtype = common(self.types[a], self.types[b])
        c = self.random.choice([i for i, other in enumerate(self.types) if other is self.types[a]])

        def in_python(values: list[Numbers]) -> Numbers:
            rows = zip(values[a], values[b], values[c], strict=True)
            return [
                x if compare(*(counted(dtype, wrapped(dtype, number)) for number in (x, y))) else z for x, y, z in rows
            ]

        def on_device(values: list[Any]) -> Any:
            return compare(values[a], values[b]).select(values[a], values[c])

        return f"v{a} if v{a} {compare.__name__} v{b} else v{c}", on_device, in_python, self.types[a]

    def _conversion(self) -> Step:
        a, dtype = self._any(), self.random.choice(TYPES)
        return f"v{a}.to({dtype.__name__})", lambda values: values[a].to(dtype), lambda values: values[a], dtype

    def _unary(self) -> Step:
        a, name = self._any(), self.random.choice(list(UNARY))
        function = UNARY[name]
        return (
            f"{name} v{a}", lambda values: function(values[a]), lambda values: [function(x) for x in values[a]],
            self.types[a],
        )  # fmt: skip

    def given(self) -> torch.Tensor:
        """The lower and the upper words of each thread's first numbers."""
        words = [[halves(number) for number in row] for row in self.values[:GIVEN]]
        return torch.tensor(words, dtype=torch.int64)

    def traced(self, word: Callable[[int, int], Any]) -> list[Any]:
        """Lower and upper words of all values. word: a given number's, by the number of the value, and 0 or 1."""
        values = []
        for i, dtype in enumerate(self.types[:GIVEN]):
            both = word(i, 1).to(fx.Uint128) << 64 | word(i, 0).to(fx.Uint64).to(fx.Uint128)
            values.append(both.to(dtype) if dtype.width == 128 else word(i, 0).to(dtype))
        for step, dtype in zip(self.steps, self.types[GIVEN:], strict=True):
            values.append(step(values))
            assert values[-1].dtype is dtype
        return [half for value in values for half in words_of(value)]


def halves(number: int) -> list[int]:
    """A number's lower and upper 64 bits, with signs."""
    return [wrapped(fx.Int64, number), wrapped(fx.Int64, number >> 64)]


def words_of(value: Any) -> tuple[Any, Any]:
    """`halves`, on the device."""
    value = value.to(fx.Int64) if value.dtype is fx.Index else value
    wide = value.to(fx.Int128 if value.dtype.signed else fx.Uint128)
    return wide.to(fx.Int64), (wide.to(fx.Uint128) >> 64).to(fx.Int64)


def launch(chains: list[Chain]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """What kernels make of all threads' numbers, and launchers of the first one's: (value, half, thread)."""
    by_kernel = [torch.zeros(len(chain.types), 2, THREADS, dtype=torch.int64) for chain in chains]
    by_launcher = [torch.zeros(len(chain.types), 2, dtype=torch.int64) for chain in chains]

    @flyc.kernel
    def compute(given: list[fx.Tensor], out: list[fx.Tensor]):
        t = fx.thread_idx.x
        for chain, x, y in zip(chains, given, out, strict=True):
            for n, word in enumerate(chain.traced(lambda i, half, x=x: x[i, t, half])):
                y[n // 2, n % 2, t] = word

    @flyc.kernel
    def store(out: fx.Tensor, words: list[fx.Int64]):
        for n, word in enumerate(words):
            out[n // 2, n % 2] = word

    @flyc.jit
    def run_all(given: list[fx.Tensor], out: list[fx.Tensor], first: list[list[fx.Int64]], hosts: list[fx.Tensor]):
        compute(given, out).launch(grid=1, block=THREADS)
        for chain, words, y in zip(chains, first, hosts, strict=True):
            if not divides_wide(chain):  # which a launcher refuses
                store(y, chain.traced(lambda i, half, words=words: words[2 * i + half])).launch(grid=1, block=1)

    first = [chain.given()[:, 0].flatten().tolist() for chain in chains]
    run_all([chain.given() for chain in chains], by_kernel, first, by_launcher)
    return by_kernel, by_launcher


def divides_wide(chain: Chain) -> bool:
    return any(dtype.width > 64 for dtype in chain.types) and any("//" in name or "%" in name for name in chain.names)


def check(chains: list[Chain]) -> None:
    """AssertionError for the first value that differs."""
    try:
        by_kernel, by_launcher = launch(chains)
    except FlyError as error:
        raise AssertionError("\n".join(map(str, chains)) + f"\n{error}") from error
    for chain, of_kernel, of_launcher in zip(chains, by_kernel, by_launcher, strict=True):
        for n, numbers in enumerate(chain.values):
            expected = [halves(number) for number in numbers]
            got = of_kernel[n].T.tolist()
            wrong = [pair for pair in zip(got, expected, strict=True) if pair[0] != pair[1]]
            assert not wrong, f"{chain}\nv{n} is {wrong[0][0]}, not {wrong[0][1]}"
            if not divides_wide(chain):
                assert of_launcher[n].tolist() == expected[0], f"{chain}\nv{n} of a launcher: {of_launcher[n].tolist()}"


def run(seed: int, count: int) -> None:
    """Check `count` chains."""
    chosen, findings = random.Random(seed), []
    for number, first in enumerate(range(0, count, TOGETHER)):
        chains = [Chain(chosen.randrange(1 << 32)) for _ in range(min(TOGETHER, count - first))]
        settings = {"FLYDSL_COMPILE_OPT_LEVEL": str(number % 4), "FLYDSL_GPU_ARCH": ARCHS[number % len(ARCHS)].name,
                    "FLYDSL_SIMULATOR_BACKEND": chosen.choice(("native", "lockstep"))}  # fmt: skip
        with mock.patch.dict(os.environ, settings):
            try:
                check(chains)
            except AssertionError as finding:
                findings.append(f"{settings}\n{finding}")
    assert not findings, "\n\n".join(findings)
