"""Chains of operations on floats of every width compute what exact arithmetic, rounded once, says.

Numbers of every exponent, denormals, infinities, NaNs, zeros of both signs, and numbers that nearly cancel; in some
chains only zeros and ones of both signs, for the signs of zeros. Scalars and vectors, of which the lengths are odd,
too. Each chain is computed by a kernel, for 64 threads, and by a launcher, for the first thread's numbers. GPUs, opt
levels and backends take turns. Of NaNs it is only compared that they are some.
"""

from __future__ import annotations

import math
import operator
import os
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import FlyError
from flydsl.simulator.arrays import Array
from tests.fuzz.archs import ARCHS

THREADS = 64
TOGETHER = 5  # chains that are compiled as one module
GIVEN = 4
# Bits of the fraction, and the exponent of the smallest normal number.
FORMATS = {fx.Float16: (10, -14), fx.BFloat16: (7, -126), fx.Float32: (23, -126), fx.Float64: (52, -1022)}
SPECIAL = (
    0.0,
    -0.0,
    math.inf,
    -math.inf,
    math.nan,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    3.0,
    0.1,
    2.0**31,
    -(2.0**31),
)
ZEROS = (0.0, -0.0)
INTEGERS = {fx.Int32: 1 << 31, fx.Int64: 1 << 63}

Values = list[Array]
Step = tuple[str, Callable[[list[Any]], Any], Callable[[Values], Array], Any]
"""What it is called, what it is on the device and in Python, and the type of its result."""


def rounded(kind: Any, exact: Fraction) -> float:
    """The nearest number of a format, halves to even. exact: not zero."""
    fraction, smallest = FORMATS[kind]
    exponent = abs(exact).numerator.bit_length() - exact.denominator.bit_length()
    exponent -= abs(exact) < Fraction(2) ** exponent
    unit = Fraction(2) ** (max(exponent, smallest) - fraction)
    nearest = round(exact / unit) * unit
    largest = (2 - Fraction(2) ** -fraction) * Fraction(2) ** (1 - smallest)
    return math.copysign(float(abs(nearest)) if abs(nearest) <= largest else math.inf, 1 if exact > 0 else -1)


def as_kind(kind: Any, numbers: Any) -> Array:
    """Numbers of a format, as f64."""
    numbers = np.asarray(numbers, np.float64)
    if kind is fx.Float64:
        return numbers
    return np.array(
        [x if x == 0 or not math.isfinite(x) else rounded(kind, Fraction(x)) for x in numbers.flat]
    ).reshape(numbers.shape)


def one(function: Callable[[float], float]) -> Callable[[Array], Array]:
    return lambda x: np.vectorize(lambda value: function(value) if math.isfinite(value) and value else value, [float])(
        x
    )


def half_away(x: float) -> float:
    return math.copysign(float(math.floor(abs(Fraction(x)) + Fraction(1, 2))), x)


def larger(x: Array, y: Array) -> Array:
    """A NaN if one is; +0 is larger than -0."""
    kept = np.where((x > y) | ((x == y) & ~np.signbit(x)), x, y)
    return np.where(np.isnan(x) | np.isnan(y), np.nan, kept)


def number_of(x: Array, y: Array, choose: Callable[[Array, Array], Array]) -> Array:
    """The other one if one is a NaN."""
    return np.where(np.isnan(x), y, np.where(np.isnan(y), x, choose(x, y)))


def smaller(x: Array, y: Array) -> Array:
    return -larger(-x, -y)


def multiplied_and_added(kind: Any, x: Array, y: Array, z: Array) -> Array:
    def each(a: float, b: float, c: float) -> float:
        if not (math.isfinite(a) and math.isfinite(b)):
            return a * b + c
        if not math.isfinite(c):
            return c
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        if exact:
            return rounded(kind, exact)
        return 0.0 if a and b else math.copysign(1, a) * math.copysign(0, b) + c

    return np.vectorize(each, [float])(x, y, z)


def like(value: Any, number: float) -> Any:
    """A known number beside a value of the device."""
    return fx.full_like(value, number) if isinstance(value, fx.Vector) else value.dtype(number)


