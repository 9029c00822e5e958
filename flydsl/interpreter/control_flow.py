"""Branches and loops of the kernel's own source, executed under masks: the twins of those that are traced.

A branch that all active lanes take, and a loop that they leave together, are Python's. Where lanes part, each side runs
in its lanes, one after the other, and each name's values are put together after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from mlir import ir

from flydsl.errors import TraceError
from flydsl.errors.places import user_location
from flydsl.expr.control_flow.carried import Slot
from flydsl.expr.control_flow.condition import as_condition
from flydsl.expr.control_flow.construct import Thunks, changed_containers
from flydsl.expr.control_flow.for_loop import ForLoop
from flydsl.expr.control_flow.if_statement import IfStatement
from flydsl.expr.control_flow.joining import Join, Mismatch, matched
from flydsl.expr.control_flow.tree import flatten, leaf_like, leaf_type, leaf_value, typed, write_into
from flydsl.expr.control_flow.undefined import UNSET
from flydsl.expr.control_flow.while_loop import WhileLoop
from flydsl.expr.numeric import Boolean, Numeric
from flydsl.expr.tracing.emit import emit
from flydsl.expr.tracing.executing import executing
from flydsl.expr.tracing.undefined import Undefined
from flydsl.interpreter.elements import Array
from flydsl.interpreter.execution import Execution


def current() -> Execution:
    """The execution of this thread."""
    found = executing.get()
    assert isinstance(found, Execution)
    return found


def _lanes_of(x: Execution, condition: Numeric) -> Array:
    """The lanes in which a condition holds."""
    return x.spread(x.of(condition.ir_value()))


def _agreed(x: Execution, holds: Array) -> bool | None:
    """The Boolean on which all active lanes agree; None if they differ."""
    active = holds[x.mask]
    return True if active.all() else None if active.any() else False


def _boolean(x: Execution, mask: Array) -> Boolean:
    """A runtime Boolean that holds in the lanes of a mask."""
    value = emit("arith.constant", results=[Boolean.ir_type], attributes={"value": ir.BoolAttr.get(True)}).result
    x.values.set(value, mask)
    made: Boolean = Boolean.of(value)
    return made


def _selected(x: Execution, mask: Array, join: Join) -> list[Any]:
    """The first leaf of each pair in the lanes of a mask, the second in the others."""
    if not join.pairs:
        return []
    condition = _boolean(x, mask).ir_value()
    made = []
    for then, otherwise in join.pairs:
        operands = [condition, leaf_value(then), leaf_value(otherwise)]
        made.append(leaf_like(then, emit("arith.select", operands, [leaf_type(then)]).result))
    return made


def _put_together(x: Execution, mask: Array, new: Any, old: Any) -> Any:
    """The new value of a name in the lanes of a mask, the old one in the others; the new one where it has no other."""
    if new is old or isinstance(new, Undefined) or isinstance(old, Undefined) or old is UNSET or new is UNSET:
        return old if isinstance(new, Undefined) or new is UNSET else new
    join = Join()
    try:
        rebuild = join.of(new, old)
    except Mismatch:
        return new
    return rebuild(_selected(x, mask, join))


class _Side:
    """A branch in its lanes, in the place of the region that tracing has."""

    def __init__(self, x: Execution, mask: Array) -> None:
        self._execution, self._before = x, x.mask
        x.mask = mask

    def close(self) -> None:
        """End the branch."""
        self._execution.mask = self._before

    def anything_like(self, value: Any) -> Any:
        """A value that is never read."""
        return value


class MaskedIf(IfStatement):
    """An `if` whose lanes may differ."""

    def __init__(self, condition: Any, *names_and_thunks: Any) -> None:
        decided = as_condition(condition)
        if isinstance(decided, Boolean):
            x = current()
            self._holds = _lanes_of(x, decided)
            agreed = _agreed(x, self._holds)
            decided = decided if agreed is None else agreed
        super().__init__(decided, *names_and_thunks)
        self._outer, self._sides = current().mask, 0

    def _open(self) -> Any:
        x = current()
        self._sides += 1
        self._region = _Side(x, self._outer & (self._holds if self._sides == 1 else ~self._holds))  # type: ignore[assignment]
        return self._region

    def _results(self, join: Join) -> list[Any]:
        return _selected(current(), self._holds, join)


class _Masked:
    """The common part of both loops: the names' values, and the lanes that are still in the loop."""

    _slots: list[Slot]
    _names: Sequence[str]
    _thunks: Thunks
    _containers: Sequence[str]
    _container_thunks: Thunks
    _at: Any

    def _begin(self) -> None:
        """Record the values of names and containers before the loop."""
        x = current()
        self._outer = self._lanes = x.mask
        self._in_place = changed_containers(self._names, self._containers, self._container_thunks)
        before = zip(self._names, self._values(), strict=True)  # type: ignore[attr-defined]
        self._slots = [Slot(name, value) for name, value in before]
        self._slots += [Slot(name, value, in_place=True) for name, value in self._in_place]
        self._held: list[Any] = []

    def _enter(self) -> None:
        """Make the values before the loop those of run time: as such they are traced."""
        self._held = [self._at_run_time(slot) for slot in self._slots]

    def _at_run_time(self, slot: Slot) -> Any:
        if slot.is_undefined or slot.before is UNSET:
            return slot.before
        made = slot.tree.rebuild([leaf_like(leaf, leaf_value(leaf)) for leaf in slot.initial])
        if slot.in_place:
            write_into(slot.before, made)
        return made

    def _take(self, after: Sequence[Any], lanes: Array) -> None:
        """Take the values at the end of an iteration, in its lanes."""
        x = current()
        with x.only(self._outer):
            pairs = zip(self._slots, self._held, after, strict=True)
            self._held = [self._taken(x, slot, held, value, lanes) for slot, held, value in pairs]

    def _taken(self, x: Execution, slot: Slot, held: Any, value: Any, lanes: Array) -> Any:
        if not (slot.is_undefined or slot.before is UNSET or value is held):
            try:
                leaves = matched(slot.tree, slot.before, value)
                value = slot.tree.rebuild([leaf_like(leaf, leaf_value(leaf)) for leaf in leaves])
            except Mismatch:
                pass  # a name that holds something else in each iteration: the last one
        if not np.array_equal(lanes, self._outer):
            value = _put_together(x, lanes, value, held)
        if slot.in_place:
            write_into(slot.before, value)
        return value

    def _count(self) -> int:
        return len(self._names)


