"""Swizzles of coordinates: bits of one mode are XORed into another, before strides make an index of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from flydsl.errors import LayoutError
from flydsl.layout.leaf import Dynamic, is_integer
from flydsl.layout.text import Inadmissible, shown, to_text

_PART_BITS = 63


@dataclass(frozen=True)
class CoordSwizzle:
    """`CS<bits,base_row,[mode_row],base_col,[mode_col]>`: XOR bits of one mode of a coordinate into another.

    The field is `bits` bits of mode `mode_row`, from bit base_row on. It changes mode `mode_col` from bit base_col on.
    A mode is a path: `[1]` is mode 1 of the coordinate, `[0,1]` mode 1 of its mode 0. Modes that a coordinate lacks are
    0. With two different modes the swizzle is its own inverse. (FlyDSL: CoordSwizzleType, whose first parameter is
    `mask`.) Raises LayoutError for fields that no coordinate has.

    >>> CoordSwizzle(3, 1, [0], 4, [1])((6, 5))
    (6, 53)
    """

    bits: int
    base_row: int
    mode_row: tuple[int, ...]
    base_col: int
    mode_col: tuple[int, ...]

    def __post_init__(self) -> None:
        for name in ("mode_row", "mode_col"):
            object.__setattr__(self, name, _path(getattr(self, name)))
        numbers = self.bits, self.base_row, self.base_col
        if not all(is_integer(number) and number >= 0 for number in numbers):
            raise LayoutError(
                f"a coordinate swizzle takes bits and bases of at least 0, got {shown(numbers)}",
                hint="fx.CoordSwizzle(3, 0, [0], 4, [1]) XORs bits 0 to 2 of mode 0 into bits 4 to 6 of mode 1",
            )
        if max(self.base_row, self.base_col) + self.bits > _PART_BITS:
            raise LayoutError(
                f"{self}: the fields must lie within the {_PART_BITS} bits of a part of a coordinate",
                hint="use smaller fields",
            )
        if self.bits and not (self.mode_row and self.mode_col):
            raise LayoutError(
                f"{self}: which modes to read and to change is missing", hint="pass [0] and [1], for example"
            )
        if self.bits and (self.mode_row, self.base_row) == (self.mode_col, self.base_col):
            raise LayoutError(f"{self}: the field would be XORed with itself", hint="give two different modes")

    @property
    def mask(self) -> int:
        """The number of bits, under FlyDSL's name for it."""
        return self.bits

    def __call__(self, coordinate: Any) -> Any:
        if not self.bits:
            return coordinate
        field = (part_at(coordinate, self.mode_row) >> self.base_row) & ((1 << self.bits) - 1)
        changed = part_at(coordinate, self.mode_col) ^ (field << self.base_col)
        return _with_part_at(coordinate, self.mode_col, changed)

    def block(self, mode: tuple[int, ...]) -> int | None:
        """The number of coordinates along a mode that stay side by side; None if all of them do."""
        bases = [base for of, base in ((self.mode_row, self.base_row), (self.mode_col, self.base_col)) if of == mode]
        return 1 << min(bases) if bases and self.bits else None

    def __str__(self) -> str:
        row, col = (",".join(map(str, mode)) for mode in (self.mode_row, self.mode_col))
        return f"CS<{self.bits},{self.base_row},[{row}],{self.base_col},[{col}]>"

    __repr__ = __str__


def _path(mode: Any) -> tuple[int, ...]:
    path = (mode,) if is_integer(mode) else tuple(mode) if isinstance(mode, (list, tuple)) else None
    if path is None or not all(is_integer(part) and part >= 0 for part in path):
        raise LayoutError(f"a mode of a coordinate is a list of ints, got {shown(mode)}", hint="pass [0], for example")
    return path


def part_at(coordinate: Any, mode: tuple[int, ...]) -> Any:
    """The part of a coordinate at a path, 0 if the coordinate lacks it; () is a coordinate without parts.

    >>> part_at((1, (2, 3)), (1, 0)), part_at((1,), (1,))
    (2, 0)
    """
    at = coordinate
    for number in mode:
        if type(at) is not tuple:
            _require_none(at, coordinate, mode)
            return 0
        at = at[number] if number < len(at) else 0
    if type(at) is not int and not isinstance(at, Dynamic):
        raise Inadmissible(
            f"mode {list(mode)} of the coordinate {to_text(coordinate)} is no single number",
            hint="name a mode without parentheses: [0, 1] is mode 1 of mode 0",
        )
    return at


def _require_none(part: Any, coordinate: Any, mode: tuple[int, ...]) -> None:
    if type(part) is not int or part != 0:
        raise Inadmissible(
            f"the coordinate {to_text(coordinate)} has no mode {list(mode)}",
            hint="swizzle the modes that the layout's basis vectors name: fx.E(0) is mode 0",
        )


def _with_part_at(coordinate: Any, mode: tuple[int, ...], value: Any) -> Any:
    if not mode:
        return value
    parts = list(coordinate) if type(coordinate) is tuple else []
    parts += [0] * (mode[0] + 1 - len(parts))
    parts[mode[0]] = _with_part_at(parts[mode[0]], mode[1:], value)
    return tuple(parts)


def added(a: Any, b: Any) -> Any:
    """The sum of two indices, or of two coordinates mode by mode, where a mode that one of them lacks is 0.

    >>> added((1, 2), (3, 4, 5)), added(0, (3, (4, 5)))
    ((4, 6, 5), (3, (4, 5)))
    """
    if type(a) is not tuple and type(b) is not tuple:
        return a + b
    for sum_, other in ((a, b), (b, a)):
        if type(sum_) is not tuple:
            if type(sum_) is int and sum_ == 0:
                return other
            raise Inadmissible(
                f"the index {to_text(sum_)} and the coordinate {to_text(other)} cannot be added",
                hint="give an offset for each mode of the coordinate",
            )
    return tuple([added(x, y) for x, y in zip_longest(a, b, fillvalue=0)])


def fitted(coordinate: Any, shape: Any) -> Any:
    """A coordinate that a layout gave, with zeros for the modes of the shape that it lacks.

    >>> fitted((3,), (8, (2, 4))), fitted((3,), 8)
    ((3, 0), 3)
    """
    if type(coordinate) is not tuple:
        return coordinate
    if type(shape) is not tuple:
        return fitted(coordinate[0], shape) if len(coordinate) == 1 else coordinate
    parts = zip(coordinate, shape, strict=False)
    return (*[fitted(c, s) for c, s in parts], *[0] * (len(shape) - len(coordinate)), *coordinate[len(shape) :])
