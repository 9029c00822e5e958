"""Integer operations of LLVM beyond the plain ones, each with its meaning for Python's numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from flydsl.simulator.arrays import Array


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def clamped(value: int, low: int, high: int) -> int:
    return max(low, min(high, value))


@dataclass(frozen=True)
class Function:
    """One operation: how many operands it has, and what it makes of unsigned numbers of so many bits.

    call: its text, with {kind}, {suffix} of an intrinsic's name, and the operands {0} to {2}.
    """

    operands: int
    meaning: Callable[..., int]
    call: str

    def of(self, bits: int, *arrays: Array) -> Array:
        """The operation for each element."""
        rows = [array.ravel().tolist() for array in arrays]
        mask = (1 << bits) - 1
        results = [self.meaning(bits, *values) & mask for values in zip(*rows, strict=True)]
        return np.array(results, arrays[0].dtype).reshape(arrays[0].shape)


def _intrinsic(name: str, operands: int, meaning: Callable[..., int], flag: bool = False) -> Function:
    given = ", ".join(f"{{kind}} {{{i}}}" for i in range(operands)) + (", i1 false" if flag else "")
    return Function(operands, meaning, f"call {{kind}} @llvm.{name}.{{suffix}}({given})")


def _binary(name: str, meaning: Callable[..., int]) -> Function:
    return Function(2, meaning, f"{name} {{kind}} {{0}}, {{1}}")


def _of_signed(function: Callable[[int, int], int]) -> Callable[[int, int, int], int]:
    return lambda bits, a, b: function(signed(a, bits), signed(b, bits))


def _saturated(function: Callable[[int, int], int]) -> Callable[[int, int, int], int]:
    def meaning(bits: int, a: int, b: int) -> int:
        value = function(signed(a, bits), signed(b, bits))
        return clamped(value, -(1 << (bits - 1)), (1 << (bits - 1)) - 1)

    return meaning


def _funnel(bits: int, high: int, low: int, amount: int) -> int:
    return ((high << bits | low) << amount % bits) >> bits


def _funnel_right(bits: int, high: int, low: int, amount: int) -> int:
    return (high << bits | low) >> amount % bits


def _truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


FUNCTIONS = (
    _intrinsic("umin", 2, lambda bits, a, b: min(a, b)),
    _intrinsic("umax", 2, lambda bits, a, b: max(a, b)),
    _intrinsic("smin", 2, _of_signed(min)),
    _intrinsic("smax", 2, _of_signed(max)),
    _intrinsic("abs", 1, lambda bits, a: abs(signed(a, bits)), flag=True),
    _intrinsic("ctpop", 1, lambda bits, a: a.bit_count()),
    _intrinsic("ctlz", 1, lambda bits, a: bits - a.bit_length(), flag=True),
    _intrinsic("cttz", 1, lambda bits, a: (a & -a).bit_length() - 1 if a else bits, flag=True),
    _intrinsic("bitreverse", 1, lambda bits, a: int(f"{a:0{bits}b}"[::-1], 2)),
    _intrinsic("fshl", 3, _funnel),
    _intrinsic("fshr", 3, _funnel_right),
    _intrinsic("uadd.sat", 2, lambda bits, a, b: min(a + b, (1 << bits) - 1)),
    _intrinsic("usub.sat", 2, lambda bits, a, b: max(a - b, 0)),
    _intrinsic("sadd.sat", 2, _saturated(lambda a, b: a + b)),
    _intrinsic("ssub.sat", 2, _saturated(lambda a, b: a - b)),
)

DIVISIONS = (
    _binary("udiv", lambda bits, a, b: a // b),
    _binary("urem", lambda bits, a, b: a % b),
    _binary("sdiv", _of_signed(_truncated)),
    _binary("srem", _of_signed(lambda a, b: a - _truncated(a, b) * b)),
)
"""The divisor must be positive as a signed number."""
