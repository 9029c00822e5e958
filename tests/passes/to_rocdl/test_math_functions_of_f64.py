"""The math functions of f64 on the simulator: errors in units in the last place (ulp) by mpmath, and special values."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
from mpmath import mp, mpf

import flydsl.expr as fx
from tests.passes.to_rocdl.test_math_functions import BLOCK, run, run_all

PRECISION = 300
SPECIAL = [
    *(0.0, 1.0, 0.5, 2.0, 3.0, math.inf, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308),
    *(-0.0, -1.0, -0.5, -2.0, -3.0, -math.inf, -5e-324, -2.2250738585072014e-308, -1.7976931348623157e308),
    *(math.nan, 1e-5, 20.0),
]  # fmt: skip
EVERY = 1.7e308

# Function -> (mpmath's, the range, ulp).
UNARY: dict[str, tuple[Callable[[mpf], mpf], float, float, float]] = {
    "exp": (mp.exp, -760, 712, 1), "exp2": (lambda x: mpf(2) ** x, -1080, 1026, 1), "expm1": (mp.expm1, -60, 712, 2),
    "log": (mp.log, 0, EVERY, 0.6), "log2": (lambda x: mp.log(x, 2), 0, EVERY, 0.6), "log10": (mp.log10, 0, EVERY, 0.6),
    "log1p": (mp.log1p, -1, EVERY, 1), "cbrt": (lambda x: mp.cbrt(abs(x)) * mp.sign(x), -EVERY, EVERY, 1),
    "sin": (mp.sin, -EVERY, EVERY, 1), "cos": (mp.cos, -EVERY, EVERY, 1), "tan": (mp.tan, -EVERY, EVERY, 2),
    "asin": (mp.asin, -1, 1, 3), "acos": (mp.acos, -1, 1, 3), "atan": (mp.atan, -100, 100, 2),
    "sinh": (mp.sinh, -712, 712, 3), "cosh": (mp.cosh, -712, 712, 2), "tanh": (mp.tanh, -25, 25, 2),
    "asinh": (mp.asinh, -EVERY, EVERY, 3), "acosh": (mp.acosh, 1, EVERY, 3), "atanh": (mp.atanh, -1, 1, 3),
    "erf": (mp.erf, -7, 7, 1), "erfc": (mp.erfc, -6, 27.3, 4),
}  # fmt: skip


def samples(low: float, high: float, count: int) -> torch.Tensor:
    """Numbers spread evenly, and numbers of every exponent."""
    generator = torch.manual_seed(0)
    even = torch.rand(count, generator=generator, dtype=torch.float64) * (high / 2 - low / 2) * 2 + low
    exponent = torch.rand(count, generator=generator, dtype=torch.float64) * torch.where(even > 0, 2100, 40)
    sign = torch.randint(0, 2, (count,), generator=generator) * 2 - 1
    scaled = torch.exp2(exponent - torch.where(even > 0, 1075, 30)) * sign
    inside = (scaled > low) & (scaled < high) & (torch.arange(count) % 2 > 0)
    return torch.where(inside, scaled, even.clamp(-EVERY, EVERY))


def ulp(result: float, exact: mpf) -> float:
    """The error in units of the f64 that is nearest to the exact result; denormals have those of the smallest."""
    rounded = float(exact)
    if result == rounded:
        return 0.0 if math.isinf(result) else _in_units(result, exact)
    return math.inf if not math.isfinite(result) or not math.isfinite(rounded) else _in_units(result, exact)


def _in_units(result: float, exact: mpf) -> float:
    exponent = -1022 if exact == 0 else max(mp.frexp(exact)[1] - 1, -1022)
    return float(abs(mpf(result) - exact) / mpf(2) ** (exponent - 52))


@cache
def inputs() -> dict[str, torch.Tensor]:
    return {name: samples(low, high, BLOCK) for name, (_, low, high, _) in UNARY.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", UNARY)
def test_errors(name: str) -> None:
    reference, _, _, bound = UNARY[name]
    x = inputs()[name].clone()
    if name in ("sin", "cos", "tan"):  # near multiples of pi / 2, where all but a few bits cancel
        multiples = torch.arange(1, 61, dtype=torch.float64) * (math.pi / 2)
        x[:60] = multiples * torch.tensor([1.0, 1000.0, 2.0**15, 2.0**25]).double().repeat(15)
        x[60] = 6381956970095103.0 * 2.0**797  # of all f64 the one that is nearest to such a multiple
    results = run(getattr(fx.math, name), x)
    with mp.workprec(PRECISION):
        errors = [ulp(r, reference(mpf(v))) for r, v in zip(results.tolist(), x.tolist(), strict=True)]
    worst = max(range(BLOCK), key=errors.__getitem__)
    assert errors[worst] <= bound, f"{name}({x[worst]!r}) is {errors[worst]:.2f} ulp wrong"


def padded(values: list[float]) -> torch.Tensor:
    values = values + values[:1] * (-len(values) % BLOCK)
    return torch.tensor(values, dtype=torch.float64)


def is_near(result: float, expected: float) -> bool:
    """Whether it is the same special value, or a number that differs by a few ulp."""
    if math.isnan(expected) or math.isinf(expected) or expected == 0:
        same = result == expected or (math.isnan(result) and math.isnan(expected))
        return same and (math.isnan(expected) or math.copysign(1, result) == math.copysign(1, expected))
    return abs(result - expected) <= max(1e-15 * abs(expected), 5e-324)


@pytest.mark.slow
def test_special_values() -> None:
    x = padded(SPECIAL)
    torchs: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {n: getattr(torch, n) for n in UNARY if n != "cbrt"}
    torchs["log1p"] = lambda t: torch.where(t.abs() < 1e-300, t, torch.log1p(t))  # torch's takes denormals to 0
    results = run_all([getattr(fx.math, name) for name in torchs], x)
    for (name, reference), result in zip(torchs.items(), results, strict=True):
        for value, got, expected in zip(SPECIAL, result.tolist(), reference(x).tolist(), strict=False):
            assert is_near(got, expected), f"{name}({value}) is {got}, not {expected}"
    assert run(fx.math.cbrt, padded([-0.0, 27.0, -8.0, -math.inf])).tolist()[:4] == [-0.0, 3.0, -2.0, -math.inf]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["powf", "atan2"])
def test_special_values_of_two_operands(name: str) -> None:
    pairs = [(a, b) for a in SPECIAL for b in SPECIAL]
    x, y = padded([a for a, _ in pairs]), padded([b for _, b in pairs])
    expected = torch.pow(x, y) if name == "powf" else torch.atan2(x, y)
    for (a, b), got, wanted in zip(pairs, run(getattr(fx.math, name), x, y).tolist(), expected.tolist(), strict=False):
        assert is_near(got, wanted), f"{name}({a}, {b}) is {got}, not {wanted}"


@pytest.mark.slow
def test_errors_of_powers() -> None:
    generator = torch.manual_seed(1)
    x = torch.exp2(torch.rand(2 * BLOCK, generator=generator, dtype=torch.float64) * 60 - 30)
    x[::3] = 1 + torch.randn(2 * BLOCK, generator=generator, dtype=torch.float64)[::3] * 2.0**-20
    y = (torch.rand(2 * BLOCK, generator=generator, dtype=torch.float64) * 2 - 1) * 1050 / torch.log2(x).abs()
    n = torch.arange(2 * BLOCK, dtype=torch.int32) % 41 - 20
    with mp.workprec(PRECISION):
        for function, exponents in ((fx.math.powf, y), (fx.math.fpowi, n)):
            results = run(function, x, exponents).tolist()
            for base, exponent, got in zip(x.tolist(), exponents.tolist(), results, strict=True):
                assert ulp(got, mp.power(mpf(base), mpf(exponent))) <= 1, (base, exponent)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sin", "log", "erf"])
def test_vectors_give_what_scalars_give(name: str) -> None:
    function = getattr(fx.math, name)

    def element(position: int) -> Callable[[Any], Any]:
        return lambda v: function(fx.Vector.from_elements([v, v * 1e30]))[position]

    x = samples(0.1, 1e10, BLOCK)
    first, second, *scalars = run_all([element(0), element(1), function, lambda v: function(v * 1e30)], x)
    assert torch.equal(torch.stack([first, second]), torch.stack(scalars))
