"""The inputs of a compilation as a readable key: environment, target, hints, and each argument's part.

Launches look up their code by a key of their own (`jit_function`); this one is for programs that ask.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from flydsl import env
from flydsl.compiler.arguments.argument import STREAM, Argument, ConstantArgument
from flydsl.compiler.arguments.signature import Signature
from flydsl.compiler.backends import get_backend
from flydsl.compiler.caching.dependencies import Dependencies
from flydsl.compiler.caching.fingerprint import Fingerprint, UnknownStateError
from flydsl.compiler.hints import all_hints
from flydsl.expr.typing import Stream


def cache_key(
    signature: Signature,
    arguments: Iterable[Argument],
    values: Iterable[Any],
    hints: Mapping[str, Any],
    arch_name: str | None = None,
) -> tuple[tuple[str, Any], ...]:
    """The key of a compilation: pairs of a name and a value, the target first, the parameters last.

    For a method the class of its object comes before all.

    hints: the launcher's own; those of the `with` blocks around the call are added.
    """
    parts: list[tuple[str, Any]] = [
        ("_target_", get_backend(arch=arch_name or "").target),
        ("_env_", env.code_settings()),
    ]
    if given := all_hints(hints):
        parts.append(("_hints_", tuple(sorted((name, _readable(value)) for name, value in given.items()))))
    for parameter, argument, value in zip(signature.parameters, arguments, values, strict=True):
        if parameter.name == "self":
            parts.insert(0, ("_self_type_", type(value)))
        else:
            parts.append((parameter.name, argument_part(argument)))
    return tuple(parts)


def argument_part(argument: Argument) -> Any:
    """An argument's part of the key: the type of a number or stream, type and value of a constant."""
    if argument is STREAM:
        return (Stream,)
    if isinstance(argument, ConstantArgument):
        return tuple(argument)
    kind = getattr(argument, "kind", None)
    return (kind,) if isinstance(kind, type) else argument


def surroundings(function: Callable[..., Any], compile_time: list[Any]) -> tuple[tuple[str, Any], ...]:
    """The part of a function's source and of all that it refers to.

    Where other processes cannot compare that (see `fingerprint`), it is the function's code and the numbers and texts
    that it names.
    """
    found = Fingerprint(Dependencies(function, compile_time).attributes)
    try:
        found.add(function)
        return (("_globals_", found.hexdigest()),)
    except UnknownStateError:
        code, names = function.__code__, function.__globals__
        given = [(name, names[name]) for name in code.co_names if isinstance(names.get(name), int | float | str)]
        return (("_globals_", (code, tuple(given))),)


def python_signature(signature: Signature) -> inspect.Signature:
    """A launcher's parameters as Python's `inspect` has them, without a method's object."""
    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    return inspect.Signature(
        [
            inspect.Parameter(
                p.name,
                kinds[i >= signature.positional],
                default=p.default,
                annotation=inspect.Parameter.empty if p.kind is None else p.kind,
            )
            for i, p in enumerate(signature.parameters)
            if p.name != "self"
        ]
    )


def _readable(value: Any) -> str:
    return str(sorted(value.items()) if isinstance(value, Mapping) else value)
