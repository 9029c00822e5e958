"""Functions whose results the document gives to within 1 ulp, and whose special values exactly.

Reciprocals and roots are computed with integers and rounded once; exponentials, logarithms, sines and cosines by the
host's C library in double precision. The f32 ones flush denormals, whatever the mode ("denormals are flushed"); not so
sine and cosine ("denormals are supported").
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tests.simulator.reference import ieee
from tests.simulator.reference.ieee import F32, Format, Mode


@dataclass(frozen=True)
class Estimate:
    """A function of one operand. exactly(x) gives the result's bits where it is special, else None; then
    value(m, e) approximates f(m * 2**e) as (m, e)."""

    type_: str
    exactly: Callable[[Format, int], int | None]
    value: Callable[[int, int], tuple[int, int]]
    keeps_denormals: bool = False


def as_double(m: int, e: int) -> float:
    return math.ldexp(m, e)


def from_double(x: float) -> tuple[int, int]:
    fraction, exponent = math.frexp(x)
    return int(math.ldexp(fraction, 53)), exponent - 53


def reciprocal(m: int, e: int) -> tuple[int, int]:
    return (1 << 200) // m if m > 0 else -((1 << 200) // -m), -200 - e


def root(m: int, e: int) -> tuple[int, int]:
    m, e = m << (200 + (e & 1)), e - 200 - (e & 1)
    return math.isqrt(m), e // 2


def reciprocal_root(m: int, e: int) -> tuple[int, int]:
    return reciprocal(*root(m, e))


def power_of_two(m: int, e: int) -> tuple[int, int]:
    x = max(-5000.0, min(5000.0, as_double(m, e)))
    whole = math.floor(x)
    fraction, exponent = from_double(2.0 ** (x - whole))
    return fraction, exponent + whole


def logarithm(m: int, e: int) -> tuple[int, int]:
    return from_double(math.log2(as_double(m, e)))


def turns(function: Callable[[float], float]) -> Callable[[int, int], tuple[int, int]]:
    def value(m: int, e: int) -> tuple[int, int]:
        x = as_double(m, e)
        x -= round(x)
        quarters, rest = divmod(x * 4, 1) if abs(x) > 1e-3 else (0.0, x * 4)
        if rest == 0:
            return from_double([0.0, 1.0, 0.0, -1.0][int(quarters + (function is math.cos)) % 4])
        angle = rest * (math.pi / 2)
        sine, cosine = math.sin(angle), math.cos(angle)
        rotated = [(sine, cosine), (cosine, -sine), (-sine, -cosine), (-cosine, sine)][int(quarters) % 4]
        return from_double(rotated[0] if function is math.sin else rotated[1])

    return value


def _invalid(f: Format) -> int:
    return f.sign_bit | f.default_nan


def rcp_special(f: Format, x: int) -> int | None:
    sign = x & f.sign_bit
    return sign if ieee.is_infinite(f, x) else sign | f.infinity if ieee.is_zero(f, x) else None


def sqrt_special(f: Format, x: int) -> int | None:
    if ieee.is_zero(f, x) or x == f.infinity:
        return x
    return _invalid(f) if ieee.is_negative(f, x) else None


def rsq_special(f: Format, x: int) -> int | None:
    if ieee.is_zero(f, x):
        return x | f.infinity
    if x == f.infinity:
        return 0
    return _invalid(f) if ieee.is_negative(f, x) else None


def exp_special(f: Format, x: int) -> int | None:
    if ieee.is_infinite(f, x):
        return 0 if ieee.is_negative(f, x) else f.infinity
    return f.one if ieee.is_zero(f, x) else None


def log_special(f: Format, x: int) -> int | None:
    if ieee.is_zero(f, x):
        return f.sign_bit | f.infinity
    if x == f.infinity:
        return x
    return _invalid(f) if ieee.is_negative(f, x) else 0 if x == f.one else None


def sin_special(f: Format, x: int) -> int | None:
    if ieee.is_infinite(f, x):
        return _invalid(f)
    if ieee.is_zero(f, x):
        return x
    m, e = ieee.number(f, x)
    whole = e >= 0 or m % (1 << -e) == 0
    return 0 if whole else None


def cos_special(f: Format, x: int) -> int | None:
    if ieee.is_infinite(f, x):
        return _invalid(f)
    return f.one if sin_special(f, x) is not None else None


ESTIMATES: dict[str, Estimate] = {}
for _t in ("f16", "f32", "f64"):
    ESTIMATES[f"v_rcp_{_t}"] = Estimate(_t, rcp_special, reciprocal)
    ESTIMATES[f"v_sqrt_{_t}"] = Estimate(_t, sqrt_special, root)
    ESTIMATES[f"v_rsq_{_t}"] = Estimate(_t, rsq_special, reciprocal_root)
for _t in ("f16", "f32"):
    ESTIMATES[f"v_exp_{_t}"] = Estimate(_t, exp_special, power_of_two)
    ESTIMATES[f"v_log_{_t}"] = Estimate(_t, log_special, logarithm)
    ESTIMATES[f"v_sin_{_t}"] = Estimate(_t, sin_special, turns(math.sin), keeps_denormals=True)
    ESTIMATES[f"v_cos_{_t}"] = Estimate(_t, cos_special, turns(math.cos), keeps_denormals=True)
ESTIMATES["v_rcp_iflag_f32"] = Estimate("f32", rcp_special, reciprocal)
ESTIMATES["v_exp_legacy_f32"] = Estimate("f32", exp_special, power_of_two)
ESTIMATES["v_log_legacy_f32"] = Estimate("f32", log_special, logarithm)


def acceptable(estimate: Estimate, mode: Mode, x: int) -> tuple[int, int]:
    """The lowest and highest acceptable result, as bit patterns (both the same NaN where it is one)."""
    f = ieee.FORMATS[estimate.type_]
    flushes = f == F32 and not estimate.keeps_denormals
    x = ieee.flush(f, x) if flushes else mode.flush_in(f, x)
    if ieee.is_nan(f, x):
        return (ieee.quiet(f, x),) * 2
    special = estimate.exactly(f, x)
    if special is not None:
        return special, special
    m, e = estimate.value(*ieee.number(f, x))
    nearest = ieee.order(f, ieee.encode(f, m, e))
    low, high = max(nearest - 1, -f.infinity), min(nearest + 1, f.infinity)
    ends = tuple(o if o >= 0 else f.sign_bit | -o for o in (low, high))
    return tuple(ieee.flush(f, v) if flushes else mode.flush_out(f, v) for v in ends)  # type: ignore[return-value]
