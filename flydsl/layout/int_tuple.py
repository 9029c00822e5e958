"""Nested int tuples (shapes, strides, coordinates): checking, flattening and leaf-wise arithmetic."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from flydsl.errors import LayoutError
from flydsl.layout.leaf import Basis, Dynamic, Leaf, ceil_div_leaf, divides, is_static
from flydsl.layout.text import Inadmissible, operation, shown, to_text

MAX_DEPTH = 32
"""Deeper nesting is refused: no layout of use comes near, and it keeps every recursion bounded."""


I64_END = 2**63


class IntLeaf(int):
    """An int tuple of one known integer, which is that integer too: what algebra returns, to be read as either.

    >>> IntLeaf(4) + 1, IntLeaf(4).to_py_value(), IntLeaf(4).is_static
    (5, 4, True)
    """

    __slots__ = ()

    rank = 1
    depth = 0
    is_leaf = True
    is_static = True

    @property
    def get_static_leaf_int(self) -> int:
        """The integer."""
        return int(self)

    def to_py_value(self) -> int:
        """The integer."""
        return int(self)

    def unpack(self) -> int:
        """The integer."""
        return int(self)


class IntTuple(tuple[Any, ...]):
    """A nested tuple of leaves that prints in the notation of the DSL. It equals the plain tuple.

    >>> IntTuple((4, (2, None), (8,)))
    (4,(2,*),(8))
    """

    __slots__ = ()

    def __str__(self) -> str:
        return to_text(tuple(self))

    __repr__ = __str__

    @property
    def rank(self) -> int:
        """The number of modes."""
        return len(self)

    @property
    def depth(self) -> int:
        """The depth of nesting."""
        return depth_of(self)

    @property
    def is_leaf(self) -> bool:
        """False: a leaf is a plain integer."""
        return False

    @property
    def is_static(self) -> bool:
        """True if no leaf is a runtime value."""
        return all(map(is_static, leaves(tuple(self))))

    @property
    def get_static_leaf_int(self) -> int:
        """The integer of a leaf, which this is not: raises LayoutError."""
        raise LayoutError(
            f"the value must be a single number, got {self}", hint="take a leaf with [...], or fx.size(...) of it"
        )

    def to_py_value(self) -> tuple[Any, ...]:
        """The plain tuple."""
        return tuple(part.to_py_value() if isinstance(part, (IntTuple, IntLeaf)) else part for part in self)

    def unpack(self) -> tuple[Any, ...]:
        """The modes."""
        return tuple(self)


AnyTuple = Any
"""An int tuple: a leaf, or a tuple of int tuples. (mypy has no finite recursive type that the operators fit.)"""
LayoutLike: TypeAlias = Any
"""A layout; in a kernel also a traced one, or a tensor, which has a layout."""
LayoutOrTuple: TypeAlias = Any
"""A layout or an int tuple; what comes of it is of the same kind."""


def normal_form(value: object, depth: int = 0) -> AnyTuple:
    """Check an int tuple and return its normal form: plain tuples with leaves of exact type int.

    Raises Inadmissible where a leaf is not an integer (a bool is none) of 64 bits, or the nesting exceeds MAX_DEPTH.
    """
    if value is None or isinstance(value, (Dynamic, Basis)):
        return value
    if type(value) is int:
        if -I64_END <= value < I64_END:
            return value
        raise Inadmissible(f"{shown(value)} does not fit 64 bits", hint="use smaller numbers")
    if isinstance(value, (tuple, list)):
        if depth == MAX_DEPTH:
            raise Inadmissible(f"an int tuple must be nested at most {MAX_DEPTH} deep", hint="flatten it")
        return tuple([x if type(x) is int and -I64_END <= x < I64_END else normal_form(x, depth + 1) for x in value])
    if not isinstance(value, bool):
        try:
            return normal_form(operator.index(value), depth)  # type: ignore[arg-type]  # a numpy integer, say
        except TypeError:
            pass
    raise Inadmissible(
        f"{shown(value)} ({type(value).__name__}) cannot be a leaf of an int tuple", hint="use ints, or tuples of them"
    )


def as_int_tuple(value: AnyTuple) -> AnyTuple:
    """Convert a result for the user: a tuple that prints in the notation, with the members of an int tuple."""
    if type(value) is int:
        return IntLeaf(value)
    return IntTuple(map(as_int_tuple, value)) if type(value) is tuple else value


def depth_of(tree: AnyTuple) -> int:
    """The depth of nesting of a normal tuple; 0 for a leaf.

    >>> depth_of((4, (2, 8))), depth_of(8)
    (2, 0)
    """
    return 1 + max(map(depth_of, tree), default=0) if isinstance(tree, tuple) else 0


def leaves(tree: AnyTuple) -> Iterator[Any]:
    """The leaves, left to right."""
    if type(tree) is tuple:
        for x in tree:
            if type(x) is tuple:
                yield from leaves(x)
            else:
                yield x
    else:
        yield tree


def product_leaf(tree: AnyTuple) -> Leaf:
    """The product of all leaves, multiplied left to right; 1 of an empty tuple."""
    if type(tree) is not tuple:
        return tree
    result: Leaf = 1
    for x in tree:
        result = result * (product_leaf(x) if type(x) is tuple else x)
    return result


def map_leaves(function: Callable[..., Any], tree: AnyTuple, *others: AnyTuple) -> AnyTuple:
    """Apply a function to corresponding leaves of congruent trees."""
    if type(tree) is tuple:
        return tuple([map_leaves(function, *parts) for parts in zip(tree, *others, strict=True)])
    return function(tree, *others)


def congruent(a: AnyTuple, b: AnyTuple) -> bool:
    """True if two trees have the same nesting."""
    if type(a) is tuple:
        return type(b) is tuple and len(a) == len(b) and all(map(congruent, a, b))
    return type(b) is not tuple


def compact_strides(shape: AnyTuple, start: Leaf = 1) -> tuple[AnyTuple, Leaf]:
    """Strides that make the shape contiguous, leftmost mode fastest, and the stride of a further mode."""
    if type(shape) is not tuple:
        return start, start * shape
    strides = []
    for s in shape:
        stride, start = compact_strides(s, start)
        strides.append(stride)
    return tuple(strides), start


def check_numbers(tree: AnyTuple) -> None:
    """Raise Inadmissible if a leaf is a wildcard or a basis vector."""
    for leaf in leaves(tree):
        if leaf is None or isinstance(leaf, Basis):
            raise Inadmissible(
                f"a leaf must be an integer, got {to_text(leaf)}", hint="pass integers, or tuples of them"
            )


# ---- public functions ----


def _numbers(value: object) -> AnyTuple:
    tree = normal_form(value)
    check_numbers(tree)
    return tree


@operation
def make_int_tuple(value: object) -> AnyTuple:
    """Check an int tuple: a leaf (int, Dynamic, Basis, None) or a nested tuple of them.

    >>> make_int_tuple([4, (2, None)])
    (4,(2,*))
    """
    return as_int_tuple(normal_form(value))


@operation
def make_shape(*extents: object) -> AnyTuple:
    """The shape with the given modes. Raises LayoutError for an extent that is not a number.

    >>> make_shape(4, (2, 8))
    (4,(2,8))
    """
    return as_int_tuple(_numbers(extents))


@operation
def make_stride(*strides: object) -> AnyTuple:
    """The stride with the given modes.

    >>> make_stride(1, (4, 8))
    (1,(4,8))
    """
    return as_int_tuple(normal_form(strides))


@operation
def make_coord(*coords: object) -> AnyTuple:
    """The coordinate with the given modes; None is the wildcard `*`.

    >>> make_coord(None, 3)
    (*,3)
    """
    return as_int_tuple(normal_form(coords))


@operation
def product(value: object) -> Leaf:
    """The product of all leaves.

    >>> product((4, (2, 8)))
    64
    """
    return product_leaf(_numbers(value))


@operation
def product_each(value: object) -> AnyTuple:
    """The product of each mode: congruent to the rank, of depth at most 1.

    >>> product_each(((1, 4), (8, 1)))
    (4,8)
    """
    tree = _numbers(value)
    return as_int_tuple(tuple(map(product_leaf, tree)) if type(tree) is tuple else tree)


@operation
def product_like(value: object, guide: object) -> AnyTuple:
    """Multiply the leaves below each leaf of `guide`, so that the result is congruent to it.

    >>> product_like(((2, 3), (4, (5, 6))), (1, (1, 1)))
    (6,(4,30))
    """

    def like(tree: AnyTuple, target: AnyTuple) -> AnyTuple:
        if type(target) is not tuple:
            return product_leaf(tree)
        if type(tree) is not tuple or len(tree) != len(target):
            raise Inadmissible(
                f"{to_text(tree)} must have the modes of {to_text(target)}", hint="give both the same nesting"
            )
        return tuple(map(like, tree, target))

    return as_int_tuple(like(_numbers(value), normal_form(guide)))


@operation
def int_tuple_add(a: object, b: object) -> AnyTuple:
    """Leaf-wise sum of congruent int tuples.

    >>> int_tuple_add((4, (8, 1)), (2, (2, 2)))
    (6,(10,3))
    """
    return _leaf_wise(operator.add, a, b)


@operation
def int_tuple_sub(a: object, b: object) -> AnyTuple:
    """Leaf-wise difference of congruent int tuples.

    >>> int_tuple_sub((4, 8), (2, 2))
    (2,6)
    """
    return _leaf_wise(operator.sub, a, b)


@operation
def int_tuple_mul(a: object, b: object) -> AnyTuple:
    """Leaf-wise product of congruent int tuples.

    >>> int_tuple_mul((4, 8), (2, 2))
    (8,16)
    """
    return _leaf_wise(operator.mul, a, b)


@operation
def int_tuple_div(a: object, b: object) -> AnyTuple:
    """Leaf-wise quotient of congruent int tuples, rounded down; for a basis leaf the coefficient is divided.

    >>> int_tuple_div((2, 9), (2, 4)), int_tuple_div((Basis(8, (1,)),), (4,))
    ((1,2), (2E1))
    """
    return _leaf_wise(operator.floordiv, a, b)


@operation
def int_tuple_mod(a: object, b: object) -> AnyTuple:
    """Leaf-wise remainder of congruent int tuples.

    >>> int_tuple_mod((5, 8), (2, 4))
    (1,0)
    """
    return _leaf_wise(operator.mod, a, b)


def _leaf_wise(function: Callable[[Any, Any], Any], a: object, b: object) -> AnyTuple:
    left, right = normal_form(a), normal_form(b)
    if not congruent(left, right):
        raise Inadmissible(
            "the operands are not congruent", hint="give both the same nesting: (4, (2, 2)) with (1, (4, 8))"
        )

    def combine(x: Any, y: Any) -> Any:
        try:
            return function(x, y)
        except TypeError:
            raise Inadmissible(f"{function.__name__} takes integers, got {to_text(x)} and {to_text(y)}") from None
        except ZeroDivisionError:
            raise Inadmissible(f"{to_text(x)} divided by zero", hint="extents are positive") from None

    return as_int_tuple(map_leaves(combine, left, right))


@operation
def ceil_div(a: object, b: object) -> AnyTuple:
    """Divide a shape, rounding up. A leaf divisor is used up from the leftmost mode on; a tuple divides mode by mode.

    >>> ceil_div((4, 5), (2, 3)), ceil_div((8, 4, (3, 16)), 16)
    ((2,2), (1,2,(3,16)))
    """
    return as_int_tuple(_divide_shape(_numbers(a), _numbers(b), ceil_div_leaf))


@operation
def shape_div(a: object, b: object) -> AnyTuple:
    """Like ceil_div, but each division must be exact one way or the other: 8 by 4 is 2, 4 by 8 is 1.

    Raises LayoutError where neither divides the other.

    >>> shape_div((16, 2, 4), (1, 2, 2)), shape_div((8, 4, 5), 16)
    ((16,1,2), (1,2,5))
    """
    return as_int_tuple(_divide_shape(_numbers(a), _numbers(b), shape_div_leaf))


def shape_div_leaf(a: Leaf, b: Leaf) -> Leaf:
    """a / b if b divides a, 1 if a divides b. Raises Inadmissible if neither is known."""
    if (type(a) is int and a == 0) or (type(b) is int and b == 0):
        raise Inadmissible("an extent must be positive, got 0", hint="use extents of at least 1")
    if divides(b, a):
        return a // b
    if divides(a, b):
        return 1
    if is_static(a) and is_static(b):
        raise Inadmissible(f"{a} and {b}: neither divides the other", hint="choose a divisor or a multiple")
    raise Inadmissible(
        f"whether {b} divides {a} is not known before run time",
        hint="use static extents: Python ints or fx.Constexpr values",
    )


def _divide_shape(a: AnyTuple, b: AnyTuple, divide: Callable[[Leaf, Leaf], Leaf]) -> AnyTuple:
    if type(a) is not tuple:
        return divide(a, product_leaf(b))
    if type(b) is not tuple:
        return _divide_folding(a, b, divide)[0]
    if len(b) > len(a):
        raise Inadmissible(
            f"the divisor has {len(b)} modes, the shape {len(a)}", hint="give a divisor with as many modes"
        )
    return tuple([_divide_shape(x, y, divide) for x, y in zip(a, b, strict=False)]) + a[len(b) :]


def _divide_folding(a: AnyTuple, b: Leaf, divide: Callable[[Leaf, Leaf], Leaf]) -> tuple[AnyTuple, Leaf]:
    """Divide, and return the rest of the divisor for the next mode."""
    if type(a) is not tuple:
        return divide(a, b), divide(b, a)
    quotients = []
    for x in a:
        quotient, b = _divide_folding(x, b, divide)
        quotients.append(quotient)
    return tuple(quotients), b


@operation
def flatten(value: object) -> AnyTuple:
    """All leaves in one tuple of depth 1; a leaf remains a leaf.

    >>> flatten((4, (2, (8,))))
    (4,2,8)
    """
    tree = normal_form(value)
    return as_int_tuple(tuple(leaves(tree)) if type(tree) is tuple else tree)


get_leaves = flatten
int_tuple_product = product
int_tuple_product_each = product_each
int_tuple_product_like = product_like


@operation
def has_none(value: object) -> bool:
    """True if a coordinate contains a wildcard.

    >>> has_none((1, (None, 2)))
    True
    """
    return any(leaf is None for leaf in leaves(normal_form(value)))
