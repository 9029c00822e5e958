"""Every math function on the simulator: its error in units in the last place, and its special values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler.fly_opt import run as run_passes
from tests.launchers import launcher_of

BLOCK = 256
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, math.inf, -math.inf, math.nan, 1e-45, -1e-45, 1.1754944e-38, 3.4028235e38]


def run_all(
    functions: list[Callable[..., Any]], *inputs: torch.Tensor, dtype: torch.dtype | None = None
) -> list[torch.Tensor]:
    """Each function on every element of tensors of equal length, a multiple of the block, in one launch."""
    used = len(inputs)

    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor, Out: fx.Tensor):
        i = fx.block_idx.x * BLOCK + fx.thread_idx.x
        arguments = [T[i] for T in (A, B)[:used]]
        for j, function in enumerate(functions):
            Out[j, i] = function(*arguments).to(Out.dtype)

    launch = launcher_of(kernel, grid=inputs[0].numel() // BLOCK, block=BLOCK)
    out = torch.empty(len(functions), inputs[0].numel(), dtype=dtype or inputs[0].dtype)
    launch(inputs[0], inputs[-1], out)
    return list(out)


def run(function: Callable[..., Any], *inputs: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
    """One function on every element."""
    return run_all([function], *inputs, dtype=dtype)[0]


def equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors are equal, NaN for NaN."""
    return torch.equal(a.isnan(), b.isnan()) and torch.equal(a.nan_to_num(-7.0), b.nan_to_num(-7.0))


