"""The layout algebra in a kernel body.

A function of the layout algebra is the same function inside and outside a kernel. With static operands it computes
at once and gives a plain `Layout`, tuple or int; with a traced tensor or a runtime value among its operands it emits
one fly operation.
"""

from __future__ import annotations

import functools
import inspect
import operator
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from flydsl import layout as algebra
from flydsl.dialect.leaves import is_static
from flydsl.dialect.location import argument_error
from flydsl.dialect.ops import ON_TENSORS_TOO
from flydsl.dialect.types import ComposedLayoutType, IntTupleType, LayoutType, MemRefType
from flydsl.errors import FlyError
from flydsl.errors.places import user_location
from flydsl.expr.numeric import Index, Int32, Numeric, wrap_scalar
from flydsl.expr.tracing.emit import emit_fly, is_traced
from flydsl.expr.tracing.operands import FlyValue, as_operand, call_algebra, is_runtime, located, static_operand
from flydsl.layout import Tile
from flydsl.layout.divide import reaches_past
from flydsl.layout.int_tuple import as_int_tuple
from flydsl.layout.layout import functions

if TYPE_CHECKING:
    from flydsl.expr.kinds import AnyLayout, IntTupleLike, LayoutOperand, Result

__all__ = [
    "append", "apply_swizzle", "blocked_product", "ceil_div", "coalesce", "complement", "composed_get_inner",
    "composed_get_offset", "composed_get_outer", "composition", "coprofile", "coshape", "cosize",
    "crd2idx", "depth", "dice", "elem_less", "equal", "flat_divide", "flat_product", "get", "get_",
    "get_1d_coord", "get_flat_coord", "get_leaves", "get_scalar", "get_shape", "get_stride", "group",
    "has_none", "idx2crd", "int_tuple_add", "int_tuple_div", "int_tuple_mod", "int_tuple_mul",
    "int_tuple_product", "int_tuple_product_each", "int_tuple_product_like", "int_tuple_sub", "left_inverse",
    "logical_divide", "logical_product", "make_composed_layout", "make_coord", "make_fragment_layout_like",
    "make_identity_layout", "make_int_tuple", "make_layout", "make_layout_like", "make_ordered_layout",
    "make_shape", "make_stride", "make_tile", "prepend", "raked_product", "rank", "recast_layout",
    "right_inverse", "select", "shape_div", "size", "slice", "take", "tile_to_shape", "tiled_divide",
    "tiled_product", "zipped_divide", "zipped_product",
]  # fmt: skip


class IntTuple(FlyValue, shows=(IntTupleType,)):
    """A traced tuple of integers, some of them runtime values. Index or unpack it to get its modes."""

    type: IntTupleType

    def __getitem__(self, mode: int) -> Any:
        """The mode with the type that it has in the tuple; `fx.get` returns a number as an index."""
        return get_(self, mode)

    def unpack(self) -> tuple[Any, ...]:
        """The modes: ints if known at compile time, else values."""
        return tuple(self)

    def to_py_value(self) -> Any:
        """Nested tuples of ints and, where they are known at run time only, numbers."""
        return tuple(part.to_py_value() if isinstance(part, IntTuple) else part for part in self)

    @property
    def rank(self) -> int:
        """The number of modes."""
        return len(self)

    @property
    def depth(self) -> int:
        """The depth of nesting."""
        return int(algebra.depth(self.type.value))

    @property
    def is_leaf(self) -> bool:
        """True for one integer without parentheses."""
        return not isinstance(self.type.value, tuple)

    @property
    def is_static(self) -> bool:
        """True if nothing of it is a runtime value."""
        return is_static(self.type.value)

    def __len__(self) -> int:
        return int(algebra.rank(self.type.value))

    def __iter__(self) -> Iterator[Any]:
        return (self[mode] for mode in range(len(self)))


