"""What a kernel is told besides its arguments: its block size, and hints for register allocation."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError, LaunchError
from tests.launchers import launcher_of


@flyc.kernel(known_block_size=[64, 1, 1])
def fill_kernel(A: fx.Tensor, value: fx.Float32):
    A[fx.thread_idx.x] = value


@flyc.jit
def fill(A: fx.Tensor, value: fx.Float32, threads: fx.Constexpr[int]):
    fill_kernel(A, value).launch(grid=1, block=threads)


def test_a_kernel_with_a_known_block_size() -> None:
    a = torch.zeros(64)
    fill(a, 3.0, 64)
    assert torch.equal(a, torch.full((64,), 3.0))
    with pytest.raises(LaunchError, match=r"block \(32, 1, 1\) differs from known_block_size \(64, 1, 1\)"):
        fill(a, 3.0, 32)


def test_a_runtime_block_is_not_known() -> None:
    @flyc.jit
    def launch(A: fx.Tensor, threads: fx.Int32):
        fill_kernel(A, 1.0).launch(grid=1, block=threads)

    with pytest.raises(LaunchError, match=r"block \(None, 1, 1\) differs"):
        launch(torch.zeros(64), 64)


@flyc.kernel
def sizes_kernel(A: fx.Tensor):
    A[0] = fx.Float32(fx.known_block_size()[0])
    A[1] = A[1] + 1.0


def test_a_launch_tells_the_block_size() -> None:
    @flyc.jit
    def launch(A: fx.Tensor, threads: fx.Constexpr[int]):
        sizes_kernel(A).launch(grid=1, block=threads)

    for threads in (1, 64):
        a = torch.zeros(2)
        launch(a, threads)
        assert a.tolist() == [threads, 1.0]
    assert len(launch.lower(torch.zeros(2), 1).artifact.kernels) == 1

    @flyc.jit
    def launch_any(A: fx.Tensor, threads: fx.Int32):
        sizes_kernel(A).launch(grid=1, block=threads)

    with pytest.raises(RuntimeError, match="block size is not known") as caught:
        launch_any(torch.zeros(2), 1)
    assert "known_block_size()[0]" in str(caught.value)


def test_a_kernel_that_is_launched_again() -> None:
    """With the same block it is the same code, with another one other code."""

    @flyc.kernel
    def kernel(A: fx.Tensor):
        A[fx.thread_idx.x] = A[fx.thread_idx.x] + fx.known_block_size()[0]

    @flyc.jit
    def launch(A: fx.Tensor):
        called = kernel(A)
        for threads in (4, 8, 4):
            called.launch(grid=1, block=threads)

    a = torch.zeros(8)
    launch(a)
    assert a.tolist() == [16.0] * 4 + [8.0] * 4
    assert len({record.name for record in launch.lower(a).artifact.kernels}) == 2


@pytest.mark.parametrize(
    ("size", "kind", "said"),
    [
        ([64, 1], ValueError, "exactly 3 elements, got 2"),
        ([1, 2, 3, 4], ValueError, "exactly 3 elements"),
        ([64, 0, 1], ValueError, "0 must be positive"),
        ([64.0, 1, 1], TypeError, "64.0 must be an int"),
        (64, TypeError, "a sequence of 3 positive integers"),
    ],
)
def test_wrong_block_sizes_are_refused(size: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        flyc.kernel(known_block_size=size)(fill_kernel.function)


def test_hints_reach_the_machine_code() -> None:
    @flyc.jit
    def launch(A: fx.Tensor, waves: fx.Constexpr[int]):
        fill_kernel(A, 2.0, value_attrs={"rocdl.waves_per_eu": waves}).launch(grid=1, block=64)

    a = torch.zeros(64)
    launch(a, 4)
    assert torch.equal(a, torch.full((64,), 2.0))
    assert '"amdgpu-waves-per-eu"="4"' in launch.lower(a, 4).artifact.code.llvm_ir
    with pytest.raises(ArgumentError, match="the value has the wrong form"):
        launch(a, 0)


def test_a_number_or_value_as_a_scalar_of_the_dsl() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor):
        i = fx.arith.ArithValue(fx.thread_idx.x)
        vector = fx.arith.ArithValue(fx.Vector.filled(2, 1.5, fx.Float32).ir_value())
        A[i] = fx.arith.ArithValue(i.ir_value()).to(fx.Float32) + vector[0] + fx.arith.ArithValue(2.0)

    launch = launcher_of(kernel, grid=1, block=64)
    a = torch.zeros(64)
    launch(a)
    assert torch.equal(a, torch.arange(64) + 3.5)
    assert isinstance(fx.arith.ArithValue(3), fx.Int32)


def test_attributes_of_a_kernel_and_of_its_launch() -> None:
    @flyc.jit
    def launch(A: fx.Tensor):
        fill_kernel(A, 2.0, unit_attrs=["note.kernel"]).launch(
            grid=1, block=64, unit_attrs=["note.launch"], value_attrs={"note.count": 3, "note.none": None}
        )

    traced = launch.lower(torch.zeros(64)).origin
    assert "note.kernel" in traced
    assert "note.launch" in traced
    assert "note.count = 3" in traced
    assert "note.none" not in traced
    with pytest.raises(ArgumentError, match="has its dialect before it"):
        flyc.jit(lambda_launcher).lower(torch.zeros(64))


def lambda_launcher(A: fx.Tensor):
    fill_kernel(A, 2.0, unit_attrs=["bare"]).launch(grid=1, block=64)
