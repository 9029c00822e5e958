"""Launchers whose parameters are listed rather than written, for kernels with several variants.

A kernel that takes its tensors by name has one launcher for each variant, which differ in the tensors that they take:

>>> @flyc.kernel
... def fill_kernel(tensors: Any, value: fx.Float32) -> None:
...     for tensor in tensors.values():
...         tensor[fx.thread_idx.x] = value
>>> def fill(tensors: dict[str, Any], value: Any, stream: Any) -> None:
...     fill_kernel(tensors, value).launch(grid=1, block=64, stream=stream)
>>> fill_two = launcher("fill_two", "A B", fill, value=fx.Float32)
>>> import torch
>>> a, b = torch.zeros(64), torch.zeros(64)
>>> fill_two(a, b, 3.0)
>>> a[0], b[63]
(tensor(3.), tensor(3.))

A parameter with a default comes after the stream, and a launcher calls another one as Python does:

>>> fill_one = launcher("fill_one", "A", lambda given, stream, value: fill(given, value, stream), value=(fx.Float32, 1))
>>> @flyc.jit
... def fill_each(A: fx.Tensor, B: fx.Tensor):
...     fill_one(A)
...     fill_one(B, value=2.0)
>>> fill_each(a, b)
>>> fill_one(a, value=5.0)
>>> a[0], b[63]
(tensor(5.), tensor(2.))

`tuned` and `chosen` have the last of the parameters chosen by measurement, as `flydsl.autotune` does. `launch_some`
launches nothing for a count of 0; `launch_flat` calls a launcher whose tensors have one dimension of any size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature, signature
from typing import Any

import flydsl
import flydsl.compiler as flyc
import flydsl.expr as fx

__all__ = ["chosen", "flat", "launch_flat", "launch_some", "launcher", "tuned"]


def launcher(name: str, tensors: str, launch: Callable[..., None], /, **others: Any) -> Any:
    """A @flyc.jit function (tensors ..., others ..., stream), for kernels with several variants.

    launch: launches a kernel for (tensors by name, *others, stream), and has the docstring; it may be a `partial` of a
    function. tensors: their names. others: by name the types of the other parameters; those that are no type of the DSL
    are known at compile time. Those with a default, (type, default), come after the stream; of `Any` the argument says
    what it is.
    """
    names, last = tensors.split(), {n: kind for n, kind in others.items() if isinstance(kind, tuple)}

    def launch_values(*arguments: Any, **named: Any) -> None:
        bound = signed.bind(*arguments, **named)
        bound.apply_defaults()
        values = bound.arguments.values()
        launch(dict(zip(names, values, strict=False)), *[*values][len(names) :])

    defaults = {"stream": fx.Stream(None)} | {n: default for n, (_, default) in last.items()}
    kinds = dict.fromkeys(names, fx.Tensor) | {n: _parameter(kind) for n, kind in others.items() if n not in last}
    kinds |= {"stream": fx.Stream} | {n: kind for n, (kind, _) in last.items()}
    place, none = Parameter.POSITIONAL_OR_KEYWORD, Parameter.empty
    signed = Signature([Parameter(n, place, annotation=k, default=defaults.get(n, none)) for n, k in kinds.items()])
    documented = getattr(launch, "func", launch)
    launch_values.__name__, launch_values.__annotations__, launch_values.__doc__ = name, kinds, documented.__doc__
    launch_values.__signature__ = signed  # type: ignore[attr-defined]
    return flyc.jit(launch_values)


def _parameter(kind: Any) -> Any:
    constexpr: Any = fx.Constexpr
    of_dsl = kind is fx.Tensor or (isinstance(kind, type) and issubclass(kind, fx.Numeric))
    return kind if of_dsl else constexpr[kind]


def tuned(
    name: str, tensors: str, launch: Callable[..., None], key: Sequence[str], choices: Sequence[Mapping[str, Any]], /,
    prune: Any = None, restore: Sequence[str] = (), default: Any = None, **others: Any,
) -> Any:  # fmt: skip
    """A `launcher` whose last parameters, before the stream, are chosen by measurement.

    choices: their values by name. key: the parameters for whose values there is a choice each. prune: as
    `flydsl.autotune` has prune_configs_by. restore: tensors that a launch changes, its restore_value. default: its own.
    """
    chosen = {n: type(value) for n, value in choices[0].items()}
    function = launcher(name, tensors, launch, **others, **chosen)
    return flydsl.autotune(
        [flydsl.Config(**c) for c in choices], list(key), prune_configs_by=prune, restore_value=restore, default=default
    )(function)


def chosen(
    tensors: str, key: str, choices: Sequence[Any], default: Callable[..., Any] | None = None
) -> Callable[[Callable[..., None]], Any]:
    """Make a `launcher` of a function (tensors by name, others ..., choice, stream) whose choice is by measurement.

    The types of the others are their annotations. key: the names of those for whose values there is a choice each.
    default: called with the arguments of a launch, returns the choice; then only FLYDSL_AUTOTUNE=1 measures.
    """

    def launcher_of(launch: Callable[..., None]) -> Any:
        *others, choice = [*signature(launch, eval_str=True).parameters.values()][1:-1]
        configs = [{choice.name: value} for value in choices]

        def default_config(*arguments: Any, **named: Any) -> flydsl.Config:
            assert default is not None
            return flydsl.Config(**{choice.name: default(*arguments, **named)})

        return tuned(
            launch.__name__, tensors, launch, key.split(), configs, default=None if default is None else default_config,
            **{p.name: p.annotation for p in others},
        )  # fmt: skip

    return launcher_of


@flyc.jit
def launch_some(kernel: Any, count: Any, grid: Any, block: Any, stream: Any, **options: Any) -> None:
    """Launch a kernel for `count` rows or tokens, unless there are none: a grid has no extent of 0."""
    if count > 0:
        kernel.launch(grid=grid, block=block, stream=stream, **options)


def launch_flat(launch: Any, *arguments: Any) -> None:
    """Call a launcher whose tensors have one dimension, with the last argument, the stream, left out if it is None."""
    import torch

    *given, stream = [flat(a) if isinstance(a, torch.Tensor) else a for a in arguments]
    launch(*given, *([] if stream is None else [stream]))


def flat(tensor: Any) -> Any:
    """A tensor as an argument of one dimension and any size, for which nothing is compiled again; fp8 as bytes."""
    import torch

    tensor = tensor.view(-1)
    tensor = tensor.view(torch.uint8) if tensor.element_size() == 1 else tensor
    return flyc.from_dlpack(tensor).mark_layout_dynamic()
