"""Split values of the DSL, and of a program's own classes, into MLIR's values, and rebuild them.

A class needs two methods: `__extract_to_ir_values__(self)`, the list of its `ir.Value`s, and the class method
`__construct_from_ir_values__(cls, values)`. Lists, tuples, dicts and namespaces are taken apart into their parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from mlir import ir

from flydsl.dialect.location import argument_error
from flydsl.errors import how_to_make
from flydsl.expr.control_flow.tree import Container, Tree, flatten, parts, with_parts
from flydsl.expr.numbers.arith_value import ArithValue
from flydsl.expr.numbers.vector_value import Vector
from flydsl.expr.numeric import Numeric, bare_like
from flydsl.expr.tracing.operands import FlyValue, is_runtime

__all__ = [
    "DslType", "construct_from_ir_values", "extract_to_ir_values", "flatten_runtime", "get_ir_types",
    "value_like",
]  # fmt: skip


@runtime_checkable
class DslType(Protocol):
    """A value of a program's own class inside a kernel or launcher."""

    @classmethod
    def __construct_from_ir_values__(cls, values: list[ir.Value]) -> DslType: ...

    def __extract_to_ir_values__(self) -> list[ir.Value]: ...


def extract_to_ir_values(obj: Any) -> list[ir.Value]:
    """The `ir.Value`s that a value consists of. Raises ArgumentError if it is not a value of the program."""
    if isinstance(obj, ir.Value):
        return [obj]
    if isinstance(obj, ArithValue | FlyValue | DslType):
        return list(obj.__extract_to_ir_values__())
    if isinstance(obj, Container):
        return [value for part in parts(obj)[1] for value in extract_to_ir_values(part)]
    raise argument_error(f"{obj!r} is not a value of the program", how_to_make.NUMBER)


def get_ir_types(obj: Any) -> list[ir.Type]:
    """The types of the `ir.Value`s that a value consists of. An object may give them itself, by `__get_ir_types__`."""
    for method in ("__get_ir_types__", "__ir_types__"):
        if hasattr(obj, method):
            return list(getattr(obj, method)())
    if isinstance(obj, Numeric):
        return [obj.dtype.ir_type]
    if isinstance(obj, Container):
        return [kind for part in parts(obj)[1] for kind in get_ir_types(part)]
    return [value.type for value in extract_to_ir_values(obj)]


def construct_from_ir_values(dsl_type: Any, args: Any, values: Sequence[ir.Value]) -> Any:
    """A value like `args`, made of other `ir.Value`s.

    dsl_type: its class; of a list or tuple, the classes of its parts. Raises ArgumentError if it takes another
    number of values.
    """
    left = iter(values)
    made = _construct(dsl_type, args, left)
    if next(left, None) is not None:
        raise argument_error(
            f"{len(values)} values for a {args!r}, which has fewer",
            "pass the values that __extract_to_ir_values__ gives",
        )
    return made


def _construct(dsl_type: Any, args: Any, left: Iterator[ir.Value]) -> Any:
    if isinstance(args, Container):
        items = parts(args)[1]
        kinds = dsl_type if isinstance(dsl_type, list | tuple) else map(type, items)
        return with_parts(args, [_construct(kind, item, left) for kind, item in zip(kinds, items, strict=True)])
    count = len(get_ir_types(args))
    taken = [value for _, value in zip(range(count), left, strict=False)]
    if len(taken) != count:
        raise argument_error(
            f"{args!r} consists of {count} values", "pass the values that __extract_to_ir_values__ gives"
        )
    return value_like(args, taken) if isinstance(args, ir.Value | ArithValue | FlyValue) else _of_class(dsl_type, taken)


def _of_class(dsl_type: Any, values: list[ir.Value]) -> Any:
    if hasattr(dsl_type, "__construct_from_ir_values__"):
        return dsl_type.__construct_from_ir_values__(values)
    raise argument_error(
        f"{dsl_type!r} has no __construct_from_ir_values__",
        "a class of your own is a value of kernels by the two methods of DslType",
    )


def value_like(args: Any, values: Sequence[ir.Value]) -> Any:
    """A value like another of the DSL, or of a class that follows the protocol, made of other `ir.Value`s."""
    if isinstance(args, Numeric):
        return bare_like(args.dtype.of(values[0]), args)
    if isinstance(args, Vector):
        return bare_like(Vector(values[0], args.shape, args.dtype), args)
    if isinstance(args, FlyValue):
        return type(args)(values[0])
    if isinstance(args, ir.Value):
        return values[0]
    return _of_class(type(args), list(values))


def flatten_runtime(container: Any) -> Tree:
    """Split a container into the `ir.Value`s in it. Parts known at compile time stay in place."""
    tree = flatten(container)
    runtime = [is_runtime(leaf) for leaf in tree.leaves]

    def rebuild(values: Sequence[ir.Value]) -> Any:
        left = iter(values)
        pairs = zip(tree.leaves, runtime, strict=True)
        return tree.rebuild([value_like(leaf, [next(left)]) if traced else leaf for leaf, traced in pairs])

    leaves = [leaf for leaf, traced in zip(tree.leaves, runtime, strict=True) if traced]
    return Tree([value for leaf in leaves for value in extract_to_ir_values(leaf)], tree.structure, rebuild)
