"""V_TRIG_PREOP_F64, with 2 / pi from Machin's formula."""

from __future__ import annotations

from tests.simulator.reference import ieee
from tests.simulator.reference.case import Case, case
from tests.simulator.reference.ieee import F64, Mode
from tests.simulator.reference.vector_float import scale

BITS = 1201


def _arc_tangent_of_inverse(n: int, one: int) -> int:
    total, power, k = 0, one // n, 0
    while power:
        total += (-1) ** k * (power // (2 * k + 1))
        power //= n * n
        k += 1
    return total


def _two_over_pi() -> int:
    """The first bits after the binary point as an integer."""
    one = 1 << (2 * BITS + 200)
    pi = 4 * (4 * _arc_tangent_of_inverse(5, one) - _arc_tangent_of_inverse(239, one))
    return (2 * one << BITS) // pi


TWO_OVER_PI = _two_over_pi()


def piece(mode: Mode, x: int, segment: int) -> int:
    """53 bits of 2 / pi, from 53 * segment on, or further for a large x; scaled to where they stand."""
    exponent = ieee.exponent_field(F64, x)
    start = (segment & 31) * 53 + max(exponent - 1077, 0)
    padded = TWO_OVER_PI << 4096
    bits = padded >> (BITS + 4096 - 53 - start) & ((1 << 53) - 1)
    where = -53 - start + (128 if exponent >= 1968 else 0)
    return scale(mode, F64, ieee.encode(F64, bits, 0), where)


CASES: dict[str, Case] = {"v_trig_preop_f64": case("f64 = f64 i32", piece)}
