"""Division by a number that stays the same, as a multiplication and a shift: `flydsl.expr.numeric.FastDivmod`.

Of n from 0 up to 2**31 and d from 1 up to 2**31, both without the end, n // d is (n * magic) >> (32 + shift), where
2**shift < d <= 2**(shift + 1), or shift is 0 for d = 1, and magic is 2**(32 + shift) / d rounded up. (Granlund and
Montgomery: "Division by invariant integers using multiplication", PLDI 1994, theorem 4.2.)

A launcher makes a FastDivmod of a size that it is given, and passes it to its kernel, which then divides without a
division.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flydsl.dialect.location import argument_error
from flydsl.expr.numeric import Int32, Int64, as_numeric

if TYPE_CHECKING:
    from mlir import ir

    from flydsl.expr.kinds import Number

_END = 1 << 31
_HALVES = (16, 8, 4, 2, 1)


def fastdivmod_magic(divisor: int) -> tuple[int, int]:
    """The magic number and the shift for a divisor that is known. Raises ArgumentError, a ValueError, for one outside.

    >>> magic, shift = fastdivmod_magic(7)
    >>> [(n * magic) >> (32 + shift) for n in (6, 7, 2**31 - 1)]
    [0, 1, 306783378]
    """
    if not 0 < divisor < _END:
        raise argument_error(
            f"the divisor must be a positive number of 31 bits, got {divisor}", "divide with // by other numbers"
        )
    shift = max((divisor - 1).bit_length() - 1, 0)
    return -(-(1 << (32 + shift)) // divisor), shift


def fast_divmod(dividend: Number, divisor: Number, magic: Number, shift: Number) -> tuple[Int32, Int32]:
    """Quotient and remainder of a dividend that is not negative, with what `fastdivmod_magic` gives for the divisor."""
    product = Int64(Int32(dividend)) * Int64(magic)
    quotient = Int32(product >> (Int64(shift) + 32))
    return quotient, Int32(dividend) - quotient * Int32(divisor)


class FastDivmod:
    """A divisor with its magic number and shift: `FastDivmod(columns).divmod(i)`.

    divisor: a positive number of 31 bits, known at compile time or at run time. A kernel takes one as an argument, also
    as the field of a struct.
    """

    def __init__(self, divisor: Number) -> None:
        known = as_numeric(divisor)
        self.divisor = Int32(divisor)
        self.magic: Int64
        self.shift: Int32
        if known.is_static:
            magic, shift = fastdivmod_magic(int(known.value))
            self.magic, self.shift = Int64(magic), Int32(shift)
        else:
            self.magic, self.shift = _magic_at_run_time(self.divisor)

    def divmod(self, dividend: Number) -> tuple[Int32, Int32]:
        """Quotient and remainder of a number from 0 up to 2**31, without that."""
        return fast_divmod(dividend, self.divisor, self.magic, self.shift)

    @classmethod
    def __get_ir_types__(cls) -> list[ir.Type]:
        return [Int32.ir_type, Int64.ir_type, Int32.ir_type]

    def __extract_to_ir_values__(self) -> list[ir.Value]:
        return [part.ir_value() for part in (self.divisor, self.magic, self.shift)]

    @classmethod
    def __construct_from_ir_values__(cls, values: list[Any]) -> FastDivmod:
        made = cls.__new__(cls)
        made.divisor, made.magic, made.shift = Int32(values[0]), Int64(values[1]), Int32(values[2])
        return made


def _magic_at_run_time(divisor: Int32) -> tuple[Int64, Int32]:
    """The same numbers by arithmetic: the shift is the logarithm of divisor - 1, found by halving."""
    rest, shift = divisor - 1, Int32(0)
    for bits in _HALVES:
        is_larger = rest >= (1 << bits)
        shift = shift + is_larger.select(Int32(bits), Int32(0))
        rest = is_larger.select(rest >> bits, rest)
    wide = Int64(divisor)
    return ((Int64(1) << (Int64(shift) + 32)) + wide - 1) // wide, shift
