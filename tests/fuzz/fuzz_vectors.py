"""Vectors of all widths and types: made of numbers, converted, cut, shuffled, reduced, and sent through memory.

Memory is registers that are indexed at run time, or LDS that is written as one type and read as another, by this
thread or by another one. The threads compute what NumPy computes, on each GPU, at every opt level, in both backends.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import flydsl.expr as fx
from flydsl.simulator.arrays import Array
from tests.fuzz.thread_programs import DTYPES, Program, Step, run_programs, shared, tamed, tamed_on_device

INTEGERS = [kind for kind in DTYPES if not kind.is_float]
COUNTS = (1, 2, 3, 4, 8)
MOST_BYTES = 32  # of a vector


@dataclass(frozen=True)
class Shape:
    """What a vector is."""

    kind: Any
    count: int

    @property
    def bytes(self) -> int:
        return self.count * self.kind.width // 8


@dataclass(frozen=True)
class Operation:
    """From a vector to the next, said twice. traced: of the vector, a number of the thread, and the thread."""

    text: str
    shape: Shape
    traced: Callable[[Any, Any, Any], Any]
    computed: Callable[[Array, Array, Array], Array]

    def __repr__(self) -> str:
        return self.text


Maker = Callable[[random.Random, Shape], "Operation | None"]


def conversion(numbers: random.Random, shape: Shape) -> Operation:
    """Of floats, which are small whole numbers, through an Int32: of what is negative NumPy makes no Uint8."""
    kind = numbers.choice([fx.Int32, fx.Int64, fx.Float32, fx.Float16] if shape.kind.is_float else INTEGERS)
    return Operation(f"to {kind}", Shape(kind, shape.count), lambda v, n, t: v.to(kind),
                     lambda v, n, t: v.astype(DTYPES[kind]))  # fmt: skip


def other_bits(numbers: random.Random, shape: Shape) -> Operation | None:
    kinds = [k for k in INTEGERS if shape.bytes * 8 % k.width == 0]
    if not kinds:
        return None
    kind = numbers.choice(kinds)
    new = Shape(kind, shape.bytes * 8 // kind.width)
    return Operation(f"bits of {kind}", new, lambda v, n, t: v.bitcast(kind),
                     lambda v, n, t: np.ascontiguousarray(v).view(DTYPES[kind]))  # fmt: skip


def arithmetic(numbers: random.Random, shape: Shape) -> Operation:
    """With a Python number, the vector itself, or a number of the thread."""
    names = ("add", "sub", "max") if shape.kind.is_float else ("add", "sub", "mul", "max", "and", "xor")
    name, with_what, known = numbers.choice(names), numbers.choice(("known", "itself", "number")), numbers.randrange(5)
    kind, dtype = shape.kind, DTYPES[shape.kind]

    def apply(functions: dict[str, Any], v: Any, other: Any) -> Any:
        return functions[name](v, other)

    on_device = {"add": operator.add, "sub": operator.sub, "mul": operator.mul,
                 "max": lambda a, b: (a > b).select(a, b), "and": operator.and_, "xor": operator.xor}  # fmt: skip
    in_numpy = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum, "and": np.bitwise_and,
                "xor": np.bitwise_xor}  # fmt: skip

    def traced(v: Any, n: Any, t: Any) -> Any:
        other = {"known": lambda: fx.full_like(v, known), "itself": lambda: v.shuffle(v, range(shape.count)[::-1]),
                 "number": lambda: fx.full_like(v, tamed_on_device(n, kind))}[with_what]()  # fmt: skip
        return apply(on_device, v, other).to(kind)

    def computed(v: Array, n: Array, t: Array) -> Array:
        other = {"known": lambda: np.full_like(v, known), "itself": lambda: v[:, ::-1],
                 "number": lambda: tamed(n, dtype)[:, None] + np.zeros_like(v)}[with_what]()  # fmt: skip
        return apply(in_numpy, v, other).astype(dtype)

    return Operation(f"{name} {with_what} {known}", shape, traced, computed)


def shuffle(numbers: random.Random, shape: Shape) -> Operation:
    count = numbers.choice([c for c in COUNTS if c * shape.kind.width // 8 <= MOST_BYTES])
    order = [numbers.randrange(2 * shape.count) for _ in range(count)]

    def computed(v: Array, n: Array, t: Array) -> Array:
        return np.concatenate([v, v[:, ::-1]], axis=1)[:, order]

    def traced(v: Any, n: Any, t: Any) -> Any:
        return v.shuffle(v.shuffle(v, range(shape.count)[::-1]), order)

    return Operation(f"shuffle {order}", Shape(shape.kind, count), traced, computed)


def part(numbers: random.Random, shape: Shape) -> Operation | None:
    if shape.count < 2:
        return None
    start = numbers.randrange(shape.count - 1)
    stop, step = numbers.randint(start + 1, shape.count), numbers.choice((1, 1, 2))
    count = len(range(start, stop, step))
    return Operation(f"[{start}:{stop}:{step}]", Shape(shape.kind, count), lambda v, n, t: v[start:stop:step],
                     lambda v, n, t: v[:, start:stop:step])  # fmt: skip


def reduction(numbers: random.Random, shape: Shape) -> Operation:
    name = numbers.choice(("add", "max", "min") if shape.kind.is_float else ("add", "max", "min", "and", "or", "xor"))
    function = {"add": np.add, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or,
                "xor": np.bitwise_xor}[name]  # fmt: skip
    kind = shape.kind
    return Operation(f"reduce {name}", Shape(kind, 1),
                     lambda v, n, t: fx.Vector.from_elements([kind(v.reduce(name))], kind),
                     lambda v, n, t: function.reduce(v, axis=1, keepdims=True, dtype=v.dtype))  # fmt: skip


def through_registers(numbers: random.Random, shape: Shape) -> Operation:
    """Write a number at a place that is known at run time only, where it is masked to be inside."""
    inside = (1 << shape.count.bit_length() - 1) - 1
    kind = shape.kind

    def traced(v: Any, n: Any, t: Any) -> Any:
        held = fx.make_rmem_tensor(shape.count, kind)
        held.store(v)
        held[n & inside] = tamed_on_device(t, kind)
        return held.load()

    def computed(v: Array, n: Array, t: Array) -> Array:
        made = v.copy()
        made[t, n & inside] = tamed(t, v.dtype)
        return made

    return Operation("through registers", shape, traced, computed)


def through_lds(numbers: random.Random, shape: Shape, threads: int) -> Operation | None:
    """Written as one type, read as another, by the thread whose number differs in some bits."""
    kinds = [k for k in INTEGERS if shape.bytes * 8 % k.width == 0]
    if not kinds:
        return None
    kind, flipped = numbers.choice(kinds), numbers.randrange(threads)
    new = Shape(kind, shape.bytes * 8 // kind.width)

    def traced(v: Any, n: Any, t: Any) -> Any:
        memory = shared(shape.kind, threads * shape.count)
        fx.ptr_store(v, memory + t * shape.count)
        fx.barrier()
        other = fx.recast_iter(kind, memory) + (t ^ flipped) * new.count
        made = fx.ptr_load(other, result_type=fx.T.vec(new.count, kind.ir_type))
        fx.barrier()
        return fx.Vector(made.ir_value(), dtype=kind)

    def computed(v: Array, n: Array, t: Array) -> Array:
        return np.ascontiguousarray(v).view(DTYPES[kind])[t ^ flipped]

    return Operation(f"through LDS as {kind}, ^ {flipped}", new, traced, computed)


@dataclass
class Kneaded:
    """An element of a vector that some operations have been done to."""

    target: int
    sources: list[int]
    kind: Any
    operations: list[Operation]

    def traced(self, values: list[Any], thread: Any, room: Any) -> Any:
        vector = fx.Vector.from_elements([tamed_on_device(values[i], self.kind) for i in self.sources], self.kind)
        for operation in self.operations:
            vector = operation.traced(vector, values[0], thread)
        return vector[values[0] & self._inside()]

    def computed(self, values: list[Array]) -> Array:
        t = np.arange(len(values[0]))
        vector = np.stack([tamed(values[i], DTYPES[self.kind]) for i in self.sources], axis=1)
        for operation in self.operations:
            vector = operation.computed(vector, values[0], t)
        return vector[t, values[0] & self._inside()]

    def _inside(self) -> int:
        count = self.operations[-1].shape.count
        return (1 << count.bit_length() - 1) - 1


def a_vector(numbers: random.Random, program: Program) -> Step:
    kind = numbers.choice(list(DTYPES))
    count = numbers.choice([c for c in COUNTS if c * kind.width // 8 <= MOST_BYTES])
    makers: tuple[Maker, ...] = (
        conversion, other_bits, arithmetic, arithmetic, shuffle, part, reduction, through_registers,
        lambda numbers, shape: through_lds(numbers, shape, program.threads),
    )  # fmt: skip
    shape, operations = Shape(kind, count), []
    for _ in range(numbers.randint(2, 5)):
        made = numbers.choice(makers)(numbers, shape)
        if made is not None and made.shape.bytes <= MOST_BYTES:
            operations.append(made)
            shape = made.shape
    operations.append(shuffle(numbers, shape))
    return Kneaded(numbers.randrange(4), [numbers.randrange(4) for _ in range(count)], kind, operations)


def run(seed: int, count: int) -> None:
    """Check `count` programs."""
    run_programs(lambda one, arch: Program(one, arch, (a_vector,), (64, 128)), seed, count)
