"""Texts of values, for people: arrays with the numbers of their lanes, tensors with values and layouts.

A lane that is not active at that point is shown as `·`: its value is never used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from mlir import ir

from flydsl import layout as algebra
from flydsl.dialect.elements import element_type, is_packed, memory_bits
from flydsl.dialect.location import trace_error
from flydsl.errors import FlyError, SimulatorError
from flydsl.interpreter.elements import Array, from_bytes, size_bytes
from flydsl.interpreter.execution import Execution
from flydsl.interpreter.leaves import LaneLeaf, numbers_of
from flydsl.interpreter.meanings.fly import LaneTensor
from flydsl.interpreter.memory import Pointer, RegisterSpace
from flydsl.interpreter.running import execution_of
from flydsl.layout import ComposedLayout, Layout

_ROW = 8
_MOST_LANES = 64
_MOST_ELEMENTS = 1 << 16
_SHOWN_OF_A_VECTOR = 16


class ShownLanes:
    """The interpreter's values: see `flydsl.expr.tracing.executing.Shown`."""

    def text(self, value: ir.Value, name: str) -> str | None:
        """The text of a value; None if nothing has executed it."""
        x = execution_of(value)
        if x is None:
            return None
        held = x.of(value)
        if isinstance(held, LaneTensor):
            return _tensor_text(x, held, name)
        if isinstance(held, Pointer):
            return f"{name} to {held.space.name}, byte address{_text(x, '', held.address)}"
        if isinstance(held, np.ndarray):
            return _text(x, name, held)
        return f"{name} {_of_algebra(x, held)}"

    def truth(self, value: ir.Value) -> bool | None:
        """The truth of a number that is the same in all active lanes; None if nothing has executed it."""
        x = execution_of(value)
        held = None if x is None else x.of(value)
        if x is None or not isinstance(held, np.ndarray):
            return None
        shown = held[_active_lanes(x, held)]
        if len(shown) and not _are_alike(shown):
            raise trace_error(
                f"the condition holds in {np.count_nonzero(shown)} of {len(shown)} active lanes",
                "ask for any or for all of them: (...).lanes.any(), (...).lanes.all()",
            )
        return bool(shown.any())

    def lanes(self, value: ir.Value) -> Any:
        """The array of a value; None if nothing has executed it."""
        x = execution_of(value)
        if x is None:
            return None
        held = x.of(value)
        if isinstance(held, LaneTensor):
            return elements(x, held)
        if isinstance(held, Pointer):
            return held.address
        if isinstance(held, np.ndarray):
            return held
        leaves = [numbers_of(leaf) for leaf in algebra.flatten((held,)) if leaf is not None]
        return np.stack(np.broadcast_arrays(*leaves), axis=-1)


def _text(x: Execution, name: str, held: Array) -> str:
    """A number or vector of each lane: in one line if all active lanes have the same."""
    lanes = _active_lanes(x, held)
    shown = held[lanes] if len(held) > 1 else held
    if len(held) == 1 or (len(lanes) and _are_alike(shown)):
        return f"{name}({of_lane(shown[0])})"
    count = int(x.mask.sum())
    active = "" if count == x.lanes else f", {count} of them active"
    return f"{name} in {x.lanes} lanes{active}\n" + "\n".join(_rows(x, held))


def _are_alike(shown: Array) -> bool:
    return bool(((shown == shown[:1]) | ((shown != shown) & (shown[:1] != shown[:1]))).all())


def _active_lanes(x: Execution, held: Array) -> Array:
    return np.flatnonzero(x.mask) if len(held) > 1 else np.zeros(1, np.int64)


def _rows(x: Execution, held: Array) -> Iterator[str]:
    """The values with the number of the first lane of each row."""
    per_row = _ROW if held.ndim == 1 else 1
    texts = [of_lane(held[lane]) if x.mask[lane] else "·" for lane in range(x.lanes)]
    width = max(map(len, texts))
    starts = list(range(0, x.lanes, per_row))
    most = _MOST_LANES // (1 if per_row > 1 else 4)
    hidden = [start for start in starts if most <= start < x.lanes - per_row] if x.lanes > most + per_row else []
    for start in starts:
        if start in hidden:
            if start == hidden[0]:
                yield f"  ... lanes {start + x.first_lane} to {hidden[-1] + per_row - 1 + x.first_lane}"
            continue
        cells = "  ".join(text.rjust(width) for text in texts[start : start + per_row])
        yield f"  {start + x.first_lane:>4}: {cells}"


