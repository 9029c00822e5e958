"""`and`, `or`, `not`, `in`, `is`, `get` of a dict, and chained comparisons.

Each operand is evaluated at most once, and only when needed.

Values known at compile time follow Python's rules. A runtime `a and b` is `b if a else a`; if a and b have different
types, the result is a Boolean, never a Python bool, which a store would take for the number 0 or 1.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from typing import Any

from mlir import ir

from flydsl.dialect.location import trace_error
from flydsl.errors.places import user_location
from flydsl.expr.control_flow.condition import as_condition
from flydsl.expr.control_flow.conditional_expression import chosen, traced
from flydsl.expr.control_flow.containers import Reachable
from flydsl.expr.control_flow.tree import is_leaf
from flydsl.expr.numeric import Boolean, Numeric, as_numeric, is_python_number
from flydsl.expr.printing.refusals import no_truth
from flydsl.expr.tracing.executing import Executor, executing

Thunk = Callable[[], Any]


def all_of(first: Any, *rest: Thunk) -> Any:
    """`first and rest[0]() and ...`."""
    return _chain(first, rest, stops_at=False)


def any_of(first: Any, *rest: Thunk) -> Any:
    """`first or rest[0]() or ...`."""
    return _chain(first, rest, stops_at=True)


def _chain(value: Any, rest: Sequence[Thunk], stops_at: bool, objects: Reachable | None = None) -> Any:
    for position, thunk in enumerate(rest):
        decided = as_condition(value)
        if isinstance(decided, Boolean):
            objects = objects or Reachable.from_here()
            others = partial(_rest, rest[position:], stops_at, objects)
            return _runtime(value, decided, others, stops_at, objects)
        if decided is stops_at:
            return value
        value = thunk()
    return value


def _rest(thunks: Sequence[Thunk], stops_at: bool, objects: Reachable) -> Any:
    return _chain(thunks[0](), thunks[1:], stops_at, objects)


def _runtime(value: Any, decided: Boolean, others: Thunk, stops_at: bool, objects: Reachable) -> Any:
    """The value if its truth is `stops_at`, else the value of the others."""
    if (executor := executing.get()) is not None:
        return _executed(executor, value, decided, others, stops_at)
    at = user_location()

    def alike() -> Any:
        other = others()
        return other if _is_of_type(other, value) else as_condition(other)

    go_on = traced(alike, objects, at)
    stop = traced(lambda: value if _is_of_type(go_on[1], value) else stops_at, objects, at)
    found = chosen(decided, stop, go_on, at) if stops_at else chosen(decided, go_on, stop, at)
    return Boolean(found) if isinstance(found, bool) else found


def _executed(executor: Executor, value: Any, decided: Boolean, others: Thunk, stops_at: bool) -> Any:
    """The same where the interpreter is on: the others are evaluated in the lanes that go on."""
    seen: list[Any] = []

    def go_on() -> Any:
        other = others()
        seen.append(other if _is_of_type(other, value) else as_condition(other))
        return seen[0]

    def stop() -> Any:
        return value if not seen or _is_of_type(seen[0], value) else stops_at

    found = executor.choose(~decided if stops_at else decided, go_on, stop)
    return Boolean(found) if isinstance(found, bool) else found


def _is_of_type(other: Any, value: Any) -> bool:
    """True if the result of an operator can be either value."""
    if not is_leaf(other):
        return False
    return isinstance(value, Numeric) and as_numeric(other).dtype is value.dtype


def negation(value: Any) -> Any:
    """`not value`."""
    decided = as_condition(value)
    return ~decided if isinstance(decided, Boolean) else not decided


def membership(item: Any, among: Any) -> bool:
    """`item in among`. Raises TraceError for a runtime number that may equal a number in a set or a dict.

    Those find the objects that they hold, by their hash, which says nothing of a runtime value.
    """
    found = item in among
    if not found and isinstance(among, Set | Mapping):
        _require_missing(item, among)
    return found


def identity(item: Any, other: Any) -> bool:
    """`item is other`. Raises TraceError where that asks whether a runtime value is a number, or a type torch's.

    A runtime value is neither False nor None, so `flag is not False` asks if there is one. That it is not True either
    is what Python says as well, and a warning: that one has another question in mind.
    """
    pair = (item, other)
    for one, another in (pair, pair[::-1]):
        is_runtime = isinstance(one, Numeric | ir.Value)
        if is_runtime and another is True:
            _warn_of_true()
        elif is_runtime and another is not False and is_python_number(another):
            raise trace_error(
                f"`is` asks whether a runtime value is the same object as {another!r}, which it never is",
                f"compare the numbers: == {another!r}",
            )
        kind = type(another).__name__
        if isinstance(one, type) and issubclass(one, Numeric) and kind == "dtype":
            raise trace_error(
                f"`is` asks whether {one.__name__} is the same object as {another}, which it never is",
                f"compare with ==, or with fx.{one.__name__}",
            )
    return item is other


def _warn_of_true() -> None:
    place = user_location()
    if place is not None:
        warnings.warn_explicit(
            "a runtime value is never the same object as True: `is True` is False here, whichever way the device goes. "
            "A condition stands alone: `if flag:`",
            UserWarning,
            place.file,
            place.line,
        )


def stops(flag: Any) -> bool:
    """True if the flag of a `break` is set for certain: a loop that Python runs then ends."""
    return flag is True


def lookup(owner: Any) -> Callable[..., Any]:
    """`owner.get`. That of a mapping raises TraceError where `membership` does."""
    if not isinstance(owner, Mapping):
        return owner.get

    def get(key: Any, *default: Any, **named: Any) -> Any:
        if key not in owner:
            _require_missing(key, owner)
        return owner.get(key, *default, **named)

    return get


def _require_missing(item: Any, among: Set[Any] | Mapping[Any, Any]) -> None:
    """Raise for a runtime number, which was not found, if a number is in there."""
    if isinstance(item, ir.Value | Numeric):
        number = as_numeric(item)
        if isinstance(number, Numeric) and not number.is_static and any(map(is_python_number, among)):
            raise no_truth(type(number).__name__)


def comparison(first: Any, *rest: tuple[Callable[[Any, Any], Any], Thunk]) -> Any:
    """`first < a < b`, that is `first < a and a < b` with a evaluated once."""

    def link(left: Any, position: int) -> Any:
        compare, thunk = rest[position]
        right = thunk()
        result = compare(left, right)
        return result if position + 1 == len(rest) else all_of(result, lambda: link(right, position + 1))

    return link(first, 0)