class LayoutValue(FlyValue, shows=(LayoutType, ComposedLayoutType)):
    """A traced layout or composed layout that contains runtime values. A static one is a plain `Layout`.

    `layout(i, j)`, `layout((i, j))` or `layout(n)` is the index at a coordinate.
    """

    type: LayoutType | ComposedLayoutType

    @property
    def shape(self) -> Any:
        """The extents, nested; an `IntTuple` if some are known at run time only."""
        return get_shape(self)

    @property
    def stride(self) -> Any:
        """The strides, nested like the shape; an `IntTuple` if some are known at run time only."""
        return get_stride(self)

    @property
    def rank(self) -> int:
        """The number of modes."""
        return self.type.layout.rank

    @property
    def depth(self) -> int:
        """The depth of nesting; 0 for a leaf."""
        return self.type.layout.depth

    @property
    def is_leaf(self) -> bool:
        """True for one mode without parentheses."""
        return self.type.layout.is_leaf

    @property
    def is_static(self) -> bool:
        """True if nothing of it is a runtime value."""
        return is_static(self.type.layout)

    @property
    def is_static_shape(self) -> bool:
        """True if all extents are known at compile time."""
        return is_static(algebra.get_shape(self.type.layout))

    @property
    def is_static_stride(self) -> bool:
        """True if all strides are known at compile time."""
        return is_static(algebra.get_stride(self.type.layout))

    def get_hier_coord(self, index: Any) -> Any:
        """The coordinate of an index, in the nesting of the shape."""
        return idx2crd(index, self)

    def get_flat_coord(self, index: Any) -> Any:
        """The coordinate of an index, without nesting."""
        return get_flat_coord(index, self)

    def get_1d_coord(self, index: Any) -> Any:
        """The number of an index among the coordinates."""
        return get_1d_coord(index, self)

    def __getitem__(self, mode: Any) -> Any:
        """One mode of the layout; for a coordinate such as `layout[None, 3]` the remaining layout."""
        return slice(self, mode) if isinstance(mode, tuple) else get(self, mode)

    def __call__(self, *coordinate: Any) -> Any:
        if len(coordinate) > 1 and any(part is None for part in coordinate):
            return slice(self, coordinate)
        return crd2idx(coordinate[0] if len(coordinate) == 1 else coordinate, self)


class Coordinates:
    """The layout of a coordinate tensor, for the algebra, whose results are coordinate tensors again."""

    layout: Any

    def of_layout(self, layout: Any) -> Any:
        """The coordinate tensor that begins at the same coordinate, with another layout."""
        raise NotImplementedError

    def slice(self, coordinate: Any) -> Any:
        """The part that remains when a coordinate fixes some modes."""
        raise NotImplementedError


def _of_coordinates(name: str, tensor: Coordinates, *rest: Any) -> Any:
    """The function of the algebra with this name, of a coordinate tensor."""
    if name == "slice":
        return tensor.slice(rest[0])
    result = globals()[name if name in globals() else f"{name}_"](tensor.layout, *rest)
    return tensor.of_layout(result) if name in ON_TENSORS_TOO else result


def _algebra(name: str, operands: int) -> Callable[..., Any]:
    """The DSL's form of `flydsl.layout.<name>`, whose first `operands` arguments may be traced."""
    function = getattr(algebra, name)
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            arguments = signature.bind(*args, **kwargs).args
        except TypeError as error:
            raise argument_error(f"{name}{signature}: {error}", "pass each of its parameters once") from None
        if arguments and isinstance(arguments[0], Coordinates):
            return _of_coordinates(name, *arguments)
        if any(map(is_runtime, arguments[:operands])):
            result = call_algebra(name, arguments[:operands], _attributes(name, arguments[operands:]))
            if name in _DIVIDES:
                _warn_if_divided_partially(arguments[0], result)
            return result
        return as_int_tuple(located(function, *map(static_operand, arguments)))

    return call


_DIVIDES = ("logical_divide", "zipped_divide", "tiled_divide", "flat_divide")


def _warn_if_divided_partially(tensor: Any, divided: Any) -> None:
    before, after = (value.type if isinstance(value, FlyValue) else None for value in (tensor, divided))
    if isinstance(before, MemRefType) and isinstance(after, MemRefType):
        warn_of_partial_tiles(before.layout, after.layout)


def warn_of_partial_tiles(layout: Any, divided: Any) -> None:
    """Warn at the user's line if a tensor was divided into tiles, and the last ones reach past it."""
    place = user_location()
    if place is not None and reaches_past(layout, divided):
        warnings.warn_explicit(
            f"tiles that do not divide {layout}: the last of them reach past it, and elements there are read or "
            "written unless a predicate, or the bound of a buffer, prevents it",
            UserWarning,
            place.file,
            place.line,
        )


def _attributes(name: str, arguments: tuple[Any, ...]) -> dict[str, Any]:
    """Static trailing arguments: a list of modes, or single integers."""
    if not arguments:
        return {}
    listed = len(arguments) == 1 and isinstance(arguments[0], tuple | list)
    numbers = [static_operand(item) for item in (arguments[0] if listed else arguments)]
    if not all(isinstance(number, int) and abs(number) < 2**31 for number in numbers):
        raise argument_error(
            f"{name} takes integers that are known at compile time, not {arguments!r}",
            "pass Python ints or fx.Constexpr values",
        )
    return {"indices" if listed else "args": numbers}


