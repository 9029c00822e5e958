"""Generate the LLVM IR of the handler of an instruction's shape."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from flydsl.simulator.native.builder.handler import HandlerBuilder, function_text
from flydsl.simulator.native.builder.ir import Function
from flydsl.simulator.native.builder.reading import Reader
from flydsl.simulator.native.builder.writing import Writer
from flydsl.simulator.native.shape import Shape


@dataclass(frozen=True)
class Handler(Function):
    """LLVM IR of a handler, the functions that it shares with others, and whether it is worth optimizing."""

    functions: tuple[Function, ...]
    has_loops: bool


def generate(shape: Shape, name: str) -> Handler:
    """The handler of a shape. NotImplementedError names the form that has no native handler."""
    builder = HandlerBuilder(shape.mode, shape.lane_count)
    semantics = shape.semantics
    if semantics.sources == ("...",):
        semantics.evaluate(builder)
    elif semantics.packed:
        _packed(builder, shape)
    else:
        reader = Reader(builder, shape)
        operands = [reader.read(i) for i in range(len(shape.sources))]
        results = semantics.evaluate(builder, *operands)
        if semantics.results:
            values = results if len(semantics.results) > 1 else (results,)
            Writer(builder, shape, reader.modifiers).write(values)
    builder.finish()
    text = function_text(name, builder.body.lines)
    return Handler(
        name, text, frozenset(builder.body.declarations), tuple(builder.functions.values()), builder.has_loops
    )


def _packed(builder: HandlerBuilder, shape: Shape) -> None:
    """VOP3P: the same computation for the low and the high halves."""
    reader = Reader(builder, shape)
    pairs = [reader.halves(i) for i in range(len(shape.sources))]
    low, high = (shape.semantics.evaluate(builder, *operands) for operands in zip(*pairs, strict=True))
    Writer(builder, shape, reader.modifiers).write_packed(low, high)


def module_text(functions: Iterable[Function]) -> str:
    """One module of several functions, which declares what they call."""
    texts: list[str] = []
    declarations: set[str] = set()
    for function in functions:
        texts.append(function.text)
        declarations |= function.declarations
    return "\n".join([*sorted(declarations), *texts]) + "\n"