# The sign of maxnum's zero is left open, as is that of a NaN.
BINARY: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Array, Array], Array]]] = {
    "+": (operator.add, lambda k, x, y: as_kind(k, x + y)),
    "-": (operator.sub, lambda k, x, y: as_kind(k, x - y)),
    "*": (operator.mul, lambda k, x, y: as_kind(k, x * y)),
    "/": (operator.truediv, lambda k, x, y: as_kind(k, x / y)),
    "//": (operator.floordiv, lambda k, x, y: np.floor(as_kind(k, x / y))),
    "%": (operator.mod, lambda k, x, y: np.fmod(x, y)),
    "max": (lambda x, y: fx.max(x, y), lambda k, x, y: larger(x, y)),
    "min": (lambda x, y: fx.min(x, y), lambda k, x, y: smaller(x, y)),
    "maxnum": (lambda x, y: fx.arith.maxnumf(x, y) + like(x, 0.0), lambda k, x, y: number_of(x, y, larger) + 0.0),
    "minnum": (lambda x, y: fx.arith.minnumf(x, y) + like(x, 0.0), lambda k, x, y: number_of(x, y, smaller) + 0.0),
    "copysign": (
        lambda x, y: fx.copysign(x, fx.isnan(y).select(like(y, 1.0), y)),
        lambda k, x, y: np.copysign(x, np.where(np.isnan(y), 1, y)),
    ),
}
UNARY: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Array], Array]]] = {
    "-": (operator.neg, lambda k, x: -x),
    "abs": (abs, lambda k, x: np.abs(x)),
    "sqrt": (fx.sqrt, lambda k, x: as_kind(k, np.sqrt(x))),
    "floor": (fx.floor, lambda k, x: np.floor(x)),
    "ceil": (fx.ceil, lambda k, x: np.ceil(x)),
    "trunc": (fx.trunc, lambda k, x: np.trunc(x)),
    "round": (fx.round, lambda k, x: one(half_away)(x)),
    "roundeven": (fx.roundeven, lambda k, x: np.rint(x)),
}
COMPARISONS = (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge)
QUESTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Array], Any]]] = {
    "isnan": (fx.isnan, lambda k, x: np.isnan(x)),
    "isinf": (fx.isinf, lambda k, x: np.isinf(x)),
    "isfinite": (fx.isfinite, lambda k, x: np.isfinite(x)),
    "isnormal": (fx.isnormal, lambda k, x: np.isfinite(x) & (np.abs(x) >= 2.0 ** FORMATS[k][1])),
}


