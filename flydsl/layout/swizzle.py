"""Swizzles: permutations of indices that XOR one field of bits into another."""

from __future__ import annotations

from dataclasses import dataclass

from flydsl.errors import LayoutError
from flydsl.layout.leaf import Dynamic, Leaf, is_integer
from flydsl.layout.text import Inadmissible, operation, shown

_INDEX_BITS = 63


@dataclass(frozen=True)
class Swizzle:
    """`S<bits,base,shift>`: XOR `bits` bits of the index, from bit base+shift on, into those from bit `base` on.

    A negative shift takes the field from bit base on and changes the one |shift| above it. Where the two fields do not
    overlap, the swizzle is its own inverse; with any shift but 0 it is a permutation. (CuTe: Swizzle<BBits, MBase,
    SShift>; FlyDSL's fp8 kernels use S<4,4,3>, whose fields share a bit.)

    >>> Swizzle(2, 1, 3)(43)
    47
    """

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        fields = self.bits, self.base, self.shift
        if not all(is_integer(field) for field in fields):
            raise LayoutError(
                f"a swizzle takes three ints, got {shown(fields)}",
                hint="pass bits, base and shift: fx.Swizzle(3, 3, 3)",
            )
        if self.bits < 0 or self.base < 0 or self.base + abs(self.shift) + self.bits > _INDEX_BITS:
            raise LayoutError(
                f"S<{', '.join(map(shown, fields))}>: the fields must lie within the {_INDEX_BITS} bits of an index",
                hint="use smaller fields",
            )
        if self.bits and not self.shift:
            raise LayoutError(f"{self}: the field would be XORed with itself", hint="give a shift other than 0")

    @property
    def mask(self) -> int:
        """The number of bits, under FlyDSL's name for it: `SwizzleType.get(mask, base, shift)`."""
        return self.bits

    @property
    def bits_read(self) -> int:
        """The mask of the index bits that are read."""
        return ((1 << self.bits) - 1) << (self.base + max(self.shift, 0))

    def __call__(self, index: Leaf) -> Leaf:
        return apply_swizzle(index, self)

    def __str__(self) -> str:
        return f"S<{self.bits},{self.base},{self.shift}>"

    __repr__ = __str__


@operation
def apply_swizzle(index: Leaf, swizzle: Swizzle) -> Leaf:
    """The index with one field of bits XORed into another.

    >>> [apply_swizzle(i, Swizzle(1, 0, 2)) for i in range(8)]
    [0, 1, 2, 3, 5, 4, 7, 6]
    """
    if not isinstance(swizzle, Swizzle):
        raise Inadmissible(
            f"the swizzle must be a Swizzle, got {shown(swizzle)}",
            hint="make one with fx.Swizzle(mask_bits, base, shift)",
        )
    if not is_integer(index) and not isinstance(index, Dynamic):
        raise Inadmissible(f"the index must be an integer, got {shown(index)}", hint="pass an integer")
    field = index & swizzle.bits_read
    return index ^ (field >> swizzle.shift if swizzle.shift >= 0 else field << -swizzle.shift)


def recast_swizzle(swizzle: Swizzle, numerator: int, denominator: int) -> Swizzle:
    """The swizzle on elements numerator/denominator times as wide (both powers of two).

    Bits below one element cannot be swizzled any more and drop out.
    """
    if numerator & (numerator - 1) or denominator & (denominator - 1):
        raise Inadmissible(
            f"a swizzle can be recast by powers of two only, got {numerator}/{denominator}",
            hint="use element types whose widths are powers of two",
        )
    base = swizzle.base - (numerator.bit_length() - 1) + (denominator.bit_length() - 1)
    return Swizzle(max(swizzle.bits + min(base, 0), 0), max(base, 0), swizzle.shift)
