"""Copies and updates that are more than a load and a store: into LDS past the registers, transposing, atomic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from mlir import ir

from flydsl.dialect.location import trace_error
from flydsl.interpreter.elements import Array, element_name, rounded, size_bytes
from flydsl.interpreter.execution import Execution
from flydsl.interpreter.meanings.access import load, store
from flydsl.interpreter.meanings.arith import unsigned, wrapped
from flydsl.interpreter.memory import Pointer

# --- into LDS --------------------------------------------------------------------------------------------------------


def to_lds(x: Execution, source: Pointer, target: Pointer, size: int) -> None:
    """Bring `size` bytes of each lane into LDS: lane i's lie i * size bytes past the first active lane's target."""
    data = source.space.load(source.address, size, x.mask, x.fault)
    start = of_first_lanes(x, target.address)
    lane = np.arange(x.lanes) % x.wave_size
    x.stores += 1
    target.space.store(start + lane * size, data, x.mask, x.fault)


def of_first_lanes(x: Execution, value: Array) -> Array:
    """The value of the first active lane of each wave, in all its lanes."""
    if len(value) == 1:
        return value
    waves, active = x.by_waves(value), x.by_waves(x.mask)
    first = waves[np.arange(len(waves)), active.argmax(axis=1)]
    return x.by_lanes(np.repeat(first[:, None], x.wave_size, axis=1))


# --- transposing -----------------------------------------------------------------------------------------------------


def transposed(x: Execution, pointer: Pointer, threads: int, kind: ir.Type) -> Array:
    """Each lane's share of the values that `threads` lanes read: number t + v * threads is thread t's value v."""
    values = x.spread(load(x, pointer, kind))
    count = values.shape[1]
    groups = x.by_waves(values).reshape(-1, threads * count)
    place = np.arange(threads)[:, None] + np.arange(count) * threads
    return x.by_lanes(groups[:, place].reshape(-1, x.wave_size, count))


def transposed_of_eight(x: Execution, pointer: Pointer, kind: ir.Type) -> Array:
    """The same of gfx1250's reads of 8 values: lanes exchange among eight, element i comes from the i-th of them."""
    values = x.spread(load(x, pointer, kind))
    groups = x.by_waves(values).reshape(-1, 8, 8)
    return x.by_lanes(groups.transpose(0, 2, 1).reshape(-1, x.wave_size, 8))


# --- atomics ---------------------------------------------------------------------------------------------------------


def _wrapping_up(old: Array, value: Array) -> Array:
    return np.where(old >= value, np.zeros(1, old.dtype), old + np.ones(1, old.dtype))


def _wrapping_down(old: Array, value: Array) -> Array:
    return np.where((old == 0) | (old > value), value, old - np.ones(1, old.dtype))


_COMBINE: dict[str, Callable[[Array, Array], Array]] = {
    "xchg": lambda old, value: value, "add": np.add, "sub": np.subtract, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "max": np.fmax, "min": np.fmin, "smax": np.maximum, "smin": np.minimum,
    "fadd": np.add, "fsub": np.subtract, "fmax": np.fmax, "fmin": np.fmin,
}  # fmt: skip
_UNSIGNED: dict[str, Callable[[Array, Array], Array]] = {
    "umax": np.maximum, "umin": np.minimum, "inc": _wrapping_up, "dec": _wrapping_down,
}  # fmt: skip


def update(x: Execution, operation: str, value: Array, kind: ir.Type, pointer: Pointer) -> Array:
    """Combine memory with a value of each active lane, one lane after the other. Returns what was there before.

    operation: add, fadd, and, or, xor, xchg, max, smax, umax, ..., inc, dec. kind: of the value.
    """
    element = element_name(kind)
    if operation in _UNSIGNED:

        def combine(old: Array, new: Array) -> Array:
            return wrapped(_UNSIGNED[operation](unsigned(old, element), unsigned(new, element)), element)

    elif operation in _COMBINE:

        def combine(old: Array, new: Array) -> Array:
            return rounded(_COMBINE[operation](old, new), element)

    else:
        raise trace_error(f"the interpreter has no atomic {operation}", "run the kernel compiled")
    return one_by_one(x, lambda old, lane: combine(old, _of_lane(value, lane)), kind, pointer)


def compare_and_swap(x: Execution, expected: Array, new: Array, kind: ir.Type, pointer: Pointer) -> tuple[Array, Array]:
    """Write a value where memory holds an expected one. Returns what was there, and whether it was as expected."""
    old = one_by_one(
        x,
        lambda held, lane: np.where(held == _of_lane(expected, lane), _of_lane(new, lane), held),
        kind,
        pointer,
    )
    return old, old == expected


def _of_lane(value: Array, lane: int | None) -> Array:
    return value if lane is None or len(value) == 1 else value[lane : lane + 1]


def one_by_one(x: Execution, new: Callable[[Array, Any], Array], kind: ir.Type, pointer: Pointer) -> Array:
    """Replace what memory holds in each active lane. new: its value, from the old one and a lane, or None for all."""
    lanes = np.flatnonzero(x.mask)
    addresses = np.broadcast_to(pointer.address, (x.lanes,))[lanes]
    if len(np.unique(addresses // size_bytes(kind))) == len(lanes):
        old = load(x, pointer, kind)
        made = new(old, None)
        if not np.array_equal(made, old):
            store(x, made, kind, pointer)
        return old
    found = np.zeros_like(x.spread(load(x, pointer, kind)))
    for lane in lanes:
        only = np.zeros(x.lanes, np.bool_)
        only[lane] = True
        with x.only(only):
            held = x.spread(load(x, pointer, kind))[lane : lane + 1]
            found[lane] = held[0]
            store(x, x.spread_one(new(held, int(lane))), kind, pointer)
    return found
