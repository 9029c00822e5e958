"""The meaning of `vector`: elements of each lane's vector are the further axes of an array."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
from mlir import ir

from flydsl.dialect.elements import FLOAT_BITS
from flydsl.interpreter.elements import Array, element_name, rounded, shape_of
from flydsl.interpreter.execution import Execution, means
from flydsl.interpreter.meanings.arith import unsigned, wrapped


def _together(*values: Array) -> tuple[Array, ...]:
    """Values with as many lanes each."""
    lanes = max(len(value) for value in values)
    return tuple(np.broadcast_to(value, (lanes, *value.shape[1:])) for value in values)


@means("vector.broadcast", "vector.splat")
def _broadcast(x: Execution, op: ir.Operation, value: Array) -> Array:
    shape = shape_of(op.result.type)
    missing = len(shape) - (value.ndim - 1)
    return np.broadcast_to(value.reshape(len(value), *[1] * missing, *value.shape[1:]), (len(value), *shape))


@means("vector.from_elements")
def _from_elements(x: Execution, op: ir.Operation, *elements: Array) -> Array:
    return np.stack(_together(*elements), axis=1).reshape(-1, *shape_of(op.result.type))


@means("vector.to_elements")
def _to_elements(x: Execution, op: ir.Operation, value: Array) -> Any:
    flat = value.reshape(len(value), -1)
    found = [flat[:, i] for i in range(flat.shape[1])]
    return found[0] if len(found) == 1 else found


def _position(op: ir.Operation, dynamic: tuple[Array, ...]) -> list[Any]:
    """An element's position: integers, and arrays of lanes."""
    given = iter(dynamic)
    unknown = ir.ShapedType.get_dynamic_size()
    return [next(given) if number == unknown else number for number in op.attributes["static_position"]]


@means("vector.extract")
def _extract(x: Execution, op: ir.Operation, value: Array, *dynamic: Array) -> Array:
    position = _position(op, dynamic)
    if not dynamic:
        index = slice(None), *position
        return value[index]
    (value, *numbers) = _together(value, *(np.atleast_1d(number) for number in position))
    places = [np.clip(n, 0, extent - 1) for n, extent in zip(numbers, value.shape[1:], strict=False)]
    index = np.arange(len(value)), *places
    return value[index]


@means("vector.insert")
def _insert(x: Execution, op: ir.Operation, element: Array, value: Array, *dynamic: Array) -> Array:
    position = _position(op, dynamic)
    (value, element, *numbers) = _together(value, element, *(np.atleast_1d(number) for number in position))
    places = [np.clip(n, 0, extent - 1) for n, extent in zip(numbers, value.shape[1:], strict=False)]
    made = value.copy()
    index = np.arange(len(value)), *places
    made[index] = element
    return made


@means("vector.shuffle")
def _shuffle(x: Execution, op: ir.Operation, first: Array, second: Array) -> Array:
    both = np.concatenate(_together(first, second), axis=1)
    return both[:, np.maximum(list(op.attributes["mask"]), 0)]


@means("vector.shape_cast")
def _shape_cast(x: Execution, op: ir.Operation, value: Array) -> Array:
    return value.reshape(len(value), *shape_of(op.result.type))


@means("vector.extract_strided_slice")
def _extract_slice(x: Execution, op: ir.Operation, value: Array) -> Array:
    offsets, sizes, strides = (_numbers(op.attributes[name]) for name in ("offsets", "sizes", "strides"))
    parts = [slice(o, o + n * s, s) for o, n, s in zip(offsets, sizes, strides, strict=True)]
    index = slice(None), *parts
    return value[index]


@means("vector.insert_strided_slice")
def _insert_slice(x: Execution, op: ir.Operation, part: Array, value: Array) -> Array:
    offsets, strides = (_numbers(op.attributes[name]) for name in ("offsets", "strides"))
    part, value = _together(part, value)
    made = value.copy()
    shape = part.shape[1:]
    lead = len(offsets) - len(strides)
    starts = [slice(o, o + 1) for o in offsets[:lead]]
    rest = [slice(o, o + n * s, s) for o, n, s in zip(offsets[lead:], shape, strides, strict=True)]
    index = slice(None), *starts, *rest
    made[index] = part.reshape(len(part), *[1] * lead, *shape)
    return made


def _numbers(attribute: ir.Attribute) -> list[int]:
    return [int(getattr(item, "value", item)) for item in attribute]


@means("vector.transpose")
def _transpose(x: Execution, op: ir.Operation, value: Array) -> Array:
    order = _numbers(op.attributes["permutation"])
    return value.transpose(0, *[1 + mode for mode in order])


_COMBINE = {
    "add": np.add, "mul": np.multiply, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "minsi": np.minimum, "maxsi": np.maximum, "minui": np.minimum, "maxui": np.maximum, "minnumf": np.fmin,
    "maxnumf": np.fmax, "minimumf": np.minimum, "maximumf": np.maximum,
}  # fmt: skip


@means("vector.reduction")
def _reduction(x: Execution, op: ir.Operation, value: Array, *start: Array) -> Array:
    """One element after another, rounded each time."""
    name = str(op.attributes["kind"]).rpartition("<")[2].removesuffix(">")
    element, combine = element_name(op.result.type), _COMBINE[name]
    parts = [*start, *(value[:, i] for i in range(value.shape[1]))]
    if name.endswith("ui"):
        return wrapped(reduce(combine, [unsigned(part, element) for part in parts]), element)
    if element in FLOAT_BITS:
        return reduce(lambda a, b: rounded(combine(a, b), element), parts)
    return wrapped(reduce(combine, [part.astype(np.int64) if element == "i1" else part for part in parts]), element)
