"""Every public function of the layout algebra on operands of every sort.

A call gives a result or raises LayoutError: TypeError only where Python itself counts the arguments, which are always
as many as it takes here. Results of layouts of ints keep what the operations promise (`PROMISES`).
"""

from __future__ import annotations

import inspect
import random
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any

import flydsl.layout as algebra
from flydsl.errors import LayoutError
from flydsl.layout import Basis, ComposedLayout, Dynamic, Layout, Swizzle, Tile

CLASSES = (Basis, ComposedLayout, Dynamic, Layout, Swizzle, Tile)
CALLED: dict[str, Callable[..., Any]] = {
    **{name: getattr(algebra, name) for name in algebra.__all__ if inspect.isroutine(getattr(algebra, name))},
    **{kind.__name__: kind for kind in CLASSES},
}
MOST_OPERANDS = 3
MOST_POINTS = 300
SHOWN = 20
MOST_FINDINGS = 100

NUMBERS = (0, -1, -4, 2**31, 2**62, 2**63, -(2**63), 10**30, 10**5000, True)
JUNK = (1.5, float("nan"), "x", "(4,8):(1,4)", b"4", object(), {}, {4: 1}, {1, 2}, range(3), Layout, len, ..., ())


class Operands:
    """Operands of every sort, most of them layouts."""

    def __init__(self, numbers: random.Random) -> None:
        self.random = numbers

    def any(self) -> Any:
        makers = [self.layout] * 8 + [self.tree] * 4 + [self.tile] * 3 + [self.leaf] * 3
        rare = [self.composed, self.swizzle, self.basis, self.dynamic, self.junk, self.deep]
        return self.random.choice(makers + rare)()

    def extent(self) -> int:
        return self.random.choice([1, 1, 2, 2, 3, 4, 4, 5, 6, 8, 12, 16])

    def leaf(self) -> Any:
        odd = [lambda: self.random.choice(NUMBERS), self.basis, self.dynamic, lambda: None, self.junk, self.layout]
        return self.random.choice(odd)() if self.random.random() < 0.1 else self.extent()

    def tree(self, depth: int = 3) -> Any:
        if depth == 0 or self.random.random() < 0.4:
            return self.leaf()
        kind = list if self.random.random() < 0.1 else tuple
        return kind(self.tree(depth - 1) for _ in range(self.random.randint(0, 3)))

    def shape(self, depth: int = 2) -> Any:
        if depth == 0 or self.random.random() < 0.4:
            return self.extent()
        return tuple(self.shape(depth - 1) for _ in range(self.random.randint(1, 3)))

    def like(self, tree: Any, leaf: Callable[[], Any]) -> Any:
        return tuple(self.like(part, leaf) for part in tree) if isinstance(tree, tuple) else leaf()

    def layout(self) -> Layout:
        shape, kind = self.shape(), self.random.random()
        if kind < 0.5:
            return algebra.make_ordered_layout(shape, self.like(shape, lambda: self.random.randint(0, 9)))
        if kind < 0.6:
            return algebra.make_identity_layout(shape)
        if kind < 0.7:
            return Layout(self.like(shape, self.random.choice([self.dynamic, self.extent])))
        return Layout(shape, self.like(shape, self.stride_of(kind < 0.9)))

    def stride_of(self, one_sort: bool) -> Callable[[], Any]:
        """Where strides come from: all of one sort, or of several."""
        sorts = [lambda: self.random.randint(0, 24)] * 3 + [self.dynamic, self.basis]
        return self.random.choice(sorts) if one_sort else lambda: self.random.choice(sorts)()

    def composed(self) -> Any:
        inner = self.random.choice([self.swizzle, self.layout])()
        try:
            outer = self.random.choice([self.layout, self.layout, self.layout, self.composed])()
            return ComposedLayout(inner, self.random.choice([0, 5, self.dynamic()]), outer)
        except LayoutError:
            return self.layout()

    def tile(self) -> Tile:
        makers = [self.extent, self.extent, self.layout, lambda: None, self.tile]
        chosen = self.random.choices(makers, [4, 4, 2, 2, 1], k=self.random.randint(0, 3))
        return Tile(tuple(make() for make in chosen))

    def swizzle(self) -> Swizzle:
        return self.random.choice([Swizzle(2, 1, 3), Swizzle(1, 0, -2), Swizzle(0, 0, 0), Swizzle(3, 4, 3)])

    def basis(self) -> Basis:
        return Basis(self.random.choice([1, 2, -3, 0, Dynamic()]), self.random.choice([(0,), (1,), (1, 0), (0, 2)]))

    def dynamic(self) -> Dynamic:
        return self.random.choice([Dynamic(), Dynamic(64), Dynamic(32, 8), Dynamic(64, 6)])

    def junk(self) -> Any:
        return self.random.choice(JUNK)

    def deep(self) -> Any:
        tree: Any = 1
        for _ in range(self.random.choice([31, 32, 33, 3000])):
            tree = (tree,)
        return tree