def of_lane(number: Any) -> str:
    """A number, or a vector, as people read it."""
    if isinstance(number, np.ndarray) and number.ndim:
        return str(np.array2string(number, precision=5, threshold=_SHOWN_OF_A_VECTOR, separator=", ").replace("\n", ""))
    if isinstance(number, np.bool_ | bool):
        return str(bool(number))
    return f"{number:.6g}" if isinstance(number, np.floating) else str(number)


# --- the algebra and tensors -----------------------------------------------------------------------------------------


def _of_algebra(x: Execution, held: Any) -> str:
    """A layout or tuple. A leaf that differs between lanes is shown as the first lane's, with two dots after it."""
    return str(held) if isinstance(held, Layout | ComposedLayout) else algebra.to_text(held)


def elements(x: Execution, tensor: LaneTensor) -> Array:
    """The elements of a tensor: (lanes, extents of its modes...), with one lane if all have the same tensor.

    Raises SimulatorError if it reaches past the end of its memory, and TraceError for elements that share bytes.
    """
    if is_packed(tensor.kind.element):
        raise trace_error(f"elements of {tensor.kind.element} share bytes", "look at what load() gives")
    extents = [_extent(mode) for mode in _modes(tensor.layout)]
    count = int(np.prod(extents, dtype=np.int64))
    index = algebra.crd2idx(LaneLeaf(np.arange(count), 64), tensor.layout) if count else 0
    kind = element_type(tensor.kind.element)
    step = memory_bits(tensor.kind.element) // 8
    within = np.broadcast_to(numbers_of(index).astype(np.int64) * step, (count,))
    start = tensor.pointer.address + numbers_of(tensor.offset).astype(np.int64) * step
    lanes = x.lanes if isinstance(tensor.pointer.space, RegisterSpace) else len(start)
    rows = [_elements_at(x, tensor, start[lane % len(start)] + within, lane, kind) for lane in range(lanes)]
    return np.stack(rows).reshape(lanes, *reversed(extents)).transpose(0, *range(len(extents), 0, -1))


def _elements_at(x: Execution, tensor: LaneTensor, address: Array, lane: int, kind: ir.Type) -> Array:
    size, space = size_bytes(kind), tensor.pointer.space
    if isinstance(space, RegisterSpace):
        return from_bytes(space.data[lane][address[:, None] + np.arange(size)], kind)
    return from_bytes(space.load(address, size, np.ones(len(address), np.bool_), x.fault), kind)


def _modes(layout: Any) -> list[Any]:
    plain = layout
    while isinstance(plain, ComposedLayout):
        plain = algebra.composed_get_outer(plain)
    return list(plain.extents) if isinstance(plain.extents, tuple) else [plain.extents]


def _extent(mode: Any) -> int:
    """The size of a mode, which is the same in all lanes."""
    size = algebra.size(mode)
    return int(numbers_of(size).flat[0])


def _tensor_text(x: Execution, tensor: LaneTensor, name: str) -> str:
    """The element type, memory, and layout of a tensor, and its elements by coordinate."""
    title = f"{name} of {tensor.kind.element} in {tensor.pointer.space.name}, {_of_algebra(x, tensor.layout)}"
    try:
        count = int(np.prod([_extent(mode) for mode in _modes(tensor.layout)], dtype=np.int64))
        lanes = x.lanes if isinstance(tensor.pointer.space, RegisterSpace) else len(tensor.pointer.address)
        if count * lanes > _MOST_ELEMENTS:
            return f"{title}\n  {count} elements; index it, or look at .lanes"
        held = elements(x, tensor)
    except SimulatorError as error:
        return f"{title}\n  reaches past its memory: {error.message.splitlines()[0]}"
    except FlyError:
        return title
    active = np.flatnonzero(x.mask)
    first = int(active[0]) if len(held) > 1 and len(active) else 0
    which = f"\n  lane {first + x.first_lane} of {len(held)} (.lanes has all):" if len(held) > 1 else ""
    shown = np.array2string(held[first], precision=5, threshold=256, edgeitems=4, separator=", ", prefix="  ")
    return f"{title}{which}\n  {shown}"
