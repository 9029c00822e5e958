"""Vectors: indexing, slicing, reductions, memory and the functions named after MLIR's operations, against torch."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError
from flydsl.expr import arith, vector
from tests.launchers import launcher_of

pytestmark = pytest.mark.slow

Elementwise = Callable[..., torch.Tensor]
A = torch.tensor([3.0, -4.5, 100.25, 0.0])
B = torch.tensor([0.5, 2.0, -1.0, 7.0])


def test_shapes_slices_and_broadcasting(elementwise: Elementwise) -> None:
    def function(x: Any, y: Any) -> list[Any]:
        m = fx.Vector.from_elements([x, y, x + 1, y + 1, x + 2, y + 2]).reshape((3, 2))
        row = fx.Vector.from_elements([10, 20], fx.Float32)
        column = fx.Vector.from_elements([1, 2, 3], fx.Float32).reshape((3, 1))
        total = m + row * column
        assert total.shape == (3, 2)
        assert (m > 0).shape == m.to(fx.Int32).shape == fx.math.absf(m).shape == (-m).shape == (3, 2)
        assert m[1:, None].shape == (2, 2)
        assert m[None, 0].shape == (3,)
        return [
            total[2, 1], total[0, 0], m[None, 1][2], m[1:, 0][1], m[::-1, None][0, 0], m[-1, -1], m[5],
            *list(m)[1], m.bitcast(fx.Int32).bitcast(fx.Float32)[1, 0],
        ]  # fmt: skip

    expected = [B + 2 + 60, A + 10, B + 2, A + 2, A + 2, B + 2, B + 2, A + 1, B + 1, A + 1]
    assert torch.equal(elementwise(function, A, B, torch.float32), torch.stack(expected))


def test_operators_as_functions(elementwise: Elementwise) -> None:
    def function(x: Any, y: Any) -> list[Any]:
        v, w = fx.Vector.from_elements([x, y]), fx.Vector.from_elements([y, x])
        with pytest.raises(ArgumentError, match="apply_op takes a function of Python's module operator"):
            v.apply_op(max, w)
        return [
            v.apply_op(operator.sub, w)[0], v.apply_op(operator.sub, 1.0, flip=True)[1],
            v.apply_op(operator.lt, w)[1].select(v[0], v[1]), v.apply_op(operator.lt, 2.0, flip=True)[0].select(x, y),
        ]  # fmt: skip

    expected = [A - B, 1 - B, torch.where(B < A, A, B), torch.where(A > 2, A, B)]
    assert torch.equal(elementwise(function, A, B, torch.float32), torch.stack(expected))


def test_reductions(elementwise: Elementwise) -> None:
    op = fx.ReductionOp

    def function(x: Any, y: Any) -> list[Any]:
        v = fx.Vector.from_elements([x, y, x * 2, y * 2])
        i = v.to(fx.Int32)
        u = i.bitcast(fx.Uint32)
        return [
            v.reduce(op.ADD), v.reduce("add", 5, fastmath="reassoc"), v.reduce(op.MAX), v.reduce(op.MIN),
            v.reduce(op.MUL), i.reduce(op.ADD), i.reduce(op.MAX), i.reduce(op.MIN), i.reduce(op.AND),
            i.reduce(op.OR), i.reduce(op.XOR), (u.reduce(op.MAX) == i.reduce(op.MAX)).to(fx.Int32),
            vector.reduction(fx.T.f32, "maximumf", v),
        ]  # fmt: skip

    v = torch.stack([A, B, A * 2, B * 2])
    i = v.int()
    bits = [i[0] & i[1] & i[2] & i[3], i[0] | i[1] | i[2] | i[3], i[0] ^ i[1] ^ i[2] ^ i[3]]
    no_negative = (i >= 0).all(0)
    expected = [
        v.sum(0), v.sum(0) + 5, v.amax(0), v.amin(0), v.prod(0), i.sum(0), i.amax(0), i.amin(0), *bits, no_negative,
        v.amax(0),
    ]  # fmt: skip
    torch.testing.assert_close(elementwise(function, A, B, torch.float32), torch.stack([e.float() for e in expected]))


@pytest.mark.parametrize("fastmath", [None, "reassoc"])
def test_a_sum_of_negative_zeros_is_one(elementwise: Elementwise, fastmath: str | None) -> None:
    zeros = torch.tensor([-0.0])
    (total,) = elementwise(
        lambda x, y: [fx.Vector.from_elements([x, y, x]).reduce("add", fastmath=fastmath)], zeros, zeros, torch.float32
    )
    assert total.signbit().all()


def test_the_largest_element_is_a_number_where_there_is_one(elementwise: Elementwise) -> None:
    a = torch.tensor([torch.nan, 1.0])
    (result,) = elementwise(lambda x, y: [fx.Vector.from_elements([x, 2.0]).reduce("max")], a, a, torch.float32)
    assert result.tolist() == [2.0, 2.0]


def test_functions_named_after_operations(elementwise: Elementwise) -> None:
    f32x4 = fx.T.vec(4, fx.T.f32)

    def function(x: Any, y: Any) -> list[Any]:
        v = vector.from_elements(f32x4, [x, y, 1, 2])
        position = (x > 0).select(fx.Int32(1), fx.Int32(3))
        w = vector.insertelement(v, x * 2, position)
        s = vector.shuffle(v, vector.broadcast(f32x4, y), [0, 4, 3])
        return [
            vector.extractelement(v, position), w[position], w[0], s[0], s[1], s[2], vector.extract(v, [2]),
            vector.extract(v, dynamic_position=[position]), vector.fma(v, v, v)[1], *vector.to_elements(v)[:2],
            arith.constant_vector(2.5, f32x4)[3], arith.addf(v, v, fastmath="fast")[1],
            arith.MulFOp(v, v, fastmath=arith.FastMathFlags.contract | arith.FastMathFlags.nnan).result[1],
            fx.full_like(v, 3)[0], fx.ones_like(v)[0], fx.zeros_like(v, fx.Int8)[0], fx.full(4, y, fx.Float32)[2],
        ]  # fmt: skip

    chosen = torch.where(A > 0, B, 2.0)
    one = torch.ones_like(A)
    expected = [
        chosen, A * 2, A, A, B, 2 * one, one, chosen, B * B + B, A, B, 2.5 * one, B + B, B * B, 3 * one, one,
        0 * one, B,
    ]  # fmt: skip
    assert torch.equal(elementwise(function, A, B, torch.float32), torch.stack(expected))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
def test_loads_and_stores(count: int) -> None:
    @flyc.kernel
    def kernel(X: fx.Tensor, Out: fx.Tensor):
        i = fx.thread_idx.x
        v = fx.Vector.load(fx.T.vec(count, fx.T.f32), X, [i, 1])
        (v * 2).store(Out, [i, 1])

    launch = launcher_of(kernel, grid=1, block=16)
    x, out = torch.arange(16 * 9.0).reshape(16, 9), torch.zeros(16, 9)
    launch(x, out)
    expected = torch.zeros(16, 9)
    expected[:, 1 : 1 + count] = 2 * x[:, 1 : 1 + count]
    assert torch.equal(out, expected)


def test_python_functions_on_values(elementwise: Elementwise) -> None:
    def function(x: Any, y: Any) -> list[Any]:
        i = x.to(fx.Int32)
        powers = fx.Vector.from_elements([x, x + 1]) ** fx.Int32(i)
        return [
            abs(x), abs(i), round(x), x**2, x**y, 2 ** i.to(fx.Float32), i**3, x // y, abs(fx.Int32(-3)), x**0.5,
            powers[0], powers[1],
        ]  # fmt: skip

    a, b = torch.tensor([1.5, 2.5, 3.75]), torch.tensor([2.0, -1.0, 0.5])
    i = a.int()
    expected = [
        a.abs(), i, a.round(), a**2, a**b, 2.0**i, i**3, torch.floor(a / b), torch.full_like(a, 3), a.sqrt(),
        a**i, (a + 1) ** i,
    ]  # fmt: skip
    result = elementwise(function, a, b, torch.float32)
    torch.testing.assert_close(result, torch.stack([e.float() for e in expected]), rtol=2e-7, atol=0)


def test_types_by_name() -> None:
    assert fx.T.f32x4 == fx.T.vec(4, fx.T.f32) == fx.T.VectorType.get([4], fx.T.f32) == fx.T.vec(4, fx.Float32)
    assert fx.Float16.ir_type == fx.T.f16
    with pytest.raises(AttributeError, match=r"T\.f33"):
        _ = fx.T.f33
    with pytest.raises(AttributeError, match=r"T\.f32xy"):
        _ = fx.T.f32xy


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda v: v.reduce("mean"), "reduce by 'mean'"),
        (lambda v: v.to(fx.Float32).reduce("xor"), "reduce by XOR of Float32"),
        (lambda v: v.reshape((3, 2)), "cannot be reshaped to"),
        (lambda v: v[0, 1], "2 indices of"),
        (lambda v: v["a":], "the bounds of a slice"),
        (lambda v: v.broadcast_to((3,)), "cannot be repeated"),
        (lambda v: v.shuffle(v, [8]), "shuffle of"),
        (lambda v: vector.from_elements(fx.T.i32, [1]), "not an MLIR vector type"),
        (lambda v: arith.addf(1.0, 2.0, fastmath="quick"), "no fastmath flags 'quick'"),
        (lambda v: v[0] ** -1, "an integer to the power of -1"),
        (lambda v: fx.math.exp(v), "takes floats"),
        (lambda v: fx.math.ctpop(1.5), "takes integers"),
        (lambda v: fx.math.atan2(1.0), "takes 2 operands"),
        (lambda v: round(v.to(fx.Float32), 2), "to digits"),
    ],
)
def test_errors(trace: Callable[..., Any], use: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message) as caught:
        trace(lambda A, Out: use(fx.Vector.filled([4], Out[0], fx.Int32)))
    assert caught.value.at.file == __file__


def test_reductions_by_mlirs_kinds_and_of_nans(elementwise: Elementwise) -> None:
    """FlyDSL's maximum ignores NaNs and its minimum does not; the kinds of MLIR say which."""
    from flydsl._mlir.dialects._vector_enum_gen import CombiningKind

    kinds = [CombiningKind.MAXIMUMF, CombiningKind.MINNUMF, "max", fx.ReductionOp.MIN, CombiningKind.ADD]

    def function(x: Any, y: Any) -> list[Any]:
        pair = fx.Vector.from_elements([x, y])
        return [pair.reduce(kind) for kind in kinds]

    b = torch.tensor([0.5, float("nan"), -1.0, 7.0])
    expected = [A.maximum(b), A.fmin(b), A.fmax(b), A.minimum(b), A + b]
    got = elementwise(function, A, b, torch.float32)
    assert torch.equal(got.nan_to_num(1e9), torch.stack(expected).nan_to_num(1e9))


