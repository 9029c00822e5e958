"""Select and regroup modes of layouts and int tuples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flydsl.layout.composed import layout_operation
from flydsl.layout.int_tuple import LayoutOrTuple, as_int_tuple, normal_form
from flydsl.layout.layout import Layout, modes_of, of_modes
from flydsl.layout.leaf import is_integer
from flydsl.layout.text import Inadmissible, shown


def _parts(value: Any) -> list[Any]:
    """The modes of a layout (as layouts) or of an int tuple."""
    if isinstance(value, Layout):
        return modes_of(value)
    tree = normal_form(value)
    return list(tree) if type(tree) is tuple else [tree]


def _whole(parts: list[Any], like: Any) -> Any:
    return of_modes(parts) if isinstance(like, Layout) else as_int_tuple(tuple(parts))


def _one_or_whole(parts: list[Any], like: Any) -> Any:
    if len(parts) == 1:
        return parts[0] if isinstance(like, Layout) else as_int_tuple(parts[0])
    return _whole(parts, like)


def _mode(mode: object, count: int) -> int:
    if not is_integer(mode) or not 0 <= mode < count:
        raise Inadmissible(
            f"there is no mode {shown(mode)}: modes count from 0 to {count - 1}",
            hint="take one of these; fx.rank(value) is their number",
        )
    return mode


def _span(begin: object, end: object, count: int) -> tuple[int, int]:
    stop = count if end == -1 and is_integer(end) else end
    if not is_integer(begin) or not is_integer(stop) or not 0 <= begin < stop <= count:
        raise Inadmissible(
            f"there are no modes {shown(begin)} to {shown(end)} in a rank of {count}",
            hint="pass a begin below end, and an end up to the rank",
        )
    return begin, stop


@layout_operation
def get(value: LayoutOrTuple, *modes: int) -> LayoutOrTuple:
    """One mode of a layout or int tuple; with several mode numbers, the mode of that mode.

    >>> get((4, (2, 8)), 1, 0), get(Layout((4, 8), (8, 1)), 1)
    (2, 8:1)
    """
    for mode in modes:
        parts = _parts(value)
        value = parts[_mode(mode, len(parts))]
    return value if isinstance(value, Layout) else as_int_tuple(normal_form(value))


get_ = get


@layout_operation
def select(value: LayoutOrTuple, modes: int | Sequence[int]) -> LayoutOrTuple:
    """The modes with the given numbers, in that order; a single one without parentheses.

    >>> select((6, (8, 4), 5), [2, 0]), select(Layout((6, 4), (1, 6)), [1])
    ((5,6), 4:6)
    """
    parts = _parts(value)
    wanted = normal_form(modes)
    chosen = wanted if type(wanted) is tuple else (wanted,)
    return _one_or_whole([parts[_mode(m, len(parts))] for m in chosen], value)


@layout_operation
def take(value: LayoutOrTuple, begin: int, end: int) -> LayoutOrTuple:
    """The modes begin to end-1 (end -1: to the last); a single one without parentheses.

    >>> take((2, (3, 2), 4), 1, 3), take((2, (3, 2), 4), 1, 2)
    (((3,2),4), (3,2))
    """
    parts = _parts(value)
    first, stop = _span(begin, end, len(parts))
    return _one_or_whole(parts[first:stop], value)


@layout_operation
def group(value: LayoutOrTuple, begin: int, end: int) -> LayoutOrTuple:
    """Combine the modes begin to end-1 (end -1: to the last) into one mode; the others are unchanged.

    >>> group((2, 3, 4), 0, 2), group((2, 3, 4), 2, 3)
    (((2,3),4), (2,3,(4)))
    """
    parts = _parts(value)
    first, stop = _span(begin, end, len(parts))
    inner = _whole(parts[first:stop], value)
    return _whole([*parts[:first], inner, *parts[stop:]], value)


# More is a mistake, and would take the memory of the machine.
_MOST_MODES = 1024


def _joined(value: Any, mode: Any, n: int | None, front: bool) -> Any:
    if isinstance(value, Layout) != isinstance(mode, Layout):
        raise Inadmissible(
            "a mode of a layout must be a layout, and a mode of an int tuple an int tuple",
            hint="fx.make_layout(4, 1) is a mode for a layout, 4 one for an int tuple",
        )
    if n is not None and (not is_integer(n) or n > _MOST_MODES):
        raise Inadmissible(
            f"the number of modes must be an int up to {_MOST_MODES}, got {shown(n)}", hint="pass 4, for example"
        )
    parts = _parts(value)
    count = 1 if n is None else n - len(parts)
    if count < 0:
        raise Inadmissible(
            f"the number of modes must be at least {len(parts)}, which there are already, got {n}",
            hint="omit n, or pass more",
        )
    added = [mode if isinstance(mode, Layout) else normal_form(mode)] * count
    if not added:
        return value if isinstance(value, Layout) else as_int_tuple(normal_form(value))
    return _whole([*added, *parts] if front else [*parts, *added], value)


@layout_operation
def append(value: LayoutOrTuple, mode: LayoutOrTuple, n: int | None = None) -> LayoutOrTuple:
    """The layout or int tuple with one more mode at the end, or with as many as make n modes.

    >>> append((4, 1), (3, 2)), append(Layout(4, 1), Layout(2, 8))
    ((4,1,(3,2)), (4,2):(1,8))
    >>> append(Layout(4, 1), Layout(1, 0), 3)
    (4,1,1):(1,0,0)
    """
    return _joined(value, mode, n, front=False)


@layout_operation
def prepend(value: LayoutOrTuple, mode: LayoutOrTuple, n: int | None = None) -> LayoutOrTuple:
    """The layout or int tuple with one more mode at the front, or with as many as make n modes.

    >>> prepend((4, 1), (3, 2)), prepend(Layout(4, 1), Layout(2, 8))
    (((3,2),4,1), (2,4):(8,1))
    """
    return _joined(value, mode, n, front=True)
