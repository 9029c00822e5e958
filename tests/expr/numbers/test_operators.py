"""Operators mean what Python's do, on the machine: every result is compared with Python's or torch's."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import flydsl
import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError
from tests.launchers import launcher_of
from tests.messages import raises_saying

pytestmark = pytest.mark.slow

INTEGERS = {torch.int8: 8, torch.int16: 16, torch.int32: 32, torch.int64: 64}
FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


def wrapped(number: int, bits: int) -> int:
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number


def pairs(values: list[Any], dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    a, b = zip(*itertools.product(values, values), strict=True)
    return torch.tensor(a, dtype=dtype), torch.tensor(b, dtype=dtype)


def remainder(a: Any, b: Any) -> Any:
    """`a % b` of a traced value, and for Python's numbers what that is: it has the sign of the dividend."""
    return abs(a) % abs(b) * (-1 if a < 0 else 1) if isinstance(a, int) and isinstance(b, int) else a % b


def stored(values: list[Any], dtype: type[fx.Numeric]) -> list[Any]:
    """Results as a tensor of `dtype` takes them."""
    return [value.to(dtype) for value in values]


def edges(bits: int) -> list[int]:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return [low, low + 1, -100, -7, -2, -1, 0, 1, 2, 3, 7, 64, 100, high - 1, high]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_signed_integers(elementwise: Callable[..., torch.Tensor], dtype: torch.dtype) -> None:
    bits = INTEGERS[dtype]
    operations = [
        operator.add, operator.sub, operator.mul, operator.and_, operator.or_, operator.xor,
        lambda a, b: a << (b & 7), lambda a, b: a >> (b & 7), lambda a, b: -a, lambda a, b: ~b,
        lambda a, b: a + 5, lambda a, b: 5 - b, lambda a, b: a // 4, lambda a, b: remainder(a, 4), lambda a, b: a // 1,
        lambda a, b: remainder(a, 1), lambda a, b: a // -1, lambda a, b: remainder(a, -1), lambda a, b: a // 7,
        lambda a, b: remainder(a, -7),
        lambda a, b: 100 // (b | 1), lambda a, b: remainder(a, b | 1), lambda a, b: a // (b | 1),
    ]  # fmt: skip
    a, b = pairs(edges(bits), dtype)
    result = elementwise(lambda x, y: stored([f(x, y) for f in operations], getattr(fx, f"Int{bits}")), a, b, dtype)
    for row, f in zip(result, operations, strict=True):
        expected = [wrapped(f(x, y), bits) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
        assert row.tolist() == expected


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_unsigned_integers(elementwise: Callable[..., torch.Tensor], bits: int) -> None:
    unsigned = getattr(fx, f"Uint{bits}")
    dtype = next(t for t, width in INTEGERS.items() if width == bits)
    operations = [
        operator.add, operator.sub, operator.mul, operator.xor, lambda a, b: a >> (b & 7), lambda a, b: a << (b & 7),
        lambda a, b: a // (b | 1), lambda a, b: remainder(a, b | 1), lambda a, b: a // 4, lambda a, b: remainder(a, 4),
        lambda a, b: a // 7, lambda a, b: ~a,
    ]  # fmt: skip
    a, b = pairs(edges(bits), dtype)
    result = elementwise(lambda x, y: stored([f(unsigned(x), unsigned(y)) for f in operations], unsigned), a, b, dtype)
    mask = (1 << bits) - 1
    for row, f in zip(result, operations, strict=True):
        expected = [wrapped(f(x & mask, y & mask), bits) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
        assert row.tolist() == expected


@pytest.mark.parametrize("signed", [True, False])
def test_integer_comparisons(elementwise: Callable[..., torch.Tensor], signed: bool) -> None:
    kind, mask = (fx.Int32, -1) if signed else (fx.Uint32, 0xFFFFFFFF)
    a, b = pairs(edges(32), torch.int32)
    result = elementwise(lambda x, y: [f(kind(x), kind(y)) for f in COMPARISONS], a, b, torch.int32)
    for row, f in zip(result, COMPARISONS, strict=True):
        assert row.tolist() == [int(f(x & mask, y & mask)) for x, y in zip(a.tolist(), b.tolist(), strict=True)]


def float_values(dtype: torch.dtype) -> list[float]:
    info = torch.finfo(dtype)
    tiny = [info.tiny, info.smallest_normal / 2, -info.tiny / 4]
    return [0.0, -0.0, 1.0, -1.5, 3.0, 0.1, 1e-3, -1234.5, info.max, -info.max, *tiny, torch.inf, -torch.inf, torch.nan]


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats(elementwise: Callable[..., torch.Tensor], dtype: torch.dtype) -> None:
    operations = [
        operator.add, operator.sub, operator.mul, operator.truediv, lambda a, b: -a, lambda a, b: a * 0.5,
        lambda a, b: 1 - b, lambda a, b: a + 2,
    ]  # fmt: skip
    a, b = pairs(float_values(dtype), dtype)
    result = elementwise(lambda x, y: [f(x, y) for f in operations], a, b, dtype)
    for row, f in zip(result, operations, strict=True):
        expected = f(a, b)
        assert torch.equal(row.isnan(), expected.isnan())
        same = torch.isclose(row, expected, rtol=torch.finfo(dtype).eps, atol=0) | expected.isnan()
        assert same.all(), (a[~same], b[~same], row[~same], expected[~same])


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_comparisons(elementwise: Callable[..., torch.Tensor], dtype: torch.dtype) -> None:
    a, b = pairs(float_values(dtype), dtype)
    result = elementwise(lambda x, y: [f(x, y) for f in COMPARISONS], a, b, torch.int32)
    for row, f in zip(result, COMPARISONS, strict=True):
        assert torch.equal(row.bool(), f(a, b))


def test_mixed_types(elementwise: Callable[..., torch.Tensor]) -> None:
    a = torch.tensor([-3, 0, 7, 2**31 - 1], dtype=torch.int32)
    b = torch.tensor([0.5, -2.25, 1e10, 3.0])
    result = elementwise(
        lambda x, y: [x + y, y - x, x * 1.5, x / 2, (x < y), (x > 0) + (y > 0), x.to(fx.Float16) * y, True + x],
        a,
        b,
        torch.float32,
    )
    half = a.half()
    expected = [
        a + b, b - a, a * 1.5, a / 2, (a < b).float(), (a > 0).float() + (b > 0).float(), half.float() * b,
        torch.tensor([wrapped(x + 1, 32) for x in a.tolist()]).float(),
    ]  # fmt: skip
    assert torch.equal(result, torch.stack(expected))


def test_common_types(trace: Callable[..., Any]) -> None:
    """The types that FlyDSL 0.4.2 gives, asked in its own process, and those of 0.2.2."""

    def types(A: Any, Out: Any) -> list[Any]:
        i, f = Out[0], A[0, 0]
        half, brain = f.to(fx.Float16), f.to(fx.BFloat16)
        values = [
            i + i.to(fx.Int64), i + i.to(fx.Int8), i + fx.Uint32(i), i + fx.Index(i), i + half, half + brain,
            brain + half, i / i, fx.Index(i) / 2, i.to(fx.Int8) + i.to(fx.Int8), i.to(fx.Uint16) >> 1, -i.to(fx.Int8),
            ~i.to(fx.Uint8), abs(i.to(fx.Int16)), half * 2, half * 0.5, fx.Uint32(i) + 1, i & 0xFFFFFFFF,
            i.to(fx.Int64) + 1,
            half / i, i.to(fx.Int64) / 2, f.to(fx.Float8E4M3FN) * 0.5, i.to(fx.Int8) < 1000,
            (i < i) & (i > i), (i < i) + (i > i), i + 1.5, (i < i).select(1.5, 2), i < i,
            i.to(fx.Int8) + (i < i), True - i.to(fx.Uint16), i.to(fx.Uint8) & (i < i), half + (i < i),
        ]  # fmt: skip
        return [value.dtype for value in values]

    today = [
        fx.Int64, fx.Int32, fx.Uint32, fx.Index, fx.Float32, fx.Float32, fx.Float32, fx.Float32, fx.Index, fx.Int8,
        fx.Int32, fx.Int8, fx.Uint8, fx.Int16, fx.Float32, fx.Float32, fx.Uint32, fx.Int64, fx.Int64, fx.Float32,
        fx.Float64, fx.Float32, fx.Boolean, fx.Boolean, fx.Int32, fx.Float32, fx.Float32, fx.Boolean,
        fx.Int32, fx.Int32, fx.Uint8, fx.Float32,
    ]  # fmt: skip
    assert trace(types) == today
    earlier = today.copy()
    for place, dtype in ((4, fx.Float16), (5, fx.Float16), (6, fx.BFloat16), (14, fx.Float16), (19, fx.Float16)):
        earlier[place] = dtype
    earlier[31] = fx.Float16
    with flydsl.language("0.2.2"):
        assert trace(types) == earlier


def test_floats_beside_integers_with_more_bits(trace: Callable[..., Any]) -> None:
    def types(A: Any, Out: Any) -> list[Any]:
        i, f = Out[0], A[0, 0]
        half = f.to(fx.Float16)
        values = [
            half + i.to(fx.Int16), half + fx.Uint32(i), half * fx.Int64(i), f + fx.Int64(i), f + fx.Index(i), f + i,
            fx.max(half, 2), fx.max(i.to(fx.Int8), 2), (i < i).select(half, 2), fx.Uint64(i) + fx.Index(i),
            fx.Index(i) + fx.Uint64(i), fx.Index(i) + fx.Int64(i), fx.Uint32(i) + -1, f.to(fx.Float8E4M3FN) * i,
            i.to(fx.Int8) << (i < i),
        ]  # fmt: skip
        return [value.dtype for value in values]

    assert trace(types) == [
        fx.Float16, fx.Float32, fx.Float64, fx.Float64, fx.Float64, fx.Float32, fx.Float32, fx.Int32, fx.Float32,
        fx.Uint64, fx.Index, fx.Index, fx.Uint32, fx.Float32, fx.Int8,
    ]  # fmt: skip
    assert fx.Numeric.promote(fx.Float16, fx.Int32) is fx.Float32
    assert fx.Numeric.promote(fx.Float32, fx.Int64) is fx.Float64


def test_is_static_is_an_attribute_and_a_method(trace: Callable[..., Any]) -> None:
    traced = trace(lambda A, Out: [Out[0].is_static, Out[0].is_static()])
    assert [*traced, fx.Int32(1).is_static, fx.Int32(1).is_static()] == [False, False, True, True]


def test_code_of_both_languages_is_kept_apart() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        Out[0] = (A[0] * 2049).to(fx.Float32)

    launch = launcher_of(kernel, grid=1, block=1)
    a, today, earlier = torch.ones(1, dtype=torch.float16), torch.zeros(1), torch.zeros(1)
    launch(a, today)
    with flydsl.language("0.2.2"):
        launch(a, earlier)
    assert (today.item(), earlier.item()) == (2049.0, 2048.0)  # in half precision, 2049 is 2048


def test_small_numbers_keep_their_type_beside_each_other(elementwise: Callable[..., torch.Tensor]) -> None:
    """As in FlyDSL, they are Int32 beside a Python number."""
    a, b = pairs([-128, -7, 0, 3, 100, 127], torch.int8)
    result = elementwise(lambda x, y: [x + 100, x * y, x << 4, 100 - y, x.to(fx.Uint8) & 0xF0F], a, b, torch.int32)
    x, y = a.int(), b.int()
    assert torch.equal(result, torch.stack([x + 100, (a * b).int(), x << 4, 100 - y, x & 0xF]))


def test_bare_values_stay_narrow_and_have_no_sign(elementwise: Callable[..., torch.Tensor]) -> None:
    """As FlyDSL's values of MLIR's operations: a number takes their type, and `>>` shifts zeros in."""
    a, b = pairs([-(2**31), -7, -1, 0, 3, 0x12345678, 2**31 - 1], torch.int32)

    def results(x: Any, y: Any) -> list[Any]:
        bare, byte = fx.arith.ArithValue(x), fx.arith.trunci(fx.T.i8, x)
        words = fx.vector.bitcast(fx.T.vec(1, fx.T.i32), fx.Vector.from_elements([y], fx.Int32))
        values = [bare >> 28, bare & 0xFF800000, bare + 0x80000000, byte + 100, byte * byte, (words >> 4)[0], bare + y]
        assert [v.dtype for v in values] == [fx.Int32, fx.Int32, fx.Int32, fx.Int8, fx.Int8, fx.Int32, fx.Int32]
        typed = [x >> 28, fx.Int32(bare) >> 28, (x & 0xFF800000) >> 32, bare // 3, fx.Int32(byte) + 100]
        assert [v.dtype for v in typed] == [fx.Int32, fx.Int32, fx.Int64, fx.Int32, fx.Int32]
        return stored([*values, *typed], fx.Int32)

    def expected(x: int, y: int) -> list[int]:
        byte = wrapped(x, 8)
        bare = [(x & 0xFFFFFFFF) >> 28, x & -0x800000, wrapped(x + 2**31, 32), wrapped(byte + 100, 8)]
        bare += [wrapped(byte * byte, 8), y >> 4, wrapped(x + y, 32)]  # a vector's elements are signed
        return [*bare, x >> 28, x >> 28, 0, x // 3, byte + 100]

    result = elementwise(results, a, b, torch.int32)
    rows = [expected(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert torch.equal(result, torch.tensor(rows, dtype=torch.int32).T)


def test_a_bare_half_stays_one_beside_a_number(trace: Callable[..., Any]) -> None:
    def types(A: Any, Out: Any) -> list[Any]:
        half = fx.arith.truncf(fx.T.f16, A[0, 0])
        values = [half * 0.1, half.maximumf(half) + 1.0, fx.Float16(half) * 0.1, half * A[0, 0]]
        return [value.dtype for value in values]

    assert trace(types) == [fx.Float16, fx.Float16, fx.Float32, fx.Float32]


def test_branches_and_loops_keep_values_bare() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor, n: fx.Int32):
        mask = fx.arith.ArithValue(A[fx.thread_idx.x])
        if n > 0:
            mask = mask | 1
        for _ in range(n):
            mask = (mask & 0xFFFF0000) >> 1
        Out[fx.thread_idx.x] = fx.Int32(mask)

    launch = launcher_of(kernel, grid=1, block=4)
    a, out = torch.tensor([-1, 0, 5, -(2**31)], dtype=torch.int32), torch.zeros(4, dtype=torch.int32)
    launch(a, out, 2)
    expected = [((x & 0xFFFF0000) >> 1 & 0xFFFF0000) >> 1 for x in a.tolist()]
    assert out.tolist() == expected


def test_a_python_float_beside_a_half_is_exact_to_32_bits(elementwise: Callable[..., torch.Tensor]) -> None:
    a = torch.tensor([3.0, -0.1, 1000.0], dtype=torch.float16)
    (result,) = elementwise(lambda x, _: [x * 0.1], a, a, torch.float32)
    assert torch.equal(result, a.float() * 0.1)


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_remainder_of_floats_has_the_sign_of_the_dividend(
    elementwise: Callable[..., torch.Tensor], dtype: torch.dtype
) -> None:
    a, b = pairs([0.0, 1.0, -1.0, 7.5, -7.5, 2.0, -3.0, 1000.0, -0.125], dtype)
    b = torch.where(b == 0, torch.full_like(b, 0.75), b)
    (result,) = elementwise(lambda x, y: [x % y], a, b, dtype)
    assert torch.equal(result, torch.fmod(a, b))


def test_an_index_divides_without_a_sign(elementwise: Callable[..., torch.Tensor]) -> None:
    a, b = pairs([0, 1, 7, 100, 2**31 - 1], torch.int64)
    b = b | 1
    result = elementwise(
        lambda x, y: stored([fx.Index(x) / fx.Index(y), fx.Index(x) // 4, fx.Index(x) % fx.Index(y)], fx.Int64),
        a, b, torch.int64,
    )  # fmt: skip
    assert torch.equal(result, torch.stack([a // b, a // 4, a % b]))


def test_an_index_is_compared_and_shifted_without_a_sign(elementwise: Callable[..., torch.Tensor]) -> None:
    a, b = pairs([0, 1, 7, 2**40, -1, -7], torch.int64)

    def results(x: Any, y: Any) -> Any:
        x, y = fx.Index(x), fx.Index(y)
        return stored([x < y, x - 1 < y, x >= 0, x >> 60, x == y], fx.Int64)

    def is_less(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.where((x < 0) == (y < 0), x < y, x >= 0)

    expected = [is_less(a, b), is_less(a - 1, b), torch.ones_like(a), (a >> 60) & 15, a == b]
    assert torch.equal(elementwise(results, a, b, torch.int64), torch.stack([row.long() for row in expected]))
    assert not (fx.Index(0) - 1 < fx.Index(3)).value


def test_elements_of_vectors_are_promoted_like_scalars(trace: Callable[..., Any]) -> None:
    def types(A: Any, Out: Any) -> list[Any]:
        i, f = Out[0], A[0, 0]
        half, small = fx.Vector.filled(4, f, fx.Float16), fx.Vector.filled(4, i, fx.Int8)
        values = [
            half * 0.5, half * f, f * half, half + half, small + 100, small + small, small * 0.5, small + i, small + f,
            half + fx.Vector.filled(4, f, fx.Float32), half + i, half * fx.arith.constant(0.5, fx.T.f32),
        ]  # fmt: skip
        return [value.dtype for value in values]

    half, small, wide = fx.Float16, fx.Int8, fx.Float32
    assert trace(types) == [wide, wide, wide, half, fx.Int32, small, wide, fx.Int32, wide, wide, wide, half]
    with flydsl.language("0.2.2"):
        assert trace(types) == [half, half, half, half, small, small, wide, fx.Int32, wide, wide, half, half]


def test_select_and_named_functions(elementwise: Callable[..., torch.Tensor]) -> None:
    a, b = pairs(edges(32), torch.int32)
    arith = fx.arith
    result = elementwise(
        lambda x, y: [
            (x < y).select(x, y), x.select(1, 2), arith.select(x > 0, x, 0), arith.maxsi(x, y), arith.minui(x, y),
            arith.ceildivsi(x, 7), arith.cmpi("ult", x, y), arith.shrui(x, 3), arith.divsi(x, 7), arith.remsi(x, 7),
        ],
        a, b, torch.int32,
    )  # fmt: skip
    x, y = a.long(), b.long()
    ux, uy = x & 0xFFFFFFFF, y & 0xFFFFFFFF
    expected = [
        torch.minimum(x, y), torch.where(x != 0, 1, 2), x.clamp(min=0), torch.maximum(x, y),
        torch.minimum(ux, uy), -(-x // 7), ux < uy, ux >> 3, torch.div(x, 7, rounding_mode="trunc"), torch.fmod(x, 7),
    ]  # fmt: skip
    assert torch.equal(result, torch.stack([row.to(torch.int32) for row in expected]))


def test_static_values_compute_outside_of_a_kernel() -> None:
    assert (fx.Int32(7) // -2).value == -4
    assert (fx.Int32(7) % -2).value == 1
    assert (fx.Int32(-7) % 3).value == -1
    assert (fx.Uint8(200) + 100).value == 300
    assert (fx.Index(7) / 2).value == 3
    assert (-fx.Int8(-128)).value == -128
    assert (~fx.Uint8(1)).value == 254
    assert (fx.Int32(2**31 - 1) + 1).value == -(2**31)
    assert (fx.Boolean(True) + True).value == 2
    assert fx.Float32(fx.Float16(0.1)).value == 0.0999755859375
    assert fx.Int8(fx.Float32(-2.75)).value == -2


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (lambda i: i // 0, "by zero"),
        (lambda i: i % 0, "by zero"),
        (lambda i: i << 32, "32 bits"),
        (lambda i: i >> -1, "32 bits"),
        (lambda i: fx.arith.shli(i, 40), "32 bits"),
        (lambda i: fx.arith.divui(i, 0), "by zero"),
        (lambda i: fx.arith.ArithValue(i) < 2**32, "not a value of Int32"),
        (lambda i: fx.Uint32(i) > -1, "not a value of Uint32"),
        (lambda i: i + "x", "not a number"),
        (lambda i: None * i, "not a number"),
        (lambda i: i.to(fx.Float32) & 2, "no operator &"),
        (lambda i: fx.arith.addf(i, i), "takes floats"),
        (lambda i: fx.arith.addi(i, fx.Int64(i)), "types differ"),
        (lambda i: fx.arith.extf(fx.Float16, i.to(fx.Float32)), "no arith.extf"),
        (lambda i: fx.arith.bitcast(fx.Float16, i), "no arith.bitcast"),
        (lambda i: fx.arith.cmpi("olt", i, i), "not a predicate"),
        (lambda i: fx.arith.cmpi(10, i, i), "not a predicate"),
        (lambda i: -i.to(fx.Float8E4M3FN), "a format to store"),
        (lambda i: fx.Int32(float("inf")), "not an integer"),
        (lambda i: fx.ceildiv(7, 0), "by zero"),
        (lambda i: fx.ceildiv(i, 2.0), "ceildiv of Float32"),
        (lambda i: fx.max(), "fx.max.. of nothing"),
        (lambda i: fx.Float4E2M1FN(float("inf")), "cannot hold inf"),
        (lambda i: fx.Float8E8M0FNU(0), "cannot hold 0"),
        (lambda i: fx.Float32(10**400), "Float32 of a 1329-bit integer"),
        (lambda i: i.to(fx.Float32) * 1e300, r"f32 cannot hold 1e\+300, which would be inf"),
        (lambda i: fx.Float16(i) - fx.Float16(1e9), "f16 cannot hold 1000000000.0"),
        (lambda i: fx.BFloat16(-(10**40)), "which would be -inf"),
        (lambda i: fx.Int32(fx.Float32(float("nan"))), "outside of its range"),
        (lambda i: i.to(int), "not a scalar type"),
    ],
)
def test_errors_name_the_values_and_the_line(trace: Callable[..., Any], expression: Any, message: str) -> None:
    with raises_saying(ArgumentError, message) as caught:
        trace(lambda A, Out: expression(Out[0]))
    assert caught.value.at.file == __file__


def test_maximum_and_minimum_hand_on_nan(elementwise: Callable[..., torch.Tensor]) -> None:
    a = torch.tensor([1.0, -2.0, torch.nan, 0.5] * 16)
    b = torch.tensor([0.0, torch.nan, 3.0, 0.75] * 16)
    larger, smaller = elementwise(lambda x, y: [x.maximumf(y), x.minimumf(0.25)], a, b, torch.float32)
    assert torch.equal(larger.nan_to_num(9), torch.maximum(a, b).nan_to_num(9))
    assert torch.equal(smaller.nan_to_num(9), torch.clamp(a, max=0.25).nan_to_num(9))


def test_bitcast_keeps_the_bits(elementwise: Callable[..., torch.Tensor]) -> None:
    """Through every type of 32 bits, and a sign flipped in the bits."""
    a = torch.tensor([1.0, -2.5, 0.0, float("inf")] * 16)
    negated, back = elementwise(
        lambda x, _: [
            (x.bitcast(fx.Int32) ^ -(2**31)).bitcast(fx.Float32),
            x.bitcast(fx.Uint32).bitcast(fx.Int32).bitcast(fx.Float32),
        ],
        a,
        a,
        torch.float32,
    )
    assert torch.equal(negated, -a)
    assert torch.equal(back, a)


def test_bitcast_of_16_bits(elementwise: Callable[..., torch.Tensor]) -> None:
    a = torch.tensor([1.0, -2.5, 0.0, 3.0] * 16)
    (bits,) = elementwise(lambda x, _: [x.to(fx.BFloat16).bitcast(fx.Int16).to(fx.Float32)], a, a, torch.float32)
    assert torch.equal(bits, a.bfloat16().view(torch.int16).float())


def test_bitcast_to_another_width_is_refused(elementwise: Callable[..., torch.Tensor]) -> None:
    a = torch.zeros(64)
    with pytest.raises(ArgumentError, match="bitcast of Float32 to Int16"):
        elementwise(lambda x, _: [x.bitcast(fx.Int16)], a, a, torch.float32)


def test_the_magnitude_of_a_known_zero_has_no_sign() -> None:
    assert math.copysign(1.0, abs(fx.Float32(-0.0)).value) == 1.0


def test_a_python_number_wraps_as_in_c_and_as_numpy_casts_it() -> None:
    for number in (-1, 20, 300, 2**31, 2**40 + 5, -(2**63) - 7, 2.9, -2.9):
        for dtype in (fx.Int8, fx.Uint8, fx.Int16, fx.Uint32, fx.Int64, fx.Uint64):
            expected = np.array(int(number) & (2**64 - 1), np.uint64).astype(dtype.numpy_dtype)
            assert dtype(number).value == int(expected)
    assert (fx.Int4(20).value, fx.Int4(-9).value, fx.Uint128(-1).value) == (4, 7, 2**128 - 1)


def test_an_integer_that_does_not_fit_is_refused_where_nobody_converts_it() -> None:
    with pytest.raises(ArgumentError, match="outside"):
        fx.as_numeric(2**70)
    with pytest.raises(ArgumentError, match="300 is not a value of Int8"):
        fx.arith.select(True, fx.Int8(1), 300)


def test_the_logarithm_of_a_types_width() -> None:
    assert [t.log_width for t in (fx.Boolean, fx.Int4, fx.Float6E2M3FN, fx.Float16, fx.Index, fx.Int128)] == [
        0, 2, 3, 4, 6, 7,
    ]  # fmt: skip


def test_known_numbers_need_no_kernel() -> None:
    known = (fx.max(3, 4), fx.min([1, 2], 3), fx.max(1.5, 2), fx.ceildiv(-7, 2))
    assert [(type(x).__name__, x.value) for x in known] == [
        ("Int32", 4), ("Int32", 1), ("Float32", 2.0), ("Int32", -3),
    ]  # fmt: skip
    assert fx.max(fx.Uint32(3), fx.Int32(-1)).value == 2**32 - 1
    assert math.isnan(fx.max(float("nan"), 1.0).value)
    assert math.isnan(fx.min(1.0, float("nan")).value)
    assert [math.copysign(1, f(a, -a).value) for f in (fx.max, fx.min) for a in (0.0, -0.0)] == [1, 1, -1, -1]
    assert fx.arith.ceildiv(fx.Uint32(7), 2).dtype is fx.Uint32


def test_ceildiv_of_two_types(elementwise: Callable[..., torch.Tensor]) -> None:
    a = torch.arange(-32, 32, dtype=torch.int32)
    got = elementwise(lambda x, _: [fx.ceildiv(x, 5), fx.ceildiv(x.to(fx.Int64), fx.Int32(5))], a, a, torch.int64)
    assert torch.equal(got[0], -(-a.long() // 5))
    assert torch.equal(got[1], -(-a.long() // 5))


def test_an_element_that_a_vector_does_not_have_is_an_index_error() -> None:
    @flyc.kernel
    def kernel(x: fx.Tensor, i: fx.Constexpr[int]):
        x[0] = fx.Vector.filled(4, 1.0, fx.Float32)[i]

    launch = launcher_of(kernel, grid=1, block=1)
    x = torch.zeros(1)
    for index in (4, -5):
        with pytest.raises(IndexError, match=f"element {index} of a vector of 4"):
            launch(x, index)
    launch(x, -1)
    assert x[0] == 1.0
