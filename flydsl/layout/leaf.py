"""The leaves of an int tuple: ints, dynamic values, scaled basis vectors, and the wildcard (None, printed `*`).

The algebra is written with Python's operators. On ints they are Python's own; a `Dynamic` leaf answers them through
one method, `Dynamic._combine`. That is what lets the one implementation compute layouts of ints, types of traced
values, and (with a subclass that carries an SSA value and overrides `_combine`) the arithmetic of compiled code.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Any, NoReturn, SupportsIndex, TypeAlias, TypeGuard

from flydsl.errors import LayoutError
from flydsl.layout.text import Inadmissible, shown, to_text

_I32_END = 2**31
_MOST_MODES = 1024


def is_integer(value: object) -> TypeGuard[int]:
    """True for a Python integer, which a bool is not."""
    return isinstance(value, int) and not isinstance(value, bool)


class Dynamic:
    """An integer known only at run time: its width in bits (32 or 64) and a number that is known to divide it.

    Printed `?`, `?{div=4}`, `?{i64}`, `?{i64 div=8}`. Run-time extents, strides and coordinates are taken to be
    non-negative. Arithmetic with an int or another dynamic gives a dynamic of the wider width, with the divisibility
    that follows; what is known anyway (x*0, x*1, x+0, x%c of a multiple of c) folds and never reaches `_combine`.

    >>> Dynamic() * 8 + 4
    ?{div=4}
    >>> Dynamic(64, divisibility=8) % 4
    0
    """

    __slots__ = ("divisibility", "width")

    width: int
    divisibility: int

    def __init__(self, width: int = 32, divisibility: int = 1) -> None:
        if not is_integer(width) or width not in (32, 64):
            raise LayoutError(
                f"a dynamic leaf must be 32 or 64 bits wide, got {shown(width)}", hint="use fx.Int32 or fx.Int64"
            )
        if not is_integer(divisibility) or divisibility < 1:
            raise LayoutError(
                f"divisibility must be a positive int, got {shown(divisibility)}", hint="pass 16, for example"
            )
        object.__setattr__(self, "width", width)
        object.__setattr__(self, "divisibility", divisibility)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __reduce__(self) -> tuple[object, ...]:
        return Dynamic, (self.width, self.divisibility)

    def _combine(self, op: str, lhs: Leaf, rhs: Leaf, width: int, divisibility: int) -> Leaf:
        """Compute `lhs op rhs` where at least one is dynamic; the only place for dynamic arithmetic.

        op: "add", "sub", "mul", "div" (of non-negative numbers, rounding down), "ceil_div", "mod", "and", "xor", "shl"
        or "shr". An operand narrower than `width` is to be sign-extended first. Of operations whose order does not
        matter, an int is the right operand.
        """
        return Dynamic(width, divisibility)

    def __eq__(self, other: object) -> bool:
        if type(self) is not Dynamic or type(other) is not Dynamic:
            return self is other
        return self.width == other.width and self.divisibility == other.divisibility

    def __hash__(self) -> int:
        return hash((self.width, self.divisibility))

    def __str__(self) -> str:
        known = (["i64"] if self.width == 64 else []) + ([f"div={self.divisibility}"] if self.divisibility > 1 else [])
        return f"?{{{' '.join(known)}}}" if known else "?"

    __repr__ = __str__

    def __add__(self, other: object) -> Leaf:
        return _add(self, other) if isinstance(other, (int, Dynamic)) else NotImplemented

    def __radd__(self, other: object) -> Leaf:
        return _add(other, self) if isinstance(other, int) else NotImplemented

    def __sub__(self, other: object) -> Leaf:
        return _sub(self, other) if isinstance(other, (int, Dynamic)) else NotImplemented

    def __rsub__(self, other: object) -> Leaf:
        return _sub(other, self) if isinstance(other, int) else NotImplemented

    def __mul__(self, other: object) -> Leaf:
        return _mul(self, other) if isinstance(other, (int, Dynamic)) else NotImplemented

    def __rmul__(self, other: object) -> Leaf:
        return _mul(other, self) if isinstance(other, int) else NotImplemented

    def __floordiv__(self, other: object) -> Leaf:
        return _div(self, other) if isinstance(other, (int, Dynamic)) else NotImplemented

    def __rfloordiv__(self, other: object) -> Leaf:
        return _div(other, self) if isinstance(other, int) else NotImplemented

    def __mod__(self, other: object) -> Leaf:
        return _mod(self, other) if isinstance(other, (int, Dynamic)) else NotImplemented

    def __rmod__(self, other: object) -> Leaf:
        return _mod(other, self) if isinstance(other, int) else NotImplemented

    def __xor__(self, other: object) -> Leaf:
        return _xor(self, other) if isinstance(other, (int, Dynamic)) else NotImplemented

    __rxor__ = __xor__

    def __and__(self, mask: object) -> Leaf:
        return _and(self, mask) if isinstance(mask, int) else NotImplemented

    __rand__ = __and__

    def __lshift__(self, bits: object) -> Leaf:
        if not isinstance(bits, int):
            return NotImplemented
        return _emit("shl", self, bits, self.divisibility << bits) if bits else self

    def __rshift__(self, bits: object) -> Leaf:
        if not isinstance(bits, int):
            return NotImplemented
        exact = self.divisibility % (1 << bits) == 0
        return _emit("shr", self, bits, self.divisibility >> bits if exact else 1) if bits else self


class Basis:
    """A scaled basis vector of coordinates, the stride of a coordinate tensor: `2E0`, `1E0E1` (mode 1 of mode 0).

    Basis vectors scale, and add up to a BasisSum. modes: one, or several, the outermost first.

    >>> 3 * Basis(1, (1,)), Basis(2, 0), Basis(1, [0, 1])
    (3E1, 2E0, 1E0E1)
    """

    __slots__ = ("coefficient", "modes")

    coefficient: int | Dynamic
    modes: tuple[int, ...]

    def __init__(self, coefficient: int | Dynamic, modes: int | Sequence[int]) -> None:
        modes = (modes,) if is_integer(modes) else tuple(modes) if isinstance(modes, list) else modes
        if type(modes) is not tuple or not modes or any(not is_integer(m) or not 0 <= m < _MOST_MODES for m in modes):
            raise LayoutError(
                f"a basis vector needs modes from 0 to {_MOST_MODES - 1}, got {shown(modes)}",
                hint="pass fx.E(0), or fx.E(0, 1) for a mode inside a mode, for example",
            )
        if not is_integer(coefficient) and not isinstance(coefficient, Dynamic):
            raise LayoutError(
                f"the coefficient of a basis vector must be an integer, got {shown(coefficient)}",
                hint="pass an integer",
            )
        object.__setattr__(self, "coefficient", coefficient)
        object.__setattr__(self, "modes", modes)

    @property
    def value(self) -> int | Dynamic:
        """The coefficient."""
        return self.coefficient

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("Basis is immutable")

    def __reduce__(self) -> tuple[object, ...]:
        return Basis, (self.coefficient, self.modes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Basis) and self.modes == other.modes and self.coefficient == other.coefficient

    def __hash__(self) -> int:
        return hash((self.coefficient, self.modes))

    def __str__(self) -> str:
        return to_text(self.coefficient) + "".join(f"E{m}" for m in self.modes)

    __repr__ = __str__

    def __mul__(self, factor: object) -> Basis:
        if isinstance(factor, SupportsIndex) and not isinstance(factor, int):
            factor = factor.__index__()  # a number of the DSL, if it is known
        if not isinstance(factor, (int, Dynamic)):
            return NotImplemented
        return Basis(self.coefficient * factor, self.modes)

    __rmul__ = __mul__

    def __floordiv__(self, divisor: object) -> Basis:
        if not isinstance(divisor, (int, Dynamic)):
            return NotImplemented
        if divisor == 0:
            raise Inadmissible(f"{self} divided by zero", hint="divide by a positive number")
        return Basis(self.coefficient // divisor, self.modes)

    def __add__(self, other: object) -> BasisSum:
        return BasisSum((self,)) + other

    __radd__ = __add__


class BasisSum:
    """A sum of scaled basis vectors, an intermediate value that becomes a coordinate."""

    __slots__ = ("terms",)

    def __init__(self, terms: tuple[Basis, ...]) -> None:
        self.terms = terms

    def __add__(self, other: object) -> BasisSum:
        if isinstance(other, (Basis, BasisSum)):
            return BasisSum(self.terms + (other.terms if isinstance(other, BasisSum) else (other,)))
        if isinstance(other, int) and other == 0:
            return self
        raise Inadmissible(
            "an index and a coordinate cannot be added", hint="add indices to indices, coordinates to coordinates"
        )

    __radd__ = __add__

    def coordinate(self) -> tuple[Any, ...]:
        """The sum as a coordinate.

        >>> (Basis(3, (0,)) + Basis(5, (1, 1)) + Basis(2, (0,))).coordinate()
        (5, (0, 5))
        """
        at: dict[int, Any] = {}
        for term in self.terms:
            first, rest = term.modes[0], term.modes[1:]
            at[first] = at.get(first, 0) + (Basis(term.coefficient, rest) if rest else term.coefficient)
        parts = (at.get(mode, 0) for mode in range(max(at) + 1))
        return tuple([(BasisSum(()) + x).coordinate() if isinstance(x, (Basis, BasisSum)) else x for x in parts])


Leaf: TypeAlias = int | Dynamic
"""A leaf that one can count with. Shapes have no other leaves."""


def is_static(leaf: object) -> bool:
    """True if the leaf has no part that is known only at run time.

    >>> is_static(Basis(2, (0,))), is_static(Dynamic())
    (True, False)
    """
    return is_static(leaf.coefficient) if isinstance(leaf, Basis) else not isinstance(leaf, Dynamic)


def divides(divisor: Leaf, leaf: Leaf) -> bool:
    """True if the leaf is known to be a multiple of the divisor.

    >>> divides(4, Dynamic(divisibility=8)), divides(4, Dynamic()), divides(3, 12)
    (True, False, True)
    """
    if not isinstance(divisor, int) or divisor == 0:
        return isinstance(leaf, int) and leaf == 0
    return (leaf if isinstance(leaf, int) else _known(leaf)) % divisor == 0


def ceil_div_leaf(a: Leaf, b: Leaf) -> Leaf:
    """a / b, rounded up."""
    if isinstance(b, int) and b == 0:
        raise Inadmissible(f"{a} divided by zero", hint="divide by a positive number")
    if isinstance(a, int) and isinstance(b, int):
        return -(-a // b)
    if divides(b, a):
        return a // b
    return _emit("ceil_div", a, b, 1)


def _known(leaf: Leaf) -> int:
    """The number known to divide the leaf; for an int its absolute value."""
    return leaf.divisibility if isinstance(leaf, Dynamic) else abs(leaf)


def _low_bit(number: int) -> int:
    return number & -number


def _emit(op: str, a: Leaf, b: Leaf, divisibility: int) -> Leaf:
    width = 32
    for leaf in (a, b):
        if (leaf.width == 64) if isinstance(leaf, Dynamic) else not -_I32_END <= leaf < _I32_END:
            width = 64
    actor = a if isinstance(a, Dynamic) else b
    assert isinstance(actor, Dynamic)
    return actor._combine(op, a, b, width, max(divisibility, 1))


def _add(a: Leaf, b: Leaf) -> Leaf:
    if isinstance(a, int):
        a, b = b, a
    if isinstance(b, int) and b == 0:
        return a
    return _emit("add", a, b, gcd(_known(a), _known(b)))


def _sub(a: Leaf, b: Leaf) -> Leaf:
    if isinstance(b, int) and b == 0:
        return a
    return _emit("sub", a, b, gcd(_known(a), _known(b)))


def _mul(a: Leaf, b: Leaf) -> Leaf:
    if isinstance(a, int):
        a, b = b, a
    if isinstance(b, int) and b in (0, 1):
        return a if b else 0
    return _emit("mul", a, b, _known(a) * _known(b))


def _div(a: Leaf, b: Leaf) -> Leaf:
    if isinstance(a, int) and a == 0:
        return 0
    if not isinstance(b, int):
        return _emit("div", a, b, 1)
    if b == 0:
        raise Inadmissible(f"{a} divided by zero", hint="divide by a positive number")
    known = _known(a)
    return a if b == 1 else _emit("div", a, b, known // b if known % b == 0 else 1)


def _mod(a: Leaf, b: Leaf) -> Leaf:
    if isinstance(b, int) and b == 0:
        raise Inadmissible(f"{a} modulo zero", hint="divide by a positive number")
    if divides(b, a):
        return 0
    return _emit("mod", a, b, gcd(_known(a), _known(b)))


def _xor(a: Dynamic, b: Leaf) -> Leaf:
    if isinstance(b, int) and b == 0:
        return a
    return _emit("xor", a, b, _low_bit(_known(a) | _known(b)))


def _and(a: Dynamic, mask: int) -> Leaf:
    mask &= -_low_bit(a.divisibility)  # the bits below are 0
    return _emit("and", a, mask, _low_bit(mask)) if mask else 0
