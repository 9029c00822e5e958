"""The points of a search: every launcher, shape, configuration and architecture, in this order."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from flydsl.errors import ArgumentError, did_you_mean
from flydsl.sweeps.config import Config

Configs = Config | Sequence[Config] | Mapping[str, Sequence[Any]]
Shapes = Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]]
Launchers = Callable[..., Any] | Sequence[Callable[..., Any]] | Mapping[str, Callable[..., Any]]

# What a row has beside its shape and its configuration; see `table.Row.record`.
RESERVED = frozenset({"launcher", "arch", "error", "note"})


@dataclass(frozen=True)
class Point:
    """One launcher, by its name, with one shape and one configuration, for one architecture.

    arch: None for that of the device which the tensors are on.
    """

    launcher: str
    shape: dict[str, Any]
    config: Config
    arch: str | None


def points(launchers: Mapping[str, Any], configs: Configs, shapes: Shapes, archs: Sequence[str | None]) -> list[Point]:
    """All points. Raises ArgumentError for names that clash, and if there is none."""
    every_config, every_shape = list(_configs(configs)), list(_shapes(shapes))
    _check_names(every_config, every_shape)
    found = [Point(*parts) for parts in product(launchers, every_shape, every_config, archs)]
    if not found:
        raise ArgumentError("there is nothing to sweep", hint="give a launcher, a configuration, a shape and an arch")
    return found


def named(launchers: Launchers) -> dict[str, Callable[..., Any]]:
    """Launchers by name. Raises ArgumentError for what cannot be called, and for two of one name."""
    if isinstance(launchers, Mapping):
        found = dict(launchers)
    else:
        given = list(launchers) if isinstance(launchers, Iterable) and not callable(launchers) else [launchers]
        found = {getattr(launcher, "__name__", repr(launcher)): launcher for launcher in given}
        if len(found) < len(given):
            raise ArgumentError("two launchers have the same name", hint='name them: {"first": ..., "second": ...}')
    for launcher in found.values():
        if not callable(launcher):
            raise ArgumentError(
                f"a launcher must be a function, got {launcher!r}",
                hint="pass a @flyc.jit function, or one that calls some",
            )
    return found


def check_parameters(
    launchers: Mapping[str, Callable[..., Any]], points: Sequence[Point], arguments: Callable[..., Any] | None
) -> None:
    """Raise ArgumentError for names that no point can be run with: parameters that a launcher does not have."""
    for point in points:
        shape = dict.fromkeys(point.shape)
        if arguments is not None:
            _check_names_of(arguments, "arguments=", shape, every=True)
        given = {**dict.fromkeys(point.config.kwargs), **({} if arguments is not None else shape)}
        _check_names_of(launchers[point.launcher], point.launcher, given, every=arguments is None)


def _check_names_of(function: Callable[..., Any], name: str, given: Mapping[str, Any], *, every: bool) -> None:
    """every: whether no other arguments are passed."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a function that does not say what it takes
        return
    known = list(signature.parameters)
    try:
        (signature.bind if every else signature.bind_partial)(**given)
    except TypeError as error:
        close = next((did_you_mean(word, known) for word in given if word not in known), "")
        raise ArgumentError(
            f"{name}: {error}",
            hint=f"{close}its parameters are {', '.join(known)}; configurations and shapes name them",
        ) from None


def _configs(configs: Configs) -> Iterator[Config]:
    if isinstance(configs, Mapping):
        yield from (Config(**values) for values in _grid(configs, "configs"))
        return
    for config in [configs] if isinstance(configs, Config) else configs:
        if not isinstance(config, Config):
            raise ArgumentError(
                f"configs must be flydsl.Config objects, got {config!r}",
                hint='pass a list of flydsl.Config, or the values of each parameter: {"block": [64, 128]}',
            )
        yield config


def _shapes(shapes: Shapes) -> Iterator[dict[str, Any]]:
    if isinstance(shapes, Mapping):
        yield from _grid(shapes, "shapes")
        return
    for shape in shapes:
        if not isinstance(shape, Mapping):
            raise ArgumentError(
                f"shapes must be dicts, got {shape!r}", hint='pass a list of dicts such as {"m": 128, "n": 256}'
            )
        yield dict(shape)


def _grid(values: Mapping[str, Sequence[Any]], what: str) -> Iterator[dict[str, Any]]:
    """Every combination, the last name varying fastest."""
    for name, given in values.items():
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise ArgumentError(
                f"{what}: {name} must be a list of values, got {given!r}", hint=f"write {name}: [{given!r}]"
            )
    return (dict(zip(values, chosen, strict=True)) for chosen in product(*values.values()))


def _check_names(configs: list[Config], shapes: list[dict[str, Any]]) -> None:
    of_configs = {name for config in configs for name in config.to_dict()}
    of_shapes = {name for shape in shapes for name in shape}
    if both := sorted(of_configs & of_shapes):
        raise ArgumentError(
            f"{', '.join(both)}: both a shape's and a configuration's", hint="give each name one meaning"
        )
    if taken := sorted((of_configs | of_shapes) & RESERVED):
        raise ArgumentError(f"{', '.join(taken)}: the table has a column of that name", hint="call it otherwise")
