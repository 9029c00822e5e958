"""How a family says what an instruction reads, writes and computes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.simulator.reference.ieee import Mode

M16, M32, M64 = (1 << 16) - 1, (1 << 32) - 1, (1 << 64) - 1


@dataclass(frozen=True)
class Case:
    """One instruction on vector registers.

    results and operands are words in the order of the assembly text: a type (i16 to f64), `mask` (a bit per lane in a
    pair of scalar registers). A 16-bit result with `~` leaves the upper half of its register, without it zero.
    These operands are not in the text: `old` is the destination's value before, `vcc` the bit of VCC.
    function(mode, *bit patterns) gives the bit patterns of the results.

    exact_nan: the document says which NaN it is. Otherwise any quiet NaN is as good as any other.
    """

    results: tuple[str, ...]
    operands: tuple[str, ...]
    function: Callable[..., Any]
    exact_nan: bool = False
    suffix: str = ""

    def evaluate(self, mode: Mode, *operands: int) -> tuple[int, ...]:
        result = self.function(mode, *operands)
        return result if isinstance(result, tuple) else (result,)


def case(signature: str, function: Callable[..., Any], *, exact_nan: bool = False, suffix: str = "") -> Case:
    """`case("f32 = f32 f32", ...)`; function gets the mode first."""
    results, operands = signature.split("=")
    return Case(tuple(results.split()), tuple(operands.split()), function, exact_nan, suffix)


def integer(signature: str, function: Callable[..., Any], suffix: str = "") -> Case:
    """A function of the operands alone."""
    return case(signature, lambda mode, *operands: function(*operands), suffix=suffix)


def signed(x: int, bits: int) -> int:
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


def s16(x: int) -> int:
    return signed(x, 16)


def s32(x: int) -> int:
    return signed(x, 32)


def s64(x: int) -> int:
    return signed(x, 64)


def clamp(x: int, low: int, high: int) -> int:
    return max(low, min(high, x))


def field(x: int, position: int, bits: int) -> int:
    """The `position`-th field of so many bits."""
    return x >> (position * bits) & ((1 << bits) - 1)
