"""Names of compilations that tell them apart."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from flydsl.compiler import Pipeline
from flydsl.compiler.arguments.argument import Argument, ConstantArgument
from workbench.kit.values import value_text


def compilation_name(pipeline: Pipeline, also: Collection[str] = ()) -> str:
    """The launcher with the values that are compiled in, but for defaults, and its target: "gemm(tile=64) for gfx942".

    also: parameters to show besides.
    """
    shown = [
        f"{parameter.name}={_text(argument)}"
        for parameter, argument in zip(pipeline.signature.parameters, pipeline.arguments, strict=True)
        if parameter.name in also
        or (isinstance(argument, ConstantArgument) and argument.describe() != repr(parameter.default))
    ]
    call = f"{pipeline.name}({', '.join(shown)})" if shown else pipeline.name
    return f"{call} for {pipeline.arch.name}"


def compilation_names(pipelines: Sequence[Pipeline]) -> list[str]:
    """The name of each, with the values that are compiled in if those of another compilation of the launcher differ.

    Those that would be called alike also have the other arguments in which they differ.
    """
    of_launcher = {name: [one for one in pipelines if one.name == name] for name in {one.name for one in pipelines}}
    constants = {name: _differing(ones, ConstantArgument) for name, ones in of_launcher.items()}
    plain = [compilation_name(pipeline, constants[pipeline.name]) for pipeline in pipelines]
    found = []
    for name, pipeline in zip(plain, pipelines, strict=True):
        alike = [other for text, other in zip(plain, pipelines, strict=True) if text == name]
        found.append(compilation_name(pipeline, _differing(alike)) if len(alike) > 1 else name)
    return found


def _differing(pipelines: Sequence[Pipeline], kind: type[Argument] = Argument) -> set[str]:
    """The parameters whose arguments, of a kind, are not the same in all."""
    pairs = {
        (parameter.name, argument.describe())
        for pipeline in pipelines
        for parameter, argument in zip(pipeline.signature.parameters, pipeline.arguments, strict=True)
        if isinstance(argument, kind)
    }
    names = [name for name, _ in pairs]
    return {name for name in names if names.count(name) > 1}


def _text(argument: Argument) -> str:
    return value_text(argument[1]) if isinstance(argument, ConstantArgument) else argument.describe()