class Chain:
    """Steps from some numbers of each thread on. `traced` and `values` are the same thing said twice.

    length: of vectors, or 0 for scalars.
    """

    def __init__(self, seed: int) -> None:
        self.seed, self.random = seed, random.Random(seed)
        self.length = self.random.choice((0, 0, 0, 1, 2, 3, 4, 5))
        self.is_of_zeros = self.random.random() < 0.3
        pool = self.random.sample(list(FORMATS), self.random.randint(1, 3))
        self.types = [self.random.choice(pool) for _ in range(GIVEN)]
        self.values: Values = []
        for kind in self.types:
            self.values.append(self._numbers(kind))
        self.names: list[str] = []
        self.steps: list[Callable[[list[Any]], Any]] = []
        for _ in range(self.random.randint(3, 9)):
            makers = (self._binary, self._binary, self._binary, self._by_known, self._unary, self._fma, self._chosen,
                      self._bounded, self._asked, self._conversion, self._through_integers)  # fmt: skip
            name, on_device, in_python, kind = self.random.choice(makers)()
            self.names.append(f"v{len(self.types)} = {name} [{kind.__name__}]")
            with np.errstate(all="ignore"):
                self.values.append(in_python(self.values))
            self.types.append(kind)
            self.steps.append(on_device)

    def __str__(self) -> str:
        of = f"vectors of {self.length}" if self.length else "scalars"
        return f"chain {self.seed}: {of} {[t.__name__ for t in self.types[:GIVEN]]}\n" + "\n".join(self.names)

    def _numbers(self, kind: Any) -> Array:
        count = THREADS * max(self.length, 1)
        before = self.values[-1].ravel() if self.values else np.zeros(count)
        return as_kind(kind, [self._number(kind, float(x)) for x in before]).reshape(THREADS, -1)

    def _number(self, kind: Any, other: float) -> float:
        """other: the same thread's number of another value, which it may nearly cancel."""
        if self.is_of_zeros:
            return self.random.choice((*ZEROS, 1.0, -1.0))
        choice, (fraction, smallest) = self.random.random(), FORMATS[kind]
        if choice < 0.3:
            tiny, normal, largest = 2.0 ** (smallest - fraction), 2.0**smallest, (2 - 2.0**-fraction) * 2.0**-smallest
            return self.random.choice((*SPECIAL, tiny, normal, 2 * largest))
        if choice < 0.45 and math.isfinite(other):
            return self.random.choice((1, -1)) * other * (1 + self.random.choice((0, 1, -1, 3)) * 2.0**-fraction)
        if choice < 0.7:
            return self.random.uniform(-1, 1) * self.random.choice((1, 10, 1000))
        mantissa, exponent = 1 + self.random.getrandbits(fraction) / 2**fraction, smallest - fraction
        return self.random.choice((1, -1)) * math.ldexp(mantissa, self.random.randint(exponent, 1 - smallest))

    def _any(self) -> int:
        return self.random.choice(range(len(self.types))[-5:])

    def _alike(self, a: int) -> int:
        return self.random.choice([i for i, kind in enumerate(self.types) if kind is self.types[a]])

    def _binary(self) -> Step:
        a, sign = self._any(), self.random.choice(list(BINARY))
        b, kind, (on_device, meaning) = self._alike(a), self.types[a], BINARY[sign]
        return (f"v{a} {sign} v{b}", lambda values: on_device(values[a], values[b]),
                lambda values: meaning(kind, values[a], values[b]), kind)  # fmt: skip

    def _by_known(self) -> Step:
        """With a number that is known at compile time, on either side."""
        a, sign = self._any(), self.random.choice(list(BINARY))
        kind, (on_device, meaning) = self.types[a], BINARY[sign]
        number = float(as_kind(kind, [self._number(kind, 1.0)])[0])
        before = self.random.random() < 0.5

        def traced(values: list[Any]) -> Any:
            known = like(values[a], number)
            return on_device(known, values[a]) if before else on_device(values[a], known)

        def in_python(values: Values) -> Array:
            known = np.full_like(values[a], number)
            return meaning(kind, known, values[a]) if before else meaning(kind, values[a], known)

        return f"{number!r} {sign} v{a}" if before else f"v{a} {sign} {number!r}", traced, in_python, kind

    def _unary(self) -> Step:
        a, name = self._any(), self.random.choice(list(UNARY))
        kind, (on_device, meaning) = self.types[a], UNARY[name]
        return f"{name} v{a}", lambda values: on_device(values[a]), lambda values: meaning(kind, values[a]), kind

    def _fma(self) -> Step:
        a = self._any()
        b, c, kind = self._alike(a), self._alike(a), self.types[a]
        exact = fx.Float32 if kind is fx.BFloat16 else kind  # where it is rounded twice

        def in_python(values: Values) -> Array:
            return as_kind(kind, multiplied_and_added(exact, values[a], values[b], values[c]))

        return f"fma(v{a}, v{b}, v{c})", lambda values: fx.fma(values[a], values[b], values[c]), in_python, kind

    def _chosen(self) -> Step:
        a, compare = self._any(), self.random.choice(COMPARISONS)
        b, c, d, kind = self._alike(a), self._alike(a), self._alike(a), self.types[a]
        return (f"v{c} if v{a} {compare.__name__} v{b} else v{d}",
                lambda values: compare(values[a], values[b]).select(values[c], values[d]),
                lambda values: np.where(compare(values[a], values[b]), values[c], values[d]), kind)  # fmt: skip

    def _bounded(self) -> Step:
        """By a zero that is known at compile time."""
        a, compare, known = self._any(), self.random.choice(COMPARISONS), self.random.choices(ZEROS, k=2)
        kind, before = self.types[a], self.random.random() < 0.5

        def in_python(values: Values) -> Array:
            x, bound = values[a], np.full_like(values[a], known[1])
            return np.where(compare(x, known[0]), *((bound, x) if before else (x, bound)))

        def traced(values: list[Any]) -> Any:
            x, bound = values[a], like(values[a], known[1])
            return compare(x, like(x, known[0])).select(*((bound, x) if before else (x, bound)))

        chosen = f"{known[1]!r} if v{a} {compare.__name__} {known[0]!r} else v{a}"
        return chosen if before else f"not so: {chosen}", traced, in_python, kind

    def _asked(self) -> Step:
        a, name = self._any(), self.random.choice(list(QUESTIONS))
        b, kind, (on_device, meaning) = self._alike(a), self.types[a], QUESTIONS[name]
        return (f"v{b} if {name}(v{a}) else -v{b}",
                lambda values: on_device(values[a]).select(values[b], -values[b]),
                lambda values: np.where(meaning(kind, values[a]), values[b], -values[b]), kind)  # fmt: skip

    def _conversion(self) -> Step:
        """Any conversion, but of f64 only one to f32: it may round twice on the way to a narrower float."""
        a = self._any()
        targets = [fx.Float32, fx.Float64] if self.types[a] is fx.Float64 else list(FORMATS)
        kind = self.random.choice(targets)
        return f"v{a}", lambda values: values[a].to(kind), lambda values: as_kind(kind, values[a]), kind

    def _through_integers(self) -> Step:
        """Numbers that the integer holds, and 1 for others."""
        a, integer = self._any(), self.random.choice(list(INTEGERS))
        kind, limit = self.types[a], INTEGERS[integer]
        bound = min(float(limit), float(2.0**15 if kind is fx.Float16 else limit))
        target = self.random.choice((fx.Float32, fx.Float64))

        def traced(values: list[Any]) -> Any:
            x = values[a]
            return (fx.absf(x) < like(x, bound)).select(x, like(x, 1.0)).to(integer).to(target)

        def in_python(values: Values) -> Array:
            whole = [int(x) if abs(x) < bound else 1 for x in values[a].ravel().tolist()]
            numbers = [rounded(target, Fraction(x)) if x else 0.0 for x in whole]
            return np.array(numbers).reshape(values[a].shape)

        return f"v{a} through {integer.__name__}", traced, in_python, target

    def traced(self, given: Callable[[int, int], Any]) -> list[Any]:
        """All elements of all values, as Float64. given: an f64 number by its value and element."""
        values = []
        for i, kind in enumerate(self.types[:GIVEN]):
            elements = [given(i, j).to(kind) for j in range(max(self.length, 1))]
            values.append(fx.Vector.from_elements(elements, kind) if self.length else elements[0])
        for step, kind in zip(self.steps, self.types[GIVEN:], strict=True):
            values.append(step(values))
            assert values[-1].dtype is kind
        wide = [value.to(fx.Float64) for value in values]
        return [value[j] if self.length else value for value in wide for j in range(max(self.length, 1))]


