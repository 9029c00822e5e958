"""Coordinate tensors: tiles and partitions of coordinates, used to make predicates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from flydsl import layout as algebra
from flydsl.dialect.inference import algebra_value
from flydsl.dialect.leaves import is_static
from flydsl.dialect.location import argument_error, trace_error
from flydsl.dialect.types import FlyType
from flydsl.expr.layouts.algebra import (
    Coordinates,
    IntTuple,
    LayoutValue,
    crd2idx,
    depth,
    get_shape,
    get_stride,
    has_none,
    make_identity_layout,
    rank,
    size,
)
from flydsl.expr.layouts.algebra import slice as layout_slice
from flydsl.expr.numbers.vector_value import Vector
from flydsl.expr.numeric import Int32
from flydsl.expr.tracing.operands import is_runtime, located, static_operand
from flydsl.layout import Layout
from flydsl.layout.int_tuple import as_int_tuple
from flydsl.layout.layout import of_modes

if TYPE_CHECKING:
    from flydsl.expr.kinds import IntTupleLike

__all__ = ["Basis", "CoordTensor", "CoordTensorType", "E", "make_identity_tensor"]


@dataclass(frozen=True)
class CoordTensorType:
    """The type of a coordinate tensor. base: the coordinate of its first element."""

    base: Any
    layout: Any

    @classmethod
    def get(cls, base: Any, layout: Any) -> CoordTensorType:
        """The type, from the values or from their fly types."""
        return cls(*(algebra_value(part) if isinstance(part, FlyType) else part for part in (base, layout)))


class CoordTensor(Coordinates):
    """A tensor whose elements are coordinates of another tensor. It occupies no memory.

    origin: the coordinate of the first element: an int or a runtime integer, or a tuple of them.
    layout: with a tuple its strides are basis elements, as `make_identity_layout` returns them, with an integer they
    are integers. Its extents may be known at run time only.

    Divide, slice and partition it like the tensor that it describes, and compare its elements with the extents:

        coordinates = thr_copy.partition_S(fx.make_identity_tensor((64, 8)))
        inside = fx.elem_less(coordinates[0, i, j], (m, k))
    """

    def __init__(self, origin: Any, layout: Any) -> None:
        self.origin = origin
        self.layout = layout

    @classmethod
    def at(cls, origin: Any, layout: Any) -> CoordTensor:
        """The coordinate tensor that begins at a coordinate: integers, nested like the layout's strides."""
        if not isinstance(layout, Layout | LayoutValue):
            raise argument_error(
                f"a coordinate tensor takes a layout, not {layout}", "make one with fx.make_layout(...)"
            )
        start = origin.unpack() if isinstance(origin, IntTuple) else origin
        return cls(start, layout)

    def of_layout(self, layout: Any) -> CoordTensor:
        return CoordTensor(self.origin, layout)

    @property
    def type(self) -> CoordTensorType:
        """The first coordinate and the layout."""
        return CoordTensorType(self.origin, self.layout)

    @property
    def shape(self) -> Any:
        """The shape of the tensor that it describes."""
        return get_shape(self.layout)

    @property
    def stride(self) -> Any:
        """The steps from element to element."""
        return get_stride(self.layout)

    @property
    def element_type(self) -> NoReturn:
        """Raise ArgumentError, a TypeError: a coordinate has no element type."""
        raise argument_error(f"{self} has no element type: its elements are coordinates", "tensors in memory have one")

    def __getitem__(self, coordinate: Any) -> Any:
        """The element at a coordinate, a tuple; with None in a mode the remaining coordinate tensor."""
        return self.slice(coordinate) if has_none(coordinate) else self._moved(crd2idx(coordinate, self.layout))

    def slice(self, coordinate: Any) -> CoordTensor:
        """The coordinate tensor that remains when the modes with an integer are fixed."""
        given = coordinate if isinstance(coordinate, tuple | list) else (coordinate,)
        kept = layout_slice(self.layout, _wildcards(given))
        return CoordTensor(self._moved(crd2idx(_zeros(given), self.layout)), kept)

    def load(self) -> Any:
        """All elements, if they are integers, as a vector in the order of the coordinates, leftmost mode fastest."""
        shape = self.shape
        if isinstance(self.origin, tuple) or not is_static(shape):
            raise argument_error(
                f"load of {self!r}: integers, of an extent that is known at compile time",
                "index it: coordinates[i, j] is the coordinate of an element",
            )
        numbers = [Int32(self._moved(crd2idx(i, self.layout))) for i in range(int(size(self.layout)))]
        return Vector.from_elements(numbers, Int32)

    def __iter__(self) -> NoReturn:
        raise trace_error(
            f"iteration over a coordinate tensor, {self!r}",
            "loop over an index: `for i in range(n)`, or range_constexpr for an unrolled loop",
        )

    def by_thread(self, parts: Layout, thread: Any) -> CoordTensor:
        """One thread's part, according to its layout (thread, modes of the part...)."""
        by_thread, *rest = parts
        return CoordTensor(self._moved(crd2idx(thread, by_thread)), of_modes(rest))

    def moved(self, step: Any) -> Any:
        """The origin moved by a step."""
        return self._moved(step)

    def _moved(self, step: Any) -> Any:
        """The origin moved by a coordinate. Trailing parts may be missing."""
        try:
            if not isinstance(self.origin, tuple):
                return as_int_tuple(self.origin + step)
            parts = () if isinstance(step, int) else tuple(step)
            moved = [start + parts[mode] if mode < len(parts) else start for mode, start in enumerate(self.origin)]
        except TypeError:
            raise argument_error(
                f"a coordinate is moved by a coordinate, not by {step!r}", "pass (0, 16), for example"
            ) from None
        return as_int_tuple(tuple(moved))

    def __repr__(self) -> str:
        return f"CoordTensor({self.origin}, {self.layout})"


def _wildcards(coordinate: Any) -> Any:
    """A coordinate with 0 for what it fixes."""
    if isinstance(coordinate, tuple | list):
        return tuple(map(_wildcards, coordinate))
    return None if coordinate is None else 0


def _zeros(coordinate: Any) -> Any:
    """A coordinate with 0 for its wildcards."""
    if isinstance(coordinate, tuple | list):
        return tuple(map(_zeros, coordinate))
    return 0 if coordinate is None else coordinate


Basis = algebra.Basis


def E(*modes: int | Sequence[int]) -> Basis | int:
    """The step of one along a mode of a coordinate: a stride of coordinate layouts. E(0, 1): of mode 1 of mode 0.

    Without modes it is the integer 1.

    >>> algebra.make_layout((4, 8), (E(1), 2 * E(0))), E([0, 1]), E()
    ((4,8):(1E1,2E0), 1E0E1, 1)
    """
    given = tuple(modes[0]) if len(modes) == 1 and isinstance(modes[0], list | tuple) else modes
    return located(algebra.Basis, 1, given) if given else 1


def make_identity_tensor(shape: IntTupleLike) -> CoordTensor:
    """The coordinate tensor of a shape; its element at each coordinate is that coordinate.

    >>> make_identity_tensor((4, 8))[3, 5]
    (3,5)
    """
    if is_runtime(shape):
        layout = make_identity_layout(shape if isinstance(shape, tuple | list | IntTuple) else (shape,))
    else:
        layout = located(
            algebra.make_identity_layout, static_operand(shape if isinstance(shape, tuple | list) else (shape,))
        )
    if depth(layout) > 1:
        raise argument_error(
            f"a coordinate tensor takes a flat shape, not {shape}",
            "make it of a flat shape, and divide it with fx.zipped_divide",
        )
    return CoordTensor((0,) * rank(layout), layout)