@pytest.mark.parametrize("kind", ["foobar", 42, "maxsi"])
def test_an_unknown_reduction_is_an_error(kind: Any, trace: Callable[..., Any]) -> None:
    def function(x: Any, y: Any) -> None:
        with pytest.raises(ArgumentError, match="an unknown operation for Float32"):
            fx.Vector.filled(2, 1.0, fx.Float32).reduce(kind)

    trace(function)


def test_the_types_that_programs_name(trace: Callable[..., Any]) -> None:
    from flydsl._mlir import ir
    from flydsl.expr.typing import Float32x4, Int32x4

    def function(x: Any, y: Any) -> None:
        made = Float32x4(fx.Vector.filled(4, 1.0, fx.Float32).ir_value(), dtype=fx.Float32)
        assert isinstance(made, fx.Float32x4)
        assert made.to(ir.Value) is made
        assert made.signed is False
        assert Int32x4([0, 1, 2, 3]).signed is True
        assert fx.Vector.__construct_from_ir_values__(made.__extract_to_ir_values__()).shape == (4,)
        assert fx.Int32.__construct_from_ir_values__([fx.Int32(7).ir_value()]).dtype is fx.Int32
        with pytest.raises(ValueError, match="another shape or type"):
            Float32x4(made, dtype=fx.Float16)

    trace(function)
