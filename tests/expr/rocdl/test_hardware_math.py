"""The transcendental unit's instructions, compared with torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.expr as fx
from flydsl.errors import ArchError, ArgumentError, FlyError
from flydsl.expr import rocdl
from flydsl.expr.typing import T

TURN = 2 * math.pi
CASES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "exp2": torch.exp2,
    "exp": torch.exp,
    "log": torch.log2,
    "rcp": torch.reciprocal,
    "rsq": torch.rsqrt,
    "sqrt": torch.sqrt,
    "sin": lambda x: torch.sin(TURN * x),
    "cos": lambda x: torch.cos(TURN * x),
}
X = torch.linspace(0.05, 6.0, 64)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_f32(name: str, wave: Callable[..., torch.Tensor]) -> None:
    def body(lane: Any, A: Any) -> list[Any]:
        return [getattr(rocdl, name)(T.f32, A[lane]), getattr(rocdl, name)(A[lane])]

    got = wave(body, X, dtype=torch.float32)
    expected = CASES[name](X.double()).float()
    torch.testing.assert_close(got, torch.stack([expected, expected]), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, torch.float16) for name in ("rcp", "rsq", "sqrt", "sin", "cos")]
    + [(name, torch.float64) for name in ("rcp", "rsq", "sqrt")],
)
def test_other_types(name: str, dtype: torch.dtype, wave: Callable[..., torch.Tensor]) -> None:
    got = wave(lambda lane, A: [getattr(rocdl, name)(A[lane])], X.to(dtype), dtype=dtype)
    tolerance = 5e-3 if dtype == torch.float16 else 1e-6
    torch.testing.assert_close(got[0], CASES[name](X.to(dtype).double()).to(dtype), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_middle_of_three(dtype: torch.dtype, wave: Callable[..., torch.Tensor]) -> None:
    got = wave(lambda lane, A: [rocdl.fmed3(A[lane], 1.0, 3.0)], X.to(dtype), dtype=dtype)
    assert torch.equal(got[0], X.to(dtype).clamp(1, 3))


def test_one_instruction(compiled: Callable[..., str]) -> None:
    def body(A: Any) -> None:
        A[0] = rocdl.exp2(T.f32, A[0]) * rocdl.rcp(T.f32, A[1])

    isa = compiled(body)
    assert isa.count("v_exp_f32") == isa.count("v_rcp_f32") == 1


def test_tanh(compiled: Callable[..., str]) -> None:
    def body(A: Any) -> None:
        A[0] = rocdl.tanh(T.f32, A[0])

    assert "v_tanh_f32" in compiled(body, "gfx1250")
    with pytest.raises(ArchError, match=r"rocdl\.tanh: gfx942 does not have it"):
        compiled(body)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda A: rocdl.exp2(T.f32, A[0].to(fx.Float16)), ArgumentError, r"rocdl\.exp2 of f16 to f32: .* one of f32"),
        (lambda A: rocdl.rcp(T.f16, A[0]), ArgumentError, r"rocdl\.rcp of f32 to f16"),
        (lambda A: rocdl.sqrt(A[0].to(fx.Int32)), ArgumentError, r"rocdl\.sqrt of i32"),
        (lambda A: rocdl.exp2(T.f32), ArgumentError, r"exp2\(res, arg\): missing a required argument: 'arg'"),
    ],
)
def test_wrong_calls_are_refused_at_the_users_line(
    call: Callable[[Any], Any], error: type[FlyError], says: str, compiled: Callable[..., str]
) -> None:
    with pytest.raises(error, match=says) as info:
        compiled(call)
    assert info.value.at.file == __file__