def samples(low: float, high: float, count: int = 40 * BLOCK) -> torch.Tensor:
    """Numbers spread evenly, numbers of every exponent that the range has, and the special values in it."""
    generator = torch.manual_seed(0)
    even = torch.rand(count // 2, generator=generator, dtype=torch.float64) * (high - low) + low
    exponent = torch.rand(count // 2, generator=generator, dtype=torch.float64) * 278 - 150
    sign = torch.randint(0, 2, (count // 2,), generator=generator) * 2 - 1
    values = torch.cat([even.clamp(-3.4e38, 3.4e38), torch.exp2(exponent) * sign]).float()
    values = torch.where((values >= low) & (values <= high), values, even.repeat(2).float())
    values[: len(SPECIAL)] = torch.tensor(SPECIAL)
    return values


def ulps(result: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    """The errors in units of the f32 nearest to the exact results; infinite where only one is a NaN or infinite."""
    rounded = exact.float()
    same = (result == rounded) & (result.signbit() == rounded.signbit()) | (result.isnan() & rounded.isnan())
    spacing = torch.exp2(torch.floor(torch.log2(exact.abs())).clamp(-126) - 23)
    error = (result.double() - exact).abs() / spacing
    return torch.where(same, error.nan_to_num(0.0, 0.0, 0.0), error.nan_to_num(math.inf, math.inf, math.inf))


# Function -> (torch's, the range, ulp).
UNARY = {
    "exp": (torch.exp, -105, 90, 2), "exp2": (torch.exp2, -151, 129, 2), "expm1": (torch.expm1, -30, 90, 2),
    "log": (torch.log, 0, 3e38, 2), "log2": (torch.log2, 0, 3e38, 2), "log10": (torch.log10, 0, 3e38, 2),
    "log1p": (torch.log1p, -1, 3e38, 3), "sqrt": (torch.sqrt, 0, 3e38, 0.5), "rsqrt": (torch.rsqrt, 0, 3e38, 2),
    "cbrt": (lambda x: x.abs().pow(1 / 3).copysign(x), -3e38, 3e38, 1),
    "sin": (torch.sin, -3e38, 3e38, 2), "cos": (torch.cos, -3e38, 3e38, 2), "tan": (torch.tan, -3e38, 3e38, 4),
    "asin": (torch.asin, -1, 1, 3), "acos": (torch.acos, -1, 1, 3), "atan": (torch.atan, -100, 100, 3),
    "sinh": (torch.sinh, -90, 90, 3), "cosh": (torch.cosh, -90, 90, 3), "tanh": (torch.tanh, -20, 20, 3),
    "asinh": (torch.asinh, -1e6, 1e6, 4), "acosh": (torch.acosh, 1, 1e6, 4), "atanh": (torch.atanh, -1, 1, 4),
    "erf": (torch.erf, -5, 5, 2), "erfc": (torch.erfc, -5, 11, 4),
    "absf": (torch.abs, -3e38, 3e38, 0), "ceil": (torch.ceil, -1e5, 1e5, 0), "floor": (torch.floor, -1e5, 1e5, 0),
    "trunc": (torch.trunc, -1e5, 1e5, 0), "roundeven": (torch.round, -1e3, 1e3, 0),
    "round": (lambda x: (x.abs() + 0.5).floor().copysign(x), -1e3, 1e3, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    reference, low, high, bound = UNARY[name]
    x = samples(low, high)
    error = ulps(run(getattr(fx.math, name), x), reference(x.double()))
    worst = int(error.argmax())
    assert error[worst] <= bound, f"{name}({x[worst]}) is {error[worst]:.2f} ulp wrong"


def test_acosh_below_one_is_nan() -> None:
    x = -torch.exp2(torch.linspace(-140, 127, BLOCK))
    assert run(fx.math.acosh, x).isnan().all()


def pairs(values: list[float]) -> tuple[torch.Tensor, torch.Tensor]:
    """Every pair of some numbers, padded to whole blocks."""
    a, b = torch.cartesian_prod(torch.tensor(values), torch.tensor(values)).T
    padding = -a.numel() % BLOCK
    return tuple(torch.cat([t, t[:1].expand(padding)]).contiguous() for t in (a, b))  # type: ignore[return-value]


BINARY = {"powf": (torch.pow, 1), "atan2": (torch.atan2, 4), "copysign": (torch.copysign, 0)}


@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str) -> None:
    reference, bound = BINARY[name]
    edges = pairs([*SPECIAL, 2.0, -2.0, 3.0, -3.0, 1.5, -1.5, 7.25, 1e10, -16777217.0, 100.0, 0.999, 1e-20])
    generator = torch.manual_seed(1)
    a = torch.exp2(torch.randn(20 * BLOCK, generator=generator) * 30)
    b = torch.randn(20 * BLOCK, generator=generator) * 4
    near_one = 1 + torch.randn(20 * BLOCK, generator=generator) * 1e-4
    x, y = torch.cat([edges[0], a, near_one]), torch.cat([edges[1], b, b * 1e5])
    error = ulps(run(getattr(fx.math, name), x, y), reference(x.double(), y.double()))
    worst = int(error.argmax())
    assert error[worst] <= bound, f"{name}({x[worst]}, {y[worst]}) is {error[worst]:.2f} ulp wrong"


def test_powers_of_integers() -> None:
    x = samples(-50, 50, 4 * BLOCK)
    n = torch.arange(x.numel(), dtype=torch.int32) % 41 - 20
    assert ulps(run(fx.math.fpowi, x, n), torch.pow(x.double(), n.double())).max() <= 1
    exponents = (-2, 0, 1, 2, 3, 4, 9)
    for k, result in zip(exponents, run_all([lambda x, k=k: x**k for k in exponents], x), strict=True):
        assert ulps(result, torch.pow(x.double(), k)).max() <= 2
    for dtype, bits in ((torch.int32, 32), (torch.int64, 64), (torch.int8, 8)):
        base = (torch.arange(BLOCK) % 23 - 11).to(dtype)
        power = (torch.arange(BLOCK) % 35 - 4).to(dtype)
        base[(base == 0) & (power < 0)] = 1  # 1 / 0
        result = run(fx.math.ipowi, base, power)
        for b, p, r in zip(base.tolist(), power.tolist(), result.tolist(), strict=True):
            exact = b**p if p >= 0 else int(1 / b**-p)
            assert (r - exact) % 2**bits == 0, (b, p)


def test_integer_functions() -> None:
    x = torch.randint(-(2**31), 2**31, (BLOCK,), generator=torch.manual_seed(0), dtype=torch.int64).to(torch.int32)
    x[:5] = torch.tensor([0, 1, -1, 2**31 - 1, -(2**31)], dtype=torch.int32)
    bits = [f"{v & 0xFFFFFFFF:032b}" for v in x.tolist()]
    assert torch.equal(run(fx.math.absi, x), x.abs())
    assert run(fx.math.ctpop, x).tolist() == [b.count("1") for b in bits]
    assert run(fx.math.ctlz, x).tolist() == [32 - len(b.lstrip("0")) for b in bits]
    assert run(fx.math.cttz, x).tolist() == [32 - len(b.rstrip("0")) for b in bits]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_classes_and_exact_functions_in_every_type(dtype: torch.dtype) -> None:
    x = samples(-100, 100, 4 * BLOCK).to(dtype)
    info = torch.finfo(dtype)
    expected = {
        "isnan": x.isnan(), "isinf": x.isinf(), "isfinite": x.isfinite(),
        "isnormal": (x.abs() >= info.tiny) & x.isfinite(),
    }  # fmt: skip
    results = run_all([getattr(fx.math, name) for name in expected], x, dtype=torch.int8)
    for (name, truth), result in zip(expected.items(), results, strict=True):
        assert torch.equal(result, truth.to(torch.int8)), name
    exact = ("absf", "ceil", "floor", "trunc", "roundeven", "round")
    others = [lambda v: fx.math.clampf(v, -2.5, 7), lambda v: fx.math.fma(v, v, 0.5), fx.math.sqrt]
    results = run_all([*(getattr(fx.math, name) for name in exact), *others], x)
    for name, result in zip(exact, results[:6], strict=True):
        assert equal(result, UNARY[name][0](x.double()).to(dtype)), name
    assert equal(results[6], x.clamp(-2.5, 7))
    assert equal(results[7], (x.double() ** 2 + 0.5).to(dtype))
    if dtype is torch.float64:  # 1 ulp
        torch.testing.assert_close(results[8], x.sqrt(), rtol=2.3e-16, atol=0, equal_nan=True)
    else:
        assert equal(results[8], x.double().sqrt().to(dtype))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_floats_are_computed_in_f32(dtype: torch.dtype) -> None:
    """Within one unit of the narrow type, and nearly always the exact result rounded."""
    names = ["exp", "log", "sin", "tanh", "erf", "rsqrt", "expm1", "atan"]
    x = samples(-100, 100, 4 * BLOCK).to(dtype)
    results = run_all([getattr(fx.math, name) for name in names], x)
    for name, result in zip(names, results, strict=True):
        exact = UNARY[name][0](x.double()).to(dtype)
        assert torch.equal(result.isnan(), exact.isnan()), name
        bits = [t.nan_to_num(0.0).view(torch.int16).int() for t in (result, exact)]
        assert (bits[0] - bits[1]).abs().max() <= 1, name
        assert (bits[0] == bits[1]).double().mean() > 0.999, name


@pytest.mark.parametrize("name", ["sin", "rsqrt", "tanh", "exp2", "log1p", "powf"])
def test_vectors_give_what_scalars_give(name: str) -> None:
    function = getattr(fx.math, name)
    operands = 2 if name == "powf" else 1
    factors = (1.0, 0.001, 1e30)
    x = samples(-1e10, 1e10, 2 * BLOCK)

    def element(position: int) -> Callable[[Any], Any]:
        return lambda v: function(*[fx.Vector.from_elements([v * f for f in factors])] * operands)[position]

    alone = [lambda v, f=factor: function(*[v * f] * operands) for factor in factors]
    results = run_all([*alone, *map(element, range(3))], x)
    for scalar, vector in zip(results[:3], results[3:], strict=True):
        assert equal(scalar, vector)


def test_vectors_of_one_element() -> None:
    """LLVM 22.1 ends with an assertion for the `copysign` of <1 x double> that this would be."""

    def with_chosen_sign(*values: Any) -> Any:
        x, y = (fx.Vector.from_elements([value]) for value in values)
        return fx.copysign(y, (x > y).select(fx.full_like(x, 1.0), x))[0]

    x = torch.tensor([0.5, 2.0, -3.0, -0.5] * (BLOCK // 4), dtype=torch.float64)
    y = torch.tensor([1.0, -1.0] * (BLOCK // 2), dtype=torch.float64)
    assert equal(run(with_chosen_sign, x, y), torch.copysign(y, torch.where(x > y, 1.0, x)))


def test_sincos_is_sin_and_cos() -> None:
    x = samples(-1e6, 1e6, 4 * BLOCK)
    sine, cosine = run_all([lambda v: fx.math.sincos(v)[0], lambda v: fx.math.sincos(v)[1]], x)
    assert equal(sine, run(fx.math.sin, x))
    assert equal(cosine, run(fx.math.cos, x))


def test_fast_versions_are_near() -> None:
    names = ["exp", "exp2", "log", "log2", "log10", "sqrt", "rsqrt", "sin", "cos", "tan"]
    x = torch.rand(BLOCK, generator=torch.manual_seed(0)) * 3 + 0.01
    results = run_all([lambda v, n=name: getattr(fx.math, n)(v, fastmath="afn") for name in names], x)
    for name, result in zip(names, results, strict=True):
        torch.testing.assert_close(result.double(), getattr(torch, name)(x.double()), rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("fastmath", ["none", "afn"])
def test_launchers_compute_on_the_host(fastmath: str) -> None:
    names = ["exp", "exp2", "log", "log2", "log10", "sqrt", "rsqrt", "sin", "cos", "tan", "tanh", "atan", "sinh"]

    @flyc.kernel
    def kernel(Out: fx.Tensor, x: fx.Float32, index: fx.Int32):
        Out[index] = x

    @flyc.jit
    def launch(Out: fx.Tensor, x: fx.Float32):
        for i in fx.range_constexpr(len(names)):
            kernel(Out, getattr(fx.math, names[i])(x, fastmath=fastmath), i).launch(grid=1, block=1)

    out, x = torch.zeros(len(names)), 0.7
    launch(out, x)
    expected = torch.tensor([getattr(torch, name)(torch.tensor(x)) for name in names])
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=0)


def test_fast_functions_are_operations_of_rocdl_in_kernels_alone() -> None:
    text = """
    func.func @host(%x: f32) -> f32 {
      %0 = math.exp2 %x fastmath<fast> : f32
      return %0 : f32
    }
    gpu.module @m {
      gpu.func @device(%x: f32) -> f32 {
        %0 = math.exp2 %x fastmath<fast> : f32
        gpu.return %0 : f32
      }
    }"""
    host, device = run_passes(text, ["convert-fly-to-rocdl"]).split("gpu.module")
    assert "rocdl.exp2" in device
    assert "rocdl" not in host
    assert "amdgcn" not in host
