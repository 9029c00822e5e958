"""Attributes that an iteration of a runtime loop gives to an object that did not have them, and reads itself.

    for k in range(n):
        self._k = k             # tile() reads it
        total = total + self.tile()

Nothing is carried from one iteration to the next, as the attribute is set anew before it is read: the object had none,
so a read before would have failed. It has no value behind the loop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from types import CellType, CodeType, FunctionType
from typing import Any

from flydsl.errors.places import TRACER, user_frames
from flydsl.expr.control_flow.containers import Reachable, copied, write
from flydsl.expr.control_flow.undefined import assigned_in_loop, unassigned
from flydsl.expr.tracing.undefined import Undefined

_ABSENT = object()


def is_set_anew(objects: Reachable, key: int) -> bool:
    """True if an iteration has only given an object attributes that it did not have.

    False where a program may ask if it has one, `hasattr(self, "_k")`: what the first iteration is told is not what the
    others are.
    """
    target, before = objects.objects[key], objects.before[key]
    if isinstance(target, list | dict | set | deque | CellType | type | FunctionType):
        return False
    now = copied(target)
    if any(now.get(name, _ABSENT) is not value for name, value in before.items() if not isinstance(value, Undefined)):
        return False
    return not _texts(type(target)) & _added(before, now)


def forget(objects: Reachable, key: int) -> None:
    """Leave an object without the values that a loop has given it."""
    target, before = objects.objects[key], objects.before[key]
    now, path = copied(target), objects.paths[key]
    missing = {name: assigned_in_loop(f"{path}.{name}", unassigned(name), now[name]) for name in _added(before, now)}
    write(target, {**before, **missing})


def _added(before: dict[str, Any], now: dict[str, Any]) -> set[str]:
    return {name for name, value in now.items() if before.get(name, _ABSENT) is not value}


def _texts(kind: type) -> set[str]:
    """The strings in the functions of a class, and in those that are running."""
    functions = [item for base in kind.__mro__ for item in vars(base).values() if isinstance(item, FunctionType)]
    codes = [function.__code__ for function in functions] + [frame.f_code for frame in user_frames(TRACER)]
    return {text for code in codes for text in _texts_in(code)}


def _texts_in(code: CodeType) -> Iterator[str]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _texts_in(constant)
        elif isinstance(constant, str):
            yield constant