def run(seed: int, count: int) -> None:
    """Make `count` calls of each function. AssertionError tells the calls that went wrong."""
    findings: list[str] = []
    for number in range(count):
        for name in CALLED:
            finding = call(f"{seed}:{number}:{name}")
            if finding:
                findings.append(finding)
        if len(findings) >= MOST_FINDINGS:
            break
    if findings:
        raise AssertionError("\n\n".join([*findings[:SHOWN], f"{len(findings)} findings"]))


def call(key: str) -> str | None:
    """What is wrong with one call, made from a key such as "1:7:coalesce"; None where nothing is."""
    name = key.split(":")[-1]
    function, numbers = CALLED[name], random.Random(key)
    make = Operands(numbers)
    operands = [make.any() for _ in range(_arity(numbers, function))]
    try:
        result = function(*operands)
        _use(result)
        if name in PROMISES and all(map(_is_plain, operands)):
            PROMISES[name](result, *operands)
    except LayoutError as error:
        return None if str(error) else f"{key}: an error without a word"
    except Exception:  # noqa: BLE001 - whatever it is, it is the finding
        return f"{key} of {', '.join(map(_shown, operands))}\n{traceback.format_exc(limit=-4)}"
    return None


def _use(result: Any) -> None:
    """What anybody does with a result: compare it, hash it, print it, call it."""
    assert result == result, "is not itself"
    hash(result)
    algebra.to_text(result)
    if isinstance(result, Layout | ComposedLayout):
        result(0)


def _arity(numbers: random.Random, function: Callable[..., Any]) -> int:
    """A number of operands that the function takes."""
    parameters = inspect.signature(function).parameters.values()
    least = sum(p.default is p.empty and p.kind is not p.VAR_POSITIONAL for p in parameters)
    most = MOST_OPERANDS if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(parameters)
    return numbers.randint(least, max(least, most))


def _shown(operand: Any) -> str:
    try:
        return f"{operand!r:.300}" if type(operand) is not tuple else str(operand)[:300]
    except (ValueError, RecursionError):
        return f"a {type(operand).__name__} too large to print"


# ---- what operations promise, of layouts of ints ----


def _is_plain(value: Any) -> bool:
    """Whether the operand is of ints alone, of which a layout has few elements."""
    if isinstance(value, Layout):
        return _is_plain(value.shape) and _is_plain(value.stride) and algebra.size(value) <= MOST_POINTS
    if isinstance(value, Tile):
        return all(map(_is_plain, value.modes))
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    return value is None or (type(value) is int and abs(value) <= 4 * MOST_POINTS)


def _values(layout: Layout) -> list[int]:
    return [layout(i) for i in range(algebra.size(layout))]


def _layout(value: Any) -> Layout:
    return value if isinstance(value, Layout) else Layout(value, 1)


def _is_one_to_one(layout: Layout) -> bool:
    return len(set(_values(layout))) == algebra.size(layout)


def _coalesced(result: Layout, layout: Any, profile: Any = None) -> None:
    assert _values(result) == _values(_layout(layout)), "another function"


