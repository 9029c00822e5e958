"""Tensors with a layout of the user's choosing, and scalars of every type."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError
from flydsl.simulator import MemoryFault
from tests.launchers import launcher_of


@flyc.kernel
def double_kernel(A: fx.Tensor):
    i, j = fx.block_idx.x, fx.thread_idx.x
    A[i, j] = A[i, j] * 2


@flyc.jit
def double(A: fx.Tensor):
    double_kernel(A).launch(grid=A.shape[0], block=A.shape[1])


@pytest.mark.parametrize("view", [lambda t: t, lambda t: t.T, lambda t: t[::2, 1:], lambda t: t[:, ::3]])
def test_a_static_and_a_dynamic_layout(view: Any) -> None:
    A = torch.arange(8.0 * 12).reshape(8, 12)
    expected = A.clone()
    view(expected).mul_(8)
    double(view(A))
    double(flyc.from_dlpack(view(A)))
    double(flyc.from_dlpack(view(A)).mark_layout_dynamic())
    assert torch.equal(A, expected)


def test_a_static_layout_is_in_the_code() -> None:
    A = torch.zeros(8, 12)
    assert "(8,12):(12,1)" in double.lower(flyc.from_dlpack(A)).origin
    dynamic = flyc.from_dlpack(A).mark_layout_dynamic(leading_dim=1, divisibility=4)
    assert "(?,?):(?{i64 div=4},1)" in double.lower(dynamic).origin


def test_arrays_of_other_libraries() -> None:
    A = np.ones((2, 64), np.float32)
    double(flyc.from_dlpack(A))
    assert (A == 2).all()


@pytest.mark.parametrize(
    ("options", "says"),
    [({"leading_dim": 0}, "dimension 0 has stride 12"), ({"divisibility": 5}, "stride 12 of dimension 0")],
)
def test_marks_that_are_not_true(options: dict[str, int], says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        flyc.from_dlpack(torch.zeros(8, 12)).mark_layout_dynamic(**options)


def test_scalars_of_every_type() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, h, f, d, u, b, q, x):
        for place, value in enumerate((h, f, d, u, b.select(1, 0), q, x)):
            A[place] = value.to(fx.Float32)

    @flyc.jit
    def store(
        A: fx.Tensor, h: fx.Float16, f: fx.Float32, d: fx.Float64, u: fx.Uint8, b: fx.Boolean, q: fx.Int64, x: fx.Index
    ):
        kernel(A, h, f, d, u, b, q, x).launch(grid=1, block=1)

    values = [1.5, -2.5, 3.25, 200, True, -(1 << 40), 7]
    A = torch.zeros(7)
    store(A, *values)
    assert A.tolist() == [float(value) for value in values]


@pytest.mark.parametrize("arch", ["gfx942", "gfx1201"])
def test_integers_of_128_bits(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCH", arch)

    @flyc.kernel
    def kernel(y: fx.Tensor, a: fx.Int128, b: fx.Uint128):
        total = a * 3 + fx.Int128(b >> 64)
        y[0], y[1] = fx.Int64(total), fx.Int64(total >> 64)

    @flyc.jit
    def launch(y: fx.Tensor, before: fx.Int8, a: fx.Int128, b: fx.Uint128):
        kernel(y, a, b - fx.Uint128(before)).launch(grid=1, block=1)

    y, a, b = torch.zeros(2, dtype=torch.int64), -(1 << 90) + 12345, (1 << 128) - 3
    launch(y, 7, a, fx.Uint128(b))
    assert (int(y[1]) << 64) + (int(y[0]) & (1 << 64) - 1) == a * 3 + (b - 7 >> 64)
    with pytest.raises(ArgumentError, match="a must be Int128, from -170141183460469231731687303715884105728 to"):
        launch(y, 7, 1 << 127, b)


def test_parameters_without_annotation() -> None:
    @flyc.kernel
    def kernel(A, n, f, b):
        A[0] = n.to(fx.Float32)
        A[1] = f
        A[2] = b.select(1.0, 0.0)

    store = launcher_of(kernel, grid=1, block=1)
    A = torch.zeros(3)
    for n in (5, 1 << 40):
        store(A, n, 2.5, True)
        assert A.tolist() == [float(n), 2.5, 1.0]


def test_a_constant_of_any_type() -> None:
    @flyc.kernel
    def fill_kernel(A: fx.Tensor, value: fx.Constexpr[Any], other: fx.Constexpr[int | None] = None):
        A[fx.thread_idx.x] = value[0] if other is None else other

    @flyc.jit
    def fill(A: fx.Tensor, value: fx.Constexpr[Any]):
        fill_kernel(A, value).launch(grid=1, block=4)

    A = torch.zeros(4)
    fill(A, (5.0,))
    assert A.tolist() == [5.0] * 4


def test_annotations_may_use_imports_of_the_enclosing_function() -> None:
    """Also those that the function itself does not use, so that they are not in its closure."""

    def build(lanes: int) -> Any:
        import flydsl.expr as local
        import flydsl.expr.typing as types_of_the_dsl

        Scale = local.Float32

        @flyc.kernel
        def scale(X: types_of_the_dsl.Tensor, factor: Scale):
            X[fx.thread_idx.x] = X[fx.thread_idx.x] * factor

        @flyc.jit
        def launch(X: local.Tensor, factor: Scale, stream: types_of_the_dsl.Stream = None):  # type: ignore[valid-type]
            scale(X, factor).launch(grid=1, block=lanes, stream=stream)

        return launch

    x = torch.arange(64.0)
    build(64)(x, 3)
    assert torch.equal(x, torch.arange(64.0) * 3)


def test_an_array_that_must_not_be_written_is_not() -> None:
    @flyc.kernel
    def kernel(x: fx.Tensor, y: fx.Tensor):
        x[0] = y[0]

    launch = launcher_of(kernel, grid=1, block=1)
    known = np.full(4, 7, np.float32)
    known.flags.writeable = False
    out = torch.zeros(4)
    launch(out, flyc.from_dlpack(known))
    assert out[0] == 7
    with pytest.raises(MemoryFault, match="read-only"):
        launch(flyc.from_dlpack(known), out)


def test_a_runtime_number_that_may_be_too_large_for_the_kernels_parameter_deserves_a_hint() -> None:
    @flyc.kernel
    def kernel(out: fx.Tensor, n: fx.Int32):
        out[0] = n

    @flyc.jit
    def launch(out: fx.Tensor, n: fx.Uint32):
        kernel(out, n).launch(grid=1, block=1)

    @flyc.jit
    def convert_and_launch(out: fx.Tensor, n: fx.Uint32, m: fx.Int32):
        kernel(out, fx.Int32(n)).launch(grid=1, block=1)
        kernel(out, m).launch(grid=1, block=1)

    out = torch.zeros(1, dtype=torch.int32)
    with pytest.warns(UserWarning, match="numbers above 2147483647 wrap around") as said:
        launch(out, 3_000_000_000)
    assert said[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        convert_and_launch(out, 3_000_000_000, 7)
    assert out.item() == 7


def test_promises_about_a_tensor_are_checked() -> None:
    whole = torch.zeros(64)
    adaptor = flyc.from_dlpack(whole, assumed_align=16, use_32bit_stride=True)
    assert adaptor.layout == flyc.from_torch_tensor(whole).layout
    with pytest.raises(ArgumentError, match="is not aligned to assumed_align=16"):
        flyc.from_torch_tensor(whole[1:], assumed_align=16)
    with pytest.raises(ArgumentError, match="a power of two, got 12"):
        flyc.from_dlpack(whole, assumed_align=12)
    with pytest.raises(ArgumentError, match="use_32bit_stride=True, but the strides are"):
        flyc.from_dlpack(whole.as_strided((1, 4), (2**31, 1)), use_32bit_stride=True)
