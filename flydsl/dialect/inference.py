"""Result types of the layout algebra's operations, and checks of their operands.

`memory_inference` has those of pointers and tensors, `atom_inference` those of copies and products. Types are fly types
where they are fly's, MLIR types otherwise. Everything here raises LayoutError for operands that do not fit, so that
nothing else has to check them again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from mlir import ir

from flydsl import layout as algebra
from flydsl.atoms import BUFFER
from flydsl.dialect.elements import element_type
from flydsl.dialect.leaves import dynamic_leaves, is_static
from flydsl.dialect.types import (
    AnyLayout,
    ComposedLayoutType,
    CoordSwizzleType,
    FlyType,
    IntTupleType,
    LayoutType,
    MemRefType,
    SwizzleType,
    TileType,
)
from flydsl.errors import LayoutError

Attributes = Mapping[str, Any]
# Operand types and attributes to result types.
Infer = Callable[[Sequence[Any], Attributes], list[Any]]
# Operand types, stated result types and attributes; raises LayoutError where they do not fit.
Check = Callable[[Sequence[Any], Sequence[Any], Attributes], None]


def mode_arguments(attributes: Attributes) -> list[Any]:
    """The static arguments of an algebra operation (modes, bit widths), in the order of its Python signature.

    FlyDSL names them: `mode` of get, `begin` and `end` of take and group.
    """
    arguments: list[Any] = []
    if "indices" in attributes:
        arguments.append(list(attributes["indices"]))
    for name in ("args", "mode"):
        arguments.extend(attributes.get(name, ()))
    return arguments + [attributes[name] for name in ("begin", "end") if name in attributes]


def algebra_value(fly: Any) -> Any:
    """The value of the layout algebra for an operand of this type."""
    if isinstance(fly, LayoutType | ComposedLayoutType | MemRefType):
        return fly.layout
    if isinstance(fly, SwizzleType | CoordSwizzleType):
        return fly.swizzle
    if isinstance(fly, IntTupleType):
        return fly.value
    if isinstance(fly, TileType):
        return fly.tile
    raise LayoutError(f"{fly} is not an operand of the layout algebra", hint="pass a layout, a tile or an int tuple")


def algebra_type(value: Any, like: Any = None) -> FlyType:
    """The type of an algebra result; a layout derived from a tensor's is a tensor in the same memory."""
    if isinstance(value, AnyLayout) and isinstance(like, MemRefType):
        return like.with_layout(value)
    if isinstance(value, algebra.Layout):
        return LayoutType(value)
    if isinstance(value, algebra.ComposedLayout):
        return ComposedLayoutType(value)
    if isinstance(value, algebra.Tile):
        return TileType(value)
    if isinstance(value, algebra.CoordSwizzle):
        return CoordSwizzleType(value)
    return SwizzleType(value) if isinstance(value, algebra.Swizzle) else IntTupleType(value)


def infer_algebra(function: Callable[..., Any], keeps_tensor: bool) -> Infer:
    """Infer types by calling a function of `flydsl.layout`. keeps_tensor: it makes a tensor from a tensor."""

    def infer(types: Sequence[Any], attributes: Attributes) -> list[Any]:
        arguments = [*map(algebra_value, types), *mode_arguments(attributes)]
        try:
            _signature(function).bind(*arguments)
        except TypeError as error:
            raise LayoutError(f"{function.__name__} takes other attributes: {error}") from None
        return [algebra_type(function(*arguments), types[0] if keeps_tensor else None)]

    return infer


_signature = cache(inspect.signature)


