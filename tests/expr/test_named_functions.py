"""`fx.max` and `fx.min`, methods that are functions of `fx.arith` and `fx.math`, and MLIR's names of enumerations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.expr as fx
from flydsl.errors import ArgumentError
from flydsl.expr import arith, vector


def test_extrema_take_the_operation_of_their_type(elementwise: Callable[..., torch.Tensor]) -> None:
    random = torch.Generator().manual_seed(0)
    a, b = (torch.randint(-100, 100, (64,), generator=random, dtype=torch.int32) for _ in range(2))

    def both(x: Any, y: Any) -> list[Any]:
        unsigned = [which(x.to(fx.Uint32), y.to(fx.Uint32)) for which in (fx.max, fx.min)]
        return [fx.max(x, y), fx.min(x, y), *unsigned, fx.max(x, 7, -y), fx.min(0.5, y.to(fx.Float32)) * 2]

    got = elementwise(both, a, b, torch.int32)
    signed = [torch.maximum(a, b), torch.minimum(a, b)]
    bits = [t.long() & 0xFFFFFFFF for t in (a, b)]
    unsigned = [torch.maximum(*bits).int(), torch.minimum(*bits).int()]
    last = [torch.maximum(a.clamp(min=7), -b), (b.float().clamp(max=0.5) * 2).int()]
    assert torch.equal(got, torch.stack([*signed, *unsigned, *last]))


def test_extrema_of_floats_are_nan_where_one_is(elementwise: Callable[..., torch.Tensor]) -> None:
    a, b = torch.full((64,), float("nan")), torch.ones(64)
    got = elementwise(lambda x, y: [fx.max(x, y), fx.min(y, x), fx.max(x, 1.0)], a, b, torch.float32)
    assert got.isnan().all()


def test_methods_are_the_functions_of_their_name(elementwise: Callable[..., torch.Tensor]) -> None:
    a, b = torch.linspace(0.25, 4, 64), torch.linspace(-3, 3, 64)

    def methods(x: Any, y: Any) -> list[Any]:
        wide = x.truncf(fx.Float16).extf(fx.T.f32)
        exact = [x.addf(y), x.subf(y), x.mulf(y), x.divf(y), x.maxnumf(y), wide]
        return [*exact, y.exp2(fastmath="fast"), x.rsqrt(), x.log2(), y.tanh(), y.bitcast(fx.T.i32).bitcast(fx.Float32)]

    got = elementwise(methods, a, b, torch.float32)
    exact = [a + b, a - b, a * b, a / b, torch.maximum(a, b), a.half().float()]
    assert torch.equal(got[:6], torch.stack(exact))
    assert torch.allclose(got[6:], torch.stack([b.exp2(), a.rsqrt(), a.log2(), b.tanh(), b]), rtol=1e-6, atol=1e-6)


def test_fastmath_reaches_the_operation(trace: Callable[..., Any]) -> None:
    flags = arith.FastMathFlags.fast
    assert "fastmath<fast>" in trace(lambda A, Out: str(A[0, 0].addf(A[1, 1], fastmath=flags).value.owner))


def test_predicates_and_kinds_by_their_names(elementwise: Callable[..., torch.Tensor]) -> None:
    a, b = torch.arange(64, dtype=torch.int32) - 32, torch.zeros(64, dtype=torch.int32)

    def compared(x: Any, y: Any) -> list[Any]:
        floats = [x.to(fx.Float32), y.to(fx.Float32)]
        pair = fx.Vector.from_elements([x, x + 5])
        total = vector.reduction(fx.T.i32, vector.CombiningKind.MAXSI, pair)
        return [
            arith.cmpi(arith.CmpIPredicate.slt, x, y),
            arith.CmpIOp(arith.CmpIPredicate.ult, x, y).result,
            arith.cmpf(arith.CmpFPredicate.OGE, *floats),
            total,
        ]

    got = elementwise(compared, a, b, torch.int32)
    assert torch.equal(got, torch.stack([(a < 0).int(), b, (a >= 0).int(), a + 5]))


def test_the_type_of_a_vector() -> None:
    assert str(fx.Vector.make_type(4, fx.Float32)) == "vector<4xf32>"
    assert str(fx.Vector.make_type((2, 4), fx.BFloat16)) == "vector<8xbf16>"
    with pytest.raises(ArgumentError, match="not a scalar type"):
        fx.Vector.make_type(4, "f32")
