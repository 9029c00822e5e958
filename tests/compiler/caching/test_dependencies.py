"""Which surroundings of a launcher count, and which modules it takes for constant."""

from __future__ import annotations

import functools
import types
from collections import ChainMap, UserDict, UserList
from collections.abc import Callable
from enum import Enum
from typing import Any

import pytest

from flydsl.compiler.caching.dependencies import Dependencies, is_library


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("/home/me/.local/lib/python3.11/site-packages/plans/__init__.py", True),  # pip install --user
        ("/usr/lib/python3/dist-packages/plans.py", True),  # Debian's, in an environment with --system-site-packages
        ("/home/me/my-packages/plans.py", False),
        ("/home/me/site-packages-of-mine/plans.py", False),
        (None, False),
    ],
)
def test_installed_packages_are_libraries_wherever_they_lie(file: str | None, expected: bool) -> None:
    module = types.ModuleType("plans")
    module.__file__ = file
    assert is_library(module) is expected


def _read_first(values: list[int] = [1]) -> int:  # noqa: B006 - that it changes is what is tested
    return values[0]


def _read_keyword(*, value: int = 1) -> int:
    return value


class _Meta(type):
    table = 1

    @property
    def size(cls) -> int:
        return cls.table


class _Plan(metaclass=_Meta):
    def block(self) -> int:
        return 1


class _Size:
    def __get__(self, instance: Any, owner: Any = None) -> int:
        return _SIZE


class _Held:
    size = _Size()


class _Color(Enum):
    RED = 1


def _counted() -> int:
    return _counted.calls  # type: ignore[attr-defined]


_counted.calls = 1  # type: ignore[attr-defined]
_SIZE = 1
_cached = functools.cache(lambda: _SIZE)


_library, _inner = types.ModuleType("json.made"), types.ModuleType("json.made.inner")
vars(_library).update(inner=_inner)
vars(_inner).update(size=1)


def _with(held: Any, use: Callable[[Any], Any], change: Callable[[Any], Any]) -> tuple[Any, Any, Any]:
    return held, use, change


@pytest.mark.parametrize(
    ("held", "use", "change"),
    [
        _with(_read_first, lambda f: f(), lambda f: f.__defaults__[0].__setitem__(0, 2)),
        _with(_read_keyword, lambda f: f(), lambda f: f.__kwdefaults__.update(value=2)),
        _with(functools.partial(_read_first, [1]), lambda f: f(), lambda f: f.args[0].append(2)),
        _with(functools.partial(_read_first, values=[1]), lambda f: f(), lambda f: f.keywords.clear()),
        _with({"a": 1}.get, lambda get: get("a"), lambda get: get.__self__.update(a=2)),
        _with({"a": 1}, lambda d: d["a"], lambda d: d.update(a=2)),
        _with(types.MappingProxyType({"a": [1]}), lambda d: d["a"], lambda d: d["a"].append(2)),
        _with(ChainMap({"a": 1}), lambda d: d["a"], lambda d: d.update(a=2)),
        _with(UserDict({"a": 1}), lambda d: d["a"], lambda d: d.update(a=2)),
        _with(UserList([1]), lambda d: d[0], lambda d: d.append(2)),
        _with({"a": [1]}.values(), list, lambda view: next(iter(view)).append(2)),
        _with(_Plan(), lambda plan: plan.block(), lambda plan: setattr(plan, "block", lambda: 2)),
        _with(_Plan, lambda plan: plan.size, lambda plan: setattr(_Meta, "table", 2)),
        _with(_counted, lambda f: f(), lambda f: setattr(f, "calls", 2)),
        _with(_Held(), lambda held: held.size, lambda held: globals().update(_SIZE=3)),
        _with(_Color, lambda color: color.RED.value, lambda color: setattr(color.RED, "_value_", 2)),
        _with(globals, lambda names: globals().get("_ABSENT"), lambda names: names().update(_ABSENT=2)),
        _with(_cached, lambda f: f(), lambda f: globals().update(_SIZE=2)),
        _with(_library, lambda library: library.inner.size, lambda library: setattr(library.inner, "size", 2)),
    ],
)
def test_what_a_function_holds_is_seen_to_change(held: Any, use: Any, change: Any) -> None:
    def function() -> Any:
        return use(held)

    known = Dependencies(function)
    assert known.unchanged()
    change(held)
    assert not known.unchanged()


def test_an_attribute_that_is_only_assigned_does_not_count() -> None:
    plan = _Plan()
    vars(plan).update(made=False, size=1)

    def function() -> None:
        plan.made = True  # type: ignore[attr-defined]
        plan.size += 1  # type: ignore[attr-defined]

    known = Dependencies(function)
    plan.made = True  # type: ignore[attr-defined]
    assert known.unchanged()
    plan.size = 2  # type: ignore[attr-defined]
    assert not known.unchanged()


def test_what_another_function_assigns_counts_where_it_is_read() -> None:
    plan = _Plan()
    vars(plan).update(made=False)

    def assign() -> None:
        plan.made = True  # type: ignore[attr-defined]

    def function() -> Any:
        assign()
        return plan.made  # type: ignore[attr-defined]

    known = Dependencies(function)
    assign()
    assert not known.unchanged()
