"""`fx.utils.arith`: types of numbers as MLIR has them, and conversions by kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler.protocol import extract_to_ir_values
from flydsl.errors import FlyError
from flydsl.expr.typing import T
from flydsl.expr.utils import arith


def computed(body: Callable[[Any], Any], given: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """What `body` makes of each element."""

    @flyc.kernel
    def kernel(X: fx.Tensor, Y: fx.Tensor):
        i = fx.thread_idx.x
        Y[i] = fx.as_numeric(body(X[i]))

    @flyc.jit
    def launch(X: fx.Tensor, Y: fx.Tensor, threads: fx.Constexpr[int]):
        kernel(X, Y).launch(grid=1, block=threads)

    result = torch.zeros_like(like)
    launch(given, result, given.numel())
    return result


def test_kinds_of_types() -> None:
    def body(x: Any) -> Any:
        vector = T.vec(4, T.bf16)
        assert arith.element_type(vector) == T.bf16
        assert arith.element_type(fx.Int8) == T.i8
        assert arith.is_float_type(vector)
        assert arith.is_integer_like_type(T.index)
        assert not arith.is_integer_like_type(T.f32)
        assert [arith.is_narrow_float_type(kind) for kind in (fx.Float8E4M3FN, fx.Float16, T.i8)] == [
            True,
            False,
            False,
        ]
        assert arith.recast_type(vector, T.f32) == T.vec(4, T.f32)
        assert arith.recast_type(T.bf16, T.f32) == T.f32
        return x

    assert computed(body, torch.ones(4), torch.ones(4)).sum() == 4


def test_constants_have_the_type_that_is_asked_for() -> None:
    def body(x: Any) -> Any:
        assert [str(extract_to_ir_values(arith.arith_const(v))[0].type) for v in (True, 1, 1.0)] == ["i1", "i32", "f32"]
        assert arith.arith_const(x) is x
        four = fx.Vector(arith.arith_const(-1, T.vec(4, T.i64)))
        return fx.Int64(four[2]) + fx.Int64(arith.arith_const(2**64 - 3, T.i64))

    assert computed(body, torch.ones(4), torch.ones(4).long()).tolist() == [-4] * 4


def test_a_constant_of_something_else_is_refused() -> None:
    with pytest.raises(FlyError, match="this is not a number"):
        computed(lambda x: arith.arith_const("a"), torch.ones(1), torch.ones(1))


@pytest.mark.parametrize("target", [torch.float16, torch.bfloat16, torch.float64, torch.float8_e4m3fn])
def test_floats_become_other_floats(target: torch.dtype) -> None:
    kind = {
        torch.float16: fx.Float16,
        torch.bfloat16: fx.BFloat16,
        torch.float64: fx.Float64,
        torch.float8_e4m3fn: fx.Float8E4M3FN,
    }[target]
    given = torch.linspace(-20, 20, 64)
    assert torch.equal(
        computed(lambda x: arith.fp_to_fp(x, kind), given, given.to(target)).float(), given.to(target).float()
    )


def test_a_float_is_rounded_in_the_direction_that_is_asked_for() -> None:
    given = torch.full((8,), 1 / 3)
    up = computed(lambda x: arith.fp_to_fp(x, T.bf16, rounding_mode=fx.RoundingMode.upward), given, given.bfloat16())
    assert (up.float() >= given).all()
    assert (
        up[0]
        != computed(
            lambda x: arith.fp_to_fp(x, T.bf16, rounding_mode=fx.RoundingMode.downward), given, given.bfloat16()
        )[0]
    )


def test_floats_become_integers_and_back() -> None:
    given = torch.tensor([-3.7, -0.5, 0.0, 2.5, 100.9])
    assert computed(lambda x: arith.fp_to_int(x, True, T.i32), given, given.int()).tolist() == [-3, 0, 0, 2, 100]
    assert computed(lambda x: arith.fp_to_int(x, False, T.i8), given.abs(), given.to(torch.int8)).tolist() == [
        3,
        0,
        0,
        2,
        100,
    ]
    whole = torch.tensor([-2, -1, 7], dtype=torch.int8)
    assert computed(lambda x: arith.int_to_fp(x, True, T.f32), whole, whole.float()).tolist() == [-2, -1, 7]
    assert computed(lambda x: arith.int_to_fp(x, False, T.f32), whole, whole.float()).tolist() == [254, 255, 7]


def test_integers_of_another_width() -> None:
    given = torch.tensor([-2, 5, 2**31 - 1], dtype=torch.int32)
    widened = [computed(lambda x, s=s: arith.int_to_int(x, fx.Int64, signed=s), given, given.long()) for s in (1, 0)]
    assert widened[0].tolist() == [-2, 5, 2**31 - 1]
    assert widened[1].tolist() == [2**32 - 2, 5, 2**31 - 1]
    assert computed(lambda x: arith.int_to_int(x, fx.Int8), given, given.to(torch.int8)).tolist() == [-2, 5, -1]


def test_the_wrong_kind_of_number_is_an_error_that_names_it() -> None:
    with pytest.raises(FlyError, match="fp_to_fp of Int32"):
        computed(lambda x: arith.fp_to_fp(x, T.f16), torch.ones(1).int(), torch.ones(1))
    with pytest.raises(FlyError, match="int_to_int of Float32"):
        computed(lambda x: arith.int_to_int(x, fx.Int64), torch.ones(1), torch.ones(1))


def test_stated_flags_come_before_those_of_the_block() -> None:
    def body(x: Any) -> Any:
        with fx.fastmath("contract"):
            assert "contract" in str(arith.resolve_fastmath(None))
            assert arith.resolve_fastmath("nnan") == "nnan"
        assert arith.resolve_fastmath(None) is None
        return x

    computed(body, torch.ones(1), torch.ones(1))
