"""V_DIV_SCALE, V_DIV_FMAS, V_DIV_FIXUP.

Two places where the CDNA3 document cannot mean what it says, and the RDNA3 document (same instructions) or arithmetic
says otherwise; both are needed for LLVM's divisions to come out right:

- div_fmas scales by 2**64 or 2**-64 (f64: 128) by the exponent of the third operand, not by 2**32 always;
- div_scale, where both the reciprocal and the quotient would be denormal: the denominator is so large that it must be
  scaled down, not up.
"""

from __future__ import annotations

from tests.simulator.reference import ieee
from tests.simulator.reference.case import Case, case
from tests.simulator.reference.ieee import F16, F32, F64, Format, Mode
from tests.simulator.reference.vector_float import scale

CASES: dict[str, Case] = {}

SCALE = {F32: 64, F64: 128}
FAR_APART = {F32: 96, F64: 768}
TINY_NUMERATOR = {F32: 23, F64: 53}
UNDERFLOW = {F32: -150, F64: -1075}


def below_normal(f: Format, numerator: int, denominator: int) -> bool:
    """Whether the exact quotient of two finite numbers is less than the smallest normal number, and not zero."""
    (n, en), (d, ed) = ieee.number(f, numerator), ieee.number(f, denominator)
    n, d, distance = abs(n), abs(d), en - ed - (1 - f.bias)
    return 0 < n << max(distance, 0) < d << max(-distance, 0)


def div_scale(mode: Mode, f: Format, x: int, d: int, n: int) -> tuple[int, int]:
    d, n = mode.flush_in(f, d), mode.flush_in(f, n)
    up, down = (scale(mode, f, x, s) for s in (SCALE[f], -SCALE[f]))
    x = mode.flush_in(f, x)
    if ieee.is_zero(f, d) or ieee.is_zero(f, n):
        return f.default_nan, 0
    is_d, is_n = (not ieee.is_nan(f, v) and ieee.order(f, x) == ieee.order(f, v) for v in (d, n))
    if ieee.exponent_field(f, n) - ieee.exponent_field(f, d) >= FAR_APART[f]:
        return (up if is_d else x), 1
    if ieee.is_denormal(f, d):
        return up, 0
    finite = ieee.magnitude(f, d) < f.infinity and ieee.magnitude(f, n) < f.infinity
    reciprocal = finite and below_normal(f, f.one, d)
    quotient = finite and below_normal(f, n, d)
    if reciprocal and quotient:
        return (down if is_d else x), 1
    if reciprocal:
        return down, 0
    if quotient:
        return (up if is_n else x), 1
    if ieee.exponent_field(f, n) <= TINY_NUMERATOR[f]:
        return up, 0
    return x, 0


def div_fmas(mode: Mode, f: Format, x: int, y: int, z: int, scaled: int) -> int:
    large = ieee.exponent_field(f, z) > f.bias
    return ieee.fma(Mode(mode.bits | 0x50), f, x, y, z, (SCALE[f] if large else -SCALE[f]) if scaled else 0)


def div_fixup(mode: Mode, f: Format, quotient: int, d: int, n: int) -> int:
    quotient, d, n = (mode.flush_in(f, v) for v in (quotient, d, n))
    sign = (d ^ n) & f.sign_bit
    if ieee.is_nan(f, n):
        return ieee.quiet(f, n)
    if ieee.is_nan(f, d):
        return ieee.quiet(f, d)
    zero_d, zero_n = ieee.is_zero(f, d), ieee.is_zero(f, n)
    infinite_d, infinite_n = ieee.is_infinite(f, d), ieee.is_infinite(f, n)
    if (zero_d and zero_n) or (infinite_d and infinite_n):
        return f.sign_bit | f.default_nan
    if zero_d or infinite_n:
        return sign | f.infinity
    if infinite_d or zero_n:
        return sign
    if f in UNDERFLOW and ieee.exponent_field(f, n) - ieee.exponent_field(f, d) < UNDERFLOW[f]:
        return sign
    if ieee.is_nan(f, quotient):
        return sign | f.infinity  # hardware, of an iteration that overflowed
    return sign | ieee.magnitude(f, quotient)


for _t, _f in (("f32", F32), ("f64", F64)):
    CASES[f"v_div_scale_{_t}"] = case(
        f"{_t} mask = {_t} {_t} {_t}", lambda mode, x, d, n, f=_f: div_scale(mode, f, x, d, n)
    )
    CASES[f"v_div_fmas_{_t}"] = case(
        f"{_t} = {_t} {_t} {_t} vcc", lambda mode, x, y, z, vcc, f=_f: div_fmas(mode, f, x, y, z, vcc)
    )
    CASES[f"v_div_fixup_{_t}"] = case(
        f"{_t} = {_t} {_t} {_t}", lambda mode, q, d, n, f=_f: div_fixup(mode, f, q, d, n), exact_nan=True
    )
for _name, _result in (("v_div_fixup_f16", "f16~"), ("v_div_fixup_legacy_f16", "f16")):
    CASES[_name] = case(f"{_result} = f16 f16 f16", lambda mode, q, d, n: div_fixup(mode, F16, q, d, n), exact_nan=True)
