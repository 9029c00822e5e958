"""What the page on the compiler and its pipeline shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler.fly_opt import main as fly_opt


@flyc.kernel
def my_kernel(A: fx.Tensor, B: fx.Tensor, n: fx.Constexpr[int]):
    tid, bid = fx.thread_idx.x, fx.block_idx.x
    tile = fx.slice(fx.logical_divide(A, fx.make_layout(256, 1)), (None, bid))
    out = fx.slice(fx.logical_divide(B, fx.make_layout(256, 1)), (None, bid))
    out[tid] = tile[tid] * n


@flyc.jit
def launch(A: fx.Tensor, B: fx.Tensor, n: fx.Constexpr[int], stream: fx.Stream = fx.Stream(None)):
    my_kernel(A, B, n).launch(grid=(fx.size(A) // 256, 1, 1), block=(256, 1, 1), stream=stream)


def test_kernel_and_launcher() -> None:
    a, b = torch.randn(1024), torch.zeros(1024)
    launch(a, b, 3)
    assert torch.equal(b, a * 3)


def test_the_stages() -> None:
    names = [
        name for stage in launch.lower(torch.zeros(256), torch.zeros(256), 1, arch="gfx942") for name in stage.passes
    ]
    shown = "fly-canonicalize fly-layout-lowering convert-fly-to-rocdl canonicalize gpu-to-llvm convert-arith-to-llvm"
    places = [names.index(name) for name in shown.split()[:3]]
    assert places == sorted(places)
    assert [name for name in shown.split() if name not in names] == []
    assert any(
        "chip=gfx942" in stage.name for stage in launch.lower(torch.zeros(256), torch.zeros(256), 1, arch="gfx942")
    )


def test_tensors_with_a_dynamic_layout() -> None:
    matrix, out = torch.randn(256, 8), torch.zeros(256)

    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor):
        B[fx.thread_idx.x] = A[fx.thread_idx.x, 5]

    @flyc.jit
    def columns(A: fx.Tensor, B: fx.Tensor, stream: fx.Stream = fx.Stream(None)):
        kernel(A, B).launch(grid=1, block=256, stream=stream)

    tA = flyc.from_dlpack(matrix).mark_layout_dynamic(leading_dim=1, divisibility=4)
    columns(tA, out, stream=fx.Stream(None))
    assert torch.equal(out, matrix[:, 5])
    assert "?{div=4}" in columns.lower(tA, out).origin or "?{i64 div=4}" in columns.lower(tA, out).origin


def test_buffer_operations_and_atoms() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor):
        buffers = [fx.logical_divide(fx.rocdl.make_buffer_tensor(X), fx.make_layout(4, 1)) for X in (A, B)]
        source, target = (fx.slice(X, (None, fx.thread_idx.x)) for X in buffers)
        wide, narrow = (
            fx.make_copy_atom(op, fx.Float32) for op in (fx.rocdl.BufferCopy128b(), fx.rocdl.BufferCopy32b())
        )
        registers = fx.make_rmem_tensor(4, fx.Float32)
        fx.copy(wide, source, registers)
        fx.copy(narrow, registers, target)

    @flyc.jit
    def copy(A: fx.Tensor, B: fx.Tensor):
        kernel(A, B).launch(grid=1, block=64)

    a, b = torch.randn(256), torch.zeros(256)
    copy(a, b)
    assert torch.equal(a, b)
    assert "16x16x4" in str(fx.rocdl.MFMA(16, 16, 4, fx.Float32))


@pytest.mark.parametrize("stage", ["fly-canonicalize", "fly-layout-lowering"])
def test_fly_opt(stage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "input.mlir"
    p = launch.lower(torch.zeros(256), torch.zeros(256), 1).run(until=stage)
    file.write_text(p[stage].before)
    assert fly_opt([f"--{stage}", str(file)]) == 0
    assert capsys.readouterr().out.strip() == p[stage].after.strip()


def test_fly_opts_help() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "flydsl.compiler.fly_opt", "--help"], capture_output=True, text=True, check=True
    ).stdout
    assert "--fly-canonicalize" in shown
    assert "--fly-layout-lowering" in shown