def launch(chains: list[Chain]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """What kernels make of all threads' numbers, and launchers of the first one's: (value and element, thread)."""
    given = [torch.from_numpy(np.stack(chain.values[:GIVEN])) for chain in chains]  # (value, thread, element)
    counts = [len(chain.types) * max(chain.length, 1) for chain in chains]
    by_kernel = [torch.zeros(count, THREADS, dtype=torch.float64) for count in counts]
    by_launcher = [torch.zeros(count, dtype=torch.float64) for count in counts]

    @flyc.kernel
    def compute(given: list[fx.Tensor], out: list[fx.Tensor]):
        t = fx.thread_idx.x
        for chain, x, y in zip(chains, given, out, strict=True):
            for n, number in enumerate(chain.traced(lambda i, j, x=x: x[i, t, j])):
                y[n, t] = number

    @flyc.kernel
    def store(out: fx.Tensor, numbers: list[fx.Float64]):
        for n, number in enumerate(numbers):
            out[n] = number

    @flyc.jit
    def run_all(given: list[fx.Tensor], out: list[fx.Tensor], first: list[list[fx.Float64]], hosts: list[fx.Tensor]):
        compute(given, out).launch(grid=1, block=THREADS)
        for chain, numbers, y in zip(chains, first, hosts, strict=True):
            elements = max(chain.length, 1)
            results = chain.traced(lambda i, j, numbers=numbers, elements=elements: numbers[i * elements + j])
            store(y, results).launch(grid=1, block=1)

    run_all(given, by_kernel, [x[:, 0].flatten().tolist() for x in given], by_launcher)
    return by_kernel, by_launcher


def check(chains: list[Chain]) -> None:
    """AssertionError for the first value that differs."""
    try:
        by_kernel, by_launcher = launch(chains)
    except FlyError as error:
        raise AssertionError("\n".join(map(str, chains)) + f"\n{error}") from error
    for chain, of_kernel, of_launcher in zip(chains, by_kernel, by_launcher, strict=True):
        expected = np.stack(chain.values).transpose(0, 2, 1).reshape(of_kernel.shape)
        for where, got, wanted in (("kernel", of_kernel.numpy(), expected),
                                   ("launcher", of_launcher.numpy(), expected[:, 0])):  # fmt: skip
            same = (got == wanted) & (np.signbit(got) == np.signbit(wanted)) | np.isnan(got) & np.isnan(wanted)
            if not same.all():
                place = tuple(np.argwhere(~same)[0])
                value, element = divmod(int(place[0]), max(chain.length, 1))
                thread = int(place[1]) if len(place) > 1 else 0
                numbers = [float(v[thread, element]) for v in chain.values]
                raise AssertionError(
                    f"{chain}\nv{value} of a {where} is {got[place]!r}, not {wanted[place]!r}, of {numbers}"
                )


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
