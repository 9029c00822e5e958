"""Assertions of a kernel: `fx.device_assert`, and those of its tensors' indices, which `checking("index")` adds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mlir import ir

from flydsl.dialect.location import argument_error, trace_error
from flydsl.errors.places import user_location
from flydsl.expr.layouts.algebra import IntTuple, get_scalar
from flydsl.expr.numeric import Boolean, Int64, Numeric, as_numeric
from flydsl.expr.printing.printf import emit_record, kind_of, make_format, refuse
from flydsl.expr.tracing.emit import emit, gpu_module_body, require_trace
from flydsl.expr.tracing.operands import is_runtime
from flydsl.printing import Format
from flydsl.system.interrupts import holding

if TYPE_CHECKING:
    from flydsl.expr.kinds import Number

__all__ = ["device_assert"]

_indices_are_checked: ContextVar[bool] = ContextVar("flydsl_indices_are_checked", default=False)


def device_assert(condition: Number, text: str = "", *values: object) -> None:
    """Assert that a condition holds in every thread: `fx.device_assert(i < n, "i = {}, n = {}", i, n)`.

    Where it does not, the thread's wave ends, and so does the launch, with a `flydsl.errors.DeviceAssertion` that has
    the text with the values, the place of the call, and the first workgroup and thread. On a GPU the launcher waits for
    the kernel to look. In a kernel, Python's `assert` means the same. A condition that is known at compile time raises
    TraceError at once if it is false.

    condition: a truth value, or an integer, which holds unless it is 0. text: with the placeholders of `str.format`.
    """
    require_trace("fx.device_assert")
    if gpu_module_body() is None:
        raise trace_error("fx.device_assert in a launcher", "end its call with fx.refuse: if n < 1: fx.refuse(...)")
    holds = _truth(condition)
    if holds.is_static:
        if not holds.value:
            raise trace_error(
                f"an assertion is false when compiling{': ' * bool(text)}{text}", "correct what it asserts"
            )
        return
    leaves: list[ir.Value] = []
    record = make_format("device_assert", text or "an assertion does not hold", values, leaves)
    _unless(holds.ir_value(), replace(record, asserted_at=user_location()), leaves)


def _truth(condition: Any) -> Numeric:
    """A condition as one truth value."""
    number = as_numeric(condition)
    if not isinstance(number, Numeric):
        raise argument_error(
            f"an assertion of {number!r}, which is not one truth value", "reduce it: (v > 0).reduce('and')"
        )
    holds: Numeric = number if isinstance(number, Boolean) else number != 0
    return holds


def assert_statement(condition: Any, message: Callable[[], tuple[Any, ...]]) -> None:
    """Python's `assert` in a kernel or launcher. message: its text with placeholders, and the values."""
    if not is_runtime(condition):
        if not condition:
            text, *values = message()
            raise AssertionError(text.format(*values)) if text else AssertionError
        return
    text, *values = message()
    if gpu_module_body() is not None:
        device_assert(condition, text, *values)
        return
    with _otherwise(_truth(condition).ir_value()):
        refuse(text or "an assertion of the launcher does not hold", *values)


@contextmanager
def check_indices(checked: bool) -> Iterator[None]:
    """Trace the block with, or without, an assertion at each access of a tensor by its coordinate."""
    with holding(_indices_are_checked, checked):
        yield


def assert_step(step: Numeric) -> None:
    """Assert that a range counts upward, where indices are checked."""
    if _indices_are_checked.get() and gpu_module_body() is not None:
        device_assert(step > 0, "range with step {}: a runtime loop counts upward", step)


def assert_index(tensor: Any, coordinate: Any) -> None:
    """Assert that each integer of a coordinate is in its mode of a tensor, where indices are checked."""
    if not _indices_are_checked.get() or gpu_module_body() is None:
        return
    pairs = [(_number(i), _number(n)) for i, n in _modes(_plain(coordinate), _plain(tensor.shape))]
    inside = [(i >= 0) & (i < n) for i, n in pairs]
    if all(part.is_static and part.value for part in inside):
        return
    leaves: list[ir.Value] = []
    values = [value for side in zip(*pairs, strict=True) for value in side]
    kinds = tuple(kind_of(value, leaves) for value in values)
    record = Format("", kinds, asserted_at=user_location(), modes=len(pairs))
    holds = inside[0]
    for part in inside[1:]:
        holds = holds & part
    _unless(holds.ir_value(), record, leaves)


def _plain(value: Any) -> Any:
    """Nested tuples of numbers."""
    if isinstance(value, IntTuple):
        return _plain(get_scalar(value) if value.is_leaf else value.to_py_value())
    return tuple(map(_plain, value)) if isinstance(value, tuple | list) else value


def _modes(coordinate: Any, shape: Any) -> Iterator[tuple[Any, Any]]:
    """Each integer of a coordinate, and how many elements its mode has."""
    if isinstance(coordinate, tuple) and len(coordinate) == 1 and not (isinstance(shape, tuple) and len(shape) == 1):
        coordinate = coordinate[0]
    if isinstance(coordinate, tuple) and isinstance(shape, tuple):
        for part, mode in zip(coordinate, shape, strict=True):
            yield from _modes(part, mode)
    else:
        yield coordinate, _elements(shape)


def _elements(shape: Any) -> Any:
    if not isinstance(shape, tuple):
        return shape
    product: Any = 1
    for mode in shape:
        product = product * _number(_elements(mode))
    return product


def _number(value: Any) -> Any:
    """A number of which any 32-bit index and size is one."""
    number = as_numeric(value)
    return number if number.is_static else number.to(Int64)


def _unless(holds: ir.Value, record: Format, leaves: Sequence[ir.Value]) -> None:
    """Write a record and end the wave where a condition does not hold."""
    with _otherwise(holds):
        emit_record(record, leaves)
        segments = {"operandSegmentSizes": [0, 0], "op_bundle_sizes": []}
        attributes: dict[str, ir.Attribute] = {k: ir.DenseI32ArrayAttr.get(v) for k, v in segments.items()}
        emit("llvm.call_intrinsic", attributes={"intrin": ir.StringAttr.get("llvm.amdgcn.endpgm"), **attributes})


@contextmanager
def _otherwise(holds: ir.Value) -> Iterator[None]:
    """Insert the operations of the block where a condition does not hold."""
    then, otherwise = emit("scf.if", [holds], regions=2).regions
    with ir.InsertionPoint(then.blocks.append()):
        emit("scf.yield")
    with ir.InsertionPoint(otherwise.blocks.append()):
        yield
        emit("scf.yield")