logical_divide = _algebra("logical_divide", 2)
zipped_divide = _algebra("zipped_divide", 2)
tiled_divide = _algebra("tiled_divide", 2)
flat_divide = _algebra("flat_divide", 2)
logical_product = _algebra("logical_product", 2)
zipped_product = _algebra("zipped_product", 2)
tiled_product = _algebra("tiled_product", 2)
flat_product = _algebra("flat_product", 2)
raked_product = _algebra("raked_product", 2)
blocked_product = _algebra("blocked_product", 2)
tile_to_shape = _algebra("tile_to_shape", 3)
composition = _algebra("composition", 2)
complement = _algebra("complement", 2)
coalesce = _algebra("coalesce", 2)
right_inverse = _algebra("right_inverse", 1)
left_inverse = _algebra("left_inverse", 1)
recast_layout = _algebra("recast_layout", 1)
append = _algebra("append", 2)
prepend = _algebra("prepend", 2)
select = _algebra("select", 1)
take = _algebra("take", 1)
group = _algebra("group", 1)
get_ = _algebra("get", 1)
composed_get_inner = _algebra("composed_get_inner", 1)
composed_get_offset = _algebra("composed_get_offset", 1)
composed_get_outer = _algebra("composed_get_outer", 1)


@functools.wraps(algebra.get)
def get(value: LayoutOperand, *modes: IntTupleLike) -> Result:
    found = get_(value, *modes)
    return Index(found) if isinstance(found, Numeric) and not found.is_static else found


get_shape = _algebra("get_shape", 1)
get_stride = _algebra("get_stride", 1)
_all_leaves = _algebra("get_leaves", 1)


def get_leaves(value: LayoutOperand, dynamic_only: bool = False) -> Result:
    """The leaves of a tuple or layout, in order. dynamic_only: those that are known at run time only."""
    leaves = _all_leaves(value)
    return tuple(leaf for leaf in leaves if isinstance(leaf, Numeric)) if dynamic_only else leaves


size = _algebra("size", 1)
coprofile = _algebra("coprofile", 1)
coshape = _algebra("coshape", 1)
cosize = _algebra("cosize", 1)
slice = _algebra("slice", 2)
dice = _algebra("dice", 2)
crd2idx = _algebra("crd2idx", 2)
idx2crd = _algebra("idx2crd", 2)
get_1d_coord = _algebra("get_1d_coord", 2)
get_flat_coord = _algebra("get_flat_coord", 2)
int_tuple_add = _algebra("int_tuple_add", 2)
int_tuple_sub = _algebra("int_tuple_sub", 2)
int_tuple_mul = _algebra("int_tuple_mul", 2)
int_tuple_div = _algebra("int_tuple_div", 2)
int_tuple_mod = _algebra("int_tuple_mod", 2)
int_tuple_product = _algebra("int_tuple_product", 1)
int_tuple_product_each = _algebra("int_tuple_product_each", 1)
int_tuple_product_like = _algebra("int_tuple_product_like", 2)
ceil_div = _algebra("ceil_div", 2)
shape_div = _algebra("shape_div", 2)
make_identity_layout = _algebra("make_identity_layout", 1)
make_layout_like = _algebra("make_layout_like", 1)
make_fragment_layout_like = _algebra("make_fragment_layout_like", 1)
make_ordered_layout = _algebra("make_ordered_layout", 2)
_composed_of_three = _algebra("make_composed_layout", 3)
apply_swizzle = _algebra("apply_swizzle", 2)


def make_composed_layout(
    inner: AnyLayout | algebra.Swizzle | algebra.CoordSwizzle, offset: IntTupleLike, outer: AnyLayout | None = None
) -> Result:
    """The function c -> inner(offset + outer(c)). With two arguments, the inner and the outer one, the offset is 0."""
    return _composed_of_three(inner, 0, offset) if outer is None else _composed_of_three(inner, offset, outer)


def elem_less(lhs: LayoutOperand, rhs: LayoutOperand) -> Result:
    """True if each part of a coordinate is less than the same part of another, such as the extents of a tensor.

    Computed at once if all parts are known at compile time; otherwise a runtime Boolean.

    >>> elem_less((3, 7), (4, 8)), elem_less((3, 8), (4, 8))
    (True, False)
    """
    return _all_parts("elem_less", operator.lt, lhs, rhs)


def equal(lhs: LayoutOperand, rhs: LayoutOperand) -> Result:
    """True if two coordinates or tuples of integers are equal, part by part."""
    return _all_parts("equal", operator.eq, lhs, rhs)