def _composed(result: Layout, a: Any, b: Any) -> None:
    outer, inner = _layout(a), Tile(tuple(b)) if isinstance(b, tuple | list) else b
    if isinstance(inner, Tile) and type(outer.shape) is int and len(inner.modes) == 1:
        inner = inner.modes[0]  # a layout without modes takes the tile's one as it is
    if isinstance(inner, Tile):
        assert len(result) == len(outer), "another rank"
        for mode, of, part in zip(result, outer, inner.modes, strict=False):
            _composed(mode, of, part)
    elif inner is None:
        assert _values(result) == _values(outer), "a mode that was to stay"
    elif algebra.size(result) <= MOST_POINTS:
        taken = _values(_layout(inner))
        if algebra.size(outer) == 1 and any(taken):  # outside of the only element; FlyDSL gives it stride 0
            return
        assert _values(result) == [outer(i) for i in taken], "not A(B(i))"


def _complement(result: Layout, layout: Any, bound: Any = None) -> None:
    if algebra.size(result) <= MOST_POINTS:
        reached, rest = set(_values(_layout(layout))), _values(result)
        assert rest == sorted(set(rest)), "not in order"
        assert not reached & set(rest) - {0}, "overlaps the layout"


def _divided(result: Layout, a: Any, b: Any) -> None:
    of = _layout(a)
    # A broadcast mode that the tile does not divide is rounded up, and what follows it is reached in part: `composed`.
    # What a tile does not divide is rounded up, too, and reached whole: the last tiles go on beyond it.
    has_broadcast = any(d == 0 and n > 1 for n, d in zip(*of.flat_modes(), strict=True))
    if _is_extents(b) and not has_broadcast:
        lost = Counter(_values(of)) - Counter(_values(result))
        assert not lost, f"elements are lost: {lost}"
        assert algebra.size(result) == algebra.size(of) or not _divides(of, b), "elements are added"


def _divides(a: Layout, b: Any) -> bool:
    """Whether extents divide those of a layout, mode by mode."""
    if isinstance(b, Tile):
        modes = list(a) if isinstance(a.shape, tuple) else [a]
        return all(_divides(mode, part) for mode, part in zip(modes, b.modes, strict=False))
    return b is None or algebra.size(a) % b == 0


def _is_extents(b: Any) -> bool:
    """Whether it is a divisor of extents, whose tiles are without gaps."""
    return all(map(_is_extents, b.modes)) if isinstance(b, Tile) else b is None or type(b) is int


def _multiplied(result: Layout, a: Any, b: Any) -> None:
    if not isinstance(b, Tile | tuple | list):
        sizes = algebra.size(_layout(a)) * algebra.size(_layout(b))
        assert algebra.size(result) == sizes, "another size"
        if sizes <= MOST_POINTS and _is_one_to_one(_layout(a)) and _is_one_to_one(_layout(b)):
            assert _is_one_to_one(result), "repetitions overlap"


def _right_inverse(result: Layout, layout: Any) -> None:
    of = _layout(layout)
    assert [of(i) for i in _values(result)] == list(range(algebra.size(result))), "L(R(i)) is not i"


def _left_inverse(result: Layout, layout: Any) -> None:
    of = _layout(layout)
    assert [result(i) for i in _values(of)] == list(range(algebra.size(of))), "R(L(i)) is not i"


def _tiled_to_shape(result: Layout, block: Any, shape: Any, order: Any = None) -> None:
    if isinstance(shape, tuple | list):
        assert algebra.product_each(result.shape) == algebra.product_each(shape), "another shape"
    else:
        assert algebra.size(result) == shape, "another size"


PROMISES: dict[str, Callable[..., None]] = {
    "coalesce": _coalesced,
    "composition": _composed,
    "complement": _complement,
    "right_inverse": _right_inverse,
    "left_inverse": _left_inverse,
    "tile_to_shape": _tiled_to_shape,
    **dict.fromkeys(["logical_divide", "zipped_divide", "tiled_divide", "flat_divide"], _divided),
    **dict.fromkeys(["logical_product", "zipped_product", "tiled_product", "flat_product"], _multiplied),
    **dict.fromkeys(["blocked_product", "raked_product"], _multiplied),
}
