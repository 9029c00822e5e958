"""The names of a kernel's variables, kept for a debugger.

While names are kept, Python tells of each line of the user's functions, and what a line has assigned is noted before
the next one: `fly.variable` says which value a name has from there on. It does nothing, and is gone before machine code
is made. A tensor in registers is no value before fly-promote-regmem-to-vectorssa, so its name is the location of what
allocates it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any

from mlir import ir

from flydsl.dialect.elements import element_type
from flydsl.dialect.variables import ELEMENTS, ended_attributes, variable_attributes
from flydsl.errors.places import is_user_frame
from flydsl.expr.control_flow.tree import flatten, leaf_value, typed
from flydsl.expr.numbers.vector_value import Vector
from flydsl.expr.numeric import Boolean, Numeric
from flydsl.expr.tracing.emit import emit, emit_fly, gpu_module_body
from flydsl.expr.tracing.operands import FlyValue, is_runtime
from flydsl.system.interrupts import holding

_Shape = tuple[str, int]
"""The element type of a number or vector, and how many elements it has."""

_kept: ContextVar[bool] = ContextVar("flydsl_names_kept", default=False)

_ALLOCATIONS = ("fly.memref_alloca", "fly.make_fragment_like", "fly.mma_make_fragment")
_NUMBERS = (ir.IntegerType, ir.FloatType, ir.IndexType, ir.VectorType)
_MOST_LEAVES, _MOST_BITS = 256, 63


@contextmanager
def keeping_names() -> Iterator[None]:
    """Keep the names of variables in what this thread traces in the `with` block."""
    tracer = sys.gettrace()
    with holding(_kept, True):
        try:
            sys.settrace(_follow)
            yield
        finally:
            sys.settrace(tracer)


def names_are_kept() -> bool:
    """True inside `keeping_names`."""
    return _kept.get()


def _follow(frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
    """Python's trace function: what follows a call, if it is of a function of the user's in a kernel."""
    is_function = not frame.f_code.co_name.startswith("<")  # no expression with variables of its own
    return _Followed() if is_function and is_user_frame(frame) and gpu_module_body() is not None else None


class _Followed:
    """The variables of one call of a function: what was last said of each."""

    def __init__(self) -> None:
        self._seen: dict[str, Any] = {}
        self._shapes: dict[str, _Shape] = {}

    def __call__(self, frame: FrameType, event: str, argument: Any) -> _Followed:
        if event == "line" and gpu_module_body() is not None:
            self._look(frame)
        elif event == "return" and frame.f_back is not None and is_user_frame(frame.f_back):
            for name in list(self._shapes):
                self._end(f"{frame.f_code.co_name}:{name}", name)
        return self

    def _look(self, frame: FrameType) -> None:
        code, values = frame.f_code, frame.f_locals
        parameters = code.co_argcount + code.co_kwonlyargcount if not self._seen else 0
        for i, name in enumerate((*code.co_varnames, *code.co_cellvars)):
            if name not in values or name.startswith(("__fly", "@")):
                continue
            value = values[name]
            key = tuple(map(id, value)) if isinstance(value, list | tuple) else (id(value),)
            if name in self._seen and self._seen[name][0] == key:
                continue
            self._seen[name] = key, value  # kept, so that no other object gets its id
            if i >= parameters:
                self._say(f"{code.co_name}:{name}", name, value)

    def _say(self, full: str, name: str, value: Any) -> None:
        if isinstance(value, FlyValue):
            _name_allocation(full, value.value)
        leaves = _leaves(value)
        shapes = set(map(_shape, leaves))
        shape = shapes.pop() if len(shapes) == 1 and len(leaves) <= _MOST_LEAVES else ("", 0)
        element, count = shape[0], shape[1] * len(leaves)
        if self._shapes.get(name) not in (None, (element, count)):
            self._end(full, name)
        if element in ELEMENTS and (name in self._shapes or any(map(is_runtime, leaves))):
            self._shapes[name] = element, count
            for i, leaf in enumerate(leaves):
                attributes = variable_attributes(full, element, i * shape[1], count)
                emit_fly("variable", [_value(leaf)], attributes=attributes)

    def _end(self, full: str, name: str) -> None:
        attributes = ended_attributes(full, *self._shapes.pop(name))
        emit_fly("variable", [Boolean(False).ir_value()], attributes=attributes)


def _leaves(value: Any) -> list[Any]:
    """The numbers and vectors that a value consists of; none where some of it is something else."""
    leaves = flatten(value).leaves
    if any(isinstance(leaf, ir.Value) and not isinstance(leaf.type, _NUMBERS) for leaf in leaves):
        return []
    if any(isinstance(leaf, int) and leaf.bit_length() > _MOST_BITS for leaf in leaves):
        return []
    return [typed(leaf) for leaf in leaves]


def _shape(leaf: Any) -> _Shape:
    if isinstance(leaf, Numeric | Vector):
        element = "i64" if leaf.dtype.mlir_name == "index" else leaf.dtype.memory_name
        return element, int(leaf.value.type.shape[0]) if isinstance(leaf, Vector) else 1
    return "", 0


def _value(leaf: Any) -> ir.Value:
    value = leaf_value(leaf)
    return emit("arith.index_cast", [value], [element_type("i64")]).result if leaf.dtype.mlir_name == "index" else value


def _name_allocation(name: str, tensor: ir.Value) -> None:
    """Give what allocates a tensor in registers its name, unless it has one."""
    maker = tensor.owner
    if isinstance(maker, ir.Block) or maker.name not in _ALLOCATIONS or maker.location.is_a_name():
        return
    maker.operation.location = ir.Location.name(name, maker.location)
