"""Values that outlive their trace, in a list of the host for example: using one is an error.

Their memory is MLIR's, which is gone after the trace: without this, reading one ends the process. Values of the DSL
lose what they hold. MLIR's own values have no place for that, so the module of one that the program keeps lives on, and
later traces are searched for its uses.
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
from flydsl.dialect.walk import operations
from flydsl.errors import TraceError
from flydsl.expr.tracing.undefined import Undefined


@dataclass
class _Trace:
    """holders: objects whose `value` is of the trace. raw: what MLIR's bindings gave out, each once."""

    holders: list[ref[Any]] = field(default_factory=list)
    raw: dict[int, Any] = field(default_factory=dict)


@dataclass
class _Kept:
    """A module that has ended: parts that are still kept, and the hashes of the values that these objects stand for.

    A value's hash is its address, which can be looked up even if a pass has meanwhile removed it.
    """

    module: ir.Module
    raw: list[Any]
    hashes: frozenset[int]


_traces: list[_Trace] = []
_kept: list[_Kept] = []


_REASON = "a value of a kernel or launcher that was traced before, which the host has kept"
_HINT = "keep values of the device in variables of the kernel, which each trace makes anew"
_LOOSE = "a value of an operation that is in no block"
_INSERT = "make the operation without ip=False, and leave it in its block, or put it into one: block.append(operation)"


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
        raw = _traces[-1].raw
        raw[id(made)] = made
        if (operation := _operation(made)) is not None:  # whoever keeps one of its results refers to it, too
            raw[id(operation)] = operation


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
    error = _end(module)
    if error is not None:
        raise error


class _Unkept(dict[int, Any]):
    """A register of the objects that MLIR's bindings gave out which keeps none of them alive."""

    def __setitem__(self, key: int, value: Any) -> None:
        """Keep nothing."""


@contextmanager
def values_end_unless_it_fails() -> Iterator[None]:
    """Take the value of each object that was noted in the `with` block, but not if an error leaves it.

    For what is interpreted: a debugger looks at the values behind the error. Nothing else is kept alive.
    """
    trace = _Trace(raw=_Unkept())
    _traces.append(trace)
    try:
        yield
    finally:
        _traces.remove(trace)
    for holder in trace.holders:
        if (made := holder()) is not None:
            made.value = _outlived()


def _end(module: ir.Module) -> TraceError | None:
    """End a trace. Returns the error if it uses a value of an earlier one, whose use is taken out: that may end first.

    So it does for a value of an operation that is in no block.
    """
    trace = _traces.pop()
    loose = _gather_loose(module, trace.raw)
    for holder in trace.holders:
        if (made := holder()) is not None:
            made.value = _outlived()
    at = _take_out(module, frozenset().union(*(kept.hashes for kept in _kept))) if _kept else None
    earlier = {id(one) for kept in _kept for one in kept.raw}
    _kept.append(_Kept(module, [one for one in trace.raw.values() if id(one) not in earlier], frozenset()))
    del trace
    _forget()
    if is_kept(module):
        _kept[-1].hashes = frozenset(hash(value) for one in _kept[-1].raw for value in _values(one))
    if at is not None:
        return TraceError(_REASON, at=source_location(at), hint=_HINT)
    return None if loose is None else TraceError(_LOOSE, at=source_location(loose), hint=_INSERT)


def _gather_loose(module: ir.Module, raw: dict[int, Any]) -> ir.Location | None:
    """Have operations that are in no block end with the module if it uses their values, or else at once.

    MLIR ends the process if an operation ends before one that uses its values. Returns where the first is used.
    """
    found = None
    for op in reversed([one for one in raw.values() if isinstance(one, ir.Operation) and _is_loose(one)]):
        users = _users(op)
        if users:
            module.body.append(op)
            found = users[0].location
        else:
            op.erase()
    return found


def _is_loose(op: ir.Operation) -> bool:
    try:
        return op.name != "builtin.module" and _parent(op) is None
    except RuntimeError:  # the kernel has erased it
        return False


def _users(loose: ir.Operation) -> list[ir.Operation | ir.OpView]:
    """The operations outside of one that use values from within."""
    found: list[ir.Operation | ir.OpView] = []
    for op in [*operations(loose), loose]:
        arguments = [argument for region in op.regions for block in region for argument in block.arguments]
        uses = [use for value in [*op.results, *arguments] for use in value.uses]
        found.extend(use.owner for use in uses if _root(use.owner) != loose)
    return found


def is_kept(module: ir.Module) -> bool:
    """True if the program keeps values of the trace that ended last. Its module must stay as it is: compile a copy."""
    return bool(_kept) and _kept[-1].module is module


def _take_out(module: ir.Module, hashes: frozenset[int]) -> ir.Location | None:
    """Replace operands of other modules by values of no meaning. Returns where the first of them is used."""
    found = [
        (op, number)
        for op in operations(module.operation)
        for number, value in enumerate(op.operands)
        if hash(value) in hashes and _root(value.owner) != module.operation
    ]
    for op, number in found:
        with op.location, ir.InsertionPoint(op):
            kind = op.operands[number].type
            op.operands[number] = ir.Operation.create("builtin.unrealized_conversion_cast", results=[kind]).result
    return found[0][0].location if found else None


def _operation(raw: Any) -> ir.Operation | None:
    """The operation that an object of MLIR's bindings is, or is a result of: one object, whoever asks for it."""
    if isinstance(raw, ir.OpResult | ir.OpResultList):
        raw = raw.owner
    return raw.operation if isinstance(raw, ir.Operation | ir.OpView) else None


def _values(raw: Any) -> list[ir.Value]:
    """The values that an object of MLIR's bindings stands for."""
    if isinstance(raw, ir.Operation | ir.OpView):
        try:
            return list(raw.results)
        except RuntimeError:  # the kernel has erased it
            return []
    return [one for one in (raw if isinstance(raw, ir.OpResultList | list) else [raw]) if isinstance(one, ir.Value)]


def _root(owner: ir.Operation | ir.OpView | ir.Block) -> ir.Operation:
    inner = (owner.owner if isinstance(owner, ir.Block) else owner).operation
    while (outer := _parent(inner)) is not None:
        inner = outer
    return inner


def _parent(op: ir.Operation) -> ir.Operation | None:
    """The operation around one; None for a module, and for what is in no block."""
    try:
        return None if op.parent is None else op.parent.operation
    except ValueError:
        return None


def _forget() -> None:
    """Drop the modules whose values are all unused."""
    for kept in _kept:
        kept.raw = _referenced(kept.raw)
    _kept[:] = [kept for kept in _kept if kept.raw]


def _referenced(raw: list[Any]) -> list[Any]:
    """The values with references from elsewhere; a new object tells how many references are from here."""
    references = [sys.getrefcount(one) for one in [*raw, object()]]
    return [one for one, count in zip(raw, references, strict=False) if count > references[-1] + 1]
