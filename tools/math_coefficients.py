"""Computes the polynomials of `flydsl/passes/to_rocdl/math_functions/coefficients.py`, and writes that file; those of
f64 into `of_f64/coefficients.py` beside it.

Each is the minimax approximation of its degree, by Remez's exchange algorithm in 60-digit arithmetic, printed with the
largest error that it leaves. Needs mpmath. Usage: python tools/math_coefficients.py
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mpmath import mp, mpf

mp.dps = 60
TARGET = Path(__file__).parents[1] / "flydsl" / "passes" / "to_rocdl" / "math_functions" / "coefficients.py"
Function = Callable[[mpf], mpf]


@dataclass(frozen=True)
class Fit:
    """Approximate `function` on [low, high] by a polynomial of `terms` terms, so that error * weight is least."""

    name: str
    text: str
    function: Function
    weight: Function
    low: mpf
    high: mpf
    terms: int
    bits: int = 24


def remez(fit: Fit) -> tuple[list[mpf], mpf]:
    """The coefficients, lowest power first, and the largest weighted error."""
    count = fit.terms + 1
    middle, half = (fit.high + fit.low) / 2, (fit.high - fit.low) / 2
    points = [middle - half * mp.cos(mp.pi * (i + mpf("0.51")) / count) for i in range(count)]
    grid = [middle - half * mp.cos(mp.pi * i / 600) for i in range(601)]
    grid = [x for x in grid if abs(x) > mpf("1e-9")]
    exact = [(fit.function(x), abs(fit.weight(x))) for x in grid]
    for _ in range(12):
        rows = [[*(x**k for k in range(fit.terms)), (-1) ** i / abs(fit.weight(x))] for i, x in enumerate(points)]
        solution = mp.lu_solve(mp.matrix(rows), mp.matrix([fit.function(x) for x in points]))
        coefficients = list(solution)[: fit.terms]
        errors = [(f - mp.polyval(coefficients[::-1], x)) * w for x, (f, w) in zip(grid, exact, strict=True)]
        points = alternation(grid, errors, count)
    return coefficients, max(map(abs, errors))


def alternation(grid: list[mpf], errors: list[mpf], count: int) -> list[mpf]:
    """The extremes of the error, one per run of equal sign: the `count` neighbouring ones with the largest errors."""
    runs: list[int] = []
    for i, error in enumerate(errors):
        if runs and (errors[runs[-1]] > 0) == (error > 0):
            if abs(error) > abs(errors[runs[-1]]):
                runs[-1] = i
        else:
            runs.append(i)
    while len(runs) > count:
        runs.pop(0 if abs(errors[runs[0]]) < abs(errors[runs[-1]]) else -1)
    if len(runs) < count:
        raise ArithmeticError("the error does not alternate: too few grid points, or the fit is exact")
    return [grid[i] for i in runs]


def odd(function: Function) -> Function:
    """q of function(x) = x + x^3 q(x^2), as a function of z = x^2."""
    return lambda z: (function(mp.sqrt(z)) / mp.sqrt(z) - 1) / z


def odd_weight(function: Function) -> Function:
    """The factor that turns an error of q into a relative one of x + x^3 q(x^2)."""
    return lambda z: z * mp.sqrt(z) / function(mp.sqrt(z))


def erfcx(x: mpf) -> mpf:
    return mp.erfc(x) * mp.exp(x * x)


ERFC_CENTER = mpf(4)


def erfc_argument(t: mpf) -> mpf:
    """a of t = (a - 4) / (a + 4)."""
    return ERFC_CENTER * (1 + t) / (1 - t)


def fits() -> list[Fit]:
    quarter = mp.pi / 4 + mpf("0.02")
    ln2_half = mp.log(2) / 2 + mpf("0.001")
    tiny = mpf("1e-8")

    def odd_fit(name: str, text: str, function: Function, high: mpf, terms: int) -> Fit:
        return Fit(name, text, odd(function), odd_weight(function), tiny, high * high, terms)

    return [
        Fit(
            "EXPM1", "(exp(r) - 1 - r) / r^2, |r| <= ln(2) / 2", lambda r: (mp.expm1(r) - r) / r**2,
            lambda r: ln2_half, -ln2_half, ln2_half, 5,
        ),
        odd_fit("SIN", "(sin(r) - r) / r^3 in r^2, |r| <= pi / 4", mp.sin, quarter, 3),
        Fit(
            "COS", "(cos(r) - 1 + r^2 / 2) / r^4 in r^2, |r| <= pi / 4",
            lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, lambda z: z**2 / mp.cos(mp.sqrt(z)),
            mpf("1e-4"), quarter**2, 3,
        ),
        odd_fit("ATAN", "(atan(x) - x) / x^3 in x^2, |x| <= 1", mp.atan, mpf(1), 9),
        odd_fit("ASIN", "(asin(x) - x) / x^3 in x^2, |x| <= 1/2", mp.asin, mpf("0.5"), 5),
        odd_fit("SINH", "(sinh(x) - x) / x^3 in x^2, |x| <= 1", mp.sinh, mpf(1), 4),
        odd_fit("TANH", "(tanh(x) - x) / x^3 in x^2, |x| <= 0.6", mp.tanh, mpf("0.6"), 5),
        Fit(
            "ERF", "erf(x) / x - 1 in x^2, |x| <= 0.95", lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1,
            lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)), tiny, mpf("0.95") ** 2, 7,
        ),
        Fit(
            "LOG2_ERFC", "log2(erfc(x)), 0.95 <= x <= 4, error weighted with erfc(x)",
            lambda x: mp.log(mp.erfc(x), 2), lambda x: mp.erfc(x) * mp.log(2), mpf("0.94"), mpf("4.0"), 7,
        ),
        Fit(
            "ERFC", "(1 + 2 x) erfc(x) exp(x^2) in (x - 4) / (x + 4), 0 <= x <= 10.1",
            lambda t: (1 + 2 * erfc_argument(t)) * erfcx(erfc_argument(t)),
            lambda t: 1 / ((1 + 2 * erfc_argument(t)) * erfcx(erfc_argument(t))),
            mpf(-1), (mpf("10.1") - 4) / (mpf("10.1") + 4), 12,
        ),
        Fit(
            "LOG2", "log2(1 + f) / f, sqrt(1/2) <= 1 + f <= sqrt(2)", lambda f: mp.log(1 + f, 2) / f,
            lambda f: f / mp.log(1 + f, 2), mp.sqrt(mpf("0.5")) - 1, mp.sqrt(2) - 1, 13, bits=53,
        ),
        Fit(
            "EXP2", "2^r, |r| <= 1/2", lambda r: mpf(2) ** r, lambda r: mpf(2) ** -r, mpf("-0.5"), mpf("0.5"), 7,
            bits=53,
        ),
    ]  # fmt: skip


def fits_of_f64() -> list[Fit]:
    quarter = mp.pi / 4 + mpf("0.02")
    ln2_half = mp.log(2) / 2 + mpf("0.001")
    tiny = mpf("1e-8")

    def odd_fit(name: str, text: str, function: Function, high: mpf, terms: int) -> Fit:
        return Fit(name, text, odd(function), odd_weight(function), tiny, high * high, terms, bits=53)

    def log_rest(z: mpf) -> mpf:
        s = mp.sqrt(z)
        return ((2 * mp.atanh(s) - 2 * s) / s**3 - mpf(2) / 3) / z

    return [
        Fit(
            "EXPM1", "(exp(r) - 1 - r) / r^2, |r| <= ln(2) / 2", lambda r: (mp.expm1(r) - r) / r**2,
            lambda r: ln2_half**2, -ln2_half, ln2_half, 11, bits=53,
        ),
        Fit(
            "LOG", "(log((1 + s) / (1 - s)) - 2 s - 2/3 s^3) / s^5 in s^2, |s| <= 0.1716", log_rest,
            lambda z: z * z / 2, mpf("1e-6"), mpf("0.02945"), 8, bits=53,
        ),
        odd_fit("SIN", "(sin(r) - r) / r^3 in r^2, |r| <= pi / 4", mp.sin, quarter, 7),
        Fit(
            "COS", "(cos(r) - 1 + r^2 / 2) / r^4 in r^2, |r| <= pi / 4",
            lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, lambda z: z**2 / mp.cos(mp.sqrt(z)),
            mpf("1e-4"), quarter**2, 7, bits=53,
        ),
        odd_fit("ATAN", "(atan(x) - x) / x^3 in x^2, |x| <= 1", mp.atan, mpf(1), 22),
        odd_fit("ASIN", "(asin(x) - x) / x^3 in x^2, |x| <= 1/2", mp.asin, mpf("0.5"), 14),
        Fit(
            "ERF", "erf(x) / x - 1 in x^2, |x| <= 0.95", lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1,
            lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)), tiny, mpf("0.95") ** 2, 13, bits=53,
        ),
        Fit(
            "ERFC", "(1 + 2 x) erfc(x) exp(x^2) in (x - 4) / (x + 4), 0.45 <= x <= 28",
            lambda t: (1 + 2 * erfc_argument(t)) * erfcx(erfc_argument(t)),
            lambda t: 1 / ((1 + 2 * erfc_argument(t)) * erfcx(erfc_argument(t))),
            (mpf("0.45") - 4) / (mpf("0.45") + 4), (mpf(28) - 4) / (mpf(28) + 4), 24, bits=53,
        ),
    ]  # fmt: skip


def chunks(value: mpf, bits: int, count: int) -> list[mpf]:
    """`value` as a sum of `count` numbers, each with the next `bits` bits."""
    found = []
    for i in range(count):
        scale = mpf(2) ** (bits * (i + 1) + 2)
        part = mp.floor(value * scale) / scale
        found.append(part)
        value -= part
    return found


def rounded(value: mpf, bits: int) -> float:
    with mp.workprec(bits):
        return float(+value)


def polynomials(fits: list[Fit]) -> list[str]:
    lines = ['"""Polynomials of the math functions, lowest power first. Written by tools/math_coefficients.py."""', ""]
    for fit in fits:
        coefficients, error = remez(fit)
        lines += [
            f"# {fit.text}.",
            f"# Largest relative error: 2^{float(mp.log(error, 2)):.1f}, before rounding to {fit.bits} bits.",
            f"{fit.name} = (",
            *(f"    {rounded(c, fit.bits)!r}," for c in coefficients),
            ")",
        ]
    return lines


def in_parts(value: mpf, *bits: int) -> tuple[float, ...]:
    """`value` as a sum of numbers, each with the next `bits` bits of it."""
    parts = []
    for count in bits:
        parts.append(rounded(value, count))
        value -= mpf(parts[-1])
    return tuple(parts)


def turns_of_f64(count: int) -> list[float]:
    """1 / (2 pi) in parts of 53 bits, each divided by the weight of its first bit."""
    value, found = 1 / (2 * mp.pi), []
    for _ in range(count):
        value *= mpf(2) ** 53
        found.append(float(mp.floor(value) / mpf(2) ** 53))
        value -= mp.floor(value)
    return found


def lines_of_f64() -> list[str]:
    third = mpf(1) / 3
    with mp.workdps(420):
        turns = turns_of_f64(23)
    return [
        *polynomials(fits_of_f64()),
        "",
        "# ln(2), log10(2) and pi / 2 in parts: the product of all but the last ones with an integer is exact.",
        f"LN_2 = {in_parts(mp.log(2), 32, 53)}",
        f"LOG10_2 = {in_parts(mp.log10(2), 32, 53)}",
        f"HALF_PI = {in_parts(mp.pi / 2, 33, 33, 53, 53)}",
        "# Sums of two f64.",
        f"TWO_THIRDS = {in_parts(2 * third, 53, 53)}",
        f"LN_2_PAIR = {in_parts(mp.log(2), 53, 53)}",
        f"LOG2_E = {in_parts(1 / mp.log(2), 53, 53)}",
        f"LOG10_E = {in_parts(1 / mp.log(10), 53, 53)}",
        f"TWO_PI = {in_parts(2 * mp.pi, 53, 53)}",
        "# 1 / (2 pi): part i counts 2^(-53 i).",
        "TURN = (",
        *(f"    {part!r}," for part in turns),
        ")",
    ]


def main() -> None:
    lines = [
        *polynomials(fits()),
        "",
        "# 1 / (2 pi) in parts of 29 bits: their products with a 24-bit number are exact in 53 bits.",
        "TURN = (",
    ]
    lines += [f"    {float(part)!r}," for part in chunks(1 / (2 * mp.pi), 29, 7)] + [")"]
    high = rounded(mp.pi / 2, 53)
    lines += ["# pi / 2 in two parts of 53 bits.", f"HALF_PI = ({high!r}, {rounded(mp.pi / 2 - mpf(high), 53)!r})"]
    TARGET.write_text("\n".join(lines) + "\n")
    (TARGET.parent / "of_f64" / TARGET.name).write_text("\n".join(lines_of_f64()) + "\n")


if __name__ == "__main__":
    main()
