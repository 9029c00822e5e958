"""What a module of kernels defines so that it can be checked: SHAPES, `reference`, and the cases of a shape.

    SHAPES = ((1000,), (4096,))

    def reference(x, factor):
        return x * factor

    def cases(n):
        yield Case(scale, {"x": torch.randn(n), "y": torch.empty(n), "factor": 2.0, "n": n})

After the call, `y` must equal what `reference` returns. `reference` is called with the operands that its parameters
name, as they were before the call; the other tensors among the operands are the results.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from types import FunctionType, ModuleType
from typing import Any

from flydsl.errors import ArgumentError


@dataclass(frozen=True)
class Case:
    """A call of a launcher that is to be checked.

    operands: by the names of the launcher's parameters, in their order. expected: the values that operands must have
    after the call, by name; None to ask `reference`. name: of a variant. gpus: the products or architectures that the
    case is for; none for all. check: in place of a comparison, a function that takes the operands after the call and
    raises AssertionError for wrong ones. rtol, atol: as for `torch.testing.assert_close`; None for its own by type.
    """

    launcher: Callable[..., Any]
    operands: Mapping[str, Any]
    expected: Mapping[str, Any] | None = None
    name: str = ""
    gpus: tuple[str, ...] = ()
    check: Callable[[Mapping[str, Any]], None] | None = field(default=None, kw_only=True)
    rtol: float | None = field(default=None, kw_only=True)
    atol: float | None = field(default=None, kw_only=True)

    @property
    def title(self) -> str:
        """The names of the launcher and of the variant."""
        return f"{getattr(self.launcher, '__name__', 'launcher')} {self.name}".rstrip()

    def results(self, reference: Callable[..., Any] | None) -> dict[str, Any]:
        """The values that operands must hold after the call, by name. Ask before the call.

        Raises ArgumentError if nothing says so.
        """
        if self.expected is not None or self.check is not None:
            return dict(self.expected or {})
        if reference is None:
            raise ArgumentError(
                f"nothing says what {self.title} computes", hint="write a reference(...), or pass expected= to the Case"
            )
        named = [name for name in inspect.signature(reference).parameters if name in self.operands]
        found = reference(**{name: _copied(self.operands[name]) for name in named})
        if isinstance(found, Mapping):
            return dict(found)
        results = found if isinstance(found, tuple) else (found,)
        outputs = [name for name, value in self.operands.items() if _is_tensor(value) and name not in named]
        if len(results) != len(outputs):
            raise ArgumentError(
                f"reference returned {len(results)} results for the tensors that it does not take: "
                f"{', '.join(outputs) or 'none'}",
                hint="return a dict by the names of the operands",
            )
        return dict(zip(outputs, results, strict=True))

    def compare(self, results: Mapping[str, Any]) -> None:
        """Raise AssertionError for an operand that does not hold what it must."""
        import torch

        if self.check is not None:
            self.check(self.operands)
        for name, expected in results.items():
            said = f"{name} is wrong: {{}}".format
            torch.testing.assert_close(
                self.operands[name], expected, rtol=self.rtol, atol=self.atol, equal_nan=True, msg=said
            )


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "data_ptr")


def _copied(value: Any) -> Any:
    return value.clone() if _is_tensor(value) else value


def launched_in(module: ModuleType) -> dict[str, Any]:
    """The @flyc.jit and @flyc.kernel functions that a module defines under names without an underscore."""
    from flydsl.compiler.decorated import DecoratedFunction

    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, DecoratedFunction)
        and not name.startswith("_")
        and value.function.__module__ == module.__name__
    }


_Cached = type(cache(len))


def reached_from(value: Any) -> Iterator[Any]:
    """A launcher, and the launchers and kernels that are called by its code and by the functions and classes in it."""
    from flydsl.compiler.decorated import DecoratedFunction

    pending, seen = [value], {}
    while pending:
        value = pending.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        if isinstance(value, DecoratedFunction):
            yield value
            pending.append(value.function)
        elif isinstance(value, partial):
            pending += [value.func, *value.args, *value.keywords.values()]
        elif isinstance(value, _Cached):
            pending.append(value.__wrapped__)
        elif isinstance(value, type):
            pending += [getattr(item, "__func__", item) for item in vars(value).values()]
        elif isinstance(value, FunctionType):
            pending += _named_in(value)
        elif _is_of_user(type(value)):
            pending.append(type(value))


def _named_in(function: FunctionType) -> Iterator[Any]:
    """The values that a function's code names: globals, attributes of the user's modules, and variables around it."""
    from flydsl.compiler.caching.dependencies import is_library, names_of

    names, attributes, _ = names_of(function.__code__)
    found = [function.__globals__.get(name) for name in names]
    for module in [value for value in found if isinstance(value, ModuleType)]:
        if not is_library(module):
            found += [getattr(module, name, None) for name in attributes]
    found += [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
    yield from (value for value in found if not isinstance(value, type) or _is_of_user(value))


def _is_of_user(kind: type) -> bool:
    """True for a class of the user's modules."""
    from flydsl.compiler.caching.dependencies import is_library

    return not is_library(sys.modules.get(kind.__module__))


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False
