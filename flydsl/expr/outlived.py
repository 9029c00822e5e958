"""Values that outlive their trace, in a list of the host for example: using one is an error.

Their memory is MLIR's, which is gone after the trace: without this, reading one ends the process. Values of the DSL
lose what they hold. MLIR's own values have no place for that, so the module of one that somebody has kept lives on, and
a later trace that has met the value is searched for its uses.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from weakref import ref

from mlir import ir

from flydsl.dialect.location import source_location
from flydsl.errors import TraceError
from flydsl.expr.undefined import Undefined


@dataclass
class _Trace:
    """holders: objects whose `value` is of the trace. raw: what MLIR's bindings gave out, each once."""

    holders: list[ref[Any]] = field(default_factory=list)
    raw: dict[int, Any] = field(default_factory=dict)


_traces: list[_Trace] = []
_kept: list[tuple[ir.Module, list[Any]]] = []
"""Modules that have ended, with what somebody keeps of each."""


_REASON = "a value of a kernel or launcher that was traced before, which the host has kept"
_HINT = "keep values of the device in variables of the kernel, which each trace makes anew"


@cache
def _outlived() -> Undefined:  # a global one would fail whatever looks through the globals of modules
    return Undefined(_REASON, _HINT, text="?")


def note(made: Any) -> None:
    """Remember an object whose `value` is of the current trace."""
    if _traces:
        trace = _traces[-1]
        trace.holders.append(ref(made))
        trace.raw[id(made.value)] = made.value


def note_raw(made: Any) -> None:
    """Remember a value, an operation or a list of results of MLIR's own that the current trace has made or met."""
    if _traces:
        _traces[-1].raw[id(made)] = made


@contextmanager
def values_end(module: ir.Module) -> Iterator[None]:
    """Take the value of each object that was noted in the `with` block, and is still there, at its end.

    module: what is traced. Raises TraceError at the operation that takes a value of an earlier one.
    """
    _traces.append(_Trace())
    try:
        yield
    except BaseException:
        _end(module)
        raise
    at = _end(module)
    if at is not None:
        raise TraceError(_REASON, at=source_location(at), hint=_HINT)


def _end(module: ir.Module) -> ir.Location | None:
    """End a trace. Returns where it uses a value of an earlier one, whose use is taken out: that may end first."""
    trace = _traces.pop()
    for holder in trace.holders:
        if (made := holder()) is not None:
            made.value = _outlived()
    earlier = {id(one) for _, raw in _kept for one in raw}
    at = None
    for value in [value for one in trace.raw.values() if id(one) in earlier for value in _values(one)]:
        for use in [use for use in value.uses if _root(use.owner) == module.operation]:
            at = use.owner.location
            with at, ir.InsertionPoint(use.owner):
                stand_in = ir.Operation.create("builtin.unrealized_conversion_cast", results=[value.type])
            use.owner.operands[use.operand_number] = stand_in.result
    _kept.append((module, [one for one in trace.raw.values() if id(one) not in earlier]))
    del trace
    _forget()
    return at


def _values(raw: Any) -> list[ir.Value]:
    """Those that an object of MLIR's bindings stands for."""
    if isinstance(raw, ir.Operation | ir.OpView):
        return list(raw.results)
    return [one for one in (raw if isinstance(raw, ir.OpResultList | list) else [raw]) if isinstance(one, ir.Value)]


def _root(op: ir.Operation | ir.OpView) -> ir.Operation:
    inner = op.operation
    while (outer := inner.parent) is not None:
        inner = outer.operation
    return inner


def _forget() -> None:
    """Drop the modules whose values are all unused."""
    _kept[:] = [(module, kept) for module, raw in _kept if (kept := _referenced(raw))]


def _referenced(raw: list[Any]) -> list[Any]:
    """The values with references from elsewhere; a new object tells how many references are from here."""
    references = [sys.getrefcount(one) for one in [*raw, object()]]
    return [one for one, count in zip(raw, references, strict=False) if count > references[-1] + 1]