class MaskedFor(_Masked, ForLoop):
    """A `for` over `range` whose lanes may have other bounds."""

    def __iter__(self) -> Iterator[Any]:
        if not self.runtime:
            yield from self._items
            return
        x = current()
        self._enter()
        lower, upper, step = (x.of(bound.ir_value()) for bound in self._bounds)
        together = all(len(bound) == 1 for bound in (lower, upper, step))
        item, number = self._bounds[0], lower
        self._ended = np.zeros(x.lanes, np.bool_)
        while True:
            self._lanes = self._outer & x.spread(number < upper) & ~self._ended
            if not self._lanes.any():
                return
            shown = self._bounds[0].dtype(int(number[0])) if together else item
            shown = leaf_like(shown, leaf_value(shown))
            x.mask = self._lanes
            yield shown if self._init is None else (shown, self._held[-1])
            number = number + step
            if not together:
                item = item + self._bounds[2]

    def carried(self) -> tuple[Any, ...]:
        return tuple(self._held[: self._count()])

    def end(self) -> bool:
        if self.runtime:
            x = current()
            x.mask = self._outer
            self._take(self._after_iteration(), self._lanes)
            self._yielded = None
            if self._stop is not None:
                self._ended = self._ended | (self._lanes & self._stopped(x))
            x.turn()
            return False
        return super().end()

    def _stopped(self, x: Execution) -> Array:
        """The lanes that have met a `break`."""
        flag = as_condition(self._held[self._stop])  # type: ignore[index]
        return _lanes_of(x, flag) if isinstance(flag, Boolean) else np.full(x.lanes, flag)

    def results(self) -> tuple[Any, ...]:
        return tuple(self._held[: self._count()])

    def final_state(self) -> Any:
        state = self._held[-1]
        return state[0] if len(state) == 1 else state


def _are_equal(new: list[Any], old: list[Any]) -> bool:
    pairs = zip(new, old, strict=False)
    return len(new) == len(old) and all(
        a is b or (isinstance(a, np.ndarray) and np.array_equal(a, b)) for a, b in pairs
    )


class MaskedWhile(_Masked, WhileLoop):
    """A `while` that lanes may leave one after the other."""

    def before(self) -> tuple[Any, ...]:
        self._enter()
        self._last: tuple[int, list[Any]] = (-1, [])
        return tuple(self._held[: self._count()])

    def test(self, condition: Any) -> bool:
        if not self.runtime:
            return super().test(condition)
        x = current()
        decided = as_condition(condition)
        holds = _lanes_of(x, decided) if isinstance(decided, Boolean) else np.full(x.lanes, decided)
        self._take(self._current(), self._lanes)
        self._lanes = self._lanes & holds
        x.mask = self._lanes if self._lanes.any() else self._outer
        return bool(self._lanes.any())

    def after(self) -> tuple[Any, ...]:
        return tuple(self._held[: self._count()])

    def end(self) -> bool:
        if self.runtime:
            x = current()
            self._take(self._current(), self._lanes)
            now = x.stores, self._numbers(x)
            idle, self._last = now[0] == self._last[0] and _are_equal(now[1], self._last[1]), now
            x.turn(waits=True, idle=idle)
        return False

    def _numbers(self, x: Execution) -> list[Any]:
        """The values of the names, to find out whether an iteration has changed anything."""
        held = [value for value in self._held if not isinstance(value, Undefined) and value is not UNSET]
        return [x.of(leaf_value(typed(leaf))) for value in held for leaf in flatten(value).leaves]

    def results(self) -> tuple[Any, ...]:
        return tuple(self._held[: self._count()])


def choose(x: Execution, condition: Boolean, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """The value of `then()` in lanes in which a condition holds, of `otherwise()` in the others."""
    holds = _lanes_of(x, condition)
    agreed = _agreed(x, holds)
    if agreed is not None:
        return then() if agreed else otherwise()
    at = user_location()
    with x.only(x.mask & holds):
        first = then()
    with x.only(x.mask & ~holds):
        second = otherwise()
    join = Join()
    try:
        rebuild = join.of(first, second)
    except Mismatch as mismatch:
        raise TraceError(
            f"the value is {mismatch.a} where the condition holds and {mismatch.b} where it does not",
            at=at,
            hint="convert one to the other's type: fx.Float32(...), for example",
        ) from None
    return rebuild(_selected(x, holds, join))


TWINS: dict[type[Any], type[Any]] = {IfStatement: MaskedIf, ForLoop: MaskedFor, WhileLoop: MaskedWhile}