def infer_slice(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """The part of a layout, tuple or tensor that remains when a coordinate fixes some modes."""
    source, coordinate = types
    found = algebra.slice(algebra_value(source), algebra_value(coordinate))
    if isinstance(source, MemRefType):
        check_bounds(coordinate.value, source.layout.extents, source)
    return [algebra_type(found, source)]


def check_bounds(coordinate: Any, shape: Any, memref: MemRefType) -> None:
    """Raise LayoutError if a known coordinate is outside a known extent. It may be nested in another way.

    In a buffer, a mode of one element counts steps of its stride, as in FlyDSL; the descriptor bounds them.
    """
    if isinstance(coordinate, tuple):
        for part, extent in zip(coordinate, shape, strict=True) if _has_modes(shape, len(coordinate)) else ():
            check_bounds(part, extent, memref)
        return
    extent = algebra.size(shape)
    if memref.space == BUFFER and extent == 1 and isinstance(coordinate, int) and coordinate > 0:
        return
    if isinstance(coordinate, int) and (coordinate < 0 or (isinstance(extent, int) and coordinate >= extent)):
        raise LayoutError(
            f"index {coordinate} is outside of 0 to {extent} (exclusive) in {memref}",
            hint="indices count from 0, and do not count from the end"
            if coordinate < 0
            else "is the tile larger than the tensor?",
        )


def _has_modes(shape: Any, count: int) -> bool:
    return isinstance(shape, tuple) and len(shape) == count


def infer_make_layout(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """The layout of a shape and a stride, without one the compact layout."""
    return [LayoutType(algebra.make_layout(*(operand.value for operand in types)))]


def leaf_type(leaf: Any) -> ir.Type:
    """The scalar type of a leaf of an int tuple."""
    return element_type("i64" if isinstance(leaf, algebra.Dynamic) and leaf.width == 64 else "i32")


def single_leaf(value: Any) -> Any:
    """A value without the parentheses around a single leaf: `((5))` is 5."""
    while isinstance(value, tuple) and len(value) == 1:
        value = value[0]
    return value


def infer_get_scalar(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """The integer type of a tuple that is one integer."""
    leaf = single_leaf(types[0].value)
    if not isinstance(leaf, int | algebra.Dynamic):
        raise LayoutError(f"get_scalar of {types[0]}: only a single integer is a scalar", hint="take a mode with get")
    return [leaf_type(leaf)]


def infer_leaves(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """The integer type of each leaf, or with `dynamicOnly` of each that is known at run time only."""
    leaves = algebra.flatten((types[0].value,))
    only = str(attributes.get("dynamicOnly", "false")) in ("true", "True", "-1", "1")
    if any(leaf is None or isinstance(leaf, algebra.Basis) for leaf in leaves):
        raise LayoutError(
            f"get_leaves of {types[0]}: only integers are scalars", hint="take the leaves of an int tuple"
        )
    return [leaf_type(leaf) for leaf in leaves if isinstance(leaf, algebra.Dynamic) or not only]


def infer_make_tile(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """The tile of modes that are known at compile time: layouts, and int tuples of one integer or `*`."""
    modes = [single_leaf(kind.value) if isinstance(kind, IntTupleType) else _mode_of(kind) for kind in types]
    if not all(map(is_static, modes)):
        raise LayoutError(
            f"make_tile of {', '.join(map(str, types))}: a tile is known at compile time",
            hint="pass Python ints or fx.Constexpr values",
        )
    return [TileType(algebra.make_tile(*modes))]


def _mode_of(kind: Any) -> algebra.Layout:
    if not isinstance(kind, LayoutType):
        raise LayoutError(
            f"make_tile of {kind}, where a layout or int tuple belongs",
            hint="a tile's mode is an int, None or a layout",
        )
    return kind.layout


def infer_assume(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """The first type, which says more about the value of the second operand than its own."""
    promised, given = types
    _check_promise(promised.value, given.value, f"assume of {given} as {promised}")
    return [promised]


def _check_promise(promised: Any, given: Any, what: str) -> None:
    if isinstance(promised, tuple) and isinstance(given, tuple) and len(promised) == len(given):
        for parts in zip(promised, given, strict=True):
            _check_promise(*parts, what)
    elif isinstance(promised, algebra.Dynamic) and isinstance(given, algebra.Dynamic):
        if promised.width != given.width:
            raise LayoutError(
                f"{what}: integers of {given.width} and {promised.width} bits",
                hint="convert it to the width that is promised",
            )
    elif promised != given:
        raise LayoutError(f"{what}: they differ in more than what divides their numbers")


def infer_print(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """No result. The text has a placeholder `{}` for each operand."""
    text = attributes.get("format")
    if not isinstance(text, str) or text.count("{}") != len(types):
        raise LayoutError(
            f"print of {len(types)} values with the text {text!r}: it has a {{}} for each",
            hint="write as many {} as there are values",
        )
    return []


def check_static(types: Sequence[Any], results: Sequence[Any], attributes: Attributes) -> None:
    """`static` names a layout, tile or int tuple that leaves nothing to run time."""
    (result,) = results
    if not is_static(algebra_value(result)):
        raise LayoutError(
            f"static of {result}: parts of it are known at run time only", hint="keep runtime values as operands"
        )


def check_int_tuple(types: Sequence[Any], results: Sequence[Any], attributes: Attributes) -> None:
    """`make_int_tuple` takes one integer for each dynamic leaf."""
    (result,) = results
    leaves = list(map(leaf_type, dynamic_leaves(result.value)))
    if list(types) != leaves:
        raise LayoutError(f"make_int_tuple of {list(map(str, types))} gives no {result}")


def infer_comparison(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """A Boolean: whether each part of a tuple is less than, or equal to, the same part of another one."""
    compared_parts(*(operand.value for operand in types))
    return [element_type("i1")]


def infer_elem_less(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    """A Boolean, of tuples of numbers: strides along axes, such as `1E0`, have no order."""
    for left, right in compared_parts(*(operand.value for operand in types)):
        if isinstance(left, algebra.Basis) or isinstance(right, algebra.Basis):
            raise LayoutError(f"{left} and {right} have no order", hint="compare int tuples of one shape")
    return infer_comparison(types, attributes)


def compared_parts(left: Any, right: Any) -> list[tuple[Any, Any]]:
    """The leaves of two tuples in pairs. Raises LayoutError if the tuples do not have the same form."""
    left, right = single_leaf(left), single_leaf(right)
    if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
        return [pair for parts in zip(left, right, strict=True) for pair in compared_parts(*parts)]
    if any(isinstance(part, tuple) or part is None or _is_dynamic_basis(part) for part in (left, right)):
        shown = " and ".join(map(algebra.to_text, (left, right)))
        raise LayoutError(
            f"{shown} have no parts to compare one by one", hint="compare int tuples with int tuples of the same shape"
        )
    return [(left, right)]


def _is_dynamic_basis(leaf: Any) -> bool:
    return isinstance(leaf, algebra.Basis) and not isinstance(leaf.coefficient, int)