def _all_parts(what: str, compare: Callable[[Any, Any], Any], lhs: Any, rhs: Any) -> Any:
    if isinstance(lhs, _TUPLES) or isinstance(rhs, _TUPLES):
        if not (isinstance(lhs, _TUPLES) and isinstance(rhs, _TUPLES) and len(lhs) == len(rhs)):
            raise argument_error(
                f"{what} takes tuples of one shape, not {lhs} and {rhs}", "compare or combine tuples of equal nesting"
            )
        parts = [_all_parts(what, compare, a, b) for a, b in zip(lhs, rhs, strict=True)]
        return functools.reduce(operator.and_, parts, True)
    try:
        return compare(lhs, rhs)
    except TypeError as error:
        if isinstance(error, FlyError):
            raise
        raise argument_error(
            f"{what} of {type(lhs).__name__} and {type(rhs).__name__}", "compare integers, or tuples of them"
        ) from None


_TUPLES = (tuple, list, IntTuple)


def rank(value: LayoutOperand) -> int:
    """Number of top-level modes of a tuple, layout or tensor."""
    return located(algebra.rank, _symbolic(value))


def depth(value: LayoutOperand) -> int:
    """Depth of nesting: 0 for an integer, 1 for a flat tuple."""
    return located(algebra.depth, _symbolic(value))


def _symbolic(value: Any) -> Any:
    """A value with `?` in place of runtime parts."""
    if isinstance(value, tuple | list):
        return tuple(map(_symbolic, value))
    if isinstance(value, Coordinates):
        return _symbolic(value.layout)
    kind = value.type if isinstance(value, FlyValue) else None
    if isinstance(kind, LayoutType | ComposedLayoutType | MemRefType):
        return kind.layout
    if isinstance(kind, IntTupleType):
        return kind.value
    return algebra.Dynamic() if is_runtime(value) else static_operand(value)


def has_none(coordinate: IntTupleLike) -> bool:
    """True if a coordinate contains None (the wildcard)."""
    if isinstance(coordinate, tuple | list):
        return any(map(has_none, coordinate))
    return coordinate is None


def _make_tuple(*modes: Any) -> Any:
    value = modes[0] if len(modes) == 1 else modes
    if isinstance(value, IntTuple):
        return value
    if not is_runtime(value):
        return located(algebra.make_int_tuple, static_operand(value))
    return IntTuple(as_operand(value)) if isinstance(value, tuple | list) else value


def make_int_tuple(*modes: IntTupleLike) -> Result:
    """A tuple of integers, from one nested tuple or one argument per mode."""
    return _make_tuple(*modes)


def make_shape(*modes: IntTupleLike) -> Result:
    """A shape, from one nested tuple or one argument per mode."""
    return _make_tuple(*modes)


def make_stride(*modes: IntTupleLike) -> Result:
    """A stride, from one nested tuple or one argument per mode."""
    return _make_tuple(*modes)


def make_coord(*modes: IntTupleLike) -> Result:
    """A coordinate; None keeps a mode."""
    return _make_tuple(*modes)


def make_layout(shape: IntTupleLike, stride: IntTupleLike = None) -> Result:
    """A layout from shape and stride (by default compact, leftmost mode fastest).

    In a kernel an extent may be None: unknown, and larger than every coordinate. It prints as `?`.

    >>> make_layout((4, 8), (8, 1))
    (4,8):(8,1)
    """
    if has_none(shape) and is_traced():
        shape = _with_unknown_extents(shape)
    given = (shape,) if stride is None else (shape, stride)
    if not is_runtime(given):
        return located(algebra.make_layout, *map(static_operand, given))
    return LayoutValue(emit_fly("make_layout", [as_operand(part) for part in given]).result)


def _with_unknown_extents(shape: Any) -> Any:
    """A shape with a runtime value, the largest of its type, for None."""
    if isinstance(shape, tuple | list):
        return tuple(map(_with_unknown_extents, shape))
    return Int32.of(Int32(Int32.limits()[1]).ir_value()) if shape is None else shape


def make_tile(*modes: IntTupleLike) -> Tile:
    """A tile: one size or layout per mode, None to leave a mode whole. A list or tuple given alone holds the modes."""
    if len(modes) == 1 and isinstance(modes[0], (list, tuple)):
        modes = tuple(modes[0])
    if is_runtime(modes):
        raise argument_error(
            "make_tile of runtime values: a tile is known at compile time", "pass Python ints or fx.Constexpr values"
        )
    return located(algebra.make_tile, *map(static_operand, modes))


def get_scalar(value: LayoutOperand) -> Result:
    """The number in a tuple of a single integer."""
    if isinstance(value, int | Numeric):
        return value
    return wrap_scalar(emit_fly("get_scalar", [as_operand(value)]).result)


# The methods of layouts take runtime values, too.
functions.crd2idx, functions.slice, functions.idx2crd = crd2idx, slice, idx2crd
functions.get_flat_coord, functions.get_1d_coord = get_flat_coord, get_1d_coord
