"""Runtime loops and the values that they carry, on the simulator."""

from __future__ import annotations

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import TraceError
from flydsl.expr import range_constexpr


def test_loops_with_bounds_known_at_run_time() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor, first: fx.Int32, last: fx.Int32, step: fx.Int32):
        i = fx.thread_idx.x
        total, count = fx.Float32(0), fx.Int32(0)
        for j in range(first, last, step):
            total = total + A[i, j]
            for k in range_constexpr(2):
                count += k
        Out[i, 0] = total
        Out[i, 1] = count.to(fx.Float32)

    @flyc.jit
    def launch(A: fx.Tensor, Out: fx.Tensor, first: fx.Int32, last: fx.Int32, step: fx.Int32):
        kernel(A, Out, first, last, step).launch(grid=1, block=64)

    a = torch.arange(64 * 20, dtype=torch.float32).reshape(64, 20)
    for bounds in [(0, 20, 1), (3, 20, 4), (5, 5, 1), (7, 2, 1)]:
        out = torch.zeros(64, 2)
        launch(a, out, *bounds)
        columns = range(*bounds)
        assert torch.equal(out[:, 0], a[:, list(columns)].sum(1))
        assert (out[:, 1] == len(columns)).all()
    for step in (0, -1, -(2**31)):  # a runtime loop counts upward, or not at all
        launch(a, out, 0, 20, step)
        assert (out == 0).all()


def test_registers_written_in_a_loop_keep_their_values() -> None:
    """A register tensor that crosses loop iterations stays memory; its storage is one, not one per iteration."""

    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor, n: fx.Int32):
        i = fx.thread_idx.x
        r = fx.make_rmem_tensor(4, fx.Float32)
        for j in range_constexpr(4):
            r[j] = 0.0
        for j in range(n):
            piece = fx.make_rmem_tensor(4, fx.Float32)
            for k in range_constexpr(4):
                piece[k] = A[i, j * 4 + k]
            r.store(r.load() + piece.load())
            r[j % 4] = r[j % 4] * 2.0
        for j in range_constexpr(4):
            Out[i, j] = r[j]

    @flyc.jit
    def launch(A: fx.Tensor, Out: fx.Tensor, n: fx.Int32):
        kernel(A, Out, n).launch(grid=1, block=64)

    a, out = torch.randn(64, 24, generator=torch.manual_seed(0)), torch.zeros(64, 4)
    launch(a, out, 6)
    expected = torch.zeros(64, 4)
    for j in range(6):
        expected += a[:, 4 * j : 4 * j + 4]
        expected[:, j % 4] *= 2
    assert torch.equal(out, expected)


def test_a_tensor_that_a_loop_would_carry_is_an_error_at_its_use() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor, n: fx.Int32):
        row = fx.slice(A, (0, None))
        for j in range(n):
            Out[j] = row[j]
            row = fx.slice(A, (j, None))

    @flyc.jit
    def launch(A: fx.Tensor, Out: fx.Tensor, n: fx.Int32):
        kernel(A, Out, n).launch(grid=1, block=64)

    with pytest.raises(TraceError, match="'row' holds Tensor") as caught:
        launch(torch.zeros(8, 8), torch.zeros(8), 3)
    assert caught.value.at is not None
    assert "Out[j] = row[j]" in str(caught.value)


def test_a_tensor_made_anew_in_each_iteration_works() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor, n: fx.Int32):
        i = fx.thread_idx.x
        total = fx.Float32(0)
        for j in range(n):
            row = fx.slice(A, (j, None))
            total = total + row[i]
        Out[i] = total

    @flyc.jit
    def launch(A: fx.Tensor, Out: fx.Tensor, n: fx.Int32):
        kernel(A, Out, n).launch(grid=1, block=64)

    a, out = torch.arange(5 * 64.0).reshape(5, 64), torch.zeros(64)
    launch(a, out, 5)
    assert torch.equal(out, a.sum(0))


def test_ids_outside_a_kernel_say_so() -> None:
    with pytest.raises(TraceError, match=r"gpu.thread_id outside a kernel"):
        _ = fx.thread_idx.x


def test_a_helper_with_a_runtime_loop_is_told_what_it_needs() -> None:
    def helper(n: object) -> object:
        total = fx.Int32(0)
        for i in range(n):
            total = total + i
        return total

    @flyc.kernel
    def kernel(Out: fx.Tensor, n: fx.Int32):
        Out[0] = helper(n)

    @flyc.jit
    def launch(Out: fx.Tensor, n: fx.Int32):
        kernel(Out, n).launch(grid=1, block=1)

    with pytest.raises(TraceError, match=r"needs @flyc.jit"):
        launch(torch.zeros(1, dtype=torch.int32), 3)
